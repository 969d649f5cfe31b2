/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Each atomic operation on memory that is gone, or is only to be read, against what it does where
 * all is well. This program is made once for each level of optimization: the accesses are written
 * in assembler that has outputs and may go to another place, which gcc 12 does not always
 * understand.
 */
#include "base/guard.h"
#include "base/test_page.h"
#include "engine/rma/rma.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define MOST 64 /* bytes, two of the longest */

static bool run(uint32_t op, uint32_t type, unsigned char *memory, unsigned char with)
{
	_Alignas(16) unsigned char operands[MOST], compares[MOST], old[MOST];

	memset(operands, with, sizeof(operands));
	memset(compares, 3, sizeof(compares)); /* what is there */
	return hd_atomic_run(&(struct hd_atomic_run){ op, type, 2, memory, operands, compares, old });
}

static void fill(unsigned char *memory)
{
	memset(memory, 3, MOST);
}

/* at: from the start of a page. */
static void one_kind(uint32_t op, uint32_t type, unsigned char *page, size_t at, unsigned char with)
{
	_Alignas(16) unsigned char well[MOST + 16], before[MOST];

	fill(before);
	fill(well + at);
	assert_true(run(op, type, well + at, with));
	assert_int_equal(mprotect(page, TEST_PAGE, PROT_READ | PROT_WRITE), 0);
	fill(page + at);
	assert_int_equal(mprotect(page, TEST_PAGE, PROT_READ), 0);
	/* what it would not change needs no right to be written */
	assert_int_equal(run(op, type, page + at, with), !memcmp(well + at, before, MOST));
	assert_memory_equal(page + at, before, MOST);
	assert_int_equal(mprotect(page, TEST_PAGE, PROT_NONE), 0);
	assert_false(run(op, type, page + at, with));
}

static void each_operation_tells(void **state)
{
	unsigned char *page = mmap(NULL, TEST_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	/*
	 * cmocka and the address sanitizer have handlers of their own, which stand for a program's
	 */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	hd_guard_open();
	for (uint32_t op = 0; op < HD_ATOMIC_OPS; op++)
		for (uint32_t type = 0; type < HD_ATOMIC_TYPES; type++) {
			uint32_t how = op >= HD_ATOMIC_CSWAP ? HD_ATOMIC_COMPARE : HD_ATOMIC_FETCH;

			if (!hd_atomic_can(how, op, type))
				continue;
			for (unsigned char with = 0; with < 8; with++)
				for (size_t at = 0; at < 2; at++)
					one_kind(op, type, page, at, with);
		}
	munmap(page, TEST_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_tells),
	};

	if (!HD_GUARDED) {
		print_message(
			"1..0 # SKIP build for x86-64 or 64-bit ARM, by clang or gcc 11, without the thread sanitizer\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
