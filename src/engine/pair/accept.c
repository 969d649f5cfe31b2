/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a queue pair has accepted, where two nodes share memory: a row for each, which says it at once and costs no packet
 * (hd_link_ops.accept). Who has sent looks there when he waits, not in every turn: the line of the row would go to and fro. A message that
 * goes back in the meantime carries the same news (HD_PKT_F_CARRIES), so that who asks and answers has one line of shared memory for
 * each message. And who sleeps is woken for it only if something depends on it: a completion, what has been posted and not begun, or the next
 * post, where there is no room for it.
 */
#include "engine/pair/pair.h"

#include "base/clock.h"
#include "engine/node/node.h"

#define TELLS (HD_SEND_COMPLETE | HD_SEND_WORK)
#define SCANNED 64	/* slots that are looked at before a node sleeps; of more it is to be woken */
#define SOME 32		/* rows that are looked at in one turn of many */
#define MANY 16		/* messages under way: worth a look at once */
#define LOOK_NS 100	/* between two looks at a row */
#define CARRIED_NS 3000 /* and after a message that has carried the news: the next one is likely to */

bool hd_accept_first(struct hd_pair *p, struct hd_link *link, const struct hd_pkt *pkt, uint32_t units)
{
	hd_accept_say(p);
	if (hd_unlikely(!link->ops->accept || p->ep->index >= HD_ACCEPT_ROWS))
		return false;
	p->ack_op = pkt->op;
	p->ack_to = pkt->src;
	p->unsaid = true;
	p->saying = link;
	p->saying_units = units;
	LIST_INSERT_HEAD(&p->ep->node->accepting, p, saying_entry);
	return true;
}

void hd_accept_say_now(struct hd_pair *p)
{
	struct hd_link *link = p->saying;

	p->saying = NULL;
	if (p->ep->node->dead) /* the list is gone */
		return;
	LIST_REMOVE(p, saying_entry);
	link->ops->accept(link, p->ep->index, (uint64_t)hd_row_for(p->ack_to, p->met_gen) << 32 | p->ack_op);
}

void hd_accepts_say_now(struct hd_node *node)
{
	struct hd_pair *p;

	while ((p = LIST_FIRST(&node->accepting)))
		hd_accept_say_now(p);
}

/* ---- who waits ------------------------------------------------------------------------------------------------------------- */

static bool is_listed(const struct hd_pair *p)
{
	return p->awaits == HD_AWAITS || p->awaits == HD_AWAITS_QUIETLY;
}

static void set_heeds(struct hd_node *node, bool heeds)
{
	atomic_store_explicit(&node->page->sleep_heeds, heeds, memory_order_relaxed);
}

/* While others sleep this comes before the message does: who takes that in sees it. */
void hd_accept_join(struct hd_pair *p, uint32_t flags)
{
	struct hd_node *node = p->ep->node;

	if (!p->dest->peer->link->ops->accepted || p->dest->remote >= HD_ACCEPT_ROWS)
		return;
	if (p->awaits == HD_AWAITS_NO) {
		p->look_due = 0;
		TAILQ_INSERT_TAIL(&node->awaiting, p, await_entry);
		node->awaiting_count++;
	}
	p->awaits = node->arms && !(flags & TELLS) ? HD_AWAITS_QUIETLY : HD_AWAITS;
	if (node->arms && flags & TELLS)
		set_heeds(node, true);
}

/* It may have been accepted without a word since; who sleeps looks once more. */
void hd_accept_roused(struct hd_pair *p)
{
	p->awaits = HD_AWAITS;
	hd_node_stir(p->ep->node);
}

/* Would anything happen if all that has left were accepted? */
static bool matters(const struct hd_pair *p)
{
	if (p->next != p->tail || p->tail - p->head >= p->max || p->next - p->head > SCANNED || p->paused ||
	    p->finishing)
		return true;
	for (uint32_t seq = p->head; seq != p->next; seq++) {
		const struct hd_slot *s = &p->slots[seq & p->mask];

		if (s->flags & TELLS || s->err)
			return true;
	}
	return false;
}

void hd_accepts_arm(struct hd_node *node)
{
	struct hd_pair *p;

	TAILQ_FOREACH(p, &node->awaiting, await_entry)
		if (matters(p)) {
			set_heeds(node, true);
			return;
		}
	TAILQ_FOREACH(p, &node->awaiting, await_entry)
		p->awaits = HD_AWAITS_QUIETLY;
	set_heeds(node, false);
}

void hd_accept_leave(struct hd_pair *p)
{
	struct hd_node *node = p->ep->node;

	if (!is_listed(p))
		return;
	p->awaits = HD_AWAITS_NO;
	if (node->dead) /* the list is gone */
		return;
	TAILQ_REMOVE(&node->awaiting, p, await_entry);
	node->awaiting_count--;
}

/* ---- looking --------------------------------------------------------------------------------------------------------------- */

void hd_accept_carried(struct hd_pair *p, const struct hd_pkt *pkt)
{
	struct hd_node *node = p->ep->node;

	if (hd_unlikely(pkt->gen != p->ep->gen)) /* it was said to a life that is over */
		return;
	p->look_due = node->looked_at + CARRIED_NS * hd_ticks_per_us() / 1000;
	hd_line_accepted(p, (uint32_t)pkt->tag, 0);
}

bool hd_accept_look(struct hd_pair *p)
{
	struct hd_link *link;
	uint64_t word;

	if (!is_listed(p) || !hd_pair_is_bound(p))
		return false;
	link = p->dest->peer->link;
	if (!link->ops->accepted)
		return false;
	word = link->ops->accepted(link, p->dest->remote);
	if (word == p->accept_seen || word >> 32 != hd_row_for(p->ep->index, p->ep->gen))
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
