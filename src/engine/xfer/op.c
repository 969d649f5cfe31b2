/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Operations (struct hd_op): made, kept where their destination is not reached yet, ended, completed, given up. send.c starts messages. */
#include "engine/xfer/op.h"
#include "engine/event/event.h"
#include "engine/link/peer.h"
#include "engine/xfer/direct.h"
#include "engine/xfer/fence.h"
#include "engine/xfer/op_regions.h"
#include "engine/xfer/rndv.h"
#include "engine/xfer/seat.h"
#include "engine/xfer/sent.h"

#include <errno.h>
#include <string.h>

/* ---- the node's -------------------------------------------------------------------------------------------- */

void hd_xfers_init(struct hd_node *node)
{
	hd_pool_init(&hd_xfers(node)->ops, sizeof(struct hd_op), 64);
	hd_seats_init(node);
}

void hd_xfers_fini(struct hd_node *node)
{
	hd_pool_fini(&hd_xfers(node)->seats);
	hd_pool_fini(&hd_xfers(node)->ops);
}

int hd_xfers_open(struct hd_node *node)
{
	hd_xfers(node)->waste = malloc(HD_WASTE);
	return hd_xfers(node)->waste ? 0 : -ENOMEM;
}

void hd_xfers_close(struct hd_node *node)
{
	free(hd_xfers(node)->waste);
}

/* ---- completion ------------------------------------------------------------------------------------------ */

/* The ring is full. */
__attribute__((noinline, cold)) void hd_sent_beside(struct hd_ep *ep, void *ctx, uint32_t what, uint64_t len,
						    uint64_t tag, int err)
{
	struct hd_cqe e;

	hd_sent_fill(&e, ep, ctx, what, len, tag, err);
	hd_cq_overflow(ep->tx_cq, &e);
}

/* It is reported to the work that it is done for, and nowhere else. */
static void op_tell_work(const struct hd_ep *ep, struct hd_work *work, uint32_t what, uint64_t len,
			 uint64_t tag, int err)
{
	struct hd_cqe e = { .len = len, .tag = tag, .ep = ep->index, .flags = what, .err = err };

	work->done(work, &e);
}

void hd_send_finish(struct hd_ep *ep, const struct hd_send_args *a, uint64_t len)
{
	if (a->flags & HD_SEND_WORK)
		op_tell_work(ep, a->ctx, hd_sent_flags(a->flags), len, a->tag, 0);
	else
		hd_sent_finish(ep, a->ctx, a->flags, len, a->tag);
}

/* ---- operations ----------------------------------------------------------------------------------------------------------------- */

struct hd_op *hd_op_make(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op = hd_pool_get(&hd_xfers(ep->node)->ops);

	if (!op)
		return NULL;
	memset(op, 0, offsetof(struct hd_op, iov));
	op->ep = ep;
	op->dest = dest;
	op->ctx = a->ctx;
	op->flags = a->flags;
	op->tag = a->tag;
	op->imm = a->imm;
	op->count = a->count;
	for (int i = 0; i < a->count; i++)
		op->iov[i] = a->iov[i];
	op->len = hd_iov_len(a->iov, a->count);
	op->cntr = ep->tx_cntr;
	if (hd_op_number(ep->node, op) < 0) {
		hd_pool_put(&hd_xfers(ep->node)->ops, op);
		return NULL;
	}
	if ((a->flags & (HD_SEND_ORDERED | HD_SEND_WORK)) == HD_SEND_ORDERED && !hd_seat_take(op)) {
		hd_pending_forget(ep->node, &op->pending);
		hd_pool_put(&hd_xfers(ep->node)->ops, op);
		return NULL;
	}
	dest->refs++;
	ep->tx->ops++;
	return op;
}

void hd_op_free(struct hd_op *op)
{
	struct hd_node *node = op->ep->node;

	if (hd_unlikely(op->ep->policy & HD_EP_FENCE) && op->dest)
		hd_fence_ended(op);
	if (op->copy)
		hd_bytes_put(&hd_rqs(node)->bytes, op->copy, op->len);
	hd_op_drop_regions(op);
	if (op->kind && op->kind->free)
		op->kind->free(op);
	hd_pending_forget(node, &op->pending);
	if (op->dest) {
		if (!op->seat || !hd_seat_leave(op))
			op->ep->tx->ops--;
		hd_dest_unref(op->dest);
	}
	hd_pool_put(&hd_xfers(node)->ops, op);
}

int hd_op_copy(struct hd_op *op)
{
	op->copy = hd_bytes_get(&hd_rqs(op->ep->node)->bytes, op->len);
	if (!op->copy)
		return -ENOMEM;
	hd_iov_drain(hd_op_iov(op), op->count, op->copy, op->len);
	op->more = NULL; /* its kind frees it */
	hd_op_drop_regions(op);
	op->iov[0] = (struct iovec){ op->copy, op->len };
	op->count = 1;
	return 0;
}

void hd_op_under(struct hd_op *op, enum hd_op_state state)
{
	op->state = state;
	op->pending.peer = op->dest->peer;
	hd_pending_join(&op->pending, op->pending.peer);
	if (op->kind && state != HD_OP_DIRECT)
		hd_direct_sent(op);
}

void hd_op_gate(struct hd_op *op)
{
	if (op->gates || !(op->ep->policy & HD_EP_SAW) || hd_op_is_read(op))
		return;
	op->gates = true;
	op->ep->gates++;
	op->pending.peer->gates++;
	hd_peer_stall(op->pending.peer, HD_STALL_GATED);
}

/* A long write has ended that messages waited for. */
static void gate_lift(struct hd_op *op)
{
	op->gates = false;
	op->ep->gates--;
	if (--op->pending.peer->gates == 0) {
		hd_peer_unstall(op->pending.peer, HD_STALL_GATED);
		hd_peer_busy(op->pending.peer);
	}
}

/* Undo what the operation holds at its peer and its link. */
static void message_op_leave(struct hd_op *op)
{
	struct hd_peer *peer = op->pending.peer;

	if (op->offered)
		peer->link->ops->unoffer(peer->link, &op->offer);
	op->offered = false;
	if (op->state == HD_OP_FRAMES) {
		TAILQ_REMOVE(&peer->framing, op, entry);
		hd_frames_left(op);
	}
	if (op->state == HD_OP_DIRECT)
		TAILQ_REMOVE(&peer->reaching, op, entry);
	if (op->state != HD_OP_QUEUED)
		hd_pending_leave(&op->pending);
	if (op->gates)
		gate_lift(op);
}

void hd_op_complete(struct hd_ep *ep, const struct hd_ended *how)
{
	if (how->err || how->flags & HD_SEND_COMPLETE)
		hd_sent_complete(ep, how->ctx, how->cqe_flags, how->len, how->tag, how->err);
	if (!how->err)
		hd_cntr_count(how->cntr);
	else
		hd_cntr_count_error(how->cntr);
}

void hd_op_complete_work(struct hd_ep *ep, const struct hd_ended *how)
{
	op_tell_work(ep, how->ctx, how->cqe_flags, how->len, how->tag, how->err);
}

/* One of ours has ended. */
static void op_complete(struct hd_op *op, int err)
{
	uint32_t what = op->kind ? op->kind->cqe_flags : hd_sent_flags(op->flags);

	if (op->flags & HD_SEND_UNTOLD)
		return; /* as far as the program knows, it is long over */
	if (op->flags & HD_SEND_WQE) {
		op->ep->poster->ended(op, err);
		return;
	}
	if (op->flags & HD_SEND_WORK) {
		op_tell_work(op->ep, op->ctx, what, op->len, op->tag, err);
		return;
	}
	if (op->seat) {
		hd_seat_done(op, what, err);
		return;
	}
	hd_op_complete(op->ep, &(struct hd_ended){ .ctx = op->ctx,
						   .len = op->len,
						   .tag = op->tag,
						   .flags = op->flags,
						   .cqe_flags = what,
						   .err = err,
						   .cntr = op->cntr });
}

void hd_complete_now(struct hd_ep *ep, const struct hd_done *d)
{
	if (d->flags & HD_SEND_COMPLETE)
		hd_sent_complete(ep, d->ctx, d->cqe_flags, d->len, d->tag, 0);
	hd_cntr_count(d->cntr);
}

void hd_op_done(struct hd_op *op, int err)
{
	if (op->pending.peer)
		message_op_leave(op);
	if (op->kind && op->kind->end)
		op->kind->end(op, err);
	else
		op_complete(op,
			    hd_unlikely(op->ep->policy & HD_EP_DROP) && op->dest ? 0 : err); /* it is lost */
	hd_op_free(op);
}

static void op_lost(struct hd_pending *pending, int err)
{
	struct hd_op *op = hd_op_of(pending);

	op->puts = 0; /* the link reads nothing any more */
	if (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE)
		hd_recv_op_done(op, err);
	else
		hd_op_done(op, err);
}

const struct hd_pending_ops hd_op_pending = { .lost = op_lost };

void hd_op_enqueue(struct hd_peer *peer, struct hd_op *op)
{
	TAILQ_INSERT_TAIL(&peer->queue, op, entry);
	hd_peer_stall(peer, HD_STALL_QUEUED);
	hd_peer_busy(peer);
}

/* ---- giving up ------------------------------------------------------------------------------------------ */

/*
 * The operation is given up. Its memory is the program's again, so the link keeps a copy of the frame that it is in the middle of; an
 * other end that waits for more frames learns that none will come.
 */
static void op_give_up(struct hd_op *op)
{
	struct hd_pkt fin = { .kind = HD_PKT_FIN,
			      .op = op->remote,
			      .imm = op->dest ? ECANCELED : ECONNREFUSED };
	struct hd_peer *peer = op->pending.peer;

	if (op->puts && peer->link->ops->unput(peer->link, &op->put) < 0)
		hd_link_down(peer->link, -ENOMEM, "no memory for the rest of a message that was given up");
	if (peer && op->state == HD_OP_FRAMES)
		hd_peer_send(peer, &fin, NULL, 0);
	op->puts = 0;
}

void hd_op_abandon(struct hd_op *op)
{
	op_give_up(op);
	if (op->pending.peer)
		message_op_leave(op);
	hd_op_free(op);
}

void hd_op_stop(struct hd_op *op)
{
	op->flags = (op->flags | HD_SEND_UNTOLD) & ~HD_SEND_WQE;
	if (op->pending.peer && (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE))
		hd_recv_op_abandon(op);
	else
		hd_op_abandon(op);
}

void hd_op_cancel(struct hd_op *op, int err)
{
	op_give_up(op);
	hd_op_done(op, err);
}
