/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * MW: memory windows, ibv_alloc_mw(3), ibv_bind_mw(3), and the work requests of ibv_post_send(3)
 * that have to do with them.
 */
#include "mwt.h"

#include <errno.h>
#include <string.h>

/* ---- what a window opens --------------------------------------------------------------------- */

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
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, MWT_BEYOND, 8, false },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 8, false },
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, false },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, 8, 500, true },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, -500, 501, false },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 8, false },
	{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, true },
	{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_CMP_AND_SWP, MWT_BEYOND, 8, false },
	{ IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, IBV_WR_RDMA_WRITE, 0, 8, true },
	{ IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, IBV_WR_RDMA_WRITE, -8, 9, false },
	{ 0, IBV_WR_RDMA_READ, 0, 8, false },
};

static uint64_t place(const struct probe *p, size_t len)
{
	return p->at < 0 ? len + (uint64_t)p->at : (uint64_t)p->at;
}

static void offer(struct mwt_owner *o, const struct probe *p, size_t len)
{
	struct ct_ep *e = &o->e;
	struct ibv_mw *mw = mwt_alloc(e, e->ct->cs->arg);
	uint64_t at = MWT_AT + place(p, len);
	struct mwt_window w;

	memset(e->buf, 0x55, VT_SIZE);
	w = mwt_bound(o, mw, MWT_AT, len, p->access);
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
	struct mwt_owner o;

	mwt_own(ct, &o, NULL);
	for (size_t l = 0; l < CT_COUNT(lens); l++)
		for (size_t i = 0; i < CT_COUNT(probes); i++) {
			offer(&o, &probes[i], lens[l]);
			mwt_renew(&o.e);
		}
	mwt_disown(&o);
}

static void rights(struct ct *ct)
{
	static const size_t lens[] = { 1000, 300000 };
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	mwt_need(ct, &e);
	for (size_t l = 0; l < CT_COUNT(lens); l++)
		for (size_t i = 0; i < CT_COUNT(probes); i++) {
			const struct probe *p = &probes[i];
			struct mwt_window w;

			memset(e.buf, 0xaa, VT_SIZE);
			ct_get(ct, &e, 1, &w, sizeof(w));
			mwt_touch(&e, p->op, &w, place(p, lens[l]), p->len,
				  p->allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
			ct_sync(ct, &e);
			mwt_renew(&e);
		}
	vt_finish(&e);
}

/* ---- its life -------------------------------------------------------------------------------- */

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

static void end_it(struct mwt_owner *o, struct ibv_mw **mw, enum end end)
{
	struct ibv_mw_bind_info i = mwt_info(o, MWT_AT, 0, 0);
	struct ibv_wc wc;

	switch (end) {
	case REBOUND:
		i = mwt_info(o, MWT_BEYOND, LONG, IBV_ACCESS_REMOTE_WRITE);
		/* fall through */
	case EMPTIED:
		mwt_post_bind(&o->e, *mw, &i);
		mwt_done(&o->e, IBV_WC_BIND_MW);
		return;
	case LOCAL_INV:
		mwt_local_inv(&o->e, (*mw)->rkey);
		mwt_done(&o->e, IBV_WC_LOCAL_INV);
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
	struct mwt_owner o;

	mwt_own(ct, &o, NULL);
	for (enum end end = 0; end < ENDS; end++)
		for (uint32_t len = 8; len <= LONG; len += LONG - 8) {
			struct ibv_mw *mw = mwt_alloc(&o.e, type_of(end));
			struct mwt_window w = mwt_bound(&o, mw, MWT_AT, LONG, IBV_ACCESS_REMOTE_WRITE);

			if (end == SENT_INV)
				vt_recv(&o.e, MWT_BEYOND, LONG, 9);
			VT_ERR(ct, ibv_dereg_mr(o.mr), EBUSY);
			ct_put(ct, 0, &w, sizeof(w));
			ct_sync(ct, &o.e);
			end_it(&o, &mw, end);
			memset(o.e.buf, 0x55, VT_SIZE);
			w.rkey = mw ? mw->rkey : 0;
			w.addr = (uintptr_t)o.e.buf + MWT_BEYOND;
			ct_put(ct, 0, &w, sizeof(w));
			ct_sync(ct, &o.e);
			CT_TRUE(ct, ct_untouched(o.e.buf, MWT_BEYOND, 0x55));
			CT_EQ(ct, ct_untouched(o.e.buf + MWT_BEYOND, len, 0x55), end != REBOUND);
			if (mw)
				VT_OK(ct, ibv_dealloc_mw(mw));
			mwt_renew(&o.e);
		}
	mwt_disown(&o);
}

static void life(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	mwt_need(ct, &e);
	memset(e.buf, 0xaa, VT_SIZE);
	for (enum end end = 0; end < ENDS; end++)
		for (uint32_t len = 8; len <= LONG; len += LONG - 8) {
			struct ibv_sge sge = vt_sge(&e, 0, len);
			struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND_WITH_INV, &sge, 2);
			struct mwt_window w, next;

			ct_get(ct, &e, 1, &w, sizeof(w));
			mwt_touch(&e, IBV_WR_RDMA_WRITE, &w, 0, len, IBV_WC_SUCCESS);
			ct_sync(ct, &e);
			wr.invalidate_rkey = w.rkey;
			if (end == SENT_INV) {
				vt_post(&e, &wr);
				vt_next(&e, 2, IBV_WC_SUCCESS);
			}
			ct_get(ct, &e, 1, &next, sizeof(next));
			if (end == REBOUND)
				mwt_touch(&e, IBV_WR_RDMA_WRITE, &next, 0, len, IBV_WC_SUCCESS);
			mwt_touch(&e, IBV_WR_RDMA_WRITE, &w, 0, len, IBV_WC_REM_ACCESS_ERR);
			ct_sync(ct, &e);
			mwt_renew(&e);
		}
	vt_finish(&e);
}

/* ---- whose it is ----------------------------------------------------------------------------- */

/*
 * A second pair of queue pairs in the same domains: type 1 is reached through any, type 2 through
 * the one that it was bound through.
 */
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
	struct mwt_owner o;
	struct ibv_qp *first, *other;
	struct ibv_mw *mw;
	struct mwt_window w;

	if (ct->rank) {
		mwt_own(ct, &o, NULL);
	} else {
		vt_start(ct, &o.e, NULL);
		mwt_need(ct, &o.e);
	}
	first = o.e.qp;
	other = second(&o.e);
	if (ct->rank) {
		mw = mwt_alloc(&o.e, type);
		w = mwt_bound(&o, mw, MWT_AT, LONG, IBV_ACCESS_REMOTE_WRITE);
		ct_put(ct, 0, &w, sizeof(w));
		ct_sync(ct, &o.e);
		VT_OK(ct, ibv_destroy_qp(other));
		if (type == IBV_MW_TYPE_2) {
			/* it goes with its queue pair, and no longer holds the region */
			VT_OK(ct, ibv_destroy_qp(first));
			o.e.qp = NULL;
			VT_OK(ct, ibv_dereg_mr(o.mr));
			VT_OK(ct, ibv_dealloc_mw(mw));
			vt_finish(&o.e);
			return;
		}
		VT_OK(ct, ibv_dealloc_mw(mw));
		mwt_disown(&o);
		return;
	}
	ct_get(ct, &o.e, 1, &w, sizeof(w));
	mwt_touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, LONG, IBV_WC_SUCCESS);
	o.e.qp = other;
	mwt_touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, LONG,
		  type == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	o.e.qp = first;
	mwt_touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, 8, IBV_WC_SUCCESS);
	VT_OK(ct, ibv_destroy_qp(other));
	ct_sync(ct, &o.e);
	vt_finish(&o.e);
}

/* ---- order ----------------------------------------------------------------------------------- */

#define ROUNDS 50

/*
 * Bind, tell the other end of the key by a message right behind it, get it back with the message
 * that invalidates: no wait in between.
 */
static void order_owner(struct ct *ct)
{
	const struct vt_want want = { .sig_none = 1 };
	struct ibv_mw *mw;
	struct mwt_owner o;

	mwt_own(ct, &o, &want);
	mw = mwt_alloc(&o.e, IBV_MW_TYPE_2);
	vt_recv(&o.e, MWT_BEYOND, 64, 9);
	ct_sync(ct, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t len = i % 2 ? LONG : 64;
		struct mwt_window w = { (uintptr_t)o.e.buf + MWT_AT, ibv_inc_rkey(mw->rkey) };
		struct ibv_sge sge = vt_sge(&o.e, 0, sizeof(w));
		struct ibv_send_wr tell = vt_wr(&o.e, IBV_WR_SEND, &sge, 1);
		struct ibv_send_wr bind = {
			.opcode = IBV_WR_BIND_MW,
			.next = &tell,
			.bind_mw = { mw, w.rkey, mwt_info(&o, MWT_AT, len, IBV_ACCESS_REMOTE_WRITE) }
		};
		struct ibv_wc wc;

		memcpy(o.e.buf, &w, sizeof(w));
		tell.send_flags = IBV_SEND_INLINE | (i % 8 == 7 ? IBV_SEND_SIGNALED : 0);
		vt_post(&o.e, &bind);
		mw->rkey = w.rkey;
		vt_done(&o.e, 9, &wc);
		CT_EQ(ct, wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
		CT_EQ(ct, wc.invalidated_rkey, w.rkey);
		ct_verify(ct, o.e.buf + MWT_AT, len, (uint64_t)i, "written through the window");
		if (i % 8 == 7)
			vt_done(&o.e, 1, NULL);
		vt_recv(&o.e, MWT_BEYOND, 64, 9);
	}
	VT_OK(ct, ibv_dealloc_mw(mw));
	mwt_disown(&o);
}

static void order(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	mwt_need(ct, &e);
	vt_recv(&e, MWT_BEYOND, 64, 9);
	ct_sync(ct, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge = vt_sge(&e, 0, i % 2 ? LONG : 64);
		struct ibv_send_wr write = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);
		struct ibv_send_wr inv = vt_wr(&e, IBV_WR_SEND_WITH_INV, NULL, 2);
		struct mwt_window w;

		vt_done(&e, 9, NULL);
		memcpy(&w, e.buf + MWT_BEYOND, sizeof(w));
		vt_recv(&e, MWT_BEYOND, 64, 9);
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
	struct mwt_owner o;
	struct mwt_window w;
	struct ibv_wc wc;

	mwt_own(ct, &o, &want);
	qp = ibv_qp_to_qp_ex(o.e.qp);
	CT_TRUE(ct, qp);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (ct->rank) {
		const struct ibv_mw_bind_info i = mwt_info(&o, MWT_AT, 64, IBV_ACCESS_REMOTE_WRITE);

		mw = mwt_alloc(&o.e, IBV_MW_TYPE_2);
		vt_recv(&o.e, 0, 64, 9);
		qp->wr_id = MWT_BIND;
		ibv_wr_bind_mw(qp, mw, mw->rkey + 0, &i);
		ibv_wr_local_inv(qp, mw->rkey);
		ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &i);
		VT_OK(ct, ibv_wr_complete(qp));
		mwt_done(&o.e, IBV_WC_BIND_MW);
		mwt_done(&o.e, IBV_WC_LOCAL_INV);
		mwt_done(&o.e, IBV_WC_BIND_MW);
		w = (struct mwt_window){ i.addr, mw->rkey };
		ct_put(ct, 0, &w, sizeof(w));
		vt_done(&o.e, 9, &wc);
		CT_EQ(ct, wc.invalidated_rkey, w.rkey);
		ct_verify(ct, o.e.buf + MWT_AT, 64, 5, "written");
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
	mwt_disown(&o);
}

/* ---- the key --------------------------------------------------------------------------------- */

/*
 * The request names the window, so of the key only what is the program's to choose matters,
 * its low 8 bits; the window has its new key when the request has been posted, and the
 * other end reaches it by that.
 */
static void key_owner(struct ct *ct)
{
	struct ibv_send_wr wr = { .wr_id = MWT_BIND,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };
	const uint32_t wanted[] = { 0x400, 0xdeadbe7f, 0xff };
	struct ibv_mw *mw;
	struct mwt_owner o;

	mwt_own(ct, &o, NULL);
	mw = mwt_alloc(&o.e, IBV_MW_TYPE_2);
	wr.bind_mw.mw = mw;
	wr.bind_mw.bind_info = mwt_info(&o, MWT_AT, 64, IBV_ACCESS_REMOTE_WRITE);
	for (size_t i = 0; i < CT_COUNT(wanted); i++) {
		struct mwt_window w = { (uintptr_t)o.e.buf + MWT_AT, mw->rkey };

		wr.bind_mw.rkey = wanted[i];
		vt_post(&o.e, &wr);
		CT_EQ(ct, mw->rkey, (w.rkey & ~0xffu) | (wanted[i] & 0xff));
		mwt_done(&o.e, IBV_WC_BIND_MW);
		w.rkey = mw->rkey;
		ct_put(ct, 0, &w, sizeof(w));
		ct_sync(ct, &o.e);
		mwt_local_inv(&o.e, mw->rkey);
		mwt_done(&o.e, IBV_WC_LOCAL_INV);
	}
	VT_OK(ct, ibv_dealloc_mw(mw));
	mwt_disown(&o);
}

static void key(struct ct *ct)
{
	struct mwt_owner o;
	struct mwt_window w;

	mwt_own(ct, &o, NULL);
	for (int i = 0; i < 3; i++) {
		ct_get(ct, &o.e, 1, &w, sizeof(w));
		mwt_touch(&o.e, IBV_WR_RDMA_WRITE, &w, 0, 64, IBV_WC_SUCCESS);
		ct_sync(ct, &o.e);
	}
	mwt_disown(&o);
}

const struct ct_case vt_windows[] = {
	{ "MW", "rights-1", { rights, rights_owner }, .arg = IBV_MW_TYPE_1, .seconds = 120 },
	{ "MW", "rights-2", { rights, rights_owner }, .arg = IBV_MW_TYPE_2, .seconds = 120 },
	{ "MW", "life", { life, life_owner }, .seconds = 120 },
	{ "MW", "whose-1", { whose, whose }, .arg = IBV_MW_TYPE_1 },
	{ "MW", "whose-2", { whose, whose }, .arg = IBV_MW_TYPE_2 },
	{ "MW", "order", { order, order_owner } },
	{ "MW", "key", { key, key_owner } },
	{ "MW", "built", { built, built }, .arg = IBV_QPT_RC },
	{ "MW", "built-uc", { built, built }, .arg = IBV_QPT_UC },
	{ NULL }
};
