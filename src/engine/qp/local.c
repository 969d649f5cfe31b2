/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Regions that go while requests of our own queue pairs use them: ibv_dereg_mr(3), ibv_rereg_mr(3). A card looks at local keys when it
 * moves bytes, we look when something is posted; so who closes a region finds what still uses it: receives as rq/regions.c says, and
 * operations, which are the long way of a send anyway, by their number.
 */
#include "engine/link/peer.h"
#include "engine/mr/mr.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/rq/recv.h"
#include "engine/xfer/op.h"
#include "engine/xfer/rndv.h"

#define COPY_MAX \
	(64u \
	 << 10) /* bytes of a request that a card fetches before its program has come back from the call */

/* ---- what becomes of it -------------------------------------------------------------------------------------------------- */

struct leaving {
	struct hd_mr *from, *to;
};

static bool uses(const struct hd_op *op, const struct hd_mr *mr)
{
	for (int i = 0; i < op->region_count; i++)
		if (op->regions[i] == mr)
			return true;
	return false;
}

/* One that is in a send queue, else one that is coming in. */
static struct hd_op *local_find(const struct hd_mr *mr)
{
	struct hd_node *node = mr->node;
	struct hd_peer *peer, *next;
	struct hd_op *op;

	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++)
		if (hd_names(node)->eps[i] && hd_names(node)->eps[i]->qp &&
		    hd_sq_uses(hd_names(node)->eps[i]->qp, mr, &op))
			return op;
	HASH_ITER(hh, hd_links(node)->peers, peer, next)
		HD_OPS_FOREACH(op, peer)
	if (uses(op, mr))
		return op;
	return NULL;
}

/* A long message that is coming in: both ends fail. */
static void intake_fails(struct hd_op *op)
{
	struct hd_qp *p = op->ep->qp;

	hd_answer_op(op->pending.peer, HD_PKT_FIN, op->remote, EREMOTEIO);
	hd_recv_op_done(op, EFAULT);
	if (p && p->ep->policy & HD_EP_STRICT)
		hd_qp_fail_soon(p, EREMOTEIO);
}

/* All its bytes are in the link's hands, and an answer is waited for. */
static bool has_left(const struct hd_op *op)
{
	return op->state == HD_OP_ACK || (op->state == HD_OP_FIN && !op->puts);
}

/* May it go on? What has begun does so where it is. */
static bool op_stays(const struct hd_op *op, const struct leaving *l)
{
	bool filled = !op->dest || hd_op_is_read(op);

	if (op->dest ? has_left(op) : op->answered)
		return true; /* its bytes are here, or there */
	for (int i = 0; i < op->region_count; i++) {
		struct iovec iov = op->iov[i];

		if (op->regions[i] == l->from &&
		    (!hd_mr_moved(l->from, l->to, &iov, filled) || iov.iov_base != op->iov[i].iov_base))
			return false;
	}
	return true;
}

/*
 * A card would have read it by now, since all that is asked of it is to be fetched and sent; programs close regions of requests that they
 * have posted and only then wait for them. True: a request that waits for its turn has a copy, and needs the region no more.
 */
static bool copied(struct hd_op *op)
{
	return op->dest && op->state == HD_OP_QUEUED && (!op->kind || hd_op_is_write(op)) &&
	       op->len <= COPY_MAX && hd_op_copy(op) == 0;
}

static void local_op_leave(struct hd_op *op, const struct leaving *l)
{
	bool stays = op_stays(op, l);

	if (!stays && copied(op))
		return;
	for (int i = 0; stays && i < op->region_count; i++) {
		if (op->regions[i] != l->from)
			continue;
		op->regions[i] = l->to;
		l->from->ops--;
		if (l->to)
			l->to->ops++;
	}
	if (!stays && op->dest)
		hd_sq_fail(op, l->from->fault->err);
	else if (!stays)
		intake_fails(op);
}

void hd_mr_move(struct hd_mr *from, struct hd_mr *to)
{
	struct leaving l = { .from = from, .to = to };
	struct hd_op *op;

	hd_assert_locked(from->node);
	if (!from->fault)
		return;
	hd_rq_leave_region(from, to);
	while (from->ops && (op = local_find(from)))
		local_op_leave(op, &l);
}
