/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * COLL: sets of addresses, fi_av_set(3), and what groups go through: joining,
 * leaving, members that die.
 */
#include "party.h"

#include <errno.h>
#include <rdma/fi_eq.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LONG_COUNT (1u << 20)

/* ---- who has it ------------------------------------------------------------------------------ */

/* It is given to who asks, and to nobody else; where it does not hold it is not offered. */
static void offered(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_COLLECTIVE, .type = FI_EP_RDM };
	const enum fi_ep_type others[] = { FI_EP_MSG, FI_EP_DGRAM };
	struct fi_info *hints = ct_hints(ct, &want), *info;

	if (ct_getinfo(ct, hints, &info))
		ct_unsupported(ct, "FI_COLLECTIVE is not offered");
	CT_TRUE(ct, info->caps & FI_COLLECTIVE && info->tx_attr->caps & FI_COLLECTIVE &&
			    info->rx_attr->caps & FI_COLLECTIVE);
	fi_freeinfo(info);
	hints->caps = FI_MSG;
	CT_OK(ct, ct_getinfo(ct, hints, &info));
	CT_TRUE(ct, !(info->caps & FI_COLLECTIVE));
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_COLLECTIVE;
	for (size_t i = 0; i < CT_COUNT(others); i++) {
		hints->ep_attr->type = others[i];
		CT_TRUE(ct, ct_getinfo(ct, hints, &info) < 0);
	}
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->tx_ctx_cnt = 2;
	CT_TRUE(ct, ct_getinfo(ct, hints, &info) < 0);
	fi_freeinfo(hints);
}

/* An endpoint that has not asked for it joins nothing. */
static void not_asked(struct ct *ct)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	const struct ct_want want = { .caps = FI_MSG | FI_TAGGED, .type = FI_EP_RDM };
	struct fid_av_set *set;
	struct ct_dom dom;
	struct fid_mc *mc;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	CT_OK(ct, fi_av_set(e.av, &attr, &set, NULL));
	CT_EQ(ct, fi_join_collective(e.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, NULL), -FI_ENOSYS);
	CT_EQ(ct, fi_barrier(e.ep, 0, NULL), -FI_ENOSYS);
	CT_OK(ct, fi_close(&set->fid));
	ct_finish(&e);
}

static void query(struct ct *ct)
{
	const struct ct_want want = { .caps = FI_MSG | FI_COLLECTIVE, .type = FI_EP_RDM };
	struct fi_collective_attr attr = { .op = FI_NOOP, .datatype = FI_VOID };
	struct ct_dom dom;

	ct_open(ct, &dom, &want);
	CT_OK(ct, fi_query_collective(dom.domain, FI_BARRIER, &attr, 0));
	CT_TRUE(ct, attr.max_members >= PARTY_MAX);
	CT_EQ(ct, fi_query_collective(dom.domain, FI_BROADCAST, &attr, 0), -FI_EOPNOTSUPP);
	attr = (struct fi_collective_attr){ .op = FI_SUM, .datatype = FI_DOUBLE };
	for (int coll = FI_BROADCAST; coll <= FI_GATHER; coll++) {
		CT_OK(ct, fi_query_collective(dom.domain, (enum fi_collective_op)coll, &attr, 0));
		CT_EQ(ct, attr.datatype_attr.size, sizeof(double));
		CT_TRUE(ct, attr.datatype_attr.count >= LONG_COUNT);
	}
	attr.op = FI_BOR;
	CT_EQ(ct, fi_query_collective(dom.domain, FI_REDUCE, &attr, 0), -FI_EOPNOTSUPP);
	CT_OK(ct, fi_query_collective(dom.domain, FI_GATHER, &attr, 0));
	attr.op = FI_CSWAP;
	CT_EQ(ct, fi_query_collective(dom.domain, FI_ALLREDUCE, &attr, 0), -FI_EOPNOTSUPP);
	attr.mode = 1;
	CT_EQ(ct, fi_query_collective(dom.domain, FI_BARRIER, &attr, 0), -FI_EINVAL);
	CT_EQ(ct, fi_query_collective(dom.domain, FI_BARRIER, NULL, 0), -FI_EINVAL);
	ct_close(&dom);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static struct fid_av_set *range(struct ct_ep *e, fi_addr_t from, fi_addr_t last, uint64_t stride,
				uint64_t flags)
{
	struct fi_av_set_attr attr = {
		.start_addr = from, .end_addr = last, .stride = stride, .flags = flags
	};
	struct fid_av_set *set;

	CT_OK(e->ct, fi_av_set(e->av, &attr, &set, NULL));
	return set;
}

/* What is in it, by taking it out; the set is closed. */
static void check_members(struct ct_ep *e, struct fid_av_set *set, int count, const fi_addr_t *addrs)
{
	for (int i = 0; i < count; i++)
		CT_OK(e->ct, fi_av_set_remove(set, addrs[i]));
	for (fi_addr_t a = 0; a < 8; a++)
		CT_EQ(e->ct, fi_av_set_remove(set, a), -FI_EINVAL);
	CT_OK(e->ct, fi_close(&set->fid));
}

#define MEMBERS(...) \
	(int)(sizeof((const fi_addr_t[]){ __VA_ARGS__ }) / sizeof(fi_addr_t)), (const fi_addr_t[]) \
	{ \
		__VA_ARGS__ \
	}

static void insert_some(struct ct_ep *e, int count)
{
	for (int i = 0; i < count; i++)
		CT_EQ(e->ct, ct_insert(e, e->name), i);
}

static void sets(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_COLLECTIVE, .type = FI_EP_RDM, .av_type = FI_AV_TABLE };
	struct fid_av_set *a, *b;
	fi_addr_t gone = 3, one, two;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	insert_some(&e, 6);
	CT_OK(ct, fi_av_remove(e.av, &gone, 1, 0));
	check_members(&e, range(&e, 0, 5, 1, 0), MEMBERS(0, 1, 2, 4, 5));
	check_members(&e, range(&e, 1, 5, 2, 0), MEMBERS(1, 5));
	check_members(&e, range(&e, 2, 2, 7, 0), MEMBERS(2));
	check_members(&e, range(&e, 4, UINT64_MAX - 1, 1, 0), MEMBERS(4, 5));
	check_members(&e, range(&e, FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0, FI_UNIVERSE | FI_BARRIER_SET),
		      MEMBERS(0, 1, 2, 4, 5));
	a = range(&e, 0, 2, 1, 0);
	b = range(&e, 2, 5, 1, 0);
	CT_OK(ct, fi_av_set_union(a, b));
	CT_OK(ct, fi_av_set_addr(a, &one));
	CT_OK(ct, fi_av_set_addr(b, &two));
	CT_TRUE(ct, one != two);
	check_members(&e, a, MEMBERS(0, 1, 2, 4, 5));
	a = range(&e, 0, 4, 1, 0);
	CT_OK(ct, fi_av_set_intersect(a, b));
	check_members(&e, a, MEMBERS(2, 4));
	a = range(&e, 0, 4, 1, 0);
	CT_OK(ct, fi_av_set_diff(a, b));
	check_members(&e, a, MEMBERS(0, 1));
	CT_EQ(ct, fi_close(&e.av->fid), -FI_EBUSY);
	check_members(&e, b, MEMBERS(2, 4, 5));
	ct_ep_close(&e);
	ct_close(&dom);
}

static void refuse_set(struct ct_ep *e, const struct fi_av_set_attr *attr, int err)
{
	struct fi_av_set_attr copy = *attr;
	struct fid_av_set *set;

	CT_EQ(e->ct, fi_av_set(e->av, &copy, &set, NULL), err);
}

static void sets_refused(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_COLLECTIVE, .type = FI_EP_RDM, .av_type = FI_AV_TABLE };
	struct fi_av_attr other = { .type = FI_AV_TABLE };
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	struct fid_av_set *set, *far;
	struct fid_av *av;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	insert_some(&e, 4);
	refuse_set(&e, &(struct fi_av_set_attr){ .end_addr = 3 }, -FI_EINVAL);
	refuse_set(&e, &(struct fi_av_set_attr){ .end_addr = 3, .stride = 1, .count = 3 }, -FI_EINVAL);
	refuse_set(&e, &(struct fi_av_set_attr){ .start_addr = 3, .end_addr = 2, .stride = 1 }, -FI_EINVAL);
	refuse_set(&e, &(struct fi_av_set_attr){ .end_addr = FI_ADDR_NOTAVAIL, .stride = 1 }, -FI_EINVAL);
	attr.flags = UINT64_C(1) << 60;
	refuse_set(&e, &attr, -FI_EBADFLAGS);
	attr.flags = 0;
	CT_OK(ct, fi_av_set(e.av, &attr, &set, NULL));
	CT_OK(ct, fi_av_set_insert(set, 2));
	CT_EQ(ct, fi_av_set_insert(set, 2), -FI_EINVAL);
	CT_EQ(ct, fi_av_set_insert(set, 9), -FI_EINVAL);
	CT_EQ(ct, fi_av_set_remove(set, 1), -FI_EINVAL);
	CT_OK(ct, fi_av_open(dom.domain, &other, &av, NULL));
	CT_OK(ct, fi_av_set(av, &attr, &far, NULL));
	CT_EQ(ct, fi_av_set_union(set, far), -FI_EINVAL);
	CT_OK(ct, fi_close(&far->fid));
	CT_OK(ct, fi_close(&av->fid));
	CT_OK(ct, fi_close(&set->fid));
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The calls that are refused, and their reasons. */
static void refused(struct ct *ct)
{
	static const int others[] = { 1, -1 };
	const struct ct_want want = { 0 };
	struct fid_av_set *set;
	struct fid_mc *mc;
	char buf[8] = { 0 };
	struct party p;
	struct fid_ep *ep;
	fi_addr_t group;

	party_open(ct, &p, 2, &want);
	ep = p.seat[0].ep;
	if (!ct->rank) {
		struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };

		CT_OK(ct, fi_av_set(p.e.av, &attr, &set, NULL));
		CT_OK(ct, fi_av_set_insert(set, p.addr[others[0]]));
		CT_EQ(ct, fi_join_collective(ep, FI_ADDR_NOTAVAIL, set, 0, &mc, NULL), -FI_EINVAL);
		CT_OK(ct, fi_av_set_insert(set, p.addr[0]));
		CT_EQ(ct, fi_join_collective(ep, 0, set, 0, &mc, NULL), -FI_EINVAL);
		CT_EQ(ct, fi_join_collective(ep, FI_ADDR_NOTAVAIL, NULL, 0, &mc, NULL), -FI_EINVAL);
		CT_EQ(ct, fi_join_collective(ep, FI_ADDR_NOTAVAIL, set, FI_MULTI_RECV, &mc, NULL),
		      -FI_EBADFLAGS);
		CT_OK(ct, fi_close(&set->fid));
	}
	CT_EQ(ct, fi_barrier(ep, 0, NULL), -FI_EINVAL);
	party_join(&p, 0, NULL);
	group = fi_mc_addr(p.seat[0].mc[0]);
	CT_EQ(ct, fi_barrier2(ep, group, FI_INJECT, NULL), -FI_EBADFLAGS);
	CT_EQ(ct, fi_allreduce(ep, buf, 1, NULL, buf, NULL, group, FI_VOID, FI_SUM, 0, NULL), -FI_EOPNOTSUPP);
	CT_EQ(ct, fi_allreduce(ep, buf, 1, NULL, buf, NULL, group, FI_UINT8, FI_MSWAP, 0, NULL),
	      -FI_EOPNOTSUPP);
	CT_EQ(ct, fi_allreduce(ep, NULL, 1, NULL, buf, NULL, group, FI_UINT8, FI_SUM, 0, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_allgather(ep, buf, SIZE_MAX / 2, NULL, buf, NULL, group, FI_UINT64, 0, NULL),
	      -FI_EMSGSIZE);
	CT_EQ(ct, fi_broadcast(ep, buf, 1, NULL, group, 77, FI_UINT8, 0, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_close(&ep->fid), -FI_EBUSY);
	CT_POST(&p.e, fi_barrier(ep, group, CTX(1)));
	ct_done(&p.e, CTX(1));
	party_leave(&p, 0);
	CT_EQ(ct, fi_barrier(ep, group, NULL), -FI_EINVAL);
	party_close(&p);
}

static void barrier_of(struct party *p, int g)
{
	int under_way = 0;

	for (int i = 0; i < p->seats; i++)
		if (p->seat[i].mc[g]) {
			CT_POST(&p->e, fi_barrier(p->seat[i].ep, fi_mc_addr(p->seat[i].mc[g]), CTX(40)));
			under_way++;
		}
	while (under_way-- > 0)
		ct_done(&p->e, CTX(40));
}

/* Groups that are joined at once, within and beside each other, each again and again. */
static void many_joins(struct ct *ct)
{
	static const int lists[][6] = {
		{ 0, 1, 2, 3, 4, -1 }, { 4, 3, 2, 1, 0, -1 }, { 0, 2, 4, -1 }, { 1, 3, -1 }, { 2, -1 },
		{ 3, 0, -1 }
	};
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, 5, &want);
	for (int round = 0; round < 20; round++) {
		int events = 0;

		for (int g = 0; g < (int)CT_COUNT(lists); g++)
			party_call(&p, g, lists[g]);
		for (int g = 0; g < (int)CT_COUNT(lists); g++)
			for (int i = 0; i < p.seats; i++)
				events += p.seat[i].mc[g] != NULL;
		party_wait_joined(&p, events);
		for (int g = 0; g < (int)CT_COUNT(lists); g++)
			barrier_of(&p, g);
		for (int g = 0; g < (int)CT_COUNT(lists); g++)
			party_leave(&p, g);
	}
	party_close(&p);
}

/* A group joined by the address of another one, and of a set that is closed before. */
static void by_group(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, 3, &want);
	party_join(&p, 0, NULL);
	CT_OK(ct, fi_join_collective(p.seat[0].ep, fi_mc_addr(p.seat[0].mc[0]), p.set[0], FI_SEND | FI_RECV,
				     &p.seat[0].mc[1], &p.seat[0].mc[1]));
	CT_OK(ct, fi_close(&p.set[0]->fid));
	p.set[0] = NULL;
	party_wait_joined(&p, 1);
	party_leave(&p, 0);
	barrier_of(&p, 1);
	party_leave(&p, 1);
	party_close(&p);
}

/* Who waits for the event alone reads no completion queue. */
static void waits_for_event(struct ct *ct)
{
	const struct ct_want want = { .threading = ct->cs->arg ? FI_THREAD_DOMAIN : FI_THREAD_SAFE };
	struct fi_eq_entry entry;
	struct party p;
	uint32_t code;

	party_open(ct, &p, 3, &want);
	party_call(&p, 0, NULL);
	CT_EQ(ct,
	      fi_eq_sread(p.eq, &code, &entry, sizeof(entry), (int)(30000 * CT_BUSY * ct->conf->scale), 0),
	      sizeof(entry));
	CT_EQ(ct, code, FI_JOIN_COMPLETE);
	CT_TRUE(ct, entry.fid == &p.seat[0].mc[0]->fid);
	barrier_of(&p, 0);
	party_leave(&p, 0);
	party_close(&p);
}

/* Which event it is, without its entry. */
static void event_alone(struct ct *ct)
{
	const double end = ct_deadline(ct);
	const struct ct_want want = { 0 };
	uint32_t code = 0;
	struct party p;
	ssize_t rc;

	party_open(ct, &p, 2, &want);
	party_call(&p, 0, NULL);
	while ((rc = fi_eq_read(p.eq, &code, NULL, 0, 0)) == -FI_EAGAIN) {
		ct_late(ct, end, "the group to be joined");
		ct_pause();
	}
	CT_EQ(ct, rc, 0);
	CT_EQ(ct, code, FI_JOIN_COMPLETE);
	CT_EQ(ct, fi_eq_read(p.eq, &code, NULL, 0, 0), -FI_EAGAIN);
	barrier_of(&p, 0);
	party_leave(&p, 0);
	party_close(&p);
}

/* Endpoints that have nothing else. */
static void nothing_else(struct ct *ct)
{
	const struct ct_want want = { .caps = FI_COLLECTIVE };
	struct party p;

	party_open(ct, &p, 3, &want);
	CT_TRUE(ct, !(p.dom.info->caps & (FI_MSG | FI_TAGGED | FI_SEND)));
	CT_TRUE(ct, fi_send(p.seat[0].ep, NULL, 0, NULL, p.addr[0], NULL) == -FI_ENOSYS);
	party_join(&p, 0, NULL);
	barrier_of(&p, 0);
	party_leave(&p, 0);
	party_close(&p);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/*
 * A group that is closed while something is under way: that is cancelled here,
 * and fails for the others.
 */
static void left_early(struct ct *ct)
{
	const struct ct_want want = { 0 };
	uint32_t *buf = ct_alloc(ct, (size_t)6 * LONG_COUNT * sizeof(*buf));
	struct ct_comp c;
	struct party p;

	party_open(ct, &p, 3, &want);
	party_join(&p, 0, NULL);
	barrier_of(&p, 0);
	if (ct->rank != 2) {
		CT_POST(&p.e, fi_alltoall(p.seat[0].ep, buf, LONG_COUNT, NULL, buf + 3 * LONG_COUNT, NULL,
					  fi_mc_addr(p.seat[0].mc[0]), FI_UINT32, 0, CTX(5)));
		ct_idle(&p.e, 20);
	}
	ct_sync(ct, &p.e);
	if (!ct->rank)
		party_leave(&p, 0);
	if (ct->rank != 2) {
		ct_of(&p.e, CTX(5), &c);
		CT_TRUE(ct, c.err > 0);
		CT_EQ(ct, c.flags, FI_COLLECTIVE);
	}
	if (!ct->rank)
		CT_EQ(ct, c.err, FI_ECANCELED);
	ct_sync(ct, &p.e);
	if (ct->rank == 1)
		CT_REFUSED(ct, fi_barrier(p.seat[0].ep, fi_mc_addr(p.seat[0].mc[0]), NULL));
	party_leave(&p, 0);
	party_join(&p, 1, NULL);
	barrier_of(&p, 1);
	party_leave(&p, 1);
	party_close(&p);
	free(buf);
}

/* Rank 0 has left before rank 1 calls what it has a part in: that fails, and waits for nothing. */
static void left_before(struct ct *ct)
{
	const struct ct_want want = { 0 };
	char buf[8] = { 0 };
	struct ct_comp c;
	struct party p;

	party_open(ct, &p, 2, &want);
	party_join(&p, 0, NULL);
	barrier_of(&p, 0);
	if (!ct->rank)
		party_leave(&p, 0);
	ct_sync(ct, &p.e);
	if (ct->rank) {
		ct_idle(&p.e, 50); /* it has been told */
		CT_POST(&p.e, fi_broadcast(p.seat[0].ep, buf, sizeof(buf), NULL, fi_mc_addr(p.seat[0].mc[0]),
					   p.addr[0], FI_UINT8, 0, CTX(6)));
		ct_of(&p.e, CTX(6), &c);
		CT_TRUE(ct, c.err > 0);
		party_leave(&p, 0);
	}
	party_close(&p);
}

/*
 * Rank 0 leaves while its join waits for rank 1, and hears no more of it. Rank 1's
 * join, which comes after that, does not wait for ever, whatever comes of it; and what
 * both join then is a group.
 */
static void left_while_joining(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct fi_eq_err_entry err;
	double end = ct_deadline(ct);
	uint32_t code;
	struct party p;

	party_open(ct, &p, 2, &want);
	if (!ct->rank) {
		party_call(&p, 0, NULL);
		ct_idle(&p.e, 20);
		party_leave(&p, 0);
		ct_idle(&p.e, 20);
		CT_TRUE(ct, !party_event(&p, &code, &err));
	}
	ct_sync(ct, &p.e);
	if (ct->rank) {
		party_call(&p, 0, NULL);
		while (!party_event(&p, &code, &err)) {
			ct_progress(&p.e);
			ct_late(ct, end, "a join that somebody has left");
		}
		party_leave(&p, 0);
	}
	ct_sync(ct, &p.e);
	party_join(&p, 1, NULL);
	barrier_of(&p, 1);
	party_leave(&p, 1);
	CT_TRUE(ct, !party_event(&p, &code, &err));
	party_close(&p);
}

/*
 * The members do not mean the same: who gets less than it has asked for is
 * told, as is who gets more.
 */
static void counts_differ(struct ct *ct)
{
	const size_t counts[2][2] = { { 4, 8 }, { 8, 4 } };
	const struct ct_want want = { 0 };
	char buf[8] = { 0 };
	struct ct_comp c;
	struct party p;

	party_open(ct, &p, 2, &want);
	for (int i = 0; i < 2; i++) {
		party_join(&p, 0, NULL);
		CT_POST(&p.e, fi_broadcast(p.seat[0].ep, buf, counts[i][ct->rank], NULL,
					   fi_mc_addr(p.seat[0].mc[0]), p.addr[0], FI_UINT8, 0, CTX(6)));
		ct_of(&p.e, CTX(6), &c);
		CT_TRUE(ct, ct->rank ? c.err > 0 : !c.err);
		ct_sync(ct, &p.e);
		party_leave(&p, 0);
	}
	party_close(&p);
}

/* Who is through leaves at once, while others are not. */
static void leave_at_once(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, 5, &want);
	for (int round = 0; round < 50; round++) {
		party_join(&p, 0, NULL);
		barrier_of(&p, 0);
		party_leave(&p, 0);
	}
	party_close(&p);
}

/* Rank 1 waits for its end, and makes progress until it comes. */
static void __attribute__((noreturn)) await_death(struct party *p)
{
	char go = 0;

	ct_doomed(p->ct);
	ct_put(p->ct, 0, &go, 1);
	for (;;)
		ct_progress(&p->e);
}

/* Rank 0 kills it, when it is ready for that. */
static void kills(struct party *p)
{
	char go;

	ct_get(p->ct, &p->e, 1, &go, 1);
	ct_idle(&p->e, 20);
	if (kill(p->ct->pid[1], SIGKILL))
		ct_fail(p->ct, "cannot kill rank 1: %s", strerror(errno));
}

static void victim(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, 4, &want);
	party_join(&p, 0, NULL);
	barrier_of(&p, 0);
	await_death(&p);
}

/* Rank 1 dies while the others wait for it, each in its own way: all of them are told. */
static void survivor(struct ct *ct)
{
	const struct ct_want want = { 0 };
	uint64_t *buf = ct_alloc(ct, 8 * 4000 * sizeof(*buf));
	struct ct_comp c;
	fi_addr_t group;
	struct party p;

	party_open(ct, &p, 4, &want);
	party_join(&p, 0, NULL);
	barrier_of(&p, 0);
	group = fi_mc_addr(p.seat[0].mc[0]);
	if (ct->cs->arg == FI_BARRIER)
		CT_POST(&p.e, fi_barrier(p.seat[0].ep, group, CTX(9)));
	else if (ct->cs->arg == FI_ALLTOALL)
		CT_POST(&p.e, fi_alltoall(p.seat[0].ep, buf, 4000, NULL, buf + 16000, NULL, group, FI_UINT64,
					  0, CTX(9)));
	else
		CT_POST(&p.e, fi_allreduce(p.seat[0].ep, buf, 16000, NULL, buf + 16000, NULL, group,
					   FI_UINT64, FI_SUM, 0, CTX(9)));
	if (!ct->rank)
		kills(&p);
	ct_of(&p.e, CTX(9), &c);
	CT_TRUE(ct, c.err > 0);
	CT_REFUSED(ct, fi_barrier(p.seat[0].ep, group, NULL));
	party_leave(&p, 0);
	party_shut(&p);
	free(buf);
}

/* It dies before it joins: the others' joins fail. */
static void absent(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, 4, &want);
	await_death(&p);
}

static void waits_for_absent(struct ct *ct)
{
	const struct ct_want want = { 0 };
	const double end = ct_deadline(ct);
	struct fi_eq_err_entry err;
	struct party p;
	uint32_t code;

	party_open(ct, &p, 4, &want);
	party_call(&p, 0, NULL);
	if (!ct->rank)
		kills(&p);
	while (!party_event(&p, &code, &err)) {
		ct_late(ct, end, "the join to fail");
		ct_pause();
	}
	CT_TRUE(ct, err.err > 0);
	CT_TRUE(ct, err.fid == &p.seat[0].mc[0]->fid && err.context == &p.seat[0].mc[0]);
	party_leave(&p, 0);
	party_shut(&p);
}

const struct ct_case ct_coll_life[] = {
	{ "COLL", "offered", { offered } },
	{ "COLL", "not-asked-for", CT_TWO(not_asked) },
	{ "COLL", "query", { query } },
	{ "COLL", "sets", { sets } },
	{ "COLL", "sets-refused", { sets_refused } },
	{ "COLL", "refused", CT_TWO(refused) },
	{ "COLL", "many-joins", CT_TWO(many_joins) },
	{ "COLL", "by-group", CT_THREE(by_group) },
	{ "COLL", "waits-for-event", CT_THREE(waits_for_event), 0, 0 },
	{ "COLL", "waits-for-event-one-thread", CT_THREE(waits_for_event), 0, 1 },
	{ "COLL", "event-alone", CT_TWO(event_alone) },
	{ "COLL", "nothing-else", CT_THREE(nothing_else) },
	{ "COLL", "left-early", CT_THREE(left_early) },
	{ "COLL", "left-before", CT_TWO(left_before) },
	{ "COLL", "left-while-joining", CT_TWO(left_while_joining) },
	{ "COLL", "counts-differ", CT_TWO(counts_differ) },
	{ "COLL", "leave-at-once", CT_THREE(leave_at_once) },
	{ "COLL", "killed-barrier", { survivor, victim, survivor, survivor }, 0, FI_BARRIER },
	{ "COLL", "killed-alltoall", { survivor, victim, survivor, survivor }, 0, FI_ALLTOALL },
	{ "COLL", "killed-allreduce", { survivor, victim, survivor, survivor }, 0, FI_ALLREDUCE },
	{ "COLL", "killed-before-it-joins", { waits_for_absent, absent, waits_for_absent, waits_for_absent } },
	{ 0 },
};
