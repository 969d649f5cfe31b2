/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A request that is carried on to the node of the queue that it names: between qp/xrc/proxy.c,
 * which sends it on its way, and qp/xrc/proxied.c.
 */
#ifndef HD_ENGINE_PROXIED_H
#define HD_ENGINE_PROXIED_H

#include "engine/qp/qp.h"
#include "engine/rma/rma.h"

enum hd_proxied_step {
	HD_PROXIED_FETCH, /* its data comes in: t */
	HD_PROXIED_READY, /* it can leave by `via` */
	HD_PROXIED_OUT,	  /* it has */
	HD_PROXIED_OVER,  /* status says how */
	HD_PROXIED_BACK,  /* what it has read is being sent: t */
	HD_PROXIED_LOST,  /* nobody waits for an answer */
};

struct hd_proxied {
	struct hd_work work;
	struct hd_qp *p;      /* whose it is; NULL: that knows it no longer */
	struct hd_qp *via;    /* NULL: gone */
	struct hd_peer *peer; /* who has sent it; NULL: gone: hd_proxied_from */
	struct hd_held held;  /* peer->held_back, while peer */
	struct hd_transfer t; /* of its data, from or to who has sent it, while it moves */
	struct iovec iov;
	bool moves;
	enum hd_proxied_step step;
	enum hd_status status;
	struct hd_pkt pkt;
	uint16_t gen; /* generation of who has sent it, when it did */
	uint32_t units;
	uint64_t len;
	unsigned char *data;
	struct hd_rma head; /* WRITE, READ */
	struct hd_rma_seg seg[HD_RMA_SEGS];
};

/* hd_proxied_from: whom it is answered; NULL: nobody any more. It may be so already. */
void hd_proxied_from(struct hd_proxied *c, struct hd_peer *peer);

/*
 * hd_proxied_take: take the request in, with p, peer and pkt set. HD_S_OK, or a status, which is
 * the answer. Where data still has to be fetched, hd_proxied_over follows: with
 * HD_PROXIED_READY, or HD_PROXIED_LOST.
 */
enum hd_status hd_proxied_take(struct hd_proxied *c, const struct hd_arrival *r);
/*
 * hd_proxied_out: ask the same of the other end of `via`; c->work is told of the end, perhaps
 * before this returns. As hd_send answers.
 */
int hd_proxied_out(struct hd_proxied *c, struct hd_ep *via);
/*
 * hd_proxied_send_back: what has been read goes to who asked for it, in
 * frames. 0 or HD_S_NO_MEMORY.
 */
enum hd_status hd_proxied_send_back(struct hd_proxied *c);
/*
 * hd_proxied_over: a leg has ended: it is at this step now, and its pair goes on with it; or it is
 * freed, if that does not know it any more.
 */
void hd_proxied_over(struct hd_proxied *c, enum hd_proxied_step step, enum hd_status status);
/* hd_proxied_free: the credit that it has held goes back. */
void hd_proxied_free(struct hd_proxied *c);

#endif
