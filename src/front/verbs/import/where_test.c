/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/verbs/import/where.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN 65536u

static char *map(int flags, int fd)
{
	char *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

/* What is written at either of the two is seen at the other. */
static void judge(char *at, const struct hv_where *w, size_t offset, size_t len)
{
	void *base;
	size_t size;
	char *again = hv_where_map(w, len, true, &base, &size);

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
	struct hv_where w;

	assert_int_equal(hv_where(at + 100, 5000, &w), 0);
	assert_int_equal(w.pid, getpid());
	judge(at, &w, 100, 5000);
	munmap(at, LEN);
}

/* By the descriptor, when there is no mapping of it that would do. */
static void a_file(void **state)
{
	int fd = memfd_create("where", MFD_CLOEXEC);
	struct hv_where w;
	char *at, *again;
	size_t size;
	void *base;

	assert_int_equal(ftruncate(fd, LEN), 0);
	at = map(MAP_SHARED, fd);
	assert_int_equal(hv_where(at + 4096, 8192, &w), 0);
	assert_int_equal(w.offset, 4096);
	judge(at, &w, 4096, 8192);
	assert_int_equal(mprotect(at, LEN, PROT_READ), 0);
	again = hv_where_map(&w, 8192, true, &base, &size);
	assert_non_null(again);
	again[1] = 'd';
	assert_int_equal(at[4097], 'd');
	munmap(base, size);
	munmap(at, LEN);
	close(fd);
	assert_null(hv_where_map(&w, 8192, true, &base, &size)); /* nobody has it any more */
}

/* Several mappings side by side are one piece when they are of the file. */
static void pieces(void **state)
{
	char *at = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	struct hv_where w;

	assert_int_equal(mprotect(at + 16384, 4096, PROT_READ), 0);
	assert_int_equal(hv_where(at, LEN, &w), 0);
	munmap(at + 20480, 4096);
	assert_int_equal(hv_where(at, 20480, &w), 0);
	assert_int_equal(hv_where(at, LEN, &w), -EOPNOTSUPP);
	munmap(at, LEN);
}

/* An offset, or a length, with which sums come round to small numbers: not what lies in front of a mapping of ours. */
static void beyond_any_file(void **state)
{
	char *first = map(MAP_SHARED | MAP_ANONYMOUS, -1), *second = first + LEN / 2;
	struct hv_where w;
	size_t size;
	void *base;

	assert_ptr_equal(mmap(second, LEN / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
			      -1, 0),
			 second);
	assert_int_equal(hv_where(second, LEN / 2, &w), 0);
	w.offset = (uint64_t)-4096;
	assert_null(hv_where_map(&w, 8192, true, &base, &size));
	w.offset = 4096;
	assert_null(hv_where_map(&w, SIZE_MAX - 4096, true, &base, &size));
	assert_null(hv_where_map(&w, SIZE_MAX - 1, true, &base, &size));
	munmap(first, LEN);
}

static void private_memory(void **state)
{
	char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1), on_stack[64];
	struct hv_where w;

	assert_int_equal(hv_where(at, LEN, &w), -EOPNOTSUPP);
	assert_int_equal(hv_where(on_stack, sizeof(on_stack), &w), -EOPNOTSUPP);
	munmap(at, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory_without_a_name),
		cmocka_unit_test(a_file),
		cmocka_unit_test(pieces),
		cmocka_unit_test(beyond_any_file),
		cmocka_unit_test(private_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
