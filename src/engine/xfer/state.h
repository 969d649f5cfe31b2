/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What xfer keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_XFER_STATE_H
#define HD_ENGINE_XFER_STATE_H

#include "engine/rq/rq.h"

#define HD_WASTE (64u << 10) /* bytes of hd_xfers.waste */

struct hd_xfers {
	struct hd_rqs below; /* first */
	struct hd_pool ops, send_places;
	char *waste;	      /* where links read what is thrown away; nobody reads it */
	uint32_t direct_pass; /* counts the turns of direct.c */
};

/* hd_xfers: of this node. */
static inline struct hd_xfers *hd_xfers(const struct hd_node *node)
{
	return (struct hd_xfers *)node;
}

#endif
