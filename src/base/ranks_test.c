/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define OWNERS 40
#define MAX 30

static unsigned most_of(const struct hd_rank *owner)
{
	unsigned most = 0;

	for (int i = 0; i < OWNERS; i++)
		most = owner[i].count > most ? owner[i].count : most;
	return most;
}

static void who_has_most_is_found(void **state)
{
	struct hd_rank owner[OWNERS] = { 0 };
	struct hd_ranks ranks;
	uint64_t random = 1;

	assert_int_equal(hd_ranks_open(&ranks, MAX), 0);
	assert_null(hd_ranks_most(&ranks));
	for (int i = 0; i < 200000; i++) {
		struct hd_rank *one, *most;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		one = &owner[(random >> 40) % OWNERS];
		if (random >> 63 && one->count < MAX)
			hd_rank_up(&ranks, one);
		else if (one->count)
			hd_rank_down(&ranks, one);
		most = hd_ranks_most(&ranks);
		assert_int_equal(most ? most->count : 0, most_of(owner));
	}
	for (int i = 0; i < OWNERS; i++)
		while (owner[i].count)
			hd_rank_down(&ranks, &owner[i]);
	assert_null(hd_ranks_most(&ranks));
	hd_ranks_close(&ranks);
}

static void one_owner_may_have_all(void **state)
{
	struct hd_rank owner = { 0 };
	struct hd_ranks ranks;

	assert_int_equal(hd_ranks_open(&ranks, MAX), 0);
	for (int i = 1; i <= MAX; i++) {
		hd_rank_up(&ranks, &owner);
		assert_ptr_equal(hd_ranks_most(&ranks), &owner);
		assert_int_equal(owner.count, i);
	}
	hd_ranks_close(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_most_is_found),
		cmocka_unit_test(one_owner_may_have_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
