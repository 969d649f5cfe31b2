/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Looking at messages that wait, and claiming them: FI_PEEK, FI_CLAIM and FI_DISCARD of
 * fi_tagged(3) and fi_msg(3).
 */
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/rdm/unexpected.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

static void peek_report(struct hd_ep *ep, const struct hd_recv_args *a, struct hd_msg *m)
{
	struct hd_cqe e = { .ctx = a->ctx, .ep = ep->index, .tag = a->tag, .err = HD_S_NO_MESSAGE };

	e.flags = hd_received_flags(a->flags & HD_RECV_TAGGED);
	if (m) {
		e.len = m->len;
		e.tag = hd_wnode_tag(&m->w);
		e.imm = m->imm;
		e.src = hd_msg_source(ep->node, m);
		e.flags = hd_received_flags(m->flags);
		e.err = 0;
		if (a->count && m->kind == HD_PKT_EAGER && !m->arriving) {
			if (hd_iov_fill(a->iov, a->count, m->data, m->len))
				e.err = HD_S_PROTECTION;
			e.buf = a->iov[0].iov_base;
		}
	}
	hd_cq_post(ep->rx_cq, &e);
}

/*
 * Whoever asks again and again reads no more than he is told, which is there already: nothing else
 * would bring the message in.
 */
static struct hd_wnode *claim_look(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_match *match = hd_rq_match(ep->rq, a->flags);
	struct hd_wnode *w = hd_match_find_waiting(match, a->tag, a->ignore, hd_recv_source(a));

	if (w)
		return w;
	hd_node_poll(ep->node);
	return hd_match_find_waiting(match, a->tag, a->ignore, hd_recv_source(a));
}

static void peek_discard(struct hd_msg *m)
{
	if (m->arriving)
		hd_stream_forget(m->peer->link, m);
	hd_msg_discard(m, 0);
}

int hd_peek(struct hd_ep *ep, const struct hd_recv_args *a, uint32_t peek, struct hd_claim **claim)
{
	struct hd_wnode *w;
	struct hd_msg *m;
	struct hd_ep *by;

	hd_assert_locked(ep->node);
	if (hd_core(ep->node)->gate.dead)
		return hd_refuse(ENOTRECOVERABLE, HD_OF_PARENT);
	w = claim_look(ep, a);
	if (hd_cq_full(ep->rx_cq))
		return -EAGAIN;
	m = w ? hd_container(w, struct hd_msg, w) : NULL;
	if (claim)
		*claim = NULL;
	by = m ? m->ep : hd_ep_speaker(ep);
	if (by->rx_cq->none && by->policy & HD_EP_NAMELESS)
		return hd_refuse(EINVAL, "a look for a message whose receiver has no queue to be told by");
	peek_report(by, a, m);
	if (!m || !peek)
		return 0;
	hd_match_remove_waiting(hd_rq_match(ep->rq, a->flags), w);
	if (peek & HD_PEEK_DISCARD) {
		peek_discard(m);
	} else {
		hd_msg_taken(m);
		m->claimed = true;
		m->name = NULL;
		*claim = (struct hd_claim *)m;
		LIST_INSERT_HEAD(&ep->claims, m, claim_entry);
	}
	return 0;
}

void hd_msg_claim(struct hd_msg *m)
{
	hd_msg_taken(m);
	m->claimed = true;
	LIST_INSERT_HEAD(&m->ep->claims, m, claim_entry);
}

void hd_msg_unclaim(struct hd_msg *m)
{
	LIST_REMOVE(m, claim_entry);
	m->claimed = false;
}

static struct hd_msg *unclaim(struct hd_claim *claim)
{
	struct hd_msg *m = (struct hd_msg *)claim;

	hd_msg_unclaim(m);
	return m;
}

void hd_claim_name(struct hd_claim *claim, const void *name)
{
	((struct hd_msg *)claim)->name = name;
}

struct hd_claim *hd_claim_named(const struct hd_ep *ep, const void *name)
{
	struct hd_msg *m;

	hd_assert_locked(ep->node);
	LIST_FOREACH(m, &ep->claims, claim_entry)
		if (!m->deferred && !m->handle && m->name == name)
			break;
	return (struct hd_claim *)m;
}

int hd_claim_recv(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *a)
{
	struct hd_recv *r = hd_recv_make(ep, a);
	struct hd_msg *m;

	hd_assert_locked(ep->node);
	if (!r)
		return -ENOMEM;
	m = unclaim(claim);
	m->ep = hd_ep_speaker(m->ep); /* the claim may have lost its endpoint */
	hd_recv_give(r, m);
	return 0;
}

void hd_claim_discard(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *args)
{
	struct hd_msg *m = unclaim(claim);
	struct hd_received what;

	hd_assert_locked(ep->node);
	hd_msg_describe(m->ep->node, m, &what);
	if (args)
		hd_recv_complete(
			&(struct hd_taken){
				.ep = ep, .ctx = args->ctx, .flags = args->flags, .room = what.len },
			&what);
	peek_discard(m);
}

/*
 * The endpoint that the message came to closes, while another one of its queue holds the claim:
 * what it gets for it is an error.
 */
static void claim_orphan(struct hd_msg *m, struct hd_ep *holder)
{
	if (m->kind == HD_PKT_RTS || hd_msg_is_unanswered(m))
		hd_msg_answer(m, HD_PKT_FIN, HD_S_REFUSED);
	if (m->peer) {
		hd_credit_unhold(m->peer, m->units);
		hd_peer_free_units(m->peer, m->units);
		m->units = 0;
	}
	hd_msg_orphan(m);
	m->arriving = false;
	m->kind = HD_PKT_RTS; /* of nobody */
	m->flags &= (uint8_t) ~(HD_PKT_F_ACK | HD_PKT_F_DELIVERED);
	m->ep = holder;
}

/*
 * hd_claims_drop: the endpoint closes, and nothing comes in for it any more: refuse what was
 * claimed and not received.
 */
void hd_claims_drop(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	struct hd_msg *m;

	hd_buffered_pause(ep->rq, true);
	while ((m = LIST_FIRST(&ep->claims))) {
		unclaim((struct hd_claim *)m);
		hd_msg_discard(m, HD_S_REFUSED);
	}
	hd_buffered_pause(ep->rq, false);
	for (uint32_t i = 0; i < hd_names(node)->ep_count && ep->rq->users > 1; i++)
		if (hd_names(node)->eps[i] && hd_names(node)->eps[i]->rq == ep->rq)
			LIST_FOREACH(m, &hd_names(node)->eps[i]->claims, claim_entry)
				if (m->ep == ep)
					claim_orphan(m, hd_names(node)->eps[i]);
}

/* hd_claims_ended: the peer is gone: what of its messages is claimed stays. */
void hd_claims_ended(struct hd_peer *peer, enum hd_status status)
{
	while (!hd_ring_is_empty(&peer->kept))
		hd_msg_orphan(hd_container(hd_ring_first(&peer->kept), struct hd_msg, kept));
}
