/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_domain(3): one node of the engine each. */
#include "base/advice.h"
#include "base/log.h"
#include "front/ofi/auth.h"
#include "front/ofi/coll/coll.h"
#include "front/ofi/ctx.h"
#include "front/ofi/stubs.h"
#include "front/ofi/trigger.h"

#include <stdlib.h>

void hd_fi_domain_add(struct hd_fi_domain *domain, struct hd_fi_object *object, struct fid *fid)
{
	atomic_fetch_add(&domain->users, 1);
	if (!object)
		return;
	object->fid = fid;
	hd_lock_take(&domain->lock);
	LIST_INSERT_HEAD(&domain->objects, object, entry);
	hd_lock_give(&domain->lock);
}

void hd_fi_domain_drop(struct hd_fi_domain *domain, struct hd_fi_object *object)
{
	if (object) {
		hd_lock_take(&domain->lock);
		LIST_REMOVE(object, entry);
		hd_lock_give(&domain->lock);
	}
	atomic_fetch_sub(&domain->users, 1);
}

void hd_fi_domain_share(struct hd_fi_domain *domain)
{
	struct hd_fi_object *object;

	if (domain->locked)
		return;
	hd_node_share(domain->node);
	domain->locked = true;
	hd_lock_take(&domain->lock);
	LIST_FOREACH(object, &domain->objects, entry) {
		hd_fi_cq_share(object->fid);
		hd_fi_ep_share_lock(object->fid);
	}
	hd_lock_give(&domain->lock);
}

int hd_fi_domain_set_reader(struct hd_fi_domain *domain, uint32_t index, struct hd_fi_reader reader)
{
	if (index >= domain->reader_count) {
		size_t size = domain->reader_count ? domain->reader_count : 8;
		struct hd_fi_reader *grown;

		while (size <= index)
			size *= 2;
		grown = reallocarray(domain->readers, size, sizeof(*grown));
		if (!grown)
			return hd_fi_no(FI_ENOMEM);
		for (size_t i = domain->reader_count; i < size; i++)
			grown[i] = (struct hd_fi_reader){ 0 };
		domain->readers = grown;
		domain->reader_count = (uint32_t)size;
	}
	domain->readers[index] = reader;
	return 0;
}

/* In a forked child. */
static void domain_forked(void *arg)
{
	struct hd_fi_domain *domain = arg;
	struct hd_fi_object *object;

	LIST_FOREACH(object, &domain->objects, entry)
		hd_fi_die(object->fid);
	hd_fi_die(&domain->fid.fid);
}

static int domain_close(struct fid *fid)
{
	struct hd_fi_domain *domain = (struct hd_fi_domain *)fid;
	int rc;

	if (atomic_load(&domain->users))
		return hd_fi_no(FI_EBUSY, "fi_close of a domain in which something is open");
	rc = hd_node_close(domain->node);
	if (rc)
		return hd_fi_ret(rc, "fi_close of a domain that is in use");
	hd_fi_domain_list(domain, false);
	if (domain->eq)
		hd_fi_eq_use(domain->eq, -1);
	atomic_fetch_sub(&domain->fabric->users, 1);
	domain->magic = 0;
	hd_lock_fini(&domain->lock);
	free(domain->readers);
	free(domain);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct hd_fi_domain *domain = (struct hd_fi_domain *)fid;
	struct hd_fi_eq *eq = hd_fi_eq_as(bfid, domain->fabric);

	if (!eq || domain->eq)
		return hd_fi_no(
			FI_EINVAL,
			"fi_domain_bind of what is no event queue of this fabric, or where there is one");
	if (flags & ~FI_REG_MR)
		return hd_fi_no(FI_EBADFLAGS, "fi_domain_bind with flags other than FI_REG_MR");
	hd_fi_eq_use(eq, 1);
	domain->eq = eq;
	domain->mr_events = flags & FI_REG_MR;
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_MAP_RAW_MR:
		return arg ? hd_fi_mr_map_raw(arg)
			   : hd_fi_no(FI_EINVAL, "FI_MAP_RAW_MR without a struct fi_mr_map_raw");
	case FI_UNMAP_KEY:
		return 0;
	case FI_QUEUE_WORK:
	case FI_CANCEL_WORK:
	case FI_FLUSH_WORK:
		return hd_fi_work_control((struct hd_fi_domain *)fid, command, arg);
	default:
		return hd_fi_no(FI_ENOSYS, "fi_control with a command that domains have not");
	}
}

static struct fi_ops domain_fid_ops = HD_FI_FID_OPS(domain_close, domain_bind, domain_control);

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = hd_fi_av_open,
	.cq_open = hd_fi_cq_open,
	.endpoint = hd_fi_ep_open,
	.scalable_ep = hd_fi_sep_open,
	.cntr_open = hd_fi_cntr_open,
	.poll_open = hd_fi_poll_open,
	.stx_ctx = hd_fi_stx_open,
	.srx_ctx = hd_fi_srx_open,
	.query_atomic = hd_fi_query_atomic,
	.query_collective = hd_fi_query_collective,
	.endpoint2 = hd_fi_no_endpoint2,
};

/*
 * Only a program that serialises all calls, and makes all progress itself, can do without a lock;
 * and not with connected endpoints, or with FI_COLLECTIVE, as progress is made by whoever reads
 * their event queue, which belongs to no domain (where these come later, see hd_fi_domain_share).
 */
static struct hd_node_attr node_attr(const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;
	bool connects = (info->ep_attr && info->ep_attr->type == FI_EP_MSG) || info->caps & FI_COLLECTIVE;
	bool automatic = attr->control_progress == FI_PROGRESS_AUTO ||
			 attr->data_progress == FI_PROGRESS_AUTO;

	return (struct hd_node_attr){ .front = "libfabric",
				      .locked = automatic || connects || attr->threading != FI_THREAD_DOMAIN,
				      .auto_progress = automatic,
				      .on_fork = domain_forked };
}

/* The two old modes as what they stand for, fi_mr(3). */
static int mr_mode(int mode)
{
	if (mode == FI_MR_BASIC)
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return mode == FI_MR_SCALABLE ? 0 : mode;
}

static int domain_open(struct hd_fi_fabric *fabric, const struct fi_info *info, struct hd_fi_domain *domain)
{
	const struct fi_domain_attr *attr = info->domain_attr;
	struct hd_node_attr node = node_attr(info);
	int rc;

	node.arg = domain;
	domain->locked = node.locked;
	domain->automatic = node.auto_progress;
	domain->mr_mode = mr_mode(attr->mr_mode);
	domain->key_size = attr->mr_key_size ? attr->mr_key_size : HD_FI_MR_KEY_SIZE;
	domain->addr_format = info->addr_format;
	domain->overruns = attr->resource_mgmt == FI_RM_DISABLED;
	domain->av_type = attr->av_type;
	domain->fabric = fabric;
	hd_fi_auth_domain(domain, info);
	LIST_INIT(&domain->objects);
	hd_lock_init(&domain->lock, HD_LOCK_LEAF);
	rc = hd_node_open(&node, &domain->node);
	if (rc) {
		hd_error("cannot open a domain: %s%s", fi_strerror(-rc), hd_advice(-rc));
		hd_lock_fini(&domain->lock);
	}
	return hd_fi_ret(rc, "fi_domain");
}

int hd_fi_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_domain **out,
		      void *context)
{
	struct hd_fi_fabric *fabric = hd_fi_as(hd_fi_fabric, HD_FI_FABRIC, FI_CLASS_FABRIC, fabric_fid);
	struct hd_fi_domain *domain;
	int rc;

	if (!fabric || !info || !info->domain_attr || !out)
		return hd_fi_no(
			FI_EINVAL,
			"fi_domain without a fabric, an info with domain attributes, or room for the domain");
	if (!hd_fi_offer_of(fabric->fid.api_version, info))
		return hd_fi_no(FI_EINVAL, "fi_domain with an info that fi_getinfo has not given");
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return hd_fi_no(FI_ENOMEM);
	rc = domain_open(fabric, info, domain);
	if (rc) {
		free(domain);
		return rc;
	}
	domain->fid.fid =
		(struct fid){ .fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_fid_ops };
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &hd_fi_mr_ops;
	domain->magic = HD_FI_DOMAIN;
	atomic_fetch_add(&fabric->users, 1);
	hd_fi_domain_list(domain, true);
	*out = &domain->fid;
	return 0;
}
