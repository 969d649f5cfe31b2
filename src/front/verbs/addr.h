/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How verbs' addresses hold those of the host; see hv_addr_resolve for the use of
 * it. No locks, any thread.
 */
#ifndef HEDDLE_FRONT_VERBS_ADDR_H
#define HEDDLE_FRONT_VERBS_ADDR_H

#include "front/verbs/verbs_front.h"

#include <netinet/in.h>

/*
 * hv_guid_of_ip: the GUID of a device at this IPv4 address, host byte order; stable for
 * as long as the address is.
 */
__be64 hv_guid_of_ip(enum hv_device_index index, uint32_t ip);

/*
 * hv_gid_of_guid: the link-local GID of a port. hv_gid_of_address: that of a RoCE port: IPv4 as
 * mapped IPv6, IPv6 as it is.
 */
void hv_gid_of_guid(__be64 guid, union ibv_gid *out);
void hv_gid_of_address(const struct sockaddr *addr, union ibv_gid *out);

/* hv_gid_is_of_link: fe80::/10, which is where its interface says. */
static inline bool hv_gid_is_of_link(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)(const void *)gid->raw);
}

/*
 * hv_gid_is_ipv4: a mapped address. hv_gid_is_multicast: ff00::/8, or an IPv4 multicast address.
 * hv_addr_group: where the group is in this family, with its word (hd_group_attr.word); false:
 * nowhere. hv_gid_mark: 14 bits that tell it from a port's others, but for bad luck; never 0.
 * hv_addr_of_gid: the address of a port with this GID; port 0. -EINVAL.
 */
bool hv_gid_is_ipv4(const uint8_t raw[16]);
bool hv_gid_is_multicast(const union ibv_gid *gid);
bool hv_addr_group(const union ibv_gid *gid, int family, struct sockaddr_storage *out, uint64_t *word);
uint16_t hv_gid_mark(const union ibv_gid *gid);
int hv_addr_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out);

#endif
