/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What is an endpoint only in part, fi_endpoint(3): all of it is struct hd_fi_ep with a class of
 * its own, so that the data calls are the same.
 *
 *	FI_CLASS_SRX_CTX  shared receive context: a receive queue, and a nameless endpoint that
 *	                  posts to it (shared.c)
 *	FI_CLASS_TX_CTX   one of a scalable endpoint's senders: a nameless endpoint beside its first
 *	                  one (sep.c)
 *	FI_CLASS_RX_CTX   one of its receivers: the endpoint at slot `index` of its name (sep.c)
 *	an alias          another handle for an endpoint, with default flags of its own (alias.c)
 */
#ifndef HEDDLE_FRONT_OFI_CTX_H
#define HEDDLE_FRONT_OFI_CTX_H

#include "front/ofi/ep.h"
#include "front/ofi/offer.h"

/* A shared transmit context: it only bounds what its endpoints have under way. */
struct hd_fi_stx {
	struct fid_stx fid;
	uint32_t magic;
	struct hd_fi_domain *domain;
	struct hd_txq *txq;
	uint64_t caps, inject_max;
	size_t iov_limit;
	_Atomic int users; /* the program, until it has closed it, and endpoints */
	struct hd_fi_object object;
};

/*
 * A scalable endpoint. Its receivers' endpoints stand from the moment on when it or the first of
 * its contexts is enabled, so that what is sent to a context early waits for it; the first one also
 * stands for the name, and so for the source of what its senders send.
 */
struct hd_fi_sep {
	struct fid_ep fid;
	uint32_t magic;
	struct hd_fi_domain *domain;
	const struct hd_fi_offer *offer;
	struct fi_info *info; /* a copy */
	struct hd_fi_av *av;
	struct hd_fi_auth auth; /* of it and all its contexts */
	bool has_addr;
	union hd_fi_addr addr;
	struct hd_bound_port *named; /* as hd_fi_ep.named */
	size_t tx_count, rx_count;
	struct hd_fi_ep **tx, **rx; /* contexts by index; NULL where none is open */
	struct hd_ep **eps;	    /* receivers' endpoints, at least one; all NULL until enabled */
	size_t ep_count;
	_Atomic int users; /* contexts */
	struct hd_fi_object object;
};

int hd_fi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out, void *context);
/* hd_fi_srx_limits: what FI_OPT_BUFFERED_LIMIT and FI_OPT_BUFFERED_MIN say has changed. */
int hd_fi_srx_limits(struct hd_fi_ep *srx);
int hd_fi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **out, void *context);
int hd_fi_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context);

/*
 * hd_fi_ep_bind_srx, hd_fi_ep_bind_stx: an endpoint takes part in a shared context. 0, -FI_EINVAL
 * when it has one, or asks for more than the context has, -FI_EDOMAIN. Undone by
 * hd_fi_ep_leave_srx, before the endpoint's hd_ep_close, and hd_fi_ep_leave_stx, after it.
 */
int hd_fi_ep_bind_srx(struct hd_fi_ep *ep, struct hd_fi_ep *srx, uint64_t flags);
int hd_fi_ep_bind_stx(struct hd_fi_ep *ep, struct hd_fi_stx *stx, uint64_t flags);
void hd_fi_ep_leave_srx(struct hd_fi_ep *ep);
void hd_fi_ep_leave_stx(const struct hd_fi_sharing *sharing);

/*
 * hd_fi_ep_share puts shared contexts into the attributes of an endpoint that is being enabled;
 * hd_fi_ep_shared follows when that has worked. Caller holds the node's lock. -FI_EOPBADSTATE: one
 * to receive from was announced and is not bound; -FI_EINVAL: those who share a receive context
 * have to share their AV.
 */
int hd_fi_ep_share(const struct hd_fi_ep *ep, struct hd_ep_attr *attr);
void hd_fi_ep_shared(struct hd_fi_ep *ep);

/*
 * hd_fi_ctx_enable: fi_enable(3) of a context of a scalable endpoint. hd_fi_ctx_close: fi_close(3)
 * of it, or of a shared receive context.
 */
int hd_fi_ctx_enable(struct hd_fi_ep *ep);
int hd_fi_ctx_close(struct hd_fi_ep *ep);
int hd_fi_srx_close(struct hd_fi_ep *ep);

/*
 * hd_fi_ep_alias: FI_ALIAS. hd_fi_alias_close. hd_fi_aliases_sync: the endpoint has been
 * enabled: its aliases are, too.
 */
int hd_fi_ep_alias(struct hd_fi_ep *ep, const struct fi_alias *arg);
int hd_fi_alias_close(struct hd_fi_ep *ep);
void hd_fi_aliases_sync(struct hd_fi_ep *ep);

/* What sep.c and shared.c need of ep.c. */
void hd_fi_ep_init(struct hd_fi_ep *ep, struct hd_fi_domain *domain, const struct hd_fi_offer *offer,
		   size_t fclass, void *context);
void hd_fi_ep_take_info(struct hd_fi_ep *ep, const struct fi_info *info);
void hd_fi_ep_attr_of(const struct hd_fi_ep *ep, struct hd_ep_attr *attr);
int hd_fi_ep_check_bound(const struct hd_fi_ep *ep);

extern struct fi_ops_cm hd_fi_ctx_cm_ops; /* sep.c */

#endif
