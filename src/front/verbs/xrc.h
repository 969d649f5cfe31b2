/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * XRC: ibv_open_xrcd(3), shared receive queues with numbers, queue pairs that only receive, and of which there may be several handles:
 *
 *	hv_qp (handle) ─┐
 *	hv_qp (handle) ─┴─ hv_qp (real): the endpoint; no program has its address
 *
 * A handle is a struct hv_qp whose `real` is not NULL; of the rest it has what is in the public part, the context and the transport.
 */
#ifndef HEDDLE_FRONT_VERBS_XRC_H
#define HEDDLE_FRONT_VERBS_XRC_H

#include "front/verbs/qp.h"

struct hv_domain;

struct hv_xrcd {
	struct ibv_xrcd pub;
	struct hv_context *ctx;
	struct hv_domain *domain;
	int users; /* queues and queue pairs: under the lock */
};

static inline struct hv_xrcd *hv_xrcd_of(struct ibv_xrcd *xrcd)
{
	return hv_container(xrcd, struct hv_xrcd, pub);
}

/* hv_xrcd_number: what the engine knows the domain by, hd_ep_attr.domain: never 0. */
uint64_t hv_xrcd_number(const struct hv_xrcd *xrcd);

/*
 * hv_xrc_handle: a handle of a queue pair that receives, with one user of the domain more; NULL: no memory. hv_xrc_unhandle: it is
 * gone, and true when it was the last one. With the lock.
 */
struct hv_qp *hv_xrc_handle(struct hv_qp *real, struct hv_xrcd *xrcd, void *qp_context);
bool hv_xrc_unhandle(struct hv_qp *handle);

/* hv_xrc_drop: what queues with numbers have completed for this endpoint is gone. With the lock. */
void hv_xrc_drop(struct hv_context *ctx, uint32_t index);

#endif
