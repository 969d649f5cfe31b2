/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Deferred work, fi_trigger(3): FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK. */
#include "front/ofi/triggered.h"

#include <stdlib.h>

/* ---- taking over ----------------------------------------------------------------------------- */

static int start_set(struct hd_fi_triggered *t)
{
	hd_cntr_event_set(t->count.cntr->cntr, t->count.value);
	return 0;
}

static int start_add(struct hd_fi_triggered *t)
{
	hd_cntr_event(t->count.cntr->cntr, t->count.value);
	return 0;
}

static int take_ep(struct hd_fi_triggered *t, struct fid_ep *fid, uint64_t tx, uint64_t rx)
{
	struct hd_fi_ep *ep = hd_fi_ep_as(fid);

	if (!ep)
		return hd_fi_no(FI_EINVAL, "deferred work for an endpoint that is none");
	if (ep->domain != t->domain)
		return hd_fi_no(FI_EDOMAIN, "deferred work for an endpoint of another domain");
	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "deferred work for an endpoint before fi_enable");
	if ((ep->bound.tx.caps & tx) != tx || (ep->bound.rx.caps & rx) != rx)
		return hd_fi_no(FI_ENOSYS, "deferred work for an endpoint without the capability");
	t->ep = ep;
	return 0;
}

/*
 * Buffers go to a shared receive context, not to those who share it, and none to an endpoint
 * that hands messages over.
 */
static int take_receiver(struct hd_fi_triggered *t, struct fid_ep *fid, uint64_t caps)
{
	int rc = take_ep(t, fid, 0, caps);

	if (!rc && (t->ep->sharing.srx || t->ep->call.buffered))
		rc = hd_fi_no(
			FI_ENOSYS,
			"a deferred receive of an endpoint with a shared receive context, or with FI_BUFFERED_RECV");
	return rc;
}

static void report_where(struct hd_fi_triggered *t, void *context, uint64_t flags)
{
	t->context = context;
	t->reports = flags & FI_COMPLETION;
}

/* tagged: HD_SEND_TAGGED, which is HD_RECV_TAGGED, or 0. */
static int work_take_message(struct hd_fi_triggered *t, const struct fi_msg_tagged *msg, uint32_t tagged,
			     bool receives, uint64_t flags)
{
	const struct hd_fi_send s = { .dest = msg->addr, .data = msg->data, .tag = msg->tag, .flags = tagged };
	struct iovec rest[HD_MAX_IOV];
	const struct iovec *iov = t->ep->attr.prefix ? rest : msg->msg_iov;
	const struct hd_fi_recv r = { .iov = iov,
				      .count = msg->iov_count,
				      .src = msg->addr,
				      .tag = msg->tag,
				      .ignore = msg->ignore,
				      .flags = tagged };

	static_assert((int)HD_SEND_TAGGED == (int)HD_RECV_TAGGED, "one flag for both ways");
	report_where(t, msg->context, flags);
	if (t->ep->attr.prefix && hd_fi_prefix_step(msg->msg_iov, msg->iov_count, rest))
		return hd_fi_no(
			FI_EINVAL,
			"deferred work whose first segment has no room for the prefix (FI_MSG_PREFIX)");
	return receives ? hd_fi_take_recv(t, &r, flags) : hd_fi_take_send(t, &s, iov, msg->iov_count, flags);
}

static int take_msg(struct hd_fi_triggered *t, const struct fi_op_msg *op, bool receives)
{
	const struct fi_msg_tagged msg = { .msg_iov = op->msg.msg_iov,
					   .iov_count = op->msg.iov_count,
					   .addr = op->msg.addr,
					   .context = op->msg.context,
					   .data = op->msg.data };
	int rc = receives ? take_receiver(t, op->ep, FI_MSG | FI_RECV)
			  : take_ep(t, op->ep, FI_MSG | FI_SEND, 0);

	return rc ? rc : work_take_message(t, &msg, 0, receives, op->flags);
}

static int take_tagged(struct hd_fi_triggered *t, const struct fi_op_tagged *op, bool receives)
{
	int rc = receives ? take_receiver(t, op->ep, FI_TAGGED | FI_RECV)
			  : take_ep(t, op->ep, FI_TAGGED | FI_SEND, 0);

	return rc ? rc : work_take_message(t, &op->msg, HD_SEND_TAGGED, receives, op->flags);
}

static int take_rma_work(struct hd_fi_triggered *t, const struct fi_op_rma *op, bool reads)
{
	int rc = take_ep(t, op->ep, FI_RMA | (reads ? FI_READ : FI_WRITE), 0);

	if (rc)
		return rc;
	report_where(t, op->msg.context, op->flags);
	return hd_fi_take_rma(t, &op->msg, reads ? HD_RMA_READ : HD_RMA_WRITE, op->flags);
}

/* c: how, and the lists that only some have. */
static int take_atomic_work(struct hd_fi_triggered *t, struct fid_ep *ep, const struct fi_msg_atomic *msg,
			    uint64_t flags, struct hd_fi_atomic c)
{
	int rc = take_ep(t, ep, FI_ATOMIC | (c.how == HD_ATOMIC_BASE ? FI_WRITE : FI_READ), 0);

	if (!rc)
		rc = hd_fi_atomic_msg(t->ep, msg, flags, &c);
	if (rc)
		return rc;
	report_where(t, msg->context, flags);
	return hd_fi_take_atomic(t, &c);
}

static int take_fetch_work(struct hd_fi_triggered *t, const struct fi_op_fetch_atomic *op)
{
	return take_atomic_work(t, op->ep, &op->msg, op->flags,
				(struct hd_fi_atomic){ .how = HD_ATOMIC_FETCH,
						       .resultv = op->fetch.msg_iov,
						       .result_count = op->fetch.iov_count });
}

static int take_compare_work(struct hd_fi_triggered *t, const struct fi_op_compare_atomic *op)
{
	return take_atomic_work(t, op->ep, &op->msg, op->flags,
				(struct hd_fi_atomic){ .how = HD_ATOMIC_COMPARE,
						       .comparev = op->compare.msg_iov,
						       .compare_count = op->compare.iov_count,
						       .resultv = op->fetch.msg_iov,
						       .result_count = op->fetch.iov_count });
}

/*
 * Only the counter that it names changes: there is nothing to complete. fi_trigger(3) wants no
 * completion_cntr for it; programs leave one there.
 */
static int take_count(struct hd_fi_triggered *t, const struct fi_op_cntr *op, bool adds)
{
	int rc = hd_fi_trigger_cntr(t->domain, op->cntr, &t->count.cntr);

	t->completion = NULL;
	if (rc)
		return rc;
	t->count.value = op->value;
	t->start = adds ? start_add : start_set;
	return 0;
}

static int take_work(struct hd_fi_triggered *t, const struct fi_deferred_work *work)
{
	if (!work->op.msg)
		return hd_fi_no(FI_EINVAL, "deferred work without an operation");
	switch (work->op_type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		return take_msg(t, work->op.msg, work->op_type == FI_OP_RECV);
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		return take_tagged(t, work->op.tagged, work->op_type == FI_OP_TRECV);
	case FI_OP_READ:
	case FI_OP_WRITE:
		return take_rma_work(t, work->op.rma, work->op_type == FI_OP_READ);
	case FI_OP_ATOMIC:
		return take_atomic_work(t, work->op.atomic->ep, &work->op.atomic->msg, work->op.atomic->flags,
					(struct hd_fi_atomic){ .how = HD_ATOMIC_BASE });
	case FI_OP_FETCH_ATOMIC:
		return take_fetch_work(t, work->op.fetch_atomic);
	case FI_OP_COMPARE_ATOMIC:
		return take_compare_work(t, work->op.compare_atomic);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return take_count(t, work->op.cntr, work->op_type == FI_OP_CNTR_ADD);
	default:
		return hd_fi_no(FI_ENOSYS, "deferred work of a kind that there is not");
	}
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int queue_work(struct hd_fi_domain *domain, struct fi_deferred_work *work)
{
	struct hd_fi_triggered *t;
	int rc;

	if (!work)
		return hd_fi_no(FI_EINVAL, "FI_QUEUE_WORK without work");
	t = calloc(1, sizeof(*t));
	if (!t)
		return hd_fi_no(FI_ENOMEM);
	t->domain = domain;
	t->asked = work;
	t->trigger.threshold = work->threshold;
	t->trigger.with_errors = true;
	rc = hd_fi_trigger_cntr(domain, work->triggering_cntr, &t->cntr);
	if (!rc && work->completion_cntr)
		rc = hd_fi_trigger_cntr(domain, work->completion_cntr, &t->completion);
	if (!rc)
		rc = take_work(t, work);
	return hd_fi_triggered_finish(t, rc);
}

/*
 * One that waits is forgotten; a posted receive is cancelled, and completes so; a
 * send cannot be taken back.
 */
static int cancel_work(struct hd_fi_domain *domain, const struct fi_deferred_work *work)
{
	struct hd_fi_triggered *t;
	int rc = -FI_ENOENT;

	if (!work)
		return hd_fi_no(FI_EINVAL, "FI_CANCEL_WORK without work");
	hd_fi_lock(domain);
	LIST_FOREACH(t, &domain->triggered, of_domain)
		if (t->asked == work)
			break;
	if (t && t->trigger.cntr) {
		hd_fi_triggered_forget(t);
		rc = 0;
	} else if (t) {
		rc = t->kind == HD_FI_CNTR_RECV
			     ? hd_cancel(t->ep->ep, &t->work)
			     : hd_fi_no(FI_EBUSY, "FI_CANCEL_WORK of work that has been started");
	}
	hd_fi_unlock(domain);
	return hd_fi_ret(rc, "FI_CANCEL_WORK");
}

/* All work that waits, or that waits for one counter. */
static int flush_work(struct hd_fi_domain *domain, struct fid_cntr *fid)
{
	struct hd_fi_triggered *t, *next;
	struct hd_fi_cntr *cntr = NULL;
	int rc = fid ? hd_fi_trigger_cntr(domain, fid, &cntr) : 0;

	if (rc)
		return rc;
	hd_fi_lock(domain);
	for (t = LIST_FIRST(&domain->triggered); t; t = next) {
		next = LIST_NEXT(t, of_domain);
		if (t->asked && t->trigger.cntr && (!cntr || t->cntr == cntr))
			hd_fi_triggered_forget(t);
	}
	hd_fi_unlock(domain);
	return 0;
}

int hd_fi_work_control(struct hd_fi_domain *domain, int command, void *arg)
{
	switch (command) {
	case FI_QUEUE_WORK:
		return queue_work(domain, arg);
	case FI_CANCEL_WORK:
		return cancel_work(domain, arg);
	case FI_FLUSH_WORK:
		return flush_work(domain, arg);
	default:
		return hd_fi_no(FI_ENOSYS, "fi_control with a command for deferred work that there is not");
	}
}
