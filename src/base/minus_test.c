/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Differences that do not wrap. */
#include "base/minus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void never_below_nothing(void **state)
{
	const uint32_t few = 3, many = UINT32_MAX;

	assert_int_equal(hd_minus(5, 3), 2);
	assert_int_equal(hd_minus(3, 3), 0);
	assert_int_equal(hd_minus(few, many), 0);
	assert_int_equal(hd_minus(many, few), UINT32_MAX - 3);
	assert_int_equal(hd_minus(0, UINT64_MAX), 0);
	assert_true(hd_minus(UINT64_MAX, 0) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_below_nothing),
	};

	return cmocka_run_group_tests_name("minus", tests, NULL, NULL);
}
