/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Schedules. Barriers go by dissemination, what has a root by a binomial tree, what is long
 * in a ring: Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
 * Operations in MPICH, 2005.
 */
#include "front/ofi/coll/plan.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#define RING_FROM 65536	  /* bytes of an allreduce that are worth a step for each member */
#define BRUCK_UP_TO 32768 /* bytes of an allgather that are copied once more to save steps */

/* ---- steps ----------------------------------------------------------------------------------- */

static void plan_add(struct hd_fi_plan *plan, struct hd_fi_step step)
{
	if (plan->count == plan->room && !plan->failed) {
		size_t room = plan->room ? plan->room * 2 : 16;
		struct hd_fi_step *more = reallocarray(plan->step, room, sizeof(*more));

		plan->failed = !more;
		plan->step = more ? more : plan->step;
		plan->room = more ? room : plan->room;
	}
	if (!plan->failed)
		plan->step[plan->count++] = step;
}

static struct hd_fi_place at_place(enum hd_fi_space space, size_t at)
{
	return (struct hd_fi_place){ space, at };
}

static struct hd_fi_place behind(struct hd_fi_place p, size_t by)
{
	p.at += by;
	return p;
}

static void plan_send(struct hd_fi_plan *plan, uint32_t rank, struct hd_fi_place from, size_t len)
{
	plan_add(plan, (struct hd_fi_step){ HD_FI_STEP_SEND, rank, len, .from = from });
}

static void plan_recv(struct hd_fi_plan *plan, uint32_t rank, struct hd_fi_place to, size_t len)
{
	plan_add(plan, (struct hd_fi_step){ HD_FI_STEP_RECV, rank, len, .to = to });
}

static void plan_wait(struct hd_fi_plan *plan)
{
	plan_add(plan, (struct hd_fi_step){ .kind = HD_FI_STEP_WAIT });
}

static void plan_copy(struct hd_fi_plan *plan, struct hd_fi_place to, struct hd_fi_place from, size_t len)
{
	if (len && (to.space != from.space || to.at != from.at))
		plan_add(plan, (struct hd_fi_step){ HD_FI_STEP_COPY, .len = len, .from = from, .to = to });
}

static void plan_reduce(struct hd_fi_plan *plan, struct hd_fi_place to, struct hd_fi_place from, size_t len)
{
	if (len)
		plan_add(plan, (struct hd_fi_step){ HD_FI_STEP_REDUCE, .len = len, .from = from, .to = to });
}

/* ---- members --------------------------------------------------------------------------------- */

/* The one that is `by` further round the circle. */
static uint32_t after(const struct hd_fi_plan_args *a, uint32_t by)
{
	return (uint32_t)(((uint64_t)a->rank + by) % a->members);
}

static uint32_t before(const struct hd_fi_plan_args *a, uint32_t by)
{
	return after(a, a->members - by);
}

/* Its place in the tree, whose root is 0. */
static uint32_t tree_place(const struct hd_fi_plan_args *a)
{
	return before(a, a->root);
}

/*
 * The lowest bit of a place: its parent is so far before it, and its children less far behind
 * it. Of the root: above all.
 */
static uint32_t tree_bit(const struct hd_fi_plan_args *a)
{
	uint32_t me = tree_place(a), bit = 1;

	while (bit < a->members && !(me & bit))
		bit <<= 1;
	return bit;
}

/* How many places there are from `from` on below the one that is `bit` behind it. */
static uint32_t tree_span(const struct hd_fi_plan_args *a, uint32_t from, uint32_t bit)
{
	return a->members - from < bit ? a->members - from : bit;
}

/* ---- without data, and trees without slices -------------------------------------------------- */

static void make_barrier(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	for (uint32_t by = 1; by < a->members; by <<= 1) {
		plan_send(plan, after(a, by), at_place(HD_FI_BUF, 0), 0);
		plan_recv(plan, before(a, by), at_place(HD_FI_BUF, 0), 0);
		plan_wait(plan);
	}
}

/* What is in `where` at the root comes there everywhere. */
static void tree_down(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a, struct hd_fi_place where)
{
	const uint32_t me = tree_place(a), bit = tree_bit(a);
	const size_t len = a->count * a->size;

	if (me) {
		plan_recv(plan, before(a, bit), where, len);
		plan_wait(plan);
	}
	for (uint32_t by = bit >> 1; by; by >>= 1)
		if (me + by < a->members)
			plan_send(plan, after(a, by), where, len);
	plan_wait(plan);
}

/*
 * Everybody's operand comes together at the root. What is there last is where this says: a member
 * without children has copied nothing.
 */
static struct hd_fi_place tree_up(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const uint32_t me = tree_place(a), bit = tree_bit(a);
	const size_t len = a->count * a->size;
	struct hd_fi_place sum = at_place(HD_FI_BUF, 0);

	for (uint32_t by = 1; by < bit && me + by < a->members; by <<= 1) {
		if (sum.space == HD_FI_BUF) {
			plan->tmp = 2 * len;
			plan_copy(plan, at_place(HD_FI_TMP, 0), sum, len);
			sum.space = HD_FI_TMP;
		}
		plan_recv(plan, after(a, by), at_place(HD_FI_TMP, len), len);
		plan_wait(plan);
		plan_reduce(plan, sum, at_place(HD_FI_TMP, len), len);
	}
	if (me)
		plan_send(plan, before(a, bit), sum, len);
	plan_wait(plan);
	return sum;
}

static void make_broadcast(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	plan->acked = true;
	tree_down(plan, a, at_place(HD_FI_BUF, 0));
}

static void make_reduce(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	struct hd_fi_place sum = tree_up(plan, a);

	plan->acked = true;
	if (a->rank == a->root)
		plan_copy(plan, at_place(HD_FI_RESULT, 0), sum, a->count * a->size);
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* A share of what all have: the first ones have an element more, where it does not divide. */
static size_t share_at(const struct hd_fi_plan_args *a, uint32_t i)
{
	const size_t rest = a->count % a->members;

	return (i * (a->count / a->members) + (i < rest ? i : rest)) * a->size;
}

static size_t share_len(const struct hd_fi_plan_args *a, uint32_t i)
{
	return share_at(a, i + 1) - share_at(a, i);
}

/*
 * The operands, a->count elements each, are in TMP, with room for a share behind them: this
 * member's share of the sum comes to its place.
 */
static void ring_reduce(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const struct hd_fi_place room = at_place(HD_FI_TMP, a->count * a->size);

	for (uint32_t i = 1; i < a->members; i++) {
		const uint32_t out = before(a, i), in = after(a, a->members - i - 1);

		plan_send(plan, after(a, 1), at_place(HD_FI_TMP, share_at(a, out)), share_len(a, out));
		plan_recv(plan, before(a, 1), room, share_len(a, in));
		plan_wait(plan);
		plan_reduce(plan, at_place(HD_FI_TMP, share_at(a, in)), room, share_len(a, in));
	}
}

/* This member's share is in RESULT: so are all. */
static void ring_gather(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	for (uint32_t i = 1; i < a->members; i++) {
		const uint32_t out = before(a, i - 1), in = before(a, i);

		plan_send(plan, after(a, 1), at_place(HD_FI_RESULT, share_at(a, out)), share_len(a, out));
		plan_recv(plan, before(a, 1), at_place(HD_FI_RESULT, share_at(a, in)), share_len(a, in));
		plan_wait(plan);
	}
}

static void ring_operands(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	plan->tmp = a->count * a->size + share_len(a, 0);
	plan_copy(plan, at_place(HD_FI_TMP, 0), at_place(HD_FI_BUF, 0), a->count * a->size);
	ring_reduce(plan, a);
}

static void own_share(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a, struct hd_fi_place to)
{
	plan_copy(plan, to, at_place(HD_FI_TMP, share_at(a, a->rank)), share_len(a, a->rank));
}

static void make_allreduce(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	struct hd_fi_place sum;

	if (a->members > 1 && a->count * a->size >= RING_FROM && a->count >= a->members) {
		ring_operands(plan, a);
		own_share(plan, a, at_place(HD_FI_RESULT, share_at(a, a->rank)));
		ring_gather(plan, a);
		return;
	}
	sum = tree_up(plan, a);
	if (a->rank == a->root)
		plan_copy(plan, at_place(HD_FI_RESULT, 0), sum, a->count * a->size);
	tree_down(plan, a, at_place(HD_FI_RESULT, 0));
}

/* Slices are shares of all of them. */
static struct hd_fi_plan_args of_all_slices(const struct hd_fi_plan_args *a)
{
	struct hd_fi_plan_args all = *a;

	all.count *= a->members;
	return all;
}

static void make_reduce_scatter(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const struct hd_fi_plan_args all = of_all_slices(a);

	ring_operands(plan, &all);
	own_share(plan, &all, at_place(HD_FI_RESULT, 0));
}

/* Bruck's: the slices that come are in order from this member's own on. */
static void make_bruck(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const size_t len = a->count * a->size;
	const uint32_t wrap = a->members - a->rank;

	plan->tmp = a->members * len;
	plan_copy(plan, at_place(HD_FI_TMP, 0), at_place(HD_FI_BUF, 0), len);
	for (uint32_t have = 1; have < a->members; have <<= 1) {
		const size_t more = tree_span(a, have, have) * len;

		plan_send(plan, before(a, have), at_place(HD_FI_TMP, 0), more);
		plan_recv(plan, after(a, have), at_place(HD_FI_TMP, have * len), more);
		plan_wait(plan);
	}
	plan_copy(plan, at_place(HD_FI_RESULT, a->rank * len), at_place(HD_FI_TMP, 0), wrap * len);
	plan_copy(plan, at_place(HD_FI_RESULT, 0), at_place(HD_FI_TMP, wrap * len), a->rank * len);
}

static void make_allgather(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const struct hd_fi_plan_args all = of_all_slices(a);

	if (all.count * all.size <= BRUCK_UP_TO) {
		make_bruck(plan, a);
		return;
	}
	plan_copy(plan, at_place(HD_FI_RESULT, share_at(&all, a->rank)), at_place(HD_FI_BUF, 0),
		  a->count * a->size);
	ring_gather(plan, &all);
}

/* ---- slices ---------------------------------------------------------------------------------- */

/*
 * In each step every member has one other, or itself, and both exchange what
 * they have for each other.
 */
static void make_alltoall(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const size_t len = a->count * a->size;

	for (uint32_t i = 0; i < a->members; i++) {
		const uint32_t other = (i + a->members - a->rank) % a->members;
		const struct hd_fi_place from = at_place(HD_FI_BUF, other * len),
					 to = at_place(HD_FI_RESULT, other * len);

		if (other == a->rank) {
			plan_copy(plan, to, from, len);
			continue;
		}
		plan_send(plan, other, from, len);
		plan_recv(plan, other, to, len);
		plan_wait(plan);
	}
}

/*
 * Where a member of a tree has the slices of those below it, its own first: where they are anyway,
 * if it has all and is the first, or none but its own.
 */
static struct hd_fi_place tree_slices(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a,
				      enum hd_fi_space whole, enum hd_fi_space own)
{
	const uint32_t slices = tree_span(a, tree_place(a), tree_bit(a));

	if (a->rank == a->root && !a->root)
		return at_place(whole, 0);
	if (slices == 1)
		return at_place(own, 0);
	plan->tmp = slices * a->count * a->size;
	return at_place(HD_FI_TMP, 0);
}

static void make_scatter(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const uint32_t me = tree_place(a), bit = tree_bit(a), wrap = a->members - a->rank;
	const struct hd_fi_place have = tree_slices(plan, a, HD_FI_BUF, HD_FI_RESULT);
	const size_t len = a->count * a->size;

	plan->acked = true;
	if (me) {
		plan_recv(plan, before(a, bit), have, tree_span(a, me, bit) * len);
		plan_wait(plan);
	} else if (have.space == HD_FI_TMP) {
		plan_copy(plan, have, at_place(HD_FI_BUF, a->rank * len), wrap * len);
		plan_copy(plan, behind(have, wrap * len), at_place(HD_FI_BUF, 0), a->rank * len);
	}
	for (uint32_t by = bit >> 1; by; by >>= 1)
		if (me + by < a->members)
			plan_send(plan, after(a, by), behind(have, by * len),
				  tree_span(a, me + by, by) * len);
	plan_copy(plan, at_place(HD_FI_RESULT, 0), have, len);
	plan_wait(plan);
}

static void make_gather(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	const uint32_t me = tree_place(a), bit = tree_bit(a), wrap = a->members - a->rank;
	const struct hd_fi_place have = tree_slices(plan, a, HD_FI_RESULT, HD_FI_BUF);
	const size_t len = a->count * a->size;

	plan->acked = true;
	plan_copy(plan, have, at_place(HD_FI_BUF, 0), len);
	for (uint32_t by = 1; by < bit && me + by < a->members; by <<= 1)
		plan_recv(plan, after(a, by), behind(have, by * len), tree_span(a, me + by, by) * len);
	plan_wait(plan);
	if (me) {
		plan_send(plan, before(a, bit), have, tree_span(a, me, bit) * len);
		plan_wait(plan);
	} else if (have.space == HD_FI_TMP) {
		plan_copy(plan, at_place(HD_FI_RESULT, a->rank * len), have, wrap * len);
		plan_copy(plan, at_place(HD_FI_RESULT, 0), behind(have, wrap * len), a->rank * len);
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

/* All neighbours say a word to each other, both ways, before anybody waits. */
static void make_touch(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	for (uint32_t by = 1; by < a->members; by <<= 1) {
		plan_send(plan, after(a, by), at_place(HD_FI_BUF, 0), 0);
		plan_send(plan, before(a, by), at_place(HD_FI_BUF, 0), 0);
		plan_recv(plan, before(a, by), at_place(HD_FI_BUF, 0), 0);
		plan_recv(plan, after(a, by), at_place(HD_FI_BUF, 0), 0);
	}
	plan_wait(plan);
}

static void make_join(struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	make_touch(plan, a);
	make_allgather(plan, a);
}

void hd_fi_plan_free(struct hd_fi_plan *plan)
{
	free(plan->step);
	plan->step = NULL;
}

typedef void (*plan_fn)(struct hd_fi_plan *plan, const struct hd_fi_plan_args *args);

static int plan_make(struct hd_fi_plan *plan, const struct hd_fi_plan_args *args, plan_fn make)
{
	*plan = (struct hd_fi_plan){ 0 };
	make(plan, args);
	if (!plan->failed)
		return 0;
	hd_fi_plan_free(plan);
	return -FI_ENOMEM;
}

int hd_fi_plan_make_join(struct hd_fi_plan *plan, const struct hd_fi_plan_args *args)
{
	return plan_make(plan, args, make_join);
}

int hd_fi_plan_make(struct hd_fi_plan *plan, const struct hd_fi_plan_args *args)
{
	static const plan_fn makers[] = {
		[FI_BARRIER] = make_barrier,	 [FI_BROADCAST] = make_broadcast,
		[FI_ALLTOALL] = make_alltoall,	 [FI_ALLREDUCE] = make_allreduce,
		[FI_ALLGATHER] = make_allgather, [FI_REDUCE_SCATTER] = make_reduce_scatter,
		[FI_REDUCE] = make_reduce,	 [FI_SCATTER] = make_scatter,
		[FI_GATHER] = make_gather,
	};

	return plan_make(plan, args, makers[args->coll]);
}
