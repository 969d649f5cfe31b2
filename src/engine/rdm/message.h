/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Sends and arrivals between the engine's files: operations, fences, datagrams, rendezvous, streams. */
#ifndef HD_ENGINE_MESSAGE_H
#define HD_ENGINE_MESSAGE_H

#include "base/iov.h"
#include "engine/internal.h"
#include "engine/link/pending.h"

/* send.c, op.c; what an operation is made of, and what one send asks for */
struct hd_taken;
struct hd_received;
struct hd_send_args {
	const struct iovec *iov;
	int count;
	uint64_t tag, imm;
	void *ctx;
	uint32_t flags; /* enum hd_send_flag */
};
#define HD_SEND_UNTOLD (1u << 16) /* has been completed already: ends without a word */
#define HD_SEND_LINED \
	(1u << 17) /* in the line of a queue pair, which tells of it; `before` is its number there */

/*
 * Operations among what waits for answers (link/pending.h). hd_op_number: its number; negative: none. hd_op_by_id: the one that a peer names, or NULL.
 * HD_OPS_FOREACH: those under way with a peer, by age.
 */
extern const struct hd_pending_ops hd_op_pending;
static inline struct hd_op *hd_op_of(struct hd_pending *pending)
{
	return hd_container(pending, struct hd_op, pending);
}
static inline int hd_op_number(struct hd_node *node, struct hd_op *op)
{
	return hd_pending_number(node, &op->pending, &hd_op_pending);
}
static inline struct hd_op *hd_op_by_id(const struct hd_node *node, uint32_t id)
{
	struct hd_pending *pending = hd_pending_find(node, id, &hd_op_pending);

	return pending ? hd_op_of(pending) : NULL;
}
static inline struct hd_op *hd_op_among(struct hd_pending *pending)
{
	while (pending && pending->ops != &hd_op_pending)
		pending = TAILQ_NEXT(pending, under);
	return pending ? hd_op_of(pending) : NULL;
}
static inline struct hd_op *hd_ops_first(const struct hd_peer *peer)
{
	return hd_op_among(TAILQ_FIRST(&peer->pending));
}
static inline struct hd_op *hd_ops_next(const struct hd_op *op)
{
	return hd_op_among(TAILQ_NEXT(&op->pending, under));
}
#define HD_OPS_FOREACH(op, peer) for (op = hd_ops_first(peer); op; op = hd_ops_next(op))

/*
 * How an endpoint posts: matched ones (rdm/send.c), or queue pairs, which have a send queue (qp/sq.c). Called with the node's lock.
 *
 * send: hd_send of what does not go the short way. room: may another operation to this destination be made? 0, -EAGAIN, -ENOTRECOVERABLE, -ENOTCONN.
 * post: start it, or keep it until that can be. 0; negative: refused, and the operation is freed.
 * idle: the destination, if nothing is under way to it that an operation done at once would overtake; else NULL. Only where there is a send queue.
 * ended: one with HD_SEND_LINED has ended; it is freed after this.
 */
struct hd_poster {
	int (*send)(struct hd_ep *ep, const struct hd_send_args *a);
	int (*room)(struct hd_ep *ep, struct hd_dest *dest);
	int (*post)(struct hd_op *op);
	struct hd_dest *(*idle)(struct hd_ep *ep);
	void (*ended)(struct hd_op *op, int err);
};
extern const struct hd_poster hd_rdm_poster;

/*
 * hd_op_make: an operation of ours that is in no list yet, and holds its destination, with what its completion needs left to be filled in. NULL:
 * no memory.
 */
struct hd_op *hd_op_make(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);

/* hd_op_later: the destination cannot be reached yet: keep the operation there. Negative: it could not be, and is freed. */
int hd_op_later(struct hd_op *op);

/* hd_send_finish: a send of len bytes has gone as far as it has to. */
void hd_send_finish(struct hd_ep *ep, const struct hd_send_args *a, uint64_t len);

/*
 * op.c, for all kinds of operations; hd_op_header, hd_op_start and hd_op_announce are in send.c:
 *
 * hd_message_start: as hd_op_start for a message that has nothing to wait for. hd_op_announce: the same, announced however short it is.
 * hd_op_room, hd_op_post: see struct hd_poster.
 * hd_op_iov: its segments, op->count of them.
 */
static inline int hd_op_room(struct hd_ep *ep, struct hd_dest *dest)
{
	return ep->poster->room(ep, dest);
}
static inline int hd_op_post(struct hd_op *op)
{
	return op->ep->poster->post(op);
}
static inline const struct iovec *hd_op_iov(const struct hd_op *op)
{
	return op->more ? op->more : op->iov;
}

/* hd_op_ascends: a long message whose receive has HD_RECV_ASCENDING. */
static inline bool hd_op_ascends(const struct hd_op *op)
{
	return !op->dest && !op->msg && op->flags & HD_RECV_ASCENDING;
}

/* hd_op_is_read, hd_op_is_write: a one-sided operation of ours that is one. */
static inline bool hd_op_is_read(const struct hd_op *op)
{
	return op->kind && op->kind->reads;
}
static inline bool hd_op_is_write(const struct hd_op *op)
{
	return op->kind && op->kind->writes;
}

/* hd_op_under: it is under way at its peer, in this state. */
void hd_op_under(struct hd_op *op, enum hd_op_state state);

/* hd_complete_now: what never became an operation has been done. */
struct hd_done {
	void *ctx;
	uint64_t len;
	uint64_t tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	struct hd_cntr *cntr;
};
void hd_complete_now(struct hd_ep *ep, const struct hd_done *d);

/*
 * hd_op_complete: one of the endpoint's operations has ended like this, err 0 or a positive errno: complete and count it. hd_op_complete_work: the
 * same of one with HD_SEND_WORK.
 */
struct hd_ended {
	void *ctx;
	uint64_t len, tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	int err;
	struct hd_cntr *cntr;
};
void hd_op_complete(struct hd_ep *ep, const struct hd_ended *how);
void hd_op_complete_work(struct hd_ep *ep, const struct hd_ended *how);
/* hd_op_gate: a write that is under way: messages of its endpoint wait until it is done, where HD_EP_SAW says so. Once is enough. */
void hd_op_gate(struct hd_op *op);

/* hd_op_header: the head of a packet of this kind about it. */
void hd_op_header(const struct hd_op *op, uint8_t kind, struct hd_pkt *pkt);

/*
 * hd_op_start: send what opens the operation's protocol. 0: under way, waiting behind a fence, or done and freed already; -EAGAIN:
 * nothing has happened, try again; -ENOTCONN: the link has just broken, -ENOMEM: likewise nothing has happened. The destination is
 * bound.
 */
int hd_op_start(struct hd_op *op);
int hd_message_start(struct hd_op *op);
int hd_op_announce(struct hd_op *op);

/* hd_op_free: forget an operation that is in no list any more: one of ours, or a peer's that is not a message. */
void hd_op_free(struct hd_op *op);

/* hd_op_copy: take the payload over, so that the caller's buffer is free: inject while nothing can be sent. 0 or -ENOMEM. */
int hd_op_copy(struct hd_op *op);

/*
 * hd_op_done: an operation has ended, err 0 or a positive errno: completes it as asked for and frees it. It may be in any state
 * but HD_OP_QUEUED (whoever takes it out of that queue sets another).
 */
void hd_op_done(struct hd_op *op, int err);

/*
 * hd_frames_push: let the operations that send frames to this peer take turns, a frame each, until the link is full. Returns the
 * number of frames sent. Some stay in the list for as long as the link is full or reads their frame.
 */
int hd_frames_push(struct hd_peer *peer);

/* hd_frames_left: the operation has sent its last frame, or is in peer->framing no longer: who is the next of its queue pair? */
void hd_frames_left(struct hd_op *op);

/*
 * hd_send_cts: the other end asks for `tag` bytes of our operation in frames. Negative: it had no right to. An operation that has
 * been given up meanwhile is answered with FIN, so that nobody waits for it.
 */
int hd_send_cts(struct hd_link *link, const struct hd_pkt *pkt);

/* hd_op_abandon: the endpoint closes: end the operation without a completion. */
void hd_op_abandon(struct hd_op *op);

/* hd_op_stop: the same for one of ours in any state, also while what it reads comes in. */
void hd_op_stop(struct hd_op *op);

/* hd_op_cancel: the endpoint is connected no longer: end the operation in error, a positive errno. */
void hd_op_cancel(struct hd_op *op, int err);

/* hd_op_answered: ACK or FIN for one of our operations. Negative: not one that could be answered now. */
int hd_op_answered(struct hd_link *link, const struct hd_pkt *pkt);

/*
 * fence.c. Every operation of an endpoint with HD_EP_FENCE passes one gate, in hd_op_start; its flags have HD_SEND_GATED until it has.
 *
 * hd_fence_open: may a message or operation with these flags go at once, without becoming an operation that waits? Only when the
 * destination is bound.
 * hd_fence_pass: the gate. 0: go on; 1: it waits in ep->fenced, and comes back through peer->queue; -ENOMEM: no copy could be made
 * of what HD_SEND_INJECT promised to take over, and nothing has happened.
 * hd_fence_ended: a send operation is about to be freed: it may be what a fence waits for.
 * hd_fence_fail: what waits for this peer (and this destination, unless NULL) completes in error, a positive errno.
 * hd_fence_abandon: the endpoint closes: what waits ends without completions.
 */
bool hd_fence_open(const struct hd_ep *ep, const struct hd_dest *dest, uint32_t flags);
int hd_fence_pass(struct hd_op *op);
void hd_fence_ended(const struct hd_op *op);
void hd_fence_fail(struct hd_peer *peer, const struct hd_dest *dest, int err);
void hd_fence_abandon(struct hd_ep *ep);

/*
 * dgram.c: sends of HD_EP_DROP endpoints that the short way of send.c does not take. hd_dgram_send never answers that there is no room
 * but in the CQ.
 */
int hd_dgram_send(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);

/* hd_dgram_start: hd_op_start for them: what has waited goes, or is lost, and is freed. -EAGAIN: the link is full, nothing has happened. */
int hd_dgram_start(struct hd_op *op);
/* hd_dgram_gone: one has gone, or is lost: complete it; a queue pair's, and an ordered one, when those before it have. */
void hd_dgram_gone(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a, size_t len);

/* group.c: in a forked child, memberships are the parent's. Another thread may have been in the middle of anything. */
void hd_groups_forked(struct hd_node *node);

/* ---- rndv.c ---- */

/*
 * hd_intake_begin: get the op->want bytes that the peer's operation op->remote has for us, by its offer (offer_len 0: there is none) or
 * in frames. The operation is in peer->pending.
 */
void hd_intake_begin(struct hd_op *op, const void *offer, size_t offer_len);

/*
 * hd_rndv_take: the receive r, in no queue and consumed, has met the request m of this peer (its tag, len, imm, src, op and flags count; peer NULL:
 * the sender is gone). r becomes an operation of this kind, for hd_intake_begin. NULL: there is no memory, or no sender: r has completed in error.
 * hd_rndv_describe: what its completion with err tells. hd_rndv_tell_sender: how it has ended.
 */
struct hd_op *hd_rndv_take(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r, const struct hd_msg *m,
			   const struct hd_op_kind *kind);
void hd_rndv_describe(const struct hd_op *op, int err, struct hd_taken *t, struct hd_received *m);
void hd_rndv_tell_sender(const struct hd_op *op, int err);

/*
 * hd_intake_find: the operation that a DATA packet of len bytes is for. 0 and *out, which is NULL when the operation has been given
 * up meanwhile; negative: this peer has no business there.
 */
int hd_intake_find(struct hd_link *link, const struct hd_pkt *pkt, size_t len, struct hd_op **out);

/* hd_intake_arrived: len more bytes of the operation are in its buffer. */
void hd_intake_arrived(struct hd_op *op, size_t len);

/*
 * hd_recv_op_done: the receiving operation has ended; err is 0 or a positive errno that the sender or the link gave. Completes the
 * receive, and tells the sender when all went well.
 */
void hd_recv_op_done(struct hd_op *op, int err);

/* hd_recv_op_abandon: the endpoint closes: stop, tell the sender, complete nothing. */
void hd_recv_op_abandon(struct hd_op *op);

/* hd_recv_ops_rekey: messages of this peer that are being fetched are from new_id, if they were from old_id. */
void hd_recv_ops_rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id);

/*
 * hd_rndv_fetch: an operation of this kind that fetches the first len bytes of an announced message to `at`, for hd_intake_begin. NULL without memory.
 * hd_rndv_fetch_stop: nothing more is written there, nobody is told.
 */
struct hd_op *hd_rndv_fetch(struct hd_msg *m, void *at, uint32_t len, const struct hd_op_kind *kind);
void hd_rndv_fetch_stop(struct hd_op *op);

/* hd_matched_begin (deliver.c): hd_rndv_take and hd_intake_begin for a matched endpoint. */
void hd_matched_begin(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r, const struct hd_msg *m,
		      const void *offer, size_t offer_len);

/* hd_deliver_cast (deliver.c): a message to a group meets r; it is lost where it would have to wait and there is no memory. */
void hd_deliver_cast(struct hd_ep *ep, struct hd_recv *r, const struct hd_pkt *pkt, uint32_t src,
		     const void *payload, size_t len);

#endif
