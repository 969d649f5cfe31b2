/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Operations (struct hd_op): made, ended, completed, given up. */
#include "engine/xfer/op.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/xfer/direct.h"
#include "engine/xfer/fence.h"
#include "engine/xfer/send_lane.h"
#include "engine/xfer/sent.h"

#include <errno.h>
#include <string.h>

/* ---- the node's ------------------------------------------------------------------------------ */

void hd_xfers_init(struct hd_node *node)
{
	hd_pool_init(&hd_xfers(node)->ops, sizeof(struct hd_op), 64);
	hd_send_lanes_init(node);
}

void hd_xfers_fini(struct hd_node *node)
{
	hd_pool_fini(&hd_xfers(node)->send_places);
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

/* ---- completion ------------------------------------------------------------------------------ */

/* The ring is full. */
__attribute__((noinline, cold)) void hd_sent_beside(struct hd_ep *ep, void *ctx, uint32_t what, uint64_t len,
						    uint64_t tag, enum hd_status status)
{
	struct hd_cqe e;

	hd_sent_fill(&e, ep, ctx, what, len, tag, status);
	hd_cq_overflow(ep->tx_cq, &e);
}

/* It is reported to the work that it is done for, and nowhere else. */
static __attribute__((noinline, cold)) void op_tell_work(const struct hd_ep *ep, const struct hd_ended *how)
{
	const struct hd_cqe e = {
		.len = how->len, .tag = how->tag, .ep = ep->index, .flags = how->cqe_flags, .err = how->status
	};
	struct hd_work *work = how->ctx;

	work->done(work, &e);
}

void hd_send_finish(struct hd_ep *ep, const struct hd_send_args *a, uint64_t len)
{
	if (a->flags & HD_SEND_WORK)
		op_tell_work(ep, &(struct hd_ended){ .ctx = a->ctx,
						     .len = len,
						     .tag = a->tag,
						     .cqe_flags = hd_sent_flags(a->flags) });
	else
		hd_sent_finish(ep, a->ctx, a->flags, len, a->tag);
}

/* ---- operations ------------------------------------------------------------------------------ */

struct hd_op *hd_op_make(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	struct hd_op *op = hd_pool_get(&hd_xfers(ep->node)->ops);

	if (!op)
		return NULL;
	if (hd_transfer_init(&op->t, ep, &hd_op_owner) < 0) {
		hd_pool_put(&hd_xfers(ep->node)->ops, op);
		return NULL;
	}
	memset(&op->entry, 0, offsetof(struct hd_op, iov) - offsetof(struct hd_op, entry));
	op->dest = dest;
	op->ctx = a->ctx;
	op->flags = a->flags;
	op->tag = a->tag;
	op->imm = a->imm;
	op->cntr = ep->cntrs.send;
	for (int i = 0; i < a->count; i++)
		op->iov[i] = a->iov[i];
	op->t.iov = op->iov;
	op->t.count = a->count;
	op->t.len = hd_iov_len(a->iov, a->count);
	if ((a->flags & (HD_SEND_ORDERED | HD_SEND_WORK)) == HD_SEND_ORDERED && !hd_send_place_take(op)) {
		hd_transfer_fini(&op->t);
		hd_pool_put(&hd_xfers(ep->node)->ops, op);
		return NULL;
	}
	hd_dest_ref(dest);
	hd_txq_take(ep->tx);
	return op;
}

void hd_op_free(struct hd_op *op)
{
	struct hd_ep *ep = op->t.ep;

	if (hd_unlikely(ep->policy & HD_EP_FENCE))
		hd_fence_ended(op);
	if (op->copy)
		hd_bytes_put(&hd_rqs(ep->node)->bytes, op->copy, op->t.len);
	if (op->kind && op->kind->free)
		op->kind->free(op);
	hd_transfer_fini(&op->t);
	if (!op->send_place || !hd_send_place_leave(op))
		hd_txq_give(ep->tx);
	hd_dest_unref(op->dest);
	hd_pool_put(&hd_xfers(ep->node)->ops, op);
}

int hd_op_copy(struct hd_op *op)
{
	op->copy = hd_bytes_get(&hd_rqs(op->t.ep->node)->bytes, op->t.len);
	if (!op->copy)
		return -ENOMEM;
	if (hd_iov_drain(op->iov, op->t.count, op->copy, op->t.len)) {
		hd_bytes_put(&hd_rqs(op->t.ep->node)->bytes, op->copy, op->t.len);
		op->copy = NULL;
		return -EFAULT;
	}
	hd_transfer_release(&op->t);
	op->iov[0] = (struct iovec){ op->copy, op->t.len };
	op->t.count = 1;
	return 0;
}

void hd_op_hold_regions(struct hd_op *op, struct hd_mr *const *regions)
{
	for (int i = 0; i < op->t.count; i++)
		op->regions[i] = regions[i];
	hd_transfer_hold(&op->t, op->regions);
}

void hd_op_under(struct hd_op *op, enum hd_op_state state)
{
	op->state = state;
	hd_transfer_join(&op->t, op->dest->peer);
	if (op->kind && state != HD_OP_DIRECT)
		hd_direct_sent(op);
}

void hd_op_transfers(struct hd_op *op, enum hd_transfer_state state)
{
	op->state = HD_OP_TRANSFER;
	hd_transfer_begin(&op->t, op->dest->peer, state);
	if (op->kind)
		hd_direct_sent(op);
}

static void send_fence_raise(struct hd_op *op)
{
	op->send_fence = true;
	op->t.ep->send_fences++;
	op->t.pending.peer->send_fences++;
	hd_peer_stall(op->t.pending.peer, HD_STALL_FENCE);
}

static void rma_fence_raise(struct hd_op *op)
{
	op->rma_fence = true;
	op->t.ep->rma_fences++;
}

/* There is one at most for each peer. */
bool hd_op_rma_fence_at(const struct hd_ep *ep, const struct hd_peer *peer)
{
	struct hd_transfer *t;
	const struct hd_op *op;

	TAILQ_FOREACH(t, &ep->transfers, of_ep)
		if (t->pending.peer == peer && (op = hd_op_of(t)) && op->rma_fence)
			return true;
	return false;
}

/* Those that the initiator carries out go one after the other anyway. */
void hd_op_fences(struct hd_op *op)
{
	const uint32_t policy = op->t.ep->policy;

	if (!op->send_fence && policy & (hd_op_is_read(op) ? HD_EP_SAR : HD_EP_SAW))
		send_fence_raise(op);
	if (!op->rma_fence && policy & HD_EP_RMA_WHOLE && op->state == HD_OP_TRANSFER)
		rma_fence_raise(op);
}

static void fences_lift(struct hd_op *op)
{
	struct hd_peer *peer = op->t.pending.peer;

	if (op->send_fence) {
		op->t.ep->send_fences--;
		if (--peer->send_fences == 0)
			hd_peer_unstall(peer, HD_STALL_FENCE);
	}
	op->t.ep->rma_fences -= op->rma_fence;
	op->send_fence = op->rma_fence = false;
	hd_peer_busy(peer);
}

/* Undo what it has at its peer, but for what its transfer had. */
static void op_leave(struct hd_op *op)
{
	if (op->state == HD_OP_DIRECT)
		TAILQ_REMOVE(&op->t.pending.peer->direct_ops, op, entry);
	if (op->state >= HD_OP_DIRECT && op->state < HD_OP_TRANSFER)
		hd_transfer_leave(&op->t);
	if (op->send_fence || op->rma_fence)
		fences_lift(op);
}

void hd_op_complete(struct hd_ep *ep, const struct hd_ended *how)
{
	if (hd_unlikely(how->flags & HD_SEND_WORK)) {
		op_tell_work(ep, how);
		return;
	}
	if (how->status || how->flags & HD_SEND_COMPLETE)
		hd_sent_complete(ep, how->ctx, how->cqe_flags, how->len, how->tag, how->status);
	if (!how->status)
		hd_cntr_count(how->cntr, how->len);
	else
		hd_cntr_count_error(how->cntr);
}

/* One of ours has ended. */
static void op_complete(struct hd_op *op, enum hd_status status)
{
	uint32_t what = op->kind ? op->kind->cqe_flags : hd_sent_flags(op->flags);

	if (op->flags & HD_SEND_SILENT)
		return; /* as far as the program knows, it is long over */
	if (op->flags & HD_SEND_WQE) {
		op->t.ep->poster->ended(op, status);
		return;
	}
	if (op->send_place) {
		hd_send_place_done(op, what, status);
		return;
	}
	hd_op_complete(op->t.ep, &(struct hd_ended){ .ctx = op->ctx,
						     .len = hd_op_bytes(op),
						     .tag = op->tag,
						     .flags = op->flags,
						     .cqe_flags = what,
						     .status = status,
						     .cntr = op->cntr });
}

/* What is lost on its way to an endpoint for datagrams has gone, as far as the program knows. */
void hd_op_done(struct hd_op *op, enum hd_status status)
{
	bool lost = op->t.ep->policy & HD_EP_DROP && status != HD_S_PROTECTION;

	op_leave(op);
	op_complete(op, hd_unlikely(lost) ? 0 : status);
	hd_op_free(op);
}

/* One that leaves the list of direct copies for packets has its state still. */
int hd_op_gone(struct hd_op *op)
{
	op->state = HD_OP_QUEUED;
	hd_op_done(op, HD_S_PROTECTION);
	return 0;
}

void hd_op_await(struct hd_op *op)
{
	op->state = HD_OP_QUEUED;
	TAILQ_INSERT_TAIL(&op->dest->waiting, op, at_dest);
	TAILQ_INSERT_TAIL(&op->t.ep->transfers, &op->t, of_ep);
}

void hd_op_requeue(struct hd_op *op)
{
	TAILQ_INSERT_HEAD(&op->dest->peer->queue, op, entry);
	TAILQ_INSERT_HEAD(&op->dest->waiting, op, at_dest);
	TAILQ_INSERT_HEAD(&op->t.ep->transfers, &op->t, of_ep);
}

void hd_op_dequeue(struct hd_op *op)
{
	if (op->dest->state == HD_DEST_BOUND)
		TAILQ_REMOVE(&op->dest->peer->queue, op, entry);
	TAILQ_REMOVE(&op->dest->waiting, op, at_dest);
	TAILQ_REMOVE(&op->t.ep->transfers, &op->t, of_ep);
}

void hd_op_enqueue(struct hd_peer *peer, struct hd_op *op)
{
	assert(op->dest->state == HD_DEST_BOUND && op->dest->peer == peer);
	hd_op_await(op);
	TAILQ_INSERT_TAIL(&peer->queue, op, entry);
	hd_peer_stall(peer, HD_STALL_QUEUED);
	hd_peer_busy(peer);
}

/* ---- as the owner of a transfer -------------------------------------------------------------- */

static struct hd_op *op_of(struct hd_transfer *t)
{
	return hd_container(t, struct hd_op, t);
}

static void op_done(struct hd_transfer *t, enum hd_status status)
{
	struct hd_op *op = op_of(t);

	if (!status && t->reads) /* its data is the answer */
		hd_direct_answered(op);
	hd_op_done(op, status);
}

static void op_dropped(struct hd_transfer *t)
{
	op_leave(op_of(t));
	hd_op_free(op_of(t));
}

static void op_answered(struct hd_transfer *t)
{
	hd_direct_answered(op_of(t));
}

static int op_idle_answered(struct hd_transfer *t, uint8_t kind, enum hd_status status)
{
	struct hd_op *op = op_of(t);

	if (op->state < HD_OP_ACK || (kind == HD_PKT_ACK && op->state != HD_OP_ACK))
		return -EPROTO;
	if (op->state != HD_OP_ACK && !status)
		return -EPROTO; /* success has a RESULT, or TOLD */
	hd_direct_answered(op);
	hd_op_done(op, status);
	return 0;
}

const struct hd_transfer_owner hd_op_owner = {
	.done = op_done, .dropped = op_dropped, .answered = op_answered, .idle_answered = op_idle_answered
};

void hd_op_stop(struct hd_op *op)
{
	op->flags = (op->flags | HD_SEND_SILENT) & ~HD_SEND_WQE;
	hd_transfer_drop(&op->t);
}
