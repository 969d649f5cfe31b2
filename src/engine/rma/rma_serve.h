/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the target of a one-sided operation does for all kinds of them: read the request, find its memory, and hold that while a transfer
 * takes several turns. All with the node's lock.
 */
#ifndef HD_ENGINE_RMA_SERVE_H
#define HD_ENGINE_RMA_SERVE_H

#include "engine/mr/mr.h"
#include "engine/rma/rma.h"

#define HD_RMA_PIECES (HD_RMA_SEGS * HD_MAX_IOV) /* segments of ours that a request can lead to */

/* A request, checked as far as it can be without looking at our memory. */
struct hd_rma_request {
	const struct hd_arrival *a;
	const struct hd_rma_server *server;
	uint64_t len;  /* to be transferred */
	uint64_t done; /* was before */
	int count;
	struct hd_rma_seg seg[HD_RMA_SEGS];
	const void *rest; /* payload behind the list: the offer, or all the data */
	size_t rest_len;
	bool offers;
};

/* Where it leads to. */
struct hd_rma_found {
	uint32_t access;
	int pieces, regions;
	struct iovec iov[HD_RMA_PIECES];
	struct hd_mr *mr[HD_RMA_SEGS];
};

/* A region that a transfer reads from, or stores into. */
struct hd_rma_held {
	struct hd_mr_hold hold;
	struct hd_op *op;
};

/* hd_op.extra of a transfer that is carried out here in several turns. */
struct hd_rma_turns {
	const struct hd_rma_server *server;
	uint32_t access, units; /* units: credit that it holds */
	int regions, pieces;
	struct iovec *more; /* pieces of them, where hd_op.iov is too short */
	uint64_t done;
	struct hd_rma_held held[HD_RMA_SEGS];
};

/* hd_rma_parse: read a request, whose bytes are the peer's, into *r. -EPROTO: it breaks the rules. */
int hd_rma_parse(const struct hd_arrival *a, struct hd_rma_request *r);

/*
 * hd_rma_find: find the memory of all segments; access: HD_ACCESS_REMOTE_*; policy: what the endpoint must allow. 0, or a positive
 * errno for the initiator.
 */
int hd_rma_find(const struct hd_rma_request *r, uint32_t access, uint32_t policy, struct hd_rma_found *f);

/* hd_atomic_carry_out: as hd_rma_request, of an ATOMIC. */
int hd_atomic_carry_out(const struct hd_arrival *a);

/* hd_rma_touched: count it here. */
void hd_rma_touched(struct hd_ep *ep, uint32_t access, struct hd_mr *const *mr, int regions);

/*
 * hd_rma_turns_make: an operation that carries out a request in several turns, and holds its regions; kind->free is hd_rma_turns_free.
 * NULL without memory. hd_rma_turns_count: it has been carried out.
 */
struct hd_op *hd_rma_turns_make(const struct hd_rma_request *r, const struct hd_rma_found *f,
				const struct hd_op_kind *kind);
void hd_rma_turns_count(const struct hd_op *op);
void hd_rma_turns_free(struct hd_op *op);

/* hd_rma_serve_no_more: it sends its frames no more: what it reads from is about to go, or nobody wants them. */
void hd_rma_serve_no_more(struct hd_op *op, int err);

#endif
