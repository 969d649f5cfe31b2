/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: datagram services, RDMA_PS_UDP and RDMA_PS_IPOIB: a caller learns where the service's
 * queue pair is, and sends to it.
 */
#include "cmt.h"

enum {
	GRH = 40,
	LEN = 200
};

static void space_of(struct ct *ct, struct cmt *c)
{
	cmt_open(ct, c);
	c->ps = RDMA_PS_UDP;
	if (ct->rank)
		cmt_find(c);
	else
		cmt_listen(c, 8);
}

static void service(struct cmt *c)
{
	struct rdma_cm_event *e = cmt_event(c, RDMA_CM_EVENT_CONNECT_REQUEST);
	char buf[136], in[GRH + LEN];
	struct rdma_conn_param p = cmt_param(buf, sizeof(buf), 2);
	struct ibv_mr *mr;
	struct ibv_wc wc;

	c->id = e->id;
	CT_EQ(c->ct, c->id->ps, RDMA_PS_UDP);
	CT_EQ(c->ct, c->id->qp_type, IBV_QPT_UD);
	cmt_said(c, e->param.ud.private_data, e->param.ud.private_data_len, 180, 180, 1);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	cmt_qp(c, c->id);
	CT_EQ(c->ct, cmt_state(c, c->id), IBV_QPS_RTS);
	mr = rdma_reg_msgs(c->id, in, sizeof(in));
	CT_TRUE(c->ct, mr);
	CMT_OK(c->ct, rdma_post_recv(c->id, NULL, in, sizeof(in), mr));
	CMT_OK(c->ct, rdma_accept(c->id, &p));
	CT_EQ(c->ct, rdma_get_recv_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(c->ct, wc.byte_len, GRH + LEN);
	ct_verify(c->ct, in + GRH, LEN, 3, "datagram");
	CT_EQ(c->ct, rdma_dereg_mr(mr), 0);
	cmt_quiet(c, 20);
	CMT_OK(c->ct, rdma_disconnect(c->id)); /* nobody is told of it */
	CT_EQ(c->ct, cmt_state(c, c->id), IBV_QPS_ERR);
	cmt_quiet(c, 20);
}

static void customer(struct cmt *c)
{
	char buf[180], out[LEN];
	struct rdma_conn_param p = cmt_param(buf, sizeof(buf), 1);
	struct rdma_cm_event *e;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	c->id = cmt_resolve(c);
	cmt_qp(c, c->id);
	CMT_OK(c->ct, rdma_connect(c->id, &p));
	e = cmt_event(c, RDMA_CM_EVENT_ESTABLISHED);
	CT_TRUE(c->ct, e->id == c->id);
	CT_EQ(c->ct, e->status, 0);
	cmt_said(c, e->param.ud.private_data, e->param.ud.private_data_len, 136, 136, 2);
	CT_EQ(c->ct, e->param.ud.qkey, RDMA_UDP_QKEY);
	ah = ibv_create_ah(c->id->pd, &e->param.ud.ah_attr);
	CT_TRUE(c->ct, ah);
	mr = rdma_reg_msgs(c->id, out, sizeof(out));
	CT_TRUE(c->ct, mr);
	ct_fill(out, LEN, 3);
	CMT_OK(c->ct,
	       rdma_post_ud_send(c->id, NULL, out, LEN, mr, IBV_SEND_SIGNALED, ah, e->param.ud.qp_num));
	CT_EQ(c->ct, rdma_get_send_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_SUCCESS);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	CT_EQ(c->ct, ibv_destroy_ah(ah), 0);
	CT_EQ(c->ct, rdma_dereg_mr(mr), 0);
	CMT_OK(c->ct, rdma_disconnect(c->id));
	CT_EQ(c->ct, cmt_state(c, c->id), IBV_QPS_ERR);
	cmt_quiet(c, 20);
}

static void resolution(struct ct *ct)
{
	struct cmt c;

	space_of(ct, &c);
	if (ct->rank)
		customer(&c);
	else
		service(&c);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

static void is_unreachable(struct cmt *c, int status, size_t len)
{
	struct rdma_cm_id *id = cmt_resolve(c);
	struct rdma_cm_event *e;

	CMT_OK(c->ct, rdma_connect(id, NULL));
	e = cmt_event(c, RDMA_CM_EVENT_UNREACHABLE);
	CT_TRUE(c->ct, e->id == id);
	CT_EQ(c->ct, e->status, status);
	cmt_said(c, e->param.ud.private_data, e->param.ud.private_data_len, len, 136, 5);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	CMT_OK(c->ct, rdma_destroy_id(id));
}

static void no_service(struct ct *ct)
{
	char buf[181];
	struct rdma_conn_param p = cmt_param(buf, 181, 1);
	struct rdma_cm_id *id;
	struct cmt c;

	space_of(ct, &c);
	if (ct->rank) {
		id = cmt_resolve(&c);
		CMT_ERR(ct, rdma_connect(id, &p), EINVAL);
		CMT_OK(ct, rdma_destroy_id(id));
		is_unreachable(&c, CMT_SIDR_REJECT, 0);
		is_unreachable(&c, CMT_SIDR_REJECT, 136);
		ct_sync(ct, NULL);
		is_unreachable(&c, CMT_SIDR_NOBODY, 0);
	} else {
		id = cmt_asked(&c);
		p.private_data_len = 137;
		CMT_ERR(ct, rdma_accept(id, &p), EINVAL);
		CMT_ERR(ct, rdma_reject(id, buf, 137), EINVAL);
		CMT_OK(ct, rdma_reject(id, NULL, 0));
		CMT_OK(ct, rdma_destroy_id(id));
		id = cmt_asked(&c);
		ct_fill(buf, 136, 5);
		CMT_OK(ct, rdma_reject(id, buf, 136));
		CMT_OK(ct, rdma_destroy_id(id));
		CMT_OK(ct, rdma_destroy_id(c.listener));
		c.listener = NULL;
		ct_sync(ct, NULL);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* rdma_init_qp_attr, for programs that make queue pairs of their own: the Q_Key of datagram ids. */
static void attributes(struct ct *ct)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct cmt c;
	int mask;

	cmt_open(ct, &c);
	c.ps = ct->cs->arg == 6 ? RDMA_PS_IPOIB : RDMA_PS_UDP;
	cmt_here(AF_INET, 4000, &c.at);
	c.id = cmt_resolve(&c);
	CMT_OK(ct, rdma_init_qp_attr(c.id, &attr, &mask));
	CT_EQ(ct, mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	CT_EQ(ct, attr.qkey, RDMA_UDP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	CMT_OK(ct, rdma_init_qp_attr(c.id, &attr, &mask));
	CT_EQ(ct, mask, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	CMT_OK(ct, rdma_init_qp_attr(c.id, &attr, &mask));
	CT_EQ(ct, mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
	cmt_close(&c);
}

const struct ct_case vt_cm_ud[] = {
	{ "CM", "datagram-service", CT_TWO(resolution), .arg = 4 },
	{ "CM", "datagram-service-ipv6", CT_TWO(resolution), .arg = 6 },
	{ "CM", "no-datagram-service", CT_TWO(no_service), .arg = 4 },
	{ "CM", "no-datagram-service-ipv6", CT_TWO(no_service), .arg = 6 },
	{ "CM", "datagram-attributes", { attributes }, .arg = 4 },
	{ "CM", "datagram-attributes-ipoib", { attributes }, .arg = 6 },
	{ 0 },
};
