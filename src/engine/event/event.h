/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Completions, counters, channels and event queues between the engine's files. */
#ifndef HD_ENGINE_EVENT_H
#define HD_ENGINE_EVENT_H

#include "engine/internal.h"

/* evq_nodes.c */
int hd_evq_attach(struct hd_evq *evq, struct hd_node *node);
void hd_evq_detach(struct hd_evq *evq, struct hd_node *node);
/* evq.c */
bool hd_evq_drop(struct hd_evq *evq, const struct hd_request *request);

/* cq.c */
struct hd_overflow *hd_cq_overflow(struct hd_cq *cq, const struct hd_cqe *e);

void hd_wake(struct hd_waiters *w);
static inline bool hd_cq_full(const struct hd_cq *cq)
{
	return cq->r.overflowed && !cq->overrun;
}

/* hd_cq_slot: where to write the next completion, or NULL when it must go through hd_cq_post. hd_cq_push publishes it. */
static inline struct hd_cqe *hd_cq_slot(struct hd_cq *cq)
{
	struct hd_cq_ring *r = &cq->r;

	if (hd_unlikely(r->overflowed || r->tail - r->head > r->mask))
		return NULL;
	return &r->ring[r->tail & r->mask];
}
void hd_cq_pushed(struct hd_cq *cq);
static inline void hd_cq_push(struct hd_cq *cq)
{
	cq->r.tail++;
	if (hd_unlikely(cq->r.armed))
		hd_cq_pushed(cq);
}

/* channel.c: the program has asked for notice through this channel, and may go to sleep on the descriptor. With the lock. */
void hd_channel_armed(struct hd_channel *channel);

/*
 * For heralds. hd_channel_wait_unless: hd_channel_wait, but -ECANCELED when *stop is set; who sets it wakes the waiter by hd_channel_nudge,
 * which makes the descriptor readable until hd_channel_nudge_back. Without the lock.
 */
int hd_channel_wait_unless(struct hd_channel *channel, const atomic_bool *stop);
void hd_channel_nudge(struct hd_channel *channel);
void hd_channel_nudge_back(struct hd_channel *channel);

/* cntr.c */
void hd_cntr_changed(struct hd_cntr *c);
static inline void hd_cntr_count(struct hd_cntr *c)
{
	if (!c)
		return;
	atomic_store_explicit(&c->value, atomic_load_explicit(&c->value, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (hd_unlikely(c->armed))
		hd_cntr_changed(c);
}
void hd_cntr_count_error(struct hd_cntr *c);

/* trigger.c */
void hd_triggers_look(struct hd_cntr *c);
int hd_triggers_run(struct hd_node *node);
void hd_triggers_forked(struct hd_node *node); /* in a child nothing is due */

#endif
