/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_PAGES_H
#define HEDDLE_BASE_PAGES_H

#include <stddef.h>

#define HD_HUGE_PAGE ((size_t)2 << 20)

/*
 * hd_pages_get returns `bytes` of zeroed private memory straight from the system, or NULL. From
 * HD_HUGE_PAGE on it is aligned to that and huge pages are asked for: large tables are reached at
 * random, and on small pages each look would also walk the page table. mmap(2), madvise(2). Any
 * thread.
 */
void *hd_pages_get(size_t bytes);

/*
 * hd_pages_put gives memory of hd_pages_get back, with the same number of bytes.
 * NULL is ignored. Any thread.
 */
void hd_pages_put(void *at, size_t bytes);

#endif
