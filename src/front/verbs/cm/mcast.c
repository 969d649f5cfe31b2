/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Multicast: rdma_join_multicast_ex(3), rdma_leave_multicast(3). The id's queue pair is attached
 * when its program reads of the join; what is sent to a group needs no membership.
 */
#include "base/lock.h"
#include "front/verbs/addr.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

/* A group's address may also be a GID as it is (AF_IB). False: it is no group. */
static bool gid_of(const struct sockaddr *addr, union ibv_gid *out)
{
	if (addr->sa_family == AF_IB)
		memcpy(out, &((const struct sockaddr_ib *)(const void *)addr)->sib_addr, sizeof(*out));
	else if (hd_sockaddr_size(addr))
		hv_sockaddr_map(addr, out->raw);
	else
		return false;
	return hv_gid_is_multicast(out);
}

/* ---- joining --------------------------------------------------------------------------------- */

static int cm_mcast_join(struct hv_id *id, const union ibv_gid *gid, bool sends_only, void *context)
{
	struct hv_group *g = calloc(1, sizeof(*g));
	bool sync = id->sync;
	int rc;

	if (!g)
		return -ENOMEM;
	g->gid = *gid;
	g->context = context;
	g->sends_only = sends_only;
	hd_lock_take(&hv_cm_lock);
	g->next = id->groups;
	id->groups = g;
	hd_lock_give(&hv_cm_lock);
	rc = hv_cm_post(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0, g);
	if (rc) {
		hv_group_leave(id, gid);
		return rc;
	}
	return hv_id_wait(id, sync) ? -errno : 0;
}

HV_PUBLIC int rdma_join_multicast_ex(struct rdma_cm_id *pub, struct rdma_cm_join_mc_attr_ex *attr,
				     void *context)
{
	struct hv_id *id = hv_id_of(pub);
	union ibv_gid gid;

	if (pub && attr && attr->comp_mask & ~(RDMA_CM_JOIN_MC_ATTR_RESERVED - 1u))
		return hv_cm_ret(-ENOTSUP);
	if (!pub || !attr || !(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
	    !(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) ||
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return hv_cm_ret(-EINVAL);
	if (!id->ctx || !hv_id_is_datagram(id) || !attr->addr || !gid_of(attr->addr, &gid))
		return hv_cm_ret(-EINVAL);
	return hv_cm_ret(
		cm_mcast_join(id, &gid, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context));
}

HV_PUBLIC int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

HV_PUBLIC int rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	union ibv_gid gid;

	if (!pub || !addr || !gid_of(addr, &gid))
		return hv_cm_ret(-EINVAL);
	return hv_cm_ret(hv_group_leave(hv_id_of(pub), &gid) ? 0 : -EADDRNOTAVAIL);
}
