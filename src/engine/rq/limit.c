/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The limit of a receive queue, ibv_modify_srq(3): told once when fewer receives are posted. It is
 * looked at when it is set, and in each turn of progress while it is armed, and nowhere else, so
 * that the path of a message knows nothing of it.
 */
#include "engine/rq/queue.h"

/* Is it reached? Then it is told, and over. */
static bool limit_reached(struct hd_rq *rq)
{
	if (rq->match[0].posted + rq->match[1].posted >= rq->limit.least)
		return false;
	LIST_REMOVE(rq, limited);
	rq->limit.least = 0;
	rq->limit.below(rq->limit.owner);
	return true;
}

void hd_rq_set_limit(struct hd_rq *rq, const struct hd_rq_limit *limit)
{
	struct hd_node *node = rq->node;

	hd_assert_locked(node);
	if (rq->limit.least)
		LIST_REMOVE(rq, limited);
	rq->limit = *limit;
	if (!rq->limit.least)
		return;
	LIST_INSERT_HEAD(&hd_rqs(node)->limited, rq, limited);
	if (!limit_reached(rq))
		hd_work_due(node, HD_WORK_LIMITS);
}

uint32_t hd_rq_get_limit(const struct hd_rq *rq)
{
	return rq->limit.least;
}

int hd_limits_look(struct hd_node *node)
{
	struct hd_rq *rq, *next;
	int told = 0;

	for (rq = LIST_FIRST(&hd_rqs(node)->limited); rq; rq = next) {
		next = LIST_NEXT(rq, limited);
		told += limit_reached(rq);
	}
	if (!LIST_EMPTY(&hd_rqs(node)->limited))
		hd_work_due(node, HD_WORK_LIMITS);
	return told;
}
