/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The called side: rdma_listen(3), rdma_get_request(3), rdma_accept(3), rdma_reject(3). */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <string.h>

#define WAITING 4096 /* requests of one listener that have not been answered */
#define DATA_ACCEPT 196
#define DATA_ACCEPT_UD 136
#define DATA_REJECT 148
#define DATA_REJECT_UD 136

/* ---- who is let in --------------------------------------------------------------------------- */

static bool listen_has_gid(const struct hv_port *port, const uint8_t gid[16])
{
	for (int i = 0; i < port->gid_count; i++)
		if (!memcmp(&port->gids[i].gid, gid, sizeof(port->gids[i].gid)))
			return true;
	return false;
}

/* Is what was called an address of this host, as far as the listener's device knows, or by now? */
static bool is_here(const struct hv_id *listener, const struct hv_head *head)
{
	struct hv_port now;

	if (listen_has_gid(&listener->listener->ctx->port, head->dst))
		return true;
	for (int i = head->native ? HV_INFINIBAND : HV_ETHERNET; i < HV_DEVICES; i++)
		if (!hv_port_load(&hv_devices[i], &now) && listen_has_gid(&now, head->dst))
			return true;
	return false;
}

/*
 * Before it becomes an event: one that the program is not to be told of must not
 * make its channel readable.
 */
static uint64_t screen(void *owner, const struct hd_cm_data *data)
{
	const struct hv_id *listener = owner;
	struct hv_head head;

	if (hv_head_get(&head, data->data, data->len) && hv_request_is_wanted(listener, &head) &&
	    is_here(listener, &head))
		return 0;
	return HV_WORD | (hv_id_is_datagram(listener) ? HV_SIDR_UNSUPPORTED : HV_REJ_NOBODY);
}

/* ---- listening ------------------------------------------------------------------------------- */

/*
 * Is it called by an address of the family that the listener is for? Another
 * one may have the same port.
 */
static bool is_called_by(const void *owner, const void *data, size_t len)
{
	int family = hv_id_only_family(owner);
	struct sockaddr_storage called;
	struct hv_head head;

	if (!family || !hv_head_get(&head, data, len) || head.native)
		return true;
	hv_sockaddr_unmap(head.dst, 0, (struct sockaddr *)&called);
	return called.ss_family == family;
}

/*
 * The backlog turns nobody away: with a card, callers for whom there is no room ask again, for a
 * minute or more, until there is. Here they wait. What the channel has been readable for stays to
 * be read: a program that polls it first must not wait in rdma_get_cm_event.
 */
static int cm_listen_locked(struct hv_id *id)
{
	const struct hd_listen_args args = { .evq = id->channel->evq,
					     .owner = id,
					     .wants = is_called_by,
					     .screen = screen,
					     .backlog = WAITING,
					     .keeps = true };
	struct hv_context *ctx = id->listener->ctx;
	int rc;

	if (!hv_enter(ctx))
		return -EIO;
	rc = hd_service_listen(id->listener->service, &args);
	hv_leave(ctx);
	return rc;
}

HV_PUBLIC int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	struct hv_id *id = hv_id_of(pub);
	int rc;

	if (!pub || (id->state != HV_ID_IDLE && id->state != HV_ID_BOUND))
		return hv_cm_ret(-EINVAL);
	if (id->state == HV_ID_IDLE)
		pub->route.addr.src_addr.sa_family = id->af_only ? AF_INET6 : AF_INET;
	rc = hv_id_take_port(id);
	if (rc)
		return hv_cm_ret(rc);
	hd_lock_take(&hv_cm_lock);
	rc = cm_listen_locked(id);
	if (!rc)
		id->state = HV_ID_LISTENING;
	hd_lock_give(&hv_cm_lock);
	return hv_cm_ret(rc);
}

/* ---- synchronous listeners ------------------------------------------------------------------- */

/* What rdma_create_ep has said of the queue pairs of this listener's connections. */
static int listen_equip(struct hv_id *listener, struct hv_id *id)
{
	struct ibv_qp_init_attr attr;

	if (!listener->wanted)
		return 0;
	attr = *listener->wanted;
	return rdma_create_qp(&id->pub, listener->pub.pd, &attr);
}

HV_PUBLIC int rdma_get_request(struct rdma_cm_id *pub, struct rdma_cm_id **out)
{
	struct hv_id *listener = hv_id_of(pub), *id;
	struct rdma_cm_event *event;
	int rc;

	if (!pub || !out || !listener->sync || listener->state != HV_ID_LISTENING)
		return hv_cm_ret(-EINVAL);
	hv_id_release(listener);
	if (rdma_get_cm_event(pub->channel, &event))
		return -1;
	if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rc = event->status < 0 ? event->status : -EINVAL;
		rdma_ack_cm_event(event);
		return hv_cm_ret(rc);
	}
	id = hv_id_of(event->id);
	if (rdma_migrate_id(&id->pub, NULL) || listen_equip(listener, id)) {
		rc = errno;
		rdma_ack_cm_event(event);
		rdma_destroy_id(&id->pub);
		return hv_cm_ret(-rc);
	}
	hv_event_adopt(event, id);
	id->pub.event = event;
	*out = &id->pub;
	return 0;
}

/* ---- answering ------------------------------------------------------------------------------- */

/* The request is void. With the lock. */
static void request_done(struct hv_id *id)
{
	id->request = NULL;
	id->is_request = false;
	hv_listener_put(id->listener);
	id->listener = NULL;
}

/* What the answer says; the id's own figures. Negative errno: it asks for too much. */
static int listen_prepare(struct hv_id *id, const struct rdma_conn_param *param)
{
	struct hv_head *own = &id->own;

	hv_request_foresee(id); /* an answer that came to nothing may have left other figures */
	*own = (struct hv_head){
		.qp_type = (uint8_t)hv_id_type(id),
		.responder_resources = param && param->responder_resources != RDMA_MAX_RESP_RES
					       ? param->responder_resources
					       : own->responder_resources,
		.initiator_depth = param && param->initiator_depth != RDMA_MAX_INIT_DEPTH
					   ? param->initiator_depth
					   : own->initiator_depth,
		.retry_count = own->retry_count,
		.rnr_retry_count = param ? hv_cm_tries(param->rnr_retry_count) : id->other.rnr_retry_count,
		.flow_control = param ? param->flow_control : 0,
		.srq = param ? param->srq : 0,
		.qp_num = param ? param->qp_num : 0,
		.psn = own->psn,
		.qkey = RDMA_UDP_QKEY
	};
	if (!hv_cm_depths(id, &own->responder_resources, &own->initiator_depth)) {
		hv_request_foresee(id);
		return -EINVAL;
	}
	if (own->initiator_depth > id->other.responder_resources)
		own->initiator_depth = id->other.responder_resources;
	if (id->pub.qp) {
		own->qp_num = id->pub.qp->qp_num;
		own->srq = id->pub.qp->srq != NULL;
	}
	hv_sockaddr_map(&id->pub.route.addr.src_addr, own->src);
	hv_sockaddr_map(&id->pub.route.addr.dst_addr, own->dst);
	return 0;
}

/* The answer of a datagram service is a rejection that says where the queue pair is. */
static int answer_datagram(struct hv_id *id, const struct hd_cm_data *data)
{
	if (!hv_enter(id->listener->ctx))
		return -EIO;
	hd_request_reject(id->request, data);
	hv_leave(id->listener->ctx);
	request_done(id);
	id->state = HV_ID_CONNECTED;
	return 0;
}

static int answer_connected(struct hv_id *id, const struct hd_cm_data *data)
{
	int rc = hv_cm_ep_open(id);

	if (rc)
		return rc;
	rc = hd_ep_accept(id->ep, id->request, data);
	if (rc) {
		hv_cm_ep_close(id);
		if (rc == -ECONNABORTED)
			request_done(id);
		return rc;
	}
	request_done(id);
	id->state = HV_ID_ACCEPTED;
	return 0;
}

static int accept_with(struct hv_id *id, const struct rdma_conn_param *param)
{
	uint8_t body[HD_CM_DATA];
	struct hd_cm_data data = { .data = body, .word = HV_WORD_FOUND };
	int rc = listen_prepare(id, param);

	if (!rc && id->pub.qp && !hv_id_is_datagram(id))
		rc = hv_cm_qp_connect(id);
	if (rc)
		return rc;
	if (!hv_id_is_datagram(id))
		data.word = hv_ece_word(&id->own_ece);
	data.len = hv_head_put(&id->own, param ? param->private_data : NULL,
			       param ? param->private_data_len : 0, body);
	hd_lock_take(&hv_cm_lock);
	rc = hv_id_is_datagram(id) ? answer_datagram(id, &data) : answer_connected(id, &data);
	hd_lock_give(&hv_cm_lock);
	if (rc)
		hv_cm_qp_fail(id);
	return rc;
}

HV_PUBLIC int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *conn_param)
{
	struct hv_id *id = hv_id_of(pub);
	bool waits;
	int rc;

	if (!pub || id->state != HV_ID_REQUESTED || !id->request ||
	    !hv_cm_data_fits(conn_param, hv_id_is_datagram(id) ? DATA_ACCEPT_UD : DATA_ACCEPT))
		return hv_cm_ret(-EINVAL);
	waits = id->sync && !hv_id_is_datagram(id);
	rc = accept_with(id, conn_param);
	return rc ? hv_cm_ret(rc) : hv_id_wait(id, waits);
}

static int reject_with(struct hv_id *id, const struct hd_cm_data *data)
{
	struct hv_context *ctx = id->listener->ctx;

	if (!hv_enter(ctx))
		return -EIO;
	hd_request_reject(id->request, data);
	hv_leave(ctx);
	request_done(id);
	id->state = HV_ID_DISCONNECTED;
	return 0;
}

/* reason: of a connection's. */
static int listen_turn_down(struct rdma_cm_id *pub, int reason, const void *private_data, uint8_t len)
{
	struct hv_id *id = hv_id_of(pub);
	struct hd_cm_data data = { .data = private_data, .len = len };
	int rc;

	if (!pub || (len && !private_data) || len > (hv_id_is_datagram(id) ? DATA_REJECT_UD : DATA_REJECT))
		return hv_cm_ret(-EINVAL);
	data.word = HV_WORD | (unsigned)(hv_id_is_datagram(id) ? HV_SIDR_REJECT : reason);
	if (id->state == HV_ID_ANSWERED)
		return hv_cm_turn_down_answer(id, &data);
	if (id->state != HV_ID_REQUESTED || !id->request)
		return hv_cm_ret(-EINVAL);
	hd_lock_take(&hv_cm_lock);
	rc = reject_with(id, &data);
	hd_lock_give(&hv_cm_lock);
	hv_id_release(id);
	return hv_cm_ret(rc);
}

HV_PUBLIC int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return listen_turn_down(id, HV_REJ_CONSUMER, private_data, private_data_len);
}

HV_PUBLIC int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return listen_turn_down(id, HV_REJ_VENDOR, private_data, private_data_len);
}
