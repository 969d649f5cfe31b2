/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A request becomes an id. */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <string.h>

/* Whom one of this type talks with. */
static uint8_t opposite(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND	  ? IBV_QPT_XRC_RECV
	       : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND
					  : (uint8_t)type;
}

bool hv_request_is_wanted(const struct hv_id *listener, const struct hv_head *head)
{
	return head->qp_type == opposite(hv_id_type(listener));
}

static void request_reject(struct hv_listener *l, struct hd_request *request, uint64_t word)
{
	if (!hv_enter(l->ctx))
		return;
	hd_request_reject(request, &(struct hd_cm_data){ .word = HV_WORD | word });
	hv_leave(l->ctx);
}

/*
 * The service, which stays with its requests until it is given back. The listener has it for as
 * long as there is an event of it.
 */
static struct hv_listener *request_listener_of(struct hv_id *listener)
{
	struct hv_listener *l;

	hd_lock_take(&hv_cm_lock);
	l = listener->listener;
	l->users++;
	hd_lock_give(&hv_cm_lock);
	return l;
}

static void listener_give(struct hv_listener *l)
{
	hd_lock_take(&hv_cm_lock);
	hv_listener_put(l);
	hd_lock_give(&hv_cm_lock);
}

/*
 * By which interface was this address of a link called? By the one that is listened at, or else
 * that has it; where several do, that of the caller's link, unless he has come by another address.
 */
static uint32_t request_link_of(const struct hv_id *id, const struct hv_id *listener, const uint8_t gid[16])
{
	uint32_t scope = hd_sockaddr_scope((const struct sockaddr *)&id->from);
	uint32_t found = hd_sockaddr_scope(&listener->pub.route.addr.src_addr);
	const struct hv_context *ctx = hv_cm_context();

	if (found)
		return found;
	for (int i = 0; ctx && i < ctx->port.gid_count; i++) {
		const struct hv_gid *own = &ctx->port.gids[i];

		if (!memcmp(&own->gid, gid, sizeof(own->gid)) && (!found || own->ifindex == scope))
			found = own->ifindex;
	}
	return found ? found : scope; /* an address that is new */
}

/*
 * Who asks, and whom he has called; and the path between the two, which datagram
 * services are not told of.
 */
static int take_addresses(struct hv_id *id, const struct hv_id *listener, const struct hv_head *head)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	int rc;

	hd_request_from(id->request, &id->from);
	if (head->native) {
		hv_sockaddr_native(head->dst, id->pub.ps, 0, &addr->src_addr);
		hv_sockaddr_native(head->src, id->pub.ps, head->src_port, &addr->dst_addr);
	} else {
		hv_sockaddr_unmap(head->dst, 0, &addr->src_addr);
		hv_sockaddr_unmap(head->src, head->src_port, &addr->dst_addr);
	}
	hd_sockaddr_set_scope(&addr->src_addr, request_link_of(id, listener, head->dst));
	hd_sockaddr_set_scope(&addr->dst_addr, hd_sockaddr_scope(&addr->src_addr));
	rc = hv_id_bind(id, &addr->src_addr);
	return rc || hv_id_is_datagram(id) ? rc : hv_cm_path_make(id);
}

/*
 * What the answer will say unless it is told otherwise: what was asked for, as far as it goes.
 * Programs move a queue pair of their own to RTS by it before they accept.
 */
void hv_request_foresee(struct hv_id *id)
{
	struct hv_head *own = &id->own;
	uint8_t most = hv_cm_depth(id);

	own->retry_count = id->other.retry_count;
	own->responder_resources = id->other.initiator_depth < most ? id->other.initiator_depth : most;
	own->initiator_depth = id->other.responder_resources < most ? id->other.responder_resources : most;
}

/* It takes over what `l` was given for. */
static struct hv_id *id_for(struct hv_id *listener, struct hv_listener *l, struct hd_request *request,
			    const struct hv_head *head)
{
	struct hv_id *id;

	if (!hv_request_is_wanted(listener, head))
		return NULL;
	id = hv_id_make(listener->channel, listener->pub.context, listener->pub.ps, listener->pub.qp_type);
	if (!id)
		return NULL;
	id->state = HV_ID_REQUESTED;
	id->request = request;
	id->other = *head;
	id->tos = listener->tos;
	id->ack_timeout = listener->ack_timeout;
	id->has_ack_timeout = listener->has_ack_timeout;
	if (take_addresses(id, listener, head)) {
		rdma_destroy_id(&id->pub);
		return NULL;
	}
	id->own.psn = hv_cm_psn();
	hv_request_foresee(id);
	hv_sockaddr_set_port(&id->pub.route.addr.src_addr,
			     hv_sockaddr_port(&listener->pub.route.addr.src_addr));
	id->listener = l;
	id->is_request = true;
	return id;
}

bool hv_id_requested(struct hv_cm_event *ev, struct hv_id *listener)
{
	struct hv_listener *l = request_listener_of(listener);
	struct hv_head head;
	struct hv_id *id = NULL;

	if (hv_head_get(&head, ev->data, ev->len))
		id = id_for(listener, l, ev->raw.request, &head);
	if (!id) {
		request_reject(l, ev->raw.request,
			       hv_id_is_datagram(listener) ? HV_SIDR_UNSUPPORTED : HV_REJ_NOBODY);
		listener_give(l);
		return false;
	}
	if (!hv_id_is_datagram(id))
		id->other_ece = hv_ece_of(ev->raw.word);
	ev->pub.id = &id->pub;
	ev->pub.listen_id = &listener->pub;
	return true;
}
