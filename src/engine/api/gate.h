/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The way into a node: its lock, and whether there is anything behind it. Each call of a program's
 * comes through here, posts and polls of eight bytes as well, so it is open to the fronts: to the
 * lock's favourite thread (base/biased.h) a handful of instructions.
 */
#ifndef HD_ENGINE_API_GATE_H
#define HD_ENGINE_API_GATE_H

#include "base/biased.h"

struct hd_node;

/*
 * What a node begins with. The first two words are written by whoever opens, shares or forks the
 * node, before others have it or where no others are.
 */
struct hd_gate {
	bool locked;	   /* several threads may use it: else the lock is nobody's business */
	bool dead;	   /* a forked child's */
	_Atomic bool idle; /* relaxed, a hint: hd_node_rest has something to do */
	struct hd_biased lock;
};

static inline struct hd_gate *hd_gate_of(struct hd_node *node)
{
	return (struct hd_gate *)node;
}

/*
 * hd_node_lock: takes the node's lock; nothing for a node without one. hd_node_unlock gives it
 * back, in the same thread. hd_node_enter: hd_node_lock, unless the node is dead (hd_node_dead):
 * then false, without the lock.
 */
static inline void hd_node_lock(struct hd_node *node)
{
	struct hd_gate *gate = hd_gate_of(node);

	if (__builtin_expect(gate->locked, 1))
		hd_biased_take(&gate->lock);
}

static inline void hd_node_unlock(struct hd_node *node)
{
	struct hd_gate *gate = hd_gate_of(node);

	if (__builtin_expect(gate->locked, 1))
		hd_biased_give(&gate->lock);
}

static inline bool hd_node_enter(struct hd_node *node)
{
	if (__builtin_expect(hd_gate_of(node)->dead, 0))
		return false;
	hd_node_lock(node);
	return true;
}

/*
 * hd_node_rest: a poll of the program's, which is over, has found nothing. Where that has been so
 * for a while (hd_node_idle, core/offer.c), it sees to the thread's other nodes and offers the
 * processor to other threads. Without the lock; any thread.
 */
void hd_node_idle(struct hd_node *node);
static inline void hd_node_rest(struct hd_node *node)
{
	if (__builtin_expect(atomic_load_explicit(&hd_gate_of(node)->idle, memory_order_relaxed), 0))
		hd_node_idle(node);
}

#endif
