/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* QP: ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3). */
#include "vt.h"

#include <errno.h>
#include <string.h>

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

/* ---- creating -------------------------------------------------------------------------------- */

static void create(struct ct *ct)
{
	struct ibv_device_attr dev;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	VT_OK(ct, ibv_query_device(e.context, &dev));
	for (size_t i = 0; i < CT_COUNT(types); i++) {
		struct ibv_qp_init_attr attr = { &e, e.cq, e.cq, NULL, { 33, 17, 3, 2, 13 }, types[i], 1 };
		struct ibv_qp_attr got;
		struct ibv_qp_init_attr init;
		struct ibv_qp *qp = ibv_create_qp(e.pd, &attr);

		CT_TRUE(ct, qp);
		CT_TRUE(ct, attr.cap.max_send_wr >= 33 && attr.cap.max_recv_wr >= 17);
		CT_TRUE(ct, attr.cap.max_send_sge >= 3 && attr.cap.max_recv_sge >= 2 &&
				    attr.cap.max_inline_data >= 13);
		CT_TRUE(ct, qp->qp_num > 1 && qp->qp_num < 0xffffff && qp->qp_num != e.qp->qp_num);
		CT_TRUE(ct, qp->context == e.context && qp->pd == e.pd && qp->qp_context == &e &&
				    qp->send_cq == e.cq && qp->recv_cq == e.cq && !qp->srq);
		CT_EQ(ct, qp->state, IBV_QPS_RESET);
		CT_EQ(ct, qp->qp_type, types[i]);
		VT_OK(ct, ibv_query_qp(qp, &got, IBV_QP_CAP | IBV_QP_STATE, &init));
		CT_EQ(ct, got.qp_state, IBV_QPS_RESET);
		CT_TRUE(ct, !memcmp(&got.cap, &attr.cap, sizeof(got.cap)));
		CT_TRUE(ct, !memcmp(&init.cap, &attr.cap, sizeof(init.cap)));
		CT_TRUE(ct, init.qp_context == &e && init.send_cq == e.cq && init.recv_cq == e.cq);
		CT_EQ(ct, init.qp_type, types[i]);
		CT_EQ(ct, init.sq_sig_all, 1);
		VT_OK(ct, ibv_destroy_qp(qp));
	}
	vt_close(&e);
}

static void create_refused(struct ct *ct)
{
	struct ibv_device_attr dev;
	struct ct_ep e;
	const struct vt_want want = { .srq = true };

	vt_open(ct, &e, &want);
	VT_OK(ct, ibv_query_device(e.context, &dev));
	for (int i = 0; i < 7; i++) {
		struct ibv_qp_init_attr attr = { NULL, e.cq, e.cq, NULL, { 1, 1, 1, 1, 0 }, IBV_QPT_RC, 0 };

		switch (i) {
		case 0:
			attr.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1;
			break;
		case 1:
			attr.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1;
			break;
		case 2:
			attr.cap.max_send_sge = (uint32_t)dev.max_sge + 1;
			break;
		case 3:
			attr.cap.max_recv_sge = (uint32_t)dev.max_sge + 1;
			break;
		case 4:
			attr.cap.max_inline_data = 1u << 30;
			break;
		case 5:
			attr.send_cq = NULL;
			break;
		case 6:
			attr.qp_type = (enum ibv_qp_type)77;
			break;
		}
		VT_NULL(ct, ibv_create_qp(e.pd, &attr), EINVAL);
	}
	/* what a queue pair uses cannot go */
	VT_ERR(ct, ibv_destroy_cq(e.cq), EBUSY);
	VT_ERR(ct, ibv_destroy_srq(e.srq), EBUSY);
	VT_ERR(ct, ibv_dealloc_pd(e.pd), EBUSY);
	vt_close(&e);
}

/* ---- changing -------------------------------------------------------------------------------- */

static void check_attr(struct ct_ep *e, const struct ibv_qp_attr *want)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;

	VT_OK(e->ct, ibv_query_qp(e->qp, &got, 0x1fffff, &init));
	CT_EQ(e->ct, got.qp_state, want->qp_state);
	CT_EQ(e->ct, got.cur_qp_state, want->qp_state);
	CT_EQ(e->ct, e->qp->state, want->qp_state);
	CT_EQ(e->ct, got.port_num, want->port_num);
	if (e->want.type == IBV_QPT_UD) {
		CT_EQ(e->ct, got.qkey, want->qkey);
		return;
	}
	CT_EQ(e->ct, got.qp_access_flags, want->qp_access_flags);
	CT_EQ(e->ct, got.path_mtu, want->path_mtu);
	CT_EQ(e->ct, got.dest_qp_num, want->dest_qp_num);
	CT_EQ(e->ct, got.rq_psn, want->rq_psn);
	CT_EQ(e->ct, got.sq_psn, want->sq_psn);
	CT_EQ(e->ct, got.ah_attr.dlid, want->ah_attr.dlid);
	CT_EQ(e->ct, got.ah_attr.is_global, want->ah_attr.is_global);
	CT_TRUE(e->ct, !memcmp(&got.ah_attr.grh, &want->ah_attr.grh, sizeof(got.ah_attr.grh)));
	if (e->want.type == IBV_QPT_UC)
		return;
	CT_EQ(e->ct, got.max_dest_rd_atomic, want->max_dest_rd_atomic);
	CT_EQ(e->ct, got.min_rnr_timer, want->min_rnr_timer);
	CT_EQ(e->ct, got.max_rd_atomic, want->max_rd_atomic);
	CT_EQ(e->ct, got.retry_cnt, want->retry_cnt);
	CT_EQ(e->ct, got.rnr_retry, want->rnr_retry);
	CT_EQ(e->ct, got.timeout, want->timeout);
}

/*
 * The whole way, with every mask that lacks something refused on it; and what
 * was set is what is told.
 */
static void walk(struct ct *ct)
{
	for (size_t i = 0; i < CT_COUNT(types); i++) {
		const struct vt_want want = { .type = types[i] };
		struct ibv_qp_attr attr = { 0 };
		struct ct_ep e;

		vt_open(ct, &e, &want);
		for (int step = 0; step < 3; step++) {
			int mask = step == 0   ? vt_init(&e, &attr)
				   : step == 1 ? vt_rtr(&e, &e.me, &attr)
					       : vt_rts(&e, &attr);

			for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1)
				if (mask & bit)
					VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask & ~bit), EINVAL);
			VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask | IBV_QP_CAP), EINVAL);
			VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask | IBV_QP_ALT_PATH), EINVAL);
			CT_EQ(ct, vt_state(&e, e.qp), step == 0 ? IBV_QPS_RESET : attr.qp_state - 1);
			VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		}
		check_attr(&e, &attr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, 0));
		vt_to(&e, e.qp, IBV_QPS_ERR);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		vt_connect(&e, e.qp, &e.me); /* and again */
		check_attr(&e, &attr);
		vt_close(&e);
	}
}

/* Steps that no state takes. */
static void no_shortcut(struct ct *ct)
{
	struct ibv_qp_attr attr = { 0 };
	struct ct_ep e;
	int init, rtr, rts;

	vt_open(ct, &e, NULL);
	attr.qp_state = IBV_QPS_ERR; /* there is nothing yet that could be in error */
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), EINVAL);
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RESET);
	rts = vt_rts(&e, &attr);
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rts), EINVAL);
	rtr = vt_rtr(&e, &e.me, &attr);
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rtr), EINVAL);
	init = vt_init(&e, &attr);
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, init));
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, init)); /* INIT to INIT is one */
	vt_rts(&e, &attr);
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rts), EINVAL);
	vt_rtr(&e, &e.me, &attr);
	attr.cur_qp_state = IBV_QPS_RTS; /* it is not */
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rtr | IBV_QP_CUR_STATE), EINVAL);
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, rtr));
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rtr), EINVAL);
	attr.qp_state = IBV_QPS_SQD;
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = (enum ibv_qp_state)99;
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), EINVAL);
	vt_rts(&e, &attr);
	attr.cur_qp_state = IBV_QPS_RTR;
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, rts | IBV_QP_CUR_STATE));
	vt_close(&e);
}

/*
 * IBV_QP_CUR_STATE is for those that send, or are about to, as the kernel has it for all drivers,
 * and not for the way to SQD, ERR and RESET.
 */
static void current_state(struct ct *ct)
{
	struct ibv_qp_attr attr = { 0 };
	struct ct_ep e;
	int mask;

	vt_open(ct, &e, NULL);
	for (int step = 0; step < 3; step++) {
		mask = step == 0   ? vt_init(&e, &attr)
		       : step == 1 ? vt_rtr(&e, &e.me, &attr)
				   : vt_rts(&e, &attr);
		attr.cur_qp_state = vt_state(&e, e.qp);
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask | IBV_QP_CUR_STATE), step < 2 ? EINVAL : 0);
		if (step < 2)
			VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
	}
	attr.cur_qp_state = IBV_QPS_RTS;
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_CUR_STATE));
	for (int to = 0; to < 3; to++) {
		attr.qp_state = to == 0 ? IBV_QPS_SQD : to == 1 ? IBV_QPS_ERR : IBV_QPS_RESET;
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	}
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
	vt_close(&e);
}

/* Each value out of its range, one by one; the state stays. */
static void values(struct ct *ct)
{
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	for (int i = 0; i < 14; i++) {
		struct ibv_qp_attr attr = { 0 };
		int init, rtr, rts;

		init = vt_init(&e, &attr);
		if (i == 0)
			attr.port_num = 0;
		if (i == 1)
			attr.port_num = 2;
		if (i == 2)
			attr.pkey_index = 1000;
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, init), i < 3 ? EINVAL : 0);
		rtr = vt_rtr(&e, &e.me, &attr);
		if (i == 3)
			attr.path_mtu = (enum ibv_mtu)0;
		if (i == 4)
			attr.path_mtu = (enum ibv_mtu)6;
		if (i == 5)
			attr.dest_qp_num = 1u << 24;
		if (i == 6)
			attr.max_dest_rd_atomic = 255;
		if (i == 7)
			attr.min_rnr_timer = 32;
		if (i == 8) { /* nowhere */
			attr.ah_attr.dlid = 0;
			attr.ah_attr.is_global = 0;
		}
		if (i == 9) {
			attr.ah_attr.is_global = 1;
			attr.ah_attr.grh.sgid_index = 200;
		}
		if (i == 10)
			attr.ah_attr.port_num = 0;
		if (i >= 3)
			VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rtr), i < 11 ? EINVAL : 0);
		rts = vt_rts(&e, &attr);
		if (i == 11)
			attr.timeout = 32;
		if (i == 12)
			attr.retry_cnt = 8;
		if (i == 13)
			attr.rnr_retry = 8;
		if (i >= 11)
			VT_ERR(ct, ibv_modify_qp(e.qp, &attr, rts), EINVAL);
		CT_EQ(ct, vt_state(&e, e.qp), i < 3 ? IBV_QPS_RESET : i < 11 ? IBV_QPS_INIT : IBV_QPS_RTR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
	}
	vt_close(&e);
}

/*
 * ibv_qp.state is what the program has set, or asked for last (IBV_QP_STATE): that a queue pair
 * fails meanwhile is not seen there, nor do other questions show it, and what is refused changes
 * nothing. UCX asserts it before it posts.
 */
static void state_shown(struct ct *ct)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { 0 };
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	e.peer[!ct->rank] = e.me;
	vt_connect(&e, e.qp, &e.me);
	CT_EQ(ct, e.qp->state, IBV_QPS_RTS);
	sge = vt_sge(&e, 0, 8);
	sge.lkey ^= 0xff;
	wr = vt_wr(&e, IBV_WR_SEND, &sge, 1);
	vt_post(&e, &wr);
	vt_next(&e, 1, IBV_WC_LOC_PROT_ERR);
	CT_EQ(ct, e.qp->state, IBV_QPS_RTS);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_AV | IBV_QP_CAP, &init));
	CT_EQ(ct, e.qp->state, IBV_QPS_RTS);
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, 0));
	CT_EQ(ct, e.qp->state, IBV_QPS_RTS);
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, vt_rts(&e, &attr)), EINVAL);
	CT_EQ(ct, e.qp->state, IBV_QPS_RTS);
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
	CT_EQ(ct, e.qp->state, IBV_QPS_ERR);
	vt_to(&e, e.qp, IBV_QPS_RESET);
	CT_EQ(ct, e.qp->state, IBV_QPS_RESET);
	vt_close(&e);
}

/* ---- what states permit ---------------------------------------------------------------------- */

static void posting_by_state(struct ct *ct)
{
	for (size_t i = 0; i < CT_COUNT(types); i++) {
		const struct vt_want want = { .type = types[i] };
		struct ibv_recv_wr rwr = { .wr_id = 1 }, *rbad;
		struct ibv_send_wr swr, *sbad;
		struct ibv_qp_attr attr = { 0 };
		struct ct_ep e;

		vt_open(ct, &e, &want);
		e.peer[!ct->rank] = e.me;
		if (types[i] == IBV_QPT_UD) {
			struct ibv_ah_attr av = vt_av(&e, &e.me);

			e.ah = ibv_create_ah(e.pd, &av);
		}
		swr = vt_wr(&e, IBV_WR_SEND, NULL, 2);
		rbad = NULL;
		VT_ERR(ct, ibv_post_recv(e.qp, &rwr, &rbad), EINVAL); /* RESET takes nothing */
		CT_TRUE(ct, rbad == &rwr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_init(&e, &attr)));
		VT_OK(ct, ibv_post_recv(e.qp, &rwr, &rbad)); /* from INIT on receives are taken */
		sbad = NULL;
		VT_ERR(ct, ibv_post_send(e.qp, &swr, &sbad), EINVAL);
		CT_TRUE(ct, sbad == &swr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_rtr(&e, &e.me, &attr)));
		VT_ERR(ct, ibv_post_send(e.qp, &swr, &sbad), EINVAL);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, vt_rts(&e, &attr)));
		vt_to(&e, e.qp, IBV_QPS_ERR);
		vt_next(&e, 1, IBV_WC_WR_FLUSH_ERR);
		/* in ERR everything completes, flushed */
		VT_OK(ct, ibv_post_send(e.qp, &swr, &sbad));
		vt_next(&e, 2, IBV_WC_WR_FLUSH_ERR);
		rwr.wr_id = 3;
		VT_OK(ct, ibv_post_recv(e.qp, &rwr, &rbad));
		vt_next(&e, 3, IBV_WC_WR_FLUSH_ERR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		vt_quiet(&e, 5, "after RESET");
		vt_close(&e);
	}
}

/* To oneself: a queue pair that is its own other end. */
static void to_itself(struct ct *ct)
{
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	e.peer[!ct->rank] = e.me;
	vt_connect(&e, e.qp, &e.me);
	ct_fill(e.buf, 1000, 1);
	vt_recv(&e, 4096, 1000, 1);
	vt_send(&e, 0, 1000, 2);
	vt_done(&e, 2, NULL);
	vt_done(&e, 1, NULL);
	ct_verify(ct, e.buf + 4096, 1000, 1, "to itself");
	vt_close(&e);
}

/*
 * A send queue with nothing in it has drained at once, and that is told to who has
 * asked, and to nobody else.
 */
static void drained_empty(struct ct *ct)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_async_event event;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	vt_connect(&e, e.qp, &e.me);
	for (int i = 0; i < 4; i++) {
		attr.en_sqd_async_notify = i == 1 || i == 2;
		VT_OK(ct,
		      ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | (i > 1 ? 0 : IBV_QP_EN_SQD_ASYNC_NOTIFY)));
		if (i == 1)
			vt_event(&e, IBV_EVENT_SQ_DRAINED, e.qp);
		else
			CT_TRUE(ct, !vt_async(&e, 5, &event));
		vt_to(&e, e.qp, IBV_QPS_RTS);
	}
	vt_close(&e);
}

/* SQD: what is under way ends, and is told of; what is posted meanwhile goes with RTS. */
static void drained(struct ct *ct)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		vt_recv(&e, 0, 64, 0);
		vt_next(&e, 0, IBV_WC_SUCCESS);
		ct_sync(ct, NULL); /* nothing posted: the next one is on its way for a while */
		vt_recv(&e, 0, 64, 1);
		vt_recv(&e, 0, 64, 2);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_quiet(&e, 20, "sent in SQD");
		ct_sync(ct, &e);
		vt_next(&e, 2, IBV_WC_SUCCESS);
	} else {
		vt_send(&e, 0, 8, 0); /* from here on there is a link */
		vt_next(&e, 0, IBV_WC_SUCCESS);
		vt_send(&e, 0, 8, 1);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_SQD);
		vt_send(&e, 0, 8, 2);
		ct_sync(ct, NULL);
		vt_event(&e, IBV_EVENT_SQ_DRAINED, e.qp);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		attr.qp_state = IBV_QPS_SQD;
		attr.timeout = 15;
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT));
		ct_sync(ct, &e);
		vt_to(&e, e.qp, IBV_QPS_RTS);
		vt_next(&e, 2, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* As vt_connect, with this max_dest_rd_atomic. */
static void connect_with(struct ct_ep *e, uint8_t resources)
{
	struct ibv_qp_attr attr = { 0 };
	int mask = vt_init(e, &attr);

	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
	mask = vt_rtr(e, &e->peer[!e->ct->rank], &attr);
	attr.max_dest_rd_atomic = resources;
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
	mask = vt_rts(e, &attr);
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, mask));
}

/* In SQD it can be changed. */
static void set_resources(struct ct_ep *e, uint8_t resources)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .max_dest_rd_atomic = resources };

	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC));
	vt_to(e, e->qp, IBV_QPS_RTS);
}

static void ask(struct ct_ep *e, enum ibv_wr_opcode op, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_sge sge = vt_sge(e, 0, 8);
	struct ibv_send_wr wr = vt_wr(e, op, &sge, id);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.remote_addr = e->peer[1].addr;
		wr.wr.atomic.rkey = e->peer[1].rkey;
	}
	vt_post(e, &wr);
	vt_next(e, id, status);
}

/*
 * A queue pair that has no resources for reads and atomic operations (max_dest_rd_atomic)
 * carries out none, whatever its access flags say; writes it does. Arg: an operation; plus
 * 1000: it had some before.
 */
static void no_resources(struct ct *ct)
{
	enum ibv_wr_opcode op = (enum ibv_wr_opcode)(ct->cs->arg % 1000);
	bool had = ct->cs->arg >= 1000;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	vt_exchange(&e);
	connect_with(&e, ct->rank && !had ? 0 : 4);
	ct_sync(ct, NULL);
	if (ct->rank) {
		memset(e.buf, 0, 8);
		ct_sync(ct, NULL);
		ct_sync(ct, &e);
		if (had)
			set_resources(&e, 0);
		ct_sync(ct, NULL);
		vt_event(&e, IBV_EVENT_QP_ACCESS_ERR, e.qp);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
		CT_EQ(ct, e.buf[0], 'w');
		ct_sync(ct, &e);
	} else {
		memset(e.buf, 'w', 8);
		ct_sync(ct, NULL);
		if (had)
			ask(&e, IBV_WR_RDMA_READ, 0, IBV_WC_SUCCESS);
		memset(e.buf, 'w', 8);
		ask(&e, IBV_WR_RDMA_WRITE, 1, IBV_WC_SUCCESS);
		ct_sync(ct, &e);
		ct_sync(ct, NULL);
		ask(&e, op, 2, IBV_WC_REM_ACCESS_ERR);
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* In RTS, with this other end, which there is not. */
static void connect_nowhere(struct ct_ep *e, struct ibv_qp *qp, uint32_t number, uint16_t lid)
{
	struct ibv_qp_attr attr = { 0 }, got;
	struct ibv_qp_init_attr init;
	int mask = vt_init(e, &attr);

	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rtr(e, &e->me, &attr);
	attr.dest_qp_num = number;
	if (attr.ah_attr.dlid && lid)
		attr.ah_attr.dlid = lid;
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rts(e, &attr);
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	VT_OK(e->ct, ibv_query_qp(qp, &got, IBV_QP_DEST_QPN | IBV_QP_AV, &init));
	CT_EQ(e->ct, got.qp_state, IBV_QPS_RTS);
	CT_EQ(e->ct, got.dest_qp_num, number);
	CT_EQ(e->ct, got.ah_attr.dlid, attr.ah_attr.dlid);
}

/*
 * Any number of 24 bits can be that of the other end, and any LID where it is: that nobody is there
 * is found out when something is sent. Arg: it is.
 */
static void nobody_there(struct ct *ct)
{
	static const struct {
		uint32_t number;
		uint16_t lid;
	} all[] = { { 0, 0 }, { 1, 0 }, { 0xab, 0 }, { 0xffffff, 0 }, { 0x123401, 0xbffe } };
	struct ibv_qp *qps[CT_COUNT(all)];
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	for (size_t i = 0; i < CT_COUNT(all); i++) {
		qps[i] = vt_qp(&e);
		connect_nowhere(&e, qps[i], all[i].number, all[i].lid);
	}
	for (size_t i = 0; ct->cs->arg && i < CT_COUNT(all); i++) {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr, *bad;

		e.peer[!ct->rank] = e.me;
		wr = vt_wr(&e, i & 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, &sge, i);
		VT_OK(ct, ibv_post_send(qps[i], &wr, &bad));
	}
	for (size_t i = 0; i < CT_COUNT(all); i++) {
		if (ct->cs->arg)
			vt_status(&e, i, IBV_WC_RETRY_EXC_ERR);
		VT_OK(ct, ibv_destroy_qp(qps[i]));
	}
	vt_close(&e);
}

/* What the devices do not have, they say. */
static void not_there(struct ct *ct)
{
	static const enum ibv_qp_type types_not[] = { IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER };
	struct ibv_srq_init_attr_ex srq = { .attr = { 1, 1, 0 },
					    .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					    .srq_type = IBV_SRQT_TM };
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	srq.pd = e.pd;
	VT_NULL(ct, ibv_create_srq_ex(e.context, &srq), EOPNOTSUPP);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = { NULL, e.cq, e.cq, NULL, { 1, 1, 1, 1, 0 }, types_not[i], 0 };

		VT_NULL(ct, ibv_create_qp(e.pd, &attr), EOPNOTSUPP);
	}
	vt_close(&e);
}

const struct ct_case vt_states[] = {
	{ "QP", "create", { create } },
	{ "QP", "create-refused", { create_refused } },
	{ "QP", "walk", { walk } },
	{ "QP", "no-shortcut", { no_shortcut } },
	{ "QP", "values", { values } },
	{ "QP", "posting-by-state", { posting_by_state } },
	{ "QP", "to-itself", { to_itself } },
	{ "QP", "drained", { drained, drained } },
	{ "QP", "drained-empty", { drained_empty } },
	{ "QP", "current-state", { current_state } },
	{ "QP", "not-there", { not_there } },
	{ "QP", "nobody-there", { nobody_there } },
	{ "QP", "nobody-there-told", { nobody_there }, .arg = 1, .slow = true },
	{ "QP", "no-resources-read", { no_resources, no_resources }, .arg = IBV_WR_RDMA_READ },
	{ "QP", "no-resources-atomic", { no_resources, no_resources }, .arg = IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "QP", "resources-taken-away", { no_resources, no_resources }, .arg = 1000 + IBV_WR_RDMA_READ },
	{ "QP", "state-shown", { state_shown } },
	{ NULL }
};
