/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The two ends of a connection. To be connected is to hold one destination, and to be held by one.
 *
 *	caller    IDLE → CALLING → ASKED → REACHING (→ AGREED) → UP → OVER
 *	acceptor  IDLE → ANSWERED ───────────────────► UP → OVER
 *
 * Every state but the first leads to OVER when something goes wrong; before UP that is an error
 * event, after it HD_EV_DOWN. A way to somewhere is a destination, which tells when it is bound,
 * cannot be, or is no longer (struct hd_follow). What comes from the other end is believed when it
 * fits the state, the request's number or the token, and the peer that it must come from.
 */
#include "engine/cm/call.h"
#include "engine/core/core.h"
#include "engine/ep/ep.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/rdm/rdm.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#include "base/advice.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/minus.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>

#define LATE_NS (50 * HD_NS_PER_MS) /* more, where we have stood still */

/* What a destination that is bound means; NULL: nothing new. */
static const struct {
	const char *name;
	void (*bound)(struct hd_conn *c);
	bool waits; /* for something that may never come */
} states[HD_CONN_STATES] = {
	[HD_CONN_IDLE] = { "idle", NULL, false },
	[HD_CONN_CALLING] = { "calling", hd_call_ask, true },
	[HD_CONN_ASKED] = { "asked", NULL, true },
	[HD_CONN_REACHING] = { "reaching", hd_call_arrive, true },
	[HD_CONN_AGREED] = { "agreed", NULL, false },
	[HD_CONN_ANSWERED] = { "answered", NULL, true },
	[HD_CONN_UP] = { "up", NULL, false },
	[HD_CONN_OVER] = { "over", NULL, false },
};

const char *hd_conn_state_name(enum hd_conn_state state)
{
	return (unsigned)state < HD_CONN_STATES ? states[state].name : "?";
}

/* ---- what changes the state ------------------------------------------------------------------ */

void hd_conn_post(struct hd_conn *c, uint32_t code, int err, const struct hd_private *priv)
{
	const struct hd_event e = { .code = code,
				    .err = err,
				    .prov_err = err == ECONNREFUSED && !c->heard ? ENOENT : 0,
				    .owner = c->ep->owner,
				    .word = priv ? priv->word : 0,
				    .data = priv ? priv->data : NULL,
				    .len = priv ? priv->len : 0 };

	if (c->ep->evq && hd_evq_post_of(c->ep->evq, &e, &c->node) < 0)
		hd_warn("an event of a connection is lost: there is no memory for it, or the program does not read its event queue or channel: read it in time");
}

void hd_conn_unfollow(struct hd_conn *c)
{
	struct hd_dest *dest = c->dest;

	if (!dest)
		return;
	c->dest = NULL;
	hd_dest_unfollow(dest, &c->follow);
}

/* Nobody owes it an answer any more. */
static void conn_unask(struct hd_conn *c)
{
	if (c->asked.peer)
		hd_pending_leave(&c->asked);
	hd_pending_to(&c->asked, NULL);
}

void hd_conn_enter(struct hd_conn *c, enum hd_conn_state state)
{
	if (c->state != state)
		hd_event("%s: %s, was %s", hd_ep_text(c->ep).text, states[state].name, states[c->state].name);
	hd_events_answered(c->ep->node, (state == HD_CONN_ANSWERED) - (c->state == HD_CONN_ANSWERED));
	if (state != HD_CONN_ANSWERED)
		hd_conn_unawait(c);
	conn_unask(c);
	c->state = state;
	if (!states[state].waits)
		hd_timer_stop(c->ep->node, &c->timer);
	hd_ep_set_to(c->ep, state == HD_CONN_UP ? c->dest : hd_links(c->ep->node)->nobody);
	hd_ep_show(c->ep);
}

/*
 * It is over: what is posted and under way completes with err, a positive errno. The other end
 * has been told, or knows.
 */
static void conn_end(struct hd_conn *c, enum hd_status status)
{
	struct hd_dest *dest = c->dest;

	hd_conn_enter(c, HD_CONN_OVER);
	hd_ep_set_rx_end(c->ep, HD_RX_REFUSED);
	hd_order_hold(c->ep);
	if (dest && dest->state == HD_DEST_BOUND) {
		hd_fence_fail(dest->peer, dest, status);
		hd_ep_ops_end(c->ep, dest->peer, status);
	}
	hd_order_flush(c->ep, status);
	hd_rq_flush(c->ep, status);
	hd_conn_unfollow(c);
}

static const char *conn_advice(const struct hd_conn *c, int err)
{
	if (c->heard)
		return ": the program at the other end says no";
	if (err == ETIMEDOUT && c->state != HD_CONN_CALLING)
		return ": the program at the other end does not go on: `heddle info --links` there shows what it does";
	return hd_advice_call(err);
}

void hd_conn_fail(struct hd_conn *c, int err, const struct hd_private *priv)
{
	hd_info("%s: no connection, it was %s: %s%s", hd_ep_text(c->ep).text, states[c->state].name,
		strerror(err), conn_advice(c, err));
	conn_end(c, HD_S_CANCELLED);
	if (c->presumed)
		hd_conn_down(c, HD_WORD_LOST);
	else
		hd_conn_post(c, HD_EV_UP, err, priv);
}

/* why: or NULL. */
static void tell_leave(struct hd_conn *c, const struct hd_cm_data *why)
{
	struct hd_pkt pkt = { .kind = HD_PKT_LEAVE,
			      .dst = c->asked_index,
			      .gen = c->asked_gen,
			      .src = c->ep->index,
			      .op = c->number,
			      .imm = why ? why->word : 0 };
	struct hd_peer *peer = c->asked.peer;
	uint8_t priv[HD_CM_PRIVATE];

	if (!peer && c->dest && c->dest->state == HD_DEST_BOUND) {
		peer = c->dest->peer;
		pkt.dst = c->dest->remote;
		pkt.gen = c->dest->gen;
	}
	if (peer)
		hd_peer_send(peer, &pkt, priv, hd_cm_copy(priv, why));
}

/* ---- destinations ---------------------------------------------------------------------------- */

/* It was up; the other end has left with this word. */
static void fall(struct hd_conn *c, uint64_t word)
{
	conn_end(c, HD_S_CANCELLED);
	hd_conn_down(c, word);
}

static void conn_followed(struct hd_follow *follow, int err)
{
	struct hd_conn *c = hd_container(follow, struct hd_conn, follow);

	if (!err && states[c->state].bound) {
		states[c->state].bound(c);
	} else if (c->state == HD_CONN_ASKED) {
		if (err && !c->kept && c->dest->peer->state == HD_PEER_LIVE)
			/* the service has closed, and perhaps nobody is left there to say so */
			hd_call_turned_away(c, NULL);
	} else if (err && c->state == HD_CONN_CALLING && hd_call_next(c, &err)) {
		;
	} else if (err && c->state == HD_CONN_REACHING && c->misled) {
		;				    /* he has gone indeed */
	} else if (err && c->state == HD_CONN_UP) { /* an endpoint that closes leaves a live peer */
		fall(c, c->dest->peer->state == HD_PEER_LIVE ? 0 : HD_WORD_LOST);
	} else if (err) {
		hd_conn_fail(c, -err, NULL);
	}
}

/* From here on it is this destination, referenced by the caller, that matters. */
static void follow(struct hd_conn *c, struct hd_dest *dest)
{
	hd_conn_unfollow(c);
	c->dest = dest;
	c->follow.fn = conn_followed;
	hd_dest_follower(dest, &c->follow);
}

int hd_conn_go(struct hd_conn *c, const struct sockaddr *name, uint64_t key)
{
	struct hd_dest *dest;
	int rc = hd_dest_get_keyed(c->ep->node, name, key, &dest);

	if (rc < 0)
		return rc;
	follow(c, dest);
	c->known = c->state == HD_CONN_CALLING && dest->state == HD_DEST_BOUND;
	if (dest->state == HD_DEST_IDLE)
		rc = hd_dest_connect(dest);
	else if (dest->state == HD_DEST_BOUND)
		states[c->state].bound(c);
	return rc;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void timed_out(struct hd_timer *timer)
{
	struct hd_conn *c = hd_container(timer, struct hd_conn, timer);
	uint64_t more = hd_patience_more(&c->patience, LATE_NS);

	if (more) {
		hd_timer_set(c->ep->node, timer, more);
		return;
	}
	if (c->state == HD_CONN_ASKED)
		tell_leave(c, NULL);
	hd_call_withdrawn(c);
	hd_conn_fail(c, ETIMEDOUT, NULL);
}

void hd_conn_wait(struct hd_conn *c, enum hd_conn_state state)
{
	uint64_t ns = hd_config_ms(HD_SET_ANSWER_TIMEOUT) * HD_NS_PER_MS, now = hd_now_ns();

	hd_conn_enter(c, state);
	c->timer.fn = timed_out;
	if (c->due)
		ns = hd_minus(c->due, now);
	hd_patience_begin(&c->patience, ns);
	hd_timer_set(c->ep->node, &c->timer, ns);
}

/* ---- the acceptor ---------------------------------------------------------------------------- */

int hd_conn_expect(struct hd_ep *ep, const struct hd_request *request, struct hd_accept *answer)
{
	struct hd_conn *c = ep->conn;

	hd_assert_locked(ep->node);
	if (hd_core(ep->node)->gate.dead)
		return -ENOTRECOVERABLE;
	if (!c)
		return -EINVAL;
	if (c->state != HD_CONN_IDLE)
		return -EISCONN;
	if (request->from.key != ep->key)
		return -EACCES;
	if (hd_random(&c->token, sizeof(c->token)))
		return -EIO;
	c->node = request->node;
	c->realm = request->realm;
	c->other = request->from;
	c->at = request->name;
	if (hd_conn_await(c) < 0)
		return -ENOMEM;
	answer->node = hd_core(ep->node)->page->id;
	answer->token = c->token;
	hd_ep_describe(ep, &answer->ep);
	hd_conn_wait(c, HD_CONN_ANSWERED);
	return 0;
}

void hd_conn_unexpect(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	if (ep->conn->state == HD_CONN_ANSWERED)
		hd_conn_enter(ep->conn, HD_CONN_IDLE);
}

struct hd_conn *hd_conn_named(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_ep *ep = hd_pkt_named(link->node, pkt);

	return ep ? ep->conn : NULL;
}

static bool conn_is_of(const struct hd_conn *c, const struct hd_peer *peer)
{
	return !memcmp(&peer->id, &c->node, sizeof(c->node));
}

/* Without the token, whoever calls himself as the caller does might say so. */
static bool conn_is_callers(const struct hd_conn *c, const struct hd_peer *peer)
{
	return conn_is_of(c, peer) && peer->realm == c->realm;
}

int hd_conn_ready(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_conn *c = hd_conn_named(link, pkt);
	struct hd_peer *peer = link->peer;
	struct hd_dest *dest = NULL;

	if (c && c->state == HD_CONN_ANSWERED && pkt->tag == c->token && pkt->src == c->other.index &&
	    pkt->imm == c->other.gen && conn_is_of(c, peer))
		dest = hd_dest_at(peer, pkt->src, (uint16_t)pkt->imm);
	if (!dest) {
		struct hd_pkt leave = {
			.kind = HD_PKT_LEAVE, .dst = pkt->src, .gen = (uint16_t)pkt->imm, .src = pkt->dst
		};

		hd_peer_send(peer, &leave, NULL, 0);
		return 0;
	}
	follow(c, dest);
	hd_conn_enter(c, HD_CONN_UP);
	if (!c->presumed)
		hd_conn_post(c, HD_EV_UP, 0, NULL);
	return 0;
}

int hd_ep_presume(struct hd_ep *ep)
{
	struct hd_conn *c = ep->conn;

	hd_assert_locked(ep->node);
	if (!c || (c->state != HD_CONN_ANSWERED && c->state != HD_CONN_UP))
		return -ENOTCONN;
	if (c->presumed || c->state == HD_CONN_UP)
		return -EISCONN;
	c->presumed = true;
	/* as long as any connection: the kernel's CM asks no more either */
	hd_timer_stop(ep->node, &c->timer);
	hd_conn_post(c, HD_EV_UP, 0, NULL);
	return 0;
}

/* ---- parting --------------------------------------------------------------------------------- */

void hd_callers_ended(struct hd_peer *peer, enum hd_status status)
{
	hd_requests_orphan(peer);
	hd_conns_orphan(peer, NULL);
}

int hd_conn_left(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *ep = hd_pkt_named(link->node, pkt);
	struct hd_conn *c = ep ? ep->conn : NULL;
	struct hd_private why;

	if (!hd_private_take(&why, pkt->imm, payload, len))
		return hd_link_broken(link, "malformed end of a connection");
	hd_request_withdrawn(link->peer, pkt->src, pkt->op);
	if (c && c->state == HD_CONN_ANSWERED && pkt->src == c->other.index &&
	    conn_is_callers(c, link->peer)) {
		c->heard = true;
		hd_conn_fail(c, ECONNREFUSED, &why); /* accepted, but the caller does not confirm */
	}
	if (!c || c->state != HD_CONN_UP || c->dest->peer != link->peer || c->dest->remote != pkt->src)
		return 0;
	fall(c, pkt->imm);
	return 0;
}

bool hd_ep_is_over(const struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	return ep->conn && ep->conn->state == HD_CONN_OVER;
}

int hd_ep_disconnect(struct hd_ep *ep, const struct hd_cm_data *why)
{
	struct hd_conn *c = ep->conn;

	hd_assert_locked(ep->node);
	if (hd_core(ep->node)->gate.dead)
		return -ENOTRECOVERABLE;
	if (c)
		hd_conn_last_tell(c);
	if (!c || c->state == HD_CONN_IDLE || c->state == HD_CONN_OVER)
		return -ENOTCONN;
	if (c->state == HD_CONN_UP || c->state == HD_CONN_ASKED || c->state == HD_CONN_AGREED)
		tell_leave(c, why);
	hd_call_withdrawn(c);
	conn_end(c, HD_S_CANCELLED);
	return 0;
}

static void rings(struct hd_timer *timer)
{
	hd_conn_post(hd_container(timer, struct hd_conn, timer), HD_EV_ALARM, 0, NULL);
}

int hd_ep_alarm(struct hd_ep *ep, uint32_t ms)
{
	struct hd_conn *c = ep->conn;

	hd_assert_locked(ep->node);
	if (!c || c->state != HD_CONN_OVER)
		return -ENOTCONN;
	hd_conn_last_tell(c);
	c->timer.fn = rings; /* nothing else is waited for any more */
	hd_timer_set(ep->node, &c->timer, ms * HD_NS_PER_MS);
	return 0;
}

bool hd_conn_is_shown_to(const struct hd_ep *ep, struct hd_page_ep *what)
{
	const struct hd_conn *c = ep->conn;

	if (ep->watch != HD_WATCH_CONNECTED || !c || c->state != HD_CONN_UP)
		return false;
	what->node = c->node;
	what->from = c->other.index;
	return true;
}

int hd_conn_open(struct hd_ep *ep)
{
	struct hd_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->ep = ep;
	ep->conn = c;
	hd_ep_watch_more(ep, HD_WATCH_CONNECTED);
	return 0;
}

void hd_conn_close(struct hd_ep *ep)
{
	struct hd_conn *c = ep->conn;

	if (!c)
		return;
	if (c->state != HD_CONN_IDLE && c->state != HD_CONN_OVER)
		hd_event("%s: closed, was %s", hd_ep_text(ep).text, states[c->state].name);
	hd_call_withdrawn(c);
	hd_timer_stop(ep->node, &c->timer);
	hd_conn_unfollow(c);
	hd_conn_unawait(c);
	conn_unask(c);
	hd_events_answered(ep->node, -(c->state == HD_CONN_ANSWERED));
	hd_ep_set_to(ep, hd_links(ep->node)->nobody);
	ep->conn = NULL;
	free(c);
}

/* ---- small things ---------------------------------------------------------------------------- */

int hd_ep_peer_name(const struct hd_ep *ep, struct sockaddr_storage *out)
{
	if (!ep->conn || ep->conn->state != HD_CONN_UP)
		return -ENOTCONN;
	*out = ep->conn->at;
	return 0;
}
