/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receive queues between the engine's rooms: who waits for a receive, how what is posted or waits leaves otherwise than by meeting, and what
 * receives use of regions. Single receives are in recv.h. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_QUEUE_H
#define HD_ENGINE_QUEUE_H

#include "engine/internal.h"

/*
 * Whoever cannot go on until a receive is posted. An upcall: posted is called after that with the node's lock, for one after the other, by age,
 * as long as there is a receive and the one before has left the list, or has taken its place at the end. It may take receives, wait again, fail or
 * close what waits, but not the queue.
 *
 * hd_rq_wait: it is the last of this queue's. hd_rq_unwait: it waits no longer; nothing where it does not. hd_rq_posted: a receive has been posted.
 */
struct hd_rq_waiter {
	TAILQ_ENTRY(hd_rq_waiter) entry; /* rq->waiters */
	struct hd_rq *rq;		 /* NULL: it does not wait */
	void (*posted)(struct hd_rq_waiter *w);
};
void hd_rq_wait(struct hd_rq *rq, struct hd_rq_waiter *w);
void hd_rq_unwait(struct hd_rq_waiter *w);
void hd_rq_posted(struct hd_rq *rq);

/*
 * Who hands messages of this queue over instead of having them received. Upcalls: freed, a message with a handle is about to be freed; closed,
 * the queue closes, and has no endpoint any more.
 */
struct hd_rq_keeper {
	void (*freed)(struct hd_msg *m);
	void (*closed)(struct hd_rq *rq);
};

/* What becomes of receives that are posted to an endpoint: hd_ep.rx_end. */
enum hd_rx_end {
	HD_RX_OPEN,
	HD_RX_REFUSED, /* its connection is over: -ENOTCONN */
	HD_RX_FLUSHED, /* its queue pair has failed: ECANCELED, in a queue of its own */
};

/*
 * hd_rq_drop_posted: forget what the endpoint (NULL: whoever) has posted, without completions. hd_rq_drop_waiting: the endpoint closes: forget what
 * waits for it.
 * hd_rq_flush: the endpoint is connected no longer: the receives in a queue of its own complete in error, a positive errno, and what was only
 * promised to it is forgotten.
 */
void hd_rq_drop_posted(struct hd_rq *rq, struct hd_ep *ep);
void hd_rq_drop_waiting(struct hd_rq *rq, struct hd_ep *ep);
void hd_rq_flush(struct hd_ep *ep, int err);
/* link's observers, see link/observers.h */
void hd_rqs_ended(struct hd_peer *peer, int err);
void hd_rqs_rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id);
void hd_rq_forget(struct hd_node *node, uint32_t id);

/* Of hd_msg.flags and hd_received.flags, never of a packet: */
#define HD_MSG_WRITTEN (1u << 4) /* it stands for a write */
#define HD_MSG_CAST (1u << 5)	 /* it was sent to a group */

/*
 * waiting.c, of single messages that are in no queue. hd_msg_free: its credit goes back, to its peer, or if that is gone, to whoever comes next.
 * hd_msg_answer: to its sender, if that is still there. hd_msg_discard: it is not wanted; its sender is told, where it waits for an answer.
 */
#define HD_EARLY_MORE 768u /* what a datagram takes in a socket beside its bytes: hd_rq.early */
void hd_msg_free(struct hd_msg *m);
void hd_msg_answer(struct hd_msg *m, uint8_t kind, int err);
void hd_msg_discard(struct hd_msg *m, int err);
void hd_rq_drop_requests(struct hd_ep *ep); /* for hd_rq_flush: what was only promised to it */

/*
 * regions.c. hd_rq_note_regions: this receive, with regions, has been posted to the queue. hd_rq_leave_region: `from` goes, and `to`, or nothing
 * (NULL), takes its place: receives that have segments there move, or complete with the region's fault when a message takes them.
 */
void hd_rq_note_regions(struct hd_rq *rq, struct hd_recv *r);
void hd_rq_leave_region(struct hd_mr *from, struct hd_mr *to);
void hd_rq_regions_close(struct hd_rq *rq); /* rq.c's */

/* limit.c: look at all that are armed; returns how many were told of. */
int hd_limits_look(struct hd_node *node);
int hd_marks_look(struct hd_node *node); /* mark.c: the same */

#endif
