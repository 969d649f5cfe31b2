/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_create_srq(3), ibv_modify_srq(3), ibv_query_srq(3): a receive queue of the engine, and a
 * nameless endpoint that posts to it.
 */
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"
#include "front/verbs/xrc/xrc.h"

#include <errno.h>
#include <stdlib.h>

/* Somebody has taken a receive, and fewer than the limit are left: once. */
static void below_limit(void *owner)
{
	struct hv_srq *srq = owner;
	const struct ibv_async_event event = { .element.srq = &srq->pub,
					       .event_type = IBV_EVENT_SRQ_LIMIT_REACHED };

	hv_event_post(srq->ctx, &event, &srq->target);
}

/* 0 or a positive errno. With the lock. */
static int srq_open(struct hv_srq *srq)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_NAMELESS };
	int rc = hd_rq_open(srq->ctx->node, false, &srq->rq);

	if (rc)
		return -rc;
	if (srq->xrcd) { /* others' messages name it */
		attr.policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE;
		attr.rx_cq = srq->cq->cq;
		attr.pd = hv_pd_real(srq->pd)->number;
		attr.domain = hv_xrcd_number(srq->xrcd);
		attr.asked = hv_lend_asked;
		attr.owner = srq;
	}
	attr.rq = srq->rq;
	rc = hd_ep_open(srq->ctx->node, &attr, &srq->poster);
	if (rc) {
		hd_rq_close(srq->rq);
		return -rc;
	}
	srq->pub.handle = ++srq->ctx->next_handle;
	hv_object_show(srq, srq->pub.handle);
	srq->pd->users++;
	srq->ctx->objects++;
	if (srq->xrcd) {
		srq->xrcd->users++;
		srq->cq->users++;
		srq->next = srq->ctx->xrc_srqs;
		srq->ctx->xrc_srqs = srq;
	}
	return 0;
}

static struct ibv_srq *srq_create(struct ibv_srq_init_attr_ex *ex)
{
	struct hv_context *ctx = hv_context_of(ex->pd->context);
	struct ibv_srq_attr *attr = &ex->attr;
	struct hv_srq *srq;
	int rc;

	if (attr->max_wr > HV_MAX_SRQ_WR || attr->max_sge > HV_MAX_SGE)
		return hv_fail(EINVAL);
	rc = HV_CHECK(ex->pd);
	if (!rc && ex->srq_type == IBV_SRQT_XRC)
		rc = HV_CHECK(ex->cq) ? ENOENT : HV_CHECK_PLAIN(ex->xrcd);
	if (rc)
		return hv_fail(rc);
	srq = hv_object_new(ctx, HV_KIND_SRQ, sizeof(*srq));
	if (!srq)
		return NULL;
	attr->max_wr += !attr->max_wr;
	attr->max_sge += !attr->max_sge;
	srq->ctx = ctx;
	srq->pd = hv_pd_of(ex->pd);
	if (ex->srq_type == IBV_SRQT_XRC) {
		srq->xrcd = hv_xrcd_of(ex->xrcd);
		srq->cq = hv_cq_of(ex->cq);
	}
	srq->max_wr = attr->max_wr;
	srq->max_sge = attr->max_sge;
	srq->pub.context = ex->pd->context;
	srq->pub.srq_context = ex->srq_context;
	srq->pub.pd = ex->pd;
	pthread_mutex_init(&srq->pub.mutex, NULL);
	pthread_cond_init(&srq->pub.cond, NULL);
	srq->target =
		(struct hv_event_target){ &srq->pub.mutex, &srq->pub.cond, &srq->pub.events_completed, 0 };
	rc = EIO;
	if (hv_enter(ctx)) {
		rc = srq_open(srq);
		hv_leave(ctx);
	}
	if (!rc)
		return &srq->pub;
	hv_object_free(ctx, srq);
	return hv_fail(rc);
}

struct ibv_srq *hv_ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context, .attr = attr->attr, .srq_type = IBV_SRQT_BASIC, .pd = pd
	};
	struct ibv_srq *srq = srq_create(&ex);

	if (srq)
		attr->attr = ex.attr;
	return srq;
}

/*
 * What a queue of this type needs. A basic one takes its domain whatever the mask says, and minds
 * no parts of others, as drivers have it.
 */
static bool has_parts(const struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t parts = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (!attr->pd || attr->pd->context != context)
		return false;
	if (attr->srq_type != IBV_SRQT_XRC)
		return true;
	return (attr->comp_mask & parts) == parts && attr->xrcd && attr->xrcd->context == context &&
	       attr->cq && attr->cq->context == context;
}

struct ibv_srq *hv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex ex = *attr;
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		ex.srq_type = IBV_SRQT_BASIC;
	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED ||
	    (ex.srq_type != IBV_SRQT_BASIC && ex.srq_type != IBV_SRQT_XRC))
		return hv_fail(EOPNOTSUPP);
	if (!has_parts(context, &ex))
		return hv_fail(EINVAL);
	srq = srq_create(&ex);
	if (srq)
		attr->attr = ex.attr;
	return srq;
}

/* Only those of XRC have one. */
int hv_get_srq_num(struct ibv_srq *pub, uint32_t *number)
{
	const struct hv_srq *srq = hv_srq_of(pub);

	if (!srq->xrcd)
		return EINVAL;
	*number = hd_ep_number(srq->poster);
	return 0;
}

void hv_xrc_drop(struct hv_context *ctx, uint32_t index)
{
	for (const struct hv_srq *srq = ctx->xrc_srqs; srq; srq = srq->next)
		hd_cq_drop(srq->cq->cq, index);
}

bool hv_xrc_has(const struct hv_context *ctx, uint32_t index)
{
	for (const struct hv_srq *srq = ctx->xrc_srqs; srq; srq = srq->next)
		if (hd_cq_has(srq->cq->cq, index))
			return true;
	return false;
}

/* With the lock. */
static void xrc_leave(struct hv_srq *srq)
{
	struct hv_srq **at = &srq->ctx->xrc_srqs;

	while (*at != srq)
		at = &(*at)->next;
	*at = srq->next;
	srq->xrcd->users--;
	srq->cq->users--;
}

int hv_ibv_modify_srq(struct ibv_srq *pub, struct ibv_srq_attr *attr, int mask)
{
	struct hv_srq *srq = hv_srq_of(pub);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
	const struct hd_rq_limit limit = { attr->srq_limit, below_limit, srq };
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (!hv_enter(srq->ctx))
		return EIO;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) || !max_wr || max_wr > HV_MAX_SRQ_WR ||
	    max_wr < hd_ep_posted(srq->poster) || (mask & IBV_SRQ_LIMIT && attr->srq_limit > max_wr))
		rc = EINVAL;
	if (!rc) {
		srq->max_wr = max_wr;
		if (mask & IBV_SRQ_LIMIT)
			hd_rq_set_limit(srq->rq, &limit);
	}
	hv_leave(srq->ctx);
	return rc;
}

int hv_ibv_query_srq(struct ibv_srq *pub, struct ibv_srq_attr *attr)
{
	struct hv_srq *srq = hv_srq_of(pub);
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (!hv_enter(srq->ctx))
		return EIO;
	*attr = (struct ibv_srq_attr){ .max_wr = srq->max_wr,
				       .max_sge = srq->max_sge,
				       .srq_limit = hd_rq_get_limit(srq->rq) };
	hv_leave(srq->ctx);
	return 0;
}

int hv_ibv_destroy_srq(struct ibv_srq *pub)
{
	struct hv_context *ctx = hv_context_of(pub->context);
	struct hv_srq *srq = hv_srq_of(pub);
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (hv_enter(srq->ctx)) {
		if (srq->users) {
			hv_leave(srq->ctx);
			return EBUSY;
		}
		hv_ep_settle(srq->ctx, srq->poster);
		hd_ep_close(srq->poster);
		hd_rq_close(srq->rq);
		srq->pd->users--;
		srq->ctx->objects--;
		if (srq->xrcd)
			xrc_leave(srq);
		hv_leave(srq->ctx);
	}
	hv_event_forget(srq->ctx, &srq->target);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	hv_object_free(ctx, srq);
	return 0;
}
