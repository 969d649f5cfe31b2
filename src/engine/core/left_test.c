/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What one thread leaves undone while another sleeps armed: the sleeper is told, for the one who
 * left it may not come back. Here the sleeper is the test, which looks at the node's epoll set.
 */
#include "asleep.h"
#include "engine/event/event.h"
#include "engine/test/test_qp.h"
#include "engine/xfer/xfer.h"

#include <pthread.h>
#include <stdlib.h>

#define WAKE_MS 5000

/* ---- timers ---------------------------------------------------------------------------------- */

struct alarm {
	struct hd_timer timer;
	bool rang;
};

static void rings(struct hd_timer *timer)
{
	hd_container(timer, struct alarm, timer)->rang = true;
}

static void turn(struct hd_node *node)
{
	hd_node_hurry(node);
	hd_node_poll(node);
}

/*
 * Another thread's turn takes the first timer, and the descriptor that told of it. True:
 * not the second one with it.
 */
static bool first_is_taken(const struct side *s, struct alarm *first, struct alarm *second, uint64_t ns)
{
	hd_timer_set(s->node, &first->timer, ns / 8);
	hd_timer_set(s->node, &second->timer, ns);
	while (!first->rang) {
		assert_true(side_wakes(s, WAKE_MS));
		turn(s->node);
	}
	turn(s->node);
	return !second->rang;
}

static void the_next_timer_wakes_who_sleeps(void **state)
{
	struct alarm first = { .timer.fn = rings }, second = { .timer.fn = rings };
	struct side s;

	side_open(&s);
	assert_int_equal(hd_sleep_arm(s.node), 0);
	for (uint64_t ns = 8 * HD_NS_PER_MS; !first_is_taken(&s, &first, &second, ns); ns *= 2)
		first.rang = second.rang = false; /* a busy machine */
	assert_true(side_wakes(&s, WAKE_MS));
	turn(s.node);
	hd_sleep_disarm(s.node);
	hd_timer_stop(s.node, &second.timer);
	side_close(&s);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void open_talking(struct pair *p, const char *transport)
{
	unsigned char in[8], out[8] = "hello";

	pair_open(p, transport);
	side_post(&p->b, in, sizeof(in), 1, 0, NULL, in);
	pair_push(p, &p->a, out, sizeof(out), 1, HD_SEND_COMPLETE);
	assert_ptr_equal(pair_next(p, &p->a).ctx, out);
	assert_ptr_equal(pair_next(p, &p->b).ctx, in);
}

/* In a call of another thread's, which makes no turn. */
static void a_link_that_breaks_wakes_who_sleeps(void **state)
{
	EACH_TRANSPORT(t)
	{
		struct pair p;

		open_talking(&p, t);
		pair_lie_down(&p, &p.a);
		hd_link_down(p.a.to->peer->link, -ENOBUFS, "this link was made to break");
		assert_true(side_wakes(&p.a, 0));
		hd_sleep_disarm(p.a.node);
		pair_close(&p);
	}
}

/* ---- what is queued for a peer --------------------------------------------------------------- */

/*
 * Messages that nobody has a receive for take all of the credit; those behind them wait for some.
 */
static void spend_all_credit(struct pair *p, void *out, size_t len)
{
	for (int i = 0; i < 40; i++)
		qp_send_as(&p->a, out, len, NULL, 0);
	pair_settle(p, 5);
	assert_false(TAILQ_EMPTY(&hd_core(p->a.node)->pushing));
}

/* A second pair of the same two nodes. */
static struct pair beside_it(const struct pair *p)
{
	struct pair second = *p;

	second.a.ep = second.b.ep = NULL;
	qp_open(&second.a, RC | ALL_RIGHTS, NULL);
	qp_open(&second.b, RC | ALL_RIGHTS, NULL);
	qps_ready(&second);
	return second;
}

/* A long write is copied slice by slice, in turns: whatever others of its peer wait for. */
static void a_write_beside_what_waits_for_credit(void **state)
{
	size_t len = 3 * HD_DIRECT_SLICE;
	unsigned char *out = calloc(1, len), *there = calloc(1, len);
	struct pair p, second;
	struct hd_mr *mr;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	qps_open(&p, "shm", RC);
	second = beside_it(&p);
	mr = qp_region(&p.b, there, len, 0);
	/* the two know each other */
	qp_rma(&second.a, HD_RMA_WRITE, out, 8, hd_mr_key(mr), there, out, 0);
	qp_expect(&second, &second.a, out, 0);
	spend_all_credit(&p, out, 4096);
	pair_lie_down(&p, &p.a);
	qp_rma(&second.a, HD_RMA_WRITE, out, len, hd_mr_key(mr), there, out, 0);
	assert_true(side_wakes(&p.a, 0));
	hd_sleep_disarm(p.a.node);
	qp_expect(&second, &second.a, out, 0);
	hd_ep_close(second.a.ep);
	hd_ep_close(second.b.ep);
	hd_mr_close(mr);
	pair_close(&p);
	unsetenv("HEDDLE_UNEXPECTED_PEER");
	free(out);
	free(there);
}

/* ---- those who leave it to another ----------------------------------------------------------- */

struct listener {
	struct hd_channel *channel;
	struct hd_channel_item item;
	uint32_t taken;
	pthread_t thread;
	int rc;
};

static void *listens(void *arg)
{
	struct listener *l = arg;

	l->rc = hd_channel_wait(l->channel, WAKE_MS * 4, NULL);
	return NULL;
}

static void until_it_sleeps(struct hd_node *node)
{
	uint64_t end = hd_deadline_ns(WAKE_MS);
	int n;

	do {
		usleep(500);
		hd_node_lock(node);
		n = hd_core(node)->worker.sleepers;
		hd_node_unlock(node);
		assert_true(hd_now_ns() < end);
	} while (!n);
	let_others_sleep(); /* in the kernel */
}

/*
 * A thread is woken, and sees that another has made a turn meanwhile: it leaves the node to that
 * one, for a moment. The turn that it makes itself before is none of a program that polls, or two
 * of them would leave it to each other.
 */
static void who_leaves_it_to_another_does_not_poll(void **state)
{
	struct listener l = { .item.taken = &l.taken };
	struct hd_node *node;
	uint64_t before;

	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test", .locked = true }, &node), 0);
	assert_int_equal(hd_channel_open(node, &l.channel), 0);
	assert_int_equal(pthread_create(&l.thread, NULL, listens, &l), 0);
	until_it_sleeps(node);
	hd_node_lock(node);
	hd_node_signal(node);
	let_others_sleep(); /* it is awake, and waits for the lock */
	turn(node);
	before = hd_node_program_turns(node);
	hd_node_unlock(node);
	let_others_sleep();
	until_it_sleeps(node);
	assert_int_equal(hd_node_program_turns(node) - before,
			 1); /* the one before it sleeps for all of the node */
	hd_channel_post(l.channel, &l.item);
	pthread_join(l.thread, NULL);
	assert_int_equal(l.rc, 0);
	hd_channel_close(l.channel);
	assert_int_equal(hd_node_close(node), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_timer_wakes_who_sleeps),
		cmocka_unit_test(a_link_that_breaks_wakes_who_sleeps),
		cmocka_unit_test(a_write_beside_what_waits_for_credit),
		cmocka_unit_test(who_leaves_it_to_another_does_not_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
