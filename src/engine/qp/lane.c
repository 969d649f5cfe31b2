/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages and writes that come in for a queue pair at the same time: each has its place, by the order in which they came, and ends in
 * it. The data of writes, which may overlap, comes in this order as well: their sender sees to that (frames.c).
 */
#include "engine/link/peer.h"
#include "engine/qp/qp.h"
#include "engine/rq/recv.h"
#include "engine/xfer/op.h"
#include "engine/xfer/rndv.h"

static struct hd_op **lane_at(struct hd_qp *p, uint32_t seq)
{
	return &p->lane[seq % HD_LANE_WIDTH];
}

/* The first one that is coming in, if it is here already. */
static struct hd_op *first_here(struct hd_qp *p)
{
	struct hd_op *op = p->lane_first != p->lane_next ? *lane_at(p, p->lane_first) : NULL;

	return op && op->answered ? op : NULL;
}

void hd_lane_begin(struct hd_op *op)
{
	struct hd_qp *p = op->ep->qp;

	p->transfers++;
	op->before = p->lane_next++;
	*lane_at(p, op->before) = op;
}

bool hd_lane_lets(const struct hd_qp *p, bool a_write)
{
	if (p->lane_next - p->lane_first >= HD_LANE_WIDTH || (!p->lossy && !STAILQ_EMPTY(&p->held_off)))
		return false;
	for (uint32_t seq = p->lane_first; seq != p->lane_next; seq++) {
		const struct hd_op *op = p->lane[seq % HD_LANE_WIDTH];

		if (op &&
		    (op->pending.peer != p->dest->peer || /* that one has gone, and another has its name */
		     (op->kind != &hd_qp_receives && op->cqe_flags & HD_PKT_F_IMM) ||
		     (a_write && op->state == HD_OP_PULL)))
			return false;
	}
	return true;
}

void hd_lane_end(struct hd_op *op)
{
	struct hd_qp *p = op->ep->qp;

	if (!--p->transfers)
		p->lane_err = 0;
	*lane_at(p, op->before) = NULL;
	while (p->lane_first != p->lane_next && !*lane_at(p, p->lane_first))
		p->lane_first++;
	if (!TAILQ_EMPTY(&p->held) || first_here(p))
		hd_qp_kick(p);
}

/* Nothing is received behind something that has failed; its sender, who may not know of that, is told. */
static void lane_fail(struct hd_qp *p, struct hd_op *op, int *err)
{
	if (!*err && p->lane_err) {
		*err = p->lane_err;
		hd_answer_op(op->pending.peer, HD_PKT_FIN, op->remote, ECONNREFUSED);
	}
	if (!p->lossy)
		p->lane_err = *err;
}

bool hd_lane_turn(struct hd_op *op, int *err)
{
	struct hd_qp *p = op->ep->qp;

	if (op->before == p->lane_first) {
		lane_fail(p, op, err);
		return true;
	}
	op->answered = true;
	op->answer = *err;
	return false;
}

void hd_lane_finish(struct hd_qp *p)
{
	struct hd_op *op;

	while ((op = first_here(p)))
		hd_recv_op_done(op, op->answer);
}
