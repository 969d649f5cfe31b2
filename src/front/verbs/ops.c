/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The tables of functions in a context: one for every day, and one for a forked child, where nearly
 * every object of ours is dead.
 */
#include "front/verbs/ops.h"

#include <errno.h>

/* ---- a forked child -------------------------------------------------------------------------- */

#define HV_OP_INT(member, params, args) \
	static int dead_##member params \
	{ \
		return hv_tell(EIO); \
	}
#define HV_OP_PTR(ret, member, params) \
	static ret dead_##member params \
	{ \
		return hv_fail(EIO); \
	}
#include "front/verbs/ops.def"
#undef HV_OP_INT
#undef HV_OP_PTR

static int dead_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	return -1;
}

static int dead_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return hv_tell(EIO);
}

static int dead_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return hv_tell(EIO);
}

static int dead_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return hv_tell(EIO);
}

static int dead_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return hv_tell(EIO);
}

static struct ibv_mw *dead_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return hv_fail(EIO);
}

static int dead_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return hv_tell(EIO);
}

static int dead_dealloc_mw(struct ibv_mw *mw)
{
	return hv_tell(EIO);
}

/* ---- the others: an error number stands in errno as well ------------------------------------- */

#define HV_OP_INT(member, params, args) \
	static int told_##member params \
	{ \
		return hv_tell(hv_##member args); \
	}
#define HV_OP_PTR(ret, member, params)
#include "front/verbs/ops.def"
#undef HV_OP_INT
#undef HV_OP_PTR

static int told_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return hv_tell(hv_bind_mw(qp, mw, bind));
}

static int told_dealloc_mw(struct ibv_mw *mw)
{
	return hv_tell(hv_dealloc_mw(mw));
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct ibv_context_ops live_ops = {
	.poll_cq = hv_poll_cq,
	.req_notify_cq = hv_req_notify_cq,
	.post_send = hv_post_send,
	.post_recv = hv_post_recv,
	.post_srq_recv = hv_post_srq_recv,
	.alloc_mw = hv_alloc_mw,
	.bind_mw = told_bind_mw,
	.dealloc_mw = told_dealloc_mw,
};

static const struct ibv_context_ops dead_ops = {
	.poll_cq = dead_poll_cq,
	.req_notify_cq = dead_req_notify_cq,
	.post_send = dead_post_send,
	.post_recv = dead_post_recv,
	.post_srq_recv = dead_post_srq_recv,
	.alloc_mw = dead_alloc_mw,
	.bind_mw = dead_bind_mw,
	.dealloc_mw = dead_dealloc_mw,
};

void hv_fill_ops(struct hv_context *ctx, bool dead)
{
	struct verbs_context *v = &ctx->pub;

	v->context.ops = dead ? dead_ops : live_ops;
#define HV_OP_INT(member, params, args) v->member = dead ? dead_##member : told_##member;
#define HV_OP_PTR(ret, member, params) v->member = dead ? dead_##member : hv_##member;
#include "front/verbs/ops.def"
#undef HV_OP_INT
#undef HV_OP_PTR
}

/* What needs no node stays: query.c, dm.c. */
void hv_fork_ops(struct hv_context *ctx)
{
	hv_fill_ops(ctx, true);
	ctx->pub.query_device_ex = told_query_device_ex;
	ctx->pub.query_port = told_query_port;
	ctx->pub.query_rt_values = told_query_rt_values;
	ctx->pub.alloc_dm = hv_alloc_dm;
	ctx->pub.free_dm = told_free_dm;
}
