/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-sided operations that the target refuses, and how they end when a side goes. */
#include "engine/link/link.h"
#include "engine/test/test_pair.h"
#include "engine/test/test_rma.h"

#include "engine/mr/mr.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The target says what was wrong, and not a byte is written, whichever segment it is. */
static void refusals(void **state)
{
	static const struct {
		uint64_t key, addr;
		uint32_t access;
		int err;
	} cases[] = {
		{ KEY + 1, 0, ALL, HD_S_ACCESS },		/* no such region */
		{ KEY, 0, HD_ACCESS_REMOTE_READ, HD_S_ACCESS }, /* no such right */
		{ KEY, 0, HD_ACCESS_LOCAL_WRITE, HD_S_ACCESS },
		{ KEY, 1, ALL, HD_S_RANGE }, /* beyond its end */
		{ KEY, UINT64_MAX - 2, ALL, HD_S_RANGE },
	};
	unsigned char *mem = calloc(1, BIG), *mine = malloc(BIG);
	struct pair p;

	memset(mine, 1, BIG);
	EACH_TRANSPORT(t)
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t n = 16; n <= BIG; n = n < BIG ? BIG : BIG + 1) {
			struct iovec iov = { mine, n };
			struct hd_rma_seg seg[2] = { { 0, 8, KEY + 2 },
						     { cases[i].addr, n - 8, cases[i].key } };
			struct hd_mr *mr, *good;

			rma_open(&p, t);
			mr = rma_region(&p.b, KEY, mem + 8, n - 8, cases[i].access);
			good = rma_region(&p.b, KEY + 2, mem, 8, ALL);
			assert_int_equal(rma_post(&p, &(struct hd_rma_args){ .iov = &iov,
									     .count = 1,
									     .segs = seg,
									     .seg_count = 2,
									     .ctx = mine }),
					 0);
			rma_expect(&p, HD_RMA_WRITE, mine, cases[i].err);
			for (size_t k = 0; k < n; k++)
				assert_int_equal(mem[k], 0);
			hd_mr_close(mr);
			hd_mr_close(good);
			pair_close(&p);
		}
	free(mem);
	free(mine);
}

static void refused_reads_and_endpoints(void **state)
{
	unsigned char mem[64], mine[64];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_mr *mr;

		rma_open(&p, t);
		mr = rma_region(&p.b, KEY, mem, 64, HD_ACCESS_REMOTE_WRITE);
		rma_go(&p, HD_RMA_READ, mine, 64, 0, 0);
		rma_expect(&p, HD_RMA_READ, mine, HD_S_ACCESS);
		p.b.ep->policy &= ~(uint32_t)HD_EP_REMOTE_WRITE;
		rma_go(&p, HD_RMA_WRITE, mine, 64, 0, 0);
		rma_expect(&p, HD_RMA_WRITE, mine, HD_S_ACCESS);
		hd_mr_close(mr);
		rma_go(&p, HD_RMA_READ, mine, 64, 0, 0);
		rma_expect(&p, HD_RMA_READ, mine, HD_S_ACCESS);
		pair_close(&p);
	}
}

static void bad_arguments(void **state)
{
	struct iovec iov[HD_MAX_IOV + 1] = { { iov, 8 } };
	struct hd_rma_seg seg[HD_RMA_SEGS + 1] = { { 0, 8, KEY } };
	struct hd_rma_args args = { .iov = iov, .count = 1, .segs = seg, .seg_count = 1 };
	struct pair p;

	pair_open(&p, "shm");
	args.count = HD_MAX_IOV + 1;
	assert_int_equal(hd_rma(p.a.ep, p.a.to, &args), -EINVAL);
	args.count = 1;
	args.seg_count = HD_RMA_SEGS + 1;
	assert_int_equal(hd_rma(p.a.ep, p.a.to, &args), -EINVAL);
	args.seg_count = 1;
	seg[0].len = 9;
	assert_int_equal(hd_rma(p.a.ep, p.a.to, &args), -EINVAL);
	seg[0].len = HD_MAX_MSG + 1;
	assert_int_equal(hd_rma(p.a.ep, p.a.to, &args), -EMSGSIZE);
	assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
	pair_close(&p);
}

/* ---- ends ------------------------------------------------------------------------------------ */

enum how {
	REGION,
	TARGET,
	INITIATOR,
	LINK,
	HOWS
};

/* Nothing is left under way at either side. */
static void settle_all(struct pair *p)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (hd_links_inspect(p->a.node).pending || hd_links_inspect(p->b.node).pending) {
		pair_settle(p, 1);
		assert_true(hd_now_ns() < end);
	}
}

/* Many long ones under way, some of which have begun, when something goes away: each ends, once. */
static void ends(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine[8];
	struct pair p;

	for (int i = 0; i < 8; i++)
		mine[i] = malloc(BIG);
	for (int turns = 0; turns < 40; turns += 7)
		for (enum how how = 0; how < HOWS; how++)
			EACH_TRANSPORT(t)
			{
				struct hd_mr *mr;

				rma_open(&p, t);
				mr = rma_region(&p.b, KEY, mem, BIG, ALL);
				rma_go(&p, HD_RMA_WRITE, mine[0], 8, 0, DONE);
				rma_expect(&p, HD_RMA_WRITE, mine[0], 0);
				for (int i = 0; i < 8; i++)
					rma_go(&p, i % 2 ? HD_RMA_READ : HD_RMA_WRITE, mine[i], BIG, 0, DONE);
				for (int i = 0; i < turns; i++)
					hd_node_poll(i & 1 ? p.a.node : p.b.node);
				if (how == REGION) {
					hd_mr_close(mr);
					memset(mem, 0x55, BIG);
				} else if (how == TARGET) {
					hd_ep_close(p.b.ep);
					memset(mem, 0x55, BIG);
				} else if (how == INITIATOR) {
					hd_ep_close(p.a.ep);
				} else {
					hd_link_down(p.a.to->peer->link, -ECONNRESET, "test");
				}
				for (int i = 0; i < 8 && how != INITIATOR; i++)
					pair_next(&p, &p.a);
				pair_settle(&p, 5);
				if (how == REGION || how == TARGET)
					for (size_t i = 0; i < BIG; i++)
						assert_int_equal(mem[i], 0x55);
				assert_null(how == INITIATOR ? NULL : hd_cq_peek(p.a.cq));
				settle_all(&p);
				if (how != REGION)
					hd_mr_close(mr);
				if (how == TARGET) {
					p.b.ep = NULL;
					side_endpoint(&p.b, HD_EP_RDM);
				}
				if (how == INITIATOR) {
					p.a.ep = NULL;
					side_endpoint(&p.a, HD_EP_RDM);
				}
				pair_close(&p);
			}
	for (int i = 0; i < 8; i++)
		free(mine[i]);
	free(mem);
}

/* What a target keeps for requests is paid for: there is a limit, and all of it comes back. */
static void credit(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = calloc(1, BIG);
	struct pair p;

	EACH_TRANSPORT(t)
	{
		const struct hd_rma_seg seg = { 0, BIG, KEY };
		const struct iovec iov = { mine, BIG };
		const struct hd_rma_args args = { .op = HD_RMA_READ,
						  .iov = &iov,
						  .count = 1,
						  .segs = &seg,
						  .seg_count = 1,
						  .ctx = mine,
						  .flags = DONE };
		struct hd_peer *peer;
		struct hd_mr *mr;
		int n = 0;

		rma_open(&p, t);
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		rma_go(&p, HD_RMA_WRITE, mine, 8, 0, DONE);
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		while (n < 4000 && hd_rma(p.a.ep, p.a.to, &args) == 0)
			n++;
		assert_in_range(n, 8, 1000);
		for (int i = 0; i < n; i++)
			rma_expect(&p, HD_RMA_READ, mine, 0);
		pair_settle(&p, 20);
		peer = p.a.to->peer;
		assert_true(peer->link->ops->granted(peer->link) - hd_credit_spent(peer) >
			    hd_credit_first_window(p.b.node) / 2);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/*
 * Opens one that reads under the endpoint's name, as a transmit context of
 * a scalable endpoint does.
 */
static struct hd_ep *context_open(struct side *s)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_NAMELESS, .tx_cq = s->cq, .beside = s->ep
	};
	struct hd_ep *ep;

	assert_int_equal(hd_ep_open(s->node, &attr, &ep), 0);
	return ep;
}

/* Reads of this peer that are under way here. */
static int frames_for(const struct hd_peer *peer)
{
	struct hd_transfer *t;
	int n = 0;

	HD_TRANSFERS_FOREACH(t, peer)
	n++;
	return n;
}

/*
 * Who has asked for much and closes reads no more: the target stops, though nobody takes the frames
 * that have left. What another has asked for under the same name goes on.
 */
static void the_reader_closes(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = calloc(1, BIG);

	EACH_TRANSPORT(t)
	for (int context = 0; context < 2; context++) {
		uint64_t end = hd_now_ns() + 20 * HD_NS_PER_S;
		struct hd_peer *peer;
		struct hd_ep *ep;
		struct hd_mr *mr;
		struct pair p;

		rma_open(&p, t);
		ep = p.a.ep;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		pair_push(&p, &p.b, mine, 1, 7, DONE); /* so that each knows where the other is */
		assert_int_equal(pair_next(&p, &p.b).err, 0);
		rma_go(&p, HD_RMA_WRITE, mine, 8, 0, DONE);
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		peer = p.b.to->peer;
		if (context)
			p.a.ep = context_open(&p.a);
		for (int i = 0; i < 8; i++)
			rma_go(&p, HD_RMA_READ, mine, BIG, 0, DONE);
		while (!hd_peer_inspect(peer).framing && hd_now_ns() < end)
			hd_node_poll(p.b.node);
		assert_true(hd_peer_inspect(peer).framing);
		if (context) {
			hd_ep_close(p.a.ep);
			p.a.ep = ep;
			rma_go(&p, HD_RMA_READ, mine, BIG, 0, DONE);
		} else {
			side_endpoint(&p.a, HD_EP_RDM);
		}
		while (frames_for(peer) != context && hd_now_ns() < end)
			hd_node_poll(p.b.node);
		assert_int_equal(frames_for(peer), context);
		if (context)
			rma_expect(&p, HD_RMA_READ, mine, 0);
		assert_true(!hd_peer_inspect(peer).pending && !hd_peer_inspect(peer).framing);
		p.a.ep->policy |= HD_EP_REMOTE_READ |
				  HD_EP_REMOTE_WRITE; /* and the link is as good as before */
		rma_go(&p, HD_RMA_WRITE, mine, 8, 0, DONE);
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(refusals),
		BOTH(refused_reads_and_endpoints),
		cmocka_unit_test(bad_arguments),
		BOTH(ends),
		BOTH(credit),
		cmocka_unit_test_setup_teardown(the_reader_closes, rma_by_packets, rma_by_either),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
