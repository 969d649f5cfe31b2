/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How many receives a queue pair has taken, and a mark that is told of when it has taken more:
 * dat_ep_set_watermark(3DAT). The path of a message counts and nothing else; marks are looked at in
 * each turn of progress while there are some, as limits of receive queues are.
 */
#include "engine/qp/qp.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

uint64_t hd_ep_taken(const struct hd_ep *ep)
{
	return hd_qp_taken(ep->qp);
}

uint32_t hd_ep_filling(const struct hd_ep *ep)
{
	const struct hd_qp *p = ep->qp;
	struct hd_lane_place *place;
	uint32_t n = 0;

	HD_LANE_FOREACH(place, &p->life.lane.order)
		n += hd_transfer_at(place)->owner == &hd_qp_receives; /* and no long write */
	return n;
}

void hd_ep_set_mark(struct hd_ep *ep, const struct hd_ep_mark *mark)
{
	struct hd_node *node = ep->node;
	struct hd_qp *p = ep->qp;

	hd_assert_locked(node);
	if (p->mark.passed)
		LIST_REMOVE(p, marked);
	p->mark = mark ? *mark : (struct hd_ep_mark){ 0 };
	if (!mark)
		return;
	LIST_INSERT_HEAD(&hd_qps(node)->marked, p, marked);
	hd_work_due(node, HD_WORK_MARKS);
	hd_marks_stir(node);
}

void hd_marks_stir(struct hd_node *node)
{
	if (!LIST_EMPTY(&hd_qps(node)->marked))
		hd_node_stir(node);
}

/* Telling of one may change any of them: so from the beginning each time. */
static struct hd_qp *first_passed(struct hd_node *node)
{
	struct hd_qp *p;

	LIST_FOREACH(p, &hd_qps(node)->marked, marked)
		if (hd_qp_taken(p) > p->mark.most)
			break;
	return p;
}

int hd_marks_look(struct hd_node *node)
{
	struct hd_qp *p;
	int told = 0;

	while ((p = first_passed(node))) {
		const struct hd_ep_mark mark = p->mark;

		hd_ep_set_mark(p->ep, NULL);
		mark.passed(mark.owner);
		told++;
	}
	if (!LIST_EMPTY(&hd_qps(node)->marked))
		hd_work_due(node, HD_WORK_MARKS);
	return told;
}
