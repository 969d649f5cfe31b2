/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A turn of progress, as the rooms above take part in it. Its phases, in their order:
 *
 *	poll	  the ports that are active: transport.h
 *	publish	  what has been accepted meanwhile is said to who waits for it: struct hd_publish
 *	push	  what waits for room or credit is tried again: struct hd_push
 *	look	  at words that others write, where somebody waits for them: hd_turn_ops.look
 *	work	  what comes up now and then, and must not run within a transport: enum hd_turn_work
 *
 * A phase costs one test where nobody wants it. Before a node sleeps it is armed, and then pushes
 * and looks once more. Everything here is called with the node's lock, may send, complete and post
 * more of the same, and blocks nowhere. What a phase returns is how much has moved.
 */
#ifndef HD_ENGINE_TURN_H
#define HD_ENGINE_TURN_H

#include <stdbool.h>
#include <sys/queue.h>

struct hd_node;

/*
 * Something to be published, in hd_core.publishing. fn takes it out of the list; it is published
 * once for all that has come up to then.
 */
struct hd_publish {
	LIST_ENTRY(hd_publish) entry;
	void (*fn)(struct hd_publish *publish);
};

/*
 * Somebody for whom something is queued, in hd_core.pushing. fn takes itself out, and nobody
 * else, when nothing is left.
 */
struct hd_push {
	TAILQ_ENTRY(hd_push) entry;
	int (*fn)(struct hd_push *push);
};

/*
 * Work, in its order within the phase: bits of hd_core.work, which is set where something is due,
 * and cleared before it is done. What is due keeps the node awake where HD_WORK_AWAKE has it;
 * HD_WORK_FIRE is tried once more before it sleeps, as what is queued is.
 */
enum hd_turn_work {
	HD_WORK_REAP,	  /* links that are down */
	HD_WORK_DEFERRED, /* hd_deferred_post */
	HD_WORK_FIRE,	  /* triggers */
	HD_WORK_LIMITS,	  /* of receive queues; for as long as one is armed, */
	HD_WORK_MARKS,	  /* as those of queue pairs are */
	HD_WORKS
};
#define HD_WORK_AWAKE (1u << HD_WORK_REAP | 1u << HD_WORK_DEFERRED)

/* One table for all nodes, which is put together at the top: node/turn.c. */
struct hd_turn_ops {
	/*
	 * look at all words that somebody waits for, or at some: while hd_core.awaiting_count is
	 * not 0. How many had news.
	 */
	int (*look)(struct hd_node *node, bool all);
	/*
	 * the node is about to sleep: who writes such a word wakes it if that matters
	 * (hd_node_page.sleep_heeds)
	 */
	void (*look_arm)(struct hd_node *node);
	int (*work[HD_WORKS])(struct hd_node *node);
	/*
	 * builds with assertions: the turn has moved something: assert that what the rooms keep
	 * agrees with itself; changes nothing
	 */
	void (*check)(struct hd_node *node);
	/* this is a child that fork(2) has just made, and the node dead in it; async-signal-safe */
	void (*forked)(struct hd_node *node);
};

#endif
