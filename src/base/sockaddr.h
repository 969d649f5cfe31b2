/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Socket addresses of the two families that there are here. */
#ifndef HD_BASE_SOCKADDR_H
#define HD_BASE_SOCKADDR_H

#include <netinet/in.h>
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

#endif
