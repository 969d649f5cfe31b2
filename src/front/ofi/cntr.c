/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_cntr(3). Reading makes progress: a program may look at nothing else. */
#include "front/ofi/newer.h"
#include "front/ofi/stubs.h"
#include "front/ofi/wait.h"

#include <stdlib.h>

static struct hd_fi_cntr *progressed(struct fid_cntr *fid)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;

	hd_fi_lock(cntr->domain);
	hd_cntr_poll(cntr->cntr);
	hd_fi_unlock(cntr->domain);
	hd_node_rest(cntr->domain->node);
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

static int cntr_change(struct fid_cntr *fid, uint64_t value,
		       void (*how)(struct hd_cntr *cntr, uint64_t value))
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;

	hd_fi_lock(cntr->domain);
	how(cntr->cntr, value);
	hd_fi_unlock(cntr->domain);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, value, hd_cntr_add);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, value, hd_cntr_adderr);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, value, hd_cntr_set);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, value, hd_cntr_seterr);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;
	int rc;

	/*
	 * FI_WAIT_NONE: fi_cntr(3) forbids programs to call this; some do, and
	 * nothing keeps us from waiting
	 */
	if (!hd_fi_waiting_blocks(&cntr->waiting) && cntr->waiting.obj != FI_WAIT_NONE)
		return hd_fi_no(FI_EINVAL, "fi_cntr_wait of a counter that is waited for by other means");
	rc = hd_cntr_wait(cntr->cntr, threshold, timeout);
	return rc == -EIO ? -FI_EAVAIL : hd_fi_ret(rc);
}

int hd_fi_cntr_trywait(struct fid *fid)
{
	struct hd_fi_cntr *cntr = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, fid);
	int rc;

	if (!cntr)
		return hd_fi_no(FI_EINVAL, "fi_trywait of a counter that is none");
	if (hd_node_dead(cntr->domain->node))
		return hd_fi_no(FI_EOPBADSTATE,
				"the domain is that of the process which has forked this one");
	if (cntr->waiting.obj != FI_WAIT_FD)
		return hd_fi_waiting_trywait(&cntr->waiting);
	hd_fi_lock(cntr->domain);
	rc = hd_cntr_arm(cntr->cntr);
	hd_fi_unlock(cntr->domain);
	return hd_fi_ret(rc);
}

/* fi_cntr(3) has flags for them, and names none. */
static int cntr_op_flags(int command, uint64_t *flags)
{
	if (!flags)
		return hd_fi_no(FI_EINVAL, "FI_GETOPSFLAG or FI_SETOPSFLAG of a counter without flags");
	if (command == FI_SETOPSFLAG)
		return *flags ? hd_fi_no(FI_EBADFLAGS, "FI_SETOPSFLAG of a counter, which has no flags") : 0;
	*flags = 0;
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;
	int fd = -1;

	if (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG)
		return cntr_op_flags(command, arg);
	if (command == FI_GETWAIT && cntr->waiting.obj == FI_WAIT_FD) {
		hd_fi_lock(cntr->domain);
		fd = hd_cntr_fd(cntr->cntr);
		hd_fi_unlock(cntr->domain);
	}
	return hd_fi_waiting_control(&cntr->waiting, fd, command, arg);
}

static int close_engine_cntr(struct hd_fi_cntr *cntr)
{
	int rc;

	hd_cntr_leave(cntr->cntr);
	hd_fi_lock(cntr->domain);
	rc = hd_cntr_close(cntr->cntr);
	hd_fi_unlock(cntr->domain);
	return hd_fi_ret(rc, "fi_close of a counter that is in use");
}

static int cntr_close(struct fid *fid)
{
	struct hd_fi_cntr *cntr = (struct hd_fi_cntr *)fid;
	int rc = atomic_load(&cntr->users)
			 ? hd_fi_no(FI_EBUSY, "fi_close of a counter that something is bound to")
			 : close_engine_cntr(cntr);

	if (rc)
		return rc;
	cntr->magic = 0;
	hd_fi_waiting_drop(&cntr->waiting, cntr->domain, &cntr->object);
	free(cntr);
	return 0;
}

static struct fi_ops cntr_fid_ops = HD_FI_FID_OPS(cntr_close, hd_fi_no_bind, cntr_control);

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

static int cntr_check_attr(const struct fi_cntr_attr *attr)
{
	if (attr->flags & FI_PEER)
		return hd_fi_no(FI_EINVAL,
				"fi_cntr_open with FI_PEER: counters of peer providers are not offered");
	if (attr->flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_cntr_open takes no flags");
	return attr->events == FI_CNTR_EVENTS_COMP || attr->events == HD_FI_CNTR_EVENTS_BYTES
		       ? 0
		       : hd_fi_no(FI_EINVAL, "fi_cntr_open of a kind of events that there is not");
}

static int cntr_make(struct hd_fi_domain *domain, const struct fi_cntr_attr *attr, struct hd_fi_cntr *cntr)
{
	const struct hd_fi_wait_want want = { .obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC,
					      .set = attr ? attr->wait_set : NULL,
					      .fabric = domain->fabric,
					      .can_bell = domain->locked };
	int rc = hd_fi_waiting_open(&want, &cntr->waiting);

	if (rc)
		return rc;
	cntr->domain = domain;
	hd_fi_lock(domain);
	rc = hd_cntr_open(domain->node, &cntr->cntr);
	if (!rc && attr && attr->events == HD_FI_CNTR_EVENTS_BYTES)
		hd_cntr_by_bytes(cntr->cntr);
	hd_fi_unlock(domain);
	if (!rc && cntr->waiting.set) {
		rc = hd_cntr_join(cntr->cntr, cntr->waiting.set);
		if (rc)
			close_engine_cntr(cntr);
	}
	if (rc)
		hd_fi_waiting_close(&cntr->waiting);
	return hd_fi_ret(rc, "fi_cntr_open");
}

int hd_fi_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		    void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	struct hd_fi_cntr *cntr;
	int rc;

	if (!domain || !out)
		return hd_fi_no(FI_EINVAL, "fi_cntr_open without a domain, or room for the counter");
	rc = attr ? cntr_check_attr(attr) : 0;
	if (rc)
		return rc;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return hd_fi_no(FI_ENOMEM);
	rc = cntr_make(domain, attr, cntr);
	if (rc) {
		free(cntr);
		return rc;
	}
	cntr->fid.fid = (struct fid){ .fclass = FI_CLASS_CNTR, .context = context, .ops = &cntr_fid_ops };
	cntr->fid.ops = &cntr_ops;
	cntr->magic = HD_FI_CNTR;
	hd_fi_domain_add(domain, &cntr->object, &cntr->fid.fid);
	*out = &cntr->fid;
	return 0;
}
