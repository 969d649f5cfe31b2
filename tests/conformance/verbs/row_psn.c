/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * V4: packet sequence numbers, ibv_modify_qp(3): sq_psn, rq_psn; which messages a queue pair
 * that has been reset takes.
 */
#include "vt.h"

#include <string.h>

#define WRAPS 0xfffff8u
#define MESSAGES 24

/*
 * The queue pair talks with the other rank's: its requests begin with sq_psn, those of
 * the other one with rq_psn.
 */
static void connect_with(struct ct_ep *e, struct ibv_qp *qp, uint32_t qpn, uint32_t sq_psn, uint32_t rq_psn)
{
	struct vt_name to = e->peer[!e->ct->rank];
	struct ibv_qp_attr attr = { 0 };
	int mask = vt_init(e, &attr);

	to.qpn = qpn;
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rtr(e, &to, &attr);
	attr.rq_psn = rq_psn;
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rts(e, &attr);
	attr.sq_psn = sq_psn;
	attr.retry_cnt = 0;
	attr.timeout = 10;
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
}

static void connect_own(struct ct_ep *e, uint32_t sq_psn, uint32_t rq_psn)
{
	connect_with(e, e->qp, e->peer[!e->ct->rank].qpn, sq_psn, rq_psn);
}

static void post_to(struct ct_ep *e, struct ibv_qp *qp, enum ibv_wr_opcode op, uint64_t id)
{
	struct ibv_sge sge = vt_sge(e, 0, 64);
	struct ibv_send_wr wr = vt_wr(e, op, &sge, id), *bad;

	VT_OK(e->ct, ibv_post_send(qp, &wr, &bad));
}

/*
 * Two queue pairs that have each other's numbers wrong: too small, too large. Nothing arrives,
 * and who sends is told so.
 */
static void mismatch(struct ct *ct)
{
	struct ibv_qp *qps[2];
	uint32_t mine[2], other[2];
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	vt_exchange(&e);
	for (int i = 0; i < 2; i++) {
		qps[i] = vt_qp(&e);
		mine[i] = qps[i]->qp_num;
	}
	ct_put(ct, !ct->rank, mine, sizeof(mine));
	ct_get(ct, NULL, !ct->rank, other, sizeof(other));
	for (int i = 0; i < 2; i++)
		connect_with(&e, qps[i], other[i], 100, ct->rank ? 99 + 2 * (uint32_t)i : 100);
	memset(e.buf, 'a' + ct->rank, 64);
	ct_sync(ct, NULL);
	if (ct->rank) {
		struct ibv_sge sge = vt_sge(&e, 64, 64);
		struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

		VT_OK(ct, ibv_post_recv(qps[0], &wr, &bad));
		ct_sync(ct, &e);
		vt_quiet(&e, 10, "a number that was not expected");
		CT_EQ(ct, e.buf[0], 'b');
		CT_EQ(ct, vt_state(&e, qps[0]), IBV_QPS_RTS);
		CT_EQ(ct, vt_state(&e, qps[1]), IBV_QPS_RTS);
	} else {
		post_to(&e, qps[0], IBV_WR_SEND, 1);
		post_to(&e, qps[1], IBV_WR_RDMA_WRITE, 2);
		vt_status(&e, 1, IBV_WC_RETRY_EXC_ERR);
		vt_status(&e, 2, IBV_WC_RETRY_EXC_ERR);
		CT_EQ(ct, vt_state(&e, qps[0]), IBV_QPS_ERR);
		ct_sync(ct, &e);
	}
	for (int i = 0; i < 2; i++)
		VT_OK(ct, ibv_destroy_qp(qps[i]));
	vt_finish(&e);
}

/*
 * InfiniBand specification, 9.8.2: at an unreliable connection the first packet of each message
 * counts, whatever its number.
 */
static void unreliable(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UC };
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_exchange(&e);
	connect_own(&e, 100, 7);
	if (ct->rank)
		for (uint64_t i = 0; i < 3; i++)
			vt_recv(&e, 64 * i, 64, i);
	ct_sync(ct, NULL);
	for (uint64_t i = 0; i < 3; i++) {
		if (!ct->rank)
			vt_send(&e, 0, 64, i);
		vt_done(&e, i, NULL);
	}
	vt_finish(&e);
}

/*
 * Both directions, through the end of the numbers; ibv_query_qp tells those of the next
 * packets, each end the other's.
 */
static void wraps(struct ct *ct)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	vt_exchange(&e);
	connect_own(&e, WRAPS + (uint32_t)ct->rank, WRAPS + !ct->rank);
	for (uint64_t i = 0; i < MESSAGES; i++)
		vt_recv(&e, 64 * i, 64, i);
	ct_sync(ct, NULL);
	for (uint64_t i = 0; i < MESSAGES; i++)
		vt_send(&e, 0, 64, 100 + i);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		vt_done(&e, i, NULL);
		vt_done(&e, 100 + i, NULL);
	}
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init));
	CT_EQ(ct, attr.sq_psn, (WRAPS + (uint32_t)ct->rank + MESSAGES) & 0xffffff);
	CT_EQ(ct, attr.rq_psn, (WRAPS + !ct->rank + MESSAGES) & 0xffffff);
	vt_finish(&e);
}

/*
 * Again and again rank 0 sends what nobody waits for, and both begin anew; nothing of it may come
 * to the receive of the life that follows, whether its numbers are others (arg 0) or the same.
 */
static void begins_anew(struct ct *ct)
{
	uint32_t psn = 5;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	vt_exchange(&e);
	for (int life = 0; life < 30; life++) {
		psn = ct->cs->arg ? psn : psn + 0x12345;
		connect_own(&e, psn & 0xffffff, psn & 0xffffff);
		if (ct->rank)
			vt_recv(&e, 0, 64, (uint64_t)life);
		ct_sync(ct, NULL);
		memset(e.buf, life, 64);
		if (!ct->rank)
			vt_send(&e, 0, 64, (uint64_t)life);
		vt_done(&e, (uint64_t)life, NULL);
		if (ct->rank)
			CT_EQ(ct, e.buf[63], life);
		memset(e.buf, 0xee, 64);
		for (uint64_t i = 0; !ct->rank && i < 3; i++)
			vt_send(&e, 0, 64, 1000);
		if (life % 3 == 0)
			ct_sync(ct, life % 2 ? &e : NULL); /* it has arrived, or is in flight */
		vt_to(&e, e.qp, IBV_QPS_RESET);
		e.head = e.tail = 0; /* what was taken out of the CQ before */
		if (life % 2)	     /* else the other end may still talk with the life before */
			ct_sync(ct, NULL);
	}
	vt_finish(&e);
}

const struct ct_case vt_psn[] = { { "V4", "psn-mismatch", { mismatch, mismatch }, .slow = true },
				  { "V4", "psn-unreliable", { unreliable, unreliable } },
				  { "V4", "psn-wraps", { wraps, wraps } },
				  { "V4", "psn-another-life", { begins_anew, begins_anew } },
				  { "V4", "psn-same-numbers", { begins_anew, begins_anew }, .arg = 1 },
				  { NULL } };
