/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What has arrived for a queue pair and cannot be carried out yet (responder.c): it is kept as it
 * came, with its credit, and so is all behind it:
 *
 *	not ready	the endpoint has not been told of its other end
 *				until the sender's time-out
 *	no receive	a message, or a write with immediate data, needs one
 *				for the sender's retries, of our timer each
 *	busy		a long message or write before it is still coming in
 *				no end: that ends
 *	window		it takes back a window that somebody still copies through
 *				no end: that ends
 *
 * Unreliable endpoints drop instead of the first two. When time is up the first is answered with an
 * error, and what its sender has sent behind it is refused, for that one fails; others, who may
 * have come while the endpoint was not ready, have a time of their own.
 */
#include "engine/qp/respq.h"
#include "engine/link/link.h"
#include "engine/rma/rma.h"

#include "base/clock.h"

struct hd_queued {
	TAILQ_ENTRY(hd_queued) entry;
	struct hd_held held;	   /* peer->held_back */
	struct hd_of_peer of_peer; /* HD_OF_PEER_HELD */
	struct hd_qp *p;
	struct hd_peer *peer;
	/* enum hd_wait: it is the first and waits for this; HD_WAIT_NOT: it is not */
	uint8_t waits;
	uint32_t units, len;
	uint64_t since; /* when it came */
	struct hd_pkt pkt;
	_Alignas(8) unsigned char data[];
};

/* It waits no longer, and the next one not yet. */
static void queued_unlink(struct hd_qp *p, struct hd_queued *h)
{
	if (h == TAILQ_FIRST(&p->respq.queue)) {
		p->respq.taking = false;
		hd_rq_unwait(&p->respq.rnr_wait);
		hd_timer_stop(p->ep->node, &p->respq.timer);
	}
	TAILQ_REMOVE(&p->respq.queue, h, entry);
	LIST_REMOVE(&h->held, entry);
	hd_of_peer_leave(p->ep->node, &h->of_peer);
	hd_credit_unhold(h->peer, h->units);
}

static void queued_put(struct hd_qp *p, struct hd_queued *h)
{
	hd_bytes_put(&hd_rqs(p->ep->node)->bytes, h, sizeof(*h) + h->len);
}

static void queued_free(struct hd_qp *p, struct hd_queued *h)
{
	queued_unlink(p, h);
	queued_put(p, h);
}

/* It is forgotten; the next one waits from now on, by a time of its own. */
static void queued_drop(struct hd_queued *h)
{
	struct hd_qp *p = h->p;

	if (h == TAILQ_FIRST(&p->respq.queue))
		hd_qp_kick(p);
	queued_free(p, h);
}

static void queued_ended(struct hd_held *held)
{
	queued_drop(hd_container(held, struct hd_queued, held));
}

static void queued_refuse(struct hd_qp *p, struct hd_queued *h, enum hd_status status)
{
	hd_resp_refuse(h->peer, &h->pkt, h->units, status);
	queued_free(p, h);
}

void hd_respq_refuse_all(struct hd_qp *p)
{
	struct hd_queued *h;

	while ((h = TAILQ_FIRST(&p->respq.queue)))
		queued_refuse(p, h, HD_S_REFUSED);
}

/*
 * How much longer an end may be not ready for it, in ns; 0: without end, UINT64_MAX: no longer. Its
 * sender has been trying since it came, whoever else was before it here.
 */
static uint64_t time_left(const struct hd_queued *h)
{
	uint64_t ns = hd_patience_ms(h->pkt.qp.epoch) * (uint64_t)HD_NS_PER_MS,
		 waited = hd_now_ns() - h->since;

	if (!ns)
		return 0;
	return waited < ns ? ns - waited : UINT64_MAX;
}

/* How long the first one may wait, in ns; 0: without end, UINT64_MAX: not at all. */
static uint64_t patience(const struct hd_qp *p, const struct hd_queued *h, enum hd_wait w)
{
	uint32_t retries = h->pkt.qp.epoch.rnr_retry;
	uint64_t ns = 0;

	if (w == HD_WAIT_READY)
		ns = time_left(h);
	else if (w == HD_WAIT_RECEIVE && retries < 7)
		ns = retries ? (uint64_t)retries * p->life.resp.rnr_timer_us * 1000 : UINT64_MAX;
	return ns;
}

/* The first one waits for this from now on, by a time that begins now. False: not even a moment. */
static bool wait_begin(struct hd_qp *p, struct hd_queued *h, enum hd_wait w)
{
	uint64_t ns = w == HD_WAIT_WINDOW ? HD_QP_SETTLE_NS : patience(p, h, w);

	if (h->waits == w && w != HD_WAIT_WINDOW)
		return true;
	h->waits = (uint8_t)w;
	hd_rq_unwait(&p->respq.rnr_wait);
	hd_timer_stop(p->ep->node, &p->respq.timer);
	if (w == HD_WAIT_RECEIVE) {
		p->respq.retries = h->pkt.qp.epoch.rnr_retry;
		hd_count(p->ep->node, HD_COUNT_RNR);
		hd_event("%s: a message of peer " HD_PEER_ID " waits for a receive (RNR)",
			 hd_ep_text(p->ep).text, HD_PEER_ID_OF(h->peer));
		hd_rq_wait(p->ep->rq, &p->respq.rnr_wait);
	}
	if (!ns || ns == UINT64_MAX)
		return !ns;
	p->respq.timer.fn = hd_respq_timed;
	hd_timer_set(p->ep->node, &p->respq.timer, ns);
	return true;
}

bool hd_respq_is_broken(const struct hd_qp *p, const struct hd_peer *peer, uint32_t src)
{
	return p->life.resp.broken_peer == peer->serial && p->life.resp.broken_src == src &&
	       p->life.resp.broken_gen == hd_remote_gen(peer, src);
}

/*
 * Something of this sender has been given up: what comes behind it must not
 * be carried out without it.
 */
static void respq_break(struct hd_qp *p, struct hd_peer *peer, uint32_t src)
{
	struct hd_queued *h, *next;

	hd_epoch_no_more(p);
	p->life.resp.broken_peer = peer->serial;
	p->life.resp.broken_src = src;
	p->life.resp.broken_gen = hd_remote_gen(peer, src);
	for (h = TAILQ_FIRST(&p->respq.queue); h; h = next) {
		next = TAILQ_NEXT(h, entry);
		if (h->peer == peer && h->pkt.src == src)
			queued_refuse(p, h, HD_S_REFUSED);
	}
}

void hd_respq_end(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units,
		  enum hd_status status)
{
	hd_resp_ack(p);
	hd_resp_refuse(peer, pkt, units, status);
	if (status == HD_S_RNR || status == HD_S_TIMEOUT)
		respq_break(p, peer, pkt->src);
	else if (status == HD_S_LENGTH || status == HD_S_OPERATIONAL)
		/* the receive has told of it */
		hd_qp_fail_soon(p, status);
	else
		hd_qp_offended(p->ep, status);
}

/* Time is up for the first one. */
static void respq_give_up(struct hd_qp *p, enum hd_status status)
{
	struct hd_queued *h = TAILQ_FIRST(&p->respq.queue);
	struct hd_peer *peer = h->peer;
	uint32_t src = h->pkt.src;

	hd_resp_ack(p);
	queued_refuse(p, h, status);
	respq_break(p, peer, src);
}

/* Its source may have another name than when it came. */
static struct hd_arrival arrival_of(const struct hd_qp *p, const struct hd_queued *h)
{
	return (struct hd_arrival){ .peer = h->peer,
				    .ep = p->ep,
				    .pkt = &h->pkt,
				    .payload = h->data,
				    .len = h->len,
				    .units = h->units,
				    .src = hd_pkt_source(h->peer, h->pkt.src) };
}

void hd_respq_timed(struct hd_timer *timer)
{
	struct hd_qp *p = hd_container(timer, struct hd_qp, respq.timer);
	struct hd_queued *h = TAILQ_FIRST(&p->respq.queue);

	if (h && !p->respq.taking) {
		const struct hd_arrival a = arrival_of(p, h);

		respq_give_up(p, hd_resp_is_rnr(p, &a) ? HD_S_RNR : HD_S_TIMEOUT);
	}
	hd_respq_resume(p);
}

/* Let in what can be. True: it was the first, and something was done with it. */
static bool resume_one(struct hd_qp *p, struct hd_queued *h)
{
	const struct hd_arrival a = arrival_of(p, h);
	enum hd_wait w = hd_resp_again(p, &a);

	if (w >= HD_WAIT_PROXY) {
		queued_free(p, h);
		return true;
	}
	if (w != HD_WAIT_NOT) {
		if (wait_begin(p, h, w))
			return false;
		respq_give_up(p, w == HD_WAIT_READY ? HD_S_TIMEOUT : HD_S_RNR);
		return true;
	}
	queued_unlink(p, h);
	hd_resp_now(p, &a);
	queued_put(p, h);
	return true;
}

void hd_respq_resume(struct hd_qp *p)
{
	struct hd_queued *h;

	while ((h = TAILQ_FIRST(&p->respq.queue)))
		if (!resume_one(p, h))
			break;
	hd_ack_publish(p);
	hd_qp_check(p);
}

int hd_respq_put(struct hd_qp *p, const struct hd_arrival *a)
{
	struct hd_queued *h = hd_bytes_get(&hd_rqs(p->ep->node)->bytes, sizeof(*h) + a->len);
	struct hd_peer *peer = a->peer;
	bool first = TAILQ_EMPTY(&p->respq.queue), in_vain = p->life.unreached;

	if (h)
		h->of_peer.list = NULL;
	if (!h || hd_of_peer_enter(peer, HD_OF_PEER_HELD, a->pkt->src, &h->of_peer) < 0) {
		if (h)
			hd_bytes_put(&hd_rqs(p->ep->node)->bytes, h, sizeof(*h) + a->len);
		p->respq.taking &= !first;
		hd_link_down(peer->link, -ENOMEM, "no memory for a message that is held back");
		return -ENOMEM;
	}
	h->p = p;
	h->peer = peer;
	h->waits = HD_WAIT_NOT;
	h->units = a->units;
	h->len = (uint32_t)a->len;
	h->since = hd_now_ns();
	h->pkt = *a->pkt;
	hd_rma_payload(a, h->data);
	TAILQ_INSERT_TAIL(&p->respq.queue, h, entry);
	h->held.ended = queued_ended;
	LIST_INSERT_HEAD(&peer->held_back, &h->held, entry);
	hd_credit_hold(peer, a->units);
	/*
	 * who says this is there now, and may be who was called in vain: so he is called once more
	 */
	p->life.unreached = false;
	if (first || in_vain)
		hd_respq_resume(p);
	return 0;
}

/* ---- what lets in ---------------------------------------------------------------------------- */

void hd_respq_posted(struct hd_rq_waiter *w)
{
	struct hd_qp *p = hd_container(w, struct hd_qp, respq.rnr_wait);

	hd_respq_resume(p);
	hd_resp_ack(p);
	hd_marks_stir(p->ep->node);
}

void hd_respqs_ended(struct hd_peer *peer, enum hd_status status)
{
	struct hd_held *held;
	struct hd_dest *dest;
	struct hd_follow *f;

	LIST_FOREACH(dest, &peer->dests, entry)
		LIST_FOREACH(f, &dest->followers, entry) {
			struct hd_qp *p = hd_qp_following(f);

			if (p && p->life.resp.from_peer == peer)
				hd_epoch_no_more(p);
		}
	while ((held = LIST_FIRST(&peer->held_back)))
		held->ended(held);
}

void hd_respq_outdated(const struct hd_qp *p, struct hd_peer *peer, uint32_t src)
{
	struct hd_of_peer *of, *next;

	for (of = hd_of_peer_first(peer, HD_OF_PEER_HELD, src); of; of = next) {
		struct hd_queued *h = hd_container(of, struct hd_queued, of_peer);

		next = LIST_NEXT(of, entry);
		if (p && h->p != p)
			continue;
		hd_peer_free_units(peer, h->units);
		queued_drop(h);
	}
}

/*
 * Others may mean the epoch that follows, as those who send to a card try once more: whoever has
 * begun anew, and if we have been reset already, whom we have not let in.
 */
void hd_respq_over(struct hd_qp *p, bool reset)
{
	struct hd_queued *h, *next;

	for (h = TAILQ_FIRST(&p->respq.queue); h; h = next) {
		enum hd_epoch_known known = hd_epoch_known(p, h->peer, h->pkt.src);

		next = TAILQ_NEXT(h, entry);
		if (p->attr.lossy || known == HD_EPOCH_NOW || (known == HD_EPOCH_NEVER && !reset))
			queued_refuse(p, h, HD_S_REFUSED);
	}
}

uint32_t hd_respq_count(const struct hd_qp *p)
{
	const struct hd_queued *h;
	uint32_t n = 0;

	TAILQ_FOREACH(h, &p->respq.queue, entry)
		n++;
	return n;
}
