/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row RS: datagram rsockets. */
#include "rst.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Rank 0 has a name that rank 1 knows; rank 1 has none yet. */
static void names(struct ct *ct, struct rst *r)
{
	r->type = SOCK_DGRAM;
	rst_open(ct, r);
	if (!ct->rank) {
		r->s = r->listener;
		r->listener = -1;
	} else {
		r->s = rsocket(r->family, SOCK_DGRAM, 0);
		CT_TRUE(ct, r->s >= 0);
	}
}

static struct sockaddr *at(struct rst *r)
{
	return (struct sockaddr *)&r->at;
}

/* Rank 1 sends from each length, rank 0 sends it back to whom it came from. */
static void echo(struct ct *ct)
{
	static const size_t lens[] = { 0, 1, 900, 1000, 2048, 4000 };
	char buf[5000], got[5000];
	struct sockaddr_storage from;
	struct rst r = { 0 };

	names(ct, &r);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		socklen_t len = sizeof(from);

		ct_fill(buf, sizeof(buf), i);
		if (ct->rank)
			CT_EQ(ct, rsendto(r.s, buf, lens[i], 0, at(&r), rst_size(&r)), lens[i]);
		CT_EQ(ct, rrecvfrom(r.s, got, sizeof(got), 0, (struct sockaddr *)&from, &len), lens[i]);
		CT_EQ(ct, len, rst_size(&r));
		CT_EQ(ct, from.ss_family, r.family);
		if (ct->rank)
			CT_TRUE(ct, !memcmp(&from, &r.at, len));
		CT_TRUE(ct, !memcmp(buf, got, lens[i]));
		if (!ct->rank)
			CT_EQ(ct, rsendto(r.s, got, lens[i], 0, (struct sockaddr *)&from, len), lens[i]);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

static void whole(struct ct *ct)
{
	struct rst r = { 0 };
	char buf[64] = "";
	struct iovec iov = { buf, 3 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	names(ct, &r);
	if (ct->rank) {
		CMT_OK(ct, rconnect(r.s, at(&r), rst_size(&r)));
		CT_EQ(ct, rsend(r.s, "first", 5, 0), 5);
		CT_EQ(ct, rwrite(r.s, "second", 6), 6);
		CT_EQ(ct, rsend(r.s, "third", 5, 0), 5);
		ct_sync(ct, NULL);
		rst_close(&r);
		return;
	}
	rst_await(&r, r.s, POLLIN);
	CT_EQ(ct, rrecv(r.s, buf, 2, MSG_PEEK), 2);
	CT_EQ(ct, rrecv(r.s, buf, sizeof(buf), 0), 5);
	CT_TRUE(ct, !memcmp(buf, "first", 5));
	CT_EQ(ct, rrecv(r.s, buf, 2, MSG_TRUNC), 6); /* the rest of it is gone */
	CT_EQ(ct, rrecvmsg(r.s, &msg, 0), 3);
	CT_EQ(ct, msg.msg_flags, MSG_TRUNC);
	CT_TRUE(ct, !memcmp(buf, "thi", 3));
	CMT_ERR(ct, rrecv(r.s, buf, 1, MSG_DONTWAIT), EAGAIN);
	rst_quiet(&r, r.s);
	ct_sync(ct, NULL);
	rst_close(&r);
}

static void refused(struct ct *ct)
{
	struct sockaddr_storage nobody;
	static char buf[5000];
	struct rst r = { 0 };
	socklen_t len = sizeof(nobody);

	names(ct, &r);
	if (!ct->rank) {
		CMT_ERR(ct, rlisten(r.s, 1), EOPNOTSUPP);
		CMT_ERR(ct, raccept(r.s, NULL, NULL), EOPNOTSUPP);
		CMT_ERR(ct, rbind(r.s, at(&r), rst_size(&r)), EINVAL);
		ct_sync(ct, NULL);
		rst_close(&r);
		return;
	}
	CMT_ERR(ct, rsend(r.s, buf, 1, 0), EDESTADDRREQ);
	CMT_ERR(ct, rgetpeername(r.s, (struct sockaddr *)&nobody, &len), ENOTCONN);
	CMT_ERR(ct, rsendto(r.s, buf, sizeof(buf), 0, at(&r), rst_size(&r)), EMSGSIZE);
	CMT_ERR(ct, rbind(r.s, at(&r), rst_size(&r)), EINVAL); /* it has got a name by sending */
	CMT_ERR(ct, (int)riomap(r.s, buf, 4, PROT_WRITE, 0, -1), EOPNOTSUPP);
	/* nobody is there: that is lost, but who is connected hears of it */
	cmt_here(r.family, 9, &nobody);
	CT_EQ(ct, rsendto(r.s, buf, 10, 0, (struct sockaddr *)&nobody, rst_size(&r)), 10);
	CMT_OK(ct, rconnect(r.s, (struct sockaddr *)&nobody, rst_size(&r)));
	CMT_ERR(ct, rsend(r.s, buf, 10, 0), ECONNREFUSED);
	CMT_OK(ct, rgetpeername(r.s, (struct sockaddr *)&nobody, &len));
	CT_EQ(ct, cmt_port(&nobody), 9);
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* Non-blocking, the first one may have to be tried again, when there is room. */
static void nonblocking(struct ct *ct)
{
	struct rst r = { 0 };
	ssize_t rc = -1;
	char c;

	names(ct, &r);
	rst_nonblocking(&r, r.s, true);
	if (ct->rank) {
		for (int i = 0; i < 10000 && rc < 0; i++) {
			rc = rsendto(r.s, "x", 1, 0, at(&r), rst_size(&r));
			if (rc < 0)
				CT_EQ(ct, errno, EAGAIN);
			rst_await(&r, r.s, POLLOUT);
		}
		CT_EQ(ct, rc, 1);
	} else {
		CMT_ERR(ct, rrecv(r.s, &c, 1, 0), EAGAIN);
		rst_await(&r, r.s, POLLIN);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* A further one with the name of rank 0. */
static int another(struct ct *ct, struct rst *r, bool shares, int err)
{
	int s = rsocket(r->family, SOCK_DGRAM, 0);

	CT_TRUE(ct, s >= 0);
	CMT_OK(ct, rsetsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){ shares }, sizeof(int)));
	if (err)
		CMT_ERR(ct, rbind(s, at(r), rst_size(r)), err);
	else
		CMT_OK(ct, rbind(s, at(r), rst_size(r)));
	return s;
}

static void expect_byte(struct ct *ct, int s, char want)
{
	char c = 0;

	CT_EQ(ct, rrecv(s, &c, 1, 0), 1);
	CT_EQ(ct, c, want);
}

/* Threads that receive until the rsocket is closed. */
#define RECEIVERS 16
struct receiver {
	pthread_t thread;
	int s;
	atomic_int *last; /* of what they got */
	ssize_t end;
};

static void *receive(void *arg)
{
	struct receiver *v = arg;
	char c;

	while ((v->end = rrecv(v->s, &c, 1, 0)) == 1)
		*v->last = c;
	return NULL;
}

/*
 * The name is free when the last thread has left the rsocket that is closed
 * under them, and not before.
 */
static void close_while_they_receive(struct ct *ct, int s, char want)
{
	struct receiver v[RECEIVERS];
	atomic_int last = 0;

	for (int i = 0; i < RECEIVERS; i++) {
		v[i] = (struct receiver){ .s = s, .last = &last };
		CT_EQ(ct, pthread_create(&v[i].thread, NULL, receive, &v[i]), 0);
	}
	while (!last)
		ct_pause();
	CMT_OK(ct, rclose(s));
	for (int i = 0; i < RECEIVERS; i++) {
		CT_EQ(ct, pthread_join(v[i].thread, NULL), 0);
		CT_EQ(ct, v[i].end, -1);
	}
	CT_EQ(ct, last, want);
}

/*
 * As a server of UDP does: one for who has called, which is connected to him, and the next with the
 * same name for the others.
 */
static void serve(struct ct *ct, struct rst *r)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int next;
	char c;

	CMT_OK(ct, rclose(another(ct, r, true, EADDRINUSE)));
	CMT_OK(ct, rsetsockopt(r->s, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
	CMT_OK(ct, rclose(another(ct, r, false, EADDRINUSE)));
	CT_EQ(ct, rrecvfrom(r->s, &c, 1, 0, (struct sockaddr *)&from, &len), 1);
	CMT_OK(ct, rconnect(r->s, (struct sockaddr *)&from, len));
	next = another(ct, r, true, 0);
	CMT_OK(ct, rgetsockname(r->s, (struct sockaddr *)&from, &len));
	CT_EQ(ct, cmt_port(&from), cmt_port(&r->at));
	CT_EQ(ct, rsend(r->s, "!", 1, 0), 1);
	expect_byte(ct, next, '2');
	expect_byte(ct, r->s, '1');
	rst_quiet(r, r->s);
	rst_quiet(r, next);
	CMT_OK(ct, rclose(r->s));
	r->s = next;
	/* the last one has the name, until it goes */
	next = another(ct, r, true, 0);
	ct_sync(ct, NULL);
	close_while_they_receive(ct, next, '3');
	rst_quiet(r, r->s);
	ct_sync(ct, NULL);
	expect_byte(ct, r->s, '4');
}

static void reused(struct ct *ct)
{
	struct rst r = { 0 };
	int more[3];

	names(ct, &r);
	if (!ct->rank) {
		serve(ct, &r);
	} else {
		for (int i = 0; i < 3; i++)
			CT_TRUE(ct, (more[i] = rsocket(r.family, SOCK_DGRAM, 0)) >= 0);
		CT_EQ(ct, rsendto(r.s, "0", 1, 0, at(&r), rst_size(&r)), 1);
		expect_byte(ct, r.s, '!');
		CT_EQ(ct, rsendto(more[0], "2", 1, 0, at(&r), rst_size(&r)), 1);
		CT_EQ(ct, rsendto(r.s, "1", 1, 0, at(&r), rst_size(&r)), 1);
		ct_sync(ct, NULL);
		CT_EQ(ct, rsendto(more[1], "3", 1, 0, at(&r), rst_size(&r)), 1);
		ct_sync(ct, NULL);
		CT_EQ(ct, rsendto(more[2], "4", 1, 0, at(&r), rst_size(&r)), 1);
	}
	ct_sync(ct, NULL);
	for (int i = 0; ct->rank && i < 3; i++)
		CMT_OK(ct, rclose(more[i]));
	rst_close(&r);
}

/* What has its name back is for IPv6 only, as before: somebody else has that port of IPv4. */
static void reused_beside_ipv4(struct ct *ct)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 name = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(name);
	int s[3], ipv4 = rsocket(AF_INET, SOCK_DGRAM, 0);

	for (int i = 0; i < 3; i++) {
		s[i] = rsocket(AF_INET6, SOCK_DGRAM, 0);
		CMT_OK(ct, rsetsockopt(s[i], IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 1 }, sizeof(int)));
		CMT_OK(ct, rsetsockopt(s[i], SOL_SOCKET, SO_REUSEADDR, &(int){ i < 2 }, sizeof(int)));
		if (i < 2)
			CMT_OK(ct, rbind(s[i], (struct sockaddr *)&name, len));
		CMT_OK(ct, rgetsockname(s[0], (struct sockaddr *)&name, &len));
	}
	four.sin_port = name.sin6_port;
	CMT_OK(ct, rbind(ipv4, (struct sockaddr *)&four, sizeof(four)));
	CMT_OK(ct, rclose(s[1]));
	CMT_ERR(ct, rbind(s[2], (struct sockaddr *)&name, len), EADDRINUSE);
	CMT_OK(ct, rclose(s[0]));
	CMT_OK(ct, rclose(s[2]));
	CMT_OK(ct, rclose(ipv4));
}

/* connect(2): AF_UNSPEC, and it is connected with nobody any more. */
static void dissolve(struct ct *ct, int s, const struct sockaddr *to)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	CMT_OK(ct, rconnect(s, to, sizeof(struct sockaddr_in)));
	CMT_OK(ct, rgetpeername(s, (struct sockaddr *)&peer, &len));
	CMT_OK(ct, rconnect(s, &none, sizeof(none)));
	CMT_ERR(ct, rgetpeername(s, (struct sockaddr *)&peer, &len), ENOTCONN);
	CMT_ERR(ct, rsend(s, "x", 1, 0), EDESTADDRREQ);
	CT_EQ(ct, rsendto(s, "x", 1, 0, to, sizeof(struct sockaddr_in)), 1);
}

/*
 * Both ends are one thread's: nobody else is there to answer for the one
 * while it sends by the other.
 */
static void one_thread(struct ct *ct)
{
	int a = rsocket(AF_INET, SOCK_DGRAM, 0), b = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	char buf[8];

	cmt_here(AF_INET, 0, &at);
	CMT_OK(ct, rbind(a, (struct sockaddr *)&at, sizeof(struct sockaddr_in)));
	CMT_OK(ct, rgetsockname(a, (struct sockaddr *)&at, &len));
	CT_EQ(ct, rsendto(b, "there", 5, 0, (struct sockaddr *)&at, len), 5);
	CT_EQ(ct, rrecvfrom(a, buf, sizeof(buf), 0, (struct sockaddr *)&at, &len), 5);
	CT_EQ(ct, rsendto(a, "back", 4, 0, (struct sockaddr *)&at, len), 4);
	CT_EQ(ct, rrecv(b, buf, sizeof(buf), 0), 4);
	dissolve(ct, b, (struct sockaddr *)&at);
	CMT_OK(ct, rclose(a));
	CMT_OK(ct, rclose(b));
}

const struct ct_case vt_rdgram[] = {
	{ "RS", "datagrams", CT_TWO(echo) },
	{ "RS", "datagrams-ipv6", CT_TWO(echo), .arg = 6 },
	{ "RS", "datagrams-are-whole", CT_TWO(whole) },
	{ "RS", "datagrams-refused", CT_TWO(refused) },
	{ "RS", "datagrams-of-one-thread", { one_thread }, .seconds = 20 },
	{ "RS", "datagrams-nonblocking", CT_TWO(nonblocking) },
	{ "RS", "datagrams-at-one-name", CT_TWO(reused) },
	{ "RS", "datagrams-at-one-name-ipv6", CT_TWO(reused), .arg = 6 },
	{ "RS", "datagrams-at-one-name-beside-ipv4", { reused_beside_ipv4 } },
	{ 0 },
};
