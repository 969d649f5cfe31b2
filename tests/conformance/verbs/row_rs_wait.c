/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row RS: stream rsockets whose calls have to wait, or must not: rsocket(7). */
#include "rst.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Nobody reads: the writer is stopped at some point, and goes on when there is room. */
static void backpressure(struct ct *ct)
{
	struct rst r = { 0 };
	static char buf[10000];
	size_t sent = 0;
	ssize_t rc;

	rst_pair(ct, &r);
	if (ct->rank) {
		rst_nonblocking(&r, r.s, true);
		ct_fill(buf, sizeof(buf), 5);
		while ((rc = rsend(r.s, buf, sizeof(buf), 0)) > 0 && sent < 100u << 20)
			sent += (size_t)rc;
		CT_EQ(ct, rc, -1);
		CT_EQ(ct, errno, EAGAIN);
		CT_TRUE(ct, sent >= 65536 && sent < 100u << 20);
		ct_put(ct, 0, &sent, sizeof(sent));
		rst_await(&r, r.s, POLLOUT);
		CT_TRUE(ct, rsend(r.s, buf, 1, 0) == 1);
	} else {
		ct_get(ct, NULL, 1, &sent, sizeof(sent));
		for (size_t n = 0; n < sent + 1; n += (size_t)rc)
			if ((rc = rrecv(r.s, buf, sizeof(buf), 0)) <= 0)
				ct_fail(ct, "rrecv after %zu of %zu: %zd", n, sent, rc);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

static int64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Who waits sleeps, and wakes up for what he waits for, an rsocket or a pipe. */
static void sleeps(struct ct *ct)
{
	struct rst r = { 0 };
	struct pollfd p[2];
	int64_t before = cpu_ms();
	int ends[2];
	char c = 0;
	fd_set set;

	rst_pair(ct, &r);
	if (ct->rank) {
		/* twice as long as the other one may use the processor, if it sleeps */
		usleep(400000);
		CT_EQ(ct, rsend(r.s, "a", 1, 0), 1);
		usleep(400000); /* likewise */
		CT_EQ(ct, rsend(r.s, "b", 1, 0), 1);
		ct_sync(ct, NULL);
		rst_close(&r);
		return;
	}
	CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
	CMT_OK(ct, pipe(ends));
	p[0] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = r.s, .events = POLLIN };
	CT_EQ(ct, rpoll(p, 2, RST_PATIENCE), 1);
	CT_EQ(ct, p[0].revents, 0);
	CT_EQ(ct, p[1].revents & POLLIN, POLLIN);
	CT_TRUE(ct, cpu_ms() - before < 400);
	CT_EQ(ct, rread(r.s, &c, 1), 1);
	CT_EQ(ct, write(ends[1], "x", 1), 1);
	CT_EQ(ct, rpoll(p, 2, RST_PATIENCE), 1);
	CT_EQ(ct, p[0].revents, POLLIN);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	FD_SET(r.s, &set);
	CT_EQ(ct,
	      rselect((ends[0] > r.s ? ends[0] : r.s) + 1, &set, NULL, NULL,
		      &(struct timeval){ .tv_sec = 5 }),
	      1);
	CT_TRUE(ct, FD_ISSET(ends[0], &set) && !FD_ISSET(r.s, &set));
	CT_EQ(ct, read(ends[0], &c, 1), 1);
	CT_EQ(ct, rpoll(p, 2, 30), 0);
	CT_EQ(ct, rselect(0, NULL, NULL, NULL, &(struct timeval){ 0 }), 0);
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* Sets of which one has this descriptor, or none. */
static int select_one(struct ct *ct, int fd, short event, struct timeval *time)
{
	static const short events[] = { POLLIN, POLLOUT, POLLPRI };
	fd_set set[3];
	int rc;

	for (int i = 0; i < 3; i++) {
		FD_ZERO(&set[i]);
		if (events[i] == event)
			FD_SET(fd, &set[i]);
	}
	rc = rselect(fd + 1, &set[0], &set[1], &set[2], time);
	for (int i = 0; i < 3; i++)
		CT_EQ(ct, !!FD_ISSET(fd, &set[i]), rc && events[i] == event);
	return rc;
}

/* What is ready stays in its set; a descriptor that is none and a time that is none are errors. */
static void selects(struct ct *ct)
{
	struct timeval now = { 0 }, later = { .tv_sec = RST_PATIENCE / 1000 }, never = { .tv_usec = -1 };
	struct rst r = { 0 };
	char c;

	rst_pair(ct, &r);
	if (!ct->rank) {
		CT_EQ(ct, select_one(ct, r.s, POLLIN, &now), 0);
		CT_EQ(ct, select_one(ct, r.s, POLLPRI, &now), 0);
		/* when its caller has heard of it */
		CT_EQ(ct, select_one(ct, r.s, POLLOUT, &later), 1);
		CMT_ERR(ct, rselect(-1, NULL, NULL, NULL, &now), EINVAL);
		CMT_ERR(ct, select_one(ct, r.s, POLLIN, &never), EINVAL);
		CMT_ERR(ct, select_one(ct, FD_SETSIZE - 1, POLLIN, &now), EBADF);
	}
	ct_sync(ct, NULL);
	if (ct->rank) {
		CT_EQ(ct, rsend(r.s, "a", 1, 0), 1);
		ct_sync(ct, NULL);
	} else {
		CT_EQ(ct, select_one(ct, r.s, POLLIN, &later), 1);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		CT_EQ(ct, select_one(ct, r.s, POLLIN, &now), 0);
		ct_sync(ct, NULL);
		CT_EQ(ct, select_one(ct, r.s, POLLIN, NULL), 1); /* it has been closed */
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
	}
	rst_close(&r);
}

/* It is under way, or has succeeded meanwhile. */
static void calls_again(struct rst *r)
{
	int rc = rconnect(r->s, (struct sockaddr *)&r->at, rst_size(r));

	if (rc && errno != EINPROGRESS)
		ct_fail(r->ct, "rconnect: %s", strerror(errno));
}

/* Non-blocking from the first call on. */
static void nonblocking(struct ct *ct)
{
	struct rst r = { 0 };
	int err = -1;
	socklen_t len = sizeof(err);

	rst_open(ct, &r);
	if (ct->rank) {
		r.s = rst_call(&r, true);
		calls_again(&r);
		calls_again(&r);
		rst_await(&r, r.s, POLLOUT);
		CMT_OK(ct, rgetsockopt(r.s, SOL_SOCKET, SO_ERROR, &err, &len));
		CT_EQ(ct, err, 0);
		CMT_OK(ct, rconnect(r.s, (struct sockaddr *)&r.at, rst_size(&r)));
	} else {
		rst_nonblocking(&r, r.listener, true);
		rst_await(&r, r.listener, POLLIN);
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
		CT_EQ(ct, rfcntl(r.s, F_GETFL) & O_NONBLOCK, 0);
		rst_await(&r, r.s, POLLOUT);
	}
	for (int turn = 0; turn < 2; turn++)
		if (turn == ct->rank) {
			CT_EQ(ct, rsend(r.s, "hello", 5, 0), 5);
		} else {
			char buf[8];

			rst_await(&r, r.s, POLLIN);
			CT_EQ(ct, rrecv(r.s, buf, 8, 0), 5);
		}
	rst_close(&r);
}

struct reader {
	struct rst *r;
	size_t len;
};

static void *read_all(void *arg)
{
	struct reader *d = arg;

	rst_receive(d->r, d->len, 9, 70000);
	return NULL;
}

static void *poll_for(void *arg)
{
	struct reader *d = arg;

	rst_await(d->r, d->r->s, POLLIN);
	return NULL;
}

/* One thread writes, one reads, one polls, at both ends at once. */
static void threads(struct ct *ct)
{
	struct rst r = { 0 };
	struct reader d = { &r, 8 << 20 };
	pthread_t reader, poller;

	rst_pair(ct, &r);
	CT_EQ(ct, pthread_create(&reader, NULL, read_all, &d), 0);
	rst_send(&r, d.len, 9, 30000);
	CT_EQ(ct, pthread_join(reader, NULL), 0);
	CT_EQ(ct, pthread_create(&poller, NULL, poll_for, &d), 0);
	ct_let_others_sleep();
	ct_sync(ct, NULL);
	CT_EQ(ct, rsend(r.s, "x", 1, 0),
	      1); /* this call, or the one that polls, takes in what the other has sent */
	CT_EQ(ct, pthread_join(poller, NULL), 0);
	ct_sync(ct, NULL);
	rst_close(&r);
}

struct peeker {
	struct rst *r;
	atomic_bool done;
};

static void *peek_on(void *arg)
{
	struct peeker *p = arg;
	char c;

	while (!p->done)
		(void)rrecv(p->r->s, &c, 1, MSG_PEEK | MSG_DONTWAIT);
	return NULL;
}

/* A thread polls for what another one has taken in, at any time before it sleeps. */
static void polls_beside(struct ct *ct)
{
	struct rst r = { 0 };
	struct peeker p = { .r = &r };
	pthread_t thread;
	char c = 'a';

	rst_pair(ct, &r);
	if (!ct->rank)
		CT_EQ(ct, pthread_create(&thread, NULL, peek_on, &p), 0);
	for (int i = 0; i < 1000; i++) {
		if (ct->rank)
			CT_EQ(ct, rsend(r.s, &c, 1, 0), 1);
		rst_await(&r, r.s, POLLIN);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		if (!ct->rank)
			CT_EQ(ct, rsend(r.s, &c, 1, 0), 1);
	}
	p.done = true;
	if (!ct->rank)
		CT_EQ(ct, pthread_join(thread, NULL), 0);
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* ---- closed by another thread ---------------------------------------------------------------- */

struct blocked {
	int s, rc, err;
	int (*call)(int s);
	pthread_t thread;
};

static int reads(int s)
{
	char c;

	return (int)rrecv(s, &c, 1, 0);
}

static int writes_on(int s)
{
	static char buf[100000];

	while (rsend(s, buf, sizeof(buf), 0) > 0) {
	}
	return -1;
}

static int accepts(int s)
{
	return raccept(s, NULL, NULL);
}

static int polls(int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN };

	if (rpoll(&p, 1, RST_PATIENCE) != 1 || p.revents != POLLNVAL)
		return 0;
	errno = EBADF;
	return -1;
}

static void *run_blocked(void *arg)
{
	struct blocked *b = arg;

	b->rc = b->call(b->s);
	b->err = errno;
	return NULL;
}

/* Who is in a call on it, with nothing to be had, is told that it is an rsocket no longer. */
static void closed_under(struct ct *ct, int s, int (*call)(int s))
{
	const struct linger now = { 1, 0 };
	struct blocked b = { .s = s, .call = call };

	CMT_OK(ct, rsetsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	CT_EQ(ct, pthread_create(&b.thread, NULL, run_blocked, &b), 0);
	ct_let_others_sleep();
	CMT_OK(ct, rclose(s));
	CT_EQ(ct, pthread_join(b.thread, NULL), 0);
	CT_EQ(ct, b.rc, -1);
	CT_EQ(ct, b.err, EBADF);
}

static void closed_while_blocked(struct ct *ct)
{
	static int (*const calls[])(int s) = { reads, writes_on, polls };
	struct rst r = { 0 };

	rst_open(ct, &r);
	for (size_t i = 0; i < CT_COUNT(calls); i++) {
		r.s = ct->rank ? rst_call(&r, false) : raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
		if (!ct->rank)
			closed_under(ct, r.s, calls[i]);
		ct_sync(ct, NULL);
		if (ct->rank)
			CMT_OK(ct, rclose(r.s));
	}
	r.s = -1;
	if (!ct->rank)
		closed_under(ct, r.listener, accepts);
	r.listener = -1;
	ct_sync(ct, NULL);
}

const struct ct_case vt_rs_wait[] = {
	{ "RS", "backpressure", CT_TWO(backpressure) },
	{ "RS", "sleeps", CT_TWO(sleeps), .slow = true },
	{ "RS", "selects", CT_TWO(selects) },
	{ "RS", "nonblocking", CT_TWO(nonblocking) },
	{ "RS", "threads", CT_TWO(threads) },
	{ "RS", "polls-beside", CT_TWO(polls_beside) },
	{ "RS", "closed-while-blocked", CT_TWO(closed_while_blocked) },
	{ 0 },
};
