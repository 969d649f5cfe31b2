/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What runs a node: its lock, turns of progress, sleeping, its thread. */
#ifndef HD_ENGINE_CORE_H
#define HD_ENGINE_CORE_H

#include "engine/internal.h"

/* hd_publish: the phase of this name, now: before something is done that must come behind what has been accepted. */
void hd_publish_run(struct hd_node *node);
static inline void hd_publish(struct hd_node *node)
{
	if (hd_unlikely(!LIST_EMPTY(&node->publishing)))
		hd_publish_run(node);
}

/* hd_node_hurry: the next turn looks at descriptors and timers too. */
static inline void hd_node_hurry(struct hd_node *node)
{
	node->core.slow_due = 0;
}

/* progress.c: epoll, watches, timers, sleeping */
int hd_core_open(struct hd_node *node);
void hd_core_close(struct hd_node *node);
void hd_core_forked(struct hd_node *node); /* in a child: it is dead, and what was to be done is forgotten */
int hd_turn(struct hd_node *node);
void hd_node_say(struct hd_node *node);
void hd_timer_fd_set(struct hd_node *node);
int hd_sleep_arm(struct hd_node *node);
void hd_sleep_disarm(struct hd_node *node);
int hd_timer_next_ms(struct hd_node *node);

/*
 * block.c. hd_is_interrupted: is there a handler that is not to restart calls? To be asked when poll(2) has said EINTR.
 * hd_poll_openly: poll(2), where the thread may be cancelled: 0, or -EINTR: a handler ran that is not to restart calls. hd_sleep_on: the
 * same as *rc; on_cancel puts back what the wait has changed, if the thread is cancelled.
 * hd_block: sleep once, on these descriptors and on whatever concerns the node, whose lock is held before and after.
 */
struct pollfd;
struct hd_block {
	struct pollfd *fds; /* with room for one more than count */
	unsigned long count;
	int ms;		 /* at most; negative: no end */
	bool beside;	 /* another thread of the program makes progress there: that is left out */
	bool told;	 /* false at first: the node's thread knows of this wait */
	bool any_signal; /* interrupts, with -EINTR */
};
int hd_block(struct hd_node *node, struct hd_block *how);
bool hd_is_interrupted(void);
int hd_poll_openly(struct pollfd *p, unsigned long count, int ms);
void hd_sleep_on(struct pollfd *p, unsigned long count, int ms, void (*on_cancel)(void *arg), void *arg,
		 int *rc);

/* thread.c */
int hd_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);
int hd_auto_start(struct hd_node *node);
int hd_auto_serve(struct hd_node *node);
void hd_auto_stop(struct hd_node *node);
void hd_auto_leave(struct hd_node *node);
void hd_auto_init(struct hd_node *node);
void hd_auto_notify(struct hd_node *node);
void hd_auto_back(struct hd_node *node);
int hd_auto_poll(struct hd_node *node);

/* watchdog.c */
void hd_watchdog_begin(struct hd_node *node);
void hd_watchdog_polled(struct hd_node *node, int moved);
void hd_watchdog_serve(struct hd_node *node);
int hd_watchdog_turn(struct hd_node *node);

/* deferred.c */
int hd_deferred_run(struct hd_node *node);
void hd_crosswork_run(struct hd_node *node);

#endif
