/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_mr(3). Nothing has to be registered for sends and receives; a program may do it all the same.
 * What the domain was opened with decides the rest: FI_MR_PROV_KEY (or FI_MR_BASIC): we draw the
 * keys, else the program chooses; FI_MR_VIRT_ADDR: peers name virtual addresses, else offsets;
 * FI_MR_RAW: keys are told by fi_mr_raw_attr alone; FI_MR_RMA_EVENT, FI_MR_ENDPOINT: regions wait
 * for fi_mr_enable. The other bits ask nothing of a program here.
 */
#include "front/ofi/auth.h"
#include "front/ofi/stubs.h"

#include <stdlib.h>
#include <string.h>

/*
 * Of the bits that say nothing of access, as FI_RMA beside FI_REMOTE_READ, none is refused:
 * libfabric's providers take no notice of them.
 */
static uint32_t mr_access_of(uint64_t access)
{
	return (access & (FI_SEND | FI_WRITE) ? HD_ACCESS_LOCAL_READ : 0) |
	       (access & (FI_RECV | FI_READ) ? HD_ACCESS_LOCAL_WRITE : 0) |
	       (access & FI_REMOTE_READ ? HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_FETCH : 0) |
	       (access & FI_REMOTE_WRITE ? HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC : 0);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Forget the endpoint. The domain's lock protects both ends of the tie. */
static void unbind_ep(struct hd_fi_mr *mr)
{
	hd_lock_take(&mr->domain->lock);
	if (mr->ep)
		LIST_REMOVE(mr, of_ep);
	mr->ep = NULL;
	hd_lock_give(&mr->domain->lock);
}

void hd_fi_mr_drop_ep(struct hd_fi_ep *ep)
{
	struct hd_fi_mr *mr;

	hd_lock_take(&ep->domain->lock);
	while ((mr = LIST_FIRST(&ep->regions))) {
		LIST_REMOVE(mr, of_ep);
		mr->ep = NULL;
	}
	hd_lock_give(&ep->domain->lock);
}

static int mr_close(struct fid *fid)
{
	struct hd_fi_mr *mr = (struct hd_fi_mr *)fid;
	struct hd_fi_domain *domain = mr->domain;
	int rc;

	if (hd_node_dead(domain->node))
		return hd_fi_no(FI_EOPBADSTATE,
				"the domain is that of the process which has forked this one");
	hd_fi_lock(domain);
	rc = hd_mr_close(mr->mr);
	hd_fi_unlock(domain);
	if (rc)
		return hd_fi_ret(rc, "fi_close of a region that is in use");
	unbind_ep(mr);
	for (int i = 0; i < 2; i++)
		if (mr->cntrs[i])
			atomic_fetch_sub(&mr->cntrs[i]->users, 1);
	mr->magic = 0;
	hd_fi_domain_drop(domain, NULL);
	free(mr);
	return 0;
}

/* ---- binding and enabling -------------------------------------------------------------------- */

#define CNTR_FLAGS (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* By what peers do: [0] read, [1] write. */
static int mr_bind_cntr(struct hd_fi_mr *mr, struct hd_fi_cntr *cntr, uint64_t flags)
{
	const bool wanted[2] = { flags & FI_REMOTE_READ, flags & FI_REMOTE_WRITE };

	if (flags & ~CNTR_FLAGS)
		return hd_fi_no(
			FI_EBADFLAGS,
			"fi_mr_bind of a counter with flags other than FI_REMOTE_READ and FI_REMOTE_WRITE");
	if (!flags || (mr->domain->mr_mode & FI_MR_RMA_EVENT && !mr->rma_event))
		return hd_fi_no(
			FI_EINVAL,
			"fi_mr_bind of a counter without flags, or to a region registered without FI_RMA_EVENT");
	if (cntr->domain != mr->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_mr_bind of a counter of another domain");
	for (int i = 0; i < 2; i++)
		if (wanted[i] && mr->cntrs[i])
			return hd_fi_no(FI_EINVAL, "fi_mr_bind where there is a counter for that");
	for (int i = 0; i < 2; i++)
		if (wanted[i]) {
			mr->cntrs[i] = cntr;
			atomic_fetch_add(&cntr->users, 1);
		}
	hd_fi_lock(mr->domain);
	hd_mr_bind_cntrs(mr->mr, mr->cntrs[0] ? mr->cntrs[0]->cntr : NULL,
			 mr->cntrs[1] ? mr->cntrs[1]->cntr : NULL);
	hd_fi_unlock(mr->domain);
	return 0;
}

static void tell_ep(struct hd_fi_mr *mr)
{
	hd_fi_lock(mr->domain);
	hd_mr_bind_ep(mr->mr, mr->ep->ep);
	hd_fi_unlock(mr->domain);
}

/*
 * A region that is in use already needs an endpoint that is; one that waits for
 * fi_mr_enable does not yet.
 */
static int bind_ep(struct hd_fi_mr *mr, struct hd_fi_ep *ep, uint64_t flags)
{
	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_mr_bind of an endpoint takes no flags");
	if (ep->domain != mr->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_mr_bind of an endpoint of another domain");
	if (mr->ep)
		return hd_fi_no(FI_EINVAL, "fi_mr_bind where there is an endpoint");
	if (mr->enabled && !ep->ep)
		return hd_fi_no(FI_EOPBADSTATE,
				"fi_mr_bind of an endpoint that is not enabled, to a region that is");
	hd_lock_take(&mr->domain->lock);
	mr->ep = ep;
	LIST_INSERT_HEAD(&ep->regions, mr, of_ep);
	hd_lock_give(&mr->domain->lock);
	if (mr->enabled)
		tell_ep(mr);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct hd_fi_mr *mr = (struct hd_fi_mr *)fid;
	struct hd_fi_cntr *cntr = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, bfid);
	struct hd_fi_ep *ep = hd_fi_ep_as(bfid);

	if (hd_node_dead(mr->domain->node) || mr->settled)
		return hd_fi_no(FI_EOPBADSTATE,
				"fi_mr_bind after fi_mr_enable, or in a process that was forked");
	if (cntr)
		return mr_bind_cntr(mr, cntr, flags);
	return ep ? bind_ep(mr, hd_fi_ep_whole(ep), flags)
		  : hd_fi_no(FI_EINVAL, "fi_mr_bind of what is neither a counter nor an endpoint");
}

static int mr_enable(struct hd_fi_mr *mr)
{
	if (mr->ep ? !mr->ep->ep : mr->domain->mr_mode & FI_MR_ENDPOINT)
		return hd_fi_no(
			FI_EOPBADSTATE,
			"fi_mr_enable before a region with FI_MR_ENDPOINT has an endpoint, or before that one's fi_enable");
	if (mr->ep)
		tell_ep(mr);
	hd_fi_lock(mr->domain);
	hd_mr_enable(mr->mr);
	hd_fi_unlock(mr->domain);
	mr->enabled = true;
	mr->settled = true;
	return 0;
}

/* A region refers to addresses, not to pages, so it is always fresh. */
static int mr_refresh(const struct fi_mr_modify *modify)
{
	if (!modify || (modify->attr.iov_count && !modify->attr.mr_iov))
		return hd_fi_no(FI_EINVAL, "fi_mr_refresh without segments");
	return modify->flags ? hd_fi_no(FI_EBADFLAGS, "fi_mr_refresh takes no flags") : 0;
}

/* ---- raw keys -------------------------------------------------------------------------------- */

static int get_raw(const struct hd_fi_mr *mr, const struct fi_mr_raw_attr *attr)
{
	size_t room;

	if (!attr || !attr->key_size)
		return hd_fi_no(FI_EINVAL, "fi_mr_raw_attr without a key_size");
	room = *attr->key_size;
	*attr->key_size = sizeof(mr->key);
	if (room < sizeof(mr->key))
		return -FI_ETOOSMALL;
	if (!attr->raw_key)
		return hd_fi_no(FI_EINVAL, "fi_mr_raw_attr without room for the key");
	memcpy(attr->raw_key, &mr->key, sizeof(mr->key));
	if (attr->base_addr)
		*attr->base_addr = mr->base;
	return 0;
}

int hd_fi_mr_map_raw(const struct fi_mr_map_raw *map)
{
	if (!map->raw_key || !map->key || map->key_size != sizeof(*map->key))
		return hd_fi_no(FI_EINVAL,
				"fi_mr_map_raw of a raw key that is none, or without room for the key");
	memcpy(map->key, map->raw_key, sizeof(*map->key));
	return 0;
}

/* ---- control --------------------------------------------------------------------------------- */

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_mr *mr = (struct hd_fi_mr *)fid;

	if (hd_node_dead(mr->domain->node))
		return hd_fi_no(FI_EOPBADSTATE,
				"the domain is that of the process which has forked this one");
	switch (command) {
	case FI_GET_RAW_MR:
		return get_raw(mr, arg);
	case FI_ENABLE:
		return mr_enable(mr);
	case FI_REFRESH:
		return mr_refresh(arg);
	default:
		return hd_fi_no(FI_ENOSYS, "fi_control with a command that regions have not");
	}
}

static struct fi_ops mr_fid_ops = HD_FI_FID_OPS(mr_close, mr_bind, mr_control);

/* ---- registering ----------------------------------------------------------------------------- */

/*
 * Whether a segment can be one, which may be empty. NULL is no buffer, but a region of the whole
 * address space begins there: some programs register that, and name virtual addresses as offsets.
 */
static bool segment_can_be(const struct iovec *iov)
{
	uintptr_t base = (uintptr_t)iov->iov_base;

	if (base + iov->iov_len < base)
		return false;
	return iov->iov_base || !iov->iov_len || iov->iov_len == SIZE_MAX;
}

/*
 * What says that memory is a device's is for domains with FI_HMEM, which there are none of: iface
 * and device are not looked at, as fi_mr(3) has it, and the flags are no flags.
 */
static int mr_check_attr(const struct fi_mr_attr *attr, uint64_t flags)
{
	if (flags & ~(FI_RMA_EVENT | FI_AUTH_KEY))
		return hd_fi_no(FI_EBADFLAGS, "a region registered with flags that there are not");
	if (!attr->mr_iov || !attr->iov_count || attr->iov_count > HD_MAX_IOV)
		return hd_fi_no(FI_EINVAL, "a region of no segments, or of more than mr_iov_limit");
	if (attr->offset)
		return hd_fi_no(FI_EINVAL, "a region with an offset, which has to be 0");
	for (size_t i = 0; i < attr->iov_count; i++)
		if (!segment_can_be(&attr->mr_iov[i]))
			return hd_fi_no(FI_EINVAL,
					"a region with a segment at NULL, or one beyond the end of memory");
	return 0;
}

/* All ones are FI_KEY_NOTAVAIL. */
static int check_key(const struct hd_fi_domain *domain, uint64_t key)
{
	if (domain->mr_mode & FI_MR_PROV_KEY)
		return 0;
	if (key == FI_KEY_NOTAVAIL)
		return hd_fi_no(FI_EKEYREJECTED, "FI_KEY_NOTAVAIL cannot be asked for as a region's key");
	return domain->key_size < sizeof(key) && key >> 8 * domain->key_size
		       ? hd_fi_no(FI_EKEYREJECTED, "the region's key does not fit mr_key_size")
		       : 0;
}

static void mr_announce(struct hd_fi_domain *domain, struct hd_fi_mr *mr, void *context)
{
	const struct fi_eq_entry entry = { .fid = &mr->fid.fid, .context = context };

	if (domain->mr_events)
		hd_fi_eq_post(domain->eq, FI_MR_COMPLETE, &entry, sizeof(entry));
}

/* With these modes a region exists before it can be reached. */
static bool waits(const struct hd_fi_domain *domain, uint64_t flags)
{
	return domain->mr_mode & FI_MR_ENDPOINT ||
	       (domain->mr_mode & FI_MR_RMA_EVENT && flags & FI_RMA_EVENT);
}

static int open_region(struct hd_fi_mr *mr, const struct fi_mr_attr *attr, uint64_t flags)
{
	struct hd_fi_domain *domain = mr->domain;
	uint64_t keys[HD_FI_AUTH_KEYS];
	struct hd_mr_attr region = {
		.iov = attr->mr_iov,
		.count = (int)attr->iov_count,
		.access = mr_access_of(attr->access),
		.flags = (domain->mr_mode & FI_MR_PROV_KEY ? 0 : HD_MR_KEY) |
			 (domain->mr_mode & FI_MR_VIRT_ADDR ? HD_MR_VIRTUAL : 0) |
			 (mr->enabled ? 0 : HD_MR_DISABLED),
		.key_bytes = (unsigned)domain->key_size,
		.key = attr->requested_key,
	};
	int rc;

	hd_fi_lock(domain);
	rc = hd_fi_auth_region(domain, attr, flags, keys, &region);
	if (!rc)
		rc = hd_mr_open(domain->node, &region, &mr->mr);
	hd_fi_unlock(domain);
	return rc == -ENOKEY ? hd_fi_no(FI_ENOKEY, "the region's key is taken") : hd_fi_ret(rc, "fi_mr_reg");
}

static int ofi_mr_open(struct hd_fi_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
		       struct fid_mr **out)
{
	struct hd_fi_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return hd_fi_no(FI_ENOMEM);
	mr->domain = domain;
	mr->rma_event = flags & FI_RMA_EVENT;
	mr->enabled = !waits(domain, flags);
	rc = open_region(mr, attr, flags);
	if (rc) {
		free(mr);
		return rc;
	}
	mr->key = hd_mr_key(mr->mr);
	mr->base = domain->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)attr->mr_iov[0].iov_base : 0;
	mr->fid.fid = (struct fid){ .fclass = FI_CLASS_MR, .context = attr->context, .ops = &mr_fid_ops };
	mr->fid.mem_desc = mr;
	mr->fid.key = domain->mr_mode & FI_MR_RAW ? FI_KEY_NOTAVAIL : mr->key;
	mr->magic = HD_FI_MR;
	hd_fi_domain_add(domain, NULL, NULL);
	*out = &mr->fid; /* before the event: fi_mr(3) */
	mr_announce(domain, mr, attr->context);
	return 0;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **out)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, fid);
	int rc;

	if (!domain || !attr || !out)
		return hd_fi_no(FI_EINVAL, "fi_mr_reg without a domain, attributes or room for the region");
	rc = mr_check_attr(attr, flags);
	if (!rc)
		rc = check_key(domain, attr->requested_key);
	return rc ? rc : ofi_mr_open(domain, attr, flags, out);
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
		   uint64_t requested_key, uint64_t flags, struct fid_mr **out, void *context)
{
	const struct fi_mr_attr attr = { .mr_iov = iov,
					 .iov_count = count,
					 .access = access,
					 .offset = offset,
					 .requested_key = requested_key,
					 .context = context };

	return mr_regattr(fid, &attr, flags, out);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **out, void *context)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, out, context);
}

struct fi_ops_mr hd_fi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
