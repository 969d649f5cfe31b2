/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Files that processes have in common by a name. What strangers try is in tests/attack/shared.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define AT_ONCE 8

static char name[64];

static int fresh_name(void **state)
{
	static int n;

	snprintf(name, sizeof(name), "test %d %d", (int)getpid(), n++);
	return 0;
}

static bool is_it(void *arg, int fd, const struct stat *st)
{
	return st->st_size == sizeof(uint64_t) && pread(fd, arg, sizeof(uint64_t), 0) == sizeof(uint64_t);
}

static int make(void *arg)
{
	int fd = memfd_create("shared-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(getrandom(arg, sizeof(uint64_t), 0), sizeof(uint64_t));
	assert_int_equal(write(fd, arg, sizeof(uint64_t)), sizeof(uint64_t));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	return fd;
}

static int open_as(bool must_exist, bool must_not, struct hd_shared *s, uint64_t *value)
{
	const struct hd_shared_attr attr = { .kind = "test",
					     .name = name,
					     .read_only = true,
					     .must_exist = must_exist,
					     .must_not_exist = must_not,
					     .seals = SEALS,
					     .is_it = is_it,
					     .make = make,
					     .arg = value };

	return hd_shared_open(&attr, s);
}

static void it_lives_while_somebody_has_it(void **state)
{
	struct hd_shared a, b;
	uint64_t first, second;

	assert_int_equal(open_as(true, false, &a, &first), -ENOENT);
	assert_int_equal(a.fd, -1);
	assert_int_equal(open_as(false, true, &a, &first), 0);
	assert_int_equal(open_as(false, true, &b, &second), -EEXIST);
	assert_int_equal(open_as(true, false, &b, &second), 0);
	assert_true(first == second);
	hd_shared_close(&a);
	assert_int_equal(open_as(true, false, &a, &second), 0);
	assert_true(first == second);
	hd_shared_close(&a);
	hd_shared_close(&b);
	assert_int_equal(open_as(true, false, &a, &second), -ENOENT);
	assert_int_equal(open_as(false, false, &a, &second), 0);
	assert_true(first != second);
	hd_shared_close(&a);
	hd_shared_close(&a);
}

static void child(int out)
{
	struct hd_shared s;
	uint64_t value = 0;
	int rc = open_as(false, false, &s, &value);

	if (rc || write(out, &value, sizeof(value)) != sizeof(value))
		_exit(1);
	pause(); /* it has it until all have */
}

/* Whoever comes first of many makes it, and all others have the same. */
static void many_at_once(void **state)
{
	uint64_t first, value;
	pid_t pids[AT_ONCE];
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	for (int i = 0; i < AT_ONCE; i++) {
		pids[i] = fork();
		if (!pids[i])
			child(p[1]);
	}
	for (int i = 0; i < AT_ONCE; i++) {
		assert_int_equal(read(p[0], &value, sizeof(value)), sizeof(value));
		if (!i)
			first = value;
		assert_true(value == first);
	}
	for (int i = 0; i < AT_ONCE; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_lives_while_somebody_has_it, fresh_name),
		cmocka_unit_test_setup(many_at_once, fresh_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
