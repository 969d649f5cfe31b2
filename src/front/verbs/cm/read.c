/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Reading events, rdma_get_cm_event(3), also of synchronous ids, whose calls wait for them. */
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/*
 * Under the queue's lock, so that an id whose events have been forgotten is in no
 * event that is being read.
 */
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

/* The next event, as soon as there is one. The thread may be cancelled while it sleeps. */
static ssize_t next_waiting(struct reading *r)
{
	struct hd_evq *evq = r->channel->evq;
	ssize_t rc;

	while ((rc = next(evq, r->ev)) == -EAGAIN && !(rc = may_wait(&r->channel->pub))) {
		pthread_cleanup_push(read_cancelled, r);
		rc = hd_evq_wait(evq, -1, false);
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

	if (hv_cm_channel_get(r->channel)) {
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

/* ---- synchronous ids ------------------------------------------------------------------------- */

int hv_id_wait(struct hv_id *id, bool sync)
{
	const struct rdma_cm_event *e;

	if (!sync)
		return 0;
	hv_id_release(id);
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -1;
	e = id->pub.event;
	if (e->event == RDMA_CM_EVENT_REJECTED)
		return hv_cm_ret(-ECONNREFUSED);
	if (e->status > 0)
		return hv_cm_ret(-EPROTO); /* a code of InfiniBand's */
	return hv_cm_ret(e->status);
}
