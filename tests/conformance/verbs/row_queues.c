/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V1, V7: how long a place in a send queue is taken; what becomes of an unreliable one when a request is wrong. */
#include "vt.h"

#include <errno.h>

static struct ibv_send_wr send_wr(struct ct_ep *e, struct ibv_sge *sge, uint64_t id, bool signalled)
{
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, sge, id);

	wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
	return wr;
}

/* A place is free when a completion of its request, or of a later one, has been polled, and not before. */
static void places(struct ct *ct)
{
	const struct vt_want want = { .type = ct->cs->arg, .send_wr = 8, .sig_none = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct ct_ep e;
	uint32_t room;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	room = attr.cap.max_send_wr;
	CT_TRUE(ct, room >= 8 && room <= 64);
	sge = vt_sge(&e, 0, 8);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; ct->rank && i < room; i++)
			vt_recv(&e, 0, 64, i);
		ct_sync(ct, &e);
		for (uint32_t i = 0; !ct->rank && i < room; i++) {
			wr = send_wr(&e, &sge, i, i == room / 2);
			vt_post(&e, &wr);
		}
		for (uint32_t i = 0; ct->rank && i < room; i++)
			vt_done(&e, i, NULL);
		ct_sync(ct, NULL); /* all of them have arrived; nothing has been polled */
		if (!ct->rank) {
			wr = send_wr(&e, &sge, 99, true);
			VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), ENOMEM);
			CT_TRUE(ct, bad == &wr);
			vt_done(&e, room / 2, NULL);
			ct_sync(ct, &e);
			for (uint32_t i = 0; i <= room / 2; i++) {
				wr = send_wr(&e, &sge, 200 + i, i == room / 2);
				vt_post(&e, &wr);
			}
			VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), ENOMEM);
			vt_done(&e, 200 + room / 2, NULL);
		} else {
			for (uint32_t i = 0; i <= room / 2; i++)
				vt_recv(&e, 0, 64, 200 + i);
			ct_sync(ct, &e);
			for (uint32_t i = 0; i <= room / 2; i++)
				vt_done(&e, 200 + i, NULL);
		}
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* The send side stops, the receiving side goes on. */
static void halt(struct ct_ep *e)
{
	struct ibv_sge sge = vt_sge(e, 0, 8);
	struct ibv_send_wr first = send_wr(e, &sge, 1, true), wrong, last = send_wr(e, &sge, 3, false);
	struct ibv_sge bad = sge;

	bad.lkey ^= 0x1234567;
	wrong = send_wr(e, &bad, 2, false);
	first.next = &wrong;
	wrong.next = &last;
	vt_post(e, &first);
	vt_next(e, 1, IBV_WC_SUCCESS);
	vt_next(e, 2, IBV_WC_LOC_PROT_ERR);
	vt_next(e, 3, IBV_WC_WR_FLUSH_ERR);
	CT_EQ(e->ct, vt_state(e, e->qp), IBV_QPS_SQE);
	vt_post(e, &last);
	vt_next(e, 3, IBV_WC_WR_FLUSH_ERR);
}

static void halted(struct ct *ct)
{
	const struct vt_want want = { .type = ct->cs->arg, .sig_none = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	sge = vt_sge(&e, 0, 8);
	for (int round = 0; round < 3; round++) {
		vt_recv(&e, 4096, 64, 10);
		vt_recv(&e, 4096, 64, 11);
		ct_sync(ct, &e);
		wr = send_wr(&e, &sge, 5, true);
		if (ct->rank) {
			vt_done(&e, 10, NULL);
			vt_post(&e, &wr);
			vt_done(&e, 5, NULL);
			vt_done(&e, 11, NULL);
			vt_recv(&e, 4096, 64, 12);
			vt_post(&e, &wr);
			vt_done(&e, 5, NULL);
			ct_sync(ct, &e);
			vt_done(&e, 12, NULL);
			continue;
		}
		halt(&e);
		vt_done(&e, 10, NULL); /* in SQE */
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE));
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
		vt_post(&e, &wr);
		vt_done(&e, 5, NULL);
		vt_done(&e, 11, NULL);
		ct_sync(ct, &e);
		vt_post(&e, &wr);
		vt_done(&e, 5, NULL);
	}
	if (!ct->rank) { /* the ways out */
		halt(&e);
		vt_to(&e, e.qp, IBV_QPS_ERR);
		wr = send_wr(&e, &sge, 6, false);
		vt_post(&e, &wr);
		vt_next(&e, 6, IBV_WC_WR_FLUSH_ERR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RESET);
	}
	vt_finish(&e);
}

const struct ct_case vt_queues[] = { { "V1", "places-rc", { places, places }, .arg = IBV_QPT_RC },
				     { "V1", "places-uc", { places, places }, .arg = IBV_QPT_UC },
				     { "V1", "places-ud", { places, places }, .arg = IBV_QPT_UD },
				     { "V7", "sqe-uc", { halted, halted }, .arg = IBV_QPT_UC },
				     { "V7", "sqe-ud", { halted, halted }, .arg = IBV_QPT_UD },
				     { NULL } };
