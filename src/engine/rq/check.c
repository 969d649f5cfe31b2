/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of a receive queue whenever nothing of it is being changed, counted anew in builds
 * with assertions: when something is posted, after a turn of progress, and in the units.
 */
#include "engine/link/link.h"
#include "engine/rq/queue.h"

#ifndef NDEBUG

/* longer queues are not walked through: it would take as long for each of their entries */
#define CHECKED 256u
#define CHECKED_PAIRS 16u  /* and of no longer ones is everything held against everything */
#define CHECKED_ROOM 4096u /* nor tables of more buckets */

/* ---- tables ---------------------------------------------------------------------------------- */

struct walk {
	const struct hd_match *match;
	const struct hd_match_class *class; /* NULL: of waiting messages */
	const struct hd_mnode *last;
	size_t entries, leaders;
};

/* Entries of one key come one after the other, by age. */
static bool walk_entry(struct hd_mnode *n, void *arg)
{
	struct walk *w = arg;

	assert(n->role == HD_MNODE_LEADER || n->role == HD_MNODE_FOLLOWER);
	assert(n->seq < w->match->next_seq);
	if (n->role == HD_MNODE_LEADER)
		w->leaders++;
	else
		assert(w->last && hd_mnode_has_key(w->last, n->tag, n->src) && w->last->seq < n->seq);
	if (w->class)
		assert(n->owner == w->class->index && !(n->tag & ~w->class->mask) &&
		       !(n->src & ~w->class->src_mask));
	w->entries++;
	w->last = n;
	return false;
}

static void table_check(const struct hd_match *m, const struct hd_match_class *c, struct hd_fifo_table *t)
{
	struct walk w = { .match = m, .class = c };

	assert(t->leaders <= t->count && !t->leaders == !t->count);
	if (t->count > CHECKED || t->buckets > CHECKED_ROOM)
		return;
	hd_fifo_each(t, walk_entry, &w);
	assert(w.entries == t->count && w.leaders == t->leaders);
}

/* ---- matching -------------------------------------------------------------------------------- */

static size_t listed_check(const struct hd_match *m)
{
	size_t n = 0;

	for (const struct hd_mnode *r = m->listed; r && n <= CHECKED; r = r->next, n++)
		assert(r->role == HD_MNODE_LISTED && (!r->next || r->seq < r->next->seq));
	assert(!*m->listed_end);
	return n;
}

static void posted_check(const struct hd_match *m)
{
	size_t n = listed_check(m);
	unsigned active = 0;
	unsigned longer = 0U + !!m->listed + !!m->groups.of_source + !!m->numbers.next;

	assert(m->active_count >= 1 && m->active_count <= HD_MATCH_CLASSES);
	assert(m->longer == longer);
	for (unsigned i = 0; i < HD_MATCH_CLASSES && m->class[i]; i++) {
		struct hd_match_class *c = m->class[i];

		assert(c->index == i && (c->active || !c->table.count));
		table_check(m, c, &c->table);
		n += c->table.count;
		active += c->active;
	}
	assert(active == m->active_count);
	assert(n == m->posted || n > CHECKED);
}

static void waiting_check(struct hd_match *m)
{
	const struct hd_wnode *w;
	size_t n = 0;

	assert(m->by_tag.count == m->waiting);
	assert(m->by_src.count == (m->by_src_used ? m->waiting : 0));
	table_check(m, NULL, &m->by_tag);
	table_check(m, NULL, &m->by_src);
	if (m->waiting > CHECKED)
		return;
	TAILQ_FOREACH(w, &m->arrivals, arrival) {
		const struct hd_wnode *next = TAILQ_NEXT(w, arrival);

		assert(w->by_tag.tag == hd_wnode_tag(w) && (!next || w->by_tag.seq < next->by_tag.seq));
		n++;
	}
	assert(n == m->waiting);
}

/*
 * A receive and a message that match have met. Groups of sources, and their numbers, are
 * known to the queue alone.
 */
static bool meets_waiting(struct hd_mnode *n, void *arg)
{
	const struct hd_match *m = arg;
	uint64_t mask = n->role == HD_MNODE_LISTED ? n->mask : m->class[n->owner]->mask;
	const struct hd_wnode *w;

	TAILQ_FOREACH(w, &m->arrivals, arrival)
		if ((hd_wnode_tag(w) & mask) == n->tag &&
		    (n->src == HD_MATCH_ANY || n->src == hd_wnode_src(w)))
			return true;
	return false;
}

void hd_match_check(struct hd_match *m)
{
	posted_check(m);
	waiting_check(m);
	if (m->waiting <= CHECKED_PAIRS && m->posted <= CHECKED_PAIRS && !m->groups.of_source &&
	    !m->numbers.next)
		assert(!hd_match_each_posted(m, meets_waiting, m));
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void messages_check(const struct hd_rq *rq, struct hd_match *m, uint64_t *early)
{
	struct hd_wnode *w = m->waiting > CHECKED ? NULL : hd_match_first_waiting(m);

	for (; w; w = hd_match_next_waiting(w)) {
		const struct hd_msg *msg = hd_container(w, struct hd_msg, w);

		assert(msg->ep->rq == rq);
		assert(!msg->peer || !msg->units || hd_credit_holds(msg->peer));
		if (msg->early)
			*early += msg->room + HD_EARLY_MORE;
	}
}

static void waiters_check(const struct hd_rq *rq)
{
	const struct hd_rq_waiter *w;
	unsigned n = 0;

	TAILQ_FOREACH(w, &rq->waiters, entry) {
		if (n++ > CHECKED)
			break;
		assert(w->rq == rq);
	}
}

void hd_rq_check(struct hd_rq *rq)
{
	uint64_t early = 0;

	assert(rq->users >= 0);
	for (int half = 0; half < 2; half++) {
		hd_match_check(&rq->match[half]);
		messages_check(rq, &rq->match[half], &early);
	}
	assert(early <= rq->early); /* claimed ones are in no queue */
	assert(!rq->limit.least || *rq->limited.le_prev == rq);
	waiters_check(rq);
}

#endif
