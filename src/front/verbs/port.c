/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the host's addresses make of a port: its state, LID, GUID and GIDs. */
#include "base/config.h"
#include "base/log.h"
#include "front/verbs/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A subnet that nobody has chosen: few enough hosts that their numbers are LIDs, and not only one.
 */
#define AUTO_BITS_LEAST 17
#define AUTO_BITS_MOST 24

static uint32_t mask_of(int bits)
{
	return bits ? UINT32_MAX << (32 - bits) : 0;
}

static bool port_ip_of(const struct hd_own_address *a, uint32_t *ip)
{
	if (a->addr.ss_family != AF_INET)
		return false;
	*ip = ntohl(((const struct sockaddr_in *)(const void *)&a->addr)->sin_addr.s_addr);
	return true;
}

/*
 * The first address in the subnet that was chosen, or just the first; NULL:
 * none. They come best first.
 */
static const struct hd_own_address *port_pick(const struct hd_own_address *a, int count, bool chosen,
					      const struct hv_port *port)
{
	uint32_t ip;

	for (int i = 0; i < count; i++)
		if (port_ip_of(&a[i], &ip) && (!chosen || ((ip ^ port->ip) & port->mask) == 0))
			return &a[i];
	return NULL;
}

static uint32_t auto_mask(int bits)
{
	if (bits < AUTO_BITS_LEAST)
		bits = AUTO_BITS_LEAST;
	return mask_of(bits > AUTO_BITS_MOST ? AUTO_BITS_MOST : bits);
}

static void load_lid(const struct hd_own_address *a, int count, struct hv_port *port)
{
	const char *setting = hd_config_str(HD_SET_LID_SUBNET);
	const struct hd_own_address *own;
	const struct hd_subnet subnet = hd_config_subnet(HD_SET_LID_SUBNET);
	const bool chosen = subnet.mask != 0;
	uint32_t host;

	port->ip = subnet.net;
	port->mask = subnet.mask;
	own = port_pick(a, count, chosen, port);
	if (!own) {
		port->ip = port->mask = 0;
		HD_LOG_EVERY_MS(
			60000, HD_LOG_WARN,
			"heddle0 is down: %s no IPv4 address%s%s: set %s to one of `heddle info`, or use heddle1",
			*hd_config_str(HD_SET_ADDR) ? "HEDDLE_ADDR chooses" : "this host has",
			chosen ? " in HEDDLE_LID_SUBNET=" : "", chosen ? setting : "",
			chosen ? "it" : "HEDDLE_ADDR");
		return;
	}
	port_ip_of(own, &port->ip);
	if (!chosen)
		port->mask = auto_mask(own->bits);
	host = port->ip & ~port->mask;
	if (host < 1 || host > HV_LID_LAST) {
		HD_LOG_EVERY_MS(
			60000, HD_LOG_WARN,
			"heddle0 is down: number %u of its subnet is no LID (1 to %u): set HEDDLE_LID_SUBNET to a smaller one, or use heddle1",
			host, HV_LID_LAST);
		return;
	}
	port->lid = (uint16_t)host;
	port->state = IBV_PORT_ACTIVE;
}

static void add_gid(struct hv_port *port, const struct hd_own_address *a, const union ibv_gid *gid,
		    uint32_t type)
{
	struct hv_gid *to = &port->gids[port->gid_count++];

	to->gid = *gid;
	to->mark = hv_gid_mark(gid);
	to->type = type;
	to->ifindex = a ? a->ifindex : 0;
	to->is_loopback = a && a->is_loopback;
	if (a)
		memcpy(to->interface, a->interface, sizeof(to->interface));
}

static void load_gids(const struct hd_own_address *a, int count, struct hv_port *port)
{
	union ibv_gid gid;

	for (int i = 0; i < count && port->gid_count < HV_GIDS; i++) {
		hv_gid_of_address((const struct sockaddr *)&a[i].addr, &gid);
		add_gid(port, &a[i], &gid, IBV_GID_TYPE_ROCE_V2);
	}
	port->state = port->gid_count ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
}

int hv_port_load(const struct hv_device *device, struct hv_port *port)
{
	struct hd_own_address a[HV_GIDS];
	int count = hd_own_addresses(a, HV_GIDS);
	const struct hd_own_address *first;
	union ibv_gid gid;

	memset(port, 0, sizeof(*port));
	port->state = IBV_PORT_DOWN;
	if (count < 0)
		return count;
	if (device->index == HV_ETHERNET) {
		load_gids(a, count, port);
		first = port_pick(a, count, false, port);
		if (first)
			port_ip_of(first, &port->ip);
	} else {
		load_lid(a, count, port);
	}
	port->guid = hv_guid_of_ip(device->index, port->ip);
	if (device->index == HV_INFINIBAND) {
		hv_gid_of_guid(port->guid, &gid);
		add_gid(port, NULL, &gid, IBV_GID_TYPE_IB);
	}
	return 0;
}

/* Two interfaces may have one address of their links. */
static bool port_has_gid(const struct hv_port *port, const struct hv_gid *gid)
{
	for (int i = 0; i < port->gid_count; i++)
		if (!memcmp(&port->gids[i].gid, &gid->gid, sizeof(gid->gid)) &&
		    (port->gids[i].ifindex == gid->ifindex || !hv_gid_is_of_link(&gid->gid)))
			return true;
	return false;
}

bool hv_port_refresh(struct hv_context *ctx)
{
	struct hv_port now;
	bool any = false;

	if (ctx->device->index != HV_ETHERNET || hv_port_load(ctx->device, &now) || !hv_enter(ctx))
		return false;
	for (int i = 0; i < now.gid_count && ctx->port.gid_count < HV_GIDS; i++) {
		if (port_has_gid(&ctx->port, &now.gids[i]))
			continue;
		ctx->port.gids[ctx->port.gid_count] = now.gids[i];
		atomic_fetch_add(&ctx->port.gid_count, 1); /* others look without the lock */
		any = true;
	}
	if (any)
		hv_event_post(ctx,
			      &(struct ibv_async_event){ .element.port_num = 1,
							 .event_type = IBV_EVENT_GID_CHANGE },
			      NULL);
	hv_leave(ctx);
	return any;
}
