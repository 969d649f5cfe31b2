/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * WR: ibv_wr_flush(3), by which who has written learns that everybody at the target can see it.
 * Younger headers have it, and this is built with one that has not: so its numbers and its place in
 * struct ibv_qp_ex are told here.
 */
#include "vt.h"

#include <errno.h>
#include <string.h>

#define QP_EX_WITH_FLUSH (1 << 11)
#define WR_FLUSH ((enum ibv_wr_opcode)14)
#define WC_FLUSH 8
#define ODP_FLUSH (1 << 6)
#define DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define DEVICE_FLUSH_PERSISTENT (UINT64_C(1) << 39)
#define ACCESS_GLOBAL (1 << 8)
#define ACCESS_PERSISTENT (1 << 9)

enum { /* how far, and how */
	RANGE,
	REGION
};
enum {
	GLOBAL = 1,
	PERSISTENT = 2
};

#define LONG (512u << 10)
#define AT 4096

struct younger {
	char older[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void))];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
			 uint8_t level);
};

#define WANTS \
	{ \
		.sig_none = 1, .send_ops = QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE, \
		.access = VT_ACCESS | ACCESS_GLOBAL, \
		.qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | ACCESS_GLOBAL | \
			     ACCESS_PERSISTENT, \
	}

static void add_flush(struct ct_ep *e, uint64_t id, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);
	struct younger y;

	memcpy(&y, qp, sizeof(y));
	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	y.wr_flush(qp, e->peer[!e->ct->rank].rkey, addr, len, type, level);
}

static void flush(struct ct_ep *e, uint64_t id, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);

	ibv_wr_start(qp);
	add_flush(e, id, addr, len, type, level);
	VT_OK(e->ct, ibv_wr_complete(qp));
}

/*
 * What was posted before it is there when it completes, in order: short and long, at once and by
 * packet. A region is flushed whole.
 */
static void flushes(struct ct *ct)
{
	static const uint32_t lens[] = { 1, 8, 1000, 65536, LONG };
	const struct vt_want want = WANTS;
	struct ct_ep e;
	struct ibv_wc wc;

	vt_start(ct, &e, &want);
	for (uint64_t i = 0; i < 10; i++) {
		uint32_t len = lens[i / 2];
		uint64_t to = e.peer[!ct->rank].addr + AT;

		if (!ct->rank) {
			struct ibv_sge sge = vt_sge(&e, 0, len);
			struct ibv_send_wr wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 99);

			ct_fill(e.buf, len, i);
			wr.send_flags = 0;
			wr.wr.rdma.remote_addr = to;
			vt_post(&e, &wr);
			if (i % 2)
				flush(&e, i, 1, 12345678, GLOBAL, REGION);
			else
				flush(&e, i, to, len, GLOBAL, RANGE);
			vt_any(&e, &wc);
			CT_EQ(ct, wc.wr_id, i);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			CT_EQ(ct, wc.opcode, WC_FLUSH);
		}
		ct_sync(ct, &e);
		if (ct->rank)
			ct_verify(ct, e.buf + AT, len, i, "flushed");
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/*
 * Many in one list, between writes, complete in their order; no bytes at all may be flushed, and so
 * may what nobody asks to be placed.
 */
static void in_a_list(struct ct *ct)
{
	const struct vt_want want = WANTS;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e.qp);
		const struct vt_name *to = &e.peer[1];

		ct_fill(e.buf, 64, 7);
		ibv_wr_start(qp);
		for (uint64_t i = 0; i < 8; i++) {
			qp->wr_flags = 0;
			ibv_wr_rdma_write(qp, to->rkey, to->addr + AT + 8 * i);
			ibv_wr_set_sge(qp, e.mr->lkey, (uintptr_t)e.buf + 8 * i, 8);
			add_flush(&e, i, to->addr + AT, i % 4 == 3 ? 0 : 64, i % 4 == 2 ? 0 : GLOBAL, RANGE);
		}
		VT_OK(ct, ibv_wr_complete(qp));
		for (uint64_t i = 0; i < 8; i++)
			vt_next(&e, i, IBV_WC_SUCCESS);
	}
	ct_sync(ct, &e);
	if (ct->rank)
		ct_verify(ct, e.buf + AT, 64, 7, "flushed");
	vt_finish(&e);
}

enum wrong {	     /* what is */
	WRONG_RIGHT, /* the region's */
	WRONG_QP_RIGHT,
	WRONG_TYPE,
	WRONG_RANGE,
	WRONG_KEY,
	WRONG_LENGTH,
};

static void post_wrong(struct ct_ep *e, enum wrong wrong)
{
	struct vt_name *to = &e->peer[1];

	if (wrong == WRONG_KEY)
		to->rkey ^= 1u << 20;
	flush(e, 1, to->addr + AT,
	      wrong == WRONG_RANGE    ? VT_SIZE
	      : wrong == WRONG_LENGTH ? (UINT64_C(1) << 31) + 1
				      : 8,
	      wrong == WRONG_TYPE ? GLOBAL | PERSISTENT : GLOBAL, wrong == WRONG_KEY ? REGION : RANGE);
}

static void refused(struct ct *ct)
{
	static const enum ibv_wc_status want_status[] = {
		[WRONG_RIGHT] = IBV_WC_REM_ACCESS_ERR, [WRONG_QP_RIGHT] = IBV_WC_REM_INV_REQ_ERR,
		[WRONG_TYPE] = IBV_WC_REM_ACCESS_ERR,  [WRONG_RANGE] = IBV_WC_REM_ACCESS_ERR,
		[WRONG_KEY] = IBV_WC_REM_ACCESS_ERR,   [WRONG_LENGTH] = IBV_WC_LOC_LEN_ERR,
	};
	enum wrong wrong = (enum wrong)ct->cs->arg;
	struct vt_want want = WANTS;
	struct ct_ep e;

	if (wrong == WRONG_RIGHT)
		want.access = VT_ACCESS;
	if (wrong == WRONG_QP_RIGHT)
		want.qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	vt_start(ct, &e, &want);
	if (!ct->rank) {
		post_wrong(&e, wrong);
		vt_next(&e, 1, want_status[wrong]);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
	}
	vt_finish(&e);
}

/*
 * Devices say that they have it; of queue pairs RC does; ibv_post_send has no place
 * for what it needs to know.
 */
static void told(struct ct *ct)
{
	static const enum ibv_qp_type others[] = { IBV_QPT_UC, IBV_QPT_UD };
	const struct vt_want want = WANTS;
	struct ibv_qp_init_attr_ex attr = { .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = QP_EX_WITH_FLUSH,
					    .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_send_wr wr, *bad;
	struct ibv_device_attr_ex dev;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_device_ex(e.context, NULL, &dev));
	CT_EQ(ct, dev.device_cap_flags_ex & (DEVICE_FLUSH_GLOBAL | DEVICE_FLUSH_PERSISTENT),
	      DEVICE_FLUSH_GLOBAL);
	CT_TRUE(ct, dev.odp_caps.per_transport_caps.rc_odp_caps & ODP_FLUSH);
	CT_TRUE(ct, !((dev.odp_caps.per_transport_caps.uc_odp_caps |
		       dev.odp_caps.per_transport_caps.ud_odp_caps | dev.xrc_odp_caps) &
		      ODP_FLUSH));
	VT_NULL(ct, ibv_reg_mr_iova2(e.pd, e.buf, 64, 0, ACCESS_GLOBAL | ACCESS_PERSISTENT), EOPNOTSUPP);
	attr.pd = e.pd;
	attr.send_cq = attr.recv_cq = e.cq;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		attr.qp_type = others[i];
		VT_NULL(ct, ibv_create_qp_ex(e.context, &attr), EOPNOTSUPP);
	}
	wr = vt_wr(&e, WR_FLUSH, NULL, 1);
	wr.num_sge = 0;
	VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), EINVAL);
	CT_TRUE(ct, bad == &wr);
	vt_finish(&e);
}

/* What is on demand, and by a window, whose own right counts. */
static void by_window(struct ct *ct)
{
	bool right = !ct->cs->arg;
	struct vt_want want = WANTS;
	struct ibv_mw *mw;
	struct ct_ep e;

	want.access |= IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND;
	vt_start(ct, &e, &want);
	mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	CT_TRUE(ct, mw);
	if (ct->rank) {
		struct ibv_mw_bind bind = {
			.wr_id = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_info = { e.mr, (uintptr_t)e.buf + AT, 64,
				       IBV_ACCESS_REMOTE_WRITE | (right ? ACCESS_GLOBAL : 0u) },
		};

		VT_OK(ct, ibv_bind_mw(e.qp, mw, &bind));
		vt_done(&e, 1, NULL);
		e.me.rkey = mw->rkey;
	}
	vt_exchange(&e);
	if (!ct->rank) {
		flush(&e, 1, e.peer[1].addr + AT, 64, GLOBAL, RANGE);
		vt_next(&e, 1, right ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	}
	ct_sync(ct, &e);
	VT_OK(ct, ibv_dealloc_mw(mw));
	vt_finish(&e);
}

#define REFUSED(name, what) \
	{ \
		"WR", name, { refused, refused }, .arg = (what) \
	}
const struct ct_case vt_flush[] = { { "WR", "flush", { flushes, flushes } },
				    { "WR", "flush-list", { in_a_list, in_a_list } },
				    { "WR", "flush-told", { told, told } },
				    { "WR", "flush-window", { by_window, by_window } },
				    { "WR", "flush-window-rights", { by_window, by_window }, .arg = 1 },
				    REFUSED("flush-rights", WRONG_RIGHT),
				    REFUSED("flush-qp-rights", WRONG_QP_RIGHT),
				    REFUSED("flush-persistent", WRONG_TYPE),
				    REFUSED("flush-range", WRONG_RANGE),
				    REFUSED("flush-key", WRONG_KEY),
				    REFUSED("flush-length", WRONG_LENGTH),
				    { NULL } };
