/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See order.h. */
#include "engine/message/order.h"
#include "engine/message/message.h"
#include "engine/peer/peer.h"
#include "engine/receive/queue.h"

#include "engine/memory/reach.h"
#include "engine/receive/recv.h"

/* ---- what we send ---------------------------------------------------------------------------------------------------------------- */

struct hd_seat {
	TAILQ_ENTRY(hd_seat) entry; /* ep->seats */
	struct hd_ep *ep;
	struct hd_dest *dest; /* referenced */
	struct hd_op *op;     /* NULL: it has ended, and waits to be told of */
	struct hd_ended how;
	bool holds_place; /* in the bound of operations: the operation itself has been freed */
};

void hd_seats_init(struct hd_node *node)
{
	hd_pool_init(&node->seats, sizeof(struct hd_seat), 64);
}

static void seat_free(struct hd_seat *t)
{
	TAILQ_REMOVE(&t->ep->seats, t, entry);
	if (t->holds_place)
		t->ep->tx->ops--;
	hd_dest_unref(t->dest);
	hd_pool_put(&t->ep->node->seats, t);
}

bool hd_seat_take(struct hd_op *op)
{
	struct hd_seat *t = hd_pool_get(&op->ep->node->seats);

	if (!t)
		return false;
	*t = (struct hd_seat){ .ep = op->ep, .dest = op->dest, .op = op };
	op->dest->refs++;
	op->seat = t;
	TAILQ_INSERT_TAIL(&op->ep->seats, t, entry);
	return true;
}

/* Are what goes to these two told of in one order? All that a queue pair sends is. */
static bool is_one_order(const struct hd_ep *ep, const struct hd_dest *a, const struct hd_dest *b)
{
	return ep->pair || hd_dest_same(a, b);
}

/* The newest seat before t (NULL: of all) of the same order. */
static struct hd_seat *before(const struct hd_ep *ep, const struct hd_dest *dest, struct hd_seat *t)
{
	t = t ? TAILQ_PREV(t, hd_seats, entry) : TAILQ_LAST(&ep->seats, hd_seats);
	while (t && !is_one_order(ep, t->dest, dest))
		t = TAILQ_PREV(t, hd_seats, entry);
	return t;
}

bool hd_seats_open(const struct hd_ep *ep, const struct hd_dest *dest)
{
	return !before(ep, dest, NULL);
}

/* Tell of this seat, whose operation has ended, and of those behind it that waited only for it. */
static void tell(struct hd_seat *t)
{
	struct hd_dest *dest = t->dest;
	struct hd_seat *next;

	dest->refs++;
	for (; t && !t->op; t = next) {
		for (next = TAILQ_NEXT(t, entry); next && !is_one_order(t->ep, next->dest, dest);)
			next = TAILQ_NEXT(next, entry);
		hd_op_tell(t->ep, &t->how);
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
				    .len = op->len,
				    .tag = op->tag,
				    .cntr = op->cntr,
				    .err = err };
	t->op = NULL;
	if (before(t->ep, t->dest, t))
		return;
	op->seat = NULL;
	tell(t);
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
		tell(next);
	return false;
}

void hd_seats_drop(struct hd_ep *ep)
{
	struct hd_seat *t;

	while ((t = TAILQ_FIRST(&ep->seats))) {
		if (t->op)
			t->op->seat = NULL;
		seat_free(t);
	}
}

/* ---- what we receive --------------------------------------------------------------------------------------------------------------- */

void hd_order_meet(struct hd_recv *r, struct hd_msg *m)
{
	m->waiter = r;
	m->parked = true;
	hd_msg_claim(m);
	STAILQ_INSERT_TAIL(&m->ep->parked, m, park);
	hd_order_next(m->ep);
}

void hd_order_forget(struct hd_msg *m)
{
	STAILQ_REMOVE(&m->ep->parked, m, hd_msg, park);
	m->parked = false;
	hd_msg_unclaim(m);
}

/* Take the oldest out; returns its receive. */
static struct hd_recv *unpark(struct hd_msg *m)
{
	struct hd_recv *r = m->waiter;

	hd_order_forget(m);
	m->waiter = NULL;
	return r;
}

void hd_order_next(struct hd_ep *ep)
{
	struct hd_msg *m;

	if (ep->rx_held)
		return; /* whoever holds it carries on */
	ep->rx_held = true;
	while (!ep->rx_busy && (m = STAILQ_FIRST(&ep->parked)) && !m->arriving) {
		struct hd_recv *r = unpark(m);

		if (m->peer && m->peer->state == HD_PEER_DEAD)
			m->peer = NULL;
		ep->rx_busy = m->kind == HD_PKT_RTS;
		hd_recv_meet(r, m);
	}
	ep->rx_held = false;
}

void hd_order_done(struct hd_ep *ep)
{
	ep->rx_busy = false;
	hd_order_next(ep);
}

void hd_order_drop(struct hd_ep *ep)
{
	struct hd_msg *m;

	while ((m = STAILQ_FIRST(&ep->parked))) {
		hd_recv_drop(ep->node, unpark(m));
		hd_msg_discard(m, ECONNREFUSED);
	}
}

void hd_order_hold(struct hd_ep *ep)
{
	ep->rx_held = true;
}

/* Whatever is missing of this message will not come. */
static void fail(struct hd_recv *r, struct hd_msg *m, int err)
{
	if (m->arriving)
		hd_stream_forget(m->peer->link, NULL, NULL, m);
	hd_recv_fail(r, m, err);
	hd_msg_discard(m, err);
}

void hd_order_flush(struct hd_ep *ep, int err)
{
	struct hd_msg *m;

	while ((m = STAILQ_FIRST(&ep->parked))) {
		struct hd_recv *r = unpark(m);

		if (m->arriving || m->kind == HD_PKT_RTS)
			fail(r, m, err);
		else
			hd_recv_meet(r, m);
	}
	ep->rx_held = false;
}

/* ---- bytes in order ------------------------------------------------------------------------------------------------------------------ */

/* The compiler keeps the order of these stores, and so does the processor: x86 anyway, others by the release. */
static void copy_ascending(char *to, const char *from, size_t len)
{
	for (; len && (uintptr_t)to % sizeof(uint64_t); len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
		to += sizeof(word);
		from += sizeof(word);
	}
	for (; len; len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
}

size_t hd_fill_ascending(const struct iovec *iov, int count, uint64_t offset, const void *from, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < count && done < len; i++) {
		size_t room = iov[i].iov_len, n;

		if (offset >= room) {
			offset -= room;
			continue;
		}
		n = room - offset < len - done ? room - offset : len - done;
		copy_ascending((char *)iov[i].iov_base + offset, (const char *)from + done, n);
		done += n;
		offset = 0;
	}
	return done;
}
