/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* rpoll and rselect: rsockets and the kernel's descriptors together. */
#include "base/clock.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FEW 16 /* descriptors that need no memory of their own */

short rs_events(struct rs *rs)
{
	short ev = 0;

	switch (rs->state) {
	case RS_OPEN:
		return POLLOUT | POLLHUP;
	case RS_LISTENING:
		if (rs->end.shut_read)
			return POLLOUT | POLLHUP;
		return rs->callers.first || rs->callers.err ? POLLIN : 0;
	case RS_DATAGRAM:
		return (short)((rs->in.count || rs->end.shut_read ? POLLIN | POLLRDNORM : 0) |
			       (rs_dgram_may_send(rs) ? POLLOUT | POLLWRNORM : 0) |
			       (rs->end.err ? POLLERR : 0));
	default:
		break;
	}
	if (rs->in.count || rs->end.eof || rs->end.shut_read)
		ev |= POLLIN | POLLRDNORM;
	if (rs_may_send(rs) || rs->state == RS_OVER || rs->end.shut_write || rs->end.deaf)
		ev |= POLLOUT | POLLWRNORM;
	if (rs->end.eof)
		ev |= POLLRDHUP;
	if (rs->end.err)
		ev |= POLLERR;
	if (rs->end.broken || ((rs->end.eof || rs->end.shut_read) && rs->end.shut_write))
		ev |= POLLHUP;
	return ev;
}

/* ---- one call of rpoll ------------------------------------------------------------------------------------------------------ */

/* An rsocket that it sleeps for. */
struct watched {
	struct rs *rs; /* NULL: the kernel's */
	uint32_t seen; /* rs->wait.changes when it was looked at */
	uint32_t ring;
	bool down; /* rs_lie_down has been called */
};

struct call {
	struct pollfd *fds; /* the program's */
	nfds_t count;
	struct watched *rs; /* as many */
	struct pollfd
		*on; /* what it sleeps on: the kernel's as they are, then those of rsockets, and one more */
	nfds_t kernels; /* of the kernel's, which are first */
	unsigned long total;
	struct hd_node *node; /* where it makes progress meanwhile */
	struct rs *first;     /* whose habit it follows */
};

/* -ENOTSOCK where none is an rsocket. */
static void enlist(struct call *c)
{
	for (nfds_t i = 0; i < c->count; i++) {
		c->rs[i].rs = rs_is(c->fds[i].fd) ? rs_enter(c->fds[i].fd) : NULL;
		if (!c->rs[i].rs) {
			c->on[c->kernels++] = c->fds[i];
			continue;
		}
		if (!c->first)
			c->first = c->rs[i].rs;
		if (!c->node)
			c->node = rs_node(c->rs[i].rs);
		pthread_mutex_unlock(&c->rs[i].rs->lock);
	}
}

static void dismiss(struct call *c)
{
	for (nfds_t i = 0; i < c->count; i++)
		if (c->rs[i].rs) {
			pthread_mutex_lock(&c->rs[i].rs->lock);
			rs_leave(c->rs[i].rs, 0);
		}
}

/* How many rsockets have something. */
static int look_at_rsockets(struct call *c)
{
	int ready = 0;

	for (nfds_t i = 0; i < c->count; i++) {
		struct pollfd *p = &c->fds[i];
		struct rs *rs = c->rs[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		rs_step(rs);
		c->rs[i].seen = rs->wait.changes;
		p->revents = rs->closed ? POLLNVAL : rs_events(rs) & (short)(p->events | POLLERR | POLLHUP);
		pthread_mutex_unlock(&rs->lock);
		ready += p->revents != 0;
	}
	return ready;
}

/* What poll(2) has said of the kernel's. */
static int look_at_kernels(struct call *c)
{
	int ready = 0;
	nfds_t k = 0;

	for (nfds_t i = 0; i < c->count; i++) {
		if (c->rs[i].rs)
			continue;
		c->fds[i].revents = c->on[k++].revents;
		ready += c->fds[i].revents != 0;
	}
	return ready;
}

/* What there is now: how many, or -errno. */
static int poll_look(struct call *c)
{
	int ready = look_at_rsockets(c);

	if (c->kernels && poll(c->on, c->kernels, 0) < 0 && errno != EINTR)
		return -errno;
	return ready + look_at_kernels(c);
}

/* ---- sleeping ----------------------------------------------------------------------------------------------------------------- */

/* False: something has happened to one of them. */
static bool lie_down(struct call *c)
{
	bool still = true;

	c->total = c->kernels;
	for (nfds_t i = 0; i < c->count && still; i++) {
		struct rs *rs = c->rs[i].rs;
		int n;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		n = rs_lie_down(rs, c->node, c->rs[i].seen, &c->on[c->total], &c->rs[i].ring);
		pthread_mutex_unlock(&rs->lock);
		c->rs[i].down = n > 0;
		c->total += (unsigned long)n;
		still = n > 0;
	}
	return still;
}

static void get_up(struct call *c)
{
	for (nfds_t i = 0; i < c->count; i++) {
		struct rs *rs = c->rs[i].rs;

		if (!rs || !c->rs[i].down)
			continue;
		pthread_mutex_lock(&rs->lock);
		rs_get_up(rs, c->rs[i].ring);
		pthread_mutex_unlock(&rs->lock);
		c->rs[i].down = false;
	}
}

/* 0, or -errno. */
static int sleep_once(struct call *c, int ms)
{
	int rc = 0, most = rs_wake_up_ms();

	if (most >= 0 && (ms < 0 || ms > most))
		ms = most;
	if (lie_down(c)) {
		if (c->node)
			rc = hd_node_sleep(c->node, c->on, c->total, ms, true);
		else if (poll(c->on, c->total, ms) < 0)
			rc = -errno;
	}
	get_up(c);
	return rc < 0 ? rc : 0;
}

static bool look_on(const struct call *c, struct hd_busy_polling *looking)
{
	bool on;

	if (!c->first)
		return false;
	pthread_mutex_lock(&c->first->lock);
	on = rs_look_on(c->first, looking);
	pthread_mutex_unlock(&c->first->lock);
	return on;
}

static void look_over(const struct call *c, const struct hd_busy_polling *looking)
{
	if (!c->first || !looking->begun)
		return;
	pthread_mutex_lock(&c->first->lock);
	hd_busy_polled(&c->first->wait.look, looking);
	pthread_mutex_unlock(&c->first->lock);
}

/* Until one is ready, or time is up: how many, or -errno. */
static int poll_run(struct call *c, uint64_t due)
{
	struct hd_busy_polling looking = { 0 };
	int rc;

	while (!(rc = poll_look(c))) {
		int left = hd_left_ms(due);

		if (!left)
			break;
		if (look_on(c, &looking))
			hd_busy_poll_pause(&looking);
		else if ((rc = sleep_once(c, left)))
			break;
	}
	look_over(c, &looking);
	return rc;
}

static bool any_rsocket(const struct pollfd *fds, nfds_t nfds)
{
	for (nfds_t i = 0; i < nfds; i++)
		if (rs_is(fds[i].fd))
			return true;
	return false;
}

static int poll_all(struct call *c, uint64_t due)
{
	int rc;

	enlist(c);
	rc = poll_run(c, due);
	dismiss(c);
	return rc;
}

static int poll_many(struct call *c, uint64_t due)
{
	int rc = -ENOMEM;

	c->rs = calloc(c->count, sizeof(*c->rs));
	c->on = calloc(c->count * RS_WATCHED + 1, sizeof(*c->on));
	if (c->rs && c->on)
		rc = poll_all(c, due);
	free(c->rs);
	free(c->on);
	return rc;
}

HV_PUBLIC int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct watched few_rs[FEW] = { 0 };
	struct pollfd few_on[FEW * RS_WATCHED + 1];
	struct call c = { .fds = fds, .count = nfds, .rs = few_rs, .on = few_on };
	uint64_t due;
	int rc;

	if (!any_rsocket(fds, nfds))
		return poll(fds, nfds, timeout);
	due = hd_deadline_ns(timeout);
	rc = nfds <= FEW ? poll_all(&c, due) : poll_many(&c, due);
	return rc < 0 ? hv_cm_ret(rc) : rc;
}

/* ---- rselect ------------------------------------------------------------------------------------------------------------------- */

static bool in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static int poll_keep(fd_set *set, int fd, bool there)
{
	if (!in(set, fd))
		return 0;
	if (!there)
		FD_CLR(fd, set);
	return there;
}

struct sets {
	fd_set *read, *write, *except;
};

static nfds_t poll_list(const struct sets *s, int nfds, struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < nfds; fd++) {
		int events = (in(s->read, fd) ? POLLIN : 0) | (in(s->write, fd) ? POLLOUT : 0) |
			     (in(s->except, fd) ? POLLPRI : 0);

		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = (short)events };
	}
	return n;
}

/* How many are left in the sets. */
static int unlist(const struct sets *s, const struct pollfd *fds, nfds_t n)
{
	int count = 0;

	for (nfds_t i = 0; i < n; i++) {
		int fd = fds[i].fd;

		count += poll_keep(s->read, fd, fds[i].revents & (POLLIN | POLLHUP | POLLERR));
		count += poll_keep(s->write, fd, fds[i].revents & (POLLOUT | POLLERR));
		count += poll_keep(s->except, fd, fds[i].revents & POLLPRI);
	}
	return count;
}

static bool any_invalid(const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents & POLLNVAL)
			return true;
	return false;
}

HV_PUBLIC int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	const struct sets sets = { readfds, writefds, exceptfds };
	struct pollfd fds[FD_SETSIZE];
	int ms = -1;
	nfds_t n;

	if (nfds < 0 || nfds > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return hv_cm_ret(-EINVAL);
	if (timeout)
		ms = timeout->tv_sec > INT32_MAX / 1000
			     ? INT32_MAX
			     : (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
	n = poll_list(&sets, nfds, fds);
	if (rpoll(fds, n, ms) < 0)
		return -1;
	if (any_invalid(fds, n))
		return hv_cm_ret(-EBADF);
	return unlist(&sets, fds, n);
}
