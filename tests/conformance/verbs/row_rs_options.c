/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row RS: options of rsockets, rsocket(7). */
#include "rst.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

/* Whatever is not 0 is on; as librdmacm and the kernel tell it. */
static void switches(struct ct *ct)
{
	static const int known[][2] = { { SOL_SOCKET, SO_KEEPALIVE },
					{ SOL_SOCKET, SO_OOBINLINE },
					{ SOL_SOCKET, SO_REUSEADDR },
					{ SOL_SOCKET, SO_BROADCAST },
					{ IPPROTO_TCP, TCP_NODELAY } };
	static const int values[] = { 1, 77, -1 };
	int s = rsocket(AF_INET, SOCK_STREAM, 0), six = rsocket(AF_INET6, SOCK_STREAM, 0);
	const int v6only[] = { IPPROTO_IPV6, IPV6_V6ONLY };

	for (size_t i = 0; i < CT_COUNT(known); i++)
		for (size_t v = 0; v < CT_COUNT(values); v++) {
			rst_option(ct, s, known[i], 0);
			CMT_OK(ct, rsetsockopt(s, known[i][0], known[i][1], &values[v], sizeof(int)));
			rst_option(ct, s, known[i], 1);
			CMT_OK(ct, rsetsockopt(s, known[i][0], known[i][1], &(int){ 0 }, sizeof(int)));
		}
	CMT_OK(ct, rsetsockopt(six, v6only[0], v6only[1], &values[2], sizeof(int)));
	rst_option(ct, six, v6only, 1);
	CMT_OK(ct, rclose(s));
	CMT_OK(ct, rclose(six));
}

/* socket(7) has SO_REUSEADDR at any time: it is too late then, and no error. */
static void reuse_late(struct ct *ct)
{
	static const int reuse[] = { SOL_SOCKET, SO_REUSEADDR };
	const struct sockaddr_in any = { .sin_family = AF_INET };
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	CMT_OK(ct, rsetsockopt(s, reuse[0], reuse[1], &(int){ 1 }, sizeof(int)));
	CMT_OK(ct, rbind(s, (const struct sockaddr *)&any, sizeof(any)));
	CMT_OK(ct, rsetsockopt(s, reuse[0], reuse[1], &(int){ 0 }, sizeof(int)));
	rst_option(ct, s, reuse, 0);
	CMT_OK(ct, rlisten(s, 1));
	CMT_OK(ct, rsetsockopt(s, reuse[0], reuse[1], &(int){ 1 }, sizeof(int)));
	rst_option(ct, s, reuse, 1);
	CMT_OK(ct, rclose(s));
}

/* tcp(7): what they are at first, and 0 is none. */
static void keepalive(struct ct *ct)
{
	static const int known[][3] = { { IPPROTO_TCP, TCP_KEEPIDLE, 7200 },
					{ IPPROTO_TCP, TCP_KEEPCNT, 9 },
					{ IPPROTO_TCP, TCP_KEEPINTVL, 75 } };
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	for (size_t i = 0; i < CT_COUNT(known); i++) {
		rst_option(ct, s, known[i], known[i][2]);
		CMT_ERR(ct, rsetsockopt(s, known[i][0], known[i][1], &(int){ 0 }, sizeof(int)), EINVAL);
		CMT_OK(ct, rsetsockopt(s, known[i][0], known[i][1], &(int){ 20 }, sizeof(int)));
		rst_option(ct, s, known[i], 20);
	}
	CMT_OK(ct, rclose(s));
}

static void options(struct ct *ct)
{
	static const int known[][2] = { { SOL_SOCKET, SO_SNDBUF },  { SOL_SOCKET, SO_RCVBUF },
					{ SOL_RDMA, RDMA_SQSIZE },  { SOL_RDMA, RDMA_RQSIZE },
					{ SOL_RDMA, RDMA_INLINE },  { SOL_RDMA, RDMA_IOMAPSIZE },
					{ IPPROTO_TCP, TCP_MAXSEG } };
	int s = rsocket(AF_INET, SOCK_STREAM, 0), six = rsocket(AF_INET6, SOCK_STREAM, 0);
	struct linger l = { 1, 5 };
	socklen_t len = sizeof(l);
	char c = 1;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int value = 20 + (int)i;

		CMT_OK(ct, rsetsockopt(s, known[i][0], known[i][1], &value, sizeof(value)));
		rst_option(ct, s, known[i], value);
		CMT_ERR(ct, rsetsockopt(s, known[i][0], known[i][1], &c, 1), EINVAL);
	}
	CMT_OK(ct, rsetsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	l = (struct linger){ 0 };
	CMT_OK(ct, rgetsockopt(s, SOL_SOCKET, SO_LINGER, &l, &len));
	CT_TRUE(ct, l.l_onoff && l.l_linger == 5);
	CMT_OK(ct, rsetsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 1 }, sizeof(int)));
	rst_option(ct, six, (int[]){ IPPROTO_IPV6, IPV6_V6ONLY }, 1);
	rst_option(ct, s, (int[]){ SOL_SOCKET, SO_TYPE }, SOCK_STREAM);
	rst_tcp_state(ct, s, TCP_CLOSE);
	CMT_ERR(ct, rsetsockopt(s, SOL_SOCKET, SO_MARK, &l, sizeof(int)), ENOPROTOOPT);
	CMT_ERR(ct, rgetsockopt(s, SOL_SOCKET, SO_MARK, &l, &len), ENOPROTOOPT);
	CMT_ERR(ct, rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, NULL, sizeof(int)), EFAULT);
	CMT_ERR(ct, rfcntl(s, F_GETLK), EINVAL);
	CMT_OK(ct, rclose(s));
	CMT_OK(ct, rclose(six));
}

static void has_no_path(struct ct *ct, int s)
{
	struct ibv_path_data path[2];
	socklen_t len = sizeof(path);

	CMT_OK(ct, rgetsockopt(s, SOL_RDMA, RDMA_ROUTE, path, &len));
	CT_EQ(ct, len, 0);
	len = sizeof(path[0]) - 1;
	CMT_ERR(ct, rgetsockopt(s, SOL_RDMA, RDMA_ROUTE, path, &len), EINVAL);
}

/* The path that the caller wants is the connection's; its other end has one as well. */
static void route(struct ct *ct)
{
	struct ibv_path_data path = { .path.tclass = 12 }, is[2];
	socklen_t len = sizeof(is);
	struct rst r = { 0 };

	rst_open(ct, &r);
	if (ct->rank) {
		r.s = rsocket(r.family, SOCK_STREAM, 0);
		has_no_path(ct, r.s);
		CMT_ERR(ct, rsetsockopt(r.s, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path) - 1), EINVAL);
		CMT_OK(ct, rsetsockopt(r.s, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path)));
		CMT_OK(ct, rgetsockopt(r.s, SOL_RDMA, RDMA_ROUTE, is, &len));
		CT_EQ(ct, len, sizeof(path));
		CT_TRUE(ct, !memcmp(is, &path, sizeof(path)));
		CMT_OK(ct, rconnect(r.s, (struct sockaddr *)&r.at, rst_size(&r)));
	} else {
		r.s = raccept(r.listener, NULL, NULL);
		CT_TRUE(ct, r.s >= 0);
	}
	len = sizeof(is);
	CMT_OK(ct, rgetsockopt(r.s, SOL_RDMA, RDMA_ROUTE, is, &len));
	CT_EQ(ct, len, sizeof(is[0]));
	CT_EQ(ct, is[0].path.pkey, 0xffff);
	CT_EQ(ct, is[0].path.reversible_numpath, 0x81);
	if (ct->rank) {
		CT_EQ(ct, is[0].path.tclass, 12);
		CMT_ERR(ct, rsetsockopt(r.s, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path)), EINVAL);
	}
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* What a value becomes, and how many bytes of it are told where there is room for so many. */
static void traffic_as(struct ct *ct, int family, int type)
{
	static const int ints[][2] = { { 16, 16 },  { 0xbb, 0xbb },  { 255, 255 }, { 256, 0 },
				       { -2, 254 }, { 0x1b8, 0xb8 }, { -1, 255 },  { INT_MAX, 255 } };
	int s = rsocket(family, type, 0), most = type == SOCK_STREAM ? 0xfc : 0xff;
	const int tos[] = { IPPROTO_IP, IP_TOS }, tclass[] = { IPPROTO_IPV6, IPV6_TCLASS };
	uint8_t bytes[4] = { 0xb9, 1, 1, 1 };
	socklen_t len;

	CT_TRUE(ct, s >= 0);
	for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
		CMT_OK(ct, rsetsockopt(s, tos[0], tos[1], &ints[i][0], sizeof(int)));
		rst_option(ct, s, tos, ints[i][1] & most);
	}
	CMT_OK(ct, rsetsockopt(s, tos[0], tos[1], bytes, 0));
	rst_option(ct, s, tos, 0);
	for (len = 1; len < 4; len++) {
		CMT_OK(ct, rsetsockopt(s, tos[0], tos[1], bytes, len));
		rst_option(ct, s, tos, 0xb9 & most);
	}
	for (socklen_t room = 0; room < 4; room++) {
		memset(bytes, 7, sizeof(bytes));
		len = room;
		CMT_OK(ct, rgetsockopt(s, tos[0], tos[1], bytes, &len));
		CT_EQ(ct, len, room ? 1 : 0);
		CT_EQ(ct, bytes[0], room ? 0xb9 & most : 7);
		CT_EQ(ct, bytes[1], 7);
	}
	if (family == AF_INET) {
		CMT_ERR(ct, rsetsockopt(s, tclass[0], tclass[1], &most, sizeof(int)), ENOPROTOOPT);
	} else {
		rst_option(ct, s, tclass, 0); /* the other is IPv4's */
		CMT_OK(ct, rsetsockopt(s, tclass[0], tclass[1], &(int){ 0xbb }, sizeof(int)));
		rst_option(ct, s, tclass, 0xbb & most);
		CMT_ERR(ct, rsetsockopt(s, tclass[0], tclass[1], &(int){ 256 }, sizeof(int)), EINVAL);
		CMT_ERR(ct, rsetsockopt(s, tclass[0], tclass[1], &(int){ -2 }, sizeof(int)), EINVAL);
		CMT_ERR(ct, rsetsockopt(s, tclass[0], tclass[1], bytes, 1), EINVAL);
		rst_option(ct, s, tclass, 0xbb & most);
		CMT_OK(ct, rsetsockopt(s, tclass[0], tclass[1], &(int){ -1 }, sizeof(int)));
		rst_option(ct, s, tclass, 0);
		rst_option(ct, s, tos, 0xb9 & most);
	}
	CMT_OK(ct, rclose(s));
}

static void traffic(struct ct *ct)
{
	traffic_as(ct, AF_INET, SOCK_STREAM);
	traffic_as(ct, AF_INET, SOCK_DGRAM);
	traffic_as(ct, AF_INET6, SOCK_STREAM);
	traffic_as(ct, AF_INET6, SOCK_DGRAM);
}

const struct ct_case vt_rs_options[] = {
	{ "RS", "options", { options } },
	{ "RS", "options that are on or off", { switches } },
	{ "RS", "options of keepalive", { keepalive } },
	{ "RS", "SO_REUSEADDR when it listens", { reuse_late } },
	{ "RS", "traffic-class", { traffic } },
	{ "RS", "route", CT_TWO(route) },
	{ 0 },
};
