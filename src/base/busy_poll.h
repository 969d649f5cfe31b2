/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How long a wait looks for what it waits for before it sleeps. To be woken takes some ten
 * microseconds and several system calls at either end, so two programs that answer each other at
 * once should not sleep in between; one that waits for long should never look. Each object that is
 * waited for has a habit: it is looked for where waits on it, asleep, have been over soon, for
 * about as long as those took, and no longer where looking is in vain. That may be so because the
 * other one needs the processor that looks: so it is offered the next time, which also lets the
 * kernel see that two want to run there; unless a third takes it, who would have it for
 * milliseconds.
 *
 * Nothing here has a lock: whoever waits holds that of his object. Times are hd_ticks.
 */
#ifndef HD_BASE_BUSY_POLL_H
#define HD_BASE_BUSY_POLL_H

#include <stdbool.h>
#include <stdint.h>

#define HD_LOOK_LEAST_US 50
#define HD_LOOK_MOST_US 200 /* a wait that takes longer is worth a sleep */
#define HD_ANSWER_US 400u   /* who is offered the processor and waits for us gives it back sooner */

/* Of an object that is waited for; zero at first. */
struct hd_busy_poll {
	uint64_t ticks; /* that the next wait looks; 0: it sleeps at once */
	uint32_t soon;	/* waits in a row that were over soon without a look */
	uint32_t need;	/* more than so many make it look */
	/* looking may be in vain so often, in units of what one that was not has saved */
	int credit;
	bool yields; /* the processor is offered meanwhile */
};

/* One wait; zero at first. */
struct hd_busy_polling {
	uint64_t begun, end; /* 0: nothing has been looked for in vain yet */
	bool looks;
	uint64_t yields; /* when the processor is offered the next time; 0: never */
	bool stalled;	 /* a third had it */
};

/*
 * hd_busy_poll_on: there is nothing, at this time: look again (true), or sleep. It looks for
 * least_us in any case. hd_busy_poll_over: the wait is over, because something has come or because
 * it was not to last longer. hd_busy_poll_leave: the habit that it has made is not to be; it takes
 * as many short waits as it can until the next one. hd_busy_poll_pause: between two looks, without
 * the object's lock.
 */
void hd_busy_poll_pause(struct hd_busy_polling *wait);
bool hd_busy_poll_on(const struct hd_busy_poll *poll, struct hd_busy_polling *wait, uint32_t least_us,
		     uint64_t now);
void hd_busy_poll_over(struct hd_busy_poll *poll, const struct hd_busy_polling *wait, uint64_t now);
void hd_busy_poll_leave(struct hd_busy_poll *poll);

#endif
