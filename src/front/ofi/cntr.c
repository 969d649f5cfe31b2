/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_cntr(3). Reading makes progress: a program may look at nothing else. */
#include "front/ofi/stubs.h"

#include <stdlib.h>

static struct hd_fi_cntr *progressed(struct fid_cntr *fid)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;

	hd_fi_lock(cntr->domain);
	hd_node_poll(cntr->domain->node);
	hd_fi_unlock(cntr->domain);
	return cntr;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	return hd_cntr_read(progressed(fid)->cntr);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return hd_cntr_readerr(progressed(fid)->cntr);
}

static int change(struct fid_cntr *fid, uint64_t value, void (*how)(struct hd_cntr *cntr, uint64_t value))
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;

	hd_fi_lock(cntr->domain);
	how(cntr->cntr, value);
	hd_fi_unlock(cntr->domain);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, value, hd_cntr_add);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, value, hd_cntr_adderr);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, value, hd_cntr_set);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, value, hd_cntr_seterr);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;
	int rc;

	if (cntr->wait_obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	rc = hd_cntr_wait(cntr->cntr, threshold, timeout);
	return rc == -EIO ? -FI_EAVAIL : hd_fi_ret(rc);
}

int hd_fi_cntr_trywait(struct fid *fid)
{
	struct hd_fi_cntr *cntr = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, fid);
	int rc;

	if (!cntr || cntr->wait_obj != FI_WAIT_FD)
		return -FI_EINVAL;
	if (hd_node_dead(cntr->domain->node))
		return -FI_EOPBADSTATE;
	hd_fi_lock(cntr->domain);
	rc = hd_cntr_arm(cntr->cntr);
	hd_fi_unlock(cntr->domain);
	return hd_fi_ret(rc);
}

static int get_fd(struct hd_fi_cntr *cntr, int *out)
{
	int fd;

	if (cntr->wait_obj != FI_WAIT_FD)
		return -FI_ENODATA;
	hd_fi_lock(cntr->domain);
	fd = hd_cntr_fd(cntr->cntr);
	hd_fi_unlock(cntr->domain);
	if (fd < 0)
		return hd_fi_ret(fd);
	*out = fd;
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return get_fd(cntr, arg);
	*(enum fi_wait_obj *)arg = cntr->wait_obj;
	return 0;
}

static int cntr_close(struct fid *fid)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;
	struct hd_fi_domain *domain = cntr->domain;
	int rc;

	if (atomic_load(&cntr->users))
		return -FI_EBUSY;
	hd_fi_lock(domain);
	rc = hd_cntr_close(cntr->cntr);
	hd_fi_unlock(domain);
	if (rc)
		return hd_fi_ret(rc);
	cntr->magic = 0;
	hd_fi_domain_drop(domain, &cntr->object);
	free(cntr);
	return 0;
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = hd_fi_no_bind,
	.control = cntr_control,
	.ops_open = hd_fi_no_ops_open,
	.tostr = hd_fi_no_tostr,
	.ops_set = hd_fi_no_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static int check_attr(const struct fi_cntr_attr *attr)
{
	enum fi_wait_obj ignored;

	if (attr->flags)
		return -FI_EBADFLAGS;
	if (attr->events != FI_CNTR_EVENTS_COMP)
		return -FI_EINVAL;
	return hd_fi_wait_obj(attr->wait_obj, &ignored) ? 0 : -FI_ENOSYS;
}

int hd_fi_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		    void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	struct hd_fi_cntr *cntr;
	int rc;

	if (!domain || !out)
		return -FI_EINVAL;
	rc = attr ? check_attr(attr) : 0;
	if (rc)
		return rc;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	hd_fi_wait_obj(attr ? attr->wait_obj : FI_WAIT_UNSPEC, &cntr->wait_obj);
	hd_fi_lock(domain);
	rc = hd_cntr_open(domain->node, &cntr->cntr);
	hd_fi_unlock(domain);
	if (rc) {
		free(cntr);
		return hd_fi_ret(rc);
	}
	cntr->fid.fid = (struct fid){ .fclass = FI_CLASS_CNTR, .context = context, .ops = &cntr_fid_ops };
	cntr->fid.ops = &cntr_ops;
	cntr->domain = domain;
	cntr->magic = HD_FI_CNTR;
	hd_fi_domain_add(domain, &cntr->object, &cntr->fid.fid);
	*out = &cntr->fid;
	return 0;
}
