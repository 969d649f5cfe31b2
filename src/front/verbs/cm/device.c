/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The device that ids are bound to: heddle1, whose GIDs are the addresses of this host; by native
 * addresses also heddle0. And a list of both.
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOP_LIMIT 64
#define PACKET_LIFETIME 16 /* 4.096 us << 16: what a path record says of RoCE */

static struct hv_context *contexts[HV_DEVICES]; /* the two are under hv_cm_lock */
static struct ibv_pd *domains[HV_DEVICES];

/*
 * The context, if there is one that lives: in a forked child the parent's is dead. With the lock.
 */
static struct hv_context *living(enum hv_device_index index)
{
	struct hv_context *ctx = contexts[index];

	return ctx && !hd_node_dead(ctx->node) ? ctx : NULL;
}

/*
 * Opened without the lock, for a fork takes the list of all locks, which this one
 * joins, before it takes ours.
 */
struct hv_context *hv_cm_context_of(enum hv_device_index index)
{
	struct ibv_context *opened;
	struct hv_context *ctx;

	hd_lock_take(&hv_cm_lock);
	ctx = living(index);
	hd_lock_give(&hv_cm_lock);
	if (ctx)
		return ctx;
	opened = hv_ibv_open_device(&hv_devices[index].pub);
	if (!opened)
		return NULL;
	hd_lock_take(&hv_cm_lock);
	ctx = living(index);
	if (!ctx) {
		ctx = contexts[index] = hv_context_of(opened);
		domains[index] = NULL;
		opened = NULL;
	}
	hd_lock_give(&hv_cm_lock);
	if (opened) /* another thread was faster */
		hv_ibv_close_device(opened);
	return ctx;
}

struct hv_context *hv_cm_context(void)
{
	return hv_cm_context_of(HV_ETHERNET);
}

bool hv_cm_is_dead(void)
{
	bool dead;

	hd_lock_take(&hv_cm_lock);
	dead = contexts[HV_ETHERNET] && hd_node_dead(contexts[HV_ETHERNET]->node);
	hd_lock_give(&hv_cm_lock);
	return dead;
}

/* The one default protection domain, rdma_create_qp(3). */
static struct ibv_pd *device_domain_get(struct hv_context *ctx)
{
	struct ibv_pd **place = &domains[ctx->device->index], *pd;

	hd_lock_take(&hv_cm_lock);
	if (!*place)
		*place = hv_pd_default(ctx);
	pd = *place;
	hd_lock_give(&hv_cm_lock);
	return pd;
}

int hv_gid_index(const struct hv_context *ctx, const struct sockaddr *addr)
{
	union ibv_gid gid;

	hv_sockaddr_map(addr, gid.raw); /* what GIDs of heddle1 are, and native addresses have */
	for (int i = 0; i < ctx->port.gid_count; i++)
		if (!memcmp(&ctx->port.gids[i].gid, &gid, sizeof(gid)) &&
		    (!hd_sockaddr_is_of_link(addr) || ctx->port.gids[i].ifindex == hd_sockaddr_scope(addr)))
			return i;
	return -ENODEV;
}

static void ib_addresses(struct hv_id *id)
{
	struct rdma_addr *addr = &id->pub.route.addr;

	hv_sockaddr_map(&addr->src_addr, addr->addr.ibaddr.sgid.raw);
	if (addr->dst_addr.sa_family && !hv_sockaddr_is_any(&addr->dst_addr))
		hv_sockaddr_map(&addr->dst_addr, addr->addr.ibaddr.dgid.raw);
	addr->addr.ibaddr.pkey = htobe16(0xffff);
}

/* The context of the device that has this address, which may be new; NULL with errno. */
static struct hv_context *context_with(const struct sockaddr *addr)
{
	struct hv_context *ctx = hv_cm_context();

	if (!ctx || hv_gid_index(ctx, addr) >= 0)
		return ctx;
	if (addr->sa_family == AF_IB) {
		ctx = hv_cm_context_of(HV_INFINIBAND);
		if (!ctx || hv_gid_index(ctx, addr) >= 0)
			return ctx;
		ctx = hv_cm_context();
	}
	if (!ctx || (hv_port_refresh(ctx) && hv_gid_index(ctx, addr) >= 0))
		return ctx;
	return hv_fail(ENODEV);
}

int hv_id_bind(struct hv_id *id, const struct sockaddr *addr)
{
	struct hv_context *ctx = context_with(addr);
	struct ibv_pd *pd = ctx ? device_domain_get(ctx) : NULL;

	if (!pd)
		return errno ? -errno : -ENODEV;
	id->ctx = ctx;
	id->pub.verbs = &ctx->pub.context;
	id->pub.port_num = 1;
	if (!id->pub.pd)
		id->pub.pd = pd;
	ib_addresses(id);
	return 0;
}

void hv_cm_av(const struct hv_id *id, const struct sockaddr *to, struct ibv_ah_attr *out)
{
	int index = hv_gid_index(id->ctx, &id->pub.route.addr.src_addr);

	*out = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	if (to->sa_family == AF_IB)
		hv_sockaddr_map(to, out->grh.dgid.raw);
	else
		hv_addr_gid(id->ctx, to, &out->grh.dgid);
	out->grh.sgid_index = (uint8_t)(index < 0 ? 0 : index);
	out->grh.hop_limit = HOP_LIMIT;
	out->grh.traffic_class = id->tos;
}

int hv_cm_path_make(struct hv_id *id)
{
	struct rdma_route *way = &id->pub.route;
	struct ibv_sa_path_rec *path = calloc(1, sizeof(*path));
	struct ibv_port_attr port = { .active_mtu = IBV_MTU_4096 };

	if (!path)
		return -ENOMEM;
	hv_ibv_query_port(&id->ctx->pub.context, 1, (struct _compat_ibv_port_attr *)&port);
	path->sgid = way->addr.addr.ibaddr.sgid;
	path->dgid = way->addr.addr.ibaddr.dgid;
	path->pkey = way->addr.addr.ibaddr.pkey;
	path->hop_limit = HOP_LIMIT;
	path->reversible = 1;
	path->numb_path = 1;
	/* exactly */
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2;
	path->mtu = (uint8_t)port.active_mtu;
	path->rate = IBV_RATE_100_GBPS;
	path->packet_life_time = PACKET_LIFETIME;
	path->traffic_class = id->tos;
	free(way->path_rec);
	way->path_rec = path;
	way->num_paths = 1;
	return 0;
}

/* ---- rdma_get_devices(3) --------------------------------------------------------------------- */

/*
 * rdma_get_devices: all that ibv_get_device_list(3) has of ours, since callers go by that one's
 * count (Ceph's messenger does). heddle1 is first: who takes the first one has that of his ids. One
 * that cannot be opened is left out, as librdmacm has it.
 */
HV_PUBLIC struct ibv_context **rdma_get_devices(int *num_devices)
{
	static const enum hv_device_index order[HV_DEVICES] = { HV_ETHERNET, HV_INFINIBAND };
	struct ibv_context **list = calloc(HV_DEVICES + 1, sizeof(struct ibv_context *));
	int count = 0;

	for (int i = 0; list && i < HV_DEVICES; i++) {
		struct hv_context *ctx = hv_cm_context_of(order[i]);

		if (ctx)
			list[count++] = &ctx->pub.context;
	}
	if (num_devices)
		*num_devices = count;
	if (count)
		return list;
	free(list);
	return NULL;
}

HV_PUBLIC void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
