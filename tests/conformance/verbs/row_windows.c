/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* MW: memory windows, ibv_alloc_mw(3), ibv_bind_mw(3), and the work requests of ibv_post_send(3) that have to do with them. */
#include "vt.h"

#include <errno.h>
#include <string.h>

#define AT 4096		/* where windows begin in the buffer */
#define BIND 100	/* wr_id of what changes windows */
#define BEYOND (700000) /* a place that no window here has */

/* The owner of the windows is rank 1. Its region gives no right to others: windows do. */
struct owner {
	struct ct_ep e;
	struct ibv_mr *mr;
};

/* What the other rank is told of one. */
struct window {
	uint64_t addr;
	uint32_t rkey;
};

static void need_windows(struct ct *ct, struct ct_ep *e)
{
	struct ibv_device_attr attr;

	VT_OK(ct, ibv_query_device(e->context, &attr));
	if (!attr.max_mw || !(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		ct_unsupported(ct, "no memory windows of type 2B");
}

static void own(struct ct *ct, struct owner *o, const struct vt_want *want)
{
	vt_start(ct, &o->e, want);
	need_windows(ct, &o->e);
	o->mr = ibv_reg_mr(o->e.pd, o->e.buf, VT_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	CT_TRUE(ct, o->mr);
}

static void disown(struct owner *o)
{
	VT_OK(o->e.ct, ibv_dereg_mr(o->mr));
	vt_finish(&o->e);
}

static struct ibv_mw *alloc(struct ct_ep *e, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, type);

	CT_TRUE(e->ct, mw);
	CT_TRUE(e->ct, mw->context == e->context && mw->pd == e->pd && mw->type == type && mw->rkey);
	return mw;
}

static struct ibv_mw_bind_info info(const struct owner *o, size_t at, size_t len, unsigned access)
{
	return (struct ibv_mw_bind_info){ o->mr, (uintptr_t)o->e.buf + at, len, access };
}

/* Posts it, by the call or the work request that its type has. The key that it gets. */
static uint32_t post_bind(struct ct_ep *e, struct ibv_mw *mw, const struct ibv_mw_bind_info *i)
{
	struct ibv_mw_bind bind = { .wr_id = BIND, .send_flags = IBV_SEND_SIGNALED, .bind_info = *i };
	struct ibv_send_wr wr = { .wr_id = BIND,
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

static void done(struct ct_ep *e, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	vt_any(e, &wc);
	CT_EQ(e->ct, wc.wr_id, BIND);
	CT_EQ(e->ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(e->ct, wc.opcode, opcode);
}

static struct window bound(struct owner *o, struct ibv_mw *mw, size_t at, size_t len, unsigned access)
{
	const struct ibv_mw_bind_info i = info(o, at, len, access);
	const struct window w = { access & IBV_ACCESS_ZERO_BASED ? 0 : i.addr, post_bind(&o->e, mw, &i) };

	done(&o->e, IBV_WC_BIND_MW);
	return w;
}

static void local_inv(struct ct_ep *e, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = BIND,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = rkey };

	vt_post(e, &wr);
}

/* Both queue pairs are as new. */
static void renew(struct ct_ep *e)
{
	vt_to(e, e->qp, IBV_QPS_RESET);
	ct_sync(e->ct, e);
	vt_connect(e, e->qp, &e->peer[!e->ct->rank]);
	ct_sync(e->ct, e);
}

/* Rank 0: an operation on the window, at this place of it. */
static void touch(struct ct_ep *e, enum ibv_wr_opcode op, const struct window *w, uint64_t at, uint32_t len,
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

/* ---- what a window opens --------------------------------------------------------------------------------------------------- */

struct probe {
	unsigned access;
	enum ibv_wr_opcode op;
	int64_t at; /* negative: from the window's end */
	uint32_t len;
	bool allowed;
};

static const struct probe probes[] = {
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, 0, 8, true },
	{ IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE, IBV_WR_RDMA_WRITE, 0, 8, true },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, -8, 8, true },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, -8, 9, false },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, 0, 0, true },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, BEYOND, 8, false },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 8, false },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, false },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, 8, 500, true },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, -500, 501, false },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 8, false },
	{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, true },
	{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_CMP_AND_SWP, BEYOND, 8, false },
	{ IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, IBV_WR_RDMA_WRITE, 0, 8, true },
	{ IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, IBV_WR_RDMA_WRITE, -8, 9, false },
	{ 0, IBV_WR_RDMA_READ, 0, 8, false },
};

static uint64_t place(const struct probe *p, size_t len)
{
	return p->at < 0 ? len + (uint64_t)p->at : (uint64_t)p->at;
}

static void offer(struct owner *o, const struct probe *p, size_t len)
{
	struct ct_ep *e = &o->e;
	struct ibv_mw *mw = alloc(e, e->ct->cs->arg);
	uint64_t at = AT + place(p, len);
	struct window w;

	memset(e->buf, 0x55, VT_SIZE);
	w = bound(o, mw, AT, len, p->access);
	ct_put(e->ct, 0, &w, sizeof(w));
	ct_sync(e->ct, e);
	if (!p->allowed || p->op == IBV_WR_RDMA_READ || !p->len) {
		CT_TRUE(e->ct, ct_untouched(e->buf, VT_SIZE, 0x55));
	} else {
		CT_TRUE(e->ct, ct_untouched(e->buf, at, 0x55) &&
				       ct_untouched(e->buf + at + p->len, VT_SIZE - at - p->len, 0x55));
		CT_TRUE(e->ct, !ct_untouched(e->buf + at, p->len, 0x55));
	}
	if (p->allowed)
		CT_EQ(e->ct, vt_state(e, e->qp), IBV_QPS_RTS);
	VT_OK(e->ct, ibv_dealloc_mw(mw)); /* bound as it is */
}

static void rights_owner(struct ct *ct)
{
	static const size_t lens[] = { 1000, 300000 };
	struct owner o;

	own(ct, &o, NULL);
	for (size_t l = 0; l < CT_COUNT(lens); l++)
		for (size_t i = 0; i < CT_COUNT(probes); i++) {
			offer(&o, &probes[i], lens[l]);
			renew(&o.e);
		}
	disown(&o);
}

static void rights(struct ct *ct)
{
	static const size_t lens[] = { 1000, 300000 };
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	need_windows(ct, &e);
	for (size_t l = 0; l < CT_COUNT(lens); l++)
		for (size_t i = 0; i < CT_COUNT(probes); i++) {
			const struct probe *p = &probes[i];
			struct window w;

			memset(e.buf, 0xaa, VT_SIZE);
			ct_get(ct, &e, 1, &w, sizeof(w));
			touch(&e, p->op, &w, place(p, lens[l]), p->len,
			      p->allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
			ct_sync(ct, &e);
			renew(&e);
		}
	vt_finish(&e);
}

/* ---- its life ---------------------------------------------------------------------------------------------------------------- */

#define LONG 200000

/* Ways to take it away; after each its old key opens nothing. */
enum end {
	REBOUND,   /* type 1: to another part; the new key opens that */
	EMPTIED,   /* type 1: to nothing */
	LOCAL_INV, /* type 2 */
	SENT_INV,  /* type 2: by the other end */
	DEALLOCATED,
	ENDS
};

static enum ibv_mw_type type_of(enum end end)
{
	return end <= EMPTIED ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
}

static void end_it(struct owner *o, struct ibv_mw **mw, enum end end)
{
	struct ibv_mw_bind_info i = info(o, AT, 0, 0);
	struct ibv_wc wc;

	switch (end) {
	case REBOUND:
		i = info(o, BEYOND, LONG, IBV_ACCESS_REMOTE_WRITE);
		/* fall through */
	case EMPTIED:
		post_bind(&o->e, *mw, &i);
		done(&o->e, IBV_WC_BIND_MW);
		return;
	case LOCAL_INV:
		local_inv(&o->e, (*mw)->rkey);
		done(&o->e, IBV_WC_LOCAL_INV);
		return;
	case SENT_INV:
		vt_done(&o->e, 9, &wc);
		CT_EQ(o->e.ct, wc.wc_flags & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM), IBV_WC_WITH_INV);
		CT_EQ(o->e.ct, wc.invalidated_rkey, (*mw)->rkey);
		return;
	default:
		VT_OK(o->e.ct, ibv_dealloc_mw(*mw));
		*mw = NULL;
	}
}

static void life_owner(struct ct *ct)
{
	struct owner o;

	own(ct, &o, NULL);
	for (enum end end = 0; end < ENDS; end++)
		for (uint32_t len = 8; len <= LONG; len += LONG - 8) {
			struct ibv_mw *mw = alloc(&o.e, type_of(end));
			struct window w = bound(&o, mw, AT, LONG, IBV_ACCESS_REMOTE_WRITE);

			if (end == SENT_INV)
				vt_recv(&o.e, BEYOND, LONG, 9);
			VT_ERR(ct, ibv_dereg_mr(o.mr), EBUSY);
			ct_put(ct, 0, &w, sizeof(w));
			ct_sync(ct, &o.e);
			end_it(&o, &mw, end);
			memset(o.e.buf, 0x55, VT_SIZE);
			w.rkey = mw ? mw->rkey : 0;
			w.addr = (uintptr_t)o.e.buf + BEYOND;
			ct_put(ct, 0, &w, sizeof(w));
			ct_sync(ct, &o.e);
			CT_TRUE(ct, ct_untouched(o.e.buf, BEYOND, 0x55));
			CT_EQ(ct, ct_untouched(o.e.buf + BEYOND, len, 0x55), end != REBOUND);
			if (mw)
				VT_OK(ct, ibv_dealloc_mw(mw));
			renew(&o.e);
		}
	disown(&o);
}

static void life(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	need_windows(ct, &e);
	memset(e.buf, 0xaa, VT_SIZE);
	for (enum end end = 0; end < ENDS; end++)
		for (uint32_t len = 8; len <= LONG; len += LONG - 8) {
			struct ibv_sge sge = vt_sge(&e, 0, len);
			struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND_WITH_INV, &sge, 2);
			struct window w, next;

			ct_get(ct, &e, 1, &w, sizeof(w));
			touch(&e, IBV_WR_RDMA_WRITE, &w, 0, len, IBV_WC_SUCCESS);
			ct_sync(ct, &e);
			wr.invalidate_rkey = w.rkey;
			if (end == SENT_INV) {
				vt_post(&e, &wr);
				vt_next(&e, 2, IBV_WC_SUCCESS);
			}
			ct_get(ct, &e, 1, &next, sizeof(next));
			if (end == REBOUND)
				touch(&e, IBV_WR_RDMA_WRITE, &next, 0, len, IBV_WC_SUCCESS);
			touch(&e, IBV_WR_RDMA_WRITE, &w, 0, len, IBV_WC_REM_ACCESS_ERR);
			ct_sync(ct, &e);
			renew(&e);
		}
	vt_finish(&e);
}

/* ---- whose it is ------------------------------------------------------------------------------------------------------------- */

/* A second pair of queue pairs in the same domains: type 1 is reached through any, type 2 through the one that it was bound through. */
static struct ibv_qp *second(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct ibv_qp *qp = vt_qp(e);
	struct vt_name me = e->me, to;

	me.qpn = qp->qp_num;
	ct_put(ct, !ct->rank, &me, sizeof(me));
	ct_get(ct, e, !ct->rank, &to, sizeof(to));
	vt_connect(e, qp, &to);
	ct_sync(ct, e);
	return qp;
}

static void whose(struct ct *ct)
{
	enum ibv_mw_type type = ct->cs->arg;
	struct owner o;
	struct ibv_qp *first, *other;
	struct ibv_mw *mw;
	struct window w;

	if (ct->rank) {
		own(ct, &o, NULL);
	} else {
		vt_start(ct, &o.e, NULL);
		need_windows(ct, &o.e);
	}
	first = o.e.qp;
	other = second(&o.e);
	if (ct->rank) {
		mw = alloc(&o.e, type);
		w = bound(&o, mw, AT, LONG, IBV_ACCESS_REMOTE_WRITE);
		ct_put(ct, 0, &w, sizeof(w));
		ct_sync(ct, &o.e);
		VT_OK(ct, ibv_destroy_qp(other));
		if (type == IBV_MW_TYPE_2) { /* it goes with its queue pair, and no longer holds the region */
			VT_OK(ct, ibv_destroy_qp(first));
			o.e.qp = NULL;
			VT_OK(ct, ibv_dereg_mr(o.mr));
			VT_OK(ct, ibv_dealloc_mw(mw));
			vt_finish(&o.e);
			return;
		}
		VT_OK(ct, ibv_dealloc_mw(mw));
		disown(&o);
		return;
	}
	ct_get(ct, &o.e, 1, &w, sizeof(w));
	touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, LONG, IBV_WC_SUCCESS);
	o.e.qp = other;
	touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, LONG,
	      type == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	o.e.qp = first;
	touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, 8, IBV_WC_SUCCESS);
	VT_OK(ct, ibv_destroy_qp(other));
	ct_sync(ct, &o.e);
	vt_finish(&o.e);
}

/* ---- what must not be ---------------------------------------------------------------------------------------------------------- */

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

static void do_wrong(struct owner *o, enum wrong wrong)
{
	struct ct_ep *e = &o->e;
	enum ibv_mw_type type = wrong < FOREIGN_REGION && wrong % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_mr *plain = ibv_reg_mr(e->pd, e->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *rdonly = ibv_reg_mr(e->pd, e->buf, 4096, IBV_ACCESS_MW_BIND);
	struct ibv_mr *foreign = ibv_reg_mr(pd, e->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = alloc(e, wrong == INV_TYPE_1 ? IBV_MW_TYPE_1 : type);
	struct ibv_mw_bind_info i = info(o, 0, 64, IBV_ACCESS_REMOTE_WRITE);

	if (wrong == BOUND_TWICE || wrong == INV_TYPE_1)
		bound(o, mw, 0, 64, IBV_ACCESS_REMOTE_WRITE);
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
		post_bind(e, mw, &i);
	else
		local_inv(e, wrong == INV_NOTHING  ? mw->rkey ^ 0x10000
			     : wrong == INV_REGION ? o->mr->rkey
						   : mw->rkey);
	vt_next(e, BIND, IBV_WC_MW_BIND_ERR);
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
	struct owner o;

	own(ct, &o, NULL);
	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		do_wrong(&o, wrong);
		renew(&o.e);
	}
	disown(&o);
}

/* A window of another domain, and a key that the other end may not take back: both ends fail. */
static void inv_wrong(struct ct *ct)
{
	struct owner o;

	own(ct, &o, NULL);
	for (int i = 0; i < 4; i++) {
		struct ibv_send_wr wr = vt_wr(&o.e, IBV_WR_SEND_WITH_INV, NULL, 2);
		struct ibv_mw *mw = alloc(&o.e, i == 0 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		struct window w = { 0, mw->rkey };

		if (ct->rank) {
			if (i < 2)
				w = bound(&o, mw, 0, 64, IBV_ACCESS_REMOTE_READ);
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
		renew(&o.e);
	}
	disown(&o);
}

/* What is refused at the call. */
static void refused(struct ct *ct)
{
	struct owner o;
	struct ibv_mw *one, *two;
	struct ibv_mw_bind bind = { .wr_id = BIND };
	struct ibv_send_wr wr = { .wr_id = BIND, .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_pd *pd;
	struct ibv_mw *foreign;

	own(ct, &o, NULL);
	VT_NULL(ct, ibv_alloc_mw(o.e.pd, 3), EINVAL);
	VT_NULL(ct, ibv_alloc_mw(o.e.pd, 0), EINVAL);
	pd = ibv_alloc_pd(o.e.context);
	foreign = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	CT_TRUE(ct, foreign);
	VT_ERR(ct, ibv_dealloc_pd(pd), EBUSY);
	one = alloc(&o.e, IBV_MW_TYPE_1);
	two = alloc(&o.e, IBV_MW_TYPE_2);
	bind.bind_info = wr.bind_mw.bind_info = info(&o, 0, 64, IBV_ACCESS_REMOTE_READ);
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
	disown(&o);
}

static void not_for_ud(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct owner o;
	struct ibv_send_wr wr, *bad;
	struct ibv_mw *mw;

	own(ct, &o, &want);
	mw = alloc(&o.e, IBV_MW_TYPE_2);
	wr = vt_wr(&o.e, IBV_WR_BIND_MW, NULL, 1);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = info(&o, 0, 64, 0);
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_LOCAL_INV;
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	VT_ERR(ct, ibv_post_send(o.e.qp, &wr, &bad), EINVAL);
	VT_OK(ct, ibv_dealloc_mw(mw));
	disown(&o);
}

/* ---- order --------------------------------------------------------------------------------------------------------------------- */

#define ROUNDS 50

/* Bind, tell the other end of the key by a message right behind it, get it back with the message that invalidates: no wait in between. */
static void order_owner(struct ct *ct)
{
	const struct vt_want want = { .sig_none = 1 };
	struct ibv_mw *mw;
	struct owner o;

	own(ct, &o, &want);
	mw = alloc(&o.e, IBV_MW_TYPE_2);
	vt_recv(&o.e, BEYOND, 64, 9);
	ct_sync(ct, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t len = i % 2 ? LONG : 64;
		struct window w = { (uintptr_t)o.e.buf + AT, ibv_inc_rkey(mw->rkey) };
		struct ibv_sge sge = vt_sge(&o.e, 0, sizeof(w));
		struct ibv_send_wr tell = vt_wr(&o.e, IBV_WR_SEND, &sge, 1);
		struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW,
					    .next = &tell,
					    .bind_mw = { mw, w.rkey,
							 info(&o, AT, len, IBV_ACCESS_REMOTE_WRITE) } };
		struct ibv_wc wc;

		memcpy(o.e.buf, &w, sizeof(w));
		tell.send_flags = IBV_SEND_INLINE | (i % 8 == 7 ? IBV_SEND_SIGNALED : 0);
		vt_post(&o.e, &bind);
		mw->rkey = w.rkey;
		vt_done(&o.e, 9, &wc);
		CT_EQ(ct, wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
		CT_EQ(ct, wc.invalidated_rkey, w.rkey);
		ct_verify(ct, o.e.buf + AT, len, (uint64_t)i, "written through the window");
		if (i % 8 == 7)
			vt_done(&o.e, 1, NULL);
		vt_recv(&o.e, BEYOND, 64, 9);
	}
	VT_OK(ct, ibv_dealloc_mw(mw));
	disown(&o);
}

static void order(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	need_windows(ct, &e);
	vt_recv(&e, BEYOND, 64, 9);
	ct_sync(ct, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge = vt_sge(&e, 0, i % 2 ? LONG : 64);
		struct ibv_send_wr write = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);
		struct ibv_send_wr inv = vt_wr(&e, IBV_WR_SEND_WITH_INV, NULL, 2);
		struct window w;

		vt_done(&e, 9, NULL);
		memcpy(&w, e.buf + BEYOND, sizeof(w));
		vt_recv(&e, BEYOND, 64, 9);
		ct_fill(e.buf, sge.length, (uint64_t)i);
		write.wr.rdma.remote_addr = w.addr;
		write.wr.rdma.rkey = inv.invalidate_rkey = w.rkey;
		write.next = &inv;
		vt_post(&e, &write);
		vt_done(&e, 1, NULL);
		vt_done(&e, 2, NULL);
	}
	vt_finish(&e);
}

/* The same by ibv_wr_post(3), and UC, which invalidates without an answer. */
static void built(struct ct *ct)
{
	const uint64_t ops = IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW |
			     IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_RDMA_WRITE;
	const struct vt_want want = { .type = ct->cs->arg, .send_ops = ops };
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
	struct owner o;
	struct window w;
	struct ibv_wc wc;

	own(ct, &o, &want);
	qp = ibv_qp_to_qp_ex(o.e.qp);
	CT_TRUE(ct, qp);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (ct->rank) {
		const struct ibv_mw_bind_info i = info(&o, AT, 64, IBV_ACCESS_REMOTE_WRITE);

		mw = alloc(&o.e, IBV_MW_TYPE_2);
		vt_recv(&o.e, 0, 64, 9);
		qp->wr_id = BIND;
		ibv_wr_bind_mw(qp, mw, mw->rkey + 0, &i);
		ibv_wr_local_inv(qp, mw->rkey);
		ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &i);
		VT_OK(ct, ibv_wr_complete(qp));
		done(&o.e, IBV_WC_BIND_MW);
		done(&o.e, IBV_WC_LOCAL_INV);
		done(&o.e, IBV_WC_BIND_MW);
		w = (struct window){ i.addr, mw->rkey };
		ct_put(ct, 0, &w, sizeof(w));
		vt_done(&o.e, 9, &wc);
		CT_EQ(ct, wc.invalidated_rkey, w.rkey);
		ct_verify(ct, o.e.buf + AT, 64, 5, "written");
		VT_OK(ct, ibv_dereg_mr(o.mr)); /* nothing is bound to it any more */
		VT_OK(ct, ibv_dealloc_mw(mw));
		vt_finish(&o.e);
		return;
	}
	ct_get(ct, &o.e, 1, &w, sizeof(w));
	ct_fill(o.e.buf, 64, 5);
	qp->wr_id = 1;
	ibv_wr_rdma_write(qp, w.rkey, w.addr);
	ibv_wr_set_sge(qp, o.e.mr->lkey, (uintptr_t)o.e.buf, 64);
	qp->wr_id = 2;
	ibv_wr_send_inv(qp, w.rkey);
	ibv_wr_set_sge(qp, o.e.mr->lkey, (uintptr_t)o.e.buf, 64);
	VT_OK(ct, ibv_wr_complete(qp));
	vt_next(&o.e, 1, IBV_WC_SUCCESS);
	vt_next(&o.e, 2, IBV_WC_SUCCESS);
	disown(&o);
}

/* ---- the key ------------------------------------------------------------------------------------------------------------------- */

/*
 * The request names the window, so of the key only what is the program's to choose matters, its low 8 bits; the window has its new key when
 * the request has been posted, and the other end reaches it by that.
 */
static void key_owner(struct ct *ct)
{
	struct ibv_send_wr wr = { .wr_id = BIND, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	const uint32_t wanted[] = { 0x400, 0xdeadbe7f, 0xff };
	struct ibv_mw *mw;
	struct owner o;

	own(ct, &o, NULL);
	mw = alloc(&o.e, IBV_MW_TYPE_2);
	wr.bind_mw.mw = mw;
	wr.bind_mw.bind_info = info(&o, AT, 64, IBV_ACCESS_REMOTE_WRITE);
	for (size_t i = 0; i < CT_COUNT(wanted); i++) {
		struct window w = { (uintptr_t)o.e.buf + AT, mw->rkey };

		wr.bind_mw.rkey = wanted[i];
		vt_post(&o.e, &wr);
		CT_EQ(ct, mw->rkey, (w.rkey & ~0xffu) | (wanted[i] & 0xff));
		done(&o.e, IBV_WC_BIND_MW);
		w.rkey = mw->rkey;
		ct_put(ct, 0, &w, sizeof(w));
		ct_sync(ct, &o.e);
		local_inv(&o.e, mw->rkey);
		done(&o.e, IBV_WC_LOCAL_INV);
	}
	VT_OK(ct, ibv_dealloc_mw(mw));
	disown(&o);
}

static void key(struct ct *ct)
{
	struct owner o;
	struct window w;

	own(ct, &o, NULL);
	for (int i = 0; i < 3; i++) {
		ct_get(ct, &o.e, 1, &w, sizeof(w));
		touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, 64, IBV_WC_SUCCESS);
		ct_sync(ct, &o.e);
	}
	disown(&o);
}

const struct ct_case vt_windows[] = {
	{ "MW", "rights-1", { rights, rights_owner }, .arg = IBV_MW_TYPE_1, .seconds = 120 },
	{ "MW", "rights-2", { rights, rights_owner }, .arg = IBV_MW_TYPE_2, .seconds = 120 },
	{ "MW", "life", { life, life_owner }, .seconds = 120 },
	{ "MW", "whose-1", { whose, whose }, .arg = IBV_MW_TYPE_1 },
	{ "MW", "whose-2", { whose, whose }, .arg = IBV_MW_TYPE_2 },
	{ "MW", "wrongs", { wrongs, wrongs }, .seconds = 120 },
	{ "MW", "inv-wrong", { inv_wrong, inv_wrong } },
	{ "MW", "refused", { refused, refused } },
	{ "MW", "not-for-ud", { not_for_ud, not_for_ud } },
	{ "MW", "order", { order, order_owner } },
	{ "MW", "key", { key, key_owner } },
	{ "MW", "built", { built, built }, .arg = IBV_QPT_RC },
	{ "MW", "built-uc", { built, built }, .arg = IBV_QPT_UC },
	{ NULL }
};
