/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* How it stands with a queue pair, for who only looks. */
#include "engine/qp/holdoff.h"
#include "engine/qp/qp.h"
#include "engine/qp/respq.h"

static enum hd_qp_waits sq_waits(const struct hd_qp *p)
{
	const struct hd_qp_life *l = &p->life;

	if ((!l->dest && hd_qp_is_paired(p)) || l->state < HD_QP_RTS)
		return HD_QP_WAITS_READY;
	if (l->sq.next == l->sq.tail)
		return HD_QP_WAITS_NOT;
	if (hd_qp_is_draining(p))
		return HD_QP_WAITS_DRAINED;
	if (!l->dest)
		return l->sq.stalled_on ? HD_QP_WAITS_CREDIT : HD_QP_WAITS_LINK;
	if (l->dest->state != HD_DEST_BOUND)
		return HD_QP_WAITS_LINK;
	if (l->sq.settles)
		return HD_QP_WAITS_WINDOW;
	return l->sq.stalled_on ? HD_QP_WAITS_CREDIT : HD_QP_WAITS_ORDER;
}

struct hd_qp_view hd_qp_inspect(const struct hd_qp *p)
{
	return (struct hd_qp_view){ .state = p->life.state,
				    .status = p->life.status,
				    .waits = sq_waits(p),
				    .posted = p->life.sq.tail - p->life.sq.head,
				    .started = p->life.sq.next - p->life.sq.head,
				    .units = p->life.sq.units,
				    .ordered = p->life.sq.ordered,
				    .coming_in = p->life.lane.transfers,
				    .held_off = hd_holdoff_count(p),
				    .queued = hd_respq_count(p),
				    .rnr_wait = p->respq.rnr_wait.rq != NULL,
				    .due = p->respq.timer.due };
}
