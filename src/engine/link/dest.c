/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Destinations: what programs name by a socket address, and what messages come from. A destination
 * is found by any of its names.
 */
#include "base/sockaddr.h"
#include "engine/link/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* ---- ids and names --------------------------------------------------------------------------- */

/*
 * Who reads a completion late shall not take its source for another, so ids come back at the end of
 * a queue. Of those that have just gone, messages may still wait: they are given out again when
 * somebody has looked through all messages once for all of them (hd_link_observers.forgotten).
 */
static void id_put(struct hd_dest_ids *ids, struct hd_dest_id_queue *q, uint32_t i)
{
	if (q->count++)
		ids->next[q->last] = i;
	else
		q->first = i;
	q->last = i;
}

/* Those that have gone can be given out: it is worth that look. */
static bool ids_reclaim(struct hd_node *node)
{
	struct hd_dest_ids *ids = &hd_links(node)->ids;

	if (!ids->gone.count || !hd_links(node)->observers->forgotten(node, ids->gone.count))
		return false;
	ids->free = ids->gone;
	ids->gone.count = 0;
	return true;
}

static int ids_grow(struct hd_links *links)
{
	uint32_t from = links->dest_count, to = from ? from * 2 : 64;
	struct hd_dest **more = realloc(links->dests, to * sizeof(*more));
	uint32_t *next;

	if (!more)
		return -ENOMEM;
	memset(more + from, 0, (to - from) * sizeof(*more));
	links->dests = more;
	next = realloc(links->ids.next, to * sizeof(*next));
	if (!next)
		return -ENOMEM;
	links->ids.next = next;
	links->dest_count = to;
	for (uint32_t i = from; i < to; i++)
		id_put(&links->ids, &links->ids.free, i);
	return 0;
}

static int id_take(struct hd_node *node, struct hd_dest *dest)
{
	struct hd_links *links = hd_links(node);
	uint32_t i;

	if (!links->ids.free.count && !ids_reclaim(node) && ids_grow(links) < 0)
		return -ENOMEM;
	i = links->ids.free.first;
	links->ids.free.first = links->ids.next[i];
	links->ids.free.count--;
	links->dests[i] = dest;
	dest->id = i + 1;
	return 0;
}

struct hd_name *hd_name_find(struct hd_node *node, const struct hd_name_key *key)
{
	struct hd_name *n;

	HASH_FIND_BYHASHVALUE(hh, hd_links(node)->names, key, sizeof(*key),
			      hd_links_hash(node, key, sizeof(*key)), n);
	return n;
}

int hd_name_add(struct hd_dest *dest, const struct hd_name_key *key)
{
	struct hd_name *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->key = *key;
	n->dest = dest;
	HASH_ADD_BYHASHVALUE(hh, hd_links(dest->node)->names, key, sizeof(n->key),
			     hd_links_hash(dest->node, key, sizeof(*key)), n);
	if (!hd_is_in_table(&n->hh)) {
		free(n);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&dest->names, n, entry);
	dest->name_count++;
	return 0;
}

void hd_names_drop(struct hd_dest *dest, const struct hd_name_key *keep)
{
	struct hd_name *n, *next;

	for (n = LIST_FIRST(&dest->names); n; n = next) {
		next = LIST_NEXT(n, entry);
		if (keep && !memcmp(&n->key, keep, sizeof(*keep)))
			continue;
		LIST_REMOVE(n, entry);
		HASH_DEL(hd_links(dest->node)->names, n);
		dest->name_count--;
		free(n);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

void hd_dest_stand_in(struct hd_dest *dest, struct hd_node *node)
{
	dest->node = node;
	dest->peer = hd_links(node)->nowhere;
	dest->state = HD_DEST_IDLE;
	dest->alike = dest->alike_before = dest;
	dest->refs = 1;
	TAILQ_INIT(&dest->waiting);
	TAILQ_INIT(&dest->fenced);
	LIST_INIT(&dest->names);
	LIST_INIT(&dest->followers);
	hd_ring_init(&dest->messages);
}

struct hd_dest *hd_dest_make(struct hd_node *node)
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

/* Nobody's any more. */
static void number_drop(struct hd_node *node, uint32_t number)
{
	hd_links(node)->dests[number - 1] = NULL;
	id_put(&hd_links(node)->ids, &hd_links(node)->ids.gone, number - 1);
}

void hd_dest_release(struct hd_dest *dest)
{
	struct hd_node *node = dest->node;

	if (dest->refs || dest->state != HD_DEST_IDLE)
		return;
	hd_timer_stop(node, &dest->overdue);
	hd_names_drop(dest, NULL);
	for (unsigned i = 0; i < dest->former_count; i++)
		number_drop(node, dest->former[i]);
	number_drop(node, dest->id);
	free(dest);
}

static void number_give(struct hd_dest *dest, uint32_t number)
{
	if (dest->former_count == HD_DEST_FORMER) {
		number_drop(dest->node, dest->former[0]);
		dest->former_count--;
		memmove(dest->former, dest->former + 1, dest->former_count * sizeof(*dest->former));
	}
	dest->former[dest->former_count++] = number;
	hd_links(dest->node)->dests[number - 1] = dest;
}

void hd_dest_yield(struct hd_dest *dest, struct hd_dest *heir)
{
	hd_timer_stop(dest->node, &dest->overdue);
	for (unsigned i = 0; i < dest->former_count; i++)
		number_give(heir, dest->former[i]);
	number_give(heir, dest->id);
	free(dest);
}

void hd_dest_unref(struct hd_dest *dest)
{
	dest->refs--;
	hd_dest_release(dest);
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
	n = hd_name_find(node, &key);
	if (n) {
		n->dest->refs++;
		*out = n->dest;
		return 0;
	}
	dest = hd_dest_make(node);
	if (!dest)
		return -ENOMEM;
	dest->key = auth;
	memcpy(&dest->addr, name, hd_sockaddr_size(name));
	if (hd_name_add(dest, &key) < 0) {
		hd_dest_release(dest);
		return -ENOMEM;
	}
	dest->refs = 1;
	hd_dest_claimed(dest, &key);
	*out = dest;
	return 0;
}

void hd_dest_put(struct hd_dest *dest)
{
	hd_assert_locked(dest->node);
	hd_dest_unref(dest);
}

void hd_dest_follow(struct hd_dest *dest, struct hd_follow *follow)
{
	hd_assert_locked(dest->node);
	dest->refs++;
	hd_dest_follower(dest, follow);
}

void hd_dest_unfollow(struct hd_dest *dest, struct hd_follow *follow)
{
	hd_assert_locked(dest->node);
	LIST_REMOVE(follow, entry);
	hd_dest_unref(dest);
}

int hd_dest_holder(const struct hd_dest *dest, struct hd_holder *out)
{
	struct hd_link *link = dest->peer ? dest->peer->link : NULL;

	if (!link || link->down)
		return -ENOTCONN;
	return link->ops->holder ? link->ops->holder(link, out) : -EOPNOTSUPP;
}

uint32_t hd_dest_id(const struct hd_dest *dest)
{
	return dest->id;
}

uint32_t hd_source_next(const struct hd_node *node, uint32_t src, struct hd_source_walk *walk)
{
	if (!walk->begun) {
		walk->begun = true;
		walk->first = walk->at = hd_dest_by_id(node, src);
		return walk->at ? walk->at->id : src;
	}
	if (!walk->at)
		return 0;
	if (walk->former < walk->at->former_count)
		return walk->at->former[walk->former++];
	walk->former = 0;
	walk->at = walk->at->alike == walk->first ? NULL : walk->at->alike;
	return walk->at ? walk->at->id : 0;
}

/*
 * The names that came first are the best ones, and stand last; a loopback address is
 * good on this host alone.
 */
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

		hd_addr_of_key(&n->key, &sa);
		if ((family != AF_UNSPEC && sa.ss_family != family) ||
		    (found && hd_addr_is_loopback(n->key.addr)))
			continue;
		hd_name_set_slot((struct sockaddr *)&sa, n->key.port >> 16);
		*out = sa;
		found = true;
	}
	return found ? 0 : -ENOENT;
}

uint32_t hd_dest_source_id(const struct hd_dest *dest)
{
	uint32_t id = 0;

	if (dest->state == HD_DEST_BOUND)
		id = hd_remote_source(dest->peer, dest->remote);
	return id ? id : dest->id;
}

void hd_dests_close(struct hd_node *node)
{
	for (uint32_t i = 0; i < hd_links(node)->dest_count; i++) {
		struct hd_dest *d = hd_links(node)->dests[i];

		if (!d)
			continue;
		hd_timer_stop(node, &d->retry);
		d->state = HD_DEST_IDLE;
		d->refs = 0;
		hd_dest_release(d);
	}
	free(hd_links(node)->dests);
	free(hd_links(node)->ids.next);
}
