/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by the initiator: what it does without the target's turns, what it waits for, what it leaves to the target, and
 * that nobody touches a region that is gone. Node b is the target; unless a test says so it makes no progress.
 */
#include "engine/memory/mr.h"
#include "engine/memory/reach.h"
#include "engine/node/node.h"
#include "engine/test/test_pair.h"
#include "transport/vm_seam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BIG (2 * HD_REACH_SLICE + (1u << 20) + 5)
#define KEY 77
#define ALL (HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE)
#define DONE HD_SEND_COMPLETE

/* ---- scenery ------------------------------------------------------------------------------------------------------------------- */

static struct hd_mr *mr_open(struct side *s, uint64_t key, void *at, size_t len, uint32_t flags)
{
	struct iovec iov = { at, len };
	struct hd_mr_attr attr = {
		.iov = &iov, .count = 1, .access = ALL, .flags = HD_MR_KEY | flags, .key = key
	};
	struct hd_mr *mr;

	assert_int_equal(hd_mr_open(s->node, &attr, &mr), 0);
	return mr;
}

static void permit(struct side *s, uint32_t policy)
{
	s->ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | policy;
	hd_reach_ep(s->ep);
}

/* Two nodes that have talked to each other, so that a link stands; and the target has not been seen to poll for a while. */
static void scene_open(struct pair *p, uint32_t policy)
{
	unsigned char byte;

	vm_seam = (struct vm_seam){ 0 };
	pair_open(p, "shm");
	permit(&p->a, policy);
	permit(&p->b, policy);
	side_post(&p->b, &byte, 1, 1, 0, NULL, NULL);
	pair_push(p, &p->a, "x", 1, 1, 0);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	pair_settle(p, 2);
	usleep(2000);
	vm_seam = (struct vm_seam){ 0 }; /* the link has probed */
}

static void scene_close(struct pair *p)
{
	vm_seam = (struct vm_seam){ 0 };
	pair_close(p);
}

static int post(struct pair *p, enum hd_rma_op op, void *buf, size_t len, uint64_t addr, uint32_t flags)
{
	const struct hd_rma_seg seg = { addr, len, KEY };
	const struct iovec iov = { buf, len };

	return hd_rma(p->a.ep, p->a.to,
		      &(struct hd_rma_args){ .op = op,
					     .iov = &iov,
					     .count = 1,
					     .segs = &seg,
					     .seg_count = 1,
					     .imm = 4711,
					     .ctx = buf,
					     .flags = flags });
}

/* The initiator alone makes progress until it has a completion. */
static struct hd_cqe alone(struct pair *p)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	const struct hd_cqe *e;
	struct hd_cqe copy;

	while (!(e = hd_cq_peek(p->a.cq))) {
		hd_node_poll(p->a.node);
		assert_true(hd_now_ns() < end);
	}
	copy = *e;
	hd_cq_pop(p->a.cq);
	return copy;
}

static void turns(struct side *s, int n)
{
	for (int i = 0; i < n; i++)
		hd_node_poll(s->node);
}

static bool nothing_done(struct pair *p)
{
	turns(&p->a, 50);
	return !hd_cq_peek(p->a.cq);
}

static const size_t sizes[] = { 1, 8, 9, 4096, 4097, 65536, HD_REACH_SLICE, HD_REACH_SLICE + 1, BIG };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---- alone --------------------------------------------------------------------------------------------------------------------- */

static void the_target_need_not_do_anything(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, BIG, 0);
	for (unsigned i = 0; i < SIZES; i++) {
		test_fill(mine, sizes[i], i);
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, sizes[i], BIG - sizes[i], DONE), 0);
		assert_int_equal(alone(&p).err, 0);
		test_check(mem + BIG - sizes[i], sizes[i], i);
		test_fill(mem, sizes[i], i + 20);
		assert_int_equal(post(&p, HD_RMA_READ, mine, sizes[i], 0, DONE), 0);
		assert_int_equal(alone(&p).err, 0);
		test_check(mine, sizes[i], i + 20);
	}
	assert_true(vm_seam.calls > 2 * (int)SIZES);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
	free(mem);
	free(mine);
}

/* Several segments of several regions, counted in both ways, with boundaries at different places here and there. */
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

	scene_open(&p, 0);
	assert_int_equal(hd_mr_open(p.b.node, &attr, &mr[0]), 0);
	mr[1] = mr_open(&p.b, 2, mem[2], 3000, HD_MR_VIRTUAL);
	for (int i = 0; i < 3; i++)
		iov[i] = (struct iovec){ mine + i * 3000, i == 2 ? 5900 - 2 * 2000 : 2000 };
	for (int i = 0; i < 3; i++)
		test_fill(mine + i * 3000, 2000, (unsigned)i);
	assert_int_equal(hd_rma(p.a.ep, p.a.to, &args), 0);
	assert_int_equal(alone(&p).err, 0);
	assert_memory_equal(mem[0] + 500, mine, 500);
	assert_memory_equal(mem[1], mine + 500, 1500);
	assert_memory_equal(mem[1] + 1500, mine + 3000, 1000);
	assert_memory_equal(mem[2] + 10, mine + 4000, 1000);
	assert_memory_equal(mem[2] + 1010, mine + 6000, 1900);
	assert_int_equal(hd_mr_close(mr[0]), 0);
	assert_int_equal(hd_mr_close(mr[1]), 0);
	scene_close(&p);
}

static void the_last_bytes_of_all_are_written_last(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	const struct vm_call *c = &vm_seam.last;
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, BIG, 0);
	for (unsigned i = 0; i < SIZES; i++) {
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, sizes[i], 0, DONE), 0);
		assert_int_equal(alone(&p).err, 0);
		assert_ptr_equal((char *)c->far[c->far_count - 1].iov_base + c->far[c->far_count - 1].iov_len,
				 mem + sizes[i]);
		assert_int_equal(c->near[c->near_count - 1].iov_len, sizes[i] < 8 ? sizes[i] : 8);
	}
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
	free(mem);
	free(mine);
}

/* What the last operation found there is used again only while it is so: the same key may be another place's, or have other rights. */
static void what_was_found_is_not_believed_for_ever(void **state)
{
	static unsigned char mem[2][1000], mine[1000];
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	for (int i = 0; i < 4; i++) {
		unsigned char *at = mem[i & 1], *other = mem[!(i & 1)];

		mr = mr_open(&p.b, KEY, at, 1000 - (size_t)i, 0);
		memset(mem, 0, sizeof(mem));
		test_fill(mine, 500, (unsigned)i);
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(post(&p, HD_RMA_WRITE, mine, 100, 100 * k, DONE), 0);
			assert_int_equal(alone(&p).err, 0);
			assert_memory_equal(at + 100 * k, mine, 100);
			assert_int_equal(post(&p, HD_RMA_READ, mine + 500, 300, 0, DONE), 0);
			assert_int_equal(alone(&p).err, 0);
			assert_memory_equal(mine + 500, at, 300);
		}
		for (int k = 0; k < 1000; k++)
			assert_int_equal(other[k], 0);
		/* the last byte of it, and one more */
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, 1, 999 - (size_t)i, DONE), 0);
		assert_int_equal(alone(&p).err, 0);
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, 2, 999 - (size_t)i, DONE), 0);
		assert_true(nothing_done(&p));
		assert_int_equal(pair_next(&p, &p.a).err, ERANGE);
		assert_int_equal(hd_mr_close(mr), 0);
		usleep(2000);
	}
	scene_close(&p);
}

static void injected_memory_is_ours_again(void **state)
{
	unsigned char mem[HD_MAX_INJECT], mine[HD_MAX_INJECT];
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, HD_EP_WAS);
	mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	pair_push(&p, &p.a, "x", 1, 1, 0); /* so that it has to wait */
	test_fill(mine, sizeof(mine), 3);
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, sizeof(mine), 0, DONE | HD_SEND_INJECT), 0);
	memset(mine, 0, sizeof(mine));
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	test_check(mem, sizeof(mem), 3);
	assert_int_equal(vm_seam.calls, 1);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
}

/* Data by copy, and then a packet that says so. */
static void immediate_data_comes_behind_the_data(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);
	struct hd_mr *mr;
	struct hd_cqe e;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, BIG, 0);
	for (unsigned i = 0; i < SIZES; i++) {
		vm_seam.calls = 0;
		usleep(200);
		test_fill(mine, sizes[i], i);
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, sizes[i], 0, DONE | HD_SEND_IMM), 0);
		assert_true(nothing_done(&p));
		assert_true(vm_seam.calls > 0);
		test_check(mem, sizes[i], i);
		e = pair_next(&p, &p.b);
		assert_true(e.flags & HD_C_REMOTE && e.flags & HD_C_IMM);
		assert_int_equal(e.imm, 4711);
		e = pair_next(&p, &p.a);
		assert_int_equal(e.err, 0);
	}
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
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

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	for (int i = 0; i < 1000 && !packet; i++) {
		vm_seam.calls = 0;
		turns(&p.b, 16);
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
		packet = !vm_seam.calls;
		assert_int_equal(pair_next(&p, &p.a).err, 0);
	}
	assert_true(packet);
	assert_memory_equal(mem, mine, 64);
	while (hd_sleep_arm(p.b.node))
		hd_sleep_disarm(p.b.node);
	(void)read(p.b.node->wake_fd, &n, sizeof(n));
	mine[0] = 2;
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(alone(&p).err, 0);
	assert_int_equal(mem[0], 2);
	assert_int_equal(read(p.b.node->wake_fd, &n, sizeof(n)), -1);
	hd_sleep_disarm(p.b.node);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
}

/* ---- order --------------------------------------------------------------------------------------------------------------------- */

static void waits_for_messages_where_that_is_promised(void **state)
{
	unsigned char mem[5000] = { 0 }, mine[5000], in;
	struct hd_mr *mr;
	struct pair p;

	for (int promised = 0; promised < 2; promised++) {
		memset(mem, 0, sizeof(mem));
		memset(mine, 1, sizeof(mine));
		scene_open(&p, promised ? HD_EP_WAS : 0);
		mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
		side_post(&p.b, &in, 1, 2, 0, NULL, NULL);
		pair_push(&p, &p.a, "x", 1, 2, 0);
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, 5000, 0, DONE), 0);
		assert_int_equal(nothing_done(&p), promised);
		assert_int_equal(mem[0], !promised);
		turns(&p.b, 50);
		assert_non_null(hd_cq_peek(p.b.cq));
		assert_int_equal(alone(&p).err, 0);
		assert_int_equal(mem[0], 1);
		/* what is known to have arrived is not asked for again */
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, 5000, 0, DONE), 0);
		assert_non_null(hd_cq_peek(p.a.cq));
		assert_int_equal(hd_mr_close(mr), 0);
		scene_close(&p);
	}
}

/* A message that is sent while it waits is no concern of its. */
static void waits_for_what_was_before_alone(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = calloc(1, BIG), flag = 9;
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, HD_EP_WAS);
	mr = mr_open(&p.b, KEY, mem, BIG, 0);
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 8, 0, DONE), 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0); /* so that the first message is known to have arrived */
	usleep(200);
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, BIG, 0, 0), 0);
	assert_int_equal(post(&p, HD_RMA_WRITE, &flag, 1, BIG - 1, DONE), 0);
	pair_push(&p, &p.a, "x", 1, 2, 0);
	assert_int_equal(alone(&p).err, 0);
	assert_int_equal(mem[BIG - 1], 9);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
	free(mem);
	free(mine);
}

/* What went by packet was before as well, whether or not messages are. */
static void waits_for_requests_by_packet(void **state)
{
	unsigned char mem[8192] = { 0 }, mine[8192];
	struct hd_mr *mr, *hidden;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	hidden = mr_open(&p.b, KEY + 1, mem, sizeof(mem), 0);
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
	assert_int_equal(post(&p, HD_RMA_WRITE, mine + 4096, 4096, 0, DONE), 0);
	assert_true(nothing_done(&p));
	assert_int_equal(mem[0], 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pair_next(&p, &p.a).err, 0);
	assert_int_equal(mem[0], 2);
	assert_int_equal(mem[4095], 2);
	assert_int_equal(hd_mr_close(hidden), 0);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
}

/* One endpoint's operation that waits does not keep another's. */
static void endpoints_do_not_wait_for_each_other(void **state)
{
	unsigned char mem[8192] = { 0 }, mine[8192];
	struct hd_ep *other;
	struct hd_mr *mr;
	struct pair p;

	memset(mine, 1, sizeof(mine));
	scene_open(&p, HD_EP_WAS);
	mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	assert_int_equal(
		hd_ep_open(p.a.node,
			   &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = p.a.cq, .rx_cq = p.a.cq },
			   &other),
		0);
	pair_push(&p, &p.a, "x", 1, 2, 0);
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 8, 0, DONE), 0);
	assert_true(nothing_done(&p));
	assert_int_equal(hd_rma(other, p.a.to,
				&(struct hd_rma_args){ .op = HD_RMA_WRITE,
						       .iov = &(struct iovec){ mine, 8 },
						       .count = 1,
						       .segs = &(struct hd_rma_seg){ 100, 8, KEY },
						       .seg_count = 1,
						       .ctx = other,
						       .flags = DONE }),
			 0);
	assert_ptr_equal(alone(&p).ctx, other);
	assert_int_equal(mem[0], 0);
	assert_int_equal(mem[100], 1);
	assert_ptr_equal(pair_next(&p, &p.a).ctx, mine);
	hd_ep_close(other);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
}

static void messages_wait_for_long_writes(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = malloc(BIG), in[8];
	struct hd_mr *mr;
	struct pair p;

	test_fill(mine, BIG, 8);
	for (int promised = 0; promised < 2; promised++) {
		scene_open(&p, promised ? HD_EP_SAW : 0);
		mr = mr_open(&p.b, KEY, mem, BIG, 0);
		assert_int_equal(post(&p, HD_RMA_WRITE, mine, BIG, 0, 0), 0);
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
		assert_int_equal(p.a.to->peer->gates, 0);
		assert_int_equal(hd_mr_close(mr), 0);
		scene_close(&p);
	}
	free(mem);
	free(mine);
}

/* ---- what the target is asked for ------------------------------------------------------------------------------------------------ */

static void expect_refusal(struct pair *p, uint64_t addr, size_t len, int err)
{
	static unsigned char mine[300];

	vm_seam.calls = 0;
	assert_int_equal(post(p, HD_RMA_WRITE, mine, len, addr, DONE), 0);
	assert_true(nothing_done(p));
	assert_int_equal(pair_next(p, &p->a).err, err);
	assert_int_equal(vm_seam.calls, 0);
}

static void what_is_not_permitted_is_the_targets_to_refuse(void **state)
{
	unsigned char mem[200] = { 0 };
	struct hd_mr_attr read_only = { .iov = &(struct iovec){ mem, 200 },
					.count = 1,
					.access = HD_ACCESS_REMOTE_READ,
					.flags = HD_MR_KEY,
					.key = KEY };
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	expect_refusal(&p, 0, 8, EACCES); /* no such key */
	mr = mr_open(&p.b, KEY, mem, 200, 0);
	expect_refusal(&p, 193, 8, ERANGE);
	expect_refusal(&p, 200, 8, ERANGE);
	expect_refusal(&p, UINT64_MAX - 3, 8, ERANGE); /* its end would be inside again */
	hd_mr_disable(mr);
	expect_refusal(&p, 0, 8, EACCES);
	assert_int_equal(hd_mr_close(mr), 0);
	assert_int_equal(hd_mr_open(p.b.node, &read_only, &mr), 0);
	expect_refusal(&p, 0, 8, EACCES);
	assert_int_equal(hd_mr_close(mr), 0);
	mr = mr_open(&p.b, KEY, mem, 200, 0);
	p.b.ep->policy &= ~(uint32_t)HD_EP_REMOTE_WRITE;
	hd_reach_ep(p.b.ep);
	expect_refusal(&p, 0, 8, EACCES);
	assert_int_equal(hd_mr_close(mr), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(mem[i], 0);
	scene_close(&p);
}

static void regions_of_one_endpoint(void **state)
{
	unsigned char mem[200] = { 0 }, mine[8] = { 1 };
	struct hd_ep *other;
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	assert_int_equal(hd_ep_open(p.b.node, &(struct hd_ep_attr){ .type = HD_EP_RDM }, &other), 0);
	mr = mr_open(&p.b, KEY, mem, 200, 0);
	hd_mr_bind_ep(mr, other);
	expect_refusal(&p, 0, 8, EACCES);
	hd_mr_bind_ep(mr, p.b.ep);
	usleep(200); /* it was seen to poll */
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 8, 0, DONE), 0);
	assert_int_equal(alone(&p).err, 0);
	assert_int_equal(mem[0], 1);
	hd_ep_close(other);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
}

/* Whoever counts what others do hears of it. */
static void what_is_counted_goes_by_packet(void **state)
{
	unsigned char mem[200] = { 0 }, mine[200] = { 1 };
	struct hd_cntr *cntr;
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	assert_int_equal(hd_cntr_open(p.b.node, &cntr), 0);
	mr = mr_open(&p.b, KEY, mem, 200, 0);
	hd_mr_bind_cntrs(mr, NULL, cntr);
	assert_int_equal(post(&p, HD_RMA_READ, mine, 200, 0, DONE), 0);
	assert_int_equal(alone(&p).err, 0); /* reads are not counted */
	usleep(200);
	vm_seam.calls = 0;
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 200, 0, DONE), 0);
	assert_true(nothing_done(&p));
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	assert_int_equal(hd_cntr_read(cntr), 1);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(hd_mr_close(mr), 0);
	assert_int_equal(hd_cntr_close(cntr), 0);
	scene_close(&p);
}

/* More regions with one home than a window has rows: the rest are reached all the same. */
static void a_full_table_costs_no_region(void **state)
{
	enum {
		MANY = HD_PAGE_WINDOW + 4
	};
	static unsigned char mem[MANY][16], mine[16];
	struct hd_mr *mr[MANY];
	uint64_t key = 0;
	int shown = 0;
	struct pair p;

	scene_open(&p, 0);
	for (int i = 0; i < MANY; i++) {
		do
			key++;
		while (hd_page_mr_home(key) != 123);
		mr[i] = mr_open(&p.b, key, mem[i], 16, 0);
		shown += mr[i]->row >= 0;
	}
	assert_int_equal(shown, HD_PAGE_WINDOW);
	for (int i = 0; i < MANY; i++) {
		memset(mine, i + 1, 16);
		assert_int_equal(
			hd_rma(p.a.ep, p.a.to,
			       &(struct hd_rma_args){ .op = HD_RMA_WRITE,
						      .iov = &(struct iovec){ mine, 16 },
						      .count = 1,
						      .segs = &(struct hd_rma_seg){ 0, 16, mr[i]->key },
						      .seg_count = 1,
						      .flags = DONE }),
			0);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		assert_int_equal(mem[i][15], i + 1);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(hd_mr_close(mr[i]), 0);
	scene_close(&p);
}

/* ---- in the middle of it ----------------------------------------------------------------------------------------------------------- */

/* Mirrors how often each byte is written: the target adds one to what it finds, so nothing may be written twice. */
static void the_rest_goes_by_packet_when_a_right_is_lost(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);

	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++)
		for (int good = 0; good < 3; good++) {
			unsigned char *from = op == HD_RMA_WRITE ? mine : mem,
				      *to = op == HD_RMA_WRITE ? mem : mine;
			size_t before = (size_t)good * HD_REACH_SLICE;
			struct hd_mr *mr;
			struct pair p;

			scene_open(&p, HD_EP_SAW);
			mr = mr_open(&p.b, KEY, mem, BIG, 0);
			test_fill(from, BIG, 5);
			memset(to, 0, BIG);
			vm_seam.good = good;
			vm_seam.error = EPERM;
			assert_int_equal(post(&p, op, mine, BIG, 0, DONE), 0);
			assert_true(nothing_done(&p));
			vm_seam.error = 0;
			/* what was copied is the program's: it must not be copied again */
			test_check(to, before, 5);
			memset(to, 0x5a, before);
			assert_int_equal(pair_next(&p, &p.a).err, 0);
			for (size_t i = 0; i < before; i++)
				assert_int_equal(to[i], 0x5a);
			for (size_t i = before; i < BIG; i++)
				if (to[i] != from[i])
					fail_msg("byte %zu of %u differs", i, BIG);
			assert_int_equal(p.a.ep->tx->ops, 0);
			assert_int_equal(p.a.to->peer->gates, 0);
			assert_int_equal(hd_mr_close(mr), 0);
			scene_close(&p);
		}
	free(mem);
	free(mine);
}

static void missing_memory_is_an_error_of_its_own(void **state)
{
	unsigned char *hole = mmap(NULL, BIG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      *mine = malloc(BIG);
	struct hd_mr *good, *bad;
	struct pair p;

	scene_open(&p, 0);
	bad = mr_open(&p.b, KEY, hole, BIG, 0);
	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
		assert_int_equal(post(&p, op, mine, 5000, 0, DONE), 0);
		assert_int_equal(alone(&p).err, EREMOTEIO);
	}
	assert_int_equal(hd_mr_close(bad), 0);
	good = mr_open(&p.b, KEY, mine, BIG, 0);
	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
		assert_int_equal(post(&p, op, hole, 5000, 0, DONE), 0);
		assert_int_equal(alone(&p).err, EFAULT);
		assert_int_equal(mprotect(hole, 1 << 20, PROT_READ | PROT_WRITE), 0);
		assert_int_equal(post(&p, op, hole, BIG, 0, DONE), 0); /* half of it is there */
		assert_int_equal(alone(&p).err, EFAULT);
		assert_int_equal(mprotect(hole, BIG, PROT_NONE), 0);
	}
	assert_int_equal(p.a.ep->tx->ops, 0);
	assert_int_equal(hd_mr_close(good), 0);
	scene_close(&p);
	munmap(hole, BIG);
	free(mine);
}

/* Three long writes from `mine` to `mem`, none of which has ended. */
static struct hd_mr *three_under_way(struct pair *p, void *mem, void *mine)
{
	struct hd_mr *mr;

	scene_open(p, HD_EP_SAW);
	mr = mr_open(&p->b, KEY, mem, BIG, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(post(p, HD_RMA_WRITE, mine, BIG, 0, DONE), 0);
	return mr;
}

static void the_endpoint_may_close_with_operations_under_way(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	mr = three_under_way(&p, mem, mine);
	assert_false(TAILQ_EMPTY(&p.a.to->peer->reaching));
	hd_ep_close(p.a.ep);
	assert_true(TAILQ_EMPTY(&p.a.to->peer->reaching));
	memset(mem, 0x33, BIG);
	turns(&p.a, 100);
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal(mem[i], 0x33);
	assert_int_equal(
		hd_ep_open(p.a.node,
			   &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = p.a.cq, .rx_cq = p.a.cq },
			   &p.a.ep),
		0);
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
	free(mem);
	free(mine);
}

static void a_broken_link_ends_them_in_error(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	mr = three_under_way(&p, mem, mine);
	vm_seam.error = ESRCH; /* the process has gone */
	for (int i = 0; i < 3; i++)
		assert_int_equal(alone(&p).err, ECONNRESET);
	assert_int_equal(p.a.ep->tx->ops, 0);
	vm_seam.error = 0;
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
	free(mem);
	free(mine);
}

/* ---- regions that go ----------------------------------------------------------------------------------------------------------------- */

struct closer {
	struct hd_mr *mr;
	struct hd_node *node;
	pthread_t thread;
	_Atomic bool begun, done;
	int rc;
};

static void *close_region(void *arg)
{
	struct closer *c = arg;

	hd_node_lock(c->node);
	atomic_store(&c->begun, true);
	c->rc = hd_mr_close(c->mr);
	atomic_store(&c->done, true);
	hd_node_unlock(c->node);
	return NULL;
}

/* We are about to copy: the owner begins to close the region, and has to wait. */
static void close_within(void *arg)
{
	struct closer *c = arg;

	assert_int_equal(pthread_create(&c->thread, NULL, close_region, c), 0);
	while (!atomic_load(&c->begun))
		usleep(100);
	usleep(20000);
	assert_false(atomic_load(&c->done));
}

static void a_region_is_not_gone_while_it_is_copied(void **state)
{
	static unsigned char mem[70000], mine[70000];
	struct closer c = { 0 };
	struct pair p;

	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
		c = (struct closer){ 0 };
		scene_open(&p, 0);
		p.b.node->locked = true;
		hd_node_lock(p.b.node);
		c.node = p.b.node;
		c.mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
		hd_node_unlock(p.b.node);
		vm_seam.before = close_within;
		vm_seam.arg = &c;
		assert_int_equal(post(&p, op, mine, sizeof(mine), 0, DONE), 0);
		assert_int_equal(pthread_join(c.thread, NULL), 0);
		assert_int_equal(c.rc, 0);
		assert_int_equal(alone(&p).err, 0);
		p.b.node->locked = false;
		scene_close(&p);
	}
}

/* Slices of one operation: those after the region has gone are refused by the target, and write nothing. */
static void nothing_is_written_once_it_is_closed(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, BIG, 0);
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, BIG, 0, DONE), 0);
	turns(&p.a, 1);
	assert_int_equal(hd_mr_close(mr), 0);
	memset(mem, 0x44, BIG);
	assert_int_equal(pair_next(&p, &p.a).err, EACCES);
	pair_settle(&p, 5);
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal(mem[i], 0x44);
	scene_close(&p);
	free(mem);
	free(mine);
}

/* A peer that is stopped in the middle of a copy would go on some day: the region stays, and nobody begins anew. */
static void close_by_the_one_that_copies(void *arg)
{
	struct closer *c = arg;
	uint64_t began = hd_now_ns();

	c->rc = hd_mr_close(c->mr);
	assert_in_range(hd_now_ns() - began, 500 * HD_NS_PER_MS, PATIENCE);
}

static void a_stopped_peer_is_told_of(void **state)
{
	static unsigned char mem[64], mine[64];
	struct closer c = { 0 };
	struct pair p;

	scene_open(&p, 0);
	c.mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	vm_seam.before = close_by_the_one_that_copies;
	vm_seam.arg = &c;
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(c.rc, -EBUSY);
	assert_int_equal(alone(&p).err, 0);
	expect_refusal(&p, 0, 8, EACCES);
	assert_int_equal(hd_mr_close(c.mr), 0);
	scene_close(&p);
}

/* ---- pages that lie -------------------------------------------------------------------------------------------------------------------- */

/* Whatever the target writes into its tables, only its own memory can be hurt, and the operation ends. */
static void lies_harm_nobody_but_the_liar(void **state)
{
	static unsigned char mem[4096], mine[3][4096];
	static const struct hd_page_seg segs[] = {
		{ 0, 4096 },
		{ UINT64_MAX - 100, 4096 },
		{ 0, UINT64_MAX },
		{ UINT64_MAX, UINT64_MAX },
		{ 0xffff800000000000, 4096 },
		{ 4096, 0 },
	};
	static const uint32_t counts[] = { 1, 5, 6, UINT32_MAX, 0 };
	struct hd_page_mr *row;
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	row = &hd_page_reach(p.b.node->page)->mrs[mr->row];
	memset(mine, 7, sizeof(mine));
	for (unsigned i = 0; i < sizeof(segs) / sizeof(segs[0]); i++)
		for (unsigned k = 0; k < 5; k++)
			for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
				for (int s = 0; s < HD_PAGE_SEGS; s++)
					row->seg[s] = segs[i];
				row->count = counts[k];
				assert_int_equal(post(&p, op, mine[1], 4096, 0, DONE), 0);
				pair_next(&p, &p.a); /* it ends, well or badly */
				for (int b = 0; b < 4096; b++)
					assert_true(mine[0][b] == 7 && mine[2][b] == 7);
			}
	assert_false(p.a.to->peer->link->down);
	row->count = 1;
	row->seg[0] = (struct hd_page_seg){ (uintptr_t)mem, 4096 };
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
}

/* An endpoint that is said to be there, and is not. */
static void an_endpoint_that_is_not_there(void **state)
{
	static unsigned char mem[64], mine[64];
	struct hd_page_ep *row;
	struct hd_mr *mr;
	struct pair p;

	scene_open(&p, 0);
	mr = mr_open(&p.b, KEY, mem, sizeof(mem), 0);
	row = &hd_page_reach(p.b.node->page)->eps[p.b.ep->index];
	atomic_store(&row->state, atomic_load(&row->state) + (1u << 16)); /* of another generation */
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_true(nothing_done(&p));
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	hd_reach_ep(p.b.ep);
	/* one that is open to another alone */
	row->node.word[0] = 1;
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	p.a.to->remote = HD_PAGE_EPS; /* and one that the table has no row for */
	assert_int_equal(post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, ECONNREFUSED);
	p.a.to->remote = 0;
	assert_int_equal(hd_mr_close(mr), 0);
	scene_close(&p);
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
		cmocka_unit_test(waits_for_messages_where_that_is_promised),
		cmocka_unit_test(waits_for_what_was_before_alone),
		cmocka_unit_test(waits_for_requests_by_packet),
		cmocka_unit_test(endpoints_do_not_wait_for_each_other),
		cmocka_unit_test(messages_wait_for_long_writes),
		cmocka_unit_test(what_is_not_permitted_is_the_targets_to_refuse),
		cmocka_unit_test(regions_of_one_endpoint),
		cmocka_unit_test(what_is_counted_goes_by_packet),
		cmocka_unit_test(a_full_table_costs_no_region),
		cmocka_unit_test(the_rest_goes_by_packet_when_a_right_is_lost),
		cmocka_unit_test(missing_memory_is_an_error_of_its_own),
		cmocka_unit_test(the_endpoint_may_close_with_operations_under_way),
		cmocka_unit_test(a_broken_link_ends_them_in_error),
		cmocka_unit_test(a_region_is_not_gone_while_it_is_copied),
		cmocka_unit_test(nothing_is_written_once_it_is_closed),
		cmocka_unit_test(a_stopped_peer_is_told_of),
		cmocka_unit_test(lies_harm_nobody_but_the_liar),
		cmocka_unit_test(an_endpoint_that_is_not_there),
	};

	return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
