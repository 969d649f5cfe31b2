/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Watching over a program that goes away without saying so. While the program polls, the node's thread stands back, and finds out
 * milliseconds later that it does so no more. For a program that polls until it has what it wanted, and then looks at its memory
 * until something is written there, each write would wait for so long. When that has been seen, the thread sleeps at the epoll set
 * meanwhile: a turn that brings the program something makes sockets show there, for it may be its last; some that bring nothing take
 * that back. This costs two system calls for each change, so it ends when it has been in vain some times.
 */
#include "engine/node/node.h"

#define EMPTY 8 /* turns without news after which the program is taken to be one that polls */
#define CREDIT_FIRST 4
#define CREDIT_MAX 32

static void hand_over(struct hd_node *node, bool on)
{
	struct hd_guard *g = &node->guard;

	if (g->handed == on)
		return;
	g->handed = on;
	g->epoch = hd_node_epoch(node);
	g->empty = 0;
	for (int i = 0; i < node->active_count; i++)
		if (node->active[i]->transport->guard)
			node->active[i]->transport->guard(node->active[i], on);
}

static void in_vain(struct hd_node *node)
{
	if (!(node->thread_asks & HD_ASK_GUARD) || --node->guard.credit)
		return;
	hand_over(node, false);
	node->thread_asks &= ~(unsigned)HD_ASK_GUARD;
}

/* hd_guard_begin: something had waited for the thread to find out that the program polls no more. */
void hd_guard_begin(struct hd_node *node)
{
	if (!(node->thread_asks & HD_ASK_GUARD))
		node->guard.credit = CREDIT_FIRST;
	node->thread_asks |= HD_ASK_GUARD;
}

/* hd_guard_polled: the program has made a turn, which brought it `moved` packets. */
void hd_guard_polled(struct hd_node *node, int moved)
{
	struct hd_guard *g = &node->guard;

	if (moved > 0) {
		g->empty = 0;
		hand_over(node, true);
	} else if (g->handed && ++g->empty == EMPTY) {
		hand_over(node, false);
		in_vain(node);
	}
}

/* hd_guard_serve: the thread has been woken. It was worth it if the program is away, and somebody wanted something. */
void hd_guard_serve(struct hd_node *node)
{
	struct hd_guard *g = &node->guard;
	bool away = g->handed && hd_node_epoch(node) - g->epoch < EMPTY;
	bool found;

	node->slow_due = 0;
	found = hd_turn(node) > 0;
	if (found) /* the program may find its completion there without a turn of its own */
		hand_over(node, true);
	if (!found || !away)
		in_vain(node);
	else if ((g->credit += 2) > CREDIT_MAX)
		g->credit = CREDIT_MAX;
}
