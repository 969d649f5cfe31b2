/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program forks while its other threads open, use and close things: each moment finds another
 * lock held. The child opens a domain of its own, and must not hang. A child does not assert: its
 * exit status tells the line that went wrong, or 0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/ofi.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored \
	"-Wdeprecated-declarations" /* newer headers warn of wait sets, which programs still use */

#define FORKS 100
#define MUST(what) \
	do { \
		if (!(what)) \
			return __LINE__ & 0xff; \
	} while (0)

static struct fid_fabric *fabric;
static struct fi_info *info;
static struct fid_eq *shared; /* of all threads, and of the child */
static atomic_bool over;
static _Atomic int wrong, rounds;

/* A domain with a queue in a wait set, and events: opened, used, closed. */
static int use_all(void)
{
	struct fi_eq_attr events = { .flags = FI_WRITE };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_SET };
	struct fi_eq_entry entry = { 0 };
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	uint32_t event;

	MUST(fi_wait_open(fabric, NULL, &attr.wait_set) == 0);
	MUST(fi_eq_open(fabric, &events, &eq, NULL) == 0);
	MUST(fi_domain(fabric, info, &domain, NULL) == 0);
	MUST(fi_cq_open(domain, &attr, &cq, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		MUST(fi_wait(attr.wait_set, 0) == -FI_ETIMEDOUT);
		MUST(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0) == sizeof(entry));
		MUST(fi_eq_read(eq, &event, &entry, sizeof(entry), 0) == sizeof(entry));
		MUST(hd_fi_opened_domain() != NULL);
	}
	MUST(fi_close(&cq->fid) == 0);
	MUST(fi_close(&domain->fid) == 0);
	MUST(fi_close(&eq->fid) == 0);
	MUST(fi_close(&attr.wait_set->fid) == 0);
	return 0;
}

/* The locks of what belongs to no domain, held nearly always. */
static int use_shared(void)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	MUST(hd_fi_opened_fabric() == fabric);
	MUST(fi_eq_write(shared, FI_NOTIFY, &entry, sizeof(entry), 0) == sizeof(entry));
	MUST(fi_eq_read(shared, &event, &entry, sizeof(entry), 0) == sizeof(entry));
	return 0;
}

static void *hammer_shared(void *arg)
{
	while (!atomic_load(&over))
		if (use_shared())
			atomic_fetch_add(&wrong, 1);
	return NULL;
}

static int use_in_child(void)
{
	int line = 0;

	for (int i = 0; !line && i < 100; i++)
		line = use_shared();
	return line ? line : use_all();
}

static void *hammer(void *arg)
{
	while (!atomic_load(&over)) {
		if (use_all())
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void child_opens_a_domain_whoever_held_what(void **state)
{
	struct fi_info *hints;
	struct fi_eq_attr events = { .flags = FI_WRITE };
	pthread_t thread[4];
	int status, bad = 0;

	hints = fi_allocinfo();
	hints->caps = FI_MSG | FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	fi_freeinfo(hints);
	assert_int_equal(hd_fi_fabric_open(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_eq_open(fabric, &events, &shared, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, i ? hammer_shared : hammer, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			alarm(20);
			_exit(use_in_child());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			print_message("# child %d: status %x\n", i, (unsigned)status);
		bad += status != 0;
	}
	atomic_store(&over, true);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(fi_close(&shared->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	assert_int_equal(bad, 0);
	assert_int_equal(wrong, 0);
	assert_true(rounds > 0);
}

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(child_opens_a_domain_whoever_held_what) };

	if (SANITIZED) { /* cmocka's own skip() is no TAP that all readers take for one */
		puts("1..0 # SKIP build without a sanitizer: its allocator has locks that are not seen to at a fork");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
