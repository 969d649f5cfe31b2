/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Tests of the suite that are defined in another file than its list. */
#ifndef HD_TESTS_SUITE_TESTS_H
#define HD_TESTS_SUITE_TESTS_H

#include <errno.h>

#include "transport/world.h"

/* How much of something is enough where everything is slower. */
#if defined(__SANITIZE_THREAD__)
#define SUITE_SCALE(n) ((n) / 10)
#elif defined(__SANITIZE_ADDRESS__)
#define SUITE_SCALE(n) ((n) / 5)
#else
#define SUITE_SCALE(n) (n)
#endif

/* suite_seed draws the seed of a random test, or takes HD_TEST_SEED, and prints it. */
uint64_t suite_seed(void);

/* suite_life.c */
void suite_closing_an_end_is_noticed_by_the_other(void **state);
void suite_closing_under_traffic_leaves_nothing(void **state);
void suite_closing_while_connecting_leaves_nothing(void **state);
void suite_a_place_where_nobody_listens_refuses(void **state);
void suite_a_stranger_is_not_let_in(void **state);
void suite_a_bad_advert_is_refused(void **state);
void suite_a_node_that_is_not_known_is_not_let_in(void **state);
void suite_many_links_from_one_node(void **state);

/* suite_sleep.c */
void suite_a_sleeper_is_woken(void **state);
void suite_arming_sees_what_is_there(void **state);
void suite_an_end_that_another_sees(void **state);
void suite_credit_is_given_while_one_sleeps(void **state);
void suite_no_room_while_one_sleeps(void **state);
void suite_nobody_wakes_who_polls(void **state);
void suite_no_wake_is_lost(void **state);

/* suite_process.c */
void suite_another_process(void **state);
void suite_a_killed_process_is_noticed(void **state);
void suite_a_killed_process_with_a_child_is_noticed(void **state);

#endif
