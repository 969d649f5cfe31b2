/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A list whose members leave it without knowing which one they are in, and which another list takes
 * over whole, both at once, however long it is: sys/queue.h has none of that kind. It begins and
 * ends at its head, which is no member. Nothing is allocated; the caller holds the lock of whatever
 * owns it.
 */
#ifndef HD_BASE_RING_H
#define HD_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>

struct hd_ring {
	struct hd_ring *next, *prev;
};

static inline void hd_ring_init(struct hd_ring *head)
{
	head->next = head->prev = head;
}

static inline bool hd_ring_is_empty(const struct hd_ring *head)
{
	return head->next == head;
}

/* hd_ring_first, hd_ring_next: the next member, NULL at the end. */
static inline struct hd_ring *hd_ring_next(const struct hd_ring *head, const struct hd_ring *member)
{
	return member->next == head ? NULL : member->next;
}

static inline struct hd_ring *hd_ring_first(const struct hd_ring *head)
{
	return hd_ring_next(head, head);
}

/* hd_ring_add: it is the last from now on. */
static inline void hd_ring_add(struct hd_ring *head, struct hd_ring *member)
{
	member->next = head;
	member->prev = head->prev;
	head->prev->next = member;
	head->prev = member;
}

static inline void hd_ring_leave(struct hd_ring *member)
{
	member->prev->next = member->next;
	member->next->prev = member->prev;
}

/* hd_ring_take: all of `from`, which is empty then, stand last in `to`, in their order. */
static inline void hd_ring_take(struct hd_ring *to, struct hd_ring *from)
{
	if (hd_ring_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	hd_ring_init(from);
}

#endif
