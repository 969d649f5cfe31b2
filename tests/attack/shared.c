/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Another user makes names of files that our processes have in common (base/shared.h): to
 * have us take his file, or to keep us from ours. We are root here, whom the kernel lets
 * in to whatever he names.
 */
#include "base/shared.h"
#include "attack/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define NAME "attacked"
#define PREFIX 72 /* of base/shared.c */

static bool is_it(void *arg, int fd, const struct stat *st)
{
	return st->st_size == 8 && pread(fd, arg, 8, 0) == 8;
}

static int memfd_with(const void *text, size_t len)
{
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return write(fd, text, len) == (ssize_t)len && !fcntl(fd, F_ADD_SEALS, SEALS) ? fd : -1;
}

static int make(void *arg)
{
	memcpy(arg, "ours\0\0\0", 8);
	return memfd_with(arg, 8);
}

static int open_ours(bool must_not_exist, struct hd_shared *s, char value[8])
{
	const struct hd_shared_attr attr = { .kind = "test",
					     .name = NAME,
					     .read_only = true,
					     .must_not_exist = must_not_exist,
					     .seals = SEALS,
					     .is_it = is_it,
					     .make = make,
					     .arg = value };

	return hd_shared_open(&attr, s);
}

static void prefix_of(const char *what, char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	memset(text, 0, PREFIX);
	for (const char *at = NAME; *at; at++)
		h = (h ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	snprintf(text, PREFIX, "heddle/%s/test/0/%016" PRIx64 "/", what, h);
}

/* A name that leads to this descriptor of that process. */
static int lead_to(const char *what, pid_t whose, int to, unsigned random)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), len;
	char prefix[PREFIX];

	prefix_of(what, prefix);
	len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s%d/%d/%016x", prefix, whose, to, random);
	return bind(fd, (struct sockaddr *)&un,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len));
}

/*
 * What he leads to: the right text in a file of his own; a pipe, which who opens it may wait for; a
 * file of root's that is none in memory.
 */
static void stranger(int ready)
{
	char turn[PREFIX];
	int files[3], turns, pipes[2], rc;

	if (setgid(STRANGER) || setuid(STRANGER) || prctl(PR_SET_DUMPABLE, 1) || pipe(pipes))
		_exit(1);
	prefix_of("turn", turn);
	turns = memfd_with(turn, PREFIX);
	files[0] = memfd_with("his\0\0\0\0", 8);
	files[1] = pipes[0];
	files[2] = open("/etc/passwd", O_RDONLY);
	rc = turns < 0 || files[0] < 0;
	for (int i = 0; i < 3; i++)
		rc |= lead_to("file", getpid(), files[i], 1 + (unsigned)i);
	rc |= lead_to("turn", getpid(), turns, 1);
	rc |= lead_to("file", getpid(), open("/dev/null", O_PATH), 4);
	if (rc || write(ready, "", 1) != 1)
		_exit(1);
	pause();
}

/*
 * What is our own process's leads to itself by his names: it seems to want what it has, and
 * to have been there before.
 */
static void mirror(int ready)
{
	int rc = setgid(STRANGER) || setuid(STRANGER);

	for (int fd = 3; fd < 40; fd++)
		rc |= lead_to("turn", getppid(), fd, 0);
	rc |= prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (rc || write(ready, "", 1) != 1)
		_exit(1);
	pause();
}

static pid_t stranger_begin(void (*stranger_fn)(int ready))
{
	char byte;
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (!pid)
		stranger_fn(p[1]);
	close(p[1]);
	assert_int_equal(read(p[0], &byte, 1), 1);
	close(p[0]);
	return pid;
}

static void stranger_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void his_file_is_not_taken(void **state)
{
	struct hd_shared a, b;
	char value[8];
	pid_t pid;

	attack_needs_root();
	pid = stranger_begin(stranger);
	assert_int_equal(open_ours(true, &a, value), 0);
	assert_string_equal(value, "ours");
	memset(value, 0, sizeof(value));
	assert_int_equal(open_ours(false, &b, value), 0);
	assert_string_equal(value, "ours");
	hd_shared_close(&a);
	hd_shared_close(&b);
	stranger_end(pid);
}

static void nobody_is_kept_from_his_turn(void **state)
{
	struct hd_shared a;
	char value[8];
	pid_t pid;

	attack_needs_root();
	pid = stranger_begin(mirror);
	assert_int_equal(open_ours(true, &a, value), 0);
	assert_string_equal(value, "ours");
	hd_shared_close(&a);
	stranger_end(pid);
}

/* He opens the file of that name himself: he finds none, and what he has is of his own. */
static void ours_is_not_given(void **state)
{
	struct hd_shared a, b;
	char value[8];
	int status;
	pid_t pid;

	attack_needs_root();
	assert_int_equal(open_ours(true, &a, value), 0);
	pid = fork();
	if (!pid) {
		hd_shared_close(&a);
		if (setgid(STRANGER) || setuid(STRANGER))
			_exit(2);
		_exit(open_ours(true, &b, value) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	hd_shared_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(his_file_is_not_taken),
		cmocka_unit_test(nobody_is_kept_from_his_turn),
		cmocka_unit_test(ours_is_not_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
