/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What atomic operations do: one small function for each pair of operation and type says what an
 * element becomes, and one loop for each width puts that into the memory.
 */
#include "base/copy.h"
#include "engine/rma/atomic.h"

#include <complex.h>
#include <float.h>
#include <string.h>

/* ---- what an element becomes ----------------------------------------------------------------- */

/*
 * *next, which holds a copy of *at, becomes the new value; b is the operand, c what is compared
 * with. Nothing is aligned.
 */
typedef void (*step_fn)(void *next, const void *at, const void *b, const void *c);

/*
 * A long double of the x87 fills 10 of its bytes. The others keep what they hold: nothing of
 * our stack goes anywhere.
 */
#if LDBL_MANT_DIG == 64
#define LONG_DOUBLE_USED 10
#else
#define LONG_DOUBLE_USED sizeof(long double)
#endif
#define HAS_HOLES(T) _Generic((T)0, long double : true, long double complex : true, default : false)

#define STEP(name, T, result) \
	static void name(void *next, const void *at, const void *operand, const void *compare) \
	{ \
		T a, b, c, n; \
		memcpy(&a, at, sizeof(T)); \
		memcpy(&b, operand, sizeof(T)); \
		memcpy(&c, compare, sizeof(T)); \
		(void)a, (void)b, (void)c; \
		n = (T)(result); \
		if (!HAS_HOLES(T)) \
			memcpy(next, &n, sizeof(T)); \
		else \
			for (size_t i = 0; i < sizeof(T); i += sizeof(long double)) \
				memcpy((char *)next + i, (char *)&n + i, LONG_DOUBLE_USED); \
	}

/* For any type; V is the one to calculate in, where no overflow is undefined. */
#define STEPS_ANY(t, T, V) \
	STEP(t##_sum, T, (V)a + (V)b) \
	STEP(t##_prod, T, (V)a *(V)b) \
	STEP(t##_lor, T, a || b) \
	STEP(t##_land, T, a &&b) \
	STEP(t##_lxor, T, !a != !b) \
	STEP(t##_write, T, b) \
	STEP(t##_cswap, T, c == a ? b : a) \
	STEP(t##_cswap_ne, T, c != a ? b : a)

/* For types whose values have an order. */
#define STEPS_REAL(t, T, V) \
	STEPS_ANY(t, T, V) \
	STEP(t##_min, T, b < a ? b : a) \
	STEP(t##_max, T, b > a ? b : a) \
	STEP(t##_cswap_le, T, c <= a ? b : a) \
	STEP(t##_cswap_lt, T, c < a ? b : a) \
	STEP(t##_cswap_ge, T, c >= a ? b : a) \
	STEP(t##_cswap_gt, T, c > a ? b : a)

/* For types that are sets of bits. */
#define STEPS_INT(t, T, V) \
	STEPS_REAL(t, T, V) \
	STEP(t##_bor, T, a | b) \
	STEP(t##_band, T, a &b) \
	STEP(t##_bxor, T, a ^ b) \
	STEP(t##_mswap, T, (b & c) | (a & ~c))

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

STEPS_INT(i8, int8_t, uint64_t)
STEPS_INT(u8, uint8_t, uint64_t)
STEPS_INT(i16, int16_t, uint64_t)
STEPS_INT(u16, uint16_t, uint64_t)
STEPS_INT(i32, int32_t, uint64_t)
STEPS_INT(u32, uint32_t, uint64_t)
STEPS_INT(i64, int64_t, uint64_t)
STEPS_INT(u64, uint64_t, uint64_t)
STEPS_INT(i128, int128, uint128)
STEPS_INT(u128, uint128, uint128)
STEPS_REAL(f, float, float)
STEPS_REAL(d, double, double)
STEPS_REAL(ld, long double, long double)
STEPS_ANY(fc, float complex, float complex)
STEPS_ANY(dc, double complex, double complex)
STEPS_ANY(ldc, long double complex, long double complex)

static void read_step(void *next, const void *at, const void *operand, const void *compare)
{
}

#define ROW_ANY(t) \
	[HD_ATOMIC_SUM] = t##_sum, [HD_ATOMIC_PROD] = t##_prod, [HD_ATOMIC_LOR] = t##_lor, \
	[HD_ATOMIC_LAND] = t##_land, [HD_ATOMIC_LXOR] = t##_lxor, [HD_ATOMIC_READ] = read_step, \
	[HD_ATOMIC_WRITE] = t##_write, [HD_ATOMIC_CSWAP] = t##_cswap, [HD_ATOMIC_CSWAP_NE] = t##_cswap_ne

#define ROW_REAL(t) \
	ROW_ANY(t), [HD_ATOMIC_MIN] = t##_min, [HD_ATOMIC_MAX] = t##_max, \
		    [HD_ATOMIC_CSWAP_LE] = t##_cswap_le, [HD_ATOMIC_CSWAP_LT] = t##_cswap_lt, \
		    [HD_ATOMIC_CSWAP_GE] = t##_cswap_ge, [HD_ATOMIC_CSWAP_GT] = t##_cswap_gt

#define ROW_INT(t) \
	ROW_REAL(t), [HD_ATOMIC_BOR] = t##_bor, [HD_ATOMIC_BAND] = t##_band, [HD_ATOMIC_BXOR] = t##_bxor, \
		     [HD_ATOMIC_MSWAP] = t##_mswap

static const struct {
	size_t size;
	step_fn step[HD_ATOMIC_OPS]; /* NULL: the type does not have it */
} types[HD_ATOMIC_TYPES] = {
	[HD_ATOMIC_I8] = { 1, { ROW_INT(i8) } },
	[HD_ATOMIC_U8] = { 1, { ROW_INT(u8) } },
	[HD_ATOMIC_I16] = { 2, { ROW_INT(i16) } },
	[HD_ATOMIC_U16] = { 2, { ROW_INT(u16) } },
	[HD_ATOMIC_I32] = { 4, { ROW_INT(i32) } },
	[HD_ATOMIC_U32] = { 4, { ROW_INT(u32) } },
	[HD_ATOMIC_I64] = { 8, { ROW_INT(i64) } },
	[HD_ATOMIC_U64] = { 8, { ROW_INT(u64) } },
	[HD_ATOMIC_I128] = { 16, { ROW_INT(i128) } },
	[HD_ATOMIC_U128] = { 16, { ROW_INT(u128) } },
	[HD_ATOMIC_F] = { sizeof(float), { ROW_REAL(f) } },
	[HD_ATOMIC_D] = { sizeof(double), { ROW_REAL(d) } },
	[HD_ATOMIC_LD] = { sizeof(long double), { ROW_REAL(ld) } },
	[HD_ATOMIC_FC] = { sizeof(float complex), { ROW_ANY(fc) } },
	[HD_ATOMIC_DC] = { sizeof(double complex), { ROW_ANY(dc) } },
	[HD_ATOMIC_LDC] = { sizeof(long double complex), { ROW_ANY(ldc) } },
};

#define ELEMENT_MAX 32 /* bytes */
static_assert(sizeof(long double complex) <= ELEMENT_MAX, "the longest type fits");
static_assert(!(sizeof(long double) & (sizeof(long double) - 1)), "all sizes are powers of two");

/* ---- what an operation may be ---------------------------------------------------------------- */

static bool is_compare(uint32_t op)
{
	return op >= HD_ATOMIC_CSWAP && op < HD_ATOMIC_OPS;
}

/* The operations of each kind, a bit for each. */
#define COMPARES (UINT32_MAX << HD_ATOMIC_CSWAP)
static const uint32_t ops_of[HD_ATOMIC_HOWS] = { [HD_ATOMIC_BASE] = ~COMPARES & ~(1u << HD_ATOMIC_READ),
						 [HD_ATOMIC_FETCH] = ~COMPARES,
						 [HD_ATOMIC_COMPARE] = COMPARES };
static_assert(HD_ATOMIC_OPS <= 32, "there is a bit for each");

size_t hd_atomic_size(uint32_t type)
{
	return type < HD_ATOMIC_TYPES ? types[type].size : 0;
}

bool hd_atomic_can(uint32_t how, uint32_t op, uint32_t type)
{
	return how < HD_ATOMIC_HOWS && op < HD_ATOMIC_OPS && type < HD_ATOMIC_TYPES &&
	       ops_of[how] >> op & 1 && types[type].step[op];
}

/* ---- into the memory ------------------------------------------------------------------------- */

/* All elements. False: the memory is gone. */
typedef bool swap_fn(const struct hd_atomic_run *run, step_fn step, const char *operands,
		     const char *compares);

/* Of a width that the CPU changes as a whole. */
#define SWAP(bits) \
	static bool swap##bits(const struct hd_atomic_run *run, step_fn step, const char *operands, \
			       const char *compares) \
	{ \
		const size_t end = run->count * sizeof(uint##bits##_t); \
		for (size_t at = 0; at < end; at += sizeof(uint##bits##_t)) { \
			char *memory = (char *)run->memory + at; \
			uint##bits##_t seen, next; \
			bool is = false; \
			if (!hd_guard_load##bits(&seen, memory)) \
				return false; \
			while (!is) { \
				next = seen; \
				step(&next, &seen, operands + at, compares + at); \
				if (next == seen) \
					break; \
				if (!hd_guard_exchange##bits(memory, &seen, next, &is)) \
					return false; \
			} \
			memcpy((char *)run->old + at, &seen, sizeof(seen)); \
		} \
		return true; \
	}

SWAP(8)
SWAP(16)
SWAP(32)
SWAP(64)

static bool swap_long(const struct hd_atomic_run *run, step_fn step, const char *operands,
		      const char *compares)
{
	const size_t size = types[run->type].size, end = run->count * size;
	_Alignas(16) unsigned char next[ELEMENT_MAX];

	for (size_t at = 0; at < end; at += size) {
		char *memory = (char *)run->memory + at, *old = (char *)run->old + at;

		if (hd_copy(old, memory, size))
			return false;
		memcpy(next, old, size);
		step(next, old, operands + at, compares + at);
		if (memcmp(next, old, size) && hd_copy(memory, next, size))
			return false;
	}
	return true;
}

/* Where the first element is aligned, all are. */
static swap_fn *swap_of(const void *memory, size_t size)
{
	switch ((uintptr_t)memory & (size - 1) ? 0 : size) {
	case 1:
		return swap8;
	case 2:
		return swap16;
	case 4:
		return swap32;
	case 8:
		return swap64;
	default:
		return swap_long;
	}
}

bool hd_atomic_run(const struct hd_atomic_run *run)
{
	/*
	 * a step that has no operand, or no comparand, does not use the one that it
	 * gets, but there is one to get
	 */
	const char *operands = run->op == HD_ATOMIC_READ ? run->old : run->operands;
	const char *compares = is_compare(run->op) ? run->compares : operands;

	return swap_of(run->memory, types[run->type].size)(run, types[run->type].step[run->op], operands,
							   compares);
}

void hd_atomic_apply(uint32_t op, uint32_t type, void *at, const void *operands, size_t count)
{
	const step_fn step = types[type].step[op];
	const size_t size = types[type].size;
	const char *operand = operands;
	char *element = at;

	for (size_t i = 0; i < count; i++, element += size, operand += size)
		step(element, element, operand, operand);
}
