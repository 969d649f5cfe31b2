/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sets of addresses, and schedules: those of all members are carried out here, with messages that
 * are taken as early and as late as can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/coll/plan.h"
#include "front/ofi/coll/set.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets ------------------------------------------------------------------------------------ */

static void fill(struct hd_fi_addrs *set, size_t count, const fi_addr_t *addrs)
{
	*set = (struct hd_fi_addrs){ 0 };
	for (size_t i = 0; i < count; i++)
		assert_int_equal(hd_fi_addrs_add(set, addrs[i]), 0);
}

static void check_set(struct hd_fi_addrs *set, size_t count, const fi_addr_t *addrs)
{
	assert_int_equal(set->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(set->at[i], addrs[i]);
	free(set->at);
}

#define LIST(...) \
	sizeof((const fi_addr_t[]){ __VA_ARGS__ }) / sizeof(fi_addr_t), (const fi_addr_t[]) \
	{ \
		__VA_ARGS__ \
	}

static void test_sets_keep_their_order(void **state)
{
	struct hd_fi_addrs a, b;

	fill(&b, LIST(7, 2, 9, 4));
	fill(&a, LIST(4, 1, 7));
	assert_int_equal(hd_fi_addrs_union(&a, &b), 0);
	check_set(&a, LIST(4, 1, 7, 2, 9));
	fill(&a, LIST(4, 1, 7, 2));
	hd_fi_addrs_keep(&a, &b, true);
	check_set(&a, LIST(4, 7, 2));
	fill(&a, LIST(4, 1, 7, 3));
	hd_fi_addrs_keep(&a, &b, false);
	check_set(&a, LIST(1, 3));
	assert_true(hd_fi_addrs_remove(&b, 2));
	assert_false(hd_fi_addrs_remove(&b, 2));
	check_set(&b, LIST(7, 9, 4));
}

static void test_sets_with_themselves(void **state)
{
	struct hd_fi_addrs a;

	fill(&a, LIST(3, 1, 2, 3));
	assert_int_equal(hd_fi_addrs_union(&a, &a), 0);
	hd_fi_addrs_keep(&a, &a, true);
	assert_int_equal(a.count, 3);
	hd_fi_addrs_keep(&a, &a, false);
	assert_int_equal(a.count, 0);
	free(a.at);
}

static void test_sets_grow(void **state)
{
	struct hd_fi_addrs a = { 0 };

	for (fi_addr_t i = 0; i < 1000; i++)
		assert_int_equal(hd_fi_addrs_add(&a, 1000 - i), 0);
	for (fi_addr_t i = 0; i < 1000; i++)
		assert_int_equal(hd_fi_addrs_find(&a, 1000 - i), i);
	assert_int_equal(hd_fi_addrs_find(&a, 1001), -1);
	free(a.at);
}

/* ---- carrying out schedules ------------------------------------------------------------------ */

#define MEMBERS 17

struct letter {
	struct letter *next;
	uint32_t from, to;
	size_t len;
	const char *at;	     /* late: where the sender has it */
	char *copy;	     /* early */
	size_t *outstanding; /* late: of the sender */
};

struct awaited {
	struct awaited *next;
	uint32_t from;
	size_t len;
	char *to;
};

struct actor {
	struct hd_fi_plan plan;
	struct hd_fi_plan_args args;
	size_t at, unsent;
	struct awaited *awaited, **last;
	char *space[HD_FI_SPACES];
};

struct stage {
	struct actor actor[MEMBERS];
	struct letter *letters, **last;
	bool late;
};

static void post_letter(struct stage *s, uint32_t from, const struct hd_fi_step *step)
{
	struct letter *l = calloc(1, sizeof(*l));

	l->from = from;
	l->to = step->rank;
	l->len = step->len;
	l->at = s->actor[from].space[step->from.space] + step->from.at;
	if (s->late) {
		l->outstanding = &s->actor[from].unsent;
		s->actor[from].unsent++;
	} else if (l->len) {
		l->copy = malloc(l->len);
		memcpy(l->copy, l->at, l->len);
	}
	*s->last = l;
	s->last = &l->next;
}

static bool take_letter(struct stage *s, uint32_t to, const struct awaited *a)
{
	struct letter **p = &s->letters, *l;

	while (*p && ((*p)->to != to || (*p)->from != a->from))
		p = &(*p)->next;
	l = *p;
	if (!l)
		return false;
	assert_int_equal(l->len, a->len);
	if (l->len)
		memcpy(a->to, l->copy ? l->copy : l->at, l->len);
	if (l->outstanding)
		--*l->outstanding;
	*p = l->next;
	if (s->last == &l->next)
		s->last = p;
	free(l->copy);
	free(l);
	return true;
}

static void await(struct actor *me, const struct hd_fi_step *step)
{
	struct awaited *a = calloc(1, sizeof(*a));

	a->from = step->rank;
	a->len = step->len;
	a->to = me->space[step->to.space] + step->to.at;
	*me->last = a;
	me->last = &a->next;
}

static bool take_awaited(struct stage *s, uint32_t rank)
{
	struct actor *me = &s->actor[rank];
	bool any = false;

	for (struct awaited **p = &me->awaited; *p;) {
		struct awaited *a = *p;

		if (!take_letter(s, rank, a)) {
			p = &a->next;
			continue;
		}
		any = true;
		*p = a->next;
		free(a);
	}
	me->last = &me->awaited;
	while (*me->last)
		me->last = &(*me->last)->next;
	return any;
}

static void sum(uint32_t *to, const uint32_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

/* True: it is further than before. */
static bool act(struct stage *s, uint32_t rank)
{
	struct actor *me = &s->actor[rank];
	bool any = take_awaited(s, rank);

	for (; me->at < me->plan.count; me->at++, any = true) {
		const struct hd_fi_step *step = &me->plan.step[me->at];
		char *from = me->space[step->from.space] + step->from.at;
		char *to = me->space[step->to.space] + step->to.at;

		if (step->kind == HD_FI_STEP_SEND)
			post_letter(s, rank, step);
		else if (step->kind == HD_FI_STEP_RECV)
			await(me, step);
		else if (step->kind == HD_FI_STEP_COPY)
			memcpy(to, from, step->len);
		else if (step->kind == HD_FI_STEP_REDUCE)
			sum((uint32_t *)to, (uint32_t *)from, step->len / sizeof(uint32_t));
		else if (me->awaited || me->unsent)
			return any;
	}
	assert_null(me->awaited);
	assert_int_equal(me->unsent, 0);
	return any;
}

/* Element i of slice `slice` of this member's operand. */
static uint32_t value(uint32_t rank, uint32_t slice, size_t i)
{
	return rank * 1000003u + slice * 7919u + (uint32_t)i * 31u + 1;
}

static void begin(struct stage *s, const struct hd_fi_plan_args *args, uint32_t rank)
{
	struct actor *me = &s->actor[rank];
	const size_t room = args->members * args->count * args->size + 1;
	uint32_t *operand;

	me->args = *args;
	me->args.rank = rank;
	assert_int_equal(hd_fi_plan_make(&me->plan, &me->args), 0);
	me->last = &me->awaited;
	me->space[HD_FI_BUF] = malloc(room);
	me->space[HD_FI_RESULT] = calloc(1, room);
	me->space[HD_FI_TMP] = malloc(me->plan.tmp + 1);
	operand = (uint32_t *)me->space[HD_FI_BUF];
	for (uint32_t slice = 0; slice < args->members; slice++)
		for (size_t i = 0; i < args->count; i++)
			*operand++ = value(rank, slice, i);
}

/* What element i of slice `slice` of the result has to be; false: this member has no result. */
static bool wanted(const struct hd_fi_plan_args *a, uint32_t rank, uint32_t slice, size_t i, uint32_t *out)
{
	const bool is_root = rank == a->root;
	uint32_t all = 0;
	uint32_t of = a->coll == FI_REDUCE_SCATTER ? rank : 0;

	for (uint32_t r = 0; r < a->members; r++)
		all += value(r, of, i);
	switch (a->coll) {
	case FI_BROADCAST:
		*out = value(a->root, 0, i);
		return !slice;
	case FI_ALLTOALL:
		*out = value(slice, rank, i);
		return true;
	case FI_ALLGATHER:
		*out = value(slice, 0, i);
		return true;
	case FI_GATHER:
		*out = value(slice, 0, i);
		return is_root;
	case FI_SCATTER:
		*out = value(a->root, rank, i);
		return !slice;
	case FI_ALLREDUCE:
	case FI_REDUCE_SCATTER:
		*out = all;
		return !slice;
	case FI_REDUCE:
		*out = all;
		return is_root && !slice;
	default:
		return false;
	}
}

static void end(struct stage *s, const struct hd_fi_plan_args *args, uint32_t rank)
{
	struct actor *me = &s->actor[rank];
	const uint32_t *result = (uint32_t *)me->space[args->coll == FI_BROADCAST ? HD_FI_BUF : HD_FI_RESULT];

	assert_int_equal(me->at, me->plan.count);
	for (uint32_t slice = 0; slice < args->members; slice++)
		for (size_t i = 0; i < args->count; i++) {
			uint32_t want;

			if (wanted(args, rank, slice, i, &want))
				assert_int_equal(result[slice * args->count + i], want);
		}
	for (int i = 0; i < HD_FI_SPACES; i++)
		free(me->space[i]);
	hd_fi_plan_free(&me->plan);
}

static void perform(const struct hd_fi_plan_args *args, bool late)
{
	struct stage s = { .late = late };
	bool any = true;

	s.last = &s.letters;
	for (uint32_t r = 0; r < args->members; r++)
		begin(&s, args, r);
	while (any) {
		any = false;
		for (uint32_t r = args->members; r-- > 0;)
			any |= act(&s, r);
	}
	assert_null(s.letters);
	for (uint32_t r = 0; r < args->members; r++)
		end(&s, args, r);
}

static void perform_all(enum fi_collective_op coll)
{
	static const uint32_t members[] = { 1, 2, 3, 4, 5, 7, 8, 13, 16, MEMBERS };
	static const size_t counts[] = { 0, 1, 3, 40, 20011 };

	for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
			for (uint32_t root = 0; root<members[m]; root += members[m]> 8 ? 5 : 1) {
				const struct hd_fi_plan_args args = { .coll = coll,
								      .members = members[m],
								      .root = root,
								      .count = counts[c],
								      .size = sizeof(uint32_t) };

				if (root && (coll == FI_ALLREDUCE || counts[c] > 1000))
					continue;
				perform(&args, false);
				perform(&args, true);
			}
}

#define SCHEDULE(name, coll) \
	static void test_##name(void **state) \
	{ \
		perform_all(coll); \
	}
SCHEDULE(barrier, FI_BARRIER)
SCHEDULE(broadcast, FI_BROADCAST)
SCHEDULE(alltoall, FI_ALLTOALL)
SCHEDULE(allreduce, FI_ALLREDUCE)
SCHEDULE(allgather, FI_ALLGATHER)
SCHEDULE(reduce_scatter, FI_REDUCE_SCATTER)
SCHEDULE(reduce, FI_REDUCE)
SCHEDULE(scatter, FI_SCATTER)
SCHEDULE(gather, FI_GATHER)

/* Nobody waits for one to whom he has neither sent nor talked when he joined. */
static bool is_neighbour(uint32_t a, uint32_t b, uint32_t members)
{
	for (uint32_t by = 1; by < members; by <<= 1)
		if ((a + by) % members == b || (b + by) % members == a)
			return true;
	return false;
}

static void check_waits(const struct hd_fi_plan *plan, const struct hd_fi_plan_args *a)
{
	bool sent[MEMBERS] = { false };

	for (size_t i = 0; i < plan->count; i++) {
		const struct hd_fi_step *step = &plan->step[i];

		if (step->kind == HD_FI_STEP_SEND)
			sent[step->rank] = true;
		if (step->kind == HD_FI_STEP_RECV)
			assert_true(sent[step->rank] || is_neighbour(a->rank, step->rank, a->members));
	}
}

static void test_who_is_waited_for(void **state)
{
	for (int coll = FI_BARRIER; coll <= FI_GATHER; coll++)
		for (uint32_t rank = 0; rank < MEMBERS; rank++)
			for (uint32_t root = 0; root < MEMBERS; root++) {
				const struct hd_fi_plan_args a = { .coll = (enum fi_collective_op)coll,
								   .members = MEMBERS,
								   .rank = rank,
								   .root = coll == FI_ALLREDUCE ? 0 : root,
								   .count = 20,
								   .size = 4 };
				struct hd_fi_plan plan;

				assert_int_equal(hd_fi_plan_make(&plan, &a), 0);
				check_waits(&plan, &a);
				hd_fi_plan_free(&plan);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_keep_their_order),
		cmocka_unit_test(test_sets_with_themselves),
		cmocka_unit_test(test_sets_grow),
		cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_alltoall),
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_allgather),
		cmocka_unit_test(test_reduce_scatter),
		cmocka_unit_test(test_reduce),
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_who_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
