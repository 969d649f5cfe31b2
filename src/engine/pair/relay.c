/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests that name a queue of another node. The front of the endpoint that they come to (T) finds out whose the queue is, and gives us a
 * pair of its own (`via`) whose other end is an endpoint of that node: they leave by it once more, with the patience that they came with.
 *
 *	sender ─────────► T  ┈┈ via ─────────► an endpoint of the queue's node, which turns to the queue
 *	         FETCH            OUT
 *	       ◄───────── BACK ◄───────
 *
 * Nobody is told that a request has been carried out before it has. One of each T is on its way at a time, so they keep their order; a long
 * one is fetched whole before it goes on.
 */
#include "engine/pair/relay.h"
#include "engine/memory/rma.h"
#include "engine/message/message.h"
#include "engine/pair/pair.h"
#include "engine/peer/peer.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct hd_route {
	LIST_ENTRY(hd_route) entry;
	struct hd_relay *relay;
	uint32_t number;
	struct hd_pair *via; /* NULL: there is no such queue */
};

struct hd_relay {
	void (*stray)(void *owner, uint32_t number);
	LIST_HEAD(, hd_route) routes;
	uint32_t wanted; /* while `wants`: the way to this queue is looked for */
	bool wants, asked;
	struct hd_carried *now;
};

enum step {
	FETCH, /* its data comes in: op */
	READY, /* it can leave by `via` */
	OUT,   /* it has */
	OVER,  /* err says how */
	BACK,  /* what it has read is being sent: op */
	LOST,  /* nobody waits for an answer */
};

struct hd_carried {
	struct hd_work work;
	struct hd_pair *p;    /* whose it is; NULL: that knows it no longer */
	struct hd_pair *via;  /* NULL: gone */
	struct hd_peer *peer; /* who has sent it; NULL: gone */
	struct hd_op *op;
	enum step step;
	int err;
	struct hd_pkt pkt;
	uint32_t units;
	uint64_t len;
	unsigned char *data;
	struct hd_rma head; /* WRITE, READ */
	struct hd_rma_seg seg[HD_RMA_SEGS];
};

/* ---- ways ------------------------------------------------------------------------------------------------------------------- */

int hd_relay_open(struct hd_pair *p, void (*stray)(void *owner, uint32_t number))
{
	if (!stray)
		return 0;
	p->relay = calloc(1, sizeof(*p->relay));
	if (!p->relay)
		return -ENOMEM;
	p->relay->stray = stray;
	return 0;
}

static struct hd_route *route_to(const struct hd_relay *relay, uint32_t number)
{
	struct hd_route *route;

	LIST_FOREACH(route, &relay->routes, entry)
		if (route->number == number)
			return route;
	return NULL;
}

static void route_drop(struct hd_route *route)
{
	if (route->via)
		route->via->route = NULL;
	LIST_REMOVE(route, entry);
	free(route);
}

bool hd_relay_is_busy(const struct hd_pair *p)
{
	return p->relay && p->relay->now;
}

int hd_relay_way(struct hd_pair *p, uint32_t number)
{
	struct hd_relay *relay = p->relay;
	struct hd_route *route = relay ? route_to(relay, number) : NULL;
	bool leads = route && route->via;

	if (!relay)
		return -EINVAL;
	if (leads && !route->via->err)
		return 0;
	if (route)
		route_drop(route);
	if (route && !leads)
		return -EINVAL;
	if (!relay->wants || relay->wanted != number) {
		relay->wants = true;
		relay->asked = false;
		relay->wanted = number;
		hd_pair_kick(p);
	}
	return -EAGAIN;
}

void hd_ep_relay(struct hd_ep *ep, uint32_t number, struct hd_ep *via)
{
	struct hd_pair *p = ep->pair;
	struct hd_relay *relay = p->relay;
	struct hd_route *route = route_to(relay, number);

	hd_assert_locked(ep->node);
	if (route)
		route_drop(route);
	route = calloc(1, sizeof(*route));
	if (!route) {
		hd_pair_fail_soon(p, ENOMEM);
		return;
	}
	route->relay = relay;
	route->number = number;
	route->via = via ? via->pair : NULL;
	if (via)
		via->pair->route = route;
	LIST_INSERT_HEAD(&relay->routes, route, entry);
	relay->wants = false;
	hd_pair_kick(p);
}

/* ---- its end ---------------------------------------------------------------------------------------------------------------- */

static void carried_free(struct hd_carried *c)
{
	if (c->via)
		c->via->carries = NULL;
	if (c->peer)
		hd_peer_free_units(c->peer, c->units);
	free(c->data);
	free(c);
}

/* The second leg, or the first, has ended. */
static void over(struct hd_carried *c, enum step step, int err)
{
	c->step = step;
	c->err = err;
	if (c->p)
		hd_pair_kick(c->p);
	else if (!c->op)
		carried_free(c);
}

static void left(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_carried *c = hd_container(work, struct hd_carried, work);

	c->via->carries = NULL;
	c->via = NULL;
	over(c, OVER, e->err);
}

/* It was waited for in this node: what it says of its other end is for us alone. */
static int reason(int err)
{
	switch (err) {
	case EACCES:
	case ERANGE:
	case EMSGSIZE:
	case EREMOTEIO:
	case ENOBUFS:
	case ETIMEDOUT:
		return err;
	default:
		return EINVAL; /* the queue, or its process, is no more */
	}
}

/* ---- the first leg, and the way back ----------------------------------------------------------------------------------------- */

static void fetched(struct hd_op *op, int err)
{
	struct hd_carried *c = op->extra;

	op->extra = NULL;
	c->op = NULL;
	over(c, err ? LOST : READY, err);
}

static void returned(struct hd_op *op, int err)
{
	struct hd_carried *c = op->extra;

	op->extra = NULL;
	c->op = NULL;
	over(c, LOST, 0);
}

static void given_up(struct hd_op *op)
{
	struct hd_carried *c = op->extra;

	if (!c)
		return;
	c->op = NULL;
	over(c, LOST, 0);
}

static const struct hd_op_kind fetches = { .end = fetched, .free = given_up };
static const struct hd_op_kind returns = { .end = returned, .free = given_up };

/* All of the data comes in, or goes back. NULL: no memory. */
static struct hd_op *op_make(struct hd_carried *c, const struct hd_op_kind *kind)
{
	struct hd_node *node = c->p->ep->node;
	struct hd_op *op = hd_pool_get(&node->ops);

	if (!op)
		return NULL;
	memset(op, 0, offsetof(struct hd_op, iov));
	if (hd_idmap_add(&node->op_ids, op, &op->id) < 0) {
		hd_pool_put(&node->ops, op);
		return NULL;
	}
	op->kind = kind;
	op->extra = c;
	op->ep = c->p->ep;
	op->peer = c->peer;
	op->remote = c->pkt.op;
	op->len = op->want = c->len;
	op->count = 1;
	op->iov[0] = (struct iovec){ c->data, c->len };
	TAILQ_INSERT_TAIL(&op->peer->ops, op, under);
	c->op = op;
	return op;
}

static int fetch(struct hd_carried *c, const void *offer, size_t offer_len)
{
	struct hd_op *op = op_make(c, &fetches);

	if (!op)
		return ENOMEM;
	c->step = FETCH;
	op->state = HD_OP_INTAKE;
	hd_intake_begin(op, offer, offer_len);
	return 0;
}

static int send_back(struct hd_carried *c)
{
	struct hd_op *op = op_make(c, &returns);

	if (!op)
		return ENOMEM;
	c->step = BACK;
	op->state = HD_OP_FRAMES;
	TAILQ_INSERT_TAIL(&op->peer->framing, op, entry);
	hd_peer_busy(op->peer);
	return 0;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------------------- */

static int room(struct hd_carried *c, uint64_t len)
{
	if (len > HD_RELAY_MAX)
		return EMSGSIZE;
	c->len = len;
	c->data = malloc(len ? len : 1);
	return c->data ? 0 : ENOMEM;
}

static int keep(struct hd_carried *c, const void *data, size_t len)
{
	int err = room(c, len);

	if (!err && len)
		memcpy(c->data, data, len);
	return err;
}

static int take_message(struct hd_carried *c, const struct hd_arrival *r)
{
	const size_t head = offsetof(struct hd_rts, offer);
	uint64_t len;
	int err;

	if (c->pkt.kind == HD_PKT_EAGER)
		return keep(c, r->payload, r->len);
	memcpy(&len, r->payload, sizeof(len));
	err = room(c, len);
	return err ? err : fetch(c, (const char *)r->payload + head, r->len - head);
}

/* Where it is to go, as far as it can be judged here. 0, or a positive errno; *rest: what is behind that in the payload. */
static int parse(struct hd_carried *c, const struct hd_arrival *r, size_t *rest)
{
	uint64_t sum = 0;

	if (r->len < sizeof(c->head))
		return EINVAL;
	memcpy(&c->head, r->payload, sizeof(c->head));
	*rest = sizeof(c->head) + c->head.count * sizeof(c->seg[0]);
	if (c->head.count > HD_RMA_SEGS || c->head.offer_len > HD_OFFER_MAX || *rest > r->len)
		return EINVAL;
	memcpy(c->seg, (const char *)r->payload + sizeof(c->head), c->head.count * sizeof(c->seg[0]));
	for (int i = 0; i < c->head.count; i++)
		if (__builtin_add_overflow(sum, c->seg[i].len, &sum))
			return EINVAL;
	return sum == (c->pkt.tag & HD_NAME_BYTES) ? 0 : EINVAL;
}

static int take_write(struct hd_carried *c, const struct hd_arrival *r)
{
	size_t rest;
	int err = c->p->ep->policy & HD_EP_REMOTE_WRITE ? parse(c, r, &rest) : EACCES;
	uint64_t len = c->pkt.tag & HD_NAME_BYTES;

	if (err)
		return err;
	if (!c->head.offer_len && r->len - rest == len)
		return keep(c, (const char *)r->payload + rest, len);
	if (!len || r->len - rest != c->head.offer_len)
		return EINVAL;
	err = room(c, len);
	return err ? err : fetch(c, (const char *)r->payload + rest, c->head.offer_len);
}

static int take_read(struct hd_carried *c, const struct hd_arrival *r)
{
	size_t rest;
	int err = c->p->ep->policy & HD_EP_REMOTE_READ ? parse(c, r, &rest) : EACCES;

	return err ? err : room(c, c->pkt.tag & HD_NAME_BYTES);
}

static int take_atomic(struct hd_carried *c, const struct hd_arrival *r)
{
	return c->p->ep->policy & HD_EP_REMOTE_ATOMIC ? keep(c, r->payload, r->len) : EACCES;
}

static int take(struct hd_carried *c, const struct hd_arrival *r)
{
	switch (c->pkt.kind) {
	case HD_PKT_EAGER:
	case HD_PKT_RTS:
		return take_message(c, r);
	case HD_PKT_WRITE:
		return take_write(c, r);
	case HD_PKT_READ:
		return take_read(c, r);
	default:
		return take_atomic(c, r);
	}
}

void hd_relay_take(struct hd_pair *p, const struct hd_arrival *r)
{
	struct hd_carried *c = calloc(1, sizeof(*c));
	int err = ENOMEM;

	if (c) {
		c->p = p;
		c->peer = r->peer;
		c->pkt = *r->pkt;
		c->units = r->units;
		c->step = READY;
		p->relay->now = c;
		err = take(c, r);
	}
	if (!err) {
		hd_pair_kick(p);
		return;
	}
	p->relay->now = NULL;
	if (c) {
		free(c->data);
		free(c);
	}
	hd_hold_end(p, r->peer, r->pkt, r->units, err);
}

/* ---- the second leg ---------------------------------------------------------------------------------------------------------- */

static uint64_t imm_of(const struct hd_carried *c)
{
	return c->pkt.tag >> HD_NAME_SHIFT << 32 | (uint32_t)c->pkt.imm;
}

static uint32_t flags_of(const struct hd_carried *c)
{
	return HD_SEND_WORK | (c->pkt.flags & (HD_PKT_F_IMM | HD_PKT_F_SOLICITED));
}

static int rma_out(struct hd_carried *c, struct hd_ep *via)
{
	const struct iovec iov = { c->data, c->len };
	const struct hd_rma_args args = { .op = c->pkt.kind == HD_PKT_READ ? HD_RMA_READ : HD_RMA_WRITE,
					  .iov = &iov,
					  .count = 1,
					  .seg_count = c->head.count,
					  .segs = c->seg,
					  .imm = imm_of(c),
					  .ctx = &c->work,
					  .flags = flags_of(c) };

	return hd_rma(via, *hd_ep_to(via), &args);
}

/* Of the payload only what hd_atomic relies on is checked; the target checks the rest. */
static int atomic_out(struct hd_carried *c, struct hd_ep *via)
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
	return hd_atomic(via, *hd_ep_to(via),
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
						   .imm = imm_of(c),
						   .ctx = &c->work,
						   .flags = HD_SEND_WORK });
}

static int out(struct hd_carried *c, struct hd_ep *via)
{
	switch (c->pkt.kind) {
	case HD_PKT_EAGER:
	case HD_PKT_RTS:
		return hd_send(via, *hd_ep_to(via), c->data, c->len, 0, imm_of(c), &c->work, flags_of(c));
	case HD_PKT_ATOMIC:
		return atomic_out(c, via);
	default:
		return rma_out(c, via);
	}
}

/* As much of it as may change before the link does not matter: the other end is called anew. */
static void leave(struct hd_carried *c)
{
	const struct hd_route *route = route_to(c->p->relay, (uint32_t)(c->pkt.tag >> HD_NAME_SHIFT));
	int rc = -ECONNRESET;

	if (route && route->via && !route->via->err) {
		struct hd_pair *via = route->via;

		c->via = via;
		via->carries = c;
		via->word = (via->word & ~HD_WORD_PATIENCE) |
			    ((uint32_t)(c->pkt.imm >> 32) & HD_WORD_PATIENCE);
		c->work.done = left;
		c->step = OUT;
		rc = out(c, via->ep); /* it may be over when this returns */
	}
	if (rc < 0) {
		if (c->via)
			c->via->carries = NULL;
		c->via = NULL;
		over(c, OVER, -rc);
	}
}

/* ---- the answer -------------------------------------------------------------------------------------------------------------- */

/* It has been carried out. True: nothing more is to be done about it. */
static bool answer(struct hd_carried *c)
{
	const struct hd_pkt result = { .kind = HD_PKT_RESULT, .op = c->pkt.op };

	if (c->pkt.kind == HD_PKT_ATOMIC)
		hd_peer_send(c->peer, &result, c->data, c->len);
	else if (c->pkt.kind == HD_PKT_EAGER)
		hd_answer(c->peer, &c->pkt, HD_PKT_ACK, 0);
	else if (c->pkt.kind == HD_PKT_READ && c->len && !send_back(c))
		return false;
	else
		hd_answer(c->peer, &c->pkt, HD_PKT_FIN, c->pkt.kind == HD_PKT_READ && c->len ? ENOMEM : 0);
	return true;
}

static void finish(struct hd_pair *p, struct hd_carried *c)
{
	int err = c->err ? reason(c->err) : 0;

	if (c->step == OVER && !err && c->peer && !answer(c))
		return;
	p->relay->now = NULL;
	if (c->step == OVER && err && c->peer) {
		hd_hold_end(p, c->peer, &c->pkt, c->units, err);
		c->peer = NULL; /* it has its credit back */
	}
	carried_free(c);
}

void hd_relay_run(struct hd_pair *p)
{
	struct hd_relay *relay = p->relay;

	if (relay->now && relay->now->step == READY)
		leave(relay->now);
	if (relay->now && (relay->now->step == OVER || relay->now->step == LOST))
		finish(p, relay->now);
	if (relay->wants && !relay->asked) {
		relay->asked = true;
		relay->stray(p->ep->owner, relay->wanted);
	}
}

/* ---- forgetting -------------------------------------------------------------------------------------------------------------- */

void hd_relay_forget(struct hd_pair *p, const struct hd_peer *peer)
{
	if (hd_relay_is_busy(p) && p->relay->now->peer == peer)
		p->relay->now->peer = NULL;
}

void hd_relay_clear(struct hd_pair *p)
{
	struct hd_relay *relay = p->relay;
	struct hd_carried *c = relay ? relay->now : NULL;
	struct hd_route *route;

	if (!relay)
		return;
	while ((route = LIST_FIRST(&relay->routes)))
		route_drop(route);
	relay->wants = false;
	relay->now = NULL;
	if (!c)
		return;
	c->p = NULL;
	if (c->op) /* whoever ends it frees all, and tells the other end */
		return;
	if (c->peer && c->step != LOST)
		hd_arrive_refuse(c->peer, &c->pkt, c->units, ECONNREFUSED);
	if (c->peer && c->step != LOST)
		c->peer = NULL;
	if (c->step != OUT)
		carried_free(c);
}

void hd_relay_close(struct hd_pair *p)
{
	struct hd_carried *c = p->carries;

	hd_relay_clear(p);
	free(p->relay);
	p->relay = NULL;
	if (p->route)
		route_drop(p->route);
	p->carries = NULL;
	if (!c)
		return;
	c->via = NULL;
	over(c, OVER, ECONNRESET);
}
