/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "xt.h"

struct ibv_xrcd *xt_domain(struct ct *ct, struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = fd,
					   .oflags = oflags };

	return ibv_open_xrcd(context, &attr);
}

struct ibv_srq *xt_queue(struct xrc *x, struct ibv_xrcd *xrcd, struct ibv_cq *cq, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr_ex attr = { .attr = { 64, 2, 0 },
					     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					     .srq_type = IBV_SRQT_XRC,
					     .pd = pd,
					     .xrcd = xrcd,
					     .cq = cq };
	struct ibv_srq *srq = ibv_create_srq_ex(x->e.context, &attr);

	CT_TRUE(x->e.ct, srq);
	return srq;
}

struct ibv_qp *xt_receiver(struct xrc *x, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = x, .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd
	};
	struct ibv_qp *qp = ibv_create_qp_ex(x->e.context, &attr);

	CT_TRUE(x->e.ct, qp);
	return qp;
}

void xt_receiver_connect(struct xrc *x, struct ibv_qp *qp, const struct vt_name *to)
{
	struct ibv_qp_attr attr = { 0 };
	struct ct *ct = x->e.ct;
	int mask = vt_init(&x->e, &attr);

	VT_OK(ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rtr(&x->e, to, &attr) | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	VT_OK(ct, ibv_modify_qp(qp, &attr, mask));
	CT_EQ(ct, qp->state, IBV_QPS_RTR);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .sq_psn = 1 };
	VT_OK(ct, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN));
}

void xt_sender_connect(struct xrc *x, struct ibv_qp *qp, const struct vt_name *to)
{
	struct ibv_qp_attr attr = { 0 };
	struct ct *ct = x->e.ct;
	int mask = vt_init(&x->e, &attr);

	VT_OK(ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rtr(&x->e, to, &attr);
	VT_OK(ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rts(&x->e, &attr) | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_TIMEOUT;
	VT_OK(ct, ibv_modify_qp(qp, &attr, mask));
}

struct ibv_send_wr xt_request(struct xrc *x, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t id,
			      uint32_t number)
{
	struct ibv_send_wr wr = vt_wr(&x->e, op, sge, id);

	wr.qp_type.xrc.remote_srqn = number;
	return wr;
}

/* The next completion of a queue; no other one may come. */
void xt_next(struct xrc *x, struct ibv_cq *cq, struct ibv_wc *wc)
{
	double end = ct_deadline(x->e.ct);
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc))) {
		ct_late(x->e.ct, end, "a completion of a shared receive queue");
		ct_pause();
	}
	CT_EQ(x->e.ct, n, 1);
}
