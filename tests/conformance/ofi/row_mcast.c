/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M15: FI_MULTICAST, fi_msg(3), and fi_join, fi_cm(3). */
#include "ct.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEY 0x6d63
#define LEN 700

/* A case's argument: the type of its endpoints, and more. */
#define TYPE(arg) ((enum fi_ep_type)((arg)&0xff))
#define LINK 0x100  /* a group whose datagrams leave no link */
#define NAMED 0x200 /* and its interface is named */

/* A group of its own for each case: rank 0 draws its port. */
struct scene {
	struct ct_dom dom;
	struct ct_ep e;
	struct fid_eq *eq;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} group;
};

/* The interface that has this rank's address. */
static unsigned own_interface(struct ct *ct)
{
	struct ifaddrs *all, *i;
	struct in6_addr own;
	unsigned index = 0;

	if (!ct_node(ct) || inet_pton(AF_INET6, ct_node(ct), &own) != 1)
		ct_unsupported(ct, "it needs -n with an IPv6 address");
	CT_OK(ct, getifaddrs(&all));
	for (i = all; i && !index; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6 &&
		    !memcmp(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, &own, sizeof(own)))
			index = if_nametoindex(i->ifa_name);
	freeifaddrs(all);
	if (!index)
		ct_unsupported(ct, "%s is the address of no interface", ct_node(ct));
	return index;
}

static void draw_group(struct ct *ct, struct scene *s)
{
	in_port_t port = htons(ct_port(0));

	memset(&s->group, 0, sizeof(s->group));
	if (s->dom.info->addr_format == FI_SOCKADDR_IN6) {
		s->group.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
		inet_pton(AF_INET6, ct->cs->arg & LINK ? "ff12::4d43:43" : "ff15::4d43:43",
			  &s->group.in6.sin6_addr);
		if (ct->cs->arg & NAMED)
			s->group.in6.sin6_scope_id = own_interface(ct);
		return;
	}
	if (ct->cs->arg & NAMED)
		ct_unsupported(ct, "it needs -n with an IPv6 address of an interface");
	s->group.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	inet_pton(AF_INET, ct->cs->arg & LINK ? "224.0.0.77" : "239.255.77.67", &s->group.in.sin_addr);
}

static void open_scene_with(struct ct *ct, struct scene *s, uint64_t caps, uint64_t op_flags)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTICAST | FI_SOURCE | caps,
				.type = TYPE(ct->cs->arg),
				.tx_op_flags = op_flags,
				.disabled = true };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	ct_open(ct, &s->dom, &want);
	if (s->dom.info->addr_format != FI_SOCKADDR_IN && s->dom.info->addr_format != FI_SOCKADDR_IN6)
		ct_unsupported(ct, "names are not IP addresses");
	ct_ep_open(&s->dom, &s->e);
	CT_OK(ct, fi_eq_open(s->dom.fabric, &attr, &s->eq, NULL));
	CT_OK(ct, fi_ep_bind(s->e.ep, &s->eq->fid, 0));
	ct_ep_enable(&s->e);
	ct_join(&s->e);
	draw_group(ct, s);
}

static void open_scene(struct ct *ct, struct scene *s)
{
	open_scene_with(ct, s, 0, 0);
}

static void close_scene(struct ct *ct, struct scene *s)
{
	ct_sync(ct, &s->e);
	CT_OK(ct, fi_close(&s->e.ep->fid));
	CT_OK(ct, fi_close(&s->eq->fid));
	CT_OK(ct, fi_close(&s->e.txcq->fid));
	CT_OK(ct, fi_close(&s->e.av->fid));
	ct_close(&s->dom);
	free(s->e.stash);
}

static struct fid_mc *join(struct ct *ct, struct scene *s, uint64_t flags)
{
	double end = ct_deadline(ct);
	struct fi_eq_entry entry;
	struct fid_mc *mc;
	uint32_t event;
	ssize_t rc;

	rc = fi_join(s->e.ep, &s->group, flags, &mc, CTX(77));
	if (rc == -FI_ENETUNREACH)
		ct_unsupported(ct, "no interface of %s has a route for such groups", ct_node(ct));
	CT_OK(ct, rc);
	while ((rc = fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN) {
		ct_late(ct, end, "FI_JOIN_COMPLETE");
		ct_pause();
	}
	CT_EQ(ct, rc, sizeof(entry));
	CT_EQ(ct, event, FI_JOIN_COMPLETE);
	CT_TRUE(ct, entry.fid == &mc->fid && entry.context == CTX(77));
	CT_TRUE(ct, fi_mc_addr(mc) != FI_ADDR_NOTAVAIL);
	return mc;
}

static ssize_t cast_msg(struct scene *s, fi_addr_t to, const void *buf, size_t len, uint64_t flags)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)buf, len / 2 },
				{ (char *)(uintptr_t)buf + len / 2, len - len / 2 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .addr = to, .context = CTX(1), .data = 5 };

	return fi_sendmsg(s->e.ep, &m, flags);
}

/* Immediate data travels along where the provider has it. */
static uint64_t with_data(const struct scene *s)
{
	return s->dom.info->domain_attr->cq_data_size ? FI_REMOTE_CQ_DATA : 0;
}

static void cast_to(struct scene *s, struct fid_mc *mc, const void *buf, size_t len)
{
	struct ct_comp c;

	CT_POST(&s->e, cast_msg(s, fi_mc_addr(mc), buf, len, FI_MULTICAST | FI_COMPLETION | with_data(s)));
	ct_of(&s->e, CTX(1), &c);
	CT_EQ(s->e.ct, c.err, 0);
	CT_EQ(s->e.ct, c.flags & (FI_SEND | FI_MSG | FI_MULTICAST), FI_SEND | FI_MSG | FI_MULTICAST);
}

static void hear(struct ct *ct, struct scene *s, void *buf, void *ctx)
{
	struct ct_comp c;

	ct_of(&s->e, ctx, &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.len, LEN);
	CT_EQ(ct, c.flags & (FI_RECV | FI_MSG | FI_MULTICAST | FI_REMOTE_CQ_DATA),
	      FI_RECV | FI_MSG | FI_MULTICAST | with_data(s));
	if (with_data(s))
		CT_EQ(ct, c.data, 5);
	ct_verify(ct, buf, LEN, KEY, "what was said to the group");
}

/* A scene with a membership and something to say; and the end of both. */
static struct fid_mc *begin(struct ct *ct, struct scene *s, uint64_t flags, char *out)
{
	open_scene(ct, s);
	ct_fill(out, LEN, KEY);
	return join(ct, s, flags);
}

static void end(struct ct *ct, struct scene *s, struct fid_mc *mc)
{
	CT_OK(ct, fi_close(&mc->fid));
	close_scene(ct, s);
}

/* One says it, all hear it: the one that says it, and the other processes. */
static void all_hear(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	char out[LEN], in[LEN];

	mc = begin(ct, &s, 0, out);
	ct_recv(&s.e, in, sizeof(in), CTX(2));
	ct_sync(ct, &s.e);
	if (ct->rank == 0)
		cast_to(&s, mc, out, sizeof(out));
	hear(ct, &s, in, CTX(2));
	ct_quiet(&s.e, 50, "it was said once");
	end(ct, &s, mc);
}

#define TALK 20

/* So that everybody knows whom a datagram is from: a message to each of the others first. */
static void greet(struct ct *ct, struct scene *s)
{
	char out[8] = "", in[CT_PROCS][8];

	for (int r = 0; r < ct->procs; r++)
		if (r != ct->rank)
			ct_recv(&s->e, in[r], 8, CTX(50));
	ct_sync(ct, &s->e);
	for (int r = 0; r < ct->procs; r++)
		if (r != ct->rank) {
			ct_send(&s->e, r, out, 8, CTX(51));
			ct_done(&s->e, CTX(51));
		}
	for (int r = 0; r < ct->procs - 1; r++)
		ct_done(&s->e, CTX(50));
	ct_sync(ct, &s->e);
}

/*
 * All talk, and all hear everything once, with whom it is from; what one
 * says is heard in its order.
 */
static void all_talk(struct ct *ct)
{
	size_t n = (size_t)ct->procs * TALK, said[CT_PROCS] = { 0 };
	char(*in)[64] = ct_alloc(ct, n * 64), out[64];
	struct scene s;
	struct fid_mc *mc;

	open_scene(ct, &s);
	greet(ct, &s);
	mc = join(ct, &s, 0);
	for (size_t i = 0; i < n; i++)
		ct_recv(&s.e, in[i], 64, CTX(100 + i));
	ct_sync(ct, &s.e);
	for (size_t i = 0; i < TALK; i++) {
		out[0] = (char)ct->rank;
		out[1] = (char)i;
		cast_to(&s, mc, out, 64);
	}
	for (size_t i = 0; i < n; i++) {
		struct ct_comp c;
		int from;

		ct_of(&s.e, CTX(100 + i), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, 64);
		from = in[i][0];
		CT_TRUE(ct, from >= 0 && from < ct->procs);
		CT_EQ(ct, in[i][1], said[from]++);
		CT_EQ(ct, c.src, s.e.addr[from]); /* one's own is not in the AV */
	}
	ct_quiet(&s.e, 20, "it was said once");
	free(in);
	end(ct, &s, mc);
}

/* Rank 0 hears whoever says it, the one after the other, whatever interface it comes by. */
static void one_hears(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	char out[LEN], in[LEN];

	mc = begin(ct, &s, ct->rank ? FI_SEND : FI_RECV, out);
	for (int r = 1; r < ct->procs; r++) {
		if (!ct->rank)
			ct_recv(&s.e, in, sizeof(in), CTX(2));
		ct_sync(ct, &s.e);
		if (ct->rank == r)
			cast_to(&s, mc, out, sizeof(out));
		else if (!ct->rank)
			hear(ct, &s, in, CTX(2));
		ct_sync(ct, &s.e);
	}
	ct_quiet(&s.e, 20, "each was said once");
	end(ct, &s, mc);
}

/* FI_SEND: a member that says but does not hear; FI_RECV: one that hears and may not say. */
static void halves(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	char out[LEN], in[LEN];

	mc = begin(ct, &s, ct->rank ? FI_RECV : FI_SEND, out);
	ct_recv(&s.e, in, sizeof(in), CTX(2));
	ct_sync(ct, &s.e);
	if (ct->rank) {
		CT_EQ(ct, cast_msg(&s, fi_mc_addr(mc), out, LEN, FI_MULTICAST), -FI_EINVAL);
		hear(ct, &s, in, CTX(2));
	} else {
		cast_to(&s, mc, out, sizeof(out));
		ct_quiet(&s.e, 50, "a member that only sends");
	}
	end(ct, &s, mc);
}

/*
 * The flag and the address of a group go together: each without the other is
 * refused, and nothing is posted.
 */
static void together(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	struct iovec iov;
	fi_addr_t to;
	char buf[8] = { 0 };

	open_scene(ct, &s);
	mc = join(ct, &s, 0);
	to = fi_mc_addr(mc);
	iov = (struct iovec){ buf, 8 };
	CT_EQ(ct, cast_msg(&s, to, buf, 8, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, cast_msg(&s, s.e.addr[!ct->rank], buf, 8, FI_COMPLETION | FI_MULTICAST), -FI_EINVAL);
	CT_EQ(ct, cast_msg(&s, FI_ADDR_UNSPEC, buf, 8, FI_COMPLETION | FI_MULTICAST), -FI_EINVAL);
	CT_EQ(ct, fi_send(s.e.ep, buf, 8, NULL, to, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_sendv(s.e.ep, &iov, NULL, 1, to, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_senddata(s.e.ep, buf, 8, NULL, 1, to, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_inject(s.e.ep, buf, 8, to), -FI_EINVAL);
	CT_EQ(ct, fi_injectdata(s.e.ep, buf, 8, 1, to), -FI_EINVAL);
	CT_REFUSED(ct, cast_msg(&s, to, buf, 8, FI_MULTICAST | FI_DELIVERY_COMPLETE));
	CT_REFUSED(ct, cast_msg(&s, to, buf, 8, FI_MULTICAST | FI_MATCH_COMPLETE));
	ct_quiet(&s.e, 50, "refused calls");
	CT_OK(ct, fi_close(&mc->fid));
	/* an address that was left is one no longer */
	CT_EQ(ct, cast_msg(&s, to, buf, 8, FI_COMPLETION | FI_MULTICAST), -FI_EINVAL);
	close_scene(ct, &s);
}

/* Who has left hears nothing; who comes back does. */
static void leave(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	char out[LEN], in[LEN];

	mc = begin(ct, &s, ct->rank ? FI_RECV : FI_SEND, out);
	ct_recv(&s.e, in, sizeof(in), CTX(2));
	if (ct->rank)
		CT_OK(ct, fi_close(&mc->fid));
	ct_sync(ct, &s.e);
	if (!ct->rank)
		cast_to(&s, mc, out, sizeof(out));
	else
		ct_quiet(&s.e, 50, "who has left");
	ct_sync(ct, &s.e);
	if (ct->rank)
		mc = join(ct, &s, FI_RECV);
	ct_sync(ct, &s.e);
	if (!ct->rank)
		cast_to(&s, mc, out, sizeof(out));
	else
		hear(ct, &s, in, CTX(2));
	end(ct, &s, mc);
}

static void refuses(struct ct *ct, struct scene *s, const struct scene *what)
{
	struct fid_mc *mc;

	CT_REFUSED(ct, fi_join(s->e.ep, &what->group, 0, &mc, NULL));
}

/*
 * One host's address, a port that is none, an interface that is not there, an
 * address of the other family.
 */
static void bad_addresses(struct ct *ct, struct scene *s, struct scene *one)
{
	one->group = s->group;
	if (s->group.sa.sa_family == AF_INET) {
		inet_pton(AF_INET, "127.0.0.1", &one->group.in.sin_addr);
		refuses(ct, s, one);
		one->group = s->group;
		one->group.in.sin_port = 0;
		refuses(ct, s, one);
		one->group.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(20000) };
		inet_pton(AF_INET6, "ff15::4d43:43", &one->group.in6.sin6_addr);
		refuses(ct, s, one);
		return;
	}
	inet_pton(AF_INET6, "::1", &one->group.in6.sin6_addr);
	refuses(ct, s, one);
	one->group = s->group;
	one->group.in6.sin6_port = 0;
	refuses(ct, s, one);
	one->group = s->group;
	inet_pton(AF_INET6, "ff12::4d43:43", &one->group.in6.sin6_addr);
	one->group.in6.sin6_scope_id = 77777;
	refuses(ct, s, one);
	memset(&one->group, 0, sizeof(one->group));
	one->group.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(20000) };
	inet_pton(AF_INET, "239.255.77.67", &one->group.in.sin_addr);
	refuses(ct, s, one);
}

/* What cannot be joined, or said, or closed. */
static void bad(struct ct *ct)
{
	struct scene s, one;
	struct fid_mc *mc;
	size_t len = 1 << 20;
	char *buf = ct_alloc(ct, len);

	open_scene(ct, &s);
	one = s;
	one.group.sa.sa_family = AF_UNIX;
	CT_EQ(ct, fi_join(s.e.ep, &one.group, 0, &mc, NULL), -FI_EINVAL);
	bad_addresses(ct, &s, &one);
	CT_EQ(ct, fi_join(s.e.ep, NULL, 0, &mc, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_join(s.e.ep, &s.group, FI_PEEK, &mc, NULL), -FI_EBADFLAGS);
	mc = join(ct, &s, 0);
	CT_EQ(ct, fi_close(&s.e.ep->fid), -FI_EBUSY);
	CT_EQ(ct, cast_msg(&s, fi_mc_addr(mc), buf, len, FI_MULTICAST | FI_COMPLETION), -FI_EMSGSIZE);
	CT_EQ(ct, cast_msg(&s, fi_mc_addr(mc), NULL, 8, FI_MULTICAST | FI_COMPLETION), -FI_EINVAL);
	ct_quiet(&s.e, 50, "refused calls");
	CT_OK(ct, fi_close(&mc->fid));
	free(buf);
	close_scene(ct, &s);
}

/*
 * T11: groups are for untagged messages, fi_tagged(3) has no such flag. Neither it nor a
 * group's address sends anything.
 */
static void tagged(struct ct *ct)
{
	char out[8] = "tagged", in[2][LEN];
	struct iovec iov = { out, sizeof(out) };
	struct fi_msg_tagged m = { .msg_iov = &iov, .iov_count = 1, .tag = 1, .context = CTX(1) };
	struct scene s;
	struct fid_mc *mc;

	open_scene_with(ct, &s, FI_TAGGED, 0);
	mc = join(ct, &s, 0);
	ct_recv(&s.e, in[0], LEN, CTX(2));
	ct_trecv(&s.e, in[1], LEN, 1, 0, CTX(3));
	ct_sync(ct, &s.e);
	m.addr = fi_mc_addr(mc);
	CT_EQ(ct, fi_tsendmsg(s.e.ep, &m, FI_MULTICAST | FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_tsendmsg(s.e.ep, &m, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_tsend(s.e.ep, out, 8, NULL, m.addr, 1, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_tinject(s.e.ep, out, 8, m.addr, 1), -FI_EINVAL);
	m.addr = s.e.addr[!ct->rank];
	CT_EQ(ct, fi_tsendmsg(s.e.ep, &m, FI_MULTICAST | FI_COMPLETION), -FI_EINVAL);
	ct_quiet(&s.e, 50, "refused calls");
	CT_OK(ct, fi_close(&mc->fid));
	close_scene(ct, &s);
}

/* What is said, one call after the other; the last one needs the flag no more than the others. */
static int say_all(struct scene *s, fi_addr_t to, const char *out)
{
	const struct iovec iov[2] = { { (void *)(uintptr_t)out, 10 },
				      { (char *)(uintptr_t)out + 10, LEN - 10 } };
	struct fid_ep *ep = s->e.ep;

	CT_POST(&s->e, fi_send(ep, out, LEN, NULL, to, CTX(1)));
	ct_done(&s->e, CTX(1));
	CT_POST(&s->e, fi_sendv(ep, iov, NULL, 2, to, CTX(1)));
	ct_done(&s->e, CTX(1));
	CT_POST(&s->e, fi_inject(ep, out, 8, to));
	if (!with_data(s))
		return 3;
	CT_POST(&s->e, fi_senddata(ep, out, LEN, NULL, 5, to, CTX(1)));
	ct_done(&s->e, CTX(1));
	CT_POST(&s->e, fi_injectdata(ep, out, 8, 5, to));
	return 5;
}

/*
 * FI_MULTICAST in op_flags, fi_endpoint(3): addresses of calls without flags are those of groups,
 * and of others with flags they are not.
 */
static void by_default(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	char out[LEN], in[6][LEN];
	int calls;

	open_scene_with(ct, &s, 0, FI_MULTICAST);
	calls = with_data(&s) ? 5 : 3;
	mc = join(ct, &s, ct->rank ? FI_RECV : FI_SEND);
	ct_fill(out, sizeof(out), KEY);
	for (int i = 0; ct->rank && i < calls + 1; i++)
		ct_recv(&s.e, in[i], LEN, CTX(10 + i));
	ct_sync(ct, &s.e);
	if (!ct->rank) {
		CT_EQ(ct, fi_send(s.e.ep, out, 8, NULL, s.e.addr[1], CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_inject(s.e.ep, out, 8, s.e.addr[1]), -FI_EINVAL);
		CT_EQ(ct, say_all(&s, fi_mc_addr(mc), out), calls);
	}
	for (int i = 0; ct->rank && i < calls; i++) {
		struct ct_comp c;

		ct_of(&s.e, CTX(10 + i), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, i == 2 || i == 4 ? 8 : LEN);
		CT_EQ(ct, !!(c.flags & FI_REMOTE_CQ_DATA), i > 2);
		ct_verify(ct, in[i], c.len, KEY, "what was said to the group");
	}
	ct_sync(ct, &s.e);
	if (!ct->rank) {
		CT_POST(&s.e, cast_msg(&s, s.e.addr[1], out, LEN, FI_COMPLETION));
		ct_done(&s.e, CTX(1));
	} else {
		CT_EQ(ct, ct_done(&s.e, CTX(10 + calls)), LEN);
	}
	ct_quiet(&s.e, 30, "inject");
	end(ct, &s, mc);
}

static void say_later(struct ct *ct, struct scene *s, fi_addr_t to, char *out)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *now, *done;
	struct fi_triggered_context when = { .event_type = FI_TRIGGER_THRESHOLD };
	struct iovec iov = { out, LEN };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = to, .context = &when, .data = 5 };
	struct fi_op_msg op = { .ep = s->e.ep, .msg = m, .flags = FI_MULTICAST | with_data(s) };
	struct fi_deferred_work work = { .threshold = 2, .op_type = FI_OP_SEND, .op.msg = &op };

	CT_OK(ct, fi_cntr_open(s->dom.domain, &attr, &now, NULL));
	CT_OK(ct, fi_cntr_open(s->dom.domain, &attr, &done, NULL));
	when.trigger.threshold.cntr = now;
	when.trigger.threshold.threshold = 1;
	work.triggering_cntr = now;
	work.completion_cntr = done;
	CT_OK(ct, fi_sendmsg(s->e.ep, &m, FI_TRIGGER | FI_MULTICAST | FI_COMPLETION | with_data(s)));
	CT_OK(ct, fi_control(&s->dom.domain->fid, FI_QUEUE_WORK, &work));
	ct_quiet(&s->e, 30, "what waits for a counter");
	CT_OK(ct, fi_cntr_add(now, 1));
	ct_done(&s->e, &when);
	CT_EQ(ct, fi_cntr_read(done), 0);
	CT_OK(ct, fi_cntr_add(now, 1));
	ct_quiet(&s->e, 30, "work without FI_COMPLETION");
	CT_EQ(ct, fi_cntr_read(done), 1);
	CT_OK(ct, fi_close(&now->fid));
	CT_OK(ct, fi_close(&done->fid));
}

/* FI_MULTICAST with FI_TRIGGER, fi_trigger(3), and as deferred work. */
static void later(struct ct *ct)
{
	struct scene s;
	struct fid_mc *mc;
	char out[LEN], in[2][LEN];

	open_scene_with(ct, &s, FI_TRIGGER, 0);
	mc = join(ct, &s, ct->rank ? FI_RECV : FI_SEND);
	for (int i = 0; ct->rank && i < 2; i++)
		ct_recv(&s.e, in[i], LEN, CTX(2 + i));
	ct_sync(ct, &s.e);
	ct_fill(out, sizeof(out), KEY);
	if (!ct->rank)
		say_later(ct, &s, fi_mc_addr(mc), out);
	for (int i = 0; ct->rank && i < 2; i++)
		hear(ct, &s, in[i], CTX(2 + i));
	end(ct, &s, mc);
}

/* Without an EQ there is nobody to tell, and an endpoint that was not asked for groups has none. */
static void unprepared(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTICAST, .type = TYPE(ct->cs->arg) };
	struct fid_mc *mc;
	struct scene s;

	ct_open(ct, &s.dom, &want);
	if (s.dom.info->addr_format != FI_SOCKADDR_IN && s.dom.info->addr_format != FI_SOCKADDR_IN6)
		ct_unsupported(ct, "names are not IP addresses");
	draw_group(ct, &s);
	ct_ep_open(&s.dom, &s.e);
	CT_EQ(ct, fi_join(s.e.ep, &s.group, 0, &mc, NULL), -FI_ENOEQ);
	ct_finish(&s.e);
	want.caps = FI_MSG;
	ct_open(ct, &s.dom, &want);
	ct_ep_open(&s.dom, &s.e);
	CT_REFUSED(ct, fi_join(s.e.ep, &s.group, 0, &mc, NULL));
	ct_finish(&s.e);
}

/* Memory that has been unmapped. */
static char *unmapped(struct ct *ct)
{
	char *mem =
		mmap(CT_APART, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	CT_TRUE(ct, mem != MAP_FAILED);
	CT_EQ(ct, munmap(mem, LEN), 0);
	return mem;
}

/*
 * What cannot be read is not said, and its send fails; what cannot be stored fails its receive. The
 * group goes on, and so do both programs.
 */
static void memory_gone(struct ct *ct)
{
	char *gone, out[LEN], in[LEN];
	struct ct_comp c;
	struct fid_mc *mc;
	struct scene s;

	ct_faults(ct);
	mc = begin(ct, &s, ct->rank ? FI_RECV : FI_SEND, out);
	gone = unmapped(ct);
	if (ct->rank) {
		ct_recv(&s.e, gone, LEN, CTX(2));
		ct_recv(&s.e, in, LEN, CTX(3));
	}
	ct_sync(ct, &s.e);
	if (!ct->rank) {
		CT_POST(&s.e, cast_msg(&s, fi_mc_addr(mc), gone, LEN, FI_MULTICAST | FI_COMPLETION));
		ct_of(&s.e, CTX(1), &c);
		CT_TRUE(ct, c.err > 0);
		cast_to(&s, mc, out, LEN);
		cast_to(&s, mc, out, LEN);
	} else {
		ct_of(&s.e, CTX(2), &c);
		CT_TRUE(ct, c.err > 0);
		hear(ct, &s, in, CTX(3));
	}
	end(ct, &s, mc);
}

#define BOTH_TYPES(name, ...) \
	{ "M15", name, { __VA_ARGS__ }, 0, FI_EP_RDM }, \
	{ \
		"M15", name "-dgram", { __VA_ARGS__ }, 0, FI_EP_DGRAM \
	}

const struct ct_case ct_mcast[] = {
	BOTH_TYPES("all-hear", all_hear, all_hear, all_hear),
	BOTH_TYPES("all-talk", all_talk, all_talk, all_talk),
	{ "T11", "multicast-refused", { tagged, tagged }, 0, FI_EP_RDM },
	{ "M15", "link-scope", { all_hear, all_hear }, 0, FI_EP_RDM | LINK },
	{ "M15", "link-scope-named", { all_hear, all_hear }, 0, FI_EP_RDM | LINK | NAMED },
	{ "M15", "one-hears", { one_hears, one_hears, one_hears }, 0, FI_EP_RDM },
	{ "M15", "link-scope-one-hears", { one_hears, one_hears, one_hears }, 0, FI_EP_RDM | LINK },
	{ "M15", "link-scope-talk", { all_talk, all_talk }, 0, FI_EP_DGRAM | LINK },
	BOTH_TYPES("halves", halves, halves),
	BOTH_TYPES("flag-and-address", together, together),
	BOTH_TYPES("leave", leave, leave),
	BOTH_TYPES("memory-gone", memory_gone, memory_gone),
	BOTH_TYPES("by-default", by_default, by_default),
	BOTH_TYPES("later", later, later),
	BOTH_TYPES("refused", bad),
	BOTH_TYPES("unprepared", unprepared),
	{ 0 },
};
