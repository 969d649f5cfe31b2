/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations that the initiator executes itself, on the memory of a process of this host: see reach.c. Everything here is
 * called with the node's lock.
 */
#ifndef HD_ENGINE_REACH_H
#define HD_ENGINE_REACH_H

#include "engine/memory/mr.h"

/* ---- what we show ---------------------------------------------------------------------------------------------------------- */

/* hd_reach_ep: show peers this endpoint as it is; again whenever something changes that is looked at there. */
void hd_reach_ep(const struct hd_ep *ep);
/* hd_reach_ep_gone: no longer. */
void hd_reach_ep_gone(const struct hd_ep *ep);

/*
 * hd_reach_show: show peers this region as it is, or take it back, if it is disabled; again whenever something changes. What cannot be
 * shown is reached by packets.
 */
void hd_reach_show(struct hd_mr *mr);

/*
 * hd_reach_settle: the region, which is disabled, is to go: wait until no peer copies from or to it. Gives the lock back meanwhile.
 * 0, or -EBUSY: a peer that was stopped in the middle of a copy would finish it later; the region must stay.
 */
int hd_reach_settle(struct hd_mr *mr);

/*
 * hd_reach_settled: the same without waiting: false: not yet. hd_reach_stand_back: give up the lock for a moment before asking again, so often
 * as `round` says; for no longer than HD_REACH_SETTLE_NS in all.
 */
bool hd_reach_settled(struct hd_mr *mr);
void hd_reach_stand_back(struct hd_node *node, int round);
#define HD_REACH_SETTLE_NS (1000 * HD_NS_PER_MS)

/* ---- what we do ------------------------------------------------------------------------------------------------------------ */

/*
 * hd_reach_now: the short way: what can be copied in one call at once, is. enum hd_reached: how that went.
 */
enum hd_reached {
	HD_REACH_DONE, /* it is done, and is to be completed */
	HD_REACH_NOT, /* nothing has been done, or some of it that may be done once more, and it has to become an operation */
	HD_REACH_PACKET, /* the same, and going by packet is the better way for it now */
};
enum hd_reached hd_reach_now(const struct hd_ep *ep, const struct hd_dest *dest,
			     const struct hd_rma_args *args);

/* hd_reach_can: would hd_reach_try carry it out, as far as the tables tell? Its destination is bound. */
bool hd_reach_can(const struct hd_op *op);

/* hd_reach_before: is an operation of the same endpoint under way here, to the same peer, so that this one has to wait? */
bool hd_reach_before(const struct hd_op *op);

/*
 * hd_reach_sent: a request of ours has been sent by packet. hd_reach_answered: the peer has answered it, so it has taken in everything
 * that was sent up to it, and nobody need ask. (Also for what is no request of ours; then nothing happens.)
 */
static inline void hd_reach_sent(struct hd_op *op)
{
	op->ticket_requests = ++op->peer->requests;
	op->ticket_spent = op->peer->spent;
}
static inline void hd_reach_answered(const struct hd_op *op)
{
	struct hd_peer *peer = op->peer;

	if (!op->kind || !op->dest || (int32_t)(op->ticket_requests - peer->requests_taken) < 0)
		return;
	peer->requests_taken = op->ticket_requests;
	peer->spent_taken = op->ticket_spent;
}

/* hd_reach_push: copy a slice for each endpoint that has operations under way to this peer; returns how many got on. */
int hd_reach_push(struct hd_peer *peer);

/*
 * reach.c: one-sided operations by the initiator itself. hd_reach_try: carry this one out (it is in no list). 0: under way, or done
 * and freed; -EAGAIN: not yet, nothing has happened; -EOPNOTSUPP: it has to go by packets.
 */
int hd_reach_try(struct hd_op *op);

#endif
