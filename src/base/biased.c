/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/biased.h"
#include "base/advice.h"
#include "base/log.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* times in a row that make a favourite: as long as taking the favour away costs, about */
#define NEED_MIN 256u
#define NEED_MAX (1u << 14)  /* doubled each time that it has been taken away */
#define NEED_NONE UINT32_MAX /* there are no favourites */
#define SPINS 100	     /* looks at a favourite that has the lock, before sleeping */
/* a processor that has nothing to wait for has stored what it was to store */
#define DRAIN_NS 10000000L

static int biased_membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

static bool barrier_init(void)
{
	const int need = MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	int known = biased_membarrier(MEMBARRIER_CMD_QUERY);

	return known >= 0 && (known & need) == need &&
	       biased_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void hd_biased_init(struct hd_biased *lock)
{
	memset(lock, 0, sizeof(*lock));
	pthread_mutex_init(&lock->mutex, NULL);
	atomic_init(&lock->favourite, &lock->nobody);
	lock->need = barrier_init() ? NEED_MIN : NEED_NONE;
}

void hd_biased_fini(struct hd_biased *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

/* ---- taking the favour away ------------------------------------------------------------------ */

/*
 * The program has had membarrier forbidden since we asked for it. What the favourite has stored by
 * then leaves its processor without our help, only nobody says when; so wait much longer than that
 * takes, once, and have no favourites any more.
 */
static void barrier_lost(struct hd_biased *lock)
{
	struct timespec t = { .tv_nsec = DRAIN_NS };
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	hd_warn("membarrier does not work any more (%m): locks are slower from now on%s", hd_advice(errno));
	lock->need = NEED_NONE;
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		continue;
	pthread_setcancelstate(state, NULL);
}

static void biased_wait_for(struct hd_biased *lock, const struct hd_bias *seat)
{
	for (int spins = 0;; spins++) {
		uint32_t given = atomic_load_explicit(&lock->given, memory_order_acquire);

		if (!atomic_load_explicit(&seat->held, memory_order_acquire))
			return;
		if (spins > SPINS)
			syscall(SYS_futex, &lock->given, FUTEX_WAIT_PRIVATE, given, NULL, NULL, 0);
		else if (spins % 8 == 7)
			sched_yield();
	}
}

static void disfavour(struct hd_biased *lock, struct hd_bias *seat)
{
	atomic_store_explicit(&lock->favourite, &lock->nobody, memory_order_relaxed);
	if (lock->need < NEED_MAX)
		lock->need *= 2;
	if (biased_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0)
		barrier_lost(lock);
	biased_wait_for(lock, seat);
}

void hd_biased_given(struct hd_biased *lock)
{
	atomic_fetch_add_explicit(&lock->given, 1, memory_order_seq_cst);
	syscall(SYS_futex, &lock->given, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- giving it ------------------------------------------------------------------------------- */

static struct hd_bias *seat_of(struct hd_biased *lock, uintptr_t thread)
{
	for (int i = 0; i < HD_BIAS_SEATS; i++) {
		struct hd_bias *s = &lock->seats[i];

		if (!hd_bias_of(s))
			atomic_store_explicit(&s->thread, thread, memory_order_relaxed);
		if (hd_bias_of(s) == thread)
			return s;
	}
	return NULL;
}

/* hd_biased_give_slowly: the rest of hd_biased_give, of a thread that has the real one. */
void hd_biased_give_slowly(struct hd_biased *lock)
{
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock->mutex);
}

bool hd_biased_prefer(struct hd_biased *lock)
{
	struct hd_bias *seat;

	if (lock->by) /* it is already */
		return true;
	seat = lock->need == NEED_NONE ? NULL : seat_of(lock, hd_thread_self());
	if (!seat)
		return false;
	atomic_store_explicit(&seat->held, 1, memory_order_relaxed);
	lock->by = seat;
	atomic_store_explicit(&lock->favourite, seat, memory_order_release);
	hd_biased_give_slowly(lock);
	return true;
}

/* Who takes it for the how manieth time? */
static void biased_count(struct hd_biased *lock)
{
	uintptr_t self = hd_thread_self();

	if (lock->last != self) {
		lock->last = self;
		lock->run = 0;
	} else if (++lock->run >= lock->need) {
		lock->run = 0;
		hd_biased_prefer(lock);
	}
}

/*
 * hd_biased_take_slowly: the rest of hd_biased_take, of a thread that was the favourite a moment
 * ago, in this seat; or NULL.
 */
void hd_biased_take_slowly(struct hd_biased *lock, struct hd_bias *seat)
{
	struct hd_bias *favourite;

	if (seat) { /* whoever has taken the favour away may wait for us */
		atomic_store_explicit(&seat->held, 0, memory_order_release);
		hd_biased_given(lock);
	}
	pthread_mutex_lock(&lock->mutex);
	favourite = atomic_load_explicit(&lock->favourite, memory_order_relaxed);
	if (favourite != &lock->nobody)
		disfavour(lock, favourite);
	lock->by = NULL;
	atomic_store_explicit(&lock->owner, hd_thread_self(), memory_order_relaxed);
	biased_count(lock);
}

/* It has been taken as a favourite's, who may be none any more. */
static bool has_seat(const struct hd_biased *lock, uintptr_t thread)
{
	for (int i = 0; i < HD_BIAS_SEATS; i++)
		if (hd_bias_of(&lock->seats[i]) == thread)
			return atomic_load_explicit(&lock->seats[i].held, memory_order_relaxed);
	return false;
}

bool hd_biased_take_new(struct hd_biased *lock)
{
	uintptr_t self = hd_thread_self();

	if (has_seat(lock, self) || atomic_load_explicit(&lock->owner, memory_order_relaxed) == self)
		return false;
	hd_biased_take(lock);
	return true;
}

bool hd_biased_is_taken(struct hd_biased *lock)
{
	for (int i = 0; i < HD_BIAS_SEATS; i++)
		if (atomic_load_explicit(&lock->seats[i].held, memory_order_relaxed))
			return true;
	if (pthread_mutex_trylock(&lock->mutex))
		return true;
	pthread_mutex_unlock(&lock->mutex);
	return false;
}
