/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What mr keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_MR_STATE_H
#define HD_ENGINE_MR_STATE_H

#include "engine/link/link.h"

struct hd_window;

#define HD_MR_REST 64 /* closed regions whose keys are not given out again */

struct hd_regions {
	struct hd_links below; /* first */
	int mrs;
	struct hd_mr *mr_table; /* by their keys */
	/* a region closes, `to` NULL: mr.h */
	bool (*mr_leaves)(struct hd_mr *from, struct hd_mr *to);
	struct hd_window *windows;    /* by their keys, see window.h */
	bool keys_chosen;	      /* a region has, or had, a key that might be a window's */
	uint64_t mr_rest[HD_MR_REST]; /* keys of regions closed last: not to be drawn again yet */
	unsigned mr_rest_next;
};

/* hd_regions: of this node. */
static inline struct hd_regions *hd_regions(const struct hd_node *node)
{
	return (struct hd_regions *)node;
}

#endif
