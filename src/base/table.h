/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * uthash, which ends the process when there is no memory for a table unless it is told otherwise
 * first. Who adds to a table asks hd_is_in_table afterwards.
 */
#ifndef HD_BASE_TABLE_H
#define HD_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1

#include <stdbool.h>
#include <uthash.h>

/*
 * hd_is_in_table: is the element with this handle in one, as after HASH_ADD it is not without
 * memory? Before any HASH_ADD hh is zero.
 */
static inline bool hd_is_in_table(const UT_hash_handle *hh)
{
	return hh->tbl != NULL;
}

#endif
