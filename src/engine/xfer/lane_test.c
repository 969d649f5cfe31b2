/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Lanes: whose turn it is, whatever the order in which things are done and given up, with
 * one order and with several.
 */
#include "base/macros.h"
#include "engine/xfer/xfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct thing {
	struct hd_lane_place place;
	int order;
};

static struct thing *at(const struct hd_lane_place *place)
{
	return place ? hd_container(place, struct thing, place) : NULL;
}

static bool same(const struct hd_lane_place *a, const struct hd_lane_place *b)
{
	return at(a)->order == at(b)->order;
}

static void join(struct hd_lane *lane, struct thing *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hd_lane_join(lane, &t[i].place);
	hd_lane_check(lane, true);
}

/* It leaves, and this one is finished next. */
static void leave(struct hd_lane *lane, struct thing *t, const struct thing *next)
{
	assert_ptr_equal(at(hd_lane_leave(lane, &t->place)), next);
}

static void ends_in_order(void **state)
{
	struct thing t[4] = { 0 };
	struct hd_lane lane;

	hd_lane_init(&lane, NULL);
	assert_true(hd_lane_is_open(&lane, &t[0].place));
	join(&lane, t, 4);
	assert_false(hd_lane_is_open(&lane, &t[0].place));
	assert_int_equal(lane.count, 4);
	assert_false(hd_lane_done(&lane, &t[2].place));
	assert_false(hd_lane_done(&lane, &t[1].place));
	assert_null(hd_lane_ready(&lane));
	hd_lane_check(&lane, true);
	assert_true(hd_lane_done(&lane, &t[0].place));
	assert_ptr_equal(at(hd_lane_ready(&lane)), &t[0]);
	leave(&lane, &t[0], &t[1]);
	assert_ptr_equal(at(hd_lane_ready(&lane)), &t[1]);
	leave(&lane, &t[1], &t[2]);
	leave(&lane, &t[2], NULL);
	assert_true(hd_lane_is_first(&lane, &t[3].place));
	assert_null(hd_lane_ready(&lane));
	leave(&lane, &t[3], NULL);
	assert_int_equal(lane.count, 0);
	hd_lane_check(&lane, true);
}

/* Whoever is given up lets the next one go only if it was first. */
static void gives_up(void **state)
{
	struct thing t[4] = { 0 };
	struct hd_lane lane;

	hd_lane_init(&lane, NULL);
	join(&lane, t, 4);
	hd_lane_done(&lane, &t[2].place);
	leave(&lane, &t[1], NULL);
	assert_false(hd_lane_is_first(&lane, &t[2].place));
	leave(&lane, &t[0], &t[2]);
	hd_lane_join(&lane, &t[0].place); /* behind the others */
	assert_false(hd_lane_is_first(&lane, &t[0].place));
	leave(&lane, &t[3], NULL);
	leave(&lane, &t[2], NULL);
	assert_true(hd_lane_done(&lane, &t[0].place));
	leave(&lane, &t[0], NULL);
	assert_int_equal(lane.count, 0);
}

static void orders_do_not_wait_for_each_other(void **state)
{
	struct thing t[5] = { { .order = 1 }, { .order = 2 }, { .order = 2 }, { .order = 1 }, { .order = 2 } };
	const struct thing third = { .order = 3 };
	struct hd_lane lane;

	hd_lane_init(&lane, same);
	join(&lane, t, 5);
	assert_true(hd_lane_is_open(&lane, &third.place));
	assert_false(hd_lane_is_open(&lane, &t[3].place));
	assert_false(hd_lane_done(&lane, &t[3].place));
	assert_false(hd_lane_done(&lane, &t[4].place));
	assert_false(hd_lane_done(&lane, &t[2].place));
	assert_true(hd_lane_done(&lane, &t[1].place));
	leave(&lane, &t[1], &t[2]);
	leave(&lane, &t[2], &t[4]);
	leave(&lane, &t[4], NULL);
	hd_lane_check(&lane, true);
	assert_true(hd_lane_done(&lane, &t[0].place));
	leave(&lane, &t[0], &t[3]);
	leave(&lane, &t[3], NULL);
}

/*
 * By chance, against the rule itself: nothing of an order is finished before what
 * began before it, and all is.
 */
static void any_order_of_ends(void **state)
{
	enum {
		N = 40
	};

	for (unsigned seed = 1; seed <= 200; seed++) {
		struct thing t[N] = { 0 };
		int finished[3] = { -1, -1, -1 }, left = N;
		struct hd_lane lane;

		srand(seed);
		hd_lane_init(&lane, seed % 2 ? same : NULL);
		for (int i = 0; i < N; i++)
			t[i].order = seed % 2 ? rand() % 3 : 0;
		lane.next = seed % 3 ? 0 : UINT32_MAX - N / 2; /* its numbers come round */
		join(&lane, t, N);
		for (int i = 0; left; i = rand() % N) {
			struct thing *next = &t[i];

			if (next->place.done || !hd_lane_done(&lane, &next->place))
				continue;
			for (; next; left--) {
				struct thing *now = next;

				assert_true((int)(now - t) > finished[now->order]);
				finished[now->order] = (int)(now - t);
				next = at(hd_lane_leave(&lane, &now->place));
			}
		}
		assert_int_equal(lane.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_in_order),
		cmocka_unit_test(gives_up),
		cmocka_unit_test(orders_do_not_wait_for_each_other),
		cmocka_unit_test(any_order_of_ends),
	};

	return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
