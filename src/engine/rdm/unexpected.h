/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Messages that came before their receive: how they come to wait, are handed over, claimed, and
 * meet a receive. What waits is in a queue of rq's, or in a list of its endpoint's. With the
 * node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_UNEXPECTED_H
#define HD_ENGINE_UNEXPECTED_H

#include "engine/rq/rq.h"

/*
 * buffered.c: messages that are handed over instead of received.
 *
 * hd_buffered_open: with the queue, which sees to its end.
 * hd_buffered_take: hand this message over (or keep it in line until that can be done): in no
 * queue, or about to be taken out of it; ctx of the tag that it matched. It may be gone afterwards.
 * -ENOMEM: nothing has happened.
 * hd_buffered_arrived: the last byte of a message that came in pieces is here, or (with
 * a status) never will be.
 * hd_buffered_is_broken: it has been taken, and came to nothing.
 * hd_buffered_rebind: the endpoint of this queue has other limits, and a CQ (heard), or has
 * none, and nobody is told.
 * hd_buffered_pause: while on, nobody is told anything and nothing is fetched: an
 * endpoint is being taken apart.
 */
int hd_buffered_open(struct hd_rq *rq, const struct hd_buffered_attr *attr);
int hd_buffered_take(struct hd_msg *m, void *ctx);
void hd_buffered_arrived(struct hd_msg *m, enum hd_status status);
bool hd_buffered_is_broken(const struct hd_msg *m);
void hd_buffered_pause(struct hd_rq *rq, bool on);
void hd_buffered_rebind(struct hd_rq *rq, const struct hd_buffered_attr *attr, bool heard);
bool hd_buffered_is_deaf(const struct hd_rq *rq);

/*
 * hd_msg_claim, hd_msg_unclaim (claim.c): enter it in the list of its endpoint's claims, take it
 * out. hd_claims_drop: the endpoint closes.
 */
void hd_msg_claim(struct hd_msg *m);
void hd_msg_unclaim(struct hd_msg *m);
void hd_claims_drop(struct hd_ep *ep);
/* link's observer, see link/observers.h */
void hd_claims_ended(struct hd_peer *peer, enum hd_status status);

/*
 * recv.c. hd_recv_give: the receive r, in no queue, gets m, in none, in its turn; hd_recv_meet: at
 * once. hd_recv_fail: it completes with this status instead, and is freed.
 * hd_msg_arrived: the last byte of a message that came in pieces is here. hd_msg_broken: it will
 * never be whole. hd_msg_forget: the endpoint closes, and the message had met a receive while it
 * was coming in: forget both.
 */
void hd_recv_give(struct hd_recv *r, struct hd_msg *m);
void hd_recv_meet(struct hd_recv *r, struct hd_msg *m);
void hd_recv_fail(struct hd_recv *r, struct hd_msg *m, enum hd_status status);
void hd_msg_arrived(struct hd_msg *m);
void hd_msg_broken(struct hd_msg *m, enum hd_status status);
void hd_msg_forget(struct hd_msg *m);

/*
 * hd_recvs_joined: link's observer, see link/observers.h. Receives that were posted for one name of
 * the endpoint get what has come under another. Looks once, for each further name that the program
 * has for an endpoint, at what waits from there.
 */
void hd_recvs_joined(struct hd_dest *dest);

#endif
