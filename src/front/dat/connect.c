/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections, dat_ep_connect and the others. The endpoint's `line` (line.c) asks and answers with
 * the pairs' numbers, and each end pairs with the other's number when it has it.
 *
 *	caller                                        called
 *	dat_ep_connect   ── CONNECT {number} ──────►  CONNECTION_REQUEST, dat_cr_accept: paired
 *	HU_ANSWERED      ◄───── ACCEPT {number} ────
 *	paired: ESTABLISHED ── READY ──────────────►  ESTABLISHED
 *
 * What the engine tells comes out of its middle (hu_ep_happened), and is carried out as
 * deferred work of the endpoint.
 */
#include "front/dat/connect.h"
#include "front/dat/ud.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define MOVES 16 /* of a request, from service to service */

/* ---- what has happened ----------------------------------------------------------------------- */

static void establish(struct hu_ep *ep)
{
	ep->state = DAT_EP_STATE_CONNECTED;
	hu_marks_arm(ep);
	hu_line_tell(ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void connect_answered(struct hu_ep *ep)
{
	if (ep->state != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		return;
	if (hu_pair(ep, &ep->remote, ep->other.number) || hd_ep_confirm(ep->line)) {
		hu_ep_part(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	hu_count(ep->o.ia, DCNT_IA_CM_RTU_TX);
	hu_count(ep->o.ia, DCNT_IA_CM_ACTIVE_EST);
	establish(ep);
}

static bool connect_is_connected(const struct hu_ep *ep)
{
	return ep->state == DAT_EP_STATE_CONNECTED || ep->state == DAT_EP_STATE_DISCONNECT_PENDING;
}

static bool is_pending(const struct hu_ep *ep)
{
	return ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
	       ep->state == DAT_EP_STATE_COMPLETION_PENDING;
}

/* Ask the service that the request was handed to, with what is left of the time. */
static void connect_moved(struct hu_ep *ep)
{
	uint64_t now = hd_now_ns(), us = ep->due > now ? (ep->due - now) / 1000 : 0;
	struct hu_call call = { (struct sockaddr *)&ep->remote, ep->other.qualifier, DAT_TIMEOUT_INFINITE,
				ep->said.data, (DAT_COUNT)ep->said.len };
	int rc;

	if (ep->due)
		call.timeout = us ? (DAT_TIMEOUT)us : 1;
	ep->moves++;
	hu_line_close(ep);
	rc = hu_line_open(&ep->o, ep, &ep->line);
	if (!rc)
		rc = hu_dial(ep->line, ep, &call);
	if (rc)
		hu_ep_part(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

void hu_ep_work(struct hd_deferred *deferred)
{
	struct hu_ep *ep = hu_container(deferred, struct hu_ep, deferred);
	uint32_t todo = ep->todo;

	ep->todo = 0;
	if (ep->parts) {
		if (*hd_ep_state(ep->ep) == HD_QP_ERR)
			hu_ep_parted(ep);
		return;
	}
	if (todo & HU_MOVED && ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
		connect_moved(ep);
	if (todo & HU_ANSWERED)
		connect_answered(ep);
	if (todo & HU_REFUSED && is_pending(ep))
		hu_ep_part(ep, ep->why);
	/* what failed in the same turn did so for that */
	if (todo & HU_DOWN && connect_is_connected(ep))
		hu_ep_part(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	if (todo & HU_BROKEN && connect_is_connected(ep))
		hu_ep_part(ep, DAT_CONNECTION_EVENT_BROKEN);
	if (todo & HU_DRAINED && connect_is_connected(ep))
		hu_ep_part(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Why a connection did not come about. */
static DAT_EVENT_NUMBER refusal(const struct hu_ep *ep, const struct hd_event *event)
{
	if (ep->state == DAT_EP_STATE_COMPLETION_PENDING)
		return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	switch (event->err) {
	case ECONNREFUSED:
		return event->word == HU_WORD_REJECT ? DAT_CONNECTION_EVENT_PEER_REJECTED
						     : DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	case ETIMEDOUT:
		return DAT_CONNECTION_EVENT_TIMED_OUT;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
		return DAT_CONNECTION_EVENT_UNREACHABLE;
	default:
		return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
	}
}

static void count_refusal(struct hu_ia *ia, DAT_EVENT_NUMBER why)
{
	hu_count(ia, DCNT_IA_CM_ERR);
	if (why == DAT_CONNECTION_EVENT_PEER_REJECTED)
		hu_count(ia, DCNT_IA_CM_USER_REJ_RX);
	else if (why == DAT_CONNECTION_EVENT_TIMED_OUT)
		hu_count(ia, DCNT_IA_CM_ERR_TIMEOUT);
	else if (why == DAT_CONNECTION_EVENT_NON_PEER_REJECTED)
		hu_count(ia, DCNT_IA_CM_ERR_REFUSED);
}

/* At the called end, where there is nothing left to do. */
static void up(struct hu_ep *ep)
{
	if (ep->state != DAT_EP_STATE_COMPLETION_PENDING)
		return;
	ep->heard.len = 0;
	hu_count(ep->o.ia, DCNT_IA_CM_RTU_RX);
	hu_count(ep->o.ia, DCNT_IA_CM_PASSIVE_EST);
	establish(ep);
}

static void connect_take_private(struct hu_ep *ep, const struct hd_event *event)
{
	ep->heard.len = 0;
	if (!hu_head_get(event->data, event->len, &ep->other))
		return;
	ep->heard.len = ep->other.private_size;
	memcpy(ep->heard.data, (const char *)event->data + sizeof(ep->other), ep->heard.len);
}

static bool is_handed_on(struct hu_ep *ep, const struct hd_event *event)
{
	return event->err == ECONNREFUSED && event->word == HU_WORD_HANDOFF && ep->moves < MOVES &&
	       ep->state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING &&
	       hu_head_get(event->data, event->len, &ep->other);
}

void hu_ep_happened(struct hu_ep *ep, const struct hd_event *event)
{
	switch (event->code) {
	case HD_EV_ANSWER:
		connect_take_private(ep, event);
		hu_count(ep->o.ia, DCNT_IA_CM_REP_RX);
		ep->todo |= HU_ANSWERED;
		break;
	case HD_EV_UP:
		if (!event->err) {
			/* told at once, before other connections end that came about later */
			up(ep);
			return;
		}
		if (is_handed_on(ep, event)) {
			ep->todo |= HU_MOVED;
			break;
		}
		ep->why = refusal(ep, event);
		count_refusal(ep->o.ia, ep->why);
		connect_take_private(ep, event);
		ep->todo |= HU_REFUSED;
		break;
	case HD_EV_DOWN:
		hu_count(ep->o.ia, DCNT_IA_CM_DREQ_RX);
		ep->todo |= event->word == HU_WORD_BROKEN || event->word == HD_WORD_LOST ? HU_BROKEN
											 : HU_DOWN;
		break;
	default:
		return;
	}
	hd_deferred_post(ep->o.ia->node, &ep->deferred);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static DAT_RETURN check_address(const struct sockaddr *to)
{
	if (!to)
		return hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	if (to->sa_family == AF_INET) {
		uint32_t ip = ntohl(((const struct sockaddr_in *)(const void *)to)->sin_addr.s_addr);

		return ip == INADDR_ANY ? hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED)
		       : IN_MULTICAST(ip) || !~ip
			       ? hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)
			       : DAT_SUCCESS;
	}
	if (to->sa_family == AF_INET6) {
		const struct in6_addr *ip = &((const struct sockaddr_in6 *)(const void *)to)->sin6_addr;

		return IN6_IS_ADDR_UNSPECIFIED(ip)
			       ? hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED)
		       : IN6_IS_ADDR_MULTICAST(ip)
			       ? hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED)
			       : DAT_SUCCESS;
	}
	return hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
}

/* With the lock. */
static DAT_RETURN connect_ask(struct hu_ep *ep, const struct hu_call *call)
{
	int rc;

	if (ep->state != DAT_EP_STATE_UNCONNECTED)
		return hu_ep_state_error(ep);
	rc = hu_line_open(&ep->o, ep, &ep->line);
	if (!rc)
		rc = hu_dial(ep->line, ep, call);
	if (rc) {
		hu_line_close(ep);
		return hu_dial_error(rc);
	}
	hu_count(ep->o.ia, DCNT_IA_CM_REQ_TX);
	ep->counts[DCNT_EP_CONNECT]++;
	hu_address_copy(&ep->remote, call->to);
	ep->remote_qualifier = call->qualifier;
	ep->heard.len = 0;
	ep->said.len = (uint32_t)call->priv_len;
	if (ep->said.len)
		memcpy(ep->said.data, call->priv, ep->said.len);
	ep->due = call->timeout == DAT_TIMEOUT_INFINITE ? 0 : hd_now_ns() + (uint64_t)call->timeout * 1000;
	ep->moves = 0;
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	return DAT_SUCCESS;
}

static DAT_RETURN connect_ep(DAT_EP_HANDLE handle, const struct hu_call *call, int priv_arg)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	rc = check_address(call->to);
	if (rc)
		return rc;
	if (!call->timeout)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + priv_arg - 2));
	if (call->priv_len < 0 || call->priv_len > HU_MAX_PRIVATE)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + priv_arg - 1));
	if (call->priv_len && !call->priv)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + priv_arg));
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	rc = hu_ep_is_ud(ep) ? hu_ud_ask(ep, call) : connect_ask(ep, call);
	hu_leave(ep->o.ia);
	return rc;
}

DAT_RETURN hu_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qualifier,
			 DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID priv, DAT_QOS qos,
			 DAT_CONNECT_FLAGS flags)
{
	const struct hu_call call = { to, qualifier, timeout, priv, size };

	if (qos != DAT_QOS_BEST_EFFORT)
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (flags == DAT_CONNECT_MULTIPATH_REQUIRED_FLAG)
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (flags != DAT_CONNECT_DEFAULT_FLAG && flags != DAT_CONNECT_MULTIPATH_REQUESTED_FLAG)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	return connect_ep(ep, &call, 5);
}

/* Like an endpoint that is connected: to the same service. */
DAT_RETURN hu_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE like_handle, DAT_TIMEOUT timeout, DAT_COUNT size,
			     const DAT_PVOID priv, DAT_QOS qos)
{
	struct hu_ep *like = like_handle;
	struct hu_call call = { NULL, 0, timeout, priv, size };
	struct sockaddr_storage to;
	bool connected;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP) || !hu_is(like, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (qos != DAT_QOS_BEST_EFFORT)
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!hu_enter(like->o.ia))
		return HU_DEAD;
	connected = like->state == DAT_EP_STATE_CONNECTED;
	to = like->remote;
	call.to = (struct sockaddr *)&to;
	call.qualifier = like->remote_qualifier;
	hu_leave(like->o.ia);
	return connected ? connect_ep(ep, &call, 4) : hu_ep_state_error(like);
}

/* By a socket address alone; its port is that of a CSP, or the qualifier of a PSP. */
DAT_RETURN hu_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_TIMEOUT timeout, DAT_COUNT size,
				const DAT_PVOID priv)
{
	struct hu_call call = { to, 0, timeout, priv, size };

	if (to) /* the port is at the same place in both families */
		call.qualifier = ntohs(((const struct sockaddr_in *)(const void *)to)->sin_port);
	return connect_ep(ep, &call, 4);
}

/* ---- parting --------------------------------------------------------------------------------- */

/*
 * With the lock. Gracefully: not before what is posted has been done, which the
 * engine tells of: hd_ep_drain.
 */
static DAT_RETURN dat_connect_part(struct hu_ep *ep, DAT_CLOSE_FLAGS flags)
{
	switch (ep->state) {
	case DAT_EP_STATE_CONNECTED:
		if (flags == DAT_CLOSE_GRACEFUL_FLAG && !hd_ep_tx_idle(ep->ep)) {
			ep->state = DAT_EP_STATE_DISCONNECT_PENDING;
			hd_ep_drain(ep->ep);
			return DAT_SUCCESS;
		}
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		if (flags == DAT_CLOSE_GRACEFUL_FLAG)
			return DAT_SUCCESS;
		break;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		/* the same for both flags: it does not come about */
	case DAT_EP_STATE_COMPLETION_PENDING:
		hu_line_close(ep);
		break;
	case DAT_EP_STATE_DISCONNECTED:
		return DAT_SUCCESS;
	default:
		return hu_ep_state_error(ep);
	}
	hu_ep_part(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	return DAT_SUCCESS;
}

DAT_RETURN hu_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	rc = dat_connect_part(ep, flags);
	ep->counts[DCNT_EP_DISCONNECT] += rc == DAT_SUCCESS;
	hu_leave(ep->o.ia);
	return rc;
}
