/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_COPY_H
#define HEDDLE_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HD_COPY_SMALL 24u

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

#endif
