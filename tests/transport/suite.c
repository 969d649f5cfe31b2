/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The list of tests, and those about traffic between two nodes. Life and death are in suite_life.c.
 */
#include "transport/suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/config.h"

uint64_t suite_seed(void)
{
	const char *given = getenv("HD_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0)
			      : rig_mix((uint64_t)getpid() << 32 ^ (uintptr_t)&given);

	print_message("# HD_TEST_SEED=%#llx\n", (unsigned long long)seed);
	return seed;
}

/* ---- packets ---- */

static void two_nodes_greet(void **state)
{
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	assert_true(p.a->up && p.b->up);
	assert_false(p.a->accepted);
	if (!w.suite->self)
		assert_true(p.b->accepted);
	if (w.suite->address) {
		assert_ptr_equal(p.b->listener, &w.listener[1]);
		assert_int_not_equal(p.a->link->where.ss_family, AF_UNSPEC);
		assert_int_not_equal(p.b->link->where.ss_family, AF_UNSPEC);
	}
	world_close(&w);
}

/* Every small size, and the places around powers of two, one packet each. */
static uint32_t next_size(uint32_t size, uint32_t most)
{
	if (size < 300)
		return size + 1;
	for (uint32_t power = 512; power < most; power *= 2)
		for (uint32_t next = power - 1; next <= power + 1; next++)
			if (next > size && next < most)
				return next;
	return most;
}

static void sizes_by(struct world *w, struct pair *p, unsigned how, uint32_t most)
{
	for (uint32_t size = 0; size <= most; size = next_size(size, most)) {
		const struct rig_plan plan = { .packets = 1, .least = size, .most = size, .how = how };

		pair_plan(w, p, &plan);
		world_until(w, 20, pair_quiet, p);
		if (size == most)
			break;
	}
	world_check(w);
}

static void every_size_arrives(void **state)
{
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	sizes_by(&w, &p, RIG_SEND, p.a->link->send_max);
	sizes_by(&w, &p, RIG_SENDV, p.a->link->send_max);
	sizes_by(&w, &p, RIG_PUT, HD_FRAME_MAX);
	world_close(&w);
}

static void traffic(struct world *w, const struct rig_plan *plan)
{
	struct pair p = world_pair(w, 0, w->count - 1);

	pair_plan(w, &p, plan);
	world_until(w, 50, pair_quiet, &p);
}

/* All there is to it: two nodes, and what the plan says. */
static void traffic_of_two(void *state, const struct rig_plan *plan)
{
	struct world w;

	world_open(&w, state, 2);
	traffic(&w, plan);
	world_close(&w);
}

static void packets_keep_their_order_both_ways(void **state)
{
	const struct rig_plan plan = {
		.packets = SUITE_SCALE(100000), .most = 300, .burst = 50, .how = RIG_SEND | RIG_SENDV
	};

	traffic_of_two(*state, &plan);
}

static void small_packets_in_long_bursts(void **state)
{
	const struct rig_plan plan = { .packets = SUITE_SCALE(200000), .most = 24, .how = RIG_SEND };

	traffic_of_two(*state, &plan);
}

static void packets_of_all_kinds_mix(void **state)
{
	const struct rig_plan plan = { .packets = SUITE_SCALE(6000),
				       .most = HD_FRAME_MAX,
				       .how = RIG_SEND | RIG_SENDV | RIG_PUT,
				       .truncates = true };

	traffic_of_two(*state, &plan);
}

static void long_packets_arrive_in_pieces_and_in_small_buffers(void **state)
{
	const struct rig_plan plan = { .packets = SUITE_SCALE(3000),
				       .least = 3000,
				       .most = UINT32_MAX,
				       .how = RIG_SEND | RIG_SENDV,
				       .truncates = true };

	traffic_of_two(*state, &plan);
}

static void puts_are_done_and_intact(void **state)
{
	const struct rig_plan plan = {
		.packets = SUITE_SCALE(5000), .most = HD_FRAME_MAX, .how = RIG_PUT, .truncates = true
	};

	traffic_of_two(*state, &plan);
}

static void puts_can_be_taken_back(void **state)
{
	const struct rig_plan plan = { .packets = SUITE_SCALE(5000),
				       .most = HD_FRAME_MAX,
				       .how = RIG_PUT | RIG_UNPUT | RIG_SEND,
				       .truncates = true };

	traffic_of_two(*state, &plan);
}

static bool was_refused(void *end)
{
	return ((struct rig_end *)end)->again > 0;
}

/*
 * The receiver does not poll: sooner or later there is no room, and what was taken before
 * arrives when it does poll.
 */
static void a_full_link_says_so_and_loses_nothing(void **state)
{
	static const unsigned hows[] = { RIG_SEND, RIG_SENDV, RIG_SEND | RIG_SENDV };

	for (unsigned i = 0; i < 3; i++) {
		struct rig_plan plan = { .packets = SUITE_SCALE(400000),
					 .most = i ? 4000 : 16,
					 .how = hows[i] };
		struct world w;
		struct pair p;

		world_open(&w, *state, 2);
		p = world_pair(&w, 0, w.count - 1);
		world_lock(&w);
		p.b->node->paused = !w.suite->self;
		p.a->plan = plan;
		p.a->plan.packets = UINT64_MAX;
		world_unlock(&w);
		world_until(&w, 30, was_refused, p.a);
		world_lock(&w);
		p.a->plan.packets = 1000;
		p.b->node->paused = false;
		world_unlock(&w);
		world_until(&w, 30, pair_quiet, &p);
		world_close(&w);
	}
}

/* ---- credit ---- */

struct expected_grant {
	struct rig_end *end;
	uint32_t limit;
};

static bool granted_is(void *arg)
{
	struct expected_grant *g = arg;

	return g->end->grant_in == g->limit;
}

static void grant(struct world *w, struct rig_end *from, uint32_t limit)
{
	world_lock(w);
	from->grant_out = limit;
	world_unlock(w);
	world_kick(from->node);
}

static void grants_arrive_alone_and_wrap(void **state)
{
	static const uint32_t limits[] = { 1, 2, 1000, 0x40000000, 0x80000000, 0xc0000000, 0xffffffff, 5, 16 };
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct expected_grant at_b = { p.b, limits[i] },
				      at_a = { p.a, limits[i] ^ (p.a == p.b ? 0 : 1) };

		grant(&w, p.a, at_b.limit);
		if (p.a != p.b)
			grant(&w, p.b, at_a.limit);
		world_until(&w, 20, granted_is, &at_b);
		world_until(&w, 20, granted_is, &at_a);
	}
	world_close(&w);
}

static void grants_keep_up_with_traffic(void **state)
{
	const struct rig_plan plan = {
		.packets = SUITE_SCALE(50000), .most = 200, .burst = 100, .how = RIG_SEND
	};
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	world_lock(&w);
	p.a->grant_step = 5;
	p.b->grant_step = 5;
	world_unlock(&w);
	pair_plan(&w, &p, &plan);
	world_until(&w, 50, pair_quiet, &p);
	world_close(&w);
}

/* ---- fetching ---- */

static void get_of(struct world *w, struct pair *p, struct rig_plan plan)
{
	uint64_t before = p->b->fetched;

	plan.how = RIG_RTS;
	world_lock(w);
	p->a->plan = plan;
	world_unlock(w);
	world_kick(p->a->node);
	world_until(w, 50, pair_quiet, p);
	assert_int_equal(p->b->fetched - before, plan.packets);
	assert_int_equal(p->a->not_offered, 0);
}

static void messages_of_all_sizes_are_fetched(void **state)
{
	static const uint64_t sizes[] = { 1, 8, 100, 5000, 70000, 400000, 1 << 20, 5000000, 16 << 20 };
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		get_of(&w, &p, (struct rig_plan){ .packets = i > 6 ? 4 : 12, .message_most = sizes[i] });
	world_close(&w);
}

static void many_messages_are_fetched_at_once_both_ways(void **state)
{
	const struct rig_plan plan = {
		.packets = SUITE_SCALE(1000), .message_most = 300000, .how = RIG_RTS, .truncates = true
	};
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	pair_plan(&w, &p, &plan);
	world_until(&w, 50, pair_quiet, &p);
	assert_int_equal(p.a->not_offered + p.b->not_offered, 0);
	assert_int_equal(p.b->fetched, plan.packets);
	world_close(&w);
}

static void a_fetch_can_be_given_up(void **state)
{
	const struct rig_plan plan = { .packets = SUITE_SCALE(600),
				       .message_most = 4 << 20,
				       .most = 500,
				       .how = RIG_RTS | RIG_UNGET | RIG_SEND };
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, w.count - 1);
	pair_plan(&w, &p, &plan);
	world_until(&w, 50, pair_quiet, &p);
	world_close(&w);
}

/* ---- all of it ---- */

static struct rig_plan random_plan(struct world *w, uint64_t *random)
{
	struct rig_plan plan = {
		.packets = rig_between(random, 1, 400),
		.most = 1u << rig_between(random, 0, 17),
		.burst = (uint32_t)rig_between(random, 0, 40),
		.how = (unsigned)rig_between(random, 1, RIG_SEND | RIG_SENDV | RIG_PUT),
		.message_most = UINT64_C(1) << rig_between(random, 0, 20),
		.truncates = rig_draw(random) % 2,
	};

	if (plan.how & RIG_PUT && rig_draw(random) % 2)
		plan.how |= RIG_UNPUT;
	if (w->suite->fetches && rig_draw(random) % 2) {
		plan.how |= RIG_RTS | (rig_draw(random) % 2 ? RIG_UNGET : 0);
		plan.packets /= 8;
	}
	return plan;
}

#define SOAK_NODES 3

struct soak {
	struct world w;
	struct pair pair[SOAK_NODES]; /* i calls i + 1 */
	uint64_t random;
};

static void soak_round(struct soak *s)
{
	unsigned loser = (unsigned)(rig_draw(&s->random) % (SOAK_NODES * 3));

	world_lock(&s->w);
	for (int i = 0; i < SOAK_NODES; i++) {
		s->w.node[i % s->w.count]->sleepy = rig_draw(&s->random) % 2;
		s->pair[i].a->plan = random_plan(&s->w, &s->random);
		s->pair[i].b->plan = random_plan(&s->w, &s->random);
		s->pair[i].a->plan.may_fail = s->pair[i].b->plan.may_fail = i == (int)loser;
		s->pair[i].a->grant_step = (uint32_t)rig_between(&s->random, 0, 9);
	}
	world_unlock(&s->w);
	for (int i = 0; i < s->w.count; i++)
		rig_kick(s->w.node[i]); /* it may sleep even if it is no longer to */
	for (uint64_t turns = loser < SOAK_NODES ? rig_between(&s->random, 0, 60) : 0; turns; turns--)
		world_turn(&s->w);
	for (unsigned i = 0; i < SOAK_NODES; i++) {
		struct pair *p = &s->pair[i];

		if (i != loser) {
			world_until(&s->w, 50, pair_quiet, p);
			continue;
		}
		world_lock(&s->w);
		rig_end_close(rig_draw(&s->random) % 2 ? p->a : p->b, -ECONNABORTED);
		world_unlock(&s->w);
		world_kick(p->a->node);
		world_kick(p->b->node);
		world_until(&s->w, 20, end_gone, p->a);
		world_until(&s->w, 20, end_gone, p->b);
		*p = world_pair(&s->w, (int)i % s->w.count, (int)(i + 1) % s->w.count);
	}
}

static void everything_at_random(void **state)
{
	struct soak s = { .random = suite_seed() };

	world_open(&s.w, *state, SOAK_NODES);
	for (int i = 0; i < SOAK_NODES; i++)
		s.pair[i] = world_pair(&s.w, i % s.w.count, (i + 1) % s.w.count);
	for (int round = 0; round < SUITE_SCALE(60); round++)
		soak_round(&s);
	world_close(&s.w);
}

/* ---- the list ---- */

enum need {
	ALWAYS = 0,
	NEED_TWO = 1 << 0,     /* two nodes */
	NEED_FETCH = 1 << 1,   /* offer and get */
	NEED_ADDRESS = 1 << 2, /* listeners */
	NEED_JOIN = 1 << 3,    /* adverts */
	NEED_FORK = 1 << 4,    /* death is noticed in spite of forked children */
	ONE_THREAD = 1 << 5,   /* the test drives the nodes itself */
	OWN_THREADS = 1 << 6,  /* makes no sense without threads */
};

static const struct test {
	const char *name;
	void (*fn)(void **state);
	unsigned needs; /* enum need */
} tests[] = {
#define TEST(fn, needs) \
	{ \
#fn, fn, needs \
	}
	TEST(two_nodes_greet, ALWAYS),
	TEST(every_size_arrives, ALWAYS),
	TEST(packets_keep_their_order_both_ways, ALWAYS),
	TEST(small_packets_in_long_bursts, ALWAYS),
	TEST(packets_of_all_kinds_mix, ALWAYS),
	TEST(long_packets_arrive_in_pieces_and_in_small_buffers, ALWAYS),
	TEST(puts_are_done_and_intact, ALWAYS),
	TEST(puts_can_be_taken_back, ALWAYS),
	TEST(a_full_link_says_so_and_loses_nothing, ALWAYS),
	TEST(grants_arrive_alone_and_wrap, ALWAYS),
	TEST(grants_keep_up_with_traffic, ALWAYS),
	TEST(messages_of_all_sizes_are_fetched, NEED_FETCH),
	TEST(many_messages_are_fetched_at_once_both_ways, NEED_FETCH),
	TEST(a_fetch_can_be_given_up, NEED_FETCH),
	TEST(suite_closing_an_end_is_noticed_by_the_other, NEED_TWO),
	TEST(suite_closing_under_traffic_leaves_nothing, ALWAYS),
	TEST(suite_closing_while_connecting_leaves_nothing, NEED_TWO),
	TEST(suite_a_place_where_nobody_listens_refuses, NEED_ADDRESS),
	TEST(suite_a_stranger_is_not_let_in, NEED_TWO | NEED_ADDRESS),
	TEST(suite_a_bad_advert_is_refused, NEED_JOIN),
	TEST(suite_a_node_that_is_not_known_is_not_let_in, NEED_JOIN),
	TEST(suite_many_links_from_one_node, NEED_TWO),
	TEST(suite_a_sleeper_is_woken, NEED_TWO | ONE_THREAD),
	TEST(suite_arming_sees_what_is_there, NEED_TWO | ONE_THREAD),
	TEST(suite_an_end_that_another_sees, NEED_TWO | ONE_THREAD),
	TEST(suite_credit_is_given_while_one_sleeps, NEED_TWO | ONE_THREAD),
	TEST(suite_no_room_while_one_sleeps, NEED_TWO | ONE_THREAD),
	TEST(suite_nobody_wakes_who_polls, NEED_TWO),
	TEST(suite_no_wake_is_lost, NEED_TWO | OWN_THREADS),
	TEST(suite_another_process, NEED_TWO | ONE_THREAD),
	TEST(suite_a_killed_process_is_noticed, NEED_TWO | ONE_THREAD),
	TEST(suite_a_killed_process_with_a_child_is_noticed, NEED_TWO | ONE_THREAD | NEED_FORK),
	TEST(everything_at_random, ALWAYS),
#undef TEST
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

static bool applies(const struct suite *s, const struct test *t, bool threads)
{
	const char *only = getenv("HD_TEST_ONLY");
	unsigned needs = t->needs;

	if (only && !strstr(t->name, only))
		return false;
	if ((needs & NEED_TWO && s->self) || (needs & NEED_FETCH && !s->fetches) ||
	    (needs & NEED_ADDRESS && !s->address) || (needs & NEED_JOIN && (s->address || s->self)) ||
	    (needs & NEED_FORK && !s->outlives_fork))
		return false;
	return threads ? !(needs & ONE_THREAD) : !(needs & OWN_THREADS);
}

int suite_run(const struct suite *suite)
{
	static struct mode modes[2];
	static char names[TESTS * 2][96];
	static struct CMUnitTest list[TESTS * 2];
	size_t count = 0;

	setenv("HEDDLE_CONNECT_TIMEOUT", "2000", 0);
	setenv("HEDDLE_LOG", "error", 0);
	hd_config_load();
	for (int threads = 0; threads < 2; threads++) {
		modes[threads] = (struct mode){ suite, threads };
		for (size_t i = 0; i < TESTS; i++) {
			const char *name = tests[i].name;

			if (!applies(suite, &tests[i], threads))
				continue;
			if (!strncmp(name, "suite_", 6))
				name += 6;
			snprintf(names[count], sizeof(names[count]), "%s%s", name,
				 threads ? ", threads" : "");
			list[count] = (struct CMUnitTest){
				.name = names[count],
				.test_func = tests[i].fn,
				.initial_state = &modes[threads],
			};
			count++;
		}
	}
	return _cmocka_run_group_tests(suite->transport->name, list, count, NULL, NULL);
}
