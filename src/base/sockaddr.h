/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Socket addresses of the two families that there are here. */
#ifndef HD_BASE_SOCKADDR_H
#define HD_BASE_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* hd_sockaddr_size: bytes of a struct sockaddr_in or sockaddr_in6; 0: another family. */
static inline socklen_t hd_sockaddr_size(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* hd_sockaddr_is_any: a wildcard, of either family. */
static inline bool hd_sockaddr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr);
}

/*
 * hd_sockaddr_is_of_link: fe80::/10, which names nothing without its interface. hd_sockaddr_scope:
 * that one; 0: another address, or it is not said.
 * hd_sockaddr_set_scope: of an address of a link; others have none. They copy: callers have just
 * written it as a structure of another type.
 */
static inline bool hd_sockaddr_is_of_link(const struct sockaddr *addr)
{
	struct sockaddr_in6 in6 = { 0 };

	memcpy(&in6.sin6_family, addr, sizeof(in6.sin6_family));
	if (in6.sin6_family != AF_INET6)
		return false;
	memcpy(&in6, addr, sizeof(in6));
	return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

static inline uint32_t hd_sockaddr_scope(const struct sockaddr *addr)
{
	struct sockaddr_in6 in6;

	if (!hd_sockaddr_is_of_link(addr))
		return 0;
	memcpy(&in6, addr, sizeof(in6));
	return in6.sin6_scope_id;
}

static inline void hd_sockaddr_set_scope(struct sockaddr *addr, uint32_t scope)
{
	if (hd_sockaddr_is_of_link(addr))
		memcpy((char *)addr + offsetof(struct sockaddr_in6, sin6_scope_id), &scope, sizeof(scope));
}

/*
 * hd_sockaddr_host: which host that is: its IPv4 address, or the first half of its IPv6 address,
 * since it may give itself any of the second.
 */
static inline void hd_sockaddr_host(const struct sockaddr *addr, uint8_t host[16])
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;

	memset(host, 0, 16);
	if (addr->sa_family == AF_INET) {
		memcpy(host, ipv4, sizeof(ipv4));
		memcpy(host + sizeof(ipv4), &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
	} else if (addr->sa_family == AF_INET6) {
		memcpy(host, &in6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) ? 16 : 8);
	}
}

#endif
