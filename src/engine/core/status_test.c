/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Statuses: each has an errno of its own, and what a peer says is one that may travel. */
#include "engine/engine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void each_has_an_errno(void **state)
{
	assert_int_equal(hd_status_errno(HD_S_OK), 0);
	assert_int_equal(hd_status_of(0), HD_S_OK);
	for (int i = HD_S_OK + 1; i < HD_STATUSES; i++) {
		assert_true(hd_status_errno((enum hd_status)i) > 0);
		assert_int_equal(hd_status_of(hd_status_errno((enum hd_status)i)), i);
		assert_int_equal(hd_status_of(-hd_status_errno((enum hd_status)i)), i);
	}
}

static void links_end_by_many_errnos(void **state)
{
	assert_int_equal(hd_status_of(-EPIPE), HD_S_LOST);
	assert_int_equal(hd_status_of(-ENETUNREACH), HD_S_UNREACHABLE);
	assert_int_equal(hd_status_of(-EIO), HD_S_PROTOCOL);
}

static void what_does_not_travel_is_not_heard(void **state)
{
	for (uint64_t word = 0; word < HD_STATUSES + 2; word++)
		assert_int_equal(hd_status_heard(word), word < HD_STATUS_WIRE ? word : HD_S_PROTOCOL);
	assert_int_equal(hd_status_heard(UINT64_MAX), HD_S_PROTOCOL);
	assert_int_equal(hd_status_heard(UINT64_C(1) << 32), HD_S_PROTOCOL);
	assert_true(hd_status_errno((enum hd_status)HD_STATUSES) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_an_errno),
		cmocka_unit_test(links_end_by_many_errnos),
		cmocka_unit_test(what_does_not_travel_is_not_heard),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
