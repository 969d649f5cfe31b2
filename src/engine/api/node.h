/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Nodes: what everything of the engine belongs to, and what is to be done when a turn of progress
 * is over. Rules that hold for all calls: engine.h.
 */
#ifndef HD_ENGINE_API_NODE_H
#define HD_ENGINE_API_NODE_H

#include "engine/api/gate.h"
#include "engine/api/types.h"

/* ---- node ------------------------------------------------------------------------------------ */

struct hd_node_attr {
	const char *front;  /* "libfabric", "verbs", "dat": shown by `heddle info` */
	bool locked;	    /* several threads may use it; always so with auto_progress and serve */
	bool auto_progress; /* a thread of the node makes progress while the program does not */
	/* the same, as soon as a region is there that others may reach, or a queue pair */
	bool serve;
	/* in a forked child, where the node is dead: swap your tables. Async-signal rules apply */
	void (*on_fork)(void *arg);
	void *arg;
};

/* hd_node_open: 0 and *out, or -ENOMEM, -EMFILE, … . Takes no lock. */
int hd_node_open(const struct hd_node_attr *attr, struct hd_node **out);

/*
 * hd_node_retire: its queue pairs fail, and nobody reaches its regions any more; all of them stay
 * to be closed. A process that has been stopped in the middle of a copy from or to any of them is
 * waited for; the lock, which the caller has once, is given away meanwhile.
 */
void hd_node_retire(struct hd_node *node);

/*
 * hd_node_close: closes links and frees the node. -EBUSY while endpoints, queues or regions
 * stand. Takes the lock itself. Blocks for up to a second, where a peer has no room for what has
 * been said to it over TCP.
 */
int hd_node_close(struct hd_node *node);

/*
 * hd_node_share: a node that was opened without a lock has one from now on. Nobody else may be in a
 * call on the node, nor in hd_cq_wait or hd_cntr_wait.
 */
void hd_node_share(struct hd_node *node);

/*
 * hd_node_poll: one turn of progress for everything of the node; returns the number of
 * packets and events handled.
 */
int hd_node_poll(struct hd_node *node);

/* hd_node_signal: wake every thread that waits in this node, once. Any thread, no lock needed. */
void hd_node_signal(struct hd_node *node);

/*
 * hd_node_address: the i-th address that wildcard endpoints are reachable at, best first; false
 * beyond the last. Port 0.
 */
bool hd_node_address(const struct hd_node *node, int i, struct sockaddr_storage *out);

/*
 * hd_own_addresses: the addresses that nodes would have, in the order of hd_node_address, and
 * behind them, without HEDDLE_ADDR, those of links (fe80::, with their scope), which they have too,
 * and tell nobody; up to max of them: how many, or -errno. Any thread, no lock.
 */
struct hd_own_address {
	struct sockaddr_storage addr; /* port 0 */
	int bits;		      /* of its subnet's prefix */
	unsigned ifindex;
	bool is_loopback; /* the interface is */
	char interface[16];
};
int hd_own_addresses(struct hd_own_address *out, int max);
/* hd_addr_is_judged: somebody has said already what is wrong with HEDDLE_ADDR. Before all else. */
void hd_addr_is_judged(void);

/*
 * hd_node_dead: true in a child forked from the process that opened the node: calls on it fail with
 * -ENOTRECOVERABLE, closing works. Takes no lock.
 */
bool hd_node_dead(const struct hd_node *node);

/* ---- deferred work --------------------------------------------------------------------------- */

/*
 * Something to be done when a turn of progress is over, because it was found out in the middle of
 * the engine, where nothing may be posted. Memory of whoever posts it, zero to begin with.
 * hd_deferred_post: fn is called once, with the node's lock, and may post, close, connect, but not
 * wait; once is enough until then. fn may post itself again: it runs in the next turn, and the node
 * does not sleep meanwhile. hd_deferred_drop: not any more. Both with the lock.
 */
struct hd_deferred {
	void (*fn)(struct hd_deferred *deferred);
	TAILQ_ENTRY(hd_deferred) entry;
	bool posted;
};
void hd_deferred_post(struct hd_node *node, struct hd_deferred *deferred);
void hd_deferred_drop(struct hd_node *node, struct hd_deferred *deferred);

/*
 * Cross-thread work: something to be done in a node by whoever does not hold its lock. Memory of
 * the front until fn is called, once, with the node's lock; it may do what is allowed out of the
 * middle of the engine, and no more. hd_crosswork_send: any thread, with or without the lock of
 * another node. The node is there until then: hd_node_close does what has not been done.
 */
struct hd_crosswork {
	void (*fn)(struct hd_crosswork *crosswork);
	struct hd_crosswork *next; /* the engine's */
};
void hd_crosswork_send(struct hd_node *node, struct hd_crosswork *crosswork);

#endif
