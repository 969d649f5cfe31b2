/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_av_set(3). */
#include "front/ofi/coll/av_set.h"
#include "front/ofi/coll/coll.h"
#include "front/ofi/stubs.h"

#include <stdlib.h>

#define SET_FLAGS \
	(FI_UNIVERSE | FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET | \
	 FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET | FI_REDUCE_SET | FI_SCATTER_SET | FI_GATHER_SET)

static struct hd_fi_av_set *av_set_as(const struct fid_av_set *fid)
{
	return hd_fi_as(hd_fi_av_set, HD_FI_AV_SET, FI_CLASS_AV_SET, fid);
}

bool hd_fi_av_set_at(const struct hd_fi_av *av, fi_addr_t addr)
{
	const struct hd_fi_av_set *set;

	LIST_FOREACH(set, &av->sets, entry)
		if (set->addr == addr)
			return true;
	return false;
}

/* ---- what is done with one ------------------------------------------------------------------- */

/* Both sets of one call, or -FI_EINVAL. */
static int two_of(struct fid_av_set *dst, const struct fid_av_set *src, struct hd_fi_av_set **set,
		  const struct hd_fi_av_set **with)
{
	*set = av_set_as(dst);
	*with = av_set_as(src);
	return *set && *with && (*set)->av == (*with)->av
		       ? 0
		       : hd_fi_no(FI_EINVAL, "a call for two sets that are not both of one address vector");
}

enum set_change {
	SET_ADD,  /* those of the other as well */
	SET_KEEP, /* only those of the other */
	SET_DROP, /* none of the other */
};

static int set_by(struct fid_av_set *dst, const struct fid_av_set *src, enum set_change how)
{
	const struct hd_fi_av_set *with;
	struct hd_fi_av_set *set;
	int rc = two_of(dst, src, &set, &with);

	if (rc)
		return rc;
	hd_fi_lock(set->av->domain);
	if (how == SET_ADD)
		rc = hd_fi_addrs_union(&set->members, &with->members);
	else
		hd_fi_addrs_keep(&set->members, &with->members, how == SET_KEEP);
	hd_fi_unlock(set->av->domain);
	return rc;
}

static int set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return set_by(dst, src, SET_ADD);
}

static int set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return set_by(dst, src, SET_KEEP);
}

static int set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return set_by(dst, src, SET_DROP);
}

static int set_insert(struct fid_av_set *fid, fi_addr_t addr)
{
	struct hd_fi_av_set *set = (struct hd_fi_av_set *)fid;
	int rc;

	hd_fi_lock(set->av->domain);
	if (hd_fi_av_index(set->av, addr) != addr || hd_fi_addrs_find(&set->members, addr) >= 0)
		rc = hd_fi_no(
			FI_EINVAL,
			"fi_av_set_insert of what is not in the address vector, or is in the set already");
	else
		rc = hd_fi_addrs_add(&set->members, addr);
	hd_fi_unlock(set->av->domain);
	return rc;
}

static int set_remove(struct fid_av_set *fid, fi_addr_t addr)
{
	struct hd_fi_av_set *set = (struct hd_fi_av_set *)fid;
	bool found;

	hd_fi_lock(set->av->domain);
	found = hd_fi_addrs_remove(&set->members, addr);
	hd_fi_unlock(set->av->domain);
	return found ? 0 : hd_fi_no(FI_EINVAL, "fi_av_set_remove of an address that is not in the set");
}

static int set_addr(struct fid_av_set *fid, fi_addr_t *addr)
{
	if (!addr)
		return hd_fi_no(FI_EINVAL, "fi_av_set_addr without room for the address");
	*addr = ((struct hd_fi_av_set *)fid)->addr;
	return 0;
}

static struct fi_ops_av_set set_ops = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = set_union,
	.intersect = set_intersect,
	.diff = set_diff,
	.insert = set_insert,
	.remove = set_remove,
	.addr = set_addr,
};

/* Groups have copies of what they need of it. */
static int set_close(struct fid *fid)
{
	struct hd_fi_av_set *set = (struct hd_fi_av_set *)fid;
	struct hd_fi_domain *domain = set->av->domain;

	hd_fi_lock(domain);
	LIST_REMOVE(set, entry);
	hd_fi_unlock(domain);
	set->magic = 0;
	hd_fi_domain_drop(domain, &set->object);
	atomic_fetch_sub(&set->av->users, 1);
	free(set->members.at);
	free(set);
	return 0;
}

static struct fi_ops set_fid_ops = HD_FI_FID_OPS(set_close, hd_fi_no_bind, hd_fi_no_control);

/* ---- making one ------------------------------------------------------------------------------ */

static bool has_range(const struct fi_av_set_attr *attr)
{
	return attr->start_addr != FI_ADDR_NOTAVAIL || attr->end_addr != FI_ADDR_NOTAVAIL;
}

static int check_range(const struct hd_fi_av *av, const struct fi_av_set_attr *attr)
{
	if (attr->start_addr == FI_ADDR_NOTAVAIL || attr->end_addr == FI_ADDR_NOTAVAIL ||
	    attr->end_addr < attr->start_addr || !attr->stride)
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_set with one end of a range, with an empty one, or with a stride of 0");
	if (av->type == FI_AV_MAP)
		return hd_fi_no(FI_EINVAL, "fi_av_set with a range of addresses, for which FI_AV_TABLE is");
	return attr->count && (attr->end_addr - attr->start_addr) / attr->stride >= attr->count
		       ? hd_fi_no(FI_EINVAL, "fi_av_set with a range that is longer than its count")
		       : 0;
}

static int set_check(const struct hd_fi_av *av, const struct fi_av_set_attr *attr)
{
	if (attr->flags & ~SET_FLAGS)
		return hd_fi_no(FI_EBADFLAGS, "fi_av_set with flags that it does not take");
	if (attr->comm_key_size)
		return hd_fi_no(FI_ENOSYS, "fi_av_set with a key: nobody but we manages groups here");
	return has_range(attr) ? check_range(av, attr) : 0;
}

/* What is not in the AV is passed over. Caller holds the node's lock. */
static int set_fill(struct hd_fi_av_set *set, fi_addr_t from, fi_addr_t last, uint64_t stride)
{
	int rc = 0;

	for (fi_addr_t a = from; a <= last && a < set->av->size && !rc; a += stride) {
		if (set->av->dest[a])
			rc = hd_fi_addrs_add(&set->members, a);
		if (stride > last - a)
			break;
	}
	return rc;
}

static int set_begin(struct hd_fi_av_set *set, const struct fi_av_set_attr *attr)
{
	int rc = 0;

	hd_fi_av_follow(set->av);
	if (attr->flags & FI_UNIVERSE)
		rc = set_fill(set, 0, set->av->size, 1);
	else if (has_range(attr))
		rc = set_fill(set, attr->start_addr, attr->end_addr, attr->stride);
	if (!rc)
		LIST_INSERT_HEAD(&set->av->sets, set, entry);
	return rc ? hd_fi_no(FI_ENOMEM) : 0;
}

int hd_fi_av_set_open(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **out, void *context)
{
	static _Atomic uint32_t serials;
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	struct hd_fi_av_set *set;
	int rc;

	if (!attr || !out)
		return hd_fi_no(FI_EINVAL, "fi_av_set without attributes, or room for the set");
	rc = set_check(av, attr);
	if (rc)
		return rc;
	set = calloc(1, sizeof(*set));
	if (!set)
		return hd_fi_no(FI_ENOMEM);
	set->fid.fid = (struct fid){ .fclass = FI_CLASS_AV_SET, .context = context, .ops = &set_fid_ops };
	set->fid.ops = &set_ops;
	set->av = av;
	set->addr = HD_FI_SET_BIT | atomic_fetch_add(&serials, 1);
	hd_fi_lock(av->domain);
	rc = set_begin(set, attr);
	hd_fi_unlock(av->domain);
	if (rc) {
		free(set->members.at);
		free(set);
		return rc;
	}
	set->magic = HD_FI_AV_SET;
	atomic_fetch_add(&av->users, 1);
	hd_fi_domain_add(av->domain, &set->object, &set->fid.fid);
	*out = &set->fid;
	return 0;
}
