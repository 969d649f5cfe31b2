/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Completions in order: who is held up by whom, and how it ends when the other side or the endpoint
 * goes. Queues that overrun.
 */
#include "base/iov.h"
#include "engine/event/event.h"
#include "engine/rdm/rdm.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BIG (1 << 20)

static void push(struct pair *p, const void *buf, size_t len, uint64_t tag, uint32_t flags)
{
	pair_push(p, &p->a, buf, len, tag, flags | HD_SEND_ORDERED | HD_SEND_COMPLETE);
}

static int post(struct side *s, void *buf, size_t len, uint64_t tag, uint32_t flags)
{
	struct iovec iov = { buf, len };

	return hd_recv(s->ep, &(struct hd_recv_args){ .iov = &iov,
						      .count = 1,
						      .tag = tag,
						      .ctx = buf,
						      .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE |
							       HD_RECV_ORDERED | flags });
}

static void expect(struct pair *p, struct side *s, uint64_t tag, int err)
{
	struct hd_cqe e = pair_next(p, s);

	assert_int_equal(e.tag, tag);
	assert_int_equal(e.err, err);
}

static void expect_quiet(struct pair *p, struct side *s)
{
	pair_settle(p, 20);
	assert_null(hd_cq_peek(s->cq));
}

/*
 * What goes to another endpoint passes; a held completion keeps its place in
 * the bound of operations.
 */
static void holds_one_destination(void **state)
{
	unsigned char *big = calloc(1, BIG), *in = malloc(BIG), buf[16], got[16];
	struct side c;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_dest *back;

		pair_open(&p, t);
		p.a.ep->policy |= HD_EP_TX_ORDERED;
		side_open(&c);
		push(&p, big, BIG, 1, 0);
		push(&p, buf, 16, 2, 0);
		expect_quiet(&p, &p.a);
		assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 2);
		back = p.a.to;
		side_names(&p.a, &c);
		push(&p, buf, 16, 5, 0);
		for (int i = 0; i < 5000 && !hd_cq_peek(p.a.cq); i++) {
			pair_settle(&p, 1);
			hd_node_poll(c.node);
		}
		expect(&p, &p.a, 5, 0);
		hd_dest_put(p.a.to);
		p.a.to = back;
		side_post(&p.b, in, BIG, 1, 0, NULL, NULL);
		side_post(&p.b, got, 16, 2, 0, NULL, NULL);
		expect(&p, &p.a, 1, 0);
		expect(&p, &p.a, 2, 0);
		assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
		push(&p, buf, 16, 3, 0); /* nothing before it: at once */
		expect(&p, &p.a, 3, 0);
		side_close(&c);
		pair_close(&p);
	}
	free(big);
	free(in);
}

/*
 * The link breaks, or the endpoint closes: everything is told once, in order, or nothing
 * is told; nothing is left.
 */
static void sends_end(void **state)
{
	unsigned char *big = calloc(1, BIG), buf[16];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int whose = 0; whose < 2; whose++) {
		pair_open(&p, t);
		p.a.ep->policy |= HD_EP_TX_ORDERED;
		push(&p, big, BIG, 1, 0);
		push(&p, buf, 16, 2, 0);
		push(&p, big, BIG, 3, 0);
		push(&p, buf, 16, 4, 0);
		expect_quiet(&p, &p.a);
		if (whose) {
			hd_link_down(p.a.to->peer->link, -ECONNRESET, "test");
			expect(&p, &p.a, 1, HD_S_LOST);
			expect(&p, &p.a, 2, 0);
			expect(&p, &p.a, 3, HD_S_LOST);
			expect(&p, &p.a, 4, 0);
			assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
		}
		pair_close(&p); /* asserts that nothing names the queue any more */
	}
	free(big);
}

/*
 * Parked messages: complete in order when the link breaks (what was whole is received), and are
 * forgotten with the endpoint.
 */
static void receives_end(void **state)
{
	unsigned char *big = calloc(1, BIG), *in[2] = { malloc(BIG), malloc(BIG) }, buf[16], got[16];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int whose = 0; whose < 2; whose++) {
		pair_open(&p, t);
		test_fill(buf, 16, 3);
		side_post(&p.b, got, 16, 9, 0, NULL, NULL);
		pair_push(&p, &p.a, buf, 16, 9, 0);
		expect(&p, &p.b, 9, 0);
		assert_int_equal(post(&p.b, in[0], BIG, 1, HD_RECV_ASCENDING), 0);
		assert_int_equal(post(&p.b, got, 16, 2, 0), 0);
		assert_int_equal(post(&p.b, in[1], BIG, 3, 0), 0);
		for (uint64_t i = 1; i <= 3; i++)
			pair_push(&p, &p.a, i == 2 ? buf : big, i == 2 ? 16 : BIG, i, 0);
		/* b hears of all three, and gets no frame of the first */
		hd_node_poll(p.a.node);
		for (int i = 0; i < 1000000 && !hd_ep_inspect(p.b.ep).deferred; i++)
			hd_node_poll(p.b.node);
		assert_false(hd_order_idle(p.b.ep));
		assert_null(hd_cq_peek(p.b.cq));
		if (whose) {
			hd_link_down(p.b.to->peer->link, -ECONNRESET, "test");
			expect(&p, &p.b, 1, HD_S_LOST);
			expect(&p, &p.b, 2, 0);
			test_check(got, 16, 3);
			expect(&p, &p.b, 3, HD_S_LOST);
			assert_true(hd_order_idle(p.b.ep));
		}
		pair_close(&p);
	}
	free(big);
	free(in[0]);
	free(in[1]);
}

/*
 * A queue that nobody protects: what it holds is read, then it is an error for good;
 * senders are not held up.
 */
static void overruns(void **state)
{
	const struct hd_cqe *e;
	struct hd_node *node;
	struct hd_cq *cq;

	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &node), 0);
	for (uint64_t extra = 0; extra < 3; extra++) {
		assert_int_equal(hd_cq_open(node, &(struct hd_cq_attr){ .size = 64, .overruns = true }, &cq),
				 0);
		for (uint64_t i = 0; i < 64 + extra; i++)
			hd_cq_post(cq, &(struct hd_cqe){ .tag = i });
		assert_false(hd_cq_full(cq));
		for (uint64_t i = 0; i < 64; i++) {
			e = hd_cq_poll(cq);
			assert_non_null(e);
			assert_int_equal(e->err, 0);
			assert_int_equal(e->tag, i);
			hd_cq_pop(cq);
			if (extra) /* it is lost, whatever room there is now */
				hd_cq_post(cq, &(struct hd_cqe){ .tag = 1000 });
		}
		for (int i = 0; i < 3; i++) {
			e = hd_cq_poll(cq);
			assert_int_equal(!!e, !!extra);
			if (!e)
				break;
			assert_int_equal(e->err, HD_S_OVERRUN);
			hd_cq_pop(cq);
		}
		assert_int_equal(hd_cq_close(cq), 0);
	}
	assert_int_equal(hd_node_close(node), 0);
}

/* hd_iov_fill_ascending: everywhere, from everywhere. */
static void fills_from_any_place(void **state)
{
	unsigned char from[40], to[64], seen[40];

	test_fill(from, sizeof(from), 9);
	for (size_t at = 0; at < 8; at++)
		for (size_t cut = 0; cut < 20; cut++)
			for (size_t off = 0; off < 20; off++) {
				const struct iovec iov[2] = { { to + at, cut }, { to + at + cut, 40 - cut } };

				memset(to, 0, sizeof(to));
				assert_int_equal(hd_iov_fill_ascending(iov, 2, off, from, 40), 0);
				memcpy(seen, to + at + off, 40 - off);
				assert_memory_equal(seen, from, 40 - off);
				for (size_t i = 0; i < sizeof(to); i++)
					if (i < at + off || i >= at + 40)
						assert_int_equal(to[i], 0);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_one_destination), cmocka_unit_test(sends_end),
		cmocka_unit_test(receives_end),		 cmocka_unit_test(overruns),
		cmocka_unit_test(fills_from_any_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
