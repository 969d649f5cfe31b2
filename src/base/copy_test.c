/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST 9000u
#define AROUND 64u /* bytes on each side that must stay as they are */

static uint8_t source[MOST + AROUND], target[MOST + 2 * AROUND];

static uint8_t content(size_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) * 31 + 1);
}

/* One copy, from and to places that are `from` and `to` bytes beyond a line. */
static void check(int (*copy)(void *, const void *, size_t), size_t from, size_t to, size_t n)
{
	uint8_t *s = source + from, *d = target + AROUND + to;

	memset(target, 0xee, sizeof(target));
	for (size_t i = 0; i < n; i++)
		s[i] = content(i);
	assert_int_equal(copy(d, s, n), 0);
	for (size_t i = 0; i < AROUND; i++) {
		assert_int_equal(d[-1 - (ptrdiff_t)i], 0xee);
		if (d + n + i < target + sizeof(target))
			assert_int_equal(d[n + i], 0xee);
	}
	assert_memory_equal(d, s, n);
}

static void check_all(int (*copy)(void *, const void *, size_t))
{
	static const size_t sizes[] = { 64,  65,  127,	128,  129,  255,  256,	257,  511,  512,
					513, 575, 1000, 1024, 2048, 4095, 4096, 4097, 8192, 8209 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t shift = 0; shift < 64; shift += 7) {
			check(copy, shift, 0, sizes[i]);
			check(copy, 0, shift, sizes[i]);
			check(copy, shift, 63 - shift, sizes[i]);
		}
}

/* What this processor would not choose is tested as well, as far as it can. */
static void every_choice_copies_all_and_no_more(void **state)
{
	for (int i = 0; i <= hd_copy_best(); i++) {
		check_all(hd_copy_choices[i].wide);
		check_all(hd_copy_choices[i].past);
	}
}

static void any_length_is_copied(void **state)
{
	for (size_t n = 0; n < 600; n++) {
		check(hd_copy, n % 5, n % 3, n);
		check(hd_copy_past, n % 3, n % 5, n);
	}
}

static void the_best_is_chosen_at_start(void **state)
{
	assert_ptr_equal(hd_copy_ops.wide, hd_copy_choices[hd_copy_best()].wide);
	assert_ptr_equal(hd_copy_ops.past, hd_copy_choices[hd_copy_best()].past);
}

static void small_ones_are_copied(void **state)
{
	uint8_t from[HD_COPY_SMALL], to[HD_COPY_SMALL + 1];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = content(i);
	for (size_t n = 0; n <= HD_COPY_SMALL; n++) {
		memset(to, 0xee, sizeof(to));
		assert_true(hd_copy_small_in(to, from, n));
		assert_memory_equal(to, from, n);
		assert_int_equal(to[n], 0xee);
		memset(to, 0xee, sizeof(to));
		assert_true(hd_copy_small_out(to, from, n));
		assert_memory_equal(to, from, n);
		assert_int_equal(to[n], 0xee);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_choice_copies_all_and_no_more),
		cmocka_unit_test(any_length_is_copied),
		cmocka_unit_test(the_best_is_chosen_at_start),
		cmocka_unit_test(small_ones_are_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
