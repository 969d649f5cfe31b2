/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What holds of a peer whenever nothing of it is being changed, counted anew in builds with assertions: after it has been pushed, after a turn, and in the units. */
#include "engine/link/credit.h"
#include "engine/link/peer.h"
#include "engine/link/pending.h"

#ifndef NDEBUG

#define CHECKED 256u /* longer lists are not walked through */

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

#endif
