/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V8: no receive posted. */
#include "vt.h"

#include <string.h>
#include <unistd.h>

/* RC waits for ever with 7, whatever is sent; nothing is lost and nothing overtakes. */
static void waits(struct ct *ct)
{
	const struct vt_want want = { .srq = ct->cs->arg && ct->rank };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		ct_sync(ct, &e);
		vt_quiet(&e, 50, "nothing posted");
		for (uint64_t i = 0; i < 6; i++) {
			vt_recv(&e, 0, 1u << 19, i);
			vt_done(&e, i, NULL);
			if (i != 3)
				ct_verify(ct, e.buf, i == 1 ? 300000 : 64, i, "waited");
		}
		CT_TRUE(ct, ct_match(e.buf + (1u << 19), 64, 3, 0));
	} else {
		for (uint64_t i = 0; i < 6; i++) {
			size_t at = (1u << 19) + (i == 1 ? 4096 : i * 64);
			uint32_t len = i == 1 ? 300000 : 64;
			struct ibv_sge sge = vt_sge(&e, at, len);
			struct ibv_send_wr wr =
				vt_wr(&e, i == 3 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, &sge, i);

			ct_fill(e.buf + at, len, i);
			wr.wr.rdma.remote_addr = e.peer[1].addr + (1u << 19);
			vt_post(&e, &wr);
		}
		vt_quiet(&e, 20, "completed though nothing is posted there");
		ct_sync(ct, &e);
		for (uint64_t i = 0; i < 6; i++)
			vt_next(&e, i, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/*
 * With a count it gives up after so many times the target's timer: both go on to error, that is the
 * sender; the target stays as it is.
 */
static void gives_up(struct ct *ct)
{
	const struct vt_want want = { .rnr_retry = ct->cs->arg ? (uint8_t)ct->cs->arg : 8 };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		ct_sync(ct, &e);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
		vt_quiet(&e, 5, "a message that was given up");
	} else {
		vt_send(&e, 0, 8, 1);
		vt_send(&e, 0, 8, 2);
		vt_recv(&e, 0, 8, 3);
		vt_next(&e, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		vt_status(&e, 2, IBV_WC_WR_FLUSH_ERR);
		vt_status(&e, 3, IBV_WC_WR_FLUSH_ERR);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* A receive that comes in time saves it. */
static void in_time(struct ct *ct)
{
	const struct vt_want want = { .rnr_retry = 6 };
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_exchange(&e);
	{
		struct ibv_qp_attr attr = { 0 };
		int mask = vt_init(&e, &attr);

		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		mask = vt_rtr(&e, &e.peer[!ct->rank], &attr);
		attr.min_rnr_timer = 0; /* 655 ms, 6 times */
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		mask = vt_rts(&e, &attr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
	}
	ct_sync(ct, NULL);
	if (ct->rank) {
		ct_sync(ct, &e);
		/*
		 * the sender has been told that there is no receive, and has not told its program
		 */
		usleep(50000);
		vt_recv(&e, 0, 8, 1);
		vt_done(&e, 1, NULL);
	} else {
		vt_send(&e, 0, 8, 1);
		ct_sync(ct, &e);
		vt_done(&e, 1, NULL);
	}
	vt_finish(&e);
}

/* A reliable queue pair beside the first, in its place. */
static void beside(struct ct_ep *e)
{
	struct vt_name me = e->me, to;

	e->want.type = IBV_QPT_RC;
	e->qp = vt_qp(e);
	me.qpn = e->qp->qp_num;
	ct_put(e->ct, !e->ct->rank, &me, sizeof(me));
	ct_get(e->ct, NULL, !e->ct->rank, &to, sizeof(to));
	vt_connect(e, e->qp, &to);
}

static void back_to(struct ct_ep *e, struct ibv_qp *first, enum ibv_qp_type type)
{
	VT_OK(e->ct, ibv_destroy_qp(e->qp));
	e->qp = first;
	e->want.type = type;
}

/* Others of the same link keep moving while one waits. */
static void others_move(struct ct *ct)
{
	struct ct_ep e;
	struct ibv_qp *first;

	vt_start(ct, &e, NULL);
	first = e.qp;
	beside(&e);
	ct_sync(ct, NULL);
	if (ct->rank) {
		for (uint64_t i = 0; i < 50; i++)
			vt_recv(&e, 0, 64, i);
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < 50; i++)
			vt_next(&e, i, IBV_WC_SUCCESS);
		ct_sync(ct, &e);
		back_to(&e, first, IBV_QPT_RC);
		vt_recv(&e, 0, 64, 99);
		vt_done(&e, 99, NULL);
	} else {
		struct ibv_sge sge = vt_sge(&e, 0, 64);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 99), *bad;

		VT_OK(ct, ibv_post_send(first, &wr, &bad)); /* waits */
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < 50; i++) {
			vt_send(&e, 0, 64, i);
			vt_next(&e, i, IBV_WC_SUCCESS);
		}
		ct_sync(ct, &e);
		vt_done(&e, 99, NULL);
		back_to(&e, first, IBV_QPT_RC);
	}
	vt_finish(&e);
}

#define SHARED 0x100 /* from an SRQ */

/*
 * UC and UD drop, and the sender is none the wiser. What is sent by a reliable queue
 * pair afterwards shows when all has come: one that is late may find a receive that was
 * not there when it was sent.
 */
static void drops(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)(ct->cs->arg & ~SHARED),
				      .srq = ct->cs->arg & SHARED && ct->rank };
	struct ibv_qp *first;
	struct ibv_srq *srq;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	first = e.qp;
	srq = e.srq;
	e.buf[0] = 'a';
	for (uint64_t i = 0; !ct->rank && i < 10; i++) {
		vt_send(&e, 0, 8, i);
		vt_done(&e, i, NULL);
	}
	e.srq = NULL; /* the reliable one has receives of its own */
	beside(&e);
	if (ct->rank)
		vt_recv(&e, 0, 8, 10);
	else
		vt_send(&e, 0, 8, 10);
	vt_done(&e, 10, NULL);
	ct_sync(ct, &e);
	back_to(&e, first, want.type);
	e.srq = srq;
	if (ct->rank) {
		vt_recv(&e, 0, 4096, 1);
		vt_quiet(&e, 20, "what came before it");
		ct_sync(ct, &e);
		vt_done(&e, 1, NULL);
		CT_EQ(ct, e.buf[want.type == IBV_QPT_UD ? 40 : 0], 'b');
	} else {
		ct_sync(ct, &e);
		e.buf[0] = 'b';
		vt_send(&e, 0, 8, 20);
		vt_done(&e, 20, NULL);
	}
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
	vt_finish(&e);
}

const struct ct_case vt_rnr[] = { { "V8", "waits", { waits, waits } },
				  { "V8", "waits-srq", { waits, waits }, .arg = 1 },
				  { "V8", "gives-up-at-once", { gives_up, gives_up } },
				  { "V8", "gives-up", { gives_up, gives_up }, .arg = 3 },
				  { "V8", "in-time", { in_time, in_time } },
				  { "V8", "others-move", { others_move, others_move } },
				  { "V8", "drops-uc", { drops, drops }, .arg = IBV_QPT_UC },
				  { "V8", "drops-uc-srq", { drops, drops }, .arg = IBV_QPT_UC | SHARED },
				  { "V8", "drops-ud-srq", { drops, drops }, .arg = IBV_QPT_UD | SHARED },
				  { "V8", "drops-ud", { drops, drops }, .arg = IBV_QPT_UD },
				  { NULL } };
