/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* dat_ep_modify: an endpoint that becomes another, as long as nobody has met it. */
#include "front/dat/ep.h"
#include "front/dat/ud.h"

#include <string.h>

/* *to gets what the mask names of *from. */
static void ep_modify_merge(DAT_EP_PARAM *to, const DAT_EP_PARAM *from, DAT_EP_PARAM_MASK mask)
{
#define TAKE(bit, member) \
	if (mask & DAT_EP_FIELD_##bit) \
	to->member = from->member
	TAKE(PZ_HANDLE, pz_handle);
	TAKE(RECV_EVD_HANDLE, recv_evd_handle);
	TAKE(REQUEST_EVD_HANDLE, request_evd_handle);
	TAKE(CONNECT_EVD_HANDLE, connect_evd_handle);
	TAKE(EP_ATTR_SERVICE_TYPE, ep_attr.service_type);
	TAKE(EP_ATTR_MAX_MESSAGE_SIZE, ep_attr.max_message_size);
	TAKE(EP_ATTR_MAX_RDMA_SIZE, ep_attr.max_rdma_size);
	TAKE(EP_ATTR_QOS, ep_attr.qos);
	TAKE(EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags);
	TAKE(EP_ATTR_REQUEST_COMPLETION_FLAGS, ep_attr.request_completion_flags);
	TAKE(EP_ATTR_MAX_RECV_DTOS, ep_attr.max_recv_dtos);
	TAKE(EP_ATTR_MAX_REQUEST_DTOS, ep_attr.max_request_dtos);
	TAKE(EP_ATTR_MAX_RECV_IOV, ep_attr.max_recv_iov);
	TAKE(EP_ATTR_MAX_REQUEST_IOV, ep_attr.max_request_iov);
	TAKE(EP_ATTR_MAX_RDMA_READ_IN, ep_attr.max_rdma_read_in);
	TAKE(EP_ATTR_MAX_RDMA_READ_OUT, ep_attr.max_rdma_read_out);
	TAKE(EP_ATTR_SRQ_SOFT_HW, ep_attr.srq_soft_hw);
	TAKE(EP_ATTR_MAX_RDMA_READ_IOV, ep_attr.max_rdma_read_iov);
	TAKE(EP_ATTR_MAX_RDMA_WRITE_IOV, ep_attr.max_rdma_write_iov);
#undef TAKE
}

/* States in which an endpoint may be changed: without all that it needs, and with it. */
static const DAT_EP_STATE changeable[][2] = {
	{ DAT_EP_STATE_UNCONFIGURED_UNCONNECTED, DAT_EP_STATE_UNCONNECTED },
	{ DAT_EP_STATE_UNCONFIGURED_RESERVED, DAT_EP_STATE_RESERVED },
	{ DAT_EP_STATE_UNCONFIGURED_PASSIVE, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING },
	{ DAT_EP_STATE_UNCONFIGURED_TENTATIVE, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING },
};

static const DAT_EP_STATE *states_of(const struct hu_ep *ep)
{
	for (size_t i = 0; i < sizeof(changeable) / sizeof(changeable[0]); i++)
		if (ep->state == changeable[i][0] || ep->state == changeable[i][1])
			return changeable[i];
	return NULL;
}

/*
 * Until it is connected, or about to be; its zone only while nobody else has an eye
 * on it, or it may lack one.
 */
static bool may_modify(const struct hu_ep *ep, DAT_EP_PARAM_MASK mask)
{
	const DAT_EP_STATE *states = states_of(ep);

	return states && (ep->state == states[0] || ep->state == DAT_EP_STATE_UNCONNECTED ||
			  !(mask & DAT_EP_FIELD_PZ_HANDLE));
}

/* The engine has to do with some of what an endpoint has, and takes another endpoint for that. */
static bool is_for_another(const struct hu_ep *ep, const DAT_EP_PARAM *p)
{
	return !ep->ep || ep->pz != p->pz_handle || ep->recv != p->recv_evd_handle ||
	       ep->request != p->request_evd_handle || !p->connect_evd_handle ||
	       ep->attr.service_type != p->ep_attr.service_type ||
	       ep->attr.max_request_dtos != p->ep_attr.max_request_dtos;
}

/*
 * What has been posted, and who knows the endpoint by its number, would be lost with it; receives
 * keep the flags that they met.
 */
static bool may_become(const struct hu_ep *ep, const DAT_EP_PARAM *p, bool another)
{
	bool receives = ep->ep && !ep->srq && hd_ep_posted(ep->ep);

	if (receives && ep->attr.recv_completion_flags != p->ep_attr.recv_completion_flags)
		return false;
	return !another || !(receives || hu_ud_is_known(ep) || (ep->ep && !hd_ep_tx_idle(ep->ep)));
}

/*
 * Where that takes another endpoint of the engine's, it is as it was if
 * there is none. With the lock.
 */
static DAT_RETURN become(struct hu_ep *ep, const DAT_EP_PARAM *p)
{
	bool another = is_for_another(ep, p);
	struct hu_ep before = *ep;
	int rc;

	if (!may_become(ep, p, another))
		return hu_ep_state_error(ep);
	hu_ep_let_go(ep);
	if (another)
		hu_ep_unconfigure(ep);
	ep->pz = p->pz_handle;
	ep->recv = p->recv_evd_handle;
	ep->request = p->request_evd_handle;
	ep->connect = p->connect_evd_handle;
	ep->srq = p->srq_handle;
	if (p->ep_attr.srq_soft_hw != ep->attr.srq_soft_hw)
		ep->soft = p->ep_attr.srq_soft_hw;
	ep->attr = p->ep_attr;
	rc = hu_ep_configure(ep);
	if (rc) {
		*ep = before;
		ep->ep = NULL;
		(void)hu_ep_configure(ep);
	}
	hu_ep_hold(ep);
	hu_marks_arm(ep);
	ep->state = states_of(ep)[ep->ep != NULL];
	return hu_errno(rc);
}

static DAT_RETURN ep_modify_modify(struct hu_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	const DAT_EP_PARAM is = { .pz_handle = ep->pz,
				  .recv_evd_handle = ep->recv,
				  .request_evd_handle = ep->request,
				  .connect_evd_handle = ep->connect,
				  .srq_handle = ep->srq,
				  .ep_attr = ep->attr };
	DAT_EP_PARAM p = is;
	DAT_RETURN rc;

	ep_modify_merge(&p, param, mask);
	if (ep->srq)
		p.ep_attr.max_recv_iov = ep->attr.max_recv_iov;
	hu_ep_attr_fill(&p.ep_attr);
	rc = hu_ep_check_handles(ep->o.ia, &p);
	if (rc)
		return rc;
	if (!hu_ep_attr_is_right(&p.ep_attr))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!may_modify(ep, mask))
		return hu_ep_state_error(ep);
	hu_ep_attr_grant(&p.ep_attr);
	return memcmp(&p, &is, sizeof(p)) ? become(ep, &p) : DAT_SUCCESS;
}

/*
 * What an endpoint is cannot be set: the state, the addresses, the IA; nor its shared queue,
 * which it has for its life.
 */
#define MODIFIABLE \
	(DAT_EP_FIELD_EP_ATTR_ALL | DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | \
	 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE)

DAT_RETURN hu_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	DAT_RETURN rc;
	struct hu_ep *ep = hu_ep_begin(handle, mask, MODIFIABLE, param, &rc);

	if (!ep)
		return rc;
	rc = ep_modify_modify(ep, mask, param);
	hu_leave(ep->o.ia);
	return rc;
}
