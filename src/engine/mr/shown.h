/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Regions that peers on this host may reach by themselves: private to mr. With the node's lock. */
#ifndef HD_ENGINE_SHOWN_H
#define HD_ENGINE_SHOWN_H

#include "engine/mr/mr.h"

/*
 * hd_mr_show: show peers this region as it is, or take it back, if it is disabled; again whenever
 * something changes. What cannot be shown is reached by packets.
 */
void hd_mr_show(struct hd_mr *mr);

/*
 * hd_mr_settled: the region, which is disabled, is to go: no peer copies from or to it any more.
 * hd_mr_await: wait until it says so, or another who is asked like that (which gets the lock as it
 * was). Gives the lock back meanwhile, and the node makes progress where that is what ends it. 0,
 * or -EBUSY after HD_MR_SETTLE_NS: a peer that was stopped in the middle of a copy would finish it
 * later; the region must stay.
 */
bool hd_mr_settled(struct hd_mr *mr);
int hd_mr_await(struct hd_mr *mr, bool (*over)(struct hd_mr *mr));
#define HD_MR_SETTLE_NS (1000 * HD_NS_PER_MS)

#endif
