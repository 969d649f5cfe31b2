/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program that polls in vain offers its processor, and learns what becomes of that. Times are
 * compared with others of the same run.
 */
#include "base/busy_poll.h"
#include "cpu.h"
#include "engine/test/test_pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 12 /* the machine may be busy: what a few threads see is compared */
#define WHILES 12

/*
 * What the kernel is asked is asked here; how long it takes until we have the processor again, and
 * what happens meanwhile, is the test's.
 */
static struct {
	bool ours;
	unsigned count;
	uint64_t us;
	void (*meanwhile)(void);
} offers;

int sched_yield(void)
{
	uint64_t end = hd_ticks() + offers.us * hd_ticks_per_us();

	if (!offers.ours)
		return (int)syscall(SYS_sched_yield);
	offers.count++;
	while (hd_ticks() < end)
		;
	if (offers.meanwhile)
		offers.meanwhile();
	return 0;
}

static struct pair pair;

/*
 * How long one polls, after news or the last offer, until it is offered; all one's
 * patience where it is not.
 */
static uint64_t until_offered(void)
{
	uint64_t begin = hd_ticks(), end = begin + PATIENCE / 1000 * hd_ticks_per_us();
	unsigned before = offers.count;

	while (offers.count == before && hd_ticks() < end)
		side_poll(&pair.a);
	return hd_ticks() - begin - offers.us * hd_ticks_per_us();
}

/* The first `count` whiles of threads that begin anew. */
struct whiles {
	int count, tries;
	uint64_t ticks[WHILES][TRIES];
	void (*between)(void);
};

static void *habit(void *arg)
{
	struct whiles *w = arg;

	for (int i = 0; i < w->count; i++) {
		w->ticks[i][w->tries] = until_offered();
		if (w->between)
			w->between();
	}
	return NULL;
}

static int by_ticks(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void watch(struct whiles *w)
{
	pthread_t thread;

	for (w->tries = 0; w->tries < TRIES; w->tries++) {
		assert_int_equal(pthread_create(&thread, NULL, habit, w), 0);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < w->count; i++)
		qsort(w->ticks[i], TRIES, sizeof(w->ticks[i][0]), by_ticks);
}

/*
 * Others make a while longer, and a thread forget, when they come between: what is to be short is
 * as short as the shortest, what is to be long as most.
 */
static uint64_t least(const struct whiles *w, int i)
{
	return w->ticks[i][0];
}

static uint64_t usual(const struct whiles *w, int i)
{
	return w->ticks[i][TRIES / 2];
}

static int open_pair(void **state)
{
	pair_open(&pair, "shm");
	offers.ours = true;
	return 0;
}

static int close_pair(void **state)
{
	offers.ours = false;
	offers.us = 0;
	offers.meanwhile = NULL;
	pair_close(&pair);
	return 0;
}

static void who_is_alone_offers_seldom(void **state)
{
	struct whiles w = { .count = 8 };

	watch(&w);
	assert_true(usual(&w, 7) > 8 * least(&w, 1));
}

static void share_is_left_to_the_kernel(void **state)
{
	struct whiles w = { .count = 4 };

	offers.us = 1000;
	watch(&w);
	assert_true(usual(&w, 3) > 8 * least(&w, 1));
}

/* Long after its last poll it would seem to have waited in vain. */
static void who_may_sleep_offers_nothing(void **state)
{
	uint64_t end;

	until_offered(); /* it has a while */
	for (end = hd_now_ns() + 2 * HD_NS_PER_MS; hd_now_ns() < end;)
		hd_cpu_relax();
	offers.count = 0;
	for (int i = 0; i < 64; i++) {
		hd_node_lock(pair.a.node);
		hd_sleep_arm(pair.a.node);
		hd_sleep_disarm(pair.a.node);
		hd_node_unlock(pair.a.node);
		side_poll(&pair.a);
	}
	assert_int_equal(offers.count, 0);
	until_offered();
	assert_int_equal(offers.count, 1); /* who polls on does */
}

static unsigned char word[8], in[8];

/* The other end has been waiting for our processor: it answers. */
static void answer(void)
{
	pair_push(&pair, &pair.b, word, sizeof(word), 7, TAGGED(HD_SEND_INJECT));
}

static void take(void)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!side_poll(&pair.a))
		assert_true(hd_now_ns() < end);
	side_post(&pair.a, in, sizeof(in), 7, 0, NULL, NULL);
}

static void who_is_answered_offers_at_once(void **state)
{
	struct whiles w = { .count = 12, .between = take };

	side_post(&pair.a, in, sizeof(in), 7, 0, NULL, NULL);
	answer();
	pair_next(&pair, &pair.a); /* the two know each other */
	side_post(&pair.a, in, sizeof(in), 7, 0, NULL, NULL);
	offers.us = 5;
	offers.meanwhile = answer;
	watch(&w);
	assert_true(usual(&w, 0) > 4 * least(&w, 11));
}

/*
 * How long it takes until the fourth offer where all go to somebody who has the processor for
 * longer than who waits for us needs it.
 */
static uint64_t until_fourth(uint64_t (*of)(const struct whiles *w, int i))
{
	struct whiles w = { .count = 4 };

	/* all of them within what we have of the processor at a time */
	offers.us = HD_ANSWER_US + 50;
	watch(&w);
	return of(&w, 3);
}

/* Those have the processors, and spin for each other as we do. */
static void in_a_crowd_it_is_offered_soon(void **state)
{
	uint64_t alone = until_fourth(usual), crowded;

	hd_node_crowd(pair.a.node, CPU_SETSIZE);
	crowded = until_fourth(least);
	hd_node_crowd(pair.a.node, -CPU_SETSIZE);
	assert_true(crowded * 8 < alone);
}

static void who_greets_offers_soon(void **state)
{
	uint64_t alone = until_fourth(usual), meets = UINT64_MAX;

	/* the second that it is for may be over too soon */
	for (int i = 0; i < TRIES && meets * 8 >= alone; i++) {
		hd_node_meets(pair.a.node);
		meets = until_fourth(least);
	}
	assert_true(meets * 8 < alone);
}

static void a_greeting_is_one_and_a_link_makes_a_crowd(void **state)
{
	assert_int_equal(hd_core(pair.a.node)->crowd, 0);
	assert_int_equal(hd_core(pair.a.node)->meets_until, 0);
	side_post(&pair.a, in, sizeof(in), 7, 0, NULL, NULL);
	answer();
	pair_next(&pair, &pair.a);
	assert_int_equal(hd_core(pair.a.node)->crowd, 1);
	assert_true(hd_core(pair.a.node)->meets_until);
	side_close(&pair.b);
	for (uint64_t end = hd_now_ns() + PATIENCE; hd_core(pair.a.node)->crowd; side_poll(&pair.a))
		assert_true(hd_now_ns() < end);
	side_open(&pair.b);
}

/* To itself it is no other. */
static void who_sends_to_itself_is_no_crowd(void **state)
{
	struct sockaddr_storage name;
	struct hd_dest *self;

	assert_int_equal(hd_ep_name(pair.a.ep, AF_UNSPEC, &name), 0);
	assert_int_equal(hd_dest_get(pair.a.node, (void *)&name, &self), 0);
	side_post(&pair.a, in, sizeof(in), 7, 0, NULL, NULL);
	while (hd_send(pair.a.ep, self, word, sizeof(word), 7, 0, NULL, TAGGED(HD_SEND_INJECT)) == -EAGAIN)
		side_poll(&pair.a);
	pair_next(&pair, &pair.a);
	assert_int_equal(hd_core(pair.a.node)->crowd, 0);
	hd_dest_put(self);
}

/* ---- two processes with one processor -------------------------------------------------------- */

#define TRIPS 50   /* less than anybody else has of the processor at a time */
#define ROUNDS 100 /* of which one is left alone by those */
#define BARE_TRIPS 12

static struct shared {
	struct sockaddr_storage names[2];
	atomic_int named[2], turn;
} * shared;

static void one_processor(void)
{
	cpu_set_t have, one;

	CPU_ZERO(&one);
	assert_int_equal(sched_getaffinity(0, sizeof(have), &have), 0);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &have))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Without a library: each spins until it is its turn. */
static void bare_trips(int who)
{
	for (int i = 0; i < BARE_TRIPS; i++) {
		while (atomic_load(&shared->turn) != who)
			hd_cpu_relax();
		atomic_store(&shared->turn, !who);
	}
}

static void trips(struct side *s, bool begins)
{
	for (int i = 0; i < TRIPS; i++) {
		if (!begins || i)
			while (!side_poll(s))
				;
		side_post(s, in, sizeof(in), 7, 0, NULL, NULL);
		while (hd_send(s->ep, s->to, word, sizeof(word), 7, 0, NULL, TAGGED(HD_SEND_INJECT)) ==
		       -EAGAIN)
			side_poll(s);
	}
}

/*
 * The processor time of a trip, of the round that took least: what others have of the processor,
 * when they want it, is left to the kernel.
 */
static uint64_t least_trip(struct side *s, int who)
{
	uint64_t begin, took, least = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		begin = cpu_ns_all();
		trips(s, !who && !round);
		took = (cpu_ns_all() - begin) / TRIPS;
		least = took < least ? took : least;
	}
	return least;
}

/* Both: the processor time of a trip of ours, and of a bare one. */
static void both_ends(int who, uint64_t *trip, uint64_t *bare)
{
	struct side s;
	uint64_t begin;

	one_processor();
	setenv("HEDDLE_TRANSPORT", "shm", 1);
	side_open(&s);
	assert_int_equal(hd_ep_name(s.ep, AF_UNSPEC, &shared->names[who]), 0);
	atomic_store(&shared->named[who], 1);
	while (!atomic_load(&shared->named[!who]))
		sched_yield();
	assert_int_equal(hd_dest_get(s.node, (void *)&shared->names[!who], &s.to), 0);
	if (who)
		side_post(&s, in, sizeof(in), 7, 0, NULL, NULL);
	*trip = least_trip(&s, who);
	if (!who)
		while (!side_poll(&s))
			;
	begin = cpu_ns_all();
	bare_trips(who);
	*bare = (cpu_ns_all() - begin) / BARE_TRIPS;
	side_close(&s);
}

/* Whoever spins for the other keeps it from the processor, until a tick of the kernel's. */
static void two_ends_share_a_processor(void **state)
{
	uint64_t trip, bare;
	int status;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		both_ends(1, &trip, &bare);
		_exit(0);
	}
	both_ends(0, &trip, &bare);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(trip * 10 < bare);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_may_sleep_offers_nothing, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(who_is_alone_offers_seldom, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(share_is_left_to_the_kernel, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(who_is_answered_offers_at_once, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(in_a_crowd_it_is_offered_soon, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(who_greets_offers_soon, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(a_greeting_is_one_and_a_link_makes_a_crowd, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(who_sends_to_itself_is_no_crowd, open_pair, close_pair),
		cmocka_unit_test(two_ends_share_a_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
