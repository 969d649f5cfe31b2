/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Receive queues between the engine's files: their messages, what is handed over, limits. More in recv.h. */
#ifndef HD_ENGINE_QUEUE_H
#define HD_ENGINE_QUEUE_H

#include "engine/internal.h"

/* recv.c, rq.c */
void hd_rq_drop_posted(struct hd_rq *rq, struct hd_ep *ep);
void hd_rq_drop_waiting(struct hd_rq *rq, struct hd_ep *ep);
void hd_rq_flush(struct hd_ep *ep, int err);
/* link's observers, see link/observers.h */
void hd_rqs_ended(struct hd_peer *peer, int err);
void hd_rqs_rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id);
void hd_rq_forget(struct hd_node *node, uint32_t id);

/*
 * buffered.c: messages that are handed over instead of received.
 *
 * hd_buffered_open, hd_buffered_close: with the queue; close after its endpoints.
 * hd_buffered_take: hand this message over (or keep it in line until that can be done): in no queue, or about to be taken out of it; ctx
 * of the tag that it matched. It may be gone afterwards. -ENOMEM: nothing has happened.
 * hd_buffered_arrived: the last byte of a message that came in pieces is here, or (a positive errno) never will be.
 * hd_buffered_fetched: the same for the beginning of an announced message.
 * hd_buffered_is_broken: it has been taken, and came to nothing.
 * hd_buffered_freed: a message that was taken is about to be freed.
 * hd_buffered_rebind: the endpoint of this queue has other limits, and a CQ (heard), or has none, and nobody is told.
 * hd_buffered_pause: while on, nobody is told anything and nothing is fetched: an endpoint is being taken apart.
 */
int hd_buffered_open(struct hd_rq *rq, const struct hd_buffered_attr *attr);
void hd_buffered_close(struct hd_rq *rq);
int hd_buffered_take(struct hd_msg *m, void *ctx);
void hd_buffered_arrived(struct hd_msg *m, int err);
void hd_buffered_fetched(struct hd_msg *m, int err);
bool hd_buffered_is_broken(const struct hd_msg *m);
void hd_buffered_freed(struct hd_msg *m);
void hd_buffered_pause(struct hd_rq *rq, bool on);
void hd_buffered_rebind(struct hd_rq *rq, const struct hd_buffered_attr *attr, bool heard);
bool hd_buffered_is_deaf(const struct hd_rq *rq);

/*
 * rq.c and recv.c, of single messages. hd_msg_make (deliver.c): a message in the engine's memory, in no queue; data NULL: it comes
 * through the sink; peer NULL: it came from a group, nobody has paid for it, and it is counted with those whose peer is gone. NULL: no
 * memory, or not for that. hd_msg_free: one that is in no queue; its credit goes back. hd_msg_answer: to its sender, if that is still there. hd_msg_claim, hd_msg_unclaim (claim.c): enter it in the list of its endpoint's claims, take it out. hd_msg_discard: one in
 * no queue is not wanted; its sender is told, where it waits for an answer. hd_recv_meet: the receive r, in no queue, gets m, in none.
 * hd_recv_fail: it completes in error, a positive errno, instead, and is freed.
 */
struct hd_msg *hd_msg_make(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room);
void hd_msg_free(struct hd_msg *m);
void hd_dgram_taken(struct hd_msg *m);
void hd_msg_answer(struct hd_msg *m, uint8_t kind, int err);
void hd_msg_claim(struct hd_msg *m);
void hd_msg_unclaim(struct hd_msg *m);
void hd_msg_discard(struct hd_msg *m, int err);
void hd_recv_meet(struct hd_recv *r, struct hd_msg *m);
void hd_recv_fail(struct hd_recv *r, struct hd_msg *m, int err);
void hd_msg_arrived(struct hd_msg *m);
void hd_msg_broken(struct hd_msg *m, int err);
void hd_msg_forget(struct hd_msg *m);
void hd_claims_drop(struct hd_ep *ep);
void hd_claims_ended(struct hd_peer *peer, int err);

/* limit.c: look at all that are armed; returns how many were told of. */
int hd_limits_look(struct hd_node *node);
int hd_marks_look(struct hd_node *node); /* mark.c: the same */

#endif
