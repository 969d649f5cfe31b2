/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The caller's end of a connection, up to where both are up: finding the service, asking it, going
 * to the endpoint that has accepted.
 */
#include "engine/cm/call.h"
#include "engine/cm/space.h"
#include "engine/core/core.h"
#include "engine/link/link.h"
#include "engine/name/name.h"

#include "base/clock.h"
#include "base/sockaddr.h"

#include <errno.h>
#include <netinet/in.h>

/* Until a service that is not there is looked for once more, each time; in µs. */
static const uint32_t again_us[] = { 100, 900, 9000, 40000, 150000 };
#define AGAIN_MAX (sizeof(again_us) / sizeof(again_us[0]))

static void asked_lost(struct hd_pending *asked, enum hd_status status)
{
	hd_call_lost(hd_container(asked, struct hd_conn, asked), -ECONNRESET);
}

static const struct hd_pending_ops asked_ops = { .lost = asked_lost };

/*
 * Each question has a number of its own: one node may be asked twice for a call, and its first
 * answer come after the second question.
 */
static uint32_t call_number(struct hd_conns *conns)
{
	if (!++conns->requests)
		conns->requests = 1;
	return conns->requests;
}

/* The service's node can be reached: ask. */
void hd_call_ask(struct hd_conn *c)
{
	struct hd_connect body = {
		.space = c->space, .number = c->space_number, .type = HD_EP_MSG, .word = c->priv.word
	};
	struct hd_pkt pkt = { .kind = HD_PKT_CONNECT,
			      .dst = c->dest->remote,
			      .gen = c->dest->gen,
			      .src = c->ep->index,
			      .op = c->number = call_number(hd_conns(c->ep->node)) };

	hd_ep_describe(c->ep, &body.from);
	memcpy(body.data, c->priv.data, c->priv.len);
	hd_conn_wait(c, HD_CONN_ASKED);
	c->asked_index = c->dest->remote;
	c->asked_gen = c->dest->gen;
	c->kept = false;
	hd_pending_unnumbered(&c->asked, &asked_ops);
	hd_pending_join(&c->asked, c->dest->peer);
	hd_peer_send(c->dest->peer, &pkt, &body, offsetof(struct hd_connect, data) + c->priv.len);
}

/* Where the service may be: its port, or the first of several. */
static bool first_target(const struct hd_connect_args *args, struct sockaddr_storage *out)
{
	struct hd_name_key key;

	if (!hd_sockaddr_size(args->to))
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(out, args->to, hd_sockaddr_size(args->to));
	if (args->space)
		hd_addr_set_port(out, hd_space_port(args->space, args->number, 0));
	return hd_addr_key((void *)out, &key);
}

int hd_ep_connect(struct hd_ep *ep, const struct hd_connect_args *args)
{
	struct hd_node *node = ep->node;
	struct hd_conn *c = ep->conn;
	struct sockaddr_storage first;
	int rc;

	hd_assert_locked(node);
	if (hd_core(node)->gate.dead)
		return -ENOTRECOVERABLE;
	if (!c || !first_target(args, &first))
		return -EINVAL;
	if (c->state != HD_CONN_IDLE)
		return -EISCONN;
	c->space = args->space;
	c->space_number = args->number;
	c->priv.word = args->data.word;
	c->priv.len = hd_cm_copy(c->priv.data, &args->data);
	c->at = first;
	c->confirms = args->confirms;
	c->due = args->timeout_ms ? hd_now_ns() + args->timeout_ms * (uint64_t)HD_NS_PER_MS : 0;
	hd_conn_wait(c, HD_CONN_CALLING);
	rc = c->space ? -ECONNREFUSED : hd_conn_go(c, (void *)&c->at, 0);
	if (rc < 0 && !hd_call_next(c, &rc))
		hd_conn_fail(c, -rc, NULL);
	return 0;
}

/* Is it this host that is called? */
static bool calls_own_host(const struct hd_conn *c)
{
	struct hd_name_key key;

	return hd_addr_key((void *)&c->at, &key) && hd_addr_is_local(c->ep->node, &key);
}

/*
 * May the service be at another port of this host, when one has failed so (a negative errno)? A
 * second silent one is enough. No network keeps this host from itself: there, a node has answered
 * that may not be spoken to, and another service of its may have the port.
 */
static bool goes_on(struct hd_conn *c, int err)
{
	bool again = c->timed_out;

	switch (-err) {
	case ETIMEDOUT:
		c->timed_out = true;
		return !again;
	case EHOSTUNREACH:
		c->shut = calls_own_host(c);
		return c->shut;
	case ENETUNREACH:
	case ENETDOWN:
	case EAFNOSUPPORT:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return false;
	default:
		return true;
	}
}

static void call_again(struct hd_timer *timer)
{
	struct hd_conn *c = hd_container(timer, struct hd_conn, timer);
	int err = -ECONNREFUSED;

	hd_conn_wait(c, HD_CONN_CALLING);
	if (!c->space)
		err = hd_conn_go(c, (void *)&c->at, 0);
	if (err < 0 && !hd_call_next(c, &err))
		hd_conn_fail(c, -err, NULL);
}

/*
 * Nobody is at any of the ports. Programs close a listener, tell the other side, and open the next:
 * their caller, which needs no fabric's time to find its way here, may come in between; or it was
 * the old one that was asked, by what was known of the port before. So all are called once more, a
 * little later; false: they have been, often enough.
 */
static bool call_later(struct hd_conn *c)
{
	if (c->again == AGAIN_MAX)
		return false;
	c->next = 0;
	hd_conn_unfollow(c);
	hd_conn_enter(c, HD_CONN_CALLING);
	c->timer.fn = call_again;
	hd_timer_set(c->ep->node, &c->timer, again_us[c->again++] * (uint64_t)HD_NS_PER_US);
	return true;
}

/* The service is nowhere. What has kept us from it, as far as is known? */
static int call_verdict(const struct hd_conn *c, int err)
{
	const struct hd_service_attr service = { .space = c->space,
						 .number = c->space_number,
						 .bind = (const struct sockaddr *)&c->at };

	if (c->shut && (err == -ECONNREFUSED || err == -EHOSTUNREACH))
		err = hd_space_is_taken(&service) ? -EHOSTUNREACH : -ECONNREFUSED;
	/* whoever was lost may have been it */
	return c->lost && err == -ECONNREFUSED ? c->lost : err;
}

bool hd_call_next(struct hd_conn *c, int *err)
{
	uint16_t port;

	if (!c->space && c->known && *err == -ECONNREFUSED && call_later(c))
		/* it is the port that counts there, and not who had it when we were last told */
		return true;
	while (c->space && goes_on(c, *err)) {
		port = hd_space_port(c->space, c->space_number, c->next++);
		if (!port && call_later(c))
			return true;
		if (!port)
			break;
		hd_addr_set_port(&c->at, port);
		hd_conn_enter(c, HD_CONN_CALLING);
		*err = hd_conn_go(c, (void *)&c->at, 0);
		if (*err >= 0)
			return true;
	}
	*err = call_verdict(c, *err);
	return false;
}

void hd_call_turned_away(struct hd_conn *c, const struct hd_private *priv)
{
	int err = -ECONNREFUSED;

	if (!hd_call_next(c, &err))
		hd_conn_fail(c, -err, priv);
}

void hd_call_lost(struct hd_conn *c, int err)
{
	c->lost = err;
	if (!hd_call_next(c, &err))
		hd_conn_fail(c, -err, NULL);
}

/* The connection that asked for this answer, or NULL when it no longer waits for one. */
static struct hd_conn *call_asker(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_conn *c = hd_conn_named(link, pkt);

	if (!c || c->state != HD_CONN_ASKED || c->number != pkt->op || c->asked.peer != link->peer)
		return NULL;
	return c;
}

int hd_conn_rejected(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_conn *c = call_asker(link, pkt);
	struct hd_private priv;

	if (!hd_private_take(&priv, pkt->tag, payload, len) || !pkt->imm || pkt->imm > 4095)
		return hd_link_broken(link, "malformed rejection");
	if (c && pkt->imm == EINPROGRESS) {
		c->kept = true;
	} else if (c && pkt->imm != ENOENT) {
		c->heard = true;
		hd_conn_fail(c, (int)pkt->imm, &priv);
	} else if (c) {
		hd_call_turned_away(c, &priv);
	}
	return 0;
}

void hd_call_acceptor_name(const struct sockaddr_storage *at, const struct hd_announce *ep,
			   struct sockaddr_storage *name)
{
	struct hd_name_key service;

	hd_addr_key((const void *)at, &service);
	hd_addr_unmap(hd_addr_is_zero(ep->addr) ? service.addr : ep->addr, ep->port, name);
	hd_name_set_slot((void *)name, ep->slot);
	hd_sockaddr_set_scope((void *)name, service.scope);
}

static void reach_again(struct hd_timer *timer);

/* False: it has been tried often enough. */
static bool reach_later(struct hd_conn *c)
{
	if (c->again == AGAIN_MAX)
		return false;
	c->timer.fn = reach_again;
	hd_timer_set(c->ep->node, &c->timer, again_us[c->again++] * (uint64_t)HD_NS_PER_US);
	return true;
}

/*
 * Where there is no memory for the way, there may be a little later; and until then there is none
 * to tell him who has accepted.
 */
static void call_reach(struct hd_conn *c)
{
	struct sockaddr_storage name;
	int rc;

	hd_call_acceptor_name(&c->at, &c->other, &name);
	rc = hd_conn_go(c, (void *)&name, c->ep->key);
	if (rc == -ENOMEM && c->state == HD_CONN_REACHING) {
		hd_conn_unfollow(c);
		if (reach_later(c))
			return;
	}
	if (rc < 0)
		hd_conn_fail(c, -rc, NULL);
}

/* Go to the endpoint that took the connection. */
int hd_conn_accepted(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_conn *c = call_asker(link, pkt);
	struct hd_accept body;

	if (len < offsetof(struct hd_accept, data) || len > sizeof(body))
		return hd_link_broken(link, "malformed acceptance");
	memcpy(&body, payload, len);
	if (!c) { /* who accepted had not heard of that, and would wait for READY */
		if (link->peer)
			hd_call_decline(link, pkt, &body);
		return 0;
	}
	c->node = body.node;
	c->other = body.ep;
	c->token = body.token;
	c->priv.word = body.word;
	c->priv.len = len - offsetof(struct hd_accept, data);
	memcpy(c->priv.data, body.data, c->priv.len);
	c->again = 0;
	hd_conn_wait(c, HD_CONN_REACHING);
	if (body.ep.key == c->ep->key)
		call_reach(c);
	else
		hd_conn_fail(c, EACCES, NULL);
	return 0;
}

/* Tell the acceptor that we are there, and be connected. */
static void call_ready(struct hd_conn *c)
{
	struct hd_dest *dest = c->dest;
	struct hd_pkt pkt = { .kind = HD_PKT_READY,
			      .dst = dest->remote,
			      .gen = dest->gen,
			      .src = c->ep->index,
			      .tag = c->token,
			      .imm = c->ep->gen };

	hd_peer_send(dest->peer, &pkt, NULL, 0);
	hd_conn_enter(c, HD_CONN_UP);
}

int hd_ep_confirm(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	if (hd_core(ep->node)->gate.dead)
		return -ENOTRECOVERABLE;
	if (!ep->conn || ep->conn->state != HD_CONN_AGREED)
		return -ENOTCONN;
	call_ready(ep->conn);
	return 0;
}

static void reach_again(struct hd_timer *timer)
{
	struct hd_conn *c = hd_container(timer, struct hd_conn, timer);

	c->misled = false;
	hd_conn_wait(c, HD_CONN_REACHING);
	call_reach(c);
}

/*
 * The name has led to another than the acceptor: to one that had it before, for the acceptance may
 * be here sooner than the word that he has gone, which comes by another link. So it is looked up
 * once more, a little later; false: it has been, often enough, or the acceptor is no more, and
 * another has its place.
 */
static bool is_misled(struct hd_conn *c)
{
	const struct hd_peer *peer = c->dest->peer;
	uint16_t known = hd_remote_gen(peer, c->other.index);

	if (!memcmp(&peer->id, &c->node, sizeof(c->node)) && known && (int16_t)(known - c->other.gen) > 0)
		return false;
	c->misled = reach_later(c);
	return c->misled;
}

/* The acceptor's node can be reached. */
void hd_call_arrive(struct hd_conn *c)
{
	struct hd_dest *dest = c->dest;

	if (memcmp(&dest->peer->id, &c->node, sizeof(c->node)) || dest->remote != c->other.index ||
	    dest->gen != c->other.gen) {
		if (!is_misled(c))
			hd_conn_fail(c, ECONNREFUSED, NULL);
		return;
	}
	if (c->confirms) {
		hd_conn_enter(c, HD_CONN_AGREED);
		hd_conn_post(c, HD_EV_ANSWER, 0, &c->priv);
		return;
	}
	call_ready(c);
	hd_conn_post(c, HD_EV_UP, 0, &c->priv);
}
