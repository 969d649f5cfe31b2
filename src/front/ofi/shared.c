/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Shared contexts, fi_endpoint(3): receive buffers for several endpoints, and one bound for what
 * several have under way. A shared receive context has no completion queue: what an endpoint takes
 * completes at that endpoint; what none has taken (fi_cancel, FI_PEEK that finds nothing) is
 * reported by the first endpoint that shares it and has one.
 */
#include "front/ofi/ctx.h"
#include "front/ofi/stubs.h"
#include "front/ofi/trigger.h"

#include <stdlib.h>

/* Whose messages are handed over whatever their length asks for that. */
#define SRX_CAPS(offer) ((offer)->rx.caps & ~FI_VARIABLE_MSG)

/* The AV of a receive context that no endpoint shares yet: it has no addresses. */
static struct hd_fi_av no_av;

/* ---- receiving ------------------------------------------------------------------------------- */

/*
 * The row of endpoints with the modes that the attributes name; NULL when there is
 * none, or they ask for more.
 */
static const struct hd_fi_offer *srx_offer(uint32_t version, const struct fi_rx_attr *attr)
{
	struct fi_rx_attr rx = *attr;
	struct fi_info info = { .rx_attr = &rx };

	for (size_t i = 0; i < hd_fi_offer_count; i++) {
		const struct hd_fi_offer *offer = &hd_fi_offers[i];

		if (offer->series == hd_fi_series(version) && offer->ep.type == FI_EP_RDM &&
		    offer->mode == (attr->mode & hd_fi_rx_modes(version)))
			return rx.caps & ~(offer->rx.caps | FI_MULTICAST) ||
					       hd_fi_offer_check(offer, version, &info)
				       ? NULL
				       : offer;
	}
	return NULL;
}

static int buffer(struct hd_fi_ep *srx)
{
	const struct hd_buffered_attr attr = { (void *)&srx->fid, srx->attr.buffered_limit,
					       srx->attr.buffered_min };

	return hd_rq_buffer(srx->sharing.rq, &attr);
}

int hd_fi_srx_limits(struct hd_fi_ep *srx)
{
	int rc;

	hd_fi_lock(srx->domain);
	rc = buffer(srx);
	hd_fi_unlock(srx->domain);
	return hd_fi_ret(rc, "a shared receive context's limits");
}

static int srx_make(struct hd_fi_ep *srx)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM,
				   .policy = HD_EP_NAMELESS | HD_EP_DIRECTED,
				   .min_multi_recv = srx->attr.min_multi_recv };
	bool directed = hd_fi_directed(srx->offer, srx->bound.rx.caps);
	int rc;

	hd_fi_lock(srx->domain);
	rc = hd_rq_open(srx->node, directed, &srx->sharing.rq);
	attr.rq = srx->sharing.rq;
	if (!rc) {
		if (directed && srx->domain->av_keys)
			hd_rq_group(srx->sharing.rq);
		if (srx->call.buffered)
			rc = buffer(srx);
		if (!rc)
			rc = hd_ep_open(srx->node, &attr, &srx->ep);
		if (rc)
			hd_rq_close(srx->sharing.rq);
	}
	hd_fi_unlock(srx->domain);
	return hd_fi_ret(rc, "fi_srx_context");
}

int hd_fi_srx_open(struct fid_domain *domain_fid, struct fi_rx_attr *attr, struct fid_ep **out, void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	const struct fi_rx_attr usual = { 0 };
	const struct hd_fi_offer *offer;
	struct fi_info info = { .rx_attr = attr };
	struct hd_fi_ep *srx;
	int rc;

	if (!domain || !out)
		return hd_fi_no(FI_EINVAL, "fi_srx_context without a domain, or room for the context");
	offer = srx_offer(hd_fi_version(domain), attr ? attr : &usual);
	if (!offer)
		return hd_fi_no(FI_EINVAL, "fi_srx_context with attributes that cannot be kept");
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return hd_fi_no(FI_ENOMEM);
	hd_fi_ep_init(srx, domain, offer, FI_CLASS_SRX_CTX, context);
	info.caps = SRX_CAPS(offer);
	hd_fi_ep_take_info(srx, &info);
	srx->bound.tx.caps = 0;
	srx->av = &no_av;
	rc = srx_make(srx);
	if (rc) {
		free(srx);
		return rc;
	}
	hd_fi_ep_settle(srx);
	hd_fi_ep_tables(srx);
	hd_fi_domain_add(domain, &srx->object, &srx->fid.fid);
	*out = &srx->fid;
	return 0;
}

int hd_fi_srx_close(struct hd_fi_ep *srx)
{
	hd_fi_lock(srx->domain);
	hd_ep_close(srx->ep);
	hd_rq_close(srx->sharing.rq);
	hd_fi_triggered_drop(srx);
	hd_fi_unlock(srx->domain);
	srx->magic = 0;
	hd_fi_domain_drop(srx->domain, &srx->object);
	free(srx);
	return 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Gives back a hold on the context: the opener's, or an endpoint's. The last one ends it. */
static void stx_put(struct hd_fi_stx *stx)
{
	if (atomic_fetch_sub(&stx->users, 1) > 1)
		return;
	hd_fi_lock(stx->domain);
	hd_txq_close(stx->txq); /* its endpoints are closed */
	hd_fi_unlock(stx->domain);
	hd_fi_domain_drop(stx->domain, &stx->object);
	free(stx);
}

/*
 * No page orders this after the close of its endpoints, and nothing is lost if it comes before:
 * they keep what bounds them.
 */
static int stx_close(struct fid *fid)
{
	struct hd_fi_stx *stx = (struct hd_fi_stx *)fid;

	if (stx->magic != HD_FI_STX)
		return hd_fi_no(FI_EINVAL, "fi_close of a shared transmit context that is closed");
	stx->magic = 0;
	stx_put(stx);
	return 0;
}

static struct fi_ops stx_fid_ops = HD_FI_FID_OPS(stx_close, hd_fi_no_bind, hd_fi_no_control);

static int stx_check(uint32_t version, const struct fi_tx_attr *attr)
{
	const struct hd_fi_offer *offer = hd_fi_offer_plain(version);
	struct fi_tx_attr tx = *attr;
	struct fi_info info = { .tx_attr = &tx };

	if (tx.caps & ~offer->tx.caps)
		return hd_fi_no(FI_EINVAL, "fi_stx_context with capabilities that there are not");
	return hd_fi_offer_check(offer, version, &info)
		       ? hd_fi_no(FI_EINVAL, "fi_stx_context with attributes that cannot be kept")
		       : 0;
}

int hd_fi_stx_open(struct fid_domain *domain_fid, struct fi_tx_attr *attr, struct fid_stx **out,
		   void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	const struct fi_tx_attr *a = attr ? attr : &hd_fi_offers[0].tx;
	struct hd_fi_stx *stx;
	int rc;

	if (!domain || !out || stx_check(hd_fi_version(domain), a))
		return hd_fi_no(
			FI_EINVAL,
			"fi_stx_context without a domain, room for the context, or attributes that can be kept");
	stx = calloc(1, sizeof(*stx));
	if (!stx)
		return hd_fi_no(FI_ENOMEM);
	hd_fi_lock(domain);
	rc = hd_txq_open(domain->node, (uint32_t)a->size, &stx->txq);
	hd_fi_unlock(domain);
	if (rc) {
		free(stx);
		return hd_fi_ret(rc, "fi_stx_context");
	}
	stx->fid.fid = (struct fid){ .fclass = FI_CLASS_STX_CTX, .context = context, .ops = &stx_fid_ops };
	stx->fid.ops = &hd_fi_no_ep_ops;
	stx->domain = domain;
	stx->magic = HD_FI_STX;
	atomic_init(&stx->users, 1);
	stx->caps = a->caps ? a->caps : UINT64_MAX;
	stx->inject_max = a->inject_size ? a->inject_size : UINT64_MAX;
	stx->iov_limit = a->iov_limit ? a->iov_limit : SIZE_MAX;
	hd_fi_domain_add(domain, &stx->object, &stx->fid.fid);
	*out = &stx->fid;
	return 0;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* Does the context have what the endpoint needs? */
static bool shared_covers(uint64_t have, uint64_t need)
{
	return !(need & ~(have | FI_SEND | FI_RECV));
}

int hd_fi_ep_bind_srx(struct hd_fi_ep *ep, struct hd_fi_ep *srx, uint64_t flags)
{
	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_ep_bind of a shared receive context takes no flags");
	if (srx->domain != ep->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_ep_bind of a shared receive context of another domain");
	if (ep->sharing.srx || ep->sep || ep->attr.prefix != srx->attr.prefix ||
	    ep->call.buffered != srx->call.buffered ||
	    hd_fi_variable(ep->offer, ep->bound.rx.caps) != hd_fi_variable(srx->offer, srx->bound.rx.caps) ||
	    !shared_covers(srx->bound.rx.caps, ep->bound.rx.caps) || ep->attr.rx_iov > srx->attr.rx_iov ||
	    ep->attr.rx_order & ~srx->attr.rx_order)
		return hd_fi_no(
			FI_EINVAL,
			"fi_ep_bind of a shared receive context that can less than the endpoint, or where there is one");
	ep->sharing.srx = srx;
	atomic_fetch_add(&srx->sharing.users, 1);
	return 0;
}

/* The endpoint is enabled already: nothing may be under way. */
static int txq_set(struct hd_fi_ep *ep, struct hd_fi_stx *stx)
{
	int rc;

	hd_fi_lock(ep->domain);
	rc = hd_ep_set_txq(ep->ep, stx->txq);
	hd_fi_unlock(ep->domain);
	return rc;
}

int hd_fi_ep_bind_stx(struct hd_fi_ep *ep, struct hd_fi_stx *stx, uint64_t flags)
{
	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_ep_bind of a shared transmit context takes no flags");
	if (stx->domain != ep->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_ep_bind of a shared transmit context of another domain");
	if (ep->sharing.stx || ep->sep || !shared_covers(stx->caps, ep->bound.tx.caps) ||
	    ep->call.max[HD_FI_OF_MSG].inject > stx->inject_max || ep->attr.tx_iov > stx->iov_limit)
		return hd_fi_no(
			FI_EINVAL,
			"fi_ep_bind of a shared transmit context that can less than the endpoint, or where there is one");
	if (ep->ep && txq_set(ep, stx))
		return hd_fi_no(FI_EOPBADSTATE,
				"fi_ep_bind of a shared transmit context after something was posted");
	ep->sharing.stx = stx;
	atomic_fetch_add(&stx->users, 1);
	return 0;
}

void hd_fi_ep_leave_srx(struct hd_fi_ep *ep)
{
	if (ep->sharing.srx) {
		hd_fi_lock(ep->domain);
		if (ep->ep && !--ep->sharing.srx->sharing.sharers)
			ep->sharing.srx->av = &no_av;
		hd_fi_unlock(ep->domain);
		atomic_fetch_sub(&ep->sharing.srx->sharing.users, 1);
	}
}

void hd_fi_ep_leave_stx(const struct hd_fi_sharing *sharing)
{
	if (sharing->stx)
		stx_put(sharing->stx);
}

int hd_fi_ep_share(const struct hd_fi_ep *ep, struct hd_ep_attr *attr)
{
	if (ep->sharing.wants_srx && !ep->sharing.srx) /* a transmit context may come later */
		return hd_fi_no(
			FI_EOPBADSTATE,
			"fi_enable of an endpoint opened for a shared receive context, and none is bound");
	if (ep->sharing.srx && !hd_fi_ep_connects(ep) && ep->sharing.srx->av != &no_av &&
	    ep->sharing.srx->av != ep->av)
		return hd_fi_no(FI_EINVAL,
				"endpoints of one shared receive context are to have one address vector");
	if (ep->sharing.srx) {
		attr->rq = ep->sharing.srx->sharing.rq;
		attr->policy |= ep->bound.rx.selective ? HD_EP_RX_SELECTIVE : 0;
	}
	if (ep->sharing.stx)
		attr->txq = ep->sharing.stx->txq;
	return 0;
}

void hd_fi_ep_shared(struct hd_fi_ep *ep)
{
	if (!ep->sharing.srx)
		return;
	ep->sharing.srx->sharing.sharers++;
	if (!hd_fi_ep_connects(ep))
		ep->sharing.srx->av = ep->av;
	if (ep->bound.rx.cq && ep->bound.rx.cq->format < FI_CQ_FORMAT_DATA)
		ep->sharing.srx->sharing.peek_plain = true;
	hd_fi_ep_settle(ep->sharing.srx);
}
