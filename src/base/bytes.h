/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Buffers of just the size that is needed, for messages that wait: a pool for each multiple of 64
 * bytes up to 4 KiB, the heap above, and from 256 KiB on memory straight from the system, so that a
 * flood of large ones leaves nothing behind. Threads: the caller's lock.
 */
#ifndef HEDDLE_BASE_BYTES_H
#define HEDDLE_BASE_BYTES_H

#include "base/pool.h"

#define HD_BYTES_STEP 64u
#define HD_BYTES_CLASSES 64u
#define HD_BYTES_POOLED ((size_t)HD_BYTES_STEP * HD_BYTES_CLASSES)
#define HD_BYTES_SYSTEM ((size_t)256 << 10)

struct hd_bytes {
	struct hd_pool pool[HD_BYTES_CLASSES];
};

/* hd_bytes_init makes an empty set of pools. Allocates nothing. */
void hd_bytes_init(struct hd_bytes *bytes);

/*
 * hd_bytes_fini frees the pools, with every pooled buffer that is still out;
 * larger ones must be back.
 */
void hd_bytes_fini(struct hd_bytes *bytes);

void *hd_bytes_get_large(size_t n);
void hd_bytes_put_large(void *at, size_t n);

/* hd_bytes_get returns n bytes (0 counts as 1) of undefined content, or NULL when memory is out. */
static inline void *hd_bytes_get(struct hd_bytes *bytes, size_t n)
{
	if (__builtin_expect(n > HD_BYTES_POOLED, 0))
		return hd_bytes_get_large(n);
	return hd_pool_get(&bytes->pool[n ? (n - 1) / HD_BYTES_STEP : 0]);
}

/* hd_bytes_put takes a buffer back; n as in get. */
static inline void hd_bytes_put(struct hd_bytes *bytes, void *at, size_t n)
{
	if (__builtin_expect(n > HD_BYTES_POOLED, 0))
		hd_bytes_put_large(at, n);
	else
		hd_pool_put(&bytes->pool[n ? (n - 1) / HD_BYTES_STEP : 0], at);
}

#endif
