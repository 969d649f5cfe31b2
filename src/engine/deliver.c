/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What arrives. hd_deliver is the one function that transports call with a whole packet; a packet in pieces comes through
 * hd_deliver_begin, the link's sink, and hd_deliver_end. Eager messages go straight into the posted buffer, or into one of exact
 * size when nothing matches.
 */
#include "base/copy.h"
#include "base/log.h"
#include "engine/atomic.h"
#include "engine/conn.h"
#include "engine/order.h"
#include "engine/pair.h"
#include "engine/recv.h"

#include <stdlib.h>

/* ---- segments ------------------------------------------------------------------------------------------------------------------ */

/* hd_iov_fill: scatter len bytes into segments; returns the bytes that found room. */
size_t hd_iov_fill(const struct iovec *iov, int count, const void *from, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < count && done < len; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (n) /* an empty segment may have no address */
			memcpy(iov[i].iov_base, (const char *)from + done, n);
		done += n;
	}
	return done;
}

/* hd_iov_fill_at: the same from an offset within the segments on. */
size_t hd_iov_fill_at(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len)
{
	struct iovec part;

	while (count && offset >= iov->iov_len) {
		offset -= iov->iov_len;
		iov++;
		count--;
	}
	if (!count || !len)
		return 0;
	part = (struct iovec){ (char *)iov->iov_base + offset, iov->iov_len - offset };
	if (part.iov_len >= len)
		return hd_iov_fill(&part, 1, from, len);
	hd_iov_fill(&part, 1, from, part.iov_len);
	return part.iov_len +
	       hd_iov_fill(iov + 1, count - 1, (const char *)from + part.iov_len, len - part.iov_len);
}

/* hd_iov_drain: gather at most len bytes from segments; returns their number. */
size_t hd_iov_drain(const struct iovec *iov, int count, void *to, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < count && done < len; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (n)
			memcpy((char *)to + done, iov[i].iov_base, n);
		done += n;
	}
	return done;
}

/* hd_iov_slice: the segments of [offset, offset + len), the first HD_IOV_MAX of them; returns how many there are. */
int hd_iov_slice(const struct iovec *iov, int count, uint64_t offset, uint64_t len, struct iovec *out)
{
	int n = 0;

	for (int i = 0; i < count && len && n < HD_IOV_MAX; i++) {
		uint64_t part;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - offset < len ? iov[i].iov_len - offset : len;
		out[n++] = (struct iovec){ (char *)iov[i].iov_base + offset, part };
		len -= part;
		offset = 0;
	}
	return n;
}

/* ---- the sink ------------------------------------------------------------------------------------------------------------------- */

/* hd_sink_iovs: let the next `len` bytes go to the segments from offset on, and what they have no room for be thrown away. */
void hd_sink_iovs(struct hd_sink *sink, const struct iovec *iov, int count, uint64_t offset, uint64_t len)
{
	sink->count = hd_iov_slice(iov, count, offset, len, sink->iov);
	sink->cur = 0;
	sink->room = hd_iov_len(sink->iov, sink->count);
	sink->discard = len - sink->room;
}

void hd_sink_advance(struct hd_sink *sink, size_t n)
{
	while (n && sink->room) {
		struct iovec *v = &sink->iov[sink->cur];
		size_t part = v->iov_len < n ? v->iov_len : n;

		v->iov_base = (char *)v->iov_base + part;
		v->iov_len -= part;
		sink->room -= part;
		n -= part;
		if (!v->iov_len)
			sink->cur++;
	}
	sink->discard -= n;
}

void hd_sink_copy(struct hd_sink *sink, const void *from, size_t n)
{
	const char *p = from;
	size_t left = n < sink->room ? n : sink->room;

	for (int i = sink->cur; left; i++) {
		size_t part = sink->iov[i].iov_len < left ? sink->iov[i].iov_len : left;

		memcpy(sink->iov[i].iov_base, p, part);
		p += part;
		left -= part;
	}
	hd_sink_advance(sink, n);
}

int hd_sink_iov(const struct hd_sink *sink, struct iovec *iov, int max)
{
	const struct hd_node *node = hd_container(sink, struct hd_link, sink)->node;
	int n = 0;

	for (int i = sink->cur; i < sink->count && n < max; i++)
		iov[n++] = sink->iov[i];
	if (!sink->room && sink->discard && n < max) {
		size_t part = sink->discard < HD_WASTE ? sink->discard : HD_WASTE;

		iov[n++] = (struct iovec){ node->waste, part };
	}
	return n;
}

/* ---- eager messages ------------------------------------------------------------------------------------------------------------- */

#define ANSWERED (HD_PKT_F_ACK | HD_PKT_F_DELIVERED)

static int broken(struct hd_link *link, const char *why)
{
	hd_link_down(link, -EPROTO, why);
	return -EPROTO;
}

void hd_answer(struct hd_peer *peer, const struct hd_pkt *to, uint8_t kind, int err)
{
	struct hd_pkt pkt = { .kind = kind, .op = to->op, .imm = (uint64_t)err };

	if (to->kind == HD_PKT_EAGER && to->flags & HD_PKT_F_RUN) {
		pkt.flags = HD_PKT_F_RUN;
		pkt.dst = to->src;
	}
	hd_peer_send(peer, &pkt, NULL, 0);
}

static void answer(struct hd_peer *peer, uint8_t kind, uint32_t op, int err)
{
	struct hd_pkt pkt = { .kind = kind, .op = op, .imm = err };

	hd_peer_send(peer, &pkt, NULL, 0);
}

static inline void received(struct hd_received *m, const struct hd_pkt *pkt, uint32_t src, uint64_t len)
{
	m->len = len;
	m->tag = pkt->tag;
	m->imm = pkt->imm;
	m->src = src;
	m->flags = pkt->flags & HD_SEND_WIRE;
	m->err = 0;
}

static inline void taken(struct hd_taken *t, struct hd_ep *ep, const struct hd_recv *r)
{
	t->ep = ep;
	t->ctx = r->ctx;
	t->buf = hd_recv_iov(r)->iov_base;
	t->room = hd_recv_room(r);
	t->flags = r->flags;
	t->whole = NULL;
}

struct hd_msg *hd_msg_make(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room)
{
	struct hd_node *node = ep->node;
	struct hd_msg *m = hd_bytes_get(&node->bytes, sizeof(*m) + room);

	if (!m)
		return NULL;
	m->w.by_src.tag = pkt->tag;
	m->w.by_src.src = src;
	m->ep = ep;
	m->peer = peer;
	m->imm = pkt->imm;
	m->len = room;
	m->op = pkt->op;
	m->room = room;
	m->units = pkt->kind == HD_PKT_RTS ? HD_UNITS_RTS : hd_units(room);
	m->kind = pkt->kind;
	m->flags = pkt->flags & HD_SEND_WIRE;
	m->arriving = !data && room;
	m->claimed = false;
	m->parked = false;
	m->waiter = NULL;
	m->handle = NULL;
	if (data)
		memcpy(m->data, data, room);
	peer->rx_held += m->units;
	if (hd_unlikely(peer->rx_held > peer->window / 2))
		hd_peer_grow(peer);
	return m;
}

/* A message that nothing was posted for: keep it. data NULL: it comes through the sink, into the message's own memory. */
static struct hd_msg *keep(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room)
{
	struct hd_msg *m = hd_msg_make(ep, peer, pkt, src, data, room);

	if (!m)
		return NULL;
	memset(&m->w, 0, sizeof(m->w));
	hd_match_put_waiting(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], &m->w, pkt->tag, src);
	return m;
}

/* Is a message handed over, now that the posted receive r matches it, or none (NULL)? */
static inline bool is_buffered(const struct hd_ep *ep, const struct hd_pkt *pkt, const struct hd_recv *r)
{
	return ep->rq->buffered && (r ? r->flags & HD_RECV_BUFFERED : !(pkt->flags & HD_PKT_F_TAGGED));
}

/* Hand it over: an eager message, a request to send (its offer is the data), or one that comes through the sink (data NULL). */
static struct hd_msg *hand_over(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt,
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

/* A message that nobody takes: its credit goes back, and who waits for an answer gets one. */
static int refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units)
{
	if (pkt->flags & ANSWERED)
		hd_answer(peer, pkt, HD_PKT_FIN, ECONNREFUSED);
	hd_peer_free_units(peer, units);
	return 0;
}

static const char nothing[1]; /* the address of no bytes */
/* The queue pair that this is for, if it is for one. Since that was opened its generation may have changed. */
static inline struct hd_ep *pair_of(const struct hd_node *node, const struct hd_pkt *pkt)
{
	struct hd_ep *ep = pkt->dst < node->ep_count ? node->eps[pkt->dst] : NULL;

	if (!ep || !ep->pair)
		return NULL;
	return (uint16_t)(ep->gen - pkt->gen) <= (uint16_t)(ep->gen - ep->pair->first_gen) ? ep : NULL;
}

/* An eager message that no usual endpoint takes. It has been charged. */
static __attribute__((noinline)) int eager_elsewhere(struct hd_link *link, const struct hd_pkt *pkt,
						     const void *payload, size_t len)
{
	struct hd_ep *ep = pair_of(link->node, pkt);

	if (!ep)
		return refuse(link->peer, pkt, hd_units(len));
	link->peer->rx_spent -= hd_units(len);
	return hd_hold_deliver(link, ep, pkt, payload, len);
}

static int eager_handed(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			struct hd_recv *r, const struct iovec data)
{
	struct hd_peer *peer = link->peer;

	if (!hand_over(ep, peer, pkt, src, r,
		       (struct iovec){ data.iov_len ? data.iov_base : (void *)nothing, data.iov_len },
		       data.iov_len))
		return broken(link, "no memory for a message that is to be handed over");
	if ((pkt->flags & ANSWERED) == HD_PKT_F_DELIVERED)
		answer(peer, HD_PKT_ACK, pkt->op, 0);
	return 0;
}

/* The posted receive r, or a part of it, gets the whole message. */
static inline void into_multi(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m,
			      const void *payload)
{
	struct iovec part;
	struct hd_taken t;

	hd_recv_take_multi(ep->rq, r, m->len, &t, &part);
	t.ep = ep;
	hd_iov_fill(&part, 1, payload, m->len);
	hd_recv_complete(&t, m);
}

static inline void into_one(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m,
			    const void *payload)
{
	struct hd_taken t;

	hd_match_unpost(&ep->rq->match[m->flags & HD_PKT_F_TAGGED], &r->m);
	taken(&t, ep, r);
	if (hd_unlikely(r->count != 1))
		hd_iov_fill(r->more, r->count, payload, m->len);
	else if (m->len && t.room)
		memcpy(r->iov.iov_base, payload, m->len < t.room ? m->len : t.room);
	hd_recv_complete(&t, m);
	hd_recv_free(ep->node, r);
}

/* A message meets the posted receive r, which has HD_RECV_ORDERED; its data is here, or comes through the sink (NULL). NULL: no memory. */
static struct hd_msg *park(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			   struct hd_recv *r, const struct iovec data, uint64_t len)
{
	struct hd_msg *m = hd_msg_make(ep, link->peer, pkt, src, data.iov_base, data.iov_len);

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

static int eager_parked(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			struct hd_recv *r, const struct iovec data)
{
	if (!park(link, ep, pkt, src, r,
		  (struct iovec){ data.iov_len ? data.iov_base : (void *)nothing, data.iov_len },
		  data.iov_len))
		return broken(link, "no memory for a message that has to wait for its turn");
	if ((pkt->flags & ANSWERED) == HD_PKT_F_DELIVERED)
		answer(link->peer, HD_PKT_ACK, pkt->op, 0);
	return 0;
}

/*
 * The usual receive: one segment with room for all of the message, which completes, and nothing else. What it needs of the rest of
 * this file is here once more, on the way from packet to completion, without a stop in memory.
 */
static inline bool is_usual(const struct hd_recv *r, size_t len)
{
	return (r->flags & (HD_RECV_COMPLETE | HD_RECV_MULTI | HD_RECV_BUFFERED | HD_RECV_CLAIM |
			    HD_RECV_ORDERED)) == HD_RECV_COMPLETE &&
	       r->count == 1 && len <= r->iov.iov_len;
}

static inline void into_usual(struct hd_ep *ep, struct hd_recv *r, struct hd_cqe *e, const struct hd_pkt *pkt,
			      uint32_t src, const struct iovec data)
{
	if (hd_likely(data.iov_len <= HD_COPY_SMALL))
		hd_copy_small(r->iov.iov_base, data.iov_base, data.iov_len);
	else
		memcpy(r->iov.iov_base, data.iov_base, data.iov_len);
	e->ctx = r->ctx;
	e->buf = r->iov.iov_base;
	e->len = data.iov_len;
	e->tag = pkt->tag;
	e->imm = pkt->imm;
	e->olen = 0;
	e->src = src;
	e->ep = ep->index;
	e->flags = hd_message_flags(pkt->flags);
	e->err = 0;
	hd_pool_put(&ep->node->recvs, r);
	hd_cq_push(ep->rx_cq);
	hd_cntr_count(ep->rx_cntr);
}

/* hd_deliver_into: a message that came without a link meets the posted receive r, which hands nothing over. */
void hd_deliver_into(struct hd_ep *ep, struct hd_recv *r, const struct hd_pkt *pkt, uint32_t src,
		     const void *payload, size_t len)
{
	struct hd_cqe *e = is_usual(r, len) ? hd_cq_slot(ep->rx_cq) : NULL;
	struct hd_received m;

	if (e) {
		hd_match_unpost(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], &r->m);
		into_usual(ep, r, e, pkt, src, (struct iovec){ (void *)payload, len });
		return;
	}
	received(&m, pkt, src, len);
	if (r->flags & HD_RECV_MULTI)
		into_multi(ep, r, &m, payload);
	else
		into_one(ep, r, &m, payload);
}

static int eager(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	uint32_t units = hd_units(len);
	struct hd_mnode **slot;
	struct hd_match *match;
	struct hd_recv *r;
	struct hd_cqe *e;
	struct hd_ep *ep;
	uint32_t src;

	if (hd_unlikely(!peer || !hd_peer_charge(peer, units)))
		return broken(link, "message without credit");
	ep = hd_pkt_target(link, pkt);
	if (hd_unlikely(!ep))
		return eager_elsewhere(link, pkt, payload, len);
	src = hd_pkt_source(peer, pkt->src);
	match = &ep->rq->match[pkt->flags & HD_PKT_F_TAGGED];
	r = (struct hd_recv *)hd_match_look_posted(match, pkt->tag, src, &slot);
	if (hd_unlikely(!r)) {
		if (ep->policy & HD_EP_DROP)
			return refuse(peer, pkt, units);
		if (is_buffered(ep, pkt, NULL))
			return eager_handed(link, ep, pkt, src, NULL, (struct iovec){ (void *)payload, len });
		if (!keep(ep, peer, pkt, src, payload, len))
			return broken(link, "no memory for a message that nothing was posted for");
		if ((pkt->flags & ANSWERED) == HD_PKT_F_DELIVERED)
			answer(peer, HD_PKT_ACK, pkt->op, 0);
		return 0;
	}
	e = is_usual(r, len) ? hd_cq_slot(ep->rx_cq) : NULL;
	if (hd_likely(e != NULL)) {
		hd_match_unpost_at(match, &r->m, slot);
		into_usual(ep, r, e, pkt, src, (struct iovec){ (void *)payload, len });
	} else if (r->flags & HD_RECV_BUFFERED) {
		return eager_handed(link, ep, pkt, src, r, (struct iovec){ (void *)payload, len });
	} else if (r->flags & HD_RECV_ASCENDING || (r->flags & HD_RECV_ORDERED && !hd_order_idle(ep))) {
		return eager_parked(link, ep, pkt, src, r, (struct iovec){ (void *)payload, len });
	} else {
		hd_deliver_into(ep, r, pkt, src, payload, len);
	}
	if (hd_unlikely(pkt->flags & ANSWERED))
		answer(peer, HD_PKT_ACK, pkt->op, 0);
	hd_peer_free_units(peer, units);
	return 0;
}

/* How much was written is for the completion alone: no receive is compared with it, nor has to have room for it. */
uint32_t hd_deliver_written(struct hd_ep *ep, struct hd_peer *peer, const struct hd_cqe *written,
			    uint32_t units)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER,
				    .flags = HD_PKT_F_IMM |
					     (written->flags & HD_C_SOLICITED ? HD_PKT_F_SOLICITED : 0),
				    .imm = written->imm };
	struct hd_received m;
	struct hd_recv *r;
	struct hd_msg *kept;

	r = (struct hd_recv *)hd_match_peek_posted(&ep->rq->match[0], pkt.tag, written->src);
	if (!r) {
		kept = keep(ep, peer, &pkt, written->src, &written->len, sizeof(written->len));
		if (!kept) {
			broken(peer->link, "no memory for a write that nothing was posted for");
			return units;
		}
		kept->len = 0;
		kept->flags |= HD_MSG_WRITTEN;
		return units - kept->units;
	}
	received(&m, &pkt, written->src, 0);
	m.tag = written->len;
	m.flags |= HD_MSG_WRITTEN;
	if (r->flags & HD_RECV_MULTI)
		into_multi(ep, r, &m, "");
	else
		into_one(ep, r, &m, "");
	return units;
}

static int rts(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_peer *peer = link->peer;
	struct hd_rts body;
	struct hd_msg *m, local;
	size_t offer_len;
	struct hd_recv *r;
	struct hd_ep *ep;
	uint32_t src;

	if (len < offsetof(struct hd_rts, offer) || len > sizeof(body) || !hd_peer_charge(peer, HD_UNITS_RTS))
		return broken(link, "malformed or uncredited request to send");
	offer_len = len - offsetof(struct hd_rts, offer);
	memcpy(&body, payload, len);
	ep = hd_pkt_target(link, pkt);
	if (!ep || body.len > (ep->policy & HD_EP_VARIABLE ? HD_MAX_VARIABLE : HD_MAX_MSG)) {
		answer(peer, HD_PKT_FIN, pkt->op, ep ? EMSGSIZE : ECONNREFUSED);
		hd_peer_free_units(peer, HD_UNITS_RTS);
		return 0;
	}
	src = hd_pkt_source(peer, pkt->src);
	r = (struct hd_recv *)hd_match_peek_posted(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], pkt->tag,
						   src);
	if (!r && ep->policy & HD_EP_DROP) {
		answer(peer, HD_PKT_FIN, pkt->op, ECONNREFUSED);
		hd_peer_free_units(peer, HD_UNITS_RTS);
		return 0;
	}
	if (is_buffered(ep, pkt, r)) {
		if (!hand_over(ep, peer, pkt, src, r, (struct iovec){ body.offer, offer_len }, body.len))
			return broken(link, "no memory for a request to send");
		return 0;
	}
	if (r && r->flags & HD_RECV_ORDERED) {
		if (!park(link, ep, pkt, src, r, (struct iovec){ body.offer, offer_len }, body.len))
			return broken(link, "no memory for a request to send");
		return 0;
	}
	if (!r) {
		m = keep(ep, peer, pkt, src, body.offer, offer_len);
		if (!m)
			return broken(link, "no memory for a request to send");
		m->len = body.len;
		return 0;
	}
	r = hd_recv_detach(ep, r, body.len);
	if (!r)
		return broken(link, "no memory for a receive");
	hd_peer_free_units(peer, HD_UNITS_RTS);
	local = (struct hd_msg){
		.len = body.len, .imm = pkt->imm, .op = pkt->op, .flags = pkt->flags & HD_SEND_WIRE
	};
	local.w.by_src.tag = pkt->tag;
	local.w.by_src.src = src;
	hd_rndv_begin(ep, peer, r, &local, body.offer, offer_len);
	return 0;
}

/* ---- the rest of the kinds ------------------------------------------------------------------------------------------------------- */

static int cts(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return hd_send_cts(link, pkt) < 0 ? broken(link, "clear to send for no request") : 0;
}

static int finished(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return hd_op_answered(link, pkt) < 0 ? broken(link, "answer to an operation that waits for none") : 0;
}

static int data(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_op *op;

	if (hd_intake_find(link, pkt, len, &op) < 0)
		return broken(link, "data where none was asked for");
	if (!op)
		return 0;
	if (hd_unlikely(hd_op_ascends(op)))
		hd_fill_ascending(hd_op_iov(op), op->count, pkt->tag, payload, len);
	else
		hd_iov_fill_at(hd_op_iov(op), op->count, pkt->tag, payload, len);
	hd_intake_arrived(op, len);
	return 0;
}

static int one_sided(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	int rc = pkt->kind == HD_PKT_PUT     ? hd_rma_put(link, pkt, payload, len)
		 : pkt->kind == HD_PKT_WRITE ? hd_rma_write(link, pkt, payload, len)
					     : hd_rma_read(link, pkt, payload, len);

	return rc < 0 ? broken(link, "malformed or uncredited one-sided operation") : 0;
}

static int announce(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_announce list[16];
	size_t count = len / sizeof(list[0]);

	if (len % sizeof(list[0]) || count > 16)
		return broken(link, "malformed announcement");
	memcpy(list, payload, len);
	if (hd_dest_announced(link->peer, list, count) < 0)
		return broken(link, "announcement out of range");
	return 0;
}

static int gone(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	hd_requests_gone(link->peer, pkt->src, pkt->gen);
	hd_conns_orphan(link->peer, &(struct hd_announce){ .index = pkt->src, .gen = pkt->gen });
	hd_rma_gone(link->peer, pkt->src);
	hd_dest_gone(link->peer, pkt->src, pkt->gen);
	return 0;
}

typedef int (*deliver_fn)(struct hd_link *, const struct hd_pkt *, const void *, size_t);

static const struct {
	deliver_fn fn;
	bool stranger; /* may come before the peer is known */
	bool asks;     /* something of an endpoint, which may not be ready for it */
} handlers[HD_PKT_KINDS] = {
	[HD_PKT_HELLO] = { hd_hello_deliver, true },
	[HD_PKT_USE] = { hd_hello_deliver, true },
	[HD_PKT_ANNOUNCE] = { announce, false },
	[HD_PKT_GONE] = { gone, false },
	[HD_PKT_EAGER] = { eager, false },
	[HD_PKT_RTS] = { rts, false, true },
	[HD_PKT_CTS] = { cts, false },
	[HD_PKT_DATA] = { data, false },
	[HD_PKT_FIN] = { finished, false },
	[HD_PKT_ACK] = { finished, false },
	[HD_PKT_CONNECT] = { hd_conn_called, false },
	[HD_PKT_ACCEPT] = { hd_conn_accepted, false },
	[HD_PKT_REJECT] = { hd_conn_rejected, false },
	[HD_PKT_READY] = { hd_conn_ready, false },
	[HD_PKT_LEAVE] = { hd_conn_left, false },
	[HD_PKT_WRITE] = { one_sided, false, true },
	[HD_PKT_PUT] = { one_sided, false, true },
	[HD_PKT_READ] = { one_sided, false, true },
	[HD_PKT_ATOMIC] = { hd_atomic_arrived, false, true },
	[HD_PKT_RESULT] = { hd_atomic_answered, false },
};

int hd_deliver_kind(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	return handlers[pkt->kind].fn(link, pkt, payload, len);
}

static __attribute__((noinline)) int deliver_other(struct hd_link *link, const struct hd_pkt *pkt,
						   const void *payload, size_t len)
{
	uint8_t kind = pkt->kind;
	struct hd_ep *ep;

	if (kind >= HD_PKT_KINDS || !handlers[kind].fn)
		return broken(link, "packet of unknown kind");
	if (!handlers[kind].stranger && (!link->peer || link->peer->link != link))
		return broken(link, "packet before the greeting was over");
	if (handlers[kind].asks && (ep = pair_of(link->node, pkt)))
		return hd_hold_deliver(link, ep, pkt, payload, len);
	return handlers[kind].fn(link, pkt, payload, len);
}

int hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	hd_assert_locked(link->node);
	if (hd_likely(pkt->kind == HD_PKT_EAGER))
		return eager(link, pkt, payload, len);
	return deliver_other(link, pkt, payload, len);
}

/* ---- packets in pieces -------------------------------------------------------------------------------------------------------------- */

/*
 * The packet that comes in pieces. An eager message fills a posted receive (taken out of the queue), a part of a multi-receive
 * buffer, or a waiting message; what is neither that nor a frame of data is gathered here and then delivered whole, and so is data
 * for more segments than a sink takes. One per link, made when the first such packet comes.
 */
enum stream_kind {
	STREAM_CLOSED,
	STREAM_RECV,
	STREAM_MSG,
	STREAM_DATA,
	STREAM_DROP,
	STREAM_WHOLE
};

#define GATHER_MAX \
	HD_ATOMIC_PAYLOAD /* payload of packets other than messages, data and writes: the longest */

struct hd_stream {
	enum stream_kind kind;
	uint32_t units; /* credit to give back at the end */
	struct hd_pkt pkt;
	size_t len;
	struct hd_taken t;
	struct hd_received m;
	struct hd_recv *recv; /* to be freed at the end; NULL: t.whole is */
	struct hd_msg *msg;
	struct hd_op *op;
	unsigned char *large; /* STREAM_WHOLE beyond `whole`: from node->bytes */
	unsigned char whole[GATHER_MAX];
};

static void begin_recv(struct hd_link *link, struct hd_stream *s, struct hd_ep *ep, struct hd_recv *r,
		       size_t len)
{
	const struct hd_pkt *pkt = &s->pkt;
	struct iovec part;

	s->kind = STREAM_RECV;
	if (r->flags & HD_RECV_MULTI) {
		hd_recv_take_multi(ep->rq, r, len, &s->t, &part);
		s->t.ep = ep;
		hd_sink_iovs(&link->sink, &part, 1, 0, len);
	} else {
		hd_match_unpost(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], &r->m);
		taken(&s->t, ep, r);
		hd_sink_iovs(&link->sink, hd_recv_iov(r), r->count, 0, len);
		s->recv = r;
	}
}

static int begin_whole(struct hd_link *link, struct hd_stream *s, size_t len);

static int begin_eager(struct hd_link *link, struct hd_stream *s, size_t len)
{
	const struct hd_pkt *pkt = &s->pkt;
	struct hd_peer *peer = link->peer;
	struct hd_recv *r;
	struct hd_ep *ep;
	uint32_t src;

	s->units = hd_units(len);
	if (!peer || peer->link != link || len > link->send_max || !hd_peer_charge(peer, s->units))
		return broken(link, "message without credit");
	ep = hd_pkt_target(link, pkt);
	if (!ep && pair_of(link->node, pkt)) {
		peer->rx_spent -= s->units; /* when it is whole */
		s->units = 0;
		return begin_whole(link, s, len);
	}
	if (!ep) {
		s->kind = STREAM_DROP;
		hd_sink_iovs(&link->sink, NULL, 0, 0, len);
		return 0;
	}
	src = hd_pkt_source(peer, pkt->src);
	received(&s->m, pkt, src, len);
	r = (struct hd_recv *)hd_match_peek_posted(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], pkt->tag,
						   src);
	if (is_buffered(ep, pkt, r)) {
		s->kind = STREAM_MSG;
		s->msg = hand_over(ep, peer, pkt, src, r, (struct iovec){ NULL, len }, len);
		if (!s->msg)
			return broken(link, "no memory for a message that is to be handed over");
		hd_sink_iovs(&link->sink, &(struct iovec){ s->msg->data, len }, 1, 0, len);
		return 0;
	}
	if (r && r->flags & HD_RECV_ORDERED) {
		s->kind = STREAM_MSG;
		s->msg = park(link, ep, pkt, src, r, (struct iovec){ NULL, len }, len);
		if (!s->msg)
			return broken(link, "no memory for a message that has to wait for its turn");
		hd_sink_iovs(&link->sink, &(struct iovec){ s->msg->data, len }, 1, 0, len);
		return 0;
	}
	if (r) {
		begin_recv(link, s, ep, r, len);
		return 0;
	}
	if (ep->policy & HD_EP_DROP) {
		s->kind = STREAM_DROP;
		hd_sink_iovs(&link->sink, NULL, 0, 0, len);
		return 0;
	}
	s->kind = STREAM_MSG;
	s->msg = keep(ep, peer, pkt, src, NULL, len);
	if (!s->msg)
		return broken(link, "no memory for a message that nothing was posted for");
	s->msg->arriving = true; /* an empty one too: the stream names it until its end */
	hd_sink_iovs(&link->sink, &(struct iovec){ s->msg->data, len }, 1, 0, len);
	return 0;
}

/* Packets that are delivered whole. */
static int begin_whole(struct hd_link *link, struct hd_stream *s, size_t len)
{
	bool charged = s->pkt.kind == HD_PKT_WRITE || s->pkt.kind == HD_PKT_EAGER;
	bool may_be_long = charged || s->pkt.kind == HD_PKT_DATA;
	unsigned char *to = s->whole;

	if (len > sizeof(s->whole)) {
		if (!may_be_long || len > link->send_max || !link->peer || link->peer->link != link)
			return broken(link, "packet too long for its kind");
		if (charged && !hd_peer_can(link->peer, hd_units(len)))
			return broken(link, "write without credit");
		to = s->large = hd_bytes_get(&link->node->bytes, len);
		if (!to)
			return broken(link, "no memory for a packet in pieces");
	}
	s->kind = STREAM_WHOLE;
	hd_sink_iovs(&link->sink, &(struct iovec){ to, len }, 1, 0, len);
	return 0;
}

static int begin_data(struct hd_link *link, struct hd_stream *s, size_t len)
{
	if (hd_intake_find(link, &s->pkt, len, &s->op) < 0)
		return broken(link, "data where none was asked for");
	if (s->op && (s->op->more || hd_op_ascends(s->op)))
		return begin_whole(link, s, len);
	s->kind = s->op ? STREAM_DATA : STREAM_DROP;
	hd_sink_iovs(&link->sink, s->op ? s->op->iov : NULL, s->op ? s->op->count : 0, s->pkt.tag, len);
	return 0;
}

int hd_deliver_begin(struct hd_link *link, const struct hd_pkt *pkt, size_t len)
{
	struct hd_stream *s = link->stream;

	hd_assert_locked(link->node);
	if (!s && !(s = link->stream = calloc(1, sizeof(*s))))
		return broken(link, "no memory for a packet in pieces");
	s->pkt = *pkt;
	s->len = len;
	s->units = 0;
	s->recv = NULL;
	s->kind = STREAM_CLOSED;
	if (pkt->kind == HD_PKT_EAGER)
		return begin_eager(link, s, len);
	if (pkt->kind == HD_PKT_DATA)
		return begin_data(link, s, len);
	return begin_whole(link, s, len);
}

static void large_free(struct hd_link *link, struct hd_stream *s)
{
	if (s->large)
		hd_bytes_put(&link->node->bytes, s->large, s->len);
	s->large = NULL;
}

static int end_whole(struct hd_link *link, struct hd_stream *s)
{
	int rc = hd_deliver(link, &s->pkt, s->large ? s->large : s->whole, s->len);

	large_free(link, s);
	return rc;
}

int hd_deliver_end(struct hd_link *link)
{
	struct hd_stream *s = link->stream;
	enum stream_kind kind = s->kind;
	struct hd_peer *peer = link->peer;

	hd_assert_locked(link->node);
	s->kind = STREAM_CLOSED;
	switch (kind) {
	case STREAM_WHOLE:
		return end_whole(link, s);
	case STREAM_DATA:
		hd_intake_arrived(s->op, s->len);
		return 0;
	case STREAM_MSG:
		hd_msg_arrived(s->msg);
		if ((s->pkt.flags & ANSWERED) == HD_PKT_F_DELIVERED)
			answer(peer, HD_PKT_ACK, s->pkt.op, 0);
		return 0;
	case STREAM_RECV:
		hd_recv_complete(&s->t, &s->m);
		if (s->recv)
			hd_recv_free(link->node, s->recv);
		break;
	default:
		break;
	}
	if (s->pkt.flags & ANSWERED && s->pkt.kind == HD_PKT_EAGER)
		hd_answer(peer, &s->pkt, kind == STREAM_RECV ? HD_PKT_ACK : HD_PKT_FIN,
			  kind == STREAM_RECV ? 0 : ECONNREFUSED);
	hd_peer_free_units(peer, s->units);
	return 0;
}

/* hd_stream_broken: the link went down in the middle of a packet: its receive completes in error, its message is forgotten. */
void hd_stream_broken(struct hd_link *link, int err)
{
	struct hd_stream *s = link->stream;

	if (!s)
		return;
	if (s->kind == STREAM_RECV) {
		s->m.err = err;
		hd_recv_complete(&s->t, &s->m);
		if (s->recv)
			hd_recv_free(link->node, s->recv);
	} else if (s->kind == STREAM_MSG) {
		hd_msg_broken(s->msg, err);
	}
	large_free(link, s);
	free(s);
	link->stream = NULL;
}

/*
 * hd_stream_forget: what the sink of this link fills goes away, because its endpoint, operation or message does (the others NULL): the
 * rest of the packet is thrown away.
 */
void hd_stream_forget(struct hd_link *link, const struct hd_ep *ep, const struct hd_op *op,
		      const struct hd_msg *msg)
{
	struct hd_stream *s = link->stream;
	bool hit;

	if (!s || s->kind == STREAM_CLOSED)
		return;
	hit = (s->kind == STREAM_DATA && (s->op == op || s->op->ep == ep)) ||
	      (s->kind == STREAM_RECV && s->t.ep == ep) ||
	      (s->kind == STREAM_MSG && (s->msg == msg || s->msg->ep == ep));
	if (!hit)
		return;
	if (s->kind == STREAM_RECV && s->recv)
		hd_recv_free(link->node, s->recv);
	else if (s->kind == STREAM_RECV)
		hd_recv_part_end(link->node, s->t.whole);
	if (s->kind == STREAM_MSG) { /* whoever frees the message answers and gives its credit back */
		s->units = 0;
		s->pkt.flags = 0;
		if (s->msg->waiter)
			hd_msg_forget(s->msg);
	}
	s->kind = STREAM_DROP;
	link->sink.discard += link->sink.room;
	link->sink.room = 0;
	link->sink.count = 0;
}

/* hd_stream_rekey: what comes in is from new_id, if it was from old_id. A message that waits is in a queue, which sees to it. */
void hd_stream_rekey(struct hd_link *link, uint32_t old_id, uint32_t new_id)
{
	struct hd_stream *s = link->stream;

	if (!s)
		return;
	if (s->kind == STREAM_RECV && s->m.src == old_id)
		s->m.src = new_id;
	if (s->kind == STREAM_MSG && s->msg->waiter && hd_wnode_src(&s->msg->w) == old_id)
		s->msg->w.by_src.src = new_id;
}
