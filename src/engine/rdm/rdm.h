/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Matched messages and datagrams of endpoints without a number. deliver.h and pieces.h take what
 * arrives, unexpected.h has what waits for its receive, order.h receives that are carried out one
 * by one, backlog.h sends that could not start; here is how they post.
 *
 * Called by dispatch, ep, cm and node; qp does not know it. With the node's lock; nothing
 * blocks. It has no upcalls.
 */
#ifndef HD_ENGINE_RDM_H
#define HD_ENGINE_RDM_H

#include "engine/rdm/backlog.h"
#include "engine/rdm/deliver.h"
#include "engine/rdm/order.h"
#include "engine/rdm/pieces.h"
#include "engine/rdm/unexpected.h"
#include "engine/rma/rma.h"

/* How matched endpoints post. */
extern const struct hd_poster hd_rdm_poster;

/*
 * hd_op_later: the destination cannot be reached yet: keep the operation there. Negative: it
 * could not be, and is freed.
 */
int hd_op_later(struct hd_op *op);

/*
 * hd_op_start: send what opens the operation's protocol. 0: under way, waiting behind a fence, or
 * done and freed already; -EAGAIN: nothing has happened, try again; -ENOTCONN: the link has just
 * broken, -ENOMEM: likewise nothing has happened. The destination is bound.
 */
int hd_op_start(struct hd_op *op);

/*
 * dgram.c: sends of HD_EP_DROP endpoints that the short way of send.c does not take. hd_dgram_send
 * never answers that there is no room but in the CQ.
 */
int hd_dgram_send(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);

/*
 * hd_dgram_start: hd_op_start for them: what has waited goes, or is lost, and is freed. -EAGAIN:
 * the link is full, nothing has happened.
 */
int hd_dgram_start(struct hd_op *op);

/* hd_matched_begin (deliver.c): hd_rndv_take and hd_intake_begin for a matched endpoint. */
void hd_matched_begin(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r, const struct hd_msg *m,
		      const void *offer, size_t offer_len);

/*
 * hd_deliver_cast (deliver.c): a message to a group meets r; it is lost where it would have to
 * wait and there is no memory.
 */
void hd_deliver_cast(struct hd_ep *ep, struct hd_recv *r, const struct hd_pkt *pkt, uint32_t src,
		     const void *payload, size_t len);

#endif
