/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What operations use of regions that may go meanwhile. */
#include "engine/xfer/op_regions.h"
#include "engine/mr/mr.h"
#include "engine/xfer/op.h"

void hd_op_hold_regions(struct hd_op *op, struct hd_mr *const *regions)
{
	op->region_count = op->count;
	for (int i = 0; i < op->count; i++) {
		op->regions[i] = regions[i];
		if (regions[i])
			regions[i]->ops++;
	}
}

void hd_op_release_regions(struct hd_op *op)
{
	for (int i = 0; i < op->region_count; i++)
		if (op->regions[i])
			op->regions[i]->ops--;
	op->region_count = 0;
}
