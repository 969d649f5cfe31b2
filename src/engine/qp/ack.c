/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a queue pair has accepted, where two nodes share memory: a row for each, which says it at
 * once and costs no packet (hd_link_ops.accept). Who has sent looks there when he waits, not in
 * every turn: the line of the row would go to and fro. A message that goes back in the meantime
 * carries the same news (HD_PKT_F_MSN), so that who asks and answers has one line of shared memory
 * for each message. And who sleeps is woken for it only if something depends on it: a completion,
 * what has been posted and not begun, or the next post, where there is no room for it.
 */
#include "engine/qp/qp.h"

#include "base/clock.h"
#include "engine/core/core.h"

#define COMPLETES (HD_SEND_COMPLETE | HD_SEND_WORK)
/* WQEs that are looked at before a node sleeps; of more it is to be woken */
#define SCANNED 64
#define SOME 32	    /* rows that are looked at in one turn of many */
#define MANY 16	    /* messages under way: worth a look at once */
#define LOOK_NS 100 /* between two looks at a row */
/* and after a message that has carried the news: the next one is likely to */
#define CARRIED_NS 3000

void hd_ack_publish_now(struct hd_qp *p)
{
	struct hd_link *link = p->life.accepted.link;

	p->life.accepted.link = NULL;
	if (hd_core(p->ep->node)->gate.dead) /* the list is gone */
		return;
	LIST_REMOVE(&p->life.accepted.publish, entry);
	link->ops->accept(link, p->ep->index,
			  (uint64_t)hd_row_for(p->life.accepted.to, p->life.resp.epoch_gen) << 32 |
				  p->life.accepted.op);
}

static void ack_publish_turn(struct hd_publish *publish)
{
	hd_ack_publish_now(hd_container(publish, struct hd_qp, life.accepted.publish));
}

bool hd_ack_first(struct hd_qp *p, struct hd_link *link, const struct hd_pkt *pkt, uint32_t units)
{
	hd_ack_publish(p);
	if (hd_unlikely(!link->ops->accept || p->ep->index >= HD_ACK_ROWS))
		return false;
	p->life.accepted.op = pkt->op;
	p->life.accepted.to = pkt->src;
	p->life.accepted.pending = true;
	p->life.accepted.link = link;
	p->life.accepted.units = units;
	p->life.accepted.publish.fn = ack_publish_turn;
	hd_publish_join(p->ep->node, &p->life.accepted.publish);
	return true;
}

void hd_qps_init(struct hd_node *node)
{
	TAILQ_INIT(&hd_qps(node)->awaiting);
}

/* ---- who waits ------------------------------------------------------------------------------- */

static bool is_listed(const struct hd_qp *p)
{
	return p->life.ack.pending == HD_ACK_PENDING || p->life.ack.pending == HD_ACK_PENDING_SILENT;
}

static void set_wanted(struct hd_node *node, bool wanted)
{
	atomic_store_explicit(&hd_core(node)->page->sleep_heeds, wanted, memory_order_relaxed);
}

/* While others sleep this comes before the message does: who takes that in sees it. */
void hd_ack_join(struct hd_qp *p, uint32_t flags)
{
	struct hd_node *node = p->ep->node;

	if (!p->life.dest->peer->link->ops->accepted || p->life.dest->remote >= HD_ACK_ROWS)
		return;
	if (p->life.ack.pending == HD_ACK_PENDING_NO) {
		p->life.ack.look_due = 0;
		TAILQ_INSERT_TAIL(&hd_qps(node)->awaiting, p, life.ack.entry);
		hd_await_join(node);
	}
	p->life.ack.pending = hd_core(node)->arms && !(flags & COMPLETES) ? HD_ACK_PENDING_SILENT
									  : HD_ACK_PENDING;
	if (hd_core(node)->arms && flags & COMPLETES)
		set_wanted(node, true);
}

/* It may have been accepted without a word since; who sleeps looks once more. */
void hd_ack_want_now(struct hd_qp *p)
{
	p->life.ack.pending = HD_ACK_PENDING;
	hd_node_stir(p->ep->node);
}

/* Would anything happen if all that has left were accepted? */
static bool ack_is_wanted(const struct hd_qp *p)
{
	if (p->life.sq.next != p->life.sq.tail || p->life.sq.tail - p->life.sq.head >= p->attr.max ||
	    p->life.sq.next - p->life.sq.head > SCANNED || p->life.sq.drain_all || hd_qp_is_draining(p))
		return true;
	for (uint32_t seq = p->life.sq.head; seq != p->life.sq.next; seq++) {
		const struct hd_wqe *s = hd_wqe_at(p, seq);

		if (s->flags & COMPLETES || s->status)
			return true;
	}
	return false;
}

void hd_acks_arm(struct hd_node *node)
{
	struct hd_qp *p;

	TAILQ_FOREACH(p, &hd_qps(node)->awaiting, life.ack.entry)
		if (ack_is_wanted(p)) {
			set_wanted(node, true);
			return;
		}
	TAILQ_FOREACH(p, &hd_qps(node)->awaiting, life.ack.entry)
		p->life.ack.pending = HD_ACK_PENDING_SILENT;
	set_wanted(node, false);
}

void hd_ack_leave(struct hd_qp *p)
{
	struct hd_node *node = p->ep->node;

	if (!is_listed(p))
		return;
	p->life.ack.pending = HD_ACK_PENDING_NO;
	if (hd_core(node)->gate.dead) /* the list is gone */
		return;
	TAILQ_REMOVE(&hd_qps(node)->awaiting, p, life.ack.entry);
	hd_await_leave(node);
}

/* ---- looking --------------------------------------------------------------------------------- */

void hd_ack_piggybacked(struct hd_qp *p, const struct hd_pkt *pkt)
{
	struct hd_node *node = p->ep->node;

	if (hd_unlikely(pkt->gen != p->ep->gen)) /* it was said to an epoch that is over */
		return;
	p->life.ack.look_due = hd_qps(node)->looked_at + CARRIED_NS * hd_ticks_per_us() / 1000;
	hd_sq_accepted(p, pkt->qp.msn, 0);
}

bool hd_ack_look(struct hd_qp *p)
{
	struct hd_link *link;
	uint64_t word;

	if (!is_listed(p) || !hd_qp_is_bound(p))
		return false;
	link = p->life.dest->peer->link;
	if (!link->ops->accepted)
		return false;
	word = link->ops->accepted(link, p->life.dest->remote);
	if (word == p->life.ack.row_seen || word >> 32 != hd_row_for(p->ep->index, p->ep->gen))
		return false;
	p->life.ack.row_seen = word;
	return hd_sq_accepted(p, (uint32_t)word, 0);
}

static bool is_due(struct hd_qp *p, uint64_t now)
{
	if (p->life.sq.next == p->life.sq.tail && p->life.sq.next - p->life.sq.head < MANY &&
	    now < p->life.ack.look_due)
		return false;
	p->life.ack.look_due = now + LOOK_NS * hd_ticks_per_us() / 1000;
	return true;
}

int hd_acks_look(struct hd_node *node, bool all)
{
	uint32_t count = hd_core(node)->awaiting_count;
	uint64_t now;
	int n = 0;

	if (!count)
		return 0;
	now = hd_qps(node)->looked_at = hd_ticks();
	if (!all && count > SOME)
		count = SOME;
	for (; count && hd_core(node)->awaiting_count; count--) {
		struct hd_qp *p = TAILQ_FIRST(&hd_qps(node)->awaiting);

		if (TAILQ_NEXT(p, life.ack.entry)) {
			TAILQ_REMOVE(&hd_qps(node)->awaiting, p, life.ack.entry);
			TAILQ_INSERT_TAIL(&hd_qps(node)->awaiting, p, life.ack.entry);
		}
		if (!p->life.sq.ordered)
			hd_ack_leave(p);
		else if (all || is_due(p, now))
			n += hd_ack_look(p);
	}
	return n;
}

void hd_acks_forked(struct hd_node *node)
{
	TAILQ_INIT(&hd_qps(node)->awaiting);
}
