/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Completion channels and their events: ibv_create_comp_channel(3),
 * ibv_get_cq_event(3), ibv_ack_cq_events(3).
 */
#include "front/verbs/entry.h"

#include <errno.h>
#include <stdlib.h>

struct ibv_comp_channel *hv_ibv_create_comp_channel(struct ibv_context *context)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_channel *channel = hv_object_new(ctx, HV_KIND_CHANNEL, sizeof(*channel));
	int rc = -EIO;

	if (!channel)
		return NULL;
	if (!hd_node_dead(ctx->node))
		rc = hd_channel_open(ctx->node, &channel->channel);
	if (rc) {
		hv_object_free(ctx, channel);
		return hv_fail(rc);
	}
	channel->pub.context = context;
	channel->pub.fd = hd_channel_fd(channel->channel);
	hv_object_show(channel, 0);
	ctx->objects++;
	return &channel->pub;
}

int hv_ibv_destroy_comp_channel(struct ibv_comp_channel *public)
{
	struct hv_context *ctx = hv_context_of(public->context);
	struct hv_channel *channel = hv_channel_of(public);
	int rc = HV_CHECK_PLAIN(public);
	bool busy;

	if (rc)
		return rc;
	if (!hv_enter(ctx))
		return EIO;
	busy = channel->pub.refcnt > 0;
	hv_leave(ctx);
	if (busy)
		return EBUSY;
	hd_channel_close(channel->channel);
	ctx->objects--;
	hv_object_free(ctx, channel);
	return 0;
}

int hv_ibv_get_cq_event(struct ibv_comp_channel *public, struct ibv_cq **cq, void **cq_context)
{
	struct hd_channel *channel = hv_channel_of(public)->channel;
	struct hd_channel_item *item;
	int rc;

	do { /* another thread may have been faster */
		rc = hd_channel_wait(channel, -1, NULL);
		if (rc) {
			errno = rc == -ENOTRECOVERABLE ? EIO : -rc;
			return -1;
		}
	} while (hd_channel_take(channel, &item) < 0);
	*cq = item->owner; /* not destroyed before this event has been acked */
	*cq_context = (*cq)->cq_context;
	return 0;
}

void hv_ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
