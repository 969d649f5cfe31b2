/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Event queues. One belongs to no node, as a program may read events of many nodes from
 * it: it has a lock of its own, under which no other is taken, so that an event can be
 * posted wherever it happens.
 *
 *	evq ── events, oldest first
 *	    └─ hooks: the nodes that have objects bound to it. Reading makes progress there;
 *	       sleeping arms them
 *
 * A hook comes and goes under its node's lock and the evq's; whoever walks along them
 * holds neither while he goes from one node to the next, but has the node pinned: a node
 * is not freed while it is.
 */
#ifndef HD_ENGINE_EVENT_EVQ_H
#define HD_ENGINE_EVENT_EVQ_H

#include "base/lock.h"
#include "engine/core/core.h"

struct hd_evq_entry; /* evq.c */

/* A node with objects that are bound to this evq. */
struct hd_evq_hook {
	TAILQ_ENTRY(hd_evq_hook) entry;
	struct hd_node *node;
	int users;  /* objects */
	bool armed; /* under the node's lock: this evq is a reason for the node to be woken */
};

struct hd_evq {
	struct hd_lock lock;
	LIST_ENTRY(hd_evq) all; /* of the process: for fork */
	TAILQ_HEAD(, hd_evq_entry) events;
	size_t count, size;
	bool overrun; /* an event was lost: stays so; never where `served` */
	/* the error entry that was read last, whose data the program may look at */
	struct hd_evq_entry *given;
	TAILQ_HEAD(, hd_evq_hook) hooks;
	uint32_t changes; /* of hooks */
	int users;	  /* objects bound, here and in fronts */
	int sleepers;	  /* threads that sleep or are about to */
	uint64_t since;	  /* as in struct hd_waiters */
	bool fd_armed;	  /* a program polls epoll_fd */
	bool served;	  /* a program polls wake_fd: nodes make progress by themselves */
	void (*tell)(void *arg, const struct hd_event *event); /* who gets them instead; constant */
	void *arg;
	int wake_fd;  /* eventfd: readable while there is something to read */
	int epoll_fd; /* wake_fd and the nodes' epoll sets in one */
};

/*
 * hd_evq_post_of: an event of a connection with this node. A request of it stands behind its
 * earlier connections: those that it may know to be up are told of first, though that news comes
 * another way, and may be there later.
 */
int hd_evq_post_of(struct hd_evq *evq, const struct hd_event *event, const struct hd_node_id *node);

/*
 * evq_nodes.c. hd_evq_turn makes a turn of progress in every node. hd_evq_look_answered
 * looks at all that has come where a caller is waited for. hd_evq_arm_fd: a program
 * polls epoll_fd, or no longer.
 */
void hd_evq_turn(struct hd_evq *evq);
void hd_evq_look_answered(struct hd_evq *evq);
void hd_evq_arm_fd(struct hd_evq *evq, bool armed);
/*
 * hd_evq_watched: a wait set sleeps on hd_evq_fd (on), or no longer does. True: there is something
 * to be done or read first.
 */
bool hd_evq_watched(struct hd_evq *evq, bool on);

/*
 * hd_evq_check (evq.c): asserts in builds with assertions that its events and its users are
 * counted. It takes the evq's lock.
 */
#ifdef NDEBUG
static inline void hd_evq_check(struct hd_evq *evq)
{
}
#else
void hd_evq_check(struct hd_evq *evq);
#endif

#endif
