/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_eq(3): an event queue of the engine each. What is here are the forms that its
 * events have in libfabric.
 */
#include "base/clock.h"
#include "front/ofi/cm.h"
#include "front/ofi/stubs.h"
#include "front/ofi/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EVENT 65536 /* bytes that fi_eq_write takes */
#define LEAST_SIZE 1024 /* events: fi_eq_attr.size is what the program needs at least */

struct hd_fi_eq {
	struct fid_eq fid;
	uint32_t magic;
	struct hd_fi_fabric *fabric;
	struct hd_fi_waiting waiting;
	bool writable;
	struct hd_evq *evq;
};

struct hd_fi_eq *hd_fi_eq_as(struct fid *fid, const struct hd_fi_fabric *fabric)
{
	struct hd_fi_eq *eq = hd_fi_as(hd_fi_eq, HD_FI_EQ, FI_CLASS_EQ, fid);

	return eq && eq->fabric == fabric ? eq : NULL;
}

struct hd_evq *hd_fi_eq_evq(struct hd_fi_eq *eq)
{
	return eq ? eq->evq : NULL;
}

void hd_fi_eq_use(struct hd_fi_eq *eq, int delta)
{
	hd_evq_use(eq->evq, delta);
}

int hd_fi_eq_post(struct hd_fi_eq *eq, uint32_t code, const void *data, size_t len)
{
	const struct hd_event e = { .code = HD_EV_FRONT, .word = code, .data = data, .len = len };
	int rc = hd_evq_post(eq->evq, &e);

	return rc == -EOVERFLOW ? -FI_EOVERRUN : hd_fi_ret(rc);
}

int hd_fi_eq_fail(struct hd_fi_eq *eq, struct fid *fid, void *context, uint64_t data, int err)
{
	const struct hd_event e = {
		.code = HD_EV_FRONT, .owner = fid, .ctx = context, .word = data, .err = err
	};

	return hd_fi_ret(hd_evq_post(eq->evq, &e));
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
	uint32_t *event;
	void *buf;
	size_t len;
	struct hd_fi_called called; /* request NULL: no connection is asked for */
};

/* Who gives no buffer asks which event it is, and has taken it, as with libfabric's providers. */
static ssize_t take_written(const struct hd_event *e, struct reading *r)
{
	if (!r->buf) {
		*r->event = (uint32_t)e->word;
		return 0;
	}
	if (r->len < e->len)
		return -FI_ETOOSMALL;
	*r->event = (uint32_t)e->word;
	if (e->len)
		memcpy(r->buf, e->data, e->len);
	return (ssize_t)e->len;
}

static const uint32_t cm_events[] = {
	[HD_EV_REQUEST] = FI_CONNREQ,
	[HD_EV_UP] = FI_CONNECTED,
	[HD_EV_DOWN] = FI_SHUTDOWN,
};

/* Private data follows the entry, as much as there is room for. */
static ssize_t take_cm(const struct hd_event *e, struct reading *r)
{
	struct fi_eq_cm_entry *entry = r->buf;
	size_t len = e->len;

	if (r->len < sizeof(*entry))
		return -FI_ETOOSMALL;
	if (len > r->len - sizeof(*entry))
		len = r->len - sizeof(*entry);
	*r->event = cm_events[e->code];
	entry->fid = e->owner; /* handles come first in the objects that own connections */
	entry->info = NULL;
	if (len)
		memcpy(entry->data, e->data, len);
	r->called = (struct hd_fi_called){ .pep = e->owner, .request = e->request };
	if (e->request) {
		atomic_fetch_add(&r->called.pep->reading,
				 1); /* whose closing drops what nobody has taken first */
		hd_request_from(e->request, &r->called.from);
	}
	return (ssize_t)(sizeof(*entry) + len);
}

static ssize_t eq_take(const struct hd_event *e, void *arg)
{
	return e->code < HD_EV_FRONT ? take_cm(e, arg) : take_written(e, arg);
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	struct reading r = { .event = event, .buf = buf, .len = len };
	ssize_t got;
	int rc;

	if (!event || (!buf && len))
		return hd_fi_no(FI_EINVAL, "fi_eq_read without room for the event");
	if (flags & ~FI_PEEK)
		return hd_fi_no(FI_EBADFLAGS, "fi_eq_read with flags other than FI_PEEK");
	do {
		r.called.request = NULL;
		got = hd_evq_read(eq->evq, flags & FI_PEEK ? HD_EVQ_PEEK : 0, eq_take, &r);
		if (got < 0 || !r.called.request)
			return got == -EIO ? -FI_EAVAIL : got;
		rc = hd_fi_called_info(&r.called, !(flags & FI_PEEK), &((struct fi_eq_cm_entry *)buf)->info);
	} while (rc == -FI_ENOENT);
	return rc ? rc : got;
}

/* ---- errors ---------------------------------------------------------------------------------- */

struct reading_error {
	const struct hd_fi_eq *eq;
	struct fi_eq_err_entry *entry;
};

/*
 * Before 1.5 the structure had no err_data_size, and err_data was always ours; since then that is
 * so when the program gives no buffer.
 */
static void put_err_data(const struct hd_event *e, struct reading_error *r)
{
	struct fi_eq_err_entry *out = r->entry;

	if (FI_VERSION_LT(r->eq->fabric->fid.api_version, FI_VERSION(1, 5))) {
		out->err_data = e->len ? (void *)e->data : NULL;
	} else if (!out->err_data_size || !out->err_data) {
		out->err_data = e->len ? (void *)e->data : NULL;
		out->err_data_size = e->len;
	} else {
		if (out->err_data_size > e->len)
			out->err_data_size = e->len;
		if (e->len)
			memcpy(out->err_data, e->data, out->err_data_size);
	}
}

/*
 * A connection has no context but its endpoint's, which is there: what nobody has
 * read of it goes with it.
 */
static ssize_t take_error(const struct hd_event *e, void *arg)
{
	struct reading_error *r = arg;
	struct fi_eq_err_entry *out = r->entry;
	bool overrun = e->err == EOVERFLOW && !e->owner;

	out->fid = overrun ? (struct fid *)&r->eq->fid.fid : e->owner;
	out->context = e->code == HD_EV_UP && e->owner ? ((const struct fid *)e->owner)->context : e->ctx;
	out->data = e->code == HD_EV_FRONT ? e->word : 0;
	out->err = overrun ? FI_EOVERRUN : hd_fi_errno(e->err);
	out->prov_errno = e->err;
	put_err_data(e, r);
	return sizeof(*out);
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	struct reading_error r = { eq, buf };

	if (!buf)
		return hd_fi_no(FI_EINVAL, "fi_eq_readerr without a buffer");
	if (flags & ~FI_PEEK)
		return hd_fi_no(FI_EBADFLAGS, "fi_eq_readerr with flags other than FI_PEEK");
	return hd_evq_read(eq->evq, HD_EVQ_ERROR | (flags & FI_PEEK ? HD_EVQ_PEEK : 0), take_error, &r);
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	return hd_fi_strerror(prov_errno, buf, len);
}

/* ---- writing and waiting --------------------------------------------------------------------- */

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	int rc;

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_eq_write takes no flags");
	if (!eq->writable || (!buf && len) || len > MAX_EVENT)
		return hd_fi_no(
			FI_EINVAL,
			"fi_eq_write to a queue opened without FI_WRITE, from NULL, or of more bytes than an event has");
	rc = hd_fi_eq_post(eq, event, buf, len);
	return rc ? rc : (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	uint64_t end = hd_deadline_ns(timeout);
	int rc = 0;

	if (!hd_fi_waiting_blocks(&eq->waiting))
		return hd_fi_no(FI_EINVAL, "fi_eq_sread of a queue without a wait object");
	for (;;) {
		ssize_t got = eq_read(fid, event, buf, len, flags);

		if (got != -FI_EAGAIN || rc)
			return got;
		rc = hd_evq_wait(eq->evq, hd_left_ms(end), true);
		/* fi_eq(3): whoever is signalled returns, as from fi_cq_sread: with -FI_EAGAIN */
		if (rc && rc != -EINTR)
			return hd_fi_ret(rc);
	}
}

int hd_fi_eq_trywait(struct fid *fid)
{
	struct hd_fi_eq *eq = hd_fi_as(hd_fi_eq, HD_FI_EQ, FI_CLASS_EQ, fid);

	if (!eq || (eq->waiting.obj != FI_WAIT_FD && !eq->waiting.set))
		return hd_fi_no(FI_EINVAL, "fi_trywait of an event queue without a wait object, or of none");
	if (!eq->waiting.set)
		return hd_fi_ret(hd_evq_arm(eq->evq));
	return hd_fi_waiting_trywait(&eq->waiting);
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;

	return hd_fi_waiting_control(&eq->waiting, hd_evq_fd(eq->evq), command, arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int join_set(struct hd_fi_eq *eq)
{
	return eq->waiting.set ? hd_fi_ret(hd_evq_join(eq->evq, eq->waiting.set)) : 0;
}

static int eq_close(struct fid *fid)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;

	if (hd_evq_is_used(eq->evq))
		return hd_fi_no(FI_EBUSY, "fi_close of an event queue that something is bound to");
	if (eq->waiting.set)
		hd_evq_leave(eq->evq, eq->waiting.set);
	hd_fi_waiting_close(&eq->waiting);
	hd_evq_close(eq->evq);
	eq->magic = 0;
	atomic_fetch_sub(&eq->fabric->users, 1);
	free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = HD_FI_FID_OPS(eq_close, hd_fi_no_bind, eq_control);

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

static int eq_fill(struct hd_fi_eq *eq, const struct fi_eq_attr *attr)
{
	const struct hd_fi_wait_want want = { .obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC,
					      .set = attr ? attr->wait_set : NULL,
					      .fabric = eq->fabric,
					      /* nodes that hang on it have locks */
					      .can_bell = true };
	size_t size = attr && attr->size > LEAST_SIZE ? attr->size : LEAST_SIZE;
	int rc = hd_evq_open(size, &eq->evq);

	if (rc)
		return hd_fi_ret(rc, "fi_eq_open");
	rc = hd_fi_waiting_open(&want, &eq->waiting);
	if (!rc) {
		rc = join_set(eq);
		if (rc)
			hd_fi_waiting_close(&eq->waiting);
	}
	if (rc)
		hd_evq_close(eq->evq);
	return rc;
}

int hd_fi_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
	struct hd_fi_fabric *fabric = hd_fi_as(hd_fi_fabric, HD_FI_FABRIC, FI_CLASS_FABRIC, fabric_fid);
	struct hd_fi_eq *eq;
	int rc;

	if (!fabric || !out)
		return hd_fi_no(FI_EINVAL, "fi_eq_open without a fabric, or room for the queue");
	if (attr && attr->flags & FI_PEER)
		return hd_fi_no(FI_EINVAL,
				"fi_eq_open with FI_PEER: events of peer providers are not offered");
	if (attr && attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return hd_fi_no(FI_EBADFLAGS, "fi_eq_open with flags that it does not take");
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return hd_fi_no(FI_ENOMEM);
	eq->fabric = fabric;
	rc = eq_fill(eq, attr);
	if (rc) {
		free(eq);
		return rc;
	}
	eq->fid.fid = (struct fid){ .fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fid_ops };
	eq->fid.ops = &eq_ops;
	eq->magic = HD_FI_EQ;
	eq->writable = attr && attr->flags & FI_WRITE;
	atomic_fetch_add(&fabric->users, 1);
	*out = &eq->fid;
	return 0;
}
