/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The end of a connection is told of after what came before it. A program that reads completions
 * and events by turns may find both at once, though with a card the completions are older by what
 * the other program takes to leave; and it destroys the queue pair over the event, and with it what
 * it has not read. So HD_EV_DOWN waits until that has been read, but not for a program that does
 * not read.
 */
#include "engine/cm/call.h"
#include "engine/event/event.h"

#define LOOK_NS HD_NS_PER_MS
/* turns of the node, not time: a process that stands still has read nothing meanwhile */
#define LOOKS 50

/* The queue pair, which may have been closed. */
static const struct hd_ep *pair_of(const struct hd_conn *c)
{
	const struct hd_node *node = c->ep->node;
	const struct hd_ep *ep = c->last.index < hd_names(node)->ep_count ? hd_names(node)->eps[c->last.index]
									  : NULL;

	return ep && ep->qp && ep->gen == c->last.gen ? ep : NULL;
}

static bool is_read(const struct hd_conn *c)
{
	const struct hd_ep *ep = pair_of(c);

	return !ep ||
	       (hd_cq_is_past(ep->tx_cq, c->last.tx_mark) && hd_cq_is_past(ep->rx_cq, c->last.rx_mark));
}

void hd_conn_last_tell(struct hd_conn *c)
{
	if (!c->last.held)
		return;
	c->last.held = false;
	hd_timer_stop(c->ep->node, &c->timer);
	hd_conn_post(c, HD_EV_DOWN, 0, &(struct hd_private){ .word = c->last.word });
}

static void last_look(struct hd_timer *timer)
{
	struct hd_conn *c = hd_container(timer, struct hd_conn, timer);

	if (++c->last.looks >= LOOKS || is_read(c))
		hd_conn_last_tell(c);
	else
		hd_timer_set(c->ep->node, timer, LOOK_NS);
}

/* Remember what is to be read first. */
static void mark(struct hd_conn *c)
{
	const struct hd_node *node = c->ep->node;

	c->last.index = UINT32_MAX;
	for (uint32_t i = 0; c->last.number && i < hd_names(node)->ep_count; i++) {
		const struct hd_ep *ep = hd_names(node)->eps[i];

		if (!ep || !ep->qp || hd_ep_number(ep) != c->last.number)
			continue;
		c->last.index = i;
		c->last.gen = ep->gen;
		c->last.tx_mark = hd_cq_mark(ep->tx_cq, i);
		c->last.rx_mark = hd_cq_mark(ep->rx_cq, i);
		return;
	}
}

void hd_conn_down(struct hd_conn *c, uint64_t word)
{
	mark(c);
	c->last.word = word;
	c->last.held = true;
	c->last.looks = 0;
	if (is_read(c)) {
		hd_conn_last_tell(c);
		return;
	}
	c->timer.fn = last_look;
	hd_timer_set(c->ep->node, &c->timer, LOOK_NS);
}

void hd_ep_down_after(struct hd_ep *ep, uint32_t number)
{
	hd_assert_locked(ep->node);
	ep->conn->last.number = number;
	ep->conn->carries = number;
}

void hd_ep_carries(struct hd_ep *ep, uint32_t number)
{
	hd_assert_locked(ep->node);
	ep->conn->carries = number;
}
