/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who calls a listener. A thread of its own lets callers in, so that they are connected when nobody is in raccept, as with listen(2): programs call
 * several times before they say anything, or call themselves, and accept afterwards.
 *
 * The thread has a use of the listener (rs_get), which it gives back when that is closed or shut; who waits then is hung up on. It holds the
 * listener's lock but while it sleeps, and while it is busy with a caller, whose lock it takes.
 */
#include "front/verbs/rs/rs.h"

#include <errno.h>

/* Somebody who calls. */
struct caller {
	struct rdma_cm_id *id;
	struct rs greeting; /* what he has said of himself */
};

/* The next; -EAGAIN. Who is no rsocket is turned away. */
static int next_caller(struct rs *rs, struct caller *caller)
{
	struct rdma_cm_event *e;

	for (;;) {
		bool asks, greets;

		if (rdma_get_cm_event(rs->ch, &e))
			return -errno;
		asks = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		greets = asks && rs_hello_get(&caller->greeting, &e->param.conn);
		caller->id = e->id;
		rdma_ack_cm_event(e);
		if (greets)
			return 0;
		if (asks)
			rdma_destroy_id(caller->id);
	}
}

/* A new rsocket for him, with the listener's options: 0 and *out, or -errno. */
static int admit(const struct rs_options *opt, int family, const struct caller *caller, struct rs **out)
{
	struct rs *rs = rs_open(family, SOCK_STREAM, caller->id);
	int rc;

	if (!rs)
		return -errno;
	pthread_mutex_lock(&rs->lock);
	rs->opt = *opt;
	rs->out.credit = caller->greeting.out.credit;
	rs->out.peer_block = caller->greeting.out.peer_block;
	rs->maps.count = caller->greeting.maps.count;
	rc = rs_greet(rs, RS_ACCEPTED, rdma_accept);
	pthread_mutex_unlock(&rs->lock);
	*out = rs;
	if (rc)
		rs_drop(rs);
	return rc;
}

static void append(struct rs_callers *callers, struct rs *rs)
{
	*callers->end = rs;
	callers->end = &rs->behind;
	callers->count++;
}

/* One who has gone while he waited is nobody's business. */
static void let_in(struct rs *rs, const struct caller *caller)
{
	struct rs_options opt = rs->opt;
	struct rs *in = NULL;
	int rc;

	pthread_mutex_unlock(&rs->lock);
	rc = admit(&opt, rs->family, caller, &in);
	pthread_mutex_lock(&rs->lock);
	if (rc == -ECONNABORTED)
		return;
	if (rc)
		rs->callers.err = -rc;
	else
		append(&rs->callers, in);
	rs_changed(rs);
}

static struct rs *take_first(struct rs_callers *callers)
{
	struct rs *rs = callers->first;

	if (!rs)
		return NULL;
	callers->first = rs->behind;
	if (!callers->first)
		callers->end = &callers->first;
	callers->count--;
	return rs;
}

static void hang_up(struct rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	rs->closing = rs->closed = true;
	rdma_disconnect(rs->id);
	pthread_mutex_unlock(&rs->lock);
	rs_drop(rs);
}

static void hang_up_on_all(struct rs *rs)
{
	struct rs *caller;

	while ((caller = take_first(&rs->callers))) {
		pthread_mutex_unlock(&rs->lock);
		hang_up(caller);
		pthread_mutex_lock(&rs->lock);
	}
}

static bool is_full(const struct rs *rs)
{
	return rs->callers.count > rs->callers.backlog;
}

static void *callers_run(void *arg)
{
	struct rs *rs = arg;
	struct caller caller;

	pthread_mutex_lock(&rs->lock);
	while (!rs->closed && !rs->end.shut_read) {
		int rc = is_full(rs) ? -EAGAIN : next_caller(rs, &caller);

		if (!rc) {
			let_in(rs, &caller);
		} else if (rc == -EAGAIN) {
			rs_sleep_aside(rs, !is_full(rs));
		} else {
			rs->callers.err = -rc;
			rs_changed(rs);
			break;
		}
	}
	hang_up_on_all(rs);
	rs_leave(rs, 0);
	return NULL;
}

int rs_callers_serve(struct rs *rs, int backlog)
{
	pthread_t thread;
	int rc;

	if (rdma_listen(rs->id, backlog))
		return -errno;
	rs->state = RS_LISTENING;
	rs->callers.backlog = backlog;
	rs->callers.end = &rs->callers.first;
	rs_get(rs->fd);
	rc = hd_thread_start(&thread, callers_run, rs);
	if (rc) {
		rs_put(rs);
		hv_id_turn_away(hv_id_of(rs->id));
		rs->end.shut_read = true;
		return rc;
	}
	pthread_detach(thread);
	rs->callers.served = true;
	return 0;
}

int rs_callers_take(struct rs *rs, struct rs **caller)
{
	bool full = is_full(rs);
	int err = rs->callers.err;

	*caller = take_first(&rs->callers);
	if (*caller) {
		if (full)
			rs_changed(rs);
		return 0;
	}
	rs->callers.err = 0;
	return err ? -err : -EAGAIN;
}
