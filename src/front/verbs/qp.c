/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_create_qp(3), ibv_create_qp_ex(3), ibv_query_qp(3), ibv_destroy_qp(3).
 * Changing them is in qp_modify.c.
 */
#include "front/verbs/qp.h"
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"
#include "front/verbs/qp_state.h"
#include "front/verbs/xrc/xrc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUPPORTED_INIT \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* ---- the table by endpoint index ------------------------------------------------------------- */

/* Room for index; what was there stays. 0 or -ENOMEM. */
static int table_reserve(struct hv_context *ctx, uint32_t index)
{
	struct hv_qps *old = ctx->qps, *qps;
	uint32_t n = old ? old->size : 16;

	if (old && index < n)
		return 0;
	while (n <= index)
		n *= 2;
	qps = realloc(old, sizeof(*qps) + n * sizeof(qps->at[0]));
	if (!qps)
		return -ENOMEM;
	memset(&qps->at[old ? qps->size : 0], 0, (n - (old ? qps->size : 0)) * sizeof(qps->at[0]));
	qps->size = n;
	ctx->qps = qps;
	return 0;
}

int hv_qp_enter(struct hv_qp *qp)
{
	int rc;

	qp->index = hd_ep_index(qp->ep);
	rc = table_reserve(qp->ctx, qp->index);
	if (!rc)
		((struct hv_qps *)qp->ctx->qps)->at[qp->index] = qp;
	return rc;
}

/* ---- creating -------------------------------------------------------------------------------- */

static const struct kind {
	enum ibv_qp_type type;
	enum hv_transport transport;
	enum hd_ep_type ep_type;
	uint32_t policy;     /* enum hd_ep_policy */
	uint32_t send_flags; /* enum hd_send_flag */
} kinds[] = {
	{ IBV_QPT_RC, HV_RC, HD_EP_RDM, HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT, 0 },
	{ IBV_QPT_UC, HV_UC, HD_EP_RDM, HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT | HD_EP_DROP, 0 },
	{ IBV_QPT_UD, HV_UD, HD_EP_DGRAM, HD_EP_NUMBERED | HD_EP_DROP, 0 },
	{ IBV_QPT_XRC_SEND, HV_XRC, HD_EP_RDM, HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT | HD_EP_XRC, 0 },
	{ IBV_QPT_XRC_RECV, HV_XRC_RECV, HD_EP_RDM, HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT | HD_EP_XRC,
	  0 },
};

/* NULL: there are none of this type. */
static const struct kind *qp_kind_of(enum ibv_qp_type type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return &kinds[i];
	return NULL;
}

static bool is_xrc(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

/*
 * What was asked for, made what there is: never 0, and never less. An SRQ makes the
 * receive half meaningless.
 */
static int cap_settle(struct ibv_qp_cap *cap, bool has_srq)
{
	if (has_srq)
		cap->max_recv_wr = cap->max_recv_sge = 0;
	if (cap->max_send_wr > HV_MAX_WR || cap->max_recv_wr > HV_MAX_WR || cap->max_send_sge > HV_MAX_SGE ||
	    cap->max_recv_sge > HV_MAX_SGE || cap->max_inline_data > HV_MAX_INLINE)
		return EINVAL;
	cap->max_send_wr += !cap->max_send_wr;
	cap->max_send_sge += !cap->max_send_sge;
	cap->max_recv_wr += !cap->max_recv_wr && !has_srq;
	cap->max_recv_sge += !cap->max_recv_sge && !has_srq;
	if (cap->max_inline_data < 64)
		/* costs nothing, and programs ask for less than they could use */
		cap->max_inline_data = 64;
	return 0;
}

/*
 * Those that only receive have a domain, the others a protection domain and a CQ for what they
 * send; only XRC needs none to receive.
 */
static bool parts_are_right(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd && a->xrcd->context == context;
	if (a->comp_mask & IBV_QP_INIT_ATTR_XRCD || !(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd ||
	    a->pd->context != context || !a->send_cq || a->send_cq->context != context)
		return false;
	return a->qp_type == IBV_QPT_XRC_SEND || (a->recv_cq && a->recv_cq->context == context);
}

static uint32_t create_flags(const struct ibv_qp_init_attr_ex *a)
{
	return a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? a->create_flags : 0;
}

/* Is all of it still what was given out? 0 or a positive errno. */
static int parts_are_whole(const struct ibv_qp_init_attr_ex *a)
{
	int rc = 0;

	if (a->comp_mask & IBV_QP_INIT_ATTR_PD && a->pd)
		rc = HV_CHECK(a->pd);
	if (!rc && a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd)
		rc = HV_CHECK_PLAIN(a->xrcd);
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return rc;
	if (!rc && a->send_cq)
		rc = HV_CHECK(a->send_cq);
	if (a->qp_type == IBV_QPT_XRC_SEND)
		return rc;
	if (!rc && a->recv_cq)
		rc = HV_CHECK(a->recv_cq);
	return !rc && a->srq ? HV_CHECK(a->srq) : rc;
}

/*
 * What an XRC queue pair names as its own is of no use to it, and overlooked, as by the kernel; for
 * others it must not be one of XRC's.
 */
static bool srq_is_right(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
	return !a->srq || is_xrc(a->qp_type) || (a->srq->context == context && !hv_srq_of(a->srq)->xrcd);
}

/* 0 or a positive errno. */
static int init_check(const struct hv_context *ctx, const struct ibv_qp_init_attr_ex *a)
{
	if (a->comp_mask & ~(uint32_t)SUPPORTED_INIT)
		return EOPNOTSUPP;
	if (!qp_kind_of(a->qp_type))
		return a->qp_type == IBV_QPT_RAW_PACKET || a->qp_type == IBV_QPT_DRIVER ? EOPNOTSUPP : EINVAL;
	if (!parts_are_right(&ctx->pub.context, a))
		return EINVAL;
	if (create_flags(a) &&
	    (a->qp_type != IBV_QPT_UD || create_flags(a) != IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
		return EOPNOTSUPP;
	if (!srq_is_right(&ctx->pub.context, a))
		return EINVAL;
	return parts_are_whole(a);
}

/* Is it for the first of the port's GIDs? So is what does not say. */
static bool is_for_first(const struct hv_context *ctx, uint32_t mark)
{
	return !mark || mark == ctx->port.gids[0].mark;
}

/*
 * The 40 bytes before a datagram, ibv_post_recv(3): as RoCE v2 has them, an IPv6 header, or zeros
 * and an IPv4 header behind; with an InfiniBand link layer a GRH, where the sender wants one. Only
 * addresses are filled in, what its sender has said, and what tells the two apart.
 */
static uint64_t head_fill(void *owner, const struct hd_sender *from, void *at)
{
	struct hv_qp *qp = owner;
	struct hv_context *ctx = qp->ctx;
	struct ibv_grh grh = { .version_tclass_flow =
				       htobe32(6u << 28 | (uint32_t)from->grh.traffic_class << 20),
			       .hop_limit = from->grh.hop_limit };
	bool ethernet = ctx->device->index == HV_ETHERNET;
	bool global = ethernet || from->group || from->grh.global;
	uint64_t word = from->number | (global ? HV_FROM_GRH : 0);

	if (!grh.hop_limit)
		grh.hop_limit = 64;
	if (from->addr) {
		hv_addr_gid(ctx, from->addr, &grh.sgid);
		word |= ethernet ? 0 : (uint64_t)hv_addr_lid(ctx, from->addr) << HV_FROM_LID;
	}
	grh.next_hdr = ethernet ? 17 : 27;
	if (from->group)
		grh.dgid = *hv_mcast_gid(from->group);
	else if (hv_likely(!from->grh.ipv6 && is_for_first(ctx, hv_datagram_mark(&from->grh))))
		grh.dgid = ctx->port.gids[0].gid;
	else
		hv_grh_fill(ctx, from, &grh);
	if (hv_grh_write(ctx, &grh, at))
		return word | HV_SL_ROCE_IPV4 << HV_FROM_SL;
	return ethernet ? word | HV_SL_ROCE_IPV6 << HV_FROM_SL : word;
}

/* Each handle of it is told. */
static void qp_event_post(struct hv_qp *qp, struct ibv_async_event *event)
{
	if (qp->domain)
		hv_far_event(qp, event->event_type);
	else
		hv_event_post(qp->ctx, event, &qp->target);
	for (struct hv_qp *h = qp->handles; h; h = h->next) {
		event->element.qp = &h->pub.qp_base;
		hv_event_post(qp->ctx, event, &h->target);
	}
}

void hv_qp_migrate(struct ibv_qp_attr *attr)
{
	attr->ah_attr = attr->alt_ah_attr;
	attr->port_num = attr->alt_port_num;
	attr->pkey_index = attr->alt_pkey_index;
	attr->timeout = attr->alt_timeout;
	attr->alt_ah_attr = (struct ibv_ah_attr){ 0 };
	attr->alt_pkey_index = attr->alt_port_num = attr->alt_timeout = 0;
}

/* Something has happened to the endpoint; its other end may have done it. With the lock. */
static void qp_tell(void *owner, uint32_t code, int err)
{
	struct hv_qp *qp = owner;
	struct ibv_async_event event = { .element.qp = &qp->pub.qp_base };

	switch (code) {
	case HD_EV_EP_FAILED:
		event.event_type = err == HD_S_ACCESS || err == HD_S_RANGE     ? IBV_EVENT_QP_ACCESS_ERR
				   : err == HD_S_INVALID || err == HD_S_LENGTH ? IBV_EVENT_QP_REQ_ERR
									       : IBV_EVENT_QP_FATAL;
		break;
	case HD_EV_EP_ESTABLISHED:
		if (*qp->state != HD_QP_RTR)
			return;
		event.event_type = IBV_EVENT_COMM_EST;
		break;
	case HD_EV_EP_DRAINED:
		if (!qp->drain_event)
			return;
		qp->drain_event = false;
		event.event_type = IBV_EVENT_SQ_DRAINED;
		break;
	case HD_EV_RQ_LAST:
		event.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
		break;
	case HD_EV_EP_MIGRATED:
		qp->migrated = true;
		hv_qp_migrate(&qp->attr);
		event.event_type = IBV_EVENT_PATH_MIG;
		break;
	case HD_EV_EP_UNMIGRATED:
		event.event_type = IBV_EVENT_PATH_MIG_ERR;
		break;
	default:
		return;
	}
	qp_event_post(qp, &event);
}

static int ep_open(struct hv_qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	const struct kind *kind = qp_kind_of(a->qp_type);
	struct hd_ep_attr attr = {
		.type = kind->ep_type,
		.policy = kind->policy,
		.tx_size = qp->cap.max_send_wr,
		.tx_cq = qp->pub.qp_base.send_cq ? hv_cq_of(a->send_cq)->cq : NULL,
		.rx_cq = qp->pub.qp_base.recv_cq ? hv_cq_of(a->recv_cq)->cq : NULL,
		.rq = qp->srq ? qp->srq->rq : NULL,
		.pd = qp->pd ? hv_pd_real(qp->pd)->number : 0,
		.domain = qp->domain ? qp->domain->number : 0,
		.stray = qp->domain && qp->domain->is_inode ? hv_lend_stray : NULL,
		.asked = qp->domain ? hv_far_asked : NULL,
		.head = kind->transport == HV_UD ? HV_GRH : 0,
		.head_fill = head_fill,
		.tell = qp_tell,
		.owner = qp,
	};
	int rc = hd_ep_open(qp->ctx->node, &attr, &qp->ep);

	if (rc < 0)
		return rc;
	rc = hv_qp_enter(qp);
	if (rc < 0) {
		hd_ep_close(qp->ep);
		return rc;
	}
	qp->to = kind->transport == HV_UD ? NULL : hd_ep_to(qp->ep);
	qp->state = hd_ep_state(qp->ep);
	qp->regions = hd_ep_regions(qp->ep);
	return 0;
}

/* What it holds has one user more, or one less. */
static void qp_hold(struct hv_qp *qp, int by)
{
	const struct ibv_qp *pub = &qp->pub.qp_base;

	if (pub->send_cq)
		hv_cq_of(pub->send_cq)->users += by;
	if (pub->recv_cq)
		hv_cq_of(pub->recv_cq)->users += by;
	if (qp->pd)
		qp->pd->users += by;
	if (qp->srq)
		qp->srq->users += by;
	if (qp->domain && by > 0)
		qp->domain->users++;
	else if (qp->domain)
		hv_domain_put(qp->domain);
	qp->ctx->objects += by;
}

static void qp_describe(struct hv_qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *pub = &qp->pub.qp_base;

	pub->context = &qp->ctx->pub.context;
	pub->qp_context = a->qp_context;
	if (a->qp_type != IBV_QPT_XRC_RECV) {
		pub->pd = a->pd;
		pub->send_cq = a->send_cq;
		qp->pd = hv_pd_of(a->pd);
	}
	if (!is_xrc(a->qp_type))
		pub->recv_cq = a->recv_cq;
	if (a->qp_type == IBV_QPT_XRC_RECV)
		qp->domain = hv_xrcd_of(a->xrcd)->domain;
	pub->srq = a->srq;
	pub->qp_type = a->qp_type;
	pub->state = IBV_QPS_RESET;
	pthread_mutex_init(&pub->mutex, NULL);
	pthread_cond_init(&pub->cond, NULL);
	qp->target = (struct hv_event_target){ &pub->mutex, &pub->cond, &pub->events_completed, 0 };
	qp->srq = a->srq && !is_xrc(a->qp_type) ? hv_srq_of(a->srq) : NULL;
	qp->cap = a->cap;
	qp->deaf_to_own = create_flags(a) & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	qp->transport = qp_kind_of(a->qp_type)->transport;
	qp->names = a->qp_type == IBV_QPT_XRC_SEND ? HV_QPN_MAX : 0;
	qp->signalled = a->sq_sig_all ? HD_SEND_COMPLETE : 0;
	qp->init = (struct ibv_qp_init_attr){ .qp_context = a->qp_context,
					      .send_cq = pub->send_cq,
					      .recv_cq = pub->recv_cq,
					      .srq = a->srq,
					      .cap = a->cap,
					      .qp_type = a->qp_type,
					      .sq_sig_all = a->sq_sig_all };
}

static void qp_forget(struct hv_qp *qp)
{
	pthread_mutex_destroy(&qp->pub.qp_base.mutex);
	pthread_cond_destroy(&qp->pub.qp_base.cond);
	hv_build_close(qp);
	hv_object_free(qp->ctx, qp);
}

/* 0 or a positive errno. With the lock. */
static int verbs_qp_open(struct hv_qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	int rc = ep_open(qp, a);

	if (rc < 0)
		return -rc;
	qp->pub.qp_base.qp_num = hd_ep_number(qp->ep);
	qp->pub.qp_base.handle = ++qp->ctx->next_handle;
	hv_object_show(qp, qp->pub.qp_base.handle);
	qp_hold(qp, 1);
	return 0;
}

void hv_ep_settle(struct hv_context *ctx, struct hd_ep *ep)
{
	struct hv_aside mine = hv_aside(ctx);

	hd_ep_settle(ep);
	hv_back(ctx, mine);
}

/* What no handle is left of, or nobody has ever seen. With the lock. */
static void qp_close(struct hv_qp *qp)
{
	struct hv_context *ctx = qp->ctx;

	if (!qp->domain) {
		/* what it has sent, and completed, leaves: the program may end next */
		hd_node_poll(ctx->node);
		hv_ep_settle(ctx, qp->ep);
	}
	hv_mcasts_leave(qp);
	if (qp->domain)
		hv_lend_forget(qp);
	hd_ep_close(qp->ep);
	hv_qp_drop_completions(qp);
	((struct hv_qps *)ctx->qps)->at[qp->index] = NULL;
	qp_hold(qp, -1);
}

void hv_qp_gone(struct hv_qp *qp)
{
	qp_close(qp);
	qp_forget(qp);
}

/* What the program gets: itself, or its first handle. NULL: no memory. With the lock. */
static struct hv_qp *shown(struct hv_qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	struct hv_qp *handle = qp;

	if (qp->transport == HV_XRC_RECV)
		handle = hv_xrc_handle(qp, hv_xrcd_of(a->xrcd), a->qp_context);
	if (!handle)
		qp_close(qp);
	return handle;
}

struct ibv_qp *hv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_qp *qp, *handle = NULL;
	int rc = init_check(ctx, a);

	if (!rc)
		rc = cap_settle(&a->cap, a->srq || is_xrc(a->qp_type));
	if (rc)
		return hv_fail(rc);
	qp = hv_object_new(ctx, HV_KIND_QP, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->ctx = ctx;
	qp_describe(qp, a);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		rc = hv_build_open(qp, a->send_ops_flags);
	if (!rc && hv_enter(ctx)) {
		rc = verbs_qp_open(qp, a);
		handle = rc ? NULL : shown(qp, a);
		hv_leave(ctx);
		rc = rc || handle ? rc : ENOMEM;
	} else if (!rc) {
		rc = EIO;
	}
	if (!rc)
		return &handle->pub.qp_base;
	qp_forget(qp);
	return hv_fail(rc);
}

struct ibv_qp *hv_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .qp_context = attr->qp_context,
					  .send_cq = attr->send_cq,
					  .recv_cq = attr->recv_cq,
					  .srq = attr->srq,
					  .cap = attr->cap,
					  .qp_type = attr->qp_type,
					  .sq_sig_all = attr->sq_sig_all,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = pd };
	struct ibv_qp *qp = hv_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp_ex *hv_ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct hv_qp *q = hv_qp_of(qp);

	return q->build ? &q->pub : NULL;
}

/* ---- destroying ------------------------------------------------------------------------------ */

int hv_ibv_destroy_qp(struct ibv_qp *pub)
{
	struct hv_qp *qp = hv_qp_of(pub), *real;
	struct hv_context *ctx = hv_context_of(pub->context);
	int rc = HV_CHECK(pub);
	bool last = false;

	if (rc)
		return rc;
	real = qp->real;
	if (qp->far)
		hv_far_close(qp);
	if (hv_enter(ctx)) {
		if (qp->groups) {
			hv_leave(ctx);
			return EBUSY;
		}
		last = qp->xrcd ? hv_xrc_unhandle(qp) : true;
		if (last)
			qp_close(hv_qp_real(qp));
		hv_leave(ctx);
	}
	hv_event_forget(ctx, &qp->target);
	qp_forget(qp);
	if (real && last)
		qp_forget(real);
	return 0;
}

void hv_qp_drop_completions(struct hv_qp *qp)
{
	const struct ibv_qp *pub = &qp->pub.qp_base;

	if (pub->send_cq)
		hd_cq_drop(hv_cq_of(pub->send_cq)->cq, qp->index);
	if (pub->recv_cq)
		hd_cq_drop(hv_cq_of(pub->recv_cq)->cq, qp->index);
	if (qp->transport == HV_XRC_RECV)
		hv_xrc_drop(qp->ctx, qp->index);
	qp->polled = qp->posted;
}

/* ---- looking --------------------------------------------------------------------------------- */

enum ibv_qp_state hv_qp_look(const struct hv_qp *qp)
{
	return hv_qp_state_of(*qp->state);
}

void hv_qp_psns(const struct hv_qp *qp, struct ibv_qp_attr *attr)
{
	uint32_t sq, rq;

	if (qp->transport == HV_UD)
		return;
	hd_ep_psns(qp->ep, &sq, &rq);
	attr->sq_psn = sq;
	attr->rq_psn = rq;
}

int hv_ibv_query_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct hv_qp *qp = hv_qp_real(hv_qp_of(pub));
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (qp->far)
		return hv_far_query(qp, attr, mask, init);
	if (!hv_enter(qp->ctx))
		return EIO;
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = hv_qp_look(qp);
	hv_qp_show(pub, attr, mask);
	attr->path_mig_state = (enum ibv_mig_state)hd_ep_path(qp->ep);
	attr->sq_draining = *qp->state == HD_QP_SQD || *qp->state == HD_QP_SQD_PENDING;
	hv_qp_psns(qp, attr);
	attr->cap = qp->cap;
	*init = qp->init;
	init->cap = qp->cap;
	init->qp_context = pub->qp_context;
	hv_leave(qp->ctx);
	return 0;
}

/*
 * Both ends of a long message copy it, each where it finds work: only its
 * end is known to come last.
 */
int hv_ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

int hv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	return EOPNOTSUPP;
}

int hv_ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}

int hv_ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){ 0 };
	return EOPNOTSUPP;
}
