/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Copies between private memory and lines that another processor has. memcpy(3) is not made for these: above 2 KiB
 * glibc's is `rep movsb`, which moves a shared line at a fourth to an eighth of the speed of vector instructions on
 * AMD's processors (docs/rationale.md).
 */
#ifndef HEDDLE_BASE_COPY_H
#define HEDDLE_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HD_COPY_SMALL 24u
#define HD_COPY_WIDE 256u /* from here on ours are faster than memcpy(3) between processors */

/* hd_copy_small: copy n bytes, at most HD_COPY_SMALL, without a call and without a loop. May read a byte twice. */
static inline void hd_copy_small(uint8_t *to, const uint8_t *from, size_t n)
{
	if (n >= 8) {
		uint64_t first, mid, last;
		size_t at = n > 16 ? 8 : 0; /* a middle word, or the first one again */

		memcpy(&first, from, 8);
		memcpy(&mid, from + at, 8);
		memcpy(&last, from + n - 8, 8);
		memcpy(to, &first, 8);
		memcpy(to + at, &mid, 8);
		memcpy(to + n - 8, &last, 8);
	} else if (n >= 4) {
		uint32_t first, last;

		memcpy(&first, from, 4);
		memcpy(&last, from + n - 4, 4);
		memcpy(to, &first, 4);
		memcpy(to + n - 4, &last, 4);
	} else if (n) {
		to[0] = from[0];
		to[n / 2] = from[n / 2];
		to[n - 1] = from[n - 1];
	}
}

/* The two for this processor, chosen before main(), or before dlopen(3) returns, and never again. */
struct hd_copy_ops {
	void (*wide)(void *to, const void *from, size_t n);
	void (*past)(void *to, const void *from, size_t n);
};
extern struct hd_copy_ops hd_copy_ops;

/* For tests: all that were written for processors of this kind, of which the first hd_copy_best() + 1 work on this one. */
extern const struct hd_copy_ops hd_copy_choices[];
int hd_copy_best(void);

/* hd_copy: copy n bytes, which do not overlap; either side may lie in lines that another processor has. Any thread. */
static inline void hd_copy(void *to, const void *from, size_t n)
{
	if (n < HD_COPY_WIDE)
		memcpy(to, from, n);
	else
		hd_copy_ops.wide(to, from, n);
}

/*
 * hd_copy_past: the same for what is written for another processor, past the caches: its lines are fetched from memory,
 * which is faster than from the cache of a processor far away. What is stored after it is seen after it. Where the
 * processor has no such stores, it is hd_copy.
 */
static inline void hd_copy_past(void *to, const void *from, size_t n)
{
	if (n < HD_COPY_WIDE)
		hd_copy(to, from, n);
	else
		hd_copy_ops.past(to, from, n);
}

#endif
