/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * For tests of what something costs: processor time, which a busy machine does not
 * lengthen as it does the clock's.
 */
#ifndef HD_TEST_CPU_H
#define HD_TEST_CPU_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cpu_ns_of(clockid_t who)
{
	struct timespec t;

	clock_gettime(who, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* cpu_ns: what this thread has used so far. cpu_ns_all: what this process has. */
static inline uint64_t cpu_ns(void)
{
	return cpu_ns_of(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t cpu_ns_all(void)
{
	return cpu_ns_of(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
