/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Keys of infos, domains, endpoints, receives and regions. Those of AVs are in auth_av.c. */
#include "front/ofi/auth.h"

#include "base/log.h"
#include "front/ofi/auth_av.h"
#include "front/ofi/ctx.h"

#include <stdlib.h>
#include <string.h>

/* ---- infos ----------------------------------------------------------------------------------- */

/* Interfaces before 1.5 have no such members. */
static bool has_members(uint32_t version)
{
	return FI_VERSION_GE(version, FI_VERSION(1, 5));
}

static bool from_av(const struct fi_info *info)
{
	return info && info->domain_attr && info->domain_attr->auth_key_size == FI_AV_AUTH_KEY;
}

static int auth_refuse(const char *what)
{
	hd_info("hints ask for what is not offered: %s: see fi_heddle(7), Authorization keys", what);
	return -FI_ENODATA;
}

static bool key_can_be(const void *key, size_t size)
{
	return !size || (key && size <= HD_FI_AUTH_MAX);
}

/* Several keys for one endpoint: it is connectionless, fi_domain(3), and has none of its own. */
static int check_from_av(const struct hd_fi_offer *offer, const struct fi_info *hints)
{
	const struct fi_ep_attr *ep = hints->ep_attr;

	if (hints->domain_attr->auth_key)
		return auth_refuse("a key beside FI_AV_AUTH_KEY");
	if (offer->ep.type == FI_EP_MSG)
		return auth_refuse("FI_AV_AUTH_KEY for connected endpoints");
	if ((hints->caps | hints->domain_attr->caps) & FI_AV_USER_ID)
		return auth_refuse("FI_AV_USER_ID beside FI_AV_AUTH_KEY");
	return ep && ep->auth_key_size ? auth_refuse("a key of an endpoint beside FI_AV_AUTH_KEY") : 0;
}

int hd_fi_auth_check(const struct hd_fi_offer *offer, uint32_t version, const struct fi_info *hints)
{
	const struct fi_domain_attr *domain = hints->domain_attr;
	const struct fi_ep_attr *ep = hints->ep_attr;

	if (!has_members(version))
		return 0;
	if (from_av(hints))
		return check_from_av(offer, hints);
	if (domain && !key_can_be(domain->auth_key, domain->auth_key_size))
		return auth_refuse("a domain's key of that size");
	return ep && !key_can_be(ep->auth_key, ep->auth_key_size)
		       ? auth_refuse("an endpoint's key of that size")
		       : 0;
}

static int copy_key(const uint8_t *from, size_t size, uint8_t **to, size_t *to_size)
{
	if (!size)
		return 0;
	*to = malloc(size);
	if (!*to)
		return hd_fi_no(FI_ENOMEM);
	memcpy(*to, from, size);
	*to_size = size;
	return 0;
}

int hd_fi_auth_copy(uint32_t version, const struct fi_info *hints, struct fi_info *info)
{
	const struct fi_domain_attr *domain = hints ? hints->domain_attr : NULL;
	const struct fi_ep_attr *ep = hints ? hints->ep_attr : NULL;
	int rc = 0;

	if (!has_members(version))
		return 0;
	if (from_av(hints))
		info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	else if (domain)
		rc = copy_key(domain->auth_key, domain->auth_key_size, &info->domain_attr->auth_key,
			      &info->domain_attr->auth_key_size);
	if (!rc && ep)
		rc = copy_key(ep->auth_key, ep->auth_key_size, &info->ep_attr->auth_key,
			      &info->ep_attr->auth_key_size);
	return rc;
}

/* ---- domains and endpoints ------------------------------------------------------------------- */

void hd_fi_auth_domain(struct hd_fi_domain *domain, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	if (!has_members(domain->fabric->fid.api_version))
		return;
	domain->av_keys = from_av(info);
	if (!domain->av_keys && attr->auth_key_size)
		domain->key = hd_key_digest(attr->auth_key, attr->auth_key_size);
}

int hd_fi_auth_ep(const struct hd_fi_domain *domain, const struct fi_info *info, uint64_t *key)
{
	const struct fi_ep_attr *attr = info->ep_attr;
	bool own = has_members(domain->fabric->fid.api_version) && attr->auth_key_size;

	*key = own ? hd_key_digest(attr->auth_key, attr->auth_key_size) : domain->key;
	if (!domain->av_keys)
		return 0;
	return own || attr->type == FI_EP_MSG
		       ? hd_fi_no(
				 FI_EINVAL,
				 "a key of the endpoint's own, or a connected endpoint, in a domain with FI_AV_AUTH_KEY")
		       : 0;
}

/* All keys that are in the AV now; from here on they cannot be removed. */
static int take_all(struct hd_fi_auth *auth, struct hd_fi_av *av)
{
	hd_fi_auth_disable(auth);
	hd_fi_av_follow(av);
	auth->keys = calloc(av->key_count + 1, sizeof(*auth->keys));
	auth->digests = calloc(av->key_count + 1, sizeof(*auth->digests));
	if (!auth->keys || !auth->digests)
		return hd_fi_no(FI_ENOMEM);
	for (uint32_t i = 0; i < av->key_count; i++) {
		if (!av->keys[i] || !av->keys[i]->live || hd_fi_auth_hold(av->keys[i], true))
			continue;
		auth->digests[auth->count] = av->keys[i]->digest;
		auth->keys[auth->count++] = av->keys[i];
	}
	return auth->count
		       ? 0
		       : hd_fi_no(
				 FI_EINVAL,
				 "fi_enable in a domain with FI_AV_AUTH_KEY, and the address vector has no key");
}

void hd_fi_auth_attr(const struct hd_fi_auth *auth, struct hd_ep_attr *attr)
{
	attr->keys = auth->count ? auth->digests : &auth->own;
	attr->key_count = auth->count ? auth->count : auth->own != 0;
}

int hd_fi_auth_enable(const struct hd_fi_domain *domain, struct hd_fi_auth *auth, struct hd_fi_av **av,
		      struct hd_ep_attr *attr)
{
	int rc = 0;

	if (domain->av_keys)
		rc = take_all(auth, *av);
	else if (auth->own && *av)
		rc = hd_fi_av_view(*av, auth->own, av);
	hd_fi_auth_attr(auth, attr);
	return rc;
}

void hd_fi_auth_disable(struct hd_fi_auth *auth)
{
	for (uint32_t i = 0; i < auth->count; i++)
		hd_fi_auth_hold(auth->keys[i], false);
	free(auth->keys);
	free(auth->digests);
	auth->keys = NULL;
	auth->digests = NULL;
	auth->count = 0;
}

/* Faces are in the order of the keys. */
int hd_fi_auth_readers(struct hd_fi_domain *domain, struct hd_ep *made, const struct hd_fi_auth *auth,
		       struct hd_fi_reader reader)
{
	int rc = 0;

	for (uint32_t i = 0; i < hd_ep_aliases(made) && !rc; i++) {
		reader.key = auth && i < auth->count ? hd_fi_auth_addr(auth->keys[i]) : 0;
		rc = hd_fi_domain_set_reader(domain, hd_ep_index(hd_ep_alias_at(made, i)), reader);
	}
	return rc;
}

/* ---- receives -------------------------------------------------------------------------------- */

/* A shared receive context gets what comes to any endpoint that shares it. */
static bool has_key(const struct hd_fi_ep *ep, const struct hd_fi_key *key)
{
	const struct hd_fi_auth *auth = ep->sep ? &ep->sep->auth : &ep->auth;

	if (ep->fid.fid.fclass == FI_CLASS_SRX_CTX)
		return key->eps;
	for (uint32_t i = 0; i < auth->count; i++)
		if (auth->keys[i] == key)
			return true;
	return false;
}

int hd_fi_auth_source(const struct hd_fi_ep *ep, fi_addr_t src, const struct hd_dest **out)
{
	const struct hd_fi_key *key;

	*out = NULL;
	if (!hd_fi_ep_by_key(ep))
		return hd_fi_no(
			FI_EINVAL,
			"FI_AUTH_KEY for a receive without FI_DIRECTED_RECV, or in a domain without FI_AV_AUTH_KEY");
	if (src == FI_ADDR_UNSPEC)
		return 0;
	key = hd_fi_auth_at(ep->av, src);
	if (!key || !has_key(ep, key))
		return hd_fi_no(FI_EINVAL,
				"a receive by a key that the address vector, or the endpoint, has not");
	*out = hd_key_sources(ep->node, key->digest);
	return *out ? 0 : hd_fi_no(FI_ENOMEM);
}

/* ---- regions --------------------------------------------------------------------------------- */

static int region_of_av(const struct hd_fi_domain *domain, const struct fi_mr_auth_key *auth, uint64_t flags,
			uint64_t *keys, struct hd_mr_attr *attr)
{
	struct hd_fi_av *av = hd_fi_as(hd_fi_av, HD_FI_AV, FI_CLASS_AV, auth->av);
	const struct hd_fi_key *key;
	uint32_t index;

	if (!av || av->domain != domain)
		return hd_fi_no(FI_EINVAL,
				"a region's key is of an address vector of another domain, or of none");
	hd_fi_av_follow(av);
	attr->auth = keys;
	if (auth->src_addr == FI_ADDR_UNSPEC) {
		for (uint32_t i = 0; i < av->key_count; i++)
			if (av->keys[i] && av->keys[i]->live)
				keys[attr->auth_count++] = av->keys[i]->digest;
		return attr->auth_count
			       ? 0
			       : hd_fi_no(FI_EINVAL,
					  "a region for all keys of an address vector that has none");
	}
	if (flags & FI_AUTH_KEY) {
		key = hd_fi_auth_at(av, auth->src_addr);
	} else {
		index = hd_fi_av_index(av, auth->src_addr);
		attr->from = index == HD_FI_NO_INDEX ? NULL : av->dest[index];
		key = attr->from ? av->entry[index].key : NULL;
	}
	if (!key)
		return hd_fi_no(FI_EINVAL,
				"a region for a key, or an address, that is not in the address vector");
	keys[attr->auth_count++] = key->digest;
	return 0;
}

int hd_fi_auth_region(const struct hd_fi_domain *domain, const struct fi_mr_attr *mr, uint64_t flags,
		      uint64_t *keys, struct hd_mr_attr *attr)
{
	size_t size = has_members(domain->fabric->fid.api_version) ? mr->auth_key_size : 0;
	struct fi_mr_auth_key auth;

	if (flags & FI_AUTH_KEY && (!domain->av_keys || !size))
		return hd_fi_no(
			FI_EINVAL,
			"FI_AUTH_KEY for a region without a key, or in a domain without FI_AV_AUTH_KEY");
	if (domain->av_keys && size) {
		if (size != sizeof(auth) || !mr->auth_key)
			return hd_fi_no(
				FI_EINVAL,
				"a region's key in a domain with FI_AV_AUTH_KEY is a struct fi_mr_auth_key");
		memcpy(&auth, mr->auth_key, sizeof(auth));
		return region_of_av(domain, &auth, flags, keys, attr);
	}
	if (!key_can_be(mr->auth_key, size))
		return hd_fi_no(FI_EINVAL, "a region's authorization key is too long, or at NULL");
	keys[0] = size ? hd_key_digest(mr->auth_key, size) : domain->key;
	attr->auth = keys;
	attr->auth_count = keys[0] != 0;
	return 0;
}
