/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/idmap.h"

static char things[5000];

static void numbers_stand_for_their_pointers(void **state)
{
	struct hd_idmap map;
	uint32_t id[5000];

	hd_idmap_init(&map);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(hd_idmap_add(&map, &things[i], &id[i]), 0);
		assert_int_not_equal(id[i], 0);
	}
	assert_int_equal(map.count, 5000);
	for (int i = 0; i < 5000; i++)
		assert_ptr_equal(hd_idmap_get(&map, id[i]), &things[i]);
	for (int i = 0; i < 5000; i += 2)
		hd_idmap_remove(&map, id[i]);
	for (int i = 0; i < 5000; i++)
		assert_ptr_equal(hd_idmap_get(&map, id[i]), i % 2 ? &things[i] : NULL);
	assert_int_equal(map.count, 2500);
	hd_idmap_fini(&map);
}

static void any_number_may_be_asked_for(void **state)
{
	static const uint32_t odd[] = { 0, 1, 255, 256, 0x3fffff, 0x400000, 0x7fffff, 0xffc00000, UINT32_MAX };
	struct hd_idmap map;
	uint32_t id, random = 12345;

	hd_idmap_init(&map);
	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		assert_null(hd_idmap_get(&map, odd[i]));
		hd_idmap_remove(&map, odd[i]);
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hd_idmap_add(&map, &things[i], &id), 0);
	for (int i = 0; i < 1000000; i++) {
		char *got = hd_idmap_get(&map, random);

		if (got)
			assert_in_range(got - things, 0, 999);
		random = random * 1664525 + 1013904223;
	}
	hd_idmap_fini(&map);
}

static void an_outdated_number_is_recognised_for_long(void **state)
{
	struct hd_idmap map;
	uint32_t stale, id;

	hd_idmap_init(&map);
	assert_int_equal(hd_idmap_add(&map, &things[0], &stale), 0);
	hd_idmap_remove(&map, stale);
	assert_null(hd_idmap_get(&map, stale));
	hd_idmap_remove(&map, stale);
	assert_int_equal(map.count, 0);
	for (int i = 0; i < HD_IDMAP_REST * 1023 - 1; i++) {
		assert_int_equal(hd_idmap_add(&map, &things[1], &id), 0);
		assert_int_not_equal(id, stale);
		assert_int_not_equal(id, 0);
		hd_idmap_remove(&map, id);
	}
	hd_idmap_fini(&map);
}

/* With few free, slots are reused in the order in which they were freed. */
static void slots_are_reused_oldest_first(void **state)
{
	struct hd_idmap map;
	uint32_t id[HD_IDMAP_REST], again, index = (1u << HD_IDMAP_INDEX_BITS) - 1;

	hd_idmap_init(&map);
	for (int i = 0; i < HD_IDMAP_REST; i++)
		assert_int_equal(hd_idmap_add(&map, &things[i], &id[i]), 0);
	for (int i = HD_IDMAP_REST; i-- > 0;)
		hd_idmap_remove(&map, id[i]);
	for (int i = HD_IDMAP_REST; i-- > 0;) {
		assert_int_equal(hd_idmap_add(&map, &things[i], &again), 0);
		assert_int_equal(again & index, id[i] & index);
		assert_int_not_equal(again, id[i]);
		hd_idmap_remove(&map, again);
	}
	hd_idmap_fini(&map);
}

static void a_full_map_says_so(void **state)
{
	struct hd_idmap map;
	uint32_t id = 0, extra;

	hd_idmap_init(&map);
	for (uint32_t i = 0; i < 1u << HD_IDMAP_INDEX_BITS; i++)
		if (hd_idmap_add(&map, things, &id))
			fail_msg("add %u failed", i);
	assert_int_equal(hd_idmap_add(&map, things, &extra), -ENOSPC);
	hd_idmap_remove(&map, id);
	assert_int_equal(hd_idmap_add(&map, things, &extra), 0);
	assert_int_not_equal(extra, id);
	assert_null(hd_idmap_get(&map, id));
	hd_idmap_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_stand_for_their_pointers),
		cmocka_unit_test(any_number_may_be_asked_for),
		cmocka_unit_test(an_outdated_number_is_recognised_for_long),
		cmocka_unit_test(slots_are_reused_oldest_first),
		cmocka_unit_test(a_full_map_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
