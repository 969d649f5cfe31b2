/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a peer announces of its endpoints: the names that they can be called by, and
 * that one of them is gone.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "engine/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Names by which a peer can tell us of one of them: more than any node has addresses in its
 * HELLO, and of others fewer.
 */
#define NAMES_MAX 64
#define OTHERS_NAMES 16
static_assert(OTHERS_NAMES * sizeof(struct hd_name) + sizeof(struct hd_dest) < HD_DEST_UNITS * HD_UNIT,
	      "a destination takes more than is counted for it");

/* The names that an announced endpoint has here: at most max. */
static int announced_keys(const struct hd_peer *peer, const struct hd_announce *a, struct hd_name_key *keys,
			  int max)
{
	struct sockaddr_storage sa;
	int n = 0;

	if (!hd_addr_is_zero(a->addr)) {
		hd_addr_unmap(a->addr, a->port, &sa);
		hd_sockaddr_set_scope((void *)&sa, peer->link_scope);
		hd_name_set_slot((void *)&sa, a->slot);
		n = hd_addr_key((void *)&sa, &keys[0]) ? 1 : 0;
		keys[0].key = a->key;
		return n;
	}
	for (int i = 0; i < peer->addr_count && n < max; i++) {
		hd_addr_unmap(peer->addr[i], a->port, &sa);
		hd_sockaddr_set_scope((void *)&sa, peer->link_scope);
		hd_name_set_slot((void *)&sa, a->slot);
		if (!hd_addr_key((void *)&sa, &keys[n]))
			continue;
		keys[n++].key = a->key;
	}
	return n;
}

/* Is this the address that the peer's own link comes from? */
static bool is_of_link(const struct hd_peer *peer, const uint8_t addr[16])
{
	return !memcmp(peer->addr[peer->link_addr], addr, 16);
}

/* Whose is it that listens at this address of this host? */
static uint64_t realm_at(struct hd_node *node, const struct hd_name_key *key)
{
	struct sockaddr_storage sa;

	hd_addr_of_key(key, &sa);
	for (int i = 0; i < hd_core(node)->port_count; i++) {
		struct hd_port *port = hd_core(node)->ports[i];

		if (port->transport->realm_at)
			return port->transport->realm_at(port, (struct sockaddr *)&sa);
	}
	return HD_REALM_HERE;
}

/* Does a user who is not ours listen there? False too where his peers ask too much. */
static bool listens_there(const struct hd_peer *peer, const struct hd_name_key *key)
{
	struct hd_budget *budget = peer->share->budget;
	uint64_t now = hd_now_ns();
	bool is;

	if (!hd_budget_ask(budget, now))
		return false;
	is = peer->realm == realm_at(peer->node, key);
	hd_budget_asked(budget, now);
	return is;
}

/*
 * Is the name the peer's, for all that is known without a call to it? Who has our key is believed,
 * and who could read our memory anyway, a process of our own user. Of another user of this host, a
 * name is believed when the kernel says that he listens there; of another host, that it is the
 * address that its link comes from, and none of ours. Who is told from no other is believed
 * nothing. A name that is not believed becomes the peer's when a call to it has been answered by
 * him (hello.c).
 */
static bool is_believed(struct hd_peer *peer, const struct hd_name_key *key)
{
	bool here = hd_addr_is_local(peer->node, key);

	if (peer->is_sealed || peer == hd_links(peer->node)->self)
		return true;
	if (peer->realm == HD_REALM_FAR)
		return !here && is_of_link(peer, key->addr);
	return here && peer->realm != HD_REALM_NOBODY &&
	       (hd_realm_is_own(peer->realm) || listens_there(peer, key));
}

/* Likewise; of a peer who has said what is not believed that is remembered. */
static bool believe(struct hd_peer *peer, const struct hd_name_key *key)
{
	bool is = is_believed(peer, key);

	peer->doubted |= !is;
	return is;
}

/* Names that it has been told of without end are not kept. */
static bool has_all_names(const struct hd_dest *dest, const struct hd_peer *peer)
{
	return dest->name_count >= (peer->share->budget->is_ours ? NAMES_MAX : OTHERS_NAMES);
}

/* A destination that nobody here has asked for. */
static struct hd_dest *announced_make(struct hd_peer *peer, uint64_t key)
{
	struct hd_dest *dest;

	if (!hd_budget_keep(peer->share->budget, HD_DEST_UNITS))
		return NULL;
	dest = hd_dest_make(peer->node);
	if (!dest) {
		hd_budget_unkeep(peer->share->budget, HD_DEST_UNITS);
		return NULL;
	}
	dest->kept = true;
	dest->key = key;
	return dest;
}

/* The endpoint begins anew; what leads to it leads to the new one. */
static void renewed(struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	struct hd_remote *remote = hd_remote_at(peer, index);
	struct hd_dest *first = hd_dest_by_id(peer->node, remote->dest_id), *d = first;
	uint16_t before = remote->gen;

	remote->gen = gen;
	if (!before || before == gen)
		return;
	while (d) {
		d->gen = gen;
		d = d->alike == first ? NULL : d->alike;
	}
	hd_links(peer->node)->observers->renewed(peer, index);
}

/* Somebody here wants whom the name leads to. Where it need not be the peer, a call to it tells. */
static void announced_wanted(struct hd_dest *dest, struct hd_peer *peer, const struct hd_announce *a,
			     const struct hd_name_key *key)
{
	if (believe(peer, key)) {
		if (dest->link)
			hd_hello_detach(dest->link);
		hd_dest_bind(dest, peer, a->index, a->gen);
	} else if (dest->state == HD_DEST_IDLE) {
		hd_dest_call(dest);
	}
}

/*
 * Are its names, or some of them, not believed without a call, wherever the program wants them? Of
 * another user's the kernel may not have been asked.
 */
static bool announced_by_call(const struct hd_peer *peer)
{
	return peer->realm == HD_REALM_FAR || peer->realm == HD_REALM_NOBODY || peer->doubted;
}

/*
 * A peer whose names are not believed may have said in its HELLO that this address is one of
 * its own. Who wants to know what comes from there, and sends nothing, is told only when that
 * is known: so it is called.
 */
void hd_dest_claimed(struct hd_dest *dest, const struct hd_name_key *key)
{
	struct hd_peer *peer, *next;

	HASH_ITER(hh, hd_links(dest->node)->peers, peer, next)
		for (int i = 0; announced_by_call(peer) && i < peer->addr_count; i++) {
			if ((peer->realm == HD_REALM_FAR && i == peer->link_addr) ||
			    memcmp(peer->addr[i], key->addr, 16) != 0)
				continue;
			hd_dest_call(dest);
			return;
		}
}

static int announced_one(struct hd_peer *peer, const struct hd_announce *a)
{
	struct hd_name_key keys[HD_HELLO_ADDRS + 3];
	int count = announced_keys(peer, a, keys, HD_HELLO_ADDRS + 3);
	struct hd_node *node = peer->node;
	struct hd_dest *main;

	if (hd_peer_remote(peer, a->index) < 0)
		return -EPROTO;
	main = hd_dest_by_id(node, hd_remote_source(peer, a->index));
	if (main && main->key != a->key)
		return -EPROTO; /* an endpoint keeps its key */
	renewed(peer, a->index, a->gen);
	hd_remote_set_key(peer, a->index, a->key);
	for (int i = 0; i < count; i++) {
		struct hd_name *n = hd_name_find(node, &keys[i]);

		if (n && n->dest->state != HD_DEST_BOUND)
			announced_wanted(n->dest, peer, a, &keys[i]);
	}
	main = hd_dest_by_id(node, hd_remote_source(peer, a->index));
	if (!main) {
		main = announced_make(peer, a->key);
		if (!main)
			return -ENOBUFS;
		if (count) {
			hd_addr_of_key(&keys[0], &main->addr);
			hd_name_set_slot((void *)&main->addr, a->slot);
		}
		hd_dest_bind(main, peer, a->index, a->gen);
	}
	for (int i = 0; i < count; i++)
		if (!hd_name_find(node, &keys[i]) && !has_all_names(main, peer) && believe(peer, &keys[i]))
			hd_name_add(main, &keys[i]);
	return 0;
}

int hd_dest_announced(struct hd_peer *peer, const struct hd_announce *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (announced_one(peer, &list[i]) < 0)
			return -EPROTO;
	return 0;
}

/* A destination that leads to this generation of the endpoint. */
static struct hd_dest *bound_to(const struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	struct hd_dest *first = hd_dest_by_id(peer->node, hd_remote_source(peer, index)), *d = first;

	while (d && d->gen != gen)
		d = d->alike == first ? NULL : d->alike;
	return d;
}

/*
 * A call, by a connection of its own, may have led to the next endpoint of this index
 * already: what leads there stays.
 */
void hd_dest_gone(struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	bool is_known = hd_remote_at(peer, index) && hd_remote_gen(peer, index) == gen;
	struct hd_dest *d;

	if (is_known)
		hd_event("peer " HD_PEER_ID ": its endpoint %u is closed", HD_PEER_ID_OF(peer), index);
	while ((d = bound_to(peer, index, gen))) {
		if (d->refs) /* else nothing is on its way there */
			hd_links(peer->node)->observers->unreached(d, HD_S_REFUSED);
		hd_dest_unbind(d);
	}
	if (is_known && hd_credit_holds(peer))
		hd_links(peer->node)->observers->renewed(peer, index);
	hd_peer_settle(peer);
	if (is_known)
		hd_remote_forget(peer, index);
}
