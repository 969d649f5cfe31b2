/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Peers that are idle: links that cool down, senders that sleep. */
#include "base/config.h"
#include "transport/shm_duo.h"

#include <errno.h>
#include <stdlib.h>

#define IDLE 40

static void idle_links_cool_down_and_are_still_heard(void **state)
{
	const struct rig_plan plan = { .packets = 1, .least = 8, .most = 8, .how = RIG_SEND };
	struct rig_end *end[IDLE];
	struct duo d;

	duo_nodes(&d);
	for (int i = 0; i < IDLE; i++) {
		duo_join(&d);
		end[i] = d.end[0];
	}
	duo_turns(&d, 10000);
	assert_int_equal(d.port[1]->hot_count, 0);
	assert_int_equal(d.port[1]->cold_count, IDLE);
	for (int i = 0; i < IDLE; i++) {
		uint64_t before = end[i]->other->rx;

		end[i]->plan = plan;
		rig_poll(d.node[0]);
		for (int turns = 0; turns < IDLE && end[i]->other->rx == before; turns++)
			rig_poll(d.node[1]);
		assert_int_equal(end[i]->other->rx, before + 1);
		assert_true(hd_shm_link_of(end[i]->link)->hot);
	}
	assert_in_range(d.port[1]->hot_count, 1, IDLE);
	duo_turns(&d, 10000);
	assert_int_equal(d.port[0]->hot_count + d.port[1]->hot_count, 0);
	for (int i = 0; i < IDLE; i += 2)
		rig_end_close(end[i], -ECONNABORTED);
	duo_turns(&d, 100);
	assert_int_equal(d.port[1]->live, IDLE / 2);
	duo_close(&d);
}

static bool was_woken(struct hd_node *node)
{
	uint64_t n;

	return read(node->wake_fd, &n, sizeof(n)) == sizeof(n);
}

/*
 * A sender that sleeps because the ring is full is woken when there is room again, and not before.
 */
static void room_wakes_a_sender(void **state)
{
	for (uint32_t len = 8; len <= 60008; len += 60000) {
		struct duo d;

		duo_open(&d);
		d.end[0]->plan = (struct rig_plan){
			.packets = UINT64_MAX, .least = len, .most = len, .how = RIG_SEND
		};
		while (!d.end[0]->again)
			rig_poll(d.node[0]);
		assert_false(rig_arm(d.node[0]));
		assert_false(was_woken(d.node[0]));
		for (int i = 0; i < 40; i++)
			hd_shm_link_poll(d.link[1]);
		assert_true(was_woken(d.node[0]));
		rig_disarm(d.node[0]);
		d.end[0]->plan.packets = 10;
		duo_turns(&d, 100);
		assert_int_equal(d.end[1]->rx, d.end[0]->tx);
		duo_close(&d);
	}
}

/* It has found the ring full and then thought better of it: that must not keep its node awake. */
static void who_gave_up_sending_can_sleep(void **state)
{
	struct duo d;
	int there = 0;

	duo_open(&d);
	d.end[0]->plan =
		(struct rig_plan){ .packets = UINT64_MAX, .least = 60000, .most = 60000, .how = RIG_SEND };
	while (!d.end[0]->again)
		rig_poll(d.node[0]);
	d.end[0]->plan.packets = 0;
	duo_turns(&d, 100);
	for (int i = 0; i < 10; i++) {
		there += rig_arm(d.node[0]);
		rig_disarm(d.node[0]);
	}
	assert_in_range(there, 0, 1);
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_links_cool_down_and_are_still_heard),
		cmocka_unit_test(room_wakes_a_sender),
		cmocka_unit_test(who_gave_up_sending_can_sleep),
	};

	setenv("HEDDLE_LOG", "error", 0);
	return cmocka_run_group_tests_name("shm_idle", tests, NULL, NULL);
}
