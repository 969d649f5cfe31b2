/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The greeting that makes a link between two nodes.
 *
 *	caller                                      called
 *	connect (TCP)  ───────────────────────────►  accepted
 *	HELLO {id, addresses, adverts, window} ────►
 *	               ◄────  HELLO {the same; imm: index, op: generation of the endpoint that was
 *	                      called}
 *	  a better transport is advertised, and lets us in?
 *	  join, HELLO on the new link ─────────────►  belongs to that peer
 *	USE on the link that was chosen ───────────►
 *	both: live. ANNOUNCE goes first each way, then messages.
 *
 * One link per pair of nodes. HELLO is answered MERGED when one stands already, or when the caller
 * is making one by an earlier call. When both call at once, the call of the node with the smaller
 * id counts: the called end answers MERGED to a call while its own, known to lead to the same node,
 * counts; and a caller that finds itself called by a smaller id gives up its own and waits.
 */
#include "base/advice.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "engine/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sending HELLO --------------------------------------------------------------------------- */

static void hello_fill(struct hd_node *node, struct hd_link *link, uint32_t window, struct hd_hello *h)
{
	struct hd_name_key key;

	memset(h, 0, sizeof(*h));
	h->magic = HD_WIRE_MAGIC;
	h->version = HD_WIRE_VERSION;
	h->id = hd_core(node)->page->id;
	h->incarnation = hd_core(node)->page->incarnation;
	h->window = window;
	if (link->where.ss_family != AF_UNSPEC && hd_addr_key((void *)&link->where, &key)) {
		memcpy(h->called, key.addr, 16);
		h->called_port = (uint16_t)key.port;
	}
	for (int i = 0; i < hd_names(node)->addr_count && h->addr_count < HD_HELLO_ADDRS; i++) {
		hd_addr_map((void *)&hd_names(node)->addrs[i], h->addr[h->addr_count]);
		if (!hd_addr_is_loopback(h->addr[h->addr_count]))
			h->addr_count++;
	}
	h->advert_len = hd_adverts_write(node, h->advert);
}

static int greet(struct hd_link *link, const struct hd_pkt *pkt, uint32_t window)
{
	struct hd_hello h;

	hello_fill(link->node, link, window, &h);
	return hd_link_send(link, pkt, &h, sizeof(h));
}

static int greeting_fail(struct hd_link *link, int err, const char *why)
{
	hd_link_down(link, err, why);
	return err;
}

static int hello_refuse(struct hd_link *link, int err, const char *why)
{
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO, .flags = HD_HELLO_F_REFUSED, .imm = err };

	greet(link, &pkt, 0);
	/* it is the other end's error, and no warning here */
	return greeting_fail(link, -ECONNREFUSED, why);
}

static uint64_t hello_connect_ns(void)
{
	return hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS;
}

static void time_is_up(struct hd_timer *timer)
{
	struct hd_handshake *s = hd_container(timer, struct hd_handshake, timer);
	uint64_t more = hd_patience_more(&s->patience, hello_connect_ns());

	if (more)
		hd_timer_set(s->link->node, timer, more);
	else
		hd_link_down(s->link, -ETIMEDOUT, "the other end does not finish its greeting");
}

static void expect(struct hd_handshake *s)
{
	s->timer.fn = time_is_up;
	hd_patience_begin(&s->patience, hello_connect_ns());
	hd_timer_set(s->link->node, &s->timer, hello_connect_ns());
}

/* The caller's HELLO, once the link is up and we know what for. */
static void caller_greets(struct hd_handshake *s)
{
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO, .dst = s->slot, .tag = s->key };

	if (!s->up || !s->ready || s->link->down)
		return;
	expect(s);
	if (greet(s->link, &pkt, hd_credit_first_window(s->link->node)) < 0)
		hd_link_down(s->link, -EIO, "the greeting cannot be sent");
	else if (s->joined)
		hd_hello_choose(s->peer, s->link);
}

void hd_hello_initiate(struct hd_link *link, struct hd_dest *dest)
{
	struct hd_handshake *s = &link->shake;

	s->dest = dest;
	s->slot = hd_name_slot((void *)&dest->addr);
	s->key = dest->key;
	s->initiator = true;
	s->ready = true;
	caller_greets(s);
}

void hd_link_up(struct hd_link *link)
{
	hd_assert_locked(link->node);
	hd_event("%s link to %s: up", link->port->transport->name, hd_link_text(link).text);
	hd_count(link->node, HD_COUNT_LINKS);
	hd_node_meets(link->node);
	link->shake.up = true;
	caller_greets(&link->shake);
}

/* hd_bound_port.gone */
static void bound_port_gone(const struct hd_bound_port *bound)
{
	struct hd_link *link;

	TAILQ_FOREACH(link, &hd_links(bound->node)->links, entry)
		if (link->shake.bound_port == bound) {
			link->shake.bound_port = NULL;
			if (!link->peer && !link->shake.peer)
				hd_link_down(link, -ECONNREFUSED, NULL);
		}
}

void hd_link_accepted(struct hd_link *link, struct hd_listener *l)
{
	hd_assert_locked(link->node);
	hd_event("%s link from %s: up", link->port->transport->name, hd_link_text(link).text);
	hd_count(link->node, HD_COUNT_LINKS);
	link->shake.up = true;
	link->shake.joined = !link->port->transport->addressed;
	if (l) {
		link->shake.bound_port = l->bound_port;
		l->bound_port->gone = bound_port_gone;
	}
	expect(&link->shake);
}

void hd_hello_detach(struct hd_link *link)
{
	link->shake.dest->link = NULL;
	link->shake.dest = NULL;
}

/* ---- the peer gets its link ------------------------------------------------------------------ */

void hd_hello_choose(struct hd_peer *peer, struct hd_link *link)
{
	struct hd_pkt use = { .kind = HD_PKT_USE };

	if (hd_link_send(link, &use, NULL, 0) < 0) {
		hd_link_down(link, -EIO, "the choice cannot be sent");
		return;
	}
	hd_hello_finish(peer, link);
}

static void hello_leave(struct hd_link *link)
{
	link->shake.peer = NULL;
	hd_link_down(link, 0, "another is used instead");
}

void hd_hello_finish(struct hd_peer *peer, struct hd_link *link)
{
	struct hd_link *first = peer->shaking, *joining = peer->joining;

	hd_timer_stop(peer->node, &link->shake.timer);
	link->shake.peer = NULL;
	if (!link->ops->orphan)
		hd_process_forget(peer); /* this link knows by itself */
	hd_peer_establish(peer, link);
	peer->shaking = peer->joining = NULL;
	if (joining && joining != link)
		hello_leave(joining);
	if (!first || first == link)
		return;
	if (!peer->initiator) {
		hello_leave(first);
		return;
	}
	peer->shaking = first;
	hd_timer_stop(peer->node, &first->shake.timer);
}

void hd_hello_end(struct hd_peer *peer)
{
	if (peer->shaking)
		hello_leave(peer->shaking);
	peer->shaking = NULL;
}

/* What is under way with this peer does not count: another call does. */
static void greeting_drop(struct hd_peer *peer)
{
	struct hd_link *links[] = { peer->shaking, peer->joining };

	peer->shaking = peer->joining = NULL;
	for (int i = 0; i < 2; i++)
		if (links[i])
			hello_leave(links[i]);
}

/*
 * What keeps shared memory from this other end, as far as is known, and what to do; err: of the
 * call that asked for it, or 0.
 */
static const char *without_shm(const struct hd_link *link, int err)
{
	if (link->realm == HD_REALM_FAR)
		return "is on another host, or in another network namespace: use HEDDLE_TRANSPORT=auto at both";
	if (link->realm >= HD_REALM_USER && link->realm != hd_realm_own())
		return "is of another user: run both as one, or use HEDDLE_TRANSPORT=auto at both";
	if (link->realm == HD_REALM_NOBODY)
		return "is of a user who has no number in this user namespace: run both as one user in one namespace, or use HEDDLE_TRANSPORT=auto at both";
	if (err == -ECONNREFUSED)
		return "does not listen at the UNIX socket that it has named: it has ended or become another program, and is to be started again, or it is in another network namespace: use HEDDLE_TRANSPORT=auto at both";
	if (hd_is_short(-err))
		return "cannot be asked for it, as something is short here";
	return "shares none with this one: it has HEDDLE_TRANSPORT=tcp, or one of both says what is wrong; use HEDDLE_TRANSPORT=auto at both";
}

/*
 * Why a link ends that could be made: its error alone would send the reader
 * to the routes of the host.
 */
static const char shm_alone[] = "HEDDLE_TRANSPORT=shm allows no data over it";

/* May this link carry data, where shared memory answers so? */
static bool link_allowed(const struct hd_link *link, int err)
{
	if (hd_links(link->node)->transport_choice != HD_USE_SHM || !link->port->transport->addressed)
		return true;
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN,
			"HEDDLE_TRANSPORT=shm allows nothing but shared memory, and the other end %s%s",
			without_shm(link, err), hd_is_short(-err) ? hd_advice(-err) : "");
	return false;
}

/*
 * There is no better link, for this reason: take the first, if that is allowed and somebody is
 * there. That nobody is at a join socket means it where nothing else counts: a living peer behind
 * a translation of addresses has his in a network namespace of his own.
 */
static void without(struct hd_peer *peer, int err)
{
	if (err == -ESRCH)
		hd_link_down(peer->shaking, -ECONNREFUSED, "the process has ended");
	else if (link_allowed(peer->shaking, err))
		hd_hello_choose(peer, peer->shaking);
	else
		hd_link_down(peer->shaking, err == -ECONNREFUSED ? err : -EHOSTUNREACH, shm_alone);
}

/*
 * Other transports are for processes of one user on one host: what another user or host tells of
 * one leads to somebody else, who has told it to him. Who has our key is believed.
 */
static bool may_advertise(const struct hd_peer *peer)
{
	return peer->is_sealed || peer->realm == HD_REALM_HERE || hd_realm_is_own(peer->realm);
}

/* Our first link to this peer works: look for a better one, or take it. */
static void choose_transport(struct hd_peer *peer, const struct hd_hello *h)
{
	struct hd_node *node = peer->node;
	struct hd_link *link = NULL;
	struct hd_advert advert;
	struct hd_port *port = may_advertise(peer) ? hd_advert_find(node, h, &advert) : NULL;
	int rc = port ? port->transport->connect(port, advert.at, advert.len, &h->id, &link) : -EOPNOTSUPP;

	if (rc == 0) {
		link->shake.peer = peer;
		link->shake.joined = true;
		link->shake.initiator = true;
		link->shake.ready = true;
		peer->joining = link;
		caller_greets(&link->shake);
		return;
	}
	hd_process_watch(peer, h);
	without(peer, rc);
}

/* What HELLO tells of a peer. */
static void hello_learn(struct hd_peer *peer, struct hd_link *link, const struct hd_hello *h)
{
	int n = 0;

	hd_credit_begin(peer, h->window);
	for (int i = 0; i < h->addr_count; i++)
		memcpy(peer->addr[n++], h->addr[i], 16);
	peer->link_addr = (uint8_t)n;
	memset(peer->addr[n], 0, sizeof(peer->addr[n]));
	if (link->where.ss_family != AF_UNSPEC)
		hd_addr_map((void *)&link->where, peer->addr[n++]);
	peer->link_scope = hd_sockaddr_scope((void *)&link->where);
	peer->is_sealed = link->is_sealed;
	if (link->is_local) {
		memset(peer->addr[n], 0, 32);
		memcpy(peer->addr[n++], "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
		peer->addr[n++][15] = 1; /* ::1 */
	}
	peer->addr_count = (uint8_t)n;
	peer->is_local = link->is_local;
}

static bool smaller(const struct hd_node_id *a, const struct hd_node_id *b)
{
	return a->word[0] != b->word[0] ? a->word[0] < b->word[0] : a->word[1] < b->word[1];
}

/* The destination leads to this peer, which is live or greets. */
static void lead_to(struct hd_dest *dest, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	dest->link = NULL;
	if (peer->state == HD_PEER_LIVE && hd_remote_has_gone(peer, (uint32_t)pkt->imm, (uint16_t)pkt->op)) {
		hd_dest_again(dest, -ECONNREFUSED);
		return;
	}
	if (peer->state == HD_PEER_LIVE) {
		hd_dest_bind(dest, peer, (uint32_t)pkt->imm, (uint16_t)pkt->op);
		return;
	}
	dest->remote = (uint32_t)pkt->imm;
	dest->gen = (uint16_t)pkt->op;
	dest->awaits = true;
	LIST_INSERT_HEAD(&peer->awaiting, dest, entry);
}

/* ---- HELLO at the caller --------------------------------------------------------------------- */

/* A port of ours, at an address of this host: whoever calls that may well mean us. */
static bool is_own_name(const struct hd_link *link)
{
	const struct hd_bound_port *bound;
	struct hd_name_key key;

	if (!link->is_local || !hd_addr_key((void *)&link->where, &key))
		return false;
	LIST_FOREACH(bound, &hd_names(link->node)->bound_ports, entry)
		if (bound->port == (uint16_t)key.port)
			return true;
	return false;
}

static int answered_by_self(struct hd_link *link, struct hd_dest *dest, const struct hd_pkt *pkt)
{
	struct hd_peer *self = hd_peer_self(link->node);

	/* by somebody between us and whom we called, who has not our key: RFC 9257, 4.1 */
	if (link->is_sealed && !is_own_name(link))
		return greeting_fail(
			link, -EACCES,
			"what we said to another came back to us: somebody redirects connections: see the firewalls on the way");
	link->shake.dest = NULL;
	if (dest && self)
		lead_to(dest, self, pkt);
	else if (dest)
		hd_dest_fail(dest, -ENOMEM);
	hd_link_down(link, 0, "another is used instead");
	return -ECONNABORTED;
}

static int caller_hello(struct hd_link *link, const struct hd_pkt *pkt, const struct hd_hello *h)
{
	struct hd_handshake *s = &link->shake;
	struct hd_node *node = link->node;
	struct hd_dest *dest = s->dest;
	struct hd_peer *peer;

	if (pkt->flags & HD_HELLO_F_REFUSED && pkt->imm == ENOBUFS)
		return greeting_fail(
			link, -ENOBUFS,
			"the other end has no room for us: raise HEDDLE_UNEXPECTED_MAX or ulimit -n there");
	if (pkt->flags & HD_HELLO_F_REFUSED)
		return greeting_fail(link, pkt->imm && pkt->imm < 4096 ? -(int)pkt->imm : -ECONNREFUSED,
				     "the other end refuses us");
	if (!memcmp(&h->id, &hd_core(node)->page->id, sizeof(h->id)))
		return answered_by_self(link, dest, pkt);
	peer = hd_peer_find(node, &h->id, link->realm);
	if (pkt->flags & HD_HELLO_F_MERGED || (peer && peer->state == HD_PEER_LIVE) ||
	    (peer && !peer->initiator && smaller(&h->id, &hd_core(node)->page->id))) {
		s->dest = NULL;
		if (dest && peer && (peer->state != HD_PEER_LIVE || pkt->flags & HD_HELLO_F_MERGED))
			lead_to(dest, peer, pkt);
		else if (dest)
			/* one of us believes in a link that the other has lost: he will notice */
			hd_dest_again(dest, -ECONNRESET);
		hd_link_down(link, 0, "another is used instead");
		return -ECONNABORTED;
	}
	if (!peer)
		peer = hd_peer_make(node, &h->id, link);
	if (!peer)
		return greeting_fail(link, -ENOBUFS,
				     "no room for another peer: raise HEDDLE_UNEXPECTED_MAX or ulimit -n");
	greeting_drop(peer); /* their call, or one of ours that they have lost */
	peer->shaking = link;
	peer->initiator = true;
	s->peer = peer;
	s->dest = NULL;
	hello_learn(peer, link, h);
	if (dest)
		lead_to(dest, peer, pkt);
	choose_transport(peer, h);
	return 0;
}

/* ---- HELLO at the called end ----------------------------------------------------------------- */

/* The link over a joined transport: it belongs to the peer whose greeting is under way. */
static int joined_hello(struct hd_link *link, const struct hd_hello *h)
{
	struct hd_peer *peer = hd_peer_of_ours(link->node, &h->id);

	if (!peer || peer->state != HD_PEER_SHAKING || peer->initiator || peer->joining)
		return hd_link_broken(link, "nobody is expected over this transport");
	link->shake.peer = peer;
	peer->joining = link;
	return 0;
}

static int answer_call(struct hd_link *link, uint8_t flags, uint32_t window)
{
	struct hd_handshake *s = &link->shake;
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO, .flags = flags, .op = s->ep_gen, .imm = s->ep->index };

	return greet(link, &pkt, window) < 0 ? greeting_fail(link, -EIO, "the greeting cannot be answered")
					     : 0;
}

static int called_hello(struct hd_link *link, const struct hd_pkt *pkt, const struct hd_hello *h)
{
	struct hd_handshake *s = &link->shake;
	struct hd_node *node = link->node;
	struct hd_peer *peer;

	if (!s->bound_port)
		return joined_hello(link, h);
	s->ep = hd_bound_ep(s->bound_port, pkt->dst);
	if (!s->ep)
		return hello_refuse(link, ECONNREFUSED, "it calls a name that is nobody's");
	s->ep = hd_ep_alias(s->ep, pkt->tag);
	if (!s->ep)
		return hello_refuse(link, EACCES, "it calls an endpoint with another authorization key");
	s->ep_gen = s->ep->gen;
	if (!memcmp(&h->id, &hd_core(node)->page->id, sizeof(h->id)))
		return answer_call(link, 0, 0);
	peer = hd_peer_find(node, &h->id, link->realm);
	if (peer &&
	    (peer->state == HD_PEER_LIVE || !peer->initiator || smaller(&hd_core(node)->page->id, &h->id)))
		return answer_call(link, HD_HELLO_F_MERGED,
				   0); /* also to a second call, for another endpoint */
	if (!peer)
		peer = hd_peer_make(node, &h->id, link);
	if (!peer)
		return hello_refuse(link, ENOBUFS, "no room for another peer");
	greeting_drop(peer); /* our own call */
	peer->shaking = link;
	peer->initiator = false;
	s->peer = peer;
	hello_learn(peer, link, h);
	hd_process_watch(peer, h);
	return answer_call(link, 0, hd_credit_promised(peer));
}

static int hello_use(struct hd_link *link)
{
	struct hd_peer *peer = link->shake.peer;

	if (!peer || peer->initiator || peer->state != HD_PEER_SHAKING)
		return hd_link_broken(link, "a choice that is not theirs");
	if (!link_allowed(link, 0))
		return greeting_fail(link, -EHOSTUNREACH, shm_alone);
	hd_hello_finish(peer, link);
	return 0;
}

/* ---- a caller that has gone ------------------------------------------------------------------ */

/*
 * May what the caller has said over the better link still come? It had got through, for all he
 * knew, and he may have ended since.
 */
static bool last_words_come(const struct hd_peer *peer)
{
	struct hd_node *node = peer->node;

	if (peer->state != HD_PEER_SHAKING || peer->initiator)
		return false;
	if (peer->joining)
		return true;
	/* who joins is of our user, whatever others call themselves: of him we are told */
	if (peer->realm != HD_REALM_HERE && peer->realm != hd_realm_own())
		return false;
	for (int i = 0; i < hd_core(node)->port_count; i++) {
		struct hd_port *port = hd_core(node)->ports[i];

		if (port->transport->joining && port->transport->joining(port, &peer->id))
			return true;
	}
	return false;
}

bool hd_hello_is_missed(const struct hd_peer *peer)
{
	return peer->state == HD_PEER_SHAKING && !peer->shaking && !last_words_come(peer);
}

void hd_link_missed(struct hd_node *node, const struct hd_node_id *id)
{
	/* both may have waited: see hd_peer_of_ours */
	struct hd_peer *const peers[] = { hd_peer_find(node, id, hd_realm_own()),
					  hd_peer_find(node, id, HD_REALM_HERE) };

	hd_assert_locked(node);
	for (int i = 0; i < 2; i++)
		if (peers[i] && hd_hello_is_missed(peers[i]))
			hd_peer_busy(peers[i]); /* and is dropped outside of the transport */
}

/* The first link to a peer has gone in the middle of the greeting. */
static void first_fallen(struct hd_peer *peer, int err)
{
	peer->shaking = NULL;
	if (err != -EPROTO && !hd_core(peer->node)->closing && last_words_come(peer))
		return;
	if (peer->joining) {
		peer->joining->shake.peer = NULL;
		hd_link_down(peer->joining, err, NULL);
	}
	hd_peer_drop(peer, err);
}

/* The better one has. */
static void joining_fallen(struct hd_peer *peer, int err)
{
	peer->joining = NULL;
	if (!peer->shaking)
		hd_peer_drop(peer, err);
	else if (peer->initiator && !peer->shaking->down)
		without(peer, err);
}

/* ---- doors ----------------------------------------------------------------------------------- */

static const char *hello_fault(const struct hd_hello *h)
{
	if (h->magic != HD_WIRE_MAGIC)
		return "that is not a Heddle node: see address and port";
	if (h->version != HD_WIRE_VERSION)
		return "it speaks another version of the protocol: use the same Heddle on both ends";
	if (h->addr_count > HD_HELLO_ADDRS || h->advert_len > HD_HELLO_ADVERT || h->window > INT32_MAX)
		return "malformed greeting";
	return NULL;
}

int hd_hello_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_handshake *s = &link->shake;
	struct hd_hello h;
	const char *fault;

	hd_node_meets(link->node);
	if (link->peer)
		return hd_link_broken(link, "a greeting in the middle of the conversation");
	if (pkt->kind == HD_PKT_USE)
		return hello_use(link);
	if (len != sizeof(h) || s->greeted || (s->initiator && s->joined))
		return hd_link_broken(link, "malformed greeting");
	memcpy(&h, payload, sizeof(h));
	fault = hello_fault(&h);
	if (fault)
		return hd_link_broken(link, fault);
	s->greeted = true;
	link->realm = link->ops->realm ? link->ops->realm(link) : HD_REALM_FAR;
	/* he may have been anybody, and hears no answer; who refuses us hangs up at once */
	if (link->realm == HD_REALM_GONE && !(s->initiator && pkt->flags & HD_HELLO_F_REFUSED))
		return greeting_fail(link, -ECONNRESET, "the other end has hung up");
	return s->initiator ? caller_hello(link, pkt, &h) : called_hello(link, pkt, &h);
}

void hd_hello_fallen(struct hd_link *link)
{
	struct hd_handshake *s = &link->shake;
	struct hd_peer *peer = s->peer;
	int err = link->down_err ? link->down_err : -ECONNRESET;

	hd_timer_stop(link->node, &s->timer);
	if (s->dest) {
		struct hd_dest *dest = s->dest;

		s->dest = NULL;
		dest->link = NULL;
		/* it was there a moment ago: it may have had too much to do */
		if (err == -ECONNRESET && !hd_core(link->node)->closing)
			hd_dest_again(dest, err);
		else
			hd_dest_fail(dest, err);
	}
	if (!peer)
		return;
	s->peer = NULL;
	if (peer->ended && err == -ECONNRESET)
		/* whoever has its sockets lets us wait at the door: do not try again */
		err = -ECONNREFUSED;
	if (peer->state == HD_PEER_LIVE) {
		peer->shaking = NULL; /* the called end has heard of our choice */
	} else if (peer->joining == link) {
		joining_fallen(peer, err);
	} else if (peer->shaking == link) {
		first_fallen(peer, err);
	}
}
