/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A hash table whose entries with equal keys stand in line: first in, first out. The hooks are in
 * the entries, so inserting allocates nothing and cannot fail.
 *
 *	buckets     leaders, one per key       followers, equal key
 *	+---+        +--------+  next   +--------+  next   +--------+
 *	| 0 |------->| tag 7 |-------->| tag 7 |-------->| tag 7 | leader->prev is the last in line
 *	+---+ +--------+ +--------+ +--------+ | 1 | | chain +---+ +--------+ | 2 | | tag 9 | number
 *	of leaders <= number of buckets +---+ +--------+
 *
 * It grows by linear hashing (Litwin, 1980): an insert that finds more leaders than buckets splits
 * one bucket in two, so there is never a moment at which everything moves. Buckets live in
 * segments, each as large as all before it together, and stay where they are. The hash is seeded
 * per table, so that a peer that chooses tags cannot aim at one bucket. Whole lines move when a
 * bucket is split, hence the order among equal keys is kept. Where memory for a segment is out,
 * chains grow instead.
 *
 * Threads: none of its own; the caller holds the lock of whatever owns the table.
 */
#ifndef HD_ENGINE_FIFO_TABLE_H
#define HD_ENGINE_FIFO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry's hooks and key. Everything here is the table's while the entry is in it. */
struct hd_mnode {
	union {
		struct {
			struct hd_mnode *chain; /* leaders: the next leader in the bucket */
			/* towards the first; leaders: the last in line, itself when alone */
			struct hd_mnode *prev;
		};
		uint64_t mask; /* HD_MNODE_LISTED: free for the owner of the list */
	};
	struct hd_mnode *next; /* towards the last in line */
	uint64_t tag;
	uint64_t seq; /* set before the insert by who needs hd_fifo_insert_sorted */
	uint32_t src;
	uint8_t role;  /* enum hd_mnode_role */
	uint8_t owner; /* free for the owner of the table */
};

enum hd_mnode_role {
	HD_MNODE_OUT = 0, /* in no table; what zeroed memory says */
	HD_MNODE_LEADER,
	HD_MNODE_FOLLOWER,
	HD_MNODE_LISTED, /* in a list of the owner's instead */
};

#define HD_FIFO_FIRST 3 /* log2 of the buckets of the first segment, which is part of the table */
#define HD_FIFO_SEGMENTS 30

struct hd_fifo_table {
	uint64_t seed[2];
	size_t low_mask; /* buckets at the start of this round of splits, less 1 */
	size_t buckets;	 /* low_mask + 1 + buckets split in this round */
	size_t leaders;
	size_t count;		/* entries */
	struct hd_mnode **only; /* the link to the leader, while it is known to be the only one */
	/* address of bucket 0 if the segment reached down to it */
	uintptr_t segment[HD_FIFO_SEGMENTS];
	struct hd_mnode *first[1 << HD_FIFO_FIRST];
};

/*
 * hd_fifo_init: an empty table; seed are two random words. Allocates nothing. The table must not
 * move in memory afterwards.
 */
void hd_fifo_init(struct hd_fifo_table *t, const uint64_t seed[2]);

/*
 * hd_fifo_fini: free the buckets. Entries that are still in it are the
 * caller's and are not touched.
 */
void hd_fifo_fini(struct hd_fifo_table *t);

/* hd_fifo_insert: append n to the line of its key (n->tag, n->src). O(1); does not fail. */
void hd_fifo_insert(struct hd_fifo_table *t, struct hd_mnode *n);

/*
 * hd_fifo_append: n stands last in the line of a leader of its key. The entries are the
 * caller's to count: table->count.
 */
static inline void hd_fifo_append(struct hd_mnode *leader, struct hd_mnode *n)
{
	n->role = HD_MNODE_FOLLOWER;
	n->next = NULL;
	n->prev = leader->prev;
	leader->prev->next = n;
	leader->prev = n;
}

/*
 * hd_fifo_insert_sorted: as insert, but at the place that n->seq says. Walks the line from its end.
 */
void hd_fifo_insert_sorted(struct hd_fifo_table *t, struct hd_mnode *n);

/* hd_fifo_remove: take n, which is in t, out of it. O(1). */
void hd_fifo_remove(struct hd_fifo_table *t, struct hd_mnode *n);

/*
 * hd_fifo_each: call fn for every entry, those of equal key in order, others in no order, until it
 * answers true. Returns the entry that it answered true for, or NULL. fn may remove the entry that
 * it is given, and must change nothing else.
 */
struct hd_mnode *hd_fifo_each(struct hd_fifo_table *t, bool (*fn)(struct hd_mnode *n, void *arg), void *arg);

/*
 * hd_fifo_trim: called by hd_fifo_remove and take when a large table has become empty; gives
 * most of its buckets back.
 */
void hd_fifo_trim(struct hd_fifo_table *t);

#define HD_FIFO_TRIM ((size_t)1 << 16) /* buckets that an empty table keeps */

/* The product of two words, its halves folded into one. */
static inline uint64_t hd_fifo_fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
#else
	a = (a ^ (a >> 32)) * (b | 1);
	return a ^ (a >> 29);
#endif
}

/*
 * hd_fifo_hash: two multiplications with secret bits in them. One is not enough: tags that count up
 * then fall into few buckets for some seeds (chains of 60 at load 1, measured).
 */
static inline uint64_t hd_fifo_hash(const struct hd_fifo_table *t, uint64_t tag, uint32_t src)
{
	uint64_t h = hd_fifo_fold(tag ^ t->seed[0], (src * UINT64_C(0x9e3779b97f4a7c15)) ^ t->seed[1]);

	return hd_fifo_fold(h, UINT64_C(0xd6e8feb86659fd93));
}

/* hd_fifo_bucket: where the chain of this hash starts. */
static inline struct hd_mnode **hd_fifo_bucket(const struct hd_fifo_table *t, uint64_t hash)
{
	size_t i = (size_t)hash & (t->low_mask * 2 + 1);

	if (i >= t->buckets)
		i &= t->low_mask;

	unsigned k = 63 - (unsigned)__builtin_clzll(i | ((1u << HD_FIFO_FIRST) - 1)) - (HD_FIFO_FIRST - 1);

	return (struct hd_mnode **)(t->segment[k] + i * sizeof(struct hd_mnode *));
}

static inline bool hd_mnode_has_key(const struct hd_mnode *n, uint64_t tag, uint32_t src)
{
	return n->tag == tag && n->src == src;
}

/* hd_fifo_find_slot: the link that points to the leader of this key, or NULL. */
static inline struct hd_mnode **hd_fifo_find_slot(const struct hd_fifo_table *t, uint64_t tag, uint32_t src)
{
	struct hd_mnode **slot = t->only;

	if (slot)
		return hd_mnode_has_key(*slot, tag, src) ? slot : NULL;
	slot = hd_fifo_bucket(t, hd_fifo_hash(t, tag, src));
	for (; *slot; slot = &(*slot)->chain)
		if (hd_mnode_has_key(*slot, tag, src))
			return slot;
	return NULL;
}

/* hd_fifo_find: the first in line for this key, which stays in, or NULL. */
static inline struct hd_mnode *hd_fifo_find(const struct hd_fifo_table *t, uint64_t tag, uint32_t src)
{
	struct hd_mnode **slot = hd_fifo_find_slot(t, tag, src);

	return slot ? *slot : NULL;
}

/* hd_fifo_unlink_leader: take *slot out; its first follower, if any, takes its place. */
static inline void hd_fifo_unlink_leader(struct hd_fifo_table *t, struct hd_mnode **slot)
{
	struct hd_mnode *n = *slot, *heir = n->next;

	if (heir) {
		heir->role = HD_MNODE_LEADER;
		heir->chain = n->chain;
		heir->prev = n->prev;
		*slot = heir;
	} else {
		*slot = n->chain;
		t->leaders--;
		t->only = NULL;
	}
	n->role = HD_MNODE_OUT;
	if (--t->count == 0 && t->buckets > HD_FIFO_TRIM)
		hd_fifo_trim(t);
}

#endif
