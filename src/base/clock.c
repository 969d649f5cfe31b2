/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

_Atomic uint64_t hd_ticks_rate;

static inline uint64_t ns_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * HD_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t hd_now_ns(void)
{
	return ns_of(CLOCK_MONOTONIC);
}

uint64_t hd_wall_ns(void)
{
	return ns_of(CLOCK_REALTIME);
}

uint64_t hd_thread_ns(void)
{
	return ns_of(CLOCK_THREAD_CPUTIME_ID);
}

void hd_pause_us(uint32_t us)
{
	const struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

#if defined(__x86_64__) || defined(__i386__)
#define CALIBRATE_NS (200 * HD_NS_PER_US)

/*
 * A pair of readings at (nearly) the same instant: being scheduled away
 * between them would spoil it.
 */
struct instant {
	uint64_t ns, ticks;
};

static struct instant read_instant(void)
{
	struct instant best = { 0 };
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = hd_ticks();
		uint64_t ns = hd_now_ns();
		uint64_t width = hd_ticks() - before;

		if (width < best_width) {
			best_width = width;
			best = (struct instant){ .ns = ns, .ticks = before + width / 2 };
		}
	}
	return best;
}

static uint64_t measure_rate(void)
{
	struct instant from = read_instant(), to;

	do {
		hd_cpu_relax();
		to = read_instant();
	} while (to.ns - from.ns < CALIBRATE_NS);
	return (to.ticks - from.ticks) * HD_NS_PER_US / (to.ns - from.ns);
}
#elif defined(__aarch64__)
static uint64_t measure_rate(void)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz / 1000000;
}
#else
static uint64_t measure_rate(void)
{
	return HD_NS_PER_US;
}
#endif

uint64_t hd_ticks_calibrate(void)
{
	uint64_t rate = measure_rate();

	if (!rate)
		rate = 1;
	atomic_store_explicit(&hd_ticks_rate, rate, memory_order_relaxed);
	return rate;
}

uint64_t hd_deadline_ns(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : hd_now_ns() + (uint64_t)timeout_ms * HD_NS_PER_MS;
}

int hd_left_ms(uint64_t deadline_ns)
{
	uint64_t now = hd_now_ns(), ms;

	if (deadline_ns == UINT64_MAX)
		return -1;
	ms = now < deadline_ns ? (deadline_ns - now + HD_NS_PER_MS - 1) / HD_NS_PER_MS : 0;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

void hd_patience_begin(struct hd_patience *p, uint64_t ns)
{
	*p = (struct hd_patience){ .end = hd_now_ns() + ns };
}

uint64_t hd_patience_more(struct hd_patience *p, uint64_t ns)
{
	uint64_t now = hd_now_ns();

	if (now > p->end + HD_LATE_NS && p->times < HD_LATE_TIMES) {
		p->times++;
		p->last = false;
	} else if (!p->last) {
		p->last = true;
		ns = HD_LATE_NS;
	} else {
		return 0;
	}
	p->end = now + ns;
	return ns;
}
