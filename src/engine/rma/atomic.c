/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Atomic operations: one packet there, which the target's engine carries out when it arrives, and
 * one answer. So all of them, from whomever, have one order, and those of one endpoint keep theirs.
 *
 *	initiator                                         target
 *	  ATOMIC {operation, segments, operands} ──────►  finds the memory of all segments, then
 *	                                                  changes it
 *	                                         ◄──────  RESULT {old values}, or FIN {errno} and
 *	                                                  nothing was changed
 */
#include "engine/rma/atomic.h"
#include "engine/event/event.h"
#include "engine/mr/mr.h"
#include "engine/rma/response.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <string.h>

/* ---- the initiator --------------------------------------------------------------------------- */

static int atomic_start(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;
	struct hd_pkt pkt;
	int rc;

	if (hd_direct_before(op) || hd_op_rma_fenced(op->t.ep, peer))
		return -EAGAIN;
	hd_op_header(op, HD_PKT_ATOMIC, &pkt);
	rc = hd_peer_post(peer, &pkt, op->copy, op->t.len, hd_units(op->t.len));
	if (rc < 0)
		return rc;
	hd_traffic_out(&peer->traffic, op->t.len);
	hd_op_under(op, HD_OP_ATOMIC);
	return 0;
}

/* t.len is that of the packet. */
static uint64_t atomic_bytes(const struct hd_op *op)
{
	const struct hd_atomic *head = op->copy;

	return (uint64_t)head->count * hd_atomic_size(head->type);
}

#define ATOMIC_KIND(WAY) \
	{ \
		.cqe_flags = HD_C_ATOMIC | (WAY), .start = atomic_start, .bytes = atomic_bytes \
	}

static const struct hd_op_kind kinds[HD_ATOMIC_HOWS] = {
	[HD_ATOMIC_BASE] = ATOMIC_KIND(HD_C_WRITE),
	[HD_ATOMIC_FETCH] = ATOMIC_KIND(HD_C_READ),
	[HD_ATOMIC_COMPARE] = ATOMIC_KIND(HD_C_READ),
};

/* The payload of the packet, made at once: so operands and comparands are the program's again. */
static int pack(struct hd_op *op, const struct hd_atomic_args *a)
{
	size_t operands = hd_iov_len(a->iov, a->count),
	       compares = hd_iov_len(a->compare_iov, a->compare_count);
	size_t segs = (size_t)a->seg_count * sizeof(a->segs[0]), len;
	struct hd_atomic head = { .how = (uint8_t)a->how,
				  .op = (uint8_t)a->op,
				  .type = (uint8_t)a->type,
				  .segs = (uint8_t)a->seg_count };
	uint64_t bytes = 0;
	char *at;

	for (int i = 0; i < a->seg_count; i++)
		bytes += a->segs[i].len;
	head.count = (uint32_t)(bytes / hd_atomic_size(a->type));
	len = sizeof(head) + segs + operands + compares;
	at = hd_bytes_get(&hd_rqs(op->t.ep->node)->bytes, len);
	hd_op_set_copy(op, at, len);
	if (!at)
		return -ENOMEM;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), a->segs, segs);
	if (hd_iov_drain(a->iov, a->count, at + sizeof(head) + segs, operands))
		return -EFAULT;
	return compares ? hd_iov_drain(a->compare_iov, a->compare_count, at + sizeof(head) + segs + operands,
				       compares)
			: 0;
}

int hd_atomic(struct hd_ep *ep, struct hd_dest *dest, const struct hd_atomic_args *a)
{
	const struct hd_send_args send = { .iov = a->result_iov,
					   .count = a->result_count,
					   .tag = a->tag,
					   .imm = a->imm,
					   .ctx = a->ctx,
					   .flags = a->flags &
						    (HD_SEND_COMPLETE | HD_SEND_FENCE | HD_SEND_GATED |
						     HD_SEND_WORK | HD_SEND_ORDERED) };
	struct hd_op *op;
	int rc;

	hd_assert_locked(ep->node);
	HD_TRACE_POST(ep->index, HD_TRACE_ATOMIC, 0, a->ctx);
	if (hd_unlikely(a->flags & HD_SEND_KEYED) && !(ep = hd_ep_alias(ep, dest->key)))
		return hd_refuse(EACCES, HD_NO_SUCH_KEY);
	rc = ep->policy & HD_EP_DROP
		     ? hd_refuse(EOPNOTSUPP, "endpoints for datagrams have no atomic operations")
		     : hd_op_room(ep, dest);
	if (rc)
		return rc;
	op = hd_op_make(ep, dest, &send);
	if (!op)
		return -EAGAIN;
	hd_op_set_kind(op, &kinds[a->how]);
	hd_op_set_cntr(op, a->how == HD_ATOMIC_BASE ? ep->cntrs.write : ep->cntrs.read);
	rc = pack(op, a);
	if (hd_unlikely(rc < 0)) {
		hd_op_free(op);
		return rc == -EFAULT ? rc : -EAGAIN;
	}
	return hd_op_post(op);
}

int hd_atomic_answered(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_op *op = hd_op_by_id(link->node, pkt->op);

	if (!op)
		return 0; /* given up meanwhile */
	if (op->t.pending.peer != link->peer || op->state != HD_OP_ATOMIC ||
	    len != hd_iov_len(op->iov, op->t.count))
		return hd_link_broken(link, "result where none was asked for");
	hd_op_done(op, hd_iov_fill(op->iov, op->t.count, payload, len) ? HD_S_PROTECTION : HD_S_OK);
	return 0;
}

/* ---- the target ------------------------------------------------------------------------------ */

/* A request, in private memory and taken apart, and the memory that it means. */
struct request {
	_Alignas(16) unsigned char payload[HD_ATOMIC_PAYLOAD];
	struct hd_atomic head;
	struct hd_rma_seg seg[HD_RMA_SEGS];
	size_t size, bytes; /* of an element, of all */
	uint32_t access;
	const unsigned char *operands, *compares;
	int pieces;
	struct hd_mr *mr[HD_RMA_SEGS]; /* NULL: the segment is empty */
	struct iovec piece[HD_RMA_SEGS * HD_MAX_IOV];
	unsigned char old[HD_ATOMIC_BYTES];
};

/* What the memory must allow: fi_atomic(3) wants it readable where old values come back. */
static uint32_t atomic_access_of(const struct hd_atomic *head)
{
	return (head->op != HD_ATOMIC_READ ? HD_ACCESS_REMOTE_ATOMIC : 0) |
	       (head->how != HD_ATOMIC_BASE ? HD_ACCESS_REMOTE_FETCH : 0);
}

/* 0, or -EINVAL for what no engine of ours would ask. */
static int take_apart(struct request *r, size_t len)
{
	size_t segs, operands, compares;
	uint64_t sum = 0;

	if (len < sizeof(r->head))
		return -EINVAL;
	memcpy(&r->head, r->payload, sizeof(r->head));
	if (!hd_atomic_can(r->head.how, r->head.op, r->head.type) || !r->head.segs ||
	    r->head.segs > HD_RMA_SEGS)
		return -EINVAL;
	r->size = hd_atomic_size(r->head.type);
	if (!r->head.count || r->head.count > HD_ATOMIC_BYTES / r->size)
		return -EINVAL;
	r->bytes = r->head.count * r->size;
	segs = r->head.segs * sizeof(r->seg[0]);
	operands = r->head.op == HD_ATOMIC_READ ? 0 : r->bytes;
	compares = r->head.how == HD_ATOMIC_COMPARE ? r->bytes : 0;
	if (len != sizeof(r->head) + segs + operands + compares)
		return -EINVAL;
	memcpy(r->seg, r->payload + sizeof(r->head), segs);
	r->operands = r->payload + sizeof(r->head) + segs;
	r->compares = r->operands + operands;
	for (int i = 0; i < r->head.segs; i++) {
		if (r->seg[i].len > r->bytes - sum)
			return -EINVAL;
		sum += r->seg[i].len;
	}
	r->access = atomic_access_of(&r->head);
	return sum == r->bytes ? 0 : -EINVAL;
}

/* Not on a multiple of the elements' size, ibv_post_send(3). */
static bool seg_is_odd(const struct hd_rma_seg *seg, size_t size)
{
	return seg->addr & (size - 1);
}

/* To a queue pair what only writes is a write: InfiniBand's Atomic Write (annex A19). */
static bool is_paired_write(const struct request *r, const struct hd_ep *ep)
{
	return ep->policy & HD_EP_PAIRED && r->head.how == HD_ATOMIC_BASE && r->head.op == HD_ATOMIC_WRITE;
}

static uint32_t rights_needed(const struct request *r, const struct hd_ep *ep)
{
	if (is_paired_write(r, ep))
		return HD_EP_REMOTE_WRITE;
	if (ep->policy & HD_EP_PAIRED)
		return HD_EP_REMOTE_ATOMIC;
	return (r->access & HD_ACCESS_REMOTE_ATOMIC ? HD_EP_REMOTE_WRITE : 0) |
	       (r->access & HD_ACCESS_REMOTE_FETCH ? HD_EP_REMOTE_READ : 0);
}

/* Find all of the memory before any of it changes. */
static int atomic_locate(struct request *r, struct hd_ep *ep, uint32_t from)
{
	if (rights_needed(r, ep) & ~ep->policy)
		return -EACCES;
	if (is_paired_write(r, ep))
		r->access = HD_ACCESS_REMOTE_WRITE;
	r->pieces = 0;
	for (int i = 0; i < r->head.segs; i++) {
		const struct hd_mr_want want = { .key = r->seg[i].key,
						 .addr = r->seg[i].addr,
						 .len = r->seg[i].len,
						 .access = r->access,
						 .ep = ep,
						 .from = from };
		int n, rc = hd_mr_reach(ep->node, &want, r->piece + r->pieces, &n, &r->mr[i]);

		if (rc)
			return rc;
		if (ep->policy & HD_EP_PAIRED && seg_is_odd(&r->seg[i], r->size))
			return -EINVAL;
		for (int k = 0; k < n; k++)
			if (r->piece[r->pieces++].iov_len & (r->size - 1))
				return -EINVAL; /* an element in two places */
	}
	return 0;
}

/* HD_S_ACCESS: some of it is gone, and of what stood before that each element has been changed. */
static int execute(struct request *r)
{
	size_t at = 0;

	for (int i = 0; i < r->pieces; i++) {
		const struct hd_atomic_run run = { .op = r->head.op,
						   .type = r->head.type,
						   .count = r->piece[i].iov_len / r->size,
						   .memory = r->piece[i].iov_base,
						   .operands = r->operands + at,
						   .compares = r->compares + at,
						   .old = r->old + at };

		if (hd_unlikely(!hd_atomic_run(&run)))
			return HD_S_ACCESS;
		at += r->piece[i].iov_len;
	}
	return HD_S_OK;
}

/* Each region counts the operation once; the endpoint by what fi_endpoint(3) calls it. */
static void atomic_count(const struct request *r, struct hd_ep *ep)
{
	for (int i = 0; i < r->head.segs; i++) {
		bool seen = !r->mr[i];
		uint64_t bytes = 0;

		for (int k = 0; k < i; k++)
			seen |= r->mr[k] == r->mr[i];
		for (int k = i; k < r->head.segs; k++)
			bytes += r->mr[k] == r->mr[i] ? r->seg[k].len : 0;
		if (!seen)
			hd_mr_touched(r->mr[i], r->access, bytes);
	}
	hd_target_wrote(ep->node);
	hd_cntr_count(r->head.how == HD_ATOMIC_BASE ? ep->cntrs.remote_write : ep->cntrs.remote_read,
		      r->bytes);
}

static enum hd_status atomic_execute(struct request *r, struct hd_ep *ep, uint32_t from, size_t len)
{
	int rc = take_apart(r, len);

	if (!rc)
		rc = atomic_locate(r, ep, from);
	if (rc)
		return hd_status_of(rc);
	rc = execute(r);
	if (!rc)
		atomic_count(r, ep);
	return rc;
}

enum hd_status hd_atomic_carry_out(const struct hd_arrival *a)
{
	const struct hd_pkt answer = { .kind = HD_PKT_RESULT, .op = a->pkt->op };
	struct request r;
	enum hd_status status;

	memcpy(r.payload, a->payload, a->len); /* the dispatcher has looked at len */
	status = atomic_execute(&r, a->ep, a->src, a->len);
	if (!status)
		hd_peer_answer(a->peer, &answer, r.old, r.head.how != HD_ATOMIC_BASE ? r.bytes : 0, a->units);
	return status;
}
