/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The send queue of a queue pair: what has been posted to be sent, ibv_post_send(3). Everything
 * is accepted until the ring is full; it is started in order, as the link, credit and fences
 * allow, and completed in order.
 *
 * The other end carries out what comes by packet in order, whatever it is. What we carry out
 * ourselves (direct.c) must not overtake that, nor be overtaken: so it is done ourselves only when
 * nothing else is under way, else by packet, and what follows waits for it.
 */
#include "engine/link/link.h"
#include "engine/qp/holdoff.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

/*
 * Credit of messages that have left and are not accepted: one endpoint that is kept waiting shall
 * not stop others of the two nodes.
 */
#define UNITS_MAX (2 * (64u << 10) / HD_UNIT)
#define PER_POST \
	(HD_PKT_F_IMM | HD_PKT_F_SOLICITED | \
	 HD_PKT_F_INVALIDATE) /* flags that are a post's, not its queue pair's */
/* bytes of a write from which on both ends together copy it faster */
#define DIRECT_MAX (256u << 10)

/* ---- starting -------------------------------------------------------------------------------- */

static bool is_fenced(const struct hd_qp *p, uint32_t flags)
{
	return flags & HD_SEND_FENCE && p->life.sq.reading;
}

static bool may_leave(const struct hd_qp *p, uint32_t units, uint32_t flags)
{
	return !p->life.sq.direct && (!p->life.sq.units || p->life.sq.units + units <= UNITS_MAX) &&
	       !is_fenced(p, flags);
}

/*
 * An eager message, as the WQE `seq`. Negative: not now. In its callers, so that what it is
 * about stays in registers.
 */
static inline __attribute__((always_inline)) int message_out(struct hd_qp *p, uint32_t seq,
							     const struct iovec *iov, int count, uint64_t imm,
							     uint32_t post_flags, size_t len)
{
	struct hd_dest *dest = p->life.dest;
	struct hd_peer *peer = dest->peer;
	struct hd_wqe *s = hd_wqe_at(p, seq);
	uint32_t units = hd_units(len);
	struct hd_accepted *accepted = &p->life.accepted;
	bool carries = accepted->pending && accepted->to == dest->remote;
	uint8_t flags = (uint8_t)((hd_send_wire(post_flags) & PER_POST) | p->attr.wire_flags |
				  (carries ? HD_PKT_F_MSN : 0));
	const struct hd_pkt pkt = { .to = hd_pkt_to(HD_PKT_EAGER, flags, dest->gen, dest->remote),
				    .from = hd_pkt_from(p->ep->index, seq),
				    .qp = hd_qp_head(imm, p->life.sq.epoch, carries ? accepted->op : 0) };
	int rc;

	if (!hd_credit_take(peer, units))
		return -EAGAIN;
	hd_ack_expect(p, post_flags);
	if (hd_likely(count == 1))
		rc = hd_link_send(peer->link, &pkt, iov->iov_base, len);
	else
		rc = hd_link_sendv(peer->link, &pkt, iov, count, len);
	if (hd_unlikely(rc < 0)) {
		hd_credit_give_back(peer, units);
		return rc;
	}
	hd_traffic_out(&peer->traffic, len);
	accepted->pending &= !carries;
	s->op = NULL;
	s->status = 0;
	s->units = 0;
	s->way = 0;
	s->state = HD_WQE_ENDED;
	if (p->attr.lossy)
		return 0;
	s->state = HD_WQE_SENT;
	s->units = (uint16_t)units;
	s->way = HD_WAY_ORDERED;
	p->life.sq.units += units;
	p->life.sq.ordered++;
	return 0;
}

/*
 * Beside others of its like, which the other end takes in at the same time, rather than when two of
 * them have been accepted. Of an unreliable pair nothing is accepted: what ends its eager ones is
 * the credit of the link, and its first window holds three of 64 KiB.
 */
static bool is_announced(const struct hd_qp *p, const struct hd_op *op)
{
	const struct hd_peer *peer = p->life.dest->peer;

	if (op->t.len <= peer->link->beside_min)
		return false;
	return p->life.sq.ordered || (p->attr.lossy && hd_credit_left(peer) < hd_units(op->t.len));
}

/*
 * What goes eagerly waits as if this were eager: the other end would hold it
 * until all of them are there.
 */
static int start_announced(struct hd_qp *p, struct hd_wqe *s, struct hd_op *op)
{
	int rc;

	if (p->life.sq.direct || is_fenced(p, op->flags))
		return -EBUSY;
	rc = hd_op_announce(op);
	if (rc < 0)
		return rc;
	s->units = (uint16_t)hd_units(op->t.len);
	p->life.sq.units += s->units;
	return 0;
}

static int start_message(struct hd_qp *p, uint32_t seq, struct hd_op *op)
{
	int rc;

	if (op->t.len <= p->life.dest->peer->eager_limit && is_announced(p, op))
		return start_announced(p, hd_wqe_at(p, seq), op);
	if (!may_leave(p, hd_units(op->t.len), op->flags))
		return -EBUSY;
	if (op->t.len > p->life.dest->peer->eager_limit) {
		if ((rc = hd_op_take_over(op)) < 0)
			return hd_op_not_now(op, rc);
		return hd_message_start(op);
	}
	rc = message_out(p, seq, op->iov, op->t.count, hd_qp_imm_of(&op->head), op->flags, op->t.len);
	if (!rc) {
		hd_op_set_flags(op, op->flags | HD_SEND_SILENT);
		hd_op_free(op);
	}
	return hd_op_not_now(op, rc);
}

static uint8_t way_of(const struct hd_op *op)
{
	if (!op->kind)
		return HD_WAY_ORDERED;
	if (hd_op_is_read(op))
		return HD_WAY_READS;
	return op->kind->cqe_flags & HD_C_ATOMIC ? HD_WAY_ORDERED | HD_WAY_READS : HD_WAY_ORDERED;
}

/*
 * Nothing of this epoch has ended yet: the other end, on this host, may show us its memory as soon
 * as it has heard of us, and not before. Its page is there from the greeting on.
 */
static bool is_new(const struct hd_qp *p)
{
	return p->life.sq.head == p->life.sq.base && p->life.dest->peer->link->page;
}

/*
 * By packet, a transfer of middling length costs more than the copy itself. So it rather waits for
 * what is under way; else one packet in front of a row of them would send them all that way, for
 * each has the one before it under way. So would the first of an epoch, all of those that are
 * posted before its answer.
 */
static bool waits_for_direct(const struct hd_qp *p, const struct hd_op *op)
{
	if (op->flags & HD_SEND_IMM || op->t.len <= p->life.dest->peer->eager_limit)
		return false;
	if (op->t.len >= DIRECT_MAX && !hd_op_is_read(op))
		return false;
	return p->life.sq.ordered ? is_new(p) || hd_direct_can(op) : p->life.sq.reading && is_new(p);
}

/*
 * What follows is beside writes of its like, which the other end takes in at the same time, rather
 * than copied once more there.
 */
static bool follows_write(struct hd_qp *p, uint32_t seq)
{
	const struct hd_wqe *before = hd_wqe_at(p, seq - 1);

	return seq != p->life.sq.head && before->state == HD_WQE_UNDER && hd_op_is_write(before->op) &&
	       before->op->t.len > p->life.dest->peer->link->beside_min;
}

static int start_other(struct hd_qp *p, uint32_t seq, struct hd_op *op)
{
	if (p->life.sq.direct || is_fenced(p, op->flags))
		return -EBUSY;
	if (p->life.sq.ordered)
		hd_ack_look(p);
	if ((hd_op_is_write(op) || hd_op_is_read(op)) && waits_for_direct(p, op))
		return -EBUSY;
	/* the target has to know how much was written where it is told of it */
	hd_op_set_by_packet(op, p->life.sq.ordered > 0 || op->flags & HD_SEND_IMM);
	op->beside = hd_op_is_write(op) && !(op->flags & HD_SEND_IMM) && follows_write(p, seq);
	return op->kind->start(op);
}

/* Negative: not now; -EBUSY: something of our own has to end first, else the link has to get on. */
static int sq_start(struct hd_qp *p, uint32_t seq)
{
	struct hd_wqe *s = hd_wqe_at(p, seq);
	struct hd_op *op = s->op;
	struct hd_peer *peer = p->life.dest->peer;
	uint8_t way = way_of(op);
	int rc;

	if (peer->link->down || !TAILQ_EMPTY(&peer->ctl) || !TAILQ_EMPTY(&peer->queue))
		return -EAGAIN;
	s->state = HD_WQE_UNDER;
	op->head.epoch = p->life.sq.epoch;
	rc = op->kind ? start_other(p, seq, op) : start_message(p, seq, op);
	if (rc < 0)
		s->state = HD_WQE_WAITS;
	/* has ended at once, or needs no operation any more */
	if (rc < 0 || s->state != HD_WQE_UNDER)
		return rc;
	s->way = op->state == HD_OP_DIRECT ? HD_WAY_DIRECT | (way & HD_WAY_READS) : way;
	hd_wqe_count(p, s, 1);
	return 0;
}

void hd_sq_unreached(struct hd_qp *p, enum hd_status status)
{
	while (p->life.sq.next != p->life.sq.tail && !hd_qp_has_failed(p)) {
		struct hd_wqe *s = hd_wqe_at(p, p->life.sq.next++);

		hd_op_stop(s->op);
		hd_wqe_end(p, s, status);
		hd_sq_retire(p);
	}
}

/* What needs nobody else, as soon as it is the next. */
static int start_here(struct hd_qp *p, struct hd_wqe *s)
{
	struct hd_op *op = s->op;
	int rc;

	if (p->life.sq.settles || is_fenced(p, op->flags))
		return -EBUSY;
	rc = op->kind->here(op);
	if (rc < 0) {
		hd_qp_settle(p, HD_QP_SETTLE_NS);
		return -EBUSY;
	}
	p->life.sq.next++;
	hd_op_set_flags(op, op->flags | HD_SEND_SILENT);
	hd_op_free(op);
	hd_wqe_end(p, s, 0);
	s->status = rc;
	if (rc && p->ep->policy & HD_EP_STRICT)
		hd_qp_step(p, HD_QP_STEP_PEND);
	hd_sq_retire(p);
	return 0;
}

/* Start the next one, or end it where nobody can be reached. Negative as sq_start(). */
static int start_next(struct hd_qp *p)
{
	struct hd_wqe *s = hd_wqe_at(p, p->life.sq.next);
	struct hd_dest *dest = p->life.dest;
	int rc;

	if (s->op->kind && s->op->kind->here)
		return start_here(p, s);
	rc = dest->state == HD_DEST_IDLE ? hd_dest_connect(dest) : 0;
	if (rc < 0) {
		hd_sq_unreached(p, hd_status_of(rc));
		return 0;
	}
	if (dest->state != HD_DEST_BOUND || dest->peer->state != HD_PEER_LIVE)
		return -EBUSY; /* we are told when it is */
	p->life.sq.next++;
	rc = sq_start(p, p->life.sq.next - 1);
	if (rc < 0)
		p->life.sq.next--;
	else
		hd_sq_retire(p);
	return rc;
}

void hd_sq_push(struct hd_qp *p)
{
	int rc = 0;

	if (p->life.sq.next == p->life.sq.tail || p->life.sq.pushing)
		return;
	if (!hd_qp_is_paired(p)) {
		hd_ud_push(p);
		return;
	}
	if (p->life.state != HD_QP_RTS)
		return;
	p->life.sq.pushing = true;
	while (p->life.sq.next != p->life.sq.tail && p->life.state == HD_QP_RTS && rc >= 0)
		rc = start_next(p);
	p->life.sq.pushing = false;
	if (rc == -EBUSY)
		hd_ack_want(p);
	else if (rc < 0)
		hd_sq_stall(p, p->life.dest->peer);
	hd_qp_check(p);
}

int hd_sqs_push(struct hd_peer *peer)
{
	TAILQ_HEAD(, hd_qp) due = TAILQ_HEAD_INITIALIZER(due);
	struct hd_qp *p;
	int n = 0;

	TAILQ_CONCAT(&due, &peer->stalled_sqs, life.sq.stalled_entry);
	while ((p = TAILQ_FIRST(&due))) {
		uint32_t before = p->life.sq.next;

		TAILQ_REMOVE(&due, p, life.sq.stalled_entry);
		p->life.sq.stalled_on = NULL;
		hd_sq_push(p);
		n += p->life.sq.next != before;
	}
	return n;
}

void hd_sq_stall(struct hd_qp *p, struct hd_peer *peer)
{
	if (p->life.sq.stalled_on)
		return;
	p->life.sq.stalled_on = peer;
	if (p->life.sq.stalled_at != p->life.sq.next + 1) {
		p->life.sq.stalled_at = p->life.sq.next + 1;
		hd_count(p->ep->node, HD_COUNT_STALLS);
		hd_event("%s: %u wait for credit or room at peer " HD_PEER_ID, hd_ep_text(p->ep).text,
			 p->life.sq.tail - p->life.sq.next, HD_PEER_ID_OF(peer));
	}
	TAILQ_INSERT_TAIL(&peer->stalled_sqs, p, life.sq.stalled_entry);
	hd_peer_busy(peer);
}

void hd_sq_leave(struct hd_qp *p)
{
	if (p->life.sq.stalled_on)
		TAILQ_REMOVE(&p->life.sq.stalled_on->stalled_sqs, p, life.sq.stalled_entry);
	p->life.sq.stalled_on = NULL;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Whoever tries again and again need not have anybody else look. */
static __attribute__((noinline)) int look_for_room(struct hd_qp *p)
{
	hd_ack_look(p);
	if (p->life.sq.tail - p->life.sq.head < p->attr.max)
		return 0;
	hd_ack_want(p);
	return -EAGAIN;
}

int hd_sq_room(const struct hd_ep *ep)
{
	struct hd_qp *p = ep->qp;

	if (hd_core(ep->node)->gate.dead)
		return -ENOTRECOVERABLE;
	/* what has failed flushes what it is given, whoever it was for */
	if (hd_unlikely(p->life.state < HD_QP_RTS))
		return -ENOTCONN;
	return hd_likely(p->life.sq.tail - p->life.sq.head < p->attr.max) ? 0 : look_for_room(p);
}

struct hd_wqe *hd_sq_append(struct hd_qp *p, const struct hd_wqe *what)
{
	struct hd_wqe *s = hd_wqe_at(p, p->life.sq.tail++);

	*s = *what;
	return s;
}

static uint32_t message_flags(uint32_t flags)
{
	return HD_C_SEND | HD_C_MSG | (flags & HD_SEND_IMM ? HD_C_IMM : 0);
}

void hd_sq_flush(struct hd_qp *p, const struct hd_wqe *what)
{
	struct hd_wqe *s = hd_sq_append(p, what);

	s->op = NULL;
	s->state = HD_WQE_ENDED;
	if (p->life.state != HD_QP_ERR_FALLING)
		hd_sq_drop(p, HD_S_CANCELLED);
}

/* It waits: what cannot be read fails in its order. */
static int sq_take_over(struct hd_op *op)
{
	int rc = hd_op_take_over(op);

	if (rc != -EFAULT)
		return rc;
	hd_sq_fail(op, HD_S_PROTECTION);
	return 0;
}

int hd_sq_post(struct hd_op *op)
{
	struct hd_qp *p = op->t.ep->qp;
	struct hd_wqe what = {
		.ctx = op->ctx, .op = op, .len = op->t.len, .tag = op->tag, .flags = op->flags
	};
	struct hd_wqe *s;

	what.cqe_flags = op->kind ? op->kind->cqe_flags : message_flags(op->flags);
	if (what.cqe_flags & HD_C_ATOMIC)
		what.len = hd_iov_len(op->iov, op->t.count);
	if (hd_qp_flushes(p)) {
		hd_op_free(op);
		hd_sq_flush(p, &what);
		return 0;
	}
	hd_op_queue(op, p->life.dest);
	op->wqe = op->t.seq = p->life.sq.tail;
	op->t.in_order = hd_op_is_write(op);
	op->head = hd_qp_head(op->imm, p->life.sq.epoch, 0);
	hd_op_set_flags(op, (op->flags & ~(uint32_t)(HD_SEND_DELIVERED | HD_SEND_GATED)) | HD_SEND_WQE |
				    p->attr.wire_queue);
	if (!op->kind && !p->attr.lossy)
		hd_op_set_flags(op, op->flags | HD_SEND_ACKED);
	if (p->regions && op->t.count)
		hd_op_hold_regions(op, p->regions);
	s = hd_sq_append(p, &what);
	hd_ack_want(p);
	hd_sq_push(p);
	if (s->op == op && s->state == HD_WQE_WAITS && sq_take_over(op) < 0) {
		p->life.sq.tail--;
		hd_op_free(op);
		return -EAGAIN;
	}
	hd_qp_check(p);
	return 0;
}

/* What has not left becomes one that is known to be wrong. */
static void fail_waiting(struct hd_op *op, enum hd_status status)
{
	if (op->kind && op->kind->free)
		op->kind->free(op);
	hd_op_set_kind(op, &hd_failed_kind);
	hd_transfer_set_status(&op->t, status);
	hd_op_set_extra(op, NULL);
	hd_op_set_flags(op, op->flags & ~(uint32_t)HD_SEND_INJECT);
	hd_transfer_release(&op->t);
	hd_qp_kick(op->t.ep->qp);
}

void hd_sq_fail(struct hd_op *op, enum hd_status status)
{
	if (op->state == HD_OP_QUEUED)
		fail_waiting(op, status);
	else
		hd_transfer_cancel(&op->t, status);
}

/* Can a message leave at once, without becoming an operation? */
static inline bool sq_is_open(const struct hd_qp *p, size_t len, uint32_t flags)
{
	return p->life.sq.next == p->life.sq.tail && p->life.state == HD_QP_RTS &&
	       p->life.sq.tail - p->life.sq.head < p->attr.max && !hd_core(p->ep->node)->gate.dead &&
	       (int64_t)len <= p->life.dest->peer->eager_max && may_leave(p, hd_units(len), flags);
}

/* It has left: the rest of its WQE. */
static inline void sq_left(struct hd_qp *p, size_t len, uint64_t tag, void *ctx, uint32_t flags)
{
	struct hd_wqe *s = hd_wqe_at(p, p->life.sq.tail++);

	p->life.sq.next = p->life.sq.tail;
	s->ctx = ctx;
	s->len = len;
	s->tag = tag;
	s->flags = flags;
	s->cqe_flags = message_flags(flags);
	if (s->state == HD_WQE_ENDED)
		hd_sq_retire(p);
}

int hd_sq_send(struct hd_ep *ep, const struct hd_send_args *a)
{
	struct hd_qp *p = ep->qp;
	size_t len = hd_iov_len(a->iov, a->count);
	int rc = hd_sq_room(ep);
	struct hd_op *op;

	if (hd_unlikely(rc < 0))
		return rc;
	if (sq_is_open(p, len, a->flags) &&
	    message_out(p, p->life.sq.tail, a->iov, a->count, a->imm, a->flags, len) == 0) {
		sq_left(p, len, a->tag, a->ctx, a->flags);
		return 0;
	}
	op = hd_op_make(ep, hd_links(ep->node)->nobody, a);
	return op ? hd_sq_post(op) : -EAGAIN;
}

static __attribute__((noinline)) int qp_send_slow(struct hd_ep *ep, const struct iovec *iov, int count,
						  uint64_t tag, uint64_t imm, void *ctx, uint32_t flags)
{
	static const struct iovec none;

	if (hd_unlikely(!count)) {
		iov = &none;
		count = 1;
	}
	HD_TRACE_POST(ep->index, HD_TRACE_SEND, hd_iov_len(iov, count), ctx);
	return hd_sq_send(ep, &(struct hd_send_args){ iov, count, tag, imm, ctx, flags });
}

int hd_qp_send(struct hd_ep *ep, const struct iovec *iov, int count, uint64_t tag, uint64_t imm, void *ctx,
	       uint32_t flags)
{
	struct hd_qp *p = ep->qp;

	hd_assert_locked(ep->node);
	if (hd_unlikely(count != 1 || !sq_is_open(p, iov->iov_len, flags) ||
			message_out(p, p->life.sq.tail, iov, 1, imm, flags, iov->iov_len) != 0))
		return qp_send_slow(ep, iov, count, tag, imm, ctx, flags);
	HD_TRACE_POST(ep->index, HD_TRACE_SEND, iov->iov_len, ctx);
	sq_left(p, iov->iov_len, tag, ctx, flags);
	return 0;
}

/* ---- as others post -------------------------------------------------------------------------- */

static int poster_send(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	return hd_sq_send(ep, a);
}

static int poster_room(struct hd_ep *ep, struct hd_dest *dest)
{
	return hd_sq_room(ep);
}

static struct hd_dest *poster_idle(struct hd_ep *ep)
{
	return hd_sq_idle(ep->qp);
}

const struct hd_poster hd_qp_poster = { .send = poster_send,
					.room = poster_room,
					.post = hd_sq_post,
					.idle = poster_idle,
					.ended = hd_sq_ended };
