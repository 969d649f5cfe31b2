/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * QP: queue pairs that are not connected yet, or will never be:
 * ibv_modify_qp(3), ibv_get_async_event(3).
 */
#include "vt.h"

#include <unistd.h>

#include <poll.h>

/*
 * One that fails before it has another end takes requests, and flushes them: programs
 * wait so until it is empty.
 */
static void flushed_alone(struct ct *ct)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND,	     IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD };
	static const struct vt_want want = { .inline_data = 64 };

	struct ibv_qp_attr attr = { 0 };
	struct ct_ep e;

	vt_open(ct, &e, &want);
	e.peer[!ct->rank] = e.me;
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

/* ---- IBV_EVENT_COMM_EST ---------------------------------------------------------------------- */

static void no_event(struct ct_ep *e)
{
	struct pollfd fd = { e->context->async_fd, POLLIN, 0 };

	CT_EQ(e->ct, poll(&fd, 1, 0), 0);
}

/* To INIT with two receives, and to RTR, after a while. */
static void to_rtr(struct ct_ep *e, useconds_t late)
{
	struct ibv_qp_attr attr = { 0 };

	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, vt_init(e, &attr)));
	vt_recv(e, 0, 64, 1);
	vt_recv(e, 64, 64, 2);
	usleep(late);
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, vt_rtr(e, &e->peer[!e->ct->rank], &attr)));
}

static void to_rts(struct ct_ep *e)
{
	struct ibv_qp_attr attr = { 0 };

	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, vt_rts(e, &attr)));
}

static void open_own(struct ct *ct, struct ct_ep *e, const struct vt_want *want)
{
	vt_open(ct, e, want);
	vt_exchange(e);
}

static void send_by(struct ct_ep *e, enum ibv_wr_opcode op, uint64_t id)
{
	struct ibv_sge sge = vt_sge(e, 128, 8);
	struct ibv_send_wr wr = vt_wr(e, op, &sge, id);

	vt_post(e, &wr);
}

/*
 * What comes in RTR is told of once, for the program to go on to RTS; in RTS, as rank 0 is when
 * something comes there, nothing is told.
 */
static void meet(struct ct_ep *e, enum ibv_wr_opcode op, useconds_t late)
{
	struct ct *ct = e->ct;

	to_rtr(e, ct->rank ? late : 0);
	if (!ct->rank) {
		to_rts(e);
		send_by(e, op, 3);
		send_by(e, op, 4);
		vt_done(e, 3, NULL);
		vt_done(e, 4, NULL);
		ct_sync(ct, e);
		vt_done(e, 1, NULL);
	} else {
		vt_next(e, 1, IBV_WC_SUCCESS);
		vt_next(e, 2, IBV_WC_SUCCESS);
		vt_met(ct, e->context, e->qp);
		ct_sync(ct, e);
		to_rts(e);
		vt_send(e, 128, 8, 3);
		vt_next(e, 3, IBV_WC_SUCCESS);
	}
	no_event(e);
}

static void established(struct ct *ct)
{
	struct ct_ep e;

	open_own(ct, &e, NULL);
	meet(&e, (enum ibv_wr_opcode)ct->cs->arg, 0);
	vt_finish(&e);
}

/* What comes before the other end is ready, most likely, counts when it is. */
static void established_late(struct ct *ct)
{
	struct ct_ep e;

	open_own(ct, &e, NULL);
	meet(&e, IBV_WR_SEND, 100000);
	vt_finish(&e);
}

static void established_uc(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UC };
	struct ct_ep e;

	open_own(ct, &e, &want);
	to_rtr(&e, 0);
	ct_sync(ct, &e); /* it resends nothing */
	if (!ct->rank) {
		to_rts(&e);
		vt_send(&e, 128, 8, 3);
		vt_send(&e, 128, 8, 4);
		vt_done(&e, 3, NULL);
		vt_done(&e, 4, NULL);
	} else {
		vt_done(&e, 1, NULL);
		vt_done(&e, 2, NULL);
		vt_met(ct, e.context, e.qp);
	}
	no_event(&e);
	vt_finish(&e);
}

/* A queue pair that has been reset meets its other end again. */
static void established_again(struct ct *ct)
{
	struct ct_ep e;

	open_own(ct, &e, NULL);
	for (int i = 0; i < 3; i++) {
		meet(&e, IBV_WR_SEND, 0);
		ct_sync(ct, &e);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		vt_quiet(&e, 0, "what was reset");
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* It has gone on to RTS by itself, and needs nobody to tell it that it may. */
static void not_in_rts(struct ct *ct)
{
	struct ct_ep e;

	open_own(ct, &e, NULL);
	to_rtr(&e, 0);
	to_rts(&e);
	ct_sync(ct, &e);
	if (!ct->rank) {
		vt_send(&e, 128, 8, 3);
		vt_done(&e, 3, NULL);
	} else {
		vt_done(&e, 1, NULL);
	}
	no_event(&e);
	vt_finish(&e);
}

/* Datagrams establish nothing. */
static void not_datagrams(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_ah_attr av;
	struct ct_ep e;

	open_own(ct, &e, &want);
	to_rtr(&e, 0);
	ct_sync(ct, &e);
	if (!ct->rank) {
		to_rts(&e);
		av = vt_av(&e, &e.peer[1]);
		e.ah = ibv_create_ah(e.pd, &av);
		CT_TRUE(ct, e.ah);
		vt_send(&e, 128, 8, 3);
		vt_done(&e, 3, NULL);
	} else {
		vt_done(&e, 1, NULL);
	}
	no_event(&e);
	vt_finish(&e);
}

const struct ct_case vt_life[] = {
	{ "QP", "flushed-alone", { flushed_alone } },
	{ "QP", "established", CT_TWO(established), .arg = IBV_WR_SEND },
	{ "QP", "established-imm", CT_TWO(established), .arg = IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "QP", "established-late", CT_TWO(established_late) },
	{ "QP", "established-uc", CT_TWO(established_uc) },
	{ "QP", "established-again", CT_TWO(established_again) },
	{ "QP", "established-in-rts", CT_TWO(not_in_rts) },
	{ "QP", "established-ud", CT_TWO(not_datagrams) },
	{ NULL },
};
