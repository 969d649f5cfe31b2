/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * V7: ibv_dereg_mr(3) and ibv_rereg_mr(3) while requests use the region: local keys count when
 * bytes move; ibv_advise_mr(3).
 */
#include "vt.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHORT 64
#define LONG (600u << 10)
#define DEPTH 200

enum change {
	DEREG,
	OTHER_PD,
	ELSEWHERE,
	NO_WRITE,
	STILL_THERE, /* what is registered anew has the receive's memory, too */
};

static struct ibv_mr *region(struct ct_ep *e, size_t at, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf + at, len, IBV_ACCESS_LOCAL_WRITE);

	CT_TRUE(e->ct, mr);
	return mr;
}

/* A receive of two segments, the second of mr. */
static void post(struct ct_ep *e, const struct ibv_mr *mr, uint32_t len, uint64_t id)
{
	struct ibv_sge sge[2] = { vt_sge(e, 0, 8), { (uintptr_t)e->buf + 8, len - 8, mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = 2 }, *bad;

	VT_OK(e->ct, e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad));
}

/* The region is no longer what it was when something was posted. */
static void change(struct ct_ep *e, struct ibv_mr *mr, struct ibv_pd *other, enum change how)
{
	int rc = 0;

	switch (how) {
	case DEREG:
		rc = ibv_dereg_mr(mr);
		break;
	case OTHER_PD:
		rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0);
		break;
	case ELSEWHERE:
		rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e->buf + VT_SIZE - 64, 64, 0);
		break;
	case NO_WRITE:
		rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ);
		break;
	case STILL_THERE:
		rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
				  e->buf, VT_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
		break;
	}
	VT_OK(e->ct, rc);
}

static void receiver(struct ct_ep *e, enum change how, uint32_t len)
{
	struct ibv_pd *other = ibv_alloc_pd(e->context);
	struct ibv_mr *mr = region(e, 0, LONG);
	struct ct *ct = e->ct;

	CT_TRUE(ct, other);
	memset(e->buf, 'a', VT_SIZE);
	post(e, mr, len, 1);
	change(e, mr, other, how);
	ct_sync(ct, NULL);
	if (how == STILL_THERE) {
		vt_done(e, 1, NULL);
		CT_EQ(ct, e->buf[len - 1], 'b');
	} else {
		vt_status(e, 1, IBV_WC_LOC_PROT_ERR);
		CT_EQ(ct, e->buf[len - 1], 'a');
		CT_EQ(ct, vt_state(e, e->qp), IBV_QPS_ERR);
	}
	ct_sync(ct, e);
	if (how != DEREG)
		VT_OK(ct, ibv_dereg_mr(mr));
	VT_OK(ct, ibv_dealloc_pd(other));
}

/*
 * A posted receive whose region changes; arg: how, plus 8: of a shared receive queue,
 * plus 16: for a long message.
 */
static void received(struct ct *ct)
{
	enum change how = (enum change)(ct->cs->arg & 7);
	const struct vt_want want = { .srq = ct->cs->arg & 8, .sge = 2 };
	uint32_t len = ct->cs->arg & 16 ? LONG : SHORT;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		receiver(&e, how, len);
	} else {
		ct_sync(ct, NULL);
		memset(e.buf, 'b', VT_SIZE);
		vt_send(&e, 0, len, 2);
		vt_status(&e, 2, how == STILL_THERE ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* A request that waits for the other end's receive has not been read from memory. */
static void sent(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		ct_sync(ct, &e);
		vt_quiet(&e, 5, "nothing posted");
	} else {
		struct ibv_mr *mr = region(&e, 0, LONG);
		struct ibv_sge sge[2] = { { (uintptr_t)e.buf, LONG, mr->lkey }, vt_sge(&e, 0, 8) };
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, sge, 1), behind;

		behind = vt_wr(&e, IBV_WR_RDMA_READ, sge + 1, 2);
		wr.next = &behind;
		vt_post(&e, &wr);
		vt_quiet(&e, 10, "no receive is posted");
		VT_OK(ct, ibv_dereg_mr(mr));
		vt_next(&e, 1, IBV_WC_LOC_PROT_ERR);
		vt_next(&e, 2, IBV_WC_WR_FLUSH_ERR);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/*
 * A region for each message, with many receives posted: those that are used up are of no concern.
 */
static void each_its_own(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = DEPTH, .cqe = 2 * DEPTH };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		struct ibv_mr *mr[DEPTH];

		for (uint64_t i = 0; i < DEPTH; i++) {
			mr[i] = region(&e, 64 * i, 64);

			struct ibv_sge sge = { (uintptr_t)e.buf + 64 * i, 64, mr[i]->lkey };
			struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

			VT_OK(ct, ibv_post_recv(e.qp, &wr, &bad));
		}
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < DEPTH; i++) {
			vt_done(&e, i, NULL);
			VT_OK(ct, ibv_dereg_mr(mr[i]));
		}
	} else {
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < DEPTH; i++) {
			vt_send(&e, 0, 64, i);
			vt_done(&e, i, NULL);
		}
	}
	vt_finish(&e);
}

/* ---- advice ---------------------------------------------------------------------------------- */

static int prefetch(struct ibv_pd *pd, bool write, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { addr, len, lkey };

	return ibv_advise_mr(pd, write ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE : IBV_ADVISE_MR_ADVICE_PREFETCH,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

/*
 * ibv_advise_mr(3): each error that it names, where the page has two for a
 * key by what drivers answer.
 */
static void advised(struct ct *ct)
{
	struct ct_ep e;
	struct ibv_pd *other;
	struct ibv_mr *full, *rdonly, *partly;
	size_t page;
	char *hole;
	struct ibv_mw *mw;
	struct ibv_sge sge;
	uint64_t at;

	vt_open(ct, &e, NULL);
	at = (uintptr_t)e.buf;
	full = ibv_reg_mr(e.pd, e.buf, 4096, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	rdonly = ibv_reg_mr(e.pd, e.buf, 4096, IBV_ACCESS_ON_DEMAND);
	other = ibv_alloc_pd(e.context);
	mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	CT_TRUE(ct, full && rdonly && other && mw);
	for (int write = 0; write < 2; write++) {
		VT_OK(ct, prefetch(e.pd, write, at, 4096, full->lkey));
		VT_ERR(ct, prefetch(e.pd, write, at, 4097, full->lkey), EFAULT);
		VT_ERR(ct, prefetch(e.pd, write, at - 1, 8, full->lkey), EFAULT);
		VT_ERR(ct, prefetch(other, write, at, 8, full->lkey), EPERM);
		VT_ERR(ct, prefetch(e.pd, write, at, 8, rdonly->lkey), write ? EPERM : 0);
		VT_ERR(ct, prefetch(e.pd, write, at, 8, e.mr->lkey), ENOENT); /* not on demand */
		VT_ERR(ct, prefetch(e.pd, write, at, 8, full->lkey ^ 0x10000), ENOENT);
		VT_ERR(ct, prefetch(e.pd, write, at, 8, mw->rkey), EINVAL);
	}
	page = (size_t)sysconf(_SC_PAGESIZE);
	hole = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	partly = ibv_reg_mr(e.pd, hole, 2 * page, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	CT_TRUE(ct, partly && !mprotect(hole + page, page, PROT_READ));
	VT_OK(ct, prefetch(e.pd, false, (uintptr_t)hole, 2 * page, partly->lkey));
	if (vt_tells_read_only())
		VT_ERR(ct, prefetch(e.pd, true, (uintptr_t)hole, 2 * page, partly->lkey), EFAULT);
	CT_TRUE(ct, !munmap(hole + page, page));
	VT_ERR(ct, prefetch(e.pd, false, (uintptr_t)hole, 2 * page, partly->lkey), EFAULT);
	VT_OK(ct, prefetch(e.pd, true, (uintptr_t)hole, page, partly->lkey));
	VT_OK(ct, ibv_dereg_mr(partly));
	munmap(hole, page);
	sge = vt_sge(&e, 0, 8);
	VT_ERR(ct, ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge, 1), EINVAL);
	VT_OK(ct, ibv_dealloc_mw(mw));
	VT_OK(ct, ibv_dealloc_pd(other));
	VT_OK(ct, ibv_dereg_mr(full));
	VT_OK(ct, ibv_dereg_mr(rdonly));
	vt_close(&e);
}

/* One byte written to that place of the other rank's, by its region's key. */
static void written_to(struct ct_ep *e, size_t at, char what, enum ibv_wc_status status)
{
	struct ibv_sge sge = vt_sge(e, 0, 1);
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_RDMA_WRITE, &sge, 1);

	e->buf[0] = what;
	wr.wr.rdma.remote_addr = e->peer[1].addr + at;
	vt_post(e, &wr);
	vt_status(e, 1, status);
}

/*
 * A region that goes elsewhere keeps its keys: who knows them reaches the new place,
 * and the old one no more.
 */
static void elsewhere(struct ct *ct)
{
	const int how = IBV_REREG_MR_CHANGE_TRANSLATION;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (!ct->rank)
		written_to(&e, 4095, 'a', IBV_WC_SUCCESS);
	ct_sync(ct, &e);
	if (ct->rank)
		VT_OK(ct, ibv_rereg_mr(e.mr, how, NULL, e.buf + 4096, 4096, 0));
	ct_sync(ct, &e);
	if (!ct->rank) {
		written_to(&e, 4096, 'b', IBV_WC_SUCCESS);
		written_to(&e, 8191, 'c', IBV_WC_SUCCESS);
		written_to(&e, 4095, 'd', IBV_WC_REM_ACCESS_ERR);
	}
	ct_sync(ct, &e);
	if (ct->rank) {
		CT_EQ(ct, e.mr->rkey, e.me.rkey);
		CT_EQ(ct, e.buf[4095], 'a');
		CT_EQ(ct, e.buf[4096], 'b');
		CT_EQ(ct, e.buf[8191], 'c');
	}
	vt_finish(&e);
}

const struct ct_case vt_keys[] = {
	{ "V7", "recv-dereg", { received, received }, .arg = DEREG },
	{ "V7", "recv-dereg-srq", { received, received }, .arg = DEREG | 8 },
	{ "V7", "recv-dereg-long", { received, received }, .arg = DEREG | 16 },
	{ "V7", "recv-rereg-pd", { received, received }, .arg = OTHER_PD },
	{ "V7", "recv-rereg-addr", { received, received }, .arg = ELSEWHERE },
	{ "V7", "recv-rereg-access", { received, received }, .arg = NO_WRITE },
	{ "V7", "recv-rereg-same", { received, received }, .arg = STILL_THERE },
	{ "V7", "recv-rereg-same-srq", { received, received }, .arg = STILL_THERE | 8 },
	{ "V7", "send-dereg", { sent, sent } },
	{ "V7", "write-rereg-addr", { elsewhere, elsewhere } },
	{ "V7", "own-regions", { each_its_own, each_its_own } },
	{ "V7", "advised", { advised } },
	{ NULL }
};
