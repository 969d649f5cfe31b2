/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/proc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* A child that has all that we have open, until it is killed. */
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void who_has_a_socket(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	uint64_t inode = inode_of(fd);
	pid_t pid;

	assert_int_equal(hd_proc_of_socket(inode), getpid());
	pid = child(); /* which has it, too, but is younger; or as old, to the tick */
	assert_true(hd_proc_of_socket(inode) == getpid() || hd_proc_of_socket(inode) == pid);
	close(fd);
	assert_int_equal(hd_proc_of_socket(inode), pid);
	end(pid);
	assert_int_equal(hd_proc_of_socket(inode), 0);
}

static void what_a_process_is(void **state)
{
	uint64_t own = 0, born = 0;
	siginfo_t info;
	char is = 0;
	pid_t pid;

	assert_true(hd_proc_stat(getpid(), &is, &own));
	assert_int_equal(is, 'R');
	assert_true(own > 0);
	prctl(PR_SET_NAME, "a ) 1 2 3 (b");
	assert_true(hd_proc_stat(getpid(), &is, &born));
	assert_int_equal(born, own);
	pid = child();
	assert_true(hd_proc_stat(pid, &is, &born));
	assert_true(born >= own);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(hd_proc_stat(pid, &is, &born));
	assert_int_equal(is, 'Z');
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(hd_proc_stat(pid, &is, &born));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_a_socket),
		cmocka_unit_test(what_a_process_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
