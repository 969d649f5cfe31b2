/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Multicast: rdma_join_multicast_ex(3), rdma_leave_multicast(3). The id's queue pair is attached when its program reads of the join; what
 * is sent to a group needs no membership.
 */
#include "base/lock.h"
#include "front/verbs/addr.h"
#include "front/verbs/cm/cm.h"
#include "front/verbs/qp.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

struct hv_group {
	struct hv_group *next;
	union ibv_gid gid;
	void *context;
	bool sends_only;
	struct ibv_qp *attached;
};

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

static bool cm_mcast_leave(struct hv_id *id, const union ibv_gid *gid);

/* ---- joining -------------------------------------------------------------------------------------------------------------- */

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
		cm_mcast_leave(id, gid);
		return rc;
	}
	return hv_id_wait(id, sync) ? -errno : 0;
}

HV_PUBLIC int rdma_join_multicast_ex(struct rdma_cm_id *pub, struct rdma_cm_join_mc_attr_ex *attr,
				     void *context)
{
	struct hv_id *id = hv_id_of(pub);
	union ibv_gid gid;

	if (!pub || !attr || attr->comp_mask & ~(RDMA_CM_JOIN_MC_ATTR_RESERVED - 1u) ||
	    !(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
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

/* Is this group still joined? With the lock. */
static struct hv_group *group_find(struct hv_id *id, const void *group)
{
	struct hv_group *g = id->groups;

	while (g && g != group)
		g = g->next;
	return g;
}

static int cm_mcast_attach(struct hv_id *id, struct hv_group *g)
{
	int rc;

	if (!id->pub.qp || g->sends_only)
		return 0;
	rc = hv_ibv_attach_mcast(id->pub.qp, &g->gid, 0);
	if (!rc)
		g->attached = id->pub.qp;
	return rc;
}

/* The program reads of it, and may leave in another thread; false: it has left in the meantime. */
bool hv_group_joined(struct hv_cm_event *ev)
{
	struct rdma_ud_param *p = &ev->pub.param.ud;
	struct hv_id *id = ev->owner;
	struct hv_group *g, is = { .next = NULL };
	int rc = 0;

	hd_lock_take(&hv_cm_lock);
	g = group_find(id, ev->raw.ctx);
	if (g) {
		rc = cm_mcast_attach(id, g);
		is = *g;
	}
	hd_lock_give(&hv_cm_lock);
	if (!g)
		return false;
	p->private_data = is.context;
	hv_cm_av(id, &id->pub.route.addr.src_addr, &p->ah_attr);
	p->ah_attr.grh.dgid = is.gid;
	p->qp_num = HV_QPN_GROUP;
	p->qkey = RDMA_UDP_QKEY;
	if (rc) {
		ev->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		ev->pub.status = -rc;
	}
	return true;
}

/* ---- leaving ---------------------------------------------------------------------------------------------------------------- */

/* Take it out of the list. With the lock; the id's queue pair may be gone already. */
static struct hv_group *take_out(struct hv_id *id, const union ibv_gid *gid)
{
	for (struct hv_group **at = &id->groups; *at; at = &(*at)->next) {
		struct hv_group *g = *at;

		if (gid && memcmp(&g->gid, gid, sizeof(*gid)) != 0)
			continue;
		*at = g->next;
		return g;
	}
	return NULL;
}

static bool cm_mcast_leave(struct hv_id *id, const union ibv_gid *gid)
{
	struct hv_group *g;

	hd_lock_take(&hv_cm_lock);
	g = take_out(id, gid);
	if (g && g->attached && g->attached == id->pub.qp)
		hv_ibv_detach_mcast(id->pub.qp, &g->gid, 0);
	hd_lock_give(&hv_cm_lock);
	if (g)
		hd_evq_forget_ctx(id->channel->evq, g); /* that it was joined, if nobody has read of it */
	free(g);
	return g != NULL;
}

HV_PUBLIC int rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	union ibv_gid gid;

	if (!pub || !addr || !gid_of(addr, &gid))
		return hv_cm_ret(-EINVAL);
	return hv_cm_ret(cm_mcast_leave(hv_id_of(pub), &gid) ? 0 : -EADDRNOTAVAIL);
}

void hv_id_leave_groups(struct hv_id *id)
{
	while (cm_mcast_leave(id, NULL))
		;
}
