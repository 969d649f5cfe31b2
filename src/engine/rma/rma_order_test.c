/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-sided operations: orders that an endpoint has asked for, and that cost no other. */
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/rma/rma.h"
#include "engine/test/test_pair.h"
#include "engine/test/test_rma.h"

#include <stdlib.h>
#include <string.h>

/* What a message tells its receiver to change has been read as it was. */
static void messages_do_not_overtake_reads(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG), in[16];
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t send = 0; send <= 16; send += 16) {
		struct hd_mr *mr;

		rma_open(&p, t);
		p.a.ep->policy |= HD_EP_SAR;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		for (unsigned round = 0; round < 3; round++) {
			test_fill(mem, BIG, round);
			rma_go(&p, HD_RMA_READ, mine, BIG, 0, DONE);
			side_post(&p.b, in, 16, 1, 0, NULL, in);
			pair_push(&p, &p.a, in, send, 1, 0);
			assert_ptr_equal(pair_next(&p, &p.b).ctx, in);
			memset(mem, 0, BIG);
			rma_expect(&p, HD_RMA_READ, mine, 0);
			test_check(mine, BIG, round);
		}
		pair_settle(&p, 5);
		assert_int_equal(hd_ep_inspect(p.a.ep).send_fences, 0);
		assert_int_equal(hd_peer_inspect(p.a.to->peer).send_fences, 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/* Writes do not wait for messages' sake where reads alone are promised, nor the other way round. */
static void each_has_what_it_asked_for(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = calloc(1, BIG);
	struct pair p;

	EACH_TRANSPORT(t)
	for (int reads = 0; reads < 2; reads++) {
		struct hd_mr *mr;

		rma_open(&p, t);
		p.a.ep->policy |= reads ? HD_EP_SAW : HD_EP_SAR;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		rma_go(&p, reads ? HD_RMA_READ : HD_RMA_WRITE, mine, BIG, 0, DONE);
		assert_int_equal(hd_ep_inspect(p.a.ep).send_fences, 0);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/* The last 8 bytes of the region, added to at once. */
static uint64_t add_at_end(struct pair *p, uint64_t more)
{
	const struct hd_rma_seg seg = { BIG - 8, 8, KEY };
	uint64_t old = 0;
	const struct hd_atomic_args args = {
		.op = HD_ATOMIC_SUM,
		.type = HD_ATOMIC_U64,
		.how = HD_ATOMIC_FETCH,
		.iov = &(struct iovec){ &more, 8 },
		.count = 1,
		.result_iov = &(struct iovec){ &old, 8 },
		.result_count = 1,
		.segs = &seg,
		.seg_count = 1,
		.ctx = &old,
		.flags = DONE,
	};

	assert_int_equal(pair_atomic(p, &args), 0);
	assert_ptr_equal(pair_next(p, &p->a).ctx, &old);
	return old;
}

/* Long ones, and short ones behind them: each finds what those before it have left. */
static void order_of_long_ones(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG), *seen = malloc(BIG), end[16];
	uint64_t last;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_mr *mr;

		rma_open(&p, t);
		p.a.ep->policy |= HD_EP_RMA_WHOLE;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL | HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH);
		for (unsigned round = 0; round < 3; round++) {
			memset(mem, 0, BIG);
			test_fill(mine, BIG, round);
			rma_go(&p, HD_RMA_WRITE, mine, BIG, 0, 0);
			rma_go(&p, HD_RMA_READ, end, 16, BIG - 16, 0);
			rma_go(&p, HD_RMA_READ, seen, BIG, 0, 0);
			rma_go(&p, HD_RMA_WRITE, "sixteen letters", 16, BIG - 16, DONE);
			assert_int_equal(pair_next(&p, &p.a).err, 0);
			test_check(seen, BIG, round);
			assert_memory_equal(end, mine + BIG - 16, 16);
			assert_string_equal((char *)mem + BIG - 16, "sixteen letters");
			rma_go(&p, HD_RMA_WRITE, mine, BIG, 0, 0);
			memcpy(&last, mine + BIG - 8, 8);
			assert_int_equal(add_at_end(&p, 1), last);
		}
		pair_settle(&p, 5);
		assert_int_equal(hd_ep_inspect(p.a.ep).rma_fences, 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(messages_do_not_overtake_reads),
		BOTH(each_has_what_it_asked_for),
		BOTH(order_of_long_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
