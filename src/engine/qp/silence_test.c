/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs whose requests wait for a host that acknowledges nothing. That it does is the
 * transport's word, which is ours here.
 */
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>

#define HOLDOFF_MS 200

static unsigned char out[300u << 10], in[8];
static bool silent;
static uint64_t silent_since;
static int asked, released;

static uint32_t told_silence(struct hd_link *link, bool more)
{
	asked++;
	released += !more;
	return silent && more ? (uint32_t)((hd_now_ns() - silent_since) / HD_NS_PER_MS) : 0;
}

/* a's link to b says what we say. */
static struct hd_link *bend(struct pair *p)
{
	static struct hd_link_ops ops;
	struct hd_link *link = p->a.ep->qp->life.dest->peer->link;

	ops = *link->ops;
	ops.silence = told_silence;
	link->ops = &ops;
	silent = false;
	asked = released = 0;
	return link;
}

static void be_silent(void)
{
	silent = true;
	silent_since = hd_now_ns();
}

static void silence_open(struct pair *p, uint32_t holdoff_ms)
{
	struct hd_qp_attr attr = qp_attr();

	attr.holdoff_ms = holdoff_ms;
	qps_new(p, "tcp", RC);
	qp_ready(&p->a, &p->b, &attr);
	qp_ready(&p->b, &p->a, &attr);
	qp_recv(&p->b, in, sizeof(in), in);
	qp_send(&p->a, out, 8, out);
	qp_expect(p, &p->a, out, 0);
	qp_expect(p, &p->b, in, 0);
	bend(p);
}

/* a alone makes progress for so long, or until something has completed. */
static bool a_alone(struct pair *p, int ms)
{
	uint64_t end = hd_now_ns() + (uint64_t)ms * HD_NS_PER_MS;

	while (hd_now_ns() < end && !hd_cq_peek(p->a.cq))
		hd_node_poll(p->a.node);
	return hd_cq_peek(p->a.cq) != NULL;
}

/*
 * Messages that have left whole, and long ones that wait to be asked for; what is behind them is
 * flushed, and the link stays.
 */
static void requests_to_a_silent_host_end(void **state)
{
	static const size_t lens[] = { 8, sizeof(out) };
	struct pair p;

	for (int i = 0; i < 2; i++) {
		uint64_t since = hd_now_ns();

		silence_open(&p, HOLDOFF_MS);
		qp_send(&p.a, out, lens[i], &out[1]);
		qp_send(&p.a, out, 8, &out[2]);
		be_silent();
		assert_true(a_alone(&p, 5000));
		assert_true(hd_now_ns() - since >= 2 * HOLDOFF_MS * HD_NS_PER_MS);
		qp_expect(&p, &p.a, &out[1], HD_S_TIMEOUT);
		qp_expect(&p, &p.a, &out[2], HD_S_CANCELLED);
		assert_true(hd_qp_is_bound(p.a.ep->qp));
		pair_close(&p);
	}
}

/*
 * A program that does not answer is none of this, nor is a queue pair with more patience,
 * or without an end of it.
 */
static void others_wait(void **state)
{
	static const uint32_t holdoff[] = { HOLDOFF_MS, 100 * HOLDOFF_MS, HD_HOLDOFF_EVER, 0 };
	struct pair p;

	for (int i = 0; i < 4; i++) {
		silence_open(&p, holdoff[i]);
		qp_send(&p.a, out, 8, &out[1]);
		if (holdoff[i] != HOLDOFF_MS)
			be_silent();
		assert_false(a_alone(&p, 8 * HOLDOFF_MS));
		qp_recv(&p.b, in, sizeof(in), in);
		qp_expect(&p, &p.a, &out[1], 0);
		pair_close(&p);
	}
}

/* The transport is asked while something waits, and then no longer. */
static void nothing_is_asked_in_peace(void **state)
{
	struct pair p;
	int before;

	silence_open(&p, HOLDOFF_MS);
	qp_send(&p.a, out, 8, &out[1]);
	a_alone(&p, 1000);
	assert_int_not_equal(asked, 0);
	assert_int_equal(released, 0);
	qp_recv(&p.b, in, sizeof(in), in);
	qp_expect(&p, &p.a, &out[1], 0);
	a_alone(&p, 1000);
	assert_int_not_equal(released, 0);
	before = asked;
	a_alone(&p, 1000);
	assert_int_equal(asked, before);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_to_a_silent_host_end),
		cmocka_unit_test(others_wait),
		cmocka_unit_test(nothing_is_asked_in_peace),
	};

	return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
