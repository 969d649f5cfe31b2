/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Small numbers that are given out and come back, the smallest first, at a cost that does not grow
 * with how many there are.
 */
#ifndef HD_BASE_INDICES_H
#define HD_BASE_INDICES_H

#include <stdint.h>

struct hd_indices {
	uint64_t *free; /* a bit for each that may be given out */
	uint64_t *some; /* a bit for each word of `free` that is not 0 */
	uint32_t count;
};

/*
 * All zero: there are none. hd_indices_grow: those from `count` up to n, a multiple of 64, are
 * there as well, and free: 0 or -ENOMEM.
 * hd_indices_take: the smallest that is free, which no longer is; `count`: there is none.
 * hd_indices_put: it is again.
 */
int hd_indices_grow(struct hd_indices *x, uint32_t n);
uint32_t hd_indices_take(struct hd_indices *x);
void hd_indices_put(struct hd_indices *x, uint32_t i);
void hd_indices_fini(struct hd_indices *x);

#endif
