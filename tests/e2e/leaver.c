/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * leaver DEVICE exit|_exit|kill: a verbs program that destroys nothing. A queue pair talks to
 * itself, with requests and receives left over, a completion queue is armed and full, a channel has
 * an event; then it ends in that way.
 */
#include <infiniband/verbs.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "leaver: %s\n", what);
	_exit(2);
}

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

static void connect_to_itself(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = qp->qp_num,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .ah_attr = { .is_global = 1, .port_num = 1 } };
	struct ibv_port_attr port;

	must(!ibv_query_port(qp->context, 1, &port) && port.state == IBV_PORT_ACTIVE, "the port");
	must(!ibv_query_gid(qp->context, 1, 0, &a.ah_attr.grh.dgid), "the GID");
	a.ah_attr.dlid = port.lid;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT),
	     "RTS");
}

/* One receive for ten messages: the first arrives, the others wait for ever. */
static void talk(struct ibv_qp *qp, struct ibv_mr *mr, struct ibv_comp_channel *channel)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;
	struct ibv_cq *cq;
	void *context;

	must(!ibv_req_notify_cq(qp->send_cq, 0), "notification");
	must(!ibv_post_recv(qp, &recv, &bad_recv), "a receive");
	for (int i = 0; i < 10; i++)
		must(!ibv_post_send(qp, &send, &bad_send), "a send");
	must(!ibv_get_cq_event(channel, &cq, &context), "an event");
}

int main(int argc, char **argv)
{
	static char memory[65536];
	struct ibv_context *context = argc == 3 ? open_named(argv[1]) : NULL;
	struct ibv_qp_init_attr init = { .cap = { 16, 16, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	must(context != NULL, "usage: leaver DEVICE exit|_exit|kill");
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, channel, 0);
	qp = ibv_create_qp(pd, &init);
	must(qp != NULL && mr != NULL, "objects");
	connect_to_itself(qp);
	talk(qp, mr, channel);
	puts("leaver: left");
	fflush(stdout);
	if (!strcmp(argv[2], "kill"))
		raise(SIGKILL);
	if (!strcmp(argv[2], "_exit"))
		_exit(0);
	return 0;
}
