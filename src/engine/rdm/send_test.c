/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Sends: which way a message goes, and what it has cost when it is over. */
#include "engine/rq/rq.h"
#include "engine/test/test_pair.h"

#include <stdlib.h>

/* How a message of this length came that nobody has posted a receive for; it is received then. */
static uint8_t kind_of(struct pair *p, unsigned char *buf, size_t len)
{
	const struct hd_match *match = &p->b.ep->rq->match[1];
	uint64_t end = hd_now_ns() + PATIENCE;
	uint8_t kind;

	pair_push(p, &p->a, buf, len, 1, 0);
	while (!hd_match_first_waiting(match)) {
		pair_settle(p, 1);
		assert_true(hd_now_ns() < end);
	}
	kind = hd_container(hd_match_first_waiting(match), struct hd_msg, w)->kind;
	side_post(&p->b, buf, len, 1, 0, NULL, buf);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	return kind;
}

static void eager_up_to_the_limit(void **state)
{
	unsigned char *buf = calloc(1, 1 << 20);

	EACH_TRANSPORT(t)
	{
		struct pair p;
		size_t limit;

		pair_open(&p, t);
		kind_of(&p, buf, 1);
		limit = hd_peer_inspect(p.a.to->peer).eager_limit;
		assert_in_range(limit, 1, (1 << 20) - 1);
		assert_int_equal(kind_of(&p, buf, limit), HD_PKT_EAGER);
		assert_int_equal(kind_of(&p, buf, limit + 1), HD_PKT_RTS);
		pair_close(&p);
	}
	free(buf);
}

/*
 * More than the window, into receives that are there, of a length that comes in pieces over a
 * socket: each gives back what it was charged.
 */
static void what_is_received_costs_nothing(void **state)
{
	const size_t len = 60000;
	unsigned char *out = calloc(1, len), *in = calloc(1, len);

	EACH_TRANSPORT(t)
	{
		struct pair p;

		pair_open(&p, t);
		for (unsigned i = 0; i < 100; i++) {
			side_post(&p.b, in, len, 1, 0, NULL, in);
			test_fill(out, len, i);
			pair_push(&p, &p.a, out, len, 1, 0);
			assert_int_equal(pair_next(&p, &p.b).err, 0);
			test_check(in, len, i);
		}
		pair_close(&p);
	}
	free(out);
	free(in);
}

/*
 * Headers of messages to b for each of its receives, and others that nobody would send: what is
 * told ahead changes nothing, and is believed in nothing.
 */
static void tell_ahead(struct pair *p)
{
	struct hd_link *link = p->b.to->peer->link;
	struct hd_pkt pkt[HD_AHEAD_MAX] = { 0 };

	for (uint32_t i = 0; i < HD_AHEAD_MAX; i++)
		pkt[i] = (struct hd_pkt){ .kind = HD_PKT_EAGER,
					  .flags = HD_PKT_F_TAGGED,
					  .gen = p->b.ep->gen,
					  .dst = p->b.ep->index,
					  .tag = i * 977 };
	hd_node_lock(p->b.node);
	hd_deliver_ahead(link, pkt, HD_AHEAD_MAX);
	assert_int_equal(link->is_deep, p->b.ep->rq->match[1].posted >= HD_MATCH_DEEP);
	for (uint32_t i = 0; i < HD_AHEAD_MAX; i++)
		memset(&pkt[i], i & 1 ? 0xff : (int)i, i & 2 ? 4 : sizeof(pkt[i]));
	hd_deliver_ahead(link, pkt, HD_AHEAD_MAX);
	hd_deliver_ahead(link, pkt, 0);
	assert_false(link->is_deep);
	hd_node_unlock(p->b.node);
}

static void ahead_of_many_receives(void **state)
{
	const uint32_t count = HD_MATCH_DEEP + 100;
	unsigned char *in = calloc(count, 8), out[8];

	EACH_TRANSPORT(t)
	{
		struct pair p;

		pair_open(&p, t);
		kind_of(&p, in, 1);
		tell_ahead(&p);
		for (uint32_t i = 0; i < count; i++)
			side_post(&p.b, in + 8 * i, 8, i, 0, NULL, in + 8 * i);
		/* from the last to the first, until they are few */
		for (uint32_t i = count; i-- > count - 200;) {
			test_fill(out, 8, i);
			pair_push(&p, &p.a, out, 8, i, 0);
			assert_ptr_equal(pair_next(&p, &p.b).ctx, in + 8 * i);
			test_check(in + 8 * i, 8, i);
			tell_ahead(&p);
			assert_int_equal(p.b.ep->rq->match[1].posted, i);
		}
		pair_close(&p);
	}
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eager_up_to_the_limit),
		cmocka_unit_test(what_is_received_costs_nothing),
		cmocka_unit_test(ahead_of_many_receives),
	};

	return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}
