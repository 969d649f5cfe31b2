/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Heralds: they call for what waits in their channel, and leave when they are
 * told to, wherever they are.
 */
#include "asleep.h"
#include "engine/core/core.h"
#include "engine/event/event.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct scene {
	struct hd_node *node;
	struct hd_channel *channel;
	struct hd_channel_item item;
	uint32_t taken;
	struct hd_notifier *notifier;
	sem_t called, go_on; /* go_on: the call returns */
	bool closes;	     /* the call closes its notifier */
	int calls;
	atomic_int returns;
};

static void call(void *arg)
{
	struct scene *s = arg;
	struct hd_channel_item *item;

	if (hd_channel_take(s->channel, &item))
		return;
	s->calls++;
	sem_post(&s->called);
	sem_wait(&s->go_on);
	if (s->closes)
		hd_notifier_close(s->notifier);
	s->returns++;
}

static int setup(void **state)
{
	static struct scene s;
	const struct hd_node_attr attr = { .front = "test", .locked = true, .serve = true };

	s = (struct scene){ 0 };
	*state = &s;
	s.item = (struct hd_channel_item){ .owner = &s, .taken = &s.taken };
	sem_init(&s.called, 0, 0);
	sem_init(&s.go_on, 0, 0);
	assert_int_equal(hd_node_open(&attr, &s.node), 0);
	assert_int_equal(hd_channel_open(s.node, &s.channel), 0);
	assert_int_equal(hd_notifier_open(s.channel, call, &s, &s.notifier), 0);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	hd_channel_close(s->channel);
	hd_node_close(s->node);
	sem_destroy(&s->called);
	sem_destroy(&s->go_on);
	return 0;
}

static bool is_readable(struct scene *s)
{
	struct pollfd p = { .fd = hd_channel_fd(s->channel), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void calls_once_for_each(void **state)
{
	struct scene *s = *state;

	for (int i = 1; i <= 3; i++) {
		hd_channel_post(s->channel, &s->item);
		sem_post(&s->go_on);
		sem_wait(&s->called);
		assert_int_equal(s->calls, i);
	}
	hd_notifier_close(s->notifier);
	assert_int_equal(s->returns, 3);
	assert_int_equal(s->taken, 3);
}

/* Nobody posts anything: it leaves all the same, and nothing is left of how it was woken. */
static void leaves_its_sleep(void **state)
{
	struct scene *s = *state;
	bool sleeps = false;

	while (!sleeps) {
		hd_node_lock(s->node);
		sleeps = hd_core(s->node)->worker.sleepers;
		hd_node_unlock(s->node);
		usleep(1000);
	}
	hd_notifier_close(s->notifier);
	assert_int_equal(s->calls, 0);
	assert_false(is_readable(s));
}

static void leaves_before_it_sleeps(void **state)
{
	struct scene *s = *state;

	hd_notifier_close(s->notifier);
	assert_false(is_readable(s));
}

static void *let_go(void *arg)
{
	struct scene *s = arg;

	let_sleep(getpid()); /* who closes */
	sem_post(&s->go_on);
	return NULL;
}

/* What it has been called for is finished before it is closed; what is not taken stays. */
static void is_closed_when_its_call_has_returned(void **state)
{
	struct scene *s = *state;
	pthread_t thread;

	hd_channel_post(s->channel, &s->item);
	sem_wait(&s->called);
	hd_channel_post(s->channel, &s->item);
	assert_int_equal(pthread_create(&thread, NULL, let_go, s), 0);
	hd_notifier_close(s->notifier);
	assert_int_equal(s->returns, 1);
	assert_int_equal(s->calls, 1);
	assert_true(is_readable(s));
	pthread_join(thread, NULL);
	hd_channel_forget(s->channel, &s->taken, NULL);
	assert_false(is_readable(s));
}

static void may_be_closed_by_its_own_call(void **state)
{
	struct scene *s = *state;

	s->closes = true;
	hd_channel_post(s->channel, &s->item);
	sem_wait(&s->called);
	hd_channel_post(s->channel, &s->item);
	sem_post(&s->go_on);
	while (!s->returns)
		usleep(1000);
	let_others_sleep();
	assert_int_equal(s->calls, 1); /* what came meanwhile is nobody's */
	assert_true(is_readable(s));
	hd_channel_forget(s->channel, &s->taken, NULL);
}

/* ---- its thread ---- */

static void *look_at_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return NULL;
}

/*
 * A write barrier is a handler of SIGSEGV, and what the engine copies into guarded memory
 * meets it in threads of ours.
 */
static void threads_leave_faults_to_their_handlers(void **state)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	static const int others[] = { SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1 };
	pthread_t thread;
	sigset_t mask;

	assert_int_equal(hd_thread_start(&thread, look_at_mask, &mask), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_int_equal(sigismember(&mask, faults[i]), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(sigismember(&mask, others[i]), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_once_for_each, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_its_sleep, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_before_it_sleeps, setup, teardown),
		cmocka_unit_test_setup_teardown(is_closed_when_its_call_has_returned, setup, teardown),
		cmocka_unit_test_setup_teardown(may_be_closed_by_its_own_call, setup, teardown),
		cmocka_unit_test(threads_leave_faults_to_their_handlers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
