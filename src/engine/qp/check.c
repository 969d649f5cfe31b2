/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of a queue pair whenever nothing of it is being changed, counted anew in builds with
 * assertions: at the borders of this room, and in the units.
 */
#include "engine/qp/holdoff.h"
#include "engine/qp/qp.h"

#ifndef NDEBUG

/* a longer send queue is not walked through: it would take as long for every request in it */
#define CHECKED 64u

struct sums {
	uint32_t units, ordered, reading, direct;
};

static void wqe_add(struct sums *sums, const struct hd_wqe *s)
{
	sums->units += s->units;
	sums->ordered += !!(s->way & HD_WAY_ORDERED);
	sums->reading += !!(s->way & HD_WAY_READS);
	sums->direct += !!(s->way & HD_WAY_DIRECT);
}

static void sq_check(const struct hd_qp *p)
{
	const uint32_t posted = p->life.sq.tail - p->life.sq.head,
		       started = p->life.sq.next - p->life.sq.head;
	struct sums sums = { 0 };

	assert(started <= posted && posted <= p->attr.mask + 1);
	if (posted > CHECKED)
		return;
	for (uint32_t seq = p->life.sq.head; seq != p->life.sq.tail; seq++) {
		const struct hd_wqe *s = &p->wqes[seq & p->attr.mask];

		wqe_add(&sums, s);
		assert(seq - p->life.sq.head >= started || s->state != HD_WQE_WAITS || p->life.sq.pushing);
		assert(!s->op || !hd_qp_is_paired(p) || s->op->t.ep == p->ep);
	}
	assert(sums.units == p->life.sq.units);
	assert(sums.ordered == p->life.sq.ordered && sums.reading == p->life.sq.reading &&
	       sums.direct == p->life.sq.direct);
}

/*
 * Long transfers that come in, and those whose sender has gone (holdoff.c), which a reliable
 * queue pair counts with them.
 */
static void lane_check(const struct hd_qp *p)
{
	const struct hd_qp_lane *lane = &p->life.lane;
	struct hd_lane_place *place;

	hd_lane_check(&lane->order, !p->deferred.posted);
	assert(lane->order.count <= HD_LANE_WIDTH);
	assert(lane->transfers == lane->order.count + (p->attr.lossy ? 0 : hd_holdoff_count(p)));
	HD_LANE_FOREACH(place, &lane->order) {
		assert(hd_transfer_at(place)->ep == p->ep);
		assert(place->done == (hd_transfer_at(place)->state == HD_TRANSFER_HERE));
	}
}

/* What may be under way, and what may wait, in each state. */
static void state_check(const struct hd_qp *p)
{
	const struct hd_qp_life *l = &p->life;
	const struct hd_sq *sq = &l->sq;

	assert((l->status != 0) == (l->state >= HD_QP_ERR_FALLING));
	if (l->state < HD_QP_RTS || l->state == HD_QP_SQD_SQE || l->state == HD_QP_SQE ||
	    l->state == HD_QP_ERR)
		assert(sq->head == sq->tail);
	assert(l->state != HD_QP_SQD_DRAINED || sq->head == sq->next);
	assert(l->state < HD_QP_RTR || l->state >= HD_QP_ERR_FALLING || !hd_qp_is_paired(p) || l->dest);
	assert(l->state >= HD_QP_RTR || (!l->dest && !l->resp.from_peer && !l->lane.transfers));
	assert(l->state < HD_QP_ERR_FALLING || !l->resp.from_peer);
	assert(l->holdoff.state == HD_HOLDOFF_NONE || l->status || l->state == HD_QP_RTS_PENDING ||
	       l->state == HD_QP_SQD_PENDING);
}

void hd_qp_check(const struct hd_qp *p)
{
	if (p->wqes)
		sq_check(p);
	lane_check(p);
	state_check(p);
	assert(!p->life.sq.stalled_on || p->life.dest || !hd_qp_is_paired(p));
	assert(!TAILQ_EMPTY(&p->respq.queue) ||
	       (!p->respq.timer.due && !p->respq.rnr_wait.rq && !p->respq.taking));
}

void hd_qp_check_over(const struct hd_qp *p)
{
	const struct hd_qp_life *l = &p->life;

	if (p->wqes)
		sq_check(p);
	lane_check(p);
	assert(l->sq.head == l->sq.tail && !l->sq.stalled_on && !l->sq.settles && !l->sq.settle.due);
	assert(l->ack.pending == HD_ACK_PENDING_NO || l->ack.pending == HD_ACK_PENDING_NEVER);
	assert(!l->accepted.link && !l->dest && !l->resp.from_peer && !l->xrc.target);
	assert(!l->lane.transfers && STAILQ_EMPTY(&l->holdoff.receives) && !l->holdoff.timer.due);
}

#endif
