/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The order of received messages and of their bytes, for endpoints that ask for it:
 * fi_endpoint(3), comp_order and msg_order. Everything here needs the node's lock; nothing
 * here is called for others.
 */
#ifndef HD_ENGINE_ORDER_H
#define HD_ENGINE_ORDER_H

#include "engine/rq/rq.h"

/*
 * Receives with HD_RECV_ORDERED are carried out one after the other for each endpoint, in the order
 * in which messages met them: a message that meets one while another is coming in is deferred, in
 * ep->deferred, with its receive as m->waiter; it counts as claimed meanwhile.
 *
 * hd_order_idle: a message may be received at once. hd_order_meet: the receive r, in no queue, gets
 * m, in no queue, when it is its turn.
 * hd_order_next: carry on; hd_order_done: what was coming in has ended. hd_order_forget: m is in no
 * list any more. hd_order_drop: the endpoint closes: forget what is deferred, without completions.
 * hd_order_hold, hd_order_flush: the endpoint is connected no longer: between the two nothing is
 * carried on; then what is deferred completes, in order: what has come whole as usual, the rest in
 * error.
 */
static inline bool hd_order_idle(const struct hd_ep *ep)
{
	return !ep->rx_busy && STAILQ_EMPTY(&ep->deferred);
}
void hd_order_meet(struct hd_recv *r, struct hd_msg *m);
void hd_order_next(struct hd_ep *ep);
void hd_order_done(struct hd_ep *ep);
void hd_order_forget(struct hd_msg *m);
void hd_order_drop(struct hd_ep *ep);
void hd_order_hold(struct hd_ep *ep);
void hd_order_flush(struct hd_ep *ep, enum hd_status status);

#endif
