/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/look.h"

#include "base/clock.h"

#include <sched.h>

#define CREDIT_FIRST 8
#define CREDIT_MAX 16
#define IN_VAIN 4 /* what a look in vain costs, where one that was not earns 1 */
#define NEED_MAX 1023
#define NEED_STALLED 63 /* at least, where offering the processor has cost milliseconds */
#define YIELD_US 2	/* between offers of the processor */
#define STALL_US 400	/* an answer takes less */
#define SETTLING 16	/* of what it looks too long, so much of it is left off with each find */

bool hd_look_on(const struct hd_look *look, struct hd_looking *wait, uint32_t least_us, uint64_t now)
{
	uint64_t least = least_us * hd_ticks_per_us();

	if (!wait->begun) {
		wait->begun = now;
		wait->end = now + (look->ticks > least ? look->ticks : least);
		wait->looks = look->ticks;
		if (look->yields)
			wait->yields = now + YIELD_US * hd_ticks_per_us();
	}
	return now < wait->end;
}

void hd_look_pause(struct hd_looking *wait)
{
	uint64_t now;

	hd_cpu_relax();
	if (!wait->yields || (now = hd_ticks()) < wait->yields)
		return;
	sched_yield();
	wait->yields = hd_ticks();
	if (wait->yields - now > STALL_US * hd_ticks_per_us())
		wait->stalled = true;
	wait->yields += YIELD_US * hd_ticks_per_us();
}

/* A wait that took so long would have been over without a sleep, had it looked for a little longer. */
static uint64_t enough_for(uint64_t took)
{
	uint64_t us = hd_ticks_per_us(), n = took + took / 4;

	if (n < HD_LOOK_LEAST_US * us)
		return HD_LOOK_LEAST_US * us;
	return n < HD_LOOK_MOST_US * us ? n : HD_LOOK_MOST_US * us;
}

static void not_looked(struct hd_look *look, uint64_t took, bool soon)
{
	if (!soon) {
		look->soon = 0;
	} else if (++look->soon > look->need) {
		look->ticks = enough_for(took);
		look->credit = CREDIT_FIRST;
	}
}

static void look_found(struct hd_look *look)
{
	uint64_t least = HD_LOOK_LEAST_US * hd_ticks_per_us();

	if (look->ticks > least)
		look->ticks -= (look->ticks - least) / SETTLING;
	if (look->credit < CREDIT_MAX)
		look->credit++;
	else
		look->need = 0;
}

static void look_in_vain(struct hd_look *look, uint64_t took, bool soon)
{
	look->credit -= IN_VAIN;
	if (look->credit <= 0) {
		look->ticks = 0;
		look->yields = false;
		look->soon = 0;
		look->need = look->need < NEED_MAX ? look->need * 2 + 1 : NEED_MAX;
	} else if (soon) {
		look->yields = true;
		if (look->ticks < enough_for(took))
			look->ticks = enough_for(took);
	}
}

void hd_look_leave(struct hd_look *look)
{
	*look = (struct hd_look){ .need = NEED_MAX };
}

void hd_look_over(struct hd_look *look, const struct hd_looking *wait, uint64_t now)
{
	uint64_t took = now - wait->begun;
	bool soon = took <= HD_LOOK_MOST_US * hd_ticks_per_us();

	if (!wait->begun)
		return;
	if (wait->stalled) {
		look->credit = 0;
		look->need = look->need > NEED_STALLED ? look->need : NEED_STALLED;
	}
	if (!wait->looks)
		not_looked(look, took, soon);
	else if (now <= wait->end && !wait->stalled)
		look_found(look);
	else
		look_in_vain(look, took, soon);
}
