/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections that have been accepted and wait for their callers, by whom they wait for: a node
 * that goes, or closes an endpoint, ends those that wait for it and looks at no others. A caller
 * may say of each of his requests that it is of the same endpoint, so those of one are a list: many
 * equal keys would make one chain of a table long for everything else in it. All with the node's
 * lock.
 */
#include "engine/cm/call.h"
#include "engine/cm/conn.h"
#include "engine/name/name.h"

#include <errno.h>
#include <stdlib.h>

/* Of one node: by whose it is as well, since others may call themselves the same. */
struct hd_callers {
	struct hd_peer_key id;
	struct hd_caller *eps;
	UT_hash_handle hh; /* hd_conns.callers */
};

/* One endpoint of that. */
struct hd_caller {
	struct hd_callers *of;
	uint64_t key;		    /* caller_key */
	LIST_HEAD(, hd_conn) conns; /* that wait for it: never empty */
	UT_hash_handle hh;	    /* hd_callers.eps */
};

static uint64_t caller_key(const struct hd_announce *ep)
{
	return (uint64_t)ep->gen << 32 | ep->index;
}

static struct hd_callers *callers_of(struct hd_node *node, const struct hd_peer_key *id)
{
	unsigned hash = hd_links_hash(node, id, sizeof(*id));
	struct hd_callers *of;

	HASH_FIND_BYHASHVALUE(hh, hd_conns(node)->callers, id, sizeof(*id), hash, of);
	return of;
}

static struct hd_caller *caller_of(struct hd_node *node, struct hd_callers *of, const struct hd_announce *ep)
{
	uint64_t key = caller_key(ep);
	unsigned hash = hd_links_hash(node, &key, sizeof(key));
	struct hd_caller *caller;

	HASH_FIND_BYHASHVALUE(hh, of->eps, &key, sizeof(key), hash, caller);
	return caller;
}

static struct hd_callers *callers_make(struct hd_node *node, const struct hd_peer_key *id)
{
	struct hd_callers *of = calloc(1, sizeof(*of));
	unsigned hash = hd_links_hash(node, id, sizeof(*id));

	if (!of)
		return NULL;
	of->id = *id;
	HASH_ADD_BYHASHVALUE(hh, hd_conns(node)->callers, id, sizeof(of->id), hash, of);
	if (hd_is_in_table(&of->hh))
		return of;
	free(of);
	return NULL;
}

static struct hd_caller *caller_make(struct hd_node *node, struct hd_callers *of,
				     const struct hd_announce *ep)
{
	struct hd_caller *caller = calloc(1, sizeof(*caller));
	unsigned hash;

	if (!caller)
		return NULL;
	caller->of = of;
	caller->key = caller_key(ep);
	hash = hd_links_hash(node, &caller->key, sizeof(caller->key));
	HASH_ADD_BYHASHVALUE(hh, of->eps, key, sizeof(caller->key), hash, caller);
	if (hd_is_in_table(&caller->hh))
		return caller;
	free(caller);
	return NULL;
}

static void callers_settle(struct hd_node *node, struct hd_callers *of)
{
	if (of->eps)
		return;
	HASH_DEL(hd_conns(node)->callers, of);
	free(of);
}

int hd_conn_await(struct hd_conn *c)
{
	struct hd_node *node = c->ep->node;
	const struct hd_peer_key id = { c->node, c->realm };
	struct hd_callers *of = callers_of(node, &id);
	struct hd_caller *caller;

	if (!of)
		of = callers_make(node, &id);
	if (!of)
		return -ENOMEM;
	caller = caller_of(node, of, &c->other);
	if (!caller)
		caller = caller_make(node, of, &c->other);
	if (!caller) {
		callers_settle(node, of);
		return -ENOMEM;
	}
	c->caller = caller;
	LIST_INSERT_HEAD(&caller->conns, c, by_caller);
	return 0;
}

void hd_conn_unawait(struct hd_conn *c)
{
	struct hd_caller *caller = c->caller;
	struct hd_callers *of;

	if (!caller)
		return;
	c->caller = NULL;
	LIST_REMOVE(c, by_caller);
	if (!LIST_EMPTY(&caller->conns))
		return;
	of = caller->of;
	HASH_DEL(of->eps, caller);
	free(caller);
	callers_settle(c->ep->node, of);
}

/* One of those that wait for this endpoint, or for any of this node. */
static struct hd_conn *awaiting_one(struct hd_peer *peer, const struct hd_announce *gone)
{
	const struct hd_peer_key id = { peer->id, peer->realm };
	struct hd_callers *of = callers_of(peer->node, &id);
	struct hd_caller *caller = of && gone ? caller_of(peer->node, of, gone) : of ? of->eps : NULL;

	return caller ? LIST_FIRST(&caller->conns) : NULL;
}

void hd_conns_orphan(struct hd_peer *peer, const struct hd_announce *gone)
{
	struct hd_conn *c;

	while (hd_conns(peer->node)->callers && (c = awaiting_one(peer, gone)))
		hd_conn_fail(c, ECONNRESET, NULL);
}
