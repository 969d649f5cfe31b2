/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What arrives for a queue pair. Requests are carried out one after the other; one that cannot be yet is kept as it came, with its
 * credit, and so is all behind it:
 *
 *	not ready	the endpoint has not been told of its other end			until the sender's time-out
 *	no receive	a message, or a write with immediate data, needs one		for the sender's retries, of our timer each
 *	busy		a long message or write before it is still coming in		no end: that ends
 *	window		it takes back a window that somebody still copies through	no end: that ends
 *
 * Only long messages that fit need not wait for those before them: they come in at the same time, and complete in order.
 *
 * Unreliable endpoints drop instead of the first two. When time is up the first is answered with an error, and what its sender has sent
 * behind it is refused, for that one fails; others, who may have come while the endpoint was not ready, have a time of their own.
 */
#include "engine/memory/window.h"
#include "engine/message/message.h"
#include "engine/pair/ask.h"
#include "engine/pair/pair.h"
#include "engine/peer/peer.h"
#include "engine/receive/recv.h"

#include "base/clock.h"

#include <stddef.h>

struct hd_held {
	TAILQ_ENTRY(hd_held) entry;
	struct hd_peer *peer;
	uint8_t waits; /* enum wait: it is the first and waits for this; WAIT_NOT: it is not */
	uint32_t units, len;
	struct hd_pkt pkt;
	_Alignas(8) unsigned char data[];
};

enum wait {
	WAIT_NOT, /* it can be carried out */
	WAIT_READY,
	WAIT_RECEIVE,
	WAIT_BUSY,
	WAIT_WINDOW,
	WAIT_RELAY, /* it is carried on to the node whose queue it names */
	WAIT_NEVER, /* it is refused */
	WAIT_FAULT, /* so it is, and its receive fails: it would take back what is no window of its sender's */
	WAIT_WRONG, /* it is refused, and an offence */
	WAIT_DROP,  /* it is dropped */
};

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

static void flag_ack(struct hd_pair *p, struct hd_link *link, const struct hd_pkt *pkt)
{
	if (hd_accept_say(p, link, pkt))
		return;
	if (p->acks && p->ack_to != pkt->src)
		hd_hold_ack(p);
	p->ack_op = pkt->op;
	p->ack_to = pkt->src;
	p->acks = true;
	hd_pair_kick(p);
}

void hd_hold_ack(struct hd_pair *p)
{
	const struct hd_pkt pkt = {
		.kind = HD_PKT_ACK, .flags = HD_PKT_F_RUN, .dst = p->ack_to, .op = p->ack_op
	};

	if (p->acks && hd_pair_is_bound(p)) {
		struct hd_peer *peer = p->dest->peer;

		hd_peer_send(peer, &pkt, NULL, 0);
		if (peer->link->ops->warm) /* the program may have an answer as well */
			peer->link->ops->warm(peer->link);
	}
	p->acks = false;
}

void hd_hold_refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, int err)
{
	if (pkt->kind != HD_PKT_EAGER || pkt->flags & (HD_PKT_F_ACK | HD_PKT_F_DELIVERED))
		hd_answer(peer, pkt, HD_PKT_FIN, err);
	hd_peer_free_units(peer, units);
}

/* ---- whether it can be carried out --------------------------------------------------------------------------------------- */

static bool needs_receive(const struct hd_pkt *pkt)
{
	return pkt->kind == HD_PKT_EAGER || pkt->kind == HD_PKT_RTS ||
	       (pkt->kind == HD_PKT_WRITE && pkt->flags & HD_PKT_F_IMM);
}

static struct hd_recv *receive_of(const struct hd_pair *p)
{
	return (struct hd_recv *)hd_match_peek_posted(&p->ep->rq->match[0], 0, 0);
}

/* An unreliable endpoint for everybody. */
static enum wait open_to(const struct hd_pair *p, const struct hd_pkt *pkt)
{
	bool ok = p->ready && !p->err && pkt->kind == HD_PKT_EAGER && pkt->imm >> 32 == p->qkey &&
		  !(pkt->flags & HD_PKT_F_TAGGED) && p->ep->rq->match[0].posted;

	return ok ? WAIT_NOT : WAIT_DROP;
}

/* What follows is that of somebody whom this life has not let in yet. */
static enum wait from_stranger(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	/* who has begun anew after a failure may have been faster than we are */
	bool is_over = p->err && hd_agree_met(p, peer, pkt->src) != HD_MET_BEFORE;

	if (is_over || (pkt->flags & HD_PKT_F_TAGGED) != p->wire_named)
		return WAIT_NEVER;
	if (!p->ready || p->err)
		return p->lossy ? WAIT_DROP : WAIT_READY;
	if (!hd_pair_is_bound(p)) {
		if (p->dest->state == HD_DEST_IDLE &&
		    !p->deaf) /* it may be called by a name that it does not know of */
			(void)hd_dest_connect(p->dest);
		if (!hd_pair_is_bound(p))
			return WAIT_READY;
	}
	if (p->dest->peer != peer || p->dest->remote != pkt->src || hd_hold_is_broken(p, peer, pkt->src))
		return WAIT_NEVER;
	return hd_agree(p, peer, pkt) ? WAIT_NOT : WAIT_READY;
}

static inline enum wait from_whom(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	if (hd_likely(p->from_peer == peer && p->from == pkt->src))
		return (pkt->flags & HD_PKT_F_TAGGED) == p->wire_named ? WAIT_NOT : WAIT_NEVER;
	return from_stranger(p, peer, pkt);
}

/*
 * May it come in beside what is coming in already? Its failure, where it does not fit, would be told before that has ended; so would
 * that of a window that it takes back.
 */
static bool joins(const struct hd_pair *p, const struct hd_pkt *pkt, const void *payload)
{
	uint64_t len;

	if (pkt->kind != HD_PKT_RTS || pkt->tag || p->turn_next - p->turn_first >= HD_PAIR_COMING ||
	    !receive_of(p))
		return false;
	memcpy(&len, (const char *)payload + offsetof(struct hd_rts, len), sizeof(len));
	return len <= hd_recv_room(receive_of(p));
}

static inline enum wait for_receive(const struct hd_pair *p, const struct hd_pkt *pkt)
{
	if (!needs_receive(pkt) || p->ep->rq->match[0].posted)
		return WAIT_NOT;
	return p->lossy ? WAIT_DROP : WAIT_RECEIVE;
}

/* It names this queue, which may be another node's. */
static enum wait to_queue(struct hd_pair *p, const struct hd_pkt *pkt, uint32_t number)
{
	int rc;

	if (hd_named_turn(p, number))
		return for_receive(p, pkt);
	rc = hd_relay_way(p, number);
	return !rc ? WAIT_RELAY : rc == -EAGAIN ? WAIT_BUSY : WAIT_WRONG;
}

/* Of endpoints that are not paired, and of those whose messages name their queue. */
static enum wait what_else(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	enum wait w;

	if (p->ep->policy & HD_EP_NAMED)
		return WAIT_NEVER;
	if (!(p->ep->policy & HD_EP_PAIRED))
		return open_to(p, pkt);
	w = from_whom(p, peer, pkt);
	if (w != WAIT_NOT)
		return w;
	if (p->transfers || hd_relay_is_busy(p)) /* it needs the queue that it has */
		return WAIT_BUSY;
	return to_queue(p, pkt, (uint32_t)(pkt->tag >> HD_NAME_SHIFT));
}

/* As the first one. */
static inline enum wait what_for(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt,
				 const void *payload)
{
	enum wait w;

	if (hd_unlikely((p->ep->policy & (HD_EP_PAIRED | HD_EP_NAMES)) != HD_EP_PAIRED))
		return what_else(p, peer, pkt);
	w = from_whom(p, peer, pkt);
	if (w != WAIT_NOT)
		return w;
	if (p->transfers && !joins(p, pkt, payload))
		return WAIT_BUSY;
	return for_receive(p, pkt);
}

/* It never will be carried out. */
static void reject(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units,
		   enum wait w)
{
	hd_hold_refuse(peer, pkt, units, w == WAIT_NEVER ? ECONNREFUSED : w == WAIT_WRONG ? EINVAL : 0);
	if (w == WAIT_WRONG)
		hd_pair_offended(p->ep, EINVAL);
}

static bool takes_back(const struct hd_pkt *pkt)
{
	return pkt->tag == HD_TAG_TAKE_BACK && pkt->flags & HD_PKT_F_IMM &&
	       !(pkt->flags & HD_PKT_F_CARRIES) && (pkt->kind == HD_PKT_EAGER || pkt->kind == HD_PKT_RTS);
}

static enum wait take_back(struct hd_pair *p, const struct hd_pkt *pkt)
{
	int rc = hd_window_take_back(p->ep, (uint32_t)pkt->imm, &p->taking);

	if (rc == -EAGAIN)
		return WAIT_WINDOW;
	p->taking = false;
	if (!rc)
		return WAIT_NOT;
	return p->lossy ? WAIT_DROP : WAIT_FAULT;
}

/* As the first one, which is carried out now if it can be. */
static enum wait admit(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, const void *payload)
{
	enum wait w = what_for(p, peer, pkt, payload);

	if (hd_likely(w != WAIT_NOT || !pkt->tag) || !p->slots || !takes_back(pkt))
		return w;
	return take_back(p, pkt);
}

/* ---- carrying out -------------------------------------------------------------------------------------------------------- */

/* Where the message goes to begins behind space for the front. */
static void into_headed(struct hd_pair *p, struct hd_recv *r, const struct hd_pkt *pkt,
			const struct hd_sender *from, uint32_t src, const void *payload, size_t len)
{
	struct hd_received m = { .len = len + p->head_len,
				 .imm = (uint32_t)pkt->imm,
				 .src = src,
				 .flags = pkt->flags & HD_SEND_WIRE };
	const struct iovec *iov = hd_recv_iov(r);
	unsigned char head[HD_PAIR_HEAD] = { 0 };
	struct hd_taken t = {
		.ep = p->ep, .ctx = r->ctx, .buf = iov->iov_base, .room = hd_recv_room(r), .flags = r->flags
	};

	p->taken++;
	hd_match_unpost(&p->ep->rq->match[0], &r->m);
	if (p->head_fill)
		m.tag = p->head_fill(p->ep->owner, from, head);
	hd_iov_fill(iov, r->count, head, p->head_len);
	hd_iov_fill_at(iov, r->count, p->head_len, payload, len);
	hd_recv_complete(&t, &m);
	hd_recv_free(p->ep->node, r);
}

/* The receive that a message would have got completes in error: for truncation, or `err`. */
static void spoil(struct hd_pair *p, uint32_t src, const struct hd_pkt *pkt, uint64_t len, int err)
{
	struct hd_recv *r = receive_of(p);
	const struct hd_received m = { .len = len,
				       .imm = pkt->imm,
				       .src = src,
				       .flags = pkt->flags & HD_SEND_WIRE & ~HD_SEND_TAGGED,
				       .err = err };
	struct hd_taken t = { .ep = p->ep,
			      .ctx = r->ctx,
			      .buf = hd_recv_iov(r)->iov_base,
			      .room = hd_recv_room(r),
			      .flags = r->flags };

	p->taken++;
	hd_match_unpost(&p->ep->rq->match[0], &r->m);
	hd_recv_complete(&t, &m);
	hd_recv_free(p->ep->node, r);
}

/* A message that its receive cannot take: both ends fail. Returns what its sender is told, or 0: there is room for it. */
static int misfit(struct hd_pair *p, uint32_t src, const struct hd_pkt *pkt, uint64_t len)
{
	const struct hd_recv *r = receive_of(p);
	int err = r->flags & HD_RECV_FAULT ? EREMOTEIO : EMSGSIZE;

	if (len <= hd_recv_room(r))
		return 0;
	spoil(p, src, pkt, len, 0);
	if (p->ep->policy & HD_EP_STRICT)
		hd_pair_fail_soon(p, err);
	return err;
}

static uint64_t imm_for(const struct hd_pkt *pkt)
{
	return (uint32_t)pkt->imm | (hd_unlikely(pkt->tag) && takes_back(pkt) ? HD_IMM_TAKEN_BACK : 0);
}

static void take_message(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt,
			 const void *payload, size_t len, uint32_t units)
{
	struct hd_recv *r = receive_of(p);
	uint32_t src = hd_pkt_source(peer, pkt->src);
	struct hd_pkt plain = *pkt;

	if (hd_unlikely(len + p->head_len > hd_recv_room(r))) {
		hd_hold_refuse(peer, pkt, units, misfit(p, src, pkt, len + p->head_len));
		return;
	}
	if (pkt->flags & HD_PKT_F_CARRIES)
		hd_accept_carried(p, pkt);
	plain.tag = 0;
	plain.imm = imm_for(pkt);
	plain.flags &= (uint8_t)~HD_PKT_F_TAGGED;
	if (hd_unlikely(p->head_len)) {
		struct hd_sender from;

		hd_sender_of(p->ep->node, src, &from);
		into_headed(p, r, pkt, &from, src, payload, len);
	} else {
		p->taken++;
		hd_deliver_into(p->ep, r, &plain, src, payload, len);
	}
	if (pkt->flags & HD_PKT_F_RUN && pkt->flags & HD_PKT_F_ACK)
		flag_ack(p, peer->link, pkt);
	else if (pkt->flags & (HD_PKT_F_ACK | HD_PKT_F_DELIVERED))
		hd_answer(peer, pkt, HD_PKT_ACK, 0);
	hd_peer_free_units(peer, units);
}

void hd_hold_cast(struct hd_ep *ep, const struct hd_pkt *pkt, const struct hd_sender *from,
		  const void *payload, size_t len)
{
	struct hd_pair *p = ep->pair;

	if (open_to(p, pkt) != WAIT_NOT || misfit(p, 0, pkt, len + p->head_len))
		return;
	into_headed(p, receive_of(p), pkt, from, 0, payload, len);
}

/* The engine's usual way with packets of this kind, which charges them itself. */
static int usual_way(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, const void *payload,
		     size_t len, uint32_t units)
{
	struct hd_node *node = p->ep->node;
	struct hd_pkt plain = *pkt;
	int rc;

	plain.tag = pkt->kind == HD_PKT_RTS ? 0 : pkt->tag;
	if (hd_unlikely(p->wire_named)) {
		plain.tag &= HD_NAME_BYTES;
		plain.flags &= (uint8_t)~HD_PKT_F_TAGGED;
	}
	plain.imm = imm_for(pkt);
	plain.gen = p->ep->gen;
	peer->rx_spent -= units;
	node->admitted = p->ep;
	rc = hd_deliver_kind(peer->link, &plain, payload, len);
	node->admitted = NULL;
	return rc;
}

static int take_rts(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, const void *payload,
		    size_t len, uint32_t units)
{
	struct hd_rts body;
	int err;

	memcpy(&body, payload, len); /* charge_of has looked at len */
	err = misfit(p, hd_pkt_source(peer, pkt->src), pkt, body.len);
	if (err) {
		hd_hold_refuse(peer, pkt, units, err);
		return 0;
	}
	p->taken++;
	return usual_way(p, peer, pkt, &body, len, units);
}

/* Negative: the link is to go. */
static int carry_out(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, const void *payload,
		     size_t len, uint32_t units)
{
	if (hd_likely(pkt->kind == HD_PKT_EAGER)) {
		take_message(p, peer, pkt, payload, len, units);
		return 0;
	}
	if (p->ordered) /* what the other end had accepted before is known before */
		hd_accept_look(p);
	if (pkt->kind == HD_PKT_RTS)
		return take_rts(p, peer, pkt, payload, len, units);
	return usual_way(p, peer, pkt, payload, len, units);
}

/* WAIT_FAULT. */
static void fault(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units)
{
	hd_hold_ack(p);
	spoil(p, hd_pkt_source(peer, pkt->src), pkt, 0, EACCES);
	hd_hold_refuse(peer, pkt, units, EACCES);
	hd_pair_offended(p->ep, EACCES);
}

/* ---- holding ------------------------------------------------------------------------------------------------------------- */

void hd_hold_unstarve(struct hd_pair *p)
{
	if (p->starved)
		TAILQ_REMOVE(&p->ep->rq->starved, p, starved_entry);
	p->starved = false;
}

/* It waits no longer, and the next one not yet. */
static void held_out(struct hd_pair *p, struct hd_held *h)
{
	if (h == TAILQ_FIRST(&p->held)) {
		p->taking = false;
		hd_hold_unstarve(p);
		hd_timer_stop(p->ep->node, &p->timer);
	}
	TAILQ_REMOVE(&p->held, h, entry);
	h->peer->rx_held -= h->units;
}

static void held_put(struct hd_pair *p, struct hd_held *h)
{
	hd_bytes_put(&p->ep->node->bytes, h, sizeof(*h) + h->len);
}

static void held_free(struct hd_pair *p, struct hd_held *h)
{
	held_out(p, h);
	held_put(p, h);
}

static void held_refuse(struct hd_pair *p, struct hd_held *h, int err)
{
	hd_hold_refuse(h->peer, &h->pkt, h->units, err);
	held_free(p, h);
}

void hd_hold_refuse_all(struct hd_pair *p)
{
	struct hd_held *h;

	while ((h = TAILQ_FIRST(&p->held)))
		held_refuse(p, h, ECONNREFUSED);
}

/* How long the first one may wait, in ns; 0: without end, UINT64_MAX: not at all. */
static uint64_t patience(const struct hd_pair *p, const struct hd_held *h, enum wait w)
{
	uint32_t word = (uint32_t)(h->pkt.imm >> 32), retries = word & 7;
	uint64_t ns = 0;

	if (w == WAIT_READY)
		ns = (uint64_t)hd_word_ms(word) * HD_NS_PER_MS;
	else if (w == WAIT_RECEIVE && retries < 7)
		ns = retries ? (uint64_t)retries * p->rnr_timer_us * 1000 : UINT64_MAX;
	return ns;
}

/* The first one waits for this from now on, by a time that begins now. False: not even a moment. */
static bool wait_begin(struct hd_pair *p, struct hd_held *h, enum wait w)
{
	uint64_t ns = w == WAIT_WINDOW ? HD_PAIR_SETTLE_NS : patience(p, h, w);

	if (h->waits == w && w != WAIT_WINDOW)
		return true;
	h->waits = (uint8_t)w;
	hd_hold_unstarve(p);
	hd_timer_stop(p->ep->node, &p->timer);
	if (w == WAIT_RECEIVE) {
		TAILQ_INSERT_TAIL(&p->ep->rq->starved, p, starved_entry);
		p->starved = true;
	}
	if (!ns || ns == UINT64_MAX)
		return !ns;
	p->timer.fn = hd_hold_timed;
	hd_timer_set(p->ep->node, &p->timer, ns);
	return true;
}

static void relay(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt,
		  const struct iovec payload, uint32_t units)
{
	const struct hd_relay_request r = { peer, pkt, payload.iov_base, payload.iov_len, units };

	hd_hold_ack(p);
	hd_relay_take(p, &r);
}

bool hd_hold_is_broken(const struct hd_pair *p, const struct hd_peer *peer, uint32_t src)
{
	return p->broken_peer == peer && p->broken_src == src && p->broken_gen == hd_remote_gen(peer, src);
}

static struct hd_held *first_of(struct hd_pair *p, const struct hd_peer *peer, uint32_t src)
{
	struct hd_held *h;

	TAILQ_FOREACH(h, &p->held, entry)
		if (h->peer == peer && h->pkt.src == src)
			break;
	return h;
}

/* Something of this sender has been given up: what comes behind it must not be carried out without it. */
static void break_off(struct hd_pair *p, struct hd_peer *peer, uint32_t src)
{
	struct hd_held *h;

	hd_agree_no_more(p);
	p->broken_peer = peer;
	p->broken_src = src;
	p->broken_gen = hd_remote_gen(peer, src);
	while ((h = first_of(p, peer, src)))
		held_refuse(p, h, ECONNREFUSED);
}

void hd_hold_end(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, int err)
{
	hd_hold_ack(p);
	if (err == ENOBUFS || err == ETIMEDOUT) {
		hd_hold_refuse(peer, pkt, units, err);
		break_off(p, peer, pkt->src);
		return;
	}
	hd_hold_refuse(peer, pkt, units, err);
	if (err == EMSGSIZE || err == EREMOTEIO) /* the receive has told of it */
		hd_pair_fail_soon(p, err);
	else
		hd_pair_offended(p->ep, err);
}

/* Time is up for the first one. */
static void give_up(struct hd_pair *p, int err)
{
	struct hd_held *h = TAILQ_FIRST(&p->held);
	struct hd_peer *peer = h->peer;
	uint32_t src = h->pkt.src;

	hd_hold_ack(p);
	held_refuse(p, h, err);
	break_off(p, peer, src);
}

void hd_hold_timed(struct hd_timer *timer)
{
	struct hd_pair *p = hd_container(timer, struct hd_pair, timer);
	struct hd_held *h = TAILQ_FIRST(&p->held);

	if (h && !p->taking)
		give_up(p, what_for(p, h->peer, &h->pkt, h->data) == WAIT_RECEIVE ? ENOBUFS : ETIMEDOUT);
	hd_hold_resume(p);
}

/* Let in what can be. True: it was the first, and something was done with it. */
static bool resume_one(struct hd_pair *p, struct hd_held *h)
{
	enum wait w = admit(p, h->peer, &h->pkt, h->data);

	if (w == WAIT_FAULT) {
		fault(p, h->peer, &h->pkt, h->units);
		held_free(p, h);
		return true;
	}
	if (w >= WAIT_NEVER) {
		reject(p, h->peer, &h->pkt, h->units, w);
		held_free(p, h);
		return true;
	}
	if (w == WAIT_RELAY) {
		relay(p, h->peer, &h->pkt, (struct iovec){ h->data, h->len }, h->units);
		held_free(p, h);
		return true;
	}
	if (w != WAIT_NOT) {
		if (wait_begin(p, h, w))
			return false;
		give_up(p, ENOBUFS);
		return true;
	}
	held_out(p, h);
	carry_out(p, h->peer, &h->pkt, h->data, h->len, h->units);
	held_put(p, h);
	return true;
}

void hd_hold_resume(struct hd_pair *p)
{
	struct hd_held *h;

	while ((h = TAILQ_FIRST(&p->held)))
		if (!resume_one(p, h))
			break;
}

static int hold(struct hd_pair *p, struct hd_peer *peer, const struct hd_pkt *pkt, const struct iovec payload,
		uint32_t units)
{
	struct hd_held *h = hd_bytes_get(&p->ep->node->bytes, sizeof(*h) + payload.iov_len);
	bool first = TAILQ_EMPTY(&p->held);

	if (!h) {
		p->taking &= !first;
		hd_link_down(peer->link, -ENOMEM, "no memory for a message that is held back");
		return -ENOMEM;
	}
	h->peer = peer;
	h->waits = WAIT_NOT;
	h->units = units;
	h->len = (uint32_t)payload.iov_len;
	h->pkt = *pkt;
	if (payload.iov_len)
		memcpy(h->data, payload.iov_base, payload.iov_len);
	TAILQ_INSERT_TAIL(&p->held, h, entry);
	peer->rx_held += units;
	if (peer->rx_held > peer->window / 2)
		hd_peer_grow(peer);
	if (first)
		hd_hold_resume(p);
	return 0;
}

/* ---- arriving ------------------------------------------------------------------------------------------------------------ */

/* What a WRITE costs, see hd_rma_write: as a message when it brings its data. */
static uint32_t write_units(const struct hd_pkt *pkt, const void *payload, size_t len)
{
	uint64_t bytes = pkt->tag;
	struct hd_rma head;
	size_t n;

	if (len < sizeof(head))
		return 0;
	memcpy(&head, payload, sizeof(head));
	n = sizeof(head) + head.count * sizeof(struct hd_rma_seg);
	if (n > len)
		return 0;
	if (pkt->flags & HD_PKT_F_TAGGED)
		bytes &= HD_NAME_BYTES;
	return !head.offer_len && len - n == bytes ? hd_units(len) : HD_UNITS_RMA;
}

/* What the request costs; 0: it is malformed. */
static uint32_t charge_of(const struct hd_pkt *pkt, const void *payload, size_t len)
{
	switch (pkt->kind) {
	case HD_PKT_RTS:
		return len < offsetof(struct hd_rts, offer) || len > sizeof(struct hd_rts) ? 0 : HD_UNITS_RTS;
	case HD_PKT_WRITE:
		return write_units(pkt, payload, len);
	case HD_PKT_READ:
		return HD_UNITS_RMA;
	case HD_PKT_ATOMIC:
		return len > HD_ATOMIC_PAYLOAD ? 0 : hd_units(len);
	default:
		return hd_units(len);
	}
}

int hd_hold_deliver(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		    size_t len)
{
	uint32_t units = charge_of(pkt, payload, len);
	struct hd_peer *peer = link->peer;
	struct hd_pair *p = ep->pair;
	enum wait w;

	if (!units || !hd_peer_charge(peer, units)) {
		hd_link_down(link, -EPROTO, "malformed or uncredited request for a queue pair");
		return -EPROTO;
	}
	w = TAILQ_EMPTY(&p->held) ? admit(p, peer, pkt, payload) : WAIT_BUSY;
	if (hd_likely(w == WAIT_NOT))
		return carry_out(p, peer, pkt, payload, len, units);
	if (hd_unlikely(w == WAIT_FAULT)) {
		fault(p, peer, pkt, units);
		return 0;
	}
	if (w >= WAIT_NEVER) {
		reject(p, peer, pkt, units, w);
		return 0;
	}
	if (w == WAIT_RELAY) {
		relay(p, peer, pkt, (struct iovec){ (void *)payload, len }, units);
		return 0;
	}
	return hold(p, peer, pkt, (struct iovec){ (void *)payload, len }, units);
}

/* ---- what lets in -------------------------------------------------------------------------------------------------------- */

/* Whoever has waited longest, unless that one has turned out to wait for something else: then the next. */
void hd_hold_posted(struct hd_rq *rq)
{
	struct hd_pair *p;

	while ((p = TAILQ_FIRST(&rq->starved)) && rq->match[0].posted) {
		hd_hold_resume(p);
		hd_hold_ack(p);
		if (TAILQ_FIRST(&rq->starved) == p)
			break;
	}
}

static struct hd_op **coming(struct hd_pair *p, uint32_t turn)
{
	return &p->coming[turn % HD_PAIR_COMING];
}

/* The first one that is coming in, if it is here already. */
static struct hd_op *first_here(struct hd_pair *p)
{
	struct hd_op *op = p->turn_first != p->turn_next ? *coming(p, p->turn_first) : NULL;

	return op && op->answered ? op : NULL;
}

void hd_hold_busy(struct hd_op *op)
{
	struct hd_pair *p = op->ep->pair;

	if (!p)
		return;
	p->transfers++;
	op->before = p->turn_next++;
	*coming(p, op->before) = op;
}

void hd_hold_idle(struct hd_op *op)
{
	struct hd_pair *p = op->ep->pair;

	if (!p)
		return;
	if (!--p->transfers)
		p->spoiled = 0;
	*coming(p, op->before) = NULL;
	while (p->turn_first != p->turn_next && !*coming(p, p->turn_first))
		p->turn_first++;
	if (!TAILQ_EMPTY(&p->held) || first_here(p))
		hd_pair_kick(p);
}

/* Nothing is received behind something that has failed; its sender, who may not know of that, is told. */
static void spoiled(struct hd_pair *p, struct hd_op *op, int *err)
{
	struct hd_pkt fin = { .kind = HD_PKT_FIN, .op = op->remote, .imm = ECONNREFUSED };

	if (!*err && p->spoiled) {
		*err = p->spoiled;
		hd_peer_send(op->peer, &fin, NULL, 0);
	}
	if (!p->lossy)
		p->spoiled = *err;
}

bool hd_hold_turn(struct hd_op *op, int *err)
{
	struct hd_pair *p = op->ep->pair;

	if (!p)
		return true;
	if (op->before == p->turn_first) {
		spoiled(p, op, err);
		return true;
	}
	op->answered = true;
	op->answer = *err;
	return false;
}

void hd_hold_finish(struct hd_pair *p)
{
	struct hd_op *op;

	while ((op = first_here(p)))
		hd_recv_op_done(op, op->answer);
}

/* It is forgotten; the next one waits from now on, by a time of its own. */
static void held_drop(struct hd_pair *p, struct hd_held *h)
{
	if (h == TAILQ_FIRST(&p->held))
		hd_pair_kick(p);
	held_free(p, h);
}

/* hd_hold_forget: the peer is gone, and with it what it had sent. */
void hd_hold_forget(struct hd_ep *ep, const struct hd_peer *peer)
{
	struct hd_held *h, *next;

	if (ep->pair->from_peer == peer)
		hd_agree_no_more(ep->pair);
	if (ep->pair->broken_peer == peer)
		ep->pair->broken_peer = NULL;
	hd_relay_forget(ep->pair, peer);
	if (ep->pair->asks)
		hd_asks_forget(ep->pair->asks, peer);
	for (h = TAILQ_FIRST(&ep->pair->held); h; h = next) {
		next = TAILQ_NEXT(h, entry);
		if (h->peer == peer)
			held_drop(ep->pair, h);
	}
}

/*
 * hd_hold_outdated: the peer's endpoint begins anew, or has ended: what it had sent, and nobody has let in, it knows nothing of any more.
 */
void hd_hold_outdated(struct hd_pair *p, struct hd_peer *peer, uint32_t src)
{
	struct hd_held *h, *next;

	for (h = TAILQ_FIRST(&p->held); h; h = next) {
		next = TAILQ_NEXT(h, entry);
		if (h->peer != peer || h->pkt.src != src)
			continue;
		hd_peer_free_units(peer, h->units);
		held_drop(p, h);
	}
}

/*
 * hd_hold_over: our life has ended, and what came for it is refused. Others may mean the one that follows, as those who send to a card try
 * once more: whoever has begun anew, and if we have been reset already, whom we have not let in.
 */
void hd_hold_over(struct hd_pair *p, bool reset)
{
	struct hd_held *h, *next;

	for (h = TAILQ_FIRST(&p->held); h; h = next) {
		enum hd_met met = hd_agree_met(p, h->peer, h->pkt.src);

		next = TAILQ_NEXT(h, entry);
		if (p->lossy || met == HD_MET_NOW || (met == HD_MET_NEVER && !reset))
			held_refuse(p, h, ECONNREFUSED);
	}
}
