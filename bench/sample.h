/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What every benchmark program here shares: the clock, pinning,
 * repetitions, and the way to give up.
 */
#ifndef HD_BENCH_SAMPLE_H
#define HD_BENCH_SAMPLE_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define HD_SAMPLES_MAX 4096

struct hd_samples {
	double v[HD_SAMPLES_MAX];
	int n;
};

/* hd_now_ns - monotonic time in nanoseconds. */
static inline uint64_t hd_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* hd_cpu_relax - tell the core that this is a spin loop. */
static inline void hd_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* hd_samples_add - keep one measured value; values past HD_SAMPLES_MAX are dropped. */
void hd_samples_add(struct hd_samples *s, double value);

/* hd_samples_low, hd_samples_high, hd_samples_median - the smallest, largest and middle
 * value, in the unit they were added in. They sort the samples in place. At least one
 * sample must have been added. */
double hd_samples_low(struct hd_samples *s);
double hd_samples_high(struct hd_samples *s);
double hd_samples_median(struct hd_samples *s);

/* hd_resident_kib - resident pages of this process, Rss of /proc/self/smaps_rollup,
 * those that it shares counted in full; the kernel's own are not seen. Gives up where
 * the kernel does not tell. */
double hd_resident_kib(void);

/*
 * hd_pin - bind the calling process to one CPU. Gives up with a message when the CPU is not there.
 */
void hd_pin(int cpu);

/* hd_give_up - print "PROGRAM: message" on stderr and exit with status 1. A benchmark that cannot
 * measure must not print a figure; its partner notices by end-of-file on the control socket. */
_Noreturn void hd_give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * hd_parse_pair - read "A,B" into two non-negative integers; gives up when it is not of that form.
 */
void hd_parse_pair(const char *text, int out[2]);

/*
 * hd_parse_sizes - read "A,B,…", numbers within [low, high], changing the text; returns how many.
 * Those beyond `most` are left out.
 */
int hd_parse_sizes(char *text, long low, long high, size_t *out, int most);

/*
 * hd_parse_long - read a whole decimal number within [low, high]; gives up naming `what` otherwise.
 */
long hd_parse_long(const char *text, long low, long high, const char *what);

#endif
