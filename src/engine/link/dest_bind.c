/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How a destination becomes bound to an endpoint of a peer: by connecting to its name, or since the
 * peer announced that (announced.c); and how it is left alone again.
 */
#include "base/advice.h"
#include "base/config.h"
#include "base/log.h"
#include "engine/link/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With a slot it may be that of a queue pair, which is known by its number. */
struct hd_dest_text hd_dest_text(const struct hd_dest *dest)
{
	struct hd_dest_text text = { "an unnamed endpoint" };
	uint32_t slot = hd_name_slot((void *)&dest->addr);
	struct hd_name_key key;
	size_t len;

	if (dest->addr.ss_family == AF_UNSPEC || !hd_addr_key((void *)&dest->addr, &key))
		return text;
	hd_addr_text((void *)&dest->addr, text.text, sizeof(text.text));
	len = strlen(text.text);
	if (slot && slot < 256)
		snprintf(text.text + len, sizeof(text.text) - len, " (number 0x%06x)",
			 (unsigned)(uint16_t)key.port << 8 | slot);
	return text;
}

static void retry(struct hd_timer *timer)
{
	struct hd_dest *dest = hd_container(timer, struct hd_dest, retry);

	dest->state = HD_DEST_IDLE;
	hd_dest_call(dest);
}

void hd_dest_again(struct hd_dest *dest, int err)
{
	if (dest->tries++ >= 8) {
		hd_dest_fail(dest, err);
		return;
	}
	hd_count(dest->node, HD_COUNT_CALLS_AGAIN);
	hd_event("%s: called again in %d ms: %s", hd_dest_text(dest).text, dest->tries * 20, strerror(-err));
	dest->link = NULL;
	dest->state = HD_DEST_CONNECTING;
	dest->retry.fn = retry;
	hd_timer_set(dest->node, &dest->retry, dest->tries * 20 * HD_NS_PER_MS);
}

/*
 * A host that has a way to it counts as unreachable, too, where shared memory alone is
 * allowed and it has none.
 */
static const char *unreached_advice(const struct hd_dest *dest, int err)
{
	if (err == -EHOSTUNREACH && hd_links(dest->node)->transport_choice == HD_USE_SHM)
		return ": HEDDLE_TRANSPORT=shm allows shared memory alone: use auto at both, or see `ip route get`";
	return hd_advice_call(-err);
}

static void say_unreached(const struct hd_dest *dest, int err)
{
	hd_info("%s cannot be reached: %s%s", hd_dest_text(dest).text, strerror(-err),
		unreached_advice(dest, err));
}

static int dest_dial(struct hd_dest *dest)
{
	struct hd_node *node = dest->node;
	struct sockaddr_storage to = dest->addr;
	struct hd_link *link = NULL;
	struct hd_follow *f;
	int rc = -ENOTCONN;

	if (dest->addr.ss_family == AF_UNSPEC)
		return -ENOTCONN;	  /* a source that was never named */
	hd_name_set_slot((void *)&to, 0); /* the port is called, HELLO says the slot */
	for (int i = 0; i < hd_core(node)->port_count; i++)
		if (hd_core(node)->ports[i]->transport->addressed) {
			rc = hd_core(node)->ports[i]->transport->connect(hd_core(node)->ports[i], &to,
									 sizeof(to), NULL, &link);
			break;
		}
	if (rc < 0)
		return rc;
	dest->state = HD_DEST_CONNECTING;
	hd_event("%s: called", hd_dest_text(dest).text);
	dest->link = link;
	LIST_FOREACH(f, &dest->followers, entry)
		f->late = false;
	hd_hello_initiate(link, dest);
	return 0;
}

int hd_dest_connect(struct hd_dest *dest)
{
	static struct hd_log_gate gate; /* a program may try again, and again */
	int rc = dest_dial(dest);

	if (rc < 0 && rc != -ENOTCONN && hd_log_on(HD_LOG_INFO) &&
	    hd_log_within(&gate, 1, 1000, HD_LOG_INFO, HD_LOG_ROOM))
		say_unreached(dest, rc);
	return rc;
}

void hd_dest_call(struct hd_dest *dest)
{
	int rc = dest_dial(dest);

	if (rc < 0)
		hd_dest_fail(dest, rc);
}

/* They are bound to one endpoint. */
static void join(struct hd_dest *dest, struct hd_dest *other)
{
	dest->alike = other->alike;
	dest->alike_before = other;
	other->alike->alike_before = dest;
	other->alike = dest;
}

static void part(struct hd_dest *dest)
{
	dest->alike->alike_before = dest->alike_before;
	dest->alike_before->alike = dest->alike;
	dest->alike = dest->alike_before = dest;
}

/* It is in the list of its peer no longer. */
static void dest_leave(struct hd_dest *dest, struct hd_peer *peer)
{
	LIST_REMOVE(dest, entry);
	peer->dest_count--;
	if (dest->kept)
		hd_budget_unkeep(peer->share->budget, HD_DEST_UNITS);
	dest->kept = false;
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
	dest->name_count += old->name_count;
	old->name_count = 0;
	hd_ring_take(&dest->messages, &old->messages);
	dest_leave(old, dest->peer);
	part(old);
	hd_dest_yield(old, dest);
}

/*
 * Tell those who follow the destination, or (not `late`) did when it was called, in the order in
 * which they came. One may leave, or give the destination back, while he is told.
 */
static void tell_followers(struct hd_dest *dest, int err, bool late)
{
	LIST_HEAD(, hd_follow) untold = LIST_HEAD_INITIALIZER(untold);
	struct hd_follow *f;

	while ((f = LIST_FIRST(&dest->followers))) { /* the last to come is the first */
		LIST_REMOVE(f, entry);
		LIST_INSERT_HEAD(&untold, f, entry);
	}
	while ((f = LIST_FIRST(&untold))) {
		LIST_REMOVE(f, entry);
		LIST_INSERT_HEAD(&dest->followers, f, entry);
		if (late || !f->late)
			f->fn(f, err);
	}
}

void hd_dest_follower(struct hd_dest *dest, struct hd_follow *follow)
{
	follow->late = dest->state == HD_DEST_CONNECTING;
	LIST_INSERT_HEAD(&dest->followers, follow, entry);
}

/* The call has failed that was under way when these came. */
static void call_for_late(struct hd_dest *dest)
{
	struct hd_follow *f;
	int rc;

	LIST_FOREACH(f, &dest->followers, entry)
		if (f->late)
			break;
	if (!f || dest->state != HD_DEST_IDLE)
		return;
	rc = hd_core(dest->node)->closing ? -ESHUTDOWN : hd_dest_connect(dest);
	if (rc < 0)
		tell_followers(dest, rc, true);
}

/*
 * What a call was answered with, on a connection of its own, may be older than
 * what has been announced.
 */
static uint16_t newer(uint16_t announced, uint16_t called)
{
	return announced && (int16_t)(announced - called) > 0 ? announced : called;
}

/* It leads to this endpoint, as others may. */
static void stand_for(struct hd_dest *dest, struct hd_remote *at)
{
	struct hd_dest *old = hd_dest_by_id(dest->node, at->dest_id);

	dest->gen = newer(at->gen, dest->gen);
	hd_remote_set_key(dest->peer, dest->remote, dest->key);
	if (!old || old == dest) {
		at->dest_id = dest->id;
		at->gen = dest->gen;
		return;
	}
	join(dest, old);
	if (!old->refs && old->gen == dest->gen) {
		at->dest_id = dest->id;
		at->gen = dest->gen;
		absorb(dest, old);
	}
	hd_links(dest->node)->observers->joined(dest);
}

void hd_dest_bind(struct hd_dest *dest, struct hd_peer *peer, uint32_t remote, uint16_t gen)
{
	if (dest->state == HD_DEST_BOUND)
		return;
	if (dest->retry.due)
		hd_timer_stop(dest->node, &dest->retry);
	if (dest->overdue.due)
		hd_timer_stop(dest->node, &dest->overdue);
	dest->is_overdue = false;
	if (dest->awaits)
		LIST_REMOVE(dest, entry);
	dest->awaits = false;
	dest->state = HD_DEST_BOUND;
	hd_event("%s: endpoint %u of peer " HD_PEER_ID, hd_dest_text(dest).text, remote, HD_PEER_ID_OF(peer));
	dest->peer = peer;
	dest->remote = remote;
	dest->gen = gen;
	dest->link = NULL;
	dest->tries = 0;
	dest->tried = false;
	LIST_INSERT_HEAD(&peer->dests, dest, entry);
	peer->dest_count++;
	if (hd_peer_remote(peer, remote) == 0)
		stand_for(dest, hd_remote_at(peer, remote));
	hd_dest_check(dest);
	hd_links(dest->peer->node)->observers->bound(dest);
	tell_followers(dest, 0, true);
}

/*
 * Which leads to this generation, or, since nobody means another one by it,
 * may; NULL: there is none.
 */
static struct hd_dest *at_hand(struct hd_dest *first, uint16_t gen)
{
	struct hd_dest *d = first, *idle = NULL;

	while (d && d->gen != gen) {
		idle = d->refs ? idle : d;
		d = d->alike == first ? NULL : d->alike;
	}
	return d ? d : idle;
}

struct hd_dest *hd_dest_at(struct hd_peer *peer, uint32_t remote, uint16_t gen)
{
	struct hd_remote *at;
	struct hd_dest *dest;

	if (hd_peer_remote(peer, remote) < 0)
		return NULL;
	at = hd_remote_at(peer, remote);
	dest = at_hand(hd_dest_by_id(peer->node, at->dest_id), gen);
	if (dest && dest->gen != gen) {
		dest->gen = gen;
		if (dest->id == at->dest_id)
			at->gen = newer(at->gen, gen);
	}
	if (!dest) {
		dest = hd_dest_make(peer->node);
		if (!dest)
			return NULL;
		dest->key = hd_remote_key(peer, remote);
		hd_dest_bind(dest, peer, remote, gen);
	}
	dest->refs++;
	return dest;
}

void hd_dest_unbind(struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;
	struct hd_remote *at;
	struct hd_name_key own;
	bool named;

	dest->refs++;
	tell_followers(dest, -ECONNRESET, true);
	dest->refs--;
	hd_ring_take(&peer->kept, &dest->messages);
	dest_leave(dest, peer);
	dest->state = HD_DEST_IDLE;
	dest->peer = hd_links(dest->node)->nowhere;
	at = hd_remote_at(peer, dest->remote);
	if (at && at->dest_id == dest->id)
		at->dest_id = dest->alike == dest ? 0 : dest->alike->id;
	part(dest);
	named = dest->addr.ss_family != AF_UNSPEC && hd_addr_key((void *)&dest->addr, &own);
	own.key = dest->key;
	hd_names_drop(dest, named ? &own : NULL);
	if (dest->refs)
		hd_dest_check(dest);
	hd_dest_release(dest);
}

void hd_dest_fail(struct hd_dest *dest, int err)
{
	if (dest->retry.due)
		hd_timer_stop(dest->node, &dest->retry);
	say_unreached(dest, err);
	dest->state = HD_DEST_IDLE;
	dest->link = NULL;
	dest->tries = 0;
	dest->refs++;
	hd_links(dest->node)->observers->unreached(dest, hd_status_of(err));
	tell_followers(dest, err, false);
	call_for_late(dest);
	hd_dest_check(dest);
	hd_dest_unref(dest);
}
