/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What leaves in frames: those who send to a peer take turns, a frame each. */
#include "engine/link/link.h"
#include "engine/xfer/transfer.h"

#include <errno.h>

/* Where its memory was gone, the peer knows, and takes no more of it. */
static void put_done(struct hd_put *put)
{
	struct hd_transfer *t = hd_container(put, struct hd_transfer, put);

	t->puts--;
	if (hd_unlikely(put->gone))
		hd_transfer_fail(t, HD_S_PROTECTION);
	else if (t->state != HD_TRANSFER_ENDING)
		hd_peer_busy(t->pending.peer);
	else if (!t->puts)
		hd_transfer_end(t, t->status);
}

/*
 * Writes of a queue pair may be to the same memory, and the last bytes of one tell that those
 * before it are there: so their frames go one write after the other. False: another one is first.
 */
static bool is_its_turn(struct hd_transfer *t)
{
	if (!t->in_order)
		return true;
	if (!t->ep->framed)
		t->ep->framed = t;
	return t->ep->framed == t;
}

/* It sends no frames any more: who is the next of its endpoint? */
static void frames_next(const struct hd_transfer *t)
{
	struct hd_ep *ep = t->ep;
	struct hd_transfer *o;

	if (ep->framed != t)
		return;
	ep->framed = NULL;
	TAILQ_FOREACH(o, &t->pending.peer->framing, entry)
		if (o->ep == ep && o->in_order && (!ep->framed || (int32_t)(o->seq - ep->framed->seq) < 0))
			ep->framed = o;
}

void hd_frames_leave(struct hd_transfer *t)
{
	TAILQ_REMOVE(&t->pending.peer->framing, t, entry);
	frames_next(t);
}

/*
 * A frame of this one. 0: gone, 1: it waits for its frames, or for another one, -EAGAIN: the link
 * is full, -EFAULT: its memory is gone.
 */
static int frame_push(struct hd_peer *peer, struct hd_transfer *t)
{
	uint64_t left = t->want - t->at;
	size_t n = left < HD_FRAME_MAX ? left : HD_FRAME_MAX;
	struct hd_pkt pkt = { .kind = HD_PKT_DATA, .op = t->remote, .tag = t->at, .src = t->ep->src };
	struct iovec iov[HD_IOV_MAX];
	int count, rc;

	if (t->puts == HD_PUTS_MAX || !is_its_turn(t))
		return 1;
	count = hd_iov_slice(t->iov, t->count, t->at, n, iov);
	n = hd_iov_len(iov, count); /* less, where there are many small ones */
	t->put.done = put_done;
	t->put.link = peer->link;
	t->put.gone = false;
	t->puts++;
	rc = hd_link_put(peer->link, &pkt, iov, count, n, &t->put);
	if (rc != 0)
		t->puts--;
	if (rc < 0)
		return rc;
	hd_traffic_more_out(&peer->traffic, n);
	t->at += n;
	return 0;
}

/* All frames are out: FIN is to come, or another CTS, or nothing. */
static void frames_gone(struct hd_transfer *t)
{
	t->state = t->part ? HD_TRANSFER_OFFERED : HD_TRANSFER_SENT;
	t->at = 0;
	frames_next(t);
	if (!t->unanswered)
		return;
	t->state = HD_TRANSFER_ENDING;
	t->status = 0;
	if (!t->puts)
		hd_transfer_end(t, 0);
}

int hd_frames_push(struct hd_peer *peer)
{
	struct hd_transfer *t, *stuck = NULL;
	int sent = 0;

	while ((t = TAILQ_FIRST(&peer->framing)) && t != stuck && sent < 16) {
		int rc = frame_push(peer, t);

		if (hd_unlikely(rc == -EFAULT)) {
			hd_transfer_fail(t, HD_S_PROTECTION);
			stuck = NULL;
			sent++;
			continue;
		}
		if (rc < 0)
			break;
		TAILQ_REMOVE(&peer->framing, t, entry);
		if (rc == 0 && t->at == t->want) {
			frames_gone(t);
			sent++;
			continue;
		}
		TAILQ_INSERT_TAIL(&peer->framing, t, entry);
		if (rc > 0 && !stuck)
			stuck = t;
		if (rc == 0) {
			stuck = NULL;
			sent++;
		}
	}
	hd_xfer_check(peer);
	return sent;
}

static void frames_enter(struct hd_transfer *t)
{
	t->state = HD_TRANSFER_FRAMES;
	TAILQ_INSERT_TAIL(&t->pending.peer->framing, t, entry);
	hd_peer_busy(t->pending.peer);
}

void hd_frames_begin(struct hd_transfer *t, struct hd_peer *peer)
{
	hd_transfer_begin(t, peer, HD_TRANSFER_FRAMES);
	frames_enter(t);
}

int hd_send_cts(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_transfer *t = hd_transfer_by_id(link->node, pkt->op);

	if (!t) {
		hd_answer_op(link->peer, HD_PKT_FIN, (uint32_t)pkt->imm, HD_S_CANCELLED);
		return 0;
	}
	if (t->pending.peer != link->peer || t->state != HD_TRANSFER_OFFERED || pkt->tag == 0 ||
	    pkt->tag > t->len || pkt->imm > UINT32_MAX)
		return -EPROTO;
	t->part = pkt->flags & HD_CTS_F_PART;
	if (t->offered && !t->part) { /* else it may still be fetched afterwards */
		link->ops->unoffer(link, &t->offer);
		t->offered = false;
	}
	t->want = pkt->tag;
	t->remote = (uint32_t)pkt->imm;
	frames_enter(t);
	return 0;
}
