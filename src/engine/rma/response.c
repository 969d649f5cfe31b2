/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests of one-sided operations, at their target. Key, range and rights of all segments are
 * checked before a byte is touched. A response holds its regions while it takes several turns,
 * and their end is its own.
 */
#include "engine/rma/response.h"
#include "engine/link/link.h"

#include <errno.h>
#include <string.h>

/* ---- what is asked for ----------------------------------------------------------------------- */

bool hd_rma_list_read(struct hd_rma_list *list, const void *payload, size_t len)
{
	struct hd_rma *head = &list->head;

	list->sum = 0;
	if (len < sizeof(*head))
		return false;
	memcpy(head, payload, sizeof(*head));
	list->size = hd_rma_list_size(head->count);
	if (head->count > HD_RMA_SEGS || head->offer_len > HD_OFFER_MAX || len < list->size)
		return false;
	list->rest = len - list->size;
	memcpy(list->seg, (const char *)payload + sizeof(*head), list->size - sizeof(*head));
	for (int i = 0; i < head->count; i++)
		if (list->seg[i].len > HD_MAX_MSG || (list->sum += list->seg[i].len) > HD_MAX_MSG)
			return false;
	if (head->offer_len)
		return head->offer_len == list->rest && list->sum;
	return !list->rest || list->rest == list->sum;
}

void hd_rma_payload(const struct hd_arrival *a, void *to)
{
	const size_t head = sizeof(a->list->head), size = a->list ? a->list->size : 0;

	if (size) {
		memcpy(to, &a->list->head, head);
		memcpy((char *)to + head, a->list->seg, size - head);
	}
	if (a->len > size)
		memcpy((char *)to + size, (const char *)a->payload + size, a->len - size);
}

int hd_rma_parse(const struct hd_arrival *a, struct hd_rma_request *r)
{
	const struct hd_rma_list *list = hd_rma_list_of(a, &r->own);

	if (!list || list->head.done_high >= HD_MAX_MSG >> 32)
		return -EPROTO;
	r->a = a;
	r->len = list->sum;
	r->done = (uint64_t)list->head.done_high << 32 | list->head.done;
	r->count = list->head.count;
	r->seg = list->seg;
	r->rest = (const char *)a->payload + list->size;
	r->rest_len = list->rest;
	r->offers = list->head.offer_len > 0;
	return 0;
}

enum hd_status hd_rma_find(const struct hd_rma_request *r, uint32_t access, uint32_t policy,
			   struct hd_rma_found *f)
{
	struct hd_ep *ep = r->a->ep;

	if (!(ep->policy & policy))
		return HD_S_ACCESS;
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
			return hd_status_of(rc);
		f->pieces += n;
		f->lens[f->regions] = seg->len;
		f->regions += f->mr[f->regions] != NULL;
	}
	return 0;
}

void hd_rma_touched(struct hd_ep *ep, const struct hd_rma_found *f)
{
	uint64_t sum = 0;

	if (f->access == HD_ACCESS_REMOTE_WRITE)
		hd_target_wrote(ep->node);
	for (int i = 0; i < f->regions; i++) {
		sum += f->lens[i];
		hd_mr_touched(f->mr[i], f->access, f->lens[i]);
	}
	hd_cntr_count(f->access & HD_ACCESS_REMOTE_READ ? ep->cntrs.remote_read : ep->cntrs.remote_write,
		      sum);
}

/* ---- responses ------------------------------------------------------------------------------- */

static size_t response_size(const struct hd_rma_found *f)
{
	return sizeof(struct hd_response) + sizeof(struct hd_rma_held) * (size_t)f->regions +
	       sizeof(struct iovec) * (size_t)f->pieces;
}

static void regions_drop(struct hd_response *r)
{
	for (int i = 0; i < r->regions; i++)
		hd_mr_drop(&r->held[i].hold);
	r->regions = 0;
}

static void regions_keep(struct hd_response *r)
{
	for (int i = 0; i < r->regions; i++)
		hd_mr_keep(&r->held[i].hold);
}

/* A region that it needs goes away: when nobody writes there any more. */
static void region_gone(struct hd_mr_hold *hold)
{
	struct hd_response *r = hd_container(hold, struct hd_rma_held, hold)->response;

	hd_answer_op(r->t.pending.peer, HD_PKT_FIN, r->t.remote, HD_S_ACCESS);
	if (hd_transfer_comes_in(&r->t) && !hd_intake_stop(&r->t, false))
		regions_keep(r);
	else
		regions_drop(r); /* it may have to stay for its turn */
	hd_transfer_end(&r->t, HD_S_ACCESS);
}

static void regions_hold(struct hd_response *r, const struct hd_rma_found *f)
{
	r->regions = f->regions;
	for (int i = 0; i < f->regions; i++) {
		r->held[i].response = r;
		r->held[i].len = f->lens[i];
		hd_mr_hold(f->mr[i], &r->held[i].hold, region_gone);
	}
}

static void response_fill(struct hd_response *r, const struct hd_rma_request *q, const struct hd_rma_found *f)
{
	r->server = q->server;
	r->access = f->access;
	r->units = HD_UNITS_RMA;
	r->src = q->a->src;
	r->flags = q->a->pkt->flags;
	r->imm = q->a->pkt->imm;
	r->done = q->done;
	r->copy = NULL;
	hd_of_peer_nobody(&r->of_peer);
	r->iov = (struct iovec *)(void *)&r->held[f->regions];
	memcpy(r->iov, f->iov, sizeof(f->iov[0]) * (size_t)f->pieces);
	hd_pending_to(&r->t.pending, q->a->peer);
	hd_transfer_set_bytes(&r->t, r->iov, f->pieces, q->len);
	hd_transfer_set_far(&r->t, q->a->pkt->op, q->len);
}

struct hd_response *hd_response_make(const struct hd_rma_request *q, const struct hd_rma_found *f,
				     const struct hd_transfer_owner *owner)
{
	struct hd_ep *ep = q->a->ep;
	size_t size = response_size(f);
	struct hd_response *r = hd_bytes_get(&hd_rqs(ep->node)->bytes, size);

	if (!r)
		return NULL;
	if (hd_transfer_init(&r->t, ep, owner) < 0) {
		hd_bytes_put(&hd_rqs(ep->node)->bytes, r, size);
		return NULL;
	}
	r->size = size;
	response_fill(r, q, f);
	regions_hold(r, f);
	if (r->access == HD_ACCESS_REMOTE_WRITE) {
		hd_target_stores(ep->node, 1);
		if (r->server->begin)
			r->server->begin(&r->t);
	}
	return r;
}

int hd_response_copy(struct hd_response *r)
{
	r->copy = hd_bytes_get(&hd_rqs(r->t.ep->node)->bytes, r->t.len);
	if (!r->copy)
		return -ENOMEM;
	if (hd_iov_drain(r->iov, r->t.count, r->copy, r->t.len))
		return -EFAULT;
	r->iov[0] = (struct iovec){ r->copy, r->t.len };
	hd_transfer_set_bytes(&r->t, r->iov, 1, r->t.len);
	return 0;
}

void hd_response_count(const struct hd_response *r)
{
	struct hd_rma_found f = { .access = r->access, .regions = r->regions };

	for (int i = 0; i < r->regions; i++) {
		f.mr[i] = r->held[i].hold.mr;
		f.lens[i] = r->held[i].len;
	}
	hd_rma_touched(r->t.ep, &f);
}

void hd_response_free(struct hd_response *r)
{
	struct hd_node *node = r->t.ep->node;

	if (r->access == HD_ACCESS_REMOTE_WRITE) {
		hd_target_stores(node, -1);
		if (r->server->end)
			r->server->end(&r->t);
	}
	hd_of_peer_leave(node, &r->of_peer);
	regions_drop(r);
	hd_peer_free_units(r->t.pending.peer, r->units);
	if (r->copy)
		hd_bytes_put(&hd_rqs(node)->bytes, r->copy, r->t.len);
	hd_transfer_fini(&r->t);
	hd_bytes_put(&hd_rqs(node)->bytes, r, r->size);
}

void hd_response_dropped(struct hd_transfer *t)
{
	hd_response_free(hd_response_of(t));
}
