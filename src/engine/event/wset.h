/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Wait sets between wset.c, who sleeps on a set and is woken; wset_members.c, what it consists of;
 * and waiters.c, what tells it.
 */
#ifndef HD_EVENT_WSET_H
#define HD_EVENT_WSET_H

#include "base/lock.h"
#include "engine/event/waiters.h"

#include <unistd.h>

enum {				     /* why a group is armed */
	HD_WSET_BY_THREADS = 1 << 0, /* they sleep in hd_wset_wait */
	HD_WSET_BY_FD = 1 << 1,	     /* the program polls the descriptor */
};

/* The members that a set has of one node. */
struct hd_wgroup {
	struct hd_wset *set;
	struct hd_node *node;
	LIST_ENTRY(hd_wgroup) entry;
	LIST_HEAD(, hd_waiters) members; /* under the node's lock */
	int reasons;			 /* likewise */
};

/* An event queue, which belongs to no node either. */
struct hd_wevq {
	LIST_ENTRY(hd_wevq) entry;
	struct hd_evq *evq;
	int reasons;
};

struct hd_wset {
	struct hd_lock lock; /* all but what is atomic */
	LIST_HEAD(, hd_wgroup) groups;
	LIST_HEAD(, hd_wevq) evqs;
	int epoll_fd;
	int wake_fd;
	pid_t owner;
	int sleepers;
	uint64_t since;		  /* as in struct hd_waiters */
	bool fd_armed;		  /* a program has been told that it may poll epoll_fd */
	_Atomic bool woken;	  /* wake_fd has been written since it was drained last */
	_Atomic uint32_t signals; /* as in struct hd_waiters */
	uint32_t signals_taken;
	struct hd_busy_poll busy_poll;
	int waiting; /* threads in hd_wset_wait, also those that look */
};

/* hd_wset_is_ours: in a forked child the descriptors are the parent's too. */
static inline bool hd_wset_is_ours(const struct hd_wset *set)
{
	return set->owner == getpid();
}

/*
 * hd_wset_watch: epoll_ctl(2) of the set's epoll set, for what can be read. 0 or a negative errno.
 */
int hd_wset_watch(struct hd_wset *set, int op, int fd);
/* hd_wset_wake: whoever sleeps on the set looks again. With or without its lock. */
void hd_wset_wake(struct hd_wset *set);

/*
 * hd_wset_wait_aside: as hd_wset_wait, without an end, of a thread that goes before the set does,
 * and so keeps nobody from closing it.
 */
int hd_wset_wait_aside(struct hd_wset *set);

/*
 * hd_wgroup_ready: is there anything at a member? hd_wgroup_disarm: it is armed for this reason no
 * longer. With the node's lock.
 */
bool hd_wgroup_ready(struct hd_wgroup *g);
void hd_wgroup_disarm(struct hd_wgroup *g, int reason);
/*
 * hd_wset_arm_all: from now on whatever comes for a member makes the set's epoll set readable.
 * True: something is there already.
 * hd_wset_disarm_all: no longer, for this reason. With the set's lock.
 */
bool hd_wset_arm_all(struct hd_wset *set, int reason);
void hd_wset_disarm_all(struct hd_wset *set, int reason);

#endif
