/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What a fork does to the nodes of a process, and its end. */
#include "engine/node/process.h"

#include "base/clock.h"
#include "engine/cm/cm.h"
#include "engine/core/core.h"
#include "engine/ep/ep.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"

#include <unistd.h>

/* ---- fork ------------------------------------------------------------------------------------ */

/* A full queue closes the short way of receives. */
static void receives_forked(struct hd_node *node)
{
	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++)
		if (hd_names(node)->eps[i])
			hd_cq_forked(hd_names(node)->eps[i]->rx_cq);
}

static void ports_forked(struct hd_node *node)
{
	for (int i = 0; i < hd_core(node)->port_count; i++)
		if (hd_core(node)->ports[i]->transport->forked)
			hd_core(node)->ports[i]->transport->forked(hd_core(node)->ports[i]);
}

static void front_forked(struct hd_node *node)
{
	if (hd_core(node)->attr.on_fork)
		hd_core(node)->attr.on_fork(hd_core(node)->attr.arg);
}

/*
 * What becomes of a node in the child, in this order: dead first, and the front last, whose calls
 * are refused then. Async-signal-safe, all of it.
 */
static void (*const forked[])(struct hd_node *node) = {
	hd_core_forked, hd_triggers_forked, hd_acks_forked,	 hd_links_forked, receives_forked,
	ports_forked,	hd_groups_forked,   hd_listeners_forked, front_forked,
};

void hd_node_forked(struct hd_node *node)
{
	for (size_t i = 0; i < sizeof(forked) / sizeof(forked[0]); i++)
		forked[i](node);
}

/* ---- exit ------------------------------------------------------------------------------------ */

#define LAST_WORDS_MS 1000
#define LAST_WORDS_LOOK_US 500
/* whoever has the lock may be a call that a signal's handler, which exits, has interrupted */
#define IN_USE_LOOKS 100

static bool last_words_wait(struct hd_node *node, bool only_look)
{
	bool wait = false;

	for (int i = 0; i < hd_core(node)->port_count; i++)
		if (hd_core(node)->ports[i]->transport->last)
			wait |= hd_core(node)->ports[i]->transport->last(hd_core(node)->ports[i], only_look);
	return wait;
}

/*
 * Somebody else is in the middle of it; where there is no lock, he has
 * polled since, and so goes on.
 */
static bool node_is_in_use(struct hd_node *node, uint64_t turns)
{
	return hd_core(node)->gate.locked ? hd_biased_is_taken(&hd_core(node)->gate.lock)
					  : hd_node_program_turns(node) != turns;
}

/*
 * What has been said, and its sends reported to be good for, goes into the kernel's hands, and
 * behind it that this is no crash. That is left out where no lock tells whether a signal's handler,
 * which exits, has interrupted a call that is in the middle of a send.
 */
static void last_words_say(struct hd_node *node)
{
	const uint64_t due = hd_deadline_ns(LAST_WORDS_MS), turns = hd_node_program_turns(node);
	bool wait = hd_core(node)->gate.locked || last_words_wait(node, true);
	bool told = !hd_core(node)->gate.locked || !hd_core(node)->counts[HD_COUNT_LINKS];
	int in_use = 0;

	while (wait && hd_now_ns() < due && in_use < IN_USE_LOOKS) {
		if (node_is_in_use(node, turns)) {
			in_use++;
		} else {
			hd_node_lock(node);
			if (!told)
				hd_peers_leave(node);
			told = true;
			wait = last_words_wait(node, false);
			hd_node_unlock(node);
		}
		if (wait)
			hd_pause_us(LAST_WORDS_LOOK_US);
	}
}

/* Where nobody is in the middle of it. */
static void past_say(struct hd_node *node)
{
	if (!hd_log_on(HD_LOG_INFO) || node_is_in_use(node, hd_node_program_turns(node)))
		return;
	hd_node_lock(node);
	hd_past_say(node);
	hd_node_unlock(node);
}

/*
 * What a program leaves open ends with the process; but a thread of ours must not outlive what it
 * needs: destructors of libraries come next. What is still to be written out is. A list that is
 * being changed is left alone.
 */
static void __attribute__((destructor)) process_ends(void)
{
	struct hd_core *core;

	if (!hd_nodes_try())
		return;
	LIST_FOREACH(core, &hd_all_nodes, all) {
		struct hd_node *node = hd_core_node(core);

		hd_auto_leave(node);
		if (!hd_core(node)->gate.dead && !hd_core(node)->closing) {
			last_words_say(node);
			past_say(node);
		}
	}
	hd_nodes_release();
}
