/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What comes whole meets a posted receive, or is kept until one is posted. */
#include "base/copy.h"
#include "base/minus.h"
#include "engine/rq/recv.h"

/* ---- none is posted -------------------------------------------------------------------------- */

/* Where messages from this source are: its own list, as long as it is of this peer. */
static inline struct hd_ring *messages_of(struct hd_peer *peer, uint32_t src)
{
	struct hd_dest *dest = hd_dest_by_id(peer->node, src);

	return hd_likely(dest && dest->peer == peer) ? &dest->messages : &peer->kept;
}

static inline __attribute__((always_inline)) struct hd_msg *msg_make(struct hd_ep *ep, struct hd_peer *peer,
								     const struct hd_pkt *pkt, uint32_t src,
								     const void *data, size_t room)
{
	uint32_t units = pkt->kind == HD_PKT_RTS ? HD_UNITS_RTS : hd_units(room);
	struct hd_node *node = ep->node;
	struct hd_msg *m;

	if (hd_unlikely(!peer && hd_budget_cast_room(node) < units))
		return NULL;
	m = hd_bytes_get(&hd_rqs(node)->bytes, sizeof(*m) + room);
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
	m->units = units;
	m->kind = pkt->kind;
	m->flags = pkt->flags & HD_SEND_WIRE;
	m->arriving = !data && room;
	m->early = m->claimed = m->left = false;
	m->deferred = false;
	m->waiter = NULL;
	m->handle = NULL;
	if (data)
		memcpy(m->data, data, room);
	if (hd_unlikely(!peer)) {
		hd_credit_reserve(node, units);
		m->share = NULL;
		m->flags |= HD_MSG_CAST;
		return m;
	}
	hd_ring_add(messages_of(peer, src), &m->kept);
	hd_credit_hold(peer, m->units);
	return m;
}

struct hd_msg *hd_msg_make(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room)
{
	return msg_make(ep, peer, pkt, src, data, room);
}

/*
 * A message that nothing was posted for: keep it. data NULL: it comes through the sink, into
 * the message's own memory.
 */
struct hd_msg *hd_msg_keep(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room)
{
	struct hd_msg *m = msg_make(ep, peer, pkt, src, data, room);

	if (!m)
		return NULL;
	hd_match_put_waiting(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], &m->w, pkt->tag, src);
	return m;
}

/* ---- one is ---------------------------------------------------------------------------------- */

static inline void into_complete(const struct hd_taken *t, const struct hd_received *m, int err)
{
	struct hd_received gone;

	if (hd_likely(!err)) {
		hd_recv_complete(t, m);
		return;
	}
	gone = *m;
	gone.status = HD_S_PROTECTION;
	hd_recv_complete_error(t, &gone);
}

/* The posted receive r, or a part of it, gets the whole message. */
static inline bool into_multi(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m,
			      const void *payload)
{
	struct iovec part;
	struct hd_taken t;
	int err;

	hd_recv_take_multi(ep->rq, r, m->len, &t, &part);
	t.ep = ep;
	err = hd_iov_fill(&part, 1, payload, m->len);
	into_complete(&t, m, err);
	return !err;
}

static inline bool into_one(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m,
			    const void *payload)
{
	struct hd_taken t;
	int err = 0;

	hd_match_unpost(&ep->rq->match[m->flags & HD_PKT_F_TAGGED], &r->m);
	hd_recv_taken(r, ep, &t);
	if (hd_unlikely(r->count != 1))
		err = hd_iov_fill(r->more, r->count, payload, m->len);
	else if (m->len && t.room)
		err = hd_copy(r->iov.iov_base, payload, m->len < t.room ? m->len : t.room);
	into_complete(&t, m, err);
	hd_recv_free(ep->node, r);
	return !err;
}

bool hd_recv_into(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m, const void *payload)
{
	HD_TRACE_MATCH(ep->index, r->ctx, m->tag, m->len);
	if (r->flags & HD_RECV_MULTI)
		return into_multi(ep, r, m, payload);
	return into_one(ep, r, m, payload);
}

bool hd_deliver_into(struct hd_ep *ep, struct hd_recv *r, const struct hd_pkt *pkt, uint32_t src,
		     const void *payload, size_t len)
{
	struct hd_cqe *e = hd_recv_is_usual(r, len) ? hd_cq_slot(ep->rx_cq) : NULL;
	struct hd_received m;

	hd_received_of(&m, pkt, src, len);
	if (e) {
		hd_match_unpost(&ep->rq->match[pkt->flags & HD_PKT_F_TAGGED], &r->m);
		return hd_recv_usual(ep, r, e, m, payload);
	}
	return hd_recv_into(ep, r, &m, payload);
}

/*
 * How much was written is for the completion alone: no receive is compared with it, nor
 * has to have room for it.
 */
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
		kept = hd_msg_keep(ep, peer, &pkt, written->src, &written->len, sizeof(written->len));
		if (!kept) {
			hd_link_without_memory(peer->link, "a write that nothing was posted for");
			return units;
		}
		kept->len = 0;
		kept->flags |= HD_MSG_WRITTEN;
		return (uint32_t)hd_minus(units, kept->units);
	}
	hd_received_of(&m, &pkt, written->src, 0);
	m.tag = written->len;
	m.flags |= HD_MSG_WRITTEN;
	hd_recv_into(ep, r, &m, "");
	return units;
}
