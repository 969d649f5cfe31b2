/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a queue pair has accepted, where two nodes share memory: a row for each, which says it at once and costs no packet
 * (hd_link_ops.accept). Who has sent looks there when he waits, not in every turn: the line of the row would go to and fro. A message that
 * goes back in the meantime carries the same news (HD_PKT_F_CARRIES), so that who asks and answers has one line of shared memory for
 * each message.
 */
#include "engine/pair/pair.h"

#include "base/clock.h"

#define SOME 32		/* rows that are looked at in one turn of many */
#define MANY 16		/* messages under way: worth a look at once */
#define LOOK_NS 100	/* between two looks at a row */
#define CARRIED_NS 3000 /* and after a message that has carried the news: the next one is likely to */

bool hd_accept_say(struct hd_pair *p, struct hd_link *link, const struct hd_pkt *pkt)
{
	uint32_t row = p->ep->index;

	if (hd_unlikely(!link->ops->accept || row >= HD_ACCEPT_ROWS))
		return false;
	p->ack_op = pkt->op;
	p->ack_to = pkt->src;
	p->unsaid = true;
	link->ops->accept(link, row, (uint64_t)pkt->src << 32 | pkt->op);
	return true;
}

void hd_accept_join(struct hd_pair *p)
{
	struct hd_node *node = p->ep->node;

	if (!p->dest->peer->link->ops->accepted || p->dest->remote >= HD_ACCEPT_ROWS)
		return;
	p->awaits = true;
	p->look_due = 0;
	TAILQ_INSERT_TAIL(&node->awaiting, p, await_entry);
	node->awaiting_count++;
}

void hd_accept_leave(struct hd_pair *p)
{
	struct hd_node *node = p->ep->node;

	if (!p->awaits)
		return;
	p->awaits = false;
	if (node->dead) /* the list is gone */
		return;
	TAILQ_REMOVE(&node->awaiting, p, await_entry);
	node->awaiting_count--;
}

void hd_accept_carried(struct hd_pair *p, const struct hd_pkt *pkt)
{
	struct hd_node *node = p->ep->node;

	p->look_due = node->looked_at + CARRIED_NS * hd_ticks_per_us() / 1000;
	hd_line_accepted(p, (uint32_t)pkt->tag, 0);
}

bool hd_accept_look(struct hd_pair *p)
{
	struct hd_link *link;
	uint64_t word;

	if (!p->awaits || !hd_pair_is_bound(p))
		return false;
	link = p->dest->peer->link;
	if (!link->ops->accepted)
		return false;
	word = link->ops->accepted(link, p->dest->remote);
	if (word == p->accept_seen || word >> 32 != p->ep->index)
		return false;
	p->accept_seen = word;
	return hd_line_accepted(p, (uint32_t)word, 0);
}

static bool is_due(struct hd_pair *p, uint64_t now)
{
	if (p->next == p->tail && p->next - p->head < MANY && now < p->look_due)
		return false;
	p->look_due = now + LOOK_NS * hd_ticks_per_us() / 1000;
	return true;
}

int hd_accepts_look(struct hd_node *node, bool all)
{
	uint32_t count = node->awaiting_count;
	uint64_t now;
	int n = 0;

	if (!count)
		return 0;
	now = node->looked_at = hd_ticks();
	if (!all && count > SOME)
		count = SOME;
	for (; count && node->awaiting_count; count--) {
		struct hd_pair *p = TAILQ_FIRST(&node->awaiting);

		TAILQ_REMOVE(&node->awaiting, p, await_entry);
		TAILQ_INSERT_TAIL(&node->awaiting, p, await_entry);
		if (!p->ordered)
			hd_accept_leave(p);
		else if (all || is_due(p, now))
			n += hd_accept_look(p);
	}
	return n;
}
