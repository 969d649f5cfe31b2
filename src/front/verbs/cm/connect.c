/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The calling side and parting: rdma_connect(3), rdma_establish(3),
 * rdma_disconnect(3), rdma_notify(3).
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DATA_CONNECT 56
#define DATA_CONNECT_NATIVE 92
#define DATA_CONNECT_UD 180
#define TIMEWAIT_MS 537 /* twice the packet lifetime of the path, 4.096 us << 16 */

/* ---- what both sides use --------------------------------------------------------------------- */

bool hv_cm_data_fits(const struct rdma_conn_param *param, size_t most)
{
	return !param ||
	       (param->private_data_len <= most && (!param->private_data_len || param->private_data));
}

int hv_cm_ep_open(struct hv_id *id)
{
	/* numbered, since those share ports */
	const struct hd_ep_attr attr = {
		.type = HD_EP_MSG, .policy = HD_EP_NUMBERED, .evq = id->channel->evq, .owner = id
	};
	int rc;

	if (!hv_enter(id->ctx))
		return -EIO;
	rc = hd_ep_open(id->ctx->node, &attr, &id->ep);
	if (!rc && !hv_id_is_datagram(id))
		hd_ep_down_after(id->ep, id->own.qp_num);
	hv_leave(id->ctx);
	return rc;
}

void hv_cm_ep_close(struct hv_id *id)
{
	hd_node_lock(id->ctx->node);
	hd_ep_close(id->ep);
	hd_node_unlock(id->ctx->node);
	id->ep = NULL;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* What the request says; -EINVAL: more than the device has. */
static int connect_prepare(struct hv_id *id, const struct rdma_conn_param *param)
{
	struct hv_head *own = &id->own;

	*own = (struct hv_head){ .qp_type = (uint8_t)hv_id_type(id),
				 .responder_resources = param ? param->responder_resources
							      : RDMA_MAX_RESP_RES,
				 .initiator_depth = param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH,
				 .retry_count = param ? hv_cm_tries(param->retry_count) : HV_CM_TRIES,
				 .rnr_retry_count = param ? hv_cm_tries(param->rnr_retry_count) : HV_CM_TRIES,
				 .flow_control = param ? param->flow_control : 0,
				 .srq = param ? param->srq : 0,
				 .qp_num = param ? param->qp_num : 0,
				 .psn = hv_cm_psn(),
				 .src_port = hv_sockaddr_port(&id->pub.route.addr.src_addr) };
	if (!hv_cm_depths(id, &own->responder_resources, &own->initiator_depth))
		return -EINVAL;
	if (id->pub.qp) {
		own->qp_num = id->pub.qp->qp_num;
		own->srq = id->pub.qp->srq != NULL;
	}
	own->native = id->pub.route.addr.dst_addr.sa_family == AF_IB;
	hv_sockaddr_map(&id->pub.route.addr.src_addr, own->src);
	hv_sockaddr_map(&id->pub.route.addr.dst_addr, own->dst);
	return 0;
}

/* With the lock. */
static int connect_call(struct hv_id *id, const struct hd_cm_data *data)
{
	struct sockaddr_storage to;
	const struct hd_connect_args args = { .to = (struct sockaddr *)&to,
					      .space = id->pub.ps,
					      .number = hv_sockaddr_port(&id->pub.route.addr.dst_addr),
					      .confirms = true,
					      .data = *data };
	int rc = hv_sockaddr_ip(&id->pub.route.addr.dst_addr, &to);

	if (!rc)
		rc = hv_cm_ep_open(id);
	if (rc)
		return rc;
	hd_node_lock(id->ctx->node);
	rc = hd_ep_connect(id->ep, &args);
	hd_node_unlock(id->ctx->node);
	if (rc)
		hv_cm_ep_close(id);
	else
		id->state = HV_ID_CONNECTING;
	return rc;
}

static size_t most_data(const struct hv_id *id)
{
	if (hv_id_is_datagram(id))
		return DATA_CONNECT_UD;
	return id->pub.route.addr.dst_addr.sa_family == AF_IB ? DATA_CONNECT_NATIVE : DATA_CONNECT;
}

/* Head, what rdma_create_ep was given, and the program's own data: false: it is too long. */
static bool data_make(const struct hv_id *id, const struct rdma_conn_param *param, uint8_t body[HD_CM_DATA],
		      struct hd_cm_data *out)
{
	size_t most = most_data(id);

	if (id->first_len > most || !hv_cm_data_fits(param, most - id->first_len))
		return false;
	out->len = hv_head_put(&id->own, id->first_data, id->first_len, body);
	if (param && param->private_data_len)
		memcpy(body + out->len, param->private_data, param->private_data_len);
	out->len += param ? param->private_data_len : 0;
	out->data = body;
	return true;
}

/* It is said once. */
static void first_data_drop(struct hv_id *id)
{
	free(id->first_data);
	id->first_data = NULL;
	id->first_len = 0;
}

HV_PUBLIC int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *conn_param)
{
	struct hv_id *id = hv_id_of(pub);
	uint8_t body[HD_CM_DATA];
	struct hd_cm_data data = { .word = HV_WORD };
	bool sync;
	int rc;

	if (!pub || id->state != HV_ID_ROUTED || id->ep)
		return hv_cm_ret(-EINVAL);
	rc = connect_prepare(id, conn_param);
	if (!rc && !data_make(id, conn_param, body, &data))
		rc = -EINVAL;
	if (rc)
		return hv_cm_ret(rc);
	if (!hv_id_is_datagram(id))
		data.word = hv_ece_word(&id->own_ece);
	sync = id->sync;
	hd_lock_take(&hv_cm_lock);
	rc = connect_call(id, &data);
	if (!rc)
		first_data_drop(id);
	hd_lock_give(&hv_cm_lock);
	return rc ? hv_cm_ret(rc) : hv_id_wait(id, sync);
}

HV_PUBLIC int rdma_establish(struct rdma_cm_id *pub)
{
	struct hv_id *id = hv_id_of(pub);
	int rc;

	if (!pub || pub->qp || id->state != HV_ID_ANSWERED)
		return hv_cm_ret(-EINVAL);
	if (!hv_enter(id->ctx))
		return hv_cm_ret(-EIO);
	rc = hd_ep_confirm(id->ep);
	hv_leave(id->ctx);
	if (!rc)
		id->state = HV_ID_CONNECTED;
	return hv_cm_ret(rc);
}

/* ---- parting --------------------------------------------------------------------------------- */

static bool can_part(const struct hv_id *id)
{
	return id->ep && (id->state == HV_ID_CONNECTED || id->state == HV_ID_ANSWERED ||
			  id->state == HV_ID_ACCEPTED || id->state == HV_ID_DISCONNECTED);
}

/*
 * Of what is over, however it ended, nothing is left to be done: programs leave again
 * when they read of the end.
 */
static bool is_over(const struct hv_id *id)
{
	return id->left || (id->state == HV_ID_DISCONNECTED && !id->ep);
}

/*
 * A connection that is none yet, or a datagram service, which never is one: there is nobody to be
 * told, and only the queue pair is given up.
 */
static bool has_begun(const struct hv_id *id)
{
	return id->state == HV_ID_CONNECTING || id->state == HV_ID_REQUESTED ||
	       (hv_id_is_datagram(id) && id->state == HV_ID_CONNECTED);
}

/*
 * The event comes from here, unless the engine has posted one because the other end was first; and
 * before the node lets anything in that the other end does next, as is to call again.
 * RDMA_CM_EVENT_TIMEWAIT_EXIT follows.
 */
static int cm_connect_part(struct hv_id *id)
{
	int rc;

	if (!hv_enter(id->ctx))
		return -EIO;
	rc = hd_ep_disconnect(id->ep, NULL);
	rc = rc ? 0 : hv_cm_post(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	if (id->parted || id->state != HV_ID_DISCONNECTED)
		hd_ep_alarm(id->ep, TIMEWAIT_MS);
	hv_leave(id->ctx);
	return rc;
}

HV_PUBLIC int rdma_disconnect(struct rdma_cm_id *pub)
{
	struct hv_id *id = hv_id_of(pub);
	bool told, sync;
	int rc;

	if (pub && is_over(id))
		return 0;
	if (pub && has_begun(id)) {
		hv_cm_qp_give_up(id);
		return 0;
	}
	if (!pub || !can_part(id))
		return hv_cm_ret(-EINVAL);
	hv_cm_qp_fail(id);
	sync = id->sync;
	hd_lock_take(&hv_cm_lock);
	told = id->state == HV_ID_DISCONNECTED; /* the event has been read */
	rc = cm_connect_part(id);
	id->state = HV_ID_DISCONNECTED;
	id->left = true;
	hd_lock_give(&hv_cm_lock);
	if (rc || told)
		return hv_cm_ret(rc);
	return hv_id_wait(id, sync);
}

int hv_cm_turn_down_answer(struct hv_id *id, const struct hd_cm_data *data)
{
	if (!hv_enter(id->ctx))
		return hv_cm_ret(-EIO);
	hd_ep_disconnect(id->ep, data);
	hv_leave(id->ctx);
	hd_lock_take(&hv_cm_lock);
	id->state = HV_ID_DISCONNECTED;
	id->left = true;
	hd_lock_give(&hv_cm_lock);
	return 0;
}

HV_PUBLIC int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
	struct hv_id *id = hv_id_of(pub);
	int rc;

	if (!pub || (event != IBV_EVENT_COMM_EST && event != IBV_EVENT_PATH_MIG))
		return hv_cm_ret(-EINVAL);
	/* the kernel's CM turns its own paths; ours are the queue pair's, which has */
	if (event == IBV_EVENT_PATH_MIG)
		return hv_cm_ret(id->state == HV_ID_CONNECTED ? 0 : -EINVAL);
	if (id->state == HV_ID_CONNECTED)
		return hv_cm_ret(-EISCONN);
	if (id->state != HV_ID_ACCEPTED)
		return hv_cm_ret(-EINVAL);
	if (!hv_enter(id->ctx))
		return hv_cm_ret(-EIO);
	rc = hd_ep_presume(id->ep);
	hv_leave(id->ctx);
	return hv_cm_ret(rc == -ENOTCONN ? -EINVAL : rc);
}
