/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/witness.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct hd_witness *shared(void)
{
	struct hd_witness *w = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(w, MAP_FAILED);
	return w;
}

static bool somebody_can(void)
{
	struct hd_witness *w = shared();
	bool can;

	hd_witness_open(w);
	can = hd_witness_testifies(w);
	(void)hd_witness_close(w);
	munmap(w, 4096);
	return can;
}

static void nobody_testifies_before_and_after(void **state)
{
	struct hd_witness *w = shared();

	assert_false(hd_witness_testifies(w));
	hd_witness_open(w);
	assert_true(hd_witness_testifies(w));
	assert_true(hd_witness_close(w));
	assert_false(hd_witness_testifies(w));
	assert_true(hd_witness_close(w));
	munmap(w, 4096);
}

/*
 * A process that bears witness, and then waits for a signal, or becomes
 * another program, once it may.
 */
static pid_t witness_elsewhere(struct hd_witness *w, bool execs, int *go)
{
	int ready[2], may[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(may, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(may[1]);
		hd_witness_open(w);
		if (write(ready[1], "", 1) != 1 || read(may[0], &byte, 1) < 0)
			_exit(1);
		if (execs)
			execlp("cat", "cat", NULL);
		pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(hd_witness_testifies(w));
	close(ready[0]);
	close(ready[1]);
	close(may[0]);
	*go = may[1];
	return pid;
}

/* The program that it becomes answers: by then the word is marked. */
static void execve_marks_it(void **state)
{
	struct hd_witness *w = shared();
	int to[2], from[2], out = dup(STDOUT_FILENO), in = dup(STDIN_FILENO), go;
	char byte = 'x';
	pid_t pid;

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	dup2(to[0], STDIN_FILENO);
	dup2(from[1], STDOUT_FILENO);
	pid = witness_elsewhere(w, true, &go);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	close(go);
	assert_int_equal(write(to[1], &byte, 1), 1);
	assert_int_equal(read(from[0], &byte, 1), 1);
	assert_false(hd_witness_testifies(w));
	close(to[1]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(to[0]);
	close(from[0]);
	close(from[1]);
	close(in);
	close(out);
	munmap(w, 4096);
}

static void death_marks_it(void **state)
{
	struct hd_witness *w = shared();
	int go;
	pid_t pid = witness_elsewhere(w, false, &go);

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(hd_witness_testifies(w));
	close(go);
	munmap(w, 4096);
}

static void *opens(void *w)
{
	hd_witness_open(w);
	return NULL;
}

static void who_goes_on_takes_over(void **state)
{
	struct hd_witness *w = shared();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, opens, w), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* a thread is joined a moment before the kernel is done with it */
	while (hd_witness_testifies(w))
		usleep(100);
	hd_witness_renew(w);
	assert_true(hd_witness_testifies(w));
	hd_witness_renew(w);
	assert_true(hd_witness_close(w));
	munmap(w, 4096);
}

struct closing {
	struct hd_witness *w;
	bool closed;
};

static void *closes(void *arg)
{
	struct closing *c = arg;

	c->closed = hd_witness_close(c->w);
	return NULL;
}

/* It stays in the list of the thread that took it; that may go on to use such locks of its own. */
static void another_thread_cannot_end_it(void **state)
{
	struct closing c = { .w = shared() };
	pthread_t thread;

	hd_witness_open(c.w);
	assert_int_equal(pthread_create(&thread, NULL, closes, &c), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(c.closed);
	assert_true(hd_witness_testifies(c.w));
	assert_true(hd_witness_close(c.w));
	munmap(c.w, 4096);
}

/* The others are there again when one has ended. */
static void there_are_not_too_many(void **state)
{
	enum {
		MANY = 64
	};
	struct hd_witness *w[MANY];
	int most = 0;

	for (int round = 0; round < 2; round++) {
		int n = 0;

		for (int i = 0; i < MANY; i++) {
			w[i] = shared();
			hd_witness_open(w[i]);
			n += hd_witness_testifies(w[i]);
		}
		assert_in_range(n, 16, MANY - 1);
		if (round)
			assert_int_equal(n, most);
		most = n;
		for (int i = 0; i < MANY; i++) {
			assert_true(hd_witness_close(w[i]));
			munmap(w[i], 4096);
		}
	}
}

static void a_forked_child_is_no_witness(void **state)
{
	struct hd_witness *w = shared();
	pid_t pid;

	hd_witness_open(w);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(hd_witness_testifies(w));
	assert_true(hd_witness_close(w));
	munmap(w, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_testifies_before_and_after),
		cmocka_unit_test(execve_marks_it),
		cmocka_unit_test(death_marks_it),
		cmocka_unit_test(who_goes_on_takes_over),
		cmocka_unit_test(another_thread_cannot_end_it),
		cmocka_unit_test(there_are_not_too_many),
		cmocka_unit_test(a_forked_child_is_no_witness),
	};

	if (!somebody_can()) {
		puts("1..0 # SKIP run on a kernel with get_robust_list(2), and not in an emulator");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
