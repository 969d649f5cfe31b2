/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/lock.h"

static pthread_mutex_t list_lock =
	PTHREAD_MUTEX_INITIALIZER;    /* protects the lists; before a fork it is taken first */
static LIST_HEAD(, hd_lock) locks[2]; /* by rank */

/*
 * Those first that are held while somebody waits for a node, whose holder may in
 * turn want one of the others.
 */
static void lock_fork_prepare(void)
{
	struct hd_lock *lock;

	pthread_mutex_lock(&list_lock);
	for (int rank = HD_LOCK_OUTER; rank <= HD_LOCK_LEAF; rank++)
		LIST_FOREACH(lock, &locks[rank], entry)
			pthread_mutex_lock(&lock->mutex);
}

static void fork_over(void)
{
	struct hd_lock *lock;

	for (int rank = HD_LOCK_OUTER; rank <= HD_LOCK_LEAF; rank++)
		LIST_FOREACH(lock, &locks[rank], entry)
			pthread_mutex_unlock(&lock->mutex);
	pthread_mutex_unlock(&list_lock);
}

static void lock_watch_forks(void)
{
	pthread_atfork(lock_fork_prepare, fork_over, fork_over);
}

void hd_lock_init(struct hd_lock *lock, enum hd_lock_rank rank)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, lock_watch_forks);
	pthread_mutex_init(&lock->mutex, NULL);
	lock->rank = rank;
	pthread_mutex_lock(&list_lock);
	LIST_INSERT_HEAD(&locks[rank], lock, entry);
	pthread_mutex_unlock(&list_lock);
}

void hd_lock_fini(struct hd_lock *lock)
{
	pthread_mutex_lock(&list_lock);
	LIST_REMOVE(lock, entry);
	pthread_mutex_unlock(&list_lock);
	pthread_mutex_destroy(&lock->mutex);
}

void hd_lock_take(struct hd_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

void hd_lock_give(struct hd_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}
