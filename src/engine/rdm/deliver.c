/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What arrives for endpoints that match. Eager messages go straight into the posted buffer, or into
 * one of exact size when nothing matches. For a packet in pieces see dispatch.c.
 */
#include "engine/rdm/deliver.h"
#include "base/copy.h"
#include "base/minus.h"
#include "engine/event/event.h"
#include "engine/rdm/order.h"
#include "engine/rdm/rdm.h"
#include "engine/rdm/unexpected.h"
#include "engine/rma/rma.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

/* ---- eager messages -------------------------------------------------------------------------- */

/*
 * A datagram that nothing was posted for is kept as long as a socket would have room for it: what
 * Linux gives one, in which each takes some more than its bytes. True: it shall be. Queue pairs
 * keep none, as cards do, and nothing is kept for somebody who waits for an answer.
 */
#define SOCKET_BYTES 212992u
bool hd_dgram_keeps(const struct hd_ep *ep, const struct hd_pkt *pkt, size_t len)
{
	return !ep->qp && !(pkt->flags & HD_PKT_F_ANSWERED) &&
	       len + HD_EARLY_MORE <= hd_minus(SOCKET_BYTES, ep->rq->early);
}

struct hd_msg *hd_dgram_keep(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			     const void *data, size_t len)
{
	struct hd_msg *m = hd_msg_keep(ep, peer, pkt, src, data, len);

	if (!m)
		return NULL;
	hd_msg_mark_early(m, (uint32_t)len);
	return m;
}

/*
 * Hand it over: an eager message, a request to send (its offer is the data), or one that comes
 * through the sink (data NULL).
 */
struct hd_msg *hd_msg_hand_over(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt,
				uint32_t src, struct hd_recv *r, const struct iovec data, uint64_t len)
{
	struct hd_msg *m = hd_msg_make(ep, peer, pkt, src, data.iov_base, data.iov_len);

	if (!m)
		return NULL;
	m->len = len;
	m->arriving = !data.iov_base;
	if (hd_buffered_take(m, r ? r->ctx : NULL) < 0) {
		hd_msg_free(m);
		return NULL;
	}
	if (r) {
		hd_match_unpost(&ep->rq->match[1], &r->m);
		hd_recv_free(ep->node, r);
	}
	return m;
}

int hd_message_refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, enum hd_status status)
{
	if (pkt->flags & HD_PKT_F_ANSWERED)
		hd_answer(peer, pkt, HD_PKT_FIN, status);
	hd_peer_free_units(peer, units);
	return 0;
}

int hd_message_kept(struct hd_peer *peer, const struct hd_pkt *pkt)
{
	if ((pkt->flags & HD_PKT_F_ANSWERED) == HD_PKT_F_DELIVERED)
		hd_answer_op(peer, HD_PKT_ACK, pkt->op, 0);
	return 0;
}

/* Without bytes it has an address still: NULL would mean that they come through the sink. */
static struct iovec all_here(const void *data, size_t len)
{
	return (struct iovec){ len ? (void *)data : (void *)"", len };
}

/* It waits as m, for its receive or its turn, or is handed over. */
static int eager_waits(struct hd_link *link, const struct hd_pkt *pkt, const struct hd_msg *m)
{
	return m ? hd_message_kept(link->peer, pkt)
		 : hd_link_without_memory(link, "a message that has to wait");
}

/*
 * A message meets the posted receive r, which has HD_RECV_ORDERED; its data is here, or comes
 * through the sink (NULL). NULL: no memory.
 */
struct hd_msg *hd_msg_defer(struct hd_peer *peer, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			    struct hd_recv *r, const struct iovec data, uint64_t len)
{
	struct hd_msg *m = hd_msg_make(ep, peer, pkt, src, data.iov_base, data.iov_len);

	if (!m)
		return NULL;
	m->len = len;
	r = hd_recv_detach(ep, r, len);
	if (!r) {
		hd_msg_free(m);
		return NULL;
	}
	m->arriving = !data.iov_base;
	hd_order_meet(r, m);
	return m;
}

/* Has this message to wait for its turn? */
static bool is_to_defer(const struct hd_ep *ep, const struct hd_recv *r)
{
	return r->flags & HD_RECV_ASCENDING || (r->flags & HD_RECV_ORDERED && !hd_order_idle(ep));
}

/*
 * Of one that was sent to a group nobody has paid for the memory in which it may have to wait for
 * its turn: without that it is lost.
 */
void hd_deliver_cast(struct hd_ep *ep, struct hd_recv *r, const struct hd_pkt *pkt, uint32_t src,
		     const void *payload, size_t len)
{
	struct hd_received m;

	if (is_to_defer(ep, r)) {
		hd_msg_defer(NULL, ep, pkt, src, r, all_here(payload, len), len);
		return;
	}
	hd_received_of(&m, pkt, src, len);
	m.flags |= HD_MSG_CAST;
	hd_recv_into(ep, r, &m, payload);
}

int hd_message_unposted(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			const void *payload, size_t len)
{
	if (ep->policy & HD_EP_DROP) {
		if (!hd_dgram_keeps(ep, pkt, len) || !hd_dgram_keep(ep, link->peer, pkt, src, payload, len))
			return hd_message_refuse(link->peer, pkt, hd_units(len), HD_S_REFUSED);
		return 0;
	}
	if (hd_msg_is_buffered(ep, pkt, NULL))
		return eager_waits(link, pkt,
				   hd_msg_hand_over(ep, link->peer, pkt, src, NULL, all_here(payload, len),
						    len));
	return eager_waits(link, pkt, hd_msg_keep(ep, link->peer, pkt, src, payload, len));
}

static int message_posted(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			  struct hd_recv *r, const struct iovec data)
{
	struct iovec here = all_here(data.iov_base, data.iov_len);
	struct hd_peer *peer = link->peer;

	if (r->flags & HD_RECV_BUFFERED)
		return eager_waits(link, pkt, hd_msg_hand_over(ep, peer, pkt, src, r, here, here.iov_len));
	if (is_to_defer(ep, r))
		return eager_waits(link, pkt, hd_msg_defer(peer, ep, pkt, src, r, here, here.iov_len));
	if (hd_unlikely(!hd_deliver_into(ep, r, pkt, src, data.iov_base, data.iov_len)))
		return hd_message_refuse(peer, pkt, hd_units(data.iov_len), HD_S_OPERATIONAL);
	if (hd_unlikely(pkt->flags & HD_PKT_F_ANSWERED))
		hd_answer_op(peer, HD_PKT_ACK, pkt->op, 0);
	hd_peer_free_units(peer, hd_units(data.iov_len));
	return 0;
}

int hd_message_unusual(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
		       struct hd_recv *r, const struct iovec data)
{
	r = hd_recv_fitting(ep, r, pkt->tag, src, data.iov_len);
	return r ? message_posted(link, ep, pkt, src, r, data)
		 : hd_message_unposted(link, ep, pkt, src, data.iov_base, data.iov_len);
}

/* A long message that a matched endpoint receives has ended. */
static void received(struct hd_transfer *t, enum hd_status status)
{
	struct hd_rndv *v = hd_rndv_of(t);
	bool in_order = v->recv->flags & HD_RECV_ORDERED;
	struct hd_ep *ep = t->ep;
	struct hd_taken taken;
	struct hd_received m;

	hd_rndv_describe(v, status, &taken, &m);
	hd_recv_complete(&taken, &m);
	if (!status)
		hd_answer_op(t->pending.peer, HD_PKT_FIN, t->remote, 0);
	hd_rndv_free(v);
	if (hd_unlikely(in_order))
		hd_order_done(ep);
}

static void receive_dropped(struct hd_transfer *t)
{
	struct hd_rndv *v = hd_rndv_of(t);

	if (v->recv->flags & HD_RECV_ORDERED)
		t->ep->rx_busy = false;
	hd_rndv_drop(v);
}

static const struct hd_transfer_owner receives = { .done = received,
						   .dropped = receive_dropped,
						   .refusal = HD_S_OPERATIONAL };

void hd_matched_begin(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r, const struct hd_msg *m,
		      const void *offer, size_t offer_len)
{
	bool in_order = r->flags & HD_RECV_ORDERED;
	struct hd_rndv *v = hd_rndv_take(ep, peer, r, m, &receives);

	if (v)
		hd_intake_begin(&v->t, peer, offer, offer_len);
	else if (in_order)
		hd_order_done(ep);
}

/* It meets the posted receive r. */
static int rts_begin(const struct hd_arrival *a, struct hd_recv *r, const struct hd_rts *body,
		     size_t offer_len)
{
	struct hd_msg local = {
		.len = body->len, .imm = a->pkt->imm, .op = a->pkt->op, .flags = a->pkt->flags & HD_SEND_WIRE
	};

	local.w.by_src.tag = a->pkt->tag;
	local.w.by_src.src = a->src;
	r = hd_recv_detach(a->ep, r, body->len);
	if (!r)
		return hd_link_without_memory(a->peer->link, "a receive");
	hd_peer_free_units(a->peer, a->units);
	hd_matched_begin(a->ep, a->peer, r, &local, body->offer, offer_len);
	return 0;
}

/*
 * A request to send. 0: it is under way, or waits; a status: it is refused;
 * negative: the link is down.
 */
static int rts_take(const struct hd_arrival *a)
{
	const struct hd_pkt *pkt = a->pkt;
	struct hd_ep *ep = a->ep;
	struct hd_rts body;
	struct iovec offer = { body.offer, a->len - offsetof(struct hd_rts, offer) };
	struct hd_recv *r;
	struct hd_msg *m;

	memcpy(&body, a->payload, a->len); /* the dispatcher has looked at len */
	if (body.len > (ep->policy & HD_EP_VARIABLE ? HD_MAX_VARIABLE : HD_MAX_MSG))
		return HD_S_LENGTH;
	r = (struct hd_recv *)hd_match_peek_posted(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], pkt->tag,
						   a->src);
	r = hd_recv_fitting(ep, r, pkt->tag, a->src, body.len);
	if (!r && ep->policy & HD_EP_DROP)
		return HD_S_REFUSED;
	if (hd_msg_is_buffered(ep, pkt, r)) {
		m = hd_msg_hand_over(ep, a->peer, pkt, a->src, r, offer, body.len);
	} else if (r && r->flags & HD_RECV_ORDERED) {
		m = hd_msg_defer(a->peer, ep, pkt, a->src, r, offer, body.len);
	} else if (r) {
		return rts_begin(a, r, &body, offer.iov_len);
	} else {
		m = hd_msg_keep(ep, a->peer, pkt, a->src, body.offer, offer.iov_len);
		if (m)
			m->len = body.len;
	}
	return m ? 0 : hd_link_without_memory(a->peer->link, "a request to send");
}

/* Their one-sided operations have no order here but that in which they come. */
static const struct hd_rma_server matched = { .written = hd_deliver_written };

int hd_request_arrived(const struct hd_arrival *a)
{
	int rc;

	if (!a->ep)
		rc = HD_S_REFUSED;
	else if (a->pkt->kind == HD_PKT_RTS)
		rc = rts_take(a);
	else if ((rc = hd_rma_request(a, &matched)) < 0)
		return hd_link_broken(a->peer->link, "malformed one-sided operation");
	if (rc > 0)
		hd_arrival_refuse(a, rc);
	return rc < 0 ? rc : 0;
}
