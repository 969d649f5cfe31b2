/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations that the initiator executes itself, on the memory of a process of this host:
 * see direct.c. Everything here is called with the node's lock.
 */
#ifndef HD_ENGINE_DIRECT_H
#define HD_ENGINE_DIRECT_H

#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/xfer/op.h"

/* hd_op.extra of one of ours: where it goes to, or comes from. */
struct hd_rma_run {
	int count;
	uint64_t done; /* bytes that have been cut off in front, since they were copied */
	struct hd_rma_seg seg[];
};

static inline void hd_rma_run_fill(struct hd_rma_run *run, const struct hd_rma_seg *segs, int count)
{
	run->count = count;
	run->done = 0;
	memcpy(run->seg, segs, sizeof(run->seg[0]) * (size_t)count);
}
static inline const struct hd_rma_run *hd_op_rma(const struct hd_op *op)
{
	return op->extra;
}

#define HD_DIRECT_SHORT \
	4096 /* bytes up to which a packet is the faster way, where the target's program polls */
#define HD_DIRECT_SHARE \
	(1u << 20) /* bytes of a slice while others may wait; HD_DIRECT_SLICE where nobody does */

/*
 * What immediate.c, which does in one call what can be, tells hd_rma. hd_direct_seen_not: it is
 * known no longer. hd_direct_find: look up a piece of a region that is in one segment of it, and
 * keep it in *s; false: it is not there, or not to be reached like that. hd_direct_seen_of: where
 * that is kept. hd_direct_most: bytes that one call may copy.
 */
enum hd_direct_outcome {
	HD_DIRECT_DONE, /* it is done, and is to be completed */
	/*
	 * nothing has been done, or some of it that may be done once more, and it
	 * has to become an operation
	 */
	HD_DIRECT_NOT,
	HD_DIRECT_PACKET, /* the same, and going by packet is the better way for it now */
};
static inline void hd_direct_seen_not(struct hd_direct_seen *s)
{
	s->access = 0;
}
bool hd_direct_find(struct hd_direct_seen *s, const struct hd_ep *ep, const struct hd_dest *dest,
		    const struct hd_rma_seg *seg, uint32_t access);
uint64_t hd_direct_most(const struct hd_ep *ep, const struct hd_peer *peer);
static inline struct hd_direct_seen *hd_direct_seen_of(struct hd_link *link, uint32_t remote, uint32_t access)
{
	return &link->seen[(remote << 1 | (access & HD_PAGE_MR_READ)) & (HD_DIRECT_SEEN - 1)];
}

/*
 * hd_direct_all_taken: has the target taken in what must be there before the next operation of this
 * endpoint, as far as is known?
 */
static inline bool hd_direct_all_taken(const struct hd_ep *ep, const struct hd_peer *peer)
{
	if (hd_likely(!(ep->policy & (HD_EP_WAS | HD_EP_RMA_WHOLE))))
		return peer->requests == peer->requests_taken;
	if (hd_op_rma_fenced(ep, peer))
		return false;
	return ep->policy & HD_EP_WAS ? hd_credit_spent(peer) == peer->spent_taken
				      : peer->requests == peer->requests_taken;
}

/*
 * hd_direct_can: would hd_direct_try carry it out, as far as the tables tell?
 * Its destination is bound.
 */
bool hd_direct_can(const struct hd_op *op);

/*
 * hd_direct_before: is an operation of the same endpoint under way here, to the same peer, so
 * that this one has to wait?
 */
bool hd_direct_before(const struct hd_op *op);

/*
 * hd_direct_sent: a request of ours has been sent by packet. hd_direct_answered: the peer has
 * answered it, so it has taken in everything that was sent up to it, and nobody need ask. (Also for
 * messages; then nothing happens.)
 */
static inline void hd_direct_sent(struct hd_op *op)
{
	op->token_requests = ++op->t.pending.peer->requests;
	op->token_spent = hd_credit_spent(op->t.pending.peer);
}
static inline void hd_direct_answered(const struct hd_op *op)
{
	struct hd_peer *peer = op->t.pending.peer;

	if (!op->kind || (int32_t)(op->token_requests - peer->requests_taken) < 0)
		return;
	peer->requests_taken = op->token_requests;
	peer->spent_taken = op->token_spent;
}

/*
 * hd_direct_push: copy a slice for each endpoint that has operations under way to this peer;
 * returns how many got on.
 */
int hd_direct_push(struct hd_peer *peer);

/*
 * direct.c: one-sided operations by the initiator itself. hd_direct_try: carry this one out (it is
 * in no list). 0: under way, or done and freed; -EAGAIN: not yet, nothing has happened;
 * -EOPNOTSUPP: it has to go by packets.
 */
int hd_direct_try(struct hd_op *op);

#endif
