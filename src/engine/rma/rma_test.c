/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-sided operations: every size and shape, immediate data, and their order. */
#include "engine/link/link.h"
#include "engine/test/test_pair.h"
#include "engine/test/test_rma.h"

#include "engine/mr/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = { 0, 1, 7, 8, 9, 64, 1000, 4096, 4097, 16384, 65536, 65537, 300000, BIG };

static void every_size(void **state)
{
	unsigned char *mem = malloc(BIG + 100), *mine = malloc(BIG);
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_mr *mr;

		rma_open(&p, t);
		mr = rma_region(&p.b, KEY, mem, BIG + 100, ALL);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			size_t n = sizes[i];

			memset(mem, 0xee, n + 20);
			test_fill(mine, n, (unsigned)i);
			rma_go(&p, HD_RMA_WRITE, mine, n, 10, DONE);
			rma_expect(&p, HD_RMA_WRITE, mine, 0);
			test_check(mem + 10, n, (unsigned)i);
			for (int k = 0; k < 10; k++)
				assert_true(mem[k] == 0xee && mem[n + 10 + k] == 0xee);
			test_fill(mem + 10, n, (unsigned)i + 50);
			rma_go(&p, HD_RMA_READ, mine, n, 10, DONE);
			rma_expect(&p, HD_RMA_READ, mine, 0);
			test_check(mine, n, (unsigned)i + 50);
		}
		assert_null(hd_cq_peek(p.b.cq));
		assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/* Eight segments there, in regions of sixteen pieces each, against sixteen here. */
static void every_shape(void **state)
{
	static unsigned char mem[HD_RMA_SEGS][16][8192], mine[16][HD_RMA_SEGS * 8192];
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t piece = 16; piece <= 8192; piece *= 8) {
		size_t all = HD_RMA_SEGS * 16 * piece;
		struct hd_rma_seg seg[HD_RMA_SEGS];
		struct iovec iov[16], region[16];
		struct hd_mr *mr[HD_RMA_SEGS];
		struct hd_rma_args args = {
			.iov = iov, .count = 16, .segs = seg, .seg_count = HD_RMA_SEGS, .flags = DONE
		};

		rma_open(&p, t);
		for (unsigned i = 0; i < HD_RMA_SEGS; i++) {
			struct hd_mr_attr attr = {
				.iov = region, .count = 16, .access = ALL, .flags = HD_MR_KEY, .key = i + 1
			};

			for (int k = 0; k < 16; k++)
				region[k] = (struct iovec){ mem[i][k], piece };
			assert_int_equal(hd_mr_open(p.b.node, &attr, &mr[i]), 0);
			seg[i] = (struct hd_rma_seg){ 0, 16 * piece, i + 1 };
		}
		for (unsigned k = 0; k < 16; k++) {
			iov[k] = (struct iovec){ mine[k], all / 16 };
			test_fill(mine[k], all / 16, k);
		}
		memset(mem, 0, sizeof(mem));
		assert_int_equal(rma_post(&p, &args), 0);
		rma_expect(&p, HD_RMA_WRITE, NULL, 0);
		for (unsigned k = 0; k < 16; k++)
			memset(mine[k], 0, all / 16);
		args.op = HD_RMA_READ;
		assert_int_equal(rma_post(&p, &args), 0);
		rma_expect(&p, HD_RMA_READ, NULL, 0);
		for (unsigned k = 0; k < 16; k++)
			test_check(mine[k], all / 16, k);
		/* each of ours fills half of a region there */
		for (unsigned k = 0; k < 16; k++)
			for (unsigned j = 0; j < 8; j++)
				assert_memory_equal(mem[k / 2][k % 2 * 8 + j], mine[k] + j * piece, piece);
		for (int i = 0; i < HD_RMA_SEGS; i++)
			hd_mr_close(mr[i]);
		pair_close(&p);
	}
}

/* Immediate data makes a completion at the target and takes no receive. */
static void immediate_data(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG), in[8];
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t n = 0; n <= BIG; n = n ? n * 40 : 64) {
		struct hd_mr *mr;
		struct hd_cqe e;

		rma_open(&p, t);
		side_post(&p.b, in, 8, 1, 0, NULL, in);
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		test_fill(mine, n, 3);
		rma_go(&p, HD_RMA_WRITE, mine, n, 0, DONE | HD_SEND_IMM);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		assert_int_equal(e.flags, HD_C_RMA | HD_C_REMOTE | HD_C_WRITE | HD_C_IMM);
		assert_true(e.imm == 0x1234567890abcdef);
		assert_int_equal(e.len, n);
		assert_int_equal(e.src, hd_dest_id(p.b.to));
		test_check(mem, n, 3);
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		pair_push(&p, &p.a, mine, 8, 1, 0);
		assert_ptr_equal(pair_next(&p, &p.b).ctx, in);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/* With HD_EP_IMM_RECV it uses one up, in turn with messages, and waits where there is none. */
static void immediate_data_takes_a_receive(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG), in[8];
	struct iovec iov = { in, 0 };
	struct hd_recv_args recv = { .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE };
	struct pair p;

	EACH_TRANSPORT(t)
	for (int late = 0; late < 2; late++) {
		struct hd_mr *mr;
		struct hd_cqe e;

		rma_open(&p, t);
		p.b.ep->policy |= HD_EP_IMM_RECV;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		for (size_t n = 0; n <= BIG; n = n == 0 ? 64 : n == 64 ? BIG : BIG + 1) {
			recv.ctx = mem + n;
			if (!late)
				assert_int_equal(hd_recv(p.b.ep, &recv), 0);
			test_fill(mine, n, 3);
			rma_go(&p, HD_RMA_WRITE, mine, n, 0, DONE | HD_SEND_IMM);
			rma_expect(&p, HD_RMA_WRITE, mine, 0);
			if (late) {
				pair_settle(&p, 5);
				assert_null(hd_cq_peek(p.b.cq));
				assert_int_equal(hd_recv(p.b.ep, &recv), 0);
			}
			e = pair_next(&p, &p.b);
			assert_int_equal(e.err, 0);
			assert_ptr_equal(e.ctx, mem + n);
			assert_int_equal(e.flags, HD_C_RECV | HD_C_MSG | HD_C_RMA | HD_C_REMOTE | HD_C_WRITE |
							  HD_C_IMM);
			assert_true(e.imm == 0x1234567890abcdef);
			assert_int_equal(e.len, 0);
			assert_int_equal(e.tag, n);
			test_check(mem, n, 3);
		}
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/*
 * Writes of up to HD_RMA_ORDERED bytes to one place leave the last one there, and reads in between
 * see what was before them.
 */
static void order_of_small_ones(void **state)
{
	static unsigned char mem[HD_RMA_ORDERED], out[100][HD_RMA_ORDERED], in[100][HD_RMA_ORDERED];
	struct pair p;

	for (int low = 0; low < 2; low++)
		EACH_TRANSPORT(t)
		{
			struct hd_mr *mr;
			int done = 0;

			if (low) { /* whatever the limit of messages is */
				setenv("HEDDLE_EAGER_SHM", "0", 1);
				setenv("HEDDLE_EAGER_TCP", "0", 1);
			}
			rma_open(&p, t);
			mr = rma_region(&p.b, KEY, mem, sizeof(mem), ALL);
			for (int i = 0; i < 100; i++) {
				memset(out[i], i + 1, HD_RMA_ORDERED);
				rma_go(&p, HD_RMA_WRITE, out[i], HD_RMA_ORDERED, 0, 0);
				rma_go(&p, HD_RMA_READ, in[i], HD_RMA_ORDERED, 0, DONE);
			}
			while (done++ < 100)
				assert_int_equal(pair_next(&p, &p.a).err, 0);
			for (int i = 0; i < 100; i++)
				for (int k = 0; k < HD_RMA_ORDERED; k += 111)
					assert_int_equal(in[i][k], i + 1);
			hd_mr_close(mr);
			pair_close(&p);
			unsetenv("HEDDLE_EAGER_SHM");
			unsetenv("HEDDLE_EAGER_TCP");
		}
}

/*
 * A message of an endpoint that asks for it comes after what was written before,
 * however long that takes.
 */
static void messages_do_not_overtake_writes(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG), in[16];
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t send = 0; send <= 16; send += 16) {
		struct hd_mr *mr;

		rma_open(&p, t);
		p.a.ep->policy |= HD_EP_SAW;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		for (unsigned round = 0; round < 3; round++) {
			memset(mem, 0, BIG);
			test_fill(mine, BIG, round);
			rma_go(&p, HD_RMA_WRITE, mine, BIG, 0, 0);
			side_post(&p.b, in, 16, 1, 0, NULL, in);
			pair_push(&p, &p.a, mine, send, 1, 0);
			assert_ptr_equal(pair_next(&p, &p.b).ctx, in);
			test_check(mem, BIG, round);
		}
		pair_settle(&p, 5);
		assert_int_equal(hd_ep_inspect(p.a.ep).send_fences, 0);
		assert_int_equal(hd_peer_inspect(p.a.to->peer).send_fences, 0);
		assert_null(hd_cq_peek(p.a.cq));
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

static void inject(void **state)
{
	unsigned char mem[HD_MAX_INJECT] = { 0 }, mine[HD_MAX_INJECT];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int first = 0; first < 2; first++) {
		struct hd_mr *mr;

		rma_open(&p, t);
		mr = rma_region(&p.b, KEY, mem, sizeof(mem), ALL);
		if (!first) { /* a link stands already */
			rma_go(&p, HD_RMA_WRITE, mine, 1, 0, DONE);
			rma_expect(&p, HD_RMA_WRITE, mine, 0);
		}
		test_fill(mine, sizeof(mine), 9);
		rma_go(&p, HD_RMA_WRITE, mine, sizeof(mine), 0, HD_SEND_INJECT | DONE);
		memset(mine, 0, sizeof(mine));
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		test_check(mem, sizeof(mem), 9);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* To ourselves. */
static void loop(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);
	struct pair p;

	rma_open(&p, "shm");
	hd_dest_put(p.a.to);
	side_names(&p.a, &p.a);
	struct hd_mr *mr = rma_region(&p.a, KEY, mem, BIG, ALL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		test_fill(mine, sizes[i], (unsigned)i);
		rma_go(&p, HD_RMA_WRITE, mine, sizes[i], 0, DONE);
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		test_check(mem, sizes[i], (unsigned)i);
		test_fill(mem, sizes[i], (unsigned)i + 7);
		rma_go(&p, HD_RMA_READ, mine, sizes[i], 0, DONE);
		rma_expect(&p, HD_RMA_READ, mine, 0);
		test_check(mine, sizes[i], (unsigned)i + 7);
	}
	hd_mr_close(mr);
	pair_close(&p);
	free(mem);
	free(mine);
}

static void counters(void **state)
{
	unsigned char *mem = calloc(1, BIG), *mine = calloc(1, BIG);
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_cntr *read, *write, *remote_read, *remote_write;
		struct hd_mr *mr;

		rma_open(&p, t);
		assert_int_equal(hd_cntr_open(p.a.node, &read), 0);
		assert_int_equal(hd_cntr_open(p.a.node, &write), 0);
		assert_int_equal(hd_cntr_open(p.b.node, &remote_read), 0);
		assert_int_equal(hd_cntr_open(p.b.node, &remote_write), 0);
		p.a.ep->cntrs.read = read;
		p.a.ep->cntrs.write = write;
		p.b.ep->cntrs.remote_read = remote_read;
		p.b.ep->cntrs.remote_write = remote_write;
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		for (int i = 0; i < 6; i++) {
			size_t n = i % 2 ? BIG : 8;

			rma_go(&p, i < 2 ? HD_RMA_READ : HD_RMA_WRITE, mine, n, 0, DONE);
			rma_expect(&p, i < 2 ? HD_RMA_READ : HD_RMA_WRITE, mine, 0);
		}
		rma_go(&p, HD_RMA_WRITE, mine, 8, BIG, 0);
		rma_expect(&p, HD_RMA_WRITE, mine, HD_S_RANGE);
		pair_settle(&p, 5);
		assert_int_equal(hd_cntr_read(read), 2);
		assert_int_equal(hd_cntr_read(write), 4);
		assert_int_equal(hd_cntr_readerr(write), 1);
		assert_int_equal(hd_cntr_read(remote_read), 2);
		assert_int_equal(hd_cntr_read(remote_write), 4);
		memset(&p.a.ep->cntrs, 0, sizeof(p.a.ep->cntrs));
		memset(&p.b.ep->cntrs, 0, sizeof(p.b.ep->cntrs));
		hd_cntr_close(read);
		hd_cntr_close(write);
		hd_cntr_close(remote_read);
		hd_cntr_close(remote_write);
		hd_mr_close(mr);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/*
 * A node that serves: its program does not poll, and others reach its memory all the same. Nobody
 * stirs before it has any.
 */
static void served_by_a_thread(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);

	EACH_TRANSPORT(t)
	{
		struct pair p = { 0 };
		struct hd_mr *mr;

		setenv("HEDDLE_TRANSPORT", t, 1);
		side_open(&p.a);
		side_open_with(&p.b, &(struct hd_node_attr){ .front = "test", .serve = true });
		side_names(&p.a, &p.b);
		assert_false(hd_core(p.b.node)->worker.runs);
		hd_node_lock(p.b.node);
		p.b.ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
		hd_mr_close(rma_region(&p.b, KEY + 1, mem, BIG, HD_ACCESS_LOCAL_WRITE));
		assert_false(hd_core(p.b.node)->worker.runs);
		mr = rma_region(&p.b, KEY, mem, BIG, ALL);
		assert_true(hd_core(p.b.node)->worker.runs);
		hd_node_unlock(p.b.node);
		for (size_t n = 8; n <= BIG; n = n == 8 ? BIG : BIG + 1) {
			const struct hd_rma_seg seg = { 0, n, KEY };
			const struct iovec iov = { mine, n };
			uint64_t end = hd_now_ns() + PATIENCE;

			test_fill(mine, n, (unsigned)n);
			assert_int_equal(hd_rma(p.a.ep, p.a.to,
						&(struct hd_rma_args){ .iov = &iov,
								       .count = 1,
								       .segs = &seg,
								       .seg_count = 1,
								       .ctx = mine,
								       .flags = DONE }),
					 0);
			while (!hd_cq_poll(p.a.cq))
				assert_true(hd_now_ns() < end);
			assert_int_equal(hd_cq_peek(p.a.cq)->err, 0);
			hd_cq_pop(p.a.cq);
			hd_node_lock(p.b.node);
			test_check(mem, n, (unsigned)n);
			hd_node_unlock(p.b.node);
		}
		hd_node_lock(p.b.node);
		hd_mr_close(mr);
		hd_node_unlock(p.b.node);
		pair_close(&p);
	}
	free(mem);
	free(mine);
}

/*
 * Completions of writes that nobody reads cost their sender credit: what they take up here is
 * bounded, and nothing is lost.
 */
static void unread_completions(void **state)
{
	unsigned char mine[8];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		const struct hd_rma_seg seg = { 0, 0, KEY };
		const struct iovec iov = { mine, 0 };
		struct hd_rma_args args = {
			.iov = &iov, .count = 1, .segs = &seg, .seg_count = 1, .flags = HD_SEND_IMM
		};
		unsigned posted = 0;

		rma_open(&p, t);
		rma_go(&p, HD_RMA_WRITE, mine, 0, 0, DONE);
		rma_expect(&p, HD_RMA_WRITE, mine, 0);
		for (int quiet = 0; quiet < 100 && posted < 100000;) {
			args.imm = posted;
			if (hd_rma(p.a.ep, p.a.to, &args) == 0) {
				posted++;
				quiet = 0;
				continue;
			}
			quiet++;
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
		}
		assert_in_range(posted, 256, 5000);
		for (unsigned i = 0; i < posted; i++)
			assert_int_equal(pair_next(&p, &p.b).imm, i);
		for (unsigned i = 0; i < 1000; i++) { /* the credit is back */
			args.imm = i;
			assert_int_equal(rma_post(&p, &args), 0);
			assert_int_equal(pair_next(&p, &p.b).imm, i);
		}
		for (unsigned i = 0; i < 600; i++)
			assert_int_equal(rma_post(&p, &args), 0);
		/* whose credit it was goes away */
		hd_link_down(p.a.to->peer->link, -ECONNRESET, "test");
		pair_settle(&p, 20);
		while (hd_cq_peek(p.b.cq))
			hd_cq_pop(p.b.cq);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_size),
		BOTH(every_shape),
		BOTH(immediate_data),
		BOTH(immediate_data_takes_a_receive),
		BOTH(order_of_small_ones),
		BOTH(messages_do_not_overtake_writes),
		BOTH(inject),
		BOTH(loop),
		BOTH(counters),
		BOTH(served_by_a_thread),
		cmocka_unit_test(unread_completions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
