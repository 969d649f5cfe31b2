/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Packets in pieces: hd_deliver_begin, the link's sink, hd_deliver_end. Eager messages and data go where they belong as they come; the rest
 * is gathered and delivered whole.
 */
#include "engine/link/peer.h"
#include "engine/rdm/deliver.h"
#include "engine/rdm/message.h"
#include "engine/rdm/order.h"
#include "engine/rq/queue.h"

#include <stdlib.h>

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

/* ---- where the next bytes go ---- */

void hd_sink_iovs(struct hd_sink *sink, const struct iovec *iov, int count, uint64_t offset, uint64_t len)
{
	sink->count = hd_iov_slice(iov, count, offset, len, sink->iov);
	sink->cur = 0;
	sink->room = hd_iov_len(sink->iov, sink->count);
	sink->discard = len - sink->room;
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
		hd_taken_of(&s->t, ep, r);
		hd_sink_iovs(&link->sink, hd_recv_iov(r), r->count, 0, len);
		s->recv = r;
	}
}

static int begin_whole(struct hd_link *link, struct hd_stream *s, size_t len);

/* Nobody takes it. */
static int begin_drop(struct hd_link *link, struct hd_stream *s, size_t len)
{
	s->kind = STREAM_DROP;
	hd_sink_iovs(&link->sink, NULL, 0, 0, len);
	return 0;
}

/* It comes into this message's own memory; NULL: there was none for it. */
static int begin_msg(struct hd_link *link, struct hd_stream *s, struct hd_msg *msg, size_t len)
{
	if (!msg)
		return hd_link_broken(link, "no memory for a message that comes in pieces, and has to wait");
	s->kind = STREAM_MSG;
	s->msg = msg;
	hd_sink_iovs(&link->sink, &(struct iovec){ msg->data, len }, 1, 0, len);
	return 0;
}

/* A message for this endpoint. */
static int begin_for(struct hd_link *link, struct hd_stream *s, struct hd_ep *ep, size_t len)
{
	const struct hd_pkt *pkt = &s->pkt;
	struct hd_peer *peer = link->peer;
	uint32_t src = hd_pkt_source(peer, pkt->src);
	const struct iovec data = { NULL, len }; /* through the sink */
	struct hd_match *match = &ep->rq->match[pkt->flags & HD_PKT_F_TAGGED];
	struct hd_recv *r = (struct hd_recv *)hd_match_peek_posted(match, pkt->tag, src);
	struct hd_msg *msg;

	r = hd_recv_fitting(ep, r, pkt->tag, src, len);
	hd_received_of(&s->m, pkt, src, len);
	if (hd_msg_is_buffered(ep, pkt, r))
		return begin_msg(link, s, hd_msg_hand_over(ep, peer, pkt, src, r, data, len), len);
	if (r && r->flags & HD_RECV_ORDERED)
		return begin_msg(link, s, hd_msg_defer(peer, ep, pkt, src, r, data, len), len);
	if (r) {
		begin_recv(link, s, ep, r, len);
		return 0;
	}
	if (ep->policy & HD_EP_DROP && !hd_dgram_keeps(ep, pkt, len))
		return begin_drop(link, s, len);
	msg = ep->policy & HD_EP_DROP ? hd_dgram_keep(ep, peer, pkt, src, NULL, len)
				      : hd_msg_keep(ep, peer, pkt, src, NULL, len);
	if (msg)
		msg->arriving = true; /* an empty one too: the stream names it until its end */
	return begin_msg(link, s, msg, len);
}

static int begin_eager(struct hd_link *link, struct hd_stream *s, size_t len)
{
	struct hd_peer *peer = link->peer;
	struct hd_ep *ep;

	s->units = hd_units(len);
	if (!peer || peer->link != link || len > link->send_max || !hd_peer_charge(peer, s->units))
		return hd_link_broken(link, "message without credit");
	ep = hd_pkt_target(link, &s->pkt);
	if (ep)
		return begin_for(link, s, ep, len);
	if (!hd_pkt_pair(link->node, &s->pkt))
		return begin_drop(link, s, len);
	peer->rx_spent -= s->units; /* when it is whole */
	s->units = 0;
	return begin_whole(link, s, len);
}

/* Packets that are delivered whole. */
static int begin_whole(struct hd_link *link, struct hd_stream *s, size_t len)
{
	bool charged = s->pkt.kind == HD_PKT_WRITE || s->pkt.kind == HD_PKT_EAGER;
	bool may_be_long = charged || s->pkt.kind == HD_PKT_DATA;
	unsigned char *to = s->whole;

	if (len > sizeof(s->whole)) {
		if (!may_be_long || len > link->send_max || !link->peer || link->peer->link != link)
			return hd_link_broken(link, "packet too long for its kind");
		if (charged && !hd_peer_can(link->peer, hd_units(len)))
			return hd_link_broken(link, "write without credit");
		to = s->large = hd_bytes_get(&link->node->bytes, len);
		if (!to)
			return hd_link_broken(link, "no memory for a packet in pieces");
	}
	s->kind = STREAM_WHOLE;
	hd_sink_iovs(&link->sink, &(struct iovec){ to, len }, 1, 0, len);
	return 0;
}

static int begin_data(struct hd_link *link, struct hd_stream *s, size_t len)
{
	if (hd_intake_find(link, &s->pkt, len, &s->op) < 0)
		return hd_link_broken(link, "data where none was asked for");
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
		return hd_link_broken(link, "no memory for a packet in pieces");
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
		if ((s->pkt.flags & HD_PKT_F_ANSWERED) == HD_PKT_F_DELIVERED)
			hd_answer_op(peer, HD_PKT_ACK, s->pkt.op, 0);
		return 0;
	case STREAM_RECV:
		hd_recv_complete(&s->t, &s->m);
		if (s->recv)
			hd_recv_free(link->node, s->recv);
		break;
	default:
		break;
	}
	if (s->pkt.flags & HD_PKT_F_ANSWERED && s->pkt.kind == HD_PKT_EAGER)
		hd_answer(peer, &s->pkt, kind == STREAM_RECV ? HD_PKT_ACK : HD_PKT_FIN,
			  kind == STREAM_RECV ? 0 : ECONNREFUSED);
	hd_peer_free_units(peer, s->units);
	return 0;
}

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

void hd_streams_rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id)
{
	struct hd_stream *s = peer->link->stream;

	if (!s)
		return;
	if (s->kind == STREAM_RECV && s->m.src == old_id)
		s->m.src = new_id;
	if (s->kind == STREAM_MSG && s->msg->waiter && hd_wnode_src(&s->msg->w) == old_id)
		s->msg->w.by_src.src = new_id;
}
