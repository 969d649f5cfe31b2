/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/ofi/trigger.h"

#include <stdlib.h>
#include <string.h>

/* A call that waits for its counter, and as deferred work until its operation has ended. */
struct hd_fi_triggered {
	struct hd_trigger trigger;
	struct hd_work work;
	struct hd_fi_domain *domain;
	struct hd_fi_ep *ep;		/* NULL: an operation on a counter */
	struct hd_fi_cntr *cntr;	/* that it waits for; NULL once it has been started */
	struct hd_fi_cntr *completion;	/* deferred work, may be NULL */
	struct fi_deferred_work *asked; /* NULL: no deferred work, but a call with FI_TRIGGER */
	void *context;
	bool reports;		   /* deferred work that completes at its endpoint as well */
	enum hd_fi_cntr_kind kind; /* what it is to its endpoint */
	uint32_t what;		   /* enum hd_cqe_flag */
	uint64_t tag;
	int (*start)(struct hd_fi_triggered *t); /* tell the engine; caller holds the node's lock */
	LIST_ENTRY(hd_fi_triggered) of_ep, of_domain;
	union {
		struct hd_fi_send send;
		struct hd_fi_recv recv;
		struct {
			enum hd_rma_op op;
			uint32_t flags;
			struct fi_msg_rma msg;
			struct fi_rma_iov segs[HD_RMA_SEGS];
		} rma;
		struct {
			struct hd_fi_atomic call; /* its own lists are not looked at any more */
			struct hd_fi_atomic_lists lists;
		} atomic;
		struct {
			struct hd_fi_cntr *cntr;
			uint64_t value;
		} count;
	};
	size_t iov_count;
	struct iovec iov[HD_MAX_IOV];
	void *copy; /* of the data, with FI_INJECT */
};

/* ---- life ---------------------------------------------------------------------------------------------- */

static void use(struct hd_fi_cntr *cntr, int delta)
{
	if (cntr)
		atomic_fetch_add(&cntr->users, delta);
}

static void release(struct hd_fi_triggered *t)
{
	use(t->cntr, -1);
	use(t->completion, -1);
	if (t->start && !t->ep)
		use(t->count.cntr, -1);
	if (t->ep)
		LIST_REMOVE(t, of_ep);
	LIST_REMOVE(t, of_domain);
	free(t->copy);
	free(t);
}

static void drop(struct hd_fi_triggered *t)
{
	if (t->trigger.cntr)
		hd_trigger_cancel(&t->trigger);
	release(t);
}

void hd_fi_triggered_drop(struct hd_fi_ep *ep)
{
	struct hd_fi_triggered *t;

	while ((t = LIST_FIRST(&ep->triggered)))
		drop(t);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

/* Write to the endpoint's CQ how it ended. */
static void report(const struct hd_fi_triggered *t, const struct hd_cqe *e)
{
	const struct hd_fi_cq *cq = t->kind == HD_FI_CNTR_RECV ? t->ep->rx.cq : t->ep->tx.cq;
	struct hd_cqe mine = *e;

	mine.ctx = t->context;
	if (cq)
		hd_cq_post(cq->cq, &mine);
}

/* Deferred work has ended: its counter knows, the endpoint only when it was asked for, or of an error. */
static void work_done(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_fi_triggered *t =
		(struct hd_fi_triggered *)((char *)work - offsetof(struct hd_fi_triggered, work));

	if (t->completion && e->err)
		hd_cntr_event_error(t->completion->cntr);
	else if (t->completion)
		hd_cntr_event(t->completion->cntr, 1);
	if (t->reports || e->err)
		report(t, e);
	release(t);
}

/* The engine refuses what was accepted when the program called: it ends as an operation that fails. */
static void refused(struct hd_fi_triggered *t, int err)
{
	const struct hd_fi_cntr *cntr = t->ep->cntrs[t->kind];
	const struct hd_cqe e = { .tag = t->tag, .ep = hd_ep_index(t->ep->ep), .flags = t->what, .err = err };

	if (t->asked) {
		work_done(&t->work, &e);
		return;
	}
	report(t, &e);
	if (cntr)
		hd_cntr_event_error(cntr->cntr);
	release(t);
}

/* The counter is free to be closed while the operation is under way; it may have ended before start returns. */
static int fire(struct hd_trigger *trigger)
{
	struct hd_fi_triggered *t =
		(struct hd_fi_triggered *)((char *)trigger - offsetof(struct hd_fi_triggered, trigger));
	struct hd_fi_cntr *cntr = t->cntr;
	bool lives_on = t->asked && t->ep;
	int rc;

	use(cntr, -1);
	t->cntr = NULL;
	rc = t->start(t);
	if (rc == -EAGAIN || rc == -ENOMEM) {
		t->cntr = cntr;
		use(cntr, 1);
		return -EAGAIN;
	}
	if (rc < 0)
		refused(t, -rc);
	else if (!lives_on)
		release(t);
	return 0;
}

/* ---- what is done -------------------------------------------------------------------------------------- */

static int start_send(struct hd_fi_triggered *t)
{
	return (int)hd_fi_start_sendv(t->ep, t->iov, t->iov_count, &t->send);
}

static int start_recv(struct hd_fi_triggered *t)
{
	return (int)hd_fi_post_recv(t->ep, t->recv, false);
}

static int start_rma(struct hd_fi_triggered *t)
{
	return (int)hd_fi_post_rma(t->ep, &t->rma.msg, t->rma.op, t->rma.flags, false);
}

static int start_atomic(struct hd_fi_triggered *t)
{
	return (int)hd_fi_atomic_post(t->ep, &t->atomic.call, &t->atomic.lists);
}

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

/* ---- taking calls over --------------------------------------------------------------------------------- */

static int take_iov(struct hd_fi_triggered *t, const struct iovec *iov, size_t count)
{
	memcpy(t->iov, iov, count * sizeof(*iov));
	t->iov_count = count;
	return 0;
}

/* The data too, because the program may write over it as soon as the call returns. */
static int take_data(struct hd_fi_triggered *t)
{
	size_t len = 0;
	char *at;

	for (size_t i = 0; i < t->iov_count; i++)
		len += t->iov[i].iov_len;
	t->copy = malloc(len + 1);
	if (!t->copy)
		return -FI_ENOMEM;
	at = t->copy;
	for (size_t i = 0; i < t->iov_count; at += t->iov[i++].iov_len)
		if (t->iov[i].iov_len)
			memcpy(at, t->iov[i].iov_base, t->iov[i].iov_len);
	t->iov[0] = (struct iovec){ t->copy, len };
	t->iov_count = 1;
	return 0;
}

/* s.flags: tagged or not, on entry. */
static int take_send(struct hd_fi_triggered *t, const struct hd_fi_send *s, const struct iovec *iov,
		     size_t count, uint64_t flags)
{
	int rc;

	t->send = *s;
	t->kind = HD_FI_CNTR_SEND;
	t->what = HD_C_SEND | (s->flags & HD_SEND_TAGGED ? HD_C_TAGGED : HD_C_MSG);
	t->tag = s->tag;
	rc = hd_fi_send_flags(t->ep, flags, &t->send.flags);
	t->send.flags |= s->flags;
	if (!rc)
		rc = hd_fi_check_sendv(t->ep, iov, count, hd_fi_send_max(t->ep, t->send.flags));
	if (!rc)
		rc = take_iov(t, iov, count);
	if (!rc && !t->asked && t->send.flags & HD_SEND_INJECT)
		rc = take_data(t);
	if (t->asked) {
		t->send.flags = (t->send.flags & ~(uint32_t)HD_SEND_COMPLETE) | HD_SEND_WORK;
		t->send.context = &t->work;
	}
	t->start = start_send;
	return rc;
}

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE)

static int take_recv(struct hd_fi_triggered *t, const struct hd_fi_recv *r, uint64_t flags)
{
	bool multi = flags & FI_MULTI_RECV && !(r->flags & HD_RECV_TAGGED);
	int rc;

	if (flags & ~(RECV_FLAGS | (multi ? FI_MULTI_RECV : 0)))
		return -FI_EINVAL;
	if (multi && t->asked) /* it has many ends */
		return -FI_ENOSYS;
	t->recv = *r;
	t->kind = HD_FI_CNTR_RECV;
	t->what = HD_C_RECV | (r->flags & HD_RECV_TAGGED ? HD_C_TAGGED : HD_C_MSG);
	t->tag = r->tag;
	if (multi)
		t->recv.flags |= HD_RECV_MULTI;
	rc = hd_fi_check_recvv(t->ep, &t->recv);
	if (rc)
		return rc;
	take_iov(t, t->recv.iov, t->recv.count);
	t->recv.iov = t->iov;
	if (t->asked) {
		t->recv.flags |= HD_RECV_WORK;
		t->recv.context = &t->work;
	} else {
		t->recv.flags |= hd_fi_recv_completes(t->ep, flags);
	}
	t->start = start_recv;
	return 0;
}

static int take_rma(struct hd_fi_triggered *t, const struct fi_msg_rma *msg, enum hd_rma_op op,
		    uint64_t flags)
{
	struct fi_msg_rma *mine = &t->rma.msg;
	int rc = hd_fi_send_flags(t->ep, flags, &t->rma.flags);

	if (rc || (op == HD_RMA_READ && flags & (FI_INJECT | FI_REMOTE_CQ_DATA)))
		return -FI_EINVAL;
	rc = (int)hd_fi_check_rma(t->ep, msg, t->rma.flags);
	if (!rc)
		rc = take_iov(t, msg->msg_iov, msg->iov_count);
	if (!rc && !t->asked && t->rma.flags & HD_SEND_INJECT)
		rc = take_data(t);
	if (rc)
		return rc;
	if (msg->rma_iov_count)
		memcpy(t->rma.segs, msg->rma_iov, msg->rma_iov_count * sizeof(*msg->rma_iov));
	*mine = *msg;
	mine->msg_iov = t->iov;
	mine->iov_count = t->iov_count;
	mine->rma_iov = t->rma.segs;
	if (t->asked) {
		t->rma.flags = (t->rma.flags & ~(uint32_t)HD_SEND_COMPLETE) | HD_SEND_WORK;
		mine->context = &t->work;
	}
	t->rma.op = op;
	t->kind = op == HD_RMA_READ ? HD_FI_CNTR_READ : HD_FI_CNTR_WRITE;
	t->what = HD_C_RMA | (op == HD_RMA_READ ? HD_C_READ : HD_C_WRITE);
	t->start = start_rma;
	return 0;
}

static int take_operands(struct hd_fi_triggered *t)
{
	struct hd_fi_atomic *call = &t->atomic.call;
	int rc = take_iov(t, t->atomic.lists.iov, call->count);

	if (!rc)
		rc = take_data(t);
	t->atomic.lists.iov[0] = t->iov[0];
	call->count = 1;
	return rc;
}

static int take_atomic(struct hd_fi_triggered *t, const struct hd_fi_atomic *c)
{
	struct hd_fi_atomic *mine = &t->atomic.call;
	int rc = hd_fi_atomic_take(t->ep, c, &t->atomic.lists);

	*mine = *c;
	if (!rc && !t->asked && c->flags & HD_SEND_INJECT && c->op != HD_ATOMIC_READ)
		rc = take_operands(t);
	if (t->asked) {
		mine->flags = (mine->flags & ~(uint32_t)HD_SEND_COMPLETE) | HD_SEND_WORK;
		mine->context = &t->work;
	}
	t->kind = c->how == HD_ATOMIC_BASE ? HD_FI_CNTR_WRITE : HD_FI_CNTR_READ;
	t->what = HD_C_ATOMIC | (c->how == HD_ATOMIC_BASE ? HD_C_WRITE : HD_C_READ);
	t->start = start_atomic;
	return rc;
}

/* ---- submitting ---------------------------------------------------------------------------------------- */

static int counter_of(const struct hd_fi_domain *domain, struct fid_cntr *fid, struct hd_fi_cntr **out)
{
	*out = hd_fi_as(hd_fi_cntr, HD_FI_CNTR, FI_CLASS_CNTR, fid);
	if (!*out)
		return -FI_EINVAL;
	return (*out)->domain == domain ? 0 : -FI_EDOMAIN;
}

/* All is checked and taken over; it may be started, and be over, before this returns. */
static void submit(struct hd_fi_triggered *t)
{
	struct hd_fi_domain *domain = t->domain;

	t->trigger.fire = fire;
	t->work.done = work_done;
	use(t->cntr, 1);
	use(t->completion, 1);
	if (!t->ep)
		use(t->count.cntr, 1);
	hd_fi_lock(domain);
	LIST_INSERT_HEAD(&domain->triggered, t, of_domain);
	if (t->ep)
		LIST_INSERT_HEAD(&t->ep->triggered, t, of_ep);
	hd_cntr_trigger(t->cntr->cntr, &t->trigger);
	hd_fi_unlock(domain);
}

/* rc: of taking the call over. */
static int finish(struct hd_fi_triggered *t, int rc)
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

	if (!((ep->tx.caps | ep->rx.caps) & FI_TRIGGER) || !when)
		return -FI_EINVAL;
	if (when->event_type != FI_TRIGGER_THRESHOLD)
		return -FI_ENOSYS;
	rc = counter_of(ep->domain, when->trigger.threshold.cntr, &cntr);
	if (rc)
		return rc;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -FI_ENOMEM;
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
	return finish(t, take_send(t, s, iov, count, flags & ~FI_TRIGGER));
}

ssize_t hd_fi_trigger_recv(struct hd_fi_ep *ep, const struct hd_fi_recv *r, uint64_t flags)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, r->context, &t);

	if (rc)
		return rc;
	return finish(t, take_recv(t, r, flags & ~FI_TRIGGER));
}

ssize_t hd_fi_trigger_rma(struct hd_fi_ep *ep, const struct fi_msg_rma *msg, enum hd_rma_op op,
			  uint64_t flags)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, msg->context, &t);

	return rc ? rc : finish(t, take_rma(t, msg, op, flags & ~FI_TRIGGER));
}

ssize_t hd_fi_trigger_atomic(struct hd_fi_ep *ep, const struct hd_fi_atomic *c)
{
	struct hd_fi_triggered *t;
	int rc = triggered_make(ep, c->context, &t);

	return rc ? rc : finish(t, take_atomic(t, c));
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
	refused(oldest, ECANCELED);
	return 0;
}

/* ---- deferred work ------------------------------------------------------------------------------------- */

static int take_ep(struct hd_fi_triggered *t, struct fid_ep *fid, uint64_t tx, uint64_t rx)
{
	struct hd_fi_ep *ep = hd_fi_ep_as(fid);

	if (!ep)
		return -FI_EINVAL;
	if (ep->domain != t->domain)
		return -FI_EDOMAIN;
	if (!ep->ep)
		return -FI_EOPBADSTATE;
	if ((ep->tx.caps & tx) != tx || (ep->rx.caps & rx) != rx)
		return -FI_ENOSYS;
	t->ep = ep;
	return 0;
}

static void report_where(struct hd_fi_triggered *t, void *context, uint64_t flags)
{
	t->context = context;
	t->reports = flags & FI_COMPLETION;
}

/* tagged: HD_SEND_TAGGED, which is HD_RECV_TAGGED, or 0. */
static int take_message(struct hd_fi_triggered *t, const struct fi_msg_tagged *msg, uint32_t tagged,
			bool receives, uint64_t flags)
{
	const struct hd_fi_send s = { .dest = msg->addr, .data = msg->data, .tag = msg->tag, .flags = tagged };
	const struct hd_fi_recv r = { .iov = msg->msg_iov,
				      .count = msg->iov_count,
				      .src = msg->addr,
				      .tag = msg->tag,
				      .ignore = msg->ignore,
				      .flags = tagged };

	static_assert((int)HD_SEND_TAGGED == (int)HD_RECV_TAGGED, "one flag for both ways");
	report_where(t, msg->context, flags);
	return receives ? take_recv(t, &r, flags) : take_send(t, &s, msg->msg_iov, msg->iov_count, flags);
}

static int take_msg(struct hd_fi_triggered *t, const struct fi_op_msg *op, bool receives)
{
	const struct fi_msg_tagged msg = { .msg_iov = op->msg.msg_iov,
					   .iov_count = op->msg.iov_count,
					   .addr = op->msg.addr,
					   .context = op->msg.context,
					   .data = op->msg.data };
	int rc = take_ep(t, op->ep, receives ? 0 : FI_MSG | FI_SEND, receives ? FI_MSG | FI_RECV : 0);

	return rc ? rc : take_message(t, &msg, 0, receives, op->flags);
}

static int take_tagged(struct hd_fi_triggered *t, const struct fi_op_tagged *op, bool receives)
{
	int rc = take_ep(t, op->ep, receives ? 0 : FI_TAGGED | FI_SEND, receives ? FI_TAGGED | FI_RECV : 0);

	return rc ? rc : take_message(t, &op->msg, HD_SEND_TAGGED, receives, op->flags);
}

static int take_rma_work(struct hd_fi_triggered *t, const struct fi_op_rma *op, bool reads)
{
	int rc = take_ep(t, op->ep, FI_RMA | (reads ? FI_READ : FI_WRITE), 0);

	if (rc)
		return rc;
	report_where(t, op->msg.context, op->flags);
	return take_rma(t, &op->msg, reads ? HD_RMA_READ : HD_RMA_WRITE, op->flags);
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
	return take_atomic(t, &c);
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

/* Only the counter that it names changes: there is nothing to complete. */
static int take_count(struct hd_fi_triggered *t, const struct fi_op_cntr *op, bool adds)
{
	int rc = counter_of(t->domain, op->cntr, &t->count.cntr);

	if (rc || t->completion)
		return rc ? rc : -FI_EINVAL;
	t->count.value = op->value;
	t->start = adds ? start_add : start_set;
	return 0;
}

static int take_work(struct hd_fi_triggered *t, const struct fi_deferred_work *work)
{
	if (!work->op.msg)
		return -FI_EINVAL;
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
		return -FI_ENOSYS;
	}
}

static int queue_work(struct hd_fi_domain *domain, struct fi_deferred_work *work)
{
	struct hd_fi_triggered *t;
	int rc;

	if (!work)
		return -FI_EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -FI_ENOMEM;
	t->domain = domain;
	t->asked = work;
	t->trigger.threshold = work->threshold;
	t->trigger.with_errors = true;
	rc = counter_of(domain, work->triggering_cntr, &t->cntr);
	if (!rc && work->completion_cntr)
		rc = counter_of(domain, work->completion_cntr, &t->completion);
	if (!rc)
		rc = take_work(t, work);
	return finish(t, rc);
}

/* One that waits is forgotten; a posted receive is cancelled, and completes so; a send cannot be taken back. */
static int cancel_work(struct hd_fi_domain *domain, const struct fi_deferred_work *work)
{
	struct hd_fi_triggered *t;
	int rc = -FI_ENOENT;

	if (!work)
		return -FI_EINVAL;
	hd_fi_lock(domain);
	LIST_FOREACH(t, &domain->triggered, of_domain)
		if (t->asked == work)
			break;
	if (t && t->trigger.cntr) {
		drop(t);
		rc = 0;
	} else if (t) {
		rc = t->kind == HD_FI_CNTR_RECV ? hd_cancel(t->ep->ep, &t->work) : -FI_EBUSY;
	}
	hd_fi_unlock(domain);
	return hd_fi_ret(rc);
}

/* All work that waits, or that waits for one counter. */
static int flush_work(struct hd_fi_domain *domain, struct fid_cntr *fid)
{
	struct hd_fi_triggered *t, *next;
	struct hd_fi_cntr *cntr = NULL;
	int rc = fid ? counter_of(domain, fid, &cntr) : 0;

	if (rc)
		return rc;
	hd_fi_lock(domain);
	for (t = LIST_FIRST(&domain->triggered); t; t = next) {
		next = LIST_NEXT(t, of_domain);
		if (t->asked && t->trigger.cntr && (!cntr || t->cntr == cntr))
			drop(t);
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
		return -FI_ENOSYS;
	}
}
