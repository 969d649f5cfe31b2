/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints for datagrams: ud.h. */
#include "front/dat/ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the engine's endpoint ------------------------------------------------------------------- */

/*
 * What the 40 bytes in front hold is not defined where there is no global
 * route: they are left alone.
 */
static uint64_t note_sender(void *owner, const struct hd_sender *from, void *at)
{
	return from->number;
}

void hu_ud_attr(struct hd_ep_attr *attr)
{
	attr->type = HD_EP_DGRAM;
	attr->policy = HD_EP_NUMBERED | HD_EP_DROP;
	attr->head = HU_GRH;
	attr->head_fill = note_sender;
}

int hu_ud_open(struct hd_ep *ep)
{
	hd_ep_set_qkey(ep, HU_QKEY);
	return hd_ep_pair(ep, &(struct hd_qp_attr){ .to = NULL });
}

/* ---- address handles ------------------------------------------------------------------------- */

/* An endpoint of the host that the handle is of. */
struct way {
	uint32_t number;
	struct hd_dest *dest;
	struct way *next;
};

struct hu_ah {
	struct hu_object o;
	struct sockaddr_storage host;
	struct way *ways;
	LIST_ENTRY(hu_ah) entry;
};

static struct hd_dest *ud_find(const struct hu_ah *ah, uint32_t number)
{
	const struct way *w = ah->ways;

	while (w && w->number != number)
		w = w->next;
	return w ? w->dest : NULL;
}

/* Programs may learn numbers of other endpoints of a host in another way than by a handshake. */
static int ah_reach(struct hu_ah *ah, uint32_t number, struct hd_dest **out)
{
	struct sockaddr_storage name = ah->host;
	struct way *w;
	int rc;

	*out = ud_find(ah, number);
	if (hu_likely(*out))
		return 0;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	hd_name_set_number((struct sockaddr *)&name, number);
	rc = hd_dest_get(ah->o.ia->node, (struct sockaddr *)&name, &w->dest);
	if (rc) {
		free(w);
		return rc;
	}
	w->number = number;
	w->next = ah->ways;
	ah->ways = w;
	*out = w->dest;
	return 0;
}

static void ah_drop(struct hu_ah *ah)
{
	struct way *w;

	while ((w = ah->ways)) {
		ah->ways = w->next;
		hd_dest_put(w->dest);
		free(w);
	}
	LIST_REMOVE(ah, entry);
	hu_free(&ah->o);
}

static struct hu_ah *ah_make(struct hu_handshake *h)
{
	struct hu_ah *ah = hu_make(h->o.ia, HU_TYPE_AH, sizeof(*ah));
	struct hd_dest *dest;

	if (!ah)
		return NULL;
	ah->host = h->remote;
	LIST_INSERT_HEAD(&h->ep->address_handles, ah, entry);
	if (!ah_reach(ah, h->other.number, &dest))
		return ah;
	ah_drop(ah);
	return NULL;
}

/* ---- handshakes ------------------------------------------------------------------------------ */

static void line_close(struct hu_handshake *h)
{
	if (h->line)
		hd_ep_close(h->line);
	h->line = NULL;
}

static void ud_drop(struct hu_handshake *h)
{
	hd_deferred_drop(h->o.ia->node, &h->deferred);
	line_close(h);
	LIST_REMOVE(h, entry);
	hu_free(&h->o);
}

DAT_IB_EXTENSION_EVENT_DATA *hu_ud_extend(DAT_EVENT *event, DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type)
{
	DAT_IB_EXTENSION_EVENT_DATA *x = (DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;

	event->event_number = (DAT_EVENT_NUMBER)number;
	x->type = type;
	return x;
}

/* Private data stays where it is until the program frees the handshake, or the endpoint. */
static void begin_event(struct hu_handshake *h, DAT_EVENT *event)
{
	uint32_t len = h->other.private_size;

	*event = (DAT_EVENT){ 0 };
	event->event_data.connect_event_data = (DAT_CONNECTION_EVENT_DATA){
		.ep_handle = h->ep, .private_data_size = (DAT_COUNT)len, .private_data = len ? h->priv : NULL
	};
}

/* It was not to be. Where there is nothing to be read about it, nothing is kept. */
static void ud_tell_failure(struct hu_handshake *h)
{
	DAT_IB_EXTENSION_EVENT_DATA *x;
	DAT_EVENT event;

	line_close(h);
	begin_event(h, &event);
	x = h->rejected ? hu_ud_extend(&event, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT)
			: hu_ud_extend(&event, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR);
	x->status = DAT_IB_OP_ERR;
	if (h->other.private_size)
		x->context.as_ptr = h;
	hu_notify(h->o.ia, h->ep->connect, &event);
	if (!h->other.private_size)
		ud_drop(h);
}

static void tell_established(struct hu_handshake *h)
{
	struct hu_ah *ah = ah_make(h);
	DAT_IB_EXTENSION_EVENT_DATA *x;
	DAT_EVENT event;

	if (!ah) {
		ud_tell_failure(h);
		return;
	}
	hu_count(h->o.ia, DCNT_IA_CM_AH_RESOLVED);
	begin_event(h, &event);
	x = hu_ud_extend(&event, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
			 h->called ? DAT_IB_UD_PASSIVE_REMOTE_AH : DAT_IB_UD_REMOTE_AH);
	x->remote_ah.ah = (struct ibv_ah *)(void *)ah;
	x->remote_ah.qpn = h->other.number;
	memcpy(&x->remote_ah.ia_addr, &h->remote, sizeof(x->remote_ah.ia_addr));
	x->context.as_ptr = h;
	hu_notify(h->o.ia, h->ep->connect, &event);
}

static void work(struct hd_deferred *deferred)
{
	struct hu_handshake *h = hu_container(deferred, struct hu_handshake, deferred);
	uint32_t todo = h->todo;

	h->todo = 0;
	if (todo & HU_UP || (todo & HU_ANSWERED && !hd_ep_confirm(h->line)))
		tell_established(h);
	else if (todo & (HU_REFUSED | HU_ANSWERED))
		ud_tell_failure(h);
	else if (todo & HU_DOWN)
		line_close(h);
}

static void ud_take_private(struct hu_handshake *h, const struct hd_event *event)
{
	if (!hu_head_get(event->data, event->len, &h->other))
		h->other = (struct hu_head){ 0 };
	memcpy(h->priv, (const char *)event->data + sizeof(h->other), h->other.private_size);
}

void hu_ud_happened(struct hu_handshake *h, const struct hd_event *event)
{
	switch (event->code) {
	case HD_EV_ANSWER:
		ud_take_private(h, event);
		h->todo |= HU_ANSWERED;
		break;
	case HD_EV_UP:
		if (event->err) {
			h->rejected = event->err == ECONNREFUSED && event->word == HU_WORD_REJECT;
			ud_take_private(h, event);
		}
		h->todo |= event->err ? HU_REFUSED : HU_UP;
		break;
	case HD_EV_DOWN:
		h->todo |= HU_DOWN;
		break;
	default:
		return;
	}
	hd_deferred_post(h->o.ia->node, &h->deferred);
}

static struct hu_handshake *ud_make(struct hu_ep *ep)
{
	struct hu_handshake *h = hu_make(ep->o.ia, HU_TYPE_HANDSHAKE, sizeof(*h));

	if (!h)
		return NULL;
	h->ep = ep;
	h->deferred.fn = work;
	LIST_INSERT_HEAD(&ep->handshakes, h, entry);
	if (!hu_line_open(&h->o, ep, &h->line))
		return h;
	ud_drop(h);
	return NULL;
}

DAT_RETURN hu_ud_ask(struct hu_ep *ep, const struct hu_call *call)
{
	struct hu_handshake *h;
	int rc;

	if (!ep->ep)
		return hu_ep_state_error(ep);
	h = ud_make(ep);
	rc = h ? hu_dial(h->line, ep, call) : -ENOMEM;
	if (!rc) {
		hu_count(ep->o.ia, DCNT_IA_CM_AH_REQ_TX);
		ep->counts[DCNT_EP_CONNECT]++;
		hu_address_copy(&h->remote, call->to);
	} else if (h) {
		ud_drop(h);
	}
	return hu_dial_error(rc);
}

DAT_RETURN hu_ud_prepare(struct hu_cr *cr, struct hu_ep *ep, struct hu_handshake **out)
{
	struct hu_handshake *h;

	if (!ep->ep)
		return hu_ep_state_error(ep);
	h = ud_make(ep);
	if (!h)
		return hu_errno(-ENOMEM);
	h->called = true;
	h->remote = cr->from;
	h->other = cr->head;
	memcpy(h->priv, cr->priv, cr->head.private_size);
	*out = h;
	return DAT_SUCCESS;
}

DAT_RETURN hu_ud_undo(struct hu_handshake *h, int rc)
{
	if (rc == -ECONNABORTED) { /* the caller has gone meanwhile */
		ud_tell_failure(h);
		return DAT_SUCCESS;
	}
	ud_drop(h);
	return hu_errno(rc);
}

bool hu_ud_is_known(const struct hu_ep *ep)
{
	return !LIST_EMPTY(&ep->handshakes) || !LIST_EMPTY(&ep->address_handles);
}

void hu_ud_drop(struct hu_ep *ep)
{
	struct hu_handshake *h;
	struct hu_ah *ah;

	while ((h = LIST_FIRST(&ep->handshakes)))
		ud_drop(h);
	while ((ah = LIST_FIRST(&ep->address_handles)))
		ah_drop(ah);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* With the lock. */
static DAT_RETURN ud_send_to(struct hu_ep *ep, const struct hu_request *r, const DAT_IB_ADDR_HANDLE *to)
{
	struct hd_dest *dest;
	DAT_RETURN rc;

	if (!ep->ep)
		return hu_ep_state_error(ep);
	rc = hu_request_check_flags(ep, r);
	if (!rc)
		rc = hu_errno(ah_reach((struct hu_ah *)(void *)to->ah, to->qpn, &dest));
	return rc ? rc : hu_send(ep, r, dest);
}

/* Address handles are good for all endpoints of the IA. */
static bool is_ah(const struct hu_ep *ep, const DAT_IB_ADDR_HANDLE *to)
{
	return to && hu_is(to->ah, HU_TYPE_AH) && ((struct hu_ah *)(void *)to->ah)->o.ia == ep->o.ia;
}

DAT_RETURN hu_ud_send(DAT_EP_HANDLE handle, const struct hu_request *r, const DAT_IB_ADDR_HANDLE *to)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!hu_ep_is_ud(ep))
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!is_ah(ep, to))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	rc = ud_send_to(ep, r, to);
	hu_leave(ep->o.ia);
	return rc;
}

DAT_RETURN hu_ud_cm_free(DAT_EP_HANDLE handle, void *cm)
{
	struct hu_ep *ep = handle;
	struct hu_handshake *h = cm;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!hu_is(h, HU_TYPE_HANDSHAKE) || h->ep != ep)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	ud_drop(h);
	hu_leave(ep->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_ud_ah_free(DAT_EP_HANDLE handle, const DAT_IB_ADDR_HANDLE *ah)
{
	struct hu_ep *ep = handle;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!is_ah(ep, ah))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	ah_drop((struct hu_ah *)(void *)ah->ah);
	hu_leave(ep->o.ia);
	return DAT_SUCCESS;
}
