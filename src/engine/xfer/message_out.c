/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A message that is an operation leaves: whole, or as a request to send, whose data its receiver
 * fetches or asks for (rndv.c).
 */
#include "engine/link/link.h"
#include "engine/xfer/op.h"
#include "engine/xfer/sent.h"

#include <errno.h>

void hd_op_header(const struct hd_op *op, uint8_t kind, struct hd_pkt *pkt)
{
	*pkt = (struct hd_pkt){ .kind = kind,
				.flags = hd_send_wire(op->flags),
				.gen = op->dest->gen,
				.dst = op->dest->remote,
				.src = op->t.ep->src,
				.op = op->t.pending.id,
				.tag = op->tag,
				.imm = op->imm };
}

static int start_eager(struct hd_op *op, struct hd_peer *peer)
{
	struct hd_pkt pkt;
	int rc;

	hd_op_header(op, HD_PKT_EAGER, &pkt);
	rc = hd_peer_postv(peer, &pkt, op->iov, op->t.count, op->t.len, hd_units(op->t.len));
	if (rc < 0)
		return hd_op_not_now(op, rc);
	hd_traffic_out(&peer->traffic, op->t.len);
	hd_op_under(op, HD_OP_ACK);
	if (!(op->flags & HD_SEND_ANSWERED))
		hd_op_done(op, 0);
	return 0;
}

static int start_rendezvous(struct hd_op *op, struct hd_peer *peer)
{
	struct hd_rts rts = { .len = op->t.len };
	struct hd_link *link = peer->link;
	struct hd_pkt pkt;
	size_t n;
	int rc;

	if ((rc = hd_op_take_over(op)) < 0)
		return hd_op_not_now(op, rc);
	if (!hd_credit_enough(peer, HD_UNITS_RTS))
		return -EAGAIN;
	hd_op_header(op, HD_PKT_RTS, &pkt);
	n = hd_transfer_offer(&op->t, link, rts.offer);
	rc = hd_peer_post(peer, &pkt, &rts, offsetof(struct hd_rts, offer) + n, HD_UNITS_RTS);
	if (rc < 0) {
		if (n)
			link->ops->unoffer(link, &op->t.offer);
		return rc;
	}
	hd_traffic_out(&peer->traffic, 0);
	op->t.offered = n > 0;
	hd_op_transfers(op, HD_TRANSFER_OFFERED);
	return 0;
}

int hd_message_start(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;

	if (hd_op_send_fenced(op->t.ep, peer)) /* behind a long write or read of ours */
		return -EAGAIN;
	/* not the link's: a message beyond the first window would never get its credit */
	if (op->t.len <= peer->eager_limit)
		return start_eager(op, peer);
	return start_rendezvous(op, peer);
}

int hd_op_announce(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;

	return hd_op_send_fenced(op->t.ep, peer) ? -EAGAIN : start_rendezvous(op, peer);
}
