/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Wait objects and wait sets, fi_poll(3). */
#include "front/ofi/wait.h"

#include "front/ofi/stubs.h"

#include <stdlib.h>

/* FI_WAIT_NONE, _FD or _YIELD; false for one that is not offered, or is a set. */
static bool simple_obj(enum fi_wait_obj wanted, enum fi_wait_obj *out)
{
	switch (wanted) {
	case FI_WAIT_NONE:
	case FI_WAIT_FD:
	case FI_WAIT_YIELD: /* sleeping is better than yielding */
		*out = wanted;
		return true;
	case FI_WAIT_UNSPEC:
		*out = FI_WAIT_FD;
		return true;
	default:
		return false;
	}
}

/* ---- what an object is waited for with ------------------------------------------------------- */

static int join_program_set(const struct hd_fi_wait_want *want, struct hd_fi_waiting *out)
{
	struct hd_fi_waitset *set = hd_fi_as(hd_fi_waitset, HD_FI_WAITSET, FI_CLASS_WAIT, want->set);

	if (!set || set->fabric != want->fabric)
		return hd_fi_no(FI_EINVAL, "a wait set of another fabric, or none");
	if (set->bell && !want->can_bell)
		return hd_fi_no(
			FI_ENOSYS,
			"a wait set with a mutex and condition takes nothing of a domain with FI_THREAD_DOMAIN");
	out->set = set->set;
	out->bell = set->bell;
	return 0;
}

static int make_own_set(const struct hd_fi_wait_want *want, struct hd_fi_waiting *out)
{
	int rc;

	if (!want->can_bell)
		return hd_fi_no(FI_ENOSYS, "FI_WAIT_MUTEX_COND in a domain with FI_THREAD_DOMAIN");
	rc = hd_wset_open(&out->set);
	if (rc)
		return hd_fi_ret(rc, "a set to wait with");
	rc = hd_wake_set_open(out->set, &out->bell);
	if (rc)
		hd_wset_close(out->set);
	return hd_fi_ret(rc, "a mutex and condition to wait with");
}

int hd_fi_waiting_open(const struct hd_fi_wait_want *want, struct hd_fi_waiting *out)
{
	*out = (struct hd_fi_waiting){ .obj = want->obj };
	switch (want->obj) {
	case FI_WAIT_SET:
		return join_program_set(want, out);
	case FI_WAIT_MUTEX_COND:
		return make_own_set(want, out);
	default:
		return simple_obj(want->obj, &out->obj)
			       ? 0
			       : hd_fi_no(FI_ENOSYS, "a wait object that there is not");
	}
}

void hd_fi_waiting_close(struct hd_fi_waiting *w)
{
	if (w->obj != FI_WAIT_MUTEX_COND)
		return;
	hd_wake_set_close(w->bell);
	hd_wset_close(w->set);
}

void hd_fi_waiting_drop(struct hd_fi_waiting *w, struct hd_fi_domain *domain, struct hd_fi_object *object)
{
	hd_fi_waiting_close(w);
	hd_fi_domain_drop(domain, object);
}

int hd_fi_waiting_trywait(const struct hd_fi_waiting *w)
{
	if (w->bell)
		return hd_fi_ret(hd_wake_set_arm(w->bell));
	return w->set ? hd_fi_ret(hd_wset_arm(w->set))
		      : hd_fi_no(FI_EINVAL, "fi_trywait of an object without a wait object");
}

static int get_pollfd(int fd, struct fi_wait_pollfd *out)
{
	size_t room = out->nfds;

	out->change_index = 1; /* it never changes */
	out->nfds = 1;
	if (!room || !out->fd)
		return -FI_ETOOSMALL;
	out->fd[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

/* A member of a set has nothing of its own: the set is what is waited for. */
static int get_wait(const struct hd_fi_waiting *w, int fd, void *arg)
{
	struct fi_mutex_cond *mutex_cond = arg;

	switch (w->obj) {
	case FI_WAIT_FD:
		if (fd < 0)
			return hd_fi_ret(fd, "a descriptor to wait with");
		*(int *)arg = fd;
		return 0;
	case FI_WAIT_MUTEX_COND:
		hd_wake_set_get(w->bell, &mutex_cond->mutex, &mutex_cond->cond);
		return 0;
	case FI_WAIT_POLLFD:
		return get_pollfd(fd, arg);
	default:
		return -FI_ENODATA;
	}
}

int hd_fi_waiting_control(const struct hd_fi_waiting *w, int fd, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return hd_fi_no(FI_ENOSYS, "fi_control with a command that this object has not");
	if (!arg)
		return hd_fi_no(FI_EINVAL, "FI_GETWAIT or FI_GETWAITOBJ without room for the answer");
	if (command == FI_GETWAIT)
		return get_wait(w, fd, arg);
	*(enum fi_wait_obj *)arg = w->obj;
	return 0;
}

/* ---- wait sets ------------------------------------------------------------------------------- */

static int waitset_wait(struct fid_wait *fid, int timeout)
{
	struct hd_fi_waitset *ws = (struct hd_fi_waitset *)fid;
	int rc = hd_wset_wait(ws->set, timeout);

	if (rc == -ECANCELED) /* fi_cq_signal is a signal too */
		return 0;
	return rc == -EAGAIN ? -FI_ETIMEDOUT : hd_fi_ret(rc);
}

int hd_fi_waitset_trywait(struct fid *fid)
{
	struct hd_fi_waitset *ws = hd_fi_as(hd_fi_waitset, HD_FI_WAITSET, FI_CLASS_WAIT, fid);

	if (!ws || ws->obj == FI_WAIT_YIELD)
		return hd_fi_no(FI_EINVAL, "fi_trywait of a wait set of FI_WAIT_YIELD, or of none");
	return hd_fi_waiting_trywait(
		&(struct hd_fi_waiting){ .obj = ws->obj, .set = ws->set, .bell = ws->bell });
}

static int waitset_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_waitset *ws = (struct hd_fi_waitset *)fid;
	struct hd_fi_waiting w = { .obj = ws->obj, .set = ws->set, .bell = ws->bell };

	return hd_fi_waiting_control(&w, hd_wset_fd(ws->set), command, arg);
}

/*
 * The bell's thread sleeps on the set: it has to go before the set can, and to stay
 * while the set is in use.
 */
static int waitset_close(struct fid *fid)
{
	struct hd_fi_waitset *ws = (struct hd_fi_waitset *)fid;

	if (hd_wset_used(ws->set))
		return hd_fi_no(
			FI_EBUSY,
			"fi_close of a wait set that queues or counters are in, or that somebody is in fi_wait for");
	if (ws->bell)
		hd_wake_set_close(ws->bell);
	hd_wset_close(ws->set);
	atomic_fetch_sub(&ws->fabric->users, 1);
	ws->magic = 0;
	free(ws);
	return 0;
}

static struct fi_ops waitset_fid_ops = HD_FI_FID_OPS(waitset_close, hd_fi_no_bind, waitset_control);

static struct fi_ops_wait waitset_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = waitset_wait,
};

static int set_obj(const struct fi_wait_attr *attr, enum fi_wait_obj *out)
{
	switch (attr ? attr->wait_obj : FI_WAIT_UNSPEC) {
	case FI_WAIT_UNSPEC:
		*out = FI_WAIT_FD;
		return 0;
	case FI_WAIT_FD:
	case FI_WAIT_YIELD:
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		*out = attr->wait_obj;
		return 0;
	default:
		return hd_fi_no(FI_EINVAL, "fi_wait_open with a wait object that there is not");
	}
}

static int waitset_fill(struct hd_fi_waitset *ws)
{
	int rc = hd_wset_open(&ws->set);

	if (rc || ws->obj != FI_WAIT_MUTEX_COND)
		return hd_fi_ret(rc, "fi_wait_open");
	rc = hd_wake_set_open(ws->set, &ws->bell);
	if (rc)
		hd_wset_close(ws->set);
	return hd_fi_ret(rc, "fi_wait_open");
}

int hd_fi_waitset_open(struct fid_fabric *fabric_fid, struct fi_wait_attr *attr, struct fid_wait **out)
{
	struct hd_fi_fabric *fabric = hd_fi_as(hd_fi_fabric, HD_FI_FABRIC, FI_CLASS_FABRIC, fabric_fid);
	struct hd_fi_waitset *ws;
	enum fi_wait_obj obj;
	int rc;

	if (!fabric || !out)
		return hd_fi_no(FI_EINVAL, "fi_wait_open without a fabric, or room for the wait set");
	if (attr && attr->flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_wait_open takes no flags");
	rc = set_obj(attr, &obj);
	if (rc)
		return rc;
	ws = calloc(1, sizeof(*ws));
	if (!ws)
		return hd_fi_no(FI_ENOMEM);
	ws->obj = obj;
	rc = waitset_fill(ws);
	if (rc) {
		free(ws);
		return rc;
	}
	ws->fid.fid = (struct fid){ .fclass = FI_CLASS_WAIT, .ops = &waitset_fid_ops };
	ws->fid.ops = &waitset_ops;
	ws->fabric = fabric;
	ws->magic = HD_FI_WAITSET;
	atomic_fetch_add(&fabric->users, 1);
	*out = &ws->fid;
	return 0;
}
