/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Hosts that are gone without a word. A link to one stands until its transport gives up, which is
 * the same for all who use it; a queue pair has numbers of its own. So where a request has waited
 * for an answer for twice hd_qp_attr.holdoff_ms, and the other host has acknowledged nothing for as
 * long, that queue pair fails. The link stays, for those with more patience. A host whose program
 * does not answer acknowledges.
 *
 * Nothing is noted where requests are posted: when a link has nothing to do
 * (hd_link_idle) a timer begins to look at its queue pairs from time to time, and ends
 * when none of them has anything under way.
 */
#include "engine/core/core.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"

#include "base/clock.h"

#define LOOK_NS (250 * HD_NS_PER_MS)

/* Has it something under way that is to end in time? Its link stands, and tells of silence. */
static bool is_awaiting(const struct hd_qp *p, const struct hd_peer *peer)
{
	return p->life.sq.head != p->life.sq.tail &&
	       (p->life.state == HD_QP_RTS || p->life.state == HD_QP_SQD) && p->life.holdoff.ms &&
	       p->life.holdoff.ms != HD_HOLDOFF_EVER && hd_qp_is_bound(p) && p->life.dest->peer == peer;
}

/* Since when, to within a look. */
static uint64_t waits_since(struct hd_qp *p, uint64_t now)
{
	if (!p->life.silence.since || p->life.silence.seq != p->life.sq.head) {
		p->life.silence.seq = p->life.sq.head;
		p->life.silence.since = now;
	}
	return p->life.silence.since;
}

/* The longest that anything of a queue pair of this peer has waited, in ms; -1: nothing waits. */
static int64_t longest_wait(struct hd_peer *peer, uint64_t now)
{
	struct hd_node *node = peer->node;
	int64_t longest = -1;

	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++) {
		struct hd_qp *p = hd_names(node)->eps[i] ? hd_names(node)->eps[i]->qp : NULL;
		int64_t ms;

		if (!p)
			continue;
		if (!is_awaiting(p, peer)) {
			if (p->life.sq.head == p->life.sq.tail)
				p->life.silence.since = 0;
			continue;
		}
		ms = (int64_t)((now - waits_since(p, now)) / HD_NS_PER_MS);
		if (ms > longest)
			longest = ms;
	}
	return longest;
}

static void silence_ends(struct hd_peer *peer, uint64_t now, uint64_t silent_ms)
{
	struct hd_node *node = peer->node;

	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++) {
		struct hd_qp *p = hd_names(node)->eps[i] ? hd_names(node)->eps[i]->qp : NULL;
		uint64_t limit = p ? 2 * (uint64_t)p->life.holdoff.ms : 0;

		if (p && silent_ms >= limit && is_awaiting(p, peer) &&
		    (now - waits_since(p, now)) / HD_NS_PER_MS >= limit)
			hd_sq_overdue(p);
	}
}

static void silence_look(struct hd_timer *timer)
{
	struct hd_peer *peer = hd_container(timer, struct hd_peer, silence);
	struct hd_link *link = peer->link;
	uint64_t now = hd_now_ns();
	int64_t waited = longest_wait(peer, now);
	uint32_t silent;

	if (peer->state != HD_PEER_LIVE || link->down || !link->ops->silence)
		return;
	silent = waited ? link->ops->silence(link, waited > 0)
			: 0; /* what was posted a moment ago costs no system call */
	if (waited < 0)
		return;
	hd_timer_set(peer->node, timer, LOOK_NS);
	if (silent)
		silence_ends(peer, now, silent);
}

void hd_link_idle(struct hd_link *link)
{
	struct hd_peer *peer = link->peer;

	if (!peer || peer->link != link || peer->silence.due || !hd_qps(link->node)->pairs || link->down)
		return;
	peer->silence.fn = silence_look;
	hd_timer_set(link->node, &peer->silence, LOOK_NS);
}
