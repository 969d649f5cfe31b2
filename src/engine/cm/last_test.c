/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The end of a connection is told of after the completions of a queue pair that belongs to it. */
#include "engine/rq/rq.h"
#include "engine/test/test_rig.h"

struct last {
	struct rig r;
	struct hd_ep *pair; /* of the acceptor's node */
};

static void last_pair_close(struct last *l)
{
	if (l->pair)
		hd_ep_close(l->pair);
	l->pair = NULL;
}

static void last_open(struct last *l, const char *transport)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM,
				   .policy = HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT,
				   .tx_size = 16 };

	rig_open(&l->r, transport);
	attr.tx_cq = attr.rx_cq = l->r.b.cq;
	assert_int_equal(hd_ep_open(l->r.b.node, &attr, &l->pair), 0);
	join(&l->r);
	hd_ep_down_after(l->r.b.ep, hd_ep_number(l->pair));
}

static void last_close(struct last *l)
{
	while (hd_cq_peek(l->r.b.cq))
		hd_cq_pop(l->r.b.cq);
	last_pair_close(l);
	rig_close(&l->r);
}

static void complete(struct last *l, uint32_t ep)
{
	hd_cq_post(l->r.b.cq, &(struct hd_cqe){ .flags = HD_C_RECV, .ep = ep });
}

/* The other end leaves, and this one's node knows of it. */
static void part(struct last *l)
{
	assert_int_equal(hd_ep_disconnect(l->r.a.ep, NULL), 0);
	while (l->r.b.ep->rx_end != HD_RX_REFUSED)
		turn(&l->r);
}

static bool is_down(struct last *l)
{
	struct got g;

	if (!poll_event(l->r.eb, &g))
		return false;
	assert_int_equal(g.code, HD_EV_DOWN);
	return true;
}

/* So many turns as a program makes that asks again and again. */
static void is_held(struct last *l)
{
	uint64_t until = hd_now_ns() + 5 * HD_NS_PER_MS;

	for (int i = 0; i < 100 || hd_now_ns() < until; i++)
		assert_false(is_down(l));
}

static void comes(struct last *l)
{
	assert_int_equal(next(&l->r, l->r.eb).code, HD_EV_DOWN);
}

static void after_what_came_before(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct last l;

		last_open(&l, transport);
		complete(&l, hd_ep_index(l.pair));
		complete(&l, hd_ep_index(l.pair) + 1);
		part(&l);
		is_held(&l);
		hd_cq_pop(l.r.b.cq);
		comes(&l); /* what others have completed does not count */
		last_close(&l);
	}
}

static void at_once_where_nothing_did(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct last l;

		last_open(&l, transport);
		complete(&l, hd_ep_index(l.pair) + 1);
		part(&l);
		assert_true(is_down(&l));
		last_close(&l);
	}
}

/* A program that does not read is told all the same. */
static void not_for_ever(void **state)
{
	EACH_TRANSPORT(transport)
	{
		uint64_t before;
		struct last l;

		last_open(&l, transport);
		complete(&l, hd_ep_index(l.pair));
		before = hd_now_ns();
		part(&l);
		comes(&l);
		assert_true(hd_now_ns() - before >= 20 * HD_NS_PER_MS);
		last_close(&l);
	}
}

static void more_than_its_queue_takes(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct last l;

		last_open(&l, transport);
		for (uint32_t i = 0; i < hd_cq_room(l.r.b.cq) + 2; i++)
			complete(&l, hd_ep_index(l.pair) + 1);
		complete(&l, hd_ep_index(l.pair));
		complete(&l, hd_ep_index(l.pair) + 1);
		part(&l);
		for (uint32_t i = 0; i < hd_cq_room(l.r.b.cq) + 2; i++)
			hd_cq_pop(l.r.b.cq);
		is_held(&l);
		hd_cq_pop(l.r.b.cq);
		comes(&l);
		last_close(&l);
	}
}

/*
 * The queue pair goes, or the program leaves itself, or wants to hear more:
 * there is nothing to wait for.
 */
static void until_it_does_not_matter(void **state)
{
	EACH_TRANSPORT(transport)
	{
		for (int how = 0; how < 3; how++) {
			struct last l;

			last_open(&l, transport);
			complete(&l, hd_ep_index(l.pair));
			part(&l);
			is_held(&l);
			if (how == 0)
				last_pair_close(&l);
			else if (how == 1)
				assert_int_equal(hd_ep_disconnect(l.r.b.ep, NULL), -ENOTCONN);
			else
				assert_int_equal(hd_ep_alarm(l.r.b.ep, 1), 0);
			comes(&l);
			if (how == 2)
				assert_int_equal(next(&l.r, l.r.eb).code, HD_EV_ALARM);
			none(&l.r, l.r.eb);
			last_close(&l);
		}
	}
}

/* An endpoint that closes meanwhile is told of nothing. */
static void closed_meanwhile(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct last l;

		last_open(&l, transport);
		complete(&l, hd_ep_index(l.pair));
		part(&l);
		end_close_ep(&l.r.b);
		settle(&l.r, 50);
		assert_false(is_down(&l));
		last_close(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_what_came_before),
		cmocka_unit_test(at_once_where_nothing_did),
		cmocka_unit_test(not_for_ever),
		cmocka_unit_test(more_than_its_queue_takes),
		cmocka_unit_test(until_it_does_not_matter),
		cmocka_unit_test(closed_meanwhile),
	};

	return cmocka_run_group_tests_name("last", tests, NULL, NULL);
}
