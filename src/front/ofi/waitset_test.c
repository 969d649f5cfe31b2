/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who sleeps in fi_wait and fi_cntr_wait: a wait set is not closed under him, and a signal
 * handler that has run wakes him.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "asleep.h"
#include "front/ofi/ofi.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 30000

struct sleeper {
	struct fid_wait *set; /* or */
	struct fid_cntr *cntr;
	int ms, rc;
	pthread_t thread;
	_Atomic pid_t tid;
};

static struct fi_info *info;
static struct fid_fabric *fabric;

static int group_setup(void **state)
{
	struct fi_info *hints = fi_allocinfo();

	hints->domain_attr->threading = FI_THREAD_SAFE;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	fi_freeinfo(hints);
	return hd_fi_fabric_open(info->fabric_attr, &fabric, NULL);
}

static int group_teardown(void **state)
{
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

static void *sleep_there(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	s->rc = s->set ? fi_wait(s->set, s->ms) : fi_cntr_wait(s->cntr, 1, s->ms);
	return NULL;
}

static void sleep_begin(struct sleeper *s)
{
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_there, s), 0);
	while (!atomic_load(&s->tid))
		;
	assert_true(let_sleep(atomic_load(&s->tid)));
}

static int sleep_end(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->rc;
}

static struct fid_wait *set_open(enum fi_wait_obj obj)
{
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fid_wait *set;

	assert_int_equal(fi_wait_open(fabric, &attr, &set), 0);
	return set;
}

/* A set that fi_close has refused is as it was, mutex and condition, too. */
static void it_is_not_closed_under_a_sleeper(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_FD, FI_WAIT_MUTEX_COND };

	for (size_t i = 0; i < sizeof(objs) / sizeof(objs[0]); i++) {
		struct sleeper s = { .set = set_open(objs[i]), .ms = 300 };
		struct fi_mutex_cond before = { 0 }, after = { 0 };
		int fd;

		sleep_begin(&s);
		if (i)
			assert_int_equal(fi_control(&s.set->fid, FI_GETWAIT, &before), 0);
		assert_int_equal(fi_close(&s.set->fid), -FI_EBUSY);
		assert_int_equal(fi_control(&s.set->fid, FI_GETWAIT, i ? (void *)&after : &fd), 0);
		assert_memory_equal(&before, &after, sizeof(after));
		assert_int_equal(sleep_end(&s), -FI_ETIMEDOUT);
		assert_int_equal(fi_close(&s.set->fid), 0);
	}
}

static void on_signal(int number)
{
}

/*
 * As fi_cq_sread and fi_eq_sread, and as libfabric's util code: also where the handler is to
 * restart calls, for poll(2) is not restarted.
 */
static void a_signal_wakes(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old;
	struct fid_domain *domain;
	struct sleeper s[2] = { { .ms = PATIENCE_MS }, { .ms = -1 } };

	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_cntr_open(domain, &(struct fi_cntr_attr){ .wait_obj = FI_WAIT_UNSPEC },
				      &s[0].cntr, NULL),
			 0);
	s[1].set = set_open(FI_WAIT_FD);
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	for (int i = 0; i < 2; i++) {
		sleep_begin(&s[i]);
		assert_int_equal(pthread_kill(s[i].thread, SIGUSR1), 0);
		assert_int_equal(sleep_end(&s[i]), -FI_EINTR);
	}
	assert_int_equal(fi_cntr_add(s[0].cntr, 1), 0);
	assert_int_equal(fi_cntr_wait(s[0].cntr, 1, -1), 0); /* it is whole */
	sigaction(SIGUSR1, &old, NULL);
	assert_int_equal(fi_close(&s[0].cntr->fid), 0);
	assert_int_equal(fi_close(&s[1].set->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_not_closed_under_a_sleeper),
		cmocka_unit_test(a_signal_wakes),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
