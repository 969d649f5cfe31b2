/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests of one-sided operations, at their target. Key, range and rights of all segments are checked before a byte is touched. While a
 * transfer takes several turns it holds its regions, and their end is its own.
 */
#include "engine/rma/rma_serve.h"
#include "engine/xfer/op.h"
#include "engine/xfer/rndv.h"

#include <errno.h>
#include <string.h>

/* ---- what is asked for ------------------------------------------------------------------------------------------------------- */

uint32_t hd_rma_write_units(const void *payload, size_t len)
{
	struct hd_rma_seg seg[HD_RMA_SEGS];
	struct hd_rma head;
	uint64_t sum = 0;
	size_t n;

	if (len < sizeof(head))
		return 0;
	memcpy(&head, payload, sizeof(head));
	n = hd_rma_list_size(head.count);
	if (head.count > HD_RMA_SEGS || n > len)
		return 0;
	memcpy(seg, (const char *)payload + sizeof(head), n - sizeof(head));
	for (int i = 0; i < head.count; i++)
		sum += seg[i].len;
	return !head.offer_len && len - n == sum ? hd_units(len) : HD_UNITS_RMA;
}

int hd_rma_parse(const struct hd_arrival *a, struct hd_rma_request *r)
{
	const char *payload = a->payload;
	size_t len = a->len;
	struct hd_rma head;
	uint64_t sum = 0;
	size_t n;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, payload, sizeof(head));
	n = hd_rma_list_size(head.count);
	if (head.count > HD_RMA_SEGS || head.offer_len > HD_OFFER_MAX || len < n)
		return -EPROTO;
	memcpy(r->seg, payload + sizeof(head), n - sizeof(head));
	for (int i = 0; i < head.count; i++)
		if (r->seg[i].len > HD_MAX_MSG || (sum += r->seg[i].len) > HD_MAX_MSG)
			return -EPROTO;
	if (head.done_high >= HD_MAX_MSG >> 32)
		return -EPROTO;
	r->a = a;
	r->len = sum;
	r->done = (uint64_t)head.done_high << 32 | head.done;
	r->count = head.count;
	r->rest = payload + n;
	r->rest_len = len - n;
	r->offers = head.offer_len > 0;
	if (r->offers)
		return head.offer_len == r->rest_len && sum ? 0 : -EPROTO;
	return !r->rest_len || r->rest_len == sum ? 0 : -EPROTO;
}

int hd_rma_find(const struct hd_rma_request *r, uint32_t access, uint32_t policy, struct hd_rma_found *f)
{
	struct hd_ep *ep = r->a->ep;

	if (!(ep->policy & policy))
		return EACCES;
	f->access = access;
	f->pieces = f->regions = 0;
	for (int i = 0; i < r->count; i++) {
		const struct hd_rma_seg *seg = &r->seg[i];
		const struct hd_mr_want want = { .key = seg->key,
						 .addr = seg->addr,
						 .len = seg->len,
						 .access = access,
						 .ep = ep,
						 .from = r->a->src };
		int n, rc = hd_mr_reach(ep->node, &want, f->iov + f->pieces, &n, &f->mr[f->regions]);

		if (rc)
			return -rc;
		f->pieces += n;
		f->regions += f->mr[f->regions] != NULL;
	}
	return 0;
}

void hd_rma_touched(struct hd_ep *ep, uint32_t access, struct hd_mr *const *mr, int regions)
{
	if (access == HD_ACCESS_REMOTE_WRITE)
		hd_target_wrote(ep->node);
	hd_cntr_count(access & HD_ACCESS_REMOTE_READ ? ep->cntrs.remote_read : ep->cntrs.remote_write);
	for (int i = 0; i < regions; i++)
		hd_mr_touched(mr[i], access);
}

/* ---- transfers that take several turns --------------------------------------------------------------------------------------- */

void hd_rma_serve_no_more(struct hd_op *op, int err)
{
	struct hd_link *link = op->pending.peer->link;

	if (op->puts && link->ops->unput(link, &op->put) < 0)
		hd_link_down(link, -ENOMEM, "no memory for the rest of a read that was given up");
	hd_op_done(op, err);
}

static void regions_drop(struct hd_rma_turns *run)
{
	for (int i = 0; i < run->regions; i++)
		hd_mr_drop(&run->held[i].hold);
	run->regions = 0;
}

/* A region that the transfer needs goes away. */
static void region_gone(struct hd_mr_hold *hold)
{
	struct hd_op *op = hd_container(hold, struct hd_rma_held, hold)->op;

	hd_answer_op(op->pending.peer, HD_PKT_FIN, op->remote, EACCES);
	regions_drop(op->extra); /* it may have to stay for its turn */
	if (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE) {
		hd_recv_op_done(op, EACCES);
		return;
	}
	hd_rma_serve_no_more(op, EACCES);
}

/* An operation of the node with room for so many pieces. NULL without memory. */
static struct hd_op *op_get(struct hd_node *node, int pieces)
{
	size_t size = sizeof(struct iovec) * (size_t)pieces;
	struct hd_op *op = hd_pool_get(&hd_xfers(node)->ops);

	if (!op)
		return NULL;
	memset(op, 0, offsetof(struct hd_op, iov));
	op->more = pieces > HD_IOV_MAX ? hd_bytes_get(&hd_rqs(node)->bytes, size) : NULL;
	if ((pieces <= HD_IOV_MAX || op->more) && hd_op_number(node, op) == 0)
		return op;
	if (op->more)
		hd_bytes_put(&hd_rqs(node)->bytes, op->more, size);
	hd_pool_put(&hd_xfers(node)->ops, op);
	return NULL;
}

static void op_fill(struct hd_op *op, const struct hd_rma_request *r, const struct hd_rma_found *f)
{
	op->ep = r->a->ep;
	op->pending.peer = r->a->peer;
	op->remote = r->a->pkt->op;
	op->len = op->want = r->len;
	op->imm = r->a->pkt->imm;
	op->cqe_flags = r->a->pkt->flags;
	op->src = r->a->src;
	op->count = f->pieces;
	memcpy(op->more ? op->more : op->iov, f->iov, sizeof(f->iov[0]) * (size_t)f->pieces);
}

static void regions_hold(struct hd_op *op, const struct hd_rma_found *f)
{
	struct hd_rma_turns *run = op->extra;

	run->regions = f->regions;
	for (int i = 0; i < f->regions; i++) {
		run->held[i].op = op;
		hd_mr_hold(f->mr[i], &run->held[i].hold, region_gone);
	}
}

struct hd_op *hd_rma_turns_make(const struct hd_rma_request *r, const struct hd_rma_found *f,
				const struct hd_op_kind *kind)
{
	struct hd_node *node = r->a->ep->node;
	struct hd_rma_turns *run = hd_bytes_get(&hd_rqs(node)->bytes, sizeof(*run));
	struct hd_op *op = run ? op_get(node, f->pieces) : NULL;

	if (!op) {
		if (run)
			hd_bytes_put(&hd_rqs(node)->bytes, run, sizeof(*run));
		return NULL;
	}
	op->kind = kind;
	op->extra = run;
	op_fill(op, r, f);
	run->server = r->server;
	run->done = r->done;
	run->access = f->access;
	run->units = HD_UNITS_RMA;
	run->pieces = f->pieces;
	run->more = op->more;
	regions_hold(op, f);
	hd_pending_join(&op->pending, op->pending.peer);
	if (run->access == HD_ACCESS_REMOTE_WRITE) {
		hd_target_stores(op->ep->node, 1);
		if (run->server->begin)
			run->server->begin(op);
	}
	return op;
}

void hd_rma_turns_count(const struct hd_op *op)
{
	const struct hd_rma_turns *run = op->extra;
	struct hd_mr *mr[HD_RMA_SEGS];

	for (int i = 0; i < run->regions; i++)
		mr[i] = run->held[i].hold.mr;
	hd_rma_touched(op->ep, run->access, mr, run->regions);
}

void hd_rma_turns_free(struct hd_op *op)
{
	struct hd_bytes *bytes = &hd_rqs(op->ep->node)->bytes;
	struct hd_rma_turns *run = op->extra;

	if (run->access == HD_ACCESS_REMOTE_WRITE) {
		hd_target_stores(op->ep->node, -1);
		if (run->server->end)
			run->server->end(op);
	}
	regions_drop(run);
	if (run->more)
		hd_bytes_put(bytes, run->more, sizeof(run->more[0]) * (size_t)run->pieces);
	hd_peer_free_units(op->pending.peer, run->units);
	hd_bytes_put(bytes, run, sizeof(*run));
}
