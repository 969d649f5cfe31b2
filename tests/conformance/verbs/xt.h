/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the cases of XRC share. */
#ifndef XT_H
#define XT_H

#include "vt.h"

#define QUEUES 2
#define PLACE 409600 /* bytes of the buffer for each receive */
#define LONG 300000

/* What one rank has of XRC beside its struct ct_ep, whose queue pair is XRC_SEND. */
struct xrc {
	struct ct_ep e;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[QUEUES];
	struct ibv_cq *cq[QUEUES];
	uint32_t number[QUEUES];
	struct ibv_qp *recv;
	uint32_t theirs[QUEUES]; /* numbers of the other rank's queues */
};

/*
 * xt_domain: ibv_open_xrcd. xt_queue: a shared receive queue of a domain. xt_receiver: a
 * queue pair that receives.
 */
struct ibv_xrcd *xt_domain(struct ct *ct, struct ibv_context *context, int fd, int oflags);
struct ibv_srq *xt_queue(struct xrc *x, struct ibv_xrcd *xrcd, struct ibv_cq *cq, struct ibv_pd *pd);
struct ibv_qp *xt_receiver(struct xrc *x, struct ibv_xrcd *xrcd);

/* xt_receiver_connect, xt_sender_connect: from RESET to RTS. */
void xt_receiver_connect(struct xrc *x, struct ibv_qp *qp, const struct vt_name *to);
void xt_sender_connect(struct xrc *x, struct ibv_qp *qp, const struct vt_name *to);

/*
 * xt_request: a work request for the queue with this number. xt_next: the
 * next completion of a queue.
 */
struct ibv_send_wr xt_request(struct xrc *x, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t id,
			      uint32_t number);
void xt_next(struct xrc *x, struct ibv_cq *cq, struct ibv_wc *wc);

#endif
