/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"

#include <time.h>

static void nanosecond_clock_follows_a_sleep(void **state)
{
	uint64_t before = hd_now_ns();

	nanosleep(&(struct timespec){ .tv_nsec = 5 * HD_NS_PER_MS }, NULL);
	uint64_t passed = hd_now_ns() - before;
	assert_in_range(passed, 5 * HD_NS_PER_MS, 10 * HD_NS_PER_S);
}

static void calibration_is_short(void **state)
{
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 10; i++) {
		uint64_t before = hd_now_ns();

		hd_ticks_calibrate();
		uint64_t passed = hd_now_ns() - before;
		shortest = passed < shortest ? passed : shortest;
	}
	assert_true(shortest < HD_NS_PER_MS);
}

/* Both clocks measure the same sleep, and agree within 2 %. */
static void ticks_agree_with_nanoseconds(void **state)
{
	uint64_t rate = hd_ticks_per_us();
	uint64_t ns = hd_now_ns(), ticks = hd_ticks();

	nanosleep(&(struct timespec){ .tv_nsec = 20 * HD_NS_PER_MS }, NULL);
	ticks = hd_ticks() - ticks;
	ns = hd_now_ns() - ns;
	uint64_t ns_by_ticks = ticks * HD_NS_PER_US / rate;
	assert_in_range(ns_by_ticks, ns - ns / 50, ns + ns / 50);
}

/* Told in time, one gets a last moment; told late, all of it once more, but not for ever. */
static void patience_ends(void **state)
{
	struct hd_patience p;

	hd_patience_begin(&p, HD_NS_PER_S);
	p.end += 1000 * HD_NS_PER_S;
	assert_int_equal(hd_patience_more(&p, HD_NS_PER_S), HD_LATE_NS);
	for (int i = 0; i < HD_LATE_TIMES; i++) {
		p.end = hd_now_ns() - 2 * HD_LATE_NS;
		assert_int_equal(hd_patience_more(&p, HD_NS_PER_S), HD_NS_PER_S);
	}
	p.end = hd_now_ns() - 2 * HD_LATE_NS;
	assert_int_equal(hd_patience_more(&p, HD_NS_PER_S), HD_LATE_NS);
	assert_int_equal(hd_patience_more(&p, HD_NS_PER_S), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nanosecond_clock_follows_a_sleep),
		cmocka_unit_test(calibration_is_short),
		cmocka_unit_test(ticks_agree_with_nanoseconds),
		cmocka_unit_test(patience_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
