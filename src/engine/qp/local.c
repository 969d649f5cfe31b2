/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Regions that go while requests of our own queue pairs use them: ibv_dereg_mr(3), ibv_rereg_mr(3).
 * A card looks at local keys when it moves bytes, we look when something is posted; so who closes a
 * region finds what still uses it: receives as rq/regions.c says, and operations, which are the
 * long way of a send anyway, by their number.
 */
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/xfer/xfer.h"

/* bytes of a request that a card fetches before its program has come back from the call */
#define COPY_MAX (64u << 10)

/* ---- what becomes of it ---------------------------------------------------------------------- */

struct leaving {
	struct hd_mr *from, *to;
};

bool hd_sq_uses(const struct hd_qp *p, const struct hd_mr *mr, struct hd_op **op)
{
	for (uint32_t seq = p->life.sq.head; hd_qp_is_paired(p) && seq != p->life.sq.tail; seq++) {
		struct hd_op *o = hd_wqe_at(p, seq)->op;

		if (o && hd_transfer_uses(&o->t, mr)) {
			*op = o;
			return true;
		}
	}
	return false;
}

/*
 * One that is coming in; closing: and has failed, but a peer's process has been stopped in the
 * middle of writing there.
 */
static struct hd_transfer *local_coming(const struct hd_mr *mr, bool closing)
{
	struct hd_peer *peer, *next;
	struct hd_transfer *t;

	HASH_ITER(hh, hd_links(mr->node)->peers, peer, next)
		HD_TRANSFERS_FOREACH(t, peer)
	if (hd_transfer_uses(t, mr) && (t->state == HD_TRANSFER_CLOSING) == closing)
		return t;
	return NULL;
}

/* One that is in a send queue, else one that is coming in. */
static struct hd_transfer *local_find(const struct hd_mr *mr)
{
	struct hd_node *node = mr->node;
	struct hd_op *op;

	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++)
		if (hd_names(node)->eps[i] && hd_names(node)->eps[i]->qp &&
		    hd_sq_uses(hd_names(node)->eps[i]->qp, mr, &op))
			return &op->t;
	return local_coming(mr, false);
}

/* All its bytes are in the link's hands, and an answer is waited for. */
static bool has_left(const struct hd_op *op)
{
	return op->state == HD_OP_ACK || (op->t.state == HD_TRANSFER_SENT && !op->t.puts);
}

/*
 * May it go on? What has begun does so where it is. op: whose transfer it is, or NULL: it comes in.
 */
static bool local_stays(const struct hd_transfer *t, const struct hd_op *op, const struct leaving *l)
{
	bool filled = !op || hd_op_is_read(op);

	if (op ? has_left(op) : t->state == HD_TRANSFER_HERE)
		return true; /* its bytes are here, or there */
	for (int i = 0; i < t->region_count; i++) {
		struct iovec iov = t->iov[i];

		if (t->regions[i] == l->from &&
		    (!hd_mr_moved(l->from, l->to, &iov, filled) || iov.iov_base != t->iov[i].iov_base))
			return false;
	}
	return true;
}

/*
 * A card would have read it by now, since all that is asked of it is to be fetched and sent;
 * programs close regions of requests that they have posted and only then wait for them. True: a
 * request that waits for its turn has a copy, and needs the region no more.
 */
static bool copied(struct hd_op *op)
{
	return op->state == HD_OP_QUEUED && (!op->kind || hd_op_is_write(op)) && op->t.len <= COPY_MAX &&
	       hd_op_copy(op) == 0;
}

static void regions_move(struct hd_transfer *t, const struct leaving *l)
{
	for (int i = 0; i < t->region_count; i++) {
		if (t->regions[i] != l->from)
			continue;
		hd_transfer_set_region(t, i, l->to);
		l->from->ops--;
		if (l->to)
			l->to->ops++;
	}
}

static void local_leave(struct hd_transfer *t, const struct leaving *l)
{
	struct hd_op *op = hd_op_of(t);

	if (local_stays(t, op, l))
		regions_move(t, l);
	else if (!op) /* a long message that is coming in: both ends fail */
		hd_transfer_fail(t, HD_S_PROTECTION);
	else if (!copied(op))
		hd_sq_fail(op, l->from->fault->err);
}

bool hd_mr_move(struct hd_mr *from, struct hd_mr *to)
{
	struct leaving l = { .from = from, .to = to };
	struct hd_transfer *t;

	hd_assert_locked(from->node);
	if (!from->fault)
		return true;
	hd_rq_leave_region(from, to);
	while (from->ops && (t = local_find(from)))
		local_leave(t, &l);
	return !from->ops || !local_coming(from, true);
}
