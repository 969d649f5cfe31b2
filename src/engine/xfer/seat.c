/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See seat.h. */
#include "engine/xfer/seat.h"
#include "engine/link/link.h"
#include "engine/xfer/op.h"

struct hd_seat {
	struct hd_lane_place place; /* in hd_ep_order.seats; done: it waits to be told of */
	struct hd_ep *ep;
	struct hd_dest *dest; /* referenced */
	struct hd_op *op;     /* NULL: it has ended */
	struct hd_ended how;
	bool in_bound; /* counted as an operation of the endpoint: the operation itself has been freed */
};

static struct hd_seat *seat_at(const struct hd_lane_place *place)
{
	return hd_container(place, struct hd_seat, place);
}

static bool seats_same(const struct hd_lane_place *a, const struct hd_lane_place *b)
{
	return hd_dest_same(seat_at(a)->dest, seat_at(b)->dest);
}

void hd_seats_init(struct hd_node *node)
{
	hd_pool_init(&hd_xfers(node)->seats, sizeof(struct hd_seat), 64);
}

bool hd_ep_order_make(struct hd_ep *ep)
{
	struct hd_ep_order *order = ep->order ? ep->order : malloc(sizeof(*order));

	if (!order)
		return false;
	if (!ep->order) {
		TAILQ_INIT(&order->fenced);
		hd_lane_init(&order->seats, seats_same);
	}
	ep->order = order;
	return true;
}

/* Returns the one that is to be told of now, or NULL. */
static struct hd_seat *seat_free(struct hd_seat *s)
{
	struct hd_lane_place *next = hd_lane_leave(&s->ep->order->seats, &s->place);

	if (s->in_bound)
		s->ep->tx->ops--;
	hd_dest_unref(s->dest);
	hd_pool_put(&hd_xfers(s->ep->node)->seats, s);
	return next ? seat_at(next) : NULL;
}

bool hd_seat_take(struct hd_op *op)
{
	struct hd_seat *s = !hd_ep_order_make(op->t.ep) ? NULL
							: hd_pool_get(&hd_xfers(op->t.ep->node)->seats);

	if (!s)
		return false;
	*s = (struct hd_seat){ .ep = op->t.ep, .dest = op->dest, .op = op };
	hd_dest_ref(op->dest);
	op->seat = s;
	hd_lane_join(&op->t.ep->order->seats, &s->place);
	return true;
}

bool hd_seats_open(struct hd_ep *ep, struct hd_dest *dest)
{
	const struct hd_seat like = { .ep = ep, .dest = dest };

	return !ep->order || !ep->order->seats.count || hd_lane_is_open(&ep->order->seats, &like.place);
}

/* Tell of this seat, whose turn it is, and of those behind it that waited only for it. */
static void seat_tell(struct hd_seat *s)
{
	while (s) {
		hd_op_complete(s->ep, &s->how);
		s = seat_free(s);
	}
}

void hd_seat_done(struct hd_op *op, uint32_t cqe_flags, enum hd_status status)
{
	struct hd_seat *s = op->seat;

	s->how = (struct hd_ended){ .ctx = op->ctx,
				    .flags = op->flags,
				    .cqe_flags = cqe_flags,
				    .len = hd_op_bytes(op),
				    .tag = op->tag,
				    .cntr = op->cntr,
				    .status = status };
	s->op = NULL;
	if (!hd_lane_done(&s->ep->order->seats, &s->place))
		return;
	op->seat = NULL;
	seat_tell(s);
}

/* Returns whether the seat keeps the operation's place in the bound. */
bool hd_seat_leave(struct hd_op *op)
{
	struct hd_seat *s = op->seat;

	op->seat = NULL;
	if (s->place.done) {
		s->in_bound = true;
		return true;
	}
	seat_tell(seat_free(s)); /* it was refused or given up: nobody is told, and nobody waits for it */
	return false;
}

void hd_seats_drop(struct hd_ep *ep)
{
	struct hd_lane_place *place;

	while (ep->order && (place = TAILQ_FIRST(&ep->order->seats.places))) {
		if (seat_at(place)->op)
			seat_at(place)->op->seat = NULL;
		seat_free(seat_at(place));
	}
}

#ifndef NDEBUG
void hd_seats_check(const struct hd_ep *ep)
{
	const struct hd_lane *lane = &ep->order->seats;
	const struct hd_lane_place *place;
	uint32_t n = 0;

	hd_lane_check(lane, true);
	assert(lane->count <= ep->tx->ops);
	HD_LANE_FOREACH(place, lane) {
		const struct hd_seat *s = seat_at(place);

		if (n++ == HD_CHECKED)
			return;
		assert(s->ep == ep && s->dest->refs);
		assert(place->done == !s->op && place->done == s->in_bound);
		assert(!s->op || s->op->seat == s);
	}
}
#endif
