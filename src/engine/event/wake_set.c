/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A wake set makes a wait set something that programs wait for with a mutex and a condition
 * variable. The program holds the mutex, asks (hd_wake_set_arm), and is told that there is nothing;
 * a thread of the wake set then sleeps on the set in its place, making the progress that the
 * program does not make, and broadcasts when something has come. It does so with the mutex held,
 * and with no other lock, so the program is in pthread_cond_wait(3) by then.
 */
#include "base/lock.h"
#include "engine/core/core.h"
#include "engine/event/wset.h"

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

/* Wait until the program asks. False: the wake set is closed. */
static bool await_question(struct hd_wake_set *wake_set)
{
	bool stop;

	hd_lock_take(&wake_set->lock);
	while (!wake_set->asked && !wake_set->stop)
		pthread_cond_wait(&wake_set->asks, &wake_set->lock.mutex);
	wake_set->asked = false;
	stop = wake_set->stop;
	hd_lock_give(&wake_set->lock);
	return !stop;
}

static void *wake_set_run(void *arg)
{
	struct hd_wake_set *wake_set = arg;

	while (await_question(wake_set)) {
		/* something has come, a signal, or an end that the program is to notice */
		hd_wset_wait_aside(wake_set->set);
		pthread_mutex_lock(&wake_set->mutex);
		pthread_cond_broadcast(&wake_set->cond);
		pthread_mutex_unlock(&wake_set->mutex);
	}
	return NULL;
}

int hd_wake_set_open(struct hd_wset *set, struct hd_wake_set **out)
{
	struct hd_wake_set *wake_set = calloc(1, sizeof(*wake_set));
	int rc;

	if (!wake_set)
		return -ENOMEM;
	wake_set->set = set;
	wake_set->owner = getpid();
	pthread_mutex_init(&wake_set->mutex, NULL);
	pthread_cond_init(&wake_set->cond, NULL);
	pthread_cond_init(&wake_set->asks, NULL);
	hd_lock_init(&wake_set->lock, HD_LOCK_LEAF);
	rc = hd_thread_start(&wake_set->thread, wake_set_run, wake_set);
	if (rc) {
		hd_lock_fini(&wake_set->lock);
		free(wake_set);
		return rc;
	}
	*out = wake_set;
	return 0;
}

/*
 * In a forked child there is no thread, and the conditions count waiters that are not here:
 * they are left as they are.
 */
void hd_wake_set_close(struct hd_wake_set *wake_set)
{
	if (wake_set->owner == getpid()) {
		hd_lock_take(&wake_set->lock);
		wake_set->stop = true;
		pthread_cond_signal(&wake_set->asks);
		hd_lock_give(&wake_set->lock);
		hd_wset_signal(wake_set->set);
		pthread_join(wake_set->thread, NULL);
		pthread_cond_destroy(&wake_set->cond);
		pthread_cond_destroy(&wake_set->asks);
		pthread_mutex_destroy(&wake_set->mutex);
	}
	hd_lock_fini(&wake_set->lock);
	free(wake_set);
}

void hd_wake_set_get(struct hd_wake_set *wake_set, pthread_mutex_t **mutex, pthread_cond_t **cond)
{
	*mutex = &wake_set->mutex;
	*cond = &wake_set->cond;
}

int hd_wake_set_arm(struct hd_wake_set *wake_set)
{
	int rc = hd_wset_wait(wake_set->set, 0);

	if (rc != -EAGAIN)
		return rc == -ENOTRECOVERABLE ? rc : -EAGAIN;
	hd_lock_take(&wake_set->lock);
	wake_set->asked = true;
	pthread_cond_signal(&wake_set->asks);
	hd_lock_give(&wake_set->lock);
	return 0;
}
