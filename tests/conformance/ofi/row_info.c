/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_getinfo(3): what is offered, and what is refused; fi_mr(3) in the local modes. */
#include "ct.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ask(struct ct *ct, struct fi_info *hints)
{
	struct fi_info *info;
	int rc = ct_getinfo(ct, hints, &info);

	CT_TRUE(ct, !!info == !rc);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

static struct fi_info *usual(struct ct *ct)
{
	static const struct ct_want want;

	return ct_hints(ct, &want);
}

/*
 * arg: a capability that messages over host memory cannot have, one that does not exist, or one
 * that means something beside another only
 */
static void caps_refused(struct ct *ct)
{
	struct fi_info *h = usual(ct);

	h->caps |= ct->cs->arg;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
}

static void refused(struct ct *ct)
{
	struct fi_info *h;

	h = usual(ct);
	h->ep_attr->type = (enum fi_ep_type)99;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->addr_format = FI_ADDR_GNI;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->ep_attr->protocol = FI_PROTO_GNI;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->domain_attr->name = strdup("no such domain");
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->fabric_attr->name = strdup("no such fabric");
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->tx_attr->inject_size = SIZE_MAX;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->tx_attr->iov_limit = SIZE_MAX;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->rx_attr->iov_limit = SIZE_MAX;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->domain_attr->cq_data_size = 64;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
	h = usual(ct);
	h->tx_attr->caps = FI_MSG | FI_HMEM;
	CT_EQ(ct, ask(ct, h), -FI_ENODATA);
}

/* What is asked for is given, or more of it. */
static void at_least(struct ct *ct)
{
	struct fi_info *h = usual(ct), *info;

	h->tx_attr->inject_size = 8;
	h->tx_attr->iov_limit = 2;
	h->rx_attr->iov_limit = 2;
	h->tx_attr->size = 16;
	h->rx_attr->size = 16;
	h->domain_attr->cq_data_size = 4;
	h->ep_attr->max_msg_size = 1 << 20;
	h->tx_attr->msg_order = FI_ORDER_SAS;
	h->rx_attr->msg_order = FI_ORDER_SAS;
	CT_OK(ct, ct_getinfo(ct, h, &info));
	CT_EQ(ct, info->ep_attr->type, ct->conf->type);
	CT_EQ(ct, info->caps & (FI_MSG | FI_TAGGED), FI_MSG | FI_TAGGED);
	CT_EQ(ct, info->mode, 0);
	CT_TRUE(ct, info->tx_attr->inject_size >= 8 && info->tx_attr->iov_limit >= 2);
	CT_TRUE(ct, info->rx_attr->iov_limit >= 2);
	CT_TRUE(ct, info->tx_attr->size >= 16 && info->rx_attr->size >= 16);
	CT_TRUE(ct, info->domain_attr->cq_data_size >= 4 && info->ep_attr->max_msg_size >= 1 << 20);
	CT_TRUE(ct, info->tx_attr->msg_order & FI_ORDER_SAS);
	CT_TRUE(ct, info->rx_attr->msg_order & FI_ORDER_SAS);
	CT_TRUE(ct, info->fabric_attr->prov_name && info->fabric_attr->name && info->domain_attr->name);
	CT_TRUE(ct, !strcasecmp(info->fabric_attr->prov_name, ct->conf->provider));
	CT_TRUE(ct, info->src_addr && info->src_addrlen);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* Domain and fabric names that were given are found again by them. */
static void by_name(struct ct *ct)
{
	struct fi_info *h = usual(ct), *info, *again;

	CT_OK(ct, ct_getinfo(ct, h, &info));
	h->domain_attr->name = strdup(info->domain_attr->name);
	h->fabric_attr->name = strdup(info->fabric_attr->name);
	CT_OK(ct, ct_getinfo(ct, h, &again));
	CT_TRUE(ct, !strcmp(again->domain_attr->name, info->domain_attr->name));
	fi_freeinfo(again);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static const struct sockaddr_in *ipv4(struct ct *ct, const struct fi_info *info, const void *addr)
{
	if (info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "names are not IPv4 addresses");
	CT_TRUE(ct, addr != NULL);
	return addr;
}

/* Node and service with FI_SOURCE name the local end, and an endpoint has that name. */
static void source(struct ct *ct)
{
	struct fi_info *h = usual(ct), *info;
	const struct sockaddr_in *sin;
	struct sockaddr_in name;
	struct ct_dom dom = { .ct = ct };
	struct ct_ep e;
	char port[8];

	snprintf(port, sizeof(port), "%u", ct_port(0));
	CT_OK(ct, fi_getinfo(CT_API, "127.0.0.1", port, FI_SOURCE, h, &info));
	sin = ipv4(ct, info, info->src_addr);
	CT_EQ(ct, ntohl(sin->sin_addr.s_addr), INADDR_LOOPBACK);
	CT_EQ(ct, ntohs(sin->sin_port), ct_port(0));
	dom.info = info;
	CT_OK(ct, fi_fabric(info->fabric_attr, &dom.fabric, NULL));
	CT_OK(ct, fi_domain(dom.fabric, info, &dom.domain, NULL));
	ct_ep_open(&dom, &e);
	memcpy(&name, e.name, sizeof(name));
	CT_EQ(ct, ntohs(name.sin_port), ct_port(0));
	ct_ep_close(&e);
	ct_close(&dom);
	/* FI_SOURCE alone says nothing about which source, fi_getinfo(3). */
	info = NULL;
	CT_TRUE(ct, fi_getinfo(CT_API, NULL, NULL, FI_SOURCE, h, &info) < 0 || info);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static void destination(struct ct *ct)
{
	struct fi_info *h = usual(ct), *info;
	const struct sockaddr_in *sin;

	CT_OK(ct, fi_getinfo(CT_API, "127.0.0.1", "20124", 0, h, &info));
	sin = ipv4(ct, info, info->dest_addr);
	CT_EQ(ct, info->dest_addrlen, sizeof(*sin));
	CT_EQ(ct, ntohl(sin->sin_addr.s_addr), INADDR_LOOPBACK);
	CT_EQ(ct, ntohs(sin->sin_port), 20124);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static void numeric(struct ct *ct)
{
	struct fi_info *h = usual(ct), *info = NULL;

	CT_OK(ct, fi_getinfo(CT_API, "127.0.0.1", NULL, FI_SOURCE, h, &info));
	ipv4(ct, info, info->src_addr);
	fi_freeinfo(info);
	CT_OK(ct, fi_getinfo(CT_API, "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, h, &info));
	fi_freeinfo(info);
	info = NULL;
	/* A name is not resolved with this flag. */
	CT_TRUE(ct, fi_getinfo(CT_API, "localhost", NULL, FI_SOURCE | FI_NUMERICHOST, h, &info) < 0 && !info);
	CT_TRUE(ct, fi_getinfo(CT_API, "300.1.2.3", NULL, FI_SOURCE | FI_NUMERICHOST, h, &info) < 0 && !info);
	fi_freeinfo(h);
}

/*
 * Programs ask for the interface that they were written to: 1.0 to 1.17, not one that is to come.
 */
static void versions(struct ct *ct)
{
	static const uint32_t good[] = { FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 9),
					 FI_VERSION(1, 14), CT_API };
	struct fi_info *h = usual(ct), *info;
	size_t i;
	int rc;

	/* Up to 1.4 the registration mode is one of the old constants, fi_mr(3). */
	for (i = 0; i < CT_COUNT(good); i++) {
		h->domain_attr->mr_mode = i ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY
					    : FI_MR_UNSPEC;
		info = NULL;
		rc = fi_getinfo(good[i], ct_node(ct), NULL, ct_node(ct) ? FI_SOURCE : 0, h, &info);
		if (rc)
			ct_fail(ct, "version %u.%u: %s", FI_MAJOR(good[i]), FI_MINOR(good[i]),
				fi_strerror(-rc));
		CT_EQ(ct, info->fabric_attr->api_version, good[i]);
		fi_freeinfo(info);
	}
	info = NULL;
	CT_TRUE(ct, fi_getinfo(FI_VERSION(9, 0), NULL, NULL, 0, h, &info) < 0 && !info);
	fi_freeinfo(h);
}

static void duplicate(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	struct fi_info *dup;

	ct_open(ct, &dom, NULL);
	dup = fi_dupinfo(dom.info);
	CT_TRUE(ct, dup && dup != dom.info && !dup->next);
	CT_EQ(ct, dup->caps, dom.info->caps);
	CT_EQ(ct, dup->src_addrlen, dom.info->src_addrlen);
	CT_TRUE(ct, dup->src_addr != dom.info->src_addr);
	CT_TRUE(ct, !memcmp(dup->src_addr, dom.info->src_addr, dup->src_addrlen));
	CT_EQ(ct, dup->tx_attr->inject_size, dom.info->tx_attr->inject_size);
	CT_TRUE(ct, !strcmp(dup->domain_attr->name, dom.info->domain_attr->name));
	fi_freeinfo(dom.info);
	/* The copy opens an endpoint as well as the first one would have. */
	dom.info = dup;
	ct_ep_open(&dom, &e);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* An endpoint cannot be opened for more than was offered. */
static void endpoint_over(struct ct *ct)
{
	struct fid_ep *ep = NULL;
	struct ct_dom dom;
	uint64_t caps;

	ct_open(ct, &dom, NULL);
	caps = dom.info->caps;
	dom.info->caps |= FI_HMEM | FI_COLLECTIVE;
	CT_REFUSED(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
	dom.info->caps = caps;
	dom.info->tx_attr->iov_limit = SIZE_MAX;
	CT_REFUSED(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
	ct_close(&dom);
}

/* arg: mr_mode.  Descriptors of registered buffers are taken by every call. */
static void registered(struct ct *ct)
{
	static const struct ct_want none;
	struct fi_info *h = ct_hints(ct, &none);
	size_t len = 300000;
	char *buf = ct_alloc(ct, len);
	struct ct_dom dom = { .ct = ct };
	struct fid_mr *mr;
	struct ct_ep e;
	int rc;

	h->domain_attr->mr_mode = (int)ct->cs->arg;
	rc = ct_getinfo(ct, h, &dom.info);
	if (rc == -FI_ENODATA)
		ct_unsupported(ct, "fi_getinfo refuses mr_mode %s",
			       fi_tostr(&h->domain_attr->mr_mode, FI_TYPE_MR_MODE));
	CT_OK(ct, rc);
	fi_freeinfo(h);
	CT_OK(ct, fi_fabric(dom.info->fabric_attr, &dom.fabric, NULL));
	CT_OK(ct, fi_domain(dom.fabric, dom.info, &dom.domain, NULL));
	ct_ep_open(&dom, &e);
	ct_join(&e);
	CT_OK(ct, fi_mr_reg(dom.domain, buf, len, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL));
	if (ct->rank) {
		CT_POST(&e, fi_recv(e.ep, buf, len, fi_mr_desc(mr), FI_ADDR_UNSPEC, CTX(1)));
		CT_EQ(ct, ct_done(&e, CTX(1)), len);
		ct_verify(ct, buf, len, 6, "registered");
	} else {
		ct_fill(buf, len, 6);
		CT_POST(&e, fi_send(e.ep, buf, len, fi_mr_desc(mr), e.addr[1], CTX(1)));
		ct_done(&e, CTX(1));
	}
	ct_sync(ct, &e);
	CT_OK(ct, fi_close(&mr->fid));
	free(buf);
	ct_finish(&e);
}

static void regions(struct ct *ct)
{
	struct iovec iov[1];
	struct fi_mr_attr attr = { .mr_iov = iov, .iov_count = 1, .access = FI_SEND | FI_RECV };
	struct fid_mr *mr[100];
	struct ct_dom dom;
	char *buf = ct_alloc(ct, 100 * 4096);
	size_t i;

	ct_open(ct, &dom, NULL);
	for (i = 0; i < 100; i++) {
		iov[0] = (struct iovec){ buf + 4096 * i, 1 + 40 * i };
		attr.requested_key = i;
		if (i % 3 == 0)
			CT_OK(ct, fi_mr_reg(dom.domain, iov[0].iov_base, iov[0].iov_len, attr.access, 0, i, 0,
					    &mr[i], NULL));
		else if (i % 3 == 1)
			CT_OK(ct, fi_mr_regv(dom.domain, iov, 1, attr.access, 0, i, 0, &mr[i], NULL));
		else
			CT_OK(ct, fi_mr_regattr(dom.domain, &attr, 0, &mr[i]));
	}
	/* A domain with regions in it is busy. */
	CT_EQ(ct, fi_close(&dom.domain->fid), -FI_EBUSY);
	for (i = 0; i < 100; i++)
		CT_OK(ct, fi_close(&mr[i]->fid));
	CT_REFUSED(ct, fi_mr_regv(dom.domain, NULL, 1, FI_SEND, 0, 0, 0, &mr[0], NULL));
	free(buf);
	ct_close(&dom);
}

const struct ct_case ct_info[] = { { "INFO", "no-device-memory", { caps_refused }, .arg = FI_HMEM },
				   { "INFO", "no-unknown-capability", { caps_refused }, .arg = 1ULL << 60 },
				   { "INFO", "no-source-err-alone", { caps_refused }, .arg = FI_SOURCE_ERR },
				   { "INFO", "refused", { refused } },
				   { "INFO", "at-least", { at_least } },
				   { "INFO", "by-name", { by_name } },
				   { "INFO", "source", { source } },
				   { "INFO", "destination", { destination } },
				   { "INFO", "numeric-host", { numeric } },
				   { "INFO", "versions", { versions } },
				   { "INFO", "duplicate", { duplicate } },
				   { "INFO", "endpoint-over", { endpoint_over } },
				   { "MR", "local", CT_TWO(registered), .arg = FI_MR_LOCAL },
				   { "MR", "basic", CT_TWO(registered),
				     .arg = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
					    FI_MR_PROV_KEY },
				   { "MR", "none", CT_TWO(registered), .arg = 0 },
				   { "MR", "regions", { regions } },
				   { 0 } };
