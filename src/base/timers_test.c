/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Timers: who is due first, whatever has come and gone before. */
#include "base/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT 500
#define STEPS 100000
#define DUE_MAX 2000 /* so that several are due at once */

static struct hd_timer timer[COUNT];

static uint64_t earliest(void)
{
	uint64_t due = 0;

	for (int i = 0; i < COUNT; i++)
		if (timer[i].due && (!due || timer[i].due < due))
			due = timer[i].due;
	return due;
}

static void leaves(struct hd_timers *timers, struct hd_timer *t)
{
	hd_timers_remove(timers, t);
	t->due = 0;
}

static void first_of_any(void **state)
{
	struct hd_timers timers = { 0 };
	unsigned seed = 1;

	for (int i = 0; i < STEPS; i++) {
		struct hd_timer *t = &timer[rand_r(&seed) % COUNT];

		if (timers.first && rand_r(&seed) % 4 == 0)
			t = timers.first;
		if (t->due) {
			leaves(&timers, t);
		} else {
			t->due = 1 + (uint64_t)rand_r(&seed) % DUE_MAX;
			hd_timers_add(&timers, t);
		}
		assert_int_equal(timers.first ? timers.first->due : 0, earliest());
	}
	for (uint64_t last = 0; timers.first; leaves(&timers, timers.first)) {
		assert_true(timers.first->due >= last);
		last = timers.first->due;
	}
	assert_int_equal(earliest(), 0);
}

/* One that comes and goes above many, or beside them, and leaves them in their order. */
static void set_again(void **state)
{
	struct hd_timers timers = { 0 };
	struct hd_timer again = { .due = 1 };

	for (int i = 0; i < COUNT; i++) {
		timer[i].due = 2 + (uint64_t)i;
		hd_timers_add(&timers, &timer[i]);
	}
	for (int i = 0; i < STEPS; i++) {
		hd_timers_add(&timers, &again);
		assert_ptr_equal(timers.first, again.due == 1 ? &again : &timer[0]);
		hd_timers_remove(&timers, &again);
		assert_ptr_equal(timers.first, &timer[0]);
		again.due = again.due == 1 ? COUNT * 2 : 1;
	}
	for (int i = 0; i < COUNT; i++) {
		assert_ptr_equal(timers.first, &timer[i]);
		leaves(&timers, &timer[i]);
	}
	assert_null(timers.first);
}

static unsigned depth(const struct hd_timer *t)
{
	unsigned less = t ? depth(t->less) : 0, more = t ? depth(t->more) : 0;

	return t ? 1 + (less > more ? less : more) : 0;
}

/*
 * As many as are set one after the other for the same time, in a row of structures of any length.
 */
static void never_deep(void **state)
{
	enum {
		MANY = 100000,
		APART_MAX = 16
	};
	struct hd_timer *t = calloc((size_t)MANY * APART_MAX, sizeof(*t));

	assert_non_null(t);
	for (size_t apart = 1; apart <= APART_MAX; apart++)
		for (int back = 0; back < 2; back++) {
			struct hd_timers timers = { 0 };

			for (size_t i = 0; i < MANY; i++) {
				t[i * apart].due = 1 + (back ? MANY - i : i);
				hd_timers_add(&timers, &t[i * apart]);
			}
			assert_in_range(depth(timers.top), 17, 80); /* about 40 by chance */
		}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_of_any),
		cmocka_unit_test(set_again),
		cmocka_unit_test(never_deep),
	};

	return cmocka_run_group_tests_name("timers", tests, NULL, NULL);
}
