/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by packets, fi_rma(3): the initiator's half. The
 * target's is in rma_target.c.
 *
 *	short write	PUT where, data      ──►  stored		◄── FIN
 *	the same, with segments or immediate data
 *			WRITE {where, data}  ──►  stored		◄── FIN
 *	long write	WRITE {where, offer} ──►  goes on as a rendezvous does, with the memory in
 *			                          the place of a receive
 *	read		READ {where}         ──►  ◄── DATA …
 *			(FIN only for an error, or where there is nothing to send)
 *	flush		FLUSH {where}	     ──►  all before it is stored ◄── FIN
 */
#include "engine/rma/rma.h"
#include "engine/link/link.h"

#include "engine/xfer/xfer.h"

#include <errno.h>
#include <string.h>

static size_t run_size(int count)
{
	return sizeof(struct hd_rma_run) + (size_t)count * sizeof(struct hd_rma_seg);
}

static void run_free(struct hd_op *op)
{
	struct hd_rma_run *run = op->extra;

	hd_bytes_put(&hd_rqs(op->t.ep->node)->bytes, run, run_size(run->count));
}

/* What begins the payload, in one piece with room for an offer. */
struct list {
	struct hd_rma head;
	struct hd_rma_seg seg[HD_RMA_SEGS];
	uint8_t offer[HD_OFFER_MAX];
};

/* Returns the bytes that it takes up without an offer. */
static size_t list_fill(struct list *list, const struct hd_rma_run *run)
{
	list->head = (struct hd_rma){ .count = (uint8_t)run->count,
				      .done_high = (uint16_t)(run->done >> 32),
				      .done = (uint32_t)run->done };
	memcpy(list->seg, run->seg, sizeof(run->seg[0]) * (size_t)run->count);
	return hd_rma_list_size(run->count);
}

/* A request that is its list alone. */
static int list_post(struct hd_op *op, struct hd_peer *peer, enum hd_pkt_kind kind)
{
	struct list list;
	struct hd_pkt pkt;
	int rc;

	hd_op_header(op, kind, &pkt);
	rc = hd_peer_post(peer, &pkt, &list, list_fill(&list, hd_op_rma(op)), HD_UNITS_RMA);
	if (rc >= 0)
		hd_traffic_out(&peer->traffic, 0);
	return rc;
}

static int start_read(struct hd_op *op, struct hd_peer *peer)
{
	int rc = list_post(op, peer, HD_PKT_READ);

	if (rc < 0)
		return rc;
	hd_transfer_want_all(&op->t);
	hd_op_transfers(op, HD_TRANSFER_INTAKE);
	if (op->t.len > HD_RMA_ORDERED)
		hd_op_fences(op);
	return 0;
}

/*
 * One segment and no more to be said: place and key find room in the header, and data of 24 bytes
 * in one line of the ring. (Queue pairs say other things there.)
 */
static bool is_put(const struct hd_op *op)
{
	return hd_op_rma(op)->count == 1 && op->t.count == 1 && op->t.len && op->t.len <= HD_PUT_MAX &&
	       !(op->flags & HD_SEND_IMM) && !(op->t.ep->policy & HD_EP_PAIRED);
}

static int start_put(struct hd_op *op, struct hd_peer *peer)
{
	const struct hd_rma_seg *seg = hd_op_rma(op)->seg;
	struct hd_pkt pkt;
	int rc;

	hd_op_header(op, HD_PKT_PUT, &pkt);
	pkt.tag = seg->addr;
	pkt.imm = seg->key;
	rc = hd_peer_post(peer, &pkt, op->iov[0].iov_base, op->t.len, hd_units(op->t.len));
	if (rc < 0)
		return hd_op_not_now(op, rc);
	hd_traffic_out(&peer->traffic, op->t.len);
	hd_op_under(op, HD_OP_ACK);
	return 0;
}

/* A queue pair that is not reliable wants no writes of one that is. */
static void write_header(const struct hd_op *op, struct hd_pkt *pkt)
{
	hd_op_header(op, HD_PKT_WRITE, pkt);
	if (op->t.ep->qp && !(op->t.ep->page_from & HD_PAGE_LOSSY))
		pkt->flags |= HD_PKT_F_ACK;
}

/* The data behind the list in one packet. */
static int start_short(struct hd_op *op, struct hd_peer *peer)
{
	const struct hd_rma_run *run = hd_op_rma(op);
	struct iovec iov[HD_IOV_MAX];
	struct list list;
	struct hd_pkt pkt;
	size_t n = list_fill(&list, run);
	int rc;

	/* no place for the list */
	if (op->t.count == HD_IOV_MAX && !op->copy && (rc = hd_op_copy(op)) < 0)
		return hd_op_not_now(op, rc);
	iov[0] = (struct iovec){ &list, n };
	memcpy(iov + 1, op->iov, sizeof(iov[0]) * (size_t)op->t.count);
	write_header(op, &pkt);
	rc = hd_peer_postv(peer, &pkt, iov, op->t.count + 1, n + op->t.len, hd_units(n + op->t.len));
	if (rc < 0)
		return hd_op_not_now(op, rc);
	hd_traffic_out(&peer->traffic, op->t.len);
	hd_op_under(op, HD_OP_ACK);
	return 0;
}

static void offer_fill(struct hd_op *op, struct hd_link *link, struct list *list, size_t *n)
{
	size_t more;

	more = hd_transfer_offer(&op->t, link, list->offer);
	memmove((char *)list + *n, list->offer, more);
	list->head.offer_len = (uint8_t)more;
	*n += more;
}

static int start_long(struct hd_op *op, struct hd_peer *peer)
{
	struct hd_link *link = peer->link;
	struct list list;
	struct hd_pkt pkt;
	size_t n = list_fill(&list, hd_op_rma(op));
	int rc;

	if ((rc = hd_op_take_over(op)) < 0)
		return hd_op_not_now(op, rc);
	if (!hd_credit_enough(peer, HD_UNITS_RMA))
		return -EAGAIN;
	write_header(op, &pkt);
	offer_fill(op, link, &list, &n);
	rc = hd_peer_post(peer, &pkt, &list, n, HD_UNITS_RMA);
	if (rc < 0) {
		if (list.head.offer_len)
			link->ops->unoffer(link, &op->t.offer);
		return rc;
	}
	hd_traffic_out(&peer->traffic, 0);
	hd_transfer_set_offered(&op->t, list.head.offer_len > 0);
	hd_op_transfers(op, HD_TRANSFER_OFFERED);
	hd_op_fences(op);
	return 0;
}

/*
 * Does the data travel with the request? What hd_rma promises of order needs that for
 * HD_RMA_ORDERED bytes, however small the limit of messages is. The first window holds so much four
 * times over: see the least value of HEDDLE_UNEXPECTED_PEER.
 */
static bool is_short(const struct hd_op *op, const struct hd_peer *peer)
{
	uint64_t limit = peer->eager_limit > HD_RMA_ORDERED ? peer->eager_limit : HD_RMA_ORDERED;

	if (op->beside && limit > peer->link->beside_min)
		limit = peer->link->beside_min;
	return op->t.len <= limit && op->t.len + sizeof(struct list) <= peer->link->send_max;
}

static int rma_start(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;
	int rc = hd_op_rma_fenced(op->t.ep, peer) ? -EAGAIN : hd_direct_try(op);

	if (rc != -EOPNOTSUPP)
		return rc;
	if (hd_op_is_read(op))
		return start_read(op, peer);
	if (is_put(op))
		return start_put(op, peer);
	return is_short(op, peer) ? start_short(op, peer) : start_long(op, peer);
}

/*
 * What we have copied by ourselves has ended by now, and what has left as a packet
 * is carried out before it.
 */
static int flush_start(struct hd_op *op)
{
	int rc = list_post(op, op->dest->peer, HD_PKT_FLUSH);

	if (rc >= 0)
		hd_op_under(op, HD_OP_ACK);
	return rc;
}

static const struct hd_op_kind rma_kinds[] = {
	[HD_RMA_WRITE] = { .writes = true,
			   .cqe_flags = HD_C_RMA | HD_C_WRITE,
			   .start = rma_start,
			   .free = run_free },
	[HD_RMA_READ] = { .reads = true,
			  .cqe_flags = HD_C_RMA | HD_C_READ,
			  .start = rma_start,
			  .free = run_free },
	[HD_RMA_FLUSH] = { .cqe_flags = HD_C_RMA, .start = flush_start, .free = run_free },
};

int hd_rma_later(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args, bool by_packet)
{
	const struct hd_send_args send = { .iov = args->iov,
					   .count = args->count,
					   .tag = args->tag,
					   .imm = args->imm,
					   .ctx = args->ctx,
					   .flags = args->flags };
	bool reads = args->op == HD_RMA_READ;
	struct hd_rma_run *run = hd_bytes_get(&hd_rqs(ep->node)->bytes, run_size(args->seg_count));
	struct hd_op *op = run ? hd_op_make(ep, dest, &send) : NULL;

	if (!op) {
		if (run)
			hd_bytes_put(&hd_rqs(ep->node)->bytes, run, run_size(args->seg_count));
		return -EAGAIN;
	}
	hd_rma_run_fill(run, args->segs, args->seg_count);
	hd_op_set_extra(op, run);
	hd_op_set_kind(op, &rma_kinds[args->op]);
	hd_op_set_cntr(op, reads ? ep->cntrs.read : ep->cntrs.write);
	op->t.reads = reads;
	hd_op_set_by_packet(op, by_packet);
	return hd_op_post(op);
}

int hd_flush(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args)
{
	int rc;

	hd_assert_locked(ep->node);
	HD_TRACE_POST(ep->index, HD_TRACE_FLUSH, args->segs->len, args->ctx);
	rc = hd_op_room(ep, dest);
	return rc ? rc : hd_rma_later(ep, dest, args, true);
}
