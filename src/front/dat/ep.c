/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints: dat_ep_create and the others. One that has all it needs is a pair of the engine's (HD_EP_PAIRED); its states are here. */
#include "front/dat/ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_DTOS 256
#define DEFAULT_IOV 4

/* ---- attributes ---------------------------------------------------------------------------------------------------------------------- */

static DAT_EP_ATTR default_attr(void)
{
	return (DAT_EP_ATTR){
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = HU_MAX_MESSAGE,
		.max_rdma_size = HU_MAX_MESSAGE,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = DEFAULT_DTOS,
		.max_request_dtos = DEFAULT_DTOS,
		.max_recv_iov = DEFAULT_IOV,
		.max_request_iov = DEFAULT_IOV,
		.max_rdma_read_in = HU_MAX_READS,
		.max_rdma_read_out = HU_MAX_READS,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = DEFAULT_IOV,
		.max_rdma_write_iov = DEFAULT_IOV,
	};
}

/*
 * What is asked for is the least that an endpoint must take, and messages are as long here as they may be anywhere. Programs leave at 0 what
 * they have no wish for; where that would forbid an operation, it is the default.
 */
static void fill_attr(DAT_EP_ATTR *a)
{
	DAT_COUNT *counts[] = { &a->max_recv_iov, &a->max_request_iov, &a->max_rdma_read_iov,
				&a->max_rdma_write_iov };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (!*counts[i])
			*counts[i] = DEFAULT_IOV;
	if (!a->srq_soft_hw) /* dat_ep_set_watermark alone means 0 */
		a->srq_soft_hw = DAT_HW_DEFAULT;
}

static bool is_ud(const DAT_EP_ATTR *a)
{
	return a->service_type == (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
}

bool hu_ep_is_ud(const struct hu_ep *ep)
{
	return is_ud(&ep->attr);
}

static void grant_lengths(DAT_EP_ATTR *a)
{
	a->max_message_size = is_ud(a) ? HU_MAX_DATAGRAM : HU_MAX_MESSAGE;
	a->max_rdma_size = is_ud(a) ? 0 : HU_MAX_MESSAGE;
}

static bool is_count(DAT_COUNT n, DAT_COUNT most)
{
	return n >= 0 && n <= most;
}

static bool flags_are_right(const DAT_EP_ATTR *a)
{
	const unsigned receives = DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
				  DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	const unsigned requests = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
				  DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
				  DAT_COMPLETION_EVD_THRESHOLD_FLAG;

	return !((unsigned)a->recv_completion_flags & ~receives) &&
	       !((unsigned)a->request_completion_flags & ~requests);
}

static bool attr_is_right(const DAT_EP_ATTR *a)
{
	return (a->service_type == DAT_SERVICE_TYPE_RC || is_ud(a)) &&
	       a->max_message_size <= (is_ud(a) ? HU_MAX_DATAGRAM : HU_MAX_MESSAGE) &&
	       a->max_rdma_size <= HU_MAX_MESSAGE && flags_are_right(a) &&
	       is_count(a->max_recv_dtos, HU_MAX_DTOS) && is_count(a->max_request_dtos, HU_MAX_DTOS) &&
	       is_count(a->max_recv_iov, HU_MAX_IOV) && is_count(a->max_request_iov, HU_MAX_IOV) &&
	       is_count(a->max_rdma_read_in, HU_MAX_READS) && is_count(a->max_rdma_read_out, HU_MAX_READS) &&
	       is_count(a->max_rdma_read_iov, HU_MAX_IOV) && is_count(a->max_rdma_write_iov, HU_MAX_IOV) &&
	       a->srq_soft_hw >= DAT_WATERMARK_INFINITE;
}

/* ---- the engine's endpoint -------------------------------------------------------------------------------------------------------------- */

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

/* The engine tells of the pair itself: it has failed. What comes of the connection goes another way, hu_happened. */
static void told(void *owner, uint32_t code, int err)
{
	struct hu_ep *ep = owner;

	/* the other end did what it may not; or it takes no buffer of its shared queue any more, which comes of that too */
	if (code == HD_EV_RQ_LAST || (code == HD_EV_EP_FAILED && !ep->srq)) {
		hu_notify_async(ep->o.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
		return;
	}
	if (code != HD_EV_EP_DRAINED && code != HD_EV_EP_OVER)
		return;
	ep->todo |= code == HD_EV_EP_DRAINED ? HU_DRAINED : HU_BROKEN;
	hd_chore_post(ep->o.ia->node, &ep->chore);
}

int hu_ep_configure(struct hu_ep *ep)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM,
				   .policy = HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT |
					     HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | HD_EP_REMOTE_ATOMIC,
				   .tx_size = (uint32_t)ep->attr.max_request_dtos,
				   .tell = told,
				   .owner = ep };
	int rc;

	if (ep->ep || !hu_ep_is_configured(ep))
		return 0;
	if (hu_ep_is_ud(ep))
		hu_ud_attr(&attr);
	attr.tx_cq = ep->request ? ep->request->cq : NULL;
	attr.rx_cq = ep->recv ? ep->recv->cq : NULL;
	attr.zone = ep->pz->zone;
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

/* ---- what an endpoint holds --------------------------------------------------------------------------------------------------------------- */

/* Completions of some endpoints tell only if that is asked for: dat_evd_wait(3) has no threshold for their dispatchers. */
static void control(struct hu_ep *ep, int by)
{
	unsigned recv = (unsigned)ep->attr.recv_completion_flags;

	if (ep->srq) /* what is posted there has no flags */
		recv &= ~(unsigned)DAT_COMPLETION_UNSIGNALLED_FLAG;
	if (ep->recv && recv & (DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG))
		ep->recv->controlled += by;
	if (ep->request && ep->attr.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		ep->request->controlled += by;
}

static void hold(struct hu_ep *ep)
{
	struct hu_evd *evds[] = { ep->recv, ep->request, ep->connect };

	for (size_t i = 0; i < sizeof(evds) / sizeof(evds[0]); i++)
		if (evds[i])
			hu_evd_hold(evds[i]);
	control(ep, 1);
	if (ep->pz)
		ep->pz->o.users++;
	if (ep->srq)
		ep->srq->o.users++;
}

static void let_go(struct hu_ep *ep)
{
	struct hu_evd *evds[] = { ep->recv, ep->request, ep->connect };

	control(ep, -1);
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

/* The handles of an endpoint that is to be; those of *p are looked at. */
static DAT_RETURN check_handles(const struct hu_ia *ia, const DAT_EP_PARAM *p)
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

/* ---- creating ------------------------------------------------------------------------------------------------------------------------------ */

/* With the lock. */
static DAT_RETURN make(struct hu_ia *ia, const DAT_EP_PARAM *p, struct hu_ep **out)
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
	grant_lengths(&ep->attr);
	ep->soft = ep->attr.srq_soft_hw;
	ep->hard = DAT_WATERMARK_INFINITE;
	ep->chore.fn = hu_ep_work;
	rc = hu_ep_configure(ep);
	if (rc) {
		hu_unmake(&ep->o);
		return hu_errno(rc);
	}
	ep->state = ep->ep ? DAT_EP_STATE_UNCONNECTED : DAT_EP_STATE_UNCONFIGURED_UNCONNECTED;
	hold(ep);
	*out = ep;
	return DAT_SUCCESS;
}

struct hu_ep *hu_ep_make_tentative(struct hu_ia *ia)
{
	const DAT_EP_PARAM p = { .ep_attr = default_attr() };
	struct hu_ep *ep;

	if (make(ia, &p, &ep))
		return NULL;
	ep->state = DAT_EP_STATE_UNCONFIGURED_TENTATIVE;
	ep->tentative = true;
	return ep;
}

static DAT_RETURN create(struct hu_ia *ia, DAT_EP_PARAM *p, const DAT_EP_ATTR *attr, int attr_arg,
			 DAT_EP_HANDLE *out)
{
	struct hu_ep *ep = NULL;
	DAT_RETURN rc = check_handles(ia, p);

	if (rc)
		return rc;
	p->ep_attr = attr ? *attr : default_attr();
	fill_attr(&p->ep_attr);
	if (!attr_is_right(&p->ep_attr))
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + attr_arg - 1));
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + attr_arg));
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = make(ia, p, &ep);
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
	return create(ia, &p, attr, 6, out);
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
	return create(ia, &p, attr, 7, out);
}

/* ---- freeing and going back ------------------------------------------------------------------------------------------------------------------ */

void hu_ep_drop(struct hu_ep *ep)
{
	hd_chore_drop(ep->o.ia->node, &ep->chore);
	hu_line_close(ep);
	hu_ud_drop(ep);
	hu_ep_unconfigure(ep);
	let_go(ep);
	hu_free(&ep->o);
}

/* A connection of its own making ends with it; a service point that has it for its requests must go first. */
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

/* ---- modifying --------------------------------------------------------------------------------------------------------------------------------- */

/* *to gets what the mask names of *from. */
static void merge(DAT_EP_PARAM *to, const DAT_EP_PARAM *from, DAT_EP_PARAM_MASK mask)
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

/* Until it is connected, or about to be; its zone only while nobody else has an eye on it, or it may lack one. */
static bool may_modify(const struct hu_ep *ep, DAT_EP_PARAM_MASK mask)
{
	const DAT_EP_STATE *states = states_of(ep);

	return states && (ep->state == states[0] || ep->state == DAT_EP_STATE_UNCONNECTED ||
			  !(mask & DAT_EP_FIELD_PZ_HANDLE));
}

/* The endpoint is opened anew with what it is to have; as it was where that fails. With the lock. */
static DAT_RETURN become(struct hu_ep *ep, const DAT_EP_PARAM *p)
{
	struct hu_ep before = *ep;
	int rc;

	if (hu_ud_is_known(ep)) /* by the number that it would lose */
		return hu_ep_state_error(ep);
	if (ep->ep && (hd_ep_tx_left(ep->ep) < (uint32_t)ep->attr.max_request_dtos ||
		       (!ep->srq && hd_ep_posted(ep->ep))))
		return hu_ep_state_error(ep); /* something is posted */
	let_go(ep);
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
	hold(ep);
	ep->state = states_of(ep)[ep->ep != NULL];
	return hu_errno(rc);
}

static DAT_RETURN modify(struct hu_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	const DAT_EP_PARAM is = { .pz_handle = ep->pz,
				  .recv_evd_handle = ep->recv,
				  .request_evd_handle = ep->request,
				  .connect_evd_handle = ep->connect,
				  .srq_handle = ep->srq,
				  .ep_attr = ep->attr };
	DAT_EP_PARAM p = is;
	DAT_RETURN rc;

	merge(&p, param, mask);
	fill_attr(&p.ep_attr);
	rc = check_handles(ep->o.ia, &p);
	if (rc)
		return rc;
	if (!attr_is_right(&p.ep_attr))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!may_modify(ep, mask))
		return hu_ep_state_error(ep);
	grant_lengths(&p.ep_attr);
	return memcmp(&p, &is, sizeof(p)) ? become(ep, &p) : DAT_SUCCESS;
}

/* What an endpoint is cannot be set: the state, the addresses, the IA; nor its shared queue, which it has for its life. */
#define MODIFIABLE \
	(DAT_EP_FIELD_EP_ATTR_ALL | DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | \
	 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE)

DAT_RETURN hu_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (mask & ~MODIFIABLE)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	rc = modify(ep, mask, param);
	hu_leave(ep->o.ia);
	return rc;
}
