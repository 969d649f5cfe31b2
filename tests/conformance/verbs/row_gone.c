/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * QP: queue pairs that fail, begin anew or go while work is under way: what completes, in which
 * order, and what is never touched again.
 */
#include "vt.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LONG (200u << 10)

/* Everything that is posted flushes, each queue in its own order, whatever kinds it has. */
static void order(struct ct *ct)
{
	const struct vt_want want = { .split = true };
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						  IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ct_ep e;
	struct ibv_wc wc;
	uint64_t id[2];

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		for (uint64_t i = 0; i < 10; i++)
			vt_recv(&e, 0, 64, 100 + i);
		for (uint64_t i = 0; i < 40;
		     i++) { /* the first waits for a receive for ever, and so do all behind it */
			struct ibv_sge sge =
				vt_sge(&e, 4096, ops[i % 5] == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64);
			struct ibv_send_wr wr = vt_wr(&e, ops[i % 5], &sge, i);

			if (i % 11 == 10) {
				sge.length = LONG;
				wr.opcode = IBV_WR_SEND;
			}
			vt_post(&e, &wr);
		}
		vt_to(&e, e.qp, IBV_QPS_ERR);
		id[0] = 0;
		id[1] = 100;
		for (int i = 0; i < 50; i++) {
			vt_any(&e, &wc);
			CT_EQ(ct, wc.status, IBV_WC_WR_FLUSH_ERR);
			CT_EQ(ct, wc.wr_id, id[wc.wr_id >= 100]++);
			CT_EQ(ct, wc.qp_num, e.qp->qp_num);
		}
		vt_quiet(&e, 2, "more than was posted");
	}
	ct_sync(ct, &e);
	vt_finish(&e);
}

/* RESET: nothing of what was posted completes any more, and all places are free again. */
static void reset(struct ct *ct)
{
	const struct vt_want want = { .send_wr = 16, .recv_wr = 16, .cqe = 64 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	for (int round = 0; round < 3; round++) {
		if (!ct->rank) {
			for (uint32_t i = 0; i < attr.cap.max_recv_wr; i++)
				vt_recv(&e, 0, 64, i);
			for (uint32_t i = 0; i < attr.cap.max_send_wr; i++)
				vt_send(&e, 4096, i % 5 == 4 ? LONG : 64, i); /* nobody receives */
		}
		ct_sync(ct, &e);
		if (round == 1)
			/* and what that has completed goes too, unread */
			vt_to(&e, e.qp, IBV_QPS_ERR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		e.head = e.tail = 0;
		vt_quiet(&e, 2, "after RESET");
		ct_sync(ct, &e);
		vt_connect(&e, e.qp, &e.peer[!ct->rank]);
		ct_sync(ct, &e);
	}
	if (ct->rank) {
		vt_recv(&e, 0, 64, 1);
		vt_done(&e, 1, NULL);
	} else {
		vt_send(&e, 4096, 64, 2);
		vt_done(&e, 2, NULL);
	}
	ct_sync(ct, &e);
	vt_finish(&e);
}

/*
 * Memory that a queue pair received or was written to is the program's when the
 * call that ends it returns.
 */
static void untouched(struct ct *ct)
{
	enum {
		DESTROY,
		FAIL,
		AGAIN,
		WAYS
	};

	for (int round = 0; round < 4 * WAYS; round++) {
		int how = round % WAYS;
		size_t len = round < 2 * WAYS ? LONG : 4096;
		struct ct_ep e;

		vt_start(ct, &e, NULL);
		if (ct->rank) {
			for (uint64_t i = 0; i < 20; i++)
				vt_recv(&e, i * 8192, (uint32_t)len, i);
			ct_sync(ct, NULL);
			vt_any(&e, NULL);
			if (how == DESTROY) {
				VT_OK(ct, ibv_destroy_qp(e.qp));
				e.qp = NULL;
			} else {
				vt_to(&e, e.qp, how == FAIL ? IBV_QPS_ERR : IBV_QPS_RESET);
			}
			memset(e.buf, 0x55, VT_SIZE);
			for (int i = 0; i < 3; i++) {
				ct_progress(&e);
				ct_pause();
				CT_TRUE(ct, ct_untouched(e.buf, VT_SIZE, 0x55));
			}
			ct_sync(ct, &e);
			CT_TRUE(ct, ct_untouched(e.buf, VT_SIZE, 0x55));
		} else {
			ct_sync(ct, NULL);
			for (uint64_t i = 0; i < 20; i++)
				vt_send(&e, 0, (uint32_t)len, i);
			for (int i = 0; i < 20; i++)
				vt_any(&e, NULL);
			ct_sync(ct, &e);
		}
		vt_finish(&e);
	}
}

/*
 * A queue pair is destroyed with much under way in both directions: its own memory may go,
 * and the other end fails.
 */
static void in_the_middle(struct ct *ct)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (int round = 0; round < 8; round++) {
		struct ct_ep e;
		struct ibv_wc wc;
		int failed = 0;

		vt_start(ct, &e, NULL);
		for (uint64_t i = 0; i < 40; i++)
			vt_recv(&e, 600000, LONG, 100 + i);
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < 40; i++) {
			enum ibv_wr_opcode op = ops[(i + (uint64_t)round) % 4];
			struct ibv_sge sge = vt_sge(&e, 0,
						    op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8
						    : round % 2			      ? LONG
										      : 64);
			struct ibv_send_wr wr = vt_wr(&e, op, &sge, i);

			vt_post(&e, &wr);
		}
		if (ct->rank) {
			for (int i = 0; i < round; i++)
				vt_any(&e, NULL);
			VT_OK(ct, ibv_destroy_qp(e.qp));
			e.qp = NULL;
			VT_OK(ct, ibv_dereg_mr(e.mr));
			e.mr = ibv_reg_mr(e.pd, e.buf, 4096, VT_ACCESS);
			CT_TRUE(ct, e.mr);
			memset(e.buf, 0x55, VT_SIZE);
		} else {
			for (uint64_t next = 0, rnext = 100, i = 0; i < 80; i++) {
				vt_any(&e, &wc);
				CT_EQ(ct, wc.wr_id, wc.wr_id < 100 ? next++ : rnext++);
				failed += wc.status != IBV_WC_SUCCESS;
				if (failed == 1 && wc.status != IBV_WC_SUCCESS && wc.wr_id < 100)
					CT_TRUE(ct, wc.status == IBV_WC_RETRY_EXC_ERR ||
							    wc.status == IBV_WC_REM_ACCESS_ERR ||
							    wc.status == IBV_WC_WR_FLUSH_ERR);
				if (i == 79)
					break;
				if (next == 40 && rnext < 140 && !failed)
					break;
				if (next == 40 && vt_state(&e, e.qp) != IBV_QPS_ERR)
					/* it had nothing left that could have failed */
					vt_to(&e, e.qp, IBV_QPS_ERR);
			}
		}
		ct_sync(ct, &e);
		if (ct->rank)
			CT_TRUE(ct, ct_untouched(e.buf, VT_SIZE, 0x55));
		vt_finish(&e);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

#define ROUNDS 40

static void *fail_it(void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ct_ep *e = arg;

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE) ? e : NULL;
}

/*
 * One thread posts and another moves the queue pair to ERR: each request that was taken
 * completes, and in order.
 */
static void under_posting(struct ct *ct)
{
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	e.peer[!ct->rank] = e.me;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t sent = 0, posted = 0, next[2] = { 0, 1000 };
		pthread_t thread;
		struct ibv_wc wc;
		void *ret;

		vt_connect(&e, e.qp, &e.me);
		CT_EQ(ct, pthread_create(&thread, NULL, fail_it, &e), 0);
		while (sent < 60) {
			vt_recv(&e, 0, 64, 1000 + posted++);
			vt_send(&e, 4096, 8, sent++);
			while (sent - next[0] > 30) {
				vt_any(&e, &wc);
				CT_EQ(ct, wc.wr_id, next[wc.wr_id >= 1000]++);
			}
		}
		pthread_join(thread, &ret);
		CT_TRUE(ct, !ret);
		while (next[0] < sent || next[1] < 1000 + posted) {
			vt_any(&e, &wc);
			CT_EQ(ct, wc.wr_id, next[wc.wr_id >= 1000]++);
		}
		vt_quiet(&e, 0, "more than was posted");
		vt_to(&e, e.qp, IBV_QPS_RESET);
	}
	vt_close(&e);
}

const struct ct_case vt_gone[] = {
	{ "QP", "flush-order", { order, order } },
	{ "QP", "reset-full", { reset, reset } },
	{ "QP", "untouched", { untouched, untouched }, .slow = true },
	{ "QP", "destroyed-in-the-middle", { in_the_middle, in_the_middle }, .slow = true },
	{ "QP", "failed-under-posting", { under_posting } },
	{ NULL }
};
