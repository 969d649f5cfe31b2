/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_CLOCK_H
#define HEDDLE_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Two clocks. hd_now_ns is the system's monotonic clock, the same in every process of the host.
 * hd_ticks is the cheapest counter there is: of unspecified origin, good for "has this been going
 * on for a few microseconds", not to be compared between hosts.
 */

#define HD_NS_PER_US UINT64_C(1000)
#define HD_NS_PER_MS UINT64_C(1000000)
#define HD_NS_PER_S UINT64_C(1000000000)

/*
 * hd_now_ns returns nanoseconds of CLOCK_MONOTONIC, hd_wall_ns of CLOCK_REALTIME, hd_thread_ns
 * those that the calling thread has had a processor; clock_gettime(2). Any thread. Who asks for the
 * time asks here (ci/rooms).
 */
uint64_t hd_now_ns(void);
uint64_t hd_wall_ns(void);
uint64_t hd_thread_ns(void);

/*
 * hd_pause_us: the calling thread sleeps that long, or until a signal's
 * handler has run; nanosleep(2).
 */
void hd_pause_us(uint32_t us);

/*
 * hd_deadline_ns returns the time that is timeout_ms from now, or UINT64_MAX for a negative
 * time-out, which is none. hd_left_ms says how much is left until then, rounded up, as poll(2)
 * wants it: -1 for ever, 0 when it has passed.
 */
uint64_t hd_deadline_ns(int timeout_ms);
int hd_left_ms(uint64_t deadline_ns);

/* hd_ticks returns a counter that advances hd_ticks_per_us() times a microsecond. Any thread. */
/*
 * hd_ticks_strict: the same, read after every load before it and before every load
 * behind it; some 10 ns dearer.
 */
/* hd_cpu_relax tells the processor that this is a spinning loop. */
#if defined(__x86_64__) || defined(__i386__)
static inline uint64_t hd_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t hd_ticks_strict(void)
{
	uint64_t ticks;

	__builtin_ia32_lfence();
	ticks = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return ticks;
}

static inline void hd_cpu_relax(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline uint64_t hd_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

static inline uint64_t hd_ticks_strict(void)
{
	uint64_t ticks;

	__asm__ volatile("dsb ld; isb; mrs %0, cntvct_el0; isb" : "=r"(ticks)::"memory");
	return ticks;
}

static inline void hd_cpu_relax(void)
{
	__asm__ volatile("yield" ::: "memory");
}
#else
static inline uint64_t hd_ticks(void)
{
	return hd_now_ns();
}

static inline uint64_t hd_ticks_strict(void)
{
	return hd_now_ns();
}

static inline void hd_cpu_relax(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}
#endif

/* Zero until the first hd_ticks_calibrate. */
extern _Atomic uint64_t hd_ticks_rate;

/*
 * hd_ticks_calibrate measures the rate of hd_ticks, which takes up to 0.2 ms,
 * and stores it. Any thread.
 */
uint64_t hd_ticks_calibrate(void);

/*
 * hd_ticks_per_us returns the rate of hd_ticks, at least 1; the first call calibrates. Any thread.
 */
static inline uint64_t hd_ticks_per_us(void)
{
	uint64_t rate = atomic_load_explicit(&hd_ticks_rate, memory_order_relaxed);

	return rate ? rate : hd_ticks_calibrate();
}

/*
 * hd_patience: how long one waits for what another process does. A timer that runs late tells that
 * nobody made progress here: what is waited for may have come long ago, and only has to be read; or
 * the other process, on a machine that stood still or had too much to do, has had no more time than
 * we. So who is told that time is up asks hd_patience_more first.
 *
 * hd_patience_begin: it begins, and lasts ns. hd_patience_more: time is up: how many nanoseconds to
 * wait further, after which it is asked again; 0: give up. These are ns once more where it is told
 * HD_LATE_NS too late, HD_LATE_TIMES at most, and at the last a moment for reading what has come.
 */
#define HD_LATE_NS UINT64_C(20000000)
#define HD_LATE_TIMES 3

struct hd_patience {
	uint64_t end;  /* hd_now_ns() clock */
	uint8_t times; /* how often it has been given all of it once more */
	bool last;     /* nothing is left but that moment */
};

void hd_patience_begin(struct hd_patience *p, uint64_t ns);
uint64_t hd_patience_more(struct hd_patience *p, uint64_t ns);

#endif
