/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints: where they listen, what they are called, and how they go away. */
#include "base/config.h"
#include "base/log.h"
#include "engine/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define TX_DEFAULT 4096

/* ---- listening ------------------------------------------------------------------------------------------------------------------------ */

static struct hd_port *addressed_port(struct hd_node *node)
{
	for (int i = 0; i < node->port_count; i++)
		if (node->ports[i]->transport->addressed)
			return node->ports[i];
	return NULL;
}

static void set_port(struct sockaddr_storage *sa, uint16_t port)
{
	if (sa->ss_family == AF_INET)
		((struct sockaddr_in *)sa)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
}

static uint16_t get_port(const struct sockaddr *sa)
{
	return ntohs(sa->sa_family == AF_INET ? ((const struct sockaddr_in *)sa)->sin_port
					      : ((const struct sockaddr_in6 *)sa)->sin6_port);
}

static bool is_wildcard(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

/* Where the endpoint shall listen, ports aside; returns the number of addresses. */
static int places(struct hd_node *node, const struct sockaddr *bind, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out) * HD_HELLO_ADDRS);
	if (bind && !is_wildcard(bind)) {
		memcpy(out, bind,
		       bind->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		return 1;
	}
	if (*hd_config_str(HD_SET_ADDR)) {
		memcpy(out, node->addrs, sizeof(*out) * node->addr_count);
		return node->addr_count;
	}
	out->ss_family = AF_INET6; /* both families at once */
	return 1;
}

static void unlisten(struct hd_ep *ep)
{
	struct hd_port *port = addressed_port(ep->node);

	for (int i = 0; i < ep->listener_count && !ep->node->dead; i++)
		port->transport->unlisten(port, &ep->listeners[i]);
	ep->listener_count = 0;
}

/* Listen on this TCP port (0: any that is free) at all places. */
static int listen_at(struct hd_ep *ep, const struct sockaddr_storage *at, int count, uint16_t tcp_port)
{
	struct hd_port *port = addressed_port(ep->node);

	for (int i = 0; i < count; i++) {
		struct hd_listener *l = &ep->listeners[i];
		int rc;

		*l = (struct hd_listener){ .addr = at[i], .ep = ep };
		set_port(&l->addr, tcp_port);
		rc = port->transport->listen(port, l);
		if (rc == -EAFNOSUPPORT && at[i].ss_family == AF_INET6 && is_wildcard((const void *)&at[i])) {
			memset(&l->addr, 0, sizeof(l->addr)); /* a host without IPv6 */
			l->addr.ss_family = AF_INET;
			set_port(&l->addr, tcp_port);
			rc = port->transport->listen(port, l);
		}
		if (rc < 0) {
			unlisten(ep);
			return rc;
		}
		ep->listener_count++;
		tcp_port = get_port((const struct sockaddr *)&l->addr);
	}
	ep->port = tcp_port;
	return 0;
}

static int listen_somewhere(struct hd_ep *ep, const struct sockaddr *bind)
{
	struct hd_range range = hd_config_range(HD_SET_PORTS);
	struct sockaddr_storage at[HD_HELLO_ADDRS];
	int count = places(ep->node, bind, at), rc = -EADDRINUSE;

	ep->bound = bind && !is_wildcard(bind);
	ep->listeners = calloc(count, sizeof(*ep->listeners));
	if (!ep->listeners)
		return -ENOMEM;
	if (bind && get_port(bind))
		range.first = range.last = get_port(bind);
	for (uint32_t p = range.first; p <= range.last && rc == -EADDRINUSE; p++)
		rc = listen_at(ep, at, count, (uint16_t)p);
	for (int tries = 0; !range.first && rc == -EADDRINUSE && tries < 16;
	     tries++) /* free at one address, taken at another */
		rc = listen_at(ep, at, count, 0);
	if (rc == -EADDRINUSE)
		hd_error("no TCP port free in %u-%u: widen HEDDLE_PORTS, or end the program that has them",
			 range.first, range.last);
	if (rc == -EMFILE)
		hd_error("no descriptors left to listen with: raise the limit with `ulimit -n`");
	return rc;
}

static void name_choose(struct hd_ep *ep)
{
	if (ep->bound)
		ep->name = ep->listeners[0].addr;
	else
		ep->name = ep->node->addrs[0];
	set_port(&ep->name, ep->port);
}

int hd_ep_name(const struct hd_ep *ep, int family, struct sockaddr_storage *out)
{
	if (family == AF_UNSPEC || ep->name.ss_family == family) {
		*out = ep->name;
		return 0;
	}
	for (int i = 0; i < ep->node->addr_count && !ep->bound; i++)
		if (ep->node->addrs[i].ss_family == family) {
			*out = ep->node->addrs[i];
			set_port(out, ep->port);
			return 0;
		}
	return -EAFNOSUPPORT;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------------------ */

static int index_take(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	uint32_t i, n;
	struct hd_ep **eps;
	uint32_t *gens;

	for (i = 0; i < node->ep_count; i++)
		if (!node->eps[i])
			break;
	if (i == node->ep_count) {
		n = node->ep_count ? node->ep_count * 2 : 8;
		eps = realloc(node->eps, n * sizeof(*eps));
		if (!eps)
			return -ENOMEM;
		node->eps = eps;
		gens = realloc(node->ep_gens, n * sizeof(*gens));
		if (!gens)
			return -ENOMEM;
		node->ep_gens = gens;
		memset(eps + node->ep_count, 0, (n - node->ep_count) * sizeof(*eps));
		memset(gens + node->ep_count, 0, (n - node->ep_count) * sizeof(*gens));
		node->ep_count = n;
	}
	node->eps[i] = ep;
	ep->index = i;
	ep->gen = (uint16_t)++node->ep_gens[i];
	return 0;
}

static void cntrs_bind(struct hd_ep *ep, int by)
{
	struct hd_cntr *all[] = { ep->cntrs.send,  ep->cntrs.recv,	  ep->cntrs.read,
				  ep->cntrs.write, ep->cntrs.remote_read, ep->cntrs.remote_write };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			all[i]->users += by;
	ep->tx_cntr = ep->cntrs.send;
	ep->rx_cntr = ep->cntrs.recv;
}

static void announce_all(struct hd_ep *ep)
{
	struct hd_peer *peer, *next;

	HASH_ITER(hh, ep->node->peers, peer, next)
		if (peer->state == HD_PEER_LIVE)
			hd_peer_announce(peer, ep);
}

static struct hd_ep *ep_make(struct hd_node *node, const struct hd_ep_attr *attr)
{
	struct hd_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->node = node;
	ep->policy = attr->policy;
	ep->tx_cq = attr->tx_cq ? attr->tx_cq : node->no_cq;
	ep->rx_cq = attr->rx_cq ? attr->rx_cq : node->no_cq;
	ep->tx_max = attr->tx_size ? attr->tx_size : TX_DEFAULT;
	ep->min_multi = attr->min_multi_recv;
	ep->cntrs = attr->cntrs;
	ep->rq = attr->rq;
	LIST_INIT(&ep->claims);
	TAILQ_INIT(&ep->fenced);
	return ep;
}

int hd_ep_open(struct hd_node *node, const struct hd_ep_attr *attr, struct hd_ep **out)
{
	struct hd_ep *ep;
	int rc = 0;

	hd_assert_locked(node);
	if (node->dead)
		return -ENOTRECOVERABLE;
	ep = ep_make(node, attr);
	if (!ep)
		return -ENOMEM;
	if (!ep->rq) {
		rc = hd_rq_open(node, attr->policy & HD_EP_DIRECTED, &ep->rq);
		ep->own_rq = rc == 0;
	}
	if (!rc)
		rc = listen_somewhere(ep, attr->bind);
	if (!rc)
		rc = index_take(ep);
	if (rc) {
		unlisten(ep);
		free(ep->listeners);
		if (ep->own_rq)
			hd_rq_close(ep->rq);
		free(ep);
		return rc;
	}
	name_choose(ep);
	ep->rq->users++;
	ep->tx_cq->users++;
	ep->rx_cq->users++;
	cntrs_bind(ep, 1);
	node->ep_users++;
	announce_all(ep);
	*out = ep;
	return 0;
}

/* ---- closing ------------------------------------------------------------------------------------------------------------------------------- */

static void ops_abandon(struct hd_ep *ep, struct hd_peer *peer)
{
	struct hd_op *op, *next;

	for (op = TAILQ_FIRST(&peer->queue); op; op = next) {
		next = TAILQ_NEXT(op, entry);
		if (op->ep != ep)
			continue;
		TAILQ_REMOVE(&peer->queue, op, entry);
		op->peer = NULL;
		hd_op_abandon(op);
	}
	for (op = TAILQ_FIRST(&peer->ops); op; op = next) {
		next = TAILQ_NEXT(op, under);
		if (op->ep != ep)
			continue;
		if (op->state == HD_OP_PULL || op->state == HD_OP_INTAKE)
			hd_recv_op_abandon(op);
		else
			hd_op_abandon(op);
	}
	hd_peer_gate(peer);
}

static void waiting_abandon(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	for (uint32_t i = 0; i < node->dest_count; i++) {
		struct hd_dest *dest = node->dests[i];
		struct hd_op *op, *next;

		if (!dest)
			continue;
		dest->refs++;
		for (op = TAILQ_FIRST(&dest->waiting); op; op = next) {
			next = TAILQ_NEXT(op, entry);
			if (op->ep != ep)
				continue;
			TAILQ_REMOVE(&dest->waiting, op, entry);
			hd_op_abandon(op);
		}
		hd_dest_unref(dest);
	}
}

static void tell_gone(struct hd_ep *ep, struct hd_peer *peer)
{
	struct hd_pkt pkt = { .kind = HD_PKT_GONE, .src = ep->index, .gen = ep->gen };

	hd_peer_send(peer, &pkt, NULL, 0);
}

/* Everything that names the endpoint forgets it. Its operations are gone, so that nothing calls back. */
static void detach(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	struct hd_peer *peer, *next;
	struct hd_link *link;

	TAILQ_FOREACH(link, &node->links, entry) {
		hd_stream_forget(link, ep, NULL, NULL);
		if (link->shake.ep == ep && !link->peer)
			hd_link_down(link, -ECONNREFUSED, NULL);
	}
	hd_fence_abandon(ep); /* first: what ends now must not let it go */
	waiting_abandon(ep);
	hd_claims_drop(ep);
	hd_mrs_drop_ep(ep);
	hd_rq_drop_ep(ep->rq, ep);
	HASH_ITER(hh, node->peers, peer, next) {
		ops_abandon(ep, peer);
		tell_gone(ep, peer);
	}
}

void hd_ep_close(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	hd_assert_locked(node);
	detach(ep);
	unlisten(ep);
	free(ep->listeners);
	node->eps[ep->index] = NULL;
	if (--ep->rq->users == 0 && ep->own_rq)
		hd_rq_close(ep->rq);
	ep->tx_cq->users--;
	ep->rx_cq->users--;
	cntrs_bind(ep, -1);
	node->ep_users--;
	free(ep);
}

/* ---- small things ---------------------------------------------------------------------------------------------------------------------------- */

uint32_t hd_ep_index(const struct hd_ep *ep)
{
	return ep->index;
}

struct hd_rq *hd_ep_rq(struct hd_ep *ep)
{
	return ep->rq;
}

void hd_ep_set_min_multi_recv(struct hd_ep *ep, uint64_t bytes)
{
	ep->min_multi = bytes;
}
