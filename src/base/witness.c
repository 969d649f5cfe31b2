/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/witness.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __GLIBC__
static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the lock word comes first");
#define WORD_IS_FIRST true
#else
#define WORD_IS_FIRST false
#endif

/*
 * So many of a process, in whatever threads: a kernel follows a list for 2,048 locks, and the
 * thread sanitizer ends a program with more than 64 in one. Of further ones others ask the kernel.
 */
#define MOST 32
static _Atomic int count; /* relaxed: a number alone */

/* The C library has told the kernel of this thread's list, so that marks are made. */
static bool has_robust_list(void)
{
	void *head = NULL;
	size_t len;

	return syscall(SYS_get_robust_list, 0, &head, &len) == 0 && head;
}

void hd_witness_open(struct hd_witness *w)
{
	pthread_mutexattr_t attr;

	if (!WORD_IS_FIRST || !has_robust_list())
		return;
	if (atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) >= MOST) {
		atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
		return;
	}
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!pthread_mutex_init(&w->mutex, &attr))
		(void)pthread_mutex_trylock(&w->mutex); /* it is ours alone: free */
	pthread_mutexattr_destroy(&attr);
}

/* Only tried: whoever else has found the same is welcome to it, and may be holding other locks. */
void hd_witness_take_over(struct hd_witness *w)
{
	if (pthread_mutex_trylock(&w->mutex) == EOWNERDEAD)
		(void)pthread_mutex_consistent(&w->mutex);
}

/* A robust mutex's word is the number of the thread that has it. */
static bool is_ours(const struct hd_witness *w)
{
	return (atomic_load_explicit(&w->word, memory_order_relaxed) & FUTEX_TID_MASK) ==
	       (uint32_t)syscall(SYS_gettid);
}

bool hd_witness_close(struct hd_witness *w)
{
	if (atomic_load_explicit(&w->word, memory_order_relaxed) == 0)
		return true;
	if (hd_witness_testifies(w) && (!is_ours(w) || pthread_mutex_unlock(&w->mutex)))
		return false;
	atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
	return true;
}
