/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What each kind of packet means: the one place of the engine that names all that may come from the other end, and who knows what to do then.
 * Eager messages, which are most of them, come this way no further than deliver.c.
 */
#include "engine/dispatch/dispatch.h"
#include "engine/cm/ask.h"
#include "engine/cm/conn.h"
#include "engine/link/peer.h"
#include "engine/qp/qp.h"
#include "engine/rdm/deliver.h"
#include "engine/rdm/order.h"
#include "engine/rma/atomic.h"
#include "engine/rma/rma.h"

static int cts(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return hd_send_cts(link, pkt) < 0 ? hd_link_broken(link, "clear to send for no request") : 0;
}

static int finished(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return hd_op_answered(link, pkt) < 0
		       ? hd_link_broken(link, "answer to an operation that waits for none")
		       : 0;
}

static int data(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_op *op;

	if (hd_intake_find(link, pkt, len, &op) < 0)
		return hd_link_broken(link, "data where none was asked for");
	if (!op)
		return 0;
	if (hd_unlikely(hd_op_ascends(op)))
		hd_iov_fill_ascending(hd_op_iov(op), op->count, pkt->tag, payload, len);
	else
		hd_iov_fill_at(hd_op_iov(op), op->count, pkt->tag, payload, len);
	hd_intake_arrived(op, len);
	return 0;
}

static int dispatch_one_sided(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	int rc = pkt->kind == HD_PKT_PUT     ? hd_rma_put(link, pkt, payload, len)
		 : pkt->kind == HD_PKT_WRITE ? hd_rma_write(link, pkt, payload, len)
					     : hd_rma_read(link, pkt, payload, len);

	return rc < 0 ? hd_link_broken(link, "malformed or uncredited one-sided operation") : 0;
}

static int dispatch_announce(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_announce list[16];
	size_t count = len / sizeof(list[0]);

	if (len % sizeof(list[0]) || count > 16)
		return hd_link_broken(link, "malformed announcement");
	memcpy(list, payload, len);
	if (hd_dest_announced(link->peer, list, count) < 0)
		return hd_link_broken(link, "announcement out of range");
	return 0;
}

static int gone(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	hd_requests_gone(link->peer, pkt->src, pkt->gen);
	hd_conns_orphan(link->peer, &(struct hd_announce){ .index = pkt->src, .gen = pkt->gen });
	hd_dest_gone(link->peer, pkt->src, pkt->gen);
	return 0;
}

typedef int (*deliver_fn)(struct hd_link *, const struct hd_pkt *, const void *, size_t);

static const struct {
	deliver_fn fn;
	bool stranger; /* may come before the peer is known */
	bool asks;     /* something of an endpoint, which may not be ready for it */
	bool settles; /* may end what is under way: messages that have been accepted before are known to be */
} handlers[HD_PKT_KINDS] = {
	[HD_PKT_HELLO] = { hd_hello_deliver, true },
	[HD_PKT_USE] = { hd_hello_deliver, true },
	[HD_PKT_ANNOUNCE] = { dispatch_announce, false, false, true },
	[HD_PKT_GONE] = { gone, false, false, true },
	[HD_PKT_EAGER] = { hd_deliver, false },
	[HD_PKT_RTS] = { hd_deliver_rts, false, true },
	[HD_PKT_CTS] = { cts, false },
	[HD_PKT_DATA] = { data, false },
	[HD_PKT_FIN] = { finished, false },
	[HD_PKT_ACK] = { finished, false },
	[HD_PKT_CONNECT] = { hd_conn_called, false, false, true },
	[HD_PKT_ACCEPT] = { hd_conn_accepted, false, false, true },
	[HD_PKT_REJECT] = { hd_conn_rejected, false, false, true },
	[HD_PKT_READY] = { hd_conn_ready, false, false, true },
	[HD_PKT_LEAVE] = { hd_conn_left, false, false, true },
	[HD_PKT_WRITE] = { dispatch_one_sided, false, true },
	[HD_PKT_PUT] = { dispatch_one_sided, false, true },
	[HD_PKT_READ] = { dispatch_one_sided, false, true },
	[HD_PKT_ATOMIC] = { hd_atomic_arrived, false, true },
	[HD_PKT_RESULT] = { hd_atomic_answered, false },
	[HD_PKT_ASK] = { hd_asked, false, false, true },
	[HD_PKT_TOLD] = { hd_ask_told, false, false, true },
	[HD_PKT_PATH] = { hd_path_heard, false, false, true },
	[HD_PKT_LIFE] = { hd_epoch_heard, false, false, true },
};

int hd_dispatch_kind(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return handlers[pkt->kind].fn(link, pkt, payload, len);
}

int hd_dispatch(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	uint8_t kind = pkt->kind;
	struct hd_ep *ep;

	hd_acks_publish(link->node); /* before anything is answered that has come behind */
	if (kind >= HD_PKT_KINDS || !handlers[kind].fn)
		return hd_link_broken(link, "packet of unknown kind");
	if (!handlers[kind].stranger && (!link->peer || link->peer->link != link))
		return hd_link_broken(link, "packet before the greeting was over");
	if (handlers[kind].settles)
		hd_acks_look(link->node, true);
	if (handlers[kind].asks && (ep = hd_pkt_pair(link->node, pkt)))
		return hd_resp_request(link, ep, pkt, payload, len);
	return handlers[kind].fn(link, pkt, payload, len);
}
