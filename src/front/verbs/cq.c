/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Completion queues: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_resize_cq(3), ibv_req_notify_cq(3).
 * Reading them is in poll.c.
 */
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"
#include "front/verbs/qp.h"

#include <errno.h>
#include <stdlib.h>

static struct ibv_cq *public_of(struct hv_cq *cq)
{
	return (struct ibv_cq *)(void *)&cq->pub;
}

/* The engine's, with the lock: more has completed than was read. */
static void on_overrun(void *arg)
{
	struct hv_cq *cq = arg;
	struct ibv_async_event event = { .element.cq = public_of(cq), .event_type = IBV_EVENT_CQ_ERR };

	hv_event_post(cq->ctx, &event, &cq->target);
}

static void cq_fill(struct hv_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	cq->pub.context = &cq->ctx->pub.context;
	cq->pub.channel = attr->channel;
	cq->pub.cq_context = attr->cq_context;
	pthread_mutex_init(&cq->pub.mutex, NULL);
	pthread_mutex_init(&cq->polling, NULL);
	pthread_cond_init(&cq->pub.cond, NULL);
	cq->wc_flags = attr->wc_flags;
	cq->item.owner = public_of(cq);
	cq->item.taken = &cq->events_read;
	cq->target = (struct hv_event_target){ .mutex = &cq->pub.mutex,
					       .cond = &cq->pub.cond,
					       .acked = &cq->pub.async_events_completed };
}

static uint32_t cq_flags_of(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
}

static struct hv_pd *parent_of(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? hv_pd_of(attr->parent_domain) : NULL;
}

/* With the lock. */
static int cq_open(struct hv_cq *cq, const struct ibv_cq_init_attr_ex *init)
{
	struct hd_cq_attr attr = {
		.size = init->cqe,
		.overruns = true,
		.forgets = cq_flags_of(init) & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
		.on_overrun = on_overrun,
		.arg = cq,
		.channel = init->channel ? hv_channel_of(init->channel)->channel : NULL,
		.item = &cq->item,
	};
	int rc = hd_cq_open(cq->ctx->node, &attr, &cq->cq);

	if (rc)
		return rc;
	cq->pub.cqe = (int)hd_cq_room(cq->cq);
	cq->pub.handle = ++cq->ctx->next_handle;
	hv_object_show(cq, cq->pub.handle);
	if (init->channel)
		init->channel->refcnt++;
	cq->parent = parent_of(init);
	if (cq->parent)
		cq->parent->users++;
	cq->ctx->objects++;
	return 0;
}

static bool is_parent_here(const struct hv_context *ctx, struct ibv_pd *pd)
{
	return pd && pd->context == &ctx->pub.context && !HV_CHECK(pd) && hv_pd_of(pd)->parent;
}

static int cq_check(const struct hv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t masks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

	if (attr->comp_mask & ~masks)
		return EOPNOTSUPP;
	if (cq_flags_of(attr) & ~flags)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && !is_parent_here(ctx, attr->parent_domain))
		return EINVAL;
	if (!attr->cqe || attr->cqe > HV_MAX_CQE ||
	    attr->comp_vector >= (uint32_t)ctx->pub.context.num_comp_vectors)
		return EINVAL;
	if (!attr->channel)
		return 0;
	return attr->channel->context != &ctx->pub.context ? EINVAL : HV_CHECK_PLAIN(attr->channel);
}

static struct hv_cq *verbs_cq_make(struct hv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	int rc = cq_check(ctx, attr);
	struct hv_cq *cq;

	if (rc)
		return hv_fail(rc);
	cq = hv_object_new(ctx, HV_KIND_CQ, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ctx = ctx;
	cq_fill(cq, attr);
	rc = hv_cq_ex_fill(cq, attr->wc_flags);
	if (!rc && hv_enter(ctx)) {
		rc = cq_open(cq, attr);
		hv_leave(ctx);
	} else if (!rc) {
		rc = EIO;
	}
	if (rc) {
		hv_object_free(ctx, cq);
		return hv_fail(rc);
	}
	return cq;
}

struct ibv_cq_ex *hv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct hv_cq *cq = verbs_cq_make(hv_context_of(context), attr);

	return cq ? &cq->pub : NULL;
}

struct ibv_cq *hv_ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe > 0 ? (uint32_t)cqe : 0,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)vector,
	};
	struct hv_cq *cq = verbs_cq_make(hv_context_of(context), &attr);

	return cq ? public_of(cq) : NULL;
}

/*
 * Completions that are sure to come and have not been polled: those of queue pairs all of whose
 * requests complete. With the lock.
 */
static uint32_t cq_due(const struct hv_cq *cq)
{
	const struct hv_qps *qps = cq->ctx->qps;
	uint32_t n = 0;

	for (uint32_t i = 0; qps && i < qps->size; i++) {
		const struct hv_qp *qp = qps->at[i];

		if (qp && qp->signalled && qp->init.send_cq && hv_cq_of(qp->init.send_cq) == cq)
			n += qp->posted - qp->polled;
	}
	return n;
}

/*
 * 0 or -errno. A smaller one is to hold what has been sent, whether that has ended by
 * now or not. With the lock.
 */
static int resize(struct hv_cq *cq, uint32_t cqe)
{
	if (cqe < hd_cq_room(cq->cq) && cqe < cq_due(cq))
		return -EINVAL;
	return hd_cq_resize(cq->cq, cqe);
}

int hv_ibv_resize_cq(struct ibv_cq *public, int cqe)
{
	struct hv_cq *cq = hv_cq_of(public);
	int rc;

	rc = HV_CHECK(public);
	if (rc)
		return rc;
	if (cqe < 1 || cqe > HV_MAX_CQE)
		return EINVAL;
	if (!hv_enter(cq->ctx))
		return EIO;
	rc = resize(cq, (uint32_t)cqe);
	if (!rc)
		cq->pub.cqe = (int)hd_cq_room(cq->cq);
	hv_leave(cq->ctx);
	return rc == -EOVERFLOW ? EIO : -rc;
}

int hv_modify_cq(struct ibv_cq *public, struct ibv_modify_cq_attr *attr)
{
	struct hv_cq *cq = hv_cq_of(public);
	int rc = HV_CHECK(public);

	if (rc)
		return rc;
	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	if (!hv_enter(cq->ctx))
		return EIO;
	if (attr->attr_mask & IBV_CQ_ATTR_MODERATE)
		hd_cq_moderate(cq->cq, attr->moderate.cq_count, attr->moderate.cq_period);
	hv_leave(cq->ctx);
	return 0;
}

static void wait_acked(struct hv_cq *cq, uint32_t read)
{
	pthread_mutex_lock(&cq->pub.mutex);
	while (cq->pub.comp_events_completed != read)
		pthread_cond_wait(&cq->pub.cond, &cq->pub.mutex);
	pthread_mutex_unlock(&cq->pub.mutex);
}

int hv_ibv_destroy_cq(struct ibv_cq *public)
{
	struct hv_cq *cq = hv_cq_of(public);
	struct hv_context *ctx = hv_context_of(public->context);
	uint32_t read = 0;
	int rc = HV_CHECK(public);

	if (rc)
		return rc;
	if (!hv_enter(ctx))
		return EIO;
	rc = cq->users ? EBUSY : -hd_cq_close(cq->cq);
	if (!rc) {
		ctx->objects--;
		if (cq->parent)
			cq->parent->users--;
	}
	hv_leave(ctx);
	if (rc)
		return rc;
	if (cq->pub.channel)
		read = hd_channel_forget(hv_channel_of(cq->pub.channel)->channel, &cq->events_read, NULL);
	wait_acked(cq, read);
	hv_event_forget(ctx, &cq->target);
	if (cq->pub.channel) {
		hd_node_lock(ctx->node);
		cq->pub.channel->refcnt--;
		hd_node_unlock(ctx->node);
	}
	pthread_mutex_destroy(&cq->pub.mutex);
	pthread_mutex_destroy(&cq->polling);
	pthread_cond_destroy(&cq->pub.cond);
	hv_object_free(ctx, cq);
	return 0;
}

int hv_req_notify_cq(struct ibv_cq *public, int solicited_only)
{
	struct hv_cq *cq = hv_cq_of(public);
	int rc = HV_CHECK(public);

	if (hv_unlikely(rc))
		return hv_tell(rc);
	if (!hv_enter(cq->ctx))
		return hv_tell(EIO);
	hd_cq_notify_unread(cq->cq, solicited_only != 0);
	hv_leave(cq->ctx);
	return 0;
}
