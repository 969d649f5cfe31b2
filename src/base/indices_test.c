/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/indices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ALL (64u * 64 * 3)

static void the_smallest_comes_first(void **state)
{
	struct hd_indices x = { 0 };

	assert_int_equal(hd_indices_take(&x), 0);
	assert_int_equal(x.count, 0);
	for (uint32_t n = 64; n <= ALL; n *= n == 64 ? 3 : 2) {
		uint32_t from = x.count;

		assert_int_equal(hd_indices_grow(&x, n), 0);
		for (uint32_t i = from; i < n; i++)
			assert_int_equal(hd_indices_take(&x), i);
		assert_int_equal(hd_indices_take(&x), x.count);
	}
	hd_indices_fini(&x);
}

static void what_comes_back_is_given_out_again(void **state)
{
	struct hd_indices x = { 0 };

	assert_int_equal(hd_indices_grow(&x, ALL), 0);
	for (uint32_t i = 0; i < ALL; i++)
		assert_int_equal(hd_indices_take(&x), i);
	for (uint32_t i = 0; i < ALL; i += 7)
		hd_indices_put(&x, ALL - 1 - i);
	for (uint32_t i = (ALL - 1) % 7; i < ALL; i += 7)
		assert_int_equal(hd_indices_take(&x), i);
	assert_int_equal(hd_indices_take(&x), ALL);
	hd_indices_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_comes_first),
		cmocka_unit_test(what_comes_back_is_given_out_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
