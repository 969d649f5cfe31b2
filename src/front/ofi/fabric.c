/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_fabric(3), fi_trywait(3), and the list of what this process has open. */
#include "front/ofi/cm.h"
#include "front/ofi/stubs.h"
#include "front/ofi/wait.h"

#include <stdlib.h>
#include <string.h>

HD_LOCK_DEFINE(open_lock); /* both lists */
static LIST_HEAD(, hd_fi_fabric) open_fabrics = LIST_HEAD_INITIALIZER(open_fabrics);
static LIST_HEAD(, hd_fi_domain) open_domains = LIST_HEAD_INITIALIZER(open_domains);

/* The first one opened is the last one in the list. */
struct fid_fabric *hd_fi_opened_fabric(void)
{
	struct hd_fi_fabric *fabric, *first = NULL;

	hd_lock_take(&open_lock);
	LIST_FOREACH(fabric, &open_fabrics, entry)
		first = fabric;
	hd_lock_give(&open_lock);
	return first ? &first->fid : NULL;
}

struct fid_domain *hd_fi_opened_domain(void)
{
	struct hd_fi_domain *domain, *first = NULL;

	hd_lock_take(&open_lock);
	LIST_FOREACH(domain, &open_domains, entry)
		first = domain;
	hd_lock_give(&open_lock);
	return first ? &first->fid : NULL;
}

void hd_fi_domain_list(struct hd_fi_domain *domain, bool listed)
{
	hd_lock_take(&open_lock);
	if (listed)
		LIST_INSERT_HEAD(&open_domains, domain, entry);
	else
		LIST_REMOVE(domain, entry);
	hd_lock_give(&open_lock);
}

static int fabric_close(struct fid *fid)
{
	struct hd_fi_fabric *fabric = (struct hd_fi_fabric *)fid;

	if (atomic_load(&fabric->users))
		return hd_fi_no(FI_EBUSY, "fi_close of a fabric in which something is open");
	hd_fi_peps_end(fabric);
	hd_lock_take(&open_lock);
	LIST_REMOVE(fabric, entry);
	hd_lock_give(&open_lock);
	fabric->magic = 0;
	free(fabric);
	return 0;
}

static int trywait_one(struct fid *fid)
{
	switch (fid ? fid->fclass : FI_CLASS_UNSPEC) {
	case FI_CLASS_CQ:
		return hd_fi_cq_trywait(fid);
	case FI_CLASS_CNTR:
		return hd_fi_cntr_trywait(fid);
	case FI_CLASS_EQ:
		return hd_fi_eq_trywait(fid);
	case FI_CLASS_WAIT:
		return hd_fi_waitset_trywait(fid);
	default:
		return hd_fi_no(FI_EINVAL, "fi_trywait of something that cannot be waited for");
	}
}

static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	if (count < 0 || (count && !fids))
		return hd_fi_no(FI_EINVAL, "fi_trywait without a list of objects");
	for (int i = 0; i < count; i++) {
		int rc = trywait_one(fids[i]);

		if (rc)
			return rc;
	}
	return 0;
}

static struct fi_ops fabric_fid_ops = HD_FI_FID_OPS(fabric_close, hd_fi_no_bind, hd_fi_no_control);

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = hd_fi_domain_open,
	.passive_ep = hd_fi_pep_open,
	.eq_open = hd_fi_eq_open,
	.wait_open = hd_fi_waitset_open,
	.trywait = fabric_trywait,
	.domain2 = hd_fi_no_domain2,
};

int hd_fi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct hd_fi_fabric *fabric;

	if (!attr || !out)
		return hd_fi_no(FI_EINVAL, "fi_fabric without attributes, or room for the fabric");
	if (attr->name && strcmp(attr->name, HD_FI_FABRIC_NAME))
		return hd_fi_no(FI_ENODATA, "fi_fabric of another fabric than " HD_FI_FABRIC_NAME);
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return hd_fi_no(FI_ENOMEM);
	fabric->fid.fid =
		(struct fid){ .fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_fid_ops };
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version ? attr->api_version : HD_FI_OLDEST;
	fabric->magic = HD_FI_FABRIC;
	hd_lock_take(&open_lock);
	LIST_INSERT_HEAD(&open_fabrics, fabric, entry);
	hd_lock_give(&open_lock);
	*out = &fabric->fid;
	return 0;
}
