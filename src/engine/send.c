/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sending. hd_send is the short way: an eager message to a live peer with credit goes out in one call of its link and completes.
 * Whatever cannot go that way becomes an operation (struct hd_op), which starts here, and ends in hd_op_done.
 */
#include "engine/order.h"
#include "engine/pair.h"
#include "engine/reach.h"
#include "engine/rma.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

static_assert((int)HD_SEND_TAGGED == (int)HD_PKT_F_TAGGED && (int)HD_SEND_IMM == (int)HD_PKT_F_IMM &&
		      (int)HD_SEND_ACKED == (int)HD_PKT_F_ACK &&
		      (int)HD_SEND_SOLICITED == (int)HD_PKT_F_SOLICITED &&
		      (int)HD_SEND_DELIVERED == (int)HD_PKT_F_DELIVERED,
	      "flags of sends are flags of packets");
#define SEND_ANSWERED (HD_SEND_ACKED | HD_SEND_DELIVERED)
#define SEND_OP (SEND_ANSWERED | HD_SEND_GATED | HD_SEND_WORK) /* always operations */
#define SEND_SLOW (SEND_OP | HD_SEND_ORDERED | HD_SEND_KEYED)  /* never go the short way as they are */

/* ---- completion ------------------------------------------------------------------------------------------------------------- */

static inline uint32_t sent_flags(uint32_t flags)
{
	return HD_C_SEND | (flags & HD_SEND_TAGGED ? HD_C_TAGGED : HD_C_MSG);
}

/* what: enum hd_cqe_flag. */
static inline void fill_sent(struct hd_cqe *e, const struct hd_ep *ep, void *ctx, uint32_t what, uint64_t len,
			     uint64_t tag, int err)
{
	e->ctx = ctx;
	e->buf = NULL;
	e->len = len;
	e->tag = tag;
	e->imm = 0;
	e->olen = 0;
	e->src = 0;
	e->ep = ep->index;
	e->flags = what;
	e->err = err;
}

/* The ring is full. */
static __attribute__((noinline, cold)) void complete_beside(struct hd_ep *ep, void *ctx, uint32_t what,
							    uint64_t len, uint64_t tag, int err)
{
	struct hd_cqe e;

	fill_sent(&e, ep, ctx, what, len, tag, err);
	hd_cq_overflow(ep->tx_cq, &e);
}

/* Part of the short way: what is constant there shall be so in the code. */
static inline __attribute__((always_inline)) void complete_send(struct hd_ep *ep, void *ctx, uint32_t what,
								uint64_t len, uint64_t tag, int err)
{
	struct hd_cqe *e = hd_cq_slot(ep->tx_cq);

	if (hd_unlikely(!e)) {
		complete_beside(ep, ctx, what, len, tag, err);
		return;
	}
	fill_sent(e, ep, ctx, what, len, tag, err);
	hd_cq_push(ep->tx_cq);
}

static inline void finish_send(struct hd_ep *ep, void *ctx, uint32_t flags, uint64_t len, uint64_t tag)
{
	if (flags & HD_SEND_COMPLETE)
		complete_send(ep, ctx, sent_flags(flags), len, tag, 0);
	hd_cntr_count(ep->tx_cntr);
}

/* It is reported to the work that it is done for, and nowhere else. */
static void tell_work(const struct hd_ep *ep, struct hd_work *work, uint32_t what, uint64_t len, uint64_t tag,
		      int err)
{
	struct hd_cqe e = { .len = len, .tag = tag, .ep = ep->index, .flags = what, .err = err };

	work->done(work, &e);
}

/* hd_send_finish: a send of len bytes has gone as far as it has to. */
void hd_send_finish(struct hd_ep *ep, const struct hd_send_args *a, uint64_t len)
{
	if (a->flags & HD_SEND_WORK)
		tell_work(ep, a->ctx, sent_flags(a->flags), len, a->tag, 0);
	else
		finish_send(ep, a->ctx, a->flags, len, a->tag);
}

/* ---- operations ----------------------------------------------------------------------------------------------------------------- */

/* hd_op_make: an operation that is in no list yet, and holds its destination. NULL: no memory. */
struct hd_op *hd_op_make(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op = hd_pool_get(&ep->node->ops);

	if (!op)
		return NULL;
	memset(op, 0, offsetof(struct hd_op, iov));
	op->ep = ep;
	op->dest = dest;
	op->ctx = a->ctx;
	op->flags = a->flags;
	op->tag = a->tag;
	op->imm = a->imm;
	op->count = a->count;
	for (int i = 0; i < a->count; i++)
		op->iov[i] = a->iov[i];
	op->len = hd_iov_len(a->iov, a->count);
	op->cntr = ep->tx_cntr;
	if (hd_idmap_add(&ep->node->op_ids, op, &op->id) < 0) {
		hd_pool_put(&ep->node->ops, op);
		return NULL;
	}
	if ((a->flags & (HD_SEND_ORDERED | HD_SEND_WORK)) == HD_SEND_ORDERED && !hd_seat_take(op)) {
		hd_idmap_remove(&ep->node->op_ids, op->id);
		hd_pool_put(&ep->node->ops, op);
		return NULL;
	}
	dest->refs++;
	ep->tx->ops++;
	return op;
}

/* hd_op_free: forget an operation that is in no list any more: one of ours, or a peer's that is not a message. */
void hd_op_free(struct hd_op *op)
{
	struct hd_node *node = op->ep->node;

	if (hd_unlikely(op->ep->policy & HD_EP_FENCE) && op->dest)
		hd_fence_ended(op);
	if (op->copy)
		hd_bytes_put(&node->bytes, op->copy, op->len);
	if (op->kind && op->kind->free)
		op->kind->free(op);
	hd_idmap_remove(&node->op_ids, op->id);
	if (op->dest) {
		if (!op->seat || !hd_seat_leave(op))
			op->ep->tx->ops--;
		hd_dest_unref(op->dest);
	}
	hd_pool_put(&node->ops, op);
}

/* hd_op_copy: take the payload over, so that the caller's buffer is free: inject while nothing can be sent. 0 or -ENOMEM. */
int hd_op_copy(struct hd_op *op)
{
	op->copy = hd_bytes_get(&op->ep->node->bytes, op->len);
	if (!op->copy)
		return -ENOMEM;
	hd_iov_drain(hd_op_iov(op), op->count, op->copy, op->len);
	op->more = NULL; /* its kind frees it */
	op->iov[0] = (struct iovec){ op->copy, op->len };
	op->count = 1;
	return 0;
}

void hd_op_under(struct hd_op *op, enum hd_op_state state)
{
	op->state = state;
	op->peer = op->dest->peer;
	TAILQ_INSERT_TAIL(&op->peer->ops, op, under);
	if (op->kind && state != HD_OP_REACH)
		hd_reach_sent(op);
}

void hd_op_gate(struct hd_op *op)
{
	if (op->gates || !(op->ep->policy & HD_EP_SAW) || hd_op_is_read(op))
		return;
	op->gates = true;
	op->ep->gates++;
	op->peer->gates++;
	hd_peer_gate(op->peer);
}

/* A long write has ended that messages waited for. */
static void gate_lift(struct hd_op *op)
{
	op->gates = false;
	op->ep->gates--;
	if (--op->peer->gates == 0) {
		hd_peer_gate(op->peer);
		hd_peer_busy(op->peer);
	}
}

/* Undo what the operation holds at its peer and its link. */
static void op_leave(struct hd_op *op)
{
	struct hd_peer *peer = op->peer;

	if (op->offered)
		peer->link->ops->unoffer(peer->link, &op->offer);
	op->offered = false;
	if (op->state == HD_OP_FRAMES)
		TAILQ_REMOVE(&peer->framing, op, entry);
	if (op->state == HD_OP_REACH)
		TAILQ_REMOVE(&peer->reaching, op, entry);
	if (op->state != HD_OP_QUEUED)
		TAILQ_REMOVE(&peer->ops, op, under);
	if (op->gates)
		gate_lift(op);
}

void hd_op_tell(struct hd_ep *ep, const struct hd_ended *how)
{
	if (how->err || how->flags & HD_SEND_COMPLETE)
		complete_send(ep, how->ctx, how->cqe_flags, how->len, how->tag, how->err);
	if (!how->err)
		hd_cntr_count(how->cntr);
	else
		hd_cntr_count_error(how->cntr);
}

/* One of ours has ended. */
static void complete(struct hd_op *op, int err)
{
	uint32_t what = op->kind ? op->kind->cqe_flags : sent_flags(op->flags);

	if (op->flags & HD_SEND_UNTOLD)
		return; /* as far as the program knows, it is long over */
	if (op->flags & HD_SEND_LINED) {
		hd_line_ended(op, err);
		return;
	}
	if (op->flags & HD_SEND_WORK) {
		tell_work(op->ep, op->ctx, what, op->len, op->tag, err);
		return;
	}
	if (op->seat) {
		hd_seat_done(op, what, err);
		return;
	}
	hd_op_tell(op->ep, &(struct hd_ended){ .ctx = op->ctx,
					       .len = op->len,
					       .tag = op->tag,
					       .flags = op->flags,
					       .cqe_flags = what,
					       .err = err,
					       .cntr = op->cntr });
}

void hd_complete_now(struct hd_ep *ep, const struct hd_done *d)
{
	if (d->flags & HD_SEND_COMPLETE)
		complete_send(ep, d->ctx, d->cqe_flags, d->len, d->tag, 0);
	hd_cntr_count(d->cntr);
}

/*
 * hd_op_done: an operation has ended, err 0 or a positive errno: completes it as asked for and frees it. It may be in any state
 * but HD_OP_QUEUED (whoever takes it out of that queue sets another).
 */
void hd_op_done(struct hd_op *op, int err)
{
	if (op->peer)
		op_leave(op);
	if (op->kind && op->kind->end)
		op->kind->end(op, err);
	else
		complete(op, hd_unlikely(op->ep->policy & HD_EP_DROP) && op->dest ? 0 : err); /* it is lost */
	hd_op_free(op);
}

/* Is there credit for a message? Looks at the newest grant when what we know of is not enough. */
static bool credit_enough(struct hd_peer *peer, uint32_t units)
{
	if (peer->limit - peer->spent < units) {
		uint32_t limit = peer->link->ops->granted(peer->link);

		if ((int32_t)(limit - peer->limit) > 0)
			peer->limit = limit;
		if (peer->limit - peer->spent < units)
			return false;
	}
	return true;
}

/* hd_credit_take: spend credit for a message. False: there is not enough. */
bool hd_credit_take(struct hd_peer *peer, uint32_t units)
{
	if (!credit_enough(peer, units))
		return false;
	peer->spent += units;
	return true;
}

void hd_op_header(const struct hd_op *op, uint8_t kind, struct hd_pkt *pkt)
{
	*pkt = (struct hd_pkt){ .kind = kind,
				.flags = op->flags & HD_SEND_WIRE,
				.gen = op->dest->gen,
				.dst = op->dest->remote,
				.src = op->ep->src,
				.op = op->id,
				.tag = op->tag,
				.imm = op->imm };
}

static int start_eager(struct hd_op *op, struct hd_peer *peer)
{
	struct hd_pkt pkt;
	int rc;

	hd_op_header(op, HD_PKT_EAGER, &pkt);
	if (!hd_credit_take(peer, hd_units(op->len)))
		return -EAGAIN;
	if (op->count == 1)
		rc = peer->link->ops->send(peer->link, &pkt, op->iov[0].iov_base, op->len);
	else
		rc = peer->link->ops->sendv(peer->link, &pkt, op->iov, op->count, op->len);
	if (rc < 0) {
		peer->spent -= hd_units(op->len);
		return rc;
	}
	hd_op_under(op, HD_OP_ACK);
	if (!(op->flags & SEND_ANSWERED))
		hd_op_done(op, 0);
	return 0;
}

static int start_rendezvous(struct hd_op *op, struct hd_peer *peer)
{
	struct hd_rts rts = { .len = op->len };
	struct hd_link *link = peer->link;
	struct hd_pkt pkt;
	size_t n;
	int rc;

	if (!hd_credit_take(peer, HD_UNITS_RTS))
		return -EAGAIN;
	hd_op_header(op, HD_PKT_RTS, &pkt);
	op->offer = (struct hd_offer){ .iov = op->iov, .count = op->count, .len = op->len };
	n = link->ops->offer(link, &op->offer, rts.offer);
	rc = link->ops->send(link, &pkt, &rts, offsetof(struct hd_rts, offer) + n);
	if (rc < 0) {
		peer->spent -= HD_UNITS_RTS;
		if (n)
			link->ops->unoffer(link, &op->offer);
		return rc;
	}
	op->offered = n > 0;
	hd_op_under(op, HD_OP_OFFERED);
	return 0;
}

/*
 * hd_op_start: send what opens the operation's protocol. 0: under way, waiting behind a fence, or done and freed already; -EAGAIN:
 * nothing has happened, try again; -ENOTCONN: the link has just broken, -ENOMEM: likewise nothing has happened. The destination is
 * bound.
 */
int hd_op_start(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;

	if (hd_unlikely(op->ep->policy & HD_EP_DROP))
		return hd_dgram_start(op);
	if (hd_unlikely(op->flags & HD_SEND_GATED)) {
		int rc = hd_fence_pass(op);

		if (rc)
			return rc < 0 ? rc : 0;
	}
	if (op->kind)
		return op->kind->start(op);
	if (hd_unlikely(op->ep->gates && peer->gates)) /* behind a long write of ours */
		return -EAGAIN;
	if (op->len <=
	    peer->eager_limit) /* not the link's: a message beyond the first window would never get its credit */
		return start_eager(op, peer);
	return start_rendezvous(op, peer);
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------------- */

/* hd_op_later: the destination cannot be reached yet: keep the operation there. Negative: it could not be, and is freed. */
int hd_op_later(struct hd_op *op)
{
	struct hd_dest *dest = op->dest;
	int rc = 0;

	if (op->ep->policy & HD_EP_PAIRED)
		return hd_line_post(op);
	if (op->flags & HD_SEND_INJECT)
		rc = hd_op_copy(op);
	if (!rc && dest->state == HD_DEST_IDLE)
		rc = hd_dest_connect(dest);
	if (rc < 0) {
		hd_op_free(op);
		return rc;
	}
	op->state = HD_OP_QUEUED;
	if (dest->state == HD_DEST_BOUND) { /* it was ourselves, and at once */
		TAILQ_INSERT_TAIL(&dest->peer->queue, op, entry);
		hd_peer_gate(dest->peer);
		hd_peer_busy(dest->peer);
		return 0;
	}
	TAILQ_INSERT_TAIL(&dest->waiting, op, entry);
	return 0;
}

int hd_op_room(struct hd_ep *ep, struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;

	if (hd_unlikely(ep->policy & HD_EP_PAIRED))
		return hd_line_room(ep);
	if (ep->node->dead)
		return -ENOTRECOVERABLE;
	if (ep->tx->ops >= ep->tx->max || hd_cq_full(ep->tx_cq))
		return -EAGAIN;
	if (dest->state == HD_DEST_BOUND && (!TAILQ_EMPTY(&peer->queue) || !TAILQ_EMPTY(&peer->ctl)))
		return -EAGAIN; /* not before those */
	return 0;
}

int hd_op_post(struct hd_op *op)
{
	if (op->dest->state != HD_DEST_BOUND)
		return hd_op_later(op);
	if (hd_op_start(op) < 0) {
		hd_op_free(op);
		return -EAGAIN; /* a broken link is taken away by the next turn of progress, then we connect anew */
	}
	return 0;
}

/* The short way: peer->eager_max and the credit have been looked at. a.iov and a.count are not used. */
static inline __attribute__((always_inline)) int send_now(struct hd_ep *ep, struct hd_dest *dest,
							  const struct iovec iov, const struct hd_send_args a,
							  uint32_t units)
{
	struct hd_peer *peer = dest->peer;
	struct hd_pkt pkt = { .kind = HD_PKT_EAGER,
			      .flags = a.flags & HD_SEND_WIRE,
			      .gen = dest->gen,
			      .dst = dest->remote,
			      .src = ep->src,
			      .tag = a.tag,
			      .imm = a.imm };
	int rc = peer->link->ops->send(peer->link, &pkt, iov.iov_base, iov.iov_len);

	if (hd_unlikely(rc < 0)) {
		if (!(ep->policy & HD_EP_DROP))
			return -EAGAIN;
		if (ep->pair)
			return hd_dgram_send(ep, dest, &a);
		units = 0; /* it is lost */
	}
	peer->spent += units;
	finish_send(ep, a.ctx, a.flags, iov.iov_len, a.tag);
	return 0;
}

/* Start at once what needs an operation: its answer is awaited, it is long, it is in segments, or it may have to wait behind a fence. */
static int send_op(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op = hd_op_make(ep, dest, a);

	return op ? hd_op_post(op) : -EAGAIN;
}

static int send_slow(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *args);

/* An endpoint with several keys sends as the one that has the destination's. */
static int send_keyed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *args)
{
	struct hd_ep *face = hd_ep_face(ep, dest->key);
	struct hd_send_args a = *args;

	a.flags &= ~(uint32_t)HD_SEND_KEYED;
	return face ? send_slow(face, dest, &a) : -EACCES;
}

static __attribute__((noinline)) int send_slow(struct hd_ep *ep, struct hd_dest *dest,
					       const struct hd_send_args *args)
{
	struct hd_peer *peer = dest->peer;
	struct hd_send_args a = *args;
	uint64_t len = hd_iov_len(a.iov, a.count);
	bool eager = len <= peer->eager_limit;
	uint32_t units = eager ? hd_units(len) : HD_UNITS_RTS;

	int rc;

	if (a.flags & HD_SEND_KEYED)
		return send_keyed(ep, dest, args);
	if (ep->policy & (HD_EP_DROP | HD_EP_PAIRED))
		return ep->policy & HD_EP_PAIRED ? hd_line_send(ep, args) : hd_dgram_send(ep, dest, args);
	rc = hd_op_room(ep, dest);
	if (rc)
		return rc;
	if (dest->state != HD_DEST_BOUND)
		return send_op(ep, dest, &a);
	if (ep->gates && peer->gates)
		return -EAGAIN; /* nor before a long write of ours */
	if (a.flags & HD_SEND_GATED && hd_fence_open(ep, dest, a.flags))
		a.flags &= ~(uint32_t)HD_SEND_GATED;
	if (!(a.flags & HD_SEND_GATED) && !credit_enough(peer, units))
		return -EAGAIN;
	if (eager && a.count == 1 && !(a.flags & SEND_OP) &&
	    (!(a.flags & HD_SEND_ORDERED) || hd_seats_open(ep, dest)))
		return send_now(ep, dest, *a.iov, a, units);
	return send_op(ep, dest, &a);
}

int hd_send(struct hd_ep *ep, struct hd_dest *dest, const void *buf, size_t len, uint64_t tag, uint64_t imm,
	    void *ctx, uint32_t flags)
{
	struct hd_peer *peer = dest->peer;
	uint32_t units = hd_units(len);

	hd_assert_locked(ep->node);
	if (hd_likely((int64_t)len <= peer->eager_max && peer->limit - peer->spent >= units &&
		      !(flags & SEND_SLOW) && !hd_cq_full(ep->tx_cq)))
		return send_now(ep, dest, (struct iovec){ (void *)buf, len },
				(struct hd_send_args){ .tag = tag, .imm = imm, .ctx = ctx, .flags = flags },
				units);
	return send_slow(ep, dest,
			 &(struct hd_send_args){ &(struct iovec){ (void *)buf, len }, 1, tag, imm, ctx,
						 flags });
}

int hd_sendv(struct hd_ep *ep, struct hd_dest *dest, const struct iovec *iov, int count, uint64_t tag,
	     uint64_t imm, void *ctx, uint32_t flags)
{
	static const struct iovec none;

	hd_assert_locked(ep->node);
	if (count <= 1) {
		iov = count ? iov : &none;
		return hd_send(ep, dest, iov->iov_base, iov->iov_len, tag, imm, ctx, flags);
	}
	return send_slow(ep, dest, &(struct hd_send_args){ iov, count, tag, imm, ctx, flags });
}

/* ---- frames ------------------------------------------------------------------------------------------------------------------------ */

static void frame_out(struct hd_op *op)
{
	op->puts--;
	if (op->answered)
		hd_op_done(op, op->answer);
	else
		hd_peer_busy(op->peer);
}

static void put_done(struct hd_put *put)
{
	frame_out(hd_container(put, struct hd_op, put));
}

/* One frame of the operation whose turn it is. 0: gone, 1: it has to wait for its last frame, -EAGAIN: the link is full. */
static int frame_push(struct hd_peer *peer, struct hd_op *op)
{
	uint64_t left = op->want - op->at;
	size_t n = left < HD_FRAME_MAX ? left : HD_FRAME_MAX;
	struct hd_pkt pkt = { .kind = HD_PKT_DATA, .op = op->remote, .tag = op->at, .src = op->ep->src };
	struct iovec iov[HD_IOV_MAX];
	int count, rc;

	if (op->puts)
		return 1;
	count = hd_iov_slice(hd_op_iov(op), op->count, op->at, n, iov);
	n = hd_iov_len(iov, count); /* less, where there are many small ones */
	op->put.done = put_done;
	op->put.link = peer->link;
	op->puts++;
	rc = peer->link->ops->put(peer->link, &pkt, iov, count, n, &op->put);
	if (rc != 0)
		op->puts--;
	if (rc < 0)
		return rc;
	op->at += n;
	return 0;
}

/* All frames are out. A message of ours waits for FIN, or to be asked for; what a peer has asked for ends when the link has read it. */
static void frames_gone(struct hd_op *op)
{
	op->state = op->part ? HD_OP_OFFERED : HD_OP_FIN;
	op->at = 0;
	if (op->dest)
		return;
	op->answered = true;
	if (!op->puts)
		hd_op_done(op, 0);
}

/*
 * hd_frames_push: let the operations that send frames to this peer take turns, a frame each, until the link is full. Returns the
 * number of frames sent. Some stay in the list for as long as the link is full or reads their frame.
 */
int hd_frames_push(struct hd_peer *peer)
{
	struct hd_op *op, *stuck = NULL;
	int sent = 0;

	while ((op = TAILQ_FIRST(&peer->framing)) && op != stuck && sent < 16) {
		int rc = frame_push(peer, op);

		if (rc < 0)
			break;
		TAILQ_REMOVE(&peer->framing, op, entry);
		if (rc == 0 && op->at == op->want) {
			frames_gone(op);
			sent++;
			continue;
		}
		TAILQ_INSERT_TAIL(&peer->framing, op, entry);
		if (rc > 0 && !stuck)
			stuck = op;
		if (rc == 0) {
			stuck = NULL;
			sent++;
		}
	}
	return sent;
}

/* ---- answers ------------------------------------------------------------------------------------------------------------------------- */

/*
 * The operation is given up. Its memory is the program's again, so the link keeps a copy of the frame that it is in the middle of; an
 * other end that waits for more frames learns that none will come.
 */
static void op_give_up(struct hd_op *op)
{
	struct hd_pkt fin = { .kind = HD_PKT_FIN,
			      .op = op->remote,
			      .imm = op->dest ? ECANCELED : ECONNREFUSED };
	struct hd_peer *peer = op->peer;

	if (op->puts && peer->link->ops->unput(peer->link, &op->put) < 0)
		hd_link_down(peer->link, -ENOMEM, "no memory for the rest of a message that was given up");
	if (peer && op->state == HD_OP_FRAMES)
		hd_peer_send(peer, &fin, NULL, 0);
	op->puts = 0;
}

/* hd_op_abandon: the endpoint closes: end the operation without a completion. */
void hd_op_abandon(struct hd_op *op)
{
	op_give_up(op);
	if (op->peer)
		op_leave(op);
	hd_op_free(op);
}

/* hd_op_stop: the same for one of ours in any state, also while what it reads comes in. */
void hd_op_stop(struct hd_op *op)
{
	op->flags = (op->flags | HD_SEND_UNTOLD) & ~HD_SEND_LINED;
	if (op->peer && (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE))
		hd_recv_op_abandon(op);
	else
		hd_op_abandon(op);
}

/* hd_op_cancel: the endpoint is connected no longer: end the operation in error, a positive errno. */
void hd_op_cancel(struct hd_op *op, int err)
{
	op_give_up(op);
	hd_op_done(op, err);
}

/*
 * hd_send_cts: the other end asks for `tag` bytes of our operation in frames. Negative: it had no right to. An operation that has
 * been given up meanwhile is answered with FIN, so that nobody waits for it.
 */
int hd_send_cts(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_op *op = hd_idmap_get(&link->node->op_ids, pkt->op);

	if (!op) {
		struct hd_pkt fin = { .kind = HD_PKT_FIN, .op = (uint32_t)pkt->imm, .imm = ECANCELED };

		hd_peer_send(link->peer, &fin, NULL, 0);
		return 0;
	}
	if (op->peer != link->peer || op->state != HD_OP_OFFERED || pkt->tag == 0 || pkt->tag > op->len ||
	    pkt->imm > UINT32_MAX)
		return -EPROTO;
	op->part = pkt->flags & HD_PKT_F_PART;
	if (op->offered && !op->part) { /* else it may still be fetched afterwards */
		link->ops->unoffer(link, &op->offer);
		op->offered = false;
	}
	op->want = pkt->tag;
	op->remote = (uint32_t)pkt->imm;
	op->state = HD_OP_FRAMES;
	TAILQ_INSERT_TAIL(&link->peer->framing, op, entry);
	hd_peer_busy(link->peer);
	return 0;
}

/* hd_op_answered: ACK or FIN for one of our operations. Negative: not one that could be answered now. */
int hd_op_answered(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_op *op = hd_idmap_get(&link->node->op_ids, pkt->op);
	int err = pkt->imm <= 4095 ? (int)pkt->imm : EIO;

	if (pkt->flags & HD_PKT_F_RUN)
		return hd_line_answered(link, pkt);
	if (!op)
		return 0; /* given up meanwhile */
	if (op->peer != link->peer || op->state == HD_OP_QUEUED || op->state == HD_OP_FENCED ||
	    op->state == HD_OP_REACH)
		return -EPROTO;
	if (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE) {
		if (pkt->kind != HD_PKT_FIN || (!err && (!op->dest || op->want)))
			return -EPROTO; /* only a read of nothing is answered without data */
		hd_reach_answered(op);
		hd_recv_op_done(op, err);
		return 0;
	}
	if (!op->dest || (pkt->kind == HD_PKT_ACK && op->state != HD_OP_ACK))
		return -EPROTO;
	if (op->state == HD_OP_ATOMIC && !err)
		return -EPROTO; /* success has a RESULT */
	hd_reach_answered(op);
	if (op->puts) { /* an early FIN: the link still reads a frame */
		op->answered = true;
		op->answer = err;
		return 0;
	}
	hd_op_done(op, err);
	return 0;
}
