/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Counters and what they trigger. */
#include "engine/event/event.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

/* What has been fired, in order. */
static struct {
	int count;
	int number[MOST];
} fired;

struct mark {
	struct hd_trigger t;
	int number;
	int refuse;	      /* so many times there is no room */
	struct hd_cntr *then; /* counts */
};

static int fire(struct hd_trigger *t)
{
	struct mark *m = hd_container(t, struct mark, t);

	if (m->refuse-- > 0)
		return -EAGAIN;
	fired.number[fired.count++] = m->number;
	if (m->then)
		hd_cntr_event(m->then, 1);
	return 0;
}

static void put(struct hd_cntr *c, struct mark *m, int number, uint64_t threshold)
{
	m->t = (struct hd_trigger){ .threshold = threshold, .fire = fire };
	m->number = number;
	hd_cntr_trigger(c, &m->t);
}

static void expect(int count, ...)
{
	va_list list;

	assert_int_equal(fired.count, count);
	va_start(list, count);
	for (int i = 0; i < count; i++)
		assert_int_equal(fired.number[i], va_arg(list, int));
	va_end(list);
	fired.count = 0;
}

static int open_node(void **state)
{
	static struct side s;

	side_open(&s);
	*state = &s;
	fired.count = 0;
	return 0;
}

static int close_node(void **state)
{
	side_close(*state);
	return 0;
}

static struct hd_cntr *counter(void **state)
{
	struct side *s = *state;
	struct hd_cntr *c;

	assert_int_equal(hd_cntr_open(s->node, &c), 0);
	return c;
}

static void turn(void **state)
{
	hd_node_poll(((struct side *)*state)->node);
}

static void fires_in_the_order_of_thresholds(void **state)
{
	struct hd_cntr *c = counter(state);
	struct mark m[5] = { 0 };

	put(c, &m[0], 0, 3);
	put(c, &m[1], 1, 2);
	put(c, &m[2], 2, 3);
	put(c, &m[3], 3, 9);
	put(c, &m[4], 4, 1);
	expect(0);
	assert_int_equal(hd_cntr_close(c), -EBUSY);
	hd_cntr_count(c, 1);
	expect(0); /* never in the call that counts */
	turn(state);
	expect(1, 4);
	hd_cntr_add(c, 5); /* but the program's own is at the top */
	expect(3, 1, 0, 2);
	hd_trigger_cancel(&m[3].t);
	hd_cntr_set(c, 100);
	expect(0);
	assert_int_equal(hd_cntr_close(c), 0);
}

static void fires_at_once_where_reached(void **state)
{
	struct hd_cntr *c = counter(state);
	struct mark m = { 0 };

	hd_cntr_set(c, 7);
	put(c, &m, 1, 7);
	expect(1, 1);
	put(c, &m, 2, 0);
	expect(1, 2);
	assert_int_equal(hd_cntr_close(c), 0);
}

/* One without room keeps those behind it, but not those of another counter. */
static void waits_for_room_in_order(void **state)
{
	struct hd_cntr *c = counter(state), *other = counter(state);
	struct mark m[3] = { 0 }, o = { 0 };

	m[0].refuse = 2;
	put(c, &m[0], 0, 1);
	put(c, &m[1], 1, 1);
	put(c, &m[2], 2, 2);
	put(other, &o, 9, 1);
	hd_cntr_add(c, 2);
	expect(0);
	hd_cntr_add(other, 1);
	expect(1, 9);
	turn(state);
	expect(3, 0, 1, 2);
	assert_int_equal(hd_cntr_close(c), 0);
	assert_int_equal(hd_cntr_close(other), 0);
}

/*
 * A chain of counters, each counted by the trigger of the one before, and a ring of two: no
 * recursion, each fires once.
 */
static void chains_unroll(void **state)
{
	struct hd_cntr *c[MOST];
	struct mark m[MOST] = { 0 };

	for (int i = 0; i < MOST; i++)
		c[i] = counter(state);
	for (int i = 0; i < MOST; i++) {
		m[i].then = c[(i + 1) % MOST];
		put(c[i], &m[i], i, 1);
	}
	hd_cntr_add(c[0], 1);
	assert_int_equal(fired.count, MOST);
	for (int i = 0; i < MOST; i++) {
		assert_int_equal(fired.number[i], i);
		assert_int_equal(hd_cntr_read(c[i]), i ? 1 : 2);
		assert_int_equal(hd_cntr_close(c[i]), 0);
	}
}

static void errors_count_where_asked_for(void **state)
{
	struct hd_cntr *c = counter(state);
	struct mark plain = { 0 }, both = { 0 };

	put(c, &plain, 1, 2);
	both.t = (struct hd_trigger){ .threshold = 2, .with_errors = true, .fire = fire };
	both.number = 2;
	hd_cntr_trigger(c, &both.t);
	hd_cntr_count(c, 1);
	turn(state);
	expect(0);
	hd_cntr_count_error(c);
	turn(state);
	expect(1, 2);
	hd_cntr_count(c, 1);
	turn(state);
	expect(1, 1);
	assert_int_equal(hd_cntr_close(c), 0);
}

/* A counter that is due, for want of room, loses its last trigger and is closed. */
static void closed_while_due(void **state)
{
	struct hd_cntr *c = counter(state);
	struct mark m = { .refuse = 1000 };

	put(c, &m, 1, 1);
	hd_cntr_add(c, 1);
	hd_trigger_cancel(&m.t);
	assert_int_equal(hd_cntr_close(c), 0);
	turn(state);
	expect(0);
}

/* What the program does itself is no event. */
static void events_are_what_happened(void **state)
{
	struct hd_cntr *c = counter(state);
	uint64_t before = hd_cntr_events(c);

	hd_cntr_add(c, 5);
	hd_cntr_adderr(c, 2);
	hd_cntr_set(c, 100);
	hd_cntr_seterr(c, 0);
	assert_int_equal(hd_cntr_events(c), before);
	hd_cntr_count(c, 1);
	assert_int_equal(hd_cntr_events(c), before + 1);
	hd_cntr_set(c, 0);
	hd_cntr_count_error(c);
	assert_int_equal(hd_cntr_events(c), before + 2);
	assert_int_equal(hd_cntr_close(c), 0);
}

/*
 * A send triggers another in the other node, back and forth, while the program of
 * either only makes progress.
 */
struct bounce {
	struct hd_trigger t;
	struct side *s;
	struct hd_cntr *c;
	uint64_t rounds;
};

static int bounce(struct hd_trigger *t)
{
	struct bounce *b = hd_container(t, struct bounce, t);
	int rc = hd_send(b->s->ep, b->s->to, "ball", 5, 1, 0, NULL, TAGGED(0));

	if (!rc && ++b->t.threshold <= b->rounds)
		hd_cntr_trigger(b->c, &b->t);
	return rc;
}

static void bounce_open(struct bounce *b, struct side *s, char *in)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .tx_cq = s->cq, .rx_cq = s->cq };

	*b = (struct bounce){ .s = s, .rounds = 100 };
	assert_int_equal(hd_cntr_open(s->node, &b->c), 0);
	hd_ep_close(s->ep);
	attr.cntrs.recv = b->c;
	assert_int_equal(hd_ep_open(s->node, &attr, &s->ep), 0);
	for (uint64_t i = 0; i < b->rounds; i++)
		side_post(s, in, 8, 1, 0, NULL, in);
	b->t = (struct hd_trigger){ .threshold = 1, .fire = bounce };
	hd_cntr_trigger(b->c, &b->t);
}

static void bounce_close(struct bounce *b)
{
	if (b->t.cntr)
		hd_trigger_cancel(&b->t);
	hd_ep_close(b->s->ep);
	assert_int_equal(hd_ep_open(b->s->node, &(struct hd_ep_attr){ .type = HD_EP_RDM }, &b->s->ep), 0);
	assert_int_equal(hd_cntr_close(b->c), 0);
}

static void messages_trigger_messages(void **state)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	struct bounce a, b;
	char in[8];
	struct pair p = { 0 };

	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		side_open(&p.a);
		side_open(&p.b);
		bounce_open(&a, &p.a, in);
		bounce_open(&b, &p.b, in);
		side_names(&p.a, &p.b);
		side_names(&p.b, &p.a);
		pair_push(&p, &p.a, "ball", 5, 1, 0);
		while (hd_cntr_read(a.c) < a.rounds || hd_cntr_read(b.c) < b.rounds) {
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
			assert_true(hd_now_ns() < end);
		}
		bounce_close(&a);
		bounce_close(&b);
		pair_close(&p);
	}
}

#define WITH_NODE(f) cmocka_unit_test_setup_teardown(f, open_node, close_node)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_NODE(fires_in_the_order_of_thresholds), WITH_NODE(fires_at_once_where_reached),
		WITH_NODE(waits_for_room_in_order),	     WITH_NODE(chains_unroll),
		WITH_NODE(errors_count_where_asked_for),     WITH_NODE(closed_while_due),
		WITH_NODE(events_are_what_happened),	     cmocka_unit_test(messages_trigger_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
