/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Long messages: both halves of rendezvous. frames.c is the sender's, rndv.c the receiver's. */
#ifndef HD_ENGINE_RNDV_H
#define HD_ENGINE_RNDV_H

#include "engine/rq/recv.h"
#include "engine/xfer/op.h"

/* ---- frames.c ---- */

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

#endif
