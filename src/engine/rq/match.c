/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/rq/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

/* splitmix64 (Steele, Lea, Flood 2014): turns one secret word into the seeds of all tables. */
static uint64_t next_seed(struct hd_match *m)
{
	uint64_t z = m->seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void table_init(struct hd_match *m, struct hd_fifo_table *t)
{
	const uint64_t seed[2] = { next_seed(m), next_seed(m) };

	hd_fifo_init(t, seed);
}

void hd_match_init(struct hd_match *m, bool directed)
{
	memset(m, 0, sizeof(*m));
	m->directed = directed;
	if (hd_random(&m->seed, sizeof(m->seed)))
		m->seed = hd_ticks() ^ (hd_now_ns() << 20) ^ (uintptr_t)m;
	table_init(m, &m->first.table);
	table_init(m, &m->by_tag);
	table_init(m, &m->by_src);
	m->first.mask = UINT64_MAX;
	m->first.active = true;
	m->class[0] = m->active[0] = m->last = &m->first;
	m->active_count = 1;
	m->listed_end = &m->listed;
	TAILQ_INIT(&m->arrivals);
}

void hd_match_fini(struct hd_match *m)
{
	for (unsigned i = 0; i < HD_MATCH_CLASSES && m->class[i]; i++) {
		hd_fifo_fini(&m->class[i] -> table);
		if (m->class[i] != &m->first)
			free(m->class[i]);
	}
	hd_fifo_fini(&m->by_tag);
	hd_fifo_fini(&m->by_src);
}

/* ---- classes ---- */

static void class_activate(struct hd_match *m, struct hd_match_class *c)
{
	if (c->active)
		return;
	c->active = true;
	m->active[m->active_count++] = c;
}

static void class_deactivate(struct hd_match *m, unsigned place)
{
	m->active[place]->active = false;
	m->active[place] = m->active[--m->active_count];
}

static struct hd_match_class *class_new(struct hd_match *m, unsigned index)
{
	struct hd_match_class *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->index = (uint8_t)index;
	table_init(m, &c->table);
	m->class[index] = c;
	return c;
}

/*
 * The class for this mask: the one that has it, or an empty one, or a new one;
 * NULL when all are taken.
 */
static struct hd_match_class *class_find(struct hd_match *m, uint64_t mask, uint32_t src_mask)
{
	struct hd_match_class *c, *empty = NULL;
	unsigned i;

	for (i = 0; i < HD_MATCH_CLASSES && (c = m->class[i]); i++) {
		if (c->mask == mask && c->src_mask == src_mask)
			return c;
		if (!c->table.count)
			empty = c;
	}
	c = empty;
	if (!c && i < HD_MATCH_CLASSES)
		c = class_new(m, i);
	if (c) {
		c->mask = mask;
		c->src_mask = src_mask;
	}
	return c;
}

/* ---- posted receives ---- */

static void list_append(struct hd_match *m, struct hd_mnode *n, uint64_t mask)
{
	n->role = HD_MNODE_LISTED;
	n->mask = mask;
	n->next = NULL;
	m->longer += !m->listed;
	*m->listed_end = n;
	m->listed_end = &n->next;
}

static void list_remove(struct hd_match *m, struct hd_mnode **slot)
{
	struct hd_mnode *n = *slot;

	*slot = n->next;
	if (!*slot)
		m->listed_end = slot;
	m->longer -= !m->listed;
	n->role = HD_MNODE_OUT;
}

static void start_by_src(struct hd_match *m)
{
	struct hd_wnode *w;

	m->by_src_used = true;
	TAILQ_FOREACH(w, &m->arrivals, arrival)
		hd_fifo_insert(&m->by_src, &w->by_src);
}

void hd_match_post_other(struct hd_match *m, struct hd_mnode *n, uint64_t tag, uint64_t ignore, uint32_t src)
{
	uint64_t mask = ~ignore;
	uint32_t src_mask;
	struct hd_match_class *c = m->last;

	src_mask = src == HD_MATCH_ANY ? 0 : UINT32_MAX;
	if (src_mask && !m->by_src_used)
		start_by_src(m);
	n->tag = tag & mask;
	n->src = src;
	n->seq = m->next_seq++;
	m->posted++;
	if (c->mask != mask || c->src_mask != src_mask) {
		c = class_find(m, mask, src_mask);
		if (!c) {
			list_append(m, n, mask);
			return;
		}
		m->last = c;
	}
	class_activate(m, c);
	n->owner = c->index;
	hd_fifo_insert(&c->table, n);
}

void hd_match_unpost(struct hd_match *m, struct hd_mnode *n)
{
	m->posted--;
	if (n->role == HD_MNODE_LISTED) {
		struct hd_mnode **slot = &m->listed;

		while (*slot != n)
			slot = &(*slot)->next;
		list_remove(m, slot);
		return;
	}
	hd_fifo_remove(&m->class[n->owner] -> table, n);
}

void hd_match_group(struct hd_match *m, const struct hd_match_groups *groups)
{
	m->groups = *groups;
	m->longer++;
}

void hd_match_number(struct hd_match *m, const struct hd_match_numbers *numbers)
{
	m->longer += !m->numbers.next;
	m->numbers = *numbers;
}

static uint32_t number_next(const struct hd_match *m, uint32_t src, struct hd_source_walk *walk)
{
	uint32_t only = walk->begun ? 0 : src;

	if (m->numbers.next)
		return m->numbers.next(m->numbers.arg, src, walk);
	walk->begun = true;
	return only;
}

/* Are they one source? */
static bool is_one_source(const struct hd_match *m, uint32_t a, uint32_t b)
{
	struct hd_source_walk walk = { 0 };
	uint32_t n;

	while (a != b && (n = number_next(m, b, &walk)))
		if (n == a)
			return true;
	return a == b;
}

/*
 * A link to the earliest that a message hits: to a leader in a class, or to one in the list. *hit:
 * the one that has been found elsewhere, or NULL.
 */
static void search_listed(struct hd_match *m, uint64_t tag, uint32_t src, uint32_t group,
			  struct hd_mnode ***hit)
{
	struct hd_mnode *n;

	for (struct hd_mnode **slot = &m->listed; (n = *slot); slot = &n->next) {
		if (*hit && (**hit)->seq < n->seq)
			return;
		if ((tag & n->mask) == n->tag &&
		    (n->src == HD_MATCH_ANY || is_one_source(m, n->src, src) || (group && n->src == group))) {
			*hit = slot;
			return;
		}
	}
}

static void search_class(struct hd_match_class *c, uint64_t tag, uint32_t src, struct hd_mnode ***hit)
{
	struct hd_mnode **slot = hd_fifo_find_slot(&c->table, tag & c->mask, src & c->src_mask);

	if (slot && (!*hit || (*slot)->seq < (**hit)->seq))
		*hit = slot;
}

static void search_directed(struct hd_match *m, struct hd_match_class *c, uint64_t tag, uint32_t src,
			    uint32_t group, struct hd_mnode ***hit)
{
	struct hd_source_walk walk = { 0 };
	uint32_t n;

	while ((n = number_next(m, src, &walk)))
		search_class(c, tag, n, hit);
	if (group)
		search_class(c, tag, group, hit);
}

/*
 * Classes that are found empty leave the active ones; one stays, so that active[0] is always there.
 */
struct hd_mnode *hd_match_peek_slow(struct hd_match *m, uint64_t tag, uint32_t src)
{
	uint32_t group = m->groups.of_source ? m->groups.of_source(m->groups.arg, src) : 0;
	struct hd_mnode **hit = NULL;

	for (unsigned i = 0; i < m->active_count; i++) {
		struct hd_match_class *c = m->active[i];

		if (!c->table.count) {
			if (m->active_count > 1)
				class_deactivate(m, i--);
			continue;
		}
		if (c->src_mask)
			search_directed(m, c, tag, src, group, &hit);
		else
			search_class(c, tag, src, &hit);
	}
	search_listed(m, tag, src, group, &hit);
	return hit ? *hit : NULL;
}

struct hd_mnode *hd_match_each_posted(struct hd_match *m, bool (*fn)(struct hd_mnode *n, void *arg),
				      void *arg)
{
	struct hd_mnode *n, *after;

	for (unsigned i = 0; i < HD_MATCH_CLASSES && m->class[i]; i++) {
		n = hd_fifo_each(&m->class[i] -> table, fn, arg);
		if (n)
			return n;
	}
	for (n = m->listed; n; n = after) {
		after = n->next;
		if (fn(n, arg))
			return n;
	}
	return NULL;
}

/* ---- waiting messages ---- */

void hd_match_put_waiting(struct hd_match *m, struct hd_wnode *w, uint64_t tag, uint32_t src)
{
	w->by_tag.tag = w->by_src.tag = tag;
	w->by_tag.src = HD_MATCH_ANY;
	w->by_src.src = src;
	w->by_tag.seq = w->by_src.seq = m->next_seq++;
	w->by_src.role = HD_MNODE_OUT;
	TAILQ_INSERT_TAIL(&m->arrivals, w, arrival);
	hd_fifo_insert(&m->by_tag, &w->by_tag);
	if (m->by_src_used)
		hd_fifo_insert(&m->by_src, &w->by_src);
	m->waiting++;
}

void hd_match_remove_waiting(struct hd_match *m, struct hd_wnode *w)
{
	TAILQ_REMOVE(&m->arrivals, w, arrival);
	hd_fifo_remove(&m->by_tag, &w->by_tag);
	if (m->by_src_used)
		hd_fifo_remove(&m->by_src, &w->by_src);
	m->waiting--;
}

static bool is_group(const struct hd_match *m, uint32_t src)
{
	return src >= HD_MATCH_GROUPS && m->groups.of_message;
}

static struct hd_wnode *find_of_group(const struct hd_match *m, uint64_t tag, uint64_t ignore, uint32_t group)
{
	struct hd_wnode *w;

	TAILQ_FOREACH(w, &m->arrivals, arrival)
		if (!((hd_wnode_tag(w) ^ tag) & ~ignore) && m->groups.of_message(w) == group)
			return w;
	return NULL;
}

static struct hd_wnode *find_by_src(struct hd_match *m, uint64_t tag, uint32_t src)
{
	struct hd_mnode *first = NULL, *n;
	struct hd_source_walk walk = { 0 };
	uint32_t number;

	if (!m->by_src_used)
		start_by_src(m);
	while ((number = number_next(m, src, &walk))) {
		n = hd_fifo_find(&m->by_src, tag, number);
		if (n && (!first || n->seq < first->seq))
			first = n;
	}
	return first ? (struct hd_wnode *)((char *)first - offsetof(struct hd_wnode, by_src)) : NULL;
}

struct hd_wnode *hd_match_find_slow(struct hd_match *m, uint64_t tag, uint64_t ignore, uint32_t src)
{
	struct hd_mnode *n;
	struct hd_wnode *w;

	if (!m->directed)
		src = HD_MATCH_ANY;
	if (!ignore && src == HD_MATCH_ANY) {
		n = hd_fifo_find(&m->by_tag, tag, HD_MATCH_ANY);
		return n ? (struct hd_wnode *)((char *)n - offsetof(struct hd_wnode, by_tag)) : NULL;
	}
	if (is_group(m, src))
		return find_of_group(m, tag, ignore, src);
	if (!ignore)
		return find_by_src(m, tag, src);
	TAILQ_FOREACH(w, &m->arrivals, arrival)
		if (!((hd_wnode_tag(w) ^ tag) & ~ignore) &&
		    (src == HD_MATCH_ANY || is_one_source(m, hd_wnode_src(w), src)))
			return w;
	return NULL;
}

/* The table by sources is made anew, in order, which costs as much for one source as for all. */
void hd_match_forget(struct hd_match *m, bool (*gone)(const void *arg, uint32_t src), const void *arg)
{
	bool used = m->by_src_used;
	struct hd_wnode *w;

	TAILQ_FOREACH(w, &m->arrivals, arrival)
		if (used)
			hd_fifo_remove(&m->by_src, &w->by_src);
	m->by_src_used = false;
	TAILQ_FOREACH(w, &m->arrivals, arrival)
		if (gone(arg, w->by_src.src))
			w->by_src.src = HD_MATCH_FORGOTTEN;
	if (used)
		start_by_src(m);
}
