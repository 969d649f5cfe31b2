/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/event/waiters.h"
#include "engine/core/core.h"
#include "engine/event/event.h"
#include "engine/event/wset.h"

#include "base/advice.h"
#include "base/clock.h"
#include "base/epoll.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BLIND_MS 2 /* how long a thread sleeps that nobody can wake, for want of a descriptor */
/* turns of a waiter that makes progress, after which others may have the lock */
#define HOLD_TURNS 16

/* ---- descriptors ----------------------------------------------------------------------------- */

int hd_fds_missing(const char *what, int rc)
{
	/*
	 * what epoll_ctl(2) says where one set would be in too many others
	 * (the kernel's path_limits)
	 */
	const char *advice =
		rc == -EINVAL
			? ": no more than 500 descriptors can be polled for one domain; a wait without one (FI_WAIT_UNSPEC) has no such limit"
		: rc == -ENOSPC ? ": raise sysctl fs.epoll.max_user_watches"
				: hd_advice(-rc);

	HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "%s cannot be waited for (eventfd, epoll): %s%s", what,
			strerror(-rc), advice);
	return rc;
}

static int make_eventfd(_Atomic int *fd)
{
	int made;

	if (atomic_load(fd) >= 0)
		return 0;
	made = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (made < 0)
		return -errno;
	/* seq_cst, and before the signals are looked at: see hd_waiters_signal */
	atomic_store(fd, made);
	return 0;
}

static int make_fds(struct hd_waiters *w)
{
	struct epoll_event node = { .events = EPOLLIN }, own = { .events = EPOLLIN };
	int rc;

	if (w->epoll_fd >= 0)
		return 0;
	rc = make_eventfd(&w->wake_fd);
	if (rc)
		return hd_fds_missing("a completion queue or counter", rc);
	w->epoll_fd = hd_epoll_create();
	if (w->epoll_fd < 0 ||
	    hd_epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, hd_core(w->node)->epoll_fd, &node) < 0 ||
	    hd_epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &own) < 0) {
		rc = hd_fds_missing("a completion queue or counter", -errno);
		hd_waiters_fini(w);
	}
	return rc;
}

int hd_waiters_fd(struct hd_waiters *w)
{
	int rc = make_fds(w);

	return rc ? rc : w->epoll_fd;
}

int hd_waiters_init(struct hd_waiters *w, struct hd_node *node, bool *armed, hd_ready_fn ready, bool with_fd)
{
	w->node = node;
	w->armed = armed;
	w->ready = ready;
	w->wake_fd = w->block_fd = w->epoll_fd = -1;
	return with_fd ? make_fds(w) : 0;
}

void hd_waiters_fini(struct hd_waiters *w)
{
	hd_waiters_disarm_fd(w);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	if (w->block_fd >= 0)
		close(w->block_fd);
	w->wake_fd = w->block_fd = w->epoll_fd = -1;
}

void hd_waiters_update(struct hd_waiters *w)
{
	*w->armed = w->sleepers || w->fd_armed || w->kept || (w->group && w->group->reasons);
}

void hd_waiters_keep(struct hd_waiters *w, bool keep)
{
	w->kept = keep;
	hd_waiters_update(w);
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* All threads that sleep now have to notice that block_fd is readable, before it is drained. */
static void waiters_wake_all(struct hd_waiters *w)
{
	w->block_woken = true;
	w->block_again = false;
	w->to_wake = w->sleepers;
	w->wakes++;
}

/*
 * hd_wake: something that a sleeper waits for has happened. Who slept before sleeps no more, who
 * lies down now will find it.
 */
void hd_wake(struct hd_waiters *w)
{
	if (w->fd_armed && !w->woken && eventfd_write(w->wake_fd, 1) == 0)
		w->woken = true;
	if (w->block_woken)
		w->block_again = true;
	else if (w->sleepers && eventfd_write(w->block_fd, 1) == 0)
		waiters_wake_all(w);
	if (w->group && w->group->reasons)
		hd_wset_wake(w->group->set);
}

void hd_waiters_signal(struct hd_waiters *w)
{
	int fds[2];

	if (hd_core(w->node)->gate.dead) /* the descriptors are the parent's too */
		return;
	/*
	 * seq_cst, with the stores of the descriptors and the look at this counter: either we see
	 * the descriptor that a waiter has just made, or it sees the signal before it sleeps.
	 */
	atomic_fetch_add(&w->signals, 1);
	fds[0] = atomic_load(&w->wake_fd);
	fds[1] = atomic_load(&w->block_fd);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)eventfd_write(fds[i], 1);
	if (w->group)
		hd_wset_signal(w->group->set);
}

/* ---- threads --------------------------------------------------------------------------------- */

/*
 * A thread is awake again, which lay down when `wakes` were counted; readable: it found block_fd
 * so. The last of those whom a wake was for drains block_fd, unless something has happened since
 * that those who lay down later have to notice.
 */
static void waiters_block_over(struct hd_waiters *w, uint32_t wakes, bool readable)
{
	bool again = w->block_again;
	eventfd_t n;

	w->sleepers--;
	hd_waiters_update(w);
	if (w->block_woken ? wakes == w->wakes || --w->to_wake > 0 : !readable)
		return;
	/* a signal perhaps, which is written without the lock: it is for the others as well */
	if (!w->block_woken)
		again = true;
	w->block_woken = false;
	if (eventfd_read(w->block_fd, &n) == 0 && again && w->sleepers && eventfd_write(w->block_fd, 1) == 0)
		waiters_wake_all(w);
}

/* Others may have the lock for a moment. */
static void waiters_breathe(struct hd_node *node)
{
	if (!hd_core(node)->gate.locked)
		return;
	hd_node_unlock(node);
	sched_yield();
	hd_node_lock(node);
}

/* One sleep, which may be cancelled. */
struct waiters_nap {
	struct hd_waiters *w;
	uint32_t wakes;
	struct pollfd p[2];
};

/* With the lock. */
static void waiters_get_up(struct waiters_nap *nap)
{
	hd_sleep_disarm(nap->w->node);
	waiters_block_over(nap->w, nap->wakes, nap->p[0].revents);
}

static void waiters_cancelled(void *arg)
{
	struct waiters_nap *nap = arg;
	struct hd_node *node = nap->w->node;

	hd_node_lock(node);
	hd_node_hurry(node);
	waiters_get_up(nap);
	hd_node_unlock(node);
}

/*
 * Sleep once, if nothing is there; the lock is held before and after. since: hd_ticks() when the
 * wait began; cancel: as in struct hd_poll. 0, -EINTR.
 */
static int waiters_block(struct hd_waiters *w, uint64_t since, int ms, int cancel)
{
	struct hd_node *node = w->node;
	struct waiters_nap nap = { .w = w,
				   .wakes = w->wakes,
				   .p = { { .fd = w->block_fd, .events = POLLIN },
					  { .fd = hd_core(node)->epoll_fd, .events = POLLIN } } };
	struct hd_poll on = {
		.fds = nap.p, .count = 2, .ms = ms, .cancel = cancel, .any_signal = w->any_signal
	};
	int timer = hd_timer_next_ms(node), rc = 0;

	w->sleepers++;
	w->since = since;
	hd_waiters_update(w);
	if (hd_sleep_arm(node) == 0) {
		if (ms < 0 || (timer >= 0 && timer < ms))
			on.ms = timer;
		if (nap.p[0].fd < 0 && (on.ms < 0 || on.ms > BLIND_MS))
			on.ms = BLIND_MS;
		hd_node_unlock(node);
		hd_sleep_on(&on, waiters_cancelled, &nap, &rc);
		hd_node_lock(node);
		hd_node_hurry(node);
	} else {
		waiters_breathe(node);
	}
	waiters_get_up(&nap);
	return w->any_signal || w->interrupts ? rc : 0;
}

/* Look on. Others may have the lock meanwhile. */
static int waiters_blink(struct hd_node *node, struct hd_busy_polling *looking)
{
	hd_node_unlock(node);
	hd_busy_poll_pause(looking);
	hd_node_lock(node);
	return 0;
}

/* A signal since this waiter came? */
static bool waiters_is_signalled(struct hd_waiters *w, uint32_t seen)
{
	uint32_t signals = atomic_load(&w->signals);

	if (signals == seen)
		return false;
	w->signals_taken = signals;
	return true;
}

int hd_waiters_wait(struct hd_waiters *w, hd_ready_fn ready, uint64_t arg, int timeout_ms)
{
	uint64_t deadline = hd_deadline_ns(timeout_ms);
	struct hd_node *node = w->node;
	struct hd_busy_polling looking = { 0 };
	uint32_t seen, turns = 0;
	int rc, ms, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	hd_node_lock(node);
	rc = hd_core(node)->gate.dead ? -ENOTRECOVERABLE : 0;
	(void)make_eventfd(&w->block_fd); /* waiters_block() does without it */
	seen = w->signals_taken;
	while (!rc && !ready(w, arg)) {
		bool moved;

		if (waiters_is_signalled(w, seen)) {
			rc = -ECANCELED;
			break;
		}
		moved = hd_node_poll(node) > 0;
		if (ready(w, arg))
			break;
		ms = hd_left_ms(deadline);
		if (ms == 0)
			rc = -EAGAIN;
		else if (!moved)
			rc = hd_busy_poll_on(&w->busy_poll, &looking, 0, hd_ticks())
				     ? waiters_blink(node, &looking)
				     : waiters_block(w, looking.begun, ms, cancel);
		else if (++turns % HOLD_TURNS == 0)
			waiters_breathe(node);
	}
	if (w->interrupts)
		hd_busy_polled(&w->busy_poll, &looking);
	else
		hd_busy_poll_over(&w->busy_poll, &looking, hd_ticks());
	if (hd_unlikely(hd_core(node)->gathering && !hd_core(node)->gate.dead))
		hd_node_say(node);
	hd_node_unlock(node);
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

/* ---- descriptors that programs poll ---------------------------------------------------------- */

static void waiters_drain(struct hd_waiters *w)
{
	eventfd_t n;

	/* written by hd_wake, or by a signal, of which `woken` knows nothing */
	(void)eventfd_read(w->wake_fd, &n);
	w->woken = false;
}

int hd_waiters_arm_fd(struct hd_waiters *w)
{
	struct hd_node *node = w->node;
	int rc = hd_core(node)->gate.dead ? -ENOTRECOVERABLE : make_fds(w);

	hd_assert_locked(node);
	if (rc)
		return rc;
	waiters_drain(w);
	hd_node_hurry(node);
	for (int i = 0; i < 8; i++) /* the slow part of progress comes every eighth turn */
		if (hd_node_poll(node) > 0 || w->ready(w, 1))
			return -EAGAIN;
	if (!w->fd_armed) {
		w->fd_armed = true;
		hd_waiters_update(w);
		rc = hd_sleep_arm(node);
	} else {
		rc = hd_sleep_arm(node);
		hd_sleep_disarm(node);
	}
	if (rc > 0) {
		hd_waiters_disarm_fd(w);
		return -EAGAIN;
	}
	hd_timer_fd_set(node);
	return 0;
}

void hd_waiters_disarm_fd(struct hd_waiters *w)
{
	if (w->group)
		hd_wgroup_disarm(w->group, HD_WSET_BY_FD);
	if (!w->fd_armed || hd_core(w->node)->gate.dead)
		return;
	w->fd_armed = false;
	hd_waiters_update(w);
	if (w->woken)
		waiters_drain(w);
	hd_node_hurry(w->node);
	hd_sleep_disarm(w->node);
}
