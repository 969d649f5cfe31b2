/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/lock.h"

static void nothing(void)
{
}

static const struct hd_lock_between none = { nothing, nothing, nothing };

/* protects what follows; before a fork it is taken first */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, hd_lock) locks[2]; /* by rank */
static const struct hd_lock_between *between = &none;

static void take_rank(enum hd_lock_rank rank)
{
	struct hd_lock *lock;

	LIST_FOREACH(lock, &locks[rank], entry)
		pthread_mutex_lock(&lock->mutex);
}

/*
 * Those first that are held while somebody waits for a node, whose holder may in
 * turn want one of the others.
 */
static void lock_fork_prepare(void)
{
	pthread_mutex_lock(&list_lock);
	take_rank(HD_LOCK_OUTER);
	between->take();
	take_rank(HD_LOCK_LEAF);
}

static void fork_over(void)
{
	struct hd_lock *lock;

	for (int rank = HD_LOCK_OUTER; rank <= HD_LOCK_LEAF; rank++)
		LIST_FOREACH(lock, &locks[rank], entry)
			pthread_mutex_unlock(&lock->mutex);
	pthread_mutex_unlock(&list_lock);
}

static void lock_fork_parent(void)
{
	between->give();
	fork_over();
}

static void lock_fork_child(void)
{
	fork_over();
	between->forked();
}

static void lock_watch_forks(void)
{
	pthread_atfork(lock_fork_prepare, lock_fork_parent, lock_fork_child);
}

static void watch_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, lock_watch_forks);
}

void hd_lock_between(const struct hd_lock_between *these)
{
	watch_once();
	pthread_mutex_lock(&list_lock);
	between = these;
	pthread_mutex_unlock(&list_lock);
}

void hd_lock_init(struct hd_lock *lock, enum hd_lock_rank rank)
{
	watch_once();
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
