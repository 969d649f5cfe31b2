/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * FAULT: a program forks in the middle of its traffic, ibv_fork_init(3): the parent goes on, the
 * child is told that nothing works.
 */
#include "vt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 6
#define BURST 40
#define LONG 300000u
#define PATIENCE (CT_BUSY * 30) /* seconds after which a child that hangs is killed by its alarm */

enum how {
	INIT = 1,   /* ibv_fork_init was called */
	EXITS = 2,  /* the child leaves by exit(3), with what runs there */
	THREAD = 4, /* another thread of the parent waits for events meanwhile */
	SHELL = 8   /* system(3) and popen(3) instead of fork(2) */
};

/* ---- the child ------------------------------------------------------------------------------- */

/* In the child: tells the parent, by its status, that this was wrong. */
#define MUST(what) \
	do { \
		if (!(what)) { \
			dprintf(STDERR_FILENO, "# in the child, line %d: %s\n", __LINE__, #what); \
			_exit(1); \
		} \
	} while (0)

static void posting_fails(struct ct_ep *e)
{
	struct ibv_sge sge = vt_sge(e, 0, 64);
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, &sge, 1), *bad = NULL;
	struct ibv_recv_wr rwr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *rbad = NULL;
	struct ibv_wc wc;

	MUST(ibv_post_send(e->qp, &wr, &bad) > 0 && bad == &wr);
	bad = NULL;
	wr.opcode = IBV_WR_RDMA_WRITE;
	MUST(ibv_post_send(e->qp, &wr, &bad) > 0 && bad == &wr);
	MUST(ibv_post_recv(e->qp, &rwr, &rbad) > 0 && rbad == &rwr);
	rbad = NULL;
	MUST(ibv_post_srq_recv(e->srq, &rwr, &rbad) > 0 && rbad == &rwr);
	MUST(ibv_poll_cq(e->cq, 1, &wc) < 0);
	MUST(ibv_req_notify_cq(e->cq, 0) != 0);
}

/* Neither may wait for what cannot come, though the descriptors block. */
static void waiting_fails(struct ct_ep *e)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	MUST(ibv_get_cq_event(e->channel, &cq, &context) == -1);
	MUST(ibv_get_async_event(e->context, &event) == -1);
}

static void making_fails(struct ct_ep *e)
{
	struct ibv_qp_init_attr init = { NULL, e->cq, e->cq, NULL, { 1, 1, 1, 1, 0 }, IBV_QPT_RC, 0 };
	struct ibv_srq_init_attr srq = { NULL, { 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_ah_attr av = vt_av(e, &e->me);

	MUST(!ibv_alloc_pd(e->context));
	MUST(!ibv_reg_mr(e->pd, e->buf, 64, 0));
	MUST(!ibv_create_cq(e->context, 1, NULL, NULL, 0));
	MUST(!ibv_create_comp_channel(e->context));
	MUST(!ibv_create_qp(e->pd, &init));
	MUST(!ibv_create_srq(e->pd, &srq));
	MUST(!ibv_create_ah(e->pd, &av));
	MUST(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE) != 0);
	MUST(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init) != 0);
	MUST(ibv_modify_srq(e->srq, &srq.attr, IBV_SRQ_LIMIT) != 0);
	MUST(ibv_query_srq(e->srq, &srq.attr) != 0);
	MUST(ibv_resize_cq(e->cq, 10) != 0);
}

/* What the device is needs no process that it belongs to. */
static void asking_works(struct ct_ep *e)
{
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_device_attr_ex more;
	struct ibv_device_attr device;
	struct ibv_port_attr port = { 0 };
	struct ibv_gid_entry gid;

	MUST(!ibv_query_device(e->context, &device) && device.max_qp > 0);
	MUST(!ibv_query_device_ex(e->context, NULL, &more) && more.orig_attr.max_qp == device.max_qp);
	MUST(!ibv_query_port(e->context, 1, &port) && port.state == IBV_PORT_ACTIVE);
	MUST(!ibv_query_gid_ex(e->context, 1, 0, &gid, 0));
	MUST(!ibv_query_rt_values_ex(e->context, &now) && now.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
}

/* What comes of it does not matter, but that it comes: programs clean up in their children, too. */
static void destroying_ends(struct ct_ep *e)
{
	ibv_destroy_qp(e->qp);
	ibv_destroy_srq(e->srq);
	ibv_dereg_mr(e->mr);
	ibv_destroy_cq(e->cq);
	ibv_destroy_comp_channel(e->channel);
	ibv_dealloc_pd(e->pd);
	ibv_close_device(e->context);
}

/* What the child opens for itself works: a queue pair that talks to itself. */
static void own_device_works(struct ct_ep *e)
{
	const struct vt_want want = { 0 };
	struct ct_ep own;

	vt_open(e->ct, &own, &want);
	own.peer[!e->ct->rank] = own.me;
	vt_connect(&own, own.qp, &own.me);
	memset(own.buf, 'c', 64);
	vt_recv(&own, 4096, 64, 1);
	vt_send(&own, 0, 64, 2);
	vt_done(&own, 1, NULL);
	vt_done(&own, 2, NULL);
	MUST(own.buf[4096] == 'c' && own.buf[4096 + 63] == 'c');
	vt_close(&own);
}

static void __attribute__((noreturn)) child(struct ct_ep *e, int round)
{
	alarm(PATIENCE);
	if (round % 3 != 2) {
		posting_fails(e);
		waiting_fails(e);
		making_fails(e);
		asking_works(e);
	}
	if (round % 2)
		own_device_works(e);
	if (round % 3 != 1)
		destroying_ends(e);
	/*
	 * a sanitizer would look at exit for what the parent has, and what was not handed
	 * down points to some of it
	 */
	if (e->ct->cs->arg & EXITS && CT_OWN_MEMORY)
		exit(0);
	_exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static void *waits(void *arg)
{
	struct ct_ep *e = arg;
	struct ibv_async_event event;

	(void)!ibv_get_async_event(e->context, &event); /* none comes */
	return NULL;
}

static uint32_t len_of(uint64_t i)
{
	return i % 5 ? 64 + (uint32_t)i : LONG;
}

/* A message or a write, of the bytes of its number. */
static void put(struct ct_ep *e, uint64_t i)
{
	uint32_t len = len_of(i);
	struct ibv_sge sge = vt_sge(e, i % 2 * LONG, len);
	struct ibv_send_wr wr = vt_wr(e, i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, &sge, i);

	ct_fill(e->buf + i % 2 * LONG, len, i);
	vt_post(e, &wr);
}

static pid_t fork_one(struct ct_ep *e, int round)
{
	pid_t pid;

	fflush(NULL); /* a child that exits has nothing of ours to write */
	pid = vt_child(e);
	CT_TRUE(e->ct, pid >= 0);
	if (!pid)
		child(e, round);
	return pid;
}

static void shell(struct ct *ct)
{
	char line[32] = "";
	FILE *f = popen("echo within", "r");

	CT_TRUE(ct, f && fgets(line, sizeof(line), f) && !strcmp(line, "within\n"));
	CT_EQ(ct, pclose(f), 0);
	CT_EQ(ct, system("exit 7"), 7 << 8);
}

/* Two are always under way, and the fork is in between. */
static void burst(struct ct_ep *e, int round)
{
	struct ct *ct = e->ct;
	pid_t pid = 0;
	int status;

	put(e, 0);
	for (uint64_t i = 1; i < BURST; i++) {
		put(e, i);
		if (i == BURST / 2 && ct->cs->arg & SHELL)
			shell(ct);
		else if (i == BURST / 2)
			pid = fork_one(e, round);
		vt_next(e, i - 1, IBV_WC_SUCCESS);
	}
	vt_next(e, BURST - 1, IBV_WC_SUCCESS);
	if (!pid)
		return;
	CT_TRUE(ct, waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		ct_fail(ct, "the child of round %d died of signal %d", round, WTERMSIG(status));
	CT_EQ(ct, status, 0);
}

static uint64_t taken(void)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < BURST; i++)
		n += i % 3 != 0;
	return n;
}

/* The other process must not notice anything. */
static void take(struct ct_ep *e)
{
	for (uint64_t i = 0; i < taken(); i++)
		vt_recv(e, 0, LONG, i);
	ct_sync(e->ct, e);
	for (uint64_t i = 0, got = 0; i < BURST; i++) {
		struct ibv_wc wc;

		if (i % 3 == 0)
			continue;
		vt_any(e, &wc);
		CT_EQ(e->ct, wc.status, IBV_WC_SUCCESS);
		CT_EQ(e->ct, wc.wr_id, got++);
		CT_EQ(e->ct, wc.byte_len, len_of(i));
	}
}

static void forks(struct ct *ct)
{
	const struct vt_want want = { .srq = true, .channel = true, .size = 4 << 20 };
	pthread_t thread;
	struct ct_ep e;

	if (ct->cs->arg & INIT)
		VT_OK(ct, ibv_fork_init());
	vt_start(ct, &e, &want);
	if (!ct->rank && ct->cs->arg & THREAD)
		CT_EQ(ct, pthread_create(&thread, NULL, waits, &e), 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (ct->rank) {
			take(&e);
		} else {
			ct_sync(ct, &e);
			burst(&e, i);
		}
		ct_sync(ct, &e);
	}
	if (!ct->rank && ct->cs->arg & THREAD) {
		CT_EQ(ct, pthread_cancel(thread), 0);
		CT_EQ(ct, pthread_join(thread, NULL), 0);
	}
	vt_finish(&e);
}

/* Data that arrives after the fork is the parent's: its pages were not left to the child. */
static void receives(struct ct *ct)
{
	struct ct_ep e;
	int status;
	pid_t pid;

	if (ct->cs->arg & INIT)
		VT_OK(ct, ibv_fork_init());
	vt_start(ct, &e, NULL);
	for (uint64_t i = 0; i < 8; i++) {
		if (ct->rank) {
			ct_sync(ct, NULL);
			ct_fill(e.buf, LONG, i);
			vt_send(&e, 0, LONG, i);
			vt_done(&e, i, NULL);
		} else {
			memset(e.buf, 0, LONG);
			vt_recv(&e, 0, LONG, i);
			pid = fork();
			CT_TRUE(ct, pid >= 0);
			if (!pid) { /* it lives for as long as the message takes */
				alarm(PATIENCE);
				for (;;)
					pause();
			}
			ct_sync(ct, NULL);
			vt_done(&e, i, NULL);
			ct_verify(ct, e.buf, LONG, i, "received beside a child");
			CT_EQ(ct, kill(pid, SIGKILL), 0);
			CT_TRUE(ct, waitpid(pid, &status, 0) == pid);
		}
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

const struct ct_case vt_fork[] = { { "FAULT", "fork", { forks, forks } },
				   { "FAULT", "fork-init", { forks, forks }, .arg = INIT },
				   { "FAULT", "fork-exit", { forks, forks }, .arg = INIT | EXITS },
				   { "FAULT", "fork-thread", { forks, forks }, .arg = THREAD | EXITS },
				   { "FAULT", "fork-shell", { forks, forks }, .arg = SHELL },
				   { "FAULT", "fork-shell-init", { forks, forks }, .arg = SHELL | INIT },
				   { "FAULT", "fork-receives", { receives, receives } },
				   { "FAULT", "fork-receives-init", { receives, receives }, .arg = INIT },
				   { NULL } };
