/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A word in shared memory by which others see, at the cost of a load, whether a process still runs
 * the program that it ran.
 *
 * It is the lock word of a robust mutex that a thread of the process takes and never gives back.
 * When that thread ends, by itself, by a signal or because execve(2) puts another program in the
 * place of all of them, the kernel marks the word (get_robust_list(2)), and does so before the
 * memory of the old program makes way for that of the new one. Others only read it.
 */
#ifndef HD_BASE_WITNESS_H
#define HD_BASE_WITNESS_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hd_witness {
	union {
		pthread_mutex_t mutex;
		/*
		 * the C library's and the kernel's: relaxed, for the kernel marks it
		 * before all that is to be told
		 */
		_Atomic uint32_t word;
	};
};

/*
 * hd_witness_open: the calling thread bears witness from now on, in memory that is all zero and
 * mapped shared. Where the C library or the kernel has no such thing, nobody does.
 * hd_witness_renew: the calling thread does if the one that did has ended; called now and then by
 * the process itself.
 * hd_witness_close: nobody does any more. False: another thread does, which has the mutex in a list
 * of its own until it ends, so that its memory has to stay mapped for good.
 */
void hd_witness_open(struct hd_witness *w);
void hd_witness_take_over(struct hd_witness *w);
bool hd_witness_close(struct hd_witness *w);

/*
 * hd_witness_testifies: a thread bears witness. False: perhaps there is no such process any more,
 * or this thread alone has ended, or none ever did.
 */
static inline bool hd_witness_testifies(const struct hd_witness *w)
{
	uint32_t word = atomic_load_explicit(&w->word, memory_order_relaxed);

	return word != 0 && !(word & FUTEX_OWNER_DIED);
}

static inline void hd_witness_renew(struct hd_witness *w)
{
	if (__builtin_expect(atomic_load_explicit(&w->word, memory_order_relaxed) & FUTEX_OWNER_DIED, 0))
		hd_witness_take_over(w);
}

#endif
