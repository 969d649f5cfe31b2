/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The receiving half of rendezvous. A request to send that has met its receive becomes an operation: the link fetches the message
 * by itself where it can (pull), else the sender is asked for frames (CTS, DATA). Either way FIN ends it at the sender.
 */
#include "engine/xfer/rndv.h"
#include "base/log.h"
#include "engine/link/peer.h"
#include "engine/rq/recv.h"
#include "engine/xfer/direct.h"
#include "engine/xfer/op.h"
#include "engine/xfer/op_regions.h"
#include "engine/xfer/stream.h"

void hd_rndv_describe(const struct hd_op *op, int err, struct hd_taken *t, struct hd_received *m)
{
	*t = (struct hd_taken){ .ep = op->ep,
				.ctx = op->ctx,
				.buf = op->count ? op->iov[0].iov_base : NULL,
				.room = hd_iov_len(op->iov, op->count),
				.flags = op->flags,
				.whole = op->whole };
	*m = (struct hd_received){ .len = op->len,
				   .tag = op->tag,
				   .imm = op->imm,
				   .src = op->src,
				   .flags = op->cqe_flags,
				   .err = err };
}

void hd_rndv_tell_sender(const struct hd_op *op, int err)
{
	hd_answer_op(op->pending.peer, HD_PKT_FIN, op->remote, err);
}

void hd_recv_op_done(struct hd_op *op, int err)
{
	if (op->state == HD_OP_PULL && err)
		op->pending.peer->link->ops->unpull(op->pending.peer->link, &op->pull);
	if (op->state == HD_OP_INTAKE && err)
		hd_stream_forget(op->pending.peer->link, NULL, op);
	op->state = HD_OP_INTAKE;
	if (op->kind->turn && !op->kind->turn(op, &err))
		return;
	if (!err)
		hd_direct_answered(op);
	hd_op_done(op, err);
}

void hd_recv_op_abandon(struct hd_op *op)
{
	if (op->state == HD_OP_PULL)
		op->pending.peer->link->ops->unpull(op->pending.peer->link, &op->pull);
	else
		hd_stream_forget(op->pending.peer->link, NULL, op);
	if (op->kind->stop)
		op->kind->stop(op);
	else
		hd_answer_op(op->pending.peer, HD_PKT_FIN, op->remote, ECONNREFUSED);
	hd_op_abandon(op);
}

void hd_recv_ops_rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id)
{
	struct hd_op *op;

	HD_OPS_FOREACH(op, peer)
	if ((op->state == HD_OP_PULL || op->state == HD_OP_INTAKE) && op->src == old_id)
		op->src = new_id;
}

static void ask_for_frames(struct hd_op *op)
{
	struct hd_pkt pkt = { .kind = HD_PKT_CTS, .op = op->remote, .imm = op->pending.id, .tag = op->want };

	if (op->msg)
		pkt.flags = HD_CTS_F_PART;

	op->state = HD_OP_INTAKE;
	op->at = 0;
	hd_peer_send(op->pending.peer, &pkt, NULL, 0);
}

static void pulled(struct hd_pull *pull, int err)
{
	struct hd_op *op = hd_container(pull, struct hd_op, pull);

	if (err) {
		hd_debug("direct copy of %llu bytes refused (%s): sending frames",
			 (unsigned long long)op->want, strerror(-err));
		ask_for_frames(op);
		return;
	}
	op->state = HD_OP_INTAKE; /* nothing to unpull any more */
	hd_recv_op_done(op, 0);
}

/* An operation that receives message m of this peer; where to and how much of it is for the caller to say. */
static struct hd_op *rndv_op_make(struct hd_ep *ep, struct hd_peer *peer, const struct hd_msg *m,
				  const struct hd_op_kind *kind)
{
	struct hd_op *op = hd_pool_get(&hd_xfers(ep->node)->ops);

	if (!op)
		return NULL;
	memset(op, 0, offsetof(struct hd_op, iov));
	if (hd_op_number(ep->node, op) < 0) {
		hd_pool_put(&hd_xfers(ep->node)->ops, op);
		return NULL;
	}
	op->kind = kind;
	op->ep = ep;
	op->pending.peer = peer;
	op->remote = m->op;
	op->len = m->len;
	op->state = HD_OP_INTAKE;
	hd_pending_join(&op->pending, peer);
	return op;
}

static struct hd_op *intake_make(struct hd_ep *ep, struct hd_peer *peer, const struct hd_recv *r,
				 const struct hd_msg *m, const struct hd_op_kind *kind)
{
	struct hd_op *op = rndv_op_make(ep, peer, m, kind);
	uint64_t room = hd_recv_room(r);

	if (!op)
		return NULL;
	op->ctx = r->ctx;
	op->flags = r->flags;
	op->whole = r->flags & HD_RECV_PART ? r->whole : NULL;
	op->tag = hd_wnode_tag(&m->w);
	op->imm = m->imm;
	op->src = hd_msg_source(m);
	op->cqe_flags = m->flags;
	op->want = m->len < room ? m->len : room;
	op->count = r->count;
	memcpy(op->iov, hd_recv_iov(r), sizeof(op->iov[0]) * r->count);
	if (hd_unlikely(r->region != NULL))
		hd_op_hold_regions(op, hd_recv_regions((struct hd_recv *)r));
	return op;
}

static void fail_at_once(struct hd_ep *ep, struct hd_recv *r, const struct hd_msg *m, int err)
{
	struct hd_taken t = {
		.ep = ep, .ctx = r->ctx, .flags = r->flags, .whole = r->flags & HD_RECV_PART ? r->whole : NULL
	};
	struct hd_received what = { .len = m->len,
				    .tag = hd_wnode_tag(&m->w),
				    .imm = m->imm,
				    .src = hd_msg_source(m),
				    .flags = m->flags,
				    .err = err };

	hd_recv_complete(&t, &what);
}

struct hd_op *hd_rndv_take(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r, const struct hd_msg *m,
			   const struct hd_op_kind *kind)
{
	struct hd_op *op = peer ? intake_make(ep, peer, r, m, kind) : NULL;

	if (!op) {
		fail_at_once(ep, r, m, peer ? ENOMEM : ECONNRESET);
		if (peer)
			hd_answer_op(peer, HD_PKT_FIN, m->op, ENOMEM);
	}
	hd_recv_free(ep->node, r);
	return op;
}

void hd_intake_begin(struct hd_op *op, const void *offer, size_t offer_len)
{
	struct hd_link *link = op->pending.peer->link;

	if (!op->want) {
		hd_recv_op_done(op, 0);
		return;
	}
	if (offer_len && !op->more && !hd_op_ascends(op)) {
		op->pull = (struct hd_pull){ .iov = op->iov,
					     .count = op->count,
					     .len = op->want,
					     .offer = offer,
					     .offer_len = offer_len,
					     .done = pulled };
		op->state = HD_OP_PULL;
		if (link->ops->pull(link, &op->pull) == 0)
			return;
	}
	ask_for_frames(op);
}

struct hd_op *hd_rndv_fetch(struct hd_msg *m, void *at, uint32_t len, const struct hd_op_kind *kind)
{
	struct hd_op *op = rndv_op_make(m->ep, m->peer, m, kind);

	if (!op)
		return NULL;
	op->msg = m;
	op->want = len;
	op->count = 1;
	op->iov[0] = (struct iovec){ at, len };
	return op;
}

void hd_rndv_fetch_stop(struct hd_op *op)
{
	if (op->state == HD_OP_PULL)
		op->pending.peer->link->ops->unpull(op->pending.peer->link, &op->pull);
	else
		hd_stream_forget(op->pending.peer->link, NULL, op);
	hd_op_abandon(op);
}

int hd_intake_find(struct hd_link *link, const struct hd_pkt *pkt, size_t len, struct hd_op **out)
{
	struct hd_op *op;

	*out = NULL;
	if (!link->peer || link->peer->link != link)
		return -EPROTO;
	op = hd_op_by_id(link->node, pkt->op);
	if (!op || (op->pending.peer == link->peer && op->answered))
		return 0; /* or it has failed, and waits for those before it to say so */
	if (op->pending.peer != link->peer || op->state != HD_OP_INTAKE || pkt->tag != op->at ||
	    len > op->want - op->at || !len)
		return -EPROTO;
	*out = op;
	return 0;
}

void hd_intake_arrived(struct hd_op *op, size_t len)
{
	op->at += len;
	if (op->at == op->want)
		hd_recv_op_done(op, 0);
}
