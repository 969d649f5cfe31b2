/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/busy_poll.h"
#include "base/clock.h"

static uint64_t us(uint64_t n)
{
	return n * hd_ticks_per_us();
}

/*
 * One wait, at an imagined time: what it waits for comes so long after it has begun, when it is
 * looked for; when it sleeps by then, it is woken so much later. Returns how long it has
 * looked, in microseconds.
 */
static uint64_t waits(struct hd_busy_poll *look, uint64_t comes, uint64_t waking)
{
	struct hd_busy_polling wait = { 0 };
	uint64_t begin = us(1000000), t = begin;

	while (hd_busy_poll_on(look, &wait, 0, t) && t < begin + us(comes))
		t += us(1);
	if (t < begin + us(comes)) {
		hd_busy_poll_over(look, &wait, begin + us(comes + waking));
		return (t - begin) / us(1);
	}
	hd_busy_poll_over(look, &wait, t);
	return comes;
}

static void who_waits_for_long_never_looks(void **state)
{
	struct hd_busy_poll look = { 0 };

	for (int i = 0; i < 1000; i++)
		assert_int_equal(waits(&look, HD_LOOK_MOST_US + 1, 0), 0);
}

static void a_short_sleep_is_followed_by_looks(void **state)
{
	struct hd_busy_poll look = { 0 };

	assert_int_equal(waits(&look, 10, 30), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(waits(&look, 10, 30), 10);
}

/* The other end sleeps as well, and is woken more slowly than the least that one looks. */
static void it_looks_as_long_as_the_other_takes_to_wake_up(void **state)
{
	struct hd_busy_poll look = { 0 };

	assert_int_equal(waits(&look, 70, 70), 0);
	assert_int_equal(waits(&look, 70, 70), 70);
}

static void a_look_that_was_too_short_is_longer_the_next_time(void **state)
{
	struct hd_busy_poll look = { 0 };

	waits(&look, 1, 1);
	assert_int_equal(waits(&look, 90, 60), HD_LOOK_LEAST_US);
	assert_int_equal(waits(&look, 90, 60), 90);
}

/* What comes needs the processor that looks for it. */
static void looking_in_vain_is_left(void **state)
{
	struct hd_busy_poll look = { 0 };
	uint64_t looked = 0;

	for (int i = 0; i < 10000; i++) {
		struct hd_busy_polling wait = { 0 };
		uint64_t t = us(1000000), slept;

		while (hd_busy_poll_on(&look, &wait, 0, t))
			t += us(1);
		slept = t - us(1000000);
		looked += slept / us(1);
		hd_busy_poll_over(&look, &wait, t + us(10));
	}
	assert_in_range(looked, 1, 10000); /* a microsecond of each wait */
}

/* It is offered to the other one, and to a third never again for long. */
static void the_processor_is_offered_after_a_look_in_vain(void **state)
{
	struct hd_busy_polling wait = { 0 }, next = { 0 };
	struct hd_busy_poll look = { 0 };

	waits(&look, 10, 30);
	waits(&look, 100, 50);
	assert_true(hd_busy_poll_on(&look, &wait, 0, us(1000000)));
	assert_true(wait.yields);
	wait.stalled = true;
	hd_busy_poll_over(&look, &wait, us(1000001));
	for (int i = 0; i < 100; i++)
		assert_int_equal(waits(&look, 10, 30), 0);
	assert_false(hd_busy_poll_on(&look, &next, 0, us(1000000)));
	assert_false(next.yields);
}

static void it_is_kept_while_looks_find(void **state)
{
	struct hd_busy_polling wait = { 0 };
	struct hd_busy_poll look = { 0 };

	for (int i = 0; i < 100; i++)
		waits(&look, 10, 30);
	assert_true(hd_busy_poll_on(&look, &wait, 0, us(1000000)));
	assert_false(wait.yields);
}

static void who_waits_for_long_again_looks_but_a_few_times(void **state)
{
	struct hd_busy_poll look = { 0 };
	uint64_t looked = 0;

	for (int i = 0; i < 100; i++)
		waits(&look, 5, 30);
	for (int i = 0; i < 1000; i++)
		looked += waits(&look, 5000, 30);
	assert_in_range(looked, 1, 4 * HD_LOOK_MOST_US);
}

static void one_long_wait_is_forgiven(void **state)
{
	struct hd_busy_poll look = { 0 };

	for (int i = 0; i < 100; i++)
		waits(&look, 5, 30);
	for (int i = 0; i < 100; i++) {
		assert_true(waits(&look, 5000, 30) > 0);
		for (int k = 0; k < 16; k++)
			assert_int_equal(waits(&look, 5, 30), 5);
	}
}

static void it_looks_for_the_least_in_any_case(void **state)
{
	const struct hd_busy_poll look = { 0 };
	struct hd_busy_polling wait = { 0 };

	assert_true(hd_busy_poll_on(&look, &wait, 10, us(1000)));
	assert_true(hd_busy_poll_on(&look, &wait, 10, us(1009)));
	assert_false(hd_busy_poll_on(&look, &wait, 10, us(1010)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_long_never_looks),
		cmocka_unit_test(a_short_sleep_is_followed_by_looks),
		cmocka_unit_test(it_looks_as_long_as_the_other_takes_to_wake_up),
		cmocka_unit_test(a_look_that_was_too_short_is_longer_the_next_time),
		cmocka_unit_test(looking_in_vain_is_left),
		cmocka_unit_test(the_processor_is_offered_after_a_look_in_vain),
		cmocka_unit_test(it_is_kept_while_looks_find),
		cmocka_unit_test(who_waits_for_long_again_looks_but_a_few_times),
		cmocka_unit_test(one_long_wait_is_forgiven),
		cmocka_unit_test(it_looks_for_the_least_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
