/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Scalable endpoints, fi_endpoint(3): one name, and senders and receivers behind it. See ctx.h. */
#include "front/ofi/auth.h"
#include "front/ofi/ctx.h"
#include "front/ofi/stubs.h"
#include "front/ofi/trigger.h"

#include <stdlib.h>

/* ---- the engine's endpoints ------------------------------------------------------------------ */

static int set_readers(const struct hd_fi_sep *sep, struct hd_ep *ep, struct hd_fi_av *av)
{
	const struct hd_fi_reader reader = { .av = av,
					     .source_err = sep->info->caps & FI_SOURCE_ERR,
					     .prefix = sep->offer->mode & FI_MSG_PREFIX ? HD_FI_PREFIX : 0 };

	return hd_fi_auth_readers(sep->domain, ep, av ? &sep->auth : NULL, reader);
}

/* Caller holds the node's lock. */
static void eps_close(struct hd_fi_sep *sep)
{
	for (size_t i = sep->eps ? sep->ep_count : 0; i-- > 0;) {
		if (!sep->eps[i])
			continue;
		hd_ep_settle(sep->eps[i]);
		set_readers(sep, sep->eps[i], NULL);
		hd_ep_close(sep->eps[i]);
		sep->eps[i] = NULL;
	}
	hd_fi_auth_disable(&sep->auth);
}

static uint32_t sep_policy_of(const struct hd_fi_sep *sep)
{
	bool variable = hd_fi_variable(sep->offer, sep->info->caps);
	bool directed = hd_fi_directed(sep->offer, sep->info->caps);

	return HD_EP_OWN_PORT | (variable ? HD_EP_VARIABLE : 0) |
	       (variable || sep->offer->mode & FI_BUFFERED_RECV ? HD_EP_BUFFERED : 0) |
	       (directed ? HD_EP_DIRECTED : 0) | (directed && sep->domain->av_keys ? HD_EP_BY_KEY : 0);
}

/* Open the endpoints of all receivers, bound to nothing yet. Caller holds the node's lock. */
static int eps_open(struct hd_fi_sep *sep)
{
	struct hd_ep_attr attr = { .type = sep->info->ep_attr->type == FI_EP_DGRAM ? HD_EP_DGRAM : HD_EP_RDM,
				   .policy = sep_policy_of(sep),
				   .bind = sep->has_addr ? &sep->addr.sa : NULL,
				   .held = sep->named };
	int rc;

	if (sep->eps[0])
		return 0;
	if (!sep->av)
		return hd_fi_no(FI_ENOAV, "fi_enable of a scalable endpoint without an address vector");
	rc = hd_fi_auth_enable(sep->domain, &sep->auth, &sep->av, &attr);
	for (size_t i = 0; i < sep->ep_count && !rc; i++) {
		attr.beside = i ? sep->eps[0] : NULL;
		attr.slot = (uint32_t)i;
		rc = hd_fi_ret(hd_ep_open(sep->domain->node, &attr, &sep->eps[i]),
			       "fi_enable of a scalable endpoint");
		if (!rc)
			rc = set_readers(sep, sep->eps[i], sep->av);
	}
	if (rc)
		eps_close(sep);
	else
		hd_fi_name_free(&sep->named); /* it is the first one's now */
	return rc;
}

static int sep_enable(struct hd_fi_sep *sep)
{
	int rc;

	hd_fi_lock(sep->domain);
	rc = eps_open(sep);
	hd_fi_unlock(sep->domain);
	return rc;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Caller holds the node's lock. */
static int tx_enable(struct hd_fi_ep *ctx)
{
	struct hd_fi_sep *sep = ctx->sep;
	struct hd_ep_attr attr;
	int rc;

	hd_fi_ep_attr_of(ctx, &attr);
	attr.policy |= HD_EP_NAMELESS;
	attr.beside = sep->eps[0];
	hd_fi_auth_attr(&sep->auth, &attr);
	rc = hd_ep_open(ctx->node, &attr, &ctx->ep);
	if (rc)
		return hd_fi_ret(rc, "fi_enable of a transmit context");
	rc = set_readers(sep, ctx->ep, sep->av);
	if (rc) {
		hd_ep_close(ctx->ep);
		ctx->ep = NULL;
	}
	return rc;
}

/* Caller holds the node's lock. */
static void rx_bind(struct hd_fi_ep *ctx, bool bound)
{
	struct hd_ep_attr attr;

	hd_fi_ep_attr_of(ctx, &attr);
	if (!bound) {
		attr.rx_cq = NULL;
		attr.cntrs = (struct hd_ep_cntrs){ 0 };
	}
	hd_ep_rebind(ctx->sep->eps[ctx->index], &attr);
	ctx->ep = bound ? ctx->sep->eps[ctx->index] : NULL;
}

int hd_fi_ctx_enable(struct hd_fi_ep *ctx)
{
	struct hd_fi_sep *sep = ctx->sep;
	int rc;

	ctx->av = sep->av;
	rc = hd_fi_ep_check_bound(ctx);
	if (rc || ctx->ep)
		return rc;
	hd_fi_lock(ctx->domain);
	rc = eps_open(sep);
	ctx->av = sep->av;
	if (!rc && ctx->fid.fid.fclass == FI_CLASS_TX_CTX)
		rc = tx_enable(ctx);
	else if (!rc)
		rx_bind(ctx, true);
	if (!rc) {
		hd_fi_ep_settle(ctx);
		hd_fi_ep_tables(ctx);
		hd_fi_aliases_sync(ctx);
	}
	hd_fi_unlock(ctx->domain);
	return rc;
}

int hd_fi_ctx_close(struct hd_fi_ep *ctx)
{
	struct hd_fi_sep *sep = ctx->sep;
	bool sends = ctx->fid.fid.fclass == FI_CLASS_TX_CTX;

	hd_fi_lock(ctx->domain);
	if (ctx->ep && sends) {
		hd_ep_send_off(ctx->ep);
		hd_ep_settle(ctx->ep);
		set_readers(sep, ctx->ep, NULL);
		hd_ep_close(ctx->ep);
	} else if (ctx->ep) {
		hd_ep_settle(ctx->ep);
		rx_bind(ctx, false);
	}
	hd_fi_triggered_drop(ctx);
	(sends ? sep->tx : sep->rx)[ctx->index] = NULL;
	hd_fi_unlock(ctx->domain);
	hd_fi_mr_drop_ep(ctx);
	ctx->av = NULL; /* bound to the endpoint */
	hd_fi_ep_unbind(ctx);
	ctx->magic = 0;
	hd_fi_domain_drop(ctx->domain, &ctx->object);
	atomic_fetch_sub(&sep->users, 1);
	free(ctx);
	return 0;
}

/* What of the endpoint's info holds for a context with these attributes; NULL: all. */
static int ctx_info(const struct hd_fi_sep *sep, struct fi_tx_attr *tx, struct fi_rx_attr *rx,
		    struct fi_info *out)
{
	*out = *sep->info;
	if (tx)
		out->tx_attr = tx;
	if (rx)
		out->rx_attr = rx;
	if ((tx && tx->caps & ~sep->info->caps) || (rx && rx->caps & ~sep->info->caps))
		return hd_fi_no(FI_EINVAL, "a context with capabilities that the scalable endpoint has not");
	return hd_fi_offer_check(sep->offer, sep->domain->fabric->fid.api_version, out)
		       ? hd_fi_no(FI_EINVAL, "a context with attributes that the scalable endpoint has not")
		       : 0;
}

static int ctx_open(struct hd_fi_sep *sep, size_t fclass, size_t index, const struct fi_info *info,
		    struct fid_ep **out, void *context)
{
	bool sends = fclass == FI_CLASS_TX_CTX;
	struct hd_fi_ep *ctx = calloc(1, sizeof(*ctx)), **place = &(sends ? sep->tx : sep->rx)[index];
	bool taken;

	if (!ctx)
		return hd_fi_no(FI_ENOMEM);
	hd_fi_ep_init(ctx, sep->domain, sep->offer, fclass, context);
	hd_fi_ep_take_info(ctx, info);
	(sends ? &ctx->bound.rx : &ctx->bound.tx)->caps = 0;
	ctx->sep = sep;
	ctx->index = (uint32_t)index;
	hd_fi_lock(sep->domain);
	taken = *place;
	if (!taken)
		*place = ctx;
	hd_fi_unlock(sep->domain);
	if (taken) {
		free(ctx);
		return hd_fi_no(FI_EBUSY, "the scalable endpoint's context of that index is open");
	}
	atomic_fetch_add(&sep->users, 1);
	hd_fi_domain_add(sep->domain, &ctx->object, &ctx->fid.fid);
	*out = &ctx->fid;
	return 0;
}

static struct hd_fi_sep *sep_of(struct fid_ep *fid)
{
	return hd_fi_as(hd_fi_sep, HD_FI_SEP, FI_CLASS_SEP, fid);
}

/* The attributes that a context got. */
static void tx_report(const struct fi_info *info, struct fi_tx_attr *attr)
{
	if (attr && !attr->caps)
		*attr = *info->tx_attr;
}

static void rx_report(const struct fi_info *info, struct fi_rx_attr *attr)
{
	if (attr && !attr->caps)
		*attr = *info->rx_attr;
}

static int sep_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **out,
		      void *context)
{
	struct hd_fi_sep *sep = sep_of(fid);
	struct fi_info info;
	int rc;

	if (!sep || !out || index < 0 || (size_t)index >= sep->tx_count || ctx_info(sep, attr, NULL, &info))
		return hd_fi_no(
			FI_EINVAL,
			"fi_tx_context with an index beyond tx_ctx_cnt, or attributes that cannot be");
	rc = ctx_open(sep, FI_CLASS_TX_CTX, (size_t)index, &info, out, context);
	if (!rc)
		tx_report(sep->info, attr);
	return rc;
}

static int sep_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **out,
		      void *context)
{
	struct hd_fi_sep *sep = sep_of(fid);
	struct fi_info info;
	int rc;

	if (!sep || !out || index < 0 || (size_t)index >= sep->rx_count || ctx_info(sep, NULL, attr, &info))
		return hd_fi_no(
			FI_EINVAL,
			"fi_rx_context with an index beyond rx_ctx_cnt, or attributes that cannot be");
	rc = ctx_open(sep, FI_CLASS_RX_CTX, (size_t)index, &info, out, context);
	if (!rc)
		rx_report(sep->info, attr);
	return rc;
}

/* ---- the endpoint itself --------------------------------------------------------------------- */

static int sep_close(struct fid *fid)
{
	struct hd_fi_sep *sep = (struct hd_fi_sep *)fid;

	if (atomic_load(&sep->users))
		return hd_fi_no(FI_EBUSY, "fi_close of a scalable endpoint with open contexts");
	hd_fi_lock(sep->domain);
	eps_close(sep);
	hd_fi_name_free(&sep->named);
	hd_fi_unlock(sep->domain);
	if (sep->av)
		atomic_fetch_sub(&hd_fi_av_whole(sep->av)->users, 1);
	sep->magic = 0;
	hd_fi_domain_drop(sep->domain, &sep->object);
	fi_freeinfo(sep->info);
	free(sep->tx);
	free(sep->rx);
	free(sep->eps);
	free(sep);
	return 0;
}

static int sep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct hd_fi_sep *sep = (struct hd_fi_sep *)fid;
	struct hd_fi_av *av = hd_fi_as(hd_fi_av, HD_FI_AV, FI_CLASS_AV, bfid);

	if (!av || sep->av)
		return hd_fi_no(FI_EINVAL,
				"fi_scalable_ep_bind of what is no address vector, or where there is one");
	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_scalable_ep_bind of an address vector takes no flags");
	if (av->domain != sep->domain)
		return hd_fi_no(FI_EDOMAIN, "fi_scalable_ep_bind of an address vector of another domain");
	sep->av = av;
	atomic_fetch_add(&av->users, 1);
	return 0;
}

static int sep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE
		       ? sep_enable((struct hd_fi_sep *)fid)
		       : hd_fi_no(FI_ENOSYS, "fi_control with a command that scalable endpoints have not");
}

static struct fi_ops sep_fid_ops = HD_FI_FID_OPS(sep_close, sep_bind, sep_control);

static int sep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct hd_fi_sep *sep = (struct hd_fi_sep *)fid;
	union hd_fi_addr name;
	int rc;

	if (!addr || hd_fi_addr_copy(addr, addrlen, hd_fi_family(sep->domain->addr_format), &name))
		return hd_fi_no(FI_EINVAL, "fi_setname without an address of the endpoint's format");
	if (sep->eps[0])
		return hd_fi_no(FI_EOPBADSTATE, "fi_setname after fi_enable");
	rc = hd_fi_name_hold(sep->domain, &sep->addr, &name, &sep->named);
	if (rc)
		return rc;
	sep->addr = name;
	sep->has_addr = !hd_fi_addr_is_any(&name);
	return 0;
}

/* Of the endpoint, and of each of its contexts: they share it. */
static int sep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	const struct hd_fi_sep *sep = fid->fclass == FI_CLASS_SEP ? (struct hd_fi_sep *)fid
								  : ((struct hd_fi_ep *)fid)->sep;
	struct sockaddr_storage name;
	int rc;

	if (!addrlen)
		return hd_fi_no(FI_EINVAL, "fi_getname without a length");
	if (sep->named)
		return hd_fi_name_tell(sep->domain, sep->named, addr, addrlen);
	if (!sep->eps[0] && sep->has_addr && hd_fi_addr_is_whole(&sep->addr))
		return hd_fi_addr_out(&sep->addr.sa, addr, addrlen);
	if (!sep->eps[0])
		return hd_fi_no(FI_EOPBADSTATE,
				"fi_getname before fi_enable, of an endpoint without an address and port");
	hd_fi_lock(sep->domain);
	rc = hd_ep_name(sep->eps[0], hd_fi_family(sep->domain->addr_format), &name);
	hd_fi_unlock(sep->domain);
	return rc ? hd_fi_ret(rc) : hd_fi_addr_out((struct sockaddr *)&name, addr, addrlen);
}

static int ctx_setname(fid_t fid, void *addr, size_t addrlen)
{
	return hd_fi_no(FI_ENOSYS, "fi_setname of a context: the scalable endpoint has the name");
}

#define CM_OPS(SETNAME) \
	{ \
		.size = sizeof(struct fi_ops_cm), .setname = (SETNAME), .getname = sep_getname, \
		.getpeer = hd_fi_no_getpeer, .connect = hd_fi_no_connect, .listen = hd_fi_no_listen, \
		.accept = hd_fi_no_accept, .reject = hd_fi_no_reject, .shutdown = hd_fi_no_shutdown, \
		.join = hd_fi_no_join, \
	}

static struct fi_ops_cm sep_cm_ops = CM_OPS(sep_setname);
struct fi_ops_cm hd_fi_ctx_cm_ops = CM_OPS(ctx_setname);

static struct fi_ops_ep sep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = hd_fi_no_cancel,
	.getopt = hd_fi_no_getopt,
	.setopt = hd_fi_no_setopt,
	.tx_ctx = sep_tx_ctx,
	.rx_ctx = sep_rx_ctx,
	.rx_size_left = hd_fi_no_rx_size_left,
	.tx_size_left = hd_fi_no_tx_size_left,
};

static size_t contexts(size_t wanted, uint64_t caps, uint64_t direction)
{
	if (!(caps & direction))
		return 0;
	return wanted ? wanted : 1;
}

static int sep_fill(struct hd_fi_sep *sep, const struct fi_info *info)
{
	uint64_t caps = info->caps | hd_fi_modifiers(info->caps);

	sep->info = fi_dupinfo(info);
	if (!sep->info)
		return hd_fi_no(FI_ENOMEM);
	sep->tx_count = contexts(info->ep_attr->tx_ctx_cnt, caps, FI_SEND | FI_READ | FI_WRITE);
	sep->rx_count = contexts(info->ep_attr->rx_ctx_cnt, caps, FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE);
	sep->ep_count = sep->rx_count ? sep->rx_count : 1;
	sep->tx = calloc(sep->tx_count + 1, sizeof(struct hd_fi_ep *));
	sep->rx = calloc(sep->rx_count + 1, sizeof(struct hd_fi_ep *));
	sep->eps = calloc(sep->ep_count, sizeof(struct hd_ep *));
	if (!sep->tx || !sep->rx || !sep->eps)
		return hd_fi_no(FI_ENOMEM);
	if (!info->src_addr || !info->src_addrlen)
		return 0;
	if (hd_fi_addr_copy(info->src_addr, info->src_addrlen, hd_fi_family(sep->domain->addr_format),
			    &sep->addr))
		return hd_fi_no(FI_EINVAL, "fi_scalable_ep with a source address that is none");
	sep->has_addr = !hd_fi_addr_is_any(&sep->addr);
	return 0;
}

static bool may_scale(const struct fi_info *info)
{
	const struct fi_ep_attr *attr = info ? info->ep_attr : NULL;

	if (!attr || (attr->type != FI_EP_RDM && attr->type != FI_EP_DGRAM))
		return false;
	return attr->tx_ctx_cnt != FI_SHARED_CONTEXT && attr->rx_ctx_cnt != FI_SHARED_CONTEXT;
}

int hd_fi_sep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	const struct hd_fi_offer *offer;
	struct hd_fi_sep *sep;
	int rc;

	if (!domain || !out || !may_scale(info))
		return hd_fi_no(
			FI_EINVAL,
			"fi_scalable_ep without a domain or room for it, or an info that is for connected endpoints or shared contexts");
	offer = hd_fi_offer_of(domain->fabric->fid.api_version, info);
	sep = offer ? calloc(1, sizeof(*sep)) : NULL;
	if (!sep)
		return offer ? hd_fi_no(FI_ENOMEM)
			     : hd_fi_no(FI_EINVAL,
					"fi_scalable_ep with an info that fi_getinfo has not given");
	sep->domain = domain;
	sep->offer = offer;
	sep->fid =
		(struct fid_ep){ .fid = { .fclass = FI_CLASS_SEP, .context = context, .ops = &sep_fid_ops },
				 .ops = &sep_ops,
				 .cm = &sep_cm_ops,
				 .msg = &hd_fi_no_msg_ops,
				 .rma = &hd_fi_no_rma_ops,
				 .tagged = &hd_fi_no_tagged_ops,
				 .atomic = &hd_fi_no_atomic_ops,
				 .collective = &hd_fi_no_collective_ops };
	sep->magic = HD_FI_SEP;
	hd_fi_domain_add(domain, &sep->object, &sep->fid.fid);
	rc = sep_fill(sep, info);
	if (!rc)
		rc = hd_fi_auth_ep(domain, info, &sep->auth.own);
	if (rc) {
		sep_close(&sep->fid.fid);
		return rc;
	}
	*out = &sep->fid;
	return 0;
}
