/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The uid that stands for all users whom a user namespace has no number for is nobody's there: each
 * case in a child, which has not asked yet.
 */
#include "base/realm.h"
#include "base/shared.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OVERFLOW 65534u
#define NO_NAMESPACE 77
#define HAS_NAMESPACES "allow user namespaces: sysctl user.max_user_namespaces"

static int in_a_child(void (*does)(void), const char *needs)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		does();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	skip_unless(WEXITSTATUS(status) != NO_NAMESPACE, needs);
	return WEXITSTATUS(status);
}

/* A namespace of our own, in which user `inside` is whom we are; -1: nobody has a number. */
static void enter(int inside)
{
	unsigned uid = geteuid();
	char line[32];
	int fd, len;

	if (unshare(CLONE_NEWUSER))
		_exit(NO_NAMESPACE);
	if (inside < 0)
		return;
	len = snprintf(line, sizeof(line), "%d %u 1", inside, uid);
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, line, (size_t)len) != len)
		_exit(NO_NAMESPACE);
	close(fd);
}

static int nothing(void *arg)
{
	return -ENOMEM;
}

static void has_no_number(void)
{
	const struct hd_shared_attr attr = { .kind = "realm-test", .name = "", .make = nothing };
	struct hd_shared shared;

	enter(-1);
	if (geteuid() != OVERFLOW)
		_exit(NO_NAMESPACE);
	if (hd_realm_own() != HD_REALM_NOBODY)
		_exit(1);
	/* it would have those of all others */
	_exit(hd_shared_open(&attr, &shared) == -EACCES ? 0 : 2);
}

static void is_one_of_all(void)
{
	enter(0);
	if (hd_realm_own() != HD_REALM_USER)
		_exit(1);
	_exit(hd_realm_of_user(OVERFLOW) == HD_REALM_NOBODY ? 0 : 2);
}

static void knows_all(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count;

	if (!f || fscanf(f, "%u %u %u", &inside, &outside, &count) != 3 || inside || count != 4294967295u)
		_exit(NO_NAMESPACE);
	fclose(f);
	_exit(hd_realm_of_user(OVERFLOW) == (uint64_t)HD_REALM_USER + OVERFLOW ? 0 : 1);
}

static void who_has_no_number_is_nobody(void **state)
{
	assert_int_equal(in_a_child(has_no_number, HAS_NAMESPACES), 0);
}

static void those_without_a_number_are_nobody(void **state)
{
	assert_int_equal(in_a_child(is_one_of_all, HAS_NAMESPACES), 0);
}

static void where_all_have_one_it_is_a_user(void **state)
{
	assert_int_equal(in_a_child(knows_all, "run outside a user namespace"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_no_number_is_nobody),
		cmocka_unit_test(those_without_a_number_are_nobody),
		cmocka_unit_test(where_all_have_one_it_is_a_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
