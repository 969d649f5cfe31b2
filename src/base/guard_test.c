/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/copy.h"
#include "base/guard.h"
#include "base/iov.h"
#include "base/test_page.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* cmocka and the address sanitizer have handlers of their own, which stand for a program's. */
static void begin(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	hd_guard_open();
}

/* One page that is there, and one behind it that is not, or is only to be read. */
static uint8_t *two_pages(int second)
{
	uint8_t *at =
		mmap(NULL, (size_t)2 * TEST_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 0x5a, TEST_PAGE);
	assert_int_equal(mprotect(at + TEST_PAGE, TEST_PAGE, second), 0);
	return at;
}

static void drop(uint8_t *pages)
{
	munmap(pages, (size_t)2 * TEST_PAGE);
}

/* Every length, with the first byte that is gone at every place of it. */
static void copies_tell_of_what_is_gone(void **state)
{
	static uint8_t ours[2 * TEST_PAGE];
	uint8_t *pages = two_pages(PROT_NONE);

	begin();
	for (int i = HD_GUARDED; i <= hd_copy_best(); i++)
		for (size_t n = 1; n < 700; n += 1 + n / 20)
			for (size_t there = 0; there <= n; there++) {
				int want = there < n ? -EFAULT : 0;
				uint8_t *at = pages + TEST_PAGE - there;

				assert_int_equal(hd_copy_choices[i].wide(ours, at, n), want);
				assert_int_equal(hd_copy_choices[i].wide(at, ours, n), want);
				assert_int_equal(hd_copy_choices[i].past(ours, at, n), want);
				assert_int_equal(hd_copy_choices[i].past(at, ours, n), want);
				assert_int_equal(hd_copy(at, ours, n), want);
			}
	drop(pages);
}

static void small_copies_tell(void **state)
{
	uint8_t ours[HD_COPY_SMALL] = { 0 };
	uint8_t *pages = two_pages(PROT_NONE);

	begin();
	for (size_t n = 1; n <= HD_COPY_SMALL; n++)
		for (size_t there = 0; there <= n; there++) {
			assert_int_equal(hd_copy_small_in(pages + TEST_PAGE - there, ours, n), there == n);
			assert_int_equal(hd_copy_small_out(ours, pages + TEST_PAGE - there, n), there == n);
		}
	drop(pages);
}

static void what_may_be_read_alone_is_not_written(void **state)
{
	uint8_t *pages = two_pages(PROT_READ), ours[600] = { 1 };
	const struct iovec iov = { pages + TEST_PAGE - 8, sizeof(ours) };

	begin();
	assert_int_equal(hd_copy(ours, pages + TEST_PAGE, sizeof(ours)), 0);
	assert_int_equal(hd_copy(pages + TEST_PAGE, ours, sizeof(ours)), -EFAULT);
	assert_int_equal(hd_iov_fill(&iov, 1, ours, sizeof(ours)), -EFAULT);
	assert_int_equal(hd_iov_fill_at(&iov, 1, 4, ours, 8), -EFAULT);
	assert_int_equal(hd_iov_fill_ascending(&iov, 1, 0, ours, 9), -EFAULT);
	assert_int_equal(hd_iov_drain(&iov, 1, ours, sizeof(ours)), 0);
	assert_true(hd_guard_readable(pages, (size_t)2 * TEST_PAGE));
	drop(pages);
}

static void single_accesses_tell(void **state)
{
	uint8_t *pages = two_pages(PROT_NONE);
	uint64_t value = 0, seen = 0x5a5a5a5a5a5a5a5au;
	bool is;

	begin();
	assert_true(hd_guard_load64(&value, pages));
	assert_int_equal(value, seen);
	assert_true(hd_guard_exchange64(pages, &seen, 7, &is));
	assert_true(is);
	assert_true(hd_guard_exchange64(pages, &seen, 8, &is));
	assert_false(is);
	assert_int_equal(seen, 7);
	assert_false(hd_guard_exchange64(pages + TEST_PAGE, &seen, 8, &is));
	assert_false(hd_guard_load16((uint16_t *)&value, pages + TEST_PAGE - 1));
	assert_false(hd_guard_store32(pages + TEST_PAGE - 3, 0));
	assert_false(hd_guard_readable(pages + TEST_PAGE - 1, 2));
	assert_true(hd_guard_readable(pages, TEST_PAGE));
	drop(pages);
}

/* SIGBUS. */
static void a_shortened_file_is_told(void **state)
{
	static uint8_t ours[TEST_PAGE];
	FILE *file = tmpfile();
	uint8_t *at;

	begin();
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), TEST_PAGE), 0);
	at = mmap(NULL, TEST_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(hd_copy(ours, at, TEST_PAGE), 0);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	assert_int_equal(hd_copy(ours, at, TEST_PAGE), -EFAULT);
	assert_false(hd_copy_small_in(at, ours, 8));
	munmap(at, TEST_PAGE);
	fclose(file);
}

/* ---- what becomes of other faults: in children ----------------------------------------------- */

static int child_ends(void (*does)(void *), void *with)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		does(with);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void stores(void *at)
{
	*(volatile uint8_t *)at = 1;
}

static void sends_itself(void *sig)
{
	raise(*(int *)sig);
}

static void other_faults_are_the_programs(void **state)
{
	uint8_t *pages = two_pages(PROT_NONE);
	int sigs[] = { SIGSEGV, SIGBUS }, status;

	begin();
	status = child_ends(stores, pages + TEST_PAGE);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	for (int i = 0; i < 2; i++) {
		status = child_ends(sends_itself, &sigs[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), sigs[i]);
	}
	drop(pages);
}

static void *barrier_at;

/* As write barriers do: let it be written, and remember. */
static void barrier_opens(int sig, siginfo_t *info, void *context)
{
	barrier_at = info->si_addr;
	mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(TEST_PAGE - 1)), TEST_PAGE,
		 PROT_READ | PROT_WRITE);
}

static void writes_behind_a_barrier(void *pages)
{
	const struct sigaction own = { .sa_sigaction = barrier_opens, .sa_flags = SA_SIGINFO };
	uint8_t ours[300] = { 1 };
	uint8_t *at = (uint8_t *)pages + TEST_PAGE;
	const bool over = !hd_guard_is_ours(SIGSEGV);

	sigaction(SIGSEGV, &own, NULL);
	hd_guard_open(); /* over it, unless it came over ours */
	if (hd_guard_is_ours(SIGSEGV) != over || hd_copy(at, ours, sizeof(ours)) || barrier_at != at)
		_exit(1);
	_exit(memcmp(at, ours, sizeof(ours)) ? 2 : 0);
}

static void a_handler_of_the_programs_is_called(void **state)
{
	uint8_t *pages = two_pages(PROT_READ);

	begin();
	assert_int_equal(child_ends(writes_behind_a_barrier, pages), 0);
	drop(pages);
}

/* As those do that print a stack. */
static void ends_it(int sig, siginfo_t *info, void *context)
{
	_exit(info->si_code == SEGV_MAPERR ? 70 : 71);
}

static void ends_it_by_number(int sig)
{
	_exit(sig == SIGSEGV ? 72 : 73);
}

static void copies_what_is_gone(uint8_t *pages)
{
	uint8_t ours[301] = { 1 };

	hd_guard_open();
	if (!hd_guard_is_ours(SIGSEGV) || munmap(pages + TEST_PAGE, TEST_PAGE))
		_exit(1);
	for (size_t n = 1; n < sizeof(ours); n += 23)
		if (hd_copy(pages + TEST_PAGE, ours, n) != -EFAULT ||
		    hd_copy(ours, pages + TEST_PAGE - 1, n + 1) != -EFAULT)
			_exit(2);
	stores(pages + TEST_PAGE);
}

static void copies_over_a_handler(void *pages)
{
	const struct sigaction own = { .sa_sigaction = ends_it, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &own, NULL);
	copies_what_is_gone(pages);
}

static void copies_over_one_by_number(void *pages)
{
	signal(SIGSEGV, ends_it_by_number);
	copies_what_is_gone(pages);
}

/*
 * Before any test of this process has opened it: what is not mapped is no matter for the
 * program's handler, all else is.
 */
static void it_goes_over_the_programs(void **state)
{
	uint8_t *pages = two_pages(PROT_READ);

	assert_int_equal(child_ends(copies_over_a_handler, pages), 70 << 8);
	assert_int_equal(child_ends(copies_over_one_by_number, pages), 72 << 8);
	assert_int_equal(child_ends(writes_behind_a_barrier, pages), 0);
	drop(pages);
}

static void opens_over_one_that_goes(void *unused)
{
	const struct sigaction once = { .sa_sigaction = ends_it, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND };

	sigaction(SIGSEGV, &once, NULL);
	hd_guard_open();
	_exit(hd_guard_is_ours(SIGSEGV));
}

static void opens_over_ignored(void *unused)
{
	signal(SIGBUS, SIG_IGN);
	signal(SIGSEGV, SIG_DFL);
	hd_guard_open();
	_exit(hd_guard_is_ours(SIGBUS) || !hd_guard_is_ours(SIGSEGV));
}

static void some_are_left_alone(void **state)
{
	assert_int_equal(child_ends(opens_over_one_that_goes, NULL), 0);
	assert_int_equal(child_ends(opens_over_ignored, NULL), 0);
}

static void it_is_there(void **state)
{
	begin();
	assert_true(hd_guard_is_ours(SIGSEGV));
	assert_true(hd_guard_is_ours(SIGBUS));
}

static atomic_bool forks_over;

static void *opens_all_the_time(void *unused)
{
	while (!atomic_load(&forks_over))
		hd_guard_open();
	return NULL;
}

/* A child opens it whatever a thread of its parent was doing. */
static void children_open_it(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, opens_all_the_time, NULL), 0);
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			alarm(20);
			hd_guard_open();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&forks_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_goes_over_the_programs),
		cmocka_unit_test(it_is_there),
		cmocka_unit_test(copies_tell_of_what_is_gone),
		cmocka_unit_test(small_copies_tell),
		cmocka_unit_test(what_may_be_read_alone_is_not_written),
		cmocka_unit_test(single_accesses_tell),
		cmocka_unit_test(a_shortened_file_is_told),
		cmocka_unit_test(other_faults_are_the_programs),
		cmocka_unit_test(a_handler_of_the_programs_is_called),
		cmocka_unit_test(some_are_left_alone),
		cmocka_unit_test(children_open_it),
	};

	if (!HD_GUARDED) {
		print_message(
			"1..0 # SKIP build for x86-64 or 64-bit ARM, by clang or gcc 11, without the thread sanitizer\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
