/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A notifier waits at a channel in the place of the program, and calls a function of it when there
 * is something to take. It holds no lock of ours then, so that function may do whatever the program
 * may, close the notifier too.
 *
 * It is made to leave by one count more in the channel's descriptor than items wait; who finds it
 * asleep adds it, and the notifier takes it back before it does anything else. Nobody else who
 * waits at the channel needs to know.
 */
#include "base/lock.h"
#include "engine/core/core.h"
#include "engine/event/event.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct hd_notifier {
	struct hd_channel *channel;
	void (*call)(void *arg);
	void *arg;
	pthread_t thread;
	pid_t owner;
	struct hd_lock lock; /* what follows */
	atomic_bool stop;    /* read without it as well */
	bool asleep;
	bool nudged;
	bool left_alone; /* closed out of the function that it calls: it frees itself */
};

/* False: the notifier is closed, or its node is dead; the channel may be gone. */
static bool notifier_await(struct hd_notifier *h)
{
	bool goes_on;
	int rc = 0;

	hd_lock_take(&h->lock);
	h->asleep = goes_on = !h->stop;
	hd_lock_give(&h->lock);
	if (!goes_on)
		return false;
	rc = hd_channel_wait(h->channel, -1, &h->stop);
	hd_lock_take(&h->lock);
	h->asleep = false;
	if (h->nudged)
		hd_channel_nudge_back(h->channel);
	goes_on = !h->stop;
	hd_lock_give(&h->lock);
	return goes_on && !rc;
}

static void notifier_free(struct hd_notifier *h)
{
	hd_lock_fini(&h->lock);
	free(h);
}

static void *notifier_run(void *arg)
{
	struct hd_notifier *h = arg;

	while (notifier_await(h))
		h->call(h->arg);
	if (h->left_alone)
		notifier_free(h);
	return NULL;
}

int hd_notifier_open(struct hd_channel *channel, void (*call)(void *arg), void *arg, struct hd_notifier **out)
{
	struct hd_notifier *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	h->channel = channel;
	h->call = call;
	h->arg = arg;
	h->owner = getpid();
	hd_lock_init(&h->lock, HD_LOCK_LEAF);
	hd_lock_take(&h->lock); /* the thread waits until it is told here who it is */
	rc = hd_thread_start(&h->thread, notifier_run, h);
	hd_lock_give(&h->lock);
	if (rc)
		notifier_free(h);
	else
		*out = h;
	return rc;
}

void hd_notifier_close(struct hd_notifier *h)
{
	bool by_itself = pthread_equal(h->thread, pthread_self());

	if (h->owner != getpid()) { /* there is no thread in a forked child */
		notifier_free(h);
		return;
	}
	hd_lock_take(&h->lock);
	h->stop = true;
	h->left_alone = by_itself;
	if (h->asleep) {
		h->nudged = true;
		hd_channel_nudge(h->channel);
	}
	hd_lock_give(&h->lock);
	if (by_itself) {
		pthread_detach(h->thread);
		return;
	}
	pthread_join(h->thread, NULL);
	notifier_free(h);
}
