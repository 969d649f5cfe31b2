/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Operations that their front knows to be wrong: they take their turn like others, and complete in error when it comes. */
#include "engine/qp/qp.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

static int here(struct hd_op *op)
{
	return op->t.status;
}

const struct hd_op_kind hd_failed_kind = { .cqe_flags = HD_C_SEND | HD_C_MSG, .here = here };

/* An unpaired queue pair: all that it has sent is over. Its front sees to what it is given from now on. */
static int alone(struct hd_ep *ep, const struct hd_failed_args *args)
{
	const struct hd_send_args behind = { .tag = args->tag, .ctx = args->ctx, .flags = HD_SEND_ORDERED };
	struct hd_op *op = ep->tx->ops ? hd_op_make(ep, hd_links(ep->node)->nobody, &behind) : NULL;
	const struct hd_cqe e = { .ctx = args->ctx,
				  .tag = args->tag,
				  .ep = ep->index,
				  .flags = hd_failed_kind.cqe_flags,
				  .err = args->status };

	if (op) {
		hd_seat_done(op, hd_failed_kind.cqe_flags, args->status);
		hd_op_free(op);
	} else {
		hd_cq_post(ep->tx_cq, &e);
	}
	if (hd_qp_may(ep->qp, HD_QP_STEP_SQE))
		hd_qp_step(ep->qp, HD_QP_STEP_SQE);
	return 0;
}

int hd_send_failed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_failed_args *args)
{
	const struct hd_send_args a = { .tag = args->tag, .ctx = args->ctx, .flags = args->flags };
	struct hd_op *op;
	int rc;

	hd_assert_locked(ep->node);
	if (ep->qp && !ep->qp->wqes)
		return alone(ep, args);
	rc = hd_op_room(ep, dest);
	if (rc)
		return rc;
	op = hd_op_make(ep, dest, &a);
	if (!op)
		return -EAGAIN;
	op->kind = &hd_failed_kind;
	op->t.status = args->status;
	return hd_op_post(op);
}
