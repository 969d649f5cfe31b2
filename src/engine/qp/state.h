/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What qp keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_QP_STATE_H
#define HD_ENGINE_QP_STATE_H

#include "engine/xfer/xfer.h"

struct hd_qps {
	struct hd_xfers below;	      /* first */
	TAILQ_HEAD(, hd_qp) awaiting; /* queue pairs whose messages wait to be accepted: ack.c */
	uint64_t looked_at;	      /* hd_ticks(): the last look for them */
	LIST_HEAD(, hd_qp) marked;    /* mark.c */
	uint32_t pairs;		      /* queue pairs of the node */
};

/* hd_qps: of this node. */
static inline struct hd_qps *hd_qps(const struct hd_node *node)
{
	return (struct hd_qps *)node;
}

#endif
