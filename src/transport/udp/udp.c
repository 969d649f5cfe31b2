/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Groups by UDP multicast. A membership is a socket: a datagram comes to each socket that is bound
 * to the group, so members of one process or one host need no care of ours. The kernel loops
 * datagrams back to members here, the sender among them. Datagrams stay in their subnet (TTL 1);
 * those longer than the way's MTU are cut and put together by IP. With a key file each is sealed
 * (base/seal.h).
 */
#include "base/advice.h"
#include "base/interfaces.h"
#include "base/log.h"
#include "base/seal.h"
#include "base/sockaddr.h"
#include "base/socket.h"
#include "engine/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORTION 32 /* datagrams taken in at once */
/*
 * Bytes, by the kernel's count: a queue of sends (128 of 4 KiB), each in pieces
 * as an Ethernet takes them.
 */
#define BACKLOG (1 << 21)

extern const struct hd_caster hd_udp_caster;

/* Room for one IPV6_PKTINFO. */
union with_info {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

struct udp_cast {
	struct hd_cast base; /* first */
	struct hd_watch watch;
	bool watched;
	struct sockaddr_storage group;
	socklen_t group_len;
	struct in6_pktinfo leaves; /* IPv6: our address, and the interface, of what we send */
	unsigned joined[HD_HELLO_ADDRS];
	int join_count;
	const struct hd_seal_module *seals; /* NULL: there is no key */
	struct hd_sealer *sealer;
	struct hd_seal_group *seal;
	/*
	 * A datagram as it comes and goes, head and all; a longer one shows itself by the last
	 * byte. Sealed: what is sent, too.
	 */
	unsigned char buf[HD_SEAL_MORE + sizeof(struct hd_cast_head) + HD_CAST_MAX + 1];
};

/* ---- interfaces ------------------------------------------------------------------------------ */

static bool udp_same_address(const struct sockaddr *a, const struct sockaddr *b)
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
		if (i->ifa_addr && udp_same_address(i->ifa_addr, (const struct sockaddr *)addr))
			return if_nametoindex(i->ifa_name);
	return 0;
}

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static const struct sockaddr_in6 *udp_group6(const struct udp_cast *c)
{
	return (const struct sockaddr_in6 *)&c->group;
}

/* Who names an interface means that one alone, whichever of them the endpoint has. */
static bool udp_is_meant(const struct udp_cast *c, unsigned index)
{
	return c->group.ss_family == AF_INET || !udp_group6(c)->sin6_scope_id ||
	       udp_group6(c)->sin6_scope_id == index;
}

/*
 * Not every interface has a route for groups of IPv6: lo has none. What is sent there
 * would be lost without a word.
 */
static int has_route(const struct udp_cast *c, unsigned index)
{
	struct sockaddr_in6 to = *udp_group6(c);
	int fd = hd_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	to.sin6_scope_id = index;
	rc = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)index);
	if (!rc && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/*
 * The address is named as well: the kernel might give the datagrams one of another interface, or to
 * a group of link scope one of that scope, which is in no subnet of HEDDLE_ALLOW.
 */
static int leave_by(struct udp_cast *c, const struct sockaddr_storage *from, unsigned index)
{
	struct ip_mreqn by = { .imr_ifindex = (int)index };
	int fd = c->watch.fd, rc;

	if (from->ss_family == AF_INET6) {
		c->leaves.ipi6_addr = ((const struct sockaddr_in6 *)from)->sin6_addr;
		c->leaves.ipi6_ifindex = index;
		return set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
	}
	by.imr_address = ((const struct sockaddr_in *)from)->sin_addr;
	rc = set_int(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
	if (!rc && setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)) < 0)
		rc = -errno;
	return rc;
}

/*
 * Only what we have joined, and where we have joined it: not what others of this host have.
 * See udp_is_ours for IPv6.
 */
static int own_groups_only(int fd, int family)
{
	int rc;

	if (family == AF_INET)
		return set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	rc = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	return rc ? rc : set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

static int join_at(struct udp_cast *c, unsigned index)
{
	struct group_req req = { .gr_interface = index };

	memcpy(&req.gr_group, &c->group, sizeof(req.gr_group));
	if (setsockopt(c->watch.fd, c->group.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
		       MCAST_JOIN_GROUP, &req, sizeof(req)) < 0)
		return errno == EADDRINUSE ? 0 : -errno; /* two addresses of one interface */
	c->joined[c->join_count++] = index;
	return 0;
}

static int use_interface(struct udp_cast *c, const struct hd_cast_want *want,
			 const struct sockaddr_storage *from, unsigned index, bool *leaves)
{
	int rc = c->group.ss_family == AF_INET6 ? has_route(c, index) : 0;

	if (!rc && !*leaves)
		rc = leave_by(c, from, index);
	*leaves = *leaves || !rc;
	return !rc && want->receives ? join_at(c, index) : rc;
}

static int use_interfaces(struct udp_cast *c, const struct hd_cast_want *want)
{
	int rc = -EADDRNOTAVAIL;
	struct ifaddrs *all;
	bool leaves = false;

	if (hd_interfaces(&all) < 0)
		return -errno;
	for (int i = 0; i < want->from_count; i++) {
		unsigned index = index_of(all, &want->from[i]);
		int one = -ENODEV;

		if (!udp_is_meant(c, index))
			continue;
		if (index)
			one = use_interface(c, want, &want->from[i], index, &leaves);
		if (rc)
			rc = one; /* an interface may know no groups, as long as another does */
	}
	hd_interfaces_free(all);
	return rc;
}

/* ---- arriving -------------------------------------------------------------------------------- */

/*
 * Was it sent to the group, and did it come by an interface that we have joined it at? For
 * IPv4 the kernel has looked.
 */
static bool udp_is_ours(const struct udp_cast *c, struct msghdr *msg)
{
	struct in6_pktinfo info;

	if (c->group.ss_family == AF_INET)
		return true;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(msg); at; at = CMSG_NXTHDR(msg, at)) {
		if (at->cmsg_level != IPPROTO_IPV6 || at->cmsg_type != IPV6_PKTINFO)
			continue;
		memcpy(&info, CMSG_DATA(at), sizeof(info));
		for (int i = 0; i < c->join_count; i++)
			if (info.ipi6_ifindex == c->joined[i])
				return IN6_ARE_ADDR_EQUAL(&info.ipi6_addr, &udp_group6(c)->sin6_addr);
	}
	return false;
}

/*
 * What a sealed datagram holds, in its place; -1: it is nobody's who has the key;
 * -EALREADY: it has come before.
 */
static ssize_t udp_unwrap(struct udp_cast *c, size_t len)
{
	ssize_t n = c->seals->unwrap(c->seal, c->buf, len, c->buf, sizeof(c->buf));

	return n >= 0 || n == -EALREADY ? n : -1;
}

static bool take_one(struct udp_cast *c)
{
	struct hd_cast_head head;
	struct sockaddr_storage from;
	struct iovec iov = { c->buf, sizeof(c->buf) - (c->seal ? 0 : HD_SEAL_MORE) };
	union with_info control;
	struct msghdr msg = { .msg_name = &from,
			      .msg_namelen = sizeof(from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct hd_arrived what = { .head = &head,
				   .from = (struct sockaddr *)&from,
				   .payload = c->buf + sizeof(head) };
	ssize_t n = recvmsg(c->watch.fd, &msg, MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN && errno != EBADF;
	if (!udp_is_ours(c, &msg))
		return true;
	if (c->seal)
		n = udp_unwrap(c, (size_t)n);
	if (n == -EALREADY)
		return true;
	if (n < (ssize_t)sizeof(head) || (size_t)n > sizeof(head) + HD_CAST_MAX ||
	    msg.msg_flags & MSG_TRUNC) {
		HD_LOG_EVERY_MS(
			1000, HD_LOG_WARN,
			"a datagram to a group is none of ours: another program uses the address and port, or another version of Heddle: HEDDLE_GROUP_PORT chooses another port, on all hosts");
		return true;
	}
	memcpy(&head, c->buf, sizeof(head));
	what.len = (size_t)n - sizeof(head);
	if (hd_allowed(c->base.node, (struct sockaddr *)&from))
		hd_cast_arrived(&c->base, &what);
	return true;
}

static void udp_readable(struct hd_watch *watch, uint32_t events)
{
	struct udp_cast *c = (struct udp_cast *)((char *)watch - offsetof(struct udp_cast, watch));

	for (int i = 0; i < PORTION && take_one(c); i++)
		;
}

/* ---- the contract ---------------------------------------------------------------------------- */

/*
 * A group of link scope is bound only together with one interface. We may have several, so it is
 * told by udp_is_ours alone.
 */
static int bind_to_group(const struct udp_cast *c)
{
	struct sockaddr_storage at = c->group;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at;
	int rc = 0;

	if (at.ss_family == AF_INET6) {
		in6->sin6_scope_id = 0;
		rc = set_int(c->watch.fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		if (IN6_IS_ADDR_MC_LINKLOCAL(&in6->sin6_addr) || IN6_IS_ADDR_MC_NODELOCAL(&in6->sin6_addr))
			in6->sin6_addr = in6addr_any;
	}
	if (!rc && bind(c->watch.fd, (struct sockaddr *)&at, c->group_len) < 0)
		rc = -errno;
	return rc;
}

/*
 * A queue of sends is posted at once, by somebody who believes in a network that keeps up;
 * datagrams that leave by a device keep their room until it has sent them, those that came until we
 * read. A program that may sets what it wants, the others get as much of it as the host allows
 * (socket(7)).
 */
static void make_room(int fd)
{
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, BACKLOG))
		set_int(fd, SOL_SOCKET, SO_RCVBUF, BACKLOG);
	if (set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, BACKLOG))
		set_int(fd, SOL_SOCKET, SO_SNDBUF, BACKLOG);
}

static int open_socket(struct udp_cast *c, const struct hd_cast_want *want)
{
	int family = want->group->sa_family;
	int fd = hd_socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	c->watch.fd = fd;
	make_room(fd);
	rc = use_interfaces(c, want);
	if (!rc && want->receives) {
		rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		if (!rc)
			rc = own_groups_only(fd, family);
		if (!rc)
			rc = bind_to_group(c);
	}
	if (rc)
		close(fd);
	return rc;
}

/* A group's datagrams are for no other group, whatever address they are sent to. */
static int udp_seal_open(struct udp_cast *c)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&c->group;
	uint8_t name[18] = { 0 };
	int rc = hd_sealer_open((const uint8_t *)hd_node_id(c->base.node), &c->seals, &c->sealer);

	if (rc < 0 || !c->seals)
		return rc;
	memcpy(name, &in->sin_port, 2); /* it stands there in both families */
	if (c->group.ss_family == AF_INET6)
		memcpy(name + 2, &udp_group6(c)->sin6_addr, 16);
	else
		memcpy(name + 2, &in->sin_addr, 4);
	c->seal = c->seals->group(c->sealer, name, sizeof(name));
	return c->seal ? 0 : -ENOMEM;
}

static void udp_free(struct udp_cast *c)
{
	if (c->seals) {
		c->seals->group_end(c->seal);
		c->seals->close(c->sealer);
	}
	free(c);
}

#define GROUP_ROUTE ": that interface has no route for groups (`ip route add 224.0.0.0/4 dev …`)"

static const char *join_advice(int err)
{
	switch (err) {
	case EADDRINUSE:
		return ": another program has its address and port, as `ss -ulnp` shows: HEDDLE_GROUP_PORT chooses another port, on all hosts";
	case ENOBUFS:
		return ": raise sysctl net.ipv4.igmp_max_memberships";
	case ENODEV:
	case EADDRNOTAVAIL:
		return ": no interface of HEDDLE_ADDR can: see `ip address`";
	case ENETUNREACH:
		return GROUP_ROUTE;
	default:
		return hd_advice(err);
	}
}

static void udp_unjoined(const struct sockaddr *group, int err)
{
	enum hd_log_level level = err == EADDRINUSE || hd_is_short(err) ? HD_LOG_WARN : HD_LOG_INFO;
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(group->sa_family,
		  group->sa_family == AF_INET
			  ? (const void *)&((const struct sockaddr_in *)group)->sin_addr
			  : (const void *)&((const struct sockaddr_in6 *)group)->sin6_addr,
		  text, sizeof(text));
	HD_LOG_EVERY_MS(1000, level, "the group %s cannot be joined: %s%s", text, strerror(err),
			join_advice(err));
}

static int udp_join(struct hd_node *node, const struct hd_cast_want *want, struct hd_cast **out)
{
	struct udp_cast *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->base = (struct hd_cast){ .caster = &hd_udp_caster, .node = node };
	c->group_len = hd_sockaddr_size(want->group);
	memcpy(&c->group, want->group, c->group_len);
	rc = udp_seal_open(c);
	if (!rc)
		rc = open_socket(c, want);
	if (!rc) {
		c->watch.events = EPOLLIN;
		c->watch.fn = udp_readable;
		rc = want->receives ? hd_watch_add(node, &c->watch) : 0;
		c->watched = want->receives;
		if (rc)
			close(c->watch.fd);
	}
	if (rc) {
		udp_unjoined(want->group, -rc);
		udp_free(c);
		return rc;
	}
	*out = &c->base;
	return 0;
}

static void put_info(struct msghdr *msg, union with_info *control, const struct in6_pktinfo *info)
{
	memset(control, 0, sizeof(*control));
	msg->msg_control = control;
	msg->msg_controllen = sizeof(*control);
	control->head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(*info)),
					  .cmsg_level = IPPROTO_IPV6,
					  .cmsg_type = IPV6_PKTINFO };
	memcpy(CMSG_DATA(&control->head), info, sizeof(*info));
}

/*
 * The message becomes one sealed piece. -EFAULT: memory of it is gone; another
 * negative errno: it is lost.
 */
static int udp_wrap(struct udp_cast *c, struct msghdr *msg)
{
	uint64_t len = hd_iov_len(msg->msg_iov, (int)msg->msg_iovlen);
	struct iovec plain = { c->buf + HD_SEAL_HEAD, len };
	ssize_t n;

	/* gathered first: memory of the program's may be gone, and OpenSSL does not look */
	if (len > sizeof(c->buf) - HD_SEAL_MORE)
		return -EMSGSIZE;
	if (hd_iov_drain(msg->msg_iov, (int)msg->msg_iovlen, plain.iov_base, len) < 0)
		return -EFAULT;
	n = c->seals->wrap(c->seal, &plain, 1, c->buf, sizeof(c->buf));
	if (n < 0)
		return -EIO;
	msg->msg_iov[0] = (struct iovec){ c->buf, (size_t)n };
	msg->msg_iovlen = 1;
	return 0;
}

static int udp_cast(struct hd_cast *cast, const struct hd_cast_head *head, const struct iovec *iov, int count)
{
	struct udp_cast *c = (struct udp_cast *)cast;
	struct iovec all[2 + HD_IOV_MAX] = { { (void *)(uintptr_t)head, sizeof(*head) } };
	union with_info control;
	struct msghdr msg = { .msg_name = &c->group,
			      .msg_namelen = c->group_len,
			      .msg_iov = all,
			      .msg_iovlen = 1 + (size_t)count };
	int rc;

	for (int i = 0; i < count; i++)
		all[1 + i] = iov[i];
	rc = c->seal ? udp_wrap(c, &msg) : 0;
	if (rc)
		return rc == -EFAULT ? rc : 0;
	if (c->group.ss_family == AF_INET6)
		put_info(&msg, &control, &c->leaves);
	if (sendmsg(c->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EAGAIN ||
	    errno == ENOBUFS)
		return 0;
	if (errno == EFAULT)
		return -EFAULT;
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "a datagram to a group is lost: %s%s", strerror(errno),
			errno == ENETUNREACH ? GROUP_ROUTE : hd_advice(errno));
	return 0;
}

static void udp_leave(struct hd_cast *cast)
{
	struct udp_cast *c = (struct udp_cast *)cast;

	if (c->watched)
		hd_watch_remove(cast->node, &c->watch);
	if (c->watch.fd >= 0)
		close(c->watch.fd);
	udp_free(c);
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
