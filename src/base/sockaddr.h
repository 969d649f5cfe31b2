/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Socket addresses of the two families that there are here. */
#ifndef HD_BASE_SOCKADDR_H
#define HD_BASE_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
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

/* hd_sockaddr_host: which host that is: its IPv4 address, or the first half of its IPv6 address, since it may give itself any of the second. */
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
