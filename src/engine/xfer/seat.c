/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See seat.h. */
#include "engine/xfer/seat.h"
#include "engine/link/link.h"
#include "engine/xfer/op.h"

struct hd_seat {
	TAILQ_ENTRY(hd_seat) entry; /* hd_ep_order.seats */
	struct hd_ep *ep;
	struct hd_dest *dest; /* referenced */
	struct hd_op *op;     /* NULL: it has ended, and waits to be told of */
	struct hd_ended how;
	bool holds_place; /* in the bound of operations: the operation itself has been freed */
};

void hd_seats_init(struct hd_node *node)
{
	hd_pool_init(&hd_xfers(node)->seats, sizeof(struct hd_seat), 64);
}

static void seat_free(struct hd_seat *t)
{
	TAILQ_REMOVE(&t->ep->order->seats, t, entry);
	if (t->holds_place)
		t->ep->tx->ops--;
	hd_dest_unref(t->dest);
	hd_pool_put(&hd_xfers(t->ep->node)->seats, t);
}

bool hd_seat_take(struct hd_op *op)
{
	struct hd_seat *t = !hd_ep_order_make(op->t.ep) ? NULL
							: hd_pool_get(&hd_xfers(op->t.ep->node)->seats);

	if (!t)
		return false;
	*t = (struct hd_seat){ .ep = op->t.ep, .dest = op->dest, .op = op };
	op->dest->refs++;
	op->seat = t;
	TAILQ_INSERT_TAIL(&op->t.ep->order->seats, t, entry);
	return true;
}

/* Are what goes to these two told of in one order? All that a queue pair sends is. */
static bool is_one_order(const struct hd_ep *ep, const struct hd_dest *a, const struct hd_dest *b)
{
	return ep->qp || hd_dest_same(a, b);
}

/* The newest seat before t (NULL: of all) of the same order. */
static struct hd_seat *before(const struct hd_ep *ep, const struct hd_dest *dest, struct hd_seat *t)
{
	if (!t && !ep->order)
		return NULL;
	t = t ? TAILQ_PREV(t, hd_seats, entry) : TAILQ_LAST(&ep->order->seats, hd_seats);
	while (t && !is_one_order(ep, t->dest, dest))
		t = TAILQ_PREV(t, hd_seats, entry);
	return t;
}

bool hd_seats_open(const struct hd_ep *ep, const struct hd_dest *dest)
{
	return !before(ep, dest, NULL);
}

/* Tell of this seat, whose operation has ended, and of those behind it that waited only for it. */
static void seat_tell(struct hd_seat *t)
{
	struct hd_dest *dest = t->dest;
	struct hd_seat *next;

	dest->refs++;
	for (; t && !t->op; t = next) {
		for (next = TAILQ_NEXT(t, entry); next && !is_one_order(t->ep, next->dest, dest);)
			next = TAILQ_NEXT(next, entry);
		hd_op_complete(t->ep, &t->how);
		seat_free(t);
	}
	hd_dest_unref(dest);
}

void hd_seat_done(struct hd_op *op, uint32_t cqe_flags, int err)
{
	struct hd_seat *t = op->seat;

	t->how = (struct hd_ended){ .ctx = op->ctx,
				    .flags = op->flags,
				    .cqe_flags = cqe_flags,
				    .len = op->t.len,
				    .tag = op->tag,
				    .cntr = op->cntr,
				    .err = err };
	t->op = NULL;
	if (before(t->ep, t->dest, t))
		return;
	op->seat = NULL;
	seat_tell(t);
}

/* Returns whether the seat keeps the operation's place in the bound. */
bool hd_seat_leave(struct hd_op *op)
{
	struct hd_seat *t = op->seat, *next;

	op->seat = NULL;
	if (!t->op) {
		t->holds_place = true;
		return true;
	}
	/* it was refused or given up: nobody is told, and nobody waits for it */
	for (next = TAILQ_NEXT(t, entry); next && !is_one_order(t->ep, next->dest, t->dest);)
		next = TAILQ_NEXT(next, entry);
	if (next && (next->op || before(t->ep, t->dest, t)))
		next = NULL;
	seat_free(t);
	if (next)
		seat_tell(next);
	return false;
}

void hd_seats_drop(struct hd_ep *ep)
{
	struct hd_seat *t;

	while (ep->order && (t = TAILQ_FIRST(&ep->order->seats))) {
		if (t->op)
			t->op->seat = NULL;
		seat_free(t);
	}
}
