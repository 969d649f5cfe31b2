/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Automatic progress: one thread per node. While the program polls, the thread looks every few milliseconds whether it still does;
 * when it does not, the thread makes progress itself, and when nothing happens it sleeps, armed and untimed, until a peer wakes it
 * or the program polls again.
 */
#include "base/clock.h"
#include "base/log.h"
#include "engine/node/node.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#define WATCH_NS (2 * HD_NS_PER_MS)
#define IDLE_TURNS 64

/* Sleep until something happens. The lock is held before and after. */
static void nap(struct hd_node *node)
{
	if (hd_sleep_arm(node) == 0) {
		struct pollfd p = { .fd = node->epoll_fd, .events = POLLIN };
		int ms = hd_timer_next_ms(node);

		node->thread_naps = true;
		hd_node_unlock(node);
		poll(&p, 1, ms);
		hd_node_lock(node);
		node->thread_naps = false;
		node->slow_due = 0;
	}
	hd_sleep_disarm(node);
}

/* Bring the thread here, which stands back. */
static void call(struct hd_node *node)
{
	pthread_mutex_lock(&node->thread_lock);
	node->thread_called = true;
	pthread_cond_signal(&node->thread_wake);
	pthread_mutex_unlock(&node->thread_lock);
}

/* Wait to be called, until `end` (0: without one). False: nobody has called. */
static bool await_call(struct hd_node *node, uint64_t end)
{
	struct timespec t = { .tv_sec = (time_t)(end / HD_NS_PER_S), .tv_nsec = (long)(end % HD_NS_PER_S) };
	bool called;
	int rc = 0;

	pthread_mutex_lock(&node->thread_lock);
	while (!node->thread_called && !rc)
		rc = end ? pthread_cond_timedwait(&node->thread_wake, &node->thread_lock, &t)
			 : pthread_cond_wait(&node->thread_wake, &node->thread_lock);
	called = node->thread_called;
	node->thread_called = false;
	pthread_mutex_unlock(&node->thread_lock);
	return called;
}

static bool has_moved(struct hd_node *node, uint64_t *seen)
{
	uint64_t epoch = hd_node_epoch(node);
	bool moved = epoch != *seen;

	*seen = epoch;
	return moved;
}

/*
 * Let the program have the lock while it polls, and for as long as a thread of its own sleeps for all of the node. To take it for a look
 * would cost the program the favour of the lock.
 */
static void stand_back(struct hd_node *node, uint64_t *seen)
{
	bool called;

	node->thread_away = true;
	hd_node_unlock(node);
	do
		called = await_call(node, hd_now_ns() + WATCH_NS);
	while (!called && has_moved(node, seen));
	hd_node_lock(node);
	node->thread_away = false;
	while (node->channel_sleepers && !node->thread_stop) {
		node->thread_parked = true;
		hd_node_unlock(node);
		await_call(node, 0);
		hd_node_lock(node);
	}
	node->thread_parked = false;
}

static void *run(void *arg)
{
	struct hd_node *node = arg;
	uint64_t seen = 0;
	int idle = 0;

	hd_node_lock(node);
	while (!node->thread_stop) {
		if (node->thread_wanted) { /* what the program polls from here on is news again */
			node->thread_wanted = false;
			seen = hd_node_epoch(node);
			idle = 0;
		} else if (has_moved(node, &seen) || node->channel_sleepers) {
			idle = 0;
			stand_back(node, &seen);
			continue;
		}
		idle = hd_turn(node) > 0 ? 0 : idle + 1;
		if (idle > IDLE_TURNS) {
			nap(node);
			idle = 0;
		} else if (idle % 8 == 7) { /* somebody may wait for the lock */
			hd_node_unlock(node);
			sched_yield();
			hd_node_lock(node);
		}
	}
	hd_node_unlock(node);
	return NULL;
}

/* hd_thread_start: pthread_create(3), with all signals blocked: the program's are for its own threads. */
int hd_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

/*
 * hd_auto_serve: the node is about to have memory that others may reach, and has promised that these need not wait for its program.
 * 0, or what hd_auto_start answers. With the lock.
 */
int hd_auto_serve(struct hd_node *node)
{
	return node->attr.serve && !node->thread_runs ? hd_auto_start(node) : 0;
}

void hd_auto_init(struct hd_node *node)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&node->thread_lock, NULL);
	pthread_cond_init(&node->thread_wake, &attr);
	pthread_condattr_destroy(&attr);
}

/* hd_auto_notify: the program is about to sleep on a descriptor that only a turn of progress makes readable: take over at once. */
void hd_auto_notify(struct hd_node *node)
{
	hd_assert_locked(node);
	if (hd_auto_serve(node) < 0 || !node->thread_runs)
		return;
	node->thread_wanted = true;
	if (node->thread_away)
		call(node);
}

/* hd_auto_back: no thread of the program sleeps for all of the node any more. */
void hd_auto_back(struct hd_node *node)
{
	hd_assert_locked(node);
	if (node->thread_parked)
		call(node);
}

int hd_auto_start(struct hd_node *node)
{
	int rc = hd_thread_start(&node->thread, run, node);

	node->thread_runs = rc == 0;
	return rc;
}

/* hd_auto_stop: without the lock. */
void hd_auto_stop(struct hd_node *node)
{
	if (!node->thread_runs)
		return;
	hd_node_lock(node);
	node->thread_stop = true;
	call(node);
	hd_node_unlock(node);
	hd_node_signal(node);
	pthread_join(node->thread, NULL);
	node->thread_runs = false;
}

/* hd_auto_rouse: the program polls again while the thread sleeps armed: make it stand back, so that peers need not wake us. */
void hd_auto_rouse(struct hd_node *node)
{
	node->thread_naps = false;
	hd_node_signal(node);
}
