/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A request that names a queue of another node (qp/xrc/proxy.c): what it asks for, taken in whole,
 * and asked once more of that node.
 */
#include "engine/qp/xrc/proxied.h"
#include "engine/link/link.h"
#include "engine/qp/xrc/proxy.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void proxied_orphan(struct hd_held *held)
{
	hd_proxied_from(hd_container(held, struct hd_proxied, held), NULL);
}

void hd_proxied_from(struct hd_proxied *c, struct hd_peer *peer)
{
	if (c->peer)
		LIST_REMOVE(&c->held, entry);
	c->peer = peer;
	c->held.ended = proxied_orphan;
	if (peer)
		LIST_INSERT_HEAD(&peer->held_back, &c->held, entry);
}

void hd_proxied_free(struct hd_proxied *c)
{
	if (c->via)
		c->via->proxied = NULL;
	if (c->peer)
		hd_peer_free_units(c->peer, c->units);
	hd_proxied_from(c, NULL);
	free(c->data);
	free(c);
}

void hd_proxied_over(struct hd_proxied *c, enum hd_proxied_step step, enum hd_status status)
{
	c->step = step;
	c->status = status;
	if (c->p)
		hd_qp_kick(c->p);
	else if (!c->moves)
		hd_proxied_free(c);
}

/* ---- the first leg, and the way back --------------------------------------------------------- */

static struct hd_proxied *moved(struct hd_transfer *t)
{
	struct hd_proxied *c = hd_container(t, struct hd_proxied, t);

	hd_transfer_fini(t);
	c->moves = false;
	return c;
}

static void fetched(struct hd_transfer *t, enum hd_status status)
{
	hd_proxied_over(moved(t), status ? HD_PROXIED_LOST : HD_PROXIED_READY, status);
}

static void returned(struct hd_transfer *t, enum hd_status status)
{
	hd_proxied_over(moved(t), HD_PROXIED_LOST, 0);
}

static void given_up(struct hd_transfer *t)
{
	hd_proxied_over(moved(t), HD_PROXIED_LOST, 0);
}

static const struct hd_transfer_owner fetches = { .done = fetched, .dropped = given_up };
static const struct hd_transfer_owner returns = { .done = returned, .dropped = given_up };

/* All of the data is to come in, or to go back. HD_S_NO_MEMORY. */
static enum hd_status transfer_make(struct hd_proxied *c, const struct hd_transfer_owner *owner)
{
	if (hd_transfer_init(&c->t, c->p->ep, owner) < 0)
		return HD_S_NO_MEMORY;
	c->iov = (struct iovec){ c->data, c->len };
	hd_transfer_set_bytes(&c->t, &c->iov, 1, c->len);
	hd_transfer_set_far(&c->t, c->pkt.op, c->len);
	c->moves = true;
	return 0;
}

static enum hd_status fetch(struct hd_proxied *c, const void *offer, size_t offer_len)
{
	enum hd_status status = transfer_make(c, &fetches);

	if (status)
		return status;
	c->step = HD_PROXIED_FETCH;
	hd_intake_begin(&c->t, c->peer, offer, offer_len);
	return 0;
}

enum hd_status hd_proxied_send_back(struct hd_proxied *c)
{
	enum hd_status status = transfer_make(c, &returns);

	if (status)
		return status;
	c->step = HD_PROXIED_BACK;
	hd_transfer_set_unanswered(&c->t);
	hd_frames_begin(&c->t, c->peer);
	return 0;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static enum hd_status room(struct hd_proxied *c, uint64_t len)
{
	if (len > HD_XRC_PROXY_MAX)
		return HD_S_LENGTH;
	c->len = len;
	c->data = malloc(len ? len : 1);
	return c->data ? 0 : HD_S_NO_MEMORY;
}

static enum hd_status proxied_keep(struct hd_proxied *c, const void *data, size_t len)
{
	enum hd_status status = room(c, len);

	if (!status && len)
		memcpy(c->data, data, len);
	return status;
}

static enum hd_status proxied_take_message(struct hd_proxied *c, const struct hd_arrival *r)
{
	const size_t head = offsetof(struct hd_rts, offer);
	uint64_t len;
	enum hd_status status;

	if (c->pkt.kind == HD_PKT_EAGER)
		return proxied_keep(c, r->payload, r->len);
	memcpy(&len, r->payload, sizeof(len));
	status = room(c, len);
	return status ? status : fetch(c, (const char *)r->payload + head, r->len - head);
}

/*
 * Where it is to go, as far as it can be judged here. HD_S_OK, or a status; *rest: what is behind
 * that in the payload; *len: bytes of all segments.
 */
static enum hd_status proxied_parse(struct hd_proxied *c, const struct hd_arrival *r, size_t *rest,
				    uint64_t *len)
{
	struct hd_rma_list own;
	const struct hd_rma_list *list = hd_rma_list_of(r, &own);

	if (!list)
		return HD_S_INVALID;
	c->head = list->head;
	memcpy(c->seg, list->seg, c->head.count * sizeof(c->seg[0]));
	*rest = list->size;
	*len = list->sum;
	return 0;
}

static enum hd_status take_write(struct hd_proxied *c, const struct hd_arrival *r)
{
	size_t rest;
	uint64_t len = 0;
	enum hd_status status = c->p->ep->policy & HD_EP_REMOTE_WRITE ? proxied_parse(c, r, &rest, &len)
								      : HD_S_ACCESS;

	if (status)
		return status;
	if (!c->head.offer_len && r->len - rest == len)
		return proxied_keep(c, (const char *)r->payload + rest, len);
	if (!len || r->len - rest != c->head.offer_len)
		return HD_S_INVALID;
	status = room(c, len);
	return status ? status : fetch(c, (const char *)r->payload + rest, c->head.offer_len);
}

static enum hd_status take_read(struct hd_proxied *c, const struct hd_arrival *r)
{
	size_t rest;
	uint64_t len = 0;
	enum hd_status status = c->p->ep->policy & HD_EP_REMOTE_READ ? proxied_parse(c, r, &rest, &len)
								     : HD_S_ACCESS;

	return status ? status : room(c, len);
}

static enum hd_status take_atomic(struct hd_proxied *c, const struct hd_arrival *r)
{
	return c->p->ep->policy & HD_EP_REMOTE_ATOMIC ? proxied_keep(c, r->payload, r->len) : HD_S_ACCESS;
}

enum hd_status hd_proxied_take(struct hd_proxied *c, const struct hd_arrival *r)
{
	switch (c->pkt.kind) {
	case HD_PKT_EAGER:
	case HD_PKT_RTS:
		return proxied_take_message(c, r);
	case HD_PKT_WRITE:
		return take_write(c, r);
	case HD_PKT_READ:
		return take_read(c, r);
	default:
		return take_atomic(c, r);
	}
}

/* ---- the second leg -------------------------------------------------------------------------- */

static uint32_t proxied_flags_of(const struct hd_proxied *c)
{
	return HD_SEND_WORK | (c->pkt.flags & (HD_PKT_F_IMM | HD_PKT_F_SOLICITED));
}

static int rma_out(struct hd_proxied *c, struct hd_ep *via)
{
	const struct iovec iov = { c->data, c->len };
	const struct hd_rma_args args = { .op = c->pkt.kind == HD_PKT_READ ? HD_RMA_READ : HD_RMA_WRITE,
					  .iov = &iov,
					  .count = 1,
					  .seg_count = c->head.count,
					  .segs = c->seg,
					  .imm = hd_qp_imm_of(&c->pkt.qp),
					  .ctx = &c->work,
					  .flags = proxied_flags_of(c) };

	return hd_rma(via, via->to, &args);
}

/* Of the payload only what hd_atomic relies on is checked; the target checks the rest. */
static int atomic_out(struct hd_proxied *c, struct hd_ep *via)
{
	struct hd_atomic head;
	size_t segs, bytes, operands, compares;
	struct iovec iov[3];

	if (c->len < sizeof(head))
		return -EINVAL;
	memcpy(&head, c->data, sizeof(head));
	segs = sizeof(head) + head.segs * sizeof(c->seg[0]);
	if (!hd_atomic_can(head.how, head.op, head.type) || !head.segs || head.segs > HD_RMA_SEGS ||
	    !head.count || head.count > HD_ATOMIC_BYTES / hd_atomic_size(head.type))
		return -EINVAL;
	bytes = head.count * hd_atomic_size(head.type);
	operands = head.op == HD_ATOMIC_READ ? 0 : bytes;
	compares = head.how == HD_ATOMIC_COMPARE ? bytes : 0;
	if (c->len != segs + operands + compares)
		return -EINVAL;
	memcpy(c->seg, c->data + sizeof(head), segs - sizeof(head));
	iov[0] = (struct iovec){ c->data + segs, operands };
	iov[1] = (struct iovec){ c->data + segs + operands, compares };
	iov[2] = (struct iovec){ c->data, bytes }; /* the request has been copied by then */
	if (segs + operands < bytes)
		return -EINVAL;
	c->len = head.how == HD_ATOMIC_BASE ? 0 : bytes;
	return hd_atomic(via, via->to,
			 &(struct hd_atomic_args){ .how = head.how,
						   .op = head.op,
						   .type = head.type,
						   .iov = &iov[0],
						   .compare_iov = &iov[1],
						   .result_iov = &iov[2],
						   .count = operands != 0,
						   .compare_count = compares != 0,
						   .result_count = head.how != HD_ATOMIC_BASE,
						   .seg_count = head.segs,
						   .segs = c->seg,
						   .imm = hd_qp_imm_of(&c->pkt.qp),
						   .ctx = &c->work,
						   .flags = HD_SEND_WORK });
}

int hd_proxied_out(struct hd_proxied *c, struct hd_ep *via)
{
	switch (c->pkt.kind) {
	case HD_PKT_EAGER:
	case HD_PKT_RTS:
		return hd_sq_send(via, &(struct hd_send_args){ .iov = &(struct iovec){ c->data, c->len },
							       .count = 1,
							       .imm = hd_qp_imm_of(&c->pkt.qp),
							       .ctx = &c->work,
							       .flags = proxied_flags_of(c) });
	case HD_PKT_ATOMIC:
		return atomic_out(c, via);
	default:
		return rma_out(c, via);
	}
}
