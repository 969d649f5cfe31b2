/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Watching over a program that goes away without saying so. While the program polls, the node's
 * thread stands back, and finds out milliseconds later that it does so no more. For a program that
 * polls until it has what it wanted, and then looks at its memory until something is written there,
 * each write would wait for so long. When that has been seen, the thread sleeps at the epoll set
 * meanwhile: a turn that brings the program something makes sockets show there, for it may be its
 * last; some that bring nothing take that back. This costs two system calls for each change, so it
 * ends when it has been in vain some times.
 *
 * The thread needs a processor where programs that poll keep all of them, and is woken behind one
 * that has not had its share: up to a tick, 4 ms, later. So such a turn lingers before it gives the
 * program its news: what the program is about to look for in its memory often comes a moment behind
 * that, and then nobody has to be woken.
 */
#include "base/clock.h"
#include "engine/core/core.h"

#define EMPTY 8 /* turns without news after which the program is taken to be one that polls */
#define CREDIT_FIRST 4
#define CREDIT_MAX 32
#define LINGER_US 30	    /* behind the last packet */
#define LINGER_ALL_US 300   /* in all; while a write is coming in, behind the last packet, */
#define LINGER_MOST_US 5000 /* and then in all */
#define HOPES 8		    /* how often lingering may be in vain before it is left for a while */
#define PAUSE_MIN 16	    /* turns with news */
#define PAUSE_MAX 4096

static void watchdog_hand_over(struct hd_node *node, bool on)
{
	struct hd_watchdog *g = &hd_core(node)->worker.watchdog;

	if (g->handed == on)
		return;
	g->handed = on;
	g->turn = hd_node_program_turns(node);
	g->empty = 0;
	for (int i = 0; i < hd_core(node)->active_count; i++)
		if (hd_core(node)->active[i]->transport->watchdog)
			hd_core(node)->active[i]->transport->watchdog(hd_core(node)->active[i], on);
}

static bool has_written(const struct hd_node *node)
{
	return hd_core(node)->written != hd_core(node)->worker.watchdog.written;
}

/* Turns until a peer has written something here, or until nothing comes any more. */
static void linger(struct hd_node *node)
{
	uint64_t us = hd_ticks_per_us(), now = hd_ticks(), end = now + LINGER_ALL_US * us,
		 next = now + LINGER_US * us, most = now + LINGER_MOST_US * us;

	for (; !has_written(node) && now < next && now < end && now < most; now = hd_ticks()) {
		if (!hd_turn(node))
			continue;
		next = hd_ticks() + LINGER_US * us;
		if (hd_core(node)->storing)
			next = end = hd_ticks() + LINGER_ALL_US * us;
	}
}

/*
 * Lingering was in vain, or not what the program looked for: it is left for a while,
 * each time for twice as long.
 */
static void leave_for_a_while(struct hd_watchdog *g)
{
	g->pause = g->next_pause;
	g->next_pause = g->next_pause < PAUSE_MAX ? g->next_pause * 2 : PAUSE_MAX;
}

/*
 * The program gets news. Is what it may look for next there as well, or does it come
 * if we wait for a moment?
 */
static bool comes_along(struct hd_node *node)
{
	struct hd_watchdog *g = &hd_core(node)->worker.watchdog;

	if (has_written(node))
		return true;
	if (g->pause && --g->pause)
		return false;
	linger(node);
	if (!has_written(node)) {
		if (!g->hopes || !--g->hopes)
			leave_for_a_while(g);
		return false;
	}
	if (g->hopes < HOPES && ++g->hopes == HOPES)
		g->next_pause = PAUSE_MIN;
	return true;
}

static void watchdog_in_vain(struct hd_node *node)
{
	if (!(hd_core(node)->worker.asks & HD_ASK_WATCHDOG) || --hd_core(node)->worker.watchdog.credit)
		return;
	watchdog_hand_over(node, false);
	hd_core(node)->worker.asks &= ~(unsigned)HD_ASK_WATCHDOG;
}

/* Something was worth it. */
static void earn(struct hd_watchdog *g, unsigned credit)
{
	if ((g->credit += credit) > CREDIT_MAX)
		g->credit = CREDIT_MAX;
}

/*
 * hd_watchdog_begin: something had waited for the thread to find out that
 * the program polls no more.
 */
void hd_watchdog_begin(struct hd_node *node)
{
	struct hd_watchdog *g = &hd_core(node)->worker.watchdog;

	if (!(hd_core(node)->worker.asks & HD_ASK_WATCHDOG)) {
		g->credit = CREDIT_FIRST;
		g->hopes = HOPES;
		g->pause = 0;
		g->next_pause = PAUSE_MIN;
	} else if (!g->handed) { /* the program looked for something else than what came along */
		leave_for_a_while(g);
	}
	hd_core(node)->worker.asks |= HD_ASK_WATCHDOG;
}

/* hd_watchdog_polled: the program has made a turn, which brought it `moved` packets. */
void hd_watchdog_polled(struct hd_node *node, int moved)
{
	struct hd_watchdog *g = &hd_core(node)->worker.watchdog;

	if (moved > 0) {
		bool along = comes_along(node);

		g->empty = 0;
		watchdog_hand_over(node, !along);
		if (along)
			earn(g, 1);
	} else if (g->handed && ++g->empty == EMPTY) {
		watchdog_hand_over(node, false);
		watchdog_in_vain(node);
	}
	g->written = hd_core(node)->written;
}

/*
 * hd_watchdog_turn: a turn of the thread's. What is written then is nothing that comes along
 * with news of the program's.
 */
int hd_watchdog_turn(struct hd_node *node)
{
	uintptr_t poller = atomic_load_explicit(&hd_core(node)->poller, memory_order_relaxed);
	int n = hd_turn(node);

	atomic_store_explicit(&hd_core(node)->poller, poller, memory_order_relaxed);
	hd_core(node)->worker.watchdog.written = hd_core(node)->written;
	return n;
}

/*
 * hd_watchdog_serve: the thread has been woken. It was worth it if the program is away, and
 * somebody wanted something.
 */
void hd_watchdog_serve(struct hd_node *node)
{
	struct hd_watchdog *g = &hd_core(node)->worker.watchdog;
	bool away = g->handed && hd_node_program_turns(node) - g->turn < EMPTY;
	bool found;

	hd_node_hurry(node);
	found = hd_watchdog_turn(node) > 0;
	if (found) /* the program may find its completion there without a turn of its own */
		watchdog_hand_over(node, true);
	if (!found || !away)
		watchdog_in_vain(node);
	else
		earn(g, 2);
}
