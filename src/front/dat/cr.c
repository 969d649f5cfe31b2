/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connection requests: dat_cr_query, dat_cr_accept, dat_cr_reject, dat_cr_handoff. */
#include "front/dat/connect.h"
#include "front/dat/ud.h"

#include <errno.h>

void hu_cr_drop(struct hu_cr *cr)
{
	hu_listener_put(cr->o.ia, cr->listener); /* the last one rejects what nobody answered */
	if (cr->ep)
		cr->ep->o.users--;
	hu_free(&cr->o);
}

DAT_RETURN hu_cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	struct hu_cr *cr = handle;

	if (!hu_is(cr, DAT_HANDLE_TYPE_CR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if ((unsigned)mask & ~(unsigned)DAT_CR_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = (DAT_CR_PARAM){ .remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->from,
				 .remote_port_qual = cr->head.number,
				 .private_data_size = (DAT_COUNT)cr->head.private_size,
				 .private_data = cr->priv,
				 .local_ep_handle = cr->ep };
	return DAT_SUCCESS;
}

/* The state of an endpoint that waits for its request to be accepted. */
static DAT_EP_STATE cr_pending(const struct hu_cr *cr)
{
	if (!cr->ep)
		return DAT_EP_STATE_UNCONNECTED;
	return cr->ep->tentative ? DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING
				 : DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
}

/*
 * The request goes unaccepted: its endpoint is as before, or if it was made for
 * it, no more. With the lock.
 */
static void cr_give_back(struct hu_cr *cr)
{
	struct hu_ep *ep = cr->ep;

	hu_cr_drop(cr);
	if (ep && ep->tentative)
		hu_ep_drop(ep);
	else if (ep)
		ep->state = ep->ep ? DAT_EP_STATE_UNCONNECTED : DAT_EP_STATE_UNCONFIGURED_UNCONNECTED;
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* The endpoint is ready for what the other end sends as soon as it knows. With the lock. */
static DAT_RETURN cr_prepare(struct hu_cr *cr, struct hu_ep *ep)
{
	int rc;

	if (ep->state != cr_pending(cr) || !ep->ep || ep->line)
		return hu_ep_state_error(ep);
	rc = hu_line_open(&ep->o, ep, &ep->line);
	if (rc)
		return hu_errno(rc);
	rc = hu_pair(ep, &cr->from, cr->head.number);
	if (rc) {
		hu_line_close(ep);
		return hu_errno(rc);
	}
	ep->state = DAT_EP_STATE_COMPLETION_PENDING;
	ep->remote = cr->from;
	ep->remote_qualifier = cr->head.number;
	return DAT_SUCCESS;
}

/*
 * It was not to be: the caller has gone meanwhile, which is an event, or there is
 * no memory. With the lock.
 */
static DAT_RETURN undo(const struct hu_cr *cr, struct hu_ep *ep, int rc)
{
	if (rc == -ECONNABORTED) {
		hu_ep_part(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		return DAT_SUCCESS;
	}
	hu_line_close(ep);
	hd_ep_reset(ep->ep);
	ep->state = cr_pending(cr);
	return hu_errno(rc);
}

static DAT_RETURN accept_by(struct hu_cr *cr, struct hu_ep *ep, const void *priv, DAT_COUNT size)
{
	char body[HD_CM_DATA];
	struct hd_cm_data data = { .data = body };
	struct hu_handshake *shake = NULL;
	struct hu_ia *ia = cr->o.ia;
	struct hd_ep *line = NULL;
	DAT_RETURN rc;
	int answer;

	if (!hu_enter(ia))
		return HU_DEAD;
	rc = hu_ep_is_ud(ep) ? hu_ud_prepare(cr, ep, &shake) : cr_prepare(cr, ep);
	if (!rc) {
		line = shake ? shake->line : ep->line;
		data.len = hu_head_put(ep, priv, size, body);
	}
	hu_leave(ia);
	if (rc)
		return rc;
	answer = hd_ep_accept(line, cr->request, &data);
	hd_node_lock(ia->node);
	if (answer)
		rc = shake ? hu_ud_undo(shake, answer) : undo(cr, ep, answer);
	if (!rc) {
		hu_count(ia, DCNT_IA_SP_CR_ACCEPTED);
		hu_count(ia, DCNT_IA_CM_REP_TX);
		ep->counts[DCNT_EP_CONNECT]++;
		ep->tentative = false;
		hu_cr_drop(cr);
	}
	hd_node_unlock(ia->node);
	return rc;
}

static DAT_RETURN check_private(DAT_COUNT size, const void *priv, int arg)
{
	if (size < 0 || size > HU_MAX_PRIVATE)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + arg - 1));
	if (size && !priv)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + arg));
	return DAT_SUCCESS;
}

DAT_RETURN hu_cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT size, const DAT_PVOID priv)
{
	struct hu_cr *cr = handle;
	struct hu_ep *ep = ep_handle;
	DAT_RETURN rc;

	if (!hu_is(cr, DAT_HANDLE_TYPE_CR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (!ep)
		ep = cr->ep;
	if (!hu_is(ep, DAT_HANDLE_TYPE_EP) || ep->o.ia != cr->o.ia || (cr->ep && cr->ep != ep))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (hu_ep_is_ud(ep) != (bool)cr->head.datagram) /* what asks is of another service type */
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	rc = check_private(size, priv, 3);
	return rc ? rc : accept_by(cr, ep, priv, size);
}

DAT_RETURN hu_cr_reject(DAT_CR_HANDLE handle, DAT_COUNT size, const DAT_PVOID priv)
{
	struct hu_cr *cr = handle;
	char body[HD_CM_DATA];
	struct hd_cm_data data = { .data = body, .word = HU_WORD_REJECT };
	struct hu_ia *ia;
	DAT_RETURN rc;

	if (!hu_is(cr, DAT_HANDLE_TYPE_CR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	rc = check_private(size, priv, 2);
	if (rc)
		return rc;
	ia = cr->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	data.len = hu_head_put(&(struct hu_ep){ 0 }, priv, size, body);
	hd_request_reject(cr->request, &data);
	hu_count(ia, DCNT_IA_SP_CR_REJECTED);
	hu_count(ia, DCNT_IA_CM_USER_REJ_TX);
	cr_give_back(cr);
	hu_leave(ia);
	return DAT_SUCCESS;
}

/* The caller is told to ask that service of this host instead; its program does not notice. */
DAT_RETURN hu_cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qualifier)
{
	const struct hu_head head = { .qualifier = qualifier };
	const struct hd_cm_data data = { .data = &head, .len = sizeof(head), .word = HU_WORD_HANDOFF };
	DAT_RETURN rc;
	struct hu_cr *cr = hu_begin(handle, DAT_HANDLE_TYPE_CR, DAT_INVALID_HANDLE_CR, &rc);
	struct hu_ia *ia = cr ? cr->o.ia : NULL;

	if (!cr)
		return rc;
	if (cr->head.datagram) { /* handshakes are not asked for again */
		rc = hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	} else {
		hd_request_reject(cr->request, &data);
		cr_give_back(cr);
	}
	hu_leave(ia);
	return rc;
}
