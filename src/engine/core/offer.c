/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program that polls in vain offers its processor, sched_yield(2): whoever is to send what it
 * waits for may want that very one. Where two ends that spin have one processor between them, each
 * would else be put aside by the kernel's tick alone, milliseconds later.
 *
 * Every thread has a habit: it offers when nothing has come for a while, in any node that it polls.
 * An offer after which news was there makes the while shorter, down to 2 us: the other end had been
 * waiting for us. One that brought nothing makes it longer again, and so does one that nobody took,
 * up to a millisecond: a program that has its processor to itself pays nothing. One that took long
 * went to a program that does not wait for us, and has its share without being offered it: the next
 * ones are left to the kernel for up to 8 ms.
 *
 * That is not learnt where there are more processes that we have links with than processors, nor
 * while somebody is greeted: those spin as we do, and where each leaves his offers to the kernel,
 * because the others do, all of them spend slices on looks in vain.
 *
 * Who sleeps between his polls makes few turns, and no while of them is one: it begins anew when he
 * does, or when he asks for notice. Else he would offer it just when he has been woken.
 */
#include "base/busy_poll.h"
#include "base/clock.h"
#include "base/macros.h"
#include "engine/core/core.h"

#include <sched.h>

#define FIRST_US 50u
#define LEAST_US 2u
#define ALONE_US 1000u
#define MOST_US 8000u
/* longer than a step of a greeting takes where a hundred want the processor */
#define MEETS_US 1000000u
#define NOBODY_NS 1000u /* who comes back sooner was alone */

static HD_THREAD_LOCAL struct habit {
	/* hd_ticks(): nothing has come, and it is to offer; 0: with the next look it is known */
	uint64_t due;
	uint32_t after_us; /* so long after the last news; 0: a new thread */
	/* the last offer was, and nobody has looked since whether it has brought something */
	bool taken;
	uint64_t help_due; /* hd_ticks(): nothing has come, and it is to see to its other nodes, */
	uint32_t help_us;  /* so long after the last news, or the last time that it did */
} habit;

/* The last offer was taken: had we been waited for? */
static void habit_learn(struct habit *h, bool news)
{
	uint32_t us = h->after_us < FIRST_US ? h->after_us : FIRST_US;

	h->taken = false;
	h->after_us = news ? us / 4 : us * 2; /* and more than an offer that nobody took adds */
	if (h->after_us < LEAST_US)
		h->after_us = LEAST_US;
	else if (h->after_us > FIRST_US)
		h->after_us = FIRST_US;
}

/* Is it time to see to the thread's other nodes? */
static bool help_look(struct habit *h, struct hd_node *node, uint64_t now, bool news)
{
	if (news || !h->help_us) {
		h->help_us = LEAST_US;
		h->help_due = now + LEAST_US * hd_ticks_per_us();
	}
	if (now >= h->help_due)
		hd_core(node)->offer_look = 0;
	else if (h->help_due < hd_core(node)->offer_look)
		hd_core(node)->offer_look = h->help_due;
	return now >= h->help_due;
}

/*
 * True: one of them had something to do, and what we wait for may come of it. In
 * vain, the next time is later.
 */
static bool others_helped(struct habit *h, struct hd_node *node)
{
	bool helped = hd_nodes_help(node) > 0;

	h->help_us = helped ? LEAST_US : h->help_us < FIRST_US ? h->help_us * 2 : FIRST_US;
	h->help_due = hd_ticks() + h->help_us * hd_ticks_per_us();
	return helped;
}

void hd_node_meets(struct hd_node *node)
{
	hd_core(node)->meets_until = hd_ticks() + MEETS_US * hd_ticks_per_us();
	hd_core(node)->offer_look = 0;
}

void hd_node_crowd(struct hd_node *node, int by)
{
	hd_core(node)->crowd += by;
	hd_core(node)->offer_look = 0;
}

static bool is_crowded(const struct hd_node *node, uint64_t now)
{
	return hd_core(node)->crowd >= hd_core(node)->processors || now < hd_core(node)->meets_until;
}

/* As if nothing had been learnt. */
static void habit_anew(struct habit *h, uint64_t now)
{
	uint64_t first = now + FIRST_US * hd_ticks_per_us();

	h->after_us = FIRST_US;
	if (h->due > first)
		h->due = first;
}

void hd_offer_look(struct hd_node *node, uint64_t now)
{
	struct habit *h = &habit;
	bool news = hd_core(node)->news, idle;
	uint64_t after;

	hd_core(node)->news = false;
	if (h->taken)
		habit_learn(h, news);
	if (!h->after_us)
		h->after_us = FIRST_US;
	if (h->after_us > FIRST_US && is_crowded(node, now))
		habit_anew(h, now);
	after = h->after_us * hd_ticks_per_us();
	if (news || !h->due)
		h->due = now + after;
	idle = now >= h->due;
	/* news may be noted that much late, the outcome of an offer at once */
	hd_core(node)->offer_look = idle ? 0 : news ? now + after / 4 : h->due;
	if (hd_nodes_are_several())
		idle |= help_look(h, node, now, news);
	atomic_store_explicit(&hd_core(node)->gate.idle, idle, memory_order_relaxed);
}

static uint32_t stretched(uint32_t us, uint32_t by, uint32_t most)
{
	return us * by < most ? us * by : most;
}

static void processor_offer(struct habit *h, uint64_t begin)
{
	uint64_t us = hd_ticks_per_us(), took;

	sched_yield();
	took = hd_ticks() - begin;
	if (took > HD_ANSWER_US * us)
		h->after_us = h->after_us < FIRST_US ? FIRST_US : stretched(h->after_us, 4, MOST_US);
	else if (took * 1000 > NOBODY_NS * us)
		h->taken = true;
	else
		/* or the kernel had it that we go on for once */
		h->after_us = stretched(h->after_us, 2, ALONE_US);
	h->due = begin + took + h->after_us * us;
}

/* Due, or not: it may be another thread that nothing has come for. */
void hd_node_idle(struct hd_node *node)
{
	struct habit *h = &habit;
	uint64_t now = hd_ticks();

	atomic_store_explicit(&hd_gate_of(node)->idle, false, memory_order_relaxed);
	if (h->help_us && now >= h->help_due) {
		if (others_helped(h, node))
			return;
		now = hd_ticks();
	}
	if (h->after_us && h->due && now >= h->due)
		processor_offer(h, now);
}

void hd_offer_anew(struct hd_node *node)
{
	habit.due = 0;
	hd_core(node)->offer_look = 0;
	atomic_store_explicit(&hd_core(node)->gate.idle, false, memory_order_relaxed);
}
