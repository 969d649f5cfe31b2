/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Do the faults happen, and only those? On the loop transport, whose own
 * behaviour is as simple as can be.
 */
#include "transport/fault/fault.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/rig.h"

extern const struct hd_transport hd_loop_transport; /* a transport includes no other */

struct stage {
	const struct hd_transport *transport;
	struct hd_node *node;
	struct rig_end *end;
};

static void stage_open(struct stage *s, const struct hd_fault_plan *plan)
{
	s->transport = hd_fault_wrap(&hd_loop_transport, plan);
	assert_non_null(s->transport);
	s->node = rig_node_open();
	assert_non_null(rig_port_open(s->node, s->transport));
	assert_int_equal(rig_connect(s->node->port[0], NULL, 0, &s->end), 0);
}

static void stage_close(struct stage *s)
{
	assert_true(rig_node_close(s->node));
	hd_fault_unwrap(s->transport);
}

static bool quiet(struct stage *s)
{
	return rig_end_idle(s->end) && s->end->rx == s->end->tx;
}

/* Turns until everything has arrived; returns how many it took. */
static int run(struct stage *s, struct rig_plan plan)
{
	int turns = 0;

	s->end->plan = plan;
	while (!quiet(s) && turns++ < 100000)
		rig_poll(s->node);
	assert_string_equal(s->node->complaint, "");
	assert_true(quiet(s));
	return turns;
}

static const struct rig_plan traffic = {
	.packets = 2000, .most = 500, .burst = 10, .how = RIG_SEND | RIG_SENDV | RIG_PUT
};

static void without_faults_nothing_changes(void **state)
{
	const struct hd_fault_plan plan = { .seed = 1 };
	struct stage s;

	stage_open(&s, &plan);
	assert_in_range(run(&s, traffic), 200, 260);
	assert_int_equal(s.end->again, 0);
	stage_close(&s);
}

static void packets_are_late_and_in_order(void **state)
{
	const struct hd_fault_plan plan = { .seed = 2, .hold_most = 20 };
	const struct rig_plan one = { .packets = 1, .how = RIG_SEND };
	int late = 0;
	struct stage s;

	stage_open(&s, &plan);
	for (int i = 0; i < 50; i++)
		late += run(&s, one) > 4;
	assert_in_range(late, 20, 50);
	run(&s, traffic);
	stage_close(&s);
}

static void calls_are_refused_as_often_as_planned(void **state)
{
	const struct hd_fault_plan plan = { .seed = 3, .again_percent = 30 };
	struct stage s;

	stage_open(&s, &plan);
	run(&s, traffic);
	assert_in_range(s.end->again * 100 / (s.end->again + s.end->tx), 25, 35);
	stage_close(&s);
}

static void a_link_breaks_when_it_is_told(void **state)
{
	const struct hd_fault_plan plan = { .seed = 4, .hold_most = 2, .break_after = 100 };
	struct stage s;

	stage_open(&s, &plan);
	s.end->plan = traffic;
	for (int i = 0; i < 1000 && !s.end->closed; i++)
		rig_poll(s.node);
	assert_true(s.end->closed);
	assert_int_equal(s.end->err, -ECONNRESET);
	assert_int_equal(s.end->tx, 100);
	stage_close(&s);
}

static void gets_are_refused_as_often_as_planned(void **state)
{
	const struct hd_fault_plan plan = { .seed = 5, .refuse_percent = 50 };
	const struct rig_plan gets = {
		.packets = 1000, .how = RIG_RTS, .message_most = 1000, .may_fail = true
	};
	struct stage s;

	stage_open(&s, &plan);
	run(&s, gets);
	assert_in_range(s.end->fetched, 400, 600);
	stage_close(&s);
}

static void the_same_seed_gives_the_same_faults(void **state)
{
	const struct hd_fault_plan plan = { .seed = 6, .hold_most = 5, .again_percent = 20 };
	uint64_t again[2];

	for (int i = 0; i < 2; i++) {
		struct stage s;

		stage_open(&s, &plan);
		s.end->random = 77;
		run(&s, traffic);
		again[i] = s.end->again;
		stage_close(&s);
	}
	assert_int_equal(again[0], again[1]);
}

static void four_transports_can_be_wrapped_at_once(void **state)
{
	const struct hd_fault_plan plan = { .seed = 7 };
	const struct hd_transport *t[4];

	for (int i = 0; i < 4; i++) {
		t[i] = hd_fault_wrap(&hd_loop_transport, &plan);
		assert_non_null(t[i]);
		assert_string_equal(t[i]->name, "loop");
	}
	assert_null(hd_fault_wrap(&hd_loop_transport, &plan));
	for (int i = 0; i < 4; i++)
		hd_fault_unwrap(t[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_faults_nothing_changes),
		cmocka_unit_test(packets_are_late_and_in_order),
		cmocka_unit_test(calls_are_refused_as_often_as_planned),
		cmocka_unit_test(a_link_breaks_when_it_is_told),
		cmocka_unit_test(gets_are_refused_as_often_as_planned),
		cmocka_unit_test(the_same_seed_gives_the_same_faults),
		cmocka_unit_test(four_transports_can_be_wrapped_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
