/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Fences, fi_msg(3) FI_FENCE: a fenced operation, and all that an endpoint posts after it to the
 * same remote endpoint, waits until everything before it is complete. Only endpoints with
 * HD_EP_FENCE come here. Operations that wait are in ep->order->fenced, in posting order:
 *
 *	fenced:  F1 a b F2 c        F1 is fenced and waits for F1->fence_count operations under way
 *	             └─────┘            when that is 0, these start; F2 then waits for 3
 *
 * Whatever is under way to a pair whose operations wait was posted before the first of them, so
 * counting what ends is enough.
 */
#include "engine/xfer/fence.h"
#include "engine/link/link.h"
#include "engine/xfer/op.h"
#include "engine/xfer/send_lane.h"

#include <errno.h>

/* From here on it waits, and here it does no longer. */
static void fence_enter(struct hd_op *op)
{
	op->state = HD_OP_FENCED;
	TAILQ_INSERT_TAIL(&op->t.ep->order->fenced, op, entry);
	TAILQ_INSERT_TAIL(&op->dest->fenced, op, at_dest);
}

static void fence_leave(struct hd_op *op)
{
	TAILQ_REMOVE(&op->t.ep->order->fenced, op, entry);
	TAILQ_REMOVE(&op->dest->fenced, op, at_dest);
}

/* The first operation that waits here for the same remote endpoint; always a fenced one. */
static struct hd_op *first_fenced(const struct hd_ep *ep, const struct hd_dest *dest)
{
	struct hd_op *op;

	if (!ep->order)
		return NULL;
	TAILQ_FOREACH(op, &ep->order->fenced, entry)
		if (hd_dest_same(op->dest, dest))
			return op;
	return NULL;
}

/* Operations under way, and those that have passed the gate and wait for the link. */
static uint32_t count_before(const struct hd_ep *ep, const struct hd_dest *dest)
{
	struct hd_transfer *t;
	struct hd_op *op;
	uint32_t n = 0;

	HD_TRANSFERS_FOREACH(t, dest->peer)
	n += t->ep == ep && (op = hd_op_of(t)) && hd_dest_same(op->dest, dest);
	TAILQ_FOREACH(op, &dest->peer->queue, entry)
		n += op->t.ep == ep && !(op->flags & HD_SEND_GATED) && hd_dest_same(op->dest, dest);
	return n;
}

bool hd_fence_open(const struct hd_ep *ep, const struct hd_dest *dest, uint32_t flags)
{
	if (dest->state != HD_DEST_BOUND || first_fenced(ep, dest))
		return false;
	return !(flags & HD_SEND_FENCE) || !ep->tx->ops || !count_before(ep, dest);
}

int hd_fence_pass(struct hd_op *op)
{
	bool behind = first_fenced(op->t.ep, op->dest);
	int rc;

	op->fence_count = behind || !(op->flags & HD_SEND_FENCE) ? 0 : count_before(op->t.ep, op->dest);
	if (!behind && !op->fence_count) {
		op->flags &= ~(uint32_t)HD_SEND_GATED;
		return 0;
	}
	if (!hd_ep_order_make(op->t.ep))
		return -ENOMEM;
	rc = hd_op_take_over(op);
	if (rc < 0) {
		op->fence_count = 0;
		return rc == -EFAULT && !hd_op_gone(op) ? 1 : rc;
	}
	fence_enter(op);
	return 1;
}

/*
 * Let the first of those that wait go, with what follows it up to the next fence. They start in
 * the next turn of progress.
 */
static void fence_release(struct hd_ep *ep, struct hd_op *first)
{
	struct hd_dest *dest = first->dest;
	struct hd_peer *peer = dest->peer;
	struct hd_op *op, *next;
	uint32_t moved = 0;

	for (op = first; op; op = next) {
		next = TAILQ_NEXT(op, entry);
		if (!hd_dest_same(op->dest, dest))
			continue;
		if (moved && op->flags & HD_SEND_FENCE) {
			op->fence_count = moved;
			break;
		}
		fence_leave(op);
		op->flags &= ~(uint32_t)HD_SEND_GATED;
		hd_op_enqueue(peer, op);
		moved++;
	}
}

void hd_fence_ended(const struct hd_op *op)
{
	const struct hd_peer *peer = op->t.pending.peer;
	struct hd_op *first;

	if (op->flags & HD_SEND_GATED || !op->t.ep->order || TAILQ_EMPTY(&op->t.ep->order->fenced))
		return;
	first = first_fenced(op->t.ep, op->dest);
	if (first && (!peer || peer == first->dest->peer) && !--first->fence_count)
		fence_release(op->t.ep, first);
}

/*
 * An operation may hold the last reference to where it goes, and each that ends gives one back: so
 * one is held here. Returns the peer's next.
 */
static struct hd_dest *fence_fail_at(struct hd_dest *dest, enum hd_status status)
{
	struct hd_dest *next;
	struct hd_op *op;

	hd_dest_ref(dest);
	while ((op = TAILQ_FIRST(&dest->fenced))) {
		fence_leave(op);
		hd_op_done(op, status);
	}
	next = LIST_NEXT(dest, entry);
	hd_dest_unref(dest);
	return next;
}

void hd_fence_fail(struct hd_peer *peer, struct hd_dest *dest, enum hd_status status)
{
	if (dest)
		fence_fail_at(dest, status);
	else
		for (dest = LIST_FIRST(&peer->dests); dest;)
			dest = fence_fail_at(dest, status);
}

void hd_fence_abandon(struct hd_ep *ep)
{
	struct hd_op *op;

	while (ep->order && (op = TAILQ_FIRST(&ep->order->fenced))) {
		fence_leave(op);
		hd_transfer_drop(&op->t);
	}
}

#ifndef NDEBUG
/*
 * The first to its remote endpoint is fenced and waits for something; what is
 * behind it counts nothing.
 */
void hd_fence_check(const struct hd_ep *ep)
{
	const struct hd_op *op;
	uint32_t n = 0;

	TAILQ_FOREACH(op, &ep->order->fenced, entry) {
		if (n++ == HD_CHECKED)
			return;
		assert(op->state == HD_OP_FENCED && op->flags & HD_SEND_GATED && op->t.ep == ep);
		hd_op_check(op);
		if (op != first_fenced(ep, op->dest)) {
			assert(!op->fence_count);
			continue;
		}
		assert(op->flags & HD_SEND_FENCE && op->fence_count);
		assert(op->fence_count == count_before(ep, op->dest));
	}
}
#endif
