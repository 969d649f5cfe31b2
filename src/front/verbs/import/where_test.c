/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/verbs/import/where.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define LEN 65536u

static char *map(int flags, int fd)
{
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static int process(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* A mapping of what this process has there; NULL: there is none. */
static char *mapped(const void *at, size_t len, bool writable, void **base, size_t *size)
{
	int own = process(getpid());
	char *again = hv_where_map(own, (uintptr_t)at, len, writable, base, size);

	close(own);
	return again;
}

static bool can_be_mapped(const void *at, size_t len, bool writable)
{
	void *base;
	size_t size;

	if (!mapped(at, len, writable, &base, &size))
		return false;
	assert_int_equal(munmap(base, size), 0);
	return true;
}

/* What is written at either of the two is seen at the other. */
static void judge(char *at, size_t offset, size_t len)
{
	void *base;
	size_t size;
	char *again = mapped(at + offset, len, true, &base, &size);

	assert_non_null(again);
	assert_ptr_not_equal(again, at + offset);
	at[offset] = 'a';
	at[offset + len - 1] = 'b';
	assert_int_equal(again[0], 'a');
	assert_int_equal(again[len - 1], 'b');
	again[len / 2] = 'c';
	assert_int_equal(at[offset + len / 2], 'c');
	assert_int_equal(munmap(base, size), 0);
}

static void shared_memory_without_a_name(void **state)
{
	char *at = map(MAP_SHARED | MAP_ANONYMOUS, -1);

	assert_int_equal(hv_where(at + 100, 5000), 0);
	judge(at, 100, 5000);
	munmap(at, LEN);
}

static int file(void)
{
	int fd = memfd_create("where", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LEN), 0);
	return fd;
}

/* By the descriptor, when there is no mapping of it that would do. */
static void a_file(void **state)
{
	int fd = file();
	char *at, *again;
	size_t size;
	void *base;

	at = map(MAP_SHARED, fd);
	assert_int_equal(hv_where(at + 4096, 8192), 0);
	judge(at, 4096, 8192);
	assert_int_equal(mprotect(at, LEN, PROT_READ), 0);
	again = mapped(at + 4096, 8192, true, &base, &size);
	assert_non_null(again);
	again[1] = 'd';
	assert_int_equal(at[4097], 'd');
	munmap(base, size);
	close(fd);
	assert_false(can_be_mapped(at + 4096, 8192, true)); /* nobody has it any more */
	munmap(at, LEN);
}

/* One that is too short, not to be written to, or another user's is not mapped. */
static void a_file_that_will_not_do(void **state)
{
	int fd = file();
	char *at = map(MAP_SHARED, fd);

	assert_int_equal(mprotect(at, LEN, PROT_NONE), 0); /* so that the mapping does not serve */
	assert_true(can_be_mapped(at, LEN, true));
	assert_int_equal(ftruncate(fd, LEN - 4096), 0);
	assert_false(can_be_mapped(at, LEN, true));
	assert_true(can_be_mapped(at, LEN - 4096, true));
	assert_int_equal(ftruncate(fd, LEN), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, 4711, (gid_t)-1), 0);
		assert_false(can_be_mapped(at, LEN, true));
		assert_int_equal(fchown(fd, 0, (gid_t)-1), 0);
	}
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_false(can_be_mapped(at, LEN, true));
	assert_true(can_be_mapped(at, LEN, false));
	munmap(at, LEN);
	close(fd);
}

/* Another process has something else at that address, and that is what is mapped. */
static void what_another_process_has(void **state)
{
	int own = file(), told[2], fd, dir;
	char *at = map(MAP_SHARED, own), *again, byte;
	size_t size;
	void *base;
	pid_t pid;

	at[0] = 'o';
	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = file();
		if (mmap(at, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at) {
			at[0] = 't';
			if (write(told[1], "", 1) == 1)
				pause();
		}
		_exit(1);
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	dir = process(pid);
	again = hv_where_map(dir, (uintptr_t)at, LEN, true, &base, &size);
	assert_non_null(again);
	assert_int_equal(again[0], 't');
	munmap(base, size);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* whoever gets its number */
	assert_null(hv_where_map(dir, (uintptr_t)at, LEN, true, &base, &size));
	close(dir);
	munmap(at, LEN);
	close(own);
}

/* Several mappings side by side are one piece when they are of the file. */
static void pieces(void **state)
{
	char *at = map(MAP_SHARED | MAP_ANONYMOUS, -1);

	assert_int_equal(mprotect(at + 16384, 4096, PROT_READ), 0);
	assert_int_equal(hv_where(at, LEN), 0);
	munmap(at + 20480, 4096);
	assert_int_equal(hv_where(at, 20480), 0);
	assert_int_equal(hv_where(at, LEN), -EOPNOTSUPP);
	munmap(at, LEN);
}

/* An address, or a length, with which sums come round to small numbers. */
static void beyond_any_file(void **state)
{
	char *at = map(MAP_SHARED | MAP_ANONYMOUS, -1);

	assert_false(can_be_mapped(at, SIZE_MAX - 4096, true));
	assert_false(can_be_mapped(at, SIZE_MAX - 1, true));
	assert_false(can_be_mapped(at, SIZE_MAX - (uintptr_t)at, true));
	assert_false(can_be_mapped((void *)(uintptr_t)-4096, 8192, true));
	munmap(at, LEN);
}

static void private_memory(void **state)
{
	char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1), on_stack[64];

	assert_int_equal(hv_where(at, LEN), -EOPNOTSUPP);
	assert_int_equal(hv_where(on_stack, sizeof(on_stack)), -EOPNOTSUPP);
	assert_false(can_be_mapped(at, LEN, false));
	munmap(at, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory_without_a_name),
		cmocka_unit_test(a_file),
		cmocka_unit_test(a_file_that_will_not_do),
		cmocka_unit_test(what_another_process_has),
		cmocka_unit_test(pieces),
		cmocka_unit_test(beyond_any_file),
		cmocka_unit_test(private_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
