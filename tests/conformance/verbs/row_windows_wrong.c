/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * MW: what must not be done with memory windows, ibv_alloc_mw(3), ibv_bind_mw(3), ibv_post_send(3).
 */
#include "mwt.h"

#include <errno.h>

enum wrong {
	NO_BIND_RIGHT,	/* the region does not permit windows */
	NO_LOCAL_WRITE, /* nor may it be written */
	ATOMIC_TOO,
	TOO_LONG,
	TOO_LOW,
	FOREIGN_REGION, /* of another domain */
	BOUND_TWICE,	/* type 2 */
	TO_NOTHING,	/* type 2 */
	INV_NOTHING,	/* to invalidate a key that is none */
	INV_REGION,	/* that of a region */
	INV_UNBOUND,
	INV_TYPE_1,
	WRONGS
};

static void do_wrong(struct mwt_owner *o, enum wrong wrong)
{
	struct ct_ep *e = &o->e;
	enum ibv_mw_type type = wrong < FOREIGN_REGION && wrong % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_mr *plain = ibv_reg_mr(e->pd, e->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *rdonly = ibv_reg_mr(e->pd, e->buf, 4096, IBV_ACCESS_MW_BIND);
	struct ibv_mr *foreign = ibv_reg_mr(pd, e->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = mwt_alloc(e, wrong == INV_TYPE_1 ? IBV_MW_TYPE_1 : type);
	struct ibv_mw_bind_info i = mwt_info(o, 0, 64, IBV_ACCESS_REMOTE_WRITE);

	if (wrong == BOUND_TWICE || wrong == INV_TYPE_1)
		mwt_bound(o, mw, 0, 64, IBV_ACCESS_REMOTE_WRITE);
	switch (wrong) {
	case NO_BIND_RIGHT:
		i.mr = plain;
		break;
	case NO_LOCAL_WRITE:
	case ATOMIC_TOO:
		i.mr = rdonly;
		i.mw_access_flags = wrong == ATOMIC_TOO ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_WRITE;
		break;
	case TOO_LONG:
		i.addr += VT_SIZE - 63;
		break;
	case TOO_LOW:
		i.addr -= 1;
		break;
	case FOREIGN_REGION:
		i.mr = foreign;
		break;
	case TO_NOTHING:
		i.length = 0;
		break;
	default:
		break;
	}
	if (wrong < INV_NOTHING)
		mwt_post_bind(e, mw, &i);
	else
		mwt_local_inv(e, wrong == INV_NOTHING  ? mw->rkey ^ 0x10000
				 : wrong == INV_REGION ? o->mr->rkey
						       : mw->rkey);
	vt_next(e, MWT_BIND, IBV_WC_MW_BIND_ERR);
	vt_send(e, 0, 8, 7);
	vt_next(e, 7, IBV_WC_WR_FLUSH_ERR);
	CT_EQ(e->ct, vt_state(e, e->qp), IBV_QPS_ERR);
	VT_OK(e->ct, ibv_dealloc_mw(mw));
	VT_OK(e->ct, ibv_dereg_mr(plain));
	VT_OK(e->ct, ibv_dereg_mr(rdonly));
	VT_OK(e->ct, ibv_dereg_mr(foreign));
	VT_OK(e->ct, ibv_dealloc_pd(pd));
}

static void wrongs(struct ct *ct)
{
	struct mwt_owner o;

	mwt_own(ct, &o, NULL);
	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		do_wrong(&o, wrong);
		mwt_renew(&o.e);
	}
	mwt_disown(&o);
}

/* A window of another domain, and a key that the other end may not take back: both ends fail. */
static void inv_wrong(struct ct *ct)
{
	struct mwt_owner o;

	mwt_own(ct, &o, NULL);
	for (int i = 0; i < 4; i++) {
		struct ibv_send_wr wr = vt_wr(&o.e, IBV_WR_SEND_WITH_INV, NULL, 2);
		struct ibv_mw *mw = mwt_alloc(&o.e, i == 0 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		struct mwt_window w = { 0, mw->rkey };

		if (ct->rank) {
			if (i < 2)
				w = mwt_bound(&o, mw, 0, 64, IBV_ACCESS_REMOTE_READ);
			w.rkey ^= i == 1   ? 0x1
				  : i == 3 ? 0x10000
					   : 0; /* 0 type 1, 1 an old key, 2 unbound, 3 none */
			vt_recv(&o.e, 0, 64, 1);
			vt_recv(&o.e, 0, 64, 3);
			ct_put(ct, 0, &w, sizeof(w));
			vt_next(&o.e, 1, IBV_WC_LOC_ACCESS_ERR);
			vt_next(&o.e, 3, IBV_WC_WR_FLUSH_ERR);
		} else {
			ct_get(ct, &o.e, 1, &w, sizeof(w));
			wr.invalidate_rkey = w.rkey;
			vt_post(&o.e, &wr);
			vt_next(&o.e, 2, IBV_WC_REM_ACCESS_ERR);
		}
		CT_EQ(ct, vt_state(&o.e, o.e.qp), IBV_QPS_ERR);
		VT_OK(ct, ibv_dealloc_mw(mw));
		mwt_renew(&o.e);
	}
	mwt_disown(&o);
}

/* What is refused at the call. */
static void refused(struct ct *ct)
{
	struct mwt_owner o;
	struct ibv_mw *one, *two;
	struct ibv_mw_bind bind = { .wr_id = MWT_BIND };
	struct ibv_send_wr wr = { .wr_id = MWT_BIND, .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_pd *pd;
	struct ibv_mw *foreign;

	mwt_own(ct, &o, NULL);
	VT_NULL(ct, ibv_alloc_mw(o.e.pd, 3), EINVAL);
	VT_NULL(ct, ibv_alloc_mw(o.e.pd, 0), EINVAL);
	pd = ibv_alloc_pd(o.e.context);
	foreign = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	CT_TRUE(ct, foreign);
	VT_ERR(ct, ibv_dealloc_pd(pd), EBUSY);
	one = mwt_alloc(&o.e, IBV_MW_TYPE_1);
	two = mwt_alloc(&o.e, IBV_MW_TYPE_2);
	bind.bind_info = wr.bind_mw.bind_info = mwt_info(&o, 0, 64, IBV_ACCESS_REMOTE_READ);
	VT_ERR(ct, ibv_bind_mw(o.e.qp, two, &bind), EINVAL);
	CT_TRUE(ct, ibv_bind_mw(o.e.qp, foreign, &bind) != 0);
	wr.bind_mw.mw = one;
	wr.bind_mw.rkey = ibv_inc_rkey(one->rkey);
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	CT_TRUE(ct, bad == &wr);
	wr.bind_mw.mw = two;
	wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	wr.send_flags = IBV_SEND_INLINE;
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	vt_to(&o.e, o.e.qp, IBV_QPS_RESET);
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	VT_ERR(ct, ibv_bind_mw(o.e.qp, one, &bind), EINVAL);
	vt_quiet(&o.e, 10, "nothing was posted");
	VT_OK(ct, ibv_dealloc_mw(one));
	VT_OK(ct, ibv_dealloc_mw(two));
	VT_OK(ct, ibv_dealloc_mw(foreign));
	VT_OK(ct, ibv_dealloc_pd(pd));
	mwt_disown(&o);
}

static void not_for_ud(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct mwt_owner o;
	struct ibv_send_wr wr, *bad;
	struct ibv_mw *mw;

	mwt_own(ct, &o, &want);
	mw = mwt_alloc(&o.e, IBV_MW_TYPE_2);
	wr = vt_wr(&o.e, IBV_WR_BIND_MW, NULL, 1);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = mwt_info(&o, 0, 64, 0);
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_LOCAL_INV;
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	VT_OK(ct, ibv_dealloc_mw(mw));
	mwt_disown(&o);
}

const struct ct_case vt_windows_wrong[] = { { "MW", "wrongs", { wrongs, wrongs }, .seconds = 120 },
					    { "MW", "inv-wrong", { inv_wrong, inv_wrong } },
					    { "MW", "refused", { refused, refused } },
					    { "MW", "not-for-ud", { not_for_ud, not_for_ud } },
					    { NULL } };
