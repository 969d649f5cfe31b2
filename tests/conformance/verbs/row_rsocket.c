/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row RS: stream rsockets, rsocket(7): what the functions do and refuse. */
#include "rst.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- refused --------------------------------------------------------------------------------- */

/* A descriptor of the kernel's is none, nor is a number that nobody has. */
static void no_rsocket(struct ct *ct, int fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	struct iovec iov = { &a, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	CMT_ERR(ct, rbind(fd, (struct sockaddr *)&a, len), EBADF);
	CMT_ERR(ct, rlisten(fd, 1), EBADF);
	CMT_ERR(ct, raccept(fd, NULL, NULL), EBADF);
	CMT_ERR(ct, rconnect(fd, (struct sockaddr *)&a, len), EBADF);
	CMT_ERR(ct, rshutdown(fd, SHUT_RDWR), EBADF);
	CMT_ERR(ct, rclose(fd), EBADF);
	CMT_ERR(ct, rrecv(fd, &a, 1, 0), EBADF);
	CMT_ERR(ct, rrecvmsg(fd, &msg, 0), EBADF);
	CMT_ERR(ct, rsend(fd, &a, 1, 0), EBADF);
	CMT_ERR(ct, rsendmsg(fd, &msg, 0), EBADF);
	CMT_ERR(ct, rwritev(fd, &iov, 1), EBADF);
	CMT_ERR(ct, rreadv(fd, &iov, 1), EBADF);
	CMT_ERR(ct, rgetpeername(fd, (struct sockaddr *)&a, &len), EBADF);
	CMT_ERR(ct, rgetsockname(fd, (struct sockaddr *)&a, &len), EBADF);
	CMT_ERR(ct, rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &len, sizeof(len)), EBADF);
	CMT_ERR(ct, rgetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &a, &len), EBADF);
	CMT_ERR(ct, rfcntl(fd, F_GETFL), EBADF);
	CMT_ERR(ct, (int)riomap(fd, &a, 4, PROT_WRITE, 0, -1), EBADF);
	CMT_ERR(ct, riounmap(fd, &a, 4), EBADF);
	CMT_ERR(ct, (int)riowrite(fd, &a, 4, 0, 0), EBADF);
}

static void refusals(struct ct *ct)
{
	struct rst r = { 0 };
	struct sockaddr_storage a, wrong = { .ss_family = AF_INET6 };
	socklen_t len = sizeof(a);
	char c = 0;
	int s;

	no_rsocket(ct, STDERR_FILENO);
	no_rsocket(ct, -1);
	no_rsocket(ct, 100000);
	CMT_ERR(ct, rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	CMT_ERR(ct, rsocket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT);
	CMT_ERR(ct, rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	rst_open(ct, &r);
	s = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	CT_TRUE(ct, s >= 0);
	CMT_ERR(ct, rsend(s, &c, 1, 0), ENOTCONN);
	CMT_ERR(ct, rrecv(s, &c, 1, 0), ENOTCONN);
	CMT_ERR(ct, rgetpeername(s, (struct sockaddr *)&a, &len), ENOTCONN);
	CMT_ERR(ct, rshutdown(s, SHUT_WR), ENOTCONN);
	CMT_ERR(ct, rshutdown(s, 7), EINVAL);
	CMT_ERR(ct, raccept(s, NULL, NULL), EINVAL);
	CMT_ERR(ct, (int)riomap(s, &a, 4, PROT_WRITE, 0, -1), ENOTCONN);
	CMT_ERR(ct, rbind(s, (struct sockaddr *)&wrong, sizeof(struct sockaddr_in6)), EAFNOSUPPORT);
	CMT_ERR(ct, rconnect(s, (struct sockaddr *)&r.at, 5), EINVAL);
	CMT_ERR(ct, rconnect(s, NULL, sizeof(a)), EFAULT);
	if (!ct->rank) { /* somebody has that port */
		CMT_ERR(ct, rbind(s, (struct sockaddr *)&r.at, rst_size(&r)), EADDRINUSE);
		CMT_ERR(ct, rconnect(r.listener, (struct sockaddr *)&r.at, rst_size(&r)), EINVAL);
		CMT_ERR(ct, rsend(r.listener, &c, 1, 0), ENOTCONN);
		CMT_OK(ct, rlisten(r.listener, 3));
		rst_nonblocking(&r, r.listener, true);
		CMT_ERR(ct, raccept(r.listener, NULL, NULL), EAGAIN);
	}
	len = sizeof(a);
	CMT_OK(ct, rgetsockname(s, (struct sockaddr *)&a, &len));
	CT_EQ(ct, a.ss_family, AF_INET);
	CT_EQ(ct, cmt_port(&a), 0);
	CMT_OK(ct, rclose(s));
	CMT_ERR(ct, rclose(s), EBADF);
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* Nobody listens there any more. */
static void nobody_there(struct ct *ct)
{
	struct rst r = { 0 };
	int s, err = -1;
	socklen_t len = sizeof(err);

	rst_open(ct, &r);
	if (!ct->rank)
		rst_close(&r);
	ct_sync(ct, NULL);
	if (ct->rank) {
		s = rsocket(r.family, SOCK_STREAM, 0);
		CMT_ERR(ct, rconnect(s, (struct sockaddr *)&r.at, rst_size(&r)), ECONNREFUSED);
		CMT_OK(ct, rclose(s));
		s = rst_call(&r, true);
		CMT_ERR(ct, rconnect(s, (struct sockaddr *)&r.at, rst_size(&r)), EINPROGRESS);
		CT_TRUE(ct, rst_await(&r, s, POLLOUT) & POLLERR);
		CMT_OK(ct, rgetsockopt(s, SOL_SOCKET, SO_ERROR, &err, &len));
		CT_EQ(ct, err, ECONNREFUSED);
		CMT_OK(ct, rgetsockopt(s, SOL_SOCKET, SO_ERROR, &err, &len));
		CT_EQ(ct, err, 0);
		CMT_OK(ct, rclose(s));
	}
	ct_sync(ct, NULL);
}

/* No way leads there: as the kernel's sockets say it. */
static void no_way(struct ct *ct)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(7471),
				  .sin_addr.s_addr = htonl(0x0a4d0001) };
	int s, err = -1;
	socklen_t len = sizeof(err);

	cmt_network(ct, "true");
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	CT_TRUE(ct, s >= 0);
	CMT_ERR(ct, rconnect(s, (struct sockaddr *)&at, sizeof(at)), ENETUNREACH);
	CMT_OK(ct, rclose(s));
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	CMT_OK(ct, rfcntl(s, F_SETFL, O_NONBLOCK));
	if (rconnect(s, (struct sockaddr *)&at, sizeof(at)) && errno == EINPROGRESS) {
		struct pollfd p = { s, POLLOUT, 0 };

		CT_EQ(ct, rpoll(&p, 1, RST_PATIENCE), 1);
		CT_TRUE(ct, p.revents & POLLERR);
		CMT_OK(ct, rgetsockopt(s, SOL_SOCKET, SO_ERROR, &err, &len));
	} else {
		err = errno;
	}
	CT_EQ(ct, err, ENETUNREACH);
	CMT_OK(ct, rclose(s));
	ct_sync(ct, NULL);
}

/* Whoever calls and is no rsocket is turned away, and the listener goes on. */
static void stranger(struct ct *ct)
{
	struct cmt c;
	struct rst r = { 0 };

	rst_open(ct, &r);
	if (ct->rank) {
		cmt_open(ct, &c);
		c.at = r.at;
		c.id = cmt_resolve(&c);
		cmt_qp(&c, c.id);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		CMT_OK(ct, rdma_ack_cm_event(cmt_event(&c, RDMA_CM_EVENT_REJECTED)));
		cmt_close(&c);
		r.s = rst_call(&r, false);
	} else {
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
	}
	rst_close(&r);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void names(struct ct *ct)
{
	struct sockaddr_storage own, other, told;
	socklen_t len = sizeof(own), len2 = sizeof(other);
	struct rst r = { 0 };

	rst_pair(ct, &r);
	CMT_OK(ct, rgetsockname(r.s, (struct sockaddr *)&own, &len));
	CMT_OK(ct, rgetpeername(r.s, (struct sockaddr *)&other, &len2));
	CT_EQ(ct, len, rst_size(&r));
	CT_EQ(ct, len2, rst_size(&r));
	CT_EQ(ct, own.ss_family, r.family);
	CT_EQ(ct, cmt_port(ct->rank ? &other : &own), cmt_port(&r.at));
	ct_put(ct, 1 - ct->rank, &own, sizeof(own));
	ct_get(ct, NULL, 1 - ct->rank, &told, sizeof(told));
	CT_EQ(ct, cmt_port(&told), cmt_port(&other));
	len = 3;
	CMT_OK(ct, rgetsockname(r.s, (struct sockaddr *)&own, &len));
	CT_EQ(ct, len, rst_size(&r));
	rst_close(&r);
}

static void both_ways(struct ct *ct)
{
	static const size_t pieces[] = { 1, 700, 1024, 1025, 16384, 16385, 100000, 3000000 };
	struct rst r = { 0 };

	rst_pair(ct, &r);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t len = pieces[i] < 1000 ? pieces[i] * 1000 : 3000000;

		if (i == 1)
			rst_tcp_state(ct, r.s, TCP_ESTABLISHED);
		for (int turn = 0; turn < 2; turn++)
			if (turn == ct->rank)
				rst_send(&r, len, i, pieces[i]);
			else
				rst_receive(&r, len, i, pieces[7 - i]);
	}
	rst_close(&r);
}

static void flags(struct ct *ct)
{
	struct rst r = { 0 };
	char buf[64] = "";

	rst_pair(ct, &r);
	CMT_ERR(ct, rsend(r.s, "x", 1, MSG_OOB), EOPNOTSUPP);
	CMT_ERR(ct, rrecv(r.s, buf, 1, MSG_OOB), EOPNOTSUPP);
	if (ct->rank) {
		CT_EQ(ct, rsend(r.s, "one two", 7, MSG_NOSIGNAL), 7);
		ct_sync(ct, NULL);
		CT_EQ(ct, rsend(r.s, "abc", 3, MSG_MORE), 3);
		CT_EQ(ct, rsend(r.s, "defgh", 5, MSG_DONTWAIT), 5);
		ct_sync(ct, NULL);
		rst_close(&r);
		return;
	}
	CT_EQ(ct, rrecv(r.s, buf, 3, MSG_PEEK | MSG_WAITALL), 3);
	CT_TRUE(ct, !memcmp(buf, "one", 3));
	CT_EQ(ct, rrecv(r.s, buf, sizeof(buf), MSG_PEEK), 7);
	CT_TRUE(ct, !memcmp(buf, "one two", 7));
	CT_EQ(ct, rrecv(r.s, NULL, 3, MSG_TRUNC), 3); /* tcp(7): thrown away */
	CT_EQ(ct, rrecv(r.s, buf, 1, 0), 1);
	CT_EQ(ct, rrecv(r.s, buf, sizeof(buf), 0), 3);
	CT_TRUE(ct, !memcmp(buf, "two", 3));
	CMT_ERR(ct, rrecv(r.s, buf, 1, MSG_DONTWAIT), EAGAIN);
	rst_nonblocking(&r, r.s, true);
	CMT_ERR(ct, rread(r.s, buf, 1), EAGAIN);
	rst_nonblocking(&r, r.s, false);
	rst_quiet(&r, r.s);
	ct_sync(ct, NULL);
	CT_EQ(ct, rrecv(r.s, buf, 8, MSG_WAITALL), 8);
	CT_TRUE(ct, !memcmp(buf, "abcdefgh", 8));
	ct_sync(ct, NULL);
	CT_EQ(ct, rrecv(r.s, buf, 8, 0), 0);
	rst_close(&r);
}

static void vectors(struct ct *ct)
{
	char a[5], b[7000], d[11], all[7016];
	struct iovec iov[] = { { a, 5 }, { NULL, 0 }, { b, 7000 }, { d, 11 } };
	struct sockaddr_storage from;
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 4, .msg_name = &from, .msg_namelen = sizeof(from)
	};
	struct rst r = { 0 };

	rst_pair(ct, &r);
	ct_fill(all, sizeof(all), 7);
	if (ct->rank) {
		memcpy(a, all, 5);
		memcpy(b, all + 5, 7000);
		memcpy(d, all + 7005, 11);
		CT_EQ(ct, rwritev(r.s, iov, 4), 7016);
		msg.msg_name = NULL;
		CT_EQ(ct, rsendmsg(r.s, &msg, 0), 7016);
	} else {
		CT_EQ(ct, rrecvmsg(r.s, &msg, MSG_WAITALL), 7016);
		CT_EQ(ct, msg.msg_namelen, 0);
		CT_TRUE(ct, !memcmp(a, all, 5) && !memcmp(b, all + 5, 7000) && !memcmp(d, all + 7005, 11));
		CT_EQ(ct, rrecv(r.s, d, 10, MSG_WAITALL), 10);
		CT_TRUE(ct, rreadv(r.s, iov, 4) >= 5);
		CT_TRUE(ct, !memcmp(a, all + 10, 5));
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void half(struct ct *ct)
{
	struct rst r = { 0 };
	char c;

	rst_pair(ct, &r);
	if (ct->rank) {
		rst_send(&r, 100000, 1, 5000);
		CMT_OK(ct, rshutdown(r.s, SHUT_WR));
		CMT_OK(ct, rshutdown(r.s, SHUT_WR));
		CMT_ERR(ct, rsend(r.s, "x", 1, 0), EPIPE);
		rst_receive(&r, 50000, 2, 50000);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
	} else {
		rst_receive(&r, 100000, 1, 100000);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
		CT_EQ(ct, rrecv(r.s, &c, 1, MSG_WAITALL), 0);
		CT_TRUE(ct, rst_await(&r, r.s, POLLIN) & POLLIN);
		rst_send(&r, 50000, 2, 50000);
	}
	rst_close(&r);
}

/*
 * Who shuts both ways hangs up, its own polls say so; the other end may read what was sent, and is
 * told that nobody reads any more.
 */
static void both_shut(struct ct *ct)
{
	struct rst r = { 0 };
	ssize_t n;
	char c;

	rst_pair(ct, &r);
	if (ct->rank) {
		rst_send(&r, 100000, 1, 50000);
		if (ct->cs->arg) {
			CMT_OK(ct, rshutdown(r.s, ct->cs->arg == 1 ? SHUT_RD : SHUT_WR));
			CMT_OK(ct, rshutdown(r.s, ct->cs->arg == 1 ? SHUT_WR : SHUT_RD));
		} else {
			CMT_OK(ct, rshutdown(r.s, SHUT_RDWR));
		}
		CT_EQ(ct, rst_await(&r, r.s, 0), POLLHUP);
		do /* what the other end has sent between the two calls has come */
			n = rrecv(r.s, &c, 1, 0);
		while (ct->cs->arg == 2 && n == 1);
		CT_EQ(ct, n, 0);
	} else {
		rst_receive(&r, 100000, 1, 100000);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
		/* the other direction ends a moment later */
		while (rsend(r.s, "x", 1, MSG_NOSIGNAL) == 1)
			sched_yield();
		CMT_ERR(ct, rsend(r.s, "x", 1, MSG_NOSIGNAL), EPIPE);
		CT_TRUE(ct, rst_await(&r, r.s, POLLOUT) & POLLOUT);
	}
	ct_sync(ct, NULL); /* no close has helped */
	rst_close(&r);
}

static void *accepts(void *arg)
{
	const struct rst *r = arg;

	errno = 0;
	return (void *)(intptr_t)(raccept(r->listener, NULL, NULL) < 0 ? errno : 0);
}

/*
 * As of the kernel's: who waits for callers learns that none will be let in, and callers are
 * refused; the address stays taken.
 */
static void shut_listener(struct ct *ct)
{
	struct rst r = { 0 };
	pthread_t waits;
	void *err;

	rst_open(ct, &r);
	if (!ct->rank) {
		CMT_OK(ct, rshutdown(r.listener, SHUT_WR));
		CT_EQ(ct, pthread_create(&waits, NULL, accepts, &r), 0);
		ct_let_others_sleep(); /* it waits by now, or will not have to */
		CMT_OK(ct, rshutdown(r.listener, SHUT_RD));
		CT_EQ(ct, pthread_join(waits, &err), 0);
		CT_EQ(ct, (intptr_t)err, EINVAL);
		CMT_ERR(ct, raccept(r.listener, NULL, NULL), EINVAL);
		CT_EQ(ct, rst_await(&r, r.listener, POLLHUP) & POLLIN, 0);
		rst_option(ct, r.listener, (int[]){ SOL_SOCKET, SO_ACCEPTCONN }, 0);
		CMT_OK(ct, rshutdown(r.listener, SHUT_RDWR));
	}
	ct_sync(ct, NULL);
	if (ct->rank) {
		r.s = rsocket(r.family, SOCK_STREAM, 0);
		CMT_ERR(ct, rconnect(r.s, (struct sockaddr *)&r.at, rst_size(&r)), ECONNREFUSED);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/*
 * What has been written is there, and his name, though its writer has closed, and
 * nobody has read in between.
 */
static void close_at_once(struct ct *ct)
{
	struct rst r = { 0 };
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char c;

	rst_pair(ct, &r);
	if (ct->rank) {
		rst_send(&r, 60000, 3, 60000);
		CMT_OK(ct, rclose(r.s));
		r.s = -1;
	}
	ct_sync(ct, NULL);
	if (!ct->rank) {
		usleep(20000); /* time for all of that to come */
		CT_EQ(ct, rst_await(&r, r.s, POLLIN) & (POLLERR | POLLHUP), 0);
		rst_receive(&r, 60000, 3, 1000);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
		usleep(50000); /* time for all the rest of it */
		CMT_OK(ct, rgetpeername(r.s, (struct sockaddr *)&a, &len));
		for (int i = 0; i < 1000 && rsend(r.s, &c, 1, 0) == 1; i++)
			usleep(1000);
		CMT_ERR(ct, rsend(r.s, &c, 1, 0), EPIPE);
	}
	rst_close(&r);
}

/* Who has been accepted is connected, though the other end may be gone before he looks. */
static void closed_when_accepted(struct ct *ct)
{
	struct rst r = { 0 };
	char c;
	int s;

	rst_open(ct, &r);
	for (int i = 0; i < 40; i++) {
		s = ct->rank ? rst_call(&r, false) : raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, s >= 0);
		if (ct->rank)
			CT_TRUE(ct, rrecv(s, &c, 1, 0) <= 0);
		CMT_OK(ct, rclose(s));
	}
	r.s = -1;
	rst_close(&r);
}

/* SO_LINGER with no time is a reset; so is death. */
static void reset(struct ct *ct)
{
	const struct linger now = { 1, 0 };
	struct rst r = { 0 };
	char c;

	rst_pair(ct, &r);
	if (ct->rank && ct->cs->arg == 9) {
		ct_sync(ct, NULL);
		ct_doomed(ct);
		raise(SIGKILL);
	}
	if (ct->rank) {
		CMT_OK(ct, rsetsockopt(r.s, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
		CMT_OK(ct, rclose(r.s));
		ct_sync(ct, NULL);
		return;
	}
	ct_sync(ct, NULL);
	CMT_ERR(ct, rrecv(r.s, &c, 1, 0), ECONNRESET);
	CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
	CMT_ERR(ct, rsend(r.s, &c, 1, 0), EPIPE);
	rst_close(&r);
}

/* The other rank does nothing any more, its library neither, until it is continued. */
static void stop_other(struct ct *ct)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)ct->pid[1]);
	CT_EQ(ct, kill(ct->pid[1], SIGSTOP), 0);
	while (state != 'T') {
		FILE *stat = fopen(path, "r");

		CT_TRUE(ct, stat != NULL);
		CT_EQ(ct, fscanf(stat, "%*d %*s %c", &state), 1);
		fclose(stat);
	}
}

struct closer {
	int s, rc, err;
};

static void *close_it(void *arg)
{
	struct closer *c = arg;

	c->rc = rclose(c->s);
	c->err = errno;
	return NULL;
}

/*
 * Two threads close it while what has been sent is on its way: for one of them it is no rsocket any
 * more, and so it is for all other calls.
 */
static void closed_by_two(struct ct *ct)
{
	const struct linger some = { 1, 1 };
	struct rst r = { 0 };
	struct pollfd p = { .events = POLLIN };
	struct closer c[2];
	pthread_t other;

	rst_pair(ct, &r);
	ct_sync(ct, NULL);
	if (!ct->rank) {
		CMT_OK(ct, rsetsockopt(r.s, SOL_SOCKET, SO_LINGER, &some, sizeof(some)));
		stop_other(ct);
		CT_EQ(ct, rsend(r.s, "x", 1, 0), 1);
		c[0].s = c[1].s = r.s;
		CT_EQ(ct, pthread_create(&other, NULL, close_it, &c[0]), 0);
		ct_let_others_sleep();
		CMT_ERR(ct, rrecv(r.s, &p, 1, MSG_DONTWAIT), EBADF);
		p.fd = r.s;
		CT_EQ(ct, rpoll(&p, 1, 0), 1);
		CT_EQ(ct, p.revents, POLLNVAL);
		close_it(&c[1]);
		CT_EQ(ct, pthread_join(other, NULL), 0);
		CT_EQ(ct, kill(ct->pid[1], SIGCONT), 0);
		CT_EQ(ct, c[0].rc + c[1].rc, -1);
		CT_EQ(ct, c[c[0].rc ? 0 : 1].err, EBADF);
		r.s = -1;
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* ---- direct writes --------------------------------------------------------------------------- */

#define MAPPED 50000

static void map_set_up(struct ct *ct, struct rst *r)
{
	const int maps = 2;

	rst_open(ct, r);
	if (!ct->rank) {
		r->s = raccept(r->listener, NULL, NULL);
		CT_TRUE(ct, r->s >= 0);
		return;
	}
	r->s = rsocket(r->family, SOCK_STREAM, 0);
	CMT_OK(ct, rsetsockopt(r->s, SOL_RDMA, RDMA_IOMAPSIZE, &maps, sizeof(maps)));
	CMT_OK(ct, rconnect(r->s, (struct sockaddr *)&r->at, rst_size(r)));
}

/* Rank 0 maps, rank 1 writes. */
static void mapped(struct ct *ct)
{
	char *buf = ct_alloc(ct, MAPPED), c;
	struct rst r = { 0 };

	map_set_up(ct, &r);
	if (ct->rank) {
		ct_fill(buf, MAPPED, 4);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		CMT_ERR(ct, (int)riowrite(r.s, buf, 1, 0x900000, 0), EFAULT);
		CT_EQ(ct, riowrite(r.s, buf, 100, 0x10000, 0), 100);
		CT_EQ(ct, riowrite(r.s, buf + 100, MAPPED - 100, 0x10000 + 100, 0), MAPPED - 100);
		CT_EQ(ct, rsend(r.s, "x", 1, 0), 1);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		CMT_ERR(ct, (int)riowrite(r.s, buf, 1, 0x10000, 0), EFAULT);
	} else {
		CMT_ERR(ct, (int)riomap(r.s, buf, MAPPED, PROT_READ, 0, 0), EINVAL);
		CT_EQ(ct, riomap(r.s, buf, MAPPED, PROT_WRITE, 0, 0x10000), 0x10000);
		CMT_ERR(ct, (int)riomap(r.s, buf, MAPPED, PROT_WRITE, 0, 0x10100), EINVAL);
		CT_TRUE(ct, riomap(r.s, &c, 1, PROT_WRITE, 0, -1) == (off_t)(uintptr_t)&c);
		CMT_ERR(ct, (int)riomap(r.s, buf, 5, PROT_WRITE, 0, 0), ENOMEM);
		CT_EQ(ct, riomap(r.s, buf, 5, PROT_NONE, 0, 0), 0);
		CT_EQ(ct, rsend(r.s, "x", 1, 0), 1);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		ct_verify(ct, buf, MAPPED, 4, "what was written");
		CMT_OK(ct, riounmap(r.s, buf, MAPPED));
		CMT_ERR(ct, riounmap(r.s, buf, MAPPED), EINVAL);
		CT_EQ(ct, rsend(r.s, "x", 1, 0), 1);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
	free(buf);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static int in_child(const struct rst *r)
{
	char c;

	if (rsend(r->s, "x", 1, 0) != -1 || errno != EIO || rrecv(r->s, &c, 1, 0) != -1 || errno != EIO)
		return 1;
	return rclose(r->s) ? 2 : rclose(r->s) != -1 || errno != EBADF ? 3 : 0;
}

static void forks(struct ct *ct)
{
	struct rst r = { 0 };
	int status = -1;
	pid_t pid;

	rst_pair(ct, &r);
	pid = fork();
	if (!pid)
		_exit(in_child(&r));
	CT_EQ(ct, waitpid(pid, &status, 0), pid);
	CT_EQ(ct, status, 0);
	for (int turn = 0; turn < 2; turn++)
		if (turn == ct->rank)
			rst_send(&r, 100000, 6, 5000);
		else
			rst_receive(&r, 100000, 6, 5000);
	rst_close(&r);
}

const struct ct_case vt_rsocket[] = {
	{ "RS", "refusals", CT_TWO(refusals) },
	{ "RS", "nobody-there", CT_TWO(nobody_there) },
	{ "RS", "no-way", { no_way } },
	{ "RS", "stranger-is-turned-away", CT_TWO(stranger) },
	{ "RS", "names", CT_TWO(names) },
	{ "RS", "names-ipv6", CT_TWO(names), .arg = 6 },
	{ "RS", "both-ways", CT_TWO(both_ways) },
	{ "RS", "both-ways-ipv6", CT_TWO(both_ways), .arg = 6, .slow = true },
	{ "RS", "flags", CT_TWO(flags) },
	{ "RS", "vectors", CT_TWO(vectors) },
	{ "RS", "half-close", CT_TWO(half) },
	{ "RS", "both-shut", CT_TWO(both_shut) },
	{ "RS", "both-shut-reading-first", CT_TWO(both_shut), .arg = 1 },
	{ "RS", "both-shut-writing-first", CT_TWO(both_shut), .arg = 2 },
	{ "RS", "shut-listener", CT_TWO(shut_listener) },
	{ "RS", "close-at-once", CT_TWO(close_at_once) },
	{ "RS", "closed-when-accepted", CT_TWO(closed_when_accepted) },
	{ "RS", "reset", CT_TWO(reset) },
	{ "RS", "death", CT_TWO(reset), .arg = 9 },
	{ "RS", "closed-by-two", CT_TWO(closed_by_two), .slow = true },
	{ "RS", "mapped-memory", CT_TWO(mapped) },
	{ "RS", "fork", CT_TWO(forks) },
	{ 0 },
};
