/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See order.h. */
#include "engine/rdm/order.h"
#include "engine/rdm/unexpected.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

void hd_order_meet(struct hd_recv *r, struct hd_msg *m)
{
	m->waiter = r;
	m->deferred = true;
	hd_msg_claim(m);
	STAILQ_INSERT_TAIL(&m->ep->deferred, m, defer);
	hd_order_next(m->ep);
}

void hd_order_forget(struct hd_msg *m)
{
	STAILQ_REMOVE(&m->ep->deferred, m, hd_msg, defer);
	m->deferred = false;
	hd_msg_unclaim(m);
}

/* Take the oldest out; returns its receive. */
static struct hd_recv *unpark(struct hd_msg *m)
{
	struct hd_recv *r = m->waiter;

	hd_order_forget(m);
	m->waiter = NULL;
	return r;
}

void hd_order_next(struct hd_ep *ep)
{
	struct hd_msg *m;

	if (ep->rx_resuming)
		return; /* whoever holds it carries on */
	ep->rx_resuming = true;
	while (!ep->rx_busy && (m = STAILQ_FIRST(&ep->deferred)) && !m->arriving) {
		struct hd_recv *r = unpark(m);

		if (m->peer && m->peer->state == HD_PEER_DEAD)
			hd_msg_orphan(m);
		ep->rx_busy = m->kind == HD_PKT_RTS;
		hd_recv_meet(r, m);
	}
	ep->rx_resuming = false;
}

void hd_order_done(struct hd_ep *ep)
{
	ep->rx_busy = false;
	hd_order_next(ep);
}

void hd_order_drop(struct hd_ep *ep)
{
	struct hd_msg *m;

	while ((m = STAILQ_FIRST(&ep->deferred))) {
		hd_recv_drop(ep->node, unpark(m));
		hd_msg_discard(m, HD_S_REFUSED);
	}
}

void hd_order_hold(struct hd_ep *ep)
{
	ep->rx_resuming = true;
}

/* Whatever is missing of this message will not come. */
static void fail(struct hd_recv *r, struct hd_msg *m, enum hd_status status)
{
	if (m->arriving)
		hd_stream_forget(m->peer->link, m);
	hd_recv_fail(r, m, status);
	hd_msg_discard(m, status);
}

void hd_order_flush(struct hd_ep *ep, enum hd_status status)
{
	struct hd_msg *m;

	while ((m = STAILQ_FIRST(&ep->deferred))) {
		struct hd_recv *r = unpark(m);

		if (m->arriving || m->kind == HD_PKT_RTS)
			fail(r, m, status);
		else
			hd_recv_meet(r, m);
	}
	ep->rx_resuming = false;
}
