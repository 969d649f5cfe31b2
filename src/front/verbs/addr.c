/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * LIDs, GIDs and queue pair numbers, and the socket addresses that they stand for:
 *
 *	LID      host part of an IPv4 address in the LID subnet
 *	GUID     02 48 44 <device> <IPv4 address>
 *	GID      fe80:: and a GUID; or ::ffff:a.b.c.d; or an IPv6 address
 *	number   TCP port << 8 | slot of the endpoint's name
 *
 * A multicast GID is a group of IP: itself where it is an IPv4 address, or an IPv6 one that goes
 * beyond a link; else, and in the other family, one of those that are free for private use
 * (239.192.0.0/14, ff18::), chosen by a hash of the GID. The hash travels with each datagram, since
 * several GIDs may have one group.
 */
#include "front/verbs/addr.h"
#include "base/config.h"
#include "base/sockaddr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define GUID_MARK 0x024844u /* locally administered, "HD" */
/* a number with a port that no node is given: what is sent there finds nobody */
#define NOBODY 0x100
#define LINK_LOCAL UINT64_C(0xfe80000000000000)

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

__be64 hv_guid_of_ip(enum hv_device_index index, uint32_t ip)
{
	return htobe64((uint64_t)GUID_MARK << 40 | (uint64_t)index << 32 | ip);
}

void hv_gid_of_guid(__be64 guid, union ibv_gid *out)
{
	out->global.subnet_prefix = htobe64(LINK_LOCAL);
	out->global.interface_id = guid;
}

void hv_gid_of_address(const struct sockaddr *addr, union ibv_gid *out)
{
	if (addr->sa_family == AF_INET) {
		memcpy(out->raw, mapped, sizeof(mapped));
		memcpy(out->raw + 12, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
	} else {
		memcpy(out->raw, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, 16);
	}
}

/* ---- to socket addresses --------------------------------------------------------------------- */

static void set_ip(struct sockaddr_storage *out, uint32_t ip)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)out;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(ip);
}

static int by_gid(const union ibv_gid *gid, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)out;
	uint64_t guid = be64toh(gid->global.interface_id);

	if (be64toh(gid->global.subnet_prefix) == LINK_LOCAL && guid >> 40 == GUID_MARK) {
		set_ip(out, (uint32_t)guid);
	} else if (!memcmp(gid->raw, mapped, sizeof(mapped))) {
		set_ip(out, (uint32_t)guid);
	} else {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, gid->raw, 16);
		if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) || IN6_IS_ADDR_MULTICAST(&in6->sin6_addr))
			return -EINVAL;
	}
	return 0;
}

int hv_addr_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	return by_gid(gid, out);
}

static int by_lid(const struct hv_port *port, uint16_t lid, struct sockaddr_storage *out)
{
	if (!port->mask || lid < 1 || lid > HV_LID_LAST || lid & port->mask)
		return -EINVAL;
	set_ip(out, (port->ip & port->mask) | lid);
	return 0;
}

/* A socket address has a port: */
static bool can_be_called(uint32_t qpn)
{
	return !(qpn >> 24) && qpn >> 8 && qpn != 0xffffff;
}

int hv_addr_resolve(const struct hv_context *ctx, const struct ibv_ah_attr *attr, uint32_t qpn,
		    struct sockaddr_storage *out)
{
	bool ethernet = ctx->device->index == HV_ETHERNET;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!can_be_called(qpn) || (ethernet && !attr->is_global))
		return -EINVAL;
	rc = attr->is_global ? by_gid(&attr->grh.dgid, out) : by_lid(&ctx->port, attr->dlid, out);
	if (rc)
		return rc;
	if (ethernet) /* by the interface of its own GID, as RoCE goes */
		hd_sockaddr_set_scope((struct sockaddr *)out, ctx->port.gids[attr->grh.sgid_index].ifindex);
	hd_name_set_number((struct sockaddr *)out, qpn);
	return 0;
}

int hv_addr_of_peer(const struct hv_context *ctx, const struct ibv_ah_attr *attr, uint32_t qpn,
		    struct sockaddr_storage *out)
{
	int rc = hv_addr_resolve(ctx, attr, can_be_called(qpn) ? qpn : NOBODY, out);

	if (!rc || attr->is_global || !attr->dlid || !ctx->port.mask)
		return rc;
	memset(out, 0, sizeof(*out));
	set_ip(out, ctx->port.ip);
	hd_name_set_number((struct sockaddr *)out, NOBODY);
	return 0;
}

/* ---- from socket addresses ------------------------------------------------------------------- */

static uint32_t addr_ip_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET
		       ? ntohl(((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr)
		       : 0;
}

void hv_addr_gid(const struct hv_context *ctx, const struct sockaddr *addr, union ibv_gid *out)
{
	uint32_t ip = addr_ip_of(addr);

	if (ctx->device->index == HV_INFINIBAND && ip)
		hv_gid_of_guid(hv_guid_of_ip(HV_INFINIBAND, ip), out);
	else
		hv_gid_of_address(addr, out);
}

uint16_t hv_addr_lid(const struct hv_context *ctx, const struct sockaddr *addr)
{
	uint32_t ip = addr_ip_of(addr), host = ip & ~ctx->port.mask;

	if (!ctx->port.mask || (ip ^ ctx->port.ip) & ctx->port.mask || host > HV_LID_LAST)
		return 0;
	return (uint16_t)host;
}

/* ---- groups ---------------------------------------------------------------------------------- */

#define PRIVATE4 0xefc00000u /* 239.192.0.0/14 */
#define PRIVATE4_HOSTS 0x3ffffu
#define SCOPE_LINK 2

bool hv_gid_is_ipv4(const uint8_t raw[16])
{
	return !memcmp(raw, mapped, sizeof(mapped));
}

bool hv_gid_is_multicast(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff || (hv_gid_is_ipv4(gid->raw) && (gid->raw[12] & 0xf0) == 0xe0);
}

/* FNV-1a */
static uint64_t hash_of(const union ibv_gid *gid)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; i < 16; i++)
		hash = (hash ^ gid->raw[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint16_t hv_gid_mark(const union ibv_gid *gid)
{
	return (uint16_t)(1 + hash_of(gid) % 0x3fff);
}

static void addr_group6(const union ibv_gid *gid, uint64_t hash, struct in6_addr *out)
{
	const uint8_t head[8] = { 0xff, 0x18, [6] = 'H', 'D' };
	uint64_t tail = htobe64(hash);

	if ((gid->raw[1] & 0xf) > SCOPE_LINK && !hv_gid_is_ipv4(gid->raw)) {
		memcpy(out, gid->raw, 16);
		return;
	}
	memcpy(out->s6_addr, head, sizeof(head));
	memcpy(out->s6_addr + 8, &tail, sizeof(tail));
}

bool hv_addr_group(const union ibv_gid *gid, int family, struct sockaddr_storage *out, uint64_t *word)
{
	uint64_t hash = hash_of(gid);

	if (!hv_gid_is_multicast(gid))
		return false;
	memset(out, 0, sizeof(*out));
	out->ss_family = (sa_family_t)family;
	/* the port is at the same place in both families */
	((struct sockaddr_in *)(void *)out)->sin_port = htons((uint16_t)hd_config_count(HD_SET_GROUP_PORT));
	if (family == AF_INET6)
		addr_group6(gid, hash, &((struct sockaddr_in6 *)(void *)out)->sin6_addr);
	else if (hv_gid_is_ipv4(gid->raw))
		set_ip(out, (uint32_t)be64toh(gid->global.interface_id));
	else
		set_ip(out, PRIVATE4 | (uint32_t)(hash & PRIVATE4_HOSTS));
	*word = hash;
	return true;
}
