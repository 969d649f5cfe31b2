/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * In which of their epochs two queue pairs talk. Each ibv_modify_qp(3) to RESET ends an epoch;
 * programs give the next ones packet sequence numbers, with which the requests of each end begin,
 * and tell the other end. Every request carries, in its header, the number at which its sender
 * stands with the epoch of the target that it knows: that at which it has begun, or, when the
 * target has begun anew since, that of the first request which that one has not answered.
 *
 * Only the first request that an epoch sees of another is compared: from then on the two have
 * agreed, until either begins anew. One that does not agree waits, as for an end that is not ready:
 * a card would drop it, and its sender try once more.
 *
 * A request that was sent before its sender had heard of our epoch (its `gen` says so) may be of an
 * epoch that has ended meanwhile, and may have begun with the same number. So its sender is asked
 * where it stands (EPOCH). The question comes behind what announces our epoch, the answer behind
 * what announces its next one.
 */
#include "engine/link/link.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/xfer/xfer.h"

static uint32_t psn_of(const struct hd_qp *p, uint32_t seq)
{
	return (p->life.sq.psn + (seq - p->life.sq.base)) & HD_PSN_MASK;
}

static bool is_other_end(const struct hd_qp *p, const struct hd_peer *peer, uint32_t src)
{
	return hd_qp_is_bound(p) && p->life.dest->peer == peer && p->life.dest->remote == src;
}

enum hd_epoch_known hd_epoch_known(const struct hd_qp *p, const struct hd_peer *peer, uint32_t src)
{
	if (!p->life.resp.epoch_gen || !is_other_end(p, peer, src))
		return HD_EPOCH_NEVER;
	return p->life.resp.epoch_gen == hd_remote_gen(peer, src) ? HD_EPOCH_NOW : HD_EPOCH_BEFORE;
}

/* ---- our own epoch --------------------------------------------------------------------------- */

void hd_epoch_publish(struct hd_qp *p)
{
	uint32_t psn = p->attr.lossy ? 0 : psn_of(p, p->life.sq.head);

	p->life.sq.epoch.psn = psn;
	p->ep->page_epoch = hd_page_epoch(psn, p->ep->gen);
}

/* ---- the other end's ------------------------------------------------------------------------- */

void hd_epoch_no_more(struct hd_qp *p)
{
	p->life.resp.from_peer = NULL;
	p->life.resp.epoch_asked = p->life.resp.epoch_told = false;
}

static void epoch_ask(struct hd_qp *p)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EPOCH,
				    .gen = p->life.dest->gen,
				    .dst = p->life.dest->remote,
				    .src = p->ep->index,
				    .op = HD_EPOCH_ASKS };

	if (!p->life.resp.epoch_asked)
		hd_peer_send(p->life.dest->peer, &pkt, NULL, 0);
	p->life.resp.epoch_asked = true;
}

bool hd_epoch_sync(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	uint32_t psn = pkt->qp.epoch.psn;

	if (pkt->gen != p->ep->gen && !p->life.resp.epoch_told) {
		epoch_ask(p);
		return false;
	}
	if (pkt->gen != p->ep->gen)
		psn = p->life.resp.told_psn;
	if (!p->attr.lossy && (psn ^ p->life.resp.psn) & HD_PSN_MASK)
		return false;
	p->life.resp.from_peer = peer;
	p->life.resp.from = pkt->src;
	p->life.resp.epoch_gen = hd_remote_gen(peer, pkt->src);
	hd_qp_event(p, HD_EV_EP_ESTABLISHED, 0);
	return true;
}

/* What is shown for the other end to find: its epoch as it would have to be. */
uint32_t hd_epoch_row(const struct hd_qp *p)
{
	uint32_t psn = p->attr.lossy ? 0 : p->life.resp.psn & HD_PSN_MASK;

	return hd_page_epoch(psn, p->life.dest->gen);
}

/*
 * The other end of p has another epoch: with that one nothing is agreed, and it knows of
 * nothing that it had sent.
 */
static void epoch_renew(struct hd_qp *p)
{
	bool pushing = p->life.sq.pushing;

	p->life.sq.pushing = true; /* nothing leaves before it says where we stand now */
	hd_ack_look(p);
	p->life.sq.pushing = pushing;
	hd_epoch_no_more(p);
	p->life.accepted.due = p->life.accepted.pending =
		false; /* nobody waits for it any more, and the next epoch shall not have it */
	p->life.resp.psn += (uint32_t)(hd_qp_taken(p) - p->life.resp.base);
	p->life.resp.base = hd_qp_taken(p);
	hd_epoch_publish(p);
	hd_ep_show(p->ep);
	hd_qp_kick(p);
}

void hd_epoch_renewed(struct hd_peer *peer, uint32_t index)
{
	struct hd_dest *first = hd_dest_by_id(peer->node, hd_remote_source(peer, index)), *d = first;
	struct hd_follow *f, *next;

	hd_respq_outdated(NULL, peer, index);
	while (d) {
		for (f = LIST_FIRST(&d->followers); f; f = next) {
			struct hd_qp *p = hd_qp_following(f);

			next = LIST_NEXT(f, entry);
			if (p && is_other_end(p, peer, index))
				epoch_renew(p);
		}
		d = d->alike == first ? NULL : d->alike;
	}
}

/* ---- questions ------------------------------------------------------------------------------- */

static void epoch_answer(struct hd_link *link, const struct hd_pkt *to, struct hd_qp *p)
{
	struct hd_pkt pkt = {
		.kind = HD_PKT_EPOCH, .dst = to->src, .src = to->dst, .op = HD_EPOCH_OVER, .tag = to->gen
	};

	pkt.gen = hd_remote_gen(link->peer, to->src);
	if (p && !hd_qp_has_failed(p) && is_other_end(p, link->peer, to->src)) {
		hd_ack_look(p);
		pkt.op = HD_EPOCH_STANDS;
		pkt.imm = psn_of(p, p->life.sq.head);
	}
	hd_peer_send(link->peer, &pkt, NULL, 0);
}

static void epoch_answered(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	if (!p || !p->life.resp.epoch_asked || !is_other_end(p, peer, pkt->src) ||
	    pkt->tag != p->life.dest->gen || pkt->gen != p->ep->gen)
		return; /* of an epoch that is over, or to one */
	p->life.resp.epoch_asked = false;
	p->life.resp.epoch_told = pkt->op == HD_EPOCH_STANDS;
	p->life.resp.told_psn = (uint32_t)pkt->imm;
	if (!p->life.resp.epoch_told)
		hd_respq_outdated(p, peer, pkt->src);
	hd_qp_kick(p);
}

int hd_epoch_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *ep = hd_pkt_pair(link->node, pkt);
	struct hd_qp *p = ep ? ep->qp : NULL;

	if (len || pkt->op < HD_EPOCH_ASKS || pkt->op > HD_EPOCH_OVER || pkt->imm > HD_PSN_MASK)
		return hd_link_broken(link, "malformed word about the epoch of a queue pair");
	if (pkt->op == HD_EPOCH_ASKS)
		epoch_answer(link, pkt, p);
	else
		epoch_answered(p, link->peer, pkt);
	return 0;
}
