/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Named queues: endpoints that have no queue to speak of, for each message says which it is for
 * (XRC of verbs). What arrives for one endpoint is carried out one after the other (responder.c),
 * so what the next one names is its target: it has that queue, CQ and domain then, and the rest of
 * the engine sees an endpoint like any other.
 */
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/rq/rq.h"

static struct hd_qp *named_find(const struct hd_node *node, uint32_t number)
{
	struct hd_bound_port *bound;

	LIST_FOREACH(bound, &hd_names(node)->bound_ports, entry)
		if (bound->port == number >> 8) {
			struct hd_ep *ep = hd_bound_ep(bound, number & 0xff);

			return ep && ep->policy & HD_EP_XRC_QUEUE ? ep->qp : NULL;
		}
	return NULL;
}

static bool xrc_is_target(const struct hd_qp *p, uint32_t number)
{
	return p->life.xrc.target && hd_ep_number(p->life.xrc.target->ep) == number;
}

bool hd_xrc_target_set(struct hd_qp *p, uint32_t number)
{
	struct hd_ep *ep = p->ep;
	struct hd_qp *to;

	if (xrc_is_target(p, number))
		return true;
	to = named_find(ep->node, number);
	if (!to || !p->attr.domain || to->attr.domain != p->attr.domain)
		return false;
	hd_xrc_target_home(p);
	p->life.xrc.own_rq = ep->rq;
	p->life.xrc.own_cq = ep->rx_cq;
	p->life.xrc.own_pd = ep->pd;
	p->life.xrc.target = to;
	LIST_INSERT_HEAD(&to->xrc_users, p, life.xrc.entry);
	hd_ep_set_receiving(ep, to->ep->rq, to->ep->rx_cq, to->ep->pd);
	return true;
}

/*
 * A write whose receive another has taken waits for the next, in the queue that it has named: it
 * completes where the target of its pair is.
 */
bool hd_xrc_target_is_owed(const struct hd_qp *p, uint32_t number)
{
	struct hd_wnode *w;

	if (!p->life.xrc.target || xrc_is_target(p, number))
		return false;
	for (w = hd_match_first_waiting(&p->ep->rq->match[0]); w; w = hd_match_next_waiting(w))
		if (hd_container(w, struct hd_msg, w)->ep == p->ep)
			return true;
	return false;
}

void hd_xrc_target_home(struct hd_qp *p)
{
	struct hd_ep *ep = p->ep;

	if (!p->life.xrc.target)
		return;
	hd_rq_unwait(&p->respq.rnr_wait);
	LIST_REMOVE(p, life.xrc.entry);
	p->life.xrc.target = NULL;
	hd_ep_set_receiving(ep, p->life.xrc.own_rq, p->life.xrc.own_cq, p->life.xrc.own_pd);
}

/*
 * hd_xrc_target_forget: it ends, or begins anew: of what it brought to queues of its targets,
 * nothing waits there any more.
 */
void hd_xrc_target_forget(struct hd_qp *p)
{
	struct hd_rq *rq;

	if (!p->attr.domain)
		return;
	TAILQ_FOREACH(rq, &hd_rqs(p->ep->node)->rq_list, entry)
		hd_rq_drop_waiting(rq, p->ep);
}

void hd_xrc_target_gone(struct hd_qp *p)
{
	struct hd_qp *user;

	while ((user = LIST_FIRST(&p->xrc_users))) {
		if (user->life.lane.transfers)
			hd_ep_fail(user->ep); /* its other end is told, and it is at home */
		hd_xrc_target_home(user);
		hd_qp_kick(user);
	}
}
