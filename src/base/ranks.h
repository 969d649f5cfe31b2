/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who has most. Owners of things are listed by how many they have, a list for each number, so that
 * one more, one fewer and the look at who has most cost the same however many owners there are.
 * Threads: the caller's lock.
 */
#ifndef HEDDLE_BASE_RANKS_H
#define HEDDLE_BASE_RANKS_H

#include <sys/queue.h>

/* Part of each owner. Zeroed: he has none, and is in no list. */
struct hd_rank {
	unsigned count;
	LIST_ENTRY(hd_rank) entry;
};

struct hd_ranks {
	LIST_HEAD(hd_rank_list, hd_rank) * with; /* by count */
	unsigned most;				 /* that one has, or fewer have */
};

/*
 * hd_ranks_open: no owner has anything, and none may have more than max. 0 or -ENOMEM.
 * hd_ranks_close frees the lists; owners are the caller's.
 */
int hd_ranks_open(struct hd_ranks *ranks, unsigned max);
void hd_ranks_close(struct hd_ranks *ranks);

/*
 * hd_rank_up: he has one more, at most max. hd_rank_down: one fewer; with
 * the last he is in no list.
 */
void hd_rank_up(struct hd_ranks *ranks, struct hd_rank *owner);
void hd_rank_down(struct hd_ranks *ranks, struct hd_rank *owner);

/* hd_ranks_most: one who has most, or NULL: nobody has any. */
struct hd_rank *hd_ranks_most(const struct hd_ranks *ranks);

#endif
