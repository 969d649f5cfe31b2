/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Automatic progress: one thread per node. While the program polls, the thread looks every few milliseconds whether it still does;
 * when it does not, the thread makes progress itself, and when nothing happens it sleeps, armed and untimed, until a peer wakes it
 * or the program polls again.
 */
#include "base/clock.h"
#include "base/log.h"
#include "engine/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#define WATCH_MS 2
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

/* Let the program have the lock for a while. */
static void stand_back(struct hd_node *node, long ns)
{
	struct timespec t = { .tv_nsec = ns };

	hd_node_unlock(node);
	nanosleep(&t, NULL);
	hd_node_lock(node);
}

static void *run(void *arg)
{
	struct hd_node *node = arg;
	uint64_t seen = 0;
	int idle = 0;

	hd_node_lock(node);
	while (!node->thread_stop) {
		if (node->epoch != seen) {
			seen = node->epoch;
			idle = 0;
			stand_back(node, WATCH_MS * (long)HD_NS_PER_MS);
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
