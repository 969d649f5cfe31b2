/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Unreliable endpoints (HD_EP_DROP), the sending half: a datagram goes now or is lost, and its send
 * completes at once; or it waits a little for a link that is being made, and completes when it has
 * gone: who ends after his completion has said what he said. The receiving half is in deliver.c.
 */
#include "base/clock.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/rdm/rdm.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

/*
 * Datagrams of one endpoint that wait for links: the first ones to a new destination should arrive,
 * but nobody is owed memory.
 */
#define WAITING_MAX 64
/* how long they may wait before the program is told that they have gone */
#define OVERDUE_NS (250 * HD_NS_PER_MS)

/*
 * One packet, if the link takes it. -EAGAIN: the link is full; -EFAULT: its memory is gone; 0: it
 * went, or is lost for good.
 */
static int push(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a, size_t len)
{
	struct hd_peer *peer = dest->peer;
	struct hd_pkt pkt = { .kind = HD_PKT_EAGER,
			      .flags = a->flags & HD_SEND_WIRE & ~(HD_SEND_ACKED | HD_SEND_DELIVERED),
			      .gen = dest->gen,
			      .dst = dest->remote,
			      .src = ep->src,
			      .tag = a->tag,
			      .imm = a->imm };
	int rc;

	if (len > peer->link->send_max)
		return 0;
	if (!hd_credit_enough(peer, hd_units(len)))
		return 0;
	rc = hd_peer_postv(peer, &pkt, a->iov, a->count, len, hd_units(len));
	if (rc >= 0)
		hd_traffic_out(&peer->traffic, len);
	return rc == -EAGAIN || rc == -EFAULT ? rc : 0;
}

/*
 * Nothing may be behind what is queued for the peer: the order of datagrams is
 * kept, as far as they arrive.
 */
static bool dgram_is_open(const struct hd_dest *dest)
{
	return dest->state == HD_DEST_BOUND && TAILQ_EMPTY(&dest->peer->queue);
}

/* Kept as a copy, and as far as the program knows long over. */
static void keep_untold(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_send_args kept = *a;
	struct hd_op *op;

	if (ep->tx->ops >= WAITING_MAX)
		return;
	kept.flags = (a->flags & HD_SEND_WIRE) | HD_SEND_INJECT | HD_SEND_SILENT;
	op = hd_op_make(ep, dest, &kept);
	if (op)
		hd_op_later(op);
}

/* An operation as it was sent. */
static struct hd_send_args args_of(const struct hd_op *op)
{
	return (struct hd_send_args){
		.iov = op->iov, .count = op->t.count, .tag = op->tag, .imm = op->imm, .flags = op->flags
	};
}

/*
 * The other end may make no progress before it has heard of ours by other means:
 * nobody waits for it for long.
 */
static void overdue(struct hd_timer *timer)
{
	struct hd_dest *dest = hd_container(timer, struct hd_dest, overdue);
	struct hd_op_list all = TAILQ_HEAD_INITIALIZER(all);
	struct hd_op *op;

	hd_dest_mark_overdue(dest);
	hd_dest_ref(dest);
	TAILQ_CONCAT(&all, &dest->waiting, at_dest);
	while ((op = TAILQ_FIRST(&all))) {
		const struct hd_send_args a = args_of(op);

		TAILQ_REMOVE(&all, op, at_dest);
		if (!(op->t.ep->policy & HD_EP_DROP) || op->flags & HD_SEND_SILENT) {
			TAILQ_INSERT_TAIL(&dest->waiting, op, at_dest);
			continue;
		}
		TAILQ_REMOVE(&op->t.ep->transfers, &op->t, of_ep);
		hd_txq_give(op->t.ep->tx); /* it gives its place to the copy */
		keep_untold(op->t.ep, dest, &a);
		hd_txq_take(op->t.ep->tx);
		hd_op_done(op, 0);
	}
	hd_dest_unref(dest);
}

/*
 * Behind all of this destination that have not been told of, while there are fewer than
 * max. NULL: there is no room.
 */
static struct hd_op *seated(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a, size_t max)
{
	struct hd_send_args ordered = *a;

	ordered.flags |= HD_SEND_ORDERED;
	return ep->tx->ops < max ? hd_op_make(ep, dest, &ordered) : NULL;
}

/* False: it is over, or lost, as far as the program is concerned. */
static bool wait_for_link(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op;

	if (dest->state == HD_DEST_BOUND || dest->is_overdue) {
		keep_untold(ep, dest, a);
		return false;
	}
	op = seated(ep, dest, a, WAITING_MAX);
	if (!op || hd_op_later(op) < 0)
		return false;
	dest->overdue.fn = overdue;
	if (!dest->overdue.due && dest->state != HD_DEST_BOUND)
		hd_timer_set(ep->node, &dest->overdue, OVERDUE_NS);
	return true;
}

/* One has gone, or is lost. */
static void dgram_gone(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a, size_t len)
{
	struct hd_op *op = hd_unlikely(ep->tx->ops) ? seated(ep, dest, a, ep->tx->max) : NULL;

	if (hd_unlikely(op != NULL))
		hd_op_done(op, 0);
	else
		hd_send_finish(ep, a, len);
}

/* Its memory is gone. */
static int dgram_fails(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op = seated(ep, dest, a, ep->tx->max);

	return op ? hd_op_gone(op) : -EAGAIN;
}

int hd_dgram_send(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	size_t len = hd_iov_len(a->iov, a->count);
	int rc = 0;

	if (hd_core(ep->node)->gate.dead)
		return hd_refuse(ENOTRECOVERABLE, HD_OF_PARENT);
	if (hd_cq_full(ep->tx_cq))
		return -EAGAIN;
	if (hd_unlikely(ep->tx->ops >= ep->tx->max))
		return -EAGAIN;
	if (!dgram_is_open(dest)) {
		if (wait_for_link(ep, dest, a))
			return 0;
	} else if (TAILQ_EMPTY(&dest->peer->ctl)) {
		rc = push(ep, dest, a, len);
	}
	if (rc == -EFAULT)
		return dgram_fails(ep, dest, a);
	dgram_gone(ep, dest, a, len);
	return 0;
}

int hd_dgram_start(struct hd_op *op)
{
	const struct hd_send_args a = args_of(op);
	int rc = push(op->t.ep, op->dest, &a, op->t.len);

	if (rc < 0)
		return hd_op_not_now(op, rc);
	hd_op_done(op, 0);
	return 0;
}
