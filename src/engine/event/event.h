/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Completions, counters, event queues, channels, wait sets, triggers: what a program learns, and
 * how it sleeps until there is something. The rooms above write completions and count; fronts read,
 * wait and set triggers by engine/api/completion.h.
 *
 * With the node's lock, and nothing blocks, but for what waits (waiters.h) and event queues, which
 * have a lock of their own, the innermost. Upcalls: hd_overflow.read, a completion that waited
 * beside its ring has been read, or goes with its queue; it may give credit back, not touch the
 * queue. What a front has given (hd_cq.tells, hd_cq.on_overrun, hd_evq.tell) is called with the
 * lock and calls nothing of the engine.
 */
#ifndef HD_ENGINE_EVENT_H
#define HD_ENGINE_EVENT_H

#include "engine/core/core.h"
#include "engine/event/evq.h"
#include "engine/event/state.h"
#include "engine/event/waiters.h"
#include "engine/event/wset.h"

struct hd_overflow {
	STAILQ_ENTRY(hd_overflow) entry;
	/* somebody waits until it has been read, or its CQ is closed; may be NULL */
	void (*read)(struct hd_overflow *o);
	union {
		struct hd_peer *peer;	/* owed.c: whose credit it holds, */
		struct hd_share *share; /* or, when that is gone, in which it is counted */
	};
	uint32_t units;
	LIST_ENTRY(hd_overflow) owing; /* peer->owing, or share->owed */
	struct hd_cqe cqe;
};

/* hd_overflow_set_read: who waits for it from now on; NULL: nobody. */
static inline void hd_overflow_set_read(struct hd_overflow *o, void (*read)(struct hd_overflow *o))
{
	o->read = read;
}

struct hd_channel {
	struct hd_lock lock;
	struct hd_node *node;
	TAILQ_HEAD(, hd_channel_item) items; /* each once, however often it waits */
	int fd;
	struct hd_busy_poll busy_poll; /* under the node's lock, as what follows */
	/*
	 * the program does not sleep in hd_channel_wait, as far as we know: it polls the descriptor
	 */
	bool watched;
	struct hd_asleep asleep; /* threads in hd_channel_wait */
};

struct hd_cq {
	struct hd_cq_ring r; /* first: engine.h reads it inline */
	struct hd_node *node;
	int users;
	bool none;     /* hd_events.no_cq: swallows everything */
	bool overruns; /* hd_cq_attr */
	bool forgets;  /* likewise */
	bool overrun;  /* it has been */
	void (*on_overrun)(void *arg);
	void *arg;
	bool (*tells)(void *arg, const struct hd_cqe *e);
	uint32_t mark; /* hd_cq_wait_told: where the ring ended */
	/* the same: somebody is to be told as soon as there are enough, quiet ones among them */
	bool too_few;
	struct hd_channel *channel; /* hd_cq_notify */
	struct hd_channel_item *item;
	enum hd_cq_notice {
		HD_NOTICE_NONE,
		HD_NOTICE_SOLICITED,
		HD_NOTICE_ANY
	} notice;			      /* which completions it is to be told of */
	uint32_t gather, gathered, gather_us; /* hd_cq_moderate; how many since the last event */
	uint32_t told;			      /* where the ring ended then */
	struct hd_timer gather_timer;
	struct hd_waiters w;
	STAILQ_HEAD(, hd_overflow) overflow;
};

struct hd_cntr {
	/* relaxed: a program that reads it without the lock orders nothing by it */
	_Atomic uint64_t value;
	_Atomic uint64_t errors;
	bool armed;
	bool is_due;	   /* in hd_events.due */
	bool counts_bytes; /* of what has completed, and not how much that was */
	struct hd_node *node;
	int users;
	struct hd_waiters w;
	/* the program's share of both values, which is nothing that has happened */
	uint64_t own, own_errors;
	/* what the last thread to sleep waits for, while w.sleepers: for who looks from outside */
	uint64_t wanted;
	/* values that the program knows; hd_cntr_arm */
	uint64_t seen, seen_errors;
	/* [with_errors]; by threshold, then by age */
	TAILQ_HEAD(hd_triggers, hd_trigger) triggers[2];
	TAILQ_ENTRY(hd_cntr) due_entry;
};

/* hd_cntr_used: it has so many users more, or fewer. */
static inline void hd_cntr_used(struct hd_cntr *cntr, int by)
{
	cntr->users += by;
}

/*
 * hd_cq_forked: the node is dead in this child: nothing is written to the ring any more, as if it
 * were full. Async-signal-safe.
 */
static inline void hd_cq_forked(struct hd_cq *cq)
{
	cq->r.overflowed = true;
}

/*
 * hd_events_init: of a new node. hd_events_open: what stands for the queue of those who have none:
 * 0 or a negative errno; hd_events_close: it is there no longer. hd_events_answered: by how many
 * there are more connections, or fewer, that wait for their callers.
 */
void hd_events_init(struct hd_node *node);
int hd_events_open(struct hd_node *node);
void hd_events_close(struct hd_node *node);
static inline void hd_events_answered(struct hd_node *node, int by)
{
	hd_events(node)->answered += by;
}

/* evq_nodes.c */
int hd_evq_attach(struct hd_evq *evq, struct hd_node *node);
void hd_evq_detach(struct hd_evq *evq, struct hd_node *node);
/* evq.c */
bool hd_evq_drop(struct hd_evq *evq, struct hd_evq_entry **unread);

/* cq.c */
struct hd_overflow *hd_cq_overflow(struct hd_cq *cq, const struct hd_cqe *e);

void hd_wake(struct hd_waiters *w);
static inline bool hd_cq_full(const struct hd_cq *cq)
{
	return cq->r.overflowed && !cq->overrun;
}

/*
 * hd_cq_slot: where to write the next completion, or NULL when it must go through hd_cq_post.
 * hd_cq_push publishes it, which is e.
 */
static inline struct hd_cqe *hd_cq_slot(struct hd_cq *cq)
{
	struct hd_cq_ring *r = &cq->r;

	if (hd_unlikely(r->overflowed || r->tail - r->head > r->mask))
		return NULL;
	return &r->ring[r->tail & r->mask];
}
void hd_cq_pushed(struct hd_cq *cq);
static inline hd_traced void hd_cq_push(struct hd_cq *cq, const struct hd_cqe *e)
{
	HD_TRACE_COMPLETE(cq, e);
	cq->r.tail++;
	if (hd_unlikely(cq->r.armed))
		hd_cq_pushed(cq);
}

/* hd_cq_check (check.c): asserts in builds with assertions that ring, list and notice agree. */
#ifdef NDEBUG
static inline void hd_cq_check(const struct hd_cq *cq)
{
}
#else
void hd_cq_check(const struct hd_cq *cq);
#endif

/*
 * channel.c: the program has asked for notice through this channel, and may go to sleep on the
 * descriptor. With the lock.
 */
void hd_channel_armed(struct hd_channel *channel);

/*
 * For notifiers. Who has set the `stop` of hd_channel_wait wakes the waiter by hd_channel_nudge,
 * which makes the descriptor readable until hd_channel_nudge_back.
 */
void hd_channel_nudge(struct hd_channel *channel);
void hd_channel_nudge_back(struct hd_channel *channel);

/* cntr.c */
static inline void hd_cntr_count(struct hd_cntr *c, uint64_t bytes)
{
	if (hd_unlikely(c != NULL)) /* a call, so that what has none keeps its registers */
		hd_cntr_completed(c, bytes);
}
void hd_cntr_count_error(struct hd_cntr *c);

/* trigger.c */
void hd_triggers_look(struct hd_cntr *c);
int hd_triggers_run(struct hd_node *node);
void hd_triggers_forked(struct hd_node *node); /* in a child nothing is due */

#endif
