/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_mr(3). Nothing has to be registered for sends and receives; a program may do it all the same. A key is
 * what the program asks for, unless it opened the domain with FI_MR_BASIC or FI_MR_PROV_KEY.
 */
#include "front/ofi/stubs.h"

#include <stdlib.h>
#include <string.h>

#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static uint32_t access_of(uint64_t access)
{
	return (access & (FI_SEND | FI_WRITE) ? HD_ACCESS_LOCAL_READ : 0) |
	       (access & (FI_RECV | FI_READ) ? HD_ACCESS_LOCAL_WRITE : 0) |
	       (access & FI_REMOTE_READ ? HD_ACCESS_REMOTE_READ : 0) |
	       (access & FI_REMOTE_WRITE ? HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC : 0);
}

static int mr_close(struct fid *fid)
{
	struct hd_fi_mr *mr = (struct hd_fi_mr *)fid;
	struct hd_fi_domain *domain = mr->domain;
	int rc;

	if (hd_node_dead(domain->node))
		return -FI_EOPBADSTATE;
	hd_fi_lock(domain);
	rc = hd_mr_close(mr->mr);
	hd_fi_unlock(domain);
	if (rc)
		return hd_fi_ret(rc);
	mr->magic = 0;
	hd_fi_domain_drop(domain, NULL);
	free(mr);
	return 0;
}

static int get_raw(const struct hd_fi_mr *mr, const struct fi_mr_raw_attr *attr)
{
	size_t room;

	if (!attr || !attr->key_size)
		return -FI_EINVAL;
	room = *attr->key_size;
	*attr->key_size = sizeof(mr->fid.key);
	if (room < sizeof(mr->fid.key))
		return -FI_ETOOSMALL;
	if (!attr->raw_key)
		return -FI_EINVAL;
	memcpy(attr->raw_key, &mr->fid.key, sizeof(mr->fid.key));
	if (attr->base_addr)
		*attr->base_addr = 0;
	return 0;
}

int hd_fi_mr_map_raw(const struct fi_mr_map_raw *map)
{
	if (!map->raw_key || !map->key || map->key_size != sizeof(*map->key))
		return -FI_EINVAL;
	memcpy(map->key, map->raw_key, sizeof(*map->key));
	return 0;
}

/* A region is enabled and fresh from the beginning: it refers to addresses, not to pages. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_GET_RAW_MR:
		return get_raw((struct hd_fi_mr *)fid, arg);
	case FI_ENABLE:
	case FI_REFRESH:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = hd_fi_no_bind,
	.control = mr_control,
	.ops_open = hd_fi_no_ops_open,
	.tostr = hd_fi_no_tostr,
	.ops_set = hd_fi_no_ops_set,
};

/* Members that came after the first release are not there in a program built for an older one. */
static int check_newer(uint32_t version, const struct fi_mr_attr *attr)
{
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)) && attr->auth_key_size)
		return -FI_EINVAL;
	return FI_VERSION_GE(version, FI_VERSION(1, 9)) && attr->iface != FI_HMEM_SYSTEM ? -FI_ENOSYS : 0;
}

static int check_attr(const struct fi_mr_attr *attr, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (!attr->mr_iov || !attr->iov_count || attr->iov_count > HD_MAX_IOV)
		return -FI_EINVAL;
	if (attr->access & ~ACCESS || attr->offset)
		return -FI_EINVAL;
	for (size_t i = 0; i < attr->iov_count; i++)
		if (!attr->mr_iov[i].iov_len ||
		    (uintptr_t)attr->mr_iov[i].iov_base + attr->mr_iov[i].iov_len <
			    (uintptr_t)attr->mr_iov[i].iov_base)
			return -FI_EINVAL;
	return 0;
}

static void announce(struct hd_fi_domain *domain, struct hd_fi_mr *mr, void *context)
{
	const struct fi_eq_entry entry = { .fid = &mr->fid.fid, .context = context };

	if (domain->mr_events)
		hd_fi_eq_post(domain->eq, FI_MR_COMPLETE, &entry, sizeof(entry));
}

static int mr_open(struct hd_fi_domain *domain, const struct fi_mr_attr *attr, struct fid_mr **out)
{
	struct hd_fi_mr *mr = calloc(1, sizeof(*mr));
	uint64_t key = attr->requested_key;
	int rc;

	if (!mr)
		return -FI_ENOMEM;
	hd_fi_lock(domain);
	rc = hd_mr_open(domain->node, attr->mr_iov, (int)attr->iov_count, access_of(attr->access),
			domain->user_keys, &key, &mr->mr);
	hd_fi_unlock(domain);
	if (rc) {
		free(mr);
		return hd_fi_ret(rc);
	}
	mr->fid.fid = (struct fid){ .fclass = FI_CLASS_MR, .context = attr->context, .ops = &mr_fid_ops };
	mr->fid.mem_desc = mr;
	mr->fid.key = key;
	mr->domain = domain;
	mr->magic = HD_FI_MR;
	hd_fi_domain_add(domain, NULL, NULL);
	*out = &mr->fid; /* before the event: fi_mr(3) */
	announce(domain, mr, attr->context);
	return 0;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **out)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, fid);
	int rc;

	if (!domain || !attr || !out)
		return -FI_EINVAL;
	rc = check_attr(attr, flags);
	if (!rc)
		rc = check_newer(domain->fabric->fid.api_version, attr);
	return rc ? rc : mr_open(domain, attr, out);
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
