/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages and writes that come in for a queue pair at the same time: what may begin beside
 * what, and how they fail. They end in the order in which they came, by a lane (xfer/lane.h). The
 * data of writes, which may overlap, comes in this order as well: their sender sees to that
 * (frames.c).
 */
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/xfer/xfer.h"

static struct hd_qp_lane *lane_of(const struct hd_transfer *t)
{
	return &t->ep->qp->life.lane;
}

void hd_beside_begin(struct hd_transfer *t)
{
	lane_of(t)->transfers++;
	hd_lane_join(&lane_of(t)->order, &t->place);
}

/* May a message, or a write, begin beside this one, which is coming in? */
static bool beside_lets(const struct hd_qp *p, struct hd_transfer *t, bool a_write)
{
	if (t->pending.peer != p->life.dest->peer) /* that one has gone, and another has its name */
		return false;
	return !hd_rma_tells(t) && !(a_write && t->state == HD_TRANSFER_GET);
}

bool hd_beside_lets(const struct hd_qp *p, bool a_write)
{
	struct hd_lane_place *place;

	if (p->life.lane.order.count >= HD_LANE_WIDTH ||
	    (!p->attr.lossy && !STAILQ_EMPTY(&p->life.holdoff.receives)))
		return false;
	HD_LANE_FOREACH(place, &p->life.lane.order)
		if (!beside_lets(p, hd_transfer_at(place), a_write))
			return false;
	return true;
}

void hd_beside_end(struct hd_transfer *t)
{
	struct hd_qp *p = t->ep->qp;

	if (!--p->life.lane.transfers)
		p->life.lane.status = 0;
	if (hd_lane_leave(&p->life.lane.order, &t->place) || !TAILQ_EMPTY(&p->respq.queue))
		hd_qp_kick(p);
}

/*
 * Nothing is received behind something that has failed; its sender, who may
 * not know of that, is told.
 */
static void beside_fail(struct hd_qp *p, struct hd_transfer *t, enum hd_status *status)
{
	if (!*status && p->life.lane.status) {
		*status = p->life.lane.status;
		hd_answer_op(t->pending.peer, HD_PKT_FIN, t->remote, HD_S_REFUSED);
	}
	if (!p->attr.lossy)
		p->life.lane.status = *status;
}

bool hd_beside_turn(struct hd_transfer *t, enum hd_status *status)
{
	if (!hd_lane_done(&lane_of(t)->order, &t->place))
		return false;
	beside_fail(t->ep->qp, t, status);
	return true;
}

void hd_beside_finish(struct hd_qp *p)
{
	struct hd_lane_place *place;

	while ((place = hd_lane_ready(&p->life.lane.order)))
		hd_transfer_end(hd_transfer_at(place), hd_transfer_at(place)->status);
}
