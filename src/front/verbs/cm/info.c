/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Names and services: rdma_getaddrinfo(3), by getaddrinfo(3). */
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

/*
 * Queue pair type and port space agree, and follow from each other. 0, or a code of getaddrinfo's.
 */
static int info_kind_of(const struct rdma_addrinfo *hints, struct rdma_addrinfo *out)
{
	int type = hints ? hints->ai_qp_type : 0, space = hints ? hints->ai_port_space : 0;

	if (!space)
		space = type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (!type)
		type = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	if (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_UD && type != IBV_QPT_XRC_SEND &&
	    type != IBV_QPT_XRC_RECV)
		return EAI_SOCKTYPE;
	if (type == IBV_QPT_UD ? space == RDMA_PS_TCP : space == RDMA_PS_UDP || space == RDMA_PS_IPOIB)
		return EAI_SOCKTYPE;
	if (space != RDMA_PS_TCP && space != RDMA_PS_UDP && space != RDMA_PS_IB && space != RDMA_PS_IPOIB)
		return EAI_SERVICE;
	out->ai_qp_type = type;
	out->ai_port_space = space;
	return 0;
}

static int info_copy(const struct sockaddr *from, size_t len, struct sockaddr **to, socklen_t *to_len)
{
	if (!from || !len)
		return 0;
	*to = calloc(1, sizeof(struct sockaddr_storage));
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len < sizeof(struct sockaddr_storage) ? len : sizeof(struct sockaddr_storage));
	*to_len = (socklen_t)len;
	return 0;
}

static int name_copy(const char *from, char **to)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

/*
 * What getaddrinfo says becomes the address that is listened at or called; of GIDs, which look like
 * IPv6 addresses, native ones.
 */
static int info_take(const struct addrinfo *found, int family, struct rdma_addrinfo *out)
{
	bool passive = out->ai_flags & RAI_PASSIVE;
	const struct sockaddr *addr = found->ai_addr;
	struct sockaddr_storage native;
	size_t len = found->ai_addrlen;
	uint8_t gid[16];
	int rc;

	if (family == AF_IB) {
		hv_sockaddr_map(addr, gid);
		hv_sockaddr_native(gid, (enum rdma_port_space)out->ai_port_space, hv_sockaddr_port(addr),
				   (struct sockaddr *)&native);
		addr = (struct sockaddr *)&native;
		len = hv_sockaddr_size(addr);
	}
	rc = info_copy(addr, len, passive ? &out->ai_src_addr : &out->ai_dst_addr,
		       passive ? &out->ai_src_len : &out->ai_dst_len);
	out->ai_family = addr->sa_family;
	if (!rc)
		rc = name_copy(found->ai_canonname,
			       passive ? &out->ai_src_canonname : &out->ai_dst_canonname);
	return rc;
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo *out)
{
	struct addrinfo want = { .ai_socktype = out->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM };
	struct addrinfo *found;
	int rc, family = AF_UNSPEC;

	if (out->ai_flags & RAI_PASSIVE)
		want.ai_flags |= AI_PASSIVE;
	if (out->ai_flags & RAI_NUMERICHOST)
		want.ai_flags |= AI_NUMERICHOST;
	/*
	 * the library has always taken a family of IP addresses as a hint; only that
	 * nodes are GIDs has to be said
	 */
	if (hints && hints->ai_family && (out->ai_flags & RAI_FAMILY || !node || hints->ai_family != AF_IB))
		family = hints->ai_family;
	want.ai_family = family == AF_IB ? AF_INET6 : family;
	if (family == AF_IB)
		want.ai_flags |= AI_NUMERICHOST;
	rc = getaddrinfo(node, service, &want, &found);
	if (rc)
		return rc;
	rc = info_take(found, family, out);
	freeaddrinfo(found);
	return rc;
}

/* Addresses that the hints bring along. */
static int take_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *out)
{
	int rc = 0;

	if (!hints)
		return 0;
	if (!out->ai_src_len)
		rc = info_copy(hints->ai_src_addr, hints->ai_src_len, &out->ai_src_addr, &out->ai_src_len);
	if (!rc && !out->ai_dst_len && !(out->ai_flags & RAI_PASSIVE))
		rc = info_copy(hints->ai_dst_addr, hints->ai_dst_len, &out->ai_dst_addr, &out->ai_dst_len);
	if (!out->ai_family)
		out->ai_family = out->ai_dst_addr   ? out->ai_dst_addr->sa_family
				 : out->ai_src_addr ? out->ai_src_addr->sa_family
						    : hints->ai_family;
	return rc;
}

static int info_fill(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo *out)
{
	/* names are looked up by getaddrinfo(3) anyway */
	const int known = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY | HV_RAI_DNS;
	int rc = info_kind_of(hints, out);

	if (rc)
		return rc;
	out->ai_flags = hints ? hints->ai_flags : 0;
	if (out->ai_flags & ~known)
		return EAI_BADFLAGS;
	if (hints && hints->ai_family && hints->ai_family != AF_INET && hints->ai_family != AF_INET6 &&
	    hints->ai_family != AF_IB)
		return EAI_FAMILY;
	if (node || service)
		rc = look_up(node, service, hints, out);
	return rc ? rc : take_hints(hints, out);
}

HV_PUBLIC int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *out;
	int rc;

	if (!res || (!node && !service && !hints))
		return hv_cm_ret(-EINVAL);
	/* there is no subnet administration to be asked */
	if (hints && hints->ai_flags & HV_RAI_SA)
		return hv_cm_ret(-EOPNOTSUPP);
	out = calloc(1, sizeof(*out));
	if (!out)
		return EAI_MEMORY;
	rc = info_fill(node, service, hints, out);
	if (rc)
		rdma_freeaddrinfo(out);
	else
		*res = out;
	return rc;
}
