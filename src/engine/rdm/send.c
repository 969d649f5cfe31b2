/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sending. hd_send is the short way: an eager message to a live peer with credit goes out in
 * one call of its link and completes. Whatever cannot go that way becomes an operation
 * (op.c), which starts here.
 */
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/rdm/rdm.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

static_assert((int)HD_SEND_TAGGED == (int)HD_PKT_F_TAGGED && (int)HD_SEND_IMM == (int)HD_PKT_F_IMM &&
		      (int)HD_SEND_ACKED == (int)HD_PKT_F_ACK &&
		      (int)HD_SEND_SOLICITED == (int)HD_PKT_F_SOLICITED &&
		      (int)HD_SEND_DELIVERED == (int)HD_PKT_F_DELIVERED,
	      "flags of sends are flags of packets");
#define SEND_OP (HD_SEND_ANSWERED | HD_SEND_GATED | HD_SEND_WORK) /* always operations */
/* never go the short way as they are */
#define SEND_SLOW (SEND_OP | HD_SEND_ORDERED | HD_SEND_KEYED)

int hd_op_start(struct hd_op *op)
{
	if (hd_unlikely(op->t.ep->policy & HD_EP_DROP))
		return hd_dgram_start(op);
	if (hd_unlikely(op->flags & HD_SEND_GATED)) {
		int rc = hd_fence_pass(op);

		if (rc)
			return rc < 0 ? rc : 0;
	}
	return op->kind ? op->kind->start(op) : hd_message_start(op);
}

/* ---- posting --------------------------------------------------------------------------------- */

int hd_op_later(struct hd_op *op)
{
	struct hd_dest *dest = op->dest;
	int rc = hd_op_take_over(op);

	if (!rc && dest->state == HD_DEST_IDLE)
		rc = hd_dest_connect(dest);
	if (rc < 0) {
		hd_op_free(op);
		return rc;
	}
	if (dest->state == HD_DEST_BOUND) /* it was ourselves, and at once */
		hd_op_enqueue(dest->peer, op);
	else
		hd_op_await(op);
	return 0;
}

static int post_room(struct hd_ep *ep, struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;

	if (hd_core(ep->node)->gate.dead)
		return hd_refuse(ENOTRECOVERABLE, HD_OF_PARENT);
	if (ep->tx->ops >= ep->tx->max || hd_cq_full(ep->tx_cq))
		return -EAGAIN;
	if (dest->state == HD_DEST_BOUND && (!TAILQ_EMPTY(&peer->queue) || !TAILQ_EMPTY(&peer->ctl)))
		return -EAGAIN; /* not before those */
	return 0;
}

/* HD_SEND_TRY: false: it is to be kept, or can start. */
static bool tries_in_vain(struct hd_dest *dest)
{
	if (dest->state == HD_DEST_IDLE) {
		if (dest->tried)
			return false;
		hd_dest_mark_tried(dest);
		if (hd_dest_connect(dest) < 0)
			return false;
	}
	return dest->state != HD_DEST_BOUND;
}

static int post_op(struct hd_op *op)
{
	if (op->flags & HD_SEND_TRY && tries_in_vain(op->dest)) {
		hd_op_free(op);
		return -EAGAIN;
	}
	if (op->dest->state != HD_DEST_BOUND)
		return hd_op_later(op);
	if (hd_op_start(op) < 0) {
		hd_op_free(op);
		/* a broken link is taken away by the next turn of progress, then we connect anew */
		return -EAGAIN;
	}
	return 0;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int send_op(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);

/* Its memory is gone: that is its end. */
static __attribute__((noinline)) int send_gone(struct hd_ep *ep, struct hd_dest *dest, const struct iovec iov,
					       const struct hd_send_args *args)
{
	struct hd_send_args a = *args;

	a.iov = &iov;
	a.count = 1;
	return ep->policy & HD_EP_DROP ? hd_dgram_send(ep, dest, &a) : send_op(ep, dest, &a);
}

/* A datagram; its sender does not know. */
static __attribute__((noinline, cold)) int send_lost(struct hd_ep *ep, size_t len,
						     const struct hd_send_args *a)
{
	hd_sent_finish(ep, a->ctx, a->flags, len, a->tag);
	return 0;
}

/*
 * The short way: peer->eager_max and the credit have been looked at. a.iov
 * and a.count are not used.
 */
static inline __attribute__((always_inline)) int send_now(struct hd_ep *ep, struct hd_dest *dest,
							  const struct iovec iov, const struct hd_send_args a,
							  uint32_t units)
{
	struct hd_peer *peer = dest->peer;
	struct hd_pkt pkt = { .to = hd_pkt_to(HD_PKT_EAGER, a.flags & HD_SEND_WIRE, dest->gen, dest->remote),
			      .from = hd_pkt_from(ep->src, 0),
			      .tag = a.tag,
			      .imm = a.imm };
	int rc;

	assert(ep->poster == &hd_rdm_poster);
	rc = hd_link_send(peer->link, &pkt, iov.iov_base, iov.iov_len);
	if (hd_unlikely(rc < 0)) {
		if (!(ep->policy & HD_EP_DROP) && rc != -EFAULT)
			return -EAGAIN;
		return rc == -EFAULT ? send_gone(ep, dest, iov, &a) : send_lost(ep, iov.iov_len, &a);
	}
	hd_credit_spend(peer, units);
	hd_traffic_out(&peer->traffic, iov.iov_len);
	hd_sent_finish(ep, a.ctx, a.flags, iov.iov_len, a.tag);
	return 0;
}

/*
 * Start at once what needs an operation: its answer is awaited, it is long, it is in segments, or
 * it may have to wait behind a fence.
 */
static int send_op(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op = hd_op_make(ep, dest, a);

	return op ? hd_op_post(op) : -EAGAIN;
}

static int send_slow(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *args);

/* An endpoint with several keys sends as the one that has the destination's. */
static int send_keyed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *args)
{
	struct hd_ep *alias = hd_ep_alias(ep, dest->key);
	struct hd_send_args a = *args;

	a.flags &= ~(uint32_t)HD_SEND_KEYED;
	return alias ? send_slow(alias, dest, &a) : hd_refuse(EACCES, HD_NO_SUCH_KEY);
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
		return ep->poster->send(ep, dest, args);
	rc = hd_op_room(ep, dest);
	if (rc)
		return rc;
	if (dest->state != HD_DEST_BOUND)
		return send_op(ep, dest, &a);
	if (hd_op_send_fenced(ep, peer))
		return -EAGAIN; /* nor before a long write or read of ours */
	if (a.flags & HD_SEND_GATED && hd_fence_open(ep, dest, a.flags))
		a.flags &= ~(uint32_t)HD_SEND_GATED;
	if (!(a.flags & HD_SEND_GATED) && !hd_credit_enough(peer, units)) {
		hd_count(ep->node, HD_COUNT_REFUSED);
		if (hd_credit_ran_out(peer))
			hd_event("%s: no credit for %llu bytes at peer " HD_PEER_ID, hd_ep_text(ep).text,
				 (unsigned long long)len, HD_PEER_ID_OF(peer));
		return -EAGAIN;
	}
	if (eager && a.count == 1 && !(a.flags & SEND_OP) &&
	    (!(a.flags & HD_SEND_ORDERED) || hd_send_lane_is_open(ep, dest)))
		return send_now(ep, dest, *a.iov, a, units);
	return send_op(ep, dest, &a);
}

int hd_send(struct hd_ep *ep, struct hd_dest *dest, const void *buf, size_t len, uint64_t tag, uint64_t imm,
	    void *ctx, uint32_t flags)
{
	struct hd_peer *peer = dest->peer;
	uint32_t units = hd_units(len);

	hd_assert_locked(ep->node);
	HD_TRACE_POST(ep->index, HD_TRACE_SEND, len, ctx);
	if (hd_likely((int64_t)len <= peer->eager_max && hd_credit_left(peer) >= units &&
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
	HD_TRACE_POST(ep->index, HD_TRACE_SEND, 0, ctx);
	return send_slow(ep, dest, &(struct hd_send_args){ iov, count, tag, imm, ctx, flags });
}

const struct hd_poster hd_rdm_poster = { .send = hd_dgram_send, .room = post_room, .post = post_op };
