/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Sleeping in epoll, and being woken. */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include <cmocka.h>

#include "transport/suite_tests.h"

#define WAKE_MS 5000

/* Turns until nothing is left to do, and the node can be armed. */
static void lay_to_sleep(struct world *w, struct hd_node *node)
{
	for (int i = 0; i < 10000; i++) {
		for (int k = 0; k < w->count; k++)
			rig_poll(w->node[k]);
		if (!rig_arm(node))
			return;
		rig_disarm(node);
	}
	fail_msg("there is always something");
}

static void wakes_up(struct hd_node *node, const char *what)
{
	struct epoll_event event;
	int n = epoll_wait(node->epoll_fd, &event, 1, WAKE_MS);

	if (n != 1)
		fail_msg("%s did not wake the node", what);
	rig_disarm(node);
}

/* What may happen to a sleeper, by doing of the other end. */
enum event {
	PACKET,
	EMPTY_PACKET,
	LONG_PACKET,
	PUT,
	GRANT,
	EVENTS,
};

static const char *const event_names[] = { "a packet", "an empty packet", "a long packet", "a put",
					   "a grant" };

static void make_happen(struct rig_end *end, enum event event)
{
	const struct rig_plan plans[EVENTS] = {
		[PACKET] = { .packets = 1, .least = 8, .most = 8, .how = RIG_SEND },
		[EMPTY_PACKET] = { .packets = 1, .how = RIG_SEND },
		[LONG_PACKET] = { .packets = 1,
				  .least = end->link->send_max,
				  .most = UINT32_MAX,
				  .how = RIG_SEND },
		[PUT] = { .packets = 1, .least = 60000, .most = 60000, .how = RIG_PUT },
	};

	end->plan = plans[event];
	if (event == GRANT)
		end->grant_out += 17;
}

/* The other end's node goes on with its own turns. */
static void turns_of(struct hd_node *node)
{
	for (int i = 0; i < 20; i++)
		rig_poll(node);
}

void suite_a_sleeper_is_woken(void **state)
{
	struct world w;
	struct pair p, extra;
	struct rig_end *caller;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	for (int i = 0; i < EVENTS * 12; i++) {
		struct rig_end *sleeper = i % 2 ? p.a : p.b;

		lay_to_sleep(&w, sleeper->node);
		make_happen(sleeper->other, i / 2 % EVENTS);
		turns_of(sleeper->other->node);
		wakes_up(sleeper->node, event_names[i / 2 % EVENTS]);
		world_until(&w, 20, pair_quiet, &p);
	}
	lay_to_sleep(&w, w.node[1]);
	assert_int_equal(world_call(&w, 0, 1, &caller), 0);
	turns_of(w.node[0]);
	wakes_up(w.node[1], "a call");
	extra = world_pair(&w, 0, 1);
	lay_to_sleep(&w, w.node[1]);
	rig_end_close(extra.a, -ECONNABORTED);
	turns_of(w.node[0]);
	wakes_up(w.node[1], "the end of a link");
	world_until(&w, 20, end_gone, extra.b);
	world_close(&w);
}

/*
 * One thread sleeps, and another one's turn is what sees that the link has come to its end: the
 * descriptor tells that no more, so whatever is left to do is for the sleeper, who has to be woken.
 */
void suite_an_end_that_another_sees(void **state)
{
	struct epoll_event event;
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	lay_to_sleep(&w, w.node[1]);
	rig_end_close(p.a, -ECONNABORTED);
	turns_of(w.node[0]);
	for (uint64_t end = hd_deadline_ns(WAKE_MS); !p.b->was_down;) {
		if (hd_now_ns() > end)
			fail_msg("the end of the link is not seen");
		if (epoll_wait(w.node[1]->epoll_fd, &event, 1, 1) != 1 && rig_arm(w.node[1]))
			fail_msg("the sleeper does not know of it");
		rig_poll(w.node[1]);
	}
	rig_disarm(w.node[1]);
	world_close(&w);
}

/*
 * One thread sleeps, and another one gives credit, and makes no turn after that: the other
 * end has it all the same.
 */
void suite_credit_is_given_while_one_sleeps(void **state)
{
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	lay_to_sleep(&w, w.node[0]);
	p.a->grant_out += 17;
	p.a->grant_sent = p.a->grant_out;
	p.a->link->ops->grant(p.a->link, p.a->grant_out);
	for (uint64_t end = hd_deadline_ns(WAKE_MS); p.b->grant_in != p.a->grant_out;) {
		if (hd_now_ns() > end)
			fail_msg("the credit does not come");
		rig_poll(w.node[1]);
	}
	rig_disarm(w.node[0]);
	world_close(&w);
}

/*
 * One thread sleeps, and another one finds no room, in a call: the other end may have
 * made some just before it was asked to tell, so the sleeper has to look once more,
 * which he does when he arms.
 */
void suite_no_room_while_one_sleeps(void **state)
{
	struct epoll_event event;
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	lay_to_sleep(&w, w.node[0]);
	p.a->plan = (struct rig_plan){ .packets = UINT64_MAX, .least = 8, .most = 8, .how = RIG_SEND };
	rig_pump(p.a);
	assert_true(p.a->again > 0);
	p.a->plan.packets = 0;
	assert_int_equal(epoll_wait(w.node[0]->epoll_fd, &event, 1, 0), 1);
	rig_disarm(w.node[0]);
	world_until(&w, 20, pair_quiet, &p);
	world_close(&w);
}

/* A packet that came before: either arm() says so, or the descriptors do. */
void suite_arming_sees_what_is_there(void **state)
{
	struct epoll_event event;
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	for (int i = 0; i < EVENTS * 6; i++) {
		lay_to_sleep(&w, w.node[1]);
		rig_disarm(w.node[1]);
		make_happen(p.a, i % EVENTS);
		turns_of(w.node[0]);
		if (!rig_arm(w.node[1]) && epoll_wait(w.node[1]->epoll_fd, &event, 1, WAKE_MS) != 1)
			fail_msg("the node would have slept over %s", event_names[i % EVENTS]);
		rig_disarm(w.node[1]);
		world_until(&w, 20, pair_quiet, &p);
	}
	world_close(&w);
}

void suite_nobody_wakes_who_polls(void **state)
{
	const struct rig_plan plan = { .packets = 5000, .most = 3000, .burst = 30, .how = RIG_SEND | RIG_PUT };
	struct world w;
	struct pair p;
	uint64_t wakes;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	pair_plan(&w, &p, &plan);
	world_until(&w, 30, pair_quiet, &p);
	for (int i = 0; i < 20; i++)
		world_turn(&w);
	world_lock(&w);
	wakes = w.node[0]->wakes + w.node[1]->wakes;
	world_unlock(&w);
	assert_int_equal(wakes, 0);
	world_close(&w);
}

#define ROUNDS 3000

static bool rounds_done(void *arg)
{
	struct pair *p = arg;

	return p->a->rx >= ROUNDS && p->a->node->sleeps >= 10 && p->b->node->sleeps >= 10;
}

/*
 * Both sleep whenever there is nothing to do, and throw a few balls to each other: a wake
 * that is lost stops the game.
 */
void suite_no_wake_is_lost(void **state)
{
	const struct rig_plan game = { .packets = 1, .most = 64, .how = RIG_SEND | RIG_ECHO };
	struct world w;
	struct pair p;

	world_open(&w, *state, 2);
	p = world_pair(&w, 0, 1);
	world_lock(&w);
	w.node[0]->sleepy = w.node[1]->sleepy = true;
	world_unlock(&w);
	pair_plan(&w, &p, &game);
	world_until(&w, 30, rounds_done, &p);
	world_lock(&w);
	p.a->plan.how = p.b->plan.how = RIG_SEND;
	assert_int_equal(w.node[0]->slept_out + w.node[1]->slept_out, 0);
	world_unlock(&w);
	world_until(&w, 20, pair_quiet, &p);
	world_close(&w);
}
