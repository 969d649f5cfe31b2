/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Threads hold these locks nearly always; a child that is forked meanwhile must find them free, and
 * what they protect whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"

#define FORKS 200

HD_LOCK_DEFINE(leaf);

static struct hd_lock outer;
static pthread_mutex_t middle = PTHREAD_MUTEX_INITIALIZER; /* of another kind, between the two */
static int pair[2];					   /* equal whenever leaf is free */
static int half[2];					   /* and middle */
static atomic_bool over;

static void *hammer(void *arg)
{
	while (!atomic_load(&over)) {
		struct hd_lock passing;

		hd_lock_take(&outer);
		pthread_mutex_lock(&middle);
		half[0]++;
		hd_lock_take(&leaf);
		pair[0]++;
		for (volatile int i = 0; i < 200; i++)
			;
		pair[1]++;
		hd_lock_give(&leaf);
		half[1]++;
		pthread_mutex_unlock(&middle);
		hd_lock_give(&outer);
		hd_lock_init(&passing, HD_LOCK_LEAF);
		hd_lock_fini(&passing);
	}
	return NULL;
}

static void take_middle(void)
{
	pthread_mutex_lock(&middle);
}

static void give_middle(void)
{
	pthread_mutex_unlock(&middle);
}

static void child(void)
{
	struct hd_lock mine;
	bool whole;

	alarm(20); /* never a hang */
	hd_lock_take(&outer);
	pthread_mutex_lock(&middle);
	hd_lock_take(&leaf);
	whole = pair[0] == pair[1] && half[0] == half[1];
	hd_lock_give(&leaf);
	pthread_mutex_unlock(&middle);
	hd_lock_give(&outer);
	hd_lock_init(&mine, HD_LOCK_OUTER);
	hd_lock_fini(&mine);
	_exit(whole ? 0 : 1);
}

static void child_finds_them_free_and_things_whole(void **state)
{
	static const struct hd_lock_between between = { take_middle, give_middle, give_middle };
	pthread_t thread[2];
	int status, bad = 0;

	hd_lock_init(&outer, HD_LOCK_OUTER);
	hd_lock_between(&between);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			child();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		bad += status != 0;
	}
	atomic_store(&over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	hd_lock_fini(&outer);
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(child_finds_them_free_and_things_whole) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
