/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Keys of infos, domains, endpoints, receives and regions. Those of AVs are in auth_av.c. */
#include "front/ofi/auth.h"

#include "base/log.h"
#include "front/ofi/auth_av.h"

#include <stdlib.h>
#include <string.h>

/* ---- infos --------------------------------------------------------------------------------------------- */

/* Interfaces before 1.5 have no such members. */
static bool has_members(uint32_t version)
{
	return FI_VERSION_GE(version, FI_VERSION(1, 5));
}

static bool from_av(const struct fi_info *info)
{
	return info && info->domain_attr && info->domain_attr->auth_key_size == FI_AV_AUTH_KEY;
}

static int refuse(const char *what)
{
	hd_info("hints ask for what is not offered: %s", what);
	return -FI_ENODATA;
}

static bool key_can_be(const void *key, size_t size)
{
	return !size || (key && size <= HD_FI_AUTH_MAX);
}

/* Several keys for one endpoint: it is connectionless, and has its receive queue for itself. */
static int check_from_av(const struct hd_fi_offer *offer, const struct fi_info *hints)
{
	const struct fi_ep_attr *ep = hints->ep_attr;

	if (hints->domain_attr->auth_key)
		return refuse("a key beside FI_AV_AUTH_KEY");
	if (offer->ep.type == FI_EP_MSG)
		return refuse("FI_AV_AUTH_KEY for connected endpoints");
	if (offer->mode & FI_BUFFERED_RECV ||
	    hints->caps & (FI_VARIABLE_MSG | FI_MULTICAST | FI_NAMED_RX_CTX))
		return refuse("a capability that does not go together with FI_AV_AUTH_KEY");
	if (ep && (ep->rx_ctx_cnt > 1 || (ep->tx_ctx_cnt > 1 && ep->tx_ctx_cnt != FI_SHARED_CONTEXT)))
		return refuse("contexts with FI_AV_AUTH_KEY");
	return ep && ep->auth_key_size ? refuse("a key of an endpoint beside FI_AV_AUTH_KEY") : 0;
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
		return refuse("a domain's key of that size");
	return ep && !key_can_be(ep->auth_key, ep->auth_key_size) ? refuse("an endpoint's key of that size")
								  : 0;
}

void hd_fi_auth_narrow(uint32_t version, const struct fi_info *hints, struct fi_info *info)
{
	if (has_members(version) && from_av(hints))
		info->caps &= ~(uint64_t)(FI_VARIABLE_MSG | FI_MULTICAST | FI_NAMED_RX_CTX);
}

static int copy_key(const uint8_t *from, size_t size, uint8_t **to, size_t *to_size)
{
	if (!size)
		return 0;
	*to = malloc(size);
	if (!*to)
		return -FI_ENOMEM;
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

/* ---- domains and endpoints ----------------------------------------------------------------------------- */

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
	return own || attr->type == FI_EP_MSG || attr->rx_ctx_cnt == FI_SHARED_CONTEXT ||
			       info->mode & FI_BUFFERED_RECV || info->caps & (FI_VARIABLE_MSG | FI_MULTICAST)
		       ? -FI_EINVAL
		       : 0;
}

/* All keys that are in the AV now; from here on they cannot be removed. */
static int enable_all(struct hd_fi_ep *ep, struct hd_ep_attr *attr)
{
	struct hd_fi_av *av = ep->av;

	hd_fi_auth_disable(ep);
	ep->keys = calloc(av->key_count + 1, sizeof(*ep->keys));
	ep->digests = calloc(av->key_count + 1, sizeof(*ep->digests));
	if (!ep->keys || !ep->digests)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < av->key_count; i++) {
		if (!av->keys[i] || !av->keys[i]->live)
			continue;
		ep->digests[ep->key_count] = av->keys[i]->digest;
		ep->keys[ep->key_count++] = av->keys[i];
		av->keys[i]->eps++;
	}
	attr->keys = ep->digests;
	attr->key_count = ep->key_count;
	return ep->key_count ? 0 : -FI_EINVAL;
}

int hd_fi_auth_enable(struct hd_fi_ep *ep, struct hd_ep_attr *attr)
{
	if (ep->domain->av_keys)
		return enable_all(ep, attr);
	if (!ep->key)
		return 0;
	attr->keys = &ep->key;
	attr->key_count = 1;
	return ep->av && !hd_fi_ep_connects(ep) ? hd_fi_av_view(ep->av, ep->key, &ep->av) : 0;
}

void hd_fi_auth_disable(struct hd_fi_ep *ep)
{
	for (uint32_t i = 0; i < ep->key_count; i++)
		ep->keys[i]->eps--;
	free(ep->keys);
	free(ep->digests);
	ep->keys = NULL;
	ep->digests = NULL;
	ep->key_count = 0;
}

int hd_fi_auth_readers(struct hd_fi_ep *ep, struct hd_ep *made, struct hd_fi_reader reader)
{
	int rc = 0;

	for (uint32_t i = 0; i < hd_ep_faces(made) && !rc; i++)
		rc = hd_fi_domain_set_reader(ep->domain, hd_ep_index(hd_ep_face_at(made, i)), reader);
	return rc;
}

/* ---- receives ------------------------------------------------------------------------------------------ */

static bool has_key(const struct hd_fi_ep *ep, const struct hd_fi_key *key)
{
	for (uint32_t i = 0; i < ep->key_count; i++)
		if (ep->keys[i] == key)
			return true;
	return false;
}

int hd_fi_auth_source(const struct hd_fi_ep *ep, fi_addr_t src, const struct hd_dest **out)
{
	const struct hd_fi_ep *whole = ep->parent ? ep->parent : ep;
	const struct hd_fi_key *key;

	*out = NULL;
	if (!ep->domain->av_keys || !ep->directed)
		return -FI_EINVAL;
	if (src == FI_ADDR_UNSPEC)
		return 0;
	key = hd_fi_auth_at(ep->av, src);
	if (!key || !has_key(whole, key))
		return -FI_EINVAL;
	*out = hd_key_sources(ep->node, key->digest);
	return *out ? 0 : -FI_ENOMEM;
}

ssize_t hd_fi_auth_recv(struct hd_fi_ep *ep, const struct hd_fi_recv *wanted)
{
	struct hd_fi_recv r = *wanted;
	struct hd_recv_args args;
	ssize_t rc = hd_fi_check_recvv(ep, &r);

	if (rc)
		return rc;
	args = (struct hd_recv_args){ .iov = r.iov,
				      .count = (int)r.count,
				      .flags = r.flags,
				      .tag = r.tag,
				      .ignore = r.ignore,
				      .ctx = r.context };
	hd_fi_lock(ep->domain);
	rc = hd_fi_auth_source(ep, r.src, &args.src);
	if (!rc)
		rc = hd_recv(ep->ep, &args);
	hd_fi_unlock(ep->domain);
	return rc;
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static int region_of_av(const struct hd_fi_domain *domain, const struct fi_mr_auth_key *auth, uint64_t flags,
			uint64_t *keys, struct hd_mr_attr *attr)
{
	struct hd_fi_av *av = hd_fi_as(hd_fi_av, HD_FI_AV, FI_CLASS_AV, auth->av);
	const struct hd_fi_key *key;
	uint32_t index;

	if (!av || av->domain != domain)
		return -FI_EINVAL;
	attr->auth = keys;
	if (auth->src_addr == FI_ADDR_UNSPEC) {
		for (uint32_t i = 0; i < av->key_count; i++)
			if (av->keys[i] && av->keys[i]->live)
				keys[attr->auth_count++] = av->keys[i]->digest;
		return attr->auth_count ? 0 : -FI_EINVAL;
	}
	if (flags & FI_AUTH_KEY) {
		key = hd_fi_auth_at(av, auth->src_addr);
	} else {
		index = hd_fi_av_index(av, auth->src_addr);
		attr->from = index == HD_FI_NO_INDEX ? NULL : av->dest[index];
		key = attr->from ? av->entry[index].key : NULL;
	}
	if (!key)
		return -FI_EINVAL;
	keys[attr->auth_count++] = key->digest;
	return 0;
}

int hd_fi_auth_region(const struct hd_fi_domain *domain, const struct fi_mr_attr *mr, uint64_t flags,
		      uint64_t *keys, struct hd_mr_attr *attr)
{
	size_t size = has_members(domain->fabric->fid.api_version) ? mr->auth_key_size : 0;
	struct fi_mr_auth_key auth;

	if (flags & FI_AUTH_KEY && (!domain->av_keys || !size))
		return -FI_EINVAL;
	if (domain->av_keys && size) {
		if (size != sizeof(auth) || !mr->auth_key)
			return -FI_EINVAL;
		memcpy(&auth, mr->auth_key, sizeof(auth));
		return region_of_av(domain, &auth, flags, keys, attr);
	}
	if (!key_can_be(mr->auth_key, size))
		return -FI_EINVAL;
	keys[0] = size ? hd_key_digest(mr->auth_key, size) : domain->key;
	attr->auth = keys;
	attr->auth_count = keys[0] != 0;
	return 0;
}
