/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Event queues and the nodes that hang on them: progress there, and sleeping until
 * something happens in any.
 */
#include "base/clock.h"
#include "base/epoll.h"
#include "engine/core/core.h"
#include "engine/event/event.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* ---- hooks ----------------------------------------------------------------------------------- */

static struct hd_evq_hook *hook_of(struct hd_evq *evq, const struct hd_node *node)
{
	struct hd_evq_hook *h;

	TAILQ_FOREACH(h, &evq->hooks, entry)
		if (h->node == node)
			break;
	return h;
}

/*
 * hd_evq_attach: an object of this node is bound to the evq: reading it makes progress in the node
 * from now on. hd_evq_detach: it is bound no more. Caller holds the node's lock.
 */
int hd_evq_attach(struct hd_evq *evq, struct hd_node *node)
{
	struct hd_evq_hook *h, *made = calloc(1, sizeof(*made));
	struct epoll_event ev = { .events = EPOLLIN };
	bool asleep;
	int rc = 0;

	hd_assert_locked(node);
	if (!made)
		return -ENOMEM;
	made->node = node;
	if (evq->served)
		rc = hd_auto_serve(node);
	if (rc) {
		free(made);
		return rc;
	}
	hd_lock_take(&evq->lock);
	h = hook_of(evq, node);
	if (!h && hd_epoll_ctl(evq->epoll_fd, EPOLL_CTL_ADD, hd_core(node)->epoll_fd, &ev) < 0)
		rc = -errno;
	if (!h && !rc) {
		h = made;
		made = NULL;
		TAILQ_INSERT_TAIL(&evq->hooks, h, entry);
		evq->changes++;
	}
	if (!rc) {
		h->users++;
		evq->users++;
	}
	asleep = evq->sleepers || evq->fd_armed;
	hd_lock_give(&evq->lock);
	free(made);
	if (!rc && asleep && !h->armed) { /* who sleeps already sleeps on this node as well */
		h->armed = true;
		if (hd_sleep_arm(node) > 0)
			hd_node_signal(node);
		hd_timer_fd_set(node);
	}
	return rc;
}

void hd_evq_detach(struct hd_evq *evq, struct hd_node *node)
{
	struct hd_evq_hook *h;

	hd_assert_locked(node);
	hd_lock_take(&evq->lock);
	h = hook_of(evq, node);
	evq->users--;
	if (--h->users > 0) {
		h = NULL;
	} else {
		TAILQ_REMOVE(&evq->hooks, h, entry);
		evq->changes++;
		if (!hd_core(node)->gate.dead) /* the set is the parent's as well */
			hd_epoll_ctl(evq->epoll_fd, EPOLL_CTL_DEL, hd_core(node)->epoll_fd, NULL);
	}
	hd_lock_give(&evq->lock);
	if (h && h->armed)
		hd_sleep_disarm(node);
	free(h);
}

/* The n-th node, pinned, or NULL. */
static struct hd_node *pin(struct hd_evq *evq, unsigned n)
{
	struct hd_node *node = NULL;
	struct hd_evq_hook *h;

	hd_lock_take(&evq->lock);
	TAILQ_FOREACH(h, &evq->hooks, entry)
		if (n-- == 0)
			break;
	if (h) {
		node = h->node;
		atomic_fetch_add(&hd_core(node)->pins, 1);
	}
	hd_lock_give(&evq->lock);
	return node;
}

static uint32_t changes(struct hd_evq *evq)
{
	uint32_t n;

	hd_lock_take(&evq->lock);
	n = evq->changes;
	hd_lock_give(&evq->lock);
	return n;
}

/*
 * Call fn for every node, with its lock held; a node may be met twice when hooks come and go
 * meanwhile. Returns whether any fn said that there was something.
 */
static bool each_node(struct hd_evq *evq, bool (*fn)(struct hd_evq *evq, struct hd_node *node))
{
	struct hd_node *node;
	bool any = false;
	uint32_t before;

	do {
		before = changes(evq);
		for (unsigned n = 0; (node = pin(evq, n)); n++) {
			hd_node_lock(node);
			if (!hd_core(node)->gate.dead)
				any |= fn(evq, node);
			hd_node_unlock(node);
			atomic_fetch_sub(&hd_core(node)->pins, 1);
		}
	} while (changes(evq) != before);
	return any;
}

/* ---- progress and sleep ---------------------------------------------------------------------- */

static bool evq_nodes_turn(struct hd_evq *evq, struct hd_node *node)
{
	return hd_node_poll(node) > 0;
}

void hd_evq_turn(struct hd_evq *evq)
{
	each_node(evq, evq_nodes_turn);
}

/*
 * Descriptors and timers of a node are looked at in every eighth turn only; somebody who is
 * about to sleep looks at all.
 */
static bool evq_nodes_look(struct hd_evq *evq, struct hd_node *node)
{
	int moved = 0;

	hd_node_hurry(node);
	for (int i = 0; i < 8; i++)
		moved += hd_node_poll(node);
	return moved > 0;
}

static bool look_answered(struct hd_evq *evq, struct hd_node *node)
{
	return hd_events(node)->answered && evq_nodes_look(evq, node);
}

void hd_evq_look_answered(struct hd_evq *evq)
{
	each_node(evq, look_answered);
}

/*
 * Be woken by this node, or no longer, as it is wanted now; true: there is
 * something to be done first.
 */
static bool evq_nodes_settle(struct hd_evq *evq, struct hd_node *node)
{
	struct hd_evq_hook *h;
	bool wanted, there = false;

	hd_lock_take(&evq->lock);
	h = hook_of(evq, node); /* stays as long as we hold the node's lock */
	wanted = evq->sleepers || evq->fd_armed;
	hd_lock_give(&evq->lock);
	if (!h)
		return false;
	if (wanted) {
		there = hd_sleep_arm(node) > 0;
		if (h->armed)
			hd_sleep_disarm(node); /* once is enough: this was to look */
		h->armed = true;
		hd_timer_fd_set(node);
	} else if (h->armed) {
		h->armed = false;
		hd_node_hurry(node);
		hd_sleep_disarm(node);
	}
	return there;
}

/* One more, or one less; since: of one more. */
static void sleepers_add(struct hd_evq *evq, int by, uint64_t since)
{
	hd_lock_take(&evq->lock);
	evq->sleepers += by;
	if (by > 0)
		evq->since = since;
	hd_lock_give(&evq->lock);
}

static void evq_nodes_wake_up(void *arg)
{
	struct hd_evq *evq = arg;

	sleepers_add(evq, -1, 0);
	each_node(evq, evq_nodes_settle);
}

/* since: hd_ticks() when the wait began. 0, -EINTR. */
static int evq_nodes_block(struct hd_evq *evq, uint64_t since, struct hd_poll *on)
{
	struct pollfd p = { .fd = evq->epoll_fd, .events = POLLIN };
	int rc = 0;

	on->fds = &p;
	on->count = 1;
	sleepers_add(evq, 1, since);
	if (!each_node(evq, evq_nodes_settle) && !hd_evq_has(evq))
		hd_sleep_on(on, evq_nodes_wake_up, evq, &rc);
	evq_nodes_wake_up(evq);
	return rc;
}

static int left_ms(uint64_t end)
{
	uint64_t now = hd_now_ns();

	return now >= end ? 0 : (int)((end - now + HD_NS_PER_MS - 1) / HD_NS_PER_MS);
}

/*
 * Until there is something: 0, -EAGAIN: it is time, -EINTR. end: 0 for never. on: how it
 * sleeps, but for how long.
 */
static int wait_until(struct hd_evq *evq, uint64_t end, struct hd_poll *on)
{
	const uint64_t since = hd_ticks();
	int rc = 0;

	while (!rc && !hd_evq_has(evq)) {
		bool moved = each_node(evq, evq_nodes_look);

		on->ms = end ? left_ms(end) : -1;
		if (hd_evq_has(evq))
			break;
		if (on->ms == 0)
			rc = -EAGAIN;
		else if (moved)
			sched_yield();
		else
			rc = evq_nodes_block(evq, since, on);
	}
	return rc;
}

int hd_evq_wait(struct hd_evq *evq, int timeout_ms, bool any_signal)
{
	uint64_t end = timeout_ms < 0 ? 0 : hd_now_ns() + (uint64_t)timeout_ms * HD_NS_PER_MS;
	struct hd_poll on = { .any_signal = any_signal };
	int rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &on.cancel);
	rc = wait_until(evq, end, &on);
	pthread_setcancelstate(on.cancel, NULL);
	return rc;
}

void hd_evq_arm_fd(struct hd_evq *evq, bool armed)
{
	bool was;

	hd_lock_take(&evq->lock);
	was = evq->fd_armed;
	evq->fd_armed = armed;
	hd_lock_give(&evq->lock);
	if (was && !armed)
		each_node(evq, evq_nodes_settle);
}

int hd_evq_arm(struct hd_evq *evq)
{
	if (hd_evq_has(evq) || each_node(evq, evq_nodes_look) || hd_evq_has(evq))
		return -EAGAIN;
	hd_evq_arm_fd(evq, true);
	if (!each_node(evq, evq_nodes_settle) && !hd_evq_has(evq))
		return 0;
	hd_evq_arm_fd(evq, false);
	return -EAGAIN;
}

bool hd_evq_watched(struct hd_evq *evq, bool on)
{
	sleepers_add(evq, on ? 1 : -1, hd_ticks());
	return each_node(evq, evq_nodes_settle) || hd_evq_has(evq);
}
