/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A difference that does not wrap. What others say and leave here moves many of our counts, and an
 * unsigned number from which more is taken than it is becomes a very large one, which as what is
 * left of a limit is none. So a difference is made here where it is not plain that the first is not
 * the smaller. Any thread.
 */
#ifndef HEDDLE_BASE_MINUS_H
#define HEDDLE_BASE_MINUS_H

#include <stdint.h>

/* hd_minus: what is left of `all` when `taken` is gone: 0 where that is more. */
static inline uint64_t hd_minus(uint64_t all, uint64_t taken)
{
	return all > taken ? all - taken : 0;
}

#endif
