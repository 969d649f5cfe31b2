/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Fences of matched endpoints: see fence.c. */
#ifndef HD_ENGINE_FENCE_H
#define HD_ENGINE_FENCE_H

#include "engine/rq/rq.h"
#include "engine/xfer/op.h"
#include "engine/xfer/state.h"

/*
 * Every operation of an endpoint with HD_EP_FENCE passes one gate, in hd_op_start; its flags have
 * HD_SEND_GATED until it has.
 *
 * hd_fence_open: may a message or operation with these flags go at once, without becoming an
 * operation that waits? Only when the destination is bound.
 * hd_fence_pass: the gate. 0: go on; 1: it waits in ep->order->fenced, and comes back through
 * peer->queue; -ENOMEM: no copy could be made of what HD_SEND_INJECT promised to take over,
 * and nothing has happened.
 * hd_fence_ended: a send operation is about to be freed: it may be what a fence waits for.
 * hd_fence_fail: what waits for this peer (and this destination, unless NULL)
 * completes in error, a status.
 * hd_fence_abandon: the endpoint closes: what waits ends without completions.
 */
bool hd_fence_open(const struct hd_ep *ep, const struct hd_dest *dest, uint32_t flags);
int hd_fence_pass(struct hd_op *op);
void hd_fence_ended(const struct hd_op *op);
void hd_fence_fail(struct hd_peer *peer, struct hd_dest *dest, enum hd_status status);
void hd_fence_abandon(struct hd_ep *ep);
#ifndef NDEBUG
void hd_fence_check(const struct hd_ep *ep); /* of hd_ep_order_check */
#endif

#endif
