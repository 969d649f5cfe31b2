/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Sockets: options and addresses. */
#include "base/advice.h"
#include "base/config.h"
#include "base/interfaces.h"
#include "base/log.h"
#include "base/socket.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#define PROBES 3 /* unanswered questions after which a silent peer is given up */

int hd_tcp_sock_open(int family)
{
	int fd = hd_socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

	return fd < 0 ? -errno : fd;
}

static void set(int fd, int level, int name, int value)
{
	/* a kernel without one of these still moves data, only deaths are noticed later */
	if (setsockopt(fd, level, name, &value, sizeof(value)) < 0)
		HD_LOG_EVERY_MS(60000, HD_LOG_INFO, "socket option %d of level %d refused: %s%s", name, level,
				strerror(errno), hd_advice(errno));
}

void hd_tcp_sock_probe(int fd, bool often)
{
	unsigned keepalive = hd_config_ms(HD_SET_KEEPALIVE);
	/* the kernel counts whole ones */
	int seconds = often ? 1 : (int)((keepalive + 999) / 1000);

	if (!keepalive)
		return;
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
}

bool hd_tcp_sock_owed(int fd, uint32_t *heard_ms)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    (!info.tcpi_unacked && info.tcpi_probes < 2))
		return false;
	*heard_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv
								       : info.tcpi_last_data_recv;
	return true;
}

void hd_tcp_sock_tune(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)hd_config_ms(HD_SET_PEER_TIMEOUT));
	if (!hd_config_ms(HD_SET_KEEPALIVE))
		return;
	hd_tcp_sock_probe(fd, false);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void hd_tcp_addr_plain(struct sockaddr_storage *addr)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (addr->ss_family != AF_INET6)
		return;
	memcpy(&in6, addr, sizeof(in6));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	in.sin_port = in6.sin6_port;
	memcpy(&in.sin_addr, &in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &in, sizeof(in));
}

/* Same host address? Ports do not matter; both plain. */
static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)a)->sin_addr,
			       &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr));
	return a->sa_family == AF_INET6 && hd_sockaddr_scope(a) == hd_sockaddr_scope(b) &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

static bool is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return addr->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static bool on_own_interface(const struct sockaddr *addr)
{
	struct ifaddrs *list;
	bool found = false;

	if (hd_interfaces(&list) < 0)
		return false;
	for (struct ifaddrs *i = list; i && !found; i = i->ifa_next)
		found = i->ifa_addr && same_host(i->ifa_addr, addr);
	hd_interfaces_free(list);
	return found;
}

/* Our own address on this connection. */
static bool own_name(int fd, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	if (getsockname(fd, (struct sockaddr *)out, &len) < 0)
		return false;
	hd_tcp_addr_plain(out);
	return true;
}

bool hd_tcp_sock_local(int fd, const struct sockaddr *peer)
{
	struct sockaddr_storage own;

	if (is_loopback(peer))
		return true;
	if (own_name(fd, &own) && same_host((struct sockaddr *)&own, peer))
		return true;
	return on_own_interface(peer);
}

bool hd_tcp_sock_to_self(int fd)
{
	struct sockaddr_storage own, peer = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(peer);

	if (!own_name(fd, &own) || getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
		return false;
	hd_tcp_addr_plain(&peer);
	/* the port stands at the same place in both families */
	return same_host((struct sockaddr *)&own, (struct sockaddr *)&peer) &&
	       ((struct sockaddr_in *)&own)->sin_port == ((struct sockaddr_in *)&peer)->sin_port;
}

void hd_tcp_lacks(int err, const char *doing, const char *advice)
{
	HD_LOG_EVERY_MS(10000, HD_LOG_WARN, "%s: %s%s", doing, strerror(err), advice);
}
