/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Services and the requests that come to them. A service is an endpoint of its own that takes no
 * messages: it has a name, is announced and called as others are. A request waits with it until the
 * program answers, which may be long after its caller has gone.
 */
#include "engine/cm/ask.h"
#include "engine/cm/conn.h"
#include "engine/core/core.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/name/name.h"

#include "engine/cm/space.h"

#include "base/log.h"
#include "base/sockaddr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the end of requests --------------------------------------------------------------------- */

/*
 * What one takes of the budget of whose it is, with the event that tells of it and the
 * lists by which it is found.
 */
#define REQUEST_UNITS ((uint32_t)((sizeof(struct hd_request) + HD_CM_PRIVATE + 384) / HD_UNIT + 1))

/* Its caller's doings find it no longer. */
static void request_unfind(struct hd_request *r)
{
	hd_of_peer_leave(r->service->node, &r->of_peer);
	hd_of_peer_leave(r->service->node, &r->of_call);
}

static void request_free(struct hd_request *r)
{
	LIST_REMOVE(r, entry);
	if (r->service->evq)
		hd_evq_drop(r->service->evq, &r->unread);
	request_unfind(r);
	hd_budget_unkeep(r->share->budget, REQUEST_UNITS);
	hd_share_release(r->share, 0);
	r->service->pending--;
	free(r);
}

static void cm_refuse(struct hd_peer *peer, const struct hd_announce *caller, uint32_t op, int err,
		      const struct hd_cm_data *data)
{
	struct hd_pkt pkt = { .kind = HD_PKT_REJECT,
			      .dst = caller->index,
			      .gen = caller->gen,
			      .op = op,
			      .tag = data ? data->word : 0,
			      .imm = err };
	uint8_t priv[HD_CM_PRIVATE];

	hd_event("peer " HD_PEER_ID ": its request is refused: %s", HD_PEER_ID_OF(peer), strerror(err));
	hd_peer_send(peer, &pkt, priv, hd_cm_copy(priv, data));
}

void hd_request_reject(struct hd_request *request, const struct hd_cm_data *data)
{
	hd_assert_locked(request->service->node);
	if (request->peer)
		cm_refuse(request->peer, &request->from, request->op, ECONNREFUSED, data);
	request_free(request);
}

/* The caller is gone. Whoever has the handle keeps it, and learns of it when he answers. */
static void orphan(struct hd_request *r)
{
	request_unfind(r);
	r->peer = NULL;
	if (r->service->evq && !r->service->keeps && hd_evq_drop(r->service->evq, &r->unread))
		request_free(r);
}

static struct hd_request *request_in(struct hd_of_peer *of)
{
	return of ? hd_container(of, struct hd_request, of_peer) : NULL;
}

/*
 * hd_requests_orphan: the peer is gone, with what it has asked. hd_requests_gone: it has closed
 * that endpoint. hd_request_withdrawn: it asks no longer.
 */
void hd_requests_orphan(struct hd_peer *peer)
{
	struct hd_request *r;

	while ((r = request_in(hd_of_peer_any(peer, HD_OF_PEER_ASKED))))
		orphan(r);
	hd_asks_orphan(peer);
}

static uint64_t asked_key(uint32_t index, uint16_t gen)
{
	return (uint64_t)index << 16 | gen;
}

void hd_requests_gone(struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	struct hd_request *r;

	while ((r = request_in(hd_of_peer_first(peer, HD_OF_PEER_ASKED, asked_key(index, gen)))))
		orphan(r);
}

/*
 * Each question has a number of its own, so there is one such; of a caller who gives two
 * the same, the later one.
 */
static uint64_t call_key(uint32_t index, uint32_t op)
{
	return (uint64_t)index << 32 | op;
}

void hd_request_withdrawn(struct hd_peer *peer, uint32_t index, uint32_t op)
{
	struct hd_of_peer *of = hd_of_peer_first(peer, HD_OF_PEER_CALL, call_key(index, op));

	if (of)
		orphan(hd_container(of, struct hd_request, of_call));
}

/* ---- a request comes ------------------------------------------------------------------------- */

/*
 * Where the caller can be named: the address that it is bound to, or the one
 * that its link comes from.
 */
static void name_caller(const struct hd_link *link, const struct hd_announce *from,
			struct sockaddr_storage *out)
{
	uint8_t addr[16];

	if (!hd_addr_is_zero(from->addr))
		memcpy(addr, from->addr, sizeof(addr));
	else if (link->where.ss_family != AF_UNSPEC)
		hd_addr_map((void *)&link->where, addr);
	else
		memcpy(addr, link->peer->addr[0], sizeof(addr)); /* ourselves */
	hd_addr_unmap(addr, from->port, out);
	hd_sockaddr_set_scope((void *)out, link->peer->link_scope);
}

static int request_findable(struct hd_request *r, struct hd_peer *peer, const struct hd_announce *from,
			    uint32_t op)
{
	int rc = hd_of_peer_enter(peer, HD_OF_PEER_ASKED, asked_key(from->index, from->gen), &r->of_peer);

	if (!rc)
		rc = hd_of_peer_enter(peer, HD_OF_PEER_CALL, call_key(from->index, op), &r->of_call);
	if (rc)
		request_unfind(r);
	return rc;
}

static struct hd_request *request_make(struct hd_service *s, struct hd_link *link, const struct hd_pkt *pkt,
				       const struct hd_connect *body)
{
	struct hd_share *share = link->peer->share;
	struct hd_request *r;

	if (!hd_budget_keep(share->budget, REQUEST_UNITS))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r)
		r->service = s;
	if (!r || request_findable(r, link->peer, &body->from, pkt->op) < 0) {
		hd_budget_unkeep(share->budget, REQUEST_UNITS);
		free(r);
		return NULL;
	}
	r->peer = link->peer;
	r->share = hd_share_leave(share);
	r->node = link->peer->id;
	r->realm = link->peer->realm;
	r->from = body->from;
	r->op = pkt->op;
	name_caller(link, &body->from, &r->name);
	s->pending++;
	LIST_INSERT_HEAD(&s->requests, r, entry);
	return r;
}

static bool cm_is_meant(const struct hd_service *s, const struct hd_connect *body, size_t len)
{
	return s && s->evq && s->space == body->space &&
	       ((!body->space && !body->number) || s->number == body->number) &&
	       (!s->wants || s->wants(s->owner, body->data, len - offsetof(struct hd_connect, data)));
}

/* 0, or the front's word for not being told of it. */
static uint64_t screened(const struct hd_service *s, const struct hd_connect *body, size_t len)
{
	const struct hd_cm_data data = { body->data, len, body->word };

	return s->screen ? s->screen(s->owner, &data) : 0;
}

static bool cm_event_post(struct hd_request *r, const struct hd_connect *body, size_t len)
{
	struct hd_service *s = r->service;
	const struct hd_event e = { .code = HD_EV_REQUEST,
				    .owner = s->owner,
				    .word = body->word,
				    .request = r,
				    .unread = &r->unread,
				    .data = body->data,
				    .len = len };

	return hd_evq_post_of(s->evq, &e, &r->node) == 0;
}

/* hd_conn_called: CONNECT has come. */
int hd_conn_called(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *ep = hd_pkt_named(link->node, pkt);
	struct hd_service *s = ep ? ep->service : NULL;
	struct hd_request *r = NULL;
	struct hd_cm_data no = { 0 };
	struct hd_connect body;
	int err = ECONNREFUSED;

	if (len < offsetof(struct hd_connect, data) || len > sizeof(body))
		return hd_link_broken(link, "malformed request for a connection");
	memcpy(&body, payload, len);
	if (!cm_is_meant(s, &body, len))
		err = ENOENT;
	else if (body.type == HD_EP_MSG && body.from.index == pkt->src && s->pending < s->backlog &&
		 !(no.word = screened(s, &body, len - offsetof(struct hd_connect, data))))
		r = request_make(s, link, pkt, &body);
	if (r && cm_event_post(r, &body, len - offsetof(struct hd_connect, data))) {
		hd_event("%s: a request of peer " HD_PEER_ID, hd_ep_text(ep).text, HD_PEER_ID_OF(link->peer));
		return 0;
	}
	if (r)
		request_free(r);
	cm_refuse(link->peer, &(struct hd_announce){ .index = pkt->src, .gen = body.from.gen }, pkt->op, err,
		  no.word ? &no : NULL);
	return 0;
}

/* ---- answering ------------------------------------------------------------------------------- */

/* Send ACCEPT, if there is still somebody to hear it; the request is void in either case. */
static int conn_cm_answer(struct hd_request *r, const struct hd_accept *body, size_t len)
{
	struct hd_pkt pkt = { .kind = HD_PKT_ACCEPT, .dst = r->from.index, .gen = r->from.gen, .op = r->op };
	struct hd_node *node = r->service->node;
	int rc = r->peer ? 0 : -ECONNABORTED;

	hd_assert_locked(node);
	if (!rc)
		hd_peer_send(r->peer, &pkt, body, offsetof(struct hd_accept, data) + len);
	request_free(r);
	return rc;
}

int hd_ep_accept(struct hd_ep *ep, struct hd_request *request, const struct hd_cm_data *data)
{
	struct hd_node *server = request->service->node;
	struct hd_accept body = { .word = data ? data->word : 0 };
	size_t len = hd_cm_copy(body.data, data);
	int rc;

	hd_node_lock(server);
	hd_node_poll(server); /* the caller may have said that it goes, and nobody looked */
	hd_node_unlock(server);
	hd_node_lock(ep->node); /* first, so that READY finds it waiting */
	rc = hd_conn_expect(ep, request, &body);
	hd_node_unlock(ep->node);
	if (rc)
		return rc;
	hd_node_lock(server);
	rc = conn_cm_answer(request, &body, len);
	hd_node_unlock(server);
	if (rc) {
		hd_node_lock(ep->node);
		hd_conn_unexpect(ep);
		hd_node_unlock(ep->node);
	}
	return rc;
}

void hd_request_from(const struct hd_request *request, struct sockaddr_storage *out)
{
	*out = request->name;
}

/* ---- the service ----------------------------------------------------------------------------- */

/* An endpoint at the first port of the service's that is free. */
static int open_by_hash(struct hd_node *node, const struct hd_service_attr *attr, struct hd_ep **out)
{
	struct sockaddr_storage at;
	struct hd_ep_attr ep = { .type = HD_EP_RDM, .policy = HD_EP_OWN_PORT, .bind = (void *)&at };
	uint8_t addr[16] = { 0 };
	int rc = -EADDRINUSE;
	uint16_t port;

	if (attr->bind)
		hd_addr_map(attr->bind, addr);
	for (unsigned i = 0; rc == -EADDRINUSE && (port = hd_space_port(attr->space, attr->number, i)); i++) {
		hd_addr_unmap(addr, port, &at);
		hd_sockaddr_set_scope((void *)&at, attr->bind ? hd_sockaddr_scope(attr->bind) : 0);
		rc = hd_ep_open(node, &ep, out);
	}
	if (rc == -EADDRINUSE)
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR,
			"no TCP port free for service %llu of space 0x%x: widen HEDDLE_CM_PORTS, to the same on all hosts",
			(unsigned long long)attr->number, attr->space);
	return rc;
}

static void claim_give(struct hd_service *s)
{
	if (s->claim >= 0)
		close(s->claim);
	s->claim = -1;
}

static int cm_name_take(struct hd_service *s, const struct hd_service_attr *attr)
{
	const struct hd_ep_attr ep = { .type = HD_EP_RDM, .policy = HD_EP_OWN_PORT, .bind = attr->bind };
	int rc;

	s->claim = -1;
	if (!attr->space)
		return hd_ep_open(s->node, &ep, &s->ep);
	rc = hd_space_claim(s->node, attr, &s->claim);
	if (!rc)
		rc = open_by_hash(s->node, attr, &s->ep);
	if (rc)
		claim_give(s);
	return rc;
}

/* hd_listeners_forked: the child gives up what would keep the parent's successor from the names. */
void hd_listeners_forked(struct hd_node *node)
{
	struct hd_service *s;

	LIST_FOREACH(s, &hd_conns(node)->services, entry)
		claim_give(s);
}

int hd_service_open(struct hd_node *node, const struct hd_service_attr *attr, struct hd_service **out)
{
	struct hd_service *s = calloc(1, sizeof(*s));
	int rc;

	hd_assert_locked(node);
	if (!s)
		return -ENOMEM;
	s->node = node;
	rc = cm_name_take(s, attr);
	if (rc) {
		free(s);
		return rc;
	}
	s->ep->service = s;
	hd_ep_watch_more(s->ep, HD_WATCH_SERVICE);
	s->space = attr->space;
	s->number = attr->number;
	LIST_INIT(&s->requests);
	LIST_INSERT_HEAD(&hd_conns(node)->services, s, entry);
	*out = s;
	return 0;
}

int hd_service_listen(struct hd_service *service, const struct hd_listen_args *args)
{
	int rc;

	hd_assert_locked(service->node);
	if (hd_core(service->node)->gate.dead)
		return -ENOTRECOVERABLE;
	if (!service->ep)
		return -ESHUTDOWN;
	if (service->evq)
		return -EISCONN;
	rc = hd_evq_attach(args->evq, service->node);
	if (rc)
		return rc;
	service->evq = args->evq;
	service->owner = args->owner;
	/* the endpoint lets go of it when it closes */
	hd_ep_set_owner(service->ep, args->evq, args->owner);
	service->backlog = args->backlog;
	service->wants = args->wants;
	service->screen = args->screen;
	service->keeps = args->keeps;
	return 0;
}

int hd_service_set_evq(struct hd_service *service, struct hd_evq *evq)
{
	int rc = service->ep ? hd_ep_set_evq(service->ep, evq) : 0;

	if (!rc && service->evq)
		service->evq = evq;
	return rc;
}

void hd_service_set_backlog(struct hd_service *service, uint32_t backlog)
{
	service->backlog = backlog;
}

int hd_service_name(const struct hd_service *service, int family, struct sockaddr_storage *out)
{
	if (service->ep)
		return hd_ep_name(service->ep, family, out);
	for (size_t i = 0; i < sizeof(service->was) / sizeof(service->was[0]); i++) {
		*out = service->was[i];
		if (out->ss_family != AF_UNSPEC && (family == AF_UNSPEC || family == out->ss_family))
			return 0;
	}
	return -EAFNOSUPPORT;
}

/*
 * Peers hear that the endpoint has gone, so that they call whoever has the port next; but before
 * that those whom the program has read of hear that they are to wait on. The names stay known,
 * and the node stays held.
 */
static void name_give(struct hd_service *s)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct hd_request *r;

	claim_give(s);
	if (!s->ep)
		return;
	for (size_t i = 0; i < sizeof(s->was) / sizeof(s->was[0]); i++)
		if (hd_ep_name(s->ep, families[i], &s->was[i]))
			s->was[i].ss_family = AF_UNSPEC;
	LIST_FOREACH(r, &s->requests, entry)
		if (r->peer)
			cm_refuse(r->peer, &r->from, r->op, EINPROGRESS, NULL);
	hd_ep_set_owner(s->ep, NULL, s->ep->owner); /* what else there is of its owner's stays */
	hd_ep_close(s->ep);
	s->ep = NULL;
	hd_eps_used(s->node, 1);
}

uint32_t hd_service_shut(struct hd_service *service)
{
	LIST_HEAD(, hd_request) oldest = LIST_HEAD_INITIALIZER(oldest);
	struct hd_evq *evq = service->evq;
	struct hd_request *r;

	hd_assert_locked(service->node);
	/* the last to come is the first here, and the last of the event queue */
	while ((r = LIST_FIRST(&service->requests))) {
		LIST_REMOVE(r, entry);
		LIST_INSERT_HEAD(&oldest, r, entry);
	}
	while ((r = LIST_FIRST(&oldest))) {
		LIST_REMOVE(r, entry);
		LIST_INSERT_HEAD(&service->requests, r, entry);
		if (evq && hd_evq_drop(evq, &r->unread))
			hd_request_reject(r, NULL);
	}
	if (evq)
		hd_evq_detach(evq, service->node);
	service->evq = NULL;
	name_give(service);
	return service->pending;
}

void hd_service_close(struct hd_service *service)
{
	struct hd_request *r;

	hd_assert_locked(service->node);
	while ((r = LIST_FIRST(&service->requests)))
		hd_request_reject(r, NULL);
	LIST_REMOVE(service, entry);
	claim_give(service);
	if (service->ep)
		hd_ep_close(service->ep);
	else
		hd_eps_used(service->node, -1);
	free(service);
}
