/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Paths of verbs: two contexts of this process, each with a queue pair, whose receives
 * come from a shared queue.
 */
#include <stdbool.h>
#include <string.h>

#include "paths.h"
#include "sample.h"
#include "verbs_open.h"

#define BUFFER 4096
#define GRH 40 /* bytes before a datagram */

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buf;
	uint64_t sent, received;
};

static struct end from, to;
static struct ibv_ah *ah; /* from's, of to */

static void end_open(struct end *e, enum ibv_qp_type type)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_srq_init_attr srq = { .attr = { 64, 1, 0 } };
	struct ibv_qp_init_attr attr = { .qp_type = type, .sq_sig_all = 1, .cap = { 64, 0, 1, 0, 0 } };

	e->context = device_open("heddle0");
	e->pd = must("ibv_alloc_pd", ibv_alloc_pd(e->context));
	e->cq = must("ibv_create_cq", ibv_create_cq(e->context, 128, NULL, NULL, 0));
	e->srq = must("ibv_create_srq", ibv_create_srq(e->pd, &srq));
	e->buf = must("aligned_alloc", aligned_alloc(BUFFER, BUFFER));
	memset(e->buf, 0, BUFFER);
	e->mr = must("ibv_reg_mr", ibv_reg_mr(e->pd, e->buf, BUFFER, access));
	attr.send_cq = attr.recv_cq = e->cq;
	attr.srq = e->srq;
	e->qp = must("ibv_create_qp", ibv_create_qp(e->pd, &attr));
}

static uint16_t lid_of(const struct end *e)
{
	struct ibv_port_attr port;

	must_be_0("ibv_query_port", ibv_query_port(e->context, 1, &port));
	return port.lid;
}

static void open_rc(void)
{
	end_open(&from, IBV_QPT_RC);
	end_open(&to, IBV_QPT_RC);
	rc_connect(from.qp, to.qp->qp_num, lid_of(&to));
	rc_connect(to.qp, from.qp->qp_num, lid_of(&from));
}

static void make_ready(struct end *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	must_be_0("to INIT",
		  ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	must_be_0("to RTR", ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	must_be_0("to RTS", ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void open_ud(void)
{
	struct ibv_ah_attr attr;

	end_open(&from, IBV_QPT_UD);
	end_open(&to, IBV_QPT_UD);
	make_ready(&from);
	make_ready(&to);
	attr = (struct ibv_ah_attr){ .dlid = lid_of(&to), .port_num = 1 };
	ah = must("ibv_create_ah", ibv_create_ah(from.pd, &attr));
}

static void reap(struct end *e)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->cq, 1, &wc);

	if (n < 0)
		hd_give_up("ibv_poll_cq failed");
	if (!n)
		return;
	if (wc.status)
		hd_give_up("a completion: %s", ibv_wc_status_str(wc.status));
	if (wc.opcode & IBV_WC_RECV)
		e->received++;
	else
		e->sent++;
}

static void receive(size_t len)
{
	struct ibv_sge sge = { (uintptr_t)to.buf, (uint32_t)len, to.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must_be_0("ibv_post_srq_recv", ibv_post_srq_recv(to.srq, &wr, &bad));
}

/* Post BATCH of it, and wait until all have completed here and, if they use up receives, there. */
static void carry_out(struct ibv_send_wr *wr, size_t len, bool receives)
{
	struct ibv_sge sge = { (uintptr_t)from.buf, (uint32_t)len, from.mr->lkey };
	uint64_t sent = from.sent + BATCH, received = to.received + receives * BATCH;
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	for (int i = 0; i < BATCH; i++) {
		if (receives)
			receive(GRH + len);
		must_be_0("ibv_post_send", ibv_post_send(from.qp, wr, &bad));
	}
	while (from.sent < sent || to.received < received) {
		reap(&from);
		reap(&to);
	}
}

static void rc_send_8(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	carry_out(&wr, 8, true);
}

static void rc_write(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = { .opcode = opcode };

	wr.wr.rdma.remote_addr = (uintptr_t)to.buf;
	wr.wr.rdma.rkey = to.mr->rkey;
	carry_out(&wr, 8, opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void rc_write_8(void)
{
	paths_pause();
	rc_write(IBV_WR_RDMA_WRITE);
}

static void rc_write_imm_8(void)
{
	rc_write(IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void ud_send_64(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to.qp->qp_num;
	wr.wr.ud.remote_qkey = 1;
	carry_out(&wr, 64, true);
}

const struct path verbs_paths[] = {
	{ "rc-send-8", open_rc, rc_send_8 },
	{ "rc-write-8", open_rc, rc_write_8 },
	{ "rc-write-imm-8", open_rc, rc_write_imm_8 },
	{ "ud-send-64", open_ud, ud_send_64 },
	{ NULL, NULL, NULL },
};
