/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Between the two files about what arrives for a queue pair: responder.c finds out whether it
 * can be carried out and does so, respq.c keeps what cannot be yet, and asks again. With the
 * node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_RESPQ_H
#define HD_ENGINE_RESPQ_H

#include "engine/qp/qp.h"

/*
 * What a request waits for; from HD_WAIT_PROXY on it waits for nothing:
 * responder.c has dealt with it.
 */
enum hd_wait {
	HD_WAIT_NOT, /* it can be carried out */
	HD_WAIT_READY,
	HD_WAIT_RECEIVE,
	HD_WAIT_BUSY,
	HD_WAIT_WINDOW,
	HD_WAIT_PROXY, /* it is carried on to the node whose queue it names */
	HD_WAIT_NEVER, /* it is refused */
	/* so it is, and its receive fails: it would take back what is no window of its sender's */
	HD_WAIT_FAULT,
	HD_WAIT_WRONG, /* it is refused, and an offence */
	HD_WAIT_DROP,  /* it is dropped */
};

/*
 * hd_respq_put: keep the request, all of which is copied, behind those that are held. 0;
 * -ENOMEM: the link is down.
 */
int hd_respq_put(struct hd_qp *p, const struct hd_arrival *a);

/*
 * Of the first that is held. hd_resp_again: what it waits for by now; from HD_WAIT_PROXY on it has
 * been answered, and its credit is given back. hd_resp_now: carry out one that waits for nothing:
 * its credit is the engine's usual way's from here on. hd_resp_is_rnr: would it wait for a receive?
 * Changes nothing.
 */
enum hd_wait hd_resp_again(struct hd_qp *p, const struct hd_arrival *a);
void hd_resp_now(struct hd_qp *p, const struct hd_arrival *a);
bool hd_resp_is_rnr(struct hd_qp *p, const struct hd_arrival *a);

/* hd_respq_count: how many requests are in the queue. */
uint32_t hd_respq_count(const struct hd_qp *p);

#endif
