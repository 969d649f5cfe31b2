/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/busy_poll.h"

#include "base/clock.h"

#include <sched.h>

#define CREDIT_FIRST 8
#define CREDIT_MAX 16
#define IN_VAIN 4 /* what a look in vain costs, where one that was not earns 1 */
#define NEED_MAX 1023
#define NEED_STALLED 63 /* at least, where offering the processor has cost milliseconds */
#define YIELD_US 2	/* between offers of the processor */
#define SETTLING 16	/* of what it looks too long, so much of it is left off with each find */

bool hd_busy_poll_on(const struct hd_busy_poll *poll, struct hd_busy_polling *wait, uint32_t least_us,
		     uint64_t now)
{
	uint64_t least = least_us * hd_ticks_per_us();

	if (!wait->begun) {
		wait->begun = now;
		wait->end = now + (poll->ticks > least ? poll->ticks : least);
		wait->looks = poll->ticks;
		if (poll->yields)
			wait->yields = now + YIELD_US * hd_ticks_per_us();
	}
	return now < wait->end;
}

void hd_busy_poll_pause(struct hd_busy_polling *wait)
{
	uint64_t now;

	hd_cpu_relax();
	if (!wait->yields || (now = hd_ticks()) < wait->yields)
		return;
	sched_yield();
	wait->yields = hd_ticks();
	if (wait->yields - now > HD_ANSWER_US * hd_ticks_per_us())
		wait->stalled = true;
	wait->yields += YIELD_US * hd_ticks_per_us();
}

/*
 * A wait that took so long would have been over without a sleep, had it looked for a little longer.
 */
static uint64_t enough_for(uint64_t took)
{
	uint64_t us = hd_ticks_per_us(), n = took + took / 4;

	if (n < HD_LOOK_LEAST_US * us)
		return HD_LOOK_LEAST_US * us;
	return n < HD_LOOK_MOST_US * us ? n : HD_LOOK_MOST_US * us;
}

static void busy_poll_unused(struct hd_busy_poll *poll, uint64_t took, bool soon)
{
	if (!soon) {
		poll->soon = 0;
	} else if (++poll->soon > poll->need) {
		poll->ticks = enough_for(took);
		poll->credit = CREDIT_FIRST;
	}
}

static void busy_poll_found(struct hd_busy_poll *poll)
{
	uint64_t least = HD_LOOK_LEAST_US * hd_ticks_per_us();

	if (poll->ticks > least)
		poll->ticks -= (poll->ticks - least) / SETTLING;
	if (poll->credit < CREDIT_MAX)
		poll->credit++;
	else
		poll->need = 0;
}

static void busy_poll_in_vain(struct hd_busy_poll *poll, uint64_t took, bool soon)
{
	poll->credit -= IN_VAIN;
	if (poll->credit <= 0) {
		poll->ticks = 0;
		poll->yields = false;
		poll->soon = 0;
		poll->need = poll->need < NEED_MAX ? poll->need * 2 + 1 : NEED_MAX;
	} else if (soon) {
		poll->yields = true;
		if (poll->ticks < enough_for(took))
			poll->ticks = enough_for(took);
	}
}

void hd_busy_poll_leave(struct hd_busy_poll *poll)
{
	*poll = (struct hd_busy_poll){ .need = NEED_MAX };
}

void hd_busy_poll_over(struct hd_busy_poll *poll, const struct hd_busy_polling *wait, uint64_t now)
{
	uint64_t took = now - wait->begun;
	bool soon = took <= HD_LOOK_MOST_US * hd_ticks_per_us();

	if (!wait->begun)
		return;
	if (wait->stalled) {
		poll->credit = 0;
		poll->need = poll->need > NEED_STALLED ? poll->need : NEED_STALLED;
	}
	if (!wait->looks)
		busy_poll_unused(poll, took, soon);
	else if (now <= wait->end && !wait->stalled)
		busy_poll_found(poll);
	else
		busy_poll_in_vain(poll, took, soon);
}
