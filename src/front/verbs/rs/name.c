/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Names of rsockets, as programs give and see them. */
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <string.h>

int rs_name_in(int family, const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *out)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	size_t size;

	if (!addr)
		return -EFAULT;
	if (len < sizeof(addr->sa_family))
		return -EINVAL;
	size = hv_sockaddr_size(addr);
	if (!size || addr->sa_family != family)
		return -EAFNOSUPPORT;
	if (len < size)
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, addr, size);
	if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		hv_sockaddr_unmap(in6->sin6_addr.s6_addr, be16toh(in6->sin6_port), (struct sockaddr *)out);
	return 0;
}

int rs_name_out(int family, const struct sockaddr *name, struct sockaddr *addr, socklen_t *addrlen)
{
	struct sockaddr_storage own = { .ss_family = (sa_family_t)family };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&own;
	size_t size;

	if (!addrlen || (!addr && *addrlen))
		return -EFAULT;
	if (name->sa_family == AF_INET && family == AF_INET6) {
		hv_sockaddr_map(name, in6->sin6_addr.s6_addr);
		in6->sin6_port = htobe16(hv_sockaddr_port(name));
	} else if (name->sa_family) {
		memcpy(&own, name, hv_sockaddr_size(name));
	}
	size = hv_sockaddr_size((struct sockaddr *)&own);
	if (*addrlen)
		memcpy(addr, &own, size < *addrlen ? size : *addrlen);
	*addrlen = (socklen_t)size;
	return 0;
}
