/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A thread that has both ends of a connection, each in a node of its own, and polls one of them alone. */
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

static void *polls(void *side)
{
	for (int i = 0; i < POLLS; i++)
		side_poll(side);
	return NULL;
}

/* Turns of b's program are counted in its epoch, those of b's own thread are not. */
static void the_other_end_is_polled_too(void **state)
{
	uint64_t before, end = hd_now_ns() + PATIENCE;

	polls(&pair.b);
	before = hd_node_epoch(pair.b.node);
	while (hd_node_epoch(pair.b.node) == before) {
		side_poll(&pair.a);
		assert_true(hd_now_ns() < end);
	}
}

static void what_comes_there_is_taken_in(void **state)
{
	static const char said[8] = "anybody";
	char in[8] = "";
	uint64_t end = hd_now_ns() + PATIENCE;

	side_post(&pair.b, in, sizeof(in), 7, 0, NULL, NULL);
	pair_push(&pair, &pair.a, said, sizeof(said), 7, TAGGED(0));
	while (memcmp(in, said, sizeof(said)) != 0) {
		side_poll(&pair.a);
		assert_true(hd_now_ns() < end);
	}
	assert_true(pair_next(&pair, &pair.b).len == sizeof(said));
}

/* Whose it was last goes on with it. */
static void what_another_thread_polls_is_left_to_it(void **state)
{
	pthread_t thread;
	uint64_t before;

	polls(&pair.b);
	assert_int_equal(pthread_create(&thread, NULL, polls, &pair.b), 0);
	pthread_join(thread, NULL);
	before = hd_node_epoch(pair.b.node);
	for (struct settling s = settling(20); settling_on(&s);) /* nothing is to come */
		side_poll(&pair.a);
	assert_int_equal(hd_node_epoch(pair.b.node), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_other_end_is_polled_too, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(what_comes_there_is_taken_in, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(what_another_thread_polls_is_left_to_it, open_pair,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
