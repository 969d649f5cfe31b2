/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Named queues: endpoints that have no queue to speak of, for each message says which it is for (XRC of verbs). What arrives for one
 * endpoint is carried out one after the other (arrive.c), so the endpoint turns to what the next one names: it has that queue, CQ and zone
 * then, and the rest of the engine sees an endpoint like any other.
 */
#include "engine/node/place.h"
#include "engine/pair/pair.h"
#include "engine/receive/queue.h"

static struct hd_pair *named_find(const struct hd_node *node, uint32_t number)
{
	struct hd_place *place;

	LIST_FOREACH(place, &node->places, entry)
		if (place->port == number >> 8) {
			struct hd_ep *ep = hd_place_ep(place, number & 0xff);

			return ep && ep->policy & HD_EP_NAMED ? ep->pair : NULL;
		}
	return NULL;
}

static bool is_turned_to(const struct hd_pair *p, uint32_t number)
{
	return p->turned && hd_ep_number(p->turned->ep) == number;
}

bool hd_named_turn(struct hd_pair *p, uint32_t number)
{
	struct hd_ep *ep = p->ep;
	struct hd_pair *to;

	if (is_turned_to(p, number))
		return true;
	to = named_find(ep->node, number);
	if (!to || !p->domain || to->domain != p->domain)
		return false;
	hd_named_home(p);
	p->own_rq = ep->rq;
	p->own_cq = ep->rx_cq;
	p->own_zone = ep->zone;
	p->turned = to;
	LIST_INSERT_HEAD(&to->turned_here, p, turned_entry);
	ep->rq = to->ep->rq;
	ep->rx_cq = to->ep->rx_cq;
	ep->zone = to->ep->zone;
	return true;
}

/* A write whose receive another has taken waits for the next, in the queue that it has named: it completes where its pair has turned to. */
bool hd_named_is_owed(const struct hd_pair *p, uint32_t number)
{
	struct hd_wnode *w;

	if (!p->turned || is_turned_to(p, number))
		return false;
	for (w = hd_match_first_waiting(&p->ep->rq->match[0]); w; w = hd_match_next_waiting(w))
		if (hd_container(w, struct hd_msg, w)->ep == p->ep)
			return true;
	return false;
}

void hd_named_home(struct hd_pair *p)
{
	struct hd_ep *ep = p->ep;

	if (!p->turned)
		return;
	hd_hold_unstarve(p);
	LIST_REMOVE(p, turned_entry);
	p->turned = NULL;
	ep->rq = p->own_rq;
	ep->rx_cq = p->own_cq;
	ep->zone = p->own_zone;
}

/* hd_named_forget: it ends, or begins anew: of what it brought to queues that it had turned to, nothing waits there any more. */
void hd_named_forget(struct hd_pair *p)
{
	struct hd_rq *rq;

	if (!p->domain)
		return;
	LIST_FOREACH(rq, &p->ep->node->rq_list, entry)
		hd_rq_drop_waiting(rq, p->ep);
}

void hd_named_gone(struct hd_pair *p)
{
	struct hd_pair *guest;

	while ((guest = LIST_FIRST(&p->turned_here))) {
		if (guest->transfers)
			hd_ep_fail(guest->ep); /* its other end is told, and it is at home */
		hd_named_home(guest);
		hd_pair_kick(guest);
	}
}
