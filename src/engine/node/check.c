/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What each room can say of itself, asked after a turn that has moved something, in builds with assertions. */
#include "engine/node/turn.h"

#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#define CHECKED 32u	 /* of each kind, and no more */
#define CHECKED_EPS 256u /* slots of endpoints; where there are more, the others come after another turn */

/* Which of so many are looked at now: those from the answer on. */
static uint32_t check_from(const struct hd_node *node, uint32_t count)
{
	return count > CHECKED_EPS ? (uint32_t)(hd_node_program_turns(node) % count) : 0;
}

static void eps_check(const struct hd_node *node)
{
	uint32_t from = check_from(node, hd_names(node)->ep_count);

	for (uint32_t i = from; i < hd_names(node)->ep_count && i - from < CHECKED_EPS; i++) {
		const struct hd_ep *ep = hd_names(node)->eps[i];

		if (!ep)
			continue;
		hd_cq_check(ep->tx_cq);
		hd_cq_check(ep->rx_cq);
		hd_ep_order_check(ep);
		assert(ep->index == i && ep->tx->ops <= ep->tx->max);
	}
}

/* All windows come out of the node's store. */
static void peers_check(const struct hd_node *node)
{
	const struct hd_peer *peer;
	uint64_t windows = 0;

	for (peer = hd_links(node)->peers; peer; peer = peer->hh.next) {
		hd_peer_check(peer);
		hd_xfer_check(peer);
		windows += hd_credit_window(peer);
	}
	assert(windows <= hd_links(node)->window_units);
	(void)windows;
}

void hd_node_check(struct hd_node *node)
{
	const struct hd_mr *mr;
	struct hd_rq *rq;
	unsigned n = 0;

	peers_check(node);
	eps_check(node);
	TAILQ_FOREACH(rq, &hd_rqs(node)->rq_list, entry)
		if (n++ < CHECKED)
			hd_rq_check(rq);
	for (mr = hd_regions(node)->mr_table, n = 0; mr && n < CHECKED; mr = mr->hh.next, n++)
		hd_mr_check(mr);
}
