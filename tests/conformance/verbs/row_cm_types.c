/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: ids whose queue pairs are XRC or UC: rdma_create_ep(3), rdma_create_srq(3),
 * rdma_create_qp(3). Rank 0 receives, rank 1 sends.
 */
#include "cmt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>

#define LEN 1000

/* An argument of 0 leaves the port space to rdma_getaddrinfo. */
static struct rdma_cm_id *ep_make(struct ct *ct, uint16_t port, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .sq_sig_all = 1 };
	struct rdma_addrinfo hints = { .ai_flags = port ? 0 : RAI_PASSIVE,
				       .ai_port_space = (int)ct->cs->arg,
				       .ai_qp_type = (int)type },
			     *res;
	struct rdma_cm_id *id;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	CMT_OK(ct, rdma_getaddrinfo("127.0.0.1", service, &hints, &res));
	CT_TRUE(ct, res->ai_qp_type == (int)type &&
			    res->ai_port_space == (ct->cs->arg ? RDMA_PS_IB : RDMA_PS_TCP));
	rc = rdma_create_ep(&id, res, NULL, &attr);
	rdma_freeaddrinfo(res);
	if (rc && (errno == EOPNOTSUPP || errno == EINVAL) && !port)
		ct_unsupported(ct, "no ids of this type");
	CMT_OK(ct, rc);
	return id;
}

/* ---- rdma_init_qp_attr ----------------------------------------------------------------------- */

#define MASK_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define MASK_RESPONDS (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define MASK_RTS (IBV_QP_STATE | IBV_QP_SQ_PSN)
#define MASK_ASKS (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static int mask_of(struct ct *ct, struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	CMT_OK(ct, rdma_init_qp_attr(id, &attr, &mask));
	return mask;
}

/*
 * As the kernel's CM has it: who only sends says nothing of what it does for others, who only
 * receives nothing of tries; UC neither.
 */
static void says_its_part(struct ct *ct, struct rdma_cm_id *id)
{
	bool rc = id->ps == RDMA_PS_TCP; /* to the CM, whatever its queue pair */
	bool responds = rc || id->qp_type == IBV_QPT_XRC_RECV, asks = rc || id->qp_type == IBV_QPT_XRC_SEND;

	CT_EQ(ct, mask_of(ct, id, IBV_QPS_RTR), MASK_RTR | (responds ? MASK_RESPONDS : 0));
	CT_EQ(ct, mask_of(ct, id, IBV_QPS_RTS),
	      MASK_RTS | (responds || asks ? IBV_QP_TIMEOUT : 0) | (asks ? MASK_ASKS : 0));
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* Rank 0's id, which somebody asks for; what it has for it. */
struct called {
	struct rdma_cm_id *listener, *id;
};

static struct called called(struct ct *ct, enum ibv_qp_type type)
{
	struct called c = { .listener = ep_make(ct, 0, type) };
	uint16_t port = ntohs(rdma_get_src_port(c.listener));

	CMT_OK(ct, rdma_listen(c.listener, 1));
	ct_put(ct, 1, &port, sizeof(port));
	CMT_OK(ct, rdma_get_request(c.listener, &c.id));
	CT_EQ(ct, c.id->qp->qp_type, type);
	return c;
}

/* Rank 1's, with which it calls. */
static struct rdma_cm_id *calls(struct ct *ct, enum ibv_qp_type type)
{
	struct rdma_cm_id *id;
	uint16_t port;

	ct_get(ct, NULL, 0, &port, sizeof(port));
	id = ep_make(ct, port, type);
	CT_EQ(ct, id->qp->qp_type, type);
	return id;
}

static struct ibv_mr *memory(struct ct *ct, struct rdma_cm_id *id, unsigned char *buf)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, buf, LEN);

	CT_TRUE(ct, mr);
	return mr;
}

/* Rank 0 accepts, and has the message that comes; all goes. */
static void accepts(struct ct *ct, const struct called *c, struct rdma_conn_param *param)
{
	static unsigned char buf[LEN];
	struct ibv_mr *mr = memory(ct, c->id, buf);
	struct ibv_wc wc;

	CMT_OK(ct, rdma_post_recv(c->id, buf, buf, LEN, mr));
	CMT_OK(ct, rdma_accept(c->id, param));
	CT_EQ(ct, rdma_get_recv_comp(c->id, &wc), 1);
	CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	CT_TRUE(ct, wc.wr_id == (uintptr_t)buf && wc.byte_len == LEN && wc.qp_num == c->id->qp->qp_num);
	ct_verify(ct, buf, LEN, 5, "message");
	says_its_part(ct, c->id);
	ct_sync(ct, NULL);
	rdma_disconnect(c->id);
	CMT_OK(ct, rdma_dereg_mr(mr));
	rdma_destroy_ep(c->id);
	rdma_destroy_ep(c->listener);
}

/* What rank 1 sends has left; all goes. */
static void has_sent(struct ct *ct, struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	CT_EQ(ct, rdma_get_send_comp(id, &wc), 1);
	CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	ct_sync(ct, NULL);
	rdma_disconnect(id);
	CMT_OK(ct, rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
}

/*
 * The queue pair takes no receives: its id has a shared receive queue, whose
 * number the other end is told.
 */
static void receives(struct ct *ct)
{
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct rdma_conn_param param = { .private_data_len = sizeof(uint32_t) };
	struct called c = called(ct, IBV_QPT_XRC_RECV);
	uint32_t number;

	CMT_OK(ct, rdma_create_srq(c.id, NULL, &srq));
	CT_TRUE(ct, c.id->srq && c.id->recv_cq);
	CT_EQ(ct, ibv_get_srq_num(c.id->srq, &number), 0);
	param.private_data = &number;
	accepts(ct, &c, &param);
}

static void sends(struct ct *ct)
{
	static unsigned char buf[LEN];
	struct rdma_cm_id *id = calls(ct, IBV_QPT_XRC_SEND);
	struct ibv_mr *mr = memory(ct, id, buf);
	struct ibv_sge sge = { (uintptr_t)buf, LEN, mr->lkey };
	struct ibv_send_wr wr = { .num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND }, *bad;

	CT_TRUE(ct, id->send_cq && !id->recv_cq);
	CMT_OK(ct, rdma_connect(id, NULL));
	memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data, sizeof(uint32_t));
	says_its_part(ct, id);
	ct_fill(buf, LEN, 5);
	CT_EQ(ct, ibv_post_send(id->qp, &wr, &bad), 0);
	has_sent(ct, id, mr);
}

static void receives_uc(struct ct *ct)
{
	struct called c = called(ct, IBV_QPT_UC);

	accepts(ct, &c, NULL);
}

static void sends_uc(struct ct *ct)
{
	static unsigned char buf[LEN];
	struct rdma_cm_id *id = calls(ct, IBV_QPT_UC);
	struct ibv_mr *mr = memory(ct, id, buf);

	CMT_OK(ct, rdma_connect(id, NULL));
	says_its_part(ct, id);
	ct_fill(buf, LEN, 5);
	CMT_OK(ct, rdma_post_send(id, NULL, buf, LEN, mr, 0));
	has_sent(ct, id, mr);
}

/* ---- ids of RDMA_PS_TCP ---------------------------------------------------------------------- */

/* What a program has beside its id: queues of its own. */
struct own {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	unsigned char buf[LEN];
};

static void own_open(struct ct *ct, struct rdma_cm_id *id, struct own *o)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					     .fd = -1,
					     .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex attr = { .attr = { 4, 1, 0 },
					     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					     .srq_type = IBV_SRQT_XRC };

	o->pd = ibv_alloc_pd(id->verbs);
	o->cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	o->xrcd = ibv_open_xrcd(id->verbs, &domain);
	CT_TRUE(ct, o->pd && o->cq && o->xrcd);
	attr.pd = o->pd;
	attr.cq = o->cq;
	attr.xrcd = o->xrcd;
	o->srq = ibv_create_srq_ex(id->verbs, &attr);
	o->mr = ibv_reg_mr(o->pd, o->buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	CT_TRUE(ct, o->srq && o->mr);
}

static void own_close(struct ct *ct, struct own *o)
{
	CT_EQ(ct, ibv_destroy_qp(o->qp), 0);
	CT_EQ(ct, ibv_dereg_mr(o->mr), 0);
	CT_EQ(ct, ibv_destroy_srq(o->srq), 0);
	CT_EQ(ct, ibv_close_xrcd(o->xrcd), 0);
	CT_EQ(ct, ibv_destroy_cq(o->cq), 0);
	CT_EQ(ct, ibv_dealloc_pd(o->pd), 0);
}

/*
 * It names the shared receive queue, as programs do that have one attribute for all queue pairs:
 * XRC has no use for it there.
 */
static void own_qp(struct ct *ct, struct rdma_cm_id *id, struct own *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = o->cq,
					    .recv_cq = o->cq,
					    .srq = o->srq,
					    .cap = { 4, 0, 1, 1, 0 },
					    .qp_type = type,
					    .sq_sig_all = 1,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = o->pd };

	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = o->xrcd;
	}
	CT_EQ(ct, id->qp_type, IBV_QPT_RC);
	CMT_OK(ct, rdma_create_qp_ex(id, &attr));
	CT_TRUE(ct, id->qp && id->qp->qp_type == type);
	o->qp = id->qp;
}

/* The queue pair is the program's from here on: it goes on when the connection has ended. */
static void take_away(struct cmt *c, struct rdma_cm_id *id)
{
	CT_EQ(c->ct, cmt_state(c, id), IBV_QPS_RTS);
	id->qp = NULL;
	if (c->ct->rank)
		CMT_OK(c->ct, rdma_disconnect(id));
	cmt_expect(c, RDMA_CM_EVENT_DISCONNECTED, id, 0);
	if (!c->ct->rank)
		CMT_OK(c->ct, rdma_disconnect(id));
	cmt_expect(c, RDMA_CM_EVENT_TIMEWAIT_EXIT, id, 0);
	CMT_OK(c->ct, rdma_destroy_id(id));
}

static void one_completion(struct ct *ct, struct own *o, struct ibv_wc *wc)
{
	double end = ct_deadline(ct);

	while (!ibv_poll_cq(o->cq, 1, wc)) {
		ct_late(ct, end, "a completion");
		ct_pause();
	}
	CT_EQ(ct, wc->status, IBV_WC_SUCCESS);
}

static void takes_over(struct ct *ct)
{
	struct rdma_conn_param param = { .private_data_len = sizeof(uint32_t), .responder_resources = 1 };
	struct rdma_cm_id *id;
	struct cmt c;
	static struct own o;
	uint32_t number;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	cmt_serve(ct, &c);
	id = cmt_asked(&c);
	own_open(ct, id, &o);
	sge = (struct ibv_sge){ (uintptr_t)o.buf, LEN, o.mr->lkey };
	own_qp(ct, id, &o, IBV_QPT_XRC_RECV);
	CT_EQ(ct, ibv_get_srq_num(o.srq, &number), 0);
	param.private_data = &number;
	CMT_OK(ct, rdma_accept(id, &param));
	cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, id, 0);
	take_away(&c, id);
	CT_EQ(ct, ibv_post_srq_recv(o.srq, &wr, &bad), 0);
	ct_sync(ct, NULL);
	one_completion(ct, &o, &wc);
	CT_TRUE(ct, wc.wr_id == 7 && wc.byte_len == LEN && wc.qp_num == o.qp->qp_num);
	ct_verify(ct, o.buf, LEN, 6, "message");
	ct_sync(ct, NULL);
	own_close(ct, &o);
	cmt_close(&c);
}

static void hands_over(struct ct *ct)
{
	struct rdma_conn_param param = {
		.retry_count = 7, .rnr_retry_count = 7, .initiator_depth = 1, .srq = 1
	};
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	struct cmt c;
	static struct own o;
	struct ibv_sge sge;
	struct ibv_wc wc;

	cmt_serve(ct, &c);
	id = cmt_resolve(&c);
	own_open(ct, id, &o);
	own_qp(ct, id, &o, IBV_QPT_XRC_SEND);
	CMT_OK(ct, rdma_connect(id, &param));
	e = cmt_event(&c, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&wr.qp_type.xrc.remote_srqn, e->param.conn.private_data, sizeof(uint32_t));
	CMT_OK(ct, rdma_ack_cm_event(e));
	take_away(&c, id);
	ct_fill(o.buf, LEN, 6);
	sge = (struct ibv_sge){ (uintptr_t)o.buf, LEN, o.mr->lkey };
	wr.sg_list = &sge;
	ct_sync(ct, NULL);
	CT_EQ(ct, ibv_post_send(o.qp, &wr, &bad), 0);
	one_completion(ct, &o, &wc);
	ct_sync(ct, NULL);
	own_close(ct, &o);
	cmt_close(&c);
}

const struct ct_case vt_cm_types[] = { { "CM", "xrc", { receives, sends }, .arg = RDMA_PS_IB },
				       { "CM", "xrc endpoints of RDMA_PS_TCP", { receives, sends } },
				       { "CM", "xrc over ids of RDMA_PS_TCP", { takes_over, hands_over } },
				       { "CM", "uc", { receives_uc, sends_uc }, .arg = RDMA_PS_IB },
				       { NULL } };
