/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of peers, destinations and budgets whenever nothing of them is being changed, counted
 * anew in builds with assertions: after a peer has been pushed, after a turn, and in the units.
 */
#include "engine/link/budget.h"
#include "engine/link/credit.h"
#include "engine/link/peer.h"
#include "engine/link/pending.h"

#ifndef NDEBUG

#define CHECKED 256u	  /* longer lists are not walked through */
#define CHECKED_IDS 1024u /* and of more destinations the numbers are not counted */

/* ---- peers ----------------------------------------------------------------------------------- */

/* Nothing may overtake what a peer has queued, and a peer that is stalled is so for a reason. */
static void stall_check(const struct hd_peer *peer)
{
	assert(peer->eager_max == (peer->stalled ? -1 : (int64_t)peer->eager_limit));
	assert(peer->stalled & HD_STALL_DOWN || peer->state == HD_PEER_LIVE);
	assert(peer->stalled & HD_STALL_ANSWERS || TAILQ_EMPTY(&peer->ctl));
	assert(peer->stalled & HD_STALL_QUEUED || TAILQ_EMPTY(&peer->queue));
	assert(peer->stalled & HD_STALL_FENCE || !peer->send_fences);
}

/* What is queued is pushed. */
static void push_check(const struct hd_peer *peer)
{
	if (peer->busy)
		assert(hd_core(peer->node)->gate.dead || *peer->push.entry.tqe_prev == &peer->push);
	else
		assert(TAILQ_EMPTY(&peer->ctl) && TAILQ_EMPTY(&peer->queue) && TAILQ_EMPTY(&peer->framing) &&
		       TAILQ_EMPTY(&peer->direct_ops) && TAILQ_EMPTY(&peer->stalled_sqs));
}

static void ctl_check(const struct hd_peer *peer)
{
	const struct hd_ctl *c;
	size_t bytes = 0;
	unsigned n = 0;

	TAILQ_FOREACH(c, &peer->ctl, entry) {
		if (n++ > CHECKED)
			return;
		bytes += sizeof(*c) + c->len;
	}
	assert(bytes == peer->ctl_bytes);
}

static void pending_check(const struct hd_peer *peer)
{
	const struct hd_pending *pending;
	unsigned n = 0;

	TAILQ_FOREACH(pending, &peer->pending, under) {
		if (n++ > CHECKED)
			return;
		assert(pending->peer == peer && pending->ops);
		assert(!pending->id || hd_idmap_get(&hd_links(peer->node)->op_ids, pending->id) == pending);
	}
}

static void owing_check(const struct hd_peer *peer)
{
	const struct hd_overflow *o;
	uint32_t units = 0;
	unsigned n = 0;

	LIST_FOREACH(o, &peer->owing, owing) {
		if (n++ > CHECKED)
			return;
		assert(o->peer == peer);
		units += o->units;
	}
	assert(units <= peer->credit.rx_spent - peer->credit.freed);
}

static void dests_check(const struct hd_peer *peer)
{
	const struct hd_dest *d;
	unsigned n = 0;

	LIST_FOREACH(d, &peer->dests, entry) {
		if (n++ > CHECKED)
			return;
		assert(d->peer == peer && d->state == HD_DEST_BOUND);
	}
	assert(n == peer->dest_count);
}

void hd_peer_check(const struct hd_peer *peer)
{
	hd_credit_check(peer);
	stall_check(peer);
	push_check(peer);
	ctl_check(peer);
	pending_check(peer);
	owing_check(peer);
	dests_check(peer);
}

/* ---- destinations ---------------------------------------------------------------------------- */

static void dest_names_check(const struct hd_dest *d)
{
	const struct hd_name *name;
	uint32_t n = 0;

	LIST_FOREACH(name, &d->names, entry) {
		if (n++ == CHECKED)
			return;
		assert(name->dest == d);
	}
	assert(n == d->name_count);
}

static void dest_numbers_check(const struct hd_dest *d)
{
	assert(hd_dest_by_id(d->node, d->id) == d && d->former_count <= HD_DEST_FORMER);
	for (unsigned i = 0; i < d->former_count; i++)
		assert(hd_dest_by_id(d->node, d->former[i]) == d);
}

/*
 * One that is bound waits for nothing. One that is being reached is so in one way, and has nothing
 * that only a peer's may have.
 */
static void dest_state_check(const struct hd_dest *d)
{
	unsigned ways = !!d->link + d->awaits + !!d->retry.due;

	assert(ways == (d->state == HD_DEST_CONNECTING));
	assert(d->refs || d->state != HD_DEST_IDLE);
	if (d->state == HD_DEST_BOUND) {
		assert(!d->tries && !d->overdue.due && !d->is_overdue);
		assert(d->alike->alike_before == d && d->alike->peer == d->peer);
		assert(d->alike->remote == d->remote);
	} else {
		assert(d->peer == hd_links(d->node)->nowhere && d->alike == d);
		assert(!d->kept && hd_ring_is_empty(&d->messages));
	}
}

void hd_dest_check(const struct hd_dest *d)
{
	dest_names_check(d);
	dest_numbers_check(d);
	dest_state_check(d);
}

/* Each number is somebody's, or in one of the two queues. */
static void ids_check(const struct hd_links *links)
{
	uint32_t used = 0;

	if (links->dest_count > CHECKED_IDS)
		return;
	for (uint32_t i = 0; i < links->dest_count; i++)
		used += !!links->dests[i];
	assert(used + links->ids.free.count + links->ids.gone.count == links->dest_count);
}

/* ---- budgets --------------------------------------------------------------------------------- */

void hd_budget_check(const struct hd_budget *b)
{
	const struct hd_share *share;
	unsigned n = 0;

	assert(b->shares);
	if (b->is_ours)
		assert(!b->units && !b->files && TAILQ_EMPTY(&b->gone));
	TAILQ_FOREACH(share, &b->gone, entry) {
		if (n++ == CHECKED)
			return;
		assert(share->budget == b && share->may_go && share->refs);
	}
	assert(n <= b->shares);
}

/* What others have taken is what their budgets say. */
static void budgets_check(const struct hd_links *links)
{
	uint64_t units = 0, files = 0;

	for (const struct hd_budget *b = links->budgets; b; b = b->hh.next) {
		hd_budget_check(b);
		units += b->units;
		files += b->files;
	}
	assert(units == links->others_units && files == links->others_files);
	assert(links->others_units <= links->window_units);
}

/* All windows come out of the node's store, and those of others out of their part of it. */
static void credit_windows_check(const struct hd_links *links)
{
	uint64_t all = 0, others = 0;

	for (const struct hd_peer *peer = links->peers; peer; peer = peer->hh.next) {
		all += hd_credit_window(peer);
		others += peer->share->budget->is_ours ? 0 : hd_credit_window(peer);
	}
	assert(all <= links->window_units && others <= links->others_units);
}

void hd_links_check(const struct hd_node *node, uint32_t from)
{
	const struct hd_links *links = hd_links(node);

	for (const struct hd_peer *peer = links->peers; peer; peer = peer->hh.next)
		hd_peer_check(peer);
	for (uint32_t i = 0; i < links->dest_count && i < CHECKED; i++) {
		const struct hd_dest *d = links->dests[(from + i) % links->dest_count];

		if (d)
			hd_dest_check(d);
	}
	ids_check(links);
	budgets_check(links);
	credit_windows_check(links);
}

#endif
