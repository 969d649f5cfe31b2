/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Event channels: rdma_create_event_channel(3), rdma_get_cm_event(3), rdma_ack_cm_event(3), rdma_event_str(3). */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

HD_LOCK_DEFINE(ack_lock)
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER; /* some id's unacked has come down */

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

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
 * Programs destroy a channel while a thread of theirs waits for its events, or is on the way to: such a thread waits for ever, as it would
 * in read(2) of the channel's descriptor. So the channels that were destroyed last stay in memory, to be known as what they are.
 */
#define BURIED 64
static STAILQ_HEAD(, hv_cm_channel) buried = STAILQ_HEAD_INITIALIZER(buried);
static int buried_count;
HD_LOCK_DEFINE(channels_lock)

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

/* For a thread that is about to wait; false: it has been destroyed. */
static bool channel_get(struct hv_cm_channel *channel)
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

int hv_cm_post(struct hv_id *id, enum rdma_cm_event_type type, int status, void *ctx)
{
	const struct hd_event e = {
		.code = HD_EV_FRONT + type, .word = (uint64_t)(int64_t)status, .owner = id, .ctx = ctx
	};

	return hd_evq_post(id->channel->evq, &e);
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

/* Under the queue's lock, so that an id whose events have been forgotten is in no event that is being read. */
static ssize_t channel_take(const struct hd_event *e, void *arg)
{
	struct hv_cm_event *ev = arg;

	ev->raw = *e;
	ev->raw.data = NULL;
	ev->len = e->len < sizeof(ev->data) ? e->len : sizeof(ev->data);
	if (ev->len)
		memcpy(ev->data, e->data, ev->len);
	ev->owner = e->owner;
	if (ev->owner)
		atomic_fetch_add(&ev->owner->unacked, 1);
	return 0;
}

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

/* The oldest event, whether it is an error or not. 0, -EAGAIN. */
static ssize_t channel_read_one(struct hd_evq *evq, struct hv_cm_event *ev)
{
	ssize_t rc = hd_evq_read(evq, 0, channel_take, ev);

	return rc == -EIO ? hd_evq_read(evq, HD_EVQ_ERROR, channel_take, ev) : rc;
}

/* The next event that means something to the program: 0, -EAGAIN. */
static ssize_t next(struct hd_evq *evq, struct hv_cm_event *ev)
{
	ssize_t rc;

	while (!(rc = channel_read_one(evq, ev))) {
		if (ev->owner && hv_cm_event_make(ev))
			return 0;
		if (ev->owner)
			hv_id_unpin(ev->owner);
		memset(ev, 0, sizeof(*ev));
	}
	return rc;
}

/* 0; -EAGAIN: the program does not want to; -EIO: nothing would ever come. */
static int may_wait(const struct rdma_event_channel *channel)
{
	if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK)
		return -EAGAIN;
	return hv_cm_is_dead() ? -EIO : 0;
}

/* The next event, as soon as there is one. The thread may be cancelled while it sleeps. */
/* What a thread in rdma_get_cm_event has, which may be cancelled there. */
struct reading {
	struct hv_cm_channel *channel;
	struct hv_cm_event *ev;
};

static void read_cancelled(void *arg)
{
	struct reading *r = arg;

	hv_cm_channel_put(r->channel);
	free(r->ev);
}

static ssize_t next_waiting(struct reading *r)
{
	struct hd_evq *evq = r->channel->evq;
	ssize_t rc;

	while ((rc = next(evq, r->ev)) == -EAGAIN && !(rc = may_wait(&r->channel->pub))) {
		pthread_cleanup_push(read_cancelled, r);
		rc = hd_evq_wait(evq, -1);
		pthread_cleanup_pop(0);
		if (rc)
			break;
	}
	return rc;
}

/* An error of a channel that was destroyed meanwhile is its end, which nobody is told of. */
static ssize_t read_event(struct reading *r)
{
	ssize_t rc = -EBADF;

	if (channel_get(r->channel)) {
		rc = next_waiting(r);
		hv_cm_channel_put(r->channel);
	}
	while (rc && r->channel->closed)
		poll(NULL, 0, -1);
	return rc;
}

HV_PUBLIC int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct reading r;
	ssize_t rc;

	if (!channel || !event)
		return hv_cm_ret(-EINVAL);
	r = (struct reading){ hv_cm_channel_of(channel), calloc(1, sizeof(*r.ev)) };
	if (!r.ev)
		return hv_cm_ret(-ENOMEM);
	rc = read_event(&r);
	if (rc) {
		free(r.ev);
		return hv_cm_ret((int)rc);
	}
	*event = &r.ev->pub;
	return 0;
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

/* ---- names ------------------------------------------------------------------------------------------------------------------ */

HV_PUBLIC const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(code) [RDMA_CM_EVENT_##code] = "RDMA_CM_EVENT_" #code
	static const char *const names[] = {
		NAME(ADDR_RESOLVED),   NAME(ADDR_ERROR),       NAME(ROUTE_RESOLVED), NAME(ROUTE_ERROR),
		NAME(CONNECT_REQUEST), NAME(CONNECT_RESPONSE), NAME(CONNECT_ERROR),  NAME(UNREACHABLE),
		NAME(REJECTED),	       NAME(ESTABLISHED),      NAME(DISCONNECTED),   NAME(DEVICE_REMOVAL),
		NAME(MULTICAST_JOIN),  NAME(MULTICAST_ERROR),  NAME(ADDR_CHANGE),    NAME(TIMEWAIT_EXIT),
	};
#undef NAME
	if (event < 0 || (size_t)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
