/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* How it stands with an endpoint, for who only looks. */
#include "engine/ep/ep.h"
#include "engine/rdm/rdm.h"
#include "engine/xfer/xfer.h"

struct hd_ep_view hd_ep_inspect(const struct hd_ep *ep)
{
	struct hd_ep_view view = { .outstanding = ep->tx->ops,
				   .send_fences = ep->send_fences,
				   .rma_fences = ep->rma_fences,
				   .framing = ep->framed != NULL,
				   .coming_in = ep->rx_busy };
	const struct hd_msg *m;
	const struct hd_op *op;

	if (ep->order) {
		view.send_places = ep->order->lane.count;
		TAILQ_FOREACH(op, &ep->order->fenced, entry)
			view.fenced++;
	}
	STAILQ_FOREACH(m, &ep->deferred, defer)
		view.deferred++;
	LIST_FOREACH(m, &ep->claims, claim_entry)
		view.claimed++;
	return view;
}
