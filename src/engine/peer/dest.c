/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Destinations: what programs name by a socket address, and what messages come from. A destination is found by any of its names;
 * it becomes bound to an endpoint of a peer either because we connected to that name or because the peer announced it.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "engine/message/message.h"
#include "engine/node/node.h"
#include "engine/pair/pair.h"
#include "engine/peer/peer.h"
#include "engine/receive/queue.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE_MAX (1u << 20) /* endpoints of one peer */
#define NAMES_MAX \
	64 /* names by which it can tell us of one of them: more than any node has addresses in its HELLO */

/* ---- ids and names ---------------------------------------------------------------------------------------------------------------- */

/* The next free id after the one given last, so that completions that nobody has read yet keep their meaning for long. */
static uint32_t id_free(const struct hd_node *node)
{
	for (uint32_t n = 0; n < node->dest_count; n++) {
		uint32_t i = (node->dest_hint + n) % node->dest_count;

		if (!node->dests[i])
			return i;
	}
	return node->dest_count;
}

static int id_take(struct hd_node *node, struct hd_dest *dest)
{
	struct hd_dest **more;
	uint32_t i = id_free(node);

	if (i == node->dest_count) {
		uint32_t n = node->dest_count ? node->dest_count * 2 : 64;

		more = realloc(node->dests, n * sizeof(*more));
		if (!more)
			return -ENOMEM;
		memset(more + node->dest_count, 0, (n - node->dest_count) * sizeof(*more));
		node->dests = more;
		node->dest_count = n;
	}
	node->dests[i] = dest;
	node->dest_hint = i + 1;
	dest->id = i + 1;
	return 0;
}

struct hd_dest *hd_dest_by_id(struct hd_node *node, uint32_t id)
{
	return id && id <= node->dest_count ? node->dests[id - 1] : NULL;
}

static struct hd_name *name_find(struct hd_node *node, const struct hd_name_key *key)
{
	struct hd_name *n;

	HASH_FIND(hh, node->names, key, sizeof(*key), n);
	return n;
}

static int name_add(struct hd_dest *dest, const struct hd_name_key *key)
{
	struct hd_name *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->key = *key;
	n->dest = dest;
	LIST_INSERT_HEAD(&dest->names, n, entry);
	HASH_ADD(hh, dest->node->names, key, sizeof(n->key), n);
	return 0;
}

static void names_drop(struct hd_dest *dest, const struct hd_name_key *keep)
{
	struct hd_name *n, *next;

	for (n = LIST_FIRST(&dest->names); n; n = next) {
		next = LIST_NEXT(n, entry);
		if (keep && !memcmp(&n->key, keep, sizeof(*keep)))
			continue;
		LIST_REMOVE(n, entry);
		HASH_DEL(dest->node->names, n);
		free(n);
	}
}

/* ---- life -------------------------------------------------------------------------------------------------------------------------- */

void hd_dest_stand_in(struct hd_dest *dest, struct hd_node *node)
{
	dest->node = node;
	dest->peer = node->nowhere;
	dest->state = HD_DEST_IDLE;
	dest->refs = 1;
	TAILQ_INIT(&dest->waiting);
	LIST_INIT(&dest->names);
	LIST_INIT(&dest->followers);
}

static struct hd_dest *dest_make(struct hd_node *node)
{
	struct hd_dest *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	hd_dest_stand_in(d, node);
	d->refs = 0;
	if (id_take(node, d) < 0) {
		free(d);
		return NULL;
	}
	return d;
}

/* Free a destination that nobody refers to: no front, no operation, no peer. */
static void dest_release(struct hd_dest *dest)
{
	struct hd_node *node = dest->node;

	if (dest->refs || dest->state != HD_DEST_IDLE)
		return;
	names_drop(dest, NULL);
	hd_rq_forget(node, dest->id);
	node->dests[dest->id - 1] = NULL;
	free(dest);
}

void hd_dest_unref(struct hd_dest *dest)
{
	dest->refs--;
	dest_release(dest);
}

int hd_dest_get(struct hd_node *node, const struct sockaddr *name, struct hd_dest **out)
{
	return hd_dest_get_keyed(node, name, 0, out);
}

int hd_dest_get_keyed(struct hd_node *node, const struct sockaddr *name, uint64_t auth, struct hd_dest **out)
{
	struct hd_name_key key;
	struct hd_dest *dest;
	struct hd_name *n;

	hd_assert_locked(node);
	if (!hd_addr_key(name, &key))
		return -EINVAL;
	key.key = auth;
	n = name_find(node, &key);
	if (n) {
		n->dest->refs++;
		*out = n->dest;
		return 0;
	}
	dest = dest_make(node);
	if (!dest)
		return -ENOMEM;
	dest->key = auth;
	memcpy(&dest->addr, name, hd_sockaddr_size(name));
	if (name_add(dest, &key) < 0) {
		dest_release(dest);
		return -ENOMEM;
	}
	dest->refs = 1;
	*out = dest;
	return 0;
}

void hd_dest_put(struct hd_dest *dest)
{
	hd_assert_locked(dest->node);
	hd_dest_unref(dest);
}

uint32_t hd_dest_id(const struct hd_dest *dest)
{
	return dest->id;
}

/* The names that came first are the best ones, and stand last; a loopback address is good on this host alone. */
int hd_source_name(struct hd_node *node, uint32_t src, int family, struct sockaddr_storage *out)
{
	const struct hd_dest *dest = hd_dest_by_id(node, src);
	const struct hd_name *n;
	bool found = false;

	hd_assert_locked(node);
	if (!dest)
		return -ENOENT;
	LIST_FOREACH(n, &dest->names, entry) {
		struct sockaddr_storage sa;

		hd_addr_unmap(n->key.addr, (uint16_t)n->key.port, &sa);
		if ((family != AF_UNSPEC && sa.ss_family != family) ||
		    (found && hd_addr_is_loopback(n->key.addr)))
			continue;
		if (sa.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&sa)->sin6_scope_id = n->key.scope;
		hd_name_set_slot((struct sockaddr *)&sa, n->key.port >> 16);
		*out = sa;
		found = true;
	}
	return found ? 0 : -ENOENT;
}

uint32_t hd_dest_source_id(const struct hd_dest *dest)
{
	uint32_t id = 0;

	if (dest->state == HD_DEST_BOUND && dest->remote < dest->peer->remote_count)
		id = dest->peer->remotes[dest->remote].dest_id;
	return id ? id : dest->id;
}

/* ---- connecting ------------------------------------------------------------------------------------------------------------------- */

static void retry(struct hd_timer *timer)
{
	struct hd_dest *dest = hd_container(timer, struct hd_dest, retry);
	int rc;

	dest->state = HD_DEST_IDLE;
	rc = hd_dest_connect(dest);
	if (rc < 0)
		hd_dest_fail(dest, rc);
}

void hd_dest_again(struct hd_dest *dest, int err)
{
	if (dest->tries++ >= 8) {
		hd_dest_fail(dest, err);
		return;
	}
	dest->link = NULL;
	dest->state = HD_DEST_CONNECTING;
	dest->retry.fn = retry;
	hd_timer_set(dest->node, &dest->retry, dest->tries * 20 * HD_NS_PER_MS);
}

int hd_dest_connect(struct hd_dest *dest)
{
	struct hd_node *node = dest->node;
	struct sockaddr_storage to = dest->addr;
	struct hd_link *link = NULL;
	int rc = -ENOTCONN;

	if (dest->addr.ss_family == AF_UNSPEC)
		return -ENOTCONN;	  /* a source that was never named */
	hd_name_set_slot((void *)&to, 0); /* the port is called, HELLO says the slot */
	for (int i = 0; i < node->port_count; i++)
		if (node->ports[i]->transport->addressed) {
			rc = node->ports[i]->transport->connect(node->ports[i], &to, sizeof(to), &link);
			break;
		}
	if (rc < 0)
		return rc;
	dest->state = HD_DEST_CONNECTING;
	dest->link = link;
	hd_hello_initiate(link, dest);
	return 0;
}

static void waiting_move(struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;
	struct hd_op *op;

	while ((op = TAILQ_FIRST(&dest->waiting))) {
		TAILQ_REMOVE(&dest->waiting, op, entry);
		TAILQ_INSERT_TAIL(&peer->queue, op, entry);
	}
	hd_peer_gate(peer);
	hd_peer_busy(peer);
}

/* What is here of messages from old_id of this peer is from new_id. */
static void rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id)
{
	hd_rq_rekey(peer->node, old_id, new_id);
	hd_recv_ops_rekey(peer, old_id, new_id);
	hd_stream_rekey(peer->link, old_id, new_id);
}

/* Another destination without a user stands for the same endpoint: take its names and its place. */
static void absorb(struct hd_dest *dest, struct hd_dest *old)
{
	struct hd_name *n;

	while ((n = LIST_FIRST(&old->names))) {
		LIST_REMOVE(n, entry);
		n->dest = dest;
		LIST_INSERT_HEAD(&dest->names, n, entry);
	}
	rekey(dest->peer, old->id, dest->id);
	LIST_REMOVE(old, entry);
	old->state = HD_DEST_IDLE;
	dest_release(old);
}

/* Tell those who follow the destination. One may leave, or give the destination back, while he is told. */
static void tell_followers(struct hd_dest *dest, int err)
{
	struct hd_follow *f, *next;

	for (f = LIST_FIRST(&dest->followers); f; f = next) {
		next = LIST_NEXT(f, entry);
		f->fn(f, err);
	}
}

void hd_dest_bind(struct hd_dest *dest, struct hd_peer *peer, uint32_t remote, uint16_t gen)
{
	struct hd_dest *old;

	if (dest->state == HD_DEST_BOUND)
		return;
	if (dest->retry.due)
		hd_timer_stop(dest->node, &dest->retry);
	if (dest->awaits)
		LIST_REMOVE(dest, entry);
	dest->awaits = false;
	dest->state = HD_DEST_BOUND;
	dest->peer = peer;
	dest->remote = remote;
	dest->gen = gen;
	dest->link = NULL;
	dest->tries = 0;
	LIST_INSERT_HEAD(&peer->dests, dest, entry);
	if (hd_peer_remote(peer, remote) == 0) {
		old = hd_dest_by_id(dest->node, peer->remotes[remote].dest_id);
		peer->remote_keys[remote] = dest->key;
		if (!old || old == dest || !old->refs) {
			peer->remotes[remote] = (struct hd_remote){ .dest_id = dest->id, .gen = gen };
			if (old && old != dest)
				absorb(dest, old);
		} else {
			rekey(peer, dest->id, old->id);
		}
	}
	waiting_move(dest);
	tell_followers(dest, 0);
}

struct hd_dest *hd_dest_at(struct hd_peer *peer, uint32_t remote, uint16_t gen)
{
	struct hd_dest *dest;

	if (hd_peer_remote(peer, remote) < 0)
		return NULL;
	dest = hd_dest_by_id(peer->node, peer->remotes[remote].dest_id);
	if (!dest || dest->gen != gen) {
		dest = dest_make(peer->node);
		if (!dest)
			return NULL;
		dest->key = peer->remote_keys[remote];
		hd_dest_bind(dest, peer, remote, gen);
	}
	dest->refs++;
	return dest;
}

void hd_dest_unbind(struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;
	struct hd_name_key own;
	struct hd_dest *other;
	bool named;

	dest->refs++;
	tell_followers(dest, -ECONNRESET);
	dest->refs--;
	LIST_REMOVE(dest, entry);
	dest->state = HD_DEST_IDLE;
	dest->peer = dest->node->nowhere;
	if (dest->remote < peer->remote_count && peer->remotes[dest->remote].dest_id == dest->id) {
		peer->remotes[dest->remote].dest_id = 0;
		LIST_FOREACH(other, &peer->dests, entry)
			if (other->remote == dest->remote)
				peer->remotes[dest->remote].dest_id = other->id;
	}
	named = dest->addr.ss_family != AF_UNSPEC && hd_addr_key((void *)&dest->addr, &own);
	own.key = dest->key;
	names_drop(dest, named ? &own : NULL);
	dest_release(dest);
}

void hd_dest_fail(struct hd_dest *dest, int err)
{
	struct hd_op *op;
	char text[80];

	if (dest->retry.due)
		hd_timer_stop(dest->node, &dest->retry);
	hd_info("%s cannot be reached: %s", hd_addr_text((void *)&dest->addr, text, sizeof(text)),
		strerror(-err));
	dest->state = HD_DEST_IDLE;
	dest->link = NULL;
	dest->tries = 0;
	dest->refs++;
	while ((op = TAILQ_FIRST(&dest->waiting))) {
		TAILQ_REMOVE(&dest->waiting, op, entry);
		hd_op_done(op, -err);
	}
	tell_followers(dest, err);
	hd_dest_unref(dest);
}

/* ---- announcements ---------------------------------------------------------------------------------------------------------------- */

/* The names that an announced endpoint has here: at most max. */
static int announced_keys(const struct hd_peer *peer, const struct hd_announce *a, struct hd_name_key *keys,
			  int max)
{
	struct sockaddr_storage sa;
	int n = 0;

	if (!hd_addr_is_zero(a->addr)) {
		hd_addr_unmap(a->addr, a->port, &sa);
		hd_name_set_slot((void *)&sa, a->slot);
		n = hd_addr_key((void *)&sa, &keys[0]) ? 1 : 0;
		keys[0].key = a->key;
		return n;
	}
	for (int i = 0; i < peer->addr_count && n < max; i++) {
		hd_addr_unmap(peer->addr[i], a->port, &sa);
		hd_name_set_slot((void *)&sa, a->slot);
		if (!hd_addr_key((void *)&sa, &keys[n]))
			continue;
		keys[n++].key = a->key;
	}
	return n;
}

/* Names that it has been told of without end are not kept. */
static bool has_all_names(const struct hd_dest *dest)
{
	const struct hd_name *n;
	int count = 0;

	LIST_FOREACH(n, &dest->names, entry)
		count++;
	return count >= NAMES_MAX;
}

/* The endpoint begins anew; what leads to it leads to the new one. */
static void renewed(struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	uint16_t before = peer->remotes[index].gen;
	struct hd_dest *d;

	peer->remotes[index].gen = gen;
	if (!before || before == gen)
		return;
	LIST_FOREACH(d, &peer->dests, entry)
		if (d->remote == index)
			d->gen = gen;
	hd_agree_renewed(peer, index);
}

static int announced_one(struct hd_peer *peer, const struct hd_announce *a)
{
	struct hd_name_key keys[HD_HELLO_ADDRS + 3];
	int count = announced_keys(peer, a, keys, HD_HELLO_ADDRS + 3);
	struct hd_node *node = peer->node;
	struct hd_dest *main;

	if (hd_peer_remote(peer, a->index) < 0)
		return -EPROTO;
	main = hd_dest_by_id(node, peer->remotes[a->index].dest_id);
	if (main && main->key != a->key)
		return -EPROTO; /* an endpoint keeps its key */
	renewed(peer, a->index, a->gen);
	peer->remote_keys[a->index] = a->key;
	for (int i = 0; i < count; i++) {
		struct hd_name *n = name_find(node, &keys[i]);

		if (n && n->dest->state != HD_DEST_BOUND) {
			if (n->dest->link)
				hd_hello_detach(n->dest->link);
			hd_dest_bind(n->dest, peer, a->index, a->gen);
		}
	}
	main = hd_dest_by_id(node, peer->remotes[a->index].dest_id);
	if (!main) {
		main = dest_make(node);
		if (!main)
			return 0; /* it stays a source without a name */
		main->key = a->key;
		if (count) {
			hd_addr_unmap(keys[0].addr, a->port, &main->addr);
			hd_name_set_slot((void *)&main->addr, a->slot);
		}
		hd_dest_bind(main, peer, a->index, a->gen);
	}
	for (int i = 0; i < count; i++)
		if (!name_find(node, &keys[i]) && !has_all_names(main))
			name_add(main, &keys[i]);
	return 0;
}

int hd_dest_announced(struct hd_peer *peer, const struct hd_announce *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (announced_one(peer, &list[i]) < 0)
			return -EPROTO;
	return 0;
}

int hd_peer_remote(struct hd_peer *peer, uint32_t index)
{
	uint32_t n = peer->remote_count ? peer->remote_count : 8;
	struct hd_remote *more;
	uint64_t *keys;

	if (index < peer->remote_count)
		return 0;
	if (index >= REMOTE_MAX)
		return -ERANGE;
	while (n <= index)
		n *= 2;
	more = realloc(peer->remotes, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + peer->remote_count, 0, (n - peer->remote_count) * sizeof(*more));
	peer->remotes = more;
	keys = realloc(peer->remote_keys, n * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	memset(keys + peer->remote_count, 0, (n - peer->remote_count) * sizeof(*keys));
	peer->remote_keys = keys;
	peer->remote_count = n;
	return 0;
}

void hd_dest_gone(struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	struct hd_dest *d, *next;

	if (index >= peer->remote_count || peer->remotes[index].gen != gen)
		return;
	for (d = LIST_FIRST(&peer->dests); d; d = next) {
		next = LIST_NEXT(d, entry);
		if (d->remote != index)
			continue;
		hd_peer_queue_fail(peer, d,
				   ECONNREFUSED); /* what is queued must not be started without a peer */
		hd_dest_unbind(d);
	}
	if (peer->rx_held)
		hd_agree_renewed(peer, index);
	hd_peer_gate(peer);
	peer->remotes[index] = (struct hd_remote){ 0 };
	peer->remote_keys[index] = 0;
}

void hd_dests_close(struct hd_node *node)
{
	for (uint32_t i = 0; i < node->dest_count; i++) {
		struct hd_dest *d = node->dests[i];

		if (!d)
			continue;
		hd_timer_stop(node, &d->retry);
		d->state = HD_DEST_IDLE;
		d->refs = 0;
		dest_release(d);
	}
	free(node->dests);
}
