/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Service points, public and reserved: dat_psp_create, dat_rsp_create and the others. One is a
 * service of the engine's.
 */
#include "front/dat/connect.h"
#include "front/dat/ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BACKLOG 1024
/* qualifiers that dat_psp_create_any gives: those of programs fit 32 bits */
#define ANY_FIRST UINT64_C(0x100000000)

/* ---- life ------------------------------------------------------------------------------------ */

void hu_listener_put(struct hu_ia *ia, struct hu_listener *listener)
{
	if (--listener->users)
		return;
	hd_service_close(listener->service);
	free(listener);
}

static int sp_listen_at(struct hu_sp *sp)
{
	struct hu_ia *ia = sp->o.ia;
	struct hd_service_attr attr = { .space = HU_SPACE, .number = sp->qualifier };
	const struct hd_listen_args args = { .evq = ia->events, .owner = sp, .backlog = BACKLOG };
	struct hu_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	if (sp->address.ss_family != AF_UNSPEC)
		attr.bind = (struct sockaddr *)&sp->address;
	rc = hd_service_open(ia->node, &attr, &l->service);
	if (!rc) {
		rc = hd_service_listen(l->service, &args);
		if (rc)
			hd_service_close(l->service);
	}
	if (rc) {
		free(l);
		return rc;
	}
	l->users = 1;
	hu_count(ia, DCNT_IA_CM_LISTEN);
	sp->listener = l;
	return 0;
}

/* With the lock. Nobody is turned away who has been told of. */
void hu_sp_drop(struct hu_sp *sp)
{
	hd_service_shut(sp->listener->service);
	hu_listener_put(sp->o.ia, sp->listener);
	hu_evd_put(sp->evd);
	if (sp->ep && !sp->used)
		sp->ep->o.users--;
	hu_free(&sp->o);
}

/* With the lock. */
DAT_RETURN hu_sp_make(struct hu_ia *ia, DAT_HANDLE_TYPE type, const struct hu_sp *like, struct hu_sp **out)
{
	struct hu_sp *sp = hu_make(ia, type, sizeof(*sp));
	int rc;

	if (!sp)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	sp->evd = like->evd;
	sp->qualifier = like->qualifier;
	sp->flags = like->flags;
	sp->ep = like->ep;
	sp->comm = like->comm;
	sp->address = like->address;
	rc = sp_listen_at(sp);
	if (rc) {
		hu_unmake(&sp->o);
		return hu_errno(rc);
	}
	hu_evd_hold(sp->evd);
	if (sp->ep)
		sp->ep->o.users++;
	*out = sp;
	return DAT_SUCCESS;
}

bool hu_sp_takes_requests(const struct hu_ia *ia, DAT_EVD_HANDLE handle)
{
	const struct hu_evd *evd = handle;

	return hu_is(evd, DAT_HANDLE_TYPE_EVD) && evd->o.ia == ia && evd->flags & DAT_EVD_CR_FLAG;
}

/* ---- public ---------------------------------------------------------------------------------- */

DAT_RETURN hu_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qualifier, DAT_EVD_HANDLE evd,
			 DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	const struct hu_sp like = { .evd = evd, .qualifier = qualifier, .flags = flags };
	struct hu_sp *sp;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!hu_sp_takes_requests(ia, evd))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = hu_sp_make(ia, DAT_HANDLE_TYPE_PSP, &like, &sp);
	hu_leave(ia);
	if (!rc)
		*out = sp;
	return rc;
}

static void count_any(struct hu_ia *ia)
{
	hd_node_lock(ia->node);
	hu_count_made(ia, DAT_HANDLE_TYPE_PSP, -1);
	hu_count(ia, DCNT_IA_PSP_CREATE_ANY);
	hd_node_unlock(ia->node);
}

/*
 * Names are taken once on a host: the first that is free of those behind a number
 * that programs do not use.
 */
DAT_RETURN hu_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qualifier, DAT_EVD_HANDLE evd,
			     DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *out)
{
	DAT_RETURN rc = hu_error(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);

	if (!qualifier)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	for (DAT_CONN_QUAL q = ANY_FIRST; q < ANY_FIRST + 4096; q++) {
		rc = hu_psp_create(ia, q, evd, flags, out);
		if (DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE)
			continue;
		if (!rc) {
			*qualifier = q;
			count_any(ia);
		}
		return rc;
	}
	return hu_error(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
}

DAT_RETURN hu_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	const struct hu_sp *sp = handle;

	if (!hu_is(sp, DAT_HANDLE_TYPE_PSP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	if ((unsigned)mask & ~(unsigned)DAT_PSP_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = (DAT_PSP_PARAM){ hu_ia_handle(sp->o.ia), sp->qualifier, sp->evd, sp->flags };
	return DAT_SUCCESS;
}

DAT_RETURN hu_sp_free(DAT_HANDLE handle, DAT_HANDLE_TYPE type, DAT_RETURN_SUBTYPE sub)
{
	DAT_RETURN rc;
	struct hu_sp *sp = hu_begin(handle, type, sub, &rc);
	struct hu_ia *ia = sp ? sp->o.ia : NULL;

	if (!sp)
		return rc;
	if (sp->ep && !sp->used)
		sp->ep->state = sp->ep->ep ? DAT_EP_STATE_UNCONNECTED : DAT_EP_STATE_UNCONFIGURED_UNCONNECTED;
	hu_sp_drop(sp);
	hu_leave(ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_psp_free(DAT_PSP_HANDLE handle)
{
	return hu_sp_free(handle, DAT_HANDLE_TYPE_PSP, DAT_INVALID_HANDLE_PSP);
}

/* ---- reserved: one endpoint, one connection -------------------------------------------------- */

/* With the lock. */
static DAT_RETURN sp_reserve(struct hu_ia *ia, const struct hu_sp *like, struct hu_sp **out)
{
	struct hu_ep *ep = like->ep;
	DAT_RETURN rc;

	if (ep && ep->state != DAT_EP_STATE_UNCONNECTED && ep->state != DAT_EP_STATE_UNCONFIGURED_UNCONNECTED)
		return hu_ep_state_error(ep);
	rc = hu_sp_make(ia, DAT_HANDLE_TYPE_RSP, like, out);
	if (!rc && ep)
		ep->state = ep->ep ? DAT_EP_STATE_RESERVED : DAT_EP_STATE_UNCONFIGURED_RESERVED;
	return rc;
}

DAT_RETURN hu_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qualifier, DAT_EP_HANDLE ep,
			 DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	const struct hu_sp like = { .evd = evd,
				    .qualifier = qualifier,
				    .flags = ep ? DAT_PSP_CONSUMER_FLAG : DAT_PSP_PROVIDER_FLAG,
				    .ep = ep };
	struct hu_sp *sp;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ep && (!hu_is(ep, DAT_HANDLE_TYPE_EP) || ((struct hu_ep *)ep)->o.ia != ia))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep && hu_ep_is_ud(ep)) /* that has no one connection to be kept for */
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!hu_sp_takes_requests(ia, evd))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = sp_reserve(ia, &like, &sp);
	hu_leave(ia);
	if (!rc)
		*out = sp;
	return rc;
}

DAT_RETURN hu_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	const struct hu_sp *sp = handle;

	if (!hu_is(sp, DAT_HANDLE_TYPE_RSP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	if ((unsigned)mask & ~(unsigned)DAT_RSP_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = (DAT_RSP_PARAM){ hu_ia_handle(sp->o.ia), sp->qualifier, sp->evd, sp->ep };
	return DAT_SUCCESS;
}

DAT_RETURN hu_rsp_free(DAT_RSP_HANDLE handle)
{
	return hu_sp_free(handle, DAT_HANDLE_TYPE_RSP, DAT_INVALID_HANDLE_RSP);
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct hu_cr *cr_make(struct hu_sp *sp, const struct hd_event *event)
{
	struct hu_cr *cr = hu_make(sp->o.ia, DAT_HANDLE_TYPE_CR, sizeof(*cr));

	if (!cr)
		return NULL;
	if (!hu_head_get(event->data, event->len, &cr->head)) {
		hu_free(&cr->o);
		return NULL;
	}
	memcpy(cr->priv, (const char *)event->data + sizeof(cr->head), cr->head.private_size);
	cr->listener = sp->listener;
	cr->listener->users++;
	cr->request = event->request;
	hd_request_from(event->request, &cr->from);
	cr->ep = sp->ep;
	if (sp->flags == DAT_PSP_PROVIDER_FLAG && !cr->head.datagram)
		cr->ep = hu_ep_make_tentative(sp->o.ia);
	if (cr->ep)
		cr->ep->o.users++;
	return cr;
}

/*
 * A reserved service point is for one request: others are turned away. Its endpoint, if it had one,
 * is the request's from here on.
 */
static void use_up(struct hu_sp *sp)
{
	struct hu_ep *ep = sp->ep;

	hd_service_set_backlog(sp->listener->service, 0);
	sp->used = true;
	if (!ep)
		return;
	ep->state = ep->ep ? DAT_EP_STATE_PASSIVE_CONNECTION_PENDING : DAT_EP_STATE_UNCONFIGURED_PASSIVE;
	ep->o.users--;
}

/*
 * One that is no front's of ours, or that there is no memory for, is turned away:
 * nobody else would answer it.
 */
void hu_requested(struct hu_sp *sp, const struct hd_event *event)
{
	struct hu_cr *cr = cr_make(sp, event);
	DAT_EVENT out = { .event_number = DAT_CONNECTION_REQUEST_EVENT };
	DAT_CR_ARRIVAL_EVENT_DATA *data = &out.event_data.cr_arrival_event_data;

	if (!cr) {
		hd_request_reject(event->request, NULL);
		return;
	}
	hu_count(sp->o.ia, DCNT_IA_SP_CR);
	hu_count(sp->o.ia, cr->head.datagram ? DCNT_IA_CM_AH_REQ_RX : DCNT_IA_CM_REQ_RX);
	data->sp_handle.psp_handle = sp;
	if (sp->o.type == DAT_HANDLE_TYPE_RSP)
		use_up(sp);
	data->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&sp->o.ia->addr;
	data->conn_qual = sp->qualifier;
	data->cr_handle = cr;
	if (cr->head.datagram)
		hu_ud_extend(&out, DAT_IB_UD_CONNECTION_REQUEST_EVENT, DAT_IB_UD_CONNECT_REQUEST);
	hu_notify(sp->o.ia, sp->evd, &out);
}
