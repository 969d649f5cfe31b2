/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Two nodes over shared memory of which one shows a region and an endpoint that the other reaches
 * into, by calls of the kernel that can be made to fail.
 */
#ifndef HD_TEST_SHM_DIRECT_H
#define HD_TEST_SHM_DIRECT_H

#include "transport/shm_duo.h"
#include "transport/vm_seam.h"

#define MR_ROW 5u
#define EP_ROW 3u
#define MR_STATE 7u
#define EP_STATE (2u << 16 | HD_PAGE_EP_LIVE)

/* direct_scene: both, whose node 1 shows the rows. direct_tables: those of node 1. */
void direct_scene(struct duo *d);
struct hd_page_tables *direct_tables(struct duo *d);

/*
 * direct_reach: node 0 copies between `near`, all of it, and node 1's memory at `far`.
 * direct_one: of one piece.
 */
int64_t direct_reach(struct duo *d, const struct iovec *near, int count, void *far, bool out);
int64_t direct_one(struct duo *d, void *near, void *far, size_t len, bool out);

#endif
