/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Messages that come in pieces go where they belong as they come: into a posted receive, taken out
 * of its queue, into a part of a multi-receive buffer, or into a message that waits.
 */
#include "engine/rdm/pieces.h"
#include "engine/rdm/deliver.h"
#include "engine/rdm/unexpected.h"

#include <errno.h>

/* ---- into a posted receive ------------------------------------------------------------------- */

static void posted_complete(struct hd_link *link, struct hd_stream *s)
{
	hd_recv_complete(&s->posted.taken, &s->posted.received);
	if (s->posted.recv)
		hd_recv_free(link->node, s->posted.recv);
}

/* Its memory is gone, or the sender's was. */
static int posted_fails(struct hd_link *link, struct hd_stream *s)
{
	s->posted.received.status = link->sink.status;
	posted_complete(link, s);
	if (s->posted.received.status == HD_S_PROTECTION)
		return hd_message_refuse(link->peer, &s->pkt, s->units, HD_S_OPERATIONAL);
	hd_credit_uncharge(link->peer, s->units);
	return 0;
}

static int posted_end(struct hd_link *link, struct hd_stream *s)
{
	if (hd_unlikely(link->sink.status))
		return posted_fails(link, s);
	posted_complete(link, s);
	if (s->pkt.flags & HD_PKT_F_ANSWERED)
		hd_answer(link->peer, &s->pkt, HD_PKT_ACK, 0);
	hd_peer_free_units(link->peer, s->units);
	return 0;
}

static void posted_broken(struct hd_link *link, struct hd_stream *s, enum hd_status status)
{
	s->posted.received.status = status;
	posted_complete(link, s);
}

static void posted_forget(struct hd_link *link, struct hd_stream *s)
{
	if (s->posted.recv)
		hd_recv_free(link->node, s->posted.recv);
	else
		hd_recv_part_end(link->node, s->posted.taken.whole);
}

static const struct hd_stream_kind into_posted = { .end = posted_end,
						   .broken = posted_broken,
						   .forget = posted_forget };

static int begin_posted(struct hd_link *link, struct hd_stream *s, struct hd_ep *ep, struct hd_recv *r,
			uint32_t src)
{
	struct iovec part;

	hd_stream_set_kind(s, &into_posted);
	hd_stream_for(s, ep);
	hd_received_of(&s->posted.received, &s->pkt, src, s->len);
	if (r->flags & HD_RECV_MULTI) {
		s->posted.recv = NULL;
		hd_recv_take_multi(ep->rq, r, s->len, &s->posted.taken, &part);
		s->posted.taken.ep = ep;
		hd_sink_iovs(&link->sink, &part, 1, 0, s->len);
	} else {
		s->posted.recv = r;
		hd_match_unpost(&ep->rq->match[s->pkt.flags & HD_PKT_F_TAGGED], &r->m);
		hd_recv_taken(r, ep, &s->posted.taken);
		hd_sink_iovs(&link->sink, hd_recv_iov(r), r->count, 0, s->len);
	}
	return 0;
}

/* ---- into a message that waits --------------------------------------------------------------- */

/* The sender could not read it. */
static int waiting_void(struct hd_link *link, struct hd_stream *s)
{
	struct hd_msg *m = s->msg;

	hd_credit_unhold(link->peer, m->units);
	hd_credit_uncharge(link->peer, m->units);
	m->units = 0;
	hd_msg_broken(m, HD_S_CANCELLED);
	return 0;
}

static int waiting_end(struct hd_link *link, struct hd_stream *s)
{
	if (hd_unlikely(link->sink.status))
		return waiting_void(link, s);
	hd_msg_arrived(s->msg);
	return hd_message_kept(link->peer, &s->pkt);
}

static void waiting_broken(struct hd_link *link, struct hd_stream *s, enum hd_status status)
{
	hd_msg_broken(s->msg, status);
}

/* Whoever frees the message answers and gives its credit back. */
static void waiting_forget(struct hd_link *link, struct hd_stream *s)
{
	hd_stream_set_units(s, 0);
	s->pkt.flags = 0;
	if (s->msg->waiter)
		hd_msg_forget(s->msg);
}

static const struct hd_stream_kind into_waiting = { .end = waiting_end,
						    .broken = waiting_broken,
						    .forget = waiting_forget };

/* It comes into this message's own memory; NULL: there was none for it. */
static int begin_waiting(struct hd_link *link, struct hd_stream *s, struct hd_msg *msg)
{
	if (!msg)
		return hd_link_without_memory(link, "a message that comes in pieces, and has to wait");
	hd_stream_set_kind(s, &into_waiting);
	s->msg = msg;
	hd_stream_set_to(s, msg);
	hd_stream_for(s, msg->ep);
	hd_sink_iovs(&link->sink, &(struct iovec){ msg->data, s->len }, 1, 0, s->len);
	return 0;
}

int hd_pieces_message(struct hd_link *link, struct hd_stream *s, struct hd_ep *ep)
{
	const struct hd_pkt *pkt = &s->pkt;
	struct hd_peer *peer = link->peer;
	uint32_t src = hd_pkt_source(peer, pkt->src);
	const struct iovec data = { NULL, s->len }; /* through the sink */
	struct hd_match *match = &ep->rq->match[pkt->flags & HD_PKT_F_TAGGED];
	struct hd_recv *r = (struct hd_recv *)hd_match_peek_posted(match, pkt->tag, src);
	struct hd_msg *msg;

	r = hd_recv_fitting(ep, r, pkt->tag, src, s->len);
	if (hd_msg_is_buffered(ep, pkt, r))
		return begin_waiting(link, s, hd_msg_hand_over(ep, peer, pkt, src, r, data, s->len));
	if (r && r->flags & HD_RECV_ORDERED)
		return begin_waiting(link, s, hd_msg_defer(peer, ep, pkt, src, r, data, s->len));
	if (r)
		return begin_posted(link, s, ep, r, src);
	if (ep->policy & HD_EP_DROP && !hd_dgram_keeps(ep, pkt, s->len))
		return hd_stream_drop(link, s);
	msg = ep->policy & HD_EP_DROP ? hd_dgram_keep(ep, peer, pkt, src, NULL, s->len)
				      : hd_msg_keep(ep, peer, pkt, src, NULL, s->len);
	if (msg)
		msg->arriving = true; /* an empty one too: the stream names it until its end */
	return begin_waiting(link, s, msg);
}
