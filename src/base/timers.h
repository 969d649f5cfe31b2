/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Timers by when they are due: a search tree, in which nothing is allocated, and whose shape is
 * that of one into which they came in an order by chance (a treap). To add one and to remove any
 * takes O(log n) steps. Chance is a hash of where a timer lies in memory, so that it takes no more
 * of that than a list would. Who uses it has a lock; there is none here.
 */
#ifndef HEDDLE_BASE_TIMERS_H
#define HEDDLE_BASE_TIMERS_H

#include <stdint.h>

struct hd_timer {
	uint64_t due; /* hd_now_ns() clock; 0: not set */
	void (*fn)(struct hd_timer *timer);
	struct hd_timer *less, *more; /* those below it that are due before it, and after */
};

struct hd_timers {
	struct hd_timer *top;
	struct hd_timer *first; /* is due first; NULL: there is none */
};

/*
 * hd_timers_add: `due` is set, and it is not among them. hd_timers_remove: it is,
 * and `due` has not changed.
 */
void hd_timers_add(struct hd_timers *timers, struct hd_timer *timer);
void hd_timers_remove(struct hd_timers *timers, struct hd_timer *timer);

#endif
