/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * repoll_create, repoll_ctl, repoll_wait: epoll(7) for rsockets, which rsocket(7) has from
 * rdma-core 65 on. They return what their counterparts do, -1 with errno, as rsocket(7) says of all
 * its functions; librdmacm's return errors as positive numbers.
 */
#include "base/clock.h"
#include "base/epoll.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <stdlib.h>

#define FEW 16	  /* rsockets that need no memory of their own */
#define OF_SETS 2 /* descriptors that every sleep is on: the kernel's set, and the bell */

HV_PUBLIC int repoll_create(int flags);
HV_PUBLIC int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
HV_PUBLIC int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

HV_PUBLIC int repoll_create(int flags)
{
	int rc = flags & ~EPOLL_CLOEXEC ? -EINVAL : rs_set_open(flags & EPOLL_CLOEXEC);

	return rc < 0 ? hv_cm_ret(rc) : rc;
}

static int repoll_change(struct rs_set *set, int op, int fd, struct epoll_event *event)
{
	struct rs *rs;
	int rc;

	if (fd == set->fd)
		return -EINVAL;
	if (rs_set_is(fd))
		return -EPERM;
	if (!rs_is(fd))
		return hd_epoll_ctl(set->fd, op, fd, event) ? -errno : 0;
	pthread_mutex_lock(&set->lock);
	rs = rs_enter(fd);
	rc = rs ? 0 : -errno;
	if (rs) {
		rc = set->closed ? -EBADF : rs_set_change(set, op, rs, event);
		rs_leave(rs, 0);
	}
	pthread_mutex_unlock(&set->lock);
	return rc;
}

HV_PUBLIC int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct rs_set *set = rs_set_get(epfd);
	int rc;

	if (!set)
		return -1;
	rc = repoll_change(set, op, fd, event);
	rs_set_put(set);
	return hv_cm_ret(rc);
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct wait {
	struct rs_set *set;
	struct epoll_event *events;
	int most;
	struct rs_watch w;
	size_t room; /* of w.rs, and, RS_WATCHED times, of w.on */
	bool own;    /* w's memory is to be freed */
};

static int repoll_grow(struct wait *c)
{
	size_t room = c->set->count + FEW;
	struct rs_watched *rs = calloc(room, sizeof(*rs));
	struct pollfd *on = calloc(room * RS_WATCHED + OF_SETS + 1, sizeof(*on));

	if (!rs || !on) {
		free(rs);
		free(on);
		return -ENOMEM;
	}
	if (c->own) {
		free(c->w.rs);
		free(c->w.on);
	}
	c->own = true;
	c->room = room;
	c->w.rs = rs;
	c->w.on = on;
	return 0;
}

static void repoll_dismiss(struct wait *c)
{
	for (size_t i = 0; i < c->w.count; i++)
		rs_put(c->w.rs[i].rs);
	c->w.count = 0;
}

/*
 * Look once more, with all that is slept for at hand: how many, or -errno. 0: it sleeps, and the
 * set counts it. With the set's lock.
 */
static int repoll_prepare(struct wait *c)
{
	int n = c->set->count > c->room ? repoll_grow(c) : 0;

	c->w.count = 0;
	c->w.node = NULL;
	if (!n)
		n = rs_set_look(c->set, c->events, c->most, &c->w);
	if (n)
		return n;
	c->w.on[0] = (struct pollfd){ .fd = c->set->fd, .events = POLLIN };
	c->w.on[1] = (struct pollfd){ .fd = c->set->bell, .events = POLLIN };
	c->w.kernels = OF_SETS;
	c->set->wait.sleepers++;
	return 0;
}

/* How many, 0: look again, or -errno. */
static int repoll_sleep(struct wait *c, int ms)
{
	struct rs_set *set = c->set;
	uint32_t heard;
	int rc;

	pthread_mutex_lock(&set->lock);
	rc = set->closed ? -EBADF : repoll_prepare(c);
	heard = set->wait.rings;
	pthread_mutex_unlock(&set->lock);
	if (!rc) {
		rc = rs_watch_sleep(&c->w, ms);
		pthread_mutex_lock(&set->lock);
		rs_bell_up(&set->wait, set->bell, heard);
		pthread_mutex_unlock(&set->lock);
	}
	repoll_dismiss(c);
	return rc;
}

/* How many, or -errno; *on: look again before it sleeps. */
static int repoll_look(struct wait *c, struct hd_busy_polling *looking, bool *on)
{
	struct rs_set *set = c->set;
	int n;

	pthread_mutex_lock(&set->lock);
	n = set->closed ? -EBADF : rs_set_look(set, c->events, c->most, NULL);
	*on = !n && set->count && rs_look_on(&set->wait, looking);
	pthread_mutex_unlock(&set->lock);
	return n;
}

/* Until there is something, or time is up: how many, or -errno. */
static int repoll_run(struct wait *c, uint64_t due)
{
	struct hd_busy_polling looking = { 0 };
	bool on;
	int rc;

	while (!(rc = repoll_look(c, &looking, &on))) {
		int left = hd_left_ms(due);

		if (!left)
			break;
		if (on)
			hd_busy_poll_pause(&looking);
		else if ((rc = repoll_sleep(c, left)))
			break;
	}
	pthread_mutex_lock(&c->set->lock);
	if (looking.begun)
		hd_busy_polled(&c->set->wait.look, &looking);
	pthread_mutex_unlock(&c->set->lock);
	return rc;
}

HV_PUBLIC int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	struct rs_watched few_rs[FEW];
	struct pollfd few_on[FEW * RS_WATCHED + OF_SETS + 1];
	struct wait c = {
		.events = events, .most = maxevents, .w = { .rs = few_rs, .on = few_on }, .room = FEW
	};
	int rc = -EINVAL;

	c.set = rs_set_get(epfd);
	if (!c.set)
		return -1;
	if (maxevents > 0)
		rc = events ? repoll_run(&c, hd_deadline_ns(timeout)) : -EFAULT;
	if (c.own) {
		free(c.w.rs);
		free(c.w.on);
	}
	rs_set_put(c.set);
	return rc < 0 ? hv_cm_ret(rc) : rc;
}
