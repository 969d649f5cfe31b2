/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Wait sets: CQs and counters of any nodes, and descriptors, that are slept on together. A set belongs to no node. It has one epoll
 * set, with the epoll set of each node that it has members of, and one eventfd, which members write whose waiters are in the set.
 *
 * Order of locks: the set's, then one node's at a time. A member that wakes the set (hd_wset_ring) holds its node's lock, and takes
 * none here.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "engine/event/waiters.h"
#include "engine/memory/mr.h"
#include "engine/node/node.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HOLD_TURNS 16 /* turns of a waiter that makes progress, after which others may have the lock */

enum {			     /* why a group is armed */
	BY_THREADS = 1 << 0, /* they sleep in hd_wset_wait */
	BY_FD = 1 << 1,	     /* the program polls the descriptor */
};

/* The members that a set has of one node. */
struct hd_wgroup {
	struct hd_wset *set;
	struct hd_node *node;
	LIST_ENTRY(hd_wgroup) entry;
	LIST_HEAD(, hd_waiters) members; /* under the node's lock */
	int reasons;			 /* likewise */
};

/* Something that belongs to no node either: an event queue, or any other descriptor. */
struct wfd {
	LIST_ENTRY(wfd) entry;
	int fd;
	struct hd_evq *evq; /* whose descriptor it is, or NULL */
	int reasons;
};

struct hd_wset {
	struct hd_lock lock; /* all but what is atomic */
	LIST_HEAD(, hd_wgroup) groups;
	LIST_HEAD(, wfd) fds;
	int epoll_fd;
	int wake_fd;
	pid_t owner;
	int sleepers;
	bool fd_armed;		  /* a program has been told that it may poll epoll_fd */
	_Atomic bool woken;	  /* wake_fd has been written since it was drained last */
	_Atomic uint32_t signals; /* as in struct hd_waiters */
	uint32_t signals_taken;
};

/* In a forked child the descriptors are the parent's too. */
static bool is_ours(const struct hd_wset *set)
{
	return set->owner == getpid();
}

/* ---- the object ---------------------------------------------------------------------------------------- */

static int watch(struct hd_wset *set, int op, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(set->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
}

static void close_fds(struct hd_wset *set)
{
	if (set->epoll_fd >= 0)
		close(set->epoll_fd);
	if (set->wake_fd >= 0)
		close(set->wake_fd);
}

int hd_wset_open(struct hd_wset **out)
{
	struct hd_wset *set = calloc(1, sizeof(*set));
	int rc = 0;

	if (!set)
		return -ENOMEM;
	set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	set->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (set->epoll_fd < 0 || set->wake_fd < 0)
		rc = -errno;
	else
		rc = watch(set, EPOLL_CTL_ADD, set->wake_fd);
	if (rc) {
		close_fds(set);
		free(set);
		return rc;
	}
	hd_lock_init(&set->lock, HD_LOCK_OUTER);
	set->owner = getpid();
	*out = set;
	return 0;
}

bool hd_wset_used(struct hd_wset *set)
{
	bool used;

	hd_lock_take(&set->lock);
	used = !LIST_EMPTY(&set->groups) || !LIST_EMPTY(&set->fds);
	hd_lock_give(&set->lock);
	return used;
}

static bool is_slept_on(struct hd_wset *set)
{
	bool slept_on;

	hd_lock_take(&set->lock);
	slept_on = set->sleepers > 0;
	hd_lock_give(&set->lock);
	return slept_on;
}

int hd_wset_close(struct hd_wset *set)
{
	if (hd_wset_used(set) || (is_ours(set) && is_slept_on(set)))
		return -EBUSY;
	hd_lock_fini(&set->lock);
	close_fds(set);
	free(set);
	return 0;
}

int hd_wset_fd(const struct hd_wset *set)
{
	return set->epoll_fd;
}

/* ---- waking -------------------------------------------------------------------------------------------- */

/*
 * Draining comes before `woken` is cleared, and looking at the members after that, each under its node's lock, which whoever rings
 * for it holds. So one that finds `woken` set still has told us what we are about to see.
 */
static void drain(struct hd_wset *set)
{
	eventfd_t n;

	(void)eventfd_read(set->wake_fd, &n);
	atomic_store(&set->woken, false);
}

static void ring(struct hd_wset *set)
{
	if (!atomic_exchange(&set->woken, true))
		(void)eventfd_write(set->wake_fd, 1);
}

void hd_wset_ring(struct hd_wgroup *group)
{
	if (group->reasons)
		ring(group->set);
}

bool hd_wset_listens(const struct hd_wgroup *group)
{
	return group->reasons;
}

void hd_wset_signal_group(struct hd_wgroup *group)
{
	hd_wset_signal(group->set);
}

void hd_wset_signal(struct hd_wset *set)
{
	if (!is_ours(set))
		return;
	atomic_fetch_add(&set->signals, 1);
	ring(set);
}

/* ---- arming -------------------------------------------------------------------------------------------- */

static void update_members(struct hd_wgroup *g)
{
	struct hd_waiters *w;

	LIST_FOREACH(w, &g->members, member)
		hd_waiters_update(w);
}

static bool anything_ready(struct hd_wgroup *g)
{
	struct hd_waiters *w;

	LIST_FOREACH(w, &g->members, member)
		if (w->ready(w))
			return true;
	return false;
}

/* From now on whatever comes for the group makes the set's epoll set readable. True: something is there already. */
static bool arm(struct hd_wgroup *g, int reason)
{
	bool again = g->reasons & reason;
	bool there;

	g->reasons |= reason;
	update_members(g);
	there = hd_sleep_arm(g->node) > 0;
	if (again)
		hd_sleep_disarm(g->node);
	hd_timer_fd_set(g->node);
	return there || anything_ready(g);
}

static void disarm(struct hd_wgroup *g, int reason)
{
	if (!(g->reasons & reason) || g->node->dead)
		return;
	g->reasons &= ~reason;
	update_members(g);
	g->node->slow_due = 0;
	hd_sleep_disarm(g->node);
}

void hd_wset_disarm_fd(struct hd_wgroup *group)
{
	disarm(group, BY_FD);
}

/* An event queue arms its nodes by itself; when that has been done, once more to look. */
static bool evq_arm(struct wfd *f, int reason)
{
	bool again = f->reasons & reason;
	bool there = hd_evq_watched(f->evq, true);

	if (again)
		hd_evq_watched(f->evq, false);
	f->reasons |= reason;
	return there;
}

static void evq_disarm(struct wfd *f, int reason)
{
	if (f->reasons & reason)
		hd_evq_watched(f->evq, false);
	f->reasons &= ~reason;
}

static bool arm_all(struct hd_wset *set, int reason)
{
	struct hd_wgroup *g;
	struct wfd *f;
	bool there = false;

	LIST_FOREACH(f, &set->fds, entry)
		if (f->evq)
			there |= evq_arm(f, reason);
	LIST_FOREACH(g, &set->groups, entry) {
		hd_node_lock(g->node);
		there |= arm(g, reason);
		hd_node_unlock(g->node);
	}
	return there;
}

static void disarm_all(struct hd_wset *set, int reason)
{
	struct hd_wgroup *g;
	struct wfd *f;

	LIST_FOREACH(f, &set->fds, entry)
		if (f->evq)
			evq_disarm(f, reason);
	LIST_FOREACH(g, &set->groups, entry) {
		hd_node_lock(g->node);
		disarm(g, reason);
		hd_node_unlock(g->node);
	}
}

/* ---- members ------------------------------------------------------------------------------------------- */

static struct hd_wgroup *group_of(struct hd_wset *set, struct hd_node *node)
{
	struct hd_wgroup *g;

	LIST_FOREACH(g, &set->groups, entry)
		if (g->node == node)
			return g;
	return NULL;
}

static int group_make(struct hd_wset *set, struct hd_node *node, struct hd_wgroup **out)
{
	struct hd_wgroup *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return -ENOMEM;
	rc = watch(set, EPOLL_CTL_ADD, node->epoll_fd);
	if (rc) {
		free(g);
		return rc;
	}
	g->set = set;
	g->node = node;
	LIST_INSERT_HEAD(&set->groups, g, entry);
	*out = g;
	return 0;
}

/* hd_waiters_join: without the node's lock. Threads that sleep on the set lie down anew, on the new member as well. */
int hd_waiters_join(struct hd_waiters *w, struct hd_wset *set, bool (*ready)(struct hd_waiters *w))
{
	struct hd_wgroup *g;
	int rc = 0;

	if (!is_ours(set) || w->node->dead)
		return -ENOTRECOVERABLE;
	hd_lock_take(&set->lock);
	g = group_of(set, w->node);
	if (!g)
		rc = group_make(set, w->node, &g);
	if (!rc) {
		hd_node_lock(w->node);
		w->ready = ready;
		w->group = g;
		LIST_INSERT_HEAD(&g->members, w, member);
		hd_waiters_update(w);
		hd_node_unlock(w->node);
		if (set->sleepers)
			ring(set);
	}
	hd_lock_give(&set->lock);
	return rc;
}

static void group_free(struct hd_wgroup *g)
{
	struct hd_node *node = g->node;

	hd_node_lock(node);
	disarm(g, BY_THREADS);
	disarm(g, BY_FD);
	hd_node_unlock(node);
	if (is_ours(g->set))
		watch(g->set, EPOLL_CTL_DEL, node->epoll_fd);
	LIST_REMOVE(g, entry);
	free(g);
}

/* hd_waiters_leave: without the node's lock. */
void hd_waiters_leave(struct hd_waiters *w)
{
	struct hd_wgroup *g = w->group;
	struct hd_wset *set;

	if (!g)
		return;
	set = g->set;
	hd_lock_take(&set->lock);
	hd_node_lock(w->node);
	LIST_REMOVE(w, member);
	w->group = NULL;
	hd_waiters_update(w);
	hd_node_unlock(w->node);
	if (LIST_EMPTY(&g->members))
		group_free(g);
	hd_lock_give(&set->lock);
}

static int add(struct hd_wset *set, int fd, struct hd_evq *evq)
{
	struct wfd *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->fd = fd;
	f->evq = evq;
	hd_lock_take(&set->lock);
	rc = is_ours(set) ? watch(set, EPOLL_CTL_ADD, fd) : -ENOTRECOVERABLE;
	if (!rc)
		LIST_INSERT_HEAD(&set->fds, f, entry);
	if (!rc && set->sleepers)
		ring(set);
	hd_lock_give(&set->lock);
	if (rc)
		free(f);
	return rc;
}

int hd_wset_add_fd(struct hd_wset *set, int fd)
{
	return add(set, fd, NULL);
}

int hd_evq_join(struct hd_evq *evq, struct hd_wset *set)
{
	return add(set, hd_evq_fd(evq), evq);
}

void hd_evq_leave(struct hd_evq *evq, struct hd_wset *set)
{
	hd_wset_remove_fd(set, hd_evq_fd(evq));
}

void hd_wset_remove_fd(struct hd_wset *set, int fd)
{
	struct wfd *f;

	hd_lock_take(&set->lock);
	LIST_FOREACH(f, &set->fds, entry)
		if (f->fd == fd)
			break;
	if (f) {
		if (is_ours(set))
			watch(set, EPOLL_CTL_DEL, fd);
		if (f->evq) {
			evq_disarm(f, BY_THREADS);
			evq_disarm(f, BY_FD);
		}
		LIST_REMOVE(f, entry);
	}
	hd_lock_give(&set->lock);
	free(f);
}

/* ---- looking ------------------------------------------------------------------------------------------- */

static bool is_fd_ready(const struct wfd *f)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };

	if (f->evq)
		return hd_evq_wait(f->evq, 0) == 0;
	return poll(&p, 1, 0) > 0;
}

static bool any_fd_ready(struct hd_wset *set)
{
	struct wfd *f;

	LIST_FOREACH(f, &set->fds, entry)
		if (is_fd_ready(f))
			return true;
	return false;
}

/*
 * Make progress once everywhere, and look at all members. *moved: there may be more to do. What has been drained is written anew when
 * something was found: others that sleep on it have to look too. Caller holds the set's lock.
 */
static bool look(struct hd_wset *set, bool *moved)
{
	struct hd_wgroup *g;
	bool found;

	drain(set);
	found = any_fd_ready(set);
	LIST_FOREACH(g, &set->groups, entry) {
		hd_node_lock(g->node);
		g->node->slow_due = 0;
		*moved |= hd_node_poll(g->node) > 0;
		found |= anything_ready(g);
		hd_node_unlock(g->node);
	}
	return found;
}

static void pass_on(struct hd_wset *set)
{
	if (set->sleepers || set->fd_armed)
		ring(set);
}

int hd_wset_arm(struct hd_wset *set)
{
	bool moved = false, there;

	if (!is_ours(set))
		return -ENOTRECOVERABLE;
	hd_lock_take(&set->lock);
	there = look(set, &moved) || moved;
	if (!there)
		there = arm_all(set, BY_FD);
	if (there)
		disarm_all(set, BY_FD);
	if (there)
		pass_on(set);
	set->fd_armed = !there;
	hd_lock_give(&set->lock);
	return there ? -EAGAIN : 0;
}

static bool is_signalled(struct hd_wset *set, uint32_t seen)
{
	uint32_t signals = atomic_load(&set->signals);

	if (signals == seen)
		return false;
	set->signals_taken = signals;
	return true;
}

/* Others may have the set for a moment. */
static void breathe(struct hd_wset *set)
{
	hd_lock_give(&set->lock);
	sched_yield();
	hd_lock_take(&set->lock);
}

/* Sleep once, if nothing is there; the set's lock is held before and after. */
static void nap(struct hd_wset *set, int ms)
{
	struct pollfd p = { .fd = set->epoll_fd, .events = POLLIN };
	bool there;

	set->sleepers++;
	there = arm_all(set, BY_THREADS);
	hd_lock_give(&set->lock);
	if (there)
		sched_yield();
	else
		poll(&p, 1, ms);
	hd_lock_take(&set->lock);
	if (--set->sleepers == 0)
		disarm_all(set, BY_THREADS);
}

int hd_wset_wait(struct hd_wset *set, int timeout_ms)
{
	uint64_t deadline = hd_deadline_ns(timeout_ms);
	uint32_t seen, turns = 0;
	int rc = 1;

	if (!is_ours(set))
		return -ENOTRECOVERABLE;
	hd_lock_take(&set->lock);
	seen = set->signals_taken;
	while (rc > 0) {
		int left = hd_left_ms(deadline);
		bool moved = false;

		if (look(set, &moved))
			rc = 0;
		else if (is_signalled(set, seen))
			rc = -ECANCELED;
		else if (!left)
			rc = -EAGAIN;
		else if (!moved)
			nap(set, left);
		else if (++turns % HOLD_TURNS == 0)
			breathe(set);
	}
	if (rc != -EAGAIN)
		pass_on(set);
	hd_lock_give(&set->lock);
	return rc;
}
