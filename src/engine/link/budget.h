/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Budgets: what others make us keep, counted for whose it is, so that nobody takes the room of all.
 * Peers of our own user, and those that have proved that they have our key, share one that is
 * bounded by the node's store alone (credit.h). Each other user of this host has one, and each
 * other host by the address that its link comes from, of IPv6 by the first half of that, which is
 * one network's. In eighths:
 *
 *					one of others'	all of others'	ours
 *	HEDDLE_UNEXPECTED_MAX
 *	  windows that grow, and the rest	2		4		7
 *	  and the first window of a new peer	4		6		8
 *	descriptors				4		5		8
 *
 * so that who has his peers' windows grow does not shut out the next of his own processes, and
 * others together not ours. Whom we have called ourselves gets in while the store has room. At
 * least a first window is everybody's.
 *
 * A peer has a share of its budget. What it has left waiting when it goes stays in that until it is
 * received, and after HEDDLE_ANSWER_TIMEOUT gives way to a new peer for which there is no room
 * otherwise, the oldest first. Ours is never dropped. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_BUDGET_H
#define HD_ENGINE_BUDGET_H

#include "engine/link/state.h"

struct hd_budget {
	struct hd_node *node;
	struct hd_budget_key {
		uint64_t realm; /* base/realm.h, or that it is ours */
		uint8_t host[16];
	} key;
	bool is_ours;
	uint32_t shares; /* of peers, and of those that are gone */
	/* taken out of the node's store; not counted where it is ours */
	uint32_t units;
	uint32_t files; /* and descriptors, likewise */
	/* what it has cost to ask whose its names are: hd_budget_ask */
	struct hd_asking asking;
	TAILQ_HEAD(, hd_share) gone; /* of others' peers that have left something: by age */
	UT_hash_handle hh;	     /* hd_links.budgets */
};

struct hd_share {
	struct hd_budget *budget;
	uint32_t refs;	/* its peer, and what that has left */
	uint32_t files; /* descriptors of its peer's links */
	uint64_t since; /* hd_now_ns() when its peer went */
	bool may_go;	/* in the two lists */
	/* rq's: messages that nobody has received or claimed: hd_msg.kept */
	struct hd_ring left;
	LIST_HEAD(, hd_overflow) owed; /* completions that nobody has read: owed.c */
	TAILQ_ENTRY(hd_share) entry;   /* budget->gone */
	TAILQ_ENTRY(hd_share) of_all;  /* hd_links.gone */
};

/*
 * hd_share_open: for a new peer whose first link this is; NULL: ourselves. NULL: no
 * memory. Nothing is taken yet.
 */
struct hd_share *hd_share_open(struct hd_node *node, const struct hd_link *link);

/*
 * hd_share_admit: take so many units and what its links need of descriptors; called: by us. False:
 * there is no room, and nothing has been taken.
 */
bool hd_share_admit(struct hd_share *share, uint32_t units, bool called);

/* hd_share_close: its peer goes, and so many units are free again. */
void hd_share_close(struct hd_share *share, uint32_t units);

/*
 * hd_share_leave: something stays that belongs to the peer, which is about to go. hd_share_release:
 * that is gone too, and with it so many units.
 */
static inline struct hd_share *hd_share_leave(struct hd_share *share)
{
	share->refs++;
	return share;
}
void hd_share_release(struct hd_share *share, uint32_t units);

/*
 * hd_budget_room: by how much windows may grow. hd_budget_cast_room: what messages that were sent
 * to a group may take, for which nobody pays: not what is for first windows of our own.
 * hd_budget_take: whether there is room or not; hd_budget_give: it is free again.
 */
uint32_t hd_budget_room(const struct hd_budget *budget);
uint32_t hd_budget_cast_room(const struct hd_node *node);
void hd_budget_take(struct hd_budget *budget, uint32_t units);
void hd_budget_give(struct hd_budget *budget, uint32_t units);

/*
 * hd_budget_keep: something that is not paid by credit; true: it may be kept, and is counted where
 * it is others'. hd_budget_unkeep: it is kept no longer.
 */
bool hd_budget_keep(struct hd_budget *budget, uint32_t units);
void hd_budget_unkeep(struct hd_budget *budget, uint32_t units);

/*
 * hd_budget_ask: may the kernel be asked whose a name is that somebody of these says is his? It
 * takes a while, and he may say it without end: so at most a twentieth of the time goes into it,
 * but for the first ones, and whoever comes when they have gone begins where they were.
 * hd_budget_asked: it was, from then on until now.
 */
bool hd_budget_ask(struct hd_budget *budget, uint64_t now);
void hd_budget_asked(struct hd_budget *budget, uint64_t since);

/*
 * hd_budget_check (check.c): asserts in builds with assertions that what is taken out of it is
 * whose it is. hd_links_check has the sums.
 */
#ifdef NDEBUG
static inline void hd_budget_check(const struct hd_budget *budget)
{
}
#else
void hd_budget_check(const struct hd_budget *budget);
#endif

#endif
