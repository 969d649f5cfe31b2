/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/pages.h"
#include "base/pool.h"

#define COUNT 20000

static void objects_are_apart_and_aligned(void **state)
{
	static const size_t sizes[] = { 1, 8, 63, 64, 65, 200, 5000 };
	static unsigned char *got[COUNT];

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct hd_pool pool;
		unsigned count = sizes[s] > 1000 ? 1000 : COUNT;

		hd_pool_init(&pool, sizes[s], 3);
		for (unsigned i = 0; i < count; i++) {
			got[i] = hd_pool_get(&pool);
			assert_non_null(got[i]);
			assert_int_equal((uintptr_t)got[i] % HD_POOL_LINE, 0);
			memset(got[i], (int)(i % 251), sizes[s]);
		}
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(got[i][0], i % 251);
			assert_int_equal(got[i][sizes[s] - 1], i % 251);
		}
		hd_pool_fini(&pool);
	}
}

static void what_was_put_is_got_again(void **state)
{
	struct hd_pool pool;
	void *a, *b, *slabs;

	hd_pool_init(&pool, 100, 1);
	a = hd_pool_get(&pool);
	b = hd_pool_get(&pool);
	assert_ptr_not_equal(a, b);
	slabs = pool.slabs;
	for (int i = 0; i < 1000; i++) {
		hd_pool_put(&pool, a);
		hd_pool_put(&pool, b);
		assert_ptr_equal(hd_pool_get(&pool), b);
		assert_ptr_equal(hd_pool_get(&pool), a);
	}
	assert_ptr_equal(pool.slabs, slabs);
	hd_pool_put(&pool, a);
	hd_pool_fini(&pool);
}

static void an_object_larger_than_a_slab_works(void **state)
{
	struct hd_pool pool;
	size_t size = HD_POOL_SLAB_MAX + 1;
	char *a, *b;

	hd_pool_init(&pool, size, 2);
	a = hd_pool_get(&pool);
	b = hd_pool_get(&pool);
	assert_non_null(a);
	assert_non_null(b);
	a[0] = b[0] = a[size - 1] = b[size - 1] = 1;
	assert_true(a + size <= b || b + size <= a);
	hd_pool_fini(&pool);
}

#ifdef HD_WITH_ASAN
static void a_free_object_is_poisoned(void **state)
{
	struct hd_pool pool;
	char *a;

	hd_pool_init(&pool, 100, 4);
	a = hd_pool_get(&pool);
	assert_false(__asan_address_is_poisoned(a + 99));
	assert_true(__asan_address_is_poisoned(a + 104));
	hd_pool_put(&pool, a);
	assert_true(__asan_address_is_poisoned(a));
	assert_true(__asan_address_is_poisoned(a + 99));
	assert_ptr_equal(hd_pool_get(&pool), a);
	assert_false(__asan_address_is_poisoned(a));
	hd_pool_fini(&pool);
}
#endif

static void buffers_hold_what_was_asked_for(void **state)
{
	static const size_t sizes[] = {
		0, 1, 63, 64, 65, 128, 4095, 4096, 4097, 65536, HD_BYTES_SYSTEM - 1, HD_BYTES_SYSTEM, 5u << 20
	};
	enum {
		KINDS = sizeof(sizes) / sizeof(sizes[0]),
		EACH = 20
	};
	unsigned char *got[KINDS][EACH];
	struct hd_bytes bytes;

	hd_bytes_init(&bytes);
	for (unsigned s = 0; s < KINDS; s++) {
		for (unsigned i = 0; i < EACH; i++) {
			got[s][i] = hd_bytes_get(&bytes, sizes[s]);
			assert_non_null(got[s][i]);
			memset(got[s][i], (int)(s + i), sizes[s]);
		}
	}
	for (unsigned s = 0; s < KINDS; s++) {
		for (unsigned i = 0; i < EACH; i++) {
			for (size_t at = 0; at < sizes[s]; at += sizes[s] / 7 + 1)
				assert_int_equal(got[s][i][at], s + i);
			hd_bytes_put(&bytes, got[s][i], sizes[s]);
		}
	}
	hd_bytes_fini(&bytes);
}

/* Neighbouring sizes come from one class, the next step from another. */
static void size_classes_are_steps_of_64(void **state)
{
	struct hd_bytes bytes;
	void *at;

	hd_bytes_init(&bytes);
	at = hd_bytes_get(&bytes, 65);
	hd_bytes_put(&bytes, at, 65);
	assert_ptr_not_equal(hd_bytes_get(&bytes, 64), at);
	assert_ptr_not_equal(hd_bytes_get(&bytes, 129), at);
	assert_ptr_equal(hd_bytes_get(&bytes, 128), at);
	hd_bytes_fini(&bytes);
}

static void pages_are_zeroed_and_large_ones_aligned(void **state)
{
	static const size_t sizes[] = { 1, 4096, 100000, HD_HUGE_PAGE, HD_HUGE_PAGE + 1, 3 * HD_HUGE_PAGE };

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		unsigned char *at = hd_pages_get(sizes[s]);

		assert_non_null(at);
		assert_int_equal(at[0] | at[sizes[s] - 1], 0);
		if (sizes[s] >= HD_HUGE_PAGE)
			assert_int_equal((uintptr_t)at % HD_HUGE_PAGE, 0);
		memset(at, 1, sizes[s]);
		hd_pages_put(at, sizes[s]);
	}
	assert_null(hd_pages_get(SIZE_MAX / 4));
	hd_pages_put(NULL, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_apart_and_aligned),
		cmocka_unit_test(what_was_put_is_got_again),
		cmocka_unit_test(an_object_larger_than_a_slab_works),
#ifdef HD_WITH_ASAN
		cmocka_unit_test(a_free_object_is_poisoned),
#endif
		cmocka_unit_test(buffers_hold_what_was_asked_for),
		cmocka_unit_test(size_classes_are_steps_of_64),
		cmocka_unit_test(pages_are_zeroed_and_large_ones_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
