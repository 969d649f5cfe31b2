/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The table of an address vector, with numbers in place of destinations: it never looks into them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/av.h"

#include <stdlib.h>

#define DEST(n) ((struct hd_dest *)(uintptr_t)(n))

static const union hd_fi_addr some = { .in = { .sin_family = AF_INET } };

static int64_t put(struct hd_fi_av *av, uintptr_t dest)
{
	return hd_fi_av_put(av, DEST(dest), (uint32_t)dest, &some);
}

static void indices_count_up_and_lowest_is_reused(void **state)
{
	struct hd_fi_av av = { 0 };

	for (int i = 0; i < 100; i++)
		assert_int_equal(put(&av, 1000 + (uintptr_t)i), i);
	assert_ptr_equal(hd_fi_av_take(&av, 70), DEST(1070));
	assert_ptr_equal(hd_fi_av_take(&av, 3), DEST(1003));
	assert_null(hd_fi_av_take(&av, 3));
	assert_null(hd_fi_av_take(&av, 100000));
	assert_null(hd_fi_av_take(&av, FI_ADDR_UNSPEC));
	assert_null(hd_fi_av_dest(&av, 3));
	assert_int_equal(put(&av, 1), 3);
	assert_int_equal(put(&av, 2), 70);
	assert_int_equal(put(&av, 3), 100);
	assert_ptr_equal(hd_fi_av_dest(&av, 70), DEST(2));
	hd_fi_av_free(&av);
}

static void the_way_back(void **state)
{
	struct hd_fi_av av = { 0 };

	assert_true(hd_fi_av_source(&av, 5) == FI_ADDR_NOTAVAIL);
	put(&av, 500);
	put(&av, 5);
	assert_int_equal(hd_fi_av_source(&av, 500), 0);
	assert_int_equal(hd_fi_av_source(&av, 5), 1);
	assert_true(hd_fi_av_source(&av, 6) == FI_ADDR_NOTAVAIL);
	assert_true(hd_fi_av_source(&av, UINT32_MAX) == FI_ADDR_NOTAVAIL);
	hd_fi_av_take(&av, 1);
	assert_true(hd_fi_av_source(&av, 5) == FI_ADDR_NOTAVAIL);
	hd_fi_av_free(&av);
}

static void one_address_twice(void **state)
{
	struct hd_fi_av av = { 0 };

	assert_int_equal(put(&av, 9), 0);
	assert_int_equal(put(&av, 9), 1);
	assert_int_equal(put(&av, 9), 2);
	assert_int_equal(hd_fi_av_source(&av, 9), 0);
	hd_fi_av_take(&av, 1);
	assert_int_equal(hd_fi_av_source(&av, 9), 0);
	hd_fi_av_take(&av, 0);
	assert_int_equal(hd_fi_av_source(&av, 9), 2);
	hd_fi_av_take(&av, 2);
	assert_true(hd_fi_av_source(&av, 9) == FI_ADDR_NOTAVAIL);
	assert_int_equal(put(&av, 9), 0);
	assert_int_equal(hd_fi_av_source(&av, 9), 0);
	hd_fi_av_free(&av);
}

/* Insert, remove and look up at random against a plain model. */
static void random_against_a_model(void **state)
{
	enum {
		SLOTS = 64,
		IDS = 20
	};
	uintptr_t model[SLOTS] = { 0 };
	struct hd_fi_av av = { 0 };
	unsigned seed = 1;

	for (int step = 0; step < 20000; step++) {
		uintptr_t id = 1 + (uintptr_t)rand_r(&seed) % IDS;
		size_t at = (size_t)rand_r(&seed) % SLOTS, lowest = 0;
		fi_addr_t source = hd_fi_av_source(&av, (uint32_t)id);
		size_t users = 0;

		for (size_t i = 0; i < SLOTS; i++)
			users += model[i] == id;
		if (users)
			assert_true(source < SLOTS && model[source] == id);
		else
			assert_true(source == FI_ADDR_NOTAVAIL);
		while (lowest < SLOTS && model[lowest])
			lowest++;
		if (rand_r(&seed) % 2 && lowest < SLOTS) {
			assert_int_equal(put(&av, id), lowest);
			model[lowest] = id;
		} else {
			assert_ptr_equal(hd_fi_av_take(&av, at), DEST(model[at]));
			model[at] = 0;
		}
	}
	hd_fi_av_free(&av);
}

static void room_can_be_reserved(void **state)
{
	struct hd_fi_av av = { 0 };

	assert_int_equal(hd_fi_av_reserve(&av, 1000), 0);
	assert_null(hd_fi_av_dest(&av, 999));
	assert_int_equal(hd_fi_av_reserve(&av, 10), 0);
	assert_int_equal(av.size, 1000);
	assert_int_equal(hd_fi_av_reserve(&av, UINT32_MAX), -FI_ENOMEM);
	assert_int_equal(put(&av, 1), 0);
	hd_fi_av_free(&av);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_count_up_and_lowest_is_reused),
		cmocka_unit_test(the_way_back),
		cmocka_unit_test(one_address_twice),
		cmocka_unit_test(random_against_a_model),
		cmocka_unit_test(room_can_be_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
