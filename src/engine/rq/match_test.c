/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The matching table against a list that is searched from its start, which is
 * what fi_tagged(3) describes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/rq/rq.h"

/* ---- the model ---- */

struct item {
	uint64_t tag, ignore;
	uint32_t src;
	struct item *prev, *next;
	struct hd_mnode m;
	struct hd_wnode w;
};

struct list {
	struct item *first, *last;
	size_t count;
};

struct world {
	struct hd_match match;
	struct list posted, waiting;
	uint64_t random;
	unsigned tags, masks, srcs;
	bool directed, numbered;
};

static uint64_t draw(struct world *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random >> 11;
}

static void list_add(struct list *l, struct item *it)
{
	it->next = NULL;
	it->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = it;
	l->last = it;
	l->count++;
}

static void list_del(struct list *l, struct item *it)
{
	*(it->prev ? &it->prev->next : &l->first) = it->next;
	*(it->next ? &it->next->prev : &l->last) = it->prev;
	l->count--;
}

static struct item *list_pick(struct list *l, uint64_t place)
{
	struct item *it = l->first;

	for (place %= l->count; place; place--)
		it = it->next;
	return it;
}

/* Sources below 9 are two by two the same. */
static uint32_t pair_of(uint32_t src)
{
	return !src || src > 8 ? src : ((src - 1) & ~1u) + 1;
}

static uint32_t pairs(void *arg, uint32_t src, struct hd_source_walk *walk)
{
	bool two = pair_of(src) != src || pair_of(src + 1) == src;

	if (!walk->begun) {
		walk->begun = true;
		return pair_of(src);
	}
	return two && !walk->former++ ? pair_of(src) + 1 : 0;
}

static bool agree(const struct world *s, const struct item *receive, const struct item *message)
{
	return !((receive->tag ^ message->tag) & ~receive->ignore) &&
	       (!receive->src || receive->src == message->src ||
		(s->numbered && pair_of(receive->src) == pair_of(message->src)));
}

static struct item *model_match_posted(struct world *s, const struct item *message)
{
	struct item *it = s->posted.first;

	while (it && !agree(s, it, message))
		it = it->next;
	return it;
}

static struct item *model_match_waiting(struct world *s, const struct item *receive)
{
	struct item *it = s->waiting.first;

	while (it && !agree(s, receive, it))
		it = it->next;
	return it;
}

#define ITEM_OF(node, member) ((struct item *)((char *)(node)-offsetof(struct item, member)))

/* ---- one random step on both ---- */

static uint64_t draw_mask(struct world *s)
{
	uint64_t k = draw(s) % s->masks;

	/* 0 ignores nothing; few bits, so that many tags stay apart and some fall together */
	return k < 4 ? (uint64_t[]){ 0, 1, UINT64_MAX, UINT64_C(0xff) << 56 }[k] : k * 0x0101010101010101u;
}

static struct item *item_new(struct world *s)
{
	struct item *it = malloc(sizeof(*it));

	memset(it, 0xa5, sizeof(*it));
	it->tag = draw(s) % s->tags;
	if (draw(s) & 1)
		it->tag |= it->tag << 56;
	it->ignore = 0;
	it->src = 1 + (uint32_t)(draw(s) % s->srcs);
	return it;
}

/* What a message does that meets a receive: look for it, and take it out where it was found. */
static struct hd_mnode *take_posted(struct hd_match *m, uint64_t tag, uint32_t src)
{
	struct hd_mnode **slot, *n = hd_match_look_posted(m, tag, src, &slot);

	if (n)
		hd_match_unpost_at(m, n, slot);
	return n;
}

static void step_message(struct world *s)
{
	struct item *it = item_new(s), *want = model_match_posted(s, it);
	struct hd_mnode *n = hd_match_peek_posted(&s->match, it->tag, it->src);

	assert_ptr_equal(n, want ? &want->m : NULL);
	n = take_posted(&s->match, it->tag, it->src);
	assert_ptr_equal(n, want ? &want->m : NULL);
	if (!want) {
		hd_match_put_waiting(&s->match, &it->w, it->tag, it->src);
		list_add(&s->waiting, it);
		return;
	}
	assert_false(hd_mnode_is_posted(n));
	list_del(&s->posted, want);
	free(want);
	free(it);
}

static void step_receive(struct world *s)
{
	struct item *it = item_new(s), *want;
	struct hd_wnode *w;

	it->ignore = draw_mask(s);
	if (!s->directed || draw(s) & 1)
		it->src = HD_MATCH_ANY;
	want = model_match_waiting(s, it);
	w = hd_match_find_waiting(&s->match, it->tag, it->ignore, it->src);
	assert_ptr_equal(w, want ? &want->w : NULL);
	if (want) {
		assert_int_equal(hd_wnode_tag(w), want->tag);
		assert_int_equal(hd_wnode_src(w), want->src);
		hd_match_remove_waiting(&s->match, w);
		list_del(&s->waiting, want);
		free(want);
		free(it);
		return;
	}
	hd_match_post(&s->match, &it->m, it->tag, it->ignore, it->src);
	assert_true(hd_mnode_is_posted(&it->m));
	list_add(&s->posted, it);
}

static void step_cancel(struct world *s)
{
	struct item *it;

	if (s->posted.count && draw(s) & 1) {
		it = list_pick(&s->posted, draw(s));
		hd_match_unpost(&s->match, &it->m);
		list_del(&s->posted, it);
		free(it);
	} else if (s->waiting.count) {
		it = list_pick(&s->waiting, draw(s));
		hd_match_remove_waiting(&s->match, &it->w);
		list_del(&s->waiting, it);
		free(it);
	}
}

static bool count_one(struct hd_mnode *n, void *arg)
{
	++*(size_t *)arg;
	return false;
}

static void check_all(struct world *s)
{
	size_t seen = 0;
	struct item *it = s->waiting.first;

	assert_int_equal(s->match.posted, s->posted.count);
	assert_int_equal(s->match.waiting, s->waiting.count);
	assert_null(hd_match_each_posted(&s->match, count_one, &seen));
	assert_int_equal(seen, s->posted.count);
	for (struct hd_wnode *w = hd_match_first_waiting(&s->match); w;
	     w = hd_match_next_waiting(w), it = it->next)
		assert_ptr_equal(ITEM_OF(w, w), it);
	assert_null(it);
}

static bool drain_one(struct hd_mnode *n, void *arg)
{
	struct world *s = arg;
	struct item *it = ITEM_OF(n, m);

	hd_match_unpost(&s->match, n);
	list_del(&s->posted, it);
	free(it);
	return false;
}

static void drain(struct world *s)
{
	hd_match_each_posted(&s->match, drain_one, s);
	while (s->waiting.first) {
		struct item *it = s->waiting.first;

		hd_match_remove_waiting(&s->match, &it->w);
		list_del(&s->waiting, it);
		free(it);
	}
	check_all(s);
	hd_match_fini(&s->match);
}

/*
 * bias: of 16 steps, how many are messages; the rest are receives, and now and then something else.
 */
static void run(struct world *s, unsigned steps)
{
	const struct hd_match_numbers numbers = { pairs, NULL };

	hd_match_init(&s->match, s->directed);
	if (s->numbered)
		hd_match_number(&s->match, &numbers);
	print_message("# seed %#llx\n", (unsigned long long)s->random);
	for (unsigned i = 0; i < steps; i++) {
		/* the tide turns, so that both sides grow, empty and grow again */
		unsigned bias = i / 2000 % 2 ? 11 : 5;
		uint64_t what = draw(s);

		if (what % 16 == 0)
			step_cancel(s);
		else if ((what >> 10) % 16 < bias)
			step_message(s);
		else
			step_receive(s);
		if (i % 1024 == 0)
			check_all(s);
	}
	drain(s);
}

static uint64_t some_seed(void)
{
	const char *given = getenv("HD_TEST_SEED");

	return given ? strtoull(given, NULL, 0) : (uint64_t)(uintptr_t)&given ^ UINT64_C(0x5bf03635d78a1c4d);
}

/* ---- tests ---- */

static void exact_tags_behave_like_the_list(void **state)
{
	struct world s = { .random = some_seed(), .tags = 3000, .masks = 1, .srcs = 3 };

	run(&s, 40000);
}

static void equal_tags_behave_like_the_list(void **state)
{
	struct world s = { .random = some_seed(), .tags = 1, .masks = 1, .srcs = 1 };

	run(&s, 40000);
}

static void wildcards_and_exact_tags_interleave_like_the_list(void **state)
{
	struct world s = { .random = some_seed(), .tags = 20, .masks = 4, .srcs = 3 };

	run(&s, 60000);
}

static void directed_receives_behave_like_the_list(void **state)
{
	struct world s = { .random = some_seed(), .tags = 50, .masks = 3, .srcs = 6, .directed = true };

	run(&s, 60000);
}

static void sources_with_two_numbers_behave_like_the_list(void **state)
{
	struct world few = { .random = some_seed(), .tags = 50, .masks = 3, .srcs = 6 };
	struct world many = { .random = some_seed(), .tags = 250, .masks = 90, .srcs = 4 };

	few.directed = few.numbered = many.directed = many.numbered = true;
	run(&few, 60000);
	run(&many, 60000);
}

static void more_masks_than_classes_behave_like_the_list(void **state)
{
	struct world s = { .random = some_seed(), .tags = 250, .masks = 90, .srcs = 4, .directed = true };

	run(&s, 60000);
}

static void an_undirected_queue_ignores_the_source_of_a_receive(void **state)
{
	struct hd_match m;
	struct hd_mnode n;
	struct hd_wnode w;

	hd_match_init(&m, false);
	hd_match_post(&m, &n, 5, 0, 77);
	assert_ptr_equal(take_posted(&m, 5, 3), &n);
	hd_match_put_waiting(&m, &w, 6, 3);
	assert_ptr_equal(hd_match_find_waiting(&m, 6, 0, 77), &w);
	hd_match_remove_waiting(&m, &w);
	hd_match_fini(&m);
}

/* A buffer that takes many messages stays at its place in the order until it is taken out. */
static void a_peeked_receive_keeps_its_place(void **state)
{
	struct hd_match m;
	struct hd_mnode n[3];

	hd_match_init(&m, false);
	for (int i = 0; i < 3; i++)
		hd_match_post(&m, &n[i], 5, i == 1 ? UINT64_MAX : 0, 0);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(hd_match_peek_posted(&m, 5, 1), &n[0]);
	hd_match_unpost(&m, &n[0]);
	assert_ptr_equal(hd_match_peek_posted(&m, 5, 1), &n[1]);
	hd_match_unpost(&m, &n[1]);
	assert_ptr_equal(hd_match_peek_posted(&m, 5, 1), &n[2]);
	assert_null(hd_match_peek_posted(&m, 6, 1));
	hd_match_unpost(&m, &n[2]);
	hd_match_fini(&m);
}

static bool is_target(struct hd_mnode *n, void *arg)
{
	return n == arg;
}

static void each_posted_stops_where_it_is_told(void **state)
{
	struct hd_match m;
	struct hd_mnode n[100];

	hd_match_init(&m, false);
	for (unsigned i = 0; i < 100; i++)
		hd_match_post(&m, &n[i], i / 2, i % 50, 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_ptr_equal(hd_match_each_posted(&m, is_target, &n[i]), &n[i]);
		hd_match_unpost(&m, &n[i]);
		assert_null(hd_match_each_posted(&m, is_target, &n[i]));
	}
	hd_match_fini(&m);
}

static void numbers_of_a_source_are_one_by_age(void **state)
{
	const struct hd_match_numbers numbers = { pairs, NULL };
	struct hd_match m;
	struct hd_mnode n[6], other;
	struct hd_wnode w[6];

	hd_match_init(&m, true);
	for (unsigned i = 0; i < 6; i++)
		hd_match_post(&m, &n[i], 9, 0, i % 2 ? 1 : 2);
	hd_match_post(&m, &other, 9, 0, 3);
	hd_match_number(&m, &numbers);
	for (unsigned i = 0; i < 6; i++)
		assert_ptr_equal(take_posted(&m, 9, i % 3 ? 1 : 2), &n[i]);
	assert_null(hd_match_peek_posted(&m, 9, 1));
	assert_ptr_equal(take_posted(&m, 9, 4), &other);
	for (unsigned i = 0; i < 6; i++)
		hd_match_put_waiting(&m, &w[i], 9, i % 2 ? 5 : 6);
	assert_null(hd_match_find_waiting(&m, 9, 0, 4));
	for (unsigned i = 0; i < 6; i++) {
		assert_ptr_equal(hd_match_find_waiting(&m, 9, 0, 5), &w[i]);
		assert_ptr_equal(hd_match_find_waiting(&m, 8, 1, 6), &w[i]);
		hd_match_remove_waiting(&m, &w[i]);
	}
	hd_match_fini(&m);
}

#define MANY 1000000

/*
 * Two receives each of half a million tags, posted in two rounds, so that every
 * line lives through splits.
 */
static void a_million_posted_receives(void **state)
{
	static struct hd_match m;
	struct hd_mnode *n = calloc(MANY, sizeof(*n));

	hd_match_init(&m, false);
	for (size_t i = 0; i < MANY; i++)
		hd_match_post(&m, &n[i], (i % (MANY / 2)) << 7, 0, 0);
	assert_int_equal(m.posted, MANY);
	assert_true(m.first.table.buckets >= m.first.table.leaders);
	for (size_t i = 0; i < MANY / 2; i++) {
		uint64_t tag = (i * 7919 % (MANY / 2)) << 7;

		assert_ptr_equal(take_posted(&m, tag, 1), &n[tag >> 7]);
		assert_ptr_equal(take_posted(&m, tag, 1), &n[(tag >> 7) + MANY / 2]);
		assert_null(take_posted(&m, tag, 1));
	}
	assert_int_equal(m.posted, 0);
	assert_int_equal(m.first.table.buckets, HD_FIFO_TRIM);
	hd_match_post(&m, &n[0], 1, 0, 0);
	assert_ptr_equal(take_posted(&m, 1, 1), &n[0]);
	hd_match_fini(&m);
	free(n);
}

static void a_million_waiting_messages(void **state)
{
	static struct hd_match m;
	struct hd_wnode *w = calloc(MANY, sizeof(*w));

	hd_match_init(&m, true);
	for (size_t i = 0; i < MANY; i++)
		hd_match_put_waiting(&m, &w[i], i / 4, 1 + i % 4);
	for (size_t i = MANY; i-- > 0;) {
		uint32_t src = i % 4 ? 1 + i % 4 : HD_MATCH_ANY;

		assert_ptr_equal(hd_match_find_waiting(&m, i / 4, 0, src), &w[i]);
		hd_match_remove_waiting(&m, &w[i]);
	}
	assert_null(hd_match_first_waiting(&m));
	hd_match_fini(&m);
	free(w);
}

/* Tags as programs build them must spread: no chain may become long. */
static void regular_tags_spread(void **state)
{
	static const unsigned shifts[] = { 0, 8, 16, 32, 44, 48 };
	enum {
		COUNT = 1 << 14
	};
	struct hd_mnode *n = calloc(COUNT, sizeof(*n));

	for (unsigned k = 0; k < sizeof(shifts) / sizeof(shifts[0]); k++) {
		struct hd_match m;
		unsigned longest = 0;

		hd_match_init(&m, true);
		for (size_t i = 0; i < COUNT; i++)
			hd_match_post(&m, &n[i], (uint64_t)i << shifts[k], 0, 1 + (uint32_t)(i % 3));
		for (size_t i = 0; i < m.last->table.buckets; i++) {
			unsigned len = 0;

			for (struct hd_mnode *p = *hd_fifo_bucket(&m.last->table, i); p; p = p->chain)
				len++;
			longest = len > longest ? len : longest;
		}
		assert_in_range(longest, 1, 14);
		hd_match_fini(&m);
	}
	free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_tags_behave_like_the_list),
		cmocka_unit_test(equal_tags_behave_like_the_list),
		cmocka_unit_test(wildcards_and_exact_tags_interleave_like_the_list),
		cmocka_unit_test(directed_receives_behave_like_the_list),
		cmocka_unit_test(sources_with_two_numbers_behave_like_the_list),
		cmocka_unit_test(more_masks_than_classes_behave_like_the_list),
		cmocka_unit_test(an_undirected_queue_ignores_the_source_of_a_receive),
		cmocka_unit_test(a_peeked_receive_keeps_its_place),
		cmocka_unit_test(each_posted_stops_where_it_is_told),
		cmocka_unit_test(numbers_of_a_source_are_one_by_age),
		cmocka_unit_test(a_million_posted_receives),
		cmocka_unit_test(a_million_waiting_messages),
		cmocka_unit_test(regular_tags_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
