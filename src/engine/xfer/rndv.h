/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receives under way: a long message has met its receive, which is kept until all of it is there.
 * With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_RNDV_H
#define HD_ENGINE_RNDV_H

#include "engine/rq/rq.h"
#include "engine/xfer/transfer.h"

struct hd_rndv {
	struct hd_transfer t;	/* first. Its segments are the receive's */
	struct hd_recv *recv;	/* in no queue */
	struct hd_received msg; /* what is told of the message */
};

static inline struct hd_rndv *hd_rndv_of(struct hd_transfer *t)
{
	return hd_container(t, struct hd_rndv, t);
}

/*
 * hd_rndv_take: the receive r, in no queue and consumed, has met the request m of this peer (its
 * tag, len, imm, src, op and flags count; peer NULL: the sender is gone). The result is for
 * hd_intake_begin. NULL: there is no memory, or no sender: r has completed in error, and is freed.
 */
struct hd_rndv *hd_rndv_take(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r,
			     const struct hd_msg *m, const struct hd_transfer_owner *owner);

/*
 * For its owner, in done and dropped: hd_rndv_describe: what its completion with this status
 * tells. hd_rndv_free: with the receive, which has completed. hd_rndv_drop: with the receive,
 * which completes no more.
 */
void hd_rndv_describe(struct hd_rndv *v, enum hd_status status, struct hd_taken *t, struct hd_received *m);
void hd_rndv_free(struct hd_rndv *v);
void hd_rndv_drop(struct hd_rndv *v);

#endif
