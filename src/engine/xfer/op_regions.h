/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What operations use of regions by their local keys; what becomes of them when a region goes is in qp/local.c. With the node's lock. */
#ifndef HD_ENGINE_OP_REGIONS_H
#define HD_ENGINE_OP_REGIONS_H

#include "engine/xfer/op.h"

/*
 * hd_op_hold_regions: the operation's segments are of these regions, as many as op->count, each of which may be NULL. hd_op_drop_regions: it ends, or
 * needs them no longer.
 */
void hd_op_hold_regions(struct hd_op *op, struct hd_mr *const *regions);
void hd_op_release_regions(struct hd_op *op);
static inline void hd_op_drop_regions(struct hd_op *op)
{
	if (hd_unlikely(op->region_count != 0))
		hd_op_release_regions(op);
}

#endif
