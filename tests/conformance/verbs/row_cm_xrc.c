/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row CM: ids whose queue pairs are XRC: rdma_create_ep(3), rdma_create_srq(3). Rank 0 receives, rank 1 sends. */
#include "cmt.h"

#include <netinet/in.h>
#include <stdio.h>

#define LEN 1000

static struct rdma_cm_id *ep_make(struct ct *ct, uint16_t port, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .sq_sig_all = 1 };
	struct rdma_addrinfo hints = { .ai_flags = type == IBV_QPT_XRC_RECV ? RAI_PASSIVE : 0,
				       .ai_port_space = RDMA_PS_IB,
				       .ai_qp_type = (int)type },
			     *res;
	struct rdma_cm_id *id;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	CMT_OK(ct, rdma_getaddrinfo("127.0.0.1", service, &hints, &res));
	CT_TRUE(ct, res->ai_qp_type == (int)type && res->ai_port_space == RDMA_PS_IB);
	rc = rdma_create_ep(&id, res, NULL, &attr);
	rdma_freeaddrinfo(res);
	if (rc && (errno == EOPNOTSUPP || errno == EINVAL) && !port)
		ct_unsupported(ct, "no XRC ids");
	CMT_OK(ct, rc);
	return id;
}

/* The queue pair takes no receives: its id has a shared receive queue, whose number the other end is told. */
static void receives(struct ct *ct)
{
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct rdma_cm_id *listener = ep_make(ct, 0, IBV_QPT_XRC_RECV), *id;
	struct rdma_conn_param param = { .private_data_len = sizeof(uint32_t) };
	uint16_t port = ntohs(rdma_get_src_port(listener));
	static unsigned char buf[LEN];
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t number;

	CMT_OK(ct, rdma_listen(listener, 1));
	ct_put(ct, 1, &port, sizeof(port));
	CMT_OK(ct, rdma_get_request(listener, &id));
	CT_EQ(ct, id->qp->qp_type, IBV_QPT_XRC_RECV);
	CMT_OK(ct, rdma_create_srq(id, NULL, &srq));
	CT_TRUE(ct, id->srq && id->recv_cq);
	CT_EQ(ct, ibv_get_srq_num(id->srq, &number), 0);
	param.private_data = &number;
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	CT_TRUE(ct, mr);
	CMT_OK(ct, rdma_post_recv(id, buf, buf, sizeof(buf), mr));
	CMT_OK(ct, rdma_accept(id, &param));
	CT_EQ(ct, rdma_get_recv_comp(id, &wc), 1);
	CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	CT_TRUE(ct, wc.wr_id == (uintptr_t)buf && wc.byte_len == LEN && wc.qp_num == id->qp->qp_num);
	ct_verify(ct, buf, LEN, 5, "message");
	ct_sync(ct, NULL);
	rdma_disconnect(id);
	CMT_OK(ct, rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void sends(struct ct *ct)
{
	static unsigned char buf[LEN];
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct rdma_cm_id *id;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint16_t port;

	ct_get(ct, NULL, 0, &port, sizeof(port));
	id = ep_make(ct, port, IBV_QPT_XRC_SEND);
	CT_EQ(ct, id->qp->qp_type, IBV_QPT_XRC_SEND);
	CT_TRUE(ct, id->send_cq && !id->recv_cq);
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	CT_TRUE(ct, mr);
	CMT_OK(ct, rdma_connect(id, NULL));
	memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data, sizeof(uint32_t));
	ct_fill(buf, LEN, 5);
	sge = (struct ibv_sge){ (uintptr_t)buf, LEN, mr->lkey };
	wr.sg_list = &sge;
	CT_EQ(ct, ibv_post_send(id->qp, &wr, &bad), 0);
	CT_EQ(ct, rdma_get_send_comp(id, &wc), 1);
	CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	ct_sync(ct, NULL);
	rdma_disconnect(id);
	CMT_OK(ct, rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
}

const struct ct_case vt_cm_xrc[] = { { "CM", "xrc", { receives, sends } }, { NULL } };
