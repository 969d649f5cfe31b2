/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of transfers and operations whenever nothing of them is being changed, looked at anew
 * in builds with assertions: at the borders of this room, and in the units.
 */
#include "engine/link/link.h"
#include "engine/xfer/fence.h"
#include "engine/xfer/op.h"
#include "engine/xfer/send_lane.h"

#ifndef NDEBUG

static bool leaves(const struct hd_transfer *t)
{
	return t->state != HD_TRANSFER_IDLE && !hd_transfer_comes_in(t);
}

void hd_transfer_check(const struct hd_transfer *t)
{
	assert(t->pending.id && t->owner->done && t->owner->dropped);
	assert(t->puts >= 0 && t->puts <= HD_PUTS_MAX);
	assert(t->region_count <= HD_IOV_MAX);
	assert(!t->puts || leaves(t));
	assert(t->state == HD_TRANSFER_IDLE || (t->pending.peer && t->at <= t->want && t->want <= t->len));
	assert(!t->reads || !leaves(t));
	assert(!(t->unanswered || t->in_order) || !hd_transfer_comes_in(t));
	assert(t->state != HD_TRANSFER_ENDING || t->puts);
	assert(t->ep->framed != t || (t->in_order && t->state == HD_TRANSFER_FRAMES));
}

void hd_lane_check(const struct hd_lane *lane, bool at_once)
{
	const struct hd_lane_place *place, *before = NULL;
	uint32_t n = 0;

	HD_LANE_FOREACH(place, lane) {
		if (n++ == HD_CHECKED)
			return;
		assert(!before || (int32_t)(place->seq - before->seq) > 0);
		assert((int32_t)(lane->next - place->seq) > 0);
		assert(!at_once || !place->done || !hd_lane_is_first(lane, place));
		before = place;
	}
	assert(n == lane->count);
}

void hd_op_check(const struct hd_op *op)
{
	assert(op->t.owner == &hd_op_owner && op->t.iov == op->iov);
	assert((op->state == HD_OP_TRANSFER) == (op->t.state != HD_TRANSFER_IDLE));
	assert(!(op->flags & HD_SEND_GATED) || op->state <= HD_OP_FENCED);
	assert(!op->send_place || op->flags & HD_SEND_ORDERED);
	assert(!op->copy || op->state != HD_OP_TRANSFER || op->iov[0].iov_base == op->copy);
	assert(!op->has_token || op->state == HD_OP_DIRECT);
	assert(op->dest->refs && op->t.ep->tx->ops);
	assert(!op->fence_count || op->state == HD_OP_FENCED);
	assert(!op->send_fence || (op->t.ep->send_fences && op->t.pending.peer->send_fences));
	assert(!op->rma_fence || op->t.ep->rma_fences);
	assert(!(op->flags & HD_SEND_WQE) || op->t.ep->qp);
}

/*
 * How many of them are in a list for those that send frames, and in that of those
 * that we carry out ourselves.
 */
struct under {
	uint32_t all, frames, direct;
};

static void under_add(struct under *n, struct hd_transfer *t)
{
	const struct hd_op *op = hd_op_of(t);

	hd_transfer_check(t);
	if (op)
		hd_op_check(op);
	assert(t->state != HD_TRANSFER_IDLE || (op && op->state >= HD_OP_DIRECT));
	n->all++;
	n->frames += t->state == HD_TRANSFER_FRAMES;
	n->direct += op && op->state == HD_OP_DIRECT;
}

/* What has been accepted and not begun. */
static void queue_check(const struct hd_peer *peer)
{
	const struct hd_op *op;
	uint32_t n = 0;

	TAILQ_FOREACH(op, &peer->queue, entry) {
		if (n++ == HD_CHECKED)
			return;
		assert(op->state == HD_OP_QUEUED && op->dest->peer == peer);
		hd_op_check(op);
	}
}

/* What it has under way, and what waits to be. */
static void ep_transfers_check(const struct hd_ep *ep)
{
	struct hd_transfer *t, *next;
	uint32_t n = 0;

	HD_EP_TRANSFERS_FOREACH(t, next, ep) {
		const struct hd_op *op = hd_op_of(t);

		if (n++ == HD_CHECKED)
			return;
		assert(t->ep == ep);
		assert(t->state != HD_TRANSFER_IDLE || (op && op->state != HD_OP_FENCED));
	}
}

void hd_ep_order_check(const struct hd_ep *ep)
{
	ep_transfers_check(ep);
	if (!ep->order)
		return;
	hd_send_lane_check(ep);
	hd_fence_check(ep);
}

void hd_xfer_check(const struct hd_peer *peer)
{
	struct under n = { 0 };
	struct hd_transfer *t;
	struct hd_op *op;

	HD_TRANSFERS_FOREACH(t, peer)
	{
		assert(t->pending.peer == peer);
		under_add(&n, t);
		if (n.all > HD_CHECKED)
			return;
	}
	queue_check(peer);
	TAILQ_FOREACH(t, &peer->framing, entry) {
		assert(t->state == HD_TRANSFER_FRAMES && t->pending.peer == peer);
		n.frames--;
	}
	TAILQ_FOREACH(op, &peer->direct_ops, entry) {
		assert(op->state == HD_OP_DIRECT && op->t.pending.peer == peer);
		n.direct--;
	}
	assert(!n.frames && !n.direct);
}

#endif
