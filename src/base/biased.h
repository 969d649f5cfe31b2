/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A lock for what one thread uses nearly always: to that thread, its favourite, it costs plain
 * loads and stores, no atomic instruction. Whoever else wants it takes the favour away first, with
 * membarrier(2), which costs some microseconds; from then on it is a mutex, until somebody has
 * taken it many times in a row. Where membarrier is missing it always is a mutex. The proof stands
 * in docs/locking.md, «The node's lock».
 */
#ifndef HD_BASE_BIASED_H
#define HD_BASE_BIASED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HD_BIAS_SEATS 8 /* threads that may become favourites of one lock in its life */

/*
 * A thread that is the favourite, or was. Nobody else ever gets its seat, for it may
 * be about to store to it.
 */
struct hd_bias {
	/*
	 * hd_thread_self; set before the seat is shown, and never changed; relaxed: who looks for
	 * his own finds it as he left it
	 */
	_Atomic uintptr_t thread;
	_Atomic uint32_t held; /* written by the thread alone */
};

struct hd_biased {
	_Atomic(struct hd_bias *) favourite; /* or `nobody` */
	struct hd_bias *by; /* of whoever holds the lock: taken by this seat; NULL: by the mutex */
	struct hd_bias nobody, seats[HD_BIAS_SEATS];
	/* a futex: counts what is given back by somebody who is no favourite any more */
	_Atomic uint32_t given;
	/* with the mutex */
	uintptr_t last;	    /* who had it last, */
	uint32_t run, need; /* how often in a row, and how often that must be for the favour */
	pthread_mutex_t mutex;
	_Atomic uintptr_t owner; /* who has that, or 0; relaxed: each looks for himself alone */
};

/* hd_thread_self: the calling thread, as no other has it while that lives. */
static inline uintptr_t hd_thread_self(void)
{
#if defined(__x86_64__) && !defined(__ILP32__)
	uintptr_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#elif defined(__aarch64__)
	return (uintptr_t)__builtin_thread_pointer();
#else
	return (uintptr_t)pthread_self();
#endif
}

/*
 * hd_biased_init: a free lock; also of one that a forked child has inherited, whoever held it.
 * hd_biased_fini: it is free, and goes. hd_biased_take waits until it is the caller's, who does not
 * have it; hd_biased_give gives it back, in the same thread.
 * hd_biased_take_new: hd_biased_take, unless the caller has it already: then false, at once.
 * hd_biased_is_taken: somebody has it; for assertions. hd_biased_prefer: the caller, who has it, is
 * the favourite from now on, where membarrier works: for tests.
 */
void hd_biased_init(struct hd_biased *lock);
void hd_biased_fini(struct hd_biased *lock);
void hd_biased_take_slowly(struct hd_biased *lock, struct hd_bias *seat);
void hd_biased_give_slowly(struct hd_biased *lock);
void hd_biased_given(struct hd_biased *lock);
bool hd_biased_take_new(struct hd_biased *lock);
bool hd_biased_is_taken(struct hd_biased *lock);
bool hd_biased_prefer(struct hd_biased *lock);

static inline uintptr_t hd_bias_of(const struct hd_bias *seat)
{
	return atomic_load_explicit(&seat->thread, memory_order_relaxed);
}

static inline void hd_biased_take(struct hd_biased *lock)
{
	struct hd_bias *seat = atomic_load_explicit(&lock->favourite, memory_order_acquire);

	if (__builtin_expect(hd_bias_of(seat) == hd_thread_self(), 1)) {
		atomic_store_explicit(&seat->held, 1, memory_order_relaxed);
		/* who takes the favour away has the real one */
		atomic_signal_fence(memory_order_seq_cst);
		if (__builtin_expect(atomic_load_explicit(&lock->favourite, memory_order_relaxed) == seat,
				     1)) {
			lock->by = seat;
			return;
		}
	} else {
		seat = NULL;
	}
	hd_biased_take_slowly(lock, seat);
}

static inline void hd_biased_give(struct hd_biased *lock)
{
	struct hd_bias *seat = lock->by;

	if (__builtin_expect(!seat, 0)) {
		hd_biased_give_slowly(lock);
		return;
	}
	atomic_store_explicit(&seat->held, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&lock->favourite, memory_order_relaxed) != seat, 0))
		hd_biased_given(lock);
}

#endif
