/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/timers.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Whoever has the higher rank is above. Timers lie in rows of structures, and are often due in that
 * order: both must not show.
 */
static uint64_t rank_of(const struct hd_timer *t)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t x = (uintptr_t)t;

	x = (x ^ x >> 32) * odd;
	x = (x ^ x >> 29) * odd;
	return x ^ x >> 32;
}

static bool comes_before(const struct hd_timer *a, const struct hd_timer *b)
{
	return a->due != b->due ? a->due < b->due : (uintptr_t)a < (uintptr_t)b;
}

void hd_timers_add(struct hd_timers *timers, struct hd_timer *timer)
{
	struct hd_timer **at = &timers->top, **less = &timer->less, **more = &timer->more, *t;
	uint64_t rank = rank_of(timer);

	while ((t = *at) && rank_of(t) > rank)
		at = comes_before(timer, t) ? &t->less : &t->more;
	*at = timer;
	while (t) /* what was there is parted */
		if (comes_before(t, timer)) {
			*less = t;
			less = &t->more;
			t = t->more;
		} else {
			*more = t;
			more = &t->less;
			t = t->less;
		}
	*less = *more = NULL;
	if (!timers->first || comes_before(timer, timers->first))
		timers->first = timer;
}

static struct hd_timer *leftmost(struct hd_timer *t)
{
	while (t && t->less)
		t = t->less;
	return t;
}

void hd_timers_remove(struct hd_timers *timers, struct hd_timer *timer)
{
	struct hd_timer **at = &timers->top, *less = timer->less, *more = timer->more;

	while (*at != timer)
		at = comes_before(timer, *at) ? &(*at)->less : &(*at)->more;
	while (less && more) /* what was below is joined */
		if (rank_of(less) > rank_of(more)) {
			*at = less;
			at = &less->more;
			less = less->more;
		} else {
			*at = more;
			at = &more->less;
			more = more->less;
		}
	*at = less ? less : more;
	if (timers->first == timer)
		timers->first = leftmost(timers->top);
}
