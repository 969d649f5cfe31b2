/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How requests in a send queue end: they are answered or dropped, in any order, and complete in the
 * order in which they were posted.
 */
#include "engine/qp/holdoff.h"
#include "engine/qp/qp.h"
#include "engine/xfer/xfer.h"

/* ---- completing ------------------------------------------------------------------------------ */

static void wqe_complete(const struct hd_qp *p, const struct hd_wqe *s, enum hd_status status)
{
	const struct hd_ended how = { .ctx = s->ctx,
				      .len = s->len,
				      .tag = s->tag,
				      .flags = s->flags,
				      .cqe_flags = s->cqe_flags,
				      .status = status };

	hd_op_complete(p->ep, &how);
}

void hd_sq_drain(struct hd_qp *p)
{
	if (p->life.sq.drain_all && p->life.sq.head == p->life.sq.tail) {
		p->life.sq.drain_all = false;
		hd_qp_event(p, HD_EV_EP_DRAINED, 0);
	}
	if (hd_qp_is_draining(p) && p->life.sq.head == p->life.sq.next) {
		hd_qp_step(p, HD_QP_STEP_DRAINED);
		hd_qp_event(p, HD_EV_EP_DRAINED, 0);
	}
	if (p->life.sq.drain_all || hd_qp_is_draining(p))
		hd_ack_want(p);
}

/*
 * The first one completes in error: the queue pair fails, or is in SQE. What it was draining
 * for has ended with that.
 */
static __attribute__((noinline)) void sq_complete_failed(struct hd_qp *p, const struct hd_wqe *s)
{
	bool drains = hd_qp_is_draining(p);

	if (p->ep->policy & HD_EP_STRICT && !p->attr.lossy)
		hd_qp_fail_soon(p, s->status);
	wqe_complete(p, s, s->status);
	if (p->attr.lossy || !hd_qp_is_paired(p)) {
		hd_qp_step(p, HD_QP_STEP_SQE);
		hd_sq_drop(p, HD_S_CANCELLED);
	}
	if (drains && !hd_qp_is_draining(p) && p->life.sq.head == p->life.sq.next)
		hd_qp_event(p, HD_EV_EP_DRAINED, 0);
}

/* hd_sq_retire: tell of what has ended and has nothing before it. */
void hd_sq_retire(struct hd_qp *p)
{
	while (p->life.sq.head != p->life.sq.next && !hd_qp_has_failed(p)) {
		struct hd_wqe *s = hd_wqe_at(p, p->life.sq.head);

		if (s->state != HD_WQE_ENDED || (hd_unlikely(s->status) && hd_holdoff_send(p, s->status)))
			break;
		p->life.sq.head++;
		if (hd_likely(!s->status))
			wqe_complete(p, s, 0);
		else
			sq_complete_failed(p, s);
	}
	if (hd_unlikely(p->life.sq.drain_all || hd_qp_is_draining(p)))
		hd_sq_drain(p);
}

void hd_wqe_count(struct hd_qp *p, const struct hd_wqe *s, int by)
{
	if (s->way & HD_WAY_ORDERED)
		p->life.sq.ordered += (uint32_t)by;
	if (s->way & HD_WAY_READS)
		p->life.sq.reading += (uint32_t)by;
	if (s->way & HD_WAY_DIRECT)
		p->life.sq.direct += (uint32_t)by;
}

void hd_wqe_end(struct hd_qp *p, struct hd_wqe *s, enum hd_status status)
{
	hd_wqe_count(p, s, -1);
	s->way = 0;
	p->life.sq.units -= s->units;
	s->units = 0;
	s->op = NULL;
	s->state = HD_WQE_ENDED;
	s->status = p->attr.lossy && status != HD_S_PROTECTION ? 0 : status;
}

void hd_sq_ended(struct hd_op *op, enum hd_status status)
{
	struct hd_qp *p = op->t.ep->qp;

	hd_wqe_end(p, hd_wqe_at(p, op->wqe), status);
	hd_sq_retire(p);
	hd_sq_push(p);
}

/* ---- answers --------------------------------------------------------------------------------- */

/*
 * Messages of which nothing else is to be told, up to `last` or another: in one go what hd_wqe_end
 * and hd_sq_retire do step by step.
 */
static inline void accept_usual(struct hd_qp *p, uint32_t last)
{
	struct hd_sq *sq = &p->life.sq;

	if (hd_unlikely(p->life.state != HD_QP_RTS || sq->drain_all))
		return;
	while (sq->head != last + 1) {
		struct hd_wqe *s = hd_wqe_at(p, sq->head);

		if (hd_unlikely(s->state != HD_WQE_SENT || s->flags & HD_SEND_WORK))
			return;
		sq->units -= s->units;
		sq->ordered--;
		sq->head++;
		if (s->flags & HD_SEND_COMPLETE)
			hd_sent_complete(p->ep, s->ctx, s->cqe_flags, s->len, s->tag, HD_S_OK);
	}
}

/* One that is too late stands for none. */
bool hd_sq_accepted(struct hd_qp *p, uint32_t last, enum hd_status status)
{
	if (last - p->life.sq.head >= p->life.sq.next - p->life.sq.head)
		return false;
	if (hd_likely(!status))
		accept_usual(p, last);
	for (uint32_t seq = p->life.sq.head; seq != last + 1; seq++) {
		struct hd_wqe *s = hd_wqe_at(p, seq);

		if (s->state == HD_WQE_SENT)
			hd_wqe_end(p, s, seq == last ? status : 0);
	}
	if (p->life.sq.head != p->life.sq.tail) {
		hd_sq_retire(p);
		hd_sq_push(p);
	}
	return true;
}

int hd_sq_answered(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_node *node = link->node;
	struct hd_ep *ep = pkt->dst < hd_names(node)->ep_count ? hd_names(node)->eps[pkt->dst] : NULL;
	struct hd_qp *p = ep ? ep->qp : NULL;
	enum hd_status status = hd_status_heard(pkt->imm);

	if (!p || !p->life.dest || p->life.dest->peer != link->peer || pkt->gen != ep->gen)
		return 0; /* of one that is closed, was another's, or has begun anew */
	hd_sq_accepted(p, pkt->op, pkt->kind == HD_PKT_FIN ? status : 0);
	return 0;
}

void hd_sq_lost(struct hd_qp *p, enum hd_status status)
{
	for (uint32_t seq = p->life.sq.head; seq != p->life.sq.next; seq++)
		if (hd_wqe_at(p, seq)->state == HD_WQE_SENT)
			hd_wqe_end(p, hd_wqe_at(p, seq), status);
	hd_sq_retire(p);
}

void hd_sq_overdue(struct hd_qp *p)
{
	struct hd_wqe *s = hd_wqe_at(p, p->life.sq.head);

	if (s->state == HD_WQE_SENT) {
		hd_wqe_end(p, s, HD_S_TIMEOUT);
		hd_sq_retire(p);
	} else if (s->op) {
		hd_sq_fail(s->op, HD_S_TIMEOUT);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

void hd_sq_drop(struct hd_qp *p, enum hd_status status)
{
	hd_sq_leave(p);
	p->life.sq.pushing = true; /* nothing is started meanwhile */
	for (uint32_t seq = p->life.sq.head; seq != p->life.sq.tail; seq++) {
		struct hd_wqe *s = hd_wqe_at(p, seq), was = *s;

		if (s->state != HD_WQE_ENDED)
			s->status = 0;
		s->op = NULL;
		s->state = HD_WQE_ENDED;
		if (was.op && hd_qp_is_paired(p))
			hd_op_stop(was.op);
		else if (was.op)
			hd_ud_forget(was.waiting, was.len);
	}
	while (p->life.sq.head != p->life.sq.tail) {
		struct hd_wqe *s = hd_wqe_at(p, p->life.sq.head++);

		/*
		 * one whose other end has gone, too: it has been waiting (holdoff.c), and a
		 * card would still be trying
		 */
		if (status)
			wqe_complete(p, s, status);
	}
	hd_qp_settle_end(p);
	p->life.sq.next = p->life.sq.tail;
	p->life.sq.units = p->life.sq.ordered = p->life.sq.reading = p->life.sq.direct = 0;
	p->life.sq.pushing = false;
}
