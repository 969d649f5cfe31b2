/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V2, V9: shared receive queues, ibv_create_srq(3), ibv_modify_srq(3). */
#include "vt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QPS 4

/* Any queue pair takes the next buffer; its completion says which one did. */
static void shared(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)ct->cs->arg, .srq = ct->rank };
	struct vt_name mine[QPS], theirs[QPS];
	struct ibv_qp *qp[QPS];
	struct ct_ep e;

	vt_open(ct, &e, &want);
	for (int i = 0; i < QPS; i++) {
		qp[i] = vt_qp(&e);
		mine[i] = e.me;
		mine[i].qpn = qp[i]->qp_num;
	}
	ct_put(ct, !ct->rank, mine, sizeof(mine));
	ct_get(ct, NULL, !ct->rank, theirs, sizeof(theirs));
	for (int i = 0; i < QPS; i++)
		vt_connect(&e, qp[i], &theirs[i]);
	if (ct->rank)
		for (uint64_t i = 0; i < 20; i++)
			vt_recv(&e, i * 64, 64, i);
	ct_sync(ct, &e);
	for (uint64_t i = 0; i < 20; i++) {
		int by = (int)(i * 7 % QPS);
		struct ibv_sge sge = vt_sge(&e, 0, 64);
		struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
				   *bad;
		struct ibv_wc wc;

		if (ct->rank) {
			vt_any(&e, &wc);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			CT_EQ(ct, wc.wr_id, i);
			CT_EQ(ct, wc.qp_num, qp[by]->qp_num);
			ct_verify(ct, e.buf + i * 64, 64, i, "shared");
		} else {
			ct_fill(e.buf, 64, i);
			VT_OK(ct, ibv_post_send(qp[by], &wr, &bad));
			vt_next(&e, i, IBV_WC_SUCCESS);
		}
	}
	ct_sync(ct, &e);
	for (int i = 0; i < QPS; i++)
		VT_OK(ct, ibv_destroy_qp(qp[i]));
	vt_close(&e);
}

#define CROWD 1000

/*
 * Queue pairs from the first to before the last are made, and connected to those of the other end.
 */
static void crowd_meet(struct ct *ct, struct ct_ep *e, struct ibv_qp **qp, int first, int last)
{
	static struct vt_name mine[CROWD], theirs[CROWD];
	size_t size = sizeof(mine[0]) * (size_t)(last - first);

	for (int i = first; i < last; i++) {
		qp[i] = vt_qp(e);
		mine[i] = e->me;
		mine[i].qpn = qp[i]->qp_num;
	}
	ct_put(ct, !ct->rank, mine + first, size);
	ct_get(ct, NULL, !ct->rank, theirs + first, size);
	for (int i = first; i < last; i++)
		vt_connect(e, qp[i], &theirs[i]);
}

/* From the one of this number at rank 0. */
static void crowd_send(struct ct_ep *e, struct ibv_qp *qp, uint32_t number)
{
	struct ibv_sge sge = vt_sge(e, number * 64, 4);
	struct ibv_send_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
			   *bad;

	memcpy(e->buf + number * 64, &number, 4);
	VT_OK(e->ct, ibv_post_send(qp, &wr, &bad));
}

/*
 * A thousand of them: all progress, and one that is connected and idle takes at most 16 KiB,
 * besides what the two processes need at all.
 */
static void crowd(struct ct *ct)
{
	const struct vt_want want = { .srq = ct->rank, .recv_wr = CROWD, .cqe = 2 * CROWD };
	static struct ibv_qp *qp[CROWD];
	static bool seen[CROWD];
	struct ct_ep e;
	long before;

	vt_open(ct, &e, &want);
	crowd_meet(ct, &e, qp, 0, 1);
	for (uint64_t i = 0; ct->rank && i < CROWD; i++)
		vt_recv(&e, i * 64, 64, i);
	ct_sync(ct, &e);
	if (!ct->rank) {
		crowd_send(&e, qp[0], 0);
		vt_done(&e, 0, NULL);
	}
	ct_sync(ct, &e);
	before = ct_memory(ct, "Rss");
	crowd_meet(ct, &e, qp, 1, CROWD);
	ct_sync(ct, &e);
	CT_TRUE(ct, !CT_OWN_MEMORY || ct_memory(ct, "Rss") - before <= CROWD * 16L);
	for (uint32_t i = 0; i < CROWD; i++) {
		struct ibv_wc wc;
		uint32_t by;

		if (!ct->rank) {
			if (i)
				crowd_send(&e, qp[i], i);
			continue;
		}
		vt_any(&e, &wc);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		memcpy(&by, e.buf + wc.wr_id * 64, 4);
		CT_TRUE(ct, by < CROWD && !seen[by] && wc.qp_num == qp[by]->qp_num);
		seen[by] = true;
	}
	for (uint32_t i = 1; !ct->rank && i < CROWD; i++)
		vt_done(&e, i, NULL);
	ct_sync(ct, &e);
	for (int i = 0; i < CROWD; i++)
		VT_OK(ct, ibv_destroy_qp(qp[i]));
	vt_close(&e);
}

static void attributes(struct ct *ct)
{
	const struct vt_want want = { .srq = true, .recv_wr = 50 };
	struct ibv_srq_init_attr bad = { NULL, { 1u << 30, 1, 0 } };
	struct ibv_srq_attr attr;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	VT_OK(ct, ibv_query_srq(e.srq, &attr));
	CT_TRUE(ct, attr.max_wr >= 50 && attr.max_sge >= 4);
	CT_EQ(ct, attr.srq_limit, 0);
	CT_TRUE(ct, e.srq->context == e.context && e.srq->pd == e.pd && e.srq->srq_context == &e);
	attr = (struct ibv_srq_attr){ .max_wr = 200, .srq_limit = 7 };
	VT_OK(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR));
	VT_OK(ct, ibv_query_srq(e.srq, &attr));
	CT_TRUE(ct, attr.max_wr >= 200);
	CT_EQ(ct, attr.srq_limit, 0);
	for (uint64_t i = 0; i < 200; i++)
		vt_recv(&e, 0, 8, i);
	attr.max_wr = 100; /* there are more in it */
	VT_ERR(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 1u << 30;
	VT_ERR(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.srq_limit = 100000;
	VT_ERR(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	attr.srq_limit = 10;
	VT_OK(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT));
	VT_OK(ct, ibv_query_srq(e.srq, &attr));
	CT_EQ(ct, attr.srq_limit, 10);
	VT_ERR(ct, ibv_modify_srq(e.srq, &attr, 1 << 9), EINVAL);
	VT_NULL(ct, ibv_create_srq(e.pd, &bad), EINVAL);
	bad.attr = (struct ibv_srq_attr){ 1, 1000, 0 };
	VT_NULL(ct, ibv_create_srq(e.pd, &bad), EINVAL);
	{ /* receives of a queue pair with an SRQ go nowhere else */
		struct ibv_recv_wr wr = { .wr_id = 1 }, *bad_wr = NULL;

		VT_ERR(ct, ibv_post_recv(e.qp, &wr, &bad_wr), EINVAL);
		CT_TRUE(ct, bad_wr == &wr);
	}
	vt_close(&e);
}

static bool has_event(struct ct_ep *e)
{
	struct pollfd fd = { e->context->async_fd, POLLIN, 0 };

	ct_progress(e);
	return poll(&fd, 1, 5) == 1;
}

/* Fewer than the limit are left: once, until it is armed anew. */
static void limit(struct ct *ct)
{
	const struct vt_want want = { .srq = ct->rank };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		struct ibv_srq_attr attr = { .srq_limit = 8 };

		for (uint64_t i = 0; i < 10; i++)
			vt_recv(&e, 0, 64, i);
		VT_OK(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT));
		ct_sync(ct, NULL);
		vt_done(&e, 0, NULL);
		vt_done(&e, 1, NULL);
		CT_TRUE(ct, !has_event(&e));
		ct_sync(ct, NULL);
		vt_done(&e, 2, NULL);
		vt_event(&e, IBV_EVENT_SRQ_LIMIT_REACHED, e.srq);
		VT_OK(ct, ibv_query_srq(e.srq, &attr));
		CT_EQ(ct, attr.srq_limit, 0);
		ct_sync(ct, NULL);
		vt_done(&e, 3, NULL);
		CT_TRUE(ct, !has_event(&e));
		attr.srq_limit = 7; /* six are left: at once */
		VT_OK(ct, ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT));
		vt_event(&e, IBV_EVENT_SRQ_LIMIT_REACHED, e.srq);
	} else {
		ct_sync(ct, NULL);
		vt_send(&e, 0, 8, 1);
		vt_send(&e, 0, 8, 1);
		ct_sync(ct, &e);
		vt_send(&e, 0, 8, 1);
		ct_sync(ct, &e);
		vt_send(&e, 0, 8, 1);
		for (int i = 0; i < 4; i++)
			vt_next(&e, 1, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* A queue pair in error tells when it will take no further receive of the SRQ; those stay. */
static void last_wqe(struct ct *ct)
{
	const struct vt_want want = { .srq = true };
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_connect(&e, e.qp, &e.me);
	vt_recv(&e, 0, 64, 1);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	vt_event(&e, IBV_EVENT_QP_LAST_WQE_REACHED, e.qp);
	vt_quiet(&e, 5, "a receive of the SRQ");
	VT_OK(ct, ibv_destroy_qp(e.qp));
	e.qp = vt_qp(&e); /* another one uses it up */
	e.me.qpn = e.qp->qp_num;
	e.peer[!ct->rank] = e.me;
	vt_connect(&e, e.qp, &e.me);
	vt_send(&e, 4096, 8, 2);
	vt_done(&e, 1, NULL);
	vt_done(&e, 2, NULL);
	vt_close(&e);
}

/*
 * A basic queue does not mind what the mask says of parts that other types have, as drivers do not
 * look; nor whether it speaks of the domain.
 */
static void parts_of_others(struct ct *ct)
{
	static const uint32_t masks[] = {
		IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
		IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM,
		IBV_SRQ_INIT_ATTR_TYPE,
		0,
	};
	struct ibv_srq_attr is;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		struct ibv_srq_init_attr_ex attr = { .attr = { 8, 1, 0 },
						     .comp_mask = masks[i],
						     .srq_type = IBV_SRQT_BASIC };
		struct ibv_srq *srq;

		/* without a domain it is none */
		VT_NULL(ct, ibv_create_srq_ex(e.context, &attr), EINVAL);
		attr.pd = e.pd;
		attr.cq = e.cq;
		srq = ibv_create_srq_ex(e.context, &attr);
		CT_TRUE(ct, srq);
		VT_OK(ct, ibv_query_srq(srq, &is));
		CT_TRUE(ct, is.max_wr >= 8);
		VT_OK(ct, ibv_destroy_srq(srq));
	}
	vt_close(&e);
}

const struct ct_case vt_srq[] = { { "V2", "shared", { shared, shared } },
				  { "V2", "shared-uc", { shared, shared }, .arg = IBV_QPT_UC },
				  { "V2", "crowd", { crowd, crowd } },
				  { "V9", "attributes", { attributes } },
				  { "V9", "parts-of-others", { parts_of_others } },
				  { "V9", "limit", { limit, limit } },
				  { "V9", "last-wqe", { last_wqe } },
				  { NULL } };
