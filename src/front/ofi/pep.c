/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Passive endpoints, fi_endpoint(3) and fi_cm(3), and the requests that come to them. A passive
 * endpoint that is closed leaves the requests that the program has read behind, for it may be about
 * to accept them, and its node with them: until the last is answered, or the fabric closes.
 */
#include "base/advice.h"
#include "base/lock.h"
#include "base/log.h"
#include "front/ofi/cm.h"
#include "front/ofi/offer.h"
#include "front/ofi/stubs.h"

#include <stdlib.h>
#include <string.h>

#define BACKLOG 1024

/* A request that a program has read: its handle. */
struct connreq {
	struct fid fid;
	struct hd_fi_pep *pep;
	struct hd_request *request;
	/* of no other request: endpoints outlive the requests that they were opened for */
	uint64_t number;
	uint32_t acceptors; /* endpoints that were opened for it, and stand */
	LIST_ENTRY(connreq) entry;
};

/* the lists, what is in them, and the number; taken before nodes' locks */
static struct hd_lock cm_lock;
static uint64_t last_number;
static LIST_HEAD(, hd_fi_pep) peps = LIST_HEAD_INITIALIZER(peps);
/* that stay: pep_left */
static LIST_HEAD(, hd_fi_pep) closed_peps = LIST_HEAD_INITIALIZER(closed_peps);
static LIST_HEAD(, connreq) connreqs = LIST_HEAD_INITIALIZER(connreqs);

__attribute__((constructor)) static void pep_cm_lock_init(void)
{
	hd_lock_init(&cm_lock, HD_LOCK_OUTER);
}

/* ---- handles: compared, not followed --------------------------------------------------------- */

/* Caller holds the lock. */
static struct hd_fi_pep *pep_find(const void *handle)
{
	struct hd_fi_pep *pep;

	LIST_FOREACH(pep, &peps, entry)
		if ((const void *)pep == handle)
			break;
	return pep;
}

/* Caller holds the lock. */
static struct connreq *connreq_find(const void *handle)
{
	struct connreq *c;

	LIST_FOREACH(c, &connreqs, entry)
		if ((const void *)c == handle)
			break;
	return c;
}

/*
 * The request that an endpoint was opened for, if nobody has answered it
 * yet. Caller holds the lock.
 */
static struct connreq *connreq_of(const struct hd_fi_ep *ep)
{
	struct connreq *c = connreq_find(hd_fi_ep_request(ep));

	return c && c->number == ep->connected->number ? c : NULL;
}

/*
 * The passive endpoint, if it is closed and nothing of it stands any more: it is in no list, and to
 * be freed without the lock. Else NULL. Caller holds the lock.
 */
static struct hd_fi_pep *pep_left(struct hd_fi_pep *pep)
{
	if (!pep->closed || pep->requests || atomic_load(&pep->reading))
		return NULL;
	LIST_REMOVE(pep, entry);
	return pep;
}

/* What pep_left has said. */
static void pep_free(struct hd_fi_pep *pep)
{
	if (!pep)
		return;
	hd_node_lock(pep->node);
	if (pep->service)
		hd_service_close(pep->service);
	hd_node_unlock(pep->node);
	hd_node_close(pep->node);
	free(pep);
}

/*
 * It is answered. Returns what to free without the lock. A node that nobody reads events of gets
 * rid of the answer here. Caller holds the lock.
 */
static struct hd_fi_pep *connreq_free(struct connreq *c)
{
	struct hd_fi_pep *pep = c->pep;

	LIST_REMOVE(c, entry);
	free(c);
	pep->requests--;
	if (pep->closed) {
		hd_node_lock(pep->node);
		hd_node_poll(pep->node);
		hd_node_unlock(pep->node);
	}
	return pep_left(pep);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int put_addr(const struct sockaddr *from, void **addr, size_t *len)
{
	free(*addr);
	*len = hd_sockaddr_size(from);
	*addr = malloc(*len);
	if (!*addr)
		return hd_fi_no(FI_ENOMEM);
	memcpy(*addr, from, *len);
	return 0;
}

/* The passive endpoint's info, with the two names. */
static struct fi_info *info_of(const struct hd_fi_called *called)
{
	struct fi_info *info = fi_dupinfo(called->pep->info);
	struct sockaddr_storage own;

	if (!info)
		return NULL;
	info->handle = NULL;
	if (hd_service_name(called->pep->service, called->from.ss_family, &own) ||
	    put_addr((struct sockaddr *)&own, &info->src_addr, &info->src_addrlen) ||
	    put_addr((const struct sockaddr *)&called->from, &info->dest_addr, &info->dest_addrlen)) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

static struct connreq *connreq_make(const struct hd_fi_called *called)
{
	struct connreq *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fid.fclass = FI_CLASS_CONNREQ;
	c->pep = called->pep;
	c->request = called->request;
	c->number = ++last_number;
	c->pep->requests++;
	LIST_INSERT_HEAD(&connreqs, c, entry);
	return c;
}

static void ofi_pep_reject(struct hd_fi_pep *pep, struct hd_request *request, const struct hd_cm_data *data)
{
	hd_node_lock(pep->node);
	hd_request_reject(request, data);
	hd_node_unlock(pep->node);
}

/* Caller holds the lock. */
static int pep_describe(const struct hd_fi_called *called, bool keep, struct fi_info **out)
{
	struct connreq *c = NULL;
	struct fi_info *info;

	if (called->pep->closed) { /* by another thread, since this one has taken the event */
		if (keep)
			ofi_pep_reject(called->pep, called->request, NULL);
		return -FI_ENOENT;
	}
	info = info_of(called);
	if (info && keep)
		c = connreq_make(called);
	if (!info || (keep && !c)) {
		fi_freeinfo(info);
		if (keep)
			ofi_pep_reject(called->pep, called->request, NULL);
		return hd_fi_no(FI_ENOMEM);
	}
	info->handle = c ? &c->fid : NULL;
	*out = info;
	return 0;
}

int hd_fi_called_info(const struct hd_fi_called *called, bool keep, struct fi_info **out)
{
	struct hd_fi_pep *last;
	int rc;

	hd_lock_take(&cm_lock);
	rc = pep_describe(called, keep, out);
	atomic_fetch_sub(&called->pep->reading, 1);
	last = pep_left(called->pep);
	hd_lock_give(&cm_lock);
	pep_free(last);
	return rc;
}

int hd_fi_answer(struct hd_fi_ep *ep, const struct hd_cm_data *data)
{
	struct hd_fi_pep *last = NULL;
	struct connreq *c;
	int rc;

	hd_lock_take(&cm_lock);
	c = connreq_of(ep);
	if (c) {
		rc = hd_ep_accept(ep->ep, c->request, data);
		if (!rc || rc == -ECONNABORTED)
			last = connreq_free(c);
	} else {
		rc = hd_fi_no(FI_EINVAL, "fi_accept of a connection request that was answered");
	}
	hd_lock_give(&cm_lock);
	pep_free(last);
	return hd_fi_ret(rc, "fi_accept");
}

void hd_fi_unanswered(struct hd_fi_ep *ep, bool rejects)
{
	struct hd_fi_pep *last = NULL;
	struct connreq *c;

	hd_lock_take(&cm_lock);
	c = connreq_of(ep);
	if (c && !--c->acceptors && rejects) {
		ofi_pep_reject(c->pep, c->request, NULL);
		last = connreq_free(c);
	}
	hd_lock_give(&cm_lock);
	pep_free(last);
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct hd_cm_data data;
	struct connreq *c;
	int rc = hd_fi_cm_data(param, paramlen, &data);

	if (rc)
		return rc;
	hd_lock_take(&cm_lock);
	c = connreq_find(handle);
	if (c && &c->pep->fid == fid) {
		ofi_pep_reject(c->pep, c->request, &data);
		connreq_free(c);
	} else {
		c = NULL;
	}
	hd_lock_give(&cm_lock);
	return c ? 0
		 : hd_fi_no(
			   FI_EINVAL,
			   "fi_reject of what is no connection request of this passive endpoint, or was answered");
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int pep_family_of(const struct hd_fi_pep *pep)
{
	return hd_fi_family(pep->info->addr_format);
}

/* Have an address from here on. Caller holds the lock. */
static int pep_settle(struct hd_fi_pep *pep)
{
	const struct hd_service_attr attr = { .bind = pep->has_addr ? &pep->addr.sa : NULL };
	int rc;

	if (pep->spent)
		return hd_fi_no(FI_EOPBADSTATE, "the passive endpoint has given its address to an endpoint");
	if (pep->service)
		return 0;
	hd_node_lock(pep->node);
	rc = hd_service_open(pep->node, &attr, &pep->service);
	hd_node_unlock(pep->node);
	return hd_fi_ret(rc, "the passive endpoint's address cannot be had");
}

static void pep_unsettle(struct hd_fi_pep *pep, struct hd_service *service)
{
	if (!service)
		return;
	hd_node_lock(pep->node);
	hd_service_close(service);
	hd_node_unlock(pep->node);
}

/* Of one that has this port: the name that it has. */
static bool pep_has_port_of(const struct hd_fi_pep *pep, const union hd_fi_addr *name, union hd_fi_addr *own)
{
	struct sockaddr_storage at;

	if (!pep->service || hd_service_name(pep->service, pep_family_of(pep), &at))
		return false;
	memset(own, 0, sizeof(*own));
	memcpy(own, &at, hd_sockaddr_size((struct sockaddr *)&at));
	/* the port of IPv6 stands at the same place */
	return own->in.sin_port == name->in.sin_port;
}

/* Have this one, or else the one that it has had. Caller holds the lock. */
static int pep_resettle(struct hd_fi_pep *pep, const union hd_fi_addr *name)
{
	union hd_fi_addr was = pep->addr, own;
	bool first = pep_has_port_of(pep, name, &own); /* it has to go before this one can be had */
	struct hd_service *old = first ? NULL : pep->service;
	bool had = pep->has_addr;
	int rc;

	if (first) {
		pep_unsettle(pep, pep->service);
		was = own;
		had = true;
	}
	pep->service = NULL;
	pep->addr = *name;
	pep->has_addr = !hd_fi_addr_is_any(name);
	rc = pep_settle(pep);
	if (!rc) {
		pep_unsettle(pep, old);
		return 0;
	}
	pep->service = old;
	pep->addr = was;
	pep->has_addr = had;
	if (first)
		(void)pep_settle(pep); /* else, when it is wanted next */
	return rc;
}

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct hd_fi_pep *pep = (struct hd_fi_pep *)fid;
	union hd_fi_addr name;
	int rc;

	if (!addr || hd_fi_addr_copy(addr, addrlen, pep_family_of(pep), &name))
		return hd_fi_no(FI_EINVAL, "fi_setname without an address of the endpoint's format");
	hd_lock_take(&cm_lock);
	rc = pep->listening || pep->spent
		     ? hd_fi_no(
			       FI_EOPBADSTATE,
			       "fi_setname of a passive endpoint that listens, or has given its address away")
		     : pep_resettle(pep, &name);
	hd_lock_give(&cm_lock);
	return rc;
}

static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct hd_fi_pep *pep = (struct hd_fi_pep *)fid;
	struct sockaddr_storage name;
	int rc;

	if (!addrlen)
		return hd_fi_no(FI_EINVAL, "fi_getname without a length");
	hd_lock_take(&cm_lock);
	rc = pep_settle(pep);
	if (!rc)
		rc = hd_fi_ret(hd_service_name(pep->service, pep_family_of(pep), &name));
	hd_lock_give(&cm_lock);
	return rc ? rc : hd_fi_addr_out((struct sockaddr *)&name, addr, addrlen);
}

/* The address of a passive endpoint becomes that of an active one. Caller holds the lock. */
static int pep_inherit(struct hd_fi_ep *ep, struct hd_fi_pep *pep)
{
	struct sockaddr_storage name;
	int rc = pep->listening ? hd_fi_no(FI_EOPBADSTATE,
					   "fi_endpoint with a passive endpoint that listens as its handle")
				: pep_settle(pep);

	if (!rc)
		rc = hd_fi_ret(hd_service_name(pep->service, hd_fi_family(ep->domain->addr_format), &name));
	if (rc)
		return rc;
	memcpy(&ep->attr.addr, &name, hd_sockaddr_size((struct sockaddr *)&name));
	ep->attr.has_addr = true;
	pep_unsettle(pep, pep->service);
	pep->service = NULL;
	pep->spent = true;
	return 0;
}

/* The acceptor of a request, if it stands, has the name that was called. Caller holds the lock. */
static int adopt(struct hd_fi_ep *ep, struct connreq *c)
{
	struct sockaddr_storage name;
	int rc;

	if (!c)
		return hd_fi_no(FI_EINVAL,
				"fi_endpoint with a handle that is no connection request, or was answered");
	rc = hd_service_name(c->pep->service, hd_fi_family(ep->domain->addr_format), &name);
	if (rc)
		return hd_fi_ret(rc);
	memcpy(&ep->connected->called, &name, hd_sockaddr_size((struct sockaddr *)&name));
	ep->connected->request = &c->fid;
	ep->connected->number = c->number;
	c->acceptors++;
	return 0;
}

int hd_fi_handle_take(struct hd_fi_ep *ep, struct fid *handle)
{
	struct hd_fi_pep *pep;
	int rc;

	hd_lock_take(&cm_lock);
	pep = pep_find(handle);
	if (pep) {
		rc = pep_inherit(ep, pep);
	} else {
		rc = adopt(ep, connreq_find(handle));
	}
	hd_lock_give(&cm_lock);
	return rc;
}

/* ---- calls on a passive endpoint ------------------------------------------------------------- */

static int pep_listen_locked(struct hd_fi_pep *pep)
{
	const struct hd_listen_args args = { .evq = hd_fi_eq_evq(pep->eq),
					     .owner = pep,
					     .backlog = (uint32_t)pep->backlog };
	int rc = pep_settle(pep);

	if (rc)
		return rc;
	hd_node_lock(pep->node);
	rc = hd_service_listen(pep->service, &args);
	hd_node_unlock(pep->node);
	pep->listening |= !rc;
	return rc == -EISCONN
		       ? hd_fi_no(FI_EOPBADSTATE, "fi_listen of a passive endpoint that listens already")
		       : hd_fi_ret(rc, "fi_listen");
}

static int pep_listen(struct fid_pep *fid)
{
	struct hd_fi_pep *pep = (struct hd_fi_pep *)fid;
	int rc;

	if (!pep->eq)
		return hd_fi_no(FI_ENOEQ, "fi_listen of a passive endpoint without an event queue");
	hd_lock_take(&cm_lock);
	rc = pep_listen_locked(pep);
	hd_lock_give(&cm_lock);
	return rc;
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct hd_fi_pep *pep = (struct hd_fi_pep *)fid;
	struct hd_fi_eq *eq = hd_fi_eq_as(bfid, pep->fabric);

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_pep_bind takes no flags");
	if (!eq || pep->eq)
		return hd_fi_no(
			FI_EINVAL,
			"fi_pep_bind of what is no event queue of this fabric, or where there is one");
	hd_fi_eq_use(eq, 1);
	pep->eq = eq;
	return 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_pep *pep = (struct hd_fi_pep *)fid;

	if (command != FI_BACKLOG)
		return hd_fi_no(
			FI_ENOSYS,
			"fi_control with a command that passive endpoints have not: there is FI_BACKLOG");
	if (!arg || *(int *)arg < 0)
		return hd_fi_no(FI_EINVAL, "FI_BACKLOG without a number, or with one below 0");
	pep->backlog = *(int *)arg;
	hd_node_lock(pep->node);
	if (pep->service)
		hd_service_set_backlog(pep->service, (uint32_t)pep->backlog);
	hd_node_unlock(pep->node);
	return 0;
}

static int pep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return hd_fi_no(FI_ENOPROTOOPT, "fi_getopt of an option that passive endpoints have not");
	return hd_fi_cm_data_size(optval, optlen);
}

static int pep_close(struct fid *fid)
{
	struct hd_fi_pep *pep = (struct hd_fi_pep *)fid;
	struct hd_fi_fabric *fabric = pep->fabric;
	struct fi_info *info = pep->info;
	struct hd_fi_eq *eq = pep->eq;

	hd_lock_take(&cm_lock);
	LIST_REMOVE(pep, entry);
	hd_node_lock(pep->node);
	if (pep->service)
		hd_service_shut(pep->service);
	hd_node_unlock(pep->node);
	pep->magic = 0;
	pep->closed = true;
	LIST_INSERT_HEAD(&closed_peps, pep, entry);
	pep = pep_left(pep); /* or whoever answers the last request frees it, from here on */
	hd_lock_give(&cm_lock);
	pep_free(pep);
	if (eq)
		hd_fi_eq_use(eq, -1);
	atomic_fetch_sub(&fabric->users, 1);
	fi_freeinfo(info);
	return 0;
}

/*
 * One that the fabric's closed passive endpoints have left; its requests are
 * void. Caller holds the lock.
 */
static struct hd_fi_pep *closed_take(const struct hd_fi_fabric *fabric)
{
	struct connreq *c, *next;
	struct hd_fi_pep *pep;

	LIST_FOREACH(pep, &closed_peps, entry)
		if (pep->fabric == fabric)
			break;
	if (!pep)
		return NULL;
	LIST_REMOVE(pep, entry);
	for (c = LIST_FIRST(&connreqs); c; c = next) {
		next = LIST_NEXT(c, entry);
		if (c->pep != pep)
			continue;
		LIST_REMOVE(c, entry);
		free(c);
	}
	return pep;
}

void hd_fi_peps_end(const struct hd_fi_fabric *fabric)
{
	struct hd_fi_pep *pep;

	do {
		hd_lock_take(&cm_lock);
		pep = closed_take(fabric);
		hd_lock_give(&cm_lock);
		pep_free(pep);
	} while (pep);
}

static struct fi_ops pep_fid_ops = HD_FI_FID_OPS(pep_close, pep_bind, pep_control);

static struct fi_ops_ep pep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = hd_fi_no_cancel,
	.getopt = pep_getopt,
	.setopt = hd_fi_no_setopt,
	.tx_ctx = hd_fi_no_tx_ctx,
	.rx_ctx = hd_fi_no_rx_ctx,
	.rx_size_left = hd_fi_no_rx_size_left,
	.tx_size_left = hd_fi_no_tx_size_left,
};

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = hd_fi_no_getpeer,
	.connect = hd_fi_no_connect,
	.listen = pep_listen,
	.accept = hd_fi_no_accept,
	.reject = pep_reject,
	.shutdown = hd_fi_no_shutdown,
	.join = hd_fi_no_join,
};

/* ---- opening --------------------------------------------------------------------------------- */

static void pep_forked(void *arg)
{
	struct hd_fi_pep *pep = arg;

	hd_fi_die(&pep->fid.fid);
	pep->fabric = NULL; /* whose end is not the end of what the parent has left */
}

static int pep_fill(struct hd_fi_pep *pep, struct fi_info *info)
{
	const struct hd_node_attr node = {
		.front = "libfabric", .locked = true, .on_fork = pep_forked, .arg = pep
	};
	int rc;

	pep->info = fi_dupinfo(info);
	if (!pep->info)
		return hd_fi_no(FI_ENOMEM);
	if (info->src_addr && info->src_addrlen) {
		if (hd_fi_addr_copy(info->src_addr, info->src_addrlen, pep_family_of(pep), &pep->addr))
			return hd_fi_no(FI_EINVAL, "fi_passive_ep with a source address that is none");
		pep->has_addr = !hd_fi_addr_is_any(&pep->addr);
	}
	rc = hd_node_open(&node, &pep->node);
	if (rc)
		hd_error("cannot open a passive endpoint: %s%s", fi_strerror(-rc), hd_advice(-rc));
	return hd_fi_ret(rc, "fi_passive_ep");
}

int hd_fi_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **out, void *context)
{
	struct hd_fi_fabric *fabric = hd_fi_as(hd_fi_fabric, HD_FI_FABRIC, FI_CLASS_FABRIC, fabric_fid);
	struct hd_fi_pep *pep;
	int rc;

	if (!fabric || !info || !out || !info->ep_attr || info->ep_attr->type != FI_EP_MSG ||
	    !hd_fi_offer_of(fabric->fid.api_version, info))
		return hd_fi_no(
			FI_EINVAL,
			"fi_passive_ep without room for it, or with an info that fi_getinfo has not given for FI_EP_MSG");
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return hd_fi_no(FI_ENOMEM);
	rc = pep_fill(pep, info);
	if (rc) {
		fi_freeinfo(pep->info);
		free(pep);
		return rc;
	}
	pep->fid.fid = (struct fid){ .fclass = FI_CLASS_PEP, .context = context, .ops = &pep_fid_ops };
	pep->fid.ops = &pep_ops;
	pep->fid.cm = &pep_cm_ops;
	pep->magic = HD_FI_PEP;
	pep->fabric = fabric;
	pep->backlog = BACKLOG;
	atomic_fetch_add(&fabric->users, 1);
	hd_lock_take(&cm_lock);
	LIST_INSERT_HEAD(&peps, pep, entry);
	hd_lock_give(&cm_lock);
	*out = &pep->fid;
	return 0;
}
