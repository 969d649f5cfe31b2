/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What queue pairs have taken of their receives, and the mark that is told of. */
#include "engine/core/core.h"
#include "engine/test/test_qp.h"

#include <errno.h>

static int told;

static void passed(void *owner)
{
	assert_ptr_equal(owner, &told);
	told++;
}

static void set_mark(struct side *s, uint64_t most)
{
	hd_ep_set_mark(s->ep, &(struct hd_ep_mark){ most, passed, &told });
}

static char from[8], to[8];

static void send_one(struct pair *p)
{
	qp_send(&p->a, from, 8, from);
	qp_expect(p, &p->b, to, 0);
	qp_expect(p, &p->a, from, 0);
	pair_settle(p, 1);
}

static void a_mark_is_told_once(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct pair p;

		qps_open(&p, transport, RC);
		told = 0;
		for (int i = 0; i < 6; i++)
			qp_recv(&p.b, to, 8, to);
		set_mark(&p.b, 1);
		send_one(&p);
		assert_int_equal(told, 0);
		send_one(&p);
		assert_int_equal(told, 1);
		assert_int_equal(hd_ep_taken(p.b.ep), 2);
		send_one(&p);
		assert_int_equal(told, 1);
		set_mark(&p.b, 2); /* it has taken three: at once */
		pair_settle(&p, 1);
		assert_int_equal(told, 2);
		set_mark(&p.b, 3);
		hd_ep_set_mark(p.b.ep, NULL);
		send_one(&p);
		assert_int_equal(told, 2);
		set_mark(&p.b, 5);
		hd_ep_fail(p.b.ep); /* takes the last two */
		assert_int_equal(hd_ep_taken(p.b.ep), 6);
		pair_settle(&p, 1);
		assert_int_equal(told, 3);
		set_mark(&p.b, 100);
		pair_close(&p); /* armed */
	}
}

/* Whatever it is that takes one: a write with immediate data, a message that is too long for it. */
static void all_that_take_one_are_counted(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_mr *mr;
		struct pair p;

		qps_open(&p, transport, RC | HD_EP_REMOTE_WRITE);
		mr = qp_region(&p.b, to, 8, 0);
		for (int i = 0; i < 2; i++)
			qp_recv(&p.b, to, 4, to);
		qp_rma(&p.a, HD_RMA_WRITE, from, 8, hd_mr_key(mr), to, from, HD_SEND_IMM);
		qp_expect(&p, &p.b, to, 0);
		assert_int_equal(hd_ep_taken(p.b.ep), 1);
		qp_expect(&p, &p.a, from, 0);
		qp_send(&p.a, from, 8, from);
		qp_expect(&p, &p.b, to, HD_S_LENGTH);
		assert_int_equal(hd_ep_taken(p.b.ep), 2);
		assert_int_equal(hd_ep_filling(p.b.ep), 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

enum {
	LONG = 8 << 20
};

/* A long message over sockets is coming in for many turns, and a second one beside it. */
static void what_is_coming_in_is_being_filled(void **state)
{
	char *out = test_malloc(LONG), *in = test_malloc(2 * LONG);
	uint32_t most = 0;
	struct pair p;

	test_fill((unsigned char *)out, LONG, 1);
	qps_open(&p, "tcp", RC);
	for (int i = 0; i < 2; i++) {
		qp_recv(&p.b, in + (size_t)i * LONG, LONG, in);
		qp_send(&p.a, out, LONG, out);
	}
	while (!hd_cq_peek(p.b.cq)) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
		if (hd_ep_filling(p.b.ep) > most)
			most = hd_ep_filling(p.b.ep);
		assert_true(hd_cq_peek(p.b.cq) || hd_ep_filling(p.b.ep) == hd_ep_taken(p.b.ep));
	}
	assert_in_range(most, 1, 2);
	qp_expect(&p, &p.b, in, 0);
	qp_expect(&p, &p.b, in, 0);
	assert_int_equal(hd_ep_filling(p.b.ep), 0);
	assert_int_equal(hd_ep_taken(p.b.ep), 2);
	test_check((unsigned char *)in, LONG, 1);
	pair_close(&p);
	test_free(out);
	test_free(in);
}

/* What passes a mark in a call, and no turn, is for whoever sleeps to tell of. */
static void wakes_for_it(struct pair *p, int times)
{
	assert_true(side_wakes(&p->b, 0));
	hd_sleep_disarm(p->b.node);
	pair_settle(p, 1);
	assert_int_equal(told, times);
}

static void who_sleeps_tells_of_a_mark(void **state)
{
	struct pair p;

	qps_open(&p, "shm", RC);
	told = 0;
	set_mark(&p.b, 0);
	qp_send(&p.a, from, 8, from); /* before there is a receive */
	pair_lie_down(&p, &p.b);
	qp_recv(&p.b, to, 8, to);
	wakes_for_it(&p, 1);
	qp_expect(&p, &p.b, to, 0);
	qp_expect(&p, &p.a, from, 0);
	pair_lie_down(&p, &p.b);
	set_mark(&p.b, 0); /* it is passed already */
	wakes_for_it(&p, 2);
	qp_recv(&p.b, to, 8, to);
	set_mark(&p.b, 1);
	pair_lie_down(&p, &p.b);
	hd_ep_fail(p.b.ep);
	wakes_for_it(&p, 3);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_is_told_once),
		cmocka_unit_test(all_that_take_one_are_counted),
		cmocka_unit_test(what_is_coming_in_is_being_filled),
		cmocka_unit_test(who_sleeps_tells_of_a_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
