/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Groups by UDP multicast. A membership is a socket: a datagram comes to each socket that is bound to the group, so members of one
 * process or one host need no care of ours. The kernel loops datagrams back to members here, the sender among them. Datagrams
 * stay in their subnet (TTL 1); those longer than the way's MTU are cut and put together by IP.
 */
#include "base/log.h"
#include "engine/transport.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORTION 32 /* datagrams taken in at once */
#define BACKLOG (1 << 20)

extern const struct hd_caster hd_udp_caster;

struct udp_cast {
	struct hd_cast base; /* first */
	struct hd_watch watch;
	bool watched;
	struct sockaddr_storage group;
	socklen_t group_len;
	unsigned char buf[HD_CAST_MAX + 1]; /* a longer one shows itself by the last byte */
};

/* ---- interfaces ------------------------------------------------------------------------------------------------------------------ */

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
				  &((const struct sockaddr_in6 *)b)->sin6_addr);
}

static unsigned index_of(const struct ifaddrs *all, const struct sockaddr_storage *addr)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && same_address(i->ifa_addr, (const struct sockaddr *)addr))
			return if_nametoindex(i->ifa_name);
	return 0;
}

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* The address is named as well: the kernel might give the datagrams one of another interface. */
static int leave_by(int fd, const struct sockaddr_storage *from, unsigned index)
{
	struct ip_mreqn by = { .imr_ifindex = (int)index };
	int rc;

	if (from->ss_family == AF_INET6) {
		rc = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
		return rc ? rc : set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)index);
	}
	by.imr_address = ((const struct sockaddr_in *)from)->sin_addr;
	rc = set_int(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
	if (!rc && setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)) < 0)
		rc = -errno;
	return rc;
}

/* Only what we have joined, and where we have joined it: not what others of this host have. */
static int own_groups_only(int fd, int family)
{
	return family == AF_INET ? set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0)
				 : set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
}

static int join_at(int fd, const struct udp_cast *c, unsigned index)
{
	struct group_req req = { .gr_interface = index };

	memcpy(&req.gr_group, &c->group, sizeof(req.gr_group));
	if (setsockopt(fd, c->group.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &req,
		       sizeof(req)) < 0)
		return errno == EADDRINUSE ? 0 : -errno; /* two addresses of one interface */
	return 0;
}

static int use_interfaces(struct udp_cast *c, const struct hd_cast_want *want)
{
	int fd = c->watch.fd, rc = -ENODEV;
	struct ifaddrs *all;
	bool leaves = false;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (int i = 0; i < want->from_count; i++) {
		unsigned index = index_of(all, &want->from[i]);
		int one = index ? 0 : -ENODEV;

		if (!one && !leaves)
			one = leave_by(fd, &want->from[i], index);
		leaves = leaves || !one;
		if (!one && want->receives)
			one = join_at(fd, c, index);
		if (rc)
			rc = one; /* an interface may know no groups, as long as another does */
	}
	freeifaddrs(all);
	return rc;
}

/* ---- arriving -------------------------------------------------------------------------------------------------------------------- */

static bool take_one(struct udp_cast *c)
{
	struct hd_cast_head head;
	struct sockaddr_storage from;
	struct iovec iov[2] = { { &head, sizeof(head) }, { c->buf, sizeof(c->buf) } };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = iov, .msg_iovlen = 2
	};
	struct hd_arrived what = { .head = &head, .from = (struct sockaddr *)&from, .payload = c->buf };
	ssize_t n = recvmsg(c->watch.fd, &msg, MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN && errno != EBADF;
	if ((size_t)n < sizeof(head) || (size_t)n > sizeof(head) + HD_CAST_MAX || msg.msg_flags & MSG_TRUNC) {
		HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "a datagram of %zd bytes to a group is none of ours", n);
		return true;
	}
	what.len = (size_t)n - sizeof(head);
	if (hd_allowed(c->base.node, (struct sockaddr *)&from))
		hd_cast_arrived(&c->base, &what);
	return true;
}

static void readable(struct hd_watch *watch, uint32_t events)
{
	struct udp_cast *c = (struct udp_cast *)((char *)watch - offsetof(struct udp_cast, watch));

	for (int i = 0; i < PORTION && take_one(c); i++)
		;
}

/* ---- the contract ---------------------------------------------------------------------------------------------------------------- */

static int open_socket(struct udp_cast *c, const struct hd_cast_want *want)
{
	int family = want->group->sa_family;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	c->watch.fd = fd;
	set_int(fd, SOL_SOCKET, SO_RCVBUF, BACKLOG); /* as much of it as the host allows */
	rc = use_interfaces(c, want);
	if (!rc && want->receives) {
		rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		if (!rc)
			rc = own_groups_only(fd, family);
		if (!rc && bind(fd, (struct sockaddr *)&c->group, c->group_len) < 0)
			rc = -errno;
	}
	if (rc)
		close(fd);
	return rc;
}

static int udp_join(struct hd_node *node, const struct hd_cast_want *want, struct hd_cast **out)
{
	struct udp_cast *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->base = (struct hd_cast){ .caster = &hd_udp_caster, .node = node };
	c->group_len = want->group->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6);
	memcpy(&c->group, want->group, c->group_len);
	rc = open_socket(c, want);
	if (!rc) {
		c->watch.events = EPOLLIN;
		c->watch.fn = readable;
		rc = want->receives ? hd_watch_add(node, &c->watch) : 0;
		c->watched = want->receives;
		if (rc)
			close(c->watch.fd);
	}
	if (rc) {
		free(c);
		return rc;
	}
	*out = &c->base;
	return 0;
}

static void udp_cast(struct hd_cast *cast, const struct hd_cast_head *head, const struct iovec *iov,
		     int count)
{
	struct udp_cast *c = (struct udp_cast *)cast;
	struct iovec all[2 + HD_IOV_MAX] = { { (void *)(uintptr_t)head, sizeof(*head) } };
	struct msghdr msg = { .msg_name = &c->group,
			      .msg_namelen = c->group_len,
			      .msg_iov = all,
			      .msg_iovlen = 1 + (size_t)count };

	for (int i = 0; i < count; i++)
		all[1 + i] = iov[i];
	if (sendmsg(c->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
	    errno != ENOBUFS)
		HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "a datagram to a group is lost: %s", strerror(errno));
}

static void udp_leave(struct hd_cast *cast)
{
	struct udp_cast *c = (struct udp_cast *)cast;

	if (c->watched)
		hd_watch_remove(cast->node, &c->watch);
	if (c->watch.fd >= 0)
		close(c->watch.fd);
	free(c);
}

static void udp_forked(struct hd_cast *cast)
{
	struct udp_cast *c = (struct udp_cast *)cast;

	close(c->watch.fd);
	c->watch.fd = -1;
}

const struct hd_caster hd_udp_caster = {
	.name = "udp", .join = udp_join, .cast = udp_cast, .leave = udp_leave, .forked = udp_forked
};
