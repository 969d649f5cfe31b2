/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests that name a queue of another node. The front of the endpoint that they come to (T) finds
 * out whose the queue is, and gives us a pair of its own (`via`) whose other end is an endpoint of
 * that node: they leave by it once more, with the patience that they came with.
 *
 *	sender ─────────► T  ┈┈ via ─────────► an endpoint of the queue's node,
 *	         FETCH            OUT          whose target is the queue
 *	       ◄───────── BACK ◄───────
 *
 * Nobody is told that a request has been carried out before it has. One of each T is on its way at
 * a time, so they keep their order; a long one is fetched whole before it goes on.
 */
#include "engine/qp/xrc/proxy.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/qp/xrc/proxied.h"

#include <errno.h>
#include <stdlib.h>

struct hd_route {
	LIST_ENTRY(hd_route) entry;
	struct hd_xrc_proxy *proxy;
	uint32_t number;
	struct hd_qp *via; /* NULL: there is no such queue */
};

struct hd_xrc_proxy {
	void (*stray)(void *owner, uint32_t number);
	LIST_HEAD(, hd_route) routes;
	uint32_t wanted; /* while `wants`: the way to this queue is looked for */
	bool wants, asked;
	struct hd_proxied *now;
};

/* ---- ways ------------------------------------------------------------------------------------ */

int hd_xrc_proxy_open(struct hd_qp *p, void (*stray)(void *owner, uint32_t number))
{
	if (!stray)
		return 0;
	p->xrc_proxy = calloc(1, sizeof(*p->xrc_proxy));
	if (!p->xrc_proxy)
		return -ENOMEM;
	p->xrc_proxy->stray = stray;
	return 0;
}

static struct hd_route *route_to(const struct hd_xrc_proxy *proxy, uint32_t number)
{
	struct hd_route *route;

	LIST_FOREACH(route, &proxy->routes, entry)
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

bool hd_xrc_proxy_is_busy(const struct hd_qp *p)
{
	return p->xrc_proxy && p->xrc_proxy->now;
}

int hd_xrc_proxy_way(struct hd_qp *p, uint32_t number)
{
	struct hd_xrc_proxy *proxy = p->xrc_proxy;
	struct hd_route *route = proxy ? route_to(proxy, number) : NULL;
	bool leads = route && route->via;

	if (!proxy)
		return -EINVAL;
	if (leads && !route->via->life.status)
		return 0;
	if (route)
		route_drop(route);
	if (route && !leads)
		return -EINVAL;
	if (!proxy->wants || proxy->wanted != number) {
		proxy->wants = true;
		proxy->asked = false;
		proxy->wanted = number;
		hd_qp_kick(p);
	}
	return -EAGAIN;
}

void hd_ep_proxy(struct hd_ep *ep, uint32_t number, struct hd_ep *via)
{
	struct hd_qp *p = ep->qp;
	struct hd_xrc_proxy *proxy = p->xrc_proxy;
	struct hd_route *route = route_to(proxy, number);

	hd_assert_locked(ep->node);
	if (route)
		route_drop(route);
	route = calloc(1, sizeof(*route));
	if (!route) {
		hd_qp_fail_soon(p, HD_S_NO_MEMORY);
		return;
	}
	route->proxy = proxy;
	route->number = number;
	route->via = via ? via->qp : NULL;
	if (via)
		via->qp->route = route;
	LIST_INSERT_HEAD(&proxy->routes, route, entry);
	proxy->wants = false;
	hd_qp_kick(p);
}

/* ---- on the way ------------------------------------------------------------------------------ */

static void left(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_proxied *c = hd_container(work, struct hd_proxied, work);

	c->via->proxied = NULL;
	c->via = NULL;
	hd_proxied_over(c, HD_PROXIED_OVER, e->err);
}

/* It was waited for in this node: what it says of its other end is for us alone. */
static enum hd_status proxy_reason(enum hd_status status)
{
	switch (status) {
	case HD_S_ACCESS:
	case HD_S_RANGE:
	case HD_S_LENGTH:
	case HD_S_OPERATIONAL:
	case HD_S_RNR:
	case HD_S_TIMEOUT:
		return status;
	default:
		return HD_S_INVALID; /* the queue, or its process, is no more */
	}
}

void hd_xrc_proxy_take(struct hd_qp *p, const struct hd_arrival *r)
{
	struct hd_proxied *c = calloc(1, sizeof(*c));
	enum hd_status status = HD_S_NO_MEMORY;

	if (c) {
		c->p = p;
		hd_proxied_from(c, r->peer);
		c->pkt = *r->pkt;
		c->gen = hd_remote_gen(r->peer, r->pkt->src);
		c->units = r->units;
		c->step = HD_PROXIED_READY;
		p->xrc_proxy->now = c;
		status = hd_proxied_take(c, r);
	}
	if (!status) {
		hd_qp_kick(p);
		return;
	}
	p->xrc_proxy->now = NULL;
	if (c) {
		hd_proxied_from(c, NULL);
		free(c->data);
		free(c);
	}
	hd_respq_end(p, r->peer, r->pkt, r->units, status);
}

/* ---- the second leg -------------------------------------------------------------------------- */

/* As much of it as may change before the link does not matter: the other end is called anew. */
static void proxy_leave(struct hd_proxied *c)
{
	const struct hd_route *route = route_to(c->p->xrc_proxy, c->pkt.qp.queue);
	int rc = -ECONNRESET;

	if (route && route->via && !route->via->life.status) {
		struct hd_qp *via = route->via;

		c->via = via;
		via->proxied = c;
		via->life.sq.epoch.rnr_retry = c->pkt.qp.epoch.rnr_retry;
		via->life.sq.epoch.timeout = c->pkt.qp.epoch.timeout;
		c->work.done = left;
		c->step = HD_PROXIED_OUT;
		rc = hd_proxied_out(c, via->ep); /* it may be over when this returns */
	}
	if (rc < 0) {
		if (c->via)
			c->via->proxied = NULL;
		c->via = NULL;
		hd_proxied_over(c, HD_PROXIED_OVER, hd_status_of(rc));
	}
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Who has asked is there, and has not begun anew since. */
static bool is_awaited(const struct hd_proxied *c)
{
	return c->peer && c->gen == hd_remote_gen(c->peer, c->pkt.src);
}

/* It has been carried out. True: nothing more is to be done about it. */
static bool proxy_answer(struct hd_proxied *c)
{
	const struct hd_pkt result = { .kind = HD_PKT_RESULT, .op = c->pkt.op };

	if (c->pkt.kind == HD_PKT_ATOMIC)
		hd_peer_send(c->peer, &result, c->data, c->len);
	else if (c->pkt.kind == HD_PKT_EAGER)
		hd_answer(c->peer, &c->pkt, HD_PKT_ACK, 0);
	else if (c->pkt.kind == HD_PKT_READ && c->len && !hd_proxied_send_back(c))
		return false;
	else
		hd_answer(c->peer, &c->pkt, HD_PKT_FIN,
			  c->pkt.kind == HD_PKT_READ && c->len ? HD_S_NO_MEMORY : 0);
	return true;
}

static void proxy_finish(struct hd_qp *p, struct hd_proxied *c)
{
	enum hd_status status = c->status ? proxy_reason(c->status) : HD_S_OK;

	if (c->step == HD_PROXIED_OVER && !status && is_awaited(c) && !proxy_answer(c))
		return;
	p->xrc_proxy->now = NULL;
	if (c->step == HD_PROXIED_OVER && status && is_awaited(c)) {
		hd_respq_end(p, c->peer, &c->pkt, c->units, status);
		hd_proxied_from(c, NULL); /* it has its credit back */
	}
	hd_proxied_free(c);
}

void hd_xrc_proxy_run(struct hd_qp *p)
{
	struct hd_xrc_proxy *proxy = p->xrc_proxy;

	if (proxy->now && proxy->now->step == HD_PROXIED_READY)
		proxy_leave(proxy->now);
	if (proxy->now && (proxy->now->step == HD_PROXIED_OVER || proxy->now->step == HD_PROXIED_LOST))
		proxy_finish(p, proxy->now);
	if (proxy->wants && !proxy->asked) {
		proxy->asked = true;
		proxy->stray(p->ep->owner, proxy->wanted);
	}
}

/* ---- forgetting ------------------------------------------------------------------------------ */

void hd_xrc_proxy_clear(struct hd_qp *p)
{
	struct hd_xrc_proxy *proxy = p->xrc_proxy;
	struct hd_proxied *c = proxy ? proxy->now : NULL;
	struct hd_route *route;

	if (!proxy)
		return;
	while ((route = LIST_FIRST(&proxy->routes)))
		route_drop(route);
	proxy->wants = false;
	proxy->now = NULL;
	if (!c)
		return;
	c->p = NULL;
	if (c->moves) /* whoever ends it frees all, and tells the other end */
		return;
	if (c->peer && c->step != HD_PROXIED_LOST) {
		if (is_awaited(c))
			hd_resp_refuse(c->peer, &c->pkt, c->units, HD_S_REFUSED);
		else
			hd_peer_free_units(c->peer, c->units);
		hd_proxied_from(c, NULL);
	}
	if (c->step != HD_PROXIED_OUT)
		hd_proxied_free(c);
}

void hd_xrc_proxy_close(struct hd_qp *p)
{
	struct hd_proxied *c = p->proxied;

	hd_xrc_proxy_clear(p);
	free(p->xrc_proxy);
	p->xrc_proxy = NULL;
	if (p->route)
		route_drop(p->route);
	p->proxied = NULL;
	if (!c)
		return;
	c->via = NULL;
	hd_proxied_over(c, HD_PROXIED_OVER, HD_S_LOST);
}
