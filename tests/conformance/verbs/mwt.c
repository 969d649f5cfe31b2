/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "mwt.h"

void mwt_need(struct ct *ct, struct ct_ep *e)
{
	struct ibv_device_attr attr;

	VT_OK(ct, ibv_query_device(e->context, &attr));
	if (!attr.max_mw || !(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		ct_unsupported(ct, "no memory windows of type 2B");
}

void mwt_own(struct ct *ct, struct mwt_owner *o, const struct vt_want *want)
{
	vt_start(ct, &o->e, want);
	mwt_need(ct, &o->e);
	o->mr = ibv_reg_mr(o->e.pd, o->e.buf, VT_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	CT_TRUE(ct, o->mr);
}

void mwt_disown(struct mwt_owner *o)
{
	VT_OK(o->e.ct, ibv_dereg_mr(o->mr));
	vt_finish(&o->e);
}

struct ibv_mw *mwt_alloc(struct ct_ep *e, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, type);

	CT_TRUE(e->ct, mw);
	CT_TRUE(e->ct, mw->context == e->context && mw->pd == e->pd && mw->type == type && mw->rkey);
	return mw;
}

struct ibv_mw_bind_info mwt_info(const struct mwt_owner *o, size_t at, size_t len, unsigned access)
{
	return (struct ibv_mw_bind_info){ o->mr, (uintptr_t)o->e.buf + at, len, access };
}

uint32_t mwt_post_bind(struct ct_ep *e, struct ibv_mw *mw, const struct ibv_mw_bind_info *i)
{
	struct ibv_mw_bind bind = { .wr_id = MWT_BIND, .send_flags = IBV_SEND_SIGNALED, .bind_info = *i };
	struct ibv_send_wr wr = { .wr_id = MWT_BIND,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED,
				  .bind_mw = { mw, ibv_inc_rkey(mw->rkey), *i } };
	uint32_t old = mw->rkey;

	if (mw->type == IBV_MW_TYPE_1) {
		VT_OK(e->ct, ibv_bind_mw(e->qp, mw, &bind));
	} else {
		vt_post(e, &wr);
		mw->rkey = wr.bind_mw.rkey;
	}
	CT_TRUE(e->ct, mw->rkey != old && mw->rkey >> 8 == old >> 8);
	return mw->rkey;
}

void mwt_done(struct ct_ep *e, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	vt_any(e, &wc);
	CT_EQ(e->ct, wc.wr_id, MWT_BIND);
	CT_EQ(e->ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(e->ct, wc.opcode, opcode);
}

struct mwt_window mwt_bound(struct mwt_owner *o, struct ibv_mw *mw, size_t at, size_t len, unsigned access)
{
	const struct ibv_mw_bind_info i = mwt_info(o, at, len, access);
	const struct mwt_window w = { access & IBV_ACCESS_ZERO_BASED ? 0 : i.addr,
				      mwt_post_bind(&o->e, mw, &i) };

	mwt_done(&o->e, IBV_WC_BIND_MW);
	return w;
}

void mwt_local_inv(struct ct_ep *e, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = MWT_BIND,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = rkey };

	vt_post(e, &wr);
}

void mwt_renew(struct ct_ep *e)
{
	vt_to(e, e->qp, IBV_QPS_RESET);
	ct_sync(e->ct, e);
	vt_connect(e, e->qp, &e->peer[!e->ct->rank]);
	ct_sync(e->ct, e);
}

void mwt_touch(struct ct_ep *e, enum ibv_wr_opcode op, const struct mwt_window *w, uint64_t at, uint32_t len,
	       enum ibv_wc_status status)
{
	struct ibv_sge sge = vt_sge(e, 0, len);
	struct ibv_send_wr wr = vt_wr(e, op, &sge, 1);

	if (op >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = w->addr + at;
		wr.wr.atomic.rkey = w->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = w->addr + at;
		wr.wr.rdma.rkey = w->rkey;
	}
	vt_post(e, &wr);
	vt_next(e, 1, status);
}
