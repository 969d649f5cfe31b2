/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the engine's events mean to programs of rdma_cm, rdma_get_cm_event(3). Queue
 * pairs of ids are moved here.
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <string.h>

/*
 * What programs see as the length of private data: what an InfiniBand message has room
 * for, however much was sent.
 */
#define SHOWN_REQUEST 56
#define SHOWN_REQUEST_NATIVE 92
#define SHOWN_REQUEST_UD 180
#define SHOWN_ANSWER 196
#define SHOWN_ANSWER_UD 136
#define SHOWN_REJECT 148
#define SHOWN_REJECT_UD 136

void hv_event_adopt(struct rdma_cm_event *event, struct hv_id *id)
{
	struct hv_cm_event *ev = hv_container(event, struct hv_cm_event, pub);
	struct hv_id *owner = ev->owner;

	atomic_fetch_add(&id->unacked, 1);
	ev->owner = id;
	hv_id_unpin(owner);
}

static void event_say(struct hv_cm_event *ev, struct hv_id *id, enum rdma_cm_event_type type, int status)
{
	ev->pub.id = &id->pub;
	ev->pub.event = type;
	ev->pub.status = status;
}

/* ---- details of events ----------------------------------------------------------------------- */

static void conn_details(struct hv_cm_event *ev, const struct hv_head *head, uint8_t shown)
{
	struct rdma_conn_param *p = &ev->pub.param.conn;

	*p = (struct rdma_conn_param){ .private_data = ev->data + HV_HEAD,
				       .private_data_len = shown,
				       .responder_resources = head->initiator_depth,
				       .initiator_depth = head->responder_resources,
				       .flow_control = head->flow_control,
				       .retry_count = head->retry_count,
				       .rnr_retry_count = head->rnr_retry_count,
				       .srq = head->srq,
				       .qp_num = head->qp_num };
}

static void ud_details(struct hv_cm_event *ev, const struct hv_id *id, const struct hv_head *head,
		       uint8_t shown)
{
	struct rdma_ud_param *p = &ev->pub.param.ud;

	p->private_data = ev->data + HV_HEAD;
	p->private_data_len = shown;
	hv_cm_av(id, &id->pub.route.addr.dst_addr, &p->ah_attr);
	p->qp_num = head->qp_num;
	p->qkey = head->qkey;
}

/* A thread that is still in the call which this answers has the lock. */
static void event_enter(struct hv_id *id, enum hv_id_state state)
{
	hd_lock_take(&hv_cm_lock);
	id->state = state;
	hd_lock_give(&hv_cm_lock);
}

/* ---- the calling side ------------------------------------------------------------------------ */

/*
 * Another thread may be destroying the id, and wait only for this event: then there is
 * nothing to be done any more.
 */
static int with_ep(struct hv_id *id, int (*act)(struct hd_ep *ep))
{
	int rc = -ENOTCONN;

	hd_lock_take(&hv_cm_lock);
	if (id->ep && hv_enter(id->ctx)) {
		rc = act(id->ep);
		hv_leave(id->ctx);
	}
	hd_lock_give(&hv_cm_lock);
	return rc;
}

static int confirm(struct hv_id *id)
{
	return with_ep(id, hd_ep_confirm);
}

static int turn_down(struct hd_ep *ep)
{
	return hd_ep_disconnect(ep, NULL);
}

/* Accepted: our queue pair is moved and the other end told, or the program will do both. */
static bool event_answered(struct hv_cm_event *ev, struct hv_id *id)
{
	int rc;

	if (!hv_head_get(&id->other, ev->data, ev->len)) {
		(void)with_ep(id, turn_down);
		event_say(ev, id, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
		return true;
	}
	id->other_ece = hv_ece_of(ev->raw.word);
	conn_details(ev, &id->other, SHOWN_ANSWER);
	if (!id->pub.qp) {
		event_enter(id, HV_ID_ANSWERED);
		event_say(ev, id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		return true;
	}
	rc = hv_cm_qp_connect(id);
	if (!rc)
		rc = confirm(id);
	event_enter(id, rc ? HV_ID_DISCONNECTED : HV_ID_CONNECTED);
	if (rc) {
		(void)with_ep(id, turn_down);
		hv_cm_qp_fail(id);
	}
	event_say(ev, id, rc ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED, rc);
	return true;
}

static bool event_found(struct hv_cm_event *ev, struct hv_id *id)
{
	if (!hv_head_get(&id->other, ev->data, ev->len)) {
		event_say(ev, id, RDMA_CM_EVENT_UNREACHABLE, HV_SIDR_UNSUPPORTED);
		return true;
	}
	event_enter(id, HV_ID_CONNECTED);
	ud_details(ev, id, &id->other, SHOWN_ANSWER_UD);
	event_say(ev, id, RDMA_CM_EVENT_ESTABLISHED, 0);
	return true;
}

/*
 * Of a rejection: the program's, the engine's because the backlog is full or the listener goes,
 * or there is no listener.
 */
static int event_reason(const struct hv_cm_event *ev, const struct hv_id *id)
{
	bool datagram = hv_id_is_datagram(id);

	if ((ev->raw.word & ~UINT64_C(0xffff)) == HV_WORD && ev->raw.word & 0x7fff)
		return (int)(ev->raw.word & 0x7fff);
	if (ev->raw.prov_err == ENOENT)
		return datagram ? HV_SIDR_UNSUPPORTED : HV_REJ_NOBODY;
	return datagram ? HV_SIDR_REJECT : HV_REJ_CONSUMER;
}

static void event_rejected(struct hv_cm_event *ev, struct hv_id *id, int reason)
{
	ev->pub.param.conn.private_data = ev->data;
	ev->pub.param.conn.private_data_len = SHOWN_REJECT;
	event_say(ev, id, RDMA_CM_EVENT_REJECTED, reason);
}

static bool failed(struct hv_cm_event *ev, struct hv_id *id)
{
	int status = event_reason(ev, id);

	if (hv_id_is_datagram(id) && ev->raw.word == HV_WORD_FOUND)
		return event_found(ev, id);
	event_enter(id, HV_ID_DISCONNECTED);
	hv_cm_qp_fail(id);
	if (ev->raw.err != ECONNREFUSED) {
		event_say(ev, id, RDMA_CM_EVENT_UNREACHABLE,
			  ev->raw.err == ECONNRESET ? -ECONNRESET : -ev->raw.err);
		return true;
	}
	if (hv_id_is_datagram(id)) {
		ev->pub.param.ud.private_data = ev->data;
		ev->pub.param.ud.private_data_len = SHOWN_REJECT_UD;
		event_say(ev, id, RDMA_CM_EVENT_UNREACHABLE, status);
		return true;
	}
	event_rejected(ev, id, status);
	return true;
}

/* ---- the called side ------------------------------------------------------------------------- */

static bool requested(struct hv_cm_event *ev, struct hv_id *listener)
{
	const struct hv_id *id;

	if (!hv_id_requested(ev, listener))
		return false;
	id = hv_id_of(ev->pub.id);
	if (hv_id_is_datagram(id))
		ud_details(ev, id, &id->other, SHOWN_REQUEST_UD);
	else
		conn_details(ev, &id->other, id->other.native ? SHOWN_REQUEST_NATIVE : SHOWN_REQUEST);
	ev->pub.event = RDMA_CM_EVENT_CONNECT_REQUEST;
	return true;
}

/* The caller has said that it is there, or will never. */
static bool event_joined(struct hv_cm_event *ev, struct hv_id *id)
{
	bool accepted;

	hd_lock_take(&hv_cm_lock);
	accepted = id->state == HV_ID_ACCEPTED;
	if (accepted)
		id->state = ev->raw.err ? HV_ID_DISCONNECTED : HV_ID_CONNECTED;
	hd_lock_give(&hv_cm_lock);
	if (!ev->raw.err) {
		event_say(ev, id, RDMA_CM_EVENT_ESTABLISHED, 0);
		return true;
	}
	if (!accepted)
		return failed(ev, id);
	hv_cm_qp_fail(id);
	if (ev->raw.err == ECONNREFUSED)
		event_rejected(ev, id, event_reason(ev, id));
	else
		event_say(ev, id, RDMA_CM_EVENT_UNREACHABLE, -ev->raw.err);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool of_the_front(struct hv_cm_event *ev, struct hv_id *id)
{
	enum rdma_cm_event_type type = (enum rdma_cm_event_type)(ev->raw.code - HD_EV_FRONT);

	event_say(ev, id, type, (int)(int64_t)ev->raw.word);
	if ((int)type == HV_EVENT_USER)
		memcpy(&ev->pub.param, &ev->raw.ctx,
		       sizeof(ev->raw.ctx)); /* param.arg, in headers that have it */
	return type != RDMA_CM_EVENT_MULTICAST_JOIN || hv_group_joined(ev);
}

bool hv_cm_event_make(struct hv_cm_event *ev)
{
	struct hv_id *id = ev->owner;

	switch (ev->raw.code) {
	case HD_EV_REQUEST:
		return requested(ev, id);
	case HD_EV_ANSWER:
		return event_answered(ev, id);
	case HD_EV_UP:
		return event_joined(ev, id);
	case HD_EV_DOWN:
		hd_lock_take(&hv_cm_lock);
		id->state = HV_ID_DISCONNECTED;
		id->parted = true;
		hd_lock_give(&hv_cm_lock);
		event_say(ev, id, RDMA_CM_EVENT_DISCONNECTED, 0);
		return true;
	case HD_EV_ALARM:
		event_say(ev, id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		return true;
	default:
		return of_the_front(ev, id);
	}
}
