/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Synchronous endpoints in one call: rdma_create_ep(3), rdma_destroy_ep(3). */
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000

static int listener_fill(struct hv_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (attr) {
		id->wanted = malloc(sizeof(*attr));
		if (!id->wanted)
			return hv_cm_ret(-ENOMEM);
		*id->wanted = *attr;
		id->wanted->qp_type = id->pub.qp_type;
	}
	if (pd)
		id->pub.pd = pd;
	return 0;
}

/* The route is looked for, unless the program has brought one along. */
static int ep_route(struct hv_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_route_len)
		return rdma_resolve_route(&id->pub, RESOLVE_MS);
	if (rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len))
		return -1;
	return hv_id_wait(id, true);
}

static int keep_first_data(struct hv_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->first_data = malloc(res->ai_connect_len);
	if (!id->first_data)
		return hv_cm_ret(-ENOMEM);
	memcpy(id->first_data, res->ai_connect, res->ai_connect_len);
	id->first_len = res->ai_connect_len;
	return 0;
}

static int caller_fill(struct hv_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
	    ep_route(id, res) || keep_first_data(id, res))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = id->pub.qp_type;
	return rdma_create_qp(&id->pub, pd, attr);
}

static int ep_fill(struct hv_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	if (!(res->ai_flags & RAI_PASSIVE))
		return caller_fill(id, res, pd, attr);
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return -1;
	return listener_fill(id, pd, attr);
}

HV_PUBLIC int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct hv_id *id;
	int err;

	if (!out || !res ||
	    (res->ai_qp_type != IBV_QPT_RC && res->ai_qp_type != IBV_QPT_UC &&
	     res->ai_qp_type != IBV_QPT_UD && res->ai_qp_type != IBV_QPT_XRC_SEND &&
	     res->ai_qp_type != IBV_QPT_XRC_RECV))
		return hv_cm_ret(-EINVAL);
	id = hv_id_make(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
			(enum ibv_qp_type)res->ai_qp_type);
	if (!id)
		return -1;
	if (ep_fill(id, res, pd, qp_init_attr)) {
		err = errno;
		rdma_destroy_ep(&id->pub);
		return hv_cm_ret(-err);
	}
	*out = &id->pub;
	return 0;
}

HV_PUBLIC void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
