/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Long messages in frames, which those who send to a peer take turns with; and the answers that operations wait for. */
#include "engine/link/peer.h"
#include "engine/xfer/direct.h"
#include "engine/xfer/op.h"
#include "engine/xfer/rndv.h"

#include <errno.h>

#define PUTS_MAX 8 /* frames of one operation that the link may have at a time */

/* ---- frames ------------------------------------------------------------------------------------------------------------------------ */

static void frame_out(struct hd_op *op)
{
	op->puts--;
	if (!op->answered)
		hd_peer_busy(op->pending.peer);
	else if (!op->puts)
		hd_op_done(op, op->answer);
}

static void put_done(struct hd_put *put)
{
	frame_out(hd_container(put, struct hd_op, put));
}

/*
 * Writes of a queue pair may be to the same memory, and the last bytes of one tell that those before it are there: so their frames go one
 * write after the other. False: another one is first.
 */
static bool is_its_turn(struct hd_op *op)
{
	struct hd_ep *ep = op->ep;

	if (!(op->flags & HD_SEND_WQE) || !hd_op_is_write(op))
		return true;
	if (!ep->framed)
		ep->framed = op;
	return ep->framed == op;
}

void hd_frames_left(struct hd_op *op)
{
	struct hd_ep *ep = op->ep;
	struct hd_op *o;

	if (ep->framed != op)
		return;
	ep->framed = NULL;
	TAILQ_FOREACH(o, &op->pending.peer->framing, entry)
		if (o->ep == ep && o->flags & HD_SEND_WQE && hd_op_is_write(o) &&
		    (!ep->framed || (int32_t)(o->before - ep->framed->before) < 0))
			ep->framed = o;
}

/* One frame of the operation whose turn it is. 0: gone, 1: it has to wait for its frames, or for another operation, -EAGAIN: the link is full. */
static int frame_push(struct hd_peer *peer, struct hd_op *op)
{
	uint64_t left = op->want - op->at;
	size_t n = left < HD_FRAME_MAX ? left : HD_FRAME_MAX;
	struct hd_pkt pkt = { .kind = HD_PKT_DATA, .op = op->remote, .tag = op->at, .src = op->ep->src };
	struct iovec iov[HD_IOV_MAX];
	int count, rc;

	/* one that has been answered ends with what the link still reads */
	if (op->answered || op->puts == PUTS_MAX || !is_its_turn(op))
		return 1;
	count = hd_iov_slice(hd_op_iov(op), op->count, op->at, n, iov);
	n = hd_iov_len(iov, count); /* less, where there are many small ones */
	op->put.done = put_done;
	op->put.link = peer->link;
	op->puts++;
	rc = peer->link->ops->put(peer->link, &pkt, iov, count, n, &op->put);
	if (rc != 0)
		op->puts--;
	if (rc < 0)
		return rc;
	op->at += n;
	return 0;
}

/* All frames are out. A message of ours waits for FIN, or to be asked for; what a peer has asked for ends when the link has read it. */
static void frames_gone(struct hd_op *op)
{
	op->state = op->part ? HD_OP_OFFERED : HD_OP_FIN;
	op->at = 0;
	hd_frames_left(op);
	if (op->dest)
		return;
	op->answered = true;
	if (!op->puts)
		hd_op_done(op, 0);
}

int hd_frames_push(struct hd_peer *peer)
{
	struct hd_op *op, *stuck = NULL;
	int sent = 0;

	while ((op = TAILQ_FIRST(&peer->framing)) && op != stuck && sent < 16) {
		int rc = frame_push(peer, op);

		if (rc < 0)
			break;
		TAILQ_REMOVE(&peer->framing, op, entry);
		if (rc == 0 && op->at == op->want) {
			frames_gone(op);
			sent++;
			continue;
		}
		TAILQ_INSERT_TAIL(&peer->framing, op, entry);
		if (rc > 0 && !stuck)
			stuck = op;
		if (rc == 0) {
			stuck = NULL;
			sent++;
		}
	}
	return sent;
}

/* ---- answers ------------------------------------------------------------------------------------------ */

int hd_send_cts(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_op *op = hd_op_by_id(link->node, pkt->op);

	if (!op) {
		hd_answer_op(link->peer, HD_PKT_FIN, (uint32_t)pkt->imm, ECANCELED);
		return 0;
	}
	if (op->pending.peer != link->peer || op->state != HD_OP_OFFERED || pkt->tag == 0 ||
	    pkt->tag > op->len || pkt->imm > UINT32_MAX)
		return -EPROTO;
	op->part = pkt->flags & HD_CTS_F_PART;
	if (op->offered && !op->part) { /* else it may still be fetched afterwards */
		link->ops->unoffer(link, &op->offer);
		op->offered = false;
	}
	op->want = pkt->tag;
	op->remote = (uint32_t)pkt->imm;
	op->state = HD_OP_FRAMES;
	TAILQ_INSERT_TAIL(&link->peer->framing, op, entry);
	hd_peer_busy(link->peer);
	return 0;
}

int hd_op_answered(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_op *op = hd_op_by_id(link->node, pkt->op);
	int err = pkt->imm <= 4095 ? (int)pkt->imm : EIO;

	if (!op)
		return 0; /* given up meanwhile */
	if (op->pending.peer != link->peer || op->state == HD_OP_QUEUED || op->state == HD_OP_FENCED ||
	    op->state == HD_OP_DIRECT)
		return -EPROTO;
	if (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE) {
		if (pkt->kind != HD_PKT_FIN || (!err && (!op->dest || op->want)))
			return -EPROTO; /* only a read of nothing is answered without data */
		hd_direct_answered(op);
		hd_recv_op_done(op, err);
		return 0;
	}
	if (!op->dest || (pkt->kind == HD_PKT_ACK && op->state != HD_OP_ACK))
		return -EPROTO;
	if ((op->state == HD_OP_ATOMIC || op->state == HD_OP_ASKED) && !err)
		return -EPROTO; /* success has a RESULT, or TOLD */
	hd_direct_answered(op);
	if (op->puts) { /* an early FIN: the link still reads a frame */
		op->answered = true;
		op->answer = err;
		return 0;
	}
	hd_op_done(op, err);
	return 0;
}
