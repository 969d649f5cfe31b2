/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What each room can say of itself, asked after a turn that has moved something,
 * in builds with assertions.
 */
#include "engine/node/turn.h"

#include "engine/cm/cm.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#define CHECKED 32u /* of each kind, and no more */
/* of endpoints or destinations; of more, others come after another turn */
#define CHECKED_SLOTS 256u

/* Which of so many are looked at now: those from the answer on. */
static uint32_t check_from(const struct hd_node *node, uint32_t count)
{
	return count > CHECKED_SLOTS ? (uint32_t)(hd_node_program_turns(node) % count) : 0;
}

static void eps_check(const struct hd_node *node)
{
	uint32_t from = check_from(node, hd_names(node)->ep_count);

	for (uint32_t i = from; i < hd_names(node)->ep_count && i - from < CHECKED_SLOTS; i++) {
		const struct hd_ep *ep = hd_names(node)->eps[i];

		if (!ep)
			continue;
		hd_cq_check(ep->tx_cq);
		hd_cq_check(ep->rx_cq);
		hd_ep_order_check(ep);
		if (ep->qp)
			hd_qp_check(ep->qp);
		if (ep->conn)
			hd_conn_check(ep->conn);
		if (ep->evq)
			hd_evq_check(ep->evq);
		assert(ep->index == i && ep->tx->ops <= ep->tx->max);
	}
}

static void peers_check(const struct hd_node *node)
{
	hd_links_check(node, check_from(node, hd_links(node)->dest_count));
	for (const struct hd_peer *peer = hd_links(node)->peers; peer; peer = peer->hh.next)
		hd_xfer_check(peer);
}

void hd_node_check(struct hd_node *node)
{
	const struct hd_mr *mr;
	struct hd_rq *rq;
	unsigned n = 0;

	peers_check(node);
	hd_names_check(node);
	eps_check(node);
	hd_conns_check(node);
	TAILQ_FOREACH(rq, &hd_rqs(node)->rq_list, entry)
		if (n++ < CHECKED)
			hd_rq_check(rq);
	for (mr = hd_regions(node)->mr_table, n = 0; mr && n < CHECKED; mr = mr->hh.next, n++)
		hd_mr_check(mr);
}
