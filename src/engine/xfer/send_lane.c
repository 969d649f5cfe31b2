/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See send_lane.h. */
#include "engine/xfer/send_lane.h"
#include "engine/link/link.h"
#include "engine/xfer/op.h"

struct hd_send_place {
	struct hd_lane_place place; /* in hd_ep_order.lane; done: it waits to be told of */
	struct hd_ep *ep;
	struct hd_dest *dest; /* referenced */
	struct hd_op *op;     /* NULL: it has ended */
	struct hd_ended how;
	/* counted as an operation of the endpoint: the operation itself has been freed */
	bool in_bound;
};

static struct hd_send_place *send_place_at(const struct hd_lane_place *place)
{
	return hd_container(place, struct hd_send_place, place);
}

static bool send_places_same(const struct hd_lane_place *a, const struct hd_lane_place *b)
{
	return hd_dest_same(send_place_at(a)->dest, send_place_at(b)->dest);
}

void hd_send_lanes_init(struct hd_node *node)
{
	hd_pool_init(&hd_xfers(node)->send_places, sizeof(struct hd_send_place), 64);
}

bool hd_ep_order_make(struct hd_ep *ep)
{
	struct hd_ep_order *order = ep->order ? ep->order : malloc(sizeof(*order));

	if (!order)
		return false;
	if (!ep->order) {
		TAILQ_INIT(&order->fenced);
		hd_lane_init(&order->lane, send_places_same);
	}
	ep->order = order;
	return true;
}

/* Returns the one that is to be told of now, or NULL. */
static struct hd_send_place *send_place_free(struct hd_send_place *s)
{
	struct hd_lane_place *next = hd_lane_leave(&s->ep->order->lane, &s->place);

	if (s->in_bound)
		s->ep->tx->ops--;
	hd_dest_unref(s->dest);
	hd_pool_put(&hd_xfers(s->ep->node)->send_places, s);
	return next ? send_place_at(next) : NULL;
}

bool hd_send_place_take(struct hd_op *op)
{
	struct hd_send_place *s =
		!hd_ep_order_make(op->t.ep) ? NULL : hd_pool_get(&hd_xfers(op->t.ep->node)->send_places);

	if (!s)
		return false;
	*s = (struct hd_send_place){ .ep = op->t.ep, .dest = op->dest, .op = op };
	hd_dest_ref(op->dest);
	op->send_place = s;
	hd_lane_join(&op->t.ep->order->lane, &s->place);
	return true;
}

bool hd_send_lane_is_open(struct hd_ep *ep, struct hd_dest *dest)
{
	const struct hd_send_place like = { .ep = ep, .dest = dest };

	return !ep->order || !ep->order->lane.count || hd_lane_is_open(&ep->order->lane, &like.place);
}

/* Tell of this place, whose turn it is, and of those behind it that waited only for it. */
static void send_place_tell(struct hd_send_place *s)
{
	while (s) {
		hd_op_complete(s->ep, &s->how);
		s = send_place_free(s);
	}
}

void hd_send_place_done(struct hd_op *op, uint32_t cqe_flags, enum hd_status status)
{
	struct hd_send_place *s = op->send_place;

	s->how = (struct hd_ended){ .ctx = op->ctx,
				    .flags = op->flags,
				    .cqe_flags = cqe_flags,
				    .len = hd_op_bytes(op),
				    .tag = op->tag,
				    .cntr = op->cntr,
				    .status = status };
	s->op = NULL;
	if (!hd_lane_done(&s->ep->order->lane, &s->place))
		return;
	op->send_place = NULL;
	send_place_tell(s);
}

/* Returns whether the place keeps the operation's place in the bound. */
bool hd_send_place_leave(struct hd_op *op)
{
	struct hd_send_place *s = op->send_place;

	op->send_place = NULL;
	if (s->place.done) {
		s->in_bound = true;
		return true;
	}
	/* it was refused or given up: nobody is told, and nobody waits for it */
	send_place_tell(send_place_free(s));
	return false;
}

void hd_send_lane_drop(struct hd_ep *ep)
{
	struct hd_lane_place *place;

	while (ep->order && (place = TAILQ_FIRST(&ep->order->lane.places))) {
		if (send_place_at(place)->op)
			send_place_at(place)->op->send_place = NULL;
		send_place_free(send_place_at(place));
	}
}

#ifndef NDEBUG
void hd_send_lane_check(const struct hd_ep *ep)
{
	const struct hd_lane *lane = &ep->order->lane;
	const struct hd_lane_place *place;
	uint32_t n = 0;

	hd_lane_check(lane, true);
	assert(lane->count <= ep->tx->ops);
	HD_LANE_FOREACH(place, lane) {
		const struct hd_send_place *s = send_place_at(place);

		if (n++ == HD_CHECKED)
			return;
		assert(s->ep == ep && s->dest->refs);
		assert(place->done == !s->op && place->done == s->in_bound);
		assert(!s->op || s->op->send_place == s);
	}
}
#endif
