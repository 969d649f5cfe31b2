/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V1: linked lists of work requests, ibv_post_send(3), ibv_post_recv(3), ibv_post_srq_recv(3). */
#include "vt.h"

#include <errno.h>
#include <string.h>

#define N 5

/* Lists arrive whole and in order. */
static void lists(struct ct *ct)
{
	const struct vt_want want = { .srq = ct->cs->arg };
	struct ct_ep e;
	struct ibv_sge sge[N];

	vt_open(ct, &e, &want);
	vt_exchange(&e);
	vt_connect(&e, e.qp, &e.peer[!ct->rank]);
	for (int i = 0; i < N; i++)
		sge[i] = vt_sge(&e, (size_t)i * 4096, 4096);
	if (ct->rank) {
		struct ibv_recv_wr wr[N], *bad;

		for (int i = 0; i < N; i++)
			wr[i] = (struct ibv_recv_wr){ (uint64_t)i, i < N - 1 ? &wr[i + 1] : NULL, &sge[i],
						      1 };
		VT_OK(ct, e.srq ? ibv_post_srq_recv(e.srq, wr, &bad) : ibv_post_recv(e.qp, wr, &bad));
		ct_sync(ct, NULL);
		for (int i = 0; i < N; i++) {
			vt_next(&e, (uint64_t)i, IBV_WC_SUCCESS);
			ct_verify(ct, e.buf + i * 4096, 100 * (size_t)i, (uint64_t)i, "list");
		}
	} else {
		struct ibv_send_wr wr[N];

		for (int i = 0; i < N; i++) {
			ct_fill(e.buf + i * 4096, 4096, (uint64_t)i);
			sge[i].length = 100 * (uint32_t)i;
			wr[i] = vt_wr(&e, IBV_WR_SEND, &sge[i], (uint64_t)i);
			wr[i].next = i < N - 1 ? &wr[i + 1] : NULL;
		}
		ct_sync(ct, NULL);
		vt_post(&e, wr);
		for (int i = 0; i < N; i++)
			vt_next(&e, (uint64_t)i, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* The third is bad: the first two are posted, the others are not. */
static void bad_send(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		for (int i = 0; i < N; i++)
			vt_recv(&e, 0, 8, (uint64_t)i);
		ct_sync(ct, NULL);
		vt_next(&e, 0, IBV_WC_SUCCESS);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_quiet(&e, 20, "after the bad one");
	} else {
		struct ibv_send_wr wr[N], *bad = NULL;
		struct ibv_sge sge = vt_sge(&e, 0, 8);

		for (int i = 0; i < N; i++) {
			wr[i] = vt_wr(&e, IBV_WR_SEND, &sge, (uint64_t)i);
			wr[i].next = i < N - 1 ? &wr[i + 1] : NULL;
		}
		wr[2].opcode = (enum ibv_wr_opcode)200;
		ct_sync(ct, NULL);
		VT_ERR(ct, ibv_post_send(e.qp, wr, &bad), EINVAL);
		CT_TRUE(ct, bad == &wr[2]);
		vt_next(&e, 0, IBV_WC_SUCCESS);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_quiet(&e, 20, "after the bad one");
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
	}
	vt_finish(&e);
}

static void bad_recv(struct ct *ct)
{
	const struct vt_want want = { .srq = ct->cs->arg };
	struct ibv_recv_wr wr[N], *bad = NULL;
	struct ibv_sge sge[64];
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		for (int i = 0; i < 64; i++)
			sge[i] = vt_sge(&e, 0, 8);
		for (int i = 0; i < N; i++)
			wr[i] = (struct ibv_recv_wr){ (uint64_t)i, i < N - 1 ? &wr[i + 1] : NULL, sge, 1 };
		wr[2].num_sge = 64; /* more than was asked for, and than anybody has */
		VT_ERR(ct, e.srq ? ibv_post_srq_recv(e.srq, wr, &bad) : ibv_post_recv(e.qp, wr, &bad),
		       EINVAL);
		CT_TRUE(ct, bad == &wr[2]);
		ct_sync(ct, NULL);
		vt_next(&e, 0, IBV_WC_SUCCESS);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_recv(&e, 0, 8, 7); /* the next one is behind those two */
		vt_next(&e, 7, IBV_WC_SUCCESS);
	} else {
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < 3; i++)
			vt_send(&e, 0, 8, i);
		for (uint64_t i = 0; i < 3; i++)
			vt_next(&e, i, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* A full queue answers ENOMEM, and takes more when there is room. */
static void full(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = 8, .send_wr = 8, .srq = ct->cs->arg };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ct_ep e;
	uint32_t recvs;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	recvs = attr.cap.max_recv_wr;
	if (e.srq) {
		struct ibv_srq_attr srq;

		VT_OK(ct, ibv_query_srq(e.srq, &srq));
		recvs = srq.max_wr;
	}
	if (ct->rank) {
		struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;

		for (uint32_t i = 0; i < recvs; i++)
			VT_OK(ct,
			      e.srq ? ibv_post_srq_recv(e.srq, &wr, &bad) : ibv_post_recv(e.qp, &wr, &bad));
		VT_ERR(ct, e.srq ? ibv_post_srq_recv(e.srq, &wr, &bad) : ibv_post_recv(e.qp, &wr, &bad),
		       ENOMEM);
		CT_TRUE(ct, bad == &wr);
		ct_sync(ct, NULL);
		for (uint32_t i = 0; i < recvs; i++)
			vt_next(&e, 1, IBV_WC_SUCCESS);
		ct_sync(ct, &e); /* nothing posted: the other end's queue fills */
		ct_sync(ct, &e);
		for (uint32_t i = 0; i < attr.cap.max_send_wr; i++) {
			VT_OK(ct,
			      e.srq ? ibv_post_srq_recv(e.srq, &wr, &bad) : ibv_post_recv(e.qp, &wr, &bad));
			vt_next(&e, 1, IBV_WC_SUCCESS);
		}
	} else {
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, NULL, 1), *bad = NULL;

		ct_sync(ct, NULL);
		for (uint32_t i = 0; i < recvs; i++) {
			vt_post(&e, &wr);
			vt_next(&e, 1, IBV_WC_SUCCESS);
		}
		ct_sync(ct, &e);
		for (uint32_t i = 0; i < attr.cap.max_send_wr; i++)
			VT_OK(ct, ibv_post_send(e.qp, &wr, &bad));
		VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), ENOMEM);
		CT_TRUE(ct, bad == &wr);
		ct_sync(ct, &e);
		for (uint32_t i = 0; i < attr.cap.max_send_wr; i++)
			vt_next(&e, 1, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

const struct ct_case vt_lists[] = { { "V1", "lists", { lists, lists } },
				    { "V1", "lists-srq", { lists, lists }, .arg = 1 },
				    { "V1", "bad-send", { bad_send, bad_send } },
				    { "V1", "bad-recv", { bad_recv, bad_recv } },
				    { "V1", "bad-srq-recv", { bad_recv, bad_recv }, .arg = 1 },
				    { "V1", "full", { full, full } },
				    { "V1", "full-srq", { full, full }, .arg = 1 },
				    { NULL } };
