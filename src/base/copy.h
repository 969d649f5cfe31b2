/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Copies between private memory and lines that another processor has. memcpy(3) is not made for
 * these: above 2 KiB glibc's is `rep movsb`, which moves a shared line at a fourth to an eighth of
 * the speed of vector instructions on AMD's processors (docs/rationale.md).
 *
 * Either side may be memory of the program's that is gone (guard.h): each of these then answers
 * -EFAULT, and part of the bytes may have been copied.
 */
#ifndef HEDDLE_BASE_COPY_H
#define HEDDLE_BASE_COPY_H

#include "base/guard.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Does this processor keep the order of stores, as others see them? Elsewhere a release does. */
#if defined(__x86_64__) || defined(__i386__)
#define HD_STORES_IN_ORDER 1
#else
#define HD_STORES_IN_ORDER 0
#endif

#define HD_COPY_SMALL 24u
/* from here on copies between processors go by other loops than shorter ones */
#define HD_COPY_WIDE 256u

/*
 * hd_copy_small_in, hd_copy_small_out: copy n bytes, at most HD_COPY_SMALL, into memory of
 * the program's, or out of it, without a call and without a loop. May read or write a byte
 * twice. False: it is gone.
 */
static inline __attribute__((always_inline)) bool hd_copy_small_in(void *to, const void *from, size_t n)
{
	const uint8_t *f = from;
	uint8_t *t = to;

	hd_guard_sees(from, to, n);
	if (n >= 8) {
		uint64_t first, mid, last;
		size_t at = n > 16 ? 8 : 0; /* a middle word, or the first one again */

		memcpy(&first, f, 8);
		memcpy(&mid, f + at, 8);
		memcpy(&last, f + n - 8, 8);
		return hd_guard_store64(t, first) && hd_guard_store64(t + at, mid) &&
		       hd_guard_store64(t + n - 8, last);
	}
	if (n >= 4) {
		uint32_t first, last;

		memcpy(&first, f, 4);
		memcpy(&last, f + n - 4, 4);
		return hd_guard_store32(t, first) && hd_guard_store32(t + n - 4, last);
	}
	return !n || (hd_guard_store8(t, f[0]) && hd_guard_store8(t + n / 2, f[n / 2]) &&
		      hd_guard_store8(t + n - 1, f[n - 1]));
}

static inline __attribute__((always_inline)) bool hd_copy_small_out(void *to, const void *from, size_t n)
{
	const uint8_t *f = from;
	uint8_t *t = to;

	hd_guard_sees(from, to, n);
	if (n >= 8) {
		uint64_t first, mid, last;
		size_t at = n > 16 ? 8 : 0;

		if (!hd_guard_load64(&first, f) || !hd_guard_load64(&mid, f + at) ||
		    !hd_guard_load64(&last, f + n - 8))
			return false;
		memcpy(t, &first, 8);
		memcpy(t + at, &mid, 8);
		memcpy(t + n - 8, &last, 8);
	} else if (n >= 4) {
		uint32_t first, last;

		if (!hd_guard_load32(&first, f) || !hd_guard_load32(&last, f + n - 4))
			return false;
		memcpy(t, &first, 4);
		memcpy(t + n - 4, &last, 4);
	} else if (n) {
		if (!hd_guard_load8(t, f) || !hd_guard_load8(t + n / 2, f + n / 2) ||
		    !hd_guard_load8(t + n - 1, f + n - 1))
			return false;
	}
	return true;
}

/*
 * The loops for this processor, chosen before main(), or before dlopen(3) returns, and never again.
 * Each copies any number of bytes.
 */
struct hd_copy_ops {
	int (*wide)(void *to, const void *from, size_t n);
	int (*past)(void *to, const void *from, size_t n);
	bool (*works)(void); /* on this processor; NULL: on every one */
};
extern struct hd_copy_ops hd_copy_ops;

/*
 * For tests: all that were written for processors of this kind, hd_copy_last the last; the first
 * hd_copy_best() + 1 work on this one.
 */
extern const struct hd_copy_ops hd_copy_choices[];
extern const int hd_copy_last;
int hd_copy_best(void);

/* hd_copy_brief: as hd_copy, of less than HD_COPY_WIDE bytes. */
int hd_copy_brief(void *to, const void *from, size_t n) __attribute__((visibility("hidden")));

/*
 * hd_copy: copy n bytes, which do not overlap; either side may lie in lines that another processor
 * has. 0 or -EFAULT. Any thread.
 */
static inline int hd_copy(void *to, const void *from, size_t n)
{
	hd_guard_sees(from, to, n);
	return n < HD_COPY_WIDE ? hd_copy_brief(to, from, n) : hd_copy_ops.wide(to, from, n);
}

/*
 * hd_copy_past: the same for what is written for another processor, past the caches: its lines are
 * fetched from memory, which is faster than from the cache of a processor far away. What is stored
 * after it is seen after it. Where the processor has no such stores, it is hd_copy.
 */
static inline int hd_copy_past(void *to, const void *from, size_t n)
{
	hd_guard_sees(from, to, n);
	return n < HD_COPY_WIDE ? hd_copy_brief(to, from, n) : hd_copy_ops.past(to, from, n);
}

#endif
