/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V7: keys, ranges, rights and lengths are checked; who is wrong, and how both ends learn of it. */
#include "vt.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum wrong {
	BAD_LKEY,
	LONG_LKEY,	/* its range */
	FOREIGN_LKEY,	/* of another domain */
	READ_TO_RDONLY, /* no local write */
	BAD_RKEY,
	LONG_RKEY,
	BELOW_RKEY,
	FOREIGN_RKEY,
	REGION_RIGHT, /* the region does not permit it */
	QP_RIGHT,     /* nor the queue pair */
	ATOMIC_ODD,   /* not on a multiple of 8 */
	GONE_RKEY,    /* was deregistered */
};

struct offence {
	enum ibv_wr_opcode op;
	enum wrong wrong;
	enum ibv_wc_status status;
};

static const struct offence offences[] = {
	{ IBV_WR_SEND, BAD_LKEY, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_SEND, LONG_LKEY, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_SEND, FOREIGN_LKEY, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_RDMA_WRITE, BAD_LKEY, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_RDMA_READ, READ_TO_RDONLY, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_RDMA_WRITE, BAD_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, LONG_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, BELOW_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, FOREIGN_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, REGION_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, QP_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, GONE_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, BAD_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, LONG_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, QP_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, BAD_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, LONG_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, REGION_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, QP_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, BAD_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, LONG_RKEY, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, REGION_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, QP_RIGHT, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, ATOMIC_ODD, IBV_WC_REM_INV_REQ_ERR },
};

/* What the target offers: its usual region, or one that is not what the initiator needs. */
struct offer {
	uint64_t addr;
	uint32_t rkey;
};

static void offend(struct ct_ep *e, const struct offence *o)
{
	uint32_t len = o->op >= IBV_WR_ATOMIC_CMP_AND_SWP ? 8 : 64;
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_mr *foreign = ibv_reg_mr(pd, e->buf, 4096, VT_ACCESS);
	struct ibv_mr *rdonly = ibv_reg_mr(e->pd, e->buf, 4096, 0);
	struct ibv_sge sge = vt_sge(e, 0, len);
	struct ibv_send_wr first = vt_wr(e, IBV_WR_SEND, NULL, 1), wr = vt_wr(e, o->op, &sge, 2);
	struct ibv_send_wr last = vt_wr(e, IBV_WR_SEND, NULL, 3);
	struct offer offer;

	CT_TRUE(e->ct, foreign && rdonly);
	ct_get(e->ct, NULL, 1, &offer, sizeof(offer));
	if (o->op >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = offer.addr;
		wr.wr.atomic.rkey = offer.rkey;
	} else {
		wr.wr.rdma.remote_addr = offer.addr;
		wr.wr.rdma.rkey = offer.rkey;
	}
	sge.lkey = o->wrong == BAD_LKEY		? e->mr->lkey ^ 0x1234567
		   : o->wrong == FOREIGN_LKEY	? foreign->lkey
		   : o->wrong == READ_TO_RDONLY ? rdonly->lkey
						: e->mr->lkey;
	if (o->wrong == LONG_LKEY)
		sge.addr = (uintptr_t)e->buf + VT_SIZE - 8;
	first.next = &wr;
	wr.next = &last;
	vt_post(e, &first);
	vt_next(e, 1, IBV_WC_SUCCESS);
	vt_next(e, 2, o->status);
	vt_next(e, 3, IBV_WC_WR_FLUSH_ERR); /* the rest flushes */
	CT_EQ(e->ct, vt_state(e, e->qp), IBV_QPS_ERR);
	VT_OK(e->ct, ibv_dereg_mr(foreign));
	VT_OK(e->ct, ibv_dereg_mr(rdonly));
	VT_OK(e->ct, ibv_dealloc_pd(pd));
}

static void be_offended(struct ct_ep *e, const struct offence *o)
{
	struct ct *ct = e->ct;
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	char *own = ct_alloc(ct, 4096);
	struct ibv_mr *foreign = ibv_reg_mr(pd, own, 4096, VT_ACCESS);
	struct ibv_mr *local = ibv_reg_mr(e->pd, own, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *gone = ibv_reg_mr(e->pd, own, 4096, VT_ACCESS);
	struct offer offer = { e->me.addr, e->me.rkey };
	bool remote = o->status == IBV_WC_REM_ACCESS_ERR || o->status == IBV_WC_REM_INV_REQ_ERR;

	CT_TRUE(ct, foreign && local && gone);
	memset(e->buf, 0x55, VT_SIZE);
	memset(own, 0x55, 4096);
	switch (o->wrong) {
	case BAD_RKEY:
		offer.rkey ^= 0x1234567;
		break;
	case LONG_RKEY:
		offer.addr += VT_SIZE - 4;
		break;
	case BELOW_RKEY:
		offer.addr -= 32;
		break;
	case FOREIGN_RKEY:
		offer = (struct offer){ (uintptr_t)own, foreign->rkey };
		break;
	case REGION_RIGHT:
		offer = (struct offer){ (uintptr_t)own, local->rkey };
		break;
	case GONE_RKEY:
		offer = (struct offer){ (uintptr_t)own, gone->rkey };
		break;
	case ATOMIC_ODD:
		offer.addr += 4;
		break;
	default:
		break;
	}
	VT_OK(ct, ibv_dereg_mr(gone));
	vt_recv(e, 0, 64, 8);
	vt_recv(e, 0, 64, 9);
	ct_put(ct, 0, &offer, sizeof(offer));
	vt_next(e, 8, IBV_WC_SUCCESS);
	if (remote) { /* both sides go to error */
		vt_next(e, 9,
			o->op == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_LOC_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
		CT_EQ(ct, vt_state(e, e->qp), IBV_QPS_ERR);
	}
	ct_sync(ct, e);
	CT_TRUE(ct, ct_untouched(e->buf, VT_SIZE, 0x55) && ct_untouched(own, 4096, 0x55));
	VT_OK(ct, ibv_dereg_mr(foreign));
	VT_OK(ct, ibv_dereg_mr(local));
	VT_OK(ct, ibv_dealloc_pd(pd));
	free(own);
}

static void offence(struct ct *ct)
{
	for (size_t i = 0; i < CT_COUNT(offences); i++) {
		const struct offence *o = &offences[i];
		const struct vt_want want = { .qp_access = ct->rank && o->wrong == QP_RIGHT ? -1u : 0 };
		struct ct_ep e;

		vt_start(ct, &e, &want);
		if (ct->rank) {
			be_offended(&e, o);
		} else {
			offend(&e, o);
			ct_sync(ct, &e);
		}
		vt_finish(&e);
	}
}

/* A message longer than the buffer. */
static void too_long(struct ct *ct)
{
	static const uint32_t lens[] = { 101, 5000, 500000 };

	for (size_t i = 0; i < CT_COUNT(lens); i++) {
		const struct vt_want want = { .srq = ct->cs->arg && ct->rank };
		struct ct_ep e;

		vt_start(ct, &e, &want);
		if (ct->rank) {
			vt_recv(&e, 0, 100, 1);
			vt_recv(&e, 0, 100, 2);
			memset(e.buf + 100, 0x55, 4096);
			ct_sync(ct, NULL);
			vt_next(&e, 1, IBV_WC_LOC_LEN_ERR);
			CT_TRUE(ct, ct_untouched(e.buf + 100, 4096, 0x55));
			if (!e.srq)
				vt_next(&e, 2, IBV_WC_WR_FLUSH_ERR);
		} else {
			ct_sync(ct, NULL);
			vt_send(&e, 0, lens[i], 5);
			vt_send(&e, 0, 8, 6);
			vt_next(&e, 5, IBV_WC_REM_INV_REQ_ERR);
			vt_next(&e, 6, IBV_WC_WR_FLUSH_ERR);
		}
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
		vt_finish(&e);
	}
}

/* A receive with a key that is none: found out when the message comes. */
static void recv_lkey(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		struct ibv_sge sge = vt_sge(&e, 0, 64);
		struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

		sge.lkey ^= 0x1234567;
		vt_recv(&e, 0, 64, 1);
		VT_OK(ct, ibv_post_recv(e.qp, &wr, &bad));
		vt_recv(&e, 0, 64, 3);
		ct_sync(ct, NULL);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_next(&e, 2, IBV_WC_LOC_PROT_ERR);
		vt_next(&e, 3, IBV_WC_WR_FLUSH_ERR);
	} else {
		struct ibv_wc wc;

		ct_sync(ct, NULL);
		vt_send(&e, 0, 8, 5);
		vt_send(&e, 0, 8, 6);
		vt_next(&e, 5, IBV_WC_SUCCESS);
		vt_any(&e, &wc);
		CT_EQ(ct, wc.wr_id, 6);
		CT_EQ(ct, wc.status, IBV_WC_REM_OP_ERR);
	}
	vt_finish(&e);
}

/*
 * One whose second segment reaches beyond its region: messages that fit are received, and the
 * one that goes beyond fails.
 */
static void recv_beyond(struct ct *ct)
{
	const struct vt_want want = { .sge = 2, .srq = ct->cs->arg };
	const uint32_t lens[] = { 100, 164, 165 };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (uint64_t i = 0; i < CT_COUNT(lens); i++) {
		bool fits = i < CT_COUNT(lens) - 1;

		if (ct->rank) {
			struct ibv_sge sge[2] = { vt_sge(&e, 0, 100), vt_sge(&e, VT_SIZE - 64, 4096) };
			struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

			VT_OK(ct,
			      e.srq ? ibv_post_srq_recv(e.srq, &wr, &bad) : ibv_post_recv(e.qp, &wr, &bad));
			ct_sync(ct, &e);
			vt_next(&e, i, fits ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
			CT_TRUE(ct, !fits || (ct_match(e.buf, 100, i, 0) &&
					      ct_match(e.buf + VT_SIZE - 64, lens[i] - 100, i, 100)));
		} else {
			ct_fill(e.buf, lens[i], i);
			ct_sync(ct, &e);
			vt_send(&e, 0, lens[i], i);
			vt_next(&e, i, fits ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
		}
	}
	vt_finish(&e);
}

/*
 * Time-out and retries, ibv_modify_qp(3): what is not answered ends within four times what they
 * say, however that came about, and where the other end is there but is never ready for it, not
 * before that. (Of one that has gone we may be told at once.)
 */
enum {
	NEVER_READY,
	OTHER_NUMBERS, /* it expects another packet sequence number */
	GONE,
	NEVER_THERE, /* nobody has ever had that number */
	DIES,	     /* while it is waited for */
};

static void go_on_with(struct ct_ep *e, uint32_t qpn, uint32_t psn)
{
	struct vt_name to = e->peer[!e->ct->rank];
	struct ibv_qp_attr attr = { 0 };
	int mask;

	to.qpn = qpn;
	mask = vt_init(e, &attr);
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
	mask = vt_rtr(e, &to, &attr);
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
	mask = vt_rts(e, &attr);
	attr.sq_psn = psn;
	attr.timeout = 15;
	attr.retry_cnt = 7;
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
}

static void not_answered(struct ct_ep *e, int how)
{
	struct ibv_qp_attr attr = { 0 };
	int mask = vt_init(e, &attr);

	if (how == NEVER_READY || how == DIES)
		VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
	if (how == OTHER_NUMBERS)
		vt_connect(e, e->qp, &e->peer[!e->ct->rank]);
	if (how == GONE) {
		VT_OK(e->ct, ibv_destroy_qp(e->qp));
		e->qp = NULL;
	}
}

static void retry_time(struct ct *ct)
{
	const double nominal = 4.096e-6 * (1 << 15) * 8;
	const int how = (int)ct->cs->arg;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;
	double start;

	vt_open(ct, &e, NULL);
	vt_exchange(&e);
	if (ct->rank) {
		not_answered(&e, how);
		if (how == DIES)
			ct_doomed(ct);
		ct_sync(ct, NULL);
		if (how == DIES) {
			usleep(1500000); /* in the middle of the time that it is tried for */
			raise(SIGKILL);
		}
		ct_sync(ct, NULL);
		vt_finish(&e);
		return;
	}
	go_on_with(&e, e.peer[1].qpn + (how == NEVER_THERE ? 0x100 : 0), how == OTHER_NUMBERS ? 77 : 0);
	ct_sync(ct, NULL);
	sge = vt_sge(&e, 0, 64);
	wr = vt_wr(&e, IBV_WR_SEND, &sge, 2);
	start = ct_now();
	vt_post(&e, &wr);
	vt_next(&e, 2, IBV_WC_RETRY_EXC_ERR);
	start = ct_now() - start;
	if (start > 4 * nominal * ct->conf->scale || start < nominal)
		ct_fail(ct, "ended after %.2f s, which are nominally %.2f", start, nominal);
	if (how == DIES) {
		vt_close(&e);
		return;
	}
	ct_sync(ct, NULL);
	vt_finish(&e);
}

/* The other end is there, and has gone to error; or is no more. */
static void dead_end(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		if (ct->cs->arg == 0) {
			vt_to(&e, e.qp, IBV_QPS_ERR);
			ct_sync(ct, NULL);
			vt_finish(&e);
			return;
		}
		if (ct->cs->arg == 1) {
			VT_OK(ct, ibv_destroy_qp(e.qp));
			e.qp = NULL;
			ct_sync(ct, NULL);
			vt_finish(&e);
			return;
		}
		ct_doomed(ct);
		ct_sync(ct, NULL);
		raise(SIGKILL);
	}
	ct_sync(ct, NULL);
	vt_recv(&e, 0, 64, 1);
	vt_send(&e, 0, 8, 2);
	vt_send(&e, 0, 8, 3);
	vt_next(&e, 2, IBV_WC_RETRY_EXC_ERR);
	vt_status(&e, 3, IBV_WC_WR_FLUSH_ERR);
	vt_status(&e, 1, IBV_WC_WR_FLUSH_ERR);
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
	if (ct->cs->arg < 2)
		vt_finish(&e);
	else
		vt_close(&e);
}

/* A queue pair that has failed is as good as new after RESET. */
static void again(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	for (int i = 0; i < 3; i++) {
		if (ct->rank) {
			vt_recv(&e, 0, 4, 1);
			ct_sync(ct, NULL);
			vt_next(&e, 1, IBV_WC_LOC_LEN_ERR);
		} else {
			ct_sync(ct, NULL);
			vt_send(&e, 0, 8, 2);
			vt_next(&e, 2, IBV_WC_REM_INV_REQ_ERR);
		}
		vt_to(&e, e.qp, IBV_QPS_RESET);
		ct_sync(ct, &e);
		vt_connect(&e, e.qp, &e.peer[!ct->rank]);
		vt_recv(&e, 4096, 64, 3);
		ct_sync(ct, &e);
		ct_fill(e.buf, 64, (uint64_t)i);
		vt_send(&e, 0, 64, 4);
		vt_done(&e, 4, NULL);
		vt_done(&e, 3, NULL);
		ct_verify(ct, e.buf + 4096, 64, (uint64_t)i, "after RESET");
		vt_quiet(&e, 2, "left over");
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

#define LONG 300000u

static void reach(struct ct_ep *e, const struct offer *at, enum ibv_wr_opcode op, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = vt_wr(e, op, sge, 2);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = at->addr;
		wr.wr.atomic.rkey = at->rkey;
	} else {
		wr.wr.rdma.remote_addr = at->addr;
		wr.wr.rdma.rkey = at->rkey;
	}
	vt_post(e, &wr);
	vt_next(e, 2, IBV_WC_REM_ACCESS_ERR);
}

/*
 * Memory that is registered and has been unmapped since; hardware has pinned it, and here the
 * request fails. NULL with rank 0.
 */
static struct ibv_mr *unmapped_region(struct ct_ep *e, struct offer *at)
{
	struct ibv_mr *mr;
	char *mem;

	if (!e->ct->rank) {
		ct_get(e->ct, NULL, 1, at, sizeof(*at));
		return NULL;
	}
	mem = mmap(CT_APART, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CT_TRUE(e->ct, mem != MAP_FAILED);
	mr = ibv_reg_mr(e->pd, mem, LONG, VT_ACCESS);
	CT_TRUE(e->ct, mr);
	*at = (struct offer){ (uintptr_t)mem, mr->rkey };
	CT_EQ(e->ct, munmap(mem, LONG), 0);
	ct_put(e->ct, 0, at, sizeof(*at));
	return mr;
}

/*
 * Both ends go to error, the target's process, which has no handler of
 * faults, and all else goes on.
 */
static void region_unmapped(struct ct *ct)
{
	static const uint32_t lens[] = { 8, 100, 4096, 30000, LONG };
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	char *mem = ct_alloc(ct, LONG);
	struct ibv_mr *local;
	struct ct_ep e;

	ct_faults(ct);
	vt_start(ct, &e, NULL);
	local = ibv_reg_mr(e.pd, mem, LONG, VT_ACCESS);
	CT_TRUE(ct, local);
	for (size_t i = 0; i < CT_COUNT(lens) * CT_COUNT(ops); i++) {
		enum ibv_wr_opcode op = ops[i % CT_COUNT(ops)];
		struct ibv_sge sge = { (uintptr_t)mem, lens[i / CT_COUNT(ops)], local->lkey };
		struct ibv_mr *mr;
		struct offer at;

		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			sge.length = 8;
		mr = unmapped_region(&e, &at);
		if (!ct->rank)
			reach(&e, &at, op, &sge);
		ct_sync(ct, &e);
		if (mr)
			VT_OK(ct, ibv_dereg_mr(mr));
		vt_to(&e, e.qp, IBV_QPS_RESET);
		ct_sync(ct, &e);
		vt_connect(&e, e.qp, &e.peer[!ct->rank]);
		vt_recv(&e, 4096, 64, 3);
		ct_sync(ct, &e);
		vt_send(&e, 0, 64, 4);
		vt_done(&e, 4, NULL);
		vt_done(&e, 3, NULL);
		ct_sync(ct, &e);
	}
	VT_OK(ct, ibv_dereg_mr(local));
	free(mem);
	vt_finish(&e);
}

const struct ct_case vt_errors[] = {
	{ "V7", "offences", { offence, offence }, .seconds = 120 },
	{ "V7", "too-long", { too_long, too_long } },
	{ "V7", "too-long-srq", { too_long, too_long }, .arg = 1 },
	{ "V7", "recv-lkey", { recv_lkey, recv_lkey } },
	{ "V7", "recv-beyond", { recv_beyond, recv_beyond } },
	{ "V7", "recv-beyond-srq", { recv_beyond, recv_beyond }, .arg = 1 },
	{ "V7", "retry-time-not-ready", CT_TWO(retry_time), .arg = NEVER_READY, .slow = true },
	{ "V7", "retry-time-other-numbers", CT_TWO(retry_time), .arg = OTHER_NUMBERS, .slow = true },
	{ "V7", "retry-time-gone", CT_TWO(retry_time), .arg = GONE },
	{ "V7", "retry-time-never-there", CT_TWO(retry_time), .arg = NEVER_THERE, .slow = true },
	{ "V7", "retry-time-dies", CT_TWO(retry_time), .arg = DIES, .slow = true },
	{ "V7", "peer-in-error", { dead_end, dead_end }, .slow = true },
	{ "V7", "peer-destroyed", { dead_end, dead_end }, .arg = 1, .slow = true },
	{ "V7", "peer-killed", { dead_end, dead_end }, .arg = 2 },
	{ "V7", "again", { again, again } },
	{ "V7", "region-unmapped", CT_TWO(region_unmapped) },
	{ NULL }
};
