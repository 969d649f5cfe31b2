/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The nodes of this process, for fork and exit, and for a thread that has both ends of a connection
 * in two of them: as it polls one and waits for what the other is to do, nobody polls that one, and
 * its thread finds out milliseconds later. So who polls in vain makes turns of those nodes too that
 * it was the last to poll. Nodes that another thread polls are left to that one: to take their lock
 * would cost it the lock's favour.
 */
#include "base/lock.h"
#include "engine/core/core.h"

#include <pthread.h>

struct hd_all_nodes hd_all_nodes = LIST_HEAD_INITIALIZER(hd_all_nodes);

/* the list; taken before any node's lock */
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uintptr_t nodes_owner; /* who has it, or 0; relaxed: each looks for himself alone */
static atomic_int nodes_count;	      /* relaxed, a hint */

static void nodes_held(void)
{
	atomic_store_explicit(&nodes_owner, hd_thread_self(), memory_order_relaxed);
}

void hd_nodes_hold(void)
{
	pthread_mutex_lock(&nodes_lock);
	nodes_held();
}

bool hd_nodes_try(void)
{
	if (pthread_mutex_trylock(&nodes_lock))
		return false;
	nodes_held();
	return true;
}

void hd_nodes_release(void)
{
	atomic_store_explicit(&nodes_owner, 0, memory_order_relaxed);
	pthread_mutex_unlock(&nodes_lock);
}

/*
 * Before a fork: nobody but the caller is in the middle of anything, so that what a child finds,
 * and may close, is whole. A handler of a signal that forks may have interrupted a call in its
 * thread, which has the list or a node: that stays as it is.
 */
static bool had_nodes; /* by nodes_lock: the caller had that himself */
static void nodes_still(void)
{
	bool had = atomic_load_explicit(&nodes_owner, memory_order_relaxed) == hd_thread_self();
	struct hd_core *core;

	if (!had)
		hd_nodes_hold();
	had_nodes = had;
	LIST_FOREACH(core, &hd_all_nodes, all)
		core->stilled = core->gate.locked && !core->gate.dead && hd_biased_take_new(&core->gate.lock);
}

static void nodes_go_on(void)
{
	struct hd_core *core;

	LIST_FOREACH(core, &hd_all_nodes, all)
		if (core->stilled)
			hd_biased_give(&core->gate.lock);
	if (!had_nodes)
		hd_nodes_release();
}

/* In the child. */
static void nodes_forked(void)
{
	struct hd_core *core;

	nodes_go_on();
	LIST_FOREACH(core, &hd_all_nodes, all)
		core->turn_ops->forked(hd_core_node(core));
	if (had_nodes)
		pthread_mutex_init(&nodes_lock, NULL);
}

static void nodes_watch_forks(void)
{
	static const struct hd_lock_between nodes = { nodes_still, nodes_go_on, nodes_forked };

	hd_lock_between(&nodes);
}

void hd_nodes_join(struct hd_node *node)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, nodes_watch_forks);
	hd_nodes_hold();
	LIST_INSERT_HEAD(&hd_all_nodes, hd_core(node), all);
	atomic_fetch_add_explicit(&nodes_count, 1, memory_order_relaxed);
	hd_nodes_release();
}

void hd_nodes_leave(struct hd_node *node)
{
	hd_nodes_hold();
	LIST_REMOVE(hd_core(node), all);
	atomic_fetch_sub_explicit(&nodes_count, 1, memory_order_relaxed);
	hd_nodes_release();
}

bool hd_nodes_are_several(void)
{
	return atomic_load_explicit(&nodes_count, memory_order_relaxed) > 1;
}

/*
 * A turn that counts as one of the program's, and so keeps the node's thread away, where it has
 * moved something. A node with nothing to do goes to sleep: its thread is woken like any other,
 * and is not for us to rouse.
 */
static int node_help(struct hd_node *node)
{
	struct hd_core *core = hd_core(node);
	int n = 0;

	hd_node_lock(node);
	if (core->worker.runs && !core->worker.sleepers && !(core->worker.asks & HD_ASK_ROUSE) &&
	    !core->closing && hd_turn(node) > 0)
		n = 1 + hd_node_poll(node);
	hd_node_unlock(node);
	return n;
}

int hd_nodes_help(const struct hd_node *own)
{
	uintptr_t self = hd_thread_self();
	struct hd_core *core;
	int n = 0;

	if (!hd_nodes_try())
		return 0;
	LIST_FOREACH(core, &hd_all_nodes, all)
		if (core != hd_core(own) && core->gate.locked && !core->gate.dead &&
		    atomic_load_explicit(&core->poller, memory_order_relaxed) == self)
			n += node_help(hd_core_node(core));
	hd_nodes_release();
	return n;
}
