/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/rq/fifo_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

/* First bucket of segment k (which holds as many as come before it), and its bytes. */
static size_t segment_start(unsigned k)
{
	return k ? (size_t)1 << (k + HD_FIFO_FIRST - 1) : 0;
}

static size_t segment_bytes(unsigned k)
{
	return segment_start(k) * sizeof(struct hd_mnode *);
}

static bool segment_add(struct hd_fifo_table *t, unsigned k)
{
	void *bucket;

	if (k >= HD_FIFO_SEGMENTS)
		return false;
	bucket = segment_bytes(k) >= HD_HUGE_PAGE ? hd_pages_get(segment_bytes(k))
						  : calloc(1, segment_bytes(k));
	if (!bucket)
		return false;
	t->segment[k] = (uintptr_t)bucket - segment_start(k) * sizeof(struct hd_mnode *);
	return true;
}

static void segments_free(struct hd_fifo_table *t, unsigned from)
{
	for (unsigned k = from; k < HD_FIFO_SEGMENTS && t->segment[k]; k++) {
		void *bucket = (void *)(t->segment[k] + segment_start(k) * sizeof(struct hd_mnode *));

		if (segment_bytes(k) >= HD_HUGE_PAGE)
			hd_pages_put(bucket, segment_bytes(k));
		else
			free(bucket);
		t->segment[k] = 0;
	}
}

void hd_fifo_init(struct hd_fifo_table *t, const uint64_t seed[2])
{
	memset(t, 0, sizeof(*t));
	t->seed[0] = seed[0];
	t->seed[1] = seed[1];
	t->buckets = (size_t)1 << HD_FIFO_FIRST;
	t->low_mask = t->buckets - 1;
	t->segment[0] = (uintptr_t)t->first;
}

void hd_fifo_fini(struct hd_fifo_table *t)
{
	segments_free(t, 1);
}

void hd_fifo_trim(struct hd_fifo_table *t)
{
	unsigned k = 1;

	while (segment_start(k) < HD_FIFO_TRIM)
		k++;
	segments_free(t, k);
	t->buckets = HD_FIFO_TRIM;
	t->low_mask = t->buckets - 1;
}

/* Deal the chain of the next bucket in turn out to itself and to a new last bucket. */
static void split(struct hd_fifo_table *t)
{
	size_t round = t->low_mask + 1;
	struct hd_mnode *n, **low, **high;

	if (t->buckets == round) {
		unsigned k = (unsigned)__builtin_ctzll(round) - HD_FIFO_FIRST + 1;

		if (!segment_add(t, k))
			return;
	}
	low = hd_fifo_bucket(t, t->buckets - round);
	t->buckets++;
	high = hd_fifo_bucket(t, t->buckets - 1);
	n = *low;
	while (n) {
		struct hd_mnode *after = n->chain;

		if (hd_fifo_hash(t, n->tag, n->src) & round) {
			*high = n;
			high = &n->chain;
		} else {
			*low = n;
			low = &n->chain;
		}
		n = after;
	}
	*low = NULL;
	*high = NULL;
	if (t->buckets == round * 2)
		t->low_mask = t->buckets - 1;
}

void hd_fifo_insert(struct hd_fifo_table *t, struct hd_mnode *n)
{
	struct hd_mnode **slot = t->only;

	t->count++;
	if (!slot || !hd_mnode_has_key(*slot, n->tag, n->src))
		slot = hd_fifo_bucket(t, hd_fifo_hash(t, n->tag, n->src));
	for (; *slot; slot = &(*slot)->chain) {
		if (hd_mnode_has_key(*slot, n->tag, n->src)) {
			hd_fifo_append(*slot, n);
			return;
		}
	}
	n->role = HD_MNODE_LEADER;
	n->chain = NULL;
	n->next = NULL;
	n->prev = n;
	*slot = n;
	t->only = t->leaders ? NULL : slot;
	if (++t->leaders > t->buckets)
		split(t);
}

/* n goes before the leader at *slot and becomes the leader. */
static void depose(struct hd_mnode **slot, struct hd_mnode *n)
{
	struct hd_mnode *old = *slot;

	n->role = HD_MNODE_LEADER;
	n->chain = old->chain;
	n->prev = old->prev;
	n->next = old;
	old->role = HD_MNODE_FOLLOWER;
	old->prev = n;
	*slot = n;
}

void hd_fifo_insert_sorted(struct hd_fifo_table *t, struct hd_mnode *n)
{
	struct hd_mnode **slot = hd_fifo_find_slot(t, n->tag, n->src);
	struct hd_mnode *before;

	if (!slot) {
		hd_fifo_insert(t, n);
		return;
	}
	t->count++;
	if (n->seq < (*slot)->seq) {
		depose(slot, n);
		return;
	}
	before = (*slot)->prev;
	if (before->seq <= n->seq) {
		hd_fifo_append(*slot, n);
		return;
	}
	while (before->seq > n->seq)
		before = before->prev;
	n->role = HD_MNODE_FOLLOWER;
	n->prev = before;
	n->next = before->next;
	before->next->prev = n;
	before->next = n;
}

static void remove_follower(struct hd_fifo_table *t, struct hd_mnode *n)
{
	n->prev->next = n->next;
	if (n->next)
		n->next->prev = n->prev;
	else
		hd_fifo_find(t, n->tag, n->src)->prev = n->prev;
	n->role = HD_MNODE_OUT;
	t->count--;
}

void hd_fifo_remove(struct hd_fifo_table *t, struct hd_mnode *n)
{
	struct hd_mnode **slot;

	if (n->role == HD_MNODE_FOLLOWER) {
		remove_follower(t, n);
		return;
	}
	slot = t->only ? t->only : hd_fifo_bucket(t, hd_fifo_hash(t, n->tag, n->src));
	while (*slot != n)
		slot = &(*slot)->chain;
	hd_fifo_unlink_leader(t, slot);
}

static struct hd_mnode *each_in_line(struct hd_mnode *n, bool (*fn)(struct hd_mnode *n, void *arg), void *arg)
{
	while (n) {
		struct hd_mnode *after = n->next;

		if (fn(n, arg))
			return n;
		n = after;
	}
	return NULL;
}

struct hd_mnode *hd_fifo_each(struct hd_fifo_table *t, bool (*fn)(struct hd_mnode *n, void *arg), void *arg)
{
	/* fn may empty the table, which then shrinks */
	for (size_t i = 0; i < t->buckets && t->count; i++) {
		struct hd_mnode *leader = *hd_fifo_bucket(t, i);

		while (leader) {
			struct hd_mnode *after = leader->chain, *found = each_in_line(leader, fn, arg);

			if (found)
				return found;
			leader = after;
		}
	}
	return NULL;
}
