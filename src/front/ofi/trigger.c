/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Triggered operations: their life from the call to the end. */
#include "front/ofi/triggered.h"

#include <stdlib.h>

/* ---- life ------------------------------------------------------------------------------------ */

static void trigger_use(struct hd_fi_cntr *cntr, int delta)
{
	if (cntr)
		atomic_fetch_add(&cntr->users, delta);
}

static void trigger_release(struct hd_fi_triggered *t)
{
	trigger_use(t->cntr, -1);
	trigger_use(t->completion, -1);
	if (t->start && !t->ep)
		trigger_use(t->count.cntr, -1);
	if (t->ep)
		LIST_REMOVE(t, of_ep);
	LIST_REMOVE(t, of_domain);
	free(t->copy);
	free(t);
}

void hd_fi_triggered_forget(struct hd_fi_triggered *t)
{
	if (t->trigger.cntr)
		hd_trigger_cancel(&t->trigger);
	trigger_release(t);
}

void hd_fi_triggered_drop(struct hd_fi_ep *ep)
{
	struct hd_fi_triggered *t;

	while ((t = LIST_FIRST(&ep->triggered)))
		hd_fi_triggered_forget(t);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/*
 * Write to the endpoint's CQ how it ended; a shared receive context has none,
 * but those that share it.
 */
static void report(const struct hd_fi_triggered *t, const struct hd_cqe *e)
{
	struct hd_cqe mine = *e;

	mine.ctx = t->context;
	if (t->kind == HD_FI_CNTR_RECV)
		hd_recv_post(t->ep->node, &mine);
	else if (t->ep->bound.tx.cq)
		hd_cq_post(t->ep->bound.tx.cq->cq, &mine);
}

/*
 * Deferred work has ended: its counter knows, the endpoint only when it was
 * asked for, or of an error.
 */
static void work_done(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_fi_triggered *t =
		(struct hd_fi_triggered *)((char *)work - offsetof(struct hd_fi_triggered, work));

	if (t->completion && e->err)
		hd_cntr_event_error(t->completion->cntr);
	else if (t->completion)
		hd_cntr_completed(t->completion->cntr, e->len);
	if (t->reports || e->err)
		report(t, e);
	trigger_release(t);
}

/*
 * The engine refuses what was accepted when the program called: it ends as an operation that fails.
 */
static void refused(struct hd_fi_triggered *t, enum hd_status err)
{
	const struct hd_fi_cntr *cntr = t->ep->bound.cntrs[t->kind];
	const struct hd_cqe e = { .tag = t->tag, .ep = hd_ep_index(t->ep->ep), .flags = t->what, .err = err };

	if (t->asked) {
		work_done(&t->work, &e);
		return;
	}
	report(t, &e);
	if (cntr)
		hd_cntr_event_error(cntr->cntr);
	trigger_release(t);
}

/*
 * The counter is free to be closed while the operation is under way; it may have
 * ended before start returns.
 */
static int ofi_trigger_fire(struct hd_trigger *trigger)
{
	struct hd_fi_triggered *t =
		(struct hd_fi_triggered *)((char *)trigger - offsetof(struct hd_fi_triggered, trigger));
	struct hd_fi_cntr *cntr = t->cntr;
	bool lives_on = t->asked && t->ep;
	int rc;

	trigger_use(cntr, -1);
	t->cntr = NULL;
	rc = t->start(t);
	if (rc == -EAGAIN || rc == -ENOMEM) {
		t->cntr = cntr;
		trigger_use(cntr, 1);
		return -EAGAIN;
	}
	if (rc < 0)
		refused(t, hd_status_of(rc));
	else if (!lives_on)
		trigger_release(t);
	return 0;
}

/* ---- submitting ------------------------------------------------------------------------------ */

int hd_fi_trigger_cntr(const struct hd_fi_domain *domain, struct fid_cntr *fid, struct hd_fi_cntr **out)
{
	*out = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, fid);
	if (!*out)
		return hd_fi_no(FI_EINVAL, "a trigger with a counter that is none");
	return (*out)->domain == domain ? 0
					: hd_fi_no(FI_EDOMAIN, "a trigger with a counter of another domain");
}

/* All is checked and taken over; it may be started, and be over, before this returns. */
static void submit(struct hd_fi_triggered *t)
{
	struct hd_fi_domain *domain = t->domain;

	t->trigger.fire = ofi_trigger_fire;
	t->work.done = work_done;
	trigger_use(t->cntr, 1);
	trigger_use(t->completion, 1);
	if (!t->ep)
		trigger_use(t->count.cntr, 1);
	hd_fi_lock(domain);
	LIST_INSERT_HEAD(&domain->triggered, t, of_domain);
	if (t->ep)
		LIST_INSERT_HEAD(&t->ep->triggered, t, of_ep);
	hd_cntr_trigger(t->cntr->cntr, &t->trigger);
	hd_fi_unlock(domain);
}

/* rc: of taking the call over. */
int hd_fi_triggered_finish(struct hd_fi_triggered *t, int rc)
{
	if (!rc) {
		submit(t);
		return 0;
	}
	free(t->copy);
	free(t);
	return rc;
}

static int triggered_make(struct hd_fi_ep *ep, const void *context, struct hd_fi_triggered **out)
{
	const struct fi_triggered_context *when = context;
	struct hd_fi_cntr *cntr;
	int rc;

	if (!((ep->bound.tx.caps | ep->bound.rx.caps) & FI_TRIGGER) || !when)
		return hd_fi_no(
			FI_EINVAL,
			"FI_TRIGGER without the capability, or without a struct fi_triggered_context");
	if (when->event_type != FI_TRIGGER_THRESHOLD)
		return hd_fi_no(FI_ENOSYS, "a trigger other than FI_TRIGGER_THRESHOLD");
	rc = hd_fi_trigger_cntr(ep->domain, when->trigger.threshold.cntr, &cntr);
	if (rc)
		return rc;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return hd_fi_no(FI_ENOMEM);
	(*out)->domain = ep->domain;
	(*out)->ep = ep;
	(*out)->cntr = cntr;
	(*out)->trigger.threshold = when->trigger.threshold.threshold;
	(*out)->context = (void *)(uintptr_t)context;
	return 0;
}

ssize_t hd_fi_trigger_send(struct hd_fi_ep *ep, const struct hd_fi_send *s, const struct iovec *iov,
			   size_t count, uint64_t flags)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, s->context, &t);

	if (rc)
		return rc;
	return hd_fi_triggered_finish(t, hd_fi_take_send(t, s, iov, count, flags & ~FI_TRIGGER));
}

ssize_t hd_fi_trigger_recv(struct hd_fi_ep *ep, const struct hd_fi_recv *r, uint64_t flags)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, r->context, &t);

	if (rc)
		return rc;
	return hd_fi_triggered_finish(t, hd_fi_take_recv(t, r, flags & ~FI_TRIGGER));
}

ssize_t hd_fi_trigger_rma(struct hd_fi_ep *ep, const struct fi_msg_rma *msg, enum hd_rma_op op,
			  uint64_t flags)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, msg->context, &t);

	return rc ? rc : hd_fi_triggered_finish(t, hd_fi_take_rma(t, msg, op, flags & ~FI_TRIGGER));
}

ssize_t hd_fi_trigger_atomic(struct hd_fi_ep *ep, const struct hd_fi_atomic *c)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, c->context, &t);

	return rc ? rc : hd_fi_triggered_finish(t, hd_fi_take_atomic(t, c));
}

int hd_fi_trigger_cancel(struct hd_fi_ep *ep, const void *context)
{
	struct hd_fi_triggered *t, *oldest = NULL;

	LIST_FOREACH(t, &ep->triggered, of_ep)
		if (!t->asked && t->context == context)
			oldest = t;
	if (!oldest)
		return -FI_ENOENT;
	hd_trigger_cancel(&oldest->trigger);
	refused(oldest, HD_S_CANCELLED);
	return 0;
}
