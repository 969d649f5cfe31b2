/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What requests of queue pairs use of regions by their local keys. */
#ifndef HD_ENGINE_PAIR_LOCAL_H
#define HD_ENGINE_PAIR_LOCAL_H

#include "engine/internal.h"

/*
 * hd_local_hold: the operation's segments are of these regions, as many
 * as op->count; hd_local_drop: it ends.
 */
void hd_local_hold(struct hd_op *op, struct hd_mr *const *regions);
void hd_local_release(struct hd_op *op);
static inline void hd_local_drop(struct hd_op *op)
{
	if (hd_unlikely(op->region_count != 0))
		hd_local_release(op);
}

#endif
