/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by the initiator: what it does without the target's turns. Node b is the
 * target; unless a test says so it makes no progress. So it is in the other tests of direct RMA.
 */
#include "engine/core/core.h"
#include "engine/mr/mr.h"
#include "engine/test/test_direct.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"
#include "transport/vm_seam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- scenery --------------------------------------------------------------------------------- */

static const size_t sizes[] = { 1, 8, 9, 4096, 4097, 65536, HD_DIRECT_SLICE, HD_DIRECT_SLICE + 1, BIG };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---- alone ----------------------------------------------------------------------------------- */

static void the_target_need_not_do_anything(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, BIG, 0);
	for (unsigned i = 0; i < SIZES; i++) {
		test_fill(mine, sizes[i], i);
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, sizes[i], BIG - sizes[i], DONE), 0);
		assert_int_equal(direct_alone(&p).err, 0);
		test_check(mem + BIG - sizes[i], sizes[i], i);
		test_fill(mem, sizes[i], i + 20);
		assert_int_equal(direct_post(&p, HD_RMA_READ, mine, sizes[i], 0, DONE), 0);
		assert_int_equal(direct_alone(&p).err, 0);
		test_check(mine, sizes[i], i + 20);
	}
	assert_true(vm_seam.calls > 2 * (int)SIZES);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

/*
 * Several segments of several regions, counted in both ways, with boundaries at
 * different places here and there.
 */
static void segments_of_several_regions(void **state)
{
	static unsigned char mem[4][3000], mine[10000];
	struct iovec parts[2] = { { mem[0], 1000 }, { mem[1], 3000 } }, iov[3];
	struct hd_mr_attr attr = { .iov = parts, .count = 2, .access = ALL, .flags = HD_MR_KEY, .key = 1 };
	struct hd_rma_seg seg[3] = { { 500, 3000, 1 },
				     { 0, 0, 99 }, /* of no length: of no region */
				     { (uintptr_t)mem[2] + 10, 2900, 2 } };
	struct hd_rma_args args = {
		.op = HD_RMA_WRITE, .iov = iov, .count = 3, .segs = seg, .seg_count = 3, .flags = DONE
	};
	struct hd_mr *mr[2];
	struct pair p;

	direct_open(&p, 0);
	assert_int_equal(hd_mr_open(p.b.node, &attr, &mr[0]), 0);
	mr[1] = direct_region(&p.b, 2, mem[2], 3000, HD_MR_VIRTUAL);
	for (int i = 0; i < 3; i++)
		iov[i] = (struct iovec){ mine + i * 3000, i == 2 ? 5900 - 2 * 2000 : 2000 };
	for (int i = 0; i < 3; i++)
		test_fill(mine + i * 3000, 2000, (unsigned)i);
	assert_int_equal(hd_rma(p.a.ep, p.a.to, &args), 0);
	assert_int_equal(direct_alone(&p).err, 0);
	assert_memory_equal(mem[0] + 500, mine, 500);
	assert_memory_equal(mem[1], mine + 500, 1500);
	assert_memory_equal(mem[1] + 1500, mine + 3000, 1000);
	assert_memory_equal(mem[2] + 10, mine + 4000, 1000);
	assert_memory_equal(mem[2] + 1010, mine + 6000, 1900);
	assert_int_equal(hd_mr_close(mr[0]), 0);
	assert_int_equal(hd_mr_close(mr[1]), 0);
	direct_close(&p);
}

static void the_last_bytes_of_all_are_written_last(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	const struct vm_call *c = &vm_seam.last;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, BIG, 0);
	for (unsigned i = 0; i < SIZES; i++) {
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, sizes[i], 0, DONE), 0);
		assert_int_equal(direct_alone(&p).err, 0);
		assert_ptr_equal((char *)c->far[c->far_count - 1].iov_base + c->far[c->far_count - 1].iov_len,
				 mem + sizes[i]);
		assert_int_equal(c->near[c->near_count - 1].iov_len, sizes[i] < 8 ? sizes[i] : 8);
	}
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

/*
 * What the last operation found there is used again only while it is so: the same key may be
 * another place's, or have other rights.
 */
static void what_was_found_is_not_believed_for_ever(void **state)
{
	static unsigned char mem[2][1000], mine[1000];
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	for (int i = 0; i < 4; i++) {
		unsigned char *at = mem[i & 1], *other = mem[!(i & 1)];

		mr = direct_region(&p.b, KEY, at, 1000 - (size_t)i, 0);
		memset(mem, 0, sizeof(mem));
		test_fill(mine, 500, (unsigned)i);
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 100, 100 * k, DONE), 0);
			assert_int_equal(direct_alone(&p).err, 0);
			assert_memory_equal(at + 100 * k, mine, 100);
			assert_int_equal(direct_post(&p, HD_RMA_READ, mine + 500, 300, 0, DONE), 0);
			assert_int_equal(direct_alone(&p).err, 0);
			assert_memory_equal(mine + 500, at, 300);
		}
		for (int k = 0; k < 1000; k++)
			assert_int_equal(other[k], 0);
		/* the last byte of it, and one more */
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 1, 999 - (size_t)i, DONE), 0);
		assert_int_equal(direct_alone(&p).err, 0);
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 2, 999 - (size_t)i, DONE), 0);
		assert_true(direct_nothing_done(&p));
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_RANGE);
		assert_int_equal(hd_mr_close(mr), 0);
		pair_rest(&p);
	}
	direct_close(&p);
}

static void injected_memory_is_ours_again(void **state)
{
	unsigned char mem[HD_MAX_INJECT], mine[HD_MAX_INJECT];
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, HD_EP_WAS);
	mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	pair_push(&p, &p.a, "x", 1, 1, 0); /* so that it has to wait */
	test_fill(mine, sizeof(mine), 3);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, sizeof(mine), 0, DONE | HD_SEND_INJECT), 0);
	memset(mine, 0, sizeof(mine));
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	test_check(mem, sizeof(mem), 3);
	/* elsewhere its last bytes go apart */
	assert_int_equal(vm_seam.calls, HD_STORES_IN_ORDER ? 1 : 2);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

/* Data by copy, and then a packet that says so. */
static void immediate_data_comes_behind_the_data(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);
	struct hd_mr *mr;
	struct hd_cqe e;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, BIG, 0);
	for (unsigned i = 0; i < SIZES; i++) {
		vm_seam.calls = 0;
		pair_rest(&p);
		test_fill(mine, sizes[i], i);
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, sizes[i], 0, DONE | HD_SEND_IMM), 0);
		assert_true(direct_nothing_done(&p));
		assert_true(vm_seam.calls > 0);
		test_check(mem, sizes[i], i);
		e = pair_next(&p, &p.b);
		assert_true(e.flags & HD_C_REMOTE && e.flags & HD_C_IMM);
		assert_int_equal(e.imm, 4711);
		e = pair_next(&p, &p.a);
		assert_int_equal(e.err, 0);
	}
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

/* A packet is faster where it is dealt with at once; and who sleeps is not woken. */
static void short_ones_take_the_faster_way(void **state)
{
	unsigned char mem[64] = { 0 }, mine[64] = { 1 };
	struct hd_mr *mr;
	struct pair p;
	bool packet = false;
	uint64_t n;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	for (int i = 0; i < 1000 && !packet; i++) {
		vm_seam.calls = 0;
		direct_turns(&p.b, 16);
		assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
		packet = !vm_seam.calls;
		assert_int_equal(pair_next(&p, &p.a).err, 0);
	}
	assert_true(packet);
	assert_memory_equal(mem, mine, 64);
	while (hd_sleep_arm(p.b.node))
		hd_sleep_disarm(p.b.node);
	if (read(hd_core(p.b.node)->wake_fd, &n, sizeof(n)) < 0)
		assert_int_equal(errno, EAGAIN);
	mine[0] = 2;
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(direct_alone(&p).err, 0);
	assert_int_equal(mem[0], 2);
	assert_int_equal(read(hd_core(p.b.node)->wake_fd, &n, sizeof(n)), -1);
	hd_sleep_disarm(p.b.node);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_target_need_not_do_anything),
		cmocka_unit_test(segments_of_several_regions),
		cmocka_unit_test(the_last_bytes_of_all_are_written_last),
		cmocka_unit_test(what_was_found_is_not_believed_for_ever),
		cmocka_unit_test(injected_memory_is_ours_again),
		cmocka_unit_test(immediate_data_comes_behind_the_data),
		cmocka_unit_test(short_ones_take_the_faster_way),
	};

	return cmocka_run_group_tests_name("direct RMA", tests, NULL, NULL);
}
