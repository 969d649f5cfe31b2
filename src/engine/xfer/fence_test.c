/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Fences: what waits, for what, what does not, and how it ends when the other
 * side or the endpoint goes.
 */
#include "engine/test/test_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BIG (1 << 20)

static void fence_open(struct pair *p, const char *transport)
{
	pair_open(p, transport);
	p->a.ep->policy |= HD_EP_FENCE;
}

/* Sends of the fenced endpoint carry HD_SEND_GATED. */
static void push(struct pair *p, const void *buf, size_t len, uint64_t tag, uint32_t flags)
{
	pair_push(p, &p->a, buf, len, tag, flags | HD_SEND_GATED | HD_SEND_COMPLETE);
}

static void expect(struct pair *p, struct side *s, uint64_t tag)
{
	struct hd_cqe e = pair_next(p, s);

	assert_int_equal(e.err, 0);
	assert_int_equal(e.tag, tag);
}

static void expect_quiet(struct pair *p, struct side *s)
{
	pair_settle(p, 20);
	assert_null(hd_cq_peek(s->cq));
}

/*
 * A long message that nobody has taken is not complete, so what comes behind the fence stays here.
 */
static void waits_for_what_is_before(void **state)
{
	unsigned char *big = calloc(1, BIG), *in = malloc(BIG), small[64], got[3][64];
	struct pair p;

	EACH_TRANSPORT(t)
	for (uint32_t how = 0; how < 2; how++) {
		fence_open(&p, t);
		for (uint64_t i = 0; i < 3; i++)
			side_post(&p.b, got[i], 64, 2 + i, 0, NULL, NULL);
		push(&p, big, BIG, 1, 0);
		test_fill(small, 64, 7);
		push(&p, small, 64, 2, HD_SEND_FENCE | (how ? HD_SEND_INJECT : 0));
		if (how) /* it is ours again, though it has not been sent */
			memset(small, 0, 64);
		push(&p, got[0], 0, 3, 0);
		expect_quiet(&p, &p.a);
		expect_quiet(&p, &p.b);
		side_post(&p.b, in, BIG, 1, 0, NULL, NULL);
		expect(&p, &p.b, 1);
		expect(&p, &p.b, 2);
		test_check(got[0], 64, 7);
		expect(&p, &p.b, 3);
		for (uint64_t i = 1; i <= 3; i++)
			expect(&p, &p.a, i);
		/* with nothing before it a fenced message goes at once */
		push(&p, small, 64, 4, HD_SEND_FENCE);
		assert_non_null(hd_cq_peek(p.a.cq));
		expect(&p, &p.b, 4);
		pair_close(&p);
	}
	free(big);
	free(in);
}

/*
 * Two fences one after the other, each before a message that is acknowledged
 * only once it is matched.
 */
static void each_fence_waits_for_its_own(void **state)
{
	unsigned char buf[16], got[4][16];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		fence_open(&p, t);
		push(&p, buf, 16, 1, HD_SEND_ACKED);
		push(&p, buf, 16, 2, HD_SEND_ACKED | HD_SEND_FENCE);
		push(&p, buf, 16, 3, 0);
		push(&p, buf, 16, 4, HD_SEND_FENCE);
		side_post(&p.b, got[2], 16, 3, 0, NULL, NULL);
		side_post(&p.b, got[3], 16, 4, 0, NULL, NULL);
		expect_quiet(&p, &p.b);
		side_post(&p.b, got[0], 16, 1, 0, NULL, NULL);
		expect(&p, &p.b, 1);
		/* between the fences, so it need not wait for 2 to be matched */
		expect(&p, &p.b, 3);
		expect(&p, &p.a, 1);
		expect(&p, &p.a, 3);
		expect_quiet(&p, &p.b);
		side_post(&p.b, got[1], 16, 2, 0, NULL, NULL);
		expect(&p, &p.b, 2);
		expect(&p, &p.b, 4);
		expect(&p, &p.a, 2);
		expect(&p, &p.a, 4);
		pair_close(&p);
	}
}

/*
 * Before the destination is reached everything waits there, and the fence counts only from then on.
 */
static void holds_from_the_first_message_on(void **state)
{
	unsigned char buf[16], got[3][16];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		fence_open(&p, t);
		push(&p, buf, 16, 1, HD_SEND_ACKED);
		push(&p, buf, 16, 2, HD_SEND_FENCE);
		push(&p, buf, 16, 3, 0);
		assert_int_equal(p.a.to->state == HD_DEST_BOUND, 0);
		side_post(&p.b, got[1], 16, 2, 0, NULL, NULL);
		side_post(&p.b, got[2], 16, 3, 0, NULL, NULL);
		expect_quiet(&p, &p.b);
		side_post(&p.b, got[0], 16, 1, 0, NULL, NULL);
		for (uint64_t i = 1; i <= 3; i++)
			expect(&p, &p.b, i);
		pair_close(&p);
	}
}

/* Messages to another endpoint pass, and so do those of another endpoint to the same one. */
static void stops_no_other_pair(void **state)
{
	unsigned char buf[16], got[2][16];
	struct side c;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_dest *back;

		fence_open(&p, t);
		side_open(&c);
		side_names(&c, &p.b);
		push(&p, buf, 16, 1, HD_SEND_ACKED);
		push(&p, buf, 16, 2, HD_SEND_FENCE);
		back = p.a.to;
		side_names(&p.a, &c);
		side_post(&c, got[0], 16, 5, 0, NULL, NULL);
		push(&p, buf, 16, 5, HD_SEND_FENCE);
		for (int i = 0; i < 1000 && !hd_cq_peek(c.cq); i++) {
			pair_settle(&p, 1);
			hd_node_poll(c.node);
		}
		assert_non_null(hd_cq_peek(c.cq));
		expect(&p, &p.a, 5);
		expect_quiet(&p, &p.a);
		hd_dest_put(p.a.to);
		p.a.to = back;
		side_close(&c);
		pair_close(&p);
	}
}

/*
 * Closing the endpoint, or the other one, ends what waits: without completions, or each with one.
 */
static void ends_with_either_side(void **state)
{
	unsigned char buf[16], in[16];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int whose = 0; whose < 3; whose++) {
		fence_open(&p, t);
		side_post(&p.b, in, 16, 9, 0, NULL, NULL);
		push(&p, buf, 16, 9, 0);
		expect(&p, &p.a, 9);
		expect(&p, &p.b, 9);
		push(&p, buf, 16, 1, HD_SEND_ACKED);
		push(&p, buf, 16, 2, HD_SEND_FENCE | HD_SEND_INJECT);
		push(&p, buf, 16, 3, 0);
		if (whose == 1) {
			hd_ep_close(p.b.ep);
			p.b.ep = NULL;
		} else if (whose == 2) {
			hd_link_down(p.a.to->peer->link, -ECONNRESET, "test");
		}
		for (int i = 0; whose && i < 3; i++)
			assert_int_not_equal(pair_next(&p, &p.a).err, 0);
		if (whose)
			assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
		if (whose == 1)
			side_endpoint(&p.b, HD_EP_RDM); /* so that the pair can be closed */
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_what_is_before),
		cmocka_unit_test(each_fence_waits_for_its_own),
		cmocka_unit_test(holds_from_the_first_message_on),
		cmocka_unit_test(stops_no_other_pair),
		cmocka_unit_test(ends_with_either_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
