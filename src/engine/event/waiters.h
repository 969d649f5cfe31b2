/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sleeping on an object of a node: a CQ or a counter; on several of them see wset.c. A sleeper
 * sleeps on the node's epoll set (so that it makes progress when something comes) and on an eventfd
 * of the object (so that it learns what another thread's progress did for it).
 */
#ifndef HD_ENGINE_WAITERS_H
#define HD_ENGINE_WAITERS_H

#include "base/busy_poll.h"
#include "engine/core/core.h"
#include "engine/event/state.h"

#include <stdatomic.h>

/*
 * What somebody may sleep on: a CQ or a counter. Threads that wait have an eventfd of their own,
 * beside the one that programs poll, so that neither takes the other's wake away.
 */
struct hd_waiters {
	struct hd_node *node;
	bool *armed; /* the flag that the writer of a completion looks at */
	/*
	 * eventfd for whoever polls epoll_fd, -1 until wanted; written under the
	 * lock, read by any thread
	 */
	_Atomic int wake_fd;
	int epoll_fd;	      /* the node's epoll set and wake_fd in one, -1 until wanted */
	bool fd_armed;	      /* somebody polls epoll_fd */
	bool woken;	      /* wake_fd has been written and not drained */
	_Atomic int block_fd; /* eventfd for threads, -1 until wanted; as wake_fd */
	int sleepers;	      /* threads that sleep or are about to */
	/* hd_ticks(): when the last of them began to wait, while there are any: for who looks in */
	uint64_t since;
	/* block_fd has been written; stays readable until the last of to_wake is awake */
	bool block_woken;
	/* something has happened since, which those do not know who lay down later */
	bool block_again;
	/* threads that slept when it was written and have not noticed yet */
	int to_wake;
	uint32_t wakes;		  /* how often it was written */
	_Atomic uint32_t signals; /* hd_cq_signal; any thread */
	uint32_t signals_taken;	  /* those that a waiter has returned for */
	bool kept;		  /* the flag stays set for another reason: triggers */
	bool interrupts;	  /* a signal handler that is not to restart calls ends the wait */
	bool any_signal;	  /* each signal handler does */
	struct hd_busy_poll busy_poll;
	/* of the wait set that it is in, or NULL; set before the object is used */
	struct hd_wgroup *group;
	/* with 1: is there something to read? constant */
	bool (*ready)(struct hd_waiters *w, uint64_t arg);
	LIST_ENTRY(hd_waiters) member;
};

typedef bool (*hd_ready_fn)(struct hd_waiters *w, uint64_t arg);

/*
 * hd_waiters_init: *armed is set while hd_wake must be called. ready is called with the node's lock
 * held. with_fd: make the descriptors now; else with the first sleep.
 */
int hd_waiters_init(struct hd_waiters *w, struct hd_node *node, bool *armed, hd_ready_fn ready, bool with_fd);
void hd_waiters_fini(struct hd_waiters *w);

/* hd_waiters_fd: the descriptor that programs poll, made where it is not there yet; -EMFILE. */
int hd_waiters_fd(struct hd_waiters *w);

/*
 * hd_fds_missing says that something cannot be slept on for want of descriptors, and returns rc, a
 * negative errno. Any thread.
 */
int hd_fds_missing(const char *what, int rc);

/* hd_waiters_wait: as hd_cq_wait. Takes the node's lock itself and calls ready with it held. */
int hd_waiters_wait(struct hd_waiters *w, hd_ready_fn ready, uint64_t arg, int timeout_ms);
void hd_waiters_signal(struct hd_waiters *w);

/* hd_waiters_arm_fd: as hd_cq_arm; hd_waiters_disarm_fd: the program is back and reads. */
int hd_waiters_arm_fd(struct hd_waiters *w);
void hd_waiters_disarm_fd(struct hd_waiters *w);

/*
 * hd_waiters_keep: *armed stays set for another reason than sleepers, or no longer.
 * hd_waiters_update: the reasons have changed.
 */
void hd_waiters_keep(struct hd_waiters *w, bool keep);
void hd_waiters_update(struct hd_waiters *w);

/*
 * hd_waiters_join, hd_waiters_leave: be slept on through a wait set (wset.c). Called
 * without the node's lock.
 */
int hd_waiters_join(struct hd_waiters *w, struct hd_wset *set);
void hd_waiters_leave(struct hd_waiters *w);

#endif
