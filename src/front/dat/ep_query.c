/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What an endpoint is like at the moment: dat_ep_query, dat_ep_get_status. */
#include "front/dat/ep.h"

DAT_RETURN hu_ep_state_error(const struct hu_ep *ep)
{
	static const DAT_RETURN_SUBTYPE subtypes[] = {
		[DAT_EP_STATE_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONNECTED,
		[DAT_EP_STATE_UNCONFIGURED_UNCONNECTED] = DAT_INVALID_STATE_EP_UNCONFIGURED,
		[DAT_EP_STATE_RESERVED] = DAT_INVALID_STATE_EP_RESERVED,
		[DAT_EP_STATE_UNCONFIGURED_RESERVED] = DAT_INVALID_STATE_EP_UNCONFRESERVED,
		[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
		[DAT_EP_STATE_UNCONFIGURED_PASSIVE] = DAT_INVALID_STATE_EP_UNCONFPASSIVE,
		[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
		[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
		[DAT_EP_STATE_UNCONFIGURED_TENTATIVE] = DAT_INVALID_STATE_EP_UNCONFTENTATIVE,
		[DAT_EP_STATE_CONNECTED] = DAT_INVALID_STATE_EP_CONNECTED,
		[DAT_EP_STATE_DISCONNECT_PENDING] = DAT_INVALID_STATE_EP_DISCPENDING,
		[DAT_EP_STATE_DISCONNECTED] = DAT_INVALID_STATE_EP_DISCONNECTED,
		[DAT_EP_STATE_COMPLETION_PENDING] = DAT_INVALID_STATE_EP_COMPLPENDING,
	};

	return hu_error(DAT_INVALID_STATE, subtypes[ep->state]);
}

struct hu_ep *hu_ep_begin(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM_MASK known,
			  const DAT_EP_PARAM *param, DAT_RETURN *rc)
{
	struct hu_ep *ep = handle;

	*rc = DAT_SUCCESS;
	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		*rc = hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	else if (mask & ~known)
		*rc = hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!param)
		*rc = hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	else if (!hu_enter(ep->o.ia))
		*rc = HU_DEAD;
	return *rc ? NULL : ep;
}

DAT_RETURN hu_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	DAT_RETURN rc;
	struct hu_ep *ep = hu_ep_begin(handle, mask, DAT_EP_FIELD_ALL, param, &rc);
	bool called;

	if (!ep)
		return rc;
	called = ep->remote.ss_family != 0;
	*param = (DAT_EP_PARAM){ .ia_handle = hu_ia_handle(ep->o.ia),
				 .ep_state = ep->state,
				 .comm = { .domain = ep->o.ia->addr.ss_family, .type = SOCK_STREAM },
				 .local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ep->o.ia->addr,
				 .local_port_qual = ep->ep ? hd_ep_number(ep->ep) : 0,
				 .remote_ia_address_ptr = called ? (DAT_IA_ADDRESS_PTR)&ep->remote : NULL,
				 .remote_port_qual = ep->remote_qualifier,
				 .pz_handle = ep->pz,
				 .recv_evd_handle = ep->recv,
				 .request_evd_handle = ep->request,
				 .connect_evd_handle = ep->connect,
				 .srq_handle = ep->srq,
				 .ep_attr = ep->attr };
	hu_leave(ep->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			    DAT_BOOLEAN *request_idle)
{
	struct hu_ep *ep = handle;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	if (state)
		*state = ep->state;
	if (recv_idle)
		*recv_idle = !ep->ep || ep->srq || !hd_ep_posted(ep->ep) ? DAT_TRUE : DAT_FALSE;
	if (request_idle)
		*request_idle = !ep->ep || hd_ep_tx_idle(ep->ep) ? DAT_TRUE : DAT_FALSE;
	hu_leave(ep->o.ia);
	return DAT_SUCCESS;
}
