/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Event channels: rdma_create_event_channel(3), rdma_ack_cm_event(3),
 * rdma_event_str(3); reading them is read.c.
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

HD_LOCK_DEFINE(ack_lock);
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER; /* some id's unacked has come down */

/* ---- life ------------------------------------------------------------------------------------ */

HV_PUBLIC struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct hv_cm_channel *channel = calloc(1, sizeof(*channel));
	int rc;

	if (!channel)
		return hv_fail(ENOMEM);
	rc = hd_evq_open(INT_MAX, &channel->evq);
	if (rc) {
		free(channel);
		return hv_fail(rc);
	}
	channel->pub.fd = hd_evq_event_fd(channel->evq);
	channel->users = 1;
	return &channel->pub;
}

/*
 * Programs destroy a channel while a thread of theirs waits for its events, or is on the way to:
 * such a thread waits for ever, as it would in read(2) of the channel's descriptor. So the channels
 * that were destroyed last stay in memory, to be known as what they are.
 */
#define BURIED 64
static STAILQ_HEAD(, hv_cm_channel) buried = STAILQ_HEAD_INITIALIZER(buried);
static int buried_count;
HD_LOCK_DEFINE(channels_lock);

static void bury(struct hv_cm_channel *channel)
{
	struct hv_cm_channel *oldest = NULL;

	hd_lock_take(&channels_lock);
	STAILQ_INSERT_TAIL(&buried, channel, entry);
	if (++buried_count > BURIED) {
		oldest = STAILQ_FIRST(&buried);
		STAILQ_REMOVE_HEAD(&buried, entry);
		buried_count--;
	}
	hd_lock_give(&channels_lock);
	free(oldest);
}

void hv_cm_channel_put(struct hv_cm_channel *channel)
{
	if (atomic_fetch_sub(&channel->users, 1) > 1)
		return;
	hd_evq_close(channel->evq);
	bury(channel);
}

bool hv_cm_channel_get(struct hv_cm_channel *channel)
{
	bool open;

	hd_lock_take(&channels_lock);
	open = !channel->closed;
	if (open)
		atomic_fetch_add(&channel->users, 1);
	hd_lock_give(&channels_lock);
	return open;
}

HV_PUBLIC void rdma_destroy_event_channel(struct rdma_event_channel *pub)
{
	struct hv_cm_channel *channel = hv_cm_channel_of(pub);

	hd_lock_take(&channels_lock);
	channel->closed = true;
	hd_lock_give(&channels_lock);
	hv_cm_channel_put(channel);
}

int hv_cm_post(struct hv_id *id, int type, int status, void *ctx)
{
	const struct hd_event e = { .code = HD_EV_FRONT + (unsigned)type,
				    .word = (uint64_t)(int64_t)status,
				    .owner = id,
				    .ctx = ctx };

	return hd_evq_post(id->channel->evq, &e);
}

/* ---- what has been read ---------------------------------------------------------------------- */

void hv_id_unpin(struct hv_id *id)
{
	hd_lock_take(&ack_lock);
	atomic_fetch_sub(&id->unacked, 1);
	pthread_cond_broadcast(&acked);
	hd_lock_give(&ack_lock);
}

void hv_id_wait_acked(struct hv_id *id)
{
	hd_lock_take(&ack_lock);
	while (atomic_load(&id->unacked))
		pthread_cond_wait(&acked, &ack_lock.mutex);
	hd_lock_give(&ack_lock);
}

HV_PUBLIC int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct hv_cm_event *ev;

	if (!event)
		return hv_cm_ret(-EINVAL);
	ev = hv_container(event, struct hv_cm_event, pub);
	hv_id_unpin(ev->owner);
	free(ev);
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

HV_PUBLIC const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(code) [RDMA_CM_EVENT_##code] = "RDMA_CM_EVENT_" #code
	static const char *const names[] = {
		NAME(ADDR_RESOLVED),
		NAME(ADDR_ERROR),
		NAME(ROUTE_RESOLVED),
		NAME(ROUTE_ERROR),
		NAME(CONNECT_REQUEST),
		NAME(CONNECT_RESPONSE),
		NAME(CONNECT_ERROR),
		NAME(UNREACHABLE),
		NAME(REJECTED),
		NAME(ESTABLISHED),
		NAME(DISCONNECTED),
		NAME(DEVICE_REMOVAL),
		NAME(MULTICAST_JOIN),
		NAME(MULTICAST_ERROR),
		NAME(ADDR_CHANGE),
		NAME(TIMEWAIT_EXIT),
		[HV_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[HV_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[HV_EVENT_USER] = "RDMA_CM_EVENT_USER",
	};
#undef NAME
	if (event < 0 || (size_t)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
