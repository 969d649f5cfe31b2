/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Locks of objects that belong to no node, and that a forked child must find free: all of them are
 * taken before a fork and given back after it, in the parent and in the child, so what they protect
 * is whole in the child as well. They are for what opens, closes and sleeps, never for the path of
 * a message.
 */
#ifndef HD_BASE_LOCK_H
#define HD_BASE_LOCK_H

#include <pthread.h>
#include <sys/queue.h>

enum hd_lock_rank {
	HD_LOCK_OUTER, /* a node's lock may be taken while it is held */
	HD_LOCK_LEAF,  /* no lock is taken while it is held */
};

struct hd_lock {
	pthread_mutex_t mutex;
	enum hd_lock_rank rank;
	LIST_ENTRY(hd_lock) entry; /* of the process */
};

/*
 * hd_lock_init makes a free lock; hd_lock_fini forgets it, free again. Both may wait for a fork
 * that is under way: call them without any other lock.
 */
void hd_lock_init(struct hd_lock *lock, enum hd_lock_rank rank);
void hd_lock_fini(struct hd_lock *lock);

/*
 * HD_LOCK_DEFINE: a static leaf lock, usable from the start. The end takes the semicolon, without
 * which the function behind it is lost to ctags.
 */
#define HD_LOCK_DEFINE(name) \
	static struct hd_lock name; \
	__attribute__((constructor)) static void name##_init(void) \
	{ \
		hd_lock_init(&name, HD_LOCK_LEAF); \
	} \
	struct hd_lock

/*
 * hd_lock_between: what has locks of other kinds, for which somebody may wait who has an outer one,
 * and whose holder may wait for a leaf: at a fork take is called between those two ranks, give
 * in the parent, and forked in the child, when all of both ranks are free again. Once in a process.
 */
struct hd_lock_between {
	void (*take)(void), (*give)(void), (*forked)(void);
};
void hd_lock_between(const struct hd_lock_between *between);

void hd_lock_take(struct hd_lock *lock);
void hd_lock_give(struct hd_lock *lock);

#endif
