/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints: dat_ep_create and the others. One that has all it needs is a pair of the engine's
 * (HD_EP_PAIRED); its states are here.
 */
#include "front/dat/ep.h"
#include "front/dat/ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the engine's endpoint ------------------------------------------------------------------- */

/* Who is not interested in completions needs no dispatchers for them. */
bool hu_ep_is_configured(const struct hu_ep *ep)
{
	return ep->pz && ep->connect;
}

static int enter_table(struct hu_ep *ep)
{
	struct hu_ia *ia = ep->o.ia;
	uint32_t size = ia->ep_size ? ia->ep_size : 16;
	struct hu_ep **eps;

	ep->index = hd_ep_index(ep->ep);
	while (size <= ep->index)
		size *= 2;
	if (size != ia->ep_size) {
		eps = calloc(size, sizeof(*eps));
		if (!eps)
			return -ENOMEM;
		for (uint32_t i = 0; i < ia->ep_size; i++)
			eps[i] = ia->eps[i];
		free(ia->eps);
		ia->eps = eps;
		ia->ep_size = size;
	}
	ia->eps[ep->index] = ep;
	return 0;
}

/*
 * The engine tells of the pair itself: it has failed. What comes of the connection goes
 * another way, hu_ep_happened.
 */
static void ep_told(void *owner, uint32_t code, int err)
{
	struct hu_ep *ep = owner;

	/*
	 * the other end did what it may not; or it takes no buffer of its shared queue any
	 * more, which comes of that too
	 */
	if (code == HD_EV_RQ_LAST || (code == HD_EV_EP_FAILED && !ep->srq)) {
		hu_notify_async(ep->o.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
		return;
	}
	if (code != HD_EV_EP_DRAINED && code != HD_EV_EP_OVER)
		return;
	ep->todo |= code == HD_EV_EP_DRAINED ? HU_DRAINED : HU_BROKEN;
	hd_deferred_post(ep->o.ia->node, &ep->deferred);
}

int hu_ep_configure(struct hu_ep *ep)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM,
				   .policy = HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT |
					     HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | HD_EP_REMOTE_ATOMIC,
				   .tx_size = (uint32_t)ep->attr.max_request_dtos,
				   .tell = ep_told,
				   .owner = ep };
	int rc;

	if (ep->ep || !hu_ep_is_configured(ep))
		return 0;
	if (hu_ep_is_ud(ep))
		hu_ud_attr(&attr);
	attr.tx_cq = ep->request ? ep->request->cq : NULL;
	attr.rx_cq = ep->recv ? ep->recv->cq : NULL;
	attr.pd = ep->pz->number;
	attr.rq = ep->srq ? ep->srq->rq : NULL;
	rc = hd_ep_open(ep->o.ia->node, &attr, &ep->ep);
	if (rc)
		return rc;
	rc = enter_table(ep);
	if (rc) {
		hd_ep_close(ep->ep);
		ep->ep = NULL;
		return rc;
	}
	ep->reaped = 0;
	hu_marks_arm(ep);
	if (hu_ep_is_ud(ep))
		return hu_ud_open(ep->ep);
	ep->to = hd_ep_to(ep->ep);
	return 0;
}

void hu_ep_unconfigure(struct hu_ep *ep)
{
	if (!ep->ep)
		return;
	ep->o.ia->eps[ep->index] = NULL;
	if (ep->request)
		hd_cq_drop(ep->request->cq, ep->index);
	if (ep->recv)
		hd_cq_drop(ep->recv->cq, ep->index);
	hd_ep_close(ep->ep);
	ep->ep = NULL;
}

/* ---- what an endpoint holds ------------------------------------------------------------------ */

/*
 * Completions of some endpoints tell only if that is asked for: dat_evd_wait(3) has no
 * threshold for their dispatchers.
 */
static void dat_ep_control(struct hu_ep *ep, int by)
{
	unsigned recv = (unsigned)ep->attr.recv_completion_flags;

	if (ep->srq) /* what is posted there has no flags */
		recv &= ~(unsigned)DAT_COMPLETION_UNSIGNALLED_FLAG;
	if (ep->recv && recv & (DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG))
		ep->recv->controlled += by;
	if (ep->request && ep->attr.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		ep->request->controlled += by;
	if (ep->recv && recv & DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		ep->recv->thresholds += by;
	if (ep->request && ep->attr.request_completion_flags & DAT_COMPLETION_EVD_THRESHOLD_FLAG)
		ep->request->thresholds += by;
}

void hu_ep_hold(struct hu_ep *ep)
{
	struct hu_evd *evds[] = { ep->recv, ep->request, ep->connect };

	for (size_t i = 0; i < sizeof(evds) / sizeof(evds[0]); i++)
		if (evds[i])
			hu_evd_hold(evds[i]);
	dat_ep_control(ep, 1);
	if (ep->pz)
		ep->pz->o.users++;
	if (ep->srq)
		ep->srq->o.users++;
}

void hu_ep_let_go(struct hu_ep *ep)
{
	struct hu_evd *evds[] = { ep->recv, ep->request, ep->connect };

	dat_ep_control(ep, -1);
	for (size_t i = 0; i < sizeof(evds) / sizeof(evds[0]); i++)
		if (evds[i])
			hu_evd_put(evds[i]);
	if (ep->pz)
		ep->pz->o.users--;
	if (ep->srq)
		ep->srq->o.users--;
}

static bool is_evd(const struct hu_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag)
{
	const struct hu_evd *evd = handle;

	return !evd || (hu_is(evd, DAT_HANDLE_TYPE_EVD) && evd->o.ia == ia && evd->flags & flag);
}

DAT_RETURN hu_ep_check_handles(const struct hu_ia *ia, const DAT_EP_PARAM *p)
{
	const struct hu_evd *connect;

	if (p->pz_handle &&
	    (!hu_is(p->pz_handle, DAT_HANDLE_TYPE_PZ) || ((struct hu_pz *)p->pz_handle)->o.ia != ia))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!is_evd(ia, p->recv_evd_handle, DAT_EVD_DTO_FLAG))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	if (!is_evd(ia, p->request_evd_handle, DAT_EVD_DTO_FLAG))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	connect = p->connect_evd_handle; /* events of connections may be wanted elsewhere */
	if (connect && !(hu_is(connect, DAT_HANDLE_TYPE_EVD) && connect->flags & DAT_EVD_CONNECTION_FLAG))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (p->srq_handle &&
	    (!hu_is(p->srq_handle, DAT_HANDLE_TYPE_SRQ) || ((struct hu_srq *)p->srq_handle)->o.ia != ia))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	return DAT_SUCCESS;
}

/* ---- creating -------------------------------------------------------------------------------- */

/* With the lock. */
static DAT_RETURN dat_ep_make(struct hu_ia *ia, const DAT_EP_PARAM *p, struct hu_ep **out)
{
	struct hu_ep *ep = hu_make(ia, DAT_HANDLE_TYPE_EP, sizeof(*ep));
	int rc;

	if (!ep)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ep->pz = p->pz_handle;
	ep->recv = p->recv_evd_handle;
	ep->request = p->request_evd_handle;
	ep->connect = p->connect_evd_handle;
	ep->srq = p->srq_handle;
	ep->attr = p->ep_attr;
	hu_ep_attr_grant(&ep->attr);
	ep->soft = ep->attr.srq_soft_hw;
	ep->hard = DAT_WATERMARK_INFINITE;
	ep->deferred.fn = hu_ep_work;
	rc = hu_ep_configure(ep);
	if (rc) {
		hu_unmake(&ep->o);
		return hu_errno(rc);
	}
	ep->state = ep->ep ? DAT_EP_STATE_UNCONNECTED : DAT_EP_STATE_UNCONFIGURED_UNCONNECTED;
	hu_ep_hold(ep);
	*out = ep;
	return DAT_SUCCESS;
}

struct hu_ep *hu_ep_make_tentative(struct hu_ia *ia)
{
	const DAT_EP_PARAM p = { .ep_attr = hu_ep_attr_default() };
	struct hu_ep *ep;

	if (dat_ep_make(ia, &p, &ep))
		return NULL;
	ep->state = DAT_EP_STATE_UNCONFIGURED_TENTATIVE;
	ep->tentative = true;
	return ep;
}

static DAT_RETURN ep_create(struct hu_ia *ia, DAT_EP_PARAM *p, const DAT_EP_ATTR *attr, int attr_arg,
			    DAT_EP_HANDLE *out)
{
	struct hu_ep *ep = NULL;
	DAT_RETURN rc = hu_ep_check_handles(ia, p);

	if (rc)
		return rc;
	p->ep_attr = attr ? *attr : hu_ep_attr_default();
	if (p->srq_handle) /* says how long what is posted there may be */
		p->ep_attr.max_recv_iov = 0;
	hu_ep_attr_fill(&p->ep_attr);
	if (p->ep_attr.qos != DAT_QOS_BEST_EFFORT)
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!hu_ep_attr_is_right(&p->ep_attr))
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + attr_arg - 1));
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + attr_arg));
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = dat_ep_make(ia, p, &ep);
	hu_leave(ia);
	if (!rc)
		*out = ep;
	return rc;
}

DAT_RETURN hu_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *out)
{
	DAT_EP_PARAM p = { .pz_handle = pz,
			   .recv_evd_handle = recv,
			   .request_evd_handle = request,
			   .connect_evd_handle = connect };

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return ep_create(ia, &p, attr, 6, out);
}

DAT_RETURN hu_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				 DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq,
				 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *out)
{
	DAT_EP_PARAM p = { .pz_handle = pz,
			   .recv_evd_handle = recv,
			   .request_evd_handle = request,
			   .connect_evd_handle = connect,
			   .srq_handle = srq };

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!hu_is(srq, DAT_HANDLE_TYPE_SRQ))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (!attr)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (hu_is(pz, DAT_HANDLE_TYPE_PZ) &&
	    ((struct hu_srq *)srq)->pz != pz) /* srq_ep_pz_difference_supported */
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return ep_create(ia, &p, attr, 7, out);
}

/* ---- freeing and going back ------------------------------------------------------------------ */

void hu_ep_drop(struct hu_ep *ep)
{
	if (ep->ep)
		hd_ep_settle(ep->ep); /* first, since it is whole meanwhile for whoever comes */
	hd_deferred_drop(ep->o.ia->node, &ep->deferred);
	hu_line_close(ep);
	hu_ud_drop(ep);
	hu_ep_unconfigure(ep);
	hu_ep_let_go(ep);
	hu_free(&ep->o);
}

/*
 * A connection of its own making ends with it; a service point that has it for
 * its requests must go first.
 */
DAT_RETURN hu_ep_free(DAT_EP_HANDLE handle)
{
	struct hu_ep *ep = handle;
	struct hu_ia *ia;
	DAT_RETURN rc = DAT_SUCCESS;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ia = ep->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	if (ep->o.users)
		rc = hu_ep_state_error(ep);
	else
		hu_ep_drop(ep);
	hu_leave(ia);
	return rc;
}

DAT_RETURN hu_ep_reset(DAT_EP_HANDLE handle)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc = DAT_SUCCESS;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	if (ep->state == DAT_EP_STATE_DISCONNECTED) {
		hd_ep_settle(ep->ep);
		hu_line_close(ep);
		hd_ep_reset(ep->ep);
		ep->todo = 0;
		ep->state = DAT_EP_STATE_UNCONNECTED;
	} else if (ep->state != DAT_EP_STATE_UNCONNECTED) {
		rc = hu_ep_state_error(ep);
	}
	hu_leave(ep->o.ia);
	return rc;
}
