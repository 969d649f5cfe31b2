/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * WR: ibv_wr_post(3): what is wrong with one request of a list aborts all of it;
 * and who else may be there.
 */
#include "vt.h"

#include <pthread.h>
#include <string.h>

enum fault {
	INLINE_TOO_LONG, /* more than the queue pair takes, not more than any does */
	LIST_TOO_LONG,
	QUEUE_FULL,
	NO_HANDLE, /* UD: no destination was set */
	FAULTS
};

static void good(struct ct_ep *e, struct ibv_qp_ex *qp, uint64_t id)
{
	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->buf, 8);
	if (e->ah)
		ibv_wr_set_ud_addr(qp, e->ah, e->peer[!e->ct->rank].qpn, VT_QKEY);
}

static void bad(struct ct_ep *e, struct ibv_qp_ex *qp, enum fault fault, const struct ibv_qp_cap *cap)
{
	static char data[8192];
	struct ibv_sge sges[64];

	if (fault == QUEUE_FULL) {
		for (uint32_t i = 0; i < cap->max_send_wr; i++)
			good(e, qp, 50);
		return;
	}
	for (int i = 0; i < 64; i++)
		sges[i] = vt_sge(e, 0, 1);
	good(e, qp, 50);
	if (fault == INLINE_TOO_LONG)
		ibv_wr_set_inline_data(qp, data, cap->max_inline_data + 1);
	else if (fault == LIST_TOO_LONG)
		ibv_wr_set_sge_list(qp, cap->max_send_sge + 1, sges);
	else
		ibv_wr_set_ud_addr(qp, NULL, 256, VT_QKEY);
}

/* The first of the list would be right; none of it is sent, and the next list is. */
static void whole(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_SEND,
				      .type = (enum ibv_qp_type)ct->cs->arg,
				      .sge = 2,
				      .sig_none = 1,
				      .send_wr = 16 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qp;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	qp = ibv_qp_to_qp_ex(e.qp);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	for (int fault = 0; fault < (e.ah ? FAULTS : NO_HANDLE); fault++) {
		if (ct->rank) {
			vt_recv(&e, 4096, 1024, 1);
			ct_sync(ct, &e);
			vt_done(&e, 1, NULL);
			CT_EQ(ct, e.buf[4096 + (e.ah ? 40 : 0)], 'b');
			vt_quiet(&e, 1, "of a list that was refused");
		} else {
			ct_sync(ct, &e);
			e.buf[0] = 'a';
			ibv_wr_start(qp);
			good(&e, qp, 40);
			bad(&e, qp, (enum fault)fault, &attr.cap);
			CT_TRUE(ct, ibv_wr_complete(qp) != 0);
			e.buf[0] = 'b';
			ibv_wr_start(qp);
			good(&e, qp, 60);
			VT_OK(ct, ibv_wr_complete(qp));
			vt_next(&e, 60, IBV_WC_SUCCESS);
		}
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/*
 * Requests without data, and with inline data in pieces of which some are empty, up to the
 * last byte that is permitted.
 */
static void lengths(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_SEND, .inline_data = 100 };
	struct ibv_qp_init_attr init;
	struct ibv_data_buf list[4];
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qp;
	uint32_t most;
	char own[4096];
	struct ct_ep e;
	struct ibv_wc wc;

	vt_start(ct, &e, &want);
	qp = ibv_qp_to_qp_ex(e.qp);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	most = attr.cap.max_inline_data;
	CT_TRUE(ct, most >= 100 && most <= sizeof(own));
	if (ct->rank) {
		for (uint64_t i = 0; i < 3; i++)
			vt_recv(&e, i * 8192, 8192, i);
		ct_sync(ct, &e);
		for (uint64_t i = 0; i < 3; i++) {
			vt_done(&e, i, &wc);
			CT_EQ(ct, wc.byte_len, i == 2 ? most : 0);
		}
		ct_verify(ct, e.buf + 2 * 8192, most, 9, "inline, in pieces");
	} else {
		ct_fill(own, most, 9);
		list[0] = (struct ibv_data_buf){ own, 7 };
		list[1] = (struct ibv_data_buf){ NULL, 0 };
		list[2] = (struct ibv_data_buf){ own + 7, most - 7 };
		list[3] = (struct ibv_data_buf){ own, 0 };
		ct_sync(ct, &e);
		ibv_wr_start(qp);
		qp->wr_flags = 0;
		qp->wr_id = 1;
		ibv_wr_send(qp); /* no setter at all */
		qp->wr_id = 2;
		ibv_wr_send(qp);
		ibv_wr_set_inline_data(qp, NULL, 0);
		qp->wr_id = 3;
		ibv_wr_send(qp);
		ibv_wr_set_inline_data_list(qp, 4, list);
		memset(own, 0, sizeof(own));
		VT_OK(ct, ibv_wr_complete(qp));
		for (uint64_t i = 1; i <= 3; i++)
			vt_next(&e, i, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 3
#define LISTS 60
#define EACH 4

struct builder {
	struct ct_ep *e;
	uint64_t first;
	int rc;
};

/* Lists of this thread: each is posted as it was built, with nobody else's requests between. */
static void *build(void *arg)
{
	struct builder *b = arg;
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(b->e->qp);

	for (uint64_t i = 0; i < LISTS && !b->rc; i++) {
		ibv_wr_start(qp);
		for (uint64_t k = 0; k < EACH; k++) {
			uint32_t word = (uint32_t)(b->first + i * EACH + k);

			qp->wr_id = word;
			qp->wr_flags = k == EACH - 1 ? IBV_SEND_SIGNALED : 0;
			ibv_wr_send(qp);
			ibv_wr_set_inline_data(qp, &word, sizeof(word));
		}
		if (i % 7 == 6)
			ibv_wr_abort(qp);
		else
			b->rc = ibv_wr_complete(qp);
	}
	return NULL;
}

static void together(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_SEND,
				      .send_wr = THREADS * LISTS * EACH,
				      .recv_wr = THREADS * LISTS * EACH,
				      .cqe = 4096,
				      .sig_none = 1 };
	int lists = THREADS * (LISTS - LISTS / 7);
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		for (int i = 0; i < lists * EACH; i++)
			vt_recv(&e, (size_t)i * 8, 8, (uint64_t)i);
		ct_sync(ct, &e);
		for (int i = 0; i < lists * EACH; i++) {
			uint32_t word, before;

			vt_next(&e, (uint64_t)i, IBV_WC_SUCCESS);
			memcpy(&word, e.buf + i * 8, 4);
			if (i % EACH) {
				memcpy(&before, e.buf + (i - 1) * 8, 4);
				CT_EQ(ct, word, before + 1);
			}
			CT_EQ(ct, word % EACH, i % EACH);
		}
	} else {
		struct builder b[THREADS];
		pthread_t thread[THREADS];

		ct_sync(ct, &e);
		for (int i = 0; i < THREADS; i++) {
			b[i] = (struct builder){ &e, (uint64_t)i * 100000, 0 };
			CT_EQ(ct, pthread_create(&thread[i], NULL, build, &b[i]), 0);
		}
		for (int i = 0; i < THREADS; i++) {
			pthread_join(thread[i], NULL);
			CT_EQ(ct, b[i].rc, 0);
		}
		for (int i = 0; i < lists; i++) {
			struct ibv_wc wc;

			vt_any(&e, &wc);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			CT_EQ(ct, wc.wr_id % EACH, EACH - 1);
		}
	}
	vt_finish(&e);
}

const struct ct_case vt_whole[] = { { "WR", "whole-rc", { whole, whole }, .arg = IBV_QPT_RC },
				    { "WR", "whole-uc", { whole, whole }, .arg = IBV_QPT_UC },
				    { "WR", "whole-ud", { whole, whole }, .arg = IBV_QPT_UD },
				    { "WR", "lengths", { lengths, lengths } },
				    { "WR", "threads", { together, together } },
				    { NULL } };
