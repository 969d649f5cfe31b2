/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The matching of a receive queue: fi_tagged(3). A message matches a receive when their tags agree
 * in every bit that the receive does not ignore and, where the receive names a source, when it
 * comes from there. Receives are searched in posting order, waiting messages in order of arrival.
 *
 *	posted     one class per (ignore mask, names a source?) in use, each a table by (tag &
 *	           ~ignore, source or 0). A message looks into each class that has entries, and the
 *	           earliest posted of the candidates wins. Nearly every program uses one class.
 *	           Masks beyond HD_MATCH_CLASSES share a list that is searched in order: right, only
 *	           slower.
 *	waiting    a list in order of arrival for receives that ignore bits; a table by tag, and one
 *	           by (tag, source) from the moment on when the first receive names a source, for
 *	           those that do not.
 *
 * Cost for receives that ignore nothing is the same for 1 and 1,000,000 entries but for cache
 * misses: the bucket, the entry, and for waiting messages the neighbours in the list.
 *
 * Nothing is allocated per entry and nothing fails: entries are part of the caller's
 * objects, and memory that is short makes chains longer. Threads: the caller holds the lock
 * of the queue (the node's).
 */
#ifndef HD_ENGINE_MATCH_H
#define HD_ENGINE_MATCH_H

#include "engine/engine.h"
#include "engine/rq/fifo_table.h"

#include <sys/queue.h>

#define HD_MATCH_CLASSES 32 /* ignore masks that have a table, at most */
#define HD_MATCH_ANY 0	    /* source: any */

struct hd_match_class {
	uint64_t mask;	   /* bits of the tag that count */
	uint32_t src_mask; /* all ones: entries name a source */
	uint8_t index;
	bool active;
	struct hd_fifo_table table;
};

/* A waiting message's hooks: its place in all three orders. */
struct hd_wnode {
	struct hd_mnode by_tag; /* tag, source 0 */
	struct hd_mnode by_src; /* tag, source: hd_wnode_tag and hd_wnode_src read them */
	TAILQ_ENTRY(hd_wnode) arrival;
};

TAILQ_HEAD(hd_wnode_list, hd_wnode);

/*
 * Where a source may have several numbers: which is the next, as hd_source_next, whichever of them
 * src is. A receive that names one of them takes the messages of all.
 */
struct hd_match_numbers {
	uint32_t (*next)(void *arg, uint32_t src, struct hd_source_walk *walk);
	void *arg;
};

/*
 * Where receives may name a group of sources: which group a source is in, or a
 * waiting message; 0: none.
 */
struct hd_match_groups {
	uint32_t (*of_source)(void *arg, uint32_t src);
	uint32_t (*of_message)(const struct hd_wnode *w);
	void *arg;
};

struct hd_match {
	size_t posted, waiting; /* entries */
	unsigned active_count;
	bool directed;	   /* receives may name a source */
	bool by_src_used;  /* one has: by_src is kept */
	uint64_t next_seq; /* of receives and of messages */
	uint64_t seed;
	struct hd_match_class *last; /* class of the latest post */
	struct hd_match_class *active[HD_MATCH_CLASSES];
	struct hd_match_class *class[HD_MATCH_CLASSES]; /* all that were made; by index */
	/* receives that have no class, linked by next */
	struct hd_mnode *listed, **listed_end;
	/* reasons for each message to take the longer way: one of `listed`, groups, numbers */
	unsigned longer;
	struct hd_wnode_list arrivals;
	struct hd_match_class first; /* class[0] */
	struct hd_fifo_table by_tag, by_src;
	struct hd_match_groups groups;	 /* of_source NULL: sources are no groups */
	struct hd_match_numbers numbers; /* next NULL: each source has one */
};

/*
 * hd_match_init: an empty queue with hash seeds of its own. directed: receives may name
 * a source; where it is false, the source given with a receive is ignored. The object
 * must not move afterwards.
 * hd_match_fini: free the tables. Entries are the caller's and are not touched.
 */
void hd_match_init(struct hd_match *m, bool directed);
void hd_match_fini(struct hd_match *m);

/*
 * hd_match_group: of a new queue: a source that a receive names may be a group: a number from
 * HD_MATCH_GROUPS on. Every message takes the longer way then, and a receive that names a group
 * looks at waiting messages one after the other.
 * hd_match_number: from now on sources may have several numbers, and every message takes the
 * longer way. Receives and messages may match then that are both in the queue: it is the
 * caller who has them meet.
 */
#define HD_MATCH_GROUPS (UINT32_C(1) << 31)
void hd_match_group(struct hd_match *m, const struct hd_match_groups *groups);
void hd_match_number(struct hd_match *m, const struct hd_match_numbers *numbers);

/*
 * hd_match_check (check.c): asserts in builds with assertions that its counts and orders agree with
 * its tables, and that what matches has met.
 */
#ifdef NDEBUG
static inline void hd_match_check(struct hd_match *m)
{
}
#else
void hd_match_check(struct hd_match *m);
#endif

/* ---- posted receives ---- */

/*
 * hd_match_post: append a receive. ignore: bits of the tag that do not count; src: source that it
 * wants or HD_MATCH_ANY. The caller has looked for a waiting message first. n must be in no queue;
 * its content need not be set (a zeroed n is "in none").
 * hd_match_post_other: one that is not of the only key there, or the first.
 */
void hd_match_post_other(struct hd_match *m, struct hd_mnode *n, uint64_t tag, uint64_t ignore, uint32_t src);
static inline void hd_match_post(struct hd_match *m, struct hd_mnode *n, uint64_t tag, uint64_t ignore,
				 uint32_t src)
{
	struct hd_match_class *c = m->last;
	struct hd_mnode **only = c->table.only; /* there is one: the class is active */

	if (!m->directed)
		src = HD_MATCH_ANY;
	if (__builtin_expect(!only || !hd_mnode_has_key(*only, tag & ~ignore, src) || c->mask != ~ignore ||
				     !c->src_mask != (src == HD_MATCH_ANY),
			     0)) {
		hd_match_post_other(m, n, tag, ignore, src);
		return;
	}
	/* a queue pair's receives are all of one key */
	n->tag = tag & ~ignore;
	n->src = src;
	n->seq = m->next_seq++;
	n->owner = c->index;
	m->posted++;
	c->table.count++;
	hd_fifo_append(*only, n);
}

/* hd_match_unpost: take a posted receive out. */
void hd_match_unpost(struct hd_match *m, struct hd_mnode *n);

/* hd_mnode_is_posted: is n posted (by any queue)? n has been zeroed or posted at least once. */
static inline bool hd_mnode_is_posted(const struct hd_mnode *n)
{
	return n->role != HD_MNODE_OUT;
}

/* Where more than one class has entries. */
struct hd_mnode *hd_match_peek_slow(struct hd_match *m, uint64_t tag, uint32_t src);

static inline bool hd_match_is_simple(const struct hd_match *m)
{
	return __builtin_expect(m->active_count == 1 && !m->longer, 1);
}

/*
 * hd_match_peek_posted: the earliest posted receive that a message with this tag from src matches;
 * it stays posted. Or NULL.
 */
static inline struct hd_mnode *hd_match_peek_posted(struct hd_match *m, uint64_t tag, uint32_t src)
{
	const struct hd_match_class *c = m->active[0];

	if (!m->posted)
		return NULL;
	if (hd_match_is_simple(m))
		return hd_fifo_find(&c->table, tag & c->mask, src & c->src_mask);
	return hd_match_peek_slow(m, tag, src);
}

/*
 * hd_match_look_posted: the same; *slot is for hd_match_unpost_at, which takes it out without
 * searching again while nothing else has happened to the queue. NULL there: it has to search.
 */
static inline struct hd_mnode *hd_match_look_posted(struct hd_match *m, uint64_t tag, uint32_t src,
						    struct hd_mnode ***slot)
{
	const struct hd_match_class *c = m->active[0];

	*slot = NULL;
	if (!m->posted)
		return NULL;
	if (!hd_match_is_simple(m))
		return hd_match_peek_slow(m, tag, src);
	*slot = hd_fifo_find_slot(&c->table, tag & c->mask, src & c->src_mask);
	return *slot ? **slot : NULL;
}

/*
 * hd_match_begins: where the search for the receive of this message begins: a link to what may
 * be it, or whose chain has it. For those who bring memory near before they search; NULL: the
 * search goes another way.
 */
/* receives, from which on it is worth it: they and their buckets fill a cache of a megabyte */
#define HD_MATCH_DEEP 8192
static inline struct hd_mnode *const *hd_match_begins(const struct hd_match *m, uint64_t tag, uint32_t src)
{
	const struct hd_match_class *c = m->active[0];

	if (!hd_match_is_simple(m) || c->table.only)
		return NULL;
	return hd_fifo_bucket(&c->table, hd_fifo_hash(&c->table, tag & c->mask, src & c->src_mask));
}

static inline void hd_match_unpost_at(struct hd_match *m, struct hd_mnode *n, struct hd_mnode **slot)
{
	if (!slot) {
		hd_match_unpost(m, n);
		return;
	}
	m->posted--;
	hd_fifo_unlink_leader(&m->active[0]->table, slot);
}

/*
 * hd_match_each_posted: call fn for every posted receive until it answers true; returns that
 * receive, or NULL. Receives of equal tag, mask and source come in posting order, others in none
 * (n->seq tells). fn may unpost the receive that it is given, and must change nothing else in the
 * queue. For cancelling and flushing: visits everything.
 */
struct hd_mnode *hd_match_each_posted(struct hd_match *m, bool (*fn)(struct hd_mnode *n, void *arg),
				      void *arg);

/* ---- waiting messages ---- */

static inline uint64_t hd_wnode_tag(const struct hd_wnode *w)
{
	return w->by_src.tag;
}

static inline uint32_t hd_wnode_src(const struct hd_wnode *w)
{
	return w->by_src.src;
}

/*
 * hd_match_put_waiting: append a message that matched no posted receive. w must be in no queue; its
 * content need not be set.
 */
void hd_match_put_waiting(struct hd_match *m, struct hd_wnode *w, uint64_t tag, uint32_t src);

/* hd_match_remove_waiting: take a waiting message out. */
void hd_match_remove_waiting(struct hd_match *m, struct hd_wnode *w);

struct hd_wnode *hd_match_find_slow(struct hd_match *m, uint64_t tag, uint64_t ignore, uint32_t src);

/*
 * hd_match_find_waiting: the earliest waiting message that a receive (tag, ignore, src)
 * matches; it stays. Or NULL.
 */
static inline struct hd_wnode *hd_match_find_waiting(struct hd_match *m, uint64_t tag, uint64_t ignore,
						     uint32_t src)
{
	return m->waiting ? hd_match_find_slow(m, tag, ignore, src) : NULL;
}

/* hd_match_first_waiting, hd_match_next_waiting: in order of arrival; NULL at the end. */
static inline struct hd_wnode *hd_match_first_waiting(const struct hd_match *m)
{
	return TAILQ_FIRST(&m->arrivals);
}

static inline struct hd_wnode *hd_match_next_waiting(const struct hd_wnode *w)
{
	return TAILQ_NEXT(w, arrival);
}

/*
 * hd_match_forget: messages of sources that are gone, says the callback, are of HD_MATCH_FORGOTTEN
 * from now on. Visits each message.
 */
#define HD_MATCH_FORGOTTEN UINT32_MAX
void hd_match_forget(struct hd_match *m, bool (*gone)(const void *arg, uint32_t src), const void *arg);

#endif
