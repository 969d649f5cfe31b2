/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Operations that their front knows to be wrong: they take their turn like others, and
 * complete in error when it comes.
 */
#include "engine/qp/qp.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

static int here(struct hd_op *op)
{
	return op->t.status;
}

const struct hd_op_kind hd_failed_kind = { .cqe_flags = HD_C_SEND | HD_C_MSG, .here = here };

int hd_send_failed(struct hd_ep *ep, struct hd_dest *dest, const struct hd_failed_args *args)
{
	const struct hd_send_args a = { .tag = args->tag, .ctx = args->ctx, .flags = args->flags };
	struct hd_op *op;
	int rc;

	hd_assert_locked(ep->node);
	if (ep->poster == &hd_ud_poster)
		return hd_ud_failed(ep, args);
	rc = hd_op_room(ep, dest);
	if (rc)
		return rc;
	op = hd_op_make(ep, dest, &a);
	if (!op)
		return -EAGAIN;
	hd_op_set_kind(op, &hd_failed_kind);
	hd_transfer_set_status(&op->t, args->status);
	return hd_op_post(op);
}
