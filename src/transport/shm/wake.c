/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sleeping and waking. A sender stores its message and then loads the sleeper's count; the sleeper
 * stores its count and then looks at the rings. Between a store and a later load of something else
 * the processor may turn the order round, and if it does so on both sides, the sender sees nobody
 * asleep and the sleeper sees no message. One barrier on each side would prevent that;
 * membarrier(2) lets the sleeper, who has time, run both:
 *
 *	sender                          sleeper
 *	------                          -------
 *	store message                   store sleep_seq (odd)
 *	(nothing)                       membarrier: a full barrier here and in every registered
 *	                                process
 *	load sleep_seq                  look at the rings, then epoll_wait
 *
 * Where the sleeper cannot call it, or the sender is not registered, the sender has a fence at
 * (nothing): both say in their hello what they can.
 */
#include "transport/shm/shm.h"

#include "base/advice.h"
#include "base/log.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int wake_membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool hd_shm_barrier_init(void)
{
	const int need = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	int known = wake_membarrier(MEMBARRIER_CMD_QUERY);

	if (known < 0 || (known & need) != need ||
	    wake_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) < 0) {
		hd_debug("membarrier is not available: senders fence");
		return false;
	}
	return true;
}

bool hd_shm_barrier(void)
{
	if (wake_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0)
		return true;
	HD_LOG_EVERY_MS(60000, HD_LOG_WARN,
			"membarrier does not work any more (%m): waiting keeps a processor busy%s",
			hd_advice(errno));
	return false;
}

void hd_shm_wake(struct hd_shm_link *link, uint32_t seq)
{
	const uint64_t one = 1;
	ssize_t n;

	link->woken = seq;
	/* EAGAIN: the counter is full, so the sleeper has been woken already. */
	do {
		n = write(link->peer.wake, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "cannot wake process %d: %m%s", (int)link->peer.pid,
				hd_advice(errno));
}
