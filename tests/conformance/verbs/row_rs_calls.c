/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row RS: what sockets' programs expect of calls beside the usual ones, as their pages have it:
 * names, calling again, many descriptors.
 */
#include "rst.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define MANY 24 /* more than rpoll has room for without memory of its own */

static struct sockaddr *name_of(struct sockaddr_storage *name)
{
	return (struct sockaddr *)name;
}

/* accept(2): who has called, as much as there is room for, and how long the name is. */
static void accept_names(struct ct *ct)
{
	struct sockaddr_storage caller, peer;
	socklen_t len = sizeof(peer);
	struct rst r = { 0 };

	rst_open(ct, &r);
	for (size_t room = 0; room <= sizeof(caller); room += sizeof(caller) / 2) {
		socklen_t told = (socklen_t)room;

		if (ct->rank) {
			r.s = rst_call(&r, false);
			ct_sync(ct, NULL);
		} else {
			memset(&caller, 0x55, sizeof(caller));
			r.s = raccept(r.listener, name_of(&caller), &told);
			CT_TRUE(ct, r.s >= 0);
			CT_EQ(ct, told, rst_size(&r));
			CMT_OK(ct, rgetpeername(r.s, name_of(&peer), &len));
			CT_TRUE(ct, !memcmp(&caller, &peer, room < told ? room : told));
			CT_TRUE(ct, ct_untouched((char *)&caller + room, sizeof(caller) - room, 0x55));
			ct_sync(ct, NULL);
		}
		CMT_OK(ct, rclose(r.s));
	}
	r.s = -1;
	rst_close(&r);
}

/*
 * ipv6(7): an rsocket of IPv6 that is for both reaches addresses of IPv4 by mapped
 * ones, and names its ends so.
 */
static void mapped_names(struct ct *ct)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6 }, name;
	socklen_t len = sizeof(name);
	struct rst r = { 0 };

	rst_open(ct, &r);
	if (ct->rank) {
		to.sin6_port = htons(cmt_port(&r.at));
		memset(&to.sin6_addr.s6_addr[10], 0xff, 2);
		memcpy(&to.sin6_addr.s6_addr[12], &((struct sockaddr_in *)&r.at)->sin_addr, 4);
		r.s = rsocket(AF_INET6, SOCK_STREAM, 0);
		CMT_OK(ct, rconnect(r.s, (struct sockaddr *)&to, sizeof(to)));
		CMT_OK(ct, rgetpeername(r.s, (struct sockaddr *)&name, &len));
		CT_EQ(ct, len, sizeof(name));
		CT_EQ(ct, name.sin6_family, AF_INET6);
		CT_EQ(ct, name.sin6_port, to.sin6_port);
		CT_TRUE(ct, IN6_ARE_ADDR_EQUAL(&name.sin6_addr, &to.sin6_addr));
		CMT_OK(ct, rgetsockname(r.s, (struct sockaddr *)&name, &len));
		CT_TRUE(ct, name.sin6_port && IN6_IS_ADDR_V4MAPPED(&name.sin6_addr));
		rst_send(&r, 1000, 1, 1000);
	} else {
		r.s = raccept(r.listener, NULL, NULL);
		rst_receive(&r, 1000, 1, 1000);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* Until it is known; who had been sent an end before can see it by writing alone. */
static void await_close(struct rst *r)
{
	if (!r->ct->cs->arg)
		rst_await(r, r->s, POLLIN);
	while (r->ct->cs->arg && rsend(r->s, "x", 1, 0) == 1)
		usleep(1000);
}

/*
 * As librdmacm's: who calls and has not got through is told so, or waits where he may; for who has
 * got through it is done, also when the other end sends nothing any more. When that has closed he
 * is connected no longer, which is known as soon as anything of it is.
 */
static void connects_again(struct ct *ct)
{
	struct rst r = { 0 };

	rst_open(ct, &r);
	if (ct->rank) {
		r.s = rst_call(&r, true);
		CMT_ERR(ct, rconnect(r.s, name_of(&r.at), rst_size(&r)), EINPROGRESS);
		CMT_ERR(ct, rconnect(r.s, name_of(&r.at), rst_size(&r)), EINPROGRESS);
		ct_sync(ct, NULL);
		rst_nonblocking(&r, r.s, false);
		CMT_OK(ct, rconnect(r.s, name_of(&r.at), rst_size(&r)));
		CMT_OK(ct, rconnect(r.s, name_of(&r.at), rst_size(&r)));
	} else {
		ct_sync(ct, NULL);
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
	}
	ct_sync(ct, NULL);
	if (!ct->rank && ct->cs->arg)
		CMT_OK(ct, rshutdown(r.s, SHUT_WR));
	if (ct->rank && ct->cs->arg) {
		rst_await(&r, r.s, POLLIN);
		CMT_OK(ct, rconnect(r.s, name_of(&r.at), rst_size(&r)));
	}
	ct_sync(ct, NULL);
	if (!ct->rank) {
		CMT_OK(ct, rclose(r.s));
		r.s = -1;
	} else {
		await_close(&r);
		CMT_ERR(ct, rconnect(r.s, name_of(&r.at), rst_size(&r)), ENOTCONN);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* listen(2): at a port that is free, where it has none. */
static void listens_anywhere(struct ct *ct)
{
	struct rst r = { .ct = ct, .family = AF_INET, .type = SOCK_STREAM, .listener = -1, .s = -1 };
	socklen_t len = sizeof(r.at);
	struct sockaddr_storage got;

	if (ct->rank) {
		ct_get(ct, NULL, 0, &got, sizeof(got));
		cmt_here(AF_INET, cmt_port(&got), &r.at);
		r.s = rst_call(&r, false);
	} else {
		r.listener = rsocket(AF_INET, SOCK_STREAM, 0);
		CMT_OK(ct, rlisten(r.listener, 8));
		CMT_OK(ct, rgetsockname(r.listener, name_of(&got), &len));
		CT_TRUE(ct, cmt_port(&got));
		ct_put(ct, 1, &got, sizeof(got));
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/*
 * poll(2), of many rsockets and a descriptor: none, one, both, and one that
 * is negative is left out.
 */
static void polls_many(struct ct *ct)
{
	struct pollfd p[MANY + 3];
	struct rst r = { 0 };
	int pipes[2];

	rst_pair(ct, &r);
	if (!ct->rank) {
		ct_sync(ct, NULL);
		CT_EQ(ct, rsend(r.s, "x", 1, 0), 1);
		ct_sync(ct, NULL);
		rst_close(&r);
		return;
	}
	CMT_OK(ct, pipe(pipes));
	for (size_t i = 0; i < MANY; i++) {
		p[i] = (struct pollfd){ .fd = rsocket(AF_INET, SOCK_STREAM, 0), .events = POLLIN };
		CMT_OK(ct, rlisten(p[i].fd, 1));
	}
	p[MANY] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	p[MANY + 1] = (struct pollfd){ .fd = r.s, .events = POLLIN };
	p[MANY + 2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	CT_EQ(ct, rpoll(p, MANY + 3, 5), 0);
	ct_sync(ct, NULL);
	CT_EQ(ct, rpoll(p, MANY + 3, RST_PATIENCE), 1);
	CT_EQ(ct, p[MANY + 1].revents, POLLIN);
	CT_EQ(ct, write(pipes[1], "y", 1), 1);
	CT_EQ(ct, rpoll(p, MANY + 3, RST_PATIENCE), 2);
	CT_EQ(ct, p[MANY].revents, POLLIN);
	for (size_t i = 0; i < MANY; i++) {
		CT_EQ(ct, p[i].revents, 0);
		CMT_OK(ct, rclose(p[i].fd));
	}
	CT_EQ(ct, p[MANY + 2].revents, 0);
	close(pipes[0]);
	close(pipes[1]);
	ct_sync(ct, NULL);
	rst_close(&r);
}

/*
 * socket(7), fcntl(2): what can only be asked for, the flag of exec, and places
 * for answers that are none.
 */
static void facts(struct ct *ct)
{
	int s = rsocket(AF_INET6, SOCK_STREAM, 0), d = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct tcp_info info;
	socklen_t len = sizeof(info);

	rst_option(ct, s, (int[]){ SOL_SOCKET, SO_DOMAIN }, AF_INET6);
	rst_option(ct, s, (int[]){ SOL_SOCKET, SO_PROTOCOL }, IPPROTO_TCP);
	rst_option(ct, d, (int[]){ SOL_SOCKET, SO_DOMAIN }, AF_INET);
	rst_option(ct, d, (int[]){ SOL_SOCKET, SO_PROTOCOL }, IPPROTO_UDP);
	rst_option(ct, d, (int[]){ SOL_SOCKET, SO_TYPE }, SOCK_DGRAM);
	CMT_ERR(ct, rgetsockopt(d, IPPROTO_TCP, TCP_INFO, &info, &len), ENOPROTOOPT);
	CMT_ERR(ct, rgetsockopt(s, IPPROTO_UDP, 1, &info, &len), ENOPROTOOPT);
	CMT_ERR(ct, rgetsockopt(s, SOL_SOCKET, SO_TYPE, NULL, &len), EFAULT);
	CMT_ERR(ct, rgetsockopt(s, SOL_SOCKET, SO_TYPE, &info, NULL), EFAULT);
	CMT_ERR(ct, rbind(s, NULL, sizeof(struct sockaddr_in6)), EFAULT);
	CMT_ERR(ct, rgetsockname(s, NULL, &len), EFAULT);
	CMT_ERR(ct, rsendmsg(s, NULL, 0), EFAULT);
	CMT_ERR(ct, rrecvmsg(s, NULL, 0), EFAULT);
	for (int flag = FD_CLOEXEC; flag >= 0; flag -= FD_CLOEXEC) {
		CMT_OK(ct, rfcntl(s, F_SETFD, flag));
		CT_EQ(ct, rfcntl(s, F_GETFD), flag);
	}
	CMT_OK(ct, rclose(s));
	CMT_OK(ct, rclose(d));
}

const struct ct_case vt_rs_calls[] = {
	{ "RS", "accept-names", CT_TWO(accept_names) },
	{ "RS", "mapped-names", CT_TWO(mapped_names) },
	{ "RS", "connects-again", CT_TWO(connects_again) },
	{ "RS", "connects-again-half-closed", CT_TWO(connects_again), .arg = 1 },
	{ "RS", "listens-anywhere", CT_TWO(listens_anywhere) },
	{ "RS", "polls-many", CT_TWO(polls_many) },
	{ "RS", "facts", { facts } },
	{ 0 },
};
