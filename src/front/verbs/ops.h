/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What programs reach through a context without a call of the library: hv_<member> of each, as the
 * manual page of ibv_<member> says.
 */
#ifndef HEDDLE_FRONT_VERBS_OPS_H
#define HEDDLE_FRONT_VERBS_OPS_H

#include "front/verbs/verbs_front.h"

#define HV_OP_INT(member, params, args) int hv_##member params;
#define HV_OP_PTR(ret, member, params) ret hv_##member params;
#include "front/verbs/ops.def"
#undef HV_OP_INT
#undef HV_OP_PTR

/* struct ibv_context_ops */
int hv_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int hv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int hv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int hv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_mw *hv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int hv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int hv_dealloc_mw(struct ibv_mw *mw);

/*
 * hv_cq_ex_fill: the functions of a struct ibv_cq_ex for these fields (enum
 * ibv_create_cq_wc_flags), in poll.c. 0, or EOPNOTSUPP for a field that we never have.
 */
int hv_cq_ex_fill(struct hv_cq *cq, uint64_t wc_flags);

#endif
