/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How a send is reported: one that went the short way (send.c), and one that
 * was an operation (op.c).
 */
#ifndef HD_ENGINE_SENT_H
#define HD_ENGINE_SENT_H

#include "engine/event/event.h"
#include "engine/rq/rq.h"
#include "engine/xfer/state.h"

#define HD_SEND_ANSWERED (HD_SEND_ACKED | HD_SEND_DELIVERED)

static inline uint32_t hd_sent_flags(uint32_t flags)
{
	return HD_C_SEND | (flags & HD_SEND_TAGGED ? HD_C_TAGGED : HD_C_MSG);
}

/* what: enum hd_cqe_flag. */
static inline void hd_sent_fill(struct hd_cqe *e, const struct hd_ep *ep, void *ctx, uint32_t what,
				uint64_t len, uint64_t tag, enum hd_status status)
{
	e->ctx = ctx;
	e->buf = NULL;
	e->len = len;
	e->tag = tag;
	e->imm = 0;
	e->olen = 0;
	e->src = 0;
	e->ep = ep->index;
	e->flags = what;
	e->err = status;
}

/* hd_sent_beside: the same, where the ring is full; in op.c. */
void hd_sent_beside(struct hd_ep *ep, void *ctx, uint32_t what, uint64_t len, uint64_t tag,
		    enum hd_status status);

/* Part of the short way: what is constant there shall be so in the code. */
static inline __attribute__((always_inline)) void hd_sent_complete(struct hd_ep *ep, void *ctx, uint32_t what,
								   uint64_t len, uint64_t tag,
								   enum hd_status status)
{
	struct hd_cqe *e = hd_cq_slot(ep->tx_cq);

	if (hd_unlikely(!e)) {
		hd_sent_beside(ep, ctx, what, len, tag, status);
		return;
	}
	hd_sent_fill(e, ep, ctx, what, len, tag, status);
	hd_cq_push(ep->tx_cq, e);
}

static inline void hd_sent_finish(struct hd_ep *ep, void *ctx, uint32_t flags, uint64_t len, uint64_t tag)
{
	if (flags & HD_SEND_COMPLETE)
		hd_sent_complete(ep, ctx, hd_sent_flags(flags), len, tag, 0);
	hd_cntr_count(ep->cntrs.send, len);
}

#endif
