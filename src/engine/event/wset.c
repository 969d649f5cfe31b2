/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Wait sets: CQs and counters of any nodes, and event queues, that are slept on together. A set
 * belongs to no node. It has one epoll set, with the epoll set of each node that it has members of,
 * and one eventfd, which members write whose waiters are in the set.
 *
 * Order of locks: the set's, then one node's at a time. A member that wakes the set (hd_wake) holds
 * its node's lock, and takes none here.
 */
#include "engine/event/wset.h"
#include "base/clock.h"
#include "base/epoll.h"
#include "engine/core/core.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* turns of a waiter that makes progress, after which others may have the lock */
#define HOLD_TURNS 16

/* ---- the object ------------------------------------------------------------------------------ */

int hd_wset_watch(struct hd_wset *set, int op, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return hd_epoll_ctl(set->epoll_fd, op, fd, &ev) < 0 ? -errno : 0;
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
	set->epoll_fd = hd_epoll_create();
	set->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (set->epoll_fd < 0 || set->wake_fd < 0)
		rc = hd_fds_missing("a wait set", -errno);
	else
		rc = hd_wset_watch(set, EPOLL_CTL_ADD, set->wake_fd);
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
	used = !LIST_EMPTY(&set->groups) || !LIST_EMPTY(&set->evqs) ||
	       (hd_wset_is_ours(set) && set->waiting > 0);
	hd_lock_give(&set->lock);
	return used;
}

int hd_wset_close(struct hd_wset *set)
{
	if (hd_wset_used(set))
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

/* ---- waking ---------------------------------------------------------------------------------- */

/*
 * Draining comes before `woken` is cleared, and looking at the members after that, each under its
 * node's lock, which whoever rings for it holds. So one that finds `woken` set still has told us
 * what we are about to see.
 */
static void wset_drain(struct hd_wset *set)
{
	eventfd_t n;

	(void)eventfd_read(set->wake_fd, &n);
	atomic_store(&set->woken, false);
}

void hd_wset_wake(struct hd_wset *set)
{
	if (!atomic_exchange(&set->woken, true))
		(void)eventfd_write(set->wake_fd, 1);
}

void hd_wset_signal(struct hd_wset *set)
{
	if (!hd_wset_is_ours(set))
		return;
	atomic_fetch_add(&set->signals, 1);
	hd_wset_wake(set);
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool any_event(struct hd_wset *set)
{
	struct hd_wevq *e;

	LIST_FOREACH(e, &set->evqs, entry)
		if (hd_evq_wait(e->evq, 0, false) == 0)
			return true;
	return false;
}

/*
 * Make progress once everywhere, and look at all members. *moved: there may be more to do. What has
 * been drained is written anew when something was found: others that sleep on it have to look too.
 * Caller holds the set's lock.
 */
static bool wset_look(struct hd_wset *set, bool *moved)
{
	struct hd_wgroup *g;
	bool found;

	wset_drain(set);
	found = any_event(set);
	LIST_FOREACH(g, &set->groups, entry) {
		hd_node_lock(g->node);
		hd_node_hurry(g->node);
		*moved |= hd_node_poll(g->node) > 0;
		found |= hd_wgroup_ready(g);
		hd_node_unlock(g->node);
	}
	return found;
}

static void pass_on(struct hd_wset *set)
{
	if (set->sleepers || set->fd_armed)
		hd_wset_wake(set);
}

int hd_wset_arm(struct hd_wset *set)
{
	bool moved = false, there;

	if (!hd_wset_is_ours(set))
		return -ENOTRECOVERABLE;
	hd_lock_take(&set->lock);
	there = wset_look(set, &moved) || moved;
	if (!there)
		there = hd_wset_arm_all(set, HD_WSET_BY_FD);
	if (there)
		hd_wset_disarm_all(set, HD_WSET_BY_FD);
	if (there)
		pass_on(set);
	set->fd_armed = !there;
	hd_lock_give(&set->lock);
	return there ? -EAGAIN : 0;
}

static bool wset_is_signalled(struct hd_wset *set, uint32_t seen)
{
	uint32_t signals = atomic_load(&set->signals);

	if (signals == seen)
		return false;
	set->signals_taken = signals;
	return true;
}

/* Others may have the set for a moment. */
static void wset_breathe(struct hd_wset *set)
{
	hd_lock_give(&set->lock);
	sched_yield();
	hd_lock_take(&set->lock);
}

/* With the set's lock. */
static void wset_get_up(struct hd_wset *set)
{
	if (--set->sleepers == 0)
		hd_wset_disarm_all(set, HD_WSET_BY_THREADS);
}

static void wset_cancelled(void *arg)
{
	struct hd_wset *set = arg;

	hd_lock_take(&set->lock);
	wset_get_up(set);
	set->waiting--;
	hd_lock_give(&set->lock);
}

/*
 * Sleep once, if nothing is there; the set's lock is held before and after. since: hd_ticks() when
 * the wait began; cancel: as in struct hd_poll. -EINTR: a signal handler ran.
 */
static int wset_block(struct hd_wset *set, uint64_t since, int ms, int cancel)
{
	struct pollfd p = { .fd = set->epoll_fd, .events = POLLIN };
	const struct hd_poll on = { .fds = &p, .count = 1, .ms = ms, .cancel = cancel, .any_signal = true };
	int interrupted = 0;
	bool there;

	set->sleepers++;
	set->since = since;
	there = hd_wset_arm_all(set, HD_WSET_BY_THREADS);
	hd_lock_give(&set->lock);
	if (there)
		sched_yield();
	else
		hd_sleep_on(&on, wset_cancelled, set, &interrupted);
	hd_lock_take(&set->lock);
	wset_get_up(set);
	return interrupted;
}

/* Look on. Others may have the set meanwhile. */
static void wset_blink(struct hd_wset *set, struct hd_busy_polling *looking)
{
	hd_lock_give(&set->lock);
	hd_busy_poll_pause(looking);
	hd_lock_take(&set->lock);
}

/* counts: those who do keep the set open; they alone can be cancelled. */
static int wset_wait(struct hd_wset *set, int timeout_ms, bool counts)
{
	struct hd_busy_polling looking = { 0 };
	uint64_t deadline = hd_deadline_ns(timeout_ms);
	uint32_t seen, turns = 0;
	int rc = 1, cancel, interrupted = 0;

	if (!hd_wset_is_ours(set))
		return -ENOTRECOVERABLE;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	hd_lock_take(&set->lock);
	set->waiting += counts;
	seen = set->signals_taken;
	while (rc > 0) {
		int left = hd_left_ms(deadline);
		bool moved = false;

		if (wset_look(set, &moved))
			rc = 0;
		else if (wset_is_signalled(set, seen))
			rc = -ECANCELED;
		else if (!left)
			rc = -EAGAIN;
		else if (interrupted)
			rc = interrupted;
		else if (!moved && hd_busy_poll_on(&set->busy_poll, &looking, 0, hd_ticks()))
			wset_blink(set, &looking);
		else if (!moved)
			interrupted = wset_block(set, looking.begun, left, cancel);
		else if (++turns % HOLD_TURNS == 0)
			wset_breathe(set);
	}
	hd_busy_poll_over(&set->busy_poll, &looking, hd_ticks());
	if (rc != -EAGAIN)
		pass_on(set);
	set->waiting -= counts;
	hd_lock_give(&set->lock);
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

int hd_wset_wait(struct hd_wset *set, int timeout_ms)
{
	return wset_wait(set, timeout_ms, true);
}

int hd_wset_wait_aside(struct hd_wset *set)
{
	return wset_wait(set, -1, false);
}
