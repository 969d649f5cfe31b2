/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sleeping in poll(2) on descriptors, some of which a node's own progress makes readable (those of
 * channels and event queues), while whatever concerns the node wakes the sleeper for that progress.
 */
#include "base/busy_poll.h"
#include "base/clock.h"
#include "engine/core/core.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#define BESIDE_MS 2 /* how often a sleeper looks whether the other thread still polls */

/* ---- poll(2) as it is needed here ------------------------------------------------------------ */

/*
 * read(2), in whose place we poll, goes on after a signal whose handler was set up with
 * SA_RESTART; poll(2) never does. Which signal it was is not told, so this asks whether there is
 * any handler that is to interrupt.
 */
bool hd_is_interrupted(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
	struct sigaction sa;
	sigset_t asked;

	sigfillset(&asked);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		/* those end a program, whatever its handlers are set up with */
		sigdelset(&asked, crashes[i]);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&asked, i) == 1 && sigaction(i, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL &&
		    sa.sa_handler != SIG_IGN && !(sa.sa_flags & SA_RESTART))
			return true;
	return false;
}

void hd_busy_polled(struct hd_busy_poll *poll, const struct hd_busy_polling *wait)
{
	bool habit = poll->ticks;

	hd_busy_poll_over(poll, wait, hd_ticks());
	if (!habit && poll->ticks && hd_is_interrupted())
		hd_busy_poll_leave(poll);
}

int hd_poll_openly(const struct hd_poll *on)
{
	int state, rc = 0;

	pthread_setcancelstate(on->cancel, &state);
	if (poll(on->fds, on->count, on->ms) < 0 && errno == EINTR && (on->any_signal || hd_is_interrupted()))
		rc = -EINTR;
	pthread_setcancelstate(state, NULL);
	return rc;
}

void hd_sleep_on(const struct hd_poll *on, void (*on_cancel)(void *arg), void *arg, int *rc)
{
	pthread_cleanup_push(on_cancel, arg);
	*rc = hd_poll_openly(on);
	pthread_cleanup_pop(0);
}

int hd_block_turn(struct hd_node *node, bool beside)
{
	return beside ? hd_turn(node) : hd_node_poll(node);
}

/* ---- sleeping for all of the node ------------------------------------------------------------ */

/* By one more, or one less. With the lock. */
static void block_asleep(const struct hd_block *how, int by)
{
	if (!how->at)
		return;
	how->at->threads += by;
	if (by > 0)
		how->at->since = how->since;
}

/* With the lock. */
static void block_wake_up(struct hd_node *node)
{
	hd_sleep_disarm(node);
	hd_node_hurry(node);
	if (--hd_core(node)->worker.sleepers)
		return;
	if (hd_core(node)->worker.besides)
		hd_auto_notify(node);
	hd_auto_back(node);
}

static void block_cancelled(void *arg)
{
	const struct hd_block *how = arg;
	struct hd_node *node = how->node;

	hd_node_lock(node);
	block_asleep(how, -1);
	block_wake_up(node);
	hd_node_unlock(node);
}

static int block_sleep(struct hd_node *node, struct hd_block *how)
{
	struct hd_poll all = how->on;
	int rc = 0;

	all.fds[all.count++] = (struct pollfd){ .fd = hd_core(node)->epoll_fd, .events = POLLIN };
	hd_core(node)->worker.sleepers++;
	if (hd_sleep_arm(node) == 0) {
		int ms = hd_timer_next_ms(node);

		if (all.ms < 0 || (ms >= 0 && ms < all.ms))
			all.ms = ms;
		hd_count(node, HD_COUNT_SLEEPS);
		hd_node_unlock(node);
		hd_sleep_on(&all, block_cancelled, how, &rc);
		hd_node_lock(node);
	}
	block_wake_up(node);
	return rc;
}

static void beside_cancelled(void *arg)
{
	const struct hd_block *how = arg;
	struct hd_node *node = how->node;

	hd_node_lock(node);
	block_asleep(how, -1);
	hd_core(node)->worker.besides--;
	hd_node_unlock(node);
}

/*
 * What another thread of the program does for the node is enough, and no peer has to wake us for
 * it. It may go away without a word; so the node's thread is told that somebody sleeps.
 */
static int block_beside(struct hd_node *node, struct hd_block *how)
{
	struct hd_poll on = how->on;
	int rc;

	if (on.ms < 0 || on.ms > BESIDE_MS)
		on.ms = BESIDE_MS;
	if (!how->told)
		hd_auto_notify(node);
	how->told = true;
	hd_core(node)->worker.besides++;
	hd_node_unlock(node);
	hd_sleep_on(&on, beside_cancelled, how, &rc);
	hd_node_lock(node);
	hd_core(node)->worker.besides--;
	return rc;
}

int hd_block(struct hd_node *node, struct hd_block *how)
{
	int rc;

	hd_assert_locked(node);
	how->node = node;
	block_asleep(how, 1);
	rc = how->beside ? block_beside(node, how) : block_sleep(node, how);
	block_asleep(how, -1);
	return rc;
}

/* ---- descriptors of the program's ------------------------------------------------------------ */

/* How many are ready, or -errno; those that did not wake us are looked at as well. */
static int block_ready(struct pollfd *fds, unsigned long count)
{
	int n = poll(fds, count, 0);

	return n >= 0 ? n : errno == EINTR ? 0 : -errno;
}

/*
 * With the lock: one turn of progress, and a sleep where it brings nothing. Above 0: *n are ready,
 * or time is up; 0: again.
 */
static int block_turn(struct hd_node *node, struct hd_block *how, uint64_t due, uint64_t *turns, int *n)
{
	bool moved;

	how->beside = hd_core(node)->program_turns != *turns;
	moved = hd_block_turn(node, how->beside) > 0;
	*turns = hd_core(node)->program_turns;
	hd_node_unlock(node);
	*n = block_ready(how->on.fds, how->on.count);
	hd_node_lock(node);
	how->on.ms = hd_left_ms(due);
	if (*n || !how->on.ms)
		return 1;
	return moved && !how->beside ? 0 : hd_block(node, how);
}

int hd_node_sleep(struct hd_node *node, struct pollfd *fds, unsigned long count, int timeout_ms,
		  bool any_signal)
{
	struct hd_block how = { .on = { .fds = fds, .count = count, .any_signal = any_signal } };
	uint64_t due = hd_deadline_ns(timeout_ms), turns;
	int rc = 0, n = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &how.on.cancel);
	hd_node_lock(node);
	turns = hd_core(node)->program_turns;
	while (!rc)
		rc = hd_core(node)->gate.dead ? -ENOTRECOVERABLE : block_turn(node, &how, due, &turns, &n);
	hd_node_unlock(node);
	pthread_setcancelstate(how.on.cancel, NULL);
	return rc < 0 ? rc : n;
}
