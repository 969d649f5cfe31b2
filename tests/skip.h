/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* For tests: a case that cannot run here says what would make it run. */
#ifndef HD_TESTS_SKIP_H
#define HD_TESTS_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * skip_unless ends the case, which is counted as skipped, where it cannot run: `remedy`
 * says what to do about it.
 */
static inline void skip_unless(bool can, const char *remedy)
{
	if (can)
		return;
	print_message("skipped: %s\n", remedy);
	skip();
}

#endif
