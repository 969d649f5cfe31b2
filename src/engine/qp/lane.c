/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages and writes that come in for a queue pair at the same time: each has its turn, by the order in which they came, and ends in
 * it. The data of writes, which may overlap, comes in this order as well: their sender sees to that (frames.c).
 */
#include "engine/link/peer.h"
#include "engine/qp/qp.h"
#include "engine/rq/recv.h"
#include "engine/xfer/op.h"
#include "engine/xfer/rndv.h"

static struct hd_op **coming(struct hd_qp *p, uint32_t turn)
{
	return &p->coming[turn % HD_QP_COMING];
}

/* The first one that is coming in, if it is here already. */
static struct hd_op *first_here(struct hd_qp *p)
{
	struct hd_op *op = p->turn_first != p->turn_next ? *coming(p, p->turn_first) : NULL;

	return op && op->answered ? op : NULL;
}

void hd_lane_begin(struct hd_op *op)
{
	struct hd_qp *p = op->ep->qp;

	p->transfers++;
	op->before = p->turn_next++;
	*coming(p, op->before) = op;
}

bool hd_lane_lets(const struct hd_qp *p, bool a_write)
{
	if (p->turn_next - p->turn_first >= HD_QP_COMING || (!p->lossy && !STAILQ_EMPTY(&p->late)))
		return false;
	for (uint32_t turn = p->turn_first; turn != p->turn_next; turn++) {
		const struct hd_op *op = p->coming[turn % HD_QP_COMING];

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
		p->spoiled = 0;
	*coming(p, op->before) = NULL;
	while (p->turn_first != p->turn_next && !*coming(p, p->turn_first))
		p->turn_first++;
	if (!TAILQ_EMPTY(&p->held) || first_here(p))
		hd_qp_kick(p);
}

/* Nothing is received behind something that has failed; its sender, who may not know of that, is told. */
static void spoiled(struct hd_qp *p, struct hd_op *op, int *err)
{
	if (!*err && p->spoiled) {
		*err = p->spoiled;
		hd_answer_op(op->pending.peer, HD_PKT_FIN, op->remote, ECONNREFUSED);
	}
	if (!p->lossy)
		p->spoiled = *err;
}

bool hd_lane_turn(struct hd_op *op, int *err)
{
	struct hd_qp *p = op->ep->qp;

	if (op->before == p->turn_first) {
		spoiled(p, op, err);
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
