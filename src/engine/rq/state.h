/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What rq keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_RQ_STATE_H
#define HD_ENGINE_RQ_STATE_H

#include "base/bytes.h"
#include "base/pool.h"
#include "engine/mr/mr.h"

struct hd_rqs {
	struct hd_regions below; /* first */
	struct hd_pool recvs, iovs;
	struct hd_bytes bytes;	     /* of any size: also of the rooms above */
	TAILQ_HEAD(, hd_rq) rq_list; /* those whose receives may name a source first */
	LIST_HEAD(, hd_rq) limited;  /* those that have a limit which is armed */
	int rqs;
	bool numbered; /* a source has had two numbers: hd_rqs_number */
};

/* hd_rqs: of this node. */
static inline struct hd_rqs *hd_rqs(const struct hd_node *node)
{
	return (struct hd_rqs *)node;
}

#endif
