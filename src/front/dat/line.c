/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What carries an endpoint's connection: a second endpoint of the engine's (HD_EP_MSG), which
 * asks and answers, with the pairs' numbers in front of the private data; what is said
 * through it, and how it ends.
 */
#include "front/dat/connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* how long the other end's program may be stopped in the middle of a connection */
#define PATIENCE_MS 30000

/* ---- heads ----------------------------------------------------------------------------------- */

size_t hu_head_put(const struct hu_ep *ep, const void *priv, DAT_COUNT len, void *to)
{
	struct hu_head head = { .number = ep->ep ? hd_ep_number(ep->ep) : 0,
				.private_size = (uint16_t)len,
				.datagram = hu_ep_is_ud(ep) };

	memcpy(to, &head, sizeof(head));
	if (len)
		memcpy((char *)to + sizeof(head), priv, (size_t)len);
	return sizeof(head) + (size_t)len;
}

bool hu_head_get(const void *from, size_t len, struct hu_head *head)
{
	if (len < sizeof(*head))
		return false;
	memcpy(head, from, sizeof(*head));
	return head->private_size <= HU_MAX_PRIVATE && head->private_size <= len - sizeof(*head);
}

/* ---- pairing --------------------------------------------------------------------------------- */

int hu_pair(struct hu_ep *ep, const struct sockaddr_storage *host, uint32_t number)
{
	struct sockaddr_storage name = *host;
	const struct hd_qp_attr attr = { .to = (struct sockaddr *)&name,
					 .rnr_timer_us = 10000,
					 /* uDAPL knows no receiver that is not ready */
					 .rnr_retry = 7,
					 .timeout_ms = PATIENCE_MS };

	hd_name_set_number((struct sockaddr *)&name, number);
	return hd_ep_pair(ep->ep, &attr);
}

int hu_line_open(struct hu_object *owner, const struct hu_ep *ep, struct hd_ep **out)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_MSG, .policy = HD_EP_NUMBERED, .evq = owner->ia->events, .owner = owner
	};

	const int rc = hd_ep_open(owner->ia->node, &attr, out);

	if (!rc && ep->ep)
		hd_ep_carries(*out, hd_ep_number(ep->ep));
	return rc;
}

void hu_line_close(struct hu_ep *ep)
{
	if (ep->line)
		hd_ep_close(ep->line);
	ep->line = NULL;
	ep->todo = 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

void hu_address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from,
	       from->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
}

int hu_dial(struct hd_ep *line, const struct hu_ep *ep, const struct hu_call *call)
{
	char body[HD_CM_DATA];
	struct hd_connect_args args = { .to = call->to,
					.space = HU_SPACE,
					.number = call->qualifier,
					.confirms = true,
					.timeout_ms = call->timeout == DAT_TIMEOUT_INFINITE
							      ? 0
							      : (uint32_t)hu_timeout_ms(call->timeout),
					.data = { .data = body } };

	args.data.len = hu_head_put(ep, call->priv, call->priv_len, body);
	return hd_ep_connect(line, &args);
}

DAT_RETURN hu_dial_error(int rc)
{
	return rc == -EINVAL ? hu_error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED) : hu_errno(rc);
}

/* ---- telling the program --------------------------------------------------------------------- */

void hu_line_tell(struct hu_ep *ep, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = { .event_number = number };

	event.event_data.connect_event_data =
		(DAT_CONNECTION_EVENT_DATA){ .ep_handle = ep,
					     .private_data_size = (DAT_COUNT)ep->heard.len,
					     .private_data = ep->heard.len ? ep->heard.data : NULL };
	hu_notify(ep->o.ia, ep->connect, &event);
}

void hu_ep_parted(struct hu_ep *ep)
{
	ep->parts = false;
	ep->state = DAT_EP_STATE_DISCONNECTED;
	if (ep->why != DAT_CONNECTION_EVENT_PEER_REJECTED)
		ep->heard.len = 0;
	hu_line_tell(ep, ep->why);
}

void hu_ep_part(struct hu_ep *ep, DAT_EVENT_NUMBER why)
{
	const struct hd_cm_data said = { .word = why == DAT_CONNECTION_EVENT_BROKEN ? HU_WORD_BROKEN : 0 };

	if (ep->parts)
		return;
	ep->why = why;
	ep->state = DAT_EP_STATE_DISCONNECTED;
	/*
	 * the other end hears why before what it has sent comes back to it;
	 * its being first is no error
	 */
	if (ep->line && !hd_ep_disconnect(ep->line, &said))
		hu_count(ep->o.ia, DCNT_IA_CM_DREQ_TX);
	if (hd_ep_fall(ep->ep)) { /* what is posted is flushed before the program hears of it */
		hu_ep_parted(ep);
		return;
	}
	ep->parts = true;
	ep->state = DAT_EP_STATE_DISCONNECT_PENDING;
}
