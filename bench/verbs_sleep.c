/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * hd-sleep: a ping-pong of 8 bytes between two processes that sleep between messages, over a verbs
 * device and over a bare TCP socket. How they sleep:
 *
 *   arm    poll the queue, ask for an event, and sleep in poll(2) on the channel's descriptor
 *   again  the same, and poll the queue once more before sleeping
 *   block  as arm, but ibv_get_cq_event sleeps
 *
 * The bare socket is read without blocking, and slept on in poll(2) when it is empty.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"
#include "verbs_open.h"

#define SIZE 8
#define GRH 40
#define SLOT 64
#define RECEIVES 16
#define KEY 0x11

enum how {
	ARM,
	AGAIN,
	BLOCK,
	HOWS
};

static const char *const hows[] = { "arm", "again", "block" };

struct name {
	uint32_t number;
	uint16_t lid;
};

struct side {
	enum ibv_qp_type type;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct name other;
	int ctl, sock;
	uint64_t received;
	char *buf;
};

/* ---- objects --------------------------------------------------------------------------------- */

static void to_init(struct side *s)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = KEY };
	bool ud = s->type == IBV_QPT_UD;

	must_be_0("to INIT", ibv_modify_qp(s->qp, &a,
					   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						   (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static void to_rts(struct side *s)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = s->other.number,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = { .dlid = s->other.lid, .port_num = 1 } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};
	bool ud = s->type == IBV_QPT_UD;

	must_be_0("to RTR", ibv_modify_qp(s->qp, &rtr,
					  ud ? IBV_QP_STATE
					     : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
							  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
							  IBV_QP_MIN_RNR_TIMER));
	must_be_0("to RTS",
		  ibv_modify_qp(s->qp, &rts,
				ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
				   : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
	if (ud)
		s->ah = must("ibv_create_ah", ibv_create_ah(s->pd, &rtr.ah_attr));
}

static void receive(struct side *s, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + slot * SLOT, GRH + SIZE, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	must_be_0("ibv_post_recv", ibv_post_recv(s->qp, &wr, &bad));
}

static void side_open(struct side *s, struct ibv_context *context)
{
	struct ibv_qp_init_attr attr = { .qp_type = s->type, .cap = { RECEIVES, RECEIVES, 1, 1, SIZE } };
	struct ibv_port_attr port;
	struct name own;

	s->pd = must("ibv_alloc_pd", ibv_alloc_pd(context));
	s->channel = must("ibv_create_comp_channel", ibv_create_comp_channel(context));
	s->cq = must("ibv_create_cq", ibv_create_cq(context, 4 * RECEIVES, NULL, s->channel, 0));
	attr.send_cq = attr.recv_cq = s->cq;
	s->qp = must("ibv_create_qp", ibv_create_qp(s->pd, &attr));
	s->buf = must("aligned_alloc", aligned_alloc(4096, 4096));
	s->mr = must("ibv_reg_mr", ibv_reg_mr(s->pd, s->buf, 4096, IBV_ACCESS_LOCAL_WRITE));
	to_init(s);
	for (uint64_t i = 0; i < RECEIVES; i++)
		receive(s, i);
	must_be_0("ibv_query_port", ibv_query_port(context, 1, &port));
	own = (struct name){ s->qp->qp_num, port.lid };
	hd_ctl_put(s->ctl, &own, sizeof(own));
	hd_ctl_get(s->ctl, &s->other, sizeof(s->other), NULL, NULL);
	to_rts(s);
	hd_ctl_put(s->ctl, "", 1);
	hd_ctl_get(s->ctl, &own, 1, NULL, NULL);
}

static void side_close(struct side *s)
{
	if (s->ah)
		must_be_0("ibv_destroy_ah", ibv_destroy_ah(s->ah));
	s->ah = NULL;
	must_be_0("ibv_destroy_qp", ibv_destroy_qp(s->qp));
	must_be_0("ibv_destroy_cq", ibv_destroy_cq(s->cq));
	must_be_0("ibv_destroy_comp_channel", ibv_destroy_comp_channel(s->channel));
	must_be_0("ibv_dereg_mr", ibv_dereg_mr(s->mr));
	must_be_0("ibv_dealloc_pd", ibv_dealloc_pd(s->pd));
	free(s->buf);
}

/* ---- a ping-pong over verbs ------------------------------------------------------------------ */

static void send_one(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->buf, SIZE, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_send_wr *bad;

	if (s->ah) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->other.number;
		wr.wr.ud.remote_qkey = KEY;
	}
	must_be_0("ibv_post_send", ibv_post_send(s->qp, &wr, &bad));
}

static bool reap(struct side *s, uint64_t wanted)
{
	struct ibv_wc wc;

	while (s->received < wanted && ibv_poll_cq(s->cq, 1, &wc) > 0) {
		if (wc.status)
			hd_give_up("a completion: %s", ibv_wc_status_str(wc.status));
		if (!(wc.opcode & IBV_WC_RECV))
			continue;
		s->received++;
		receive(s, wc.wr_id);
	}
	return s->received >= wanted;
}

static void wait_for(struct side *s, uint64_t wanted, enum how how)
{
	struct pollfd p = { .fd = s->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	while (!reap(s, wanted)) {
		must_be_0("ibv_req_notify_cq", ibv_req_notify_cq(s->cq, 0));
		if (how == AGAIN && reap(s, wanted))
			return;
		while (how != BLOCK && poll(&p, 1, -1) < 1)
			;
		must_be_0("ibv_get_cq_event", ibv_get_cq_event(s->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
}

static void verbs_turn(struct side *s, enum how how, bool first)
{
	uint64_t next = s->received + 1;

	if (first)
		send_one(s);
	wait_for(s, next, how);
	if (!first)
		send_one(s);
}

/* ---- a ping-pong over a socket --------------------------------------------------------------- */

static void socket_turn(struct side *s, bool first)
{
	struct pollfd p = { .fd = s->sock, .events = POLLIN };
	char data[SIZE] = { 0 };

	if (first && send(s->sock, data, SIZE, 0) != SIZE)
		hd_give_up("send: %s", strerror(errno));
	while (recv(s->sock, data, SIZE, MSG_DONTWAIT) != SIZE)
		poll(&p, 1, -1);
	if (!first && send(s->sock, data, SIZE, 0) != SIZE)
		hd_give_up("send: %s", strerror(errno));
}

/* ---- the two processes ----------------------------------------------------------------------- */

static void turn(struct side *s, int how, bool first)
{
	if (how == HOWS)
		socket_turn(s, first);
	else
		verbs_turn(s, (enum how)how, first);
}

/* Sorted by the median. */
static double share(struct hd_samples *us, double part)
{
	hd_samples_median(us);
	return us->v[(int)((double)(us->n - 1) * part)];
}

static void play(struct side *s, int how, long rounds, bool first, const char *kind)
{
	static struct hd_samples us;

	us.n = 0;
	for (long i = -rounds / 10; i < rounds; i++) {
		uint64_t start = hd_now_ns();

		turn(s, how, first);
		if (i >= 0)
			hd_samples_add(&us, (double)(hd_now_ns() - start) / 2e3);
	}
	if (first)
		printf("test=sleeping kind=%s how=%s rounds=%ld median_us=%.3f p99_us=%.3f\n", kind,
		       how == HOWS ? "poll" : hows[how], rounds, share(&us, 0.5), share(&us, 0.99));
}

static void run(struct side *s, const char *device, long rounds, bool first)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };
	static const char *const kinds[] = { "rc", "ud" };
	struct ibv_context *context;

	play(s, HOWS, rounds, first, "socket");
	context = device_open(device);
	for (int t = 0; t < 2; t++) {
		s->type = types[t];
		side_open(s, context);
		for (int how = 0; how < HOWS; how++)
			play(s, how, rounds, first, kinds[t]);
		side_close(s);
	}
	must_be_0("ibv_close_device", ibv_close_device(context));
}

int main(int argc, char **argv)
{
	int opt, fd[2], sock[2], cpus[2] = { 0, 1 };
	const char *device = "heddle0";
	static struct side s;
	long rounds = 1000;
	pid_t child;

	while ((opt = getopt(argc, argv, "c:d:n:")) != -1)
		if (opt == 'c')
			hd_parse_pair(optarg, cpus);
		else if (opt == 'd')
			device = optarg;
		else if (opt == 'n')
			rounds = hd_parse_long(optarg, 10, HD_SAMPLES_MAX, "rounds");
		else
			hd_give_up("usage: hd-sleep [-d DEVICE] [-c CPU,CPU] [-n ROUNDS]");
	hd_ctl_pair(fd);
	hd_ctl_tcp_pair(sock);
	child = hd_ctl_fork();
	s.ctl = fd[child == 0];
	s.sock = sock[child == 0];
	close(fd[child != 0]);
	close(sock[child != 0]);
	hd_pin(cpus[child == 0]);
	alarm(60); /* a lost wake must not hang the run */
	run(&s, device, rounds, child != 0);
	if (child)
		hd_ctl_reap(child, "answering");
	return 0;
}
