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

/* More than the window, into receives that are there, of a length that comes in pieces over a socket: each gives back what it was charged. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eager_up_to_the_limit),
		cmocka_unit_test(what_is_received_costs_nothing),
	};

	return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}
