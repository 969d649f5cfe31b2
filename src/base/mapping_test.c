/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/mapping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 5

/* Three pages may be read and written, the fourth only be read, the fifth is not there. */
static char *five_pages(size_t page)
{
	char *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + 3 * page, page, PROT_READ), 0);
	assert_int_equal(munmap(at + 4 * page, page), 0);
	return at;
}

/* Does this kernel tell? */
static bool tells(void)
{
	struct utsname u;
	int major, minor;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%d.%d", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 11);
}

static void knows_what_is_mapped(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = five_pages(page);

	assert_true(hd_is_mapped(at, 4 * page));
	assert_true(hd_is_mapped(at + 4 * page - 1, 1));
	assert_false(hd_is_mapped(at + 4 * page - 1, 2));
	assert_false(hd_is_mapped(at + 4 * page, 1));
	munmap(at, 4 * page);
}

static void knows_what_may_be_written(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = five_pages(page);

	assert_false(hd_is_read_only(at, 3 * page));
	assert_false(hd_is_read_only(at + 1, 0));
	assert_int_equal(hd_is_read_only(at, 3 * page + 1), tells());
	assert_int_equal(hd_is_read_only(at + 3 * page, page), tells());
	munmap(at, 4 * page);
}

static void touches_no_page(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = five_pages(page);
	unsigned char in[PAGES - 1];

	assert_true(hd_is_mapped(at, 4 * page));
	(void)hd_is_read_only(at, 4 * page);
	assert_int_equal(mincore(at, 4 * page, in), 0);
	for (int i = 0; i < PAGES - 1; i++)
		assert_int_equal(in[i] & 1, 0);
	munmap(at, 4 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_is_mapped),
		cmocka_unit_test(knows_what_may_be_written),
		cmocka_unit_test(touches_no_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
