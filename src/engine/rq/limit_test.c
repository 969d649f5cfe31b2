/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The limit of a receive queue, and completions that are taken away. */
#include "engine/test/test_pair.h"

#include <string.h>

static int told;

static void below(void *owner)
{
	assert_ptr_equal(owner, &told);
	told++;
}

static void set(struct hd_rq *rq, uint32_t least)
{
	const struct hd_rq_limit limit = { least, below, &told };

	hd_rq_set_limit(rq, &limit);
}

static void arm(struct hd_rq *rq, uint32_t least)
{
	set(rq, least);
	assert_int_equal(hd_rq_get_limit(rq), least);
}

static void send_one(struct pair *p)
{
	char c = 'x';

	pair_push(p, &p->a, &c, 1, 1, HD_SEND_INJECT);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	pair_settle(p, 1);
}

static void the_limit_is_told_once(void **state)
{
	char buf[8];

	EACH_TRANSPORT(transport)
	{
		struct pair p;
		struct hd_rq *rq;

		pair_open(&p, transport);
		rq = p.b.ep->rq;
		told = 0;
		for (int i = 0; i < 4; i++)
			side_post(&p.b, buf, 8, 1, 0, NULL, NULL);
		arm(rq, 3);
		send_one(&p);
		assert_int_equal(told, 0);
		send_one(&p);
		assert_int_equal(told, 1);
		assert_int_equal(hd_rq_get_limit(rq), 0);
		send_one(&p);
		assert_int_equal(told, 1);
		set(rq, 2); /* there is one: at once, without a turn of progress */
		assert_int_equal(told, 2);
		assert_int_equal(hd_rq_get_limit(rq), 0);
		arm(rq, 1);
		arm(rq, 0);
		send_one(&p);
		assert_int_equal(told, 2);
		side_post(&p.b, buf, 8, 1, 0, NULL, NULL);
		arm(rq, 1);
		pair_close(&p); /* armed */
	}
}

static void completions_of_an_endpoint_are_dropped(void **state)
{
	struct side s;
	struct hd_cqe e = { 0 };

	side_open(&s);
	for (uintptr_t i = 0; i < 200; i++) { /* more than the ring takes */
		e.ep = (uint32_t)(i % 3);
		e.ctx = (void *)i;
		hd_cq_post(s.cq, &e);
	}
	hd_cq_drop(s.cq, 1);
	for (uintptr_t i = 0; i < 200; i++) {
		if (i % 3 == 1)
			continue;
		assert_non_null(hd_cq_peek(s.cq));
		assert_ptr_equal(hd_cq_peek(s.cq)->ctx, (void *)i);
		hd_cq_pop(s.cq);
	}
	assert_null(hd_cq_peek(s.cq));
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_told_once),
		cmocka_unit_test(completions_of_an_endpoint_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
