/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The lock excludes whoever has the favour, whoever takes it away, and where the
 * kernel refuses the barrier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/biased.h"
#include "base/clock.h"
#include "forbid.h"

#define THREADS 4
#define OFTEN 1000000 /* in a row: more than any lock asks for */

static struct hd_biased lock;
static uint64_t pair[2]; /* equal whenever the lock is free */

static void take_and_give(int times)
{
	for (int i = 0; i < times; i++) {
		hd_biased_take(&lock);
		pair[0]++;
		pair[1]++;
		hd_biased_give(&lock);
	}
}

static struct hd_bias *favourite(void)
{
	return atomic_load(&lock.favourite);
}

static bool is_mine(void)
{
	return favourite()->thread == hd_thread_self();
}

static void *run(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	pthread_join(thread, &result);
	return result;
}

static bool works(void)
{
	bool preferred;

	hd_biased_init(&lock);
	pair[0] = pair[1] = 0;
	hd_biased_take(&lock);
	preferred = hd_biased_prefer(&lock);
	hd_biased_give(&lock);
	return preferred;
}

static void *take_once(void *arg)
{
	take_and_give(1);
	return NULL;
}

static void whoever_takes_it_often_is_the_favourite(void **state)
{
	if (!works()) { /* a kernel without the barrier: the rest is about that */
		hd_biased_fini(&lock);
		return;
	}
	assert_true(is_mine());
	run(take_once, NULL);
	assert_ptr_equal(favourite(), &lock.nobody);
	take_and_give(1);
	assert_false(is_mine());
	take_and_give(OFTEN);
	assert_true(is_mine());
	assert_int_equal(pair[0], OFTEN + 2);
	hd_biased_fini(&lock);
}

static void assertions_see_whether_it_is_taken(void **state)
{
	works();
	assert_false(hd_biased_is_taken(&lock));
	hd_biased_take(&lock);
	assert_true(hd_biased_is_taken(&lock));
	hd_biased_give(&lock);
	run(take_once, NULL);
	assert_false(hd_biased_is_taken(&lock));
	hd_biased_take(&lock);
	assert_true(hd_biased_is_taken(&lock));
	hd_biased_give(&lock);
	hd_biased_fini(&lock);
}

static atomic_int at;

/* arg: by hd_biased_take_new */
static void *take_and_tell(void *arg)
{
	bool taken = true;

	atomic_store(&at, 1);
	if (arg)
		taken = hd_biased_take_new(&lock);
	else
		hd_biased_take(&lock);
	atomic_store(&at, taken ? 2 : 3);
	hd_biased_give(&lock);
	return NULL;
}

/* Long enough for whoever waits to fall asleep. */
static void a_favourite_that_has_it_keeps_it(void **state)
{
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		works();
		atomic_store(&at, 0);
		hd_biased_take(&lock);
		assert_int_equal(pthread_create(&thread, NULL, take_and_tell, i % 4 < 2 ? NULL : &lock), 0);
		while (!atomic_load(&at))
			sched_yield();
		usleep(i % 2 ? 5000 : 50);
		assert_int_equal(atomic_load(&at), 1);
		hd_biased_give(&lock);
		pthread_join(thread, NULL);
		assert_int_equal(atomic_load(&at), 2);
		hd_biased_fini(&lock);
	}
}

static void told_once_and_not_twice(void)
{
	assert_true(hd_biased_take_new(&lock));
	assert_true(hd_biased_is_taken(&lock));
	assert_false(hd_biased_take_new(&lock));
	hd_biased_give(&lock);
	assert_false(hd_biased_is_taken(&lock));
}

static void who_has_it_is_told(void **state)
{
	pthread_t thread;
	bool preferred = works();

	told_once_and_not_twice();
	run(take_once, NULL);
	told_once_and_not_twice();
	hd_biased_take(&lock);
	assert_false(hd_biased_take_new(&lock));
	if (preferred)
		assert_true(hd_biased_prefer(&lock));
	atomic_store(&at, 0);
	assert_int_equal(pthread_create(&thread, NULL, take_and_tell, NULL), 0);
	while (!atomic_load(&at) || favourite() != &lock.nobody)
		sched_yield();
	assert_false(hd_biased_take_new(&lock)); /* though it is no favourite any more */
	hd_biased_give(&lock);
	pthread_join(thread, NULL);
	told_once_and_not_twice();
	hd_biased_fini(&lock);
}

/* Turns of different length, and the favour goes to and fro. */
static void *hammer(void *arg)
{
	uintptr_t step = (uintptr_t)arg, bad = 0;

	for (unsigned i = 0; i < 20000; i++) {
		hd_biased_take(&lock);
		bad += pair[0] != pair[1];
		pair[0]++;
		if (i % (97 * step) == 0)
			hd_biased_prefer(&lock);
		if (i % (61 * step) == 0)
			sched_yield();
		pair[1]++;
		hd_biased_give(&lock);
		if (i % (30 * step) == 0)
			sched_yield();
	}
	return (void *)bad;
}

static void it_excludes(void **state)
{
	pthread_t thread[THREADS];
	void *bad;

	works();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(pair[0], THREADS * 20000);
	assert_int_equal(pair[1], pair[0]);
	hd_biased_fini(&lock);
}

static atomic_bool over;

/* The favourite runs on and on, and is preferred again at once. */
static void *race(void *arg)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		hd_biased_take(&lock);
		hd_biased_prefer(&lock);
		pair[0]++;
		pair[1]++;
		hd_biased_give(&lock);
		take_and_give(100);
	}
	return NULL;
}

/*
 * Another one takes its turn again and again, and looks for a while whether it is alone: the race
 * that the barrier decides.
 */
static void who_takes_the_favour_away_is_alone(void **state)
{
	pthread_t thread;
	uint64_t bad = 0, end = hd_now_ns() + 300 * HD_NS_PER_MS;
	bool favours = works();

	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, race, NULL), 0);
	for (int i = 0; i < 20000 && hd_now_ns() < end; i++) {
		const volatile uint64_t *now = pair;
		uint64_t was;

		while (favours && (favourite() == &lock.nobody || is_mine()) && hd_now_ns() < end)
			sched_yield();
		for (volatile int pause = i % 256; pause; pause--)
			;
		hd_biased_take(&lock);
		was = now[0];
		for (int look = 0; look < 200; look++)
			bad += now[0] != was || now[1] != was;
		hd_biased_give(&lock);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	assert_int_equal(bad, 0);
	assert_int_equal(pair[1], pair[0]);
	hd_biased_fini(&lock);
}

static pthread_barrier_t all_here;

static void *prefer_and_stay(void *arg)
{
	bool was;

	hd_biased_take(&lock);
	was = hd_biased_prefer(&lock);
	hd_biased_give(&lock);
	/* a thread that has gone may leave its seat to the next one */
	pthread_barrier_wait(&all_here);
	return was ? &lock : NULL;
}

static void there_are_so_many_seats(void **state)
{
	pthread_t thread[2 * HD_BIAS_SEATS];
	void *was;
	int count = 0;

	works();
	pthread_barrier_init(&all_here, NULL, 2 * HD_BIAS_SEATS);
	for (int i = 0; i < 2 * HD_BIAS_SEATS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, prefer_and_stay, NULL), 0);
	for (int i = 0; i < 2 * HD_BIAS_SEATS; i++) {
		pthread_join(thread[i], &was);
		count += was != NULL;
	}
	pthread_barrier_destroy(&all_here);
	assert_true(count < HD_BIAS_SEATS); /* the first one has been ours */
	take_and_give(10);
	assert_int_equal(pair[0], 10);
	hd_biased_fini(&lock);
}

static void *hold(void *arg)
{
	hd_biased_take(&lock);
	hd_biased_prefer(&lock);
	atomic_store(&at, 1);
	while (atomic_load(&at) != 2)
		usleep(100);
	hd_biased_give(&lock);
	return NULL;
}

static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(60); /* never a hang */
		_exit(fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int begin_anew(void)
{
	hd_biased_init(&lock);
	take_and_give(1000);
	return hd_biased_is_taken(&lock);
}

static void a_forked_child_begins_anew(void **state)
{
	pthread_t thread;

	works();
	atomic_store(&at, 0);
	assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
	while (!atomic_load(&at))
		usleep(100);
	assert_int_equal(in_child(begin_anew), 0);
	atomic_store(&at, 2);
	pthread_join(thread, NULL);
	hd_biased_fini(&lock);
}

static void *disturb_some(void *arg)
{
	take_and_give(1000);
	return NULL;
}

/*
 * Beside another thread it excludes, and there is no favourite after that,
 * however often it is taken.
 */
static int only_a_mutex(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, disturb_some, NULL))
		return 1;
	take_and_give(1000);
	pthread_join(thread, NULL);
	take_and_give(OFTEN);
	return favourite() != &lock.nobody || pair[0] != OFTEN + 2000 || pair[1] != pair[0];
}

static int without_barrier(void)
{
	if (!forbid(SYS_membarrier, EPERM))
		return 0;
	return works() || only_a_mutex();
}

static int loses_barrier(void)
{
	bool worked = works();

	if (!forbid(SYS_membarrier, EPERM)) /* of the threads that come */
		return 0;
	return is_mine() != worked || only_a_mutex();
}

static void where_the_barrier_is_refused_it_is_a_mutex(void **state)
{
	assert_int_equal(in_child(without_barrier), 0);
}

static void so_it_is_where_the_barrier_is_lost(void **state)
{
	assert_int_equal(in_child(loses_barrier), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_takes_it_often_is_the_favourite),
		cmocka_unit_test(assertions_see_whether_it_is_taken),
		cmocka_unit_test(a_favourite_that_has_it_keeps_it),
		cmocka_unit_test(who_has_it_is_told),
		cmocka_unit_test(it_excludes),
		cmocka_unit_test(who_takes_the_favour_away_is_alone),
		cmocka_unit_test(there_are_so_many_seats),
		cmocka_unit_test(a_forked_child_begins_anew),
		cmocka_unit_test(where_the_barrier_is_refused_it_is_a_mutex),
		cmocka_unit_test(so_it_is_where_the_barrier_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
