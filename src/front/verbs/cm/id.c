/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Identifiers: rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3). */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ------------------------------------------------------------------------------------ */

/* One user more of the channel, or a channel of the id's own. NULL with errno. */
static struct hv_cm_channel *channel_use(struct hv_cm_channel *channel)
{
	struct rdma_event_channel *own;

	if (channel) {
		atomic_fetch_add(&channel->users, 1);
		return channel;
	}
	own = rdma_create_event_channel();
	return own ? hv_cm_channel_of(own) : NULL;
}

static void channel_set(struct hv_id *id, struct hv_cm_channel *channel, bool sync)
{
	id->channel = channel;
	id->pub.channel = &channel->pub;
	id->sync = sync;
}

struct hv_id *hv_id_make(struct hv_cm_channel *channel, void *context, enum rdma_port_space ps,
			 enum ibv_qp_type type)
{
	struct hv_id *id = calloc(1, sizeof(*id));
	struct hv_cm_channel *used;

	if (!id)
		return hv_fail(ENOMEM);
	used = channel_use(channel);
	if (!used) {
		free(id);
		return NULL;
	}
	channel_set(id, used, !channel);
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = type;
	return id;
}

HV_PUBLIC int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			     enum rdma_port_space ps)
{
	bool datagram = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
	struct hv_id *made;

	if (!id || (!datagram && ps != RDMA_PS_TCP && ps != RDMA_PS_IB))
		return hv_cm_ret(-EINVAL);
	made = hv_id_make(channel ? hv_cm_channel_of(channel) : NULL, context, ps,
			  datagram ? IBV_QPT_UD : IBV_QPT_RC);
	if (!made)
		return -1;
	*id = &made->pub;
	return 0;
}

/* With the lock. */
void hv_listener_put(struct hv_listener *l)
{
	if (--l->users)
		return;
	hd_node_lock(l->ctx->node);
	hd_service_close(l->service);
	hd_node_unlock(l->ctx->node);
	free(l);
}

/*
 * Nobody is taken in any more. Requests that have been read stay, and the service with them, for
 * another thread may be about to make ids of them: it is given back when no event of the
 * listener is left. With the lock.
 */
static void listener_leave(struct hv_id *id)
{
	hd_node_lock(id->listener->ctx->node);
	hd_service_shut(id->listener->service);
	hd_node_unlock(id->listener->ctx->node);
}

void hv_id_turn_away(struct hv_id *id)
{
	hd_lock_take(&hv_cm_lock);
	listener_leave(id);
	hd_lock_give(&hv_cm_lock);
}

/* An id that was asked for goes without an answer: that is a rejection. With the lock. */
static void request_leave(struct hv_id *id)
{
	if (id->request) {
		hd_node_lock(id->listener->ctx->node);
		hd_request_reject(id->request, &(struct hd_cm_data){ .word = HV_WORD | HV_REJ_CONSUMER });
		hd_node_unlock(id->listener->ctx->node);
	}
	id->request = NULL;
	hv_listener_put(id->listener);
	id->listener = NULL;
}

static void engine_leave(struct hv_id *id)
{
	hd_lock_take(&hv_cm_lock);
	if (id->ep) {
		hd_node_lock(id->ctx->node);
		hd_ep_close(id->ep);
		hd_node_unlock(id->ctx->node);
	}
	if (id->listener && id->is_request)
		request_leave(id);
	else if (id->listener)
		listener_leave(id);
	id->ep = NULL;
	hd_lock_give(&hv_cm_lock);
}

static void service_give(struct hv_id *id)
{
	hd_lock_take(&hv_cm_lock);
	if (id->listener)
		hv_listener_put(id->listener);
	hd_lock_give(&hv_cm_lock);
}

void hv_id_release(struct hv_id *id)
{
	if (id->pub.event)
		rdma_ack_cm_event(id->pub.event);
	id->pub.event = NULL;
}

HV_PUBLIC int rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct hv_id *id = hv_id_of(pub);

	if (!pub)
		return hv_cm_ret(-EINVAL);
	hv_id_leave_groups(id);
	engine_leave(id);
	hd_evq_forget(id->channel->evq, id);
	hv_id_release(id);
	hv_id_wait_acked(id);
	service_give(id);
	hv_cm_channel_put(id->channel);
	free(id->pub.route.path_rec);
	free(id->wanted);
	free(id->first_data);
	rdma_freeaddrinfo(id->info);
	free(id);
	return 0;
}

/* ---- other channels -------------------------------------------------------------------------- */

/* With the lock: what the engine will say goes to the other queue, and what nobody has read. */
static int engine_move(struct hv_id *id, struct hd_evq *to)
{
	int rc = 0;

	if (id->ep) {
		hd_node_lock(id->ctx->node);
		rc = hd_ep_set_evq(id->ep, to);
		hd_node_unlock(id->ctx->node);
	} else if (id->listener && !id->is_request) {
		hd_node_lock(id->listener->ctx->node);
		rc = hd_service_set_evq(id->listener->service, to);
		hd_node_unlock(id->listener->ctx->node);
	}
	return rc;
}

HV_PUBLIC int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
	struct hv_id *id = hv_id_of(pub);
	struct hv_cm_channel *to, *from;
	int rc;

	if (!pub || (id->sync && !channel))
		return hv_cm_ret(-EINVAL);
	to = channel_use(channel ? hv_cm_channel_of(channel) : NULL);
	if (!to)
		return -1;
	hv_id_release(id);
	hd_lock_take(&hv_cm_lock);
	from = id->channel;
	rc = engine_move(id, to->evq);
	if (!rc) {
		hd_evq_move(from->evq, to->evq, id);
		channel_set(id, to, !channel);
	}
	hd_lock_give(&hv_cm_lock);
	if (!rc)
		hv_id_wait_acked(id);
	hv_cm_channel_put(rc ? to : from);
	return hv_cm_ret(rc);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static __be16 id_port_of(const struct sockaddr *addr)
{
	return hv_sockaddr_size(addr) ? htobe16(hv_sockaddr_port(addr)) : 0;
}

HV_PUBLIC __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id_port_of(&id->route.addr.src_addr);
}

HV_PUBLIC __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id_port_of(&id->route.addr.dst_addr);
}
