/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * CM: queue pairs that ids do not know, which their programs make, name and move:
 * rdma_init_qp_attr(3), rdma_establish(3), rdma_notify(3).
 */
#include "cmt.h"
#include "vt.h"

struct own {
	struct cmt c;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct rdma_conn_param p; /* which names it */
	uint64_t words[2];
};

static void own_to(struct own *o, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	CMT_OK(o->c.ct, rdma_init_qp_attr(o->c.id, &attr, &mask));
	CMT_OK(o->c.ct, ibv_modify_qp(o->qp, &attr, mask));
}

/* An id that can call, or that of a request, and a queue pair in INIT. */
static void own_open(struct ct *ct, struct own *o)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	static char none[1];

	cmt_serve(ct, &o->c);
	o->c.id = ct->rank ? cmt_resolve(&o->c) : cmt_asked(&o->c);
	o->pd = ibv_alloc_pd(o->c.id->verbs);
	o->cq = attr.send_cq = attr.recv_cq = ibv_create_cq(o->c.id->verbs, 8, NULL, NULL, 0);
	CT_TRUE(ct, o->pd && o->cq);
	o->mr = ibv_reg_mr(o->pd, o->words, sizeof(o->words),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CT_TRUE(ct, o->mr != NULL);
	o->qp = ibv_create_qp(o->pd, &attr);
	CT_TRUE(ct, o->qp != NULL);
	own_to(o, IBV_QPS_INIT);
	o->p = cmt_param(none, 0, 0);
	o->p.qp_num = o->qp->qp_num;
	o->p.responder_resources = o->p.initiator_depth = 1;
}

static void own_close(struct own *o)
{
	struct ct *ct = o->c.ct;

	ct_sync(ct, NULL);
	CMT_OK(ct, ibv_destroy_qp(o->qp));
	CMT_OK(ct, ibv_dereg_mr(o->mr));
	CMT_OK(ct, ibv_destroy_cq(o->cq));
	CMT_OK(ct, ibv_dealloc_pd(o->pd));
	cmt_close(&o->c);
}

static void own_done(struct own *o)
{
	double end = ct_deadline(o->c.ct);
	struct ibv_wc wc;

	while (!ibv_poll_cq(o->cq, 1, &wc))
		ct_late(o->c.ct, end, "a completion");
	CT_EQ(o->c.ct, wc.status, IBV_WC_SUCCESS);
}

/* A read of the other end's first eight bytes. */
static void own_read(struct own *o)
{
	struct ct *ct = o->c.ct;
	struct ibv_sge sge = { (uintptr_t)&o->words[1], 8, o->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ }, *bad;
	uint64_t at[2] = { (uintptr_t)o->words, o->mr->rkey };

	o->words[0] = 77 + (unsigned)ct->rank;
	ct_put(ct, !ct->rank, at, sizeof(at));
	ct_get(ct, NULL, !ct->rank, at, sizeof(at));
	wr.wr.rdma.remote_addr = at[0];
	wr.wr.rdma.rkey = (uint32_t)at[1];
	CMT_OK(ct, ibv_post_send(o->qp, &wr, &bad));
	own_done(o);
	CT_EQ(ct, o->words[1], 77 + !ct->rank);
}

/* That of the service is in RTS before it answers. */
static void own_queue_pairs(struct ct *ct)
{
	struct own o;

	own_open(ct, &o);
	if (ct->rank) {
		CMT_OK(ct, rdma_connect(o.c.id, &o.p));
		cmt_expect(&o.c, RDMA_CM_EVENT_CONNECT_RESPONSE, o.c.id, 0);
		own_to(&o, IBV_QPS_RTR);
		own_to(&o, IBV_QPS_RTS);
		CMT_OK(ct, rdma_establish(o.c.id));
	} else {
		own_to(&o, IBV_QPS_RTR);
		own_to(&o, IBV_QPS_RTS);
		CMT_OK(ct, rdma_accept(o.c.id, &o.p));
		cmt_expect(&o.c, RDMA_CM_EVENT_ESTABLISHED, o.c.id, 0);
	}
	own_read(&o);
	own_close(&o);
}

/* ---- rdma_notify ----------------------------------------------------------------------------- */

/* The caller's first message is here before its last word; who is told so hands it on to the id. */
static void notified(struct ct *ct)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct own o;

	own_open(ct, &o);
	sge = (struct ibv_sge){ (uintptr_t)o.words, 8, o.mr->lkey };
	if (ct->rank) {
		CMT_OK(ct, rdma_connect(o.c.id, &o.p));
		cmt_expect(&o.c, RDMA_CM_EVENT_CONNECT_RESPONSE, o.c.id, 0);
		CMT_ERR(ct, rdma_notify(o.c.id, IBV_EVENT_COMM_EST),
			EINVAL); /* the answer has come: not what it waits for */
		own_to(&o, IBV_QPS_RTR);
		own_to(&o, IBV_QPS_RTS);
		CMT_OK(ct, ibv_post_send(o.qp, &wr, &bad));
		own_done(&o);
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_establish(o.c.id));
	} else {
		/* it has not answered */
		CMT_ERR(ct, rdma_notify(o.c.id, IBV_EVENT_COMM_EST), EINVAL);
		own_to(&o, IBV_QPS_RTR);
		CMT_OK(ct, ibv_post_recv(o.qp, &recv, &bad_recv));
		CMT_OK(ct, rdma_accept(o.c.id, &o.p));
		own_done(&o);
		vt_met(ct, o.c.id->verbs, o.qp);
		CMT_OK(ct, rdma_notify(o.c.id, IBV_EVENT_COMM_EST));
		own_to(&o, IBV_QPS_RTS);
		ct_sync(ct, NULL);
		cmt_expect(&o.c, RDMA_CM_EVENT_ESTABLISHED, o.c.id, 0);
	}
	CMT_ERR(ct, rdma_notify(o.c.id, IBV_EVENT_COMM_EST), EISCONN);
	own_close(&o);
}

const struct ct_case vt_cm_own[] = {
	{ "CM", "queue-pairs-of-their-own", { own_queue_pairs, own_queue_pairs } },
	{ "CM", "notify", { notified, notified } },
	{ NULL },
};
