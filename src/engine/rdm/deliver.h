/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What messages that come whole (deliver.c) and those in pieces (pieces.c) have in common. */
#ifndef HD_ENGINE_DELIVER_H
#define HD_ENGINE_DELIVER_H

#include "base/copy.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/rq/rq.h"

#define HD_PKT_F_ANSWERED (HD_PKT_F_ACK | HD_PKT_F_DELIVERED)

/* Is a message handed over, now that the posted receive r matches it, or none (NULL)? */
static inline bool hd_msg_is_buffered(const struct hd_ep *ep, const struct hd_pkt *pkt,
				      const struct hd_recv *r)
{
	return ep->rq->buffered && (r ? r->flags & HD_RECV_BUFFERED : !(pkt->flags & HD_PKT_F_TAGGED));
}

/*
 * deliver.c, of a message that has come for ep and cannot go straight into a buffer; data NULL: it
 * comes through the sink. All give NULL where memory is short, and nothing has happened.
 * hd_msg_hand_over: buffered, and to the program as it is; r is the receive that matched, or NULL.
 * hd_msg_defer: it meets r, which has HD_RECV_ORDERED, and waits for its turn; peer NULL: it came
 * from a group. hd_dgram_keeps: is there room for a datagram that nothing was posted for?
 * hd_dgram_keep: it waits.
 */
bool hd_dgram_keeps(const struct hd_ep *ep, const struct hd_pkt *pkt, size_t len);
struct hd_msg *hd_dgram_keep(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			     const void *data, size_t len);
struct hd_msg *hd_msg_hand_over(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt,
				uint32_t src, struct hd_recv *r, const struct iovec data, uint64_t len);
struct hd_msg *hd_msg_defer(struct hd_peer *peer, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			    struct hd_recv *r, const struct iovec data, uint64_t len);

/*
 * What comes for an endpoint that takes it; all return 0, or negative: the link is down.
 * hd_message_arrived: an eager message, which has been charged; hd_message_unusual: it has met r,
 * which is not the usual receive; hd_message_unposted: it has met none. hd_message_refuse: it is
 * not taken: its credit goes back, and who waits for an answer gets this status. hd_message_kept:
 * it is here, and has no receive yet: who waits for that alone is answered. hd_request_arrived: a
 * request to send, or a one-sided operation.
 */
int hd_message_unusual(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
		       struct hd_recv *r, const struct iovec data);
int hd_message_unposted(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, uint32_t src,
			const void *payload, size_t len);
int hd_message_refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, enum hd_status status);
int hd_message_kept(struct hd_peer *peer, const struct hd_pkt *pkt);
int hd_request_arrived(const struct hd_arrival *a);

static inline int hd_message_arrived(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt,
				     const void *payload, size_t len)
{
	struct hd_match *match = &ep->rq->match[pkt->flags & HD_PKT_F_TAGGED];
	const struct iovec data = { (void *)payload, len };
	struct hd_peer *peer = link->peer;
	uint32_t src = hd_pkt_source(peer, pkt->src);
	struct hd_received m;
	struct hd_mnode **slot;
	struct hd_recv *r;
	struct hd_cqe *e;

	r = (struct hd_recv *)hd_match_look_posted(match, pkt->tag, src, &slot);
	if (hd_unlikely(!r))
		return hd_message_unposted(link, ep, pkt, src, payload, len);
	e = hd_recv_is_usual(r, len) ? hd_cq_slot(ep->rx_cq) : NULL;
	if (hd_unlikely(!e))
		return hd_message_unusual(link, ep, pkt, src, r, data);
	hd_match_unpost_at(match, &r->m, slot);
	if (hd_unlikely(match->posted >= HD_MATCH_DEEP))
		link->is_deep = true;
	hd_received_of(&m, pkt, src, len);
	if (hd_unlikely(!hd_recv_usual(ep, r, e, m, payload)))
		/* its memory is gone */
		return hd_message_refuse(peer, pkt, hd_units(len), HD_S_OPERATIONAL);
	if (hd_unlikely(pkt->flags & HD_PKT_F_ANSWERED))
		hd_answer_op(peer, HD_PKT_ACK, pkt->op, 0);
	hd_peer_free_units(peer, hd_units(len));
	return 0;
}

#endif
