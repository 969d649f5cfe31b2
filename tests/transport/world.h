/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the suite's tests share: nodes that can call each other, waiting for something, and the
 * checks at the end of each test.
 */
#ifndef HD_TESTS_WORLD_H
#define HD_TESTS_WORLD_H

#include "transport/rig.h"
#include "transport/suite.h"

#define WORLD_NODES 72

/* How a test runs: what cmocka hands to it. */
struct mode {
	const struct suite *suite;
	bool threads;
};

struct world {
	const struct suite *suite;
	bool threads;
	struct hd_node *node[WORLD_NODES];
	struct hd_listener listener[WORLD_NODES];
	bool listens[WORLD_NODES];
	int count;
	int descriptors; /* open before it began */
};

struct pair {
	/*
	 * the end that connected, the end that was called; the same where links lead to themselves
	 */
	struct rig_end *a, *b;
};

/*
 * world_open makes `count` nodes (one where links lead to themselves) with a port each, that
 * listen or can be joined.
 */
void world_open(struct world *w, const struct mode *mode, int count);

/*
 * world_close closes everything and fails the test if there was a complaint, or if a
 * descriptor is still open.
 */
void world_close(struct world *w);

/*
 * world_call starts a link between two nodes and returns what connect
 * answered; *end is the calling end.
 */
int world_call(struct world *w, int from, int to, struct rig_end **end);

/* world_pair makes a link and waits until both ends have greeted. */
struct pair world_pair(struct world *w, int from, int to);

/* world_lock, world_unlock: all nodes. */
void world_lock(struct world *w);
void world_unlock(struct world *w);

/*
 * world_turn lets every node that is not paused make a turn, or waits a moment for their threads.
 */
void world_turn(struct world *w);

/*
 * world_until makes turns until cond(arg), looked at with all locks held; fails the
 * test after so many seconds.
 */
#define world_until(w, seconds, cond, arg) world_until_(w, seconds, cond, arg, #cond, __FILE__, __LINE__)
void world_until_(struct world *w, int seconds, bool (*cond)(void *arg), void *arg, const char *what,
		  const char *file, int line);

/* world_check fails the test if a node has complained. */
void world_check(struct world *w);

/* world_kick wakes the thread of a node that may sleep, after its plan or a link was changed. */
void world_kick(struct hd_node *node);

/* pair_plan gives both ends a plan (an end that is its own other gets it once). */
void pair_plan(struct world *w, struct pair *p, const struct rig_plan *plan);

/*
 * pair_quiet, a condition: all that was planned at both ends has arrived, and nothing is under way.
 */
bool pair_quiet(void *pair);

/* end_gone, a condition: the link of this end is down and closed. */
bool end_gone(void *end);

#endif
