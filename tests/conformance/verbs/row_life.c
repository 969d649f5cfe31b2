/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* QP: queue pairs that are not connected yet, or will never be: ibv_modify_qp(3), ibv_get_async_event(3). */
#include "vt.h"

#include <unistd.h>

#include <poll.h>

/* One that fails before it has another end takes requests, and flushes them: programs wait so until it is empty. */
static void flushed_alone(struct ct *ct)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,	     IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD };
	static const struct vt_want want = { .inline_data = 64 };

	for (int from = IBV_QPS_RESET; from <= IBV_QPS_INIT; from++) {
		struct ibv_qp_attr attr = { 0 };
		struct ct_ep e;

		vt_open(ct, &e, &want);
		e.peer[!ct->rank] = e.me;
		if (from == IBV_QPS_INIT)
			VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_init(&e, &attr)));
		vt_to(&e, e.qp, IBV_QPS_ERR);
		for (size_t i = 0; i < CT_COUNT(ops); i++) {
			struct ibv_sge sge = vt_sge(&e, 0, 8);
			struct ibv_send_wr wr = vt_wr(&e, ops[i], &sge, i);

			vt_post(&e, &wr);
			vt_next(&e, i, IBV_WC_WR_FLUSH_ERR);
		}
		vt_close(&e);
	}
}

/* What comes in RTR is told of once, for the program to go on to RTS; in RTS nothing is told. */
static void establish(struct ct *ct, useconds_t late)
{
	struct pollfd fd = { 0, POLLIN, 0 };
	struct ibv_qp_attr attr = { 0 };
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	vt_exchange(&e);
	fd.fd = e.context->async_fd;
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_init(&e, &attr)));
	vt_recv(&e, 0, 64, 1);
	vt_recv(&e, 64, 64, 2);
	if (ct->rank)
		usleep(late);
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_rtr(&e, &e.peer[!ct->rank], &attr)));
	if (!ct->rank) {
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_rts(&e, &attr)));
		vt_send(&e, 128, 8, 3);
		vt_send(&e, 128, 8, 4);
		vt_done(&e, 3, NULL);
		vt_done(&e, 4, NULL);
		ct_sync(ct, &e);
		vt_done(&e, 1, NULL);
	} else {
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_next(&e, 2, IBV_WC_SUCCESS);
		vt_event(&e, IBV_EVENT_COMM_EST, e.qp);
		ct_sync(ct, &e);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_rts(&e, &attr)));
		vt_send(&e, 128, 8, 3);
		vt_next(&e, 3, IBV_WC_SUCCESS);
	}
	CT_EQ(ct, poll(&fd, 1, 0), 0);
	vt_finish(&e);
}

static void established(struct ct *ct)
{
	establish(ct, 0);
}

/* What comes before the other end is ready, most likely, counts when it is. */
static void established_late(struct ct *ct)
{
	establish(ct, 100000);
}

const struct ct_case vt_life[] = { { "QP", "flushed-alone", { flushed_alone } },
				   { "QP", "established", { established, established } },
				   { "QP", "established-late", { established_late, established_late } },
				   { NULL } };
