/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Channels: items that wait to be taken, and an eventfd that counts them. Both change together
 * under the channel's lock, so that a count can be taken back when its item goes: whoever wants an
 * item polls the descriptor, and reads a count only when he has found one.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "engine/core/core.h"
#include "engine/event/event.h"
#include "engine/event/waiters.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int hd_channel_open(struct hd_node *node, struct hd_channel **out)
{
	struct hd_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return -ENOMEM;
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->fd < 0) {
		int rc = hd_fds_missing("a completion channel", -errno);

		free(ch);
		return rc;
	}
	ch->node = node;
	ch->watched = true;
	TAILQ_INIT(&ch->items);
	hd_lock_init(&ch->lock, HD_LOCK_LEAF);
	*out = ch;
	return 0;
}

void hd_channel_close(struct hd_channel *ch)
{
	close(ch->fd);
	hd_lock_fini(&ch->lock);
	free(ch);
}

int hd_channel_fd(const struct hd_channel *ch)
{
	return ch->fd;
}

void hd_channel_tend(struct hd_channel *ch, bool on)
{
	hd_assert_locked(ch->node);
	ch->watched = !on;
}

void hd_channel_post(struct hd_channel *ch, struct hd_channel_item *item)
{
	hd_lock_take(&ch->lock);
	if (!item->waiting++)
		TAILQ_INSERT_TAIL(&ch->items, item, entry);
	if (!hd_core(ch->node)->gate.dead) /* the descriptor is the parent's as well */
		(void)eventfd_write(ch->fd, 1);
	hd_lock_give(&ch->lock);
}

/* There are as many counts as items wait, so this does not block. Caller holds the lock. */
static void channel_take_counts(struct hd_channel *ch, uint32_t n)
{
	eventfd_t one;

	while (n-- && !hd_core(ch->node)->gate.dead)
		(void)eventfd_read(ch->fd, &one);
}

int hd_channel_take(struct hd_channel *ch, struct hd_channel_item **out)
{
	struct hd_channel_item *item;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
			       &state); /* read(2) ends threads, and this one has the lock */
	hd_lock_take(&ch->lock);
	item = TAILQ_FIRST(&ch->items);
	if (item) {
		TAILQ_REMOVE(&ch->items, item, entry);
		if (--item->waiting)
			TAILQ_INSERT_TAIL(&ch->items, item, entry);
		++*item->taken;
		channel_take_counts(ch, 1);
	}
	hd_lock_give(&ch->lock);
	pthread_setcancelstate(state, NULL);
	*out = item;
	return item ? 0 : -EAGAIN;
}

uint32_t hd_channel_forget(struct hd_channel *ch, const uint32_t *taken,
			   void (*drop)(struct hd_channel_item *item))
{
	TAILQ_HEAD(, hd_channel_item) gone = TAILQ_HEAD_INITIALIZER(gone);
	struct hd_channel_item *item, *next;
	uint32_t count;

	hd_lock_take(&ch->lock);
	for (item = TAILQ_FIRST(&ch->items); item; item = next) {
		next = TAILQ_NEXT(item, entry);
		if (item->taken != taken)
			continue;
		TAILQ_REMOVE(&ch->items, item, entry);
		TAILQ_INSERT_TAIL(&gone, item, entry);
		channel_take_counts(ch, item->waiting);
		item->waiting = 0;
	}
	count = *taken;
	hd_lock_give(&ch->lock);
	while (drop && (item = TAILQ_FIRST(&gone))) {
		TAILQ_REMOVE(&gone, item, entry);
		drop(item);
	}
	return count;
}

/*
 * A program that looks once more before it sleeps is not asked to: what comes
 * wakes the thread from now on.
 */
void hd_channel_armed(struct hd_channel *ch)
{
	hd_assert_locked(ch->node);
	if (ch->watched)
		hd_auto_notify(ch->node);
}

static bool anything(struct hd_channel *ch)
{
	bool there;

	hd_lock_take(&ch->lock);
	there = !TAILQ_EMPTY(&ch->items);
	hd_lock_give(&ch->lock);
	return there;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static bool may_block(const struct hd_channel *ch)
{
	return !(fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
}

struct wait {
	uint64_t due; /* 0: no end */
	/* of the node, as we left it the last time; somebody else polls when it has moved */
	uint64_t turns;
	struct hd_busy_polling looking;
	struct pollfd fds[2];
	struct hd_block nap;
};

/*
 * One look and, where there is nothing for long enough, one sleep. 0: look again;
 * else as hd_channel_wait.
 */
static int wait_once(struct hd_channel *ch, struct wait *w)
{
	struct hd_node *node = ch->node;
	bool moved, beside = hd_node_program_turns(node) != w->turns;
	uint64_t now;

	if (hd_core(node)->gate.dead)
		return -ENOTRECOVERABLE;
	moved = hd_block_turn(node, beside) > 0;
	w->turns = hd_node_program_turns(node);
	if (anything(ch))
		return 0;
	ch->watched = !may_block(ch);
	if (ch->watched)
		return -EAGAIN;
	now = w->due ? hd_now_ns() : 0;
	if (w->due && now >= w->due)
		return -ETIMEDOUT;
	if (moved && !beside)
		return 0;
	if (!beside && hd_busy_poll_on(&ch->busy_poll, &w->looking, 0, hd_ticks())) {
		hd_node_unlock(node);
		hd_busy_poll_pause(&w->looking);
		hd_node_lock(node);
		return 0;
	}
	w->nap.beside = beside;
	if (!w->nap.since)
		w->nap.since = hd_ticks();
	w->nap.on.ms = w->due ? (int)((w->due - now) / HD_NS_PER_MS) + 1 : -1;
	return hd_block(node, &w->nap);
}

int hd_channel_wait(struct hd_channel *ch, int timeout_ms, const atomic_bool *stop)
{
	struct wait w = { .due = timeout_ms < 0 ? 0 : hd_now_ns() + (uint64_t)timeout_ms * HD_NS_PER_MS,
			  .fds = { { .fd = ch->fd, .events = POLLIN } },
			  .nap = { .on = { .fds = w.fds, .count = 1 }, .at = &ch->asleep } };
	struct hd_node *node = ch->node;
	int rc = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &w.nap.on.cancel);
	hd_node_lock(node);
	w.turns = hd_node_program_turns(node);
	if (anything(ch))
		ch->watched = true;
	while (!rc && !anything(ch))
		rc = stop && *stop ? -ECANCELED : wait_once(ch, &w);
	hd_busy_polled(&ch->busy_poll, &w.looking);
	hd_node_unlock(node);
	pthread_setcancelstate(w.nap.on.cancel, NULL);
	return rc;
}

void hd_channel_nudge(struct hd_channel *ch)
{
	(void)eventfd_write(ch->fd, 1);
}

void hd_channel_nudge_back(struct hd_channel *ch)
{
	channel_take_counts(ch, 1);
}

int hd_channel_sleep(struct hd_channel *ch)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct hd_poll on = { .fds = &p, .count = 1, .ms = -1 };
	int rc = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &on.cancel);
	hd_node_lock(ch->node);
	hd_auto_notify(ch->node);
	hd_node_unlock(ch->node);
	while (!rc && !anything(ch)) {
		if (hd_core(ch->node)->gate.dead)
			rc = -ENOTRECOVERABLE;
		else if (!may_block(ch))
			rc = -EAGAIN;
		else
			rc = hd_poll_openly(&on);
	}
	pthread_setcancelstate(on.cancel, NULL);
	return rc;
}
