/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What each kind of packet means: the one place of the engine that names all that may come from the
 * other end, and who knows what to do then. hd_deliver is the one function that transports call
 * with a whole packet (transport.h), hd_deliver_begin and hd_deliver_end for one in pieces. Nobody
 * below calls it again: what has come is decoded and charged here, once.
 */
#include "engine/cm/cm.h"
#include "engine/core/core.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/rdm/rdm.h"
#include "engine/rma/rma.h"
#include "engine/xfer/xfer.h"

static int cts(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return hd_send_cts(link, pkt) < 0 ? hd_link_broken(link, "clear to send for no request") : 0;
}

static int finished(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	int rc;

	if (pkt->kind == HD_PKT_FIN && pkt->flags & HD_FIN_F_BACK && !(pkt->flags & HD_PKT_F_SSN)) {
		hd_rma_taken_back(link->peer, pkt->op);
		return 0;
	}
	rc = pkt->flags & HD_PKT_F_SSN ? hd_sq_answered(link, pkt) : hd_transfer_answered(link, pkt);
	return rc < 0 ? hd_link_broken(link, "answer to an operation that waits for none") : 0;
}

static int data(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_transfer *t;
	int gone;

	if (hd_intake_find(link, pkt, len, &t) < 0)
		return hd_link_broken(link, "data where none was asked for");
	hd_traffic_more_in(&link->peer->traffic, len);
	if (!t)
		return 0;
	if (hd_unlikely(t->ascends))
		gone = hd_iov_fill_ascending(t->iov, t->count, pkt->tag, payload, len);
	else
		gone = hd_iov_fill_at(t->iov, t->count, pkt->tag, payload, len);
	if (hd_unlikely(gone))
		hd_transfer_fail(t, HD_S_PROTECTION);
	else
		hd_intake_arrived(t, len);
	return 0;
}

static int dispatch_announce(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_announce list[16];
	size_t count = len / sizeof(list[0]);

	if (len % sizeof(list[0]) || count > 16)
		return hd_link_broken(link, "malformed announcement");
	memcpy(list, payload, len);
	if (hd_dest_announced(link->peer, list, count) < 0)
		return hd_link_broken(
			link, "announcement out of range, or of more endpoints than there is room for");
	return 0;
}

static int gone(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	if (!pkt->gen) { /* no endpoint has that: all that is left, when the link ends */
		hd_peer_exits(link->peer);
		return 0;
	}
	hd_requests_gone(link->peer, pkt->src, pkt->gen);
	hd_conns_orphan(link->peer, &(struct hd_announce){ .index = pkt->src, .gen = pkt->gen });
	hd_dest_gone(link->peer, pkt->src, pkt->gen);
	return 0;
}

/* ---- requests: what an endpoint is asked for ------------------------------------------------- */

/* What is judged of a request's payload, read once: what begins that of a WRITE; all of an RTS. */
union read_once {
	struct hd_rma_list list;
	struct hd_rts rts;
};

/* What the request costs; 0: it is malformed. */
static uint32_t request_units(const struct hd_pkt *pkt, const void *payload, size_t len,
			      union read_once *read)
{
	switch (pkt->kind) {
	case HD_PKT_RTS:
		if (len < offsetof(struct hd_rts, offer) || len > sizeof(struct hd_rts))
			return 0;
		memcpy(&read->rts, payload, len);
		return HD_UNITS_RTS;
	case HD_PKT_WRITE:
		return hd_rma_list_read(&read->list, payload, len) ? hd_rma_list_units(&read->list) : 0;
	case HD_PKT_READ:
	case HD_PKT_FLUSH:
		return HD_UNITS_RMA;
	case HD_PKT_ATOMIC:
		return len > HD_ATOMIC_PAYLOAD ? 0 : hd_units(len);
	default:
		return hd_units(len);
	}
}

/* What the request brings of the program's. */
static size_t request_bytes(const struct hd_pkt *pkt, size_t len, const struct hd_rma_list *list)
{
	if (pkt->kind == HD_PKT_RTS || pkt->kind == HD_PKT_READ || pkt->kind == HD_PKT_FLUSH)
		return 0;
	return pkt->kind == HD_PKT_WRITE ? hd_rma_list_data(list) : len;
}

static int dispatch_request(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *qp = hd_pkt_pair(link->node, pkt);
	union read_once read;
	const struct hd_arrival a = { .peer = link->peer,
				      .ep = qp ? qp : hd_pkt_target(link, pkt),
				      .pkt = pkt,
				      .payload = pkt->kind == HD_PKT_RTS ? &read.rts : payload,
				      .len = len,
				      .list = pkt->kind == HD_PKT_WRITE ? &read.list : NULL,
				      .units = request_units(pkt, payload, len, &read),
				      .src = hd_pkt_source(link->peer, pkt->src) };

	if (!a.units || !hd_peer_charge(a.peer, a.units))
		return hd_link_broken(link, "malformed or uncredited request");
	hd_traffic_in(&link->peer->traffic, request_bytes(pkt, len, &read.list));
	return qp ? hd_resp_request(&a) : hd_request_arrived(&a);
}

/* ---- all kinds ------------------------------------------------------------------------------- */

typedef int (*deliver_fn)(struct hd_link *, const struct hd_pkt *, const void *, size_t);

static const struct {
	deliver_fn fn;
	bool stranger; /* may come before the peer is known */
	/* may end what is under way: messages that have been acknowledged before are known to be */
	bool settles;
} handlers[HD_PKT_KINDS] = {
	[HD_PKT_HELLO] = { hd_hello_deliver, true },
	[HD_PKT_USE] = { hd_hello_deliver, true },
	[HD_PKT_ANNOUNCE] = { dispatch_announce, false, true },
	[HD_PKT_GONE] = { gone, false, true },
	[HD_PKT_RTS] = { dispatch_request },
	[HD_PKT_CTS] = { cts },
	[HD_PKT_DATA] = { data },
	[HD_PKT_FIN] = { finished },
	[HD_PKT_ACK] = { finished },
	[HD_PKT_CONNECT] = { hd_conn_called, false, true },
	[HD_PKT_ACCEPT] = { hd_conn_accepted, false, true },
	[HD_PKT_REJECT] = { hd_conn_rejected, false, true },
	[HD_PKT_READY] = { hd_conn_ready, false, true },
	[HD_PKT_LEAVE] = { hd_conn_left, false, true },
	[HD_PKT_WRITE] = { dispatch_request },
	[HD_PKT_PUT] = { dispatch_request },
	[HD_PKT_READ] = { dispatch_request },
	[HD_PKT_ATOMIC] = { dispatch_request },
	[HD_PKT_RESULT] = { hd_atomic_answered },
	[HD_PKT_ASK] = { hd_asked, false, true },
	[HD_PKT_TOLD] = { hd_ask_told, false, true },
	[HD_PKT_PATH] = { hd_path_heard, false, true },
	[HD_PKT_EPOCH] = { hd_epoch_heard, false, true },
	[HD_PKT_FLUSH] = { dispatch_request },
};

static int dispatch_other(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	uint8_t kind = pkt->kind;

	hd_publish(link->node); /* before anything is answered that has come behind */
	if (kind >= HD_PKT_KINDS || !handlers[kind].fn)
		return hd_link_broken(link, "packet of unknown kind");
	if (!handlers[kind].stranger && (!link->peer || link->peer->link != link))
		return hd_link_broken(link, "packet before the greeting was over");
	if (handlers[kind].settles)
		hd_acks_look(link->node, true);
	return handlers[kind].fn(link, pkt, payload, len);
}

/* ---- messages, which most packets are -------------------------------------------------------- */

/*
 * An eager message, which has been charged, that no usual endpoint takes: of a queue pair that has
 * begun anew since, or of none.
 */
static __attribute__((noinline)) int message_elsewhere(struct hd_link *link, const struct hd_pkt *pkt,
						       const struct iovec data)
{
	struct hd_ep *qp = hd_pkt_pair(link->node, pkt);

	if (hd_likely(qp != NULL))
		return hd_resp_message(link->peer, qp, pkt, data.iov_base, data.iov_len);
	return hd_message_refuse(link->peer, pkt, hd_units(data.iov_len), HD_S_REFUSED);
}

int hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	struct hd_ep *ep;

	hd_assert_locked(link->node);
	HD_TRACE_IN(link, pkt, len);
	if (hd_unlikely(pkt->kind != HD_PKT_EAGER))
		return dispatch_other(link, pkt, payload, len);
	if (hd_unlikely(!peer || !hd_peer_charge(peer, hd_units(len))))
		return hd_link_broken(link, "message without credit");
	hd_traffic_in(&peer->traffic, len);
	ep = hd_pkt_named(link->node, pkt);
	if (hd_unlikely(!ep || ep->watch)) {
		if (hd_likely(ep && ep->watch == HD_WATCH_PAIRED && ep->qp))
			return hd_resp_message(peer, ep, pkt, payload, len);
		if (!ep || !hd_ep_admits(ep, peer, pkt->src))
			return message_elsewhere(link, pkt, (struct iovec){ (void *)payload, len });
	}
	return hd_message_arrived(link, ep, pkt, payload, len);
}

/* ---- packets in pieces ----------------------------------------------------------------------- */

static void gathered_free(struct hd_link *link, struct hd_stream *s)
{
	if (s->whole.large)
		hd_bytes_put(&hd_rqs(link->node)->bytes, s->whole.large, s->len);
	s->whole.large = NULL;
}

/* What nobody could read at the other end: but for DATA it is as if nothing had come. */
static int gathered_void(struct hd_link *link, struct hd_stream *s)
{
	struct hd_transfer *t = NULL;

	gathered_free(link, s);
	if (s->pkt.kind == HD_PKT_DATA && hd_intake_find(link, &s->pkt, s->len, &t) < 0)
		return hd_link_broken(link, "data where none was asked for");
	if (t)
		hd_transfer_fail(t, HD_S_CANCELLED);
	if (s->units)
		hd_credit_uncharge(link->peer, s->units);
	return 0;
}

/*
 * What has been gathered is delivered; a message (it is for a queue pair) was
 * charged when it began to come.
 */
static int gathered_end(struct hd_link *link, struct hd_stream *s)
{
	const struct iovec data = { s->whole.large ? s->whole.large : s->whole.bytes, s->len };
	int rc;

	if (hd_unlikely(link->sink.status))
		return gathered_void(link, s);
	rc = s->units ? message_elsewhere(link, &s->pkt, data)
		      : hd_deliver(link, &s->pkt, data.iov_base, data.iov_len);

	gathered_free(link, s);
	return rc;
}

static void gathered_broken(struct hd_link *link, struct hd_stream *s, enum hd_status status)
{
	gathered_free(link, s);
}

static const struct hd_stream_kind gathered = { .end = gathered_end, .broken = gathered_broken };

/* Packets of most kinds, and what no sink takes as it is. */
static int gather(struct hd_link *link, struct hd_stream *s)
{
	bool writes = s->pkt.kind == HD_PKT_WRITE;
	bool may_be_long = writes || s->pkt.kind == HD_PKT_EAGER || s->pkt.kind == HD_PKT_DATA;
	unsigned char *to = s->whole.bytes;

	s->whole.large = NULL;
	if (s->len > sizeof(s->whole.bytes)) {
		if (!may_be_long || s->len > link->send_max || !link->peer || link->peer->link != link)
			return hd_link_broken(link, "packet too long for its kind");
		if (writes && !hd_peer_can(link->peer, hd_units(s->len)))
			return hd_link_broken(link, "write without credit");
		to = s->whole.large = hd_bytes_get(&hd_rqs(link->node)->bytes, s->len);
		if (!to)
			return hd_link_without_memory(link, "a packet in pieces");
	}
	hd_stream_set_kind(s, &gathered);
	hd_sink_iovs(&link->sink, &(struct iovec){ to, s->len }, 1, 0, s->len);
	return 0;
}

static int begin_message(struct hd_link *link, struct hd_stream *s)
{
	struct hd_peer *peer = link->peer;
	struct hd_ep *ep;

	hd_stream_set_units(s, hd_units(s->len));
	if (!peer || peer->link != link || s->len > link->send_max || !hd_peer_charge(peer, s->units))
		return hd_link_broken(link, "message without credit");
	hd_traffic_in(&peer->traffic, s->len);
	ep = hd_pkt_target(link, &s->pkt);
	if (ep)
		return hd_pieces_message(link, s, ep);
	return hd_pkt_pair(link->node, &s->pkt) ? gather(link, s) : hd_stream_drop(link, s);
}

static int begin_data(struct hd_link *link, struct hd_stream *s)
{
	struct hd_transfer *t;

	if (hd_intake_find(link, &s->pkt, s->len, &t) < 0)
		return hd_link_broken(link, "data where none was asked for");
	if (!t)
		return hd_stream_drop(link, s);
	if (!hd_intake_sinks(t))
		return gather(link, s);
	hd_traffic_more_in(&link->peer->traffic, s->len);
	return hd_stream_data(link, s, t);
}

int hd_deliver_begin(struct hd_link *link, const struct hd_pkt *pkt, size_t len)
{
	struct hd_stream *s = hd_stream_begin(link, pkt, len);

	hd_assert_locked(link->node);
	HD_TRACE_IN(link, pkt, len);
	if (!s)
		return hd_link_without_memory(link, "a packet in pieces");
	if (pkt->kind == HD_PKT_EAGER)
		return begin_message(link, s);
	return pkt->kind == HD_PKT_DATA ? begin_data(link, s) : gather(link, s);
}

int hd_deliver_end(struct hd_link *link)
{
	hd_assert_locked(link->node);
	return hd_stream_end(link);
}
