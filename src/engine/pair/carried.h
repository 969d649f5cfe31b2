/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A request that is carried on to the node of the queue that it names: between relay.c, which sends it on its way, and carried.c. */
#ifndef HD_ENGINE_CARRIED_H
#define HD_ENGINE_CARRIED_H

#include "engine/memory/rma.h"
#include "engine/pair/pair.h"

enum hd_carried_step {
	HD_CARRIED_FETCH, /* its data comes in: op */
	HD_CARRIED_READY, /* it can leave by `via` */
	HD_CARRIED_OUT,	  /* it has */
	HD_CARRIED_OVER,  /* err says how */
	HD_CARRIED_BACK,  /* what it has read is being sent: op */
	HD_CARRIED_LOST,  /* nobody waits for an answer */
};

struct hd_carried {
	struct hd_work work;
	struct hd_pair *p;    /* whose it is; NULL: that knows it no longer */
	struct hd_pair *via;  /* NULL: gone */
	struct hd_peer *peer; /* who has sent it; NULL: gone */
	struct hd_op *op;
	enum hd_carried_step step;
	int err;
	struct hd_pkt pkt;
	uint16_t life; /* generation of who has sent it, when it did */
	uint32_t units;
	uint64_t len;
	unsigned char *data;
	struct hd_rma head; /* WRITE, READ */
	struct hd_rma_seg seg[HD_RMA_SEGS];
};

/*
 * hd_carried_take: take the request in, with p, peer and pkt set. 0, or a positive errno, which is the answer. Where data still has to be
 * fetched, hd_carried_over follows: with HD_CARRIED_READY, or HD_CARRIED_LOST.
 */
int hd_carried_take(struct hd_carried *c, const struct hd_arrival *r);
/* hd_carried_out: ask the same of the other end of `via`; c->work is told of the end, perhaps before this returns. As hd_send answers. */
int hd_carried_out(struct hd_carried *c, struct hd_ep *via);
/* hd_carried_send_back: what has been read goes to who asked for it, in frames. 0 or ENOMEM. */
int hd_carried_send_back(struct hd_carried *c);
/* hd_carried_over: a leg has ended: it is at this step now, and its pair goes on with it; or it is freed, if that does not know it any more. */
void hd_carried_over(struct hd_carried *c, enum hd_carried_step step, int err);
/* hd_carried_free: the credit that it has held goes back. */
void hd_carried_free(struct hd_carried *c);

#endif
