/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Socket addresses of ids: AF_INET, AF_INET6, and native ones (AF_IB), which name a port of a
 * device by a GID. What a native one calls a service id is port space << 16 | port, as rdma_cm
 * numbers those of IP addresses too.
 */
#include "front/verbs/addr.h"
#include "front/verbs/cm/cm.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

#define PORT_BITS 0xffffu
#define LINK_LOCAL UINT64_C(0xfe80000000000000)

static const struct sockaddr_ib *ib(const struct sockaddr *addr)
{
	return (const struct sockaddr_ib *)addr;
}

size_t hv_sockaddr_size(const struct sockaddr *addr)
{
	return addr->sa_family == AF_IB ? sizeof(struct sockaddr_ib) : hd_sockaddr_size(addr);
}

uint16_t hv_sockaddr_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return be16toh(((const struct sockaddr_in *)addr)->sin_port);
	case AF_IB:
		return (uint16_t)be64toh(ib(addr)->sib_sid);
	default:
		return be16toh(((const struct sockaddr_in6 *)addr)->sin6_port);
	}
}

void hv_sockaddr_set_port(struct sockaddr *addr, uint16_t port)
{
	struct sockaddr_ib *native = (struct sockaddr_ib *)addr;

	if (addr->sa_family == AF_INET) {
		((struct sockaddr_in *)addr)->sin_port = htobe16(port);
	} else if (addr->sa_family == AF_INET6) {
		((struct sockaddr_in6 *)addr)->sin6_port = htobe16(port);
	} else {
		native->sib_sid &= ~htobe64(PORT_BITS);
		native->sib_sid |= htobe64(port);
		native->sib_sid_mask |= htobe64(RDMA_IB_IP_PORT_MASK);
	}
}

bool hv_sockaddr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == INADDR_ANY;
	if (addr->sa_family == AF_IB)
		return ib_addr_any(&ib(addr)->sib_addr);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

void hv_sockaddr_map(const struct sockaddr *addr, uint8_t out[16])
{
	if (addr->sa_family == AF_IB) {
		memcpy(out, ib(addr)->sib_addr.sib_raw, 16);
		return;
	}
	if (addr->sa_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
		return;
	}
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
}

void hv_sockaddr_unmap(const uint8_t addr[16], uint16_t port, struct sockaddr *out)
{
	struct in6_addr in6;

	memcpy(&in6, addr, 16);
	memset(out, 0, sizeof(struct sockaddr_storage));
	if (IN6_IS_ADDR_V4MAPPED(&in6)) {
		out->sa_family = AF_INET;
		memcpy(&((struct sockaddr_in *)out)->sin_addr, addr + 12, 4);
	} else {
		out->sa_family = AF_INET6;
		((struct sockaddr_in6 *)out)->sin6_addr = in6;
	}
	hv_sockaddr_set_port(out, port);
}

/* ---- native addresses ------------------------------------------------------------------------ */

void hv_sockaddr_native(const uint8_t gid[16], enum rdma_port_space ps, uint16_t port, struct sockaddr *out)
{
	struct sockaddr_ib *native = (struct sockaddr_ib *)out;

	memset(out, 0, sizeof(struct sockaddr_storage));
	native->sib_family = AF_IB;
	native->sib_pkey = htobe16(HV_PKEY);
	memcpy(native->sib_addr.sib_raw, gid, 16);
	hv_sockaddr_set_space(out, ps);
	if (port)
		hv_sockaddr_set_port(out, port);
}

void hv_sockaddr_set_space(struct sockaddr *addr, enum rdma_port_space ps)
{
	struct sockaddr_ib *native = (struct sockaddr_ib *)addr;

	if (addr->sa_family != AF_IB || native->sib_sid & htobe64(RDMA_IB_IP_PS_MASK))
		return;
	native->sib_sid |= htobe64((uint64_t)ps << 16);
	native->sib_sid_mask |= htobe64(RDMA_IB_IP_PS_MASK);
}

bool hv_sockaddr_fits(const struct sockaddr *addr, enum rdma_port_space ps)
{
	uint64_t space;

	if (addr->sa_family != AF_IB)
		return true;
	space = be64toh(ib(addr)->sib_sid) >> 16;
	return !space || space == (uint64_t)ps;
}

bool hv_sockaddr_is_infiniband(const struct sockaddr *addr)
{
	return addr->sa_family == AF_IB && be64toh(ib(addr)->sib_addr.sib_subnet_prefix) == LINK_LOCAL &&
	       be64toh(ib(addr)->sib_addr.sib_interface_id) >> 32 ==
		       be64toh(hv_guid_of_ip(HV_INFINIBAND, 0)) >> 32;
}

int hv_sockaddr_ip(const struct sockaddr *addr, struct sockaddr_storage *out)
{
	union ibv_gid gid;
	int rc;

	memset(out, 0, sizeof(*out));
	if (addr->sa_family != AF_IB) {
		memcpy(out, addr, hd_sockaddr_size(addr));
		return 0;
	}
	if (hv_sockaddr_is_any(addr)) {
		out->ss_family = AF_INET6; /* which takes callers of both families */
	} else {
		hv_sockaddr_map(addr, gid.raw);
		rc = hv_addr_of_gid(&gid, out);
		if (rc)
			return rc;
	}
	hv_sockaddr_set_port((struct sockaddr *)out, hv_sockaddr_port(addr));
	return 0;
}

/* ---- what rdma_getaddrinfo(3) hands out ------------------------------------------------------ */

HV_PUBLIC void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
