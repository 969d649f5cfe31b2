/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests of a queue pair that bind memory windows and take them back: IBV_WR_BIND_MW,
 * IBV_WR_LOCAL_INV of ibv_post_send(3).
 */
#include "engine/mr/mr.h"
#include "engine/qp/qp.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

/* hd_op.extra */
struct bind_work {
	struct hd_binding what;
	bool begun; /* to be taken back: that has begun */
};

static int bind_here(struct hd_op *op)
{
	const struct bind_work *b = op->extra;

	return hd_window_change(op->t.ep, &b->what);
}

static int invalidate_here(struct hd_op *op)
{
	struct bind_work *b = op->extra;

	return hd_window_take_back(op->t.ep, b->what.key, &b->begun);
}

static void binding_free(struct hd_op *op)
{
	hd_bytes_put(&hd_rqs(op->t.ep->node)->bytes, op->extra, sizeof(struct bind_work));
}

static const struct hd_op_kind binds = { .cqe_flags = HD_C_LOCAL, .here = bind_here, .free = binding_free };
static const struct hd_op_kind invalidates = { .cqe_flags = HD_C_LOCAL,
					       .here = invalidate_here,
					       .free = binding_free };

static int window_post(struct hd_ep *ep, const struct hd_op_kind *kind, const struct hd_send_args *a,
		       const struct hd_binding *what)
{
	struct bind_work *b;
	struct hd_op *op;
	int rc;

	hd_assert_locked(ep->node);
	if (!(ep->policy & HD_EP_PAIRED))
		return -EINVAL;
	rc = hd_sq_room(ep);
	if (rc)
		return rc;
	b = hd_bytes_get(&hd_rqs(ep->node)->bytes, sizeof(*b));
	op = b ? hd_op_make(ep, hd_links(ep->node)->nobody, a) : NULL;
	if (!op) {
		if (b)
			hd_bytes_put(&hd_rqs(ep->node)->bytes, b, sizeof(*b));
		return -EAGAIN;
	}
	*b = (struct bind_work){ .what = *what };
	hd_op_set_extra(op, b);
	hd_op_set_kind(op, kind);
	return hd_sq_post(op);
}

int hd_window_bind(struct hd_ep *ep, const struct hd_bind_args *args)
{
	const struct hd_send_args a = { .tag = args->tag, .ctx = args->ctx, .flags = args->flags };
	const struct hd_binding b = { .key = args->key,
				      .region = args->region ? args->region->key : 0,
				      .to_nothing = !args->region || !args->len,
				      .addr = args->addr,
				      .len = args->len,
				      .access = args->access,
				      .from_zero = args->from_zero };

	return window_post(ep, &binds, &a, &b);
}

int hd_window_invalidate(struct hd_ep *ep, const struct hd_bind_args *args)
{
	const struct hd_send_args a = { .tag = args->tag, .ctx = args->ctx, .flags = args->flags };
	const struct hd_binding b = { .key = args->key };

	return window_post(ep, &invalidates, &a, &b);
}
