/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Operations that their front knows to be wrong: they take their turn like others, and complete in error when it comes. */
#include "engine/pair.h"

#include <errno.h>

static int start(struct hd_op *op)
{
	int err = (int)op->imm;

	hd_op_under(op, HD_OP_ACK);
	hd_op_done(op, err);
	return 0;
}

static const struct hd_op_kind failed_kind = { .cqe_flags = HD_C_SEND | HD_C_MSG, .start = start };

/* An unpaired queue pair: all that it has sent is over. */
static int alone(struct hd_ep *ep, const struct hd_failed_args *args)
{
	const struct hd_cqe e = { .ctx = args->ctx,
				  .tag = args->tag,
				  .ep = ep->index,
				  .flags = failed_kind.cqe_flags,
				  .err = args->err };

	hd_cq_post(ep->tx_cq, &e);
	hd_ep_fail(ep);
	return 0;
}

int hd_send_failed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_failed_args *args)
{
	const struct hd_send_args a = {
		.imm = (uint64_t)args->err, .tag = args->tag, .ctx = args->ctx, .flags = args->flags
	};
	struct hd_op *op;
	int rc;

	hd_assert_locked(ep->node);
	if (ep->pair && !ep->pair->slots)
		return alone(ep, args);
	rc = hd_op_room(ep, dest);
	if (rc)
		return rc;
	op = hd_op_make(ep, dest, &a);
	if (!op)
		return -EAGAIN;
	op->kind = &failed_kind;
	return hd_op_post(op);
}
