/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* For tests: memory that goes away, all but the beginning. */
#ifndef HD_ENGINE_TEST_VANISHED_H
#define HD_ENGINE_TEST_VANISHED_H

#include "base/test_page.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define VANISHED_ROOM (4u << 20)
/* where nobody else gets memory, so that what is unmapped stays so */
#define VANISHED_AT ((void *)0x200000000000)

enum way {
	UNMAPPED,
	PROTECTED,
	SHORTENED,
	READ_ALONE
};

/*
 * vanishing: memory whose first byte is there, and none of the next TEST_PAGE is.
 * vanished_free: it is no more.
 */
static inline unsigned char *vanishing(enum way how, size_t len)
{
	FILE *file = how == SHORTENED ? tmpfile() : NULL;
	unsigned char *at;

	assert_false(file && ftruncate(fileno(file), VANISHED_ROOM));
	at = mmap(VANISHED_AT, VANISHED_ROOM, PROT_READ | PROT_WRITE,
		  MAP_FIXED | (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), file ? fileno(file) : -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	if (file) {
		assert_int_equal(ftruncate(fileno(file), TEST_PAGE), 0);
		fclose(file);
	} else if (how == UNMAPPED) {
		assert_int_equal(munmap(at + TEST_PAGE, VANISHED_ROOM - TEST_PAGE), 0);
	} else {
		assert_int_equal(mprotect(at + TEST_PAGE, VANISHED_ROOM - TEST_PAGE,
					  how == PROTECTED ? PROT_NONE : PROT_READ),
				 0);
	}
	return len > TEST_PAGE ? at + 1 : at + TEST_PAGE - len / 2;
}

static inline void vanished_free(void)
{
	munmap(VANISHED_AT, VANISHED_ROOM);
}

/*
 * vanish_begin: faults are nobody's: cmocka's handlers stand for a program's.
 * Before a node is opened.
 */
static inline void vanish_begin(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

#endif
