/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Messages that wait in receive queues, and leave them otherwise than by meeting a receive. */
#include "base/minus.h"
#include "engine/link/link.h"
#include "engine/rq/queue.h"
#include "engine/rq/recv.h"

void hd_msg_answer(struct hd_msg *m, uint8_t kind, enum hd_status status)
{
	struct hd_pkt pkt = { .kind = kind, .op = m->op, .imm = status };

	if (m->peer)
		hd_peer_send(m->peer, &pkt, NULL, 0);
}

void hd_msg_describe(const struct hd_node *node, const struct hd_msg *m, struct hd_received *out)
{
	*out = (struct hd_received){ .len = m->len,
				     .tag = hd_wnode_tag(&m->w),
				     .imm = m->imm,
				     .src = hd_msg_source(node, m),
				     .flags = m->flags };
	if (m->flags & HD_MSG_WRITTEN && m->room == sizeof(out->tag)) /* see hd_deliver_written */
		memcpy(&out->tag, m->data, sizeof(out->tag));
}

void hd_msg_orphan(struct hd_msg *m)
{
	if (!m->peer)
		return;
	hd_ring_leave(&m->kept);
	m->share = hd_share_leave(m->peer->share);
	m->peer = NULL;
}

/* It waits in its queue, and its peer is gone. */
static void msg_stays(struct hd_msg *m)
{
	hd_msg_orphan(m);
	m->left = true;
	hd_ring_add(&m->share->left, &m->kept);
}

void hd_msg_taken(struct hd_msg *m)
{
	if (!m->left)
		return;
	hd_ring_leave(&m->kept);
	m->left = false;
}

void hd_msg_free(struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;

	if (hd_unlikely(m->handle != NULL))
		m->ep->rq->keeper->freed(m);
	if (hd_unlikely(m->early))
		m->ep->rq->early = (uint32_t)hd_minus(m->ep->rq->early, m->room + HD_EARLY_MORE);
	if (m->peer) {
		hd_ring_leave(&m->kept);
		hd_credit_unhold(m->peer, m->units);
		hd_peer_free_units(m->peer, m->units);
	} else if (m->share) {
		hd_msg_taken(m);
		hd_share_release(m->share, m->units);
	} else {
		hd_credit_release(node, m->units);
	}
	hd_bytes_put(&hd_rqs(node)->bytes, m, sizeof(*m) + m->room);
}

void hd_msg_discard(struct hd_msg *m, enum hd_status status)
{
	if (m->kind == HD_PKT_RTS)
		hd_msg_answer(m, HD_PKT_FIN, status);
	else if (hd_msg_is_unanswered(m))
		hd_msg_answer(m, status ? HD_PKT_FIN : HD_PKT_ACK, status);
	hd_msg_free(m);
}

static void drop_waiting(struct hd_rq *rq, bool (*pick)(const struct hd_msg *m, const void *arg),
			 const void *arg, enum hd_status status)
{
	for (int i = 0; i < 2; i++) {
		struct hd_wnode *w = hd_match_first_waiting(&rq->match[i]), *next;

		for (; w; w = next) {
			struct hd_msg *m = hd_container(w, struct hd_msg, w);

			next = hd_match_next_waiting(w);
			if (!pick(m, arg))
				continue;
			hd_match_remove_waiting(&rq->match[i], w);
			hd_msg_discard(m, status);
		}
	}
}

static bool msg_is_of_ep(const struct hd_msg *m, const void *ep)
{
	return m->ep == ep;
}

void hd_rq_drop_waiting(struct hd_rq *rq, struct hd_ep *ep)
{
	drop_waiting(rq, msg_is_of_ep, ep, HD_S_REFUSED);
}

/*
 * hd_rqs_ended: the peer is gone. What it has sent whole stays to be received; what it
 * only promised is forgotten.
 */
void hd_rqs_ended(struct hd_peer *peer, enum hd_status status)
{
	struct hd_ring *at = hd_ring_first(&peer->kept), *next;

	for (; at; at = next) {
		struct hd_msg *m = hd_container(at, struct hd_msg, kept);

		next = hd_ring_next(&peer->kept, at);
		if (m->claimed || (m->waiter && !m->deferred))
			continue;
		if (m->kind == HD_PKT_RTS) {
			hd_match_remove_waiting(hd_rq_match(m->ep->rq, m->flags), &m->w);
			hd_msg_discard(m, 0);
		} else {
			msg_stays(m);
		}
	}
}

/* hd_rqs_forgo: what a peer that is gone has left waiting is dropped. */
void hd_rqs_forgo(struct hd_share *share)
{
	struct hd_ring *at = hd_ring_first(&share->left), *next;

	for (; at; at = next) {
		struct hd_msg *m = hd_container(at, struct hd_msg, kept);

		next = hd_ring_next(&share->left, at);
		hd_match_remove_waiting(hd_rq_match(m->ep->rq, m->flags), &m->w);
		hd_msg_free(m);
	}
}

static bool msg_is_request_to(const struct hd_msg *m, const void *ep)
{
	return m->ep == ep && m->kind == HD_PKT_RTS;
}

void hd_rq_drop_requests(struct hd_ep *ep)
{
	drop_waiting(ep->rq, msg_is_request_to, ep, HD_S_CANCELLED);
}

static bool source_is_gone(const void *node, uint32_t src)
{
	return src && !hd_dest_by_id(node, src);
}

static void claims_forget(struct hd_ep *ep)
{
	struct hd_msg *m;

	LIST_FOREACH(m, &ep->claims, claim_entry)
		if (source_is_gone(ep->node, hd_wnode_src(&m->w)))
			m->w.by_src.src = HD_MATCH_FORGOTTEN;
}

/*
 * hd_rqs_forget: messages that wait must not become those of whom the number is given to. The look
 * at all of them is not worth it for fewer sources than a sixteenth of what there is to be looked
 * at, so that none costs more than sixteen steps.
 */
#define FORGET_STEPS 16
bool hd_rqs_forget(struct hd_node *node, uint32_t count)
{
	uint64_t steps = hd_names(node)->ep_count;
	struct hd_rq *rq;

	TAILQ_FOREACH(rq, &hd_rqs(node)->rq_list, entry)
		steps += rq->match[0].waiting + rq->match[1].waiting;
	if ((uint64_t)count * FORGET_STEPS < steps)
		return false;
	TAILQ_FOREACH(rq, &hd_rqs(node)->rq_list, entry)
		for (int k = 0; k < 2; k++)
			hd_match_forget(&rq->match[k], source_is_gone, node);
	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++)
		if (hd_names(node)->eps[i])
			claims_forget(hd_names(node)->eps[i]);
	return true;
}
