/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * RDMA_ROUTE of rsocket(7), struct ibv_path_data: the path that a program wants is kept until its
 * address is known; what is asked for is that, or the path of the connection.
 */
#include "front/verbs/rs/rs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUTE_MS 2000
#define EXACTLY (2 << 6) /* the selector of a value in a path record */

int rs_route_set(struct rs_route *route, const void *data, size_t len)
{
	void *copy;

	if (!len || len % sizeof(struct ibv_path_data))
		return -EINVAL;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, len);
	rs_route_drop(route);
	route->data = copy;
	route->len = len;
	return 0;
}

void rs_route_drop(struct rs_route *route)
{
	free(route->data);
	route->data = NULL;
}

int rs_route_resolve(struct rs_route *route, struct rdma_cm_id *id)
{
	int rc;

	if (!route->data)
		return rdma_resolve_route(id, ROUTE_MS) ? -errno : 0;
	rc = rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, route->data, route->len) ? -errno : 0;
	rs_route_drop(route);
	return rc;
}

/* As librdmacm makes it. */
static struct ibv_path_data route_of(const struct ibv_sa_path_rec *path)
{
	const uint32_t flow = be32toh(path->flow_label) << 8;

	return (struct ibv_path_data){
		.flags = path->preference,
		.path = { .dgid = path->dgid,
			  .sgid = path->sgid,
			  .dlid = path->dlid,
			  .slid = path->slid,
			  .flowlabel_hoplimit = htobe32(flow | path->hop_limit),
			  .tclass = path->traffic_class,
			  .reversible_numpath = (uint8_t)(path->reversible << 7 | 1),
			  .pkey = path->pkey,
			  .qosclass_sl = htobe16(path->sl),
			  .mtu = path->mtu | EXACTLY,
			  .rate = path->rate | EXACTLY,
			  .packetlifetime = path->packet_life_time | EXACTLY },
	};
}

int rs_route_get(const struct rs_route *route, const struct rdma_cm_id *id, void *data, socklen_t *len)
{
	const struct rdma_route *way = &id->route;
	const size_t wanted = route->data ? route->len : sizeof(struct ibv_path_data);
	struct ibv_path_data path;

	if (*len < wanted)
		return -EINVAL;
	*len = 0;
	if (route->data) {
		memcpy(data, route->data, wanted);
		*len = (socklen_t)wanted;
	} else if (way->num_paths) {
		path = route_of(way->path_rec);
		memcpy(data, &path, sizeof(path));
		*len = sizeof(path);
	}
	return 0;
}
