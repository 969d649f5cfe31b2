/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Each atomic operation on each type, against C; aligned and not; and together with C11
 * atomics of another thread.
 */
#include "engine/rma/rma.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* ---- what C says ----------------------------------------------------------------------------- */

/*
 * NULL-terminated by `default`: an operation that the type does not have. W: as
 * wide, and without overflow.
 */
#define COMMON(T, W) \
	case HD_ATOMIC_SUM: \
		return (T)((W)at + (W)b); \
	case HD_ATOMIC_PROD: \
		return (T)((W)at * (W)b); \
	case HD_ATOMIC_LOR: \
		return at != 0 || b != 0; \
	case HD_ATOMIC_LAND: \
		return at != 0 && b != 0; \
	case HD_ATOMIC_LXOR: \
		return (at != 0) != (b != 0); \
	case HD_ATOMIC_READ: \
		return at; \
	case HD_ATOMIC_WRITE: \
		return b; \
	case HD_ATOMIC_CSWAP: \
		if (c == at) \
			return b; \
		return at; \
	case HD_ATOMIC_CSWAP_NE: \
		if (c != at) \
			return b; \
		return at;

#define ORDERED \
	case HD_ATOMIC_MIN: \
		if (b < at) \
			return b; \
		return at; \
	case HD_ATOMIC_MAX: \
		if (b > at) \
			return b; \
		return at; \
	case HD_ATOMIC_CSWAP_LE: \
		if (c <= at) \
			return b; \
		return at; \
	case HD_ATOMIC_CSWAP_LT: \
		if (c < at) \
			return b; \
		return at; \
	case HD_ATOMIC_CSWAP_GE: \
		if (c >= at) \
			return b; \
		return at; \
	case HD_ATOMIC_CSWAP_GT: \
		if (c > at) \
			return b; \
		return at;

#define BITS(T) \
	case HD_ATOMIC_BOR: \
		return (T)(at | b); \
	case HD_ATOMIC_BAND: \
		return (T)(at & b); \
	case HD_ATOMIC_BXOR: \
		return (T)(at ^ b); \
	case HD_ATOMIC_MSWAP: \
		return (T)((b & c) | (at & (T)~c));

static unsigned checked;

/*
 * Two elements at once, at an aligned place and at one that is not: what they become, what they
 * were, and that nothing beside them changes.
 */
#define CHECK(t, T, type, cases, ...) \
	static T t##_expected(enum hd_atomic_op op, T at, T b, T c) \
	{ \
		switch (op) { \
			cases; \
		default: \
			fail(); \
			return at; \
		} \
	} \
	static bool t##_same(T a, T b) \
	{ \
		return a == b || (a != a && b != b); \
	} \
	static void t##_one(enum hd_atomic_op op, T at, T b, T c, size_t shift) \
	{ \
		_Alignas(32) unsigned char room[4 * sizeof(T) + 8]; \
		unsigned char *memory = room + sizeof(T) + shift; \
		const T operands[2] = { b, at }, compares[2] = { c, c }, before[2] = { at, b }; \
		T old[2], now[2]; \
		memset(room, 0xa5, sizeof(room)); \
		memcpy(memory, before, sizeof(before)); \
		hd_atomic_run(&(struct hd_atomic_run){ op, type, 2, memory, operands, compares, old }); \
		memcpy(now, memory, sizeof(now)); \
		for (int i = 0; i < 2; i++) { \
			assert_true(t##_same(old[i], before[i])); \
			assert_true(t##_same(now[i], t##_expected(op, before[i], operands[i], c))); \
		} \
		for (size_t i = 0; i < sizeof(room); i++) \
			if (room + i < memory || room + i >= memory + sizeof(now)) \
				assert_int_equal(room[i], 0xa5); \
		checked++; \
	} \
	static void t##_all(void **state) \
	{ \
		const T values[] = { __VA_ARGS__ }; \
		const size_t n = sizeof(values) / sizeof(values[0]); \
		assert_int_equal(hd_atomic_size(type), sizeof(T)); \
		checked = 0; \
		for (uint32_t op = 0; op < HD_ATOMIC_OPS; op++) { \
			if (!hd_atomic_can(HD_ATOMIC_FETCH, op, type) && \
			    !hd_atomic_can(HD_ATOMIC_COMPARE, op, type)) \
				continue; \
			for (size_t i = 0; i < n * n * n; i++) \
				for (size_t shift = 0; shift < 8; shift++) \
					t##_one(op, values[i % n], values[i / n % n], values[i / n / n], \
						shift); \
		} \
		assert_true(checked >= 9 * n * n * n * 8); \
	}

#define INTEGER(t, T, W, type, ...) \
	CHECK(t, T, type, COMMON(T, W) ORDERED BITS(T), 0, 1, 2, 100, (T)-1, (T)-7, __VA_ARGS__)

INTEGER(i8, int8_t, uint64_t, HD_ATOMIC_I8, INT8_MIN, INT8_MAX)
INTEGER(u8, uint8_t, uint64_t, HD_ATOMIC_U8, UINT8_MAX)
INTEGER(i16, int16_t, uint64_t, HD_ATOMIC_I16, INT16_MIN, INT16_MAX)
INTEGER(u16, uint16_t, uint64_t, HD_ATOMIC_U16, UINT16_MAX)
INTEGER(i32, int32_t, uint64_t, HD_ATOMIC_I32, INT32_MIN, INT32_MAX)
INTEGER(u32, uint32_t, uint64_t, HD_ATOMIC_U32, UINT32_MAX)
INTEGER(i64, int64_t, uint64_t, HD_ATOMIC_I64, INT64_MIN, INT64_MAX)
INTEGER(u64, uint64_t, uint64_t, HD_ATOMIC_U64, UINT64_MAX)
INTEGER(i128, int128, uint128, HD_ATOMIC_I128, (int128)((uint128)1 << 127), (int128)UINT64_MAX * 5)
INTEGER(u128, uint128, uint128, HD_ATOMIC_U128, (uint128)UINT64_MAX *UINT64_MAX)

#define REAL(t, T, type, ...) \
	CHECK(t, T, type, COMMON(T, T) ORDERED, 0, (T)-0.0, 1, (T)-2.25, (T)INFINITY, (T)-INFINITY, (T)NAN, \
	      __VA_ARGS__)

REAL(f, float, HD_ATOMIC_F, FLT_MAX, FLT_MIN)
REAL(d, double, HD_ATOMIC_D, DBL_MAX, DBL_MIN)
REAL(ld, long double, HD_ATOMIC_LD, LDBL_MAX, LDBL_MIN)

#define COMPLEX(t, T, type) \
	CHECK(t, T, type, COMMON(T, T), 0, 1, (T)(1.5 + 2 * I), (T)(-3 * I), (T)(0.25 - 1e10 * I))

COMPLEX(fc, float complex, HD_ATOMIC_FC)
COMPLEX(dc, double complex, HD_ATOMIC_DC)
COMPLEX(ldc, long double complex, HD_ATOMIC_LDC)

/* ---- what there is --------------------------------------------------------------------------- */

static bool is_complex(uint32_t type)
{
	return type == HD_ATOMIC_FC || type == HD_ATOMIC_DC || type == HD_ATOMIC_LDC;
}

static bool is_integer(uint32_t type)
{
	return type <= HD_ATOMIC_U64 || type == HD_ATOMIC_I128 || type == HD_ATOMIC_U128;
}

static bool needs_order(uint32_t op)
{
	return op == HD_ATOMIC_MIN || op == HD_ATOMIC_MAX ||
	       (op >= HD_ATOMIC_CSWAP_LE && op <= HD_ATOMIC_CSWAP_GT);
}

static bool needs_bits(uint32_t op)
{
	return op == HD_ATOMIC_BOR || op == HD_ATOMIC_BAND || op == HD_ATOMIC_BXOR || op == HD_ATOMIC_MSWAP;
}

static void pairs_are_those_of_the_page(void **state)
{
	for (uint32_t type = 0; type < HD_ATOMIC_TYPES; type++)
		for (uint32_t op = 0; op < HD_ATOMIC_OPS; op++) {
			bool has = !(needs_order(op) && is_complex(type)) &&
				   !(needs_bits(op) && !is_integer(type));
			bool compares = op >= HD_ATOMIC_CSWAP;

			assert_int_equal(hd_atomic_can(HD_ATOMIC_BASE, op, type),
					 has && !compares && op != HD_ATOMIC_READ);
			assert_int_equal(hd_atomic_can(HD_ATOMIC_FETCH, op, type), has && !compares);
			assert_int_equal(hd_atomic_can(HD_ATOMIC_COMPARE, op, type), has && compares);
		}
	assert_false(hd_atomic_can(HD_ATOMIC_HOWS, HD_ATOMIC_SUM, HD_ATOMIC_U64));
	assert_false(hd_atomic_can(HD_ATOMIC_BASE, HD_ATOMIC_OPS, HD_ATOMIC_U64));
	assert_false(hd_atomic_can(HD_ATOMIC_BASE, HD_ATOMIC_SUM, HD_ATOMIC_TYPES));
	assert_false(hd_atomic_can(UINT32_MAX, UINT32_MAX, UINT32_MAX));
	assert_int_equal(hd_atomic_size(HD_ATOMIC_TYPES), 0);
	assert_int_equal(hd_atomic_size(UINT32_MAX), 0);
}

/* ---- with the program's own atomics ---------------------------------------------------------- */

#define ROUNDS 200000

static struct {
	_Atomic uint64_t wide;
	_Atomic uint32_t narrow[2];
	_Atomic uint8_t byte[8];
} shared;

static void *program(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		atomic_fetch_add(&shared.wide, 3);
		atomic_fetch_add(&shared.narrow[1], 1);
		atomic_fetch_xor(&shared.byte[3], 0x10);
	}
	return NULL;
}

static void sum(enum hd_atomic_type type, void *memory, const void *operand)
{
	uint64_t old;

	hd_atomic_run(&(struct hd_atomic_run){ HD_ATOMIC_SUM, type, 1, memory, operand, NULL, &old });
}

static void no_update_is_lost_beside_the_program(void **state)
{
	const uint64_t two = 2;
	const uint32_t ones[2] = { 1, 1 };
	const uint8_t bit = 1;
	uint32_t old[2];
	pthread_t thread;

	memset(&shared, 0, sizeof(shared));
	assert_int_equal(pthread_create(&thread, NULL, program, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		sum(HD_ATOMIC_U64, &shared.wide, &two);
		hd_atomic_run(&(struct hd_atomic_run){ HD_ATOMIC_SUM, HD_ATOMIC_I32, 2, &shared.narrow, ones,
						       NULL, old });
		hd_atomic_run(&(struct hd_atomic_run){ HD_ATOMIC_BXOR, HD_ATOMIC_U8, 1, &shared.byte[3], &bit,
						       NULL, old });
	}
	pthread_join(thread, NULL);
	assert_true(shared.wide == UINT64_C(5) * ROUNDS);
	assert_int_equal(shared.narrow[0], ROUNDS);
	assert_int_equal(shared.narrow[1], 2 * ROUNDS);
	assert_int_equal(shared.byte[3], 0); /* both bits were turned an even number of times */
}

/* Reading needs no right to write: the memory may not even be writable. */
static void what_keeps_its_value_is_not_written(void **state)
{
	static const uint64_t constant[2] = { 7, 9 };
	static const uint128 longer = 11;
	const uint64_t same[2] = { 7, 3 };
	uint64_t old[2];
	uint128 old_long;

	hd_atomic_run(&(struct hd_atomic_run){ HD_ATOMIC_READ, HD_ATOMIC_U64, 2, (void *)constant, NULL, NULL,
					       old });
	assert_memory_equal(old, constant, sizeof(old));
	hd_atomic_run(&(struct hd_atomic_run){ HD_ATOMIC_READ, HD_ATOMIC_U128, 1, (void *)&longer, NULL, NULL,
					       &old_long });
	assert_true(old_long == longer);
	hd_atomic_run(&(struct hd_atomic_run){ HD_ATOMIC_MAX, HD_ATOMIC_U64, 2, (void *)constant, same, NULL,
					       old });
	assert_memory_equal(old, constant, sizeof(old));
}

/* Elements one behind the other, at any place; what stands beside them stays. */
static void applied_in_private_memory(void **state)
{
	unsigned char at[1 + 5 * sizeof(int32_t) + 1], operands[sizeof(at)];
	const int32_t a[] = { 1, -2, INT32_MAX, 40, 5 }, b[] = { 10, 20, 1, -40, 7 };

	memset(at, 0x5a, sizeof(at));
	memcpy(at + 1, a, sizeof(a));
	memcpy(operands + 1, b, sizeof(b));
	hd_atomic_apply(HD_ATOMIC_SUM, HD_ATOMIC_I32, at + 1, operands + 1, 4);
	assert_memory_equal(at + 1, ((const int32_t[]){ 11, 18, INT32_MIN, 0, 5 }), sizeof(a));
	hd_atomic_apply(HD_ATOMIC_MAX, HD_ATOMIC_I32, at + 1, operands + 1, 5);
	assert_memory_equal(at + 1, ((const int32_t[]){ 11, 20, 1, 0, 7 }), sizeof(a));
	hd_atomic_apply(HD_ATOMIC_SUM, HD_ATOMIC_I32, at + 1, operands + 1, 0);
	assert_int_equal(at[0], 0x5a);
	assert_int_equal(at[sizeof(at) - 1], 0x5a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applied_in_private_memory),
		cmocka_unit_test(i8_all),
		cmocka_unit_test(u8_all),
		cmocka_unit_test(i16_all),
		cmocka_unit_test(u16_all),
		cmocka_unit_test(i32_all),
		cmocka_unit_test(u32_all),
		cmocka_unit_test(i64_all),
		cmocka_unit_test(u64_all),
		cmocka_unit_test(i128_all),
		cmocka_unit_test(u128_all),
		cmocka_unit_test(f_all),
		cmocka_unit_test(d_all),
		cmocka_unit_test(ld_all),
		cmocka_unit_test(fc_all),
		cmocka_unit_test(dc_all),
		cmocka_unit_test(ldc_all),
		cmocka_unit_test(pairs_are_those_of_the_page),
		cmocka_unit_test(no_update_is_lost_beside_the_program),
		cmocka_unit_test(what_keeps_its_value_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
