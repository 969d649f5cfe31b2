/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/waiters.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int make_fds(struct hd_waiters *w)
{
	struct epoll_event node = { .events = EPOLLIN }, own = { .events = EPOLLIN };

	if (w->epoll_fd >= 0)
		return 0;
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->wake_fd < 0 || w->epoll_fd < 0 || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->node->epoll_fd, &node) < 0 ||
	    epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &own) < 0) {
		int err = errno;

		hd_waiters_fini(w);
		return -err;
	}
	return 0;
}

int hd_waiters_init(struct hd_waiters *w, struct hd_node *node, bool *armed, bool with_fd)
{
	w->node = node;
	w->armed = armed;
	w->wake_fd = w->epoll_fd = -1;
	return with_fd ? make_fds(w) : 0;
}

void hd_waiters_fini(struct hd_waiters *w)
{
	if (w->fd_armed)
		hd_waiters_disarm_fd(w);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	w->wake_fd = w->epoll_fd = -1;
}

/* hd_wake: something that a sleeper waits for has happened. The eventfd stays readable until the sleeper drains it. */
void hd_wake(struct hd_waiters *w)
{
	if (!w->woken && w->wake_fd >= 0 && eventfd_write(w->wake_fd, 1) == 0)
		w->woken = true;
}

static void drain(struct hd_waiters *w)
{
	eventfd_t n;

	if (!w->woken)
		return;
	(void)eventfd_read(w->wake_fd, &n);
	w->woken = false;
}

static void update(struct hd_waiters *w)
{
	*w->armed = w->sleepers || w->fd_armed;
}

void hd_waiters_signal(struct hd_waiters *w)
{
	/* seq_cst: ordered before the write; the sleeper looks at it after it has been woken or before it sleeps. */
	atomic_fetch_add(&w->signals, 1);
	if (w->wake_fd >= 0)
		(void)eventfd_write(w->wake_fd, 1);
}

static bool take_signal(struct hd_waiters *w)
{
	eventfd_t n;

	if (!atomic_load(&w->signals))
		return false;
	atomic_store(&w->signals, 0);
	(void)eventfd_read(w->wake_fd, &n);
	w->woken = false;
	return true;
}

static int left_ms(uint64_t deadline, bool forever)
{
	uint64_t now;

	if (forever)
		return -1;
	now = hd_now_ns();
	if (now >= deadline)
		return 0;
	return (int)((deadline - now + HD_NS_PER_MS - 1) / HD_NS_PER_MS);
}

/* Sleep once; the lock is held before and after. */
static void nap(struct hd_waiters *w, int ms)
{
	struct hd_node *node = w->node;
	int timer = hd_timer_next_ms(node);

	w->sleepers++;
	update(w);
	if (hd_sleep_arm(node) == 0) {
		struct pollfd p[2] = { { .fd = w->wake_fd, .events = POLLIN }, { .fd = node->epoll_fd, .events = POLLIN } };

		if (ms < 0 || (timer >= 0 && timer < ms))
			ms = timer;
		hd_node_unlock(node);
		poll(p, 2, ms);
		hd_node_lock(node);
		node->slow_due = 0;
	}
	hd_sleep_disarm(node);
	w->sleepers--;
	update(w);
	drain(w);
}

int hd_waiters_wait(struct hd_waiters *w, hd_ready_fn ready, uint64_t arg, int timeout_ms)
{
	uint64_t deadline = hd_now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * HD_NS_PER_MS;
	struct hd_node *node = w->node;
	int rc;

	hd_node_lock(node);
	rc = make_fds(w);
	while (!rc) {
		int ms;

		if (node->dead)
			rc = -ENOTRECOVERABLE;
		if (rc || ready(w, arg))
			break;
		if (take_signal(w)) {
			rc = -ECANCELED;
			break;
		}
		if (hd_node_poll(node) > 0)
			continue;
		if (ready(w, arg))
			break;
		ms = left_ms(deadline, timeout_ms < 0);
		if (ms == 0) {
			rc = -EAGAIN;
			break;
		}
		nap(w, ms);
	}
	hd_node_unlock(node);
	return rc;
}

int hd_waiters_arm_fd(struct hd_waiters *w, hd_ready_fn ready, uint64_t arg)
{
	struct hd_node *node = w->node;
	int rc = make_fds(w);

	hd_assert_locked(node);
	if (rc)
		return rc;
	drain(w);
	node->slow_due = 0;
	for (int i = 0; i < 8; i++) /* the slow part of progress comes every eighth turn */
		if (hd_node_poll(node) > 0 || ready(w, arg))
			return -EAGAIN;
	if (!w->fd_armed) {
		w->fd_armed = true;
		update(w);
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
	if (!w->fd_armed)
		return;
	w->fd_armed = false;
	update(w);
	drain(w);
	w->node->slow_due = 0;
	hd_sleep_disarm(w->node);
}
