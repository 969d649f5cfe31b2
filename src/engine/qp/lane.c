/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages and writes that come in for a queue pair at the same time: each has its place, by the order in which they came, and ends in
 * it. The data of writes, which may overlap, comes in this order as well: their sender sees to that (frames.c).
 */
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/xfer/xfer.h"

static struct hd_transfer **lane_at(struct hd_qp *p, uint32_t seq)
{
	return &p->life.lane.places[seq % HD_LANE_WIDTH];
}

/* The first one that is coming in, if it is here already. */
static struct hd_transfer *first_here(struct hd_qp *p)
{
	struct hd_transfer *t = p->life.lane.first != p->life.lane.next ? *lane_at(p, p->life.lane.first)
									: NULL;

	return t && t->state == HD_TRANSFER_HERE ? t : NULL;
}

void hd_lane_begin(struct hd_transfer *t)
{
	struct hd_qp *p = t->ep->qp;

	p->life.lane.transfers++;
	t->place = p->life.lane.next++;
	*lane_at(p, t->place) = t;
}

bool hd_lane_lets(const struct hd_qp *p, bool a_write)
{
	if (p->life.lane.next - p->life.lane.first >= HD_LANE_WIDTH ||
	    (!p->attr.lossy && !STAILQ_EMPTY(&p->life.holdoff.receives)))
		return false;
	for (uint32_t seq = p->life.lane.first; seq != p->life.lane.next; seq++) {
		struct hd_transfer *t = p->life.lane.places[seq % HD_LANE_WIDTH];

		if (t && (t->pending.peer !=
				  p->life.dest->peer || /* that one has gone, and another has its name */
			  hd_rma_tells(t) ||
			  (a_write && t->state == HD_TRANSFER_PULL)))
			return false;
	}
	return true;
}

void hd_lane_end(struct hd_transfer *t)
{
	struct hd_qp *p = t->ep->qp;

	if (!--p->life.lane.transfers)
		p->life.lane.err = 0;
	*lane_at(p, t->place) = NULL;
	while (p->life.lane.first != p->life.lane.next && !*lane_at(p, p->life.lane.first))
		p->life.lane.first++;
	if (!TAILQ_EMPTY(&p->respq.queue) || first_here(p))
		hd_qp_kick(p);
}

/* Nothing is received behind something that has failed; its sender, who may not know of that, is told. */
static void lane_fail(struct hd_qp *p, struct hd_transfer *t, int *err)
{
	if (!*err && p->life.lane.err) {
		*err = p->life.lane.err;
		hd_answer_op(t->pending.peer, HD_PKT_FIN, t->remote, HD_S_REFUSED);
	}
	if (!p->attr.lossy)
		p->life.lane.err = *err;
}

bool hd_lane_turn(struct hd_transfer *t, int *err)
{
	struct hd_qp *p = t->ep->qp;

	if (t->place != p->life.lane.first)
		return false;
	lane_fail(p, t, err);
	return true;
}

void hd_lane_finish(struct hd_qp *p)
{
	struct hd_transfer *t;

	while ((t = first_here(p)))
		hd_transfer_end(t, t->err);
}
