/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What of the program's memory is there. All ask for the mappings alone: no
 * page is touched. Any thread.
 */
#ifndef HEDDLE_BASE_MAPPING_H
#define HEDDLE_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* hd_is_mapped: is there memory, all the way? msync(2). */
bool hd_is_mapped(const void *at, size_t bytes);

/*
 * hd_is_read_only: is there any part of this (mapped) memory that may not be written? Kernels
 * before 6.11 do not tell of one address without all the others, which takes too long where there
 * are many: then, and where /proc is not mounted, false.
 */
bool hd_is_read_only(const void *at, size_t bytes);

/*
 * hd_is_usable: may a program read all of it, or (`writes`) write it too? As far
 * as the two above can tell.
 */
static inline bool hd_is_usable(const void *at, size_t bytes, bool writes)
{
	return hd_is_mapped(at, bytes) && !(writes && hd_is_read_only(at, bytes));
}

#endif
