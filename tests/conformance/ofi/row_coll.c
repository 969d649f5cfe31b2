/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * COLL: what collective operations do, fi_collective(3). What groups go
 * through is in row_coll_life.c.
 */
#include "party.h"

#include <complex.h>
#include <rdma/fi_eq.h>
#include <stdlib.h>
#include <string.h>

/* ---- one operation --------------------------------------------------------------------------- */

/* One call, the same of all members. */
struct act {
	enum fi_collective_op coll;
	enum fi_datatype type;
	enum fi_op op;
	size_t count, size; /* elements, bytes of one */
	int root;	    /* rank */
	int g;
	const int *list; /* of the group */
	uint64_t seed;
	bool by_message;
};

/* One member's part of it. */
struct part {
	char *buf, *result;
	int rank;
};

static bool is_sliced(enum fi_collective_op coll)
{
	return coll == FI_ALLTOALL || coll == FI_REDUCE_SCATTER || coll == FI_SCATTER || coll == FI_GATHER ||
	       coll == FI_ALLGATHER;
}

static bool reduces(enum fi_collective_op coll)
{
	return coll == FI_ALLREDUCE || coll == FI_REDUCE || coll == FI_REDUCE_SCATTER;
}

/* Small numbers, so that sums and products of any order are exact in every type. */
static void put_value(enum fi_datatype type, void *at, uint64_t v)
{
	v = v % 3 + 1;
	switch (type) {
	case FI_INT8:
	case FI_UINT8:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case FI_INT16:
	case FI_UINT16:
		*(uint16_t *)at = (uint16_t)v;
		break;
	case FI_INT32:
	case FI_UINT32:
		*(uint32_t *)at = (uint32_t)v;
		break;
	case FI_INT64:
	case FI_UINT64:
		*(uint64_t *)at = v;
		break;
	case FI_FLOAT:
		*(float *)at = (float)v;
		break;
	case FI_DOUBLE:
		*(double *)at = (double)v;
		break;
	case FI_FLOAT_COMPLEX:
		*(float complex *)at = (float)v;
		break;
	case FI_DOUBLE_COMPLEX:
		*(double complex *)at = (double)v;
		break;
	case FI_LONG_DOUBLE:
		*(long double *)at = (long double)v;
		break;
	case FI_LONG_DOUBLE_COMPLEX:
		*(long double complex *)at = (long double)v;
		break;
	default:
		break;
	}
}

static uint64_t get_value(enum fi_datatype type, const void *at)
{
	switch (type) {
	case FI_INT8:
	case FI_UINT8:
		return *(const uint8_t *)at;
	case FI_INT16:
	case FI_UINT16:
		return *(const uint16_t *)at;
	case FI_INT32:
	case FI_UINT32:
		return *(const uint32_t *)at;
	case FI_INT64:
	case FI_UINT64:
		return *(const uint64_t *)at;
	case FI_FLOAT:
		return (uint64_t) * (const float *)at;
	case FI_DOUBLE:
		return (uint64_t) * (const double *)at;
	case FI_FLOAT_COMPLEX:
		return (uint64_t)crealf(*(const float complex *)at);
	case FI_DOUBLE_COMPLEX:
		return (uint64_t)creal(*(const double complex *)at);
	case FI_LONG_DOUBLE:
		return (uint64_t) * (const long double *)at;
	case FI_LONG_DOUBLE_COMPLEX:
		return (uint64_t)creall(*(const long double complex *)at);
	default:
		return 0;
	}
}

static uint64_t value(const struct act *a, int rank, int slice, size_t i)
{
	return (a->seed + (uint64_t)rank * 7 + (uint64_t)slice * 11 + i * 5) % 3 + 1;
}

static uint64_t combine(enum fi_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case FI_MIN:
		return a < b ? a : b;
	case FI_MAX:
		return a > b ? a : b;
	case FI_SUM:
		return a + b;
	case FI_PROD:
		return a * b;
	case FI_LOR:
		return a || b;
	case FI_LAND:
		return a && b;
	case FI_LXOR:
		return !a != !b;
	case FI_BOR:
		return a | b;
	case FI_BAND:
		return a & b;
	default:
		return a ^ b;
	}
}

/* Beyond 8 bits a product of eight does not go, and so no test wants it of those. */
static uint64_t combined(const struct party *p, const struct act *a, int slice, size_t i)
{
	const int n = party_count(p, a->list);
	uint64_t v = value(a, 0, slice, i);

	for (int r = 1; r < n; r++)
		v = combine(a->op, v, value(a, r, slice, i));
	return a->size == 1 ? (uint8_t)v : v;
}

/* Element i of slice `slice` of what this rank has afterwards; 0: nothing is said of it. */
static uint64_t wanted(const struct party *p, const struct act *a, int rank, int slice, size_t i)
{
	switch (a->coll) {
	case FI_BROADCAST:
		return slice ? 0 : value(a, a->root, 0, i);
	case FI_ALLTOALL:
		return value(a, slice, rank, i);
	case FI_ALLGATHER:
		return value(a, slice, 0, i);
	case FI_GATHER:
		return rank == a->root ? value(a, slice, 0, i) : 0;
	case FI_SCATTER:
		return slice ? 0 : value(a, a->root, rank, i);
	case FI_ALLREDUCE:
		return slice ? 0 : combined(p, a, 0, i);
	case FI_REDUCE:
		return slice || rank != a->root ? 0 : combined(p, a, 0, i);
	case FI_REDUCE_SCATTER:
		return slice ? 0 : combined(p, a, rank, i);
	default:
		return 0;
	}
}

static void part_make(struct party *p, const struct act *a, struct part *part, int rank)
{
	const int slices = is_sliced(a->coll) ? party_count(p, a->list) : 1;
	const size_t room = (size_t)slices * a->count * a->size;

	part->rank = rank;
	part->buf = ct_alloc(p->ct, room);
	part->result = ct_alloc(p->ct, room);
	for (int s = 0; s < slices; s++)
		for (size_t i = 0; i < a->count; i++)
			put_value(a->type, part->buf + ((size_t)s * a->count + i) * a->size,
				  value(a, rank, s, i) - 1);
}

static void part_check(struct party *p, const struct act *a, const struct part *part)
{
	const int slices = is_sliced(a->coll) ? party_count(p, a->list) : 1;
	const char *at = a->coll == FI_BROADCAST ? part->buf : part->result;

	for (int s = 0; s < slices; s++)
		for (size_t i = 0; i < a->count; i++) {
			const uint64_t want = wanted(p, a, part->rank, s, i);
			const uint64_t is = get_value(a->type, at + ((size_t)s * a->count + i) * a->size);

			if (is != want && (want || reduces(a->coll)) && !(reduces(a->coll) && s) &&
			    !((a->coll == FI_REDUCE || a->coll == FI_GATHER) && part->rank != a->root))
				ct_fail(p->ct,
					"collective %d of type %d, op %d, %zu elements, root %d: element %zu of slice %d at rank %d is %llu, not %llu",
					a->coll, a->type, a->op, a->count, a->root, i, s, part->rank,
					(unsigned long long)is, (unsigned long long)want);
		}
}

static ssize_t part_call(struct party *p, const struct act *a, const struct seat *s, const struct part *t,
			 void *ctx)
{
	const fi_addr_t group = fi_mc_addr(s->mc[a->g]), root = p->addr[a->list ? a->list[a->root] : a->root];
	const bool is_root = t->rank == a->root;

	switch (a->coll) {
	case FI_BARRIER:
		return fi_barrier(s->ep, group, ctx);
	case FI_BROADCAST:
		return fi_broadcast(s->ep, t->buf, a->count, NULL, group, root, a->type, 0, ctx);
	case FI_ALLTOALL:
		return fi_alltoall(s->ep, t->buf, a->count, NULL, t->result, NULL, group, a->type, 0, ctx);
	case FI_ALLREDUCE:
		return fi_allreduce(s->ep, t->buf, a->count, NULL, t->result, NULL, group, a->type, a->op, 0,
				    ctx);
	case FI_ALLGATHER:
		return fi_allgather(s->ep, t->buf, a->count, NULL, t->result, NULL, group, a->type, 0, ctx);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(s->ep, t->buf, a->count, NULL, t->result, NULL, group, a->type,
					 a->op, 0, ctx);
	case FI_REDUCE:
		return fi_reduce(s->ep, t->buf, a->count, NULL, is_root ? t->result : NULL, NULL, group, root,
				 a->type, a->op, 0, ctx);
	case FI_SCATTER:
		return fi_scatter(s->ep, is_root ? t->buf : NULL, a->count, NULL, t->result, NULL, group,
				  root, a->type, 0, ctx);
	default:
		return fi_gather(s->ep, t->buf, a->count, NULL, is_root ? t->result : NULL, NULL, group, root,
				 a->type, 0, ctx);
	}
}

/* The same by struct fi_msg_collective, which has lists of one segment. */
static ssize_t part_message(struct party *p, const struct act *a, const struct seat *s, const struct part *t,
			    void *ctx)
{
	const bool is_root = t->rank == a->root;
	const bool reads = a->coll != FI_BARRIER && (a->coll != FI_SCATTER || is_root);
	const bool writes = a->coll != FI_BARRIER && a->coll != FI_BROADCAST &&
			    ((a->coll != FI_REDUCE && a->coll != FI_GATHER) || is_root);
	const struct fi_ioc buf = { t->buf, a->count };
	struct fi_ioc result = { t->result, a->count };
	const struct fi_msg_collective m = { .msg_iov = &buf,
					     .iov_count = reads,
					     .coll_addr = fi_mc_addr(s->mc[a->g]),
					     .root_addr = p->addr[a->list ? a->list[a->root] : a->root],
					     .coll = a->coll,
					     .datatype = a->type,
					     .op = a->op,
					     .context = ctx };

	return s->ep->collective->msg(s->ep, &m, &result, NULL, writes, 0);
}

/* The parts of this process begin; their contexts count up from `first`. */
static void act_begin(struct party *p, const struct act *a, struct part *parts, uintptr_t first)
{
	for (int i = 0; i < p->seats; i++) {
		const int rank = party_rank(p, a->list, p->seat[i].member);

		parts[i].buf = NULL;
		if (rank < 0)
			continue;
		part_make(p, a, &parts[i], rank);
		CT_POST(&p->e, (a->by_message ? part_message : part_call)(p, a, &p->seat[i], &parts[i],
									  CTX(first + (uintptr_t)i)));
	}
}

static void act_end(struct party *p, const struct act *a, struct part *parts, uintptr_t first)
{
	for (int i = 0; i < p->seats; i++) {
		struct ct_comp c;

		if (!parts[i].buf)
			continue;
		ct_of(&p->e, CTX(first + (uintptr_t)i), &c);
		CT_EQ(p->ct, c.err, 0);
		CT_EQ(p->ct, c.flags, FI_COLLECTIVE);
		CT_EQ(p->ct, c.len, 0);
		part_check(p, a, &parts[i]);
		free(parts[i].buf);
		free(parts[i].result);
	}
}

static void act(struct party *p, const struct act *a)
{
	struct part parts[PARTY_MAX];

	act_begin(p, a, parts, 1);
	act_end(p, a, parts, 1);
}

static size_t type_size(struct party *p, enum fi_datatype type)
{
	struct fi_collective_attr attr = { .op = FI_NOOP, .datatype = type };

	CT_OK(p->ct, fi_query_collective(p->dom.domain, FI_BROADCAST, &attr, 0));
	return attr.datatype_attr.size;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A case's argument: members, and whether the sizes are the large ones. */
#define MEMBERS(arg) ((int)((arg)&0xff))
#define LARGE 0x100

static const enum fi_datatype some_types[] = { FI_UINT8, FI_INT32, FI_DOUBLE, FI_LONG_DOUBLE_COMPLEX };

static void every_root(struct party *p, struct act *a)
{
	const bool rooted = a->coll == FI_BROADCAST || a->coll == FI_REDUCE || a->coll == FI_SCATTER ||
			    a->coll == FI_GATHER;

	for (a->root = 0; a->root < (rooted ? p->members : 1); a->root++) {
		a->seed++;
		act(p, a);
	}
}

static void everything(struct ct *ct)
{
	static const size_t small[] = { 0, 1, 1000, 8192 }, large[] = { 1u << 20 };
	const bool is_large = ct->cs->arg & LARGE;
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, MEMBERS(ct->cs->arg), &want);
	party_join(&p, 0, NULL);
	for (size_t t = 0; t < (is_large ? 1 : CT_COUNT(some_types)); t++)
		for (size_t c = 0; c < (is_large ? CT_COUNT(large) : CT_COUNT(small)); c++)
			for (int coll = FI_BARRIER; coll <= FI_GATHER; coll++) {
				struct act a = { .coll = (enum fi_collective_op)coll,
						 .type = some_types[t],
						 .op = FI_SUM,
						 .count = is_large ? large[c] : small[c],
						 .size = type_size(&p, some_types[t]) };

				every_root(&p, &a);
			}
	party_leave(&p, 0);
	party_close(&p);
}

/* Every operation by the call that takes a message; lists of more than a segment are refused. */
static void messages(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct fi_ioc two[2] = { { 0 } };
	struct fi_msg_collective m = { .msg_iov = two, .iov_count = 2, .coll = FI_ALLREDUCE };
	struct party p;

	party_open(ct, &p, 3, &want);
	party_join(&p, 0, NULL);
	for (int coll = FI_BARRIER; coll <= FI_GATHER; coll++) {
		struct act a = { .coll = (enum fi_collective_op)coll,
				 .type = FI_INT32,
				 .op = FI_SUM,
				 .count = 300,
				 .size = 4,
				 .by_message = true };

		every_root(&p, &a);
	}
	m.coll_addr = fi_mc_addr(p.seat[0].mc[0]);
	CT_EQ(ct, p.e.ep->collective->msg(p.e.ep, &m, two, NULL, 1, 0), -FI_EINVAL);
	m.iov_count = 1;
	CT_EQ(ct, p.e.ep->collective->msg(p.e.ep, &m, two, NULL, 2, 0), -FI_EINVAL);
	CT_EQ(ct, p.e.ep->collective->msg(p.e.ep, &m, NULL, NULL, 1, 0), -FI_EINVAL);
	CT_EQ(ct, p.e.ep->collective->msg(p.e.ep, NULL, NULL, NULL, 0, 0), -FI_EINVAL);
	m.coll = (enum fi_collective_op)77;
	CT_EQ(ct, p.e.ep->collective->msg(p.e.ep, &m, two, NULL, 1, 0), -FI_EINVAL);
	party_leave(&p, 0);
	party_close(&p);
}

/*
 * Every reduction of every type that fi_query_collective tells of; of others the call is refused.
 */
static void reductions(struct ct *ct)
{
	static const enum fi_collective_op colls[] = { FI_ALLREDUCE, FI_REDUCE, FI_REDUCE_SCATTER };
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, MEMBERS(ct->cs->arg), &want);
	party_join(&p, 0, NULL);
	for (int type = FI_INT8; type <= FI_LONG_DOUBLE_COMPLEX; type++)
		for (int op = FI_MIN; op <= FI_BXOR; op++) {
			struct fi_collective_attr attr = { .op = (enum fi_op)op,
							   .datatype = (enum fi_datatype)type };
			struct act a = { .coll = colls[(type + op) % 3],
					 .type = (enum fi_datatype)type,
					 .op = (enum fi_op)op,
					 .count = 77,
					 .size = type_size(&p, (enum fi_datatype)type),
					 .root = p.members - 1 };
			char junk[64] = { 0 };

			if (!fi_query_collective(p.dom.domain, a.coll, &attr, 0))
				act(&p, &a);
			else if (p.seats)
				CT_EQ(ct,
				      fi_allreduce(p.seat[0].ep, junk, 1, NULL, junk, NULL,
						   fi_mc_addr(p.seat[0].mc[0]), a.type, a.op, 0, NULL),
				      -FI_EOPNOTSUPP);
		}
	party_leave(&p, 0);
	party_close(&p);
}

/* ---- side by side ---------------------------------------------------------------------------- */

/* Several operations in several groups are under way at once, called in one order in each group. */
static void side_by_side(struct ct *ct)
{
	static const int halves[][5] = { { 4, 2, 0, -1 }, { 1, 3, 4, 0, -1 }, { 2, 1, -1 } };
	static const enum fi_collective_op colls[] = { FI_ALLREDUCE, FI_BARRIER, FI_ALLTOALL, FI_BROADCAST,
						       FI_REDUCE_SCATTER };
	const int groups = (int)CT_COUNT(halves);
	const struct ct_want want = { 0 };
	struct part parts[3][5][PARTY_MAX];
	struct act acts[3][5];
	struct party p;

	party_open(ct, &p, 5, &want);
	for (int g = 0; g < groups; g++)
		party_join(&p, g, halves[g]);
	for (int i = 0; i < 5; i++)
		for (int g = 0; g < groups; g++) {
			acts[g][i] = (struct act){ .coll = colls[(i + g) % 5],
						   .type = FI_UINT32,
						   .op = FI_SUM,
						   .count = (size_t)1 << (3 * i + 2),
						   .size = 4,
						   .root = 1,
						   .g = g,
						   .list = halves[g],
						   .seed = (uint64_t)(i * 3 + g) };
			if (colls[(i + g) % 5] != FI_BROADCAST)
				acts[g][i].root = 0;
			act_begin(&p, &acts[g][i], parts[g][i], (uintptr_t)(g * 5 + i) * PARTY_MAX + 1);
		}
	for (int i = 4; i >= 0; i--)
		for (int g = 0; g < groups; g++)
			act_end(&p, &acts[g][i], parts[g][i], (uintptr_t)(g * 5 + i) * PARTY_MAX + 1);
	for (int g = 0; g < groups; g++)
		party_leave(&p, g);
	party_close(&p);
}

/* Messages of groups meet no receive of the program's, and the program's none of theirs. */
static void beside_messages(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct act a = { .coll = FI_ALLREDUCE, .type = FI_INT64, .op = FI_MAX, .count = 3000, .size = 8 };
	char in[2][16], out[16] = "between";
	struct party p;

	party_open(ct, &p, 2, &want);
	for (int r = 0; r < 2; r++)
		p.e.addr[r] = p.addr[r];
	ct_trecv(&p.e, in[0], sizeof(in[0]), 0, UINT64_MAX, CTX(500));
	ct_recv(&p.e, in[1], sizeof(in[1]), CTX(501));
	party_join(&p, 0, NULL);
	for (int i = 0; i < 20; i++)
		act(&p, &a);
	ct_quiet(&p.e, 30, "nothing was sent to these receives");
	ct_sync(ct, &p.e);
	ct_tsend(&p.e, !ct->rank, out, sizeof(out), 0, CTX(502));
	ct_send(&p.e, !ct->rank, out, sizeof(out), CTX(503));
	for (uintptr_t i = 500; i < 504; i++)
		ct_done(&p.e, CTX(i));
	CT_TRUE(ct, !memcmp(in[0], out, sizeof(out)) && !memcmp(in[1], out, sizeof(out)));
	act(&p, &a);
	party_leave(&p, 0);
	party_close(&p);
}

/* One end is called long before the other: what it sends ahead is there when the other comes. */
static void late_comer(struct ct *ct)
{
	const struct ct_want want = { 0 };
	struct part parts[20][PARTY_MAX];
	struct act acts[20];
	struct party p;

	party_open(ct, &p, 3, &want);
	party_join(&p, 0, NULL);
	for (int i = 0; i < 20; i++)
		acts[i] = (struct act){ .coll = i % 2 ? FI_BROADCAST : FI_ALLGATHER,
					.type = FI_UINT16,
					.count = i % 3 ? 100 : 60000,
					.size = 2,
					.seed = (uint64_t)i };
	if (ct->rank == 2)
		ct_sync(ct, &p.e);
	for (int i = 0; i < 20; i++)
		act_begin(&p, &acts[i], parts[i], (uintptr_t)i * PARTY_MAX + 1);
	if (ct->rank != 2)
		ct_sync(ct, &p.e);
	for (int i = 0; i < 20; i++)
		act_end(&p, &acts[i], parts[i], (uintptr_t)i * PARTY_MAX + 1);
	party_leave(&p, 0);
	party_close(&p);
}

/* ---- completions ----------------------------------------------------------------------------- */

/*
 * fi_endpoint(3): the endpoint's flags are for calls that have none; others say
 * themselves whether they complete.
 */
static void by_default(struct party *p, fi_addr_t group)
{
	uint64_t flags = FI_TRANSMIT | FI_COMPLETION;
	struct fid_ep *ep = p->seat[0].ep;
	const double end = ct_deadline(p->e.ct);
	uint32_t one = 1, sum = 0;
	struct ct *ct = p->e.ct;
	struct ct_comp c;

	CT_OK(ct, fi_control(&ep->fid, FI_SETOPSFLAG, &flags));
	CT_POST(&p->e, fi_barrier(ep, group, CTX(3)));
	ct_done(&p->e, CTX(3));
	CT_POST(&p->e, fi_allreduce(ep, &one, 1, NULL, &sum, NULL, group, FI_UINT32, FI_SUM, 0, CTX(4)));
	CT_POST(&p->e, fi_barrier2(ep, group, FI_COMPLETION, CTX(5)));
	ct_any(&p->e, &c);
	CT_TRUE(ct, !c.err && c.ctx == CTX(5));
	while (fi_cntr_read(p->cntr) < 9)
		ct_late(ct, end, "a reduction to be counted");
	CT_EQ(ct, sum, 2);
	ct_quiet(&p->e, 20, "a call without FI_COMPLETION");
}

/*
 * A counter of what is written counts them; with FI_SELECTIVE_COMPLETION only those
 * complete that ask for it.
 */
static void counted(struct ct *ct)
{
	const struct ct_want want = { .counters = true, .tx_bind = FI_SELECTIVE_COMPLETION };
	const double end = ct_deadline(ct);
	fi_addr_t group;
	struct party p;

	party_open(ct, &p, 2, &want);
	party_join(&p, 0, NULL);
	group = fi_mc_addr(p.seat[0].mc[0]);
	for (int i = 0; i < 5; i++)
		CT_POST(&p.e, fi_barrier(p.seat[0].ep, group, CTX(1)));
	while (fi_cntr_read(p.cntr) < 5)
		ct_late(ct, end, "five barriers to be counted");
	ct_quiet(&p.e, 20, "no completion was asked for");
	CT_POST(&p.e, fi_barrier2(p.seat[0].ep, group, FI_COMPLETION, CTX(2)));
	ct_done(&p.e, CTX(2));
	CT_EQ(ct, fi_cntr_read(p.cntr), 6);
	CT_EQ(ct, fi_cntr_readerr(p.cntr), 0);
	by_default(&p, group);
	party_leave(&p, 0);
	party_close(&p);
}

/* Operand and result may be one and the same where both are of one size. */
static void in_place(struct ct *ct)
{
	static const size_t counts[] = { 1, 50, 100000 };
	const struct ct_want want = { 0 };
	struct party p;

	party_open(ct, &p, 3, &want);
	party_join(&p, 0, NULL);
	for (size_t c = 0; c < CT_COUNT(counts); c++) {
		uint32_t *both = ct_alloc(ct, counts[c] * sizeof(*both));

		for (size_t i = 0; i < counts[c]; i++)
			both[i] = (uint32_t)i + (uint32_t)ct->rank;
		CT_POST(&p.e, fi_allreduce(p.seat[0].ep, both, counts[c], NULL, both, NULL,
					   fi_mc_addr(p.seat[0].mc[0]), FI_UINT32, FI_SUM, 0, CTX(1)));
		ct_done(&p.e, CTX(1));
		for (size_t i = 0; i < counts[c]; i++)
			CT_EQ(ct, both[i], 3 * i + 3);
		free(both);
	}
	party_leave(&p, 0);
	party_close(&p);
}

/* Endpoints with authorization keys: the domain's, their own, their AV's. */
static void keyed(struct ct *ct)
{
	static const struct ct_want wants[] = { { .domain_key = "one" },
						{ .ep_key = "another" },
						{ .av_keys = true } };
	struct act a = { .coll = FI_ALLGATHER, .type = FI_INT16, .count = 12000, .size = 2 };
	struct party p;

	party_open(ct, &p, 3, &wants[ct->cs->arg]);
	party_join(&p, 0, NULL);
	act(&p, &a);
	a.coll = FI_ALLTOALL;
	act(&p, &a);
	party_leave(&p, 0);
	party_close(&p);
}

#define FOUR(f) \
	{ \
		f, f, f, f \
	}

const struct ct_case ct_coll[] = {
	{ "COLL", "alone", { everything }, 0, 1 },
	{ "COLL", "two", CT_TWO(everything), 0, 2 },
	{ "COLL", "three", CT_THREE(everything), 0, 3 },
	{ "COLL", "five", CT_TWO(everything), 0, 5, .slow = true },
	{ "COLL", "eight", FOUR(everything), 0, 8, .slow = true },
	{ "COLL", "large-three", CT_THREE(everything), 0, 3 | LARGE, .slow = true },
	{ "COLL", "large-five", CT_TWO(everything), 0, 5 | LARGE, .slow = true },
	{ "COLL", "messages", CT_THREE(messages) },
	{ "COLL", "reductions", CT_THREE(reductions), 0, 3 },
	{ "COLL", "reductions-five", CT_TWO(reductions), 0, 5, .slow = true },
	{ "COLL", "side-by-side", CT_TWO(side_by_side), 0, 5 },
	{ "COLL", "beside-messages", CT_TWO(beside_messages) },
	{ "COLL", "late-comer", CT_THREE(late_comer) },
	{ "COLL", "counted", CT_TWO(counted) },
	{ "COLL", "key-of-domain", CT_THREE(keyed), 0, 0 },
	{ "COLL", "key-of-endpoint", CT_THREE(keyed), 0, 1 },
	{ "COLL", "keys-of-av", CT_THREE(keyed), 0, 2 },
	{ "COLL", "in-place", CT_THREE(in_place) },
	{ 0 },
};
