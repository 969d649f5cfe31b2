/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who calls a listener. A thread of its own lets callers in, so that they are connected when nobody
 * is in raccept, as with listen(2): programs call several times before they say anything, or call
 * themselves, and accept afterwards.
 *
 * The thread is gone when rclose or rshutdown returns, and who waits then is hung up on; so nothing
 * of the listener's is in use any more. It holds the listener's lock but while it sleeps, and while
 * it is busy with a caller, whose lock it takes.
 */
#include "front/verbs/rs/rs.h"

#include <errno.h>

/* Somebody who calls. */
struct caller {
	struct rdma_cm_id *id;
	struct rs_hello hello; /* what he has said of himself */
};

/* The next; -EAGAIN. Who is no rsocket is turned away. */
static int next_caller(struct rdma_event_channel *ch, struct caller *caller)
{
	struct rdma_cm_event *e;

	for (;;) {
		bool asks, greets;

		if (rdma_get_cm_event(ch, &e))
			return -errno;
		asks = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;
		greets = asks && rs_hello_get(&caller->hello, &e->param.conn);
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
	rs_hello_heed(rs, &caller->hello);
	rc = rs_greet(rs, RS_ACCEPTED, rdma_accept);
	pthread_mutex_unlock(&rs->lock);
	*out = rs;
	if (rc)
		rs_drop(rs);
	return rc;
}

static void append(struct rs_callers *callers, struct rs *in)
{
	*callers->end = in;
	callers->end = &in->behind;
	callers->count++;
}

/* There is somebody, or what is wrong. */
static void callers_news(struct rs *rs)
{
	rs->wait.came++;
	rs_changed(rs);
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
	callers_news(rs);
}

static void remove_first(struct rs_callers *callers)
{
	callers->first = callers->first->behind;
	if (!callers->first)
		callers->end = &callers->first;
	callers->count--;
}

/* Who comes now waits where requests do, until raccept has taken somebody, or what was wrong. */
static bool is_full(const struct rs_callers *callers)
{
	return callers->err || callers->count > callers->backlog;
}

static void *callers_run(void *arg)
{
	struct rs *rs = arg;
	struct caller caller;

	pthread_mutex_lock(&rs->lock);
	while (rs->callers.served) {
		bool full = is_full(&rs->callers);
		int rc = full ? -EAGAIN : next_caller(rs->ch, &caller);

		if (!rc) {
			let_in(rs, &caller);
		} else if (rc == -EAGAIN) {
			rs_sleep_aside(rs, !full);
		} else {
			rs->callers.err = -rc;
			callers_news(rs);
		}
	}
	pthread_mutex_unlock(&rs->lock);
	return NULL;
}

/* ---- for the listener's calls ---------------------------------------------------------------- */

/* listen(2): a negative one is as many as there may be. */
void rs_callers_limit(struct rs *rs, int backlog)
{
	rs->callers.backlog = backlog < 0 || backlog > SOMAXCONN ? SOMAXCONN : backlog;
	rs_changed(rs);
}

/* Without a lock; nobody else knows of who waits. */
static void hang_up(struct rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	rs->closing = rs->closed = true;
	rdma_disconnect(rs->id);
	pthread_mutex_unlock(&rs->lock);
	rs_drop(rs);
}

void rs_callers_stop(struct rs *rs)
{
	struct rs *caller;

	if (!rs->callers.served)
		return;
	rs->callers.served = false;
	rs_changed(rs);
	pthread_mutex_unlock(&rs->lock);
	pthread_join(rs->callers.thread, NULL);
	pthread_mutex_lock(&rs->lock);
	while ((caller = rs->callers.first)) {
		remove_first(&rs->callers);
		pthread_mutex_unlock(&rs->lock);
		hang_up(caller);
		pthread_mutex_lock(&rs->lock);
	}
}

int rs_callers_serve(struct rs *rs, int backlog)
{
	int rc;

	rs_callers_limit(rs, backlog);
	rs->callers.end = &rs->callers.first;
	rc = hd_thread_start(&rs->callers.thread, callers_run, rs);
	if (rc)
		return rc;
	rs->callers.served = true;
	if (rdma_listen(rs->id, backlog)) {
		rc = -errno;
		rs_callers_stop(rs);
		return rc;
	}
	rs->conn.state = RS_LISTENING;
	return 0;
}

int rs_callers_take(struct rs *rs, struct rs **caller)
{
	bool full = is_full(&rs->callers);
	int rc = -EAGAIN;

	*caller = rs->callers.first;
	if (*caller) {
		rc = rs_number(*caller);
		if (!rc)
			remove_first(&rs->callers);
	} else if (rs->callers.err) {
		rc = -rs->callers.err;
		rs->callers.err = 0;
	}
	if (full && !is_full(&rs->callers))
		rs_changed(rs);
	return rc;
}
