/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Regions that go while requests of our own queue pairs use them: ibv_dereg_mr(3), ibv_rereg_mr(3). A card looks at local keys when it
 * moves bytes, we look when something is posted; so who closes a region finds what still uses it.
 *
 * Nothing is counted where messages pass. A receive says to its region in which queue it is, and behind how many: while all that
 * is posted there is younger, there is nothing to be looked for, and a program may register and close a region for each message. Operations, which
 * are the long way of a send anyway, are counted.
 */
#include "engine/qp/local.h"
#include "engine/link/peer.h"
#include "engine/mr/mr.h"
#include "engine/qp/qp.h"
#include "engine/rdm/message.h"
#include "engine/rma/rma.h"
#include "engine/rq/recv.h"

#define COPY_MAX \
	(64u \
	 << 10) /* bytes of a request that a card fetches before its program has come back from the call */

/* ---- who uses it --------------------------------------------------------------------------------------------------------- */

static void posted(struct hd_mr *mr, struct hd_rq *rq, uint64_t seq)
{
	if (mr->posted_to != rq && !mr->posted_often) {
		if (mr->posted_to)
			LIST_REMOVE(mr, posted_entry);
		mr->posted_often = mr->posted_to != NULL;
		mr->posted_to = mr->posted_often ? NULL : rq;
		if (mr->posted_to)
			LIST_INSERT_HEAD(&rq->regions, mr, posted_entry);
	}
	mr->posted_seq = seq;
}

void hd_local_posted(struct hd_rq *rq, struct hd_recv *r)
{
	struct hd_mr **regions = hd_recv_regions(r);

	for (int i = 0; i < r->count; i++)
		if (regions[i])
			posted(regions[i], rq, r->m.seq);
}

void hd_local_close_rq(struct hd_rq *rq)
{
	struct hd_mr *mr;

	while ((mr = LIST_FIRST(&rq->regions))) {
		LIST_REMOVE(mr, posted_entry);
		mr->posted_to = NULL;
	}
}

void hd_local_hold(struct hd_op *op, struct hd_mr *const *regions)
{
	op->region_count = op->count;
	for (int i = 0; i < op->count; i++) {
		op->regions[i] = regions[i];
		if (regions[i])
			regions[i]->ops++;
	}
}

void hd_local_release(struct hd_op *op)
{
	for (int i = 0; i < op->region_count; i++)
		if (op->regions[i])
			op->regions[i]->ops--;
	op->region_count = 0;
}

/* ---- what becomes of it -------------------------------------------------------------------------------------------------- */

struct leaving {
	struct hd_mr *from, *to;
	struct hd_rq *rq;
};

static uint64_t first_address(const struct hd_mr *mr)
{
	return mr->virtual ? (uintptr_t)mr->iov[0].iov_base : mr->base;
}

/* Where the segment is from now on. False: nowhere. */
static bool local_moved(const struct leaving *l, struct iovec *iov, bool filled)
{
	const struct hd_mr *from = l->from, *to = l->to;
	uint64_t at;

	if (!to || to->zone != from->zone || (filled && !(to->access & HD_ACCESS_LOCAL_WRITE)))
		return false;
	at = (uintptr_t)iov->iov_base - (uintptr_t)from->iov[0].iov_base + first_address(from) -
	     first_address(to);
	if (at > to->iov[0].iov_len || iov->iov_len > to->iov[0].iov_len - at)
		return false;
	iov->iov_base = (char *)to->iov[0].iov_base + at;
	return true;
}

/* A posted receive: of those of its segments. */
static bool recv_leave(struct hd_mnode *node, void *arg)
{
	struct hd_recv *r = hd_container(node, struct hd_recv, m);
	const struct leaving *l = arg;
	struct iovec *iov = r->count > 1 ? r->more : &r->iov;
	struct hd_mr **regions = hd_recv_regions(r);
	bool stays = true;

	for (int i = 0; r->region && i < r->count; i++) {
		if (regions[i] != l->from)
			continue;
		stays &= local_moved(l, &iov[i], true);
		regions[i] = l->to;
		if (l->to)
			posted(l->to, l->rq, r->m.seq);
	}
	if (r->region == l->from)
		r->region = l->to;
	if (stays)
		return false;
	if (r->count > 1)
		hd_pool_put(&l->rq->node->iovs, r->more);
	r->count = 1;
	r->more = NULL;
	r->region = NULL;
	r->iov = (struct iovec){ l->from->fault->buf, 0 };
	r->flags |= HD_RECV_FAULT;
	return false;
}

static void queue_leave(struct hd_rq *rq, struct leaving *l)
{
	const struct hd_mnode *oldest = hd_match_peek_posted(&rq->match[0], 0, 0);

	if (!oldest || (!l->from->posted_often && oldest->seq > l->from->posted_seq))
		return;
	l->rq = rq;
	hd_match_each_posted(&rq->match[0], recv_leave, l);
}

static void receives_leave(struct leaving *l)
{
	struct hd_mr *from = l->from;
	struct hd_rq *rq;

	if (from->posted_to)
		queue_leave(from->posted_to, l);
	else if (from->posted_often)
		LIST_FOREACH(rq, &from->node->rq_list, entry)
			queue_leave(rq, l);
	if (from->posted_to)
		LIST_REMOVE(from, posted_entry);
	from->posted_to = NULL;
	from->posted_often = false;
}

static bool uses(const struct hd_op *op, const struct hd_mr *mr)
{
	for (int i = 0; i < op->region_count; i++)
		if (op->regions[i] == mr)
			return true;
	return false;
}

/* One that is in a line, else one that is coming in. */
static struct hd_op *local_find(const struct hd_mr *mr)
{
	struct hd_node *node = mr->node;
	struct hd_peer *peer, *next;
	struct hd_op *op;

	for (uint32_t i = 0; i < node->ep_count; i++)
		if (node->eps[i] && node->eps[i]->qp && hd_sq_uses(node->eps[i]->qp, mr, &op))
			return op;
	HASH_ITER(hh, node->peers, peer, next)
		TAILQ_FOREACH(op, &peer->ops, under)
			if (uses(op, mr))
				return op;
	return NULL;
}

/* A long message that is coming in: both ends fail. */
static void intake_fails(struct hd_op *op)
{
	const struct hd_pkt fin = { .kind = HD_PKT_FIN, .op = op->remote, .imm = EREMOTEIO };
	struct hd_qp *p = op->ep->qp;

	hd_peer_send(op->peer, &fin, NULL, 0);
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
		    (!local_moved(l, &iov, filled) || iov.iov_base != op->iov[i].iov_base))
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
	return op->dest && op->state == HD_OP_QUEUED && (!op->kind || op->kind == &hd_rma_writes) &&
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
		hd_sq_spoil(op, l->from->fault->err);
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
	receives_leave(&l);
	while (from->ops && (op = local_find(from)))
		local_op_leave(op, &l);
}

void hd_local_close(struct hd_mr *mr)
{
	hd_mr_move(mr, NULL);
}
