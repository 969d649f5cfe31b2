/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A thread that has both ends of a connection, each in a node of its own, and
 * polls one of them alone.
 */
#include "engine/core/core.h"
#include "engine/test/test_pair.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define POLLS 64 /* enough for a node to know whose it is */

static const struct hd_node_attr automatic = { .front = "test", .auto_progress = true };
static struct pair pair;

static int open_pair(void **state)
{
	setenv("HEDDLE_TRANSPORT", "shm", 1);
	side_open_with(&pair.a, &automatic);
	side_open_with(&pair.b, &automatic);
	side_names(&pair.a, &pair.b);
	side_names(&pair.b, &pair.a);
	return 0;
}

static int close_pair(void **state)
{
	pair_close(&pair);
	return 0;
}

static const char said[8] = "anybody";
static char in[8];

static void *polls(void *side)
{
	for (int i = 0; i < POLLS; i++)
		side_poll(side);
	return NULL;
}

static void expect_one(void)
{
	memset(in, 0, sizeof(in));
	hd_node_lock(pair.b.node);
	side_post(&pair.b, in, sizeof(in), 7, 0, NULL, NULL);
	hd_node_unlock(pair.b.node);
}

static void send_one(void)
{
	hd_node_lock(pair.a.node);
	hd_node_lock(pair.b.node);
	pair_push(&pair, &pair.a, said, sizeof(said), 7, TAGGED(HD_SEND_INJECT));
	hd_node_unlock(pair.b.node);
	hd_node_unlock(pair.a.node);
}

/*
 * While only a is polled. How many turns b's program has made meanwhile: those of b's own
 * thread are none of them.
 */
static uint64_t turns_until_there(void)
{
	uint64_t before = hd_node_program_turns(pair.b.node), end = hd_now_ns() + PATIENCE;

	while (memcmp(in, said, sizeof(said)) != 0) {
		side_poll(&pair.a);
		assert_true(hd_now_ns() < end);
	}
	return hd_node_program_turns(pair.b.node) - before;
}

static uint64_t turns_for_one(void)
{
	expect_one();
	polls(&pair.b);
	send_one();
	return turns_until_there();
}

/* Where its thread was not quicker, as it is when ours has no processor for a while. */
static void the_other_end_is_polled_too(void **state)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!turns_for_one())
		assert_true(hd_now_ns() < end);
}

static void one_that_has_nothing_to_do_goes_to_sleep(void **state)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	bool sleeps = false;

	turns_for_one();
	while (!sleeps) {
		side_poll(&pair.a);
		hd_node_lock(pair.b.node);
		sleeps = hd_core(pair.b.node)->worker.asks & HD_ASK_ROUSE;
		hd_node_unlock(pair.b.node);
		assert_true(hd_now_ns() < end);
	}
}

/* Whose it was last goes on with it. */
static void what_another_thread_polls_is_left_to_it(void **state)
{
	pthread_t thread;

	turns_for_one();
	expect_one();
	assert_int_equal(pthread_create(&thread, NULL, polls, &pair.b), 0);
	pthread_join(thread, NULL);
	send_one();
	assert_int_equal(turns_until_there(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_other_end_is_polled_too, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(one_that_has_nothing_to_do_goes_to_sleep, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(what_another_thread_polls_is_left_to_it, open_pair,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
