/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Automatic progress: one thread per node. While the program polls, the thread looks every few
 * milliseconds whether it still does; when it does not, the thread makes progress itself, and when
 * nothing happens it sleeps, armed and untimed, until a peer wakes it or the program polls again.
 */
#include "base/advice.h"
#include "base/busy_poll.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/core/core.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#define WATCH_MS 2
#define IDLE_TURNS 64
#define LEAVE_MS 200
#define VIGILS 4 /* times that the thread may be woken for each request, though the program polls */

/* Sleep until something happens. The lock is held before and after. */
static void auto_block(struct hd_node *node)
{
	if (hd_sleep_arm(node) == 0) {
		struct pollfd p = { .fd = hd_core(node)->epoll_fd, .events = POLLIN };
		int ms = hd_timer_next_ms(node);

		hd_core(node)->worker.asks |= HD_ASK_ROUSE;
		hd_node_unlock(node);
		poll(&p, 1, ms);
		hd_node_lock(node);
		hd_core(node)->worker.asks &= ~(unsigned)HD_ASK_ROUSE;
		hd_node_hurry(node);
	}
	hd_sleep_disarm(node);
}

/* Bring the thread here, which stands back. */
static void auto_call(struct hd_node *node)
{
	pthread_mutex_lock(&hd_core(node)->worker.lock);
	hd_core(node)->worker.called = true;
	pthread_cond_signal(&hd_core(node)->worker.wake);
	pthread_mutex_unlock(&hd_core(node)->worker.lock);
	if (hd_core(node)->worker.watches)
		hd_node_signal(node);
}

static bool was_called(struct hd_node *node)
{
	bool called;

	pthread_mutex_lock(&hd_core(node)->worker.lock);
	called = hd_core(node)->worker.called;
	hd_core(node)->worker.called = false;
	pthread_mutex_unlock(&hd_core(node)->worker.lock);
	return called;
}

/* Wait to be called, until `end` (0: without one). False: nobody has called. */
static bool await_call(struct hd_node *node, uint64_t end)
{
	struct timespec t = { .tv_sec = (time_t)(end / HD_NS_PER_S), .tv_nsec = (long)(end % HD_NS_PER_S) };
	bool called;
	int rc = 0;

	pthread_mutex_lock(&hd_core(node)->worker.lock);
	while (!hd_core(node)->worker.called && !rc)
		rc = end ? pthread_cond_timedwait(&hd_core(node)->worker.wake, &hd_core(node)->worker.lock,
						  &t)
			 : pthread_cond_wait(&hd_core(node)->worker.wake, &hd_core(node)->worker.lock);
	called = hd_core(node)->worker.called;
	hd_core(node)->worker.called = false;
	pthread_mutex_unlock(&hd_core(node)->worker.lock);
	return called;
}

/*
 * The same for WATCH_MS, at the epoll set, and serve whoever comes there while the program is away.
 */
static bool auto_watch(struct hd_node *node)
{
	struct pollfd p = { .fd = hd_core(node)->epoll_fd, .events = POLLIN };
	bool called;

	while (hd_core(node)->worker.watches && poll(&p, 1, WATCH_MS) > 0) {
		hd_node_lock(node);
		called = was_called(node) || hd_core(node)->worker.sleepers;
		if (!called)
			hd_watchdog_serve(node);
		hd_core(node)->worker.watches = hd_core(node)->worker.asks & HD_ASK_WATCHDOG;
		hd_node_unlock(node);
		if (called)
			return true;
	}
	return was_called(node);
}

static bool has_moved(struct hd_node *node, uint64_t *seen)
{
	uint64_t turns = hd_node_program_turns(node);
	bool moved = turns != *seen;

	*seen = turns;
	return moved;
}

/*
 * The program polls, but has asked for notice, and may go to sleep at any time without another
 * word: be armed for it, for WATCH_MS at most. With the lock. True: it has gone.
 */
static bool keep_vigil(struct hd_node *node, uint64_t *seen)
{
	int ms = hd_timer_next_ms(node);

	hd_core(node)->worker.vigils--;
	if (hd_sleep_arm(node) == 0) {
		struct pollfd p = { .fd = hd_core(node)->epoll_fd, .events = POLLIN };

		hd_node_unlock(node);
		poll(&p, 1, ms < 0 || ms > WATCH_MS ? WATCH_MS : ms);
		hd_node_lock(node);
		hd_node_hurry(node);
	}
	hd_sleep_disarm(node);
	hd_watchdog_turn(node);
	return !has_moved(node, seen);
}

/*
 * Let the program have the lock while it polls, and for as long as a thread of its own sleeps for
 * all of the node. To take it for a look would cost the program the favour of the lock. False: it
 * has gone without a word.
 */
static bool stand_back(struct hd_node *node, uint64_t *seen)
{
	bool called = false;

	while (!called && hd_core(node)->worker.vigils && !hd_core(node)->worker.sleepers &&
	       !hd_core(node)->worker.stop)
		called = keep_vigil(node, seen);
	if (called)
		return true;
	hd_core(node)->worker.away = true;
	hd_core(node)->worker.watches = hd_core(node)->worker.asks & HD_ASK_WATCHDOG;
	hd_node_unlock(node);
	do
		called = hd_core(node)->worker.watches
				 ? auto_watch(node)
				 : await_call(node, hd_now_ns() + WATCH_MS * HD_NS_PER_MS);
	while (!called && has_moved(node, seen));
	hd_node_lock(node);
	hd_core(node)->worker.away = hd_core(node)->worker.watches = false;
	while (hd_core(node)->worker.sleepers && !hd_core(node)->worker.stop) {
		hd_core(node)->worker.parked = true;
		hd_node_unlock(node);
		await_call(node, 0);
		hd_node_lock(node);
	}
	hd_core(node)->worker.parked = false;
	return called;
}

/* The thread waits in the place of the program, or no longer. */
static void stand_in_begin(struct hd_auto *w, bool on)
{
	w->stands_in = on;
	w->looking = (struct hd_busy_polling){ 0 };
}

/* A turn has brought nothing, once more. */
static bool stand_in_on(struct hd_auto *w)
{
	return w->stands_in && hd_busy_poll_on(&w->look, &w->looking, 0, hd_ticks());
}

/* It has brought something; the next wait begins with it. */
static void stand_in_over(struct hd_auto *w)
{
	if (w->stands_in)
		hd_busy_poll_over(&w->look, &w->looking, hd_ticks());
	stand_in_begin(w, w->stands_in);
}

/* Somebody may wait for the lock, or for the processor. */
static void step_aside(struct hd_node *node)
{
	struct hd_auto *w = &hd_core(node)->worker;
	uint64_t begin = hd_ticks();

	hd_node_unlock(node);
	sched_yield();
	if (hd_ticks() - begin > HD_ANSWER_US * hd_ticks_per_us())
		w->looking.stalled = true;
	hd_node_lock(node);
}

/* It is not the program's turn: the thread makes one. Caller holds the lock. */
static void auto_turn(struct hd_node *node, int *idle, bool left)
{
	struct hd_auto *w = &hd_core(node)->worker;
	int n = hd_watchdog_turn(node);

	if (left && n > 0)
		hd_watchdog_begin(node);
	if (n > 0) {
		stand_in_over(w);
		*idle = 0;
		return;
	}
	if (!stand_in_on(w) && *idle >= IDLE_TURNS) {
		auto_block(node);
		*idle = 0;
	} else if (++*idle % 8 == 7) {
		step_aside(node);
	}
}

static void *auto_run(void *arg)
{
	struct hd_node *node = arg;
	struct hd_auto *w = &hd_core(node)->worker;
	uint64_t seen = 0;
	bool left = false; /* the program has gone, and what has come since has waited */
	int idle = 0;

	hd_node_lock(node);
	while (!w->stop) {
		if (w->wanted) {
			/* what the program polls from here on is news again */
			w->wanted = false;
			seen = hd_node_program_turns(node);
			idle = 0;
			stand_in_begin(w, true);
		} else if (has_moved(node, &seen) || w->sleepers) {
			idle = 0;
			stand_in_begin(w, false);
			left = !stand_back(node, &seen);
			continue;
		}
		auto_turn(node, &idle, left);
		left = false;
	}
	hd_node_unlock(node);
	return NULL;
}

/*
 * hd_thread_start: pthread_create(3), with all signals blocked: the program's are for its own
 * threads. But for those that a thread raises by what it does: blocked, they end the process, and
 * programs that guard their memory handle them wherever it is written.
 */
int hd_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

/*
 * hd_auto_serve: the node is about to have memory that others may reach, and has promised that
 * these need not wait for its program. 0, or what hd_auto_start answers. With the lock.
 */
int hd_auto_serve(struct hd_node *node)
{
	return hd_core(node)->attr.serve && !hd_core(node)->worker.runs ? hd_auto_start(node) : 0;
}

void hd_auto_init(struct hd_node *node)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&hd_core(node)->worker.lock, NULL);
	pthread_cond_init(&hd_core(node)->worker.wake, &attr);
	pthread_condattr_destroy(&attr);
}

/*
 * hd_auto_notify: the program may sleep from now on, on a descriptor that only a turn of progress
 * makes readable: take over at once.
 */
void hd_auto_notify(struct hd_node *node)
{
	hd_assert_locked(node);
	hd_offer_anew(node);
	if (hd_auto_serve(node) < 0 || !hd_core(node)->worker.runs)
		return;
	hd_core(node)->worker.wanted = true;
	hd_core(node)->worker.vigils = VIGILS;
	if (hd_core(node)->worker.away)
		auto_call(node);
}

/* hd_auto_back: no thread of the program sleeps for all of the node any more. */
void hd_auto_back(struct hd_node *node)
{
	hd_assert_locked(node);
	if (hd_core(node)->worker.parked)
		auto_call(node);
}

int hd_auto_start(struct hd_node *node)
{
	int rc = hd_thread_start(&hd_core(node)->worker.thread, auto_run, node);

	hd_core(node)->worker.runs = rc == 0;
	if (rc)
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR, "no thread for automatic progress (pthread_create): %s%s",
			strerror(-rc),
			rc == -EAGAIN
				? ": raise the limit of threads (ulimit -u, the pids limit of its container)"
				: hd_advice(-rc));
	return rc;
}

/* hd_auto_stop: without the lock. */
void hd_auto_stop(struct hd_node *node)
{
	if (!hd_core(node)->worker.runs)
		return;
	hd_node_lock(node);
	hd_core(node)->worker.stop = true;
	auto_call(node);
	hd_node_unlock(node);
	hd_node_signal(node);
	pthread_join(hd_core(node)->worker.thread, NULL);
	hd_core(node)->worker.runs = false;
}

static struct timespec soon(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += LEAVE_MS * HD_NS_PER_MS;
	if (t.tv_nsec >= (long)HD_NS_PER_S) {
		t.tv_nsec -= (long)HD_NS_PER_S;
		t.tv_sec++;
	}
	return t;
}

/*
 * hd_auto_leave: the process exits, perhaps in a signal's handler that has interrupted a
 * call here: no lock is waited for without an end, and a thread that waits for the lock of
 * such a call is left behind.
 */
void hd_auto_leave(struct hd_node *node)
{
	struct timespec end = soon();

	if (!hd_core(node)->worker.runs || pthread_equal(hd_core(node)->worker.thread, pthread_self()))
		return;
	hd_core(node)->worker.stop = true;
	if (!pthread_mutex_timedlock(&hd_core(node)->worker.lock, &end)) {
		hd_core(node)->worker.called = true;
		pthread_cond_signal(&hd_core(node)->worker.wake);
		pthread_mutex_unlock(&hd_core(node)->worker.lock);
	}
	hd_node_signal(node);
	if (!pthread_timedjoin_np(hd_core(node)->worker.thread, NULL, &end))
		hd_core(node)->worker.runs = false;
}

/*
 * hd_auto_poll: a turn of the program's, of which the thread wants to know. One that sleeps armed
 * is made to stand back, so that peers need not wake us.
 */
int hd_auto_poll(struct hd_node *node)
{
	int n;

	if (hd_core(node)->worker.asks & HD_ASK_ROUSE) {
		hd_core(node)->worker.asks &= ~(unsigned)HD_ASK_ROUSE;
		hd_node_signal(node);
	}
	n = hd_turn(node);
	if (hd_core(node)->worker.asks & HD_ASK_WATCHDOG)
		hd_watchdog_polled(node, n);
	return n;
}
