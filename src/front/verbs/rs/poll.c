/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* rpoll and rselect: rsockets and the kernel's descriptors together. */
#include "base/clock.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FEW 16 /* descriptors that need no memory of their own */

/* ---- one call of rpoll ----------------------------------------------------------------------- */

struct call {
	struct pollfd *fds; /* the program's */
	nfds_t count;
	struct rs_watch w; /* as many rsockets */
	struct rs *first;  /* whose habit it follows */
};

/* The kernel says POLLNVAL of an rsocket that may not be used, as of any number that nobody has. */
static void enlist_kernels(struct call *c, struct pollfd p, bool is_rsocket)
{
	if (is_rsocket)
		p.fd = INT_MAX;
	c->w.on[c->w.kernels++] = p;
}

static void enlist(struct call *c)
{
	for (nfds_t i = 0; i < c->count; i++) {
		bool is = rs_is(c->fds[i].fd);
		struct rs *rs = is ? rs_enter(c->fds[i].fd) : NULL;

		c->w.rs[i].rs = rs;
		if (!rs) {
			enlist_kernels(c, c->fds[i], is);
			continue;
		}
		if (!c->first)
			c->first = rs;
		if (!c->w.node)
			c->w.node = rs_node(rs);
		pthread_mutex_unlock(&rs->lock);
	}
}

static void dismiss(struct call *c)
{
	for (nfds_t i = 0; i < c->count; i++)
		if (c->w.rs[i].rs) {
			pthread_mutex_lock(&c->w.rs[i].rs->lock);
			rs_leave(c->w.rs[i].rs, 0);
		}
}

/* How many rsockets have something. */
static int look_at_rsockets(struct call *c)
{
	int ready = 0;

	for (nfds_t i = 0; i < c->count; i++) {
		struct pollfd *p = &c->fds[i];
		struct rs *rs = c->w.rs[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		rs_step(rs);
		c->w.rs[i].seen = rs->wait.changes;
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
		if (c->w.rs[i].rs)
			continue;
		c->fds[i].revents = c->w.on[k++].revents;
		ready += c->fds[i].revents != 0;
	}
	return ready;
}

/* What there is now: how many, or -errno. */
static int poll_look(struct call *c)
{
	int ready = look_at_rsockets(c);

	if (c->w.kernels && poll(c->w.on, c->w.kernels, 0) < 0 && errno != EINTR)
		return -errno;
	return ready + look_at_kernels(c);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static bool look_on(const struct call *c, struct hd_busy_polling *looking)
{
	bool on;

	if (!c->first)
		return false;
	pthread_mutex_lock(&c->first->lock);
	on = rs_look_on(&c->first->wait, looking);
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
		else if ((rc = rs_watch_sleep(&c->w, left)))
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

	c->w.rs = calloc(c->count, sizeof(*c->w.rs));
	c->w.on = calloc(c->count * RS_WATCHED + 1, sizeof(*c->w.on));
	if (c->w.rs && c->w.on)
		rc = poll_all(c, due);
	free(c->w.rs);
	free(c->w.on);
	return rc;
}

HV_PUBLIC int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct rs_watched few_rs[FEW] = { 0 };
	struct pollfd few_on[FEW * RS_WATCHED + 1];
	struct call c = { .fds = fds, .count = nfds, .w = { .rs = few_rs, .count = nfds, .on = few_on } };
	uint64_t due;
	int rc;

	if (!any_rsocket(fds, nfds))
		return poll(fds, nfds, timeout);
	due = hd_deadline_ns(timeout);
	rc = nfds <= FEW ? poll_all(&c, due) : poll_many(&c, due);
	return rc < 0 ? hv_cm_ret(rc) : rc;
}

/* ---- rselect --------------------------------------------------------------------------------- */

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
