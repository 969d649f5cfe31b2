/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A wake set makes a wait set something that programs wait for with a mutex and a condition variable. The program holds the mutex, asks
 * (hd_wake_set_arm), and is told that there is nothing; a thread of the wake set then sleeps on the set in its place, making the progress that
 * the program does not make, and broadcasts when something has come. It does so with the mutex held, and with no other lock, so the
 * program is in pthread_cond_wait(3) by then.
 */
#include "base/lock.h"
#include "engine/core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct hd_wake_set {
	struct hd_wset *set;
	pthread_mutex_t mutex; /* the program's */
	pthread_cond_t cond;
	pthread_t thread;
	struct hd_lock lock; /* what follows */
	pthread_cond_t asks;
	bool asked;
	bool stop;
	pid_t owner;
};

/* Wait until the program asks. False: the bell is closed. */
static bool await_question(struct hd_wake_set *bell)
{
	bool stop;

	hd_lock_take(&bell->lock);
	while (!bell->asked && !bell->stop)
		pthread_cond_wait(&bell->asks, &bell->lock.mutex);
	bell->asked = false;
	stop = bell->stop;
	hd_lock_give(&bell->lock);
	return !stop;
}

static void *bell_run(void *arg)
{
	struct hd_wake_set *bell = arg;

	while (await_question(bell)) {
		hd_wset_wait(bell->set,
			     -1); /* something has come, a signal, or an end that the program is to notice */
		pthread_mutex_lock(&bell->mutex);
		pthread_cond_broadcast(&bell->cond);
		pthread_mutex_unlock(&bell->mutex);
	}
	return NULL;
}

int hd_wake_set_open(struct hd_wset *set, struct hd_wake_set **out)
{
	struct hd_wake_set *bell = calloc(1, sizeof(*bell));
	int rc;

	if (!bell)
		return -ENOMEM;
	bell->set = set;
	bell->owner = getpid();
	pthread_mutex_init(&bell->mutex, NULL);
	pthread_cond_init(&bell->cond, NULL);
	pthread_cond_init(&bell->asks, NULL);
	hd_lock_init(&bell->lock, HD_LOCK_LEAF);
	rc = hd_thread_start(&bell->thread, bell_run, bell);
	if (rc) {
		hd_lock_fini(&bell->lock);
		free(bell);
		return rc;
	}
	*out = bell;
	return 0;
}

/* In a forked child there is no thread, and the conditions count waiters that are not here: they are left as they are. */
void hd_wake_set_close(struct hd_wake_set *bell)
{
	if (bell->owner == getpid()) {
		hd_lock_take(&bell->lock);
		bell->stop = true;
		pthread_cond_signal(&bell->asks);
		hd_lock_give(&bell->lock);
		hd_wset_signal(bell->set);
		pthread_join(bell->thread, NULL);
		pthread_cond_destroy(&bell->cond);
		pthread_cond_destroy(&bell->asks);
		pthread_mutex_destroy(&bell->mutex);
	}
	hd_lock_fini(&bell->lock);
	free(bell);
}

void hd_wake_set_get(struct hd_wake_set *bell, pthread_mutex_t **mutex, pthread_cond_t **cond)
{
	*mutex = &bell->mutex;
	*cond = &bell->cond;
}

int hd_wake_set_arm(struct hd_wake_set *bell)
{
	int rc = hd_wset_wait(bell->set, 0);

	if (rc != -EAGAIN)
		return rc == -ENOTRECOVERABLE ? rc : -EAGAIN;
	hd_lock_take(&bell->lock);
	bell->asked = true;
	pthread_cond_signal(&bell->asks);
	hd_lock_give(&bell->lock);
	return 0;
}
