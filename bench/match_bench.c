/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * match-bench: nanoseconds per operation of the matching table alone, exact tags, with a given
 * number of entries in it.
 *
 *	post     a receive is posted while as many stand there as the line says
 *	take     a message finds its receive
 *	put      a message is put among those that wait
 *	claim    a receive finds its waiting message and takes it out
 *
 * The table is filled, then entries are taken and put back one by one, so that the number stays.
 * Entries lie in a pool in the order in which they were first posted, 256 bytes each, as an
 * engine's would; "order" is the order of the tags asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "engine/rq/match.h"

#define ENTRY_BYTES 256
#define LOOPS 300000u

struct entry {
	union {
		struct hd_mnode m;
		struct hd_wnode w;
		char room[ENTRY_BYTES];
	};
};

struct table {
	struct hd_match match;
	struct hd_pool pool;
	uint32_t *order;
	uint32_t count;
};

static void make_order(struct table *t, const char *order)
{
	uint64_t random = 88172645463325252u;

	for (uint32_t i = 0; i < t->count; i++)
		t->order[i] = order[0] == 'r' && order[1] == 'e' ? t->count - 1 - i : i;
	if (strcmp(order, "random"))
		return;
	for (uint32_t i = t->count - 1; i; i--) {
		uint32_t j, swap = t->order[i];

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		j = (uint32_t)(random % (i + 1));
		t->order[i] = t->order[j];
		t->order[j] = swap;
	}
}

/* What reading the clock twice costs, in ticks; taken off where a round is short. */
static uint64_t clock_cost(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t start = hd_ticks(), spent = hd_ticks() - start;

		best = spent < best ? spent : best;
	}
	return best;
}

static double ns_each(uint64_t ticks, uint32_t round)
{
	double clock = (double)clock_cost() * (LOOPS / round);

	return ((double)ticks - clock) * 1000 / (double)hd_ticks_per_us() / LOOPS;
}

static uint64_t tag_of(uint32_t i)
{
	return (uint64_t)i << 16 | 0x77;
}

/* What a message does that meets a receive. */
static struct hd_mnode *take(struct hd_match *m, uint64_t tag, uint32_t src)
{
	struct hd_mnode **slot, *n = hd_match_look_posted(m, tag, src, &slot);

	if (n)
		hd_match_unpost_at(m, n, slot);
	return n;
}

static void run_posted(struct table *t, double ns[2])
{
	uint64_t start, taken = 0, posted = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *e = hd_pool_get(&t->pool);

		hd_match_post(&t->match, &e->m, tag_of(i), 0, 0);
	}
	/* rounds of up to 64, so that the clock's own cost does not count */
	for (uint32_t done = 0, at = 0; done < LOOPS; done += 64) {
		struct hd_mnode *got[64];
		uint32_t n = t->count < 64 ? t->count : 64;

		for (uint32_t repeat = 0; repeat < 64 / n; repeat++) {
			start = hd_ticks();
			for (uint32_t i = 0; i < n; i++)
				got[i] = take(&t->match, tag_of(t->order[(at + i) % t->count]), 1);
			taken += hd_ticks() - start;
			start = hd_ticks();
			for (uint32_t i = 0; i < n; i++)
				hd_match_post(&t->match, got[i], tag_of(t->order[(at + i) % t->count]), 0, 0);
			posted += hd_ticks() - start;
			at = (at + n) % t->count;
		}
	}
	ns[0] = ns_each(posted, t->count < 64 ? t->count : 64);
	ns[1] = ns_each(taken, t->count < 64 ? t->count : 64);
}

static void run_waiting(struct table *t, double ns[2])
{
	uint64_t start, claimed = 0, put = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *e = hd_pool_get(&t->pool);

		hd_match_put_waiting(&t->match, &e->w, tag_of(i), 1);
	}
	for (uint32_t done = 0, at = 0; done < LOOPS; done += 64) {
		struct hd_wnode *got[64];
		uint32_t n = t->count < 64 ? t->count : 64;

		for (uint32_t repeat = 0; repeat < 64 / n; repeat++) {
			start = hd_ticks();
			for (uint32_t i = 0; i < n; i++) {
				got[i] = hd_match_find_waiting(&t->match,
							       tag_of(t->order[(at + i) % t->count]), 0, 0);
				hd_match_remove_waiting(&t->match, got[i]);
			}
			claimed += hd_ticks() - start;
			start = hd_ticks();
			for (uint32_t i = 0; i < n; i++)
				hd_match_put_waiting(&t->match, got[i], tag_of(t->order[(at + i) % t->count]),
						     1);
			put += hd_ticks() - start;
			at = (at + n) % t->count;
		}
	}
	ns[0] = ns_each(put, t->count < 64 ? t->count : 64);
	ns[1] = ns_each(claimed, t->count < 64 ? t->count : 64);
}

static void run(uint32_t count, const char *order)
{
	struct table t = { .count = count, .order = calloc(count, sizeof(*t.order)) };
	double posted[2], waiting[2];

	if (!t.order)
		exit(1);
	make_order(&t, order);
	hd_pool_init(&t.pool, ENTRY_BYTES, 16);
	hd_match_init(&t.match, false);
	run_posted(&t, posted);
	hd_match_fini(&t.match);
	hd_match_init(&t.match, false);
	run_waiting(&t, waiting);
	hd_match_fini(&t.match);
	hd_pool_fini(&t.pool);
	printf("%9u  %-8s %7.1f %7.1f %7.1f %7.1f\n", count, order, posted[0], posted[1], waiting[0],
	       waiting[1]);
	free(t.order);
}

int main(void)
{
	static const uint32_t counts[] = { 1, 1000, 1000000 };
	static const char *const orders[] = { "forward", "reverse", "random" };

	printf("%9s  %-8s %7s %7s %7s %7s   ns each\n", "entries", "order", "post", "take", "put", "claim");
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < (counts[i] > 1 ? 3 : 1); k++)
			run(counts[i], orders[k]);
	return 0;
}
