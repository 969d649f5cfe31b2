/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-sided operations by the initiator: what they wait for, and what waits for them. */
#include "engine/core/core.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/test/test_direct.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"
#include "transport/vm_seam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void waits_for_messages_where_that_is_promised(void **state)
{
	unsigned char mem[5000] = { 0 }, mine[5000], in;
	struct hd_mr *mr;
	struct pair p;

	for (int promised = 0; promised < 2; promised++) {
		memset(mem, 0, sizeof(mem));
		memset(mine, 1, sizeof(mine));
		direct_open(&p, promised ? HD_EP_WAS : 0);
		mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
		side_post(&p.b, &in, 1, 2, 0, NULL, NULL);
		pair_push(&p, &p.a, "x", 1, 2, 0);
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 5000, 0, DONE), 0);
		assert_int_equal(direct_nothing_done(&p), promised);
		assert_int_equal(mem[0], !promised);
		direct_turns(&p.b, 50);
		assert_non_null(hd_cq_peek(p.b.cq));
		assert_int_equal(direct_alone(&p).err, 0);
		assert_int_equal(mem[0], 1);
		/* what is known to have arrived is not asked for again */
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 5000, 0, DONE), 0);
		assert_non_null(hd_cq_peek(p.a.cq));
		assert_int_equal(hd_mr_close(mr), 0);
		direct_close(&p);
	}
}

/* A message that is sent while it waits is no concern of its. */
static void waits_for_what_was_before_alone(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = calloc(1, BIG), flag = 9;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, HD_EP_WAS);
	mr = direct_region(&p.b, KEY, mem, BIG, 0);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 8, 0, DONE), 0);
	/* so that the first message is known to have arrived */
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	pair_rest(&p);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, BIG, 0, 0), 0);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, &flag, 1, BIG - 1, DONE), 0);
	pair_push(&p, &p.a, "x", 1, 2, 0);
	assert_int_equal(direct_alone(&p).err, 0);
	assert_int_equal(mem[BIG - 1], 9);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

/* What went by packet was before as well, whether or not messages are. */
static void waits_for_requests_by_packet(void **state)
{
	unsigned char mem[8192] = { 0 }, mine[8192];
	struct hd_mr *mr, *hidden;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	hidden = direct_region(&p.b, KEY + 1, mem, sizeof(mem), 0);
	hd_page_mr_hide(p.b.node, hidden->row); /* as if the table had had no room for it */
	memset(mine, 1, sizeof(mine));
	assert_int_equal(hd_rma(p.a.ep, p.a.to,
				&(struct hd_rma_args){ .op = HD_RMA_WRITE,
						       .iov = &(struct iovec){ mine, 4096 },
						       .count = 1,
						       .segs = &(struct hd_rma_seg){ 0, 4096, KEY + 1 },
						       .seg_count = 1,
						       .flags = DONE }),
			 0);
	assert_int_equal(vm_seam.calls, 0);
	memset(mine + 4096, 2, 4096);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine + 4096, 4096, 0, DONE), 0);
	assert_true(direct_nothing_done(&p));
	assert_int_equal(mem[0], 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pair_next(&p, &p.a).err, 0);
	assert_int_equal(mem[0], 2);
	assert_int_equal(mem[4095], 2);
	assert_int_equal(hd_mr_close(hidden), 0);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

/* One endpoint's operation that waits does not keep another's. */
static void endpoints_do_not_wait_for_each_other(void **state)
{
	unsigned char mem[8192] = { 0 }, mine[8192];
	struct hd_ep *other;
	struct hd_mr *mr;
	struct pair p;

	memset(mine, 1, sizeof(mine));
	direct_open(&p, HD_EP_WAS);
	mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	assert_int_equal(
		hd_ep_open(p.a.node,
			   &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = p.a.cq, .rx_cq = p.a.cq },
			   &other),
		0);
	pair_push(&p, &p.a, "x", 1, 2, 0);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 8, 0, DONE), 0);
	assert_true(direct_nothing_done(&p));
	assert_int_equal(hd_rma(other, p.a.to,
				&(struct hd_rma_args){ .op = HD_RMA_WRITE,
						       .iov = &(struct iovec){ mine, 8 },
						       .count = 1,
						       .segs = &(struct hd_rma_seg){ 100, 8, KEY },
						       .seg_count = 1,
						       .ctx = other,
						       .flags = DONE }),
			 0);
	assert_ptr_equal(direct_alone(&p).ctx, other);
	assert_int_equal(mem[0], 0);
	assert_int_equal(mem[100], 1);
	assert_ptr_equal(pair_next(&p, &p.a).ctx, mine);
	hd_ep_close(other);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

static void messages_wait_for_long_writes(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = malloc(BIG), in[8];
	struct hd_mr *mr;
	struct pair p;

	test_fill(mine, BIG, 8);
	for (int promised = 0; promised < 2; promised++) {
		direct_open(&p, promised ? HD_EP_SAW : 0);
		mr = direct_region(&p.b, KEY, mem, BIG, 0);
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, BIG, 0, 0), 0);
		assert_int_equal(hd_send(p.a.ep, p.a.to, mine, 8, 2, 0, NULL,
					 HD_SEND_TAGGED | HD_SEND_COMPLETE),
				 promised ? -EAGAIN : 0);
		side_post(&p.b, in, 8, 2, 0, NULL, in);
		if (promised)
			pair_push(&p, &p.a, mine, 8, 2, 0);
		assert_ptr_equal(pair_next(&p, &p.b).ctx, in);
		if (promised)
			test_check(mem, BIG, 8);
		pair_settle(&p, 5);
		assert_int_equal(hd_peer_inspect(p.a.to->peer).send_fences, 0);
		assert_int_equal(hd_mr_close(mr), 0);
		direct_close(&p);
	}
	free(mem);
	free(mine);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_messages_where_that_is_promised),
		cmocka_unit_test(waits_for_what_was_before_alone),
		cmocka_unit_test(waits_for_requests_by_packet),
		cmocka_unit_test(endpoints_do_not_wait_for_each_other),
		cmocka_unit_test(messages_wait_for_long_writes),
	};

	return cmocka_run_group_tests_name("direct_order", tests, NULL, NULL);
}
