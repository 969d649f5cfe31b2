/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Channels: items that wait to be taken, and an eventfd that counts them. Both change together under the channel's lock, so that a
 * count can be taken back when its item goes: whoever wants an item polls the descriptor, and reads a count only when he has found one.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct hd_channel {
	struct hd_lock lock;
	struct hd_node *node;
	TAILQ_HEAD(, hd_channel_item) items; /* each once, however often it waits */
	int fd;
};

int hd_channel_open(struct hd_node *node, struct hd_channel **out)
{
	struct hd_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return -ENOMEM;
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->fd < 0) {
		int rc = -errno;

		free(ch);
		return rc;
	}
	ch->node = node;
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

void hd_channel_post(struct hd_channel *ch, struct hd_channel_item *item)
{
	hd_lock_take(&ch->lock);
	if (!item->waiting++)
		TAILQ_INSERT_TAIL(&ch->items, item, entry);
	if (!ch->node->dead) /* the descriptor is the parent's as well */
		(void)eventfd_write(ch->fd, 1);
	hd_lock_give(&ch->lock);
}

/* There are as many counts as items wait, so this does not block. Caller holds the lock. */
static void take_counts(struct hd_channel *ch, uint32_t n)
{
	eventfd_t one;

	while (n-- && !ch->node->dead)
		(void)eventfd_read(ch->fd, &one);
}

int hd_channel_take(struct hd_channel *ch, struct hd_channel_item **out)
{
	struct hd_channel_item *item;

	hd_lock_take(&ch->lock);
	item = TAILQ_FIRST(&ch->items);
	if (item) {
		TAILQ_REMOVE(&ch->items, item, entry);
		if (--item->waiting)
			TAILQ_INSERT_TAIL(&ch->items, item, entry);
		take_counts(ch, 1);
	}
	hd_lock_give(&ch->lock);
	*out = item;
	return item ? 0 : -EAGAIN;
}

void hd_channel_forget(struct hd_channel *ch, struct hd_channel_item *item)
{
	hd_lock_take(&ch->lock);
	if (item->waiting) {
		TAILQ_REMOVE(&ch->items, item, entry);
		take_counts(ch, item->waiting);
		item->waiting = 0;
	}
	hd_lock_give(&ch->lock);
}

static bool anything(struct hd_channel *ch)
{
	bool there;

	hd_lock_take(&ch->lock);
	there = !TAILQ_EMPTY(&ch->items);
	hd_lock_give(&ch->lock);
	return there;
}

/* Sleep once on the channel and on whatever concerns the node, whose lock is held before and after. */
static int nap(struct hd_channel *ch)
{
	struct hd_node *node = ch->node;
	struct pollfd p[2] = { { .fd = ch->fd, .events = POLLIN },
			       { .fd = node->epoll_fd, .events = POLLIN } };
	int rc = 0;

	if (hd_sleep_arm(node) == 0) {
		int ms = hd_timer_next_ms(node);

		hd_node_unlock(node);
		if (poll(p, 2, ms) < 0)
			rc = -errno;
		hd_node_lock(node);
		node->slow_due = 0;
	}
	hd_sleep_disarm(node);
	return rc;
}

int hd_channel_wait(struct hd_channel *ch)
{
	struct hd_node *node = ch->node;
	int rc = 0;

	hd_node_lock(node);
	while (!rc && !anything(ch)) {
		bool moved;

		if (node->dead) {
			rc = -ENOTRECOVERABLE;
			break;
		}
		moved = hd_node_poll(node) > 0;
		if (anything(ch))
			break;
		if (fcntl(ch->fd, F_GETFL) & O_NONBLOCK)
			rc = -EAGAIN;
		else if (!moved)
			rc = nap(ch);
	}
	hd_node_unlock(node);
	return rc;
}
