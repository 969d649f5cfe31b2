/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_getinfo(3): an info for each offer that hints leave. An endpoint listens at every address of
 * the host unless it is told one, so the source address that an info carries is the wildcard; an
 * endpoint's own name comes from fi_getname(3).
 */
#include "base/config.h"
#include "base/log.h"
#include "front/ofi/auth.h"

#include <stdlib.h>
#include <string.h>

/*
 * Asked by providers that stack endpoints of their own on others: they have nothing to add to ours.
 */
#define CORE_PROVIDERS_ONLY (UINT64_C(1) << 59)
#define LIBRARY_INTERNAL (UINT64_C(0x3f) << 58)
#define FLAGS (FI_NUMERICHOST | FI_SOURCE | FI_PROV_ATTR_ONLY | FI_RESCAN)

static_assert(CORE_PROVIDERS_ONLY & LIBRARY_INTERNAL, "it is one of the library's own flags");

static struct fi_info *info_offered(const struct hd_fi_offer *offer)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = offer->caps;
	info->mode = offer->mode;
	*info->tx_attr = offer->tx;
	*info->rx_attr = offer->rx;
	info->tx_attr->mode = offer->mode & FI_MSG_PREFIX;
	info->rx_attr->mode = offer->mode;
	*info->ep_attr = offer->ep;
	hd_fi_offer_domain(info->domain_attr);
	info->rx_attr->total_buffered_recv = hd_config_size(HD_SET_UNEXPECTED_MAX);
	info->domain_attr->name = strdup(HD_FI_DOMAIN_NAME);
	info->fabric_attr->name = strdup(HD_FI_FABRIC_NAME);
	if (!info->domain_attr->name || !info->fabric_attr->name) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct route {
	int family; /* AF_UNSPEC until something decides it */
	bool has_src, has_dest;
	union hd_fi_addr src, dest;
};

/* A hint's address; it is ignored when it is not given. */
static int take_hint(const void *addr, size_t len, struct route *r, union hd_fi_addr *out, bool *has)
{
	if (!addr || !len)
		return 0;
	if (hd_fi_addr_copy(addr, len, r->family, out))
		return -FI_ENODATA;
	*has = true;
	r->family = out->sa.sa_family;
	return 0;
}

static int take_name(const char *node, const char *service, uint64_t flags, struct route *r)
{
	const struct hd_fi_lookup what = { .node = node,
					   .service = service,
					   .family = r->family,
					   .passive = flags & FI_SOURCE,
					   .numeric = flags & FI_NUMERICHOST };
	bool *has = flags & FI_SOURCE ? &r->has_src : &r->has_dest;
	union hd_fi_addr *out = flags & FI_SOURCE ? &r->src : &r->dest;
	int rc = hd_fi_resolve(&what, out);

	if (rc)
		return rc;
	*has = true;
	r->family = out->sa.sa_family;
	return 0;
}

/* Which hints count beside node and service: see src_addr and dest_addr in fi_getinfo(3). */
static int find_route(const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		      struct route *r)
{
	bool named = node || service;
	int rc = named ? take_name(node, service, flags, r) : 0;

	if (!rc && hints && !(flags & FI_SOURCE))
		rc = take_hint(hints->src_addr, hints->src_addrlen, r, &r->src, &r->has_src);
	if (!rc && hints && (!named || flags & FI_SOURCE))
		rc = take_hint(hints->dest_addr, hints->dest_addrlen, r, &r->dest, &r->has_dest);
	if (rc)
		return rc;
	if (!r->has_src) {
		memset(&r->src, 0, sizeof(r->src));
		r->src.sa.sa_family = r->family == AF_UNSPEC ? AF_INET : (sa_family_t)r->family;
	}
	if (!hd_fi_addr_is_local(&r->src)) {
		char text[80];

		hd_fi_addr_text(&r->src, text, sizeof(text));
		hd_info("%s is no address of this host: `heddle info` lists them", text);
		return -FI_ENODATA;
	}
	return 0;
}

static int dup_addr(const union hd_fi_addr *addr, void **out, size_t *len)
{
	*len = hd_sockaddr_size(&addr->sa);
	*out = malloc(*len);
	if (!*out)
		return -FI_ENOMEM;
	memcpy(*out, addr, *len);
	return 0;
}

static int put_route(const struct route *r, uint32_t wanted_format, struct fi_info *info)
{
	int rc = dup_addr(&r->src, &info->src_addr, &info->src_addrlen);

	if (!rc && r->has_dest)
		rc = dup_addr(&r->dest, &info->dest_addr, &info->dest_addrlen);
	info->addr_format = r->src.sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	if (wanted_format == FI_SOCKADDR || wanted_format == HD_FI_SOCKADDR_IP)
		info->addr_format = wanted_format;
	return rc;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* What was asked, and which offers suit: a bit each. */
struct question {
	uint32_t version;
	const struct fi_info *hints;
	struct route route;
	uint64_t suited;
};

static int check_flags(const char *node, const char *service, uint64_t flags)
{
	if (flags & LIBRARY_INTERNAL)
		return -FI_ENODATA;
	if (flags & ~FLAGS)
		return hd_fi_no(FI_EBADFLAGS, "fi_getinfo with flags that it does not take");
	if (flags & FI_SOURCE && !node && !service)
		return hd_fi_no(FI_EINVAL, "fi_getinfo with FI_SOURCE, and neither node nor service");
	return 0;
}

/*
 * Opened objects named in hints must be ours. An info that is handed back later may name
 * closed ones, so only here.
 */
static bool names_ours(const struct fi_info *hints)
{
	const struct fid_domain *domain = hints && hints->domain_attr ? hints->domain_attr->domain : NULL;
	const struct fid_fabric *fabric = hints && hints->fabric_attr ? hints->fabric_attr->fabric : NULL;

	return (!domain || hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain)) &&
	       (!fabric || hd_fi_as(hd_fi_fabric, HD_FI_FABRIC, FI_CLASS_FABRIC, fabric));
}

static int info_describe(const struct hd_fi_offer *offer, const struct question *q, struct fi_info **out)
{
	struct fi_info *info = info_offered(offer);

	*out = info;
	if (!info)
		return -FI_ENOMEM;
	hd_fi_offer_apply(offer, q->version, q->hints, info);
	if (hd_fi_auth_copy(q->version, q->hints, info))
		return -FI_ENOMEM;
	if (!info->fabric_attr->fabric)
		info->fabric_attr->fabric = hd_fi_opened_fabric();
	if (!info->domain_attr->domain)
		info->domain_attr->domain = hd_fi_opened_domain();
	return put_route(&q->route, q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC, info);
}

/*
 * A mode bit in hints says that the program is able to: it gets the plain info and a further one
 * with the bit. Without hints it is shown them all.
 */
static bool suits(const struct hd_fi_offer *offer, const struct question *q)
{
	return offer->series == hd_fi_series(q->version) &&
	       !(offer->mode & ~(q->hints ? q->hints->mode : ~UINT64_C(0))) &&
	       !hd_fi_offer_check(offer, q->version, q->hints);
}

static int list_offers(const struct question *q, struct fi_info **out)
{
	struct fi_info **end = out;
	int rc = 0;

	for (size_t i = 0; i < hd_fi_offer_count && !rc; i++) {
		if (!(q->suited & UINT64_C(1) << i))
			continue;
		rc = info_describe(&hd_fi_offers[i], q, end);
		if (*end)
			end = &(*end)->next;
	}
	if (rc) {
		fi_freeinfo(*out);
		*out = NULL;
	}
	return rc;
}

int hd_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **out)
{
	struct question q = { .version = version, .hints = hints };
	int rc;

	*out = NULL;
	if (FI_VERSION_LT(hd_fi_api(), version))
		return hd_fi_no(FI_ENODATA, "fi_getinfo for a newer version of the interface than there is");
	rc = check_flags(node, service, flags);
	if (rc)
		return rc;
	if (flags & FI_PROV_ATTR_ONLY) {
		*out = fi_allocinfo(); /* name and version are filled in by the library */
		return *out ? 0 : -FI_ENOMEM;
	}
	for (size_t i = 0; i < hd_fi_offer_count; i++)
		q.suited |= suits(&hd_fi_offers[i], &q) ? UINT64_C(1) << i : 0;
	if (!q.suited)
		return -FI_ENODATA; /* it has been said of each offer why */
	if (!names_ours(hints))
		return hd_fi_no(FI_ENODATA, "hints name an opened fabric or domain of another provider");
	q.route.family = hints ? hd_fi_family(hints->addr_format) : AF_UNSPEC;
	rc = find_route(node, service, flags, hints, &q.route);
	return rc ? rc : list_offers(&q, out);
}
