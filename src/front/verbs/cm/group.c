/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The multicast groups that ids have joined: attached when the program reads of the join, and left.
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"
#include "front/verbs/qp.h"

#include <stdlib.h>
#include <string.h>

/* Is this group still joined? With the lock. */
static struct hv_group *group_find(struct hv_id *id, const void *group)
{
	struct hv_group *g = id->groups;

	while (g && g != group)
		g = g->next;
	return g;
}

static int group_attach(struct hv_id *id, struct hv_group *g)
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
		rc = group_attach(id, g);
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

/* ---- leaving --------------------------------------------------------------------------------- */

/* Take it out of the list. With the lock; the id's queue pair may be gone already. */
static struct hv_group *group_take_out(struct hv_id *id, const union ibv_gid *gid)
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

bool hv_group_leave(struct hv_id *id, const union ibv_gid *gid)
{
	struct hv_group *g;

	hd_lock_take(&hv_cm_lock);
	g = group_take_out(id, gid);
	if (g && g->attached && g->attached == id->pub.qp)
		hv_ibv_detach_mcast(id->pub.qp, &g->gid, 0);
	hd_lock_give(&hv_cm_lock);
	if (g)
		/* that it was joined, if nobody has read of it */
		hd_evq_forget_ctx(id->channel->evq, g);
	free(g);
	return g != NULL;
}

void hv_id_leave_groups(struct hv_id *id)
{
	while (hv_group_leave(id, NULL))
		;
}
