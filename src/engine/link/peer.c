/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Peers: other nodes, the link to each, what is under way, and the credit that bounds what
 * each may leave waiting here.
 */
#include "base/log.h"
#include "engine/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ------------------------------------------------------------------------------------ */

struct hd_peer *hd_peer_find(struct hd_node *node, const struct hd_node_id *id, uint64_t realm)
{
	const struct hd_peer_key key = { *id, realm };
	struct hd_peer *p;

	HASH_FIND_BYHASHVALUE(hh, hd_links(node)->peers, &key, sizeof(key),
			      hd_links_hash(node, &key, sizeof(key)), p);
	return p;
}

/*
 * Where the kernel does not tell whose a TCP connection is, it is of nobody, and a UNIX
 * socket's is ours all the same.
 */
struct hd_peer *hd_peer_of_ours(struct hd_node *node, const struct hd_node_id *id)
{
	struct hd_peer *p = hd_peer_find(node, id, hd_realm_own());

	return p ? p : hd_peer_find(node, id, HD_REALM_HERE);
}

bool hd_node_knows(struct hd_node *node, const struct hd_node_id *id)
{
	return hd_peer_of_ours(node, id) != NULL;
}

static int peer_push(struct hd_push *push);

static void peer_add(struct hd_peer *p)
{
	const struct hd_peer_key key = { p->id, p->realm };

	HASH_ADD_BYHASHVALUE(hh, hd_links(p->node)->peers, id, sizeof(key),
			     hd_links_hash(p->node, &key, sizeof(key)), p);
}

/* A peer with its first window, and nothing else. */
static struct hd_peer *peer_admit(struct hd_node *node, const struct hd_node_id *id,
				  const struct hd_link *link)
{
	struct hd_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->node = node;
	p->id = *id;
	p->realm = link ? link->realm : hd_realm_own();
	peer_add(p);
	if (!hd_is_in_table(&p->hh)) {
		free(p);
		return NULL;
	}
	p->share = hd_share_open(node, link);
	if (p->share && hd_credit_open(p, link && link->shake.initiator))
		return p;
	if (p->share) {
		HD_LOG_EVERY_MS(
			1000, HD_LOG_WARN,
			"too many peers%s for HEDDLE_UNEXPECTED_MAX or the limit of open files (ulimit -n): "
			"raise it to let more come",
			p->share->budget->is_ours ? "" : " of one other user or host");
		hd_share_release(p->share, 0);
	}
	HASH_DEL(hd_links(node)->peers, p);
	free(p);
	return NULL;
}

struct hd_peer *hd_peer_make(struct hd_node *node, const struct hd_node_id *id, const struct hd_link *link)
{
	struct hd_peer *p = peer_admit(node, id, link);

	if (!p)
		return NULL;
	p->serial = ++hd_links(node)->peer_serial;
	p->state = HD_PEER_SHAKING;
	if (link)
		hd_event("peer " HD_PEER_ID ": greeting, over the %s link %s %s", HD_PEER_ID_OF(p),
			 link->port->transport->name, link->shake.initiator ? "to" : "from",
			 hd_link_text(link).text);
	p->push.fn = peer_push;
	hd_peer_stall(p, HD_STALL_DOWN);
	TAILQ_INIT(&p->pending);
	TAILQ_INIT(&p->queue);
	TAILQ_INIT(&p->framing);
	TAILQ_INIT(&p->direct_ops);
	TAILQ_INIT(&p->stalled_sqs);
	TAILQ_INIT(&p->ctl);
	hd_ring_init(&p->kept);
	return p;
}

/* It is no longer kept. */
static void ctl_leave(struct hd_peer *peer, struct hd_ctl *c)
{
	TAILQ_REMOVE(&peer->ctl, c, entry);
	peer->ctl_bytes -= (uint32_t)(sizeof(*c) + c->len);
	hd_budget_unkeep(peer->share->budget, HD_CTL_UNITS(c->len));
}

static void ctl_drop(struct hd_peer *peer)
{
	struct hd_ctl *c;

	while ((c = TAILQ_FIRST(&peer->ctl))) {
		ctl_leave(peer, c);
		free(c);
	}
}

/*
 * It has nothing under way any more. Destinations that waited for a greeting that was
 * cut off are tried again.
 */
void hd_peer_drop(struct hd_peer *peer, int err)
{
	struct hd_node *node = peer->node;
	struct hd_dest *d;

	hd_timer_stop(node, &peer->silence);
	hd_node_crowd(node, -peer->crowds);
	hd_process_forget(peer);
	ctl_drop(peer);
	hd_owed_forget(peer);
	while ((d = LIST_FIRST(&peer->awaiting))) {
		LIST_REMOVE(d, entry);
		d->awaits = false;
		if (!hd_core(node)->closing && err == -ECONNRESET)
			hd_dest_again(d, err);
		else
			hd_dest_fail(d, err);
	}
	while ((d = LIST_FIRST(&peer->dests)))
		hd_dest_unbind(d);
	if (peer->busy)
		hd_push_leave(node, &peer->push);
	HASH_DEL(hd_links(node)->peers, peer);
	hd_credit_close(peer);
	if (hd_links(node)->self == peer)
		hd_links(node)->self = NULL;
	hd_remotes_free(peer);
	for (int kind = 0; kind < HD_OF_PEER_KINDS; kind++)
		assert(LIST_EMPTY(&peer->keyed[kind]));
	free(peer);
}

void hd_peers_past(const struct hd_port *port, struct hd_port_past *past)
{
	struct hd_peer *peer, *next;

	HASH_ITER(hh, hd_links(port->node)->peers, peer, next)
		if (peer->link && peer->link->port == port)
			hd_traffic_add(&past->traffic, &peer->traffic);
}

/* For people. */
static const char *why_ended(const struct hd_peer *peer, int err)
{
	if (!err || err == -ESHUTDOWN)
		return "closed at this end";
	if (hd_peer_has_left(peer))
		return "it has closed all that it had";
	return peer->exits ? "its program has ended" : strerror(-err);
}

void hd_peer_exits(struct hd_peer *peer)
{
	peer->exits = true;
}

void hd_peer_fail(struct hd_peer *peer, int err)
{
	const struct hd_link_observers *above = hd_links(peer->node)->observers;
	struct hd_dest *dest;

	hd_event("peer " HD_PEER_ID ": ended: %s", HD_PEER_ID_OF(peer), why_ended(peer, err));
	peer->state = HD_PEER_DEAD;
	hd_peer_stall(peer, HD_STALL_DOWN);
	hd_hello_end(peer);
	LIST_FOREACH(dest, &peer->dests, entry)
		hd_ring_take(&peer->kept, &dest->messages);
	for (int i = 0; above->ended[i]; i++)
		above->ended[i](peer, err ? hd_status_of(err) : HD_S_LOST);
	if (peer->link) {
		hd_traffic_add(&peer->link->port->past.traffic, &peer->traffic);
		hd_page_row_live(peer->link->row, false);
		peer->link->peer = NULL;
	}
	hd_peer_drop(peer, err);
}

void hd_peers_end(struct hd_node *node)
{
	struct hd_peer *peer, *next;

	HASH_ITER(hh, hd_links(node)->peers, peer, next)
		hd_peer_drop(peer, -ESHUTDOWN);
}

/* ---- in use ---------------------------------------------------------------------------------- */

void hd_peer_settle(struct hd_peer *peer)
{
	if (TAILQ_EMPTY(&peer->ctl))
		hd_peer_unstall(peer, HD_STALL_ANSWERS);
	if (TAILQ_EMPTY(&peer->queue))
		hd_peer_unstall(peer, HD_STALL_QUEUED);
	hd_peer_check(peer);
}

void hd_peer_busy(struct hd_peer *peer)
{
	if (peer->busy)
		return;
	peer->busy = true;
	hd_push_join(peer->node, &peer->push);
	hd_node_stir(peer->node);
}

/* 0, -ENOBUFS, -ENOMEM */
static int ctl_queue(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len,
		     uint32_t units)
{
	struct hd_ctl *c;

	if (peer->ctl_bytes + sizeof(*c) + len > HD_CTL_MAX ||
	    !hd_budget_keep(peer->share->budget, HD_CTL_UNITS(len)))
		return -ENOBUFS;
	c = malloc(sizeof(*c) + len);
	if (!c) {
		hd_budget_unkeep(peer->share->budget, HD_CTL_UNITS(len));
		return -ENOMEM;
	}
	peer->ctl_bytes += (uint32_t)(sizeof(*c) + len);
	c->pkt = *pkt;
	c->len = len;
	c->units = units;
	if (len)
		memcpy(c->data, data, len);
	TAILQ_INSERT_TAIL(&peer->ctl, c, entry);
	hd_peer_stall(peer, HD_STALL_ANSWERS);
	hd_peer_busy(peer);
	return 0;
}

static const char *unqueued(int rc)
{
	return rc == -ENOBUFS
		       ? "the other end does not take in what is said to it: see whether its program still makes progress"
		       : "no memory for an answer";
}

void hd_peer_answer(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len,
		    uint32_t units)
{
	int rc;

	if (peer->state != HD_PEER_LIVE || peer->link->down)
		return;
	if (TAILQ_EMPTY(&peer->ctl) && hd_link_send(peer->link, pkt, data, len) != -EAGAIN) {
		hd_peer_free_units(peer, units);
		return;
	}
	rc = ctl_queue(peer, pkt, data, len, units);
	if (rc)
		hd_link_down(peer->link, rc, unqueued(rc));
}

/* Without it the greeting must not end well. */
void hd_peer_forewarn(struct hd_peer *peer, const struct hd_pkt *pkt)
{
	struct hd_link *const links[] = { peer->joining, peer->shaking };
	int rc;

	if (peer->state != HD_PEER_SHAKING) {
		hd_peer_send(peer, pkt, NULL, 0);
		return;
	}
	rc = ctl_queue(peer, pkt, NULL, 0, 0);
	for (int i = 0; rc && i < 2; i++)
		if (links[i])
			hd_link_down(links[i], rc, unqueued(rc));
}

void hd_peer_send(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len)
{
	hd_peer_answer(peer, pkt, data, len, 0);
}

void hd_peers_leave(struct hd_node *node)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_GONE };
	struct hd_peer *peer, *next;

	hd_links(node)->leaving = true;
	HASH_ITER(hh, hd_links(node)->peers, peer, next)
		if (peer->state == HD_PEER_LIVE)
			hd_peer_send(peer, &pkt, NULL, 0);
}

static int ctl_push(struct hd_peer *peer)
{
	struct hd_ctl *c;
	int n = 0;

	while ((c = TAILQ_FIRST(&peer->ctl))) {
		if (hd_link_send(peer->link, &c->pkt, c->data, c->len) == -EAGAIN)
			break;
		ctl_leave(peer, c);
		hd_peer_free_units(peer, c->units);
		free(c);
		n++;
	}
	return n;
}

/* A caller who has gone before his HELLO was delivered: hd_link_missed. How many those are. */
static int drop_missed(struct hd_peer *peer)
{
	if (!hd_hello_is_missed(peer))
		return 0;
	hd_peer_drop(peer, -ECONNRESET);
	return 1;
}

/* Push what is queued for the peer; how much of it went. */
static int peer_push(struct hd_push *push)
{
	struct hd_peer *peer = hd_container(push, struct hd_peer, push);
	const struct hd_link_observers *above = hd_links(peer->node)->observers;
	int n = 0;

	if (peer->state != HD_PEER_LIVE || peer->link->down)
		return drop_missed(peer);
	n += ctl_push(peer);
	for (int i = 0; above->push[i] && TAILQ_EMPTY(&peer->ctl); i++)
		n += above->push[i](peer);
	if (!TAILQ_EMPTY(&peer->direct_ops))
		n += above->push_direct(peer);
	hd_peer_settle(peer);
	if (TAILQ_EMPTY(&peer->ctl) && TAILQ_EMPTY(&peer->queue) && TAILQ_EMPTY(&peer->framing) &&
	    TAILQ_EMPTY(&peer->direct_ops) && TAILQ_EMPTY(&peer->stalled_sqs)) {
		peer->busy = false;
		hd_push_leave(peer->node, &peer->push);
	}
	return n;
}

struct hd_peer_view hd_peer_inspect(const struct hd_peer *peer)
{
	struct hd_peer_view view = { .state = peer->state,
				     .stalled = peer->stalled,
				     .left = hd_credit_left(peer),
				     .taken_in = hd_credit_taken_in(peer),
				     .held = hd_credit_held(peer),
				     .window = hd_credit_window(peer),
				     .eager = peer->eager_max,
				     .eager_limit = peer->eager_limit,
				     .send_fences = peer->send_fences,
				     .queued = !TAILQ_EMPTY(&peer->queue),
				     .framing = !TAILQ_EMPTY(&peer->framing),
				     .direct = !TAILQ_EMPTY(&peer->direct_ops) };
	const struct hd_pending *pending;
	const struct hd_ctl *c;

	TAILQ_FOREACH(pending, &peer->pending, under)
		view.pending++;
	TAILQ_FOREACH(c, &peer->ctl, entry)
		view.answers++;
	return view;
}

void hd_ep_describe(const struct hd_ep *ep, struct hd_announce *out)
{
	*out = (struct hd_announce){ .index = ep->index, .gen = ep->gen, .slot = ep->slot, .key = ep->key };
	if (!ep->bound_port)
		return;
	out->port = ep->bound_port->port;
	if (ep->bound_port->at_addr)
		hd_addr_map((void *)&ep->bound_port->name, out->addr);
}

void hd_peer_announce(struct hd_peer *peer, const struct hd_ep *only)
{
	struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	struct hd_announce list[16];
	struct hd_node *node = peer->node;
	uint32_t i = only ? only->index : 0, end = only ? i + 1 : hd_names(node)->ep_count;
	int n = 0;

	for (; i < end; i++) {
		const struct hd_ep *ep = hd_names(node)->eps[i];

		if (!ep || !ep->bound_port)
			continue;
		hd_ep_describe(ep, &list[n]);
		if (++n == 16) {
			hd_peer_send(peer, &pkt, list, sizeof(list));
			n = 0;
		}
	}
	if (n)
		hd_peer_send(peer, &pkt, list, n * sizeof(list[0]));
}

static void row_fill(struct hd_peer *peer, struct hd_link *link)
{
	struct hd_page_link *row = link->row;

	strncpy(row->transport, link->port->transport->name, sizeof(row->transport) - 1);
	row->peer = peer->id;
	if (peer->shaking && peer->shaking->where.ss_family != AF_UNSPEC)
		link->where = peer->shaking->where;
	if (link->where.ss_family != AF_UNSPEC) {
		struct hd_name_key key;

		hd_addr_map((void *)&link->where, row->peer_addr);
		if (hd_addr_key((void *)&link->where, &key))
			row->peer_port = key.port;
	}
	hd_page_row_live(row, true);
}

void hd_peer_establish(struct hd_peer *peer, struct hd_link *link)
{
	uint64_t bytes = (uint64_t)hd_credit_left(peer) * HD_UNIT / 4;
	LIST_HEAD(, hd_dest) in_turn = LIST_HEAD_INITIALIZER(in_turn);
	struct hd_dest *d;

	row_fill(peer, link);
	peer->link = link;
	link->peer = peer;
	peer->state = HD_PEER_LIVE;
	peer->crowds = peer->is_local && hd_links(peer->node)->self != peer;
	hd_node_crowd(peer->node, peer->crowds);
	hd_event("peer " HD_PEER_ID ": live over %s", HD_PEER_ID_OF(peer), link->port->transport->name);
	peer->eager_limit = link->eager_max < bytes ? link->eager_max : (uint32_t)bytes;
	hd_peer_announce(peer, NULL);
	hd_peer_unstall(peer, HD_STALL_DOWN);
	while ((d = LIST_FIRST(&peer->awaiting))) { /* the last to come is the first */
		LIST_REMOVE(d, entry);
		LIST_INSERT_HEAD(&in_turn, d, entry);
	}
	while ((d = LIST_FIRST(&in_turn))) /* which takes it out */
		hd_dest_bind(d, peer, d->remote, d->gen);
	hd_peer_check(peer);
}

struct hd_peer *hd_peer_self(struct hd_node *node)
{
	struct hd_link *link = NULL;
	struct hd_peer *self;

	if (hd_links(node)->self)
		return hd_links(node)->self;
	self = hd_peer_make(node, &hd_core(node)->page->id, NULL);
	if (!self)
		return NULL;
	for (int i = 0; i < hd_core(node)->port_count && !link; i++)
		if (hd_core(node)->ports[i]->transport->number == HD_TNUM_LOOP &&
		    hd_core(node)->ports[i]->transport->connect(hd_core(node)->ports[i], NULL, 0, NULL,
								&link) < 0)
			link = NULL;
	if (!link) {
		hd_peer_drop(self, -ENOMEM);
		return NULL;
	}
	hd_credit_begin(self, hd_credit_promised(self));
	self->is_local = true;
	for (int i = 0; i < hd_names(node)->own_count && self->addr_count < HD_HELLO_ADDRS; i++)
		memcpy(self->addr[self->addr_count++], hd_names(node)->own[i].addr, 16);
	hd_links(node)->self = self;
	hd_peer_establish(self, link);
	return self;
}
