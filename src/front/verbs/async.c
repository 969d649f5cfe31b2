/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Asynchronous events, ibv_get_async_event(3): they wait in a channel of the context, whose
 * descriptor is its async_fd.
 */
#include "base/log.h"
#include "front/verbs/entry.h"

#include <errno.h>
#include <stdlib.h>

struct hv_event {
	struct hd_channel_item item;
	struct ibv_async_event event;
	uint32_t read; /* stands for the counter of an object that has none */
};

static struct hv_event *event_of(struct hd_channel_item *item)
{
	return hv_container(item, struct hv_event, item);
}

static void async_drop(struct hd_channel_item *item)
{
	free(event_of(item));
}

void hv_event_post(struct hv_context *ctx, const struct ibv_async_event *event,
		   struct hv_event_target *target)
{
	struct hv_event *e = calloc(1, sizeof(*e));

	if (!e) {
		hd_error(
			"an asynchronous event of type %d is lost: no memory: give this process more (ulimit -v, the limit of its container)",
			(int)event->event_type);
		return;
	}
	e->event = *event;
	e->item.taken = target ? &target->read : &e->read;
	hd_channel_post(ctx->async, &e->item);
}

void hv_event_forget(struct hv_context *ctx, struct hv_event_target *target)
{
	uint32_t read = hd_channel_forget(ctx->async, &target->read, async_drop);

	pthread_mutex_lock(target->mutex);
	while (*target->acked != read)
		pthread_cond_wait(target->cond, target->mutex);
	pthread_mutex_unlock(target->mutex);
}

void hv_events_drop(struct hv_context *ctx)
{
	struct hd_channel_item *item;

	while (hd_channel_take(ctx->async, &item) == 0)
		async_drop(item);
}

int hv_ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hd_channel_item *item;
	int rc;

	do { /* another thread may have been faster */
		rc = hd_channel_sleep(ctx->async);
		if (!rc)
			rc = hd_channel_take(ctx->async, &item);
		else
			break;
	} while (rc == -EAGAIN);
	if (rc) {
		errno = rc == -ENOTRECOVERABLE ? EIO : -rc;
		return -1;
	}
	*event = event_of(item)->event;
	async_drop(item);
	return 0;
}

/* ---- acknowledging --------------------------------------------------------------------------- */

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *count)
{
	pthread_mutex_lock(mutex);
	++*count;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

/* The object that an event is about; its context says whose it is. NULL: a port or the device. */
static struct ibv_context *async_context_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context;
	case IBV_EVENT_WQ_FATAL:
		return event->element.wq->context;
	default:
		return NULL;
	}
}

HV_PUBLIC void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_context *context = async_context_of(event);
	struct ibv_srq *srq = event->element.srq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_cq *cq = event->element.cq;

	if (!context)
		return;
	if (!hv_owns(context)) {
		if (HV_REAL(ibv_ack_async_event))
			HV_REAL(ibv_ack_async_event)(event);
		return;
	}
	if (event->event_type == IBV_EVENT_CQ_ERR)
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
	else if (event->event_type == IBV_EVENT_SRQ_ERR || event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
	else
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
}
