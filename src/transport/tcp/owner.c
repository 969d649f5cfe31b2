/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Whose socket is at the other end of a connection within this host, or listens at an address of
 * it: the kernel tells everybody, by sock_diag(7), and where a container refuses that, or the
 * kernel lacks it, by /proc/net/tcp. A socket that nobody has accepted yet has no owner and is told
 * to be root's, so this is asked when the other end has said something. So is one that its process
 * has closed, though what it has said still comes: it is nobody's.
 */
#include "base/clock.h"
#include "base/proc.h"
#include "base/socket.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * A socket is asked for by its own address and the one that it is connected to; for one that
 * listens the latter is zero.
 */
struct asked {
	struct sockaddr_storage own, other;
};

struct diag_request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 what;
};

static uint16_t port_of(const struct sockaddr_storage *sa)
{
	return ((const struct sockaddr_in *)sa)->sin_port; /* it stands there in both families */
}

static void diag_address(const struct sockaddr_storage *sa, __be32 out[4])
{
	if (sa->ss_family == AF_INET6)
		memcpy(out, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	else
		memcpy(out, &((const struct sockaddr_in *)sa)->sin_addr, 4);
}

static void diag_fill(struct diag_request *r, const struct asked *a)
{
	*r = (struct diag_request){
		.head = { .nlmsg_len = sizeof(*r),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.what = { .sdiag_family = (uint8_t)a->own.ss_family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = ~0u,
			  .id = { .idiag_sport = port_of(&a->own),
				  .idiag_dport = port_of(&a->other),
				  .idiag_if = hd_sockaddr_scope((const struct sockaddr *)&a->own),
				  .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	diag_address(&a->own, r->what.id.idiag_src);
	diag_address(&a->other, r->what.id.idiag_dst);
}

/* What the kernel says of a socket. */
struct owner {
	uid_t uid;
	uint32_t inode; /* 0: nobody has accepted it yet, or has it any more */
};

/* 0, -ENOENT: there is none, or another negative errno: the kernel does not tell. */
static int diag_ask(int fd, const struct asked *a, struct owner *out)
{
	struct diag_request r;
	union {
		struct nlmsghdr head;
		char room[1024];
	} answer;
	const struct inet_diag_msg *found = NLMSG_DATA(&answer.head);
	ssize_t n;

	diag_fill(&r, a);
	if (send(fd, &r, sizeof(r), 0) < 0)
		return -errno;
	/* the kernel has answered before send(2) returns */
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)sizeof(answer.head))
		return n < 0 ? -errno : -EPROTO;
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)NLMSG_DATA(&answer.head))->error == -ENOENT ? -ENOENT
											     : -EPROTO;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*found)))
		return -EPROTO;
	if (found->id.idiag_dport != port_of(&a->other))
		/* for one that it has forgotten the kernel names who listens at its port now */
		return -ENOENT;
	*out = (struct owner){ found->idiag_uid, found->idiag_inode };
	return 0;
}

static int by_diag(const struct asked *a, struct owner *out)
{
	int fd = hd_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG), rc;

	if (fd < 0)
		return -errno;
	rc = diag_ask(fd, a, out);
	close(fd);
	return rc;
}

/* "0100007F:1F90", as /proc/net/tcp has addresses: words of the host's byte order. */
static int table_address(const struct sockaddr_storage *sa, char *out, size_t size)
{
	__be32 words[4] = { 0 };
	int n = 0;

	diag_address(sa, words);
	for (int i = 0; i < (sa->ss_family == AF_INET6 ? 4 : 1); i++)
		n += snprintf(out + n, size - (size_t)n, "%08X", words[i]);
	return n + snprintf(out + n, size - (size_t)n, ":%04X", ntohs(port_of(sa)));
}

static int table_find(const struct asked *a, struct owner *out)
{
	FILE *f = fopen(a->own.ss_family == AF_INET6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
	char own[48], other[48], line[256], at[48], to[48];
	int rc = -ENOENT;

	if (!f)
		return -errno;
	table_address(&a->own, own, sizeof(own));
	table_address(&a->other, other, sizeof(other));
	while (rc == -ENOENT && fgets(line, sizeof(line), f))
		if (sscanf(line, " %*d: %47s %47s %*s %*s %*s %*s %u %*s %u", at, to, &out->uid,
			   &out->inode) == 4 &&
		    !strcmp(at, own) && !strcmp(to, other))
			rc = 0;
	fclose(f);
	return rc;
}

/*
 * Reading the table takes as long as the host has sockets, and who calls without end has us read it
 * each time: so a twentieth of the time goes into that, but for what comes first. Relaxed: of two
 * threads' readings one may not count.
 */
#define TABLE_PART 20u
#define TABLE_AHEAD (TABLE_PART * 200 * HD_NS_PER_MS)
static _Atomic uint64_t table_paid; /* until when that is so, for what has been read */

/* As table_find; -EBUSY: it is not looked at. */
static int by_table(const struct asked *a, struct owner *out)
{
	uint64_t now = hd_now_ns(), paid = atomic_load_explicit(&table_paid, memory_order_relaxed), before;
	int rc;

	if (paid > now + TABLE_AHEAD)
		return -EBUSY;
	before = hd_thread_ns();
	rc = table_find(a, out);
	paid = (paid > now ? paid : now) + TABLE_PART * (hd_thread_ns() - before);
	atomic_store_explicit(&table_paid, paid, memory_order_relaxed);
	return rc;
}

/*
 * A kernel without tcp_diag says of every socket that there is none, and looks for that module anew
 * each time. So it is believed when it has known a socket once, and is not asked any more when the
 * table has one that it does not know. Relaxed: whoever sees the news late asks once more.
 */
enum diag {
	DIAG_UNTRIED,
	DIAG_TELLS,
	DIAG_LACKS
};
static _Atomic enum diag diag;

static int owner_of(const struct asked *a, struct owner *out)
{
	enum diag known = atomic_load_explicit(&diag, memory_order_relaxed);
	int rc = known == DIAG_LACKS ? -ENOENT : by_diag(a, out), in_table;

	if (!rc && known == DIAG_UNTRIED)
		atomic_store_explicit(&diag, DIAG_TELLS, memory_order_relaxed);
	if (!rc || (rc == -ENOENT && known == DIAG_TELLS))
		return rc;
	in_table = by_table(a, out);
	if (!in_table && rc == -ENOENT)
		atomic_store_explicit(&diag, DIAG_LACKS, memory_order_relaxed);
	return in_table;
}

/* An IPv4 address as a socket of IPv6 has it. */
static void mapped(struct sockaddr_storage *sa)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (sa->ss_family != AF_INET)
		return;
	memcpy(&in, sa, sizeof(in));
	in6.sin6_port = in.sin_port;
	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = in.sin_port || in.sin_addr.s_addr ? 0xff : 0;
	memcpy(&in6.sin6_addr.s6_addr[12], &in.sin_addr, 4);
	memcpy(sa, &in6, sizeof(in6));
}

/* Of either family: a socket of IPv6 has connections of IPv4 too. */
static int owner_in_both(struct asked *a, struct owner *out)
{
	int rc = owner_of(a, out);

	if (rc == -ENOENT && a->own.ss_family == AF_INET) {
		mapped(&a->own);
		mapped(&a->other);
		rc = owner_of(a, out);
	}
	return rc;
}

/* none: where the kernel knows no such socket, or its table is not looked at */
static uint64_t realm_of(struct asked *a, enum hd_realm none)
{
	struct owner owner;
	int rc = owner_in_both(a, &owner);

	if (rc)
		return rc == -ENOENT || rc == -EBUSY ? none : HD_REALM_HERE;
	return !owner.inode && !owner.uid ? HD_REALM_GONE : hd_realm_of_user(owner.uid);
}

/* The socket at the other end of this one. */
static int owner_asked(const struct hd_tcp_link *l, struct asked *a)
{
	socklen_t own = sizeof(a->own), other = sizeof(a->other);

	*a = (struct asked){ .own.ss_family = AF_UNSPEC, .other.ss_family = AF_UNSPEC };
	if (getpeername(l->watch.fd, (struct sockaddr *)&a->own, &own) < 0 ||
	    getsockname(l->watch.fd, (struct sockaddr *)&a->other, &other) < 0)
		return -errno;
	hd_tcp_addr_plain(&a->own);
	hd_tcp_addr_plain(&a->other);
	return 0;
}

uint64_t hd_tcp_realm(struct hd_link *link)
{
	struct asked a;

	if (!link->is_local)
		return HD_REALM_FAR;
	/*
	 * it may have been forgotten, or the kernel translates addresses: he
	 * is somebody of this host
	 */
	return owner_asked(tcp_link(link), &a) ? HD_REALM_HERE : realm_of(&a, HD_REALM_HERE);
}

int hd_tcp_holder(struct hd_link *link, struct hd_holder *out)
{
	struct owner owner;
	struct asked a;

	if (!link->is_local || owner_asked(tcp_link(link), &a) || owner_in_both(&a, &owner) || !owner.inode)
		return -EOPNOTSUPP;
	*out = (struct hd_holder){ .socket = owner.inode };
	return 0;
}

uint64_t hd_tcp_realm_at(struct hd_port *port, const struct sockaddr *addr)
{
	struct asked a = { .other.ss_family = addr->sa_family };

	memcpy(&a.own, addr, hd_sockaddr_size(addr));
	hd_tcp_addr_plain(&a.own);
	a.other.ss_family = a.own.ss_family;
	/*
	 * who has seen to it that it is not told is told from others no more,
	 * and would have every name
	 */
	return realm_of(&a, HD_REALM_GONE);
}
