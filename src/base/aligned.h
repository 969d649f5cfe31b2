/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory whose alignment is more than malloc(3)'s. A program may bring a malloc and free of its
 * own, older than C11: without aligned_alloc(3), which would then be the C library's, and what
 * comes of it must not meet the program's free. posix_memalign(3) is as old as the registration
 * caches that do so (MVAPICH2's), and what libfabric and rdma-core take.
 */
#ifndef HEDDLE_BASE_ALIGNED_H
#define HEDDLE_BASE_ALIGNED_H

#include <stdlib.h>

/*
 * hd_aligned_alloc returns `bytes` of memory aligned to `align`, a power of two that is a multiple
 * of a pointer's size, or NULL; free(3) takes it back. Any thread.
 */
static inline void *hd_aligned_alloc(size_t align, size_t bytes)
{
	void *at;

	return posix_memalign(&at, align, bytes) ? NULL : at;
}

#endif
