/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs that fail: by what they ask for, in the middle, when they are told to; that they
 * are reset, pause and drain.
 */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <string.h>

#define LONG (300u << 10)

static unsigned char out[1 << 20], in[1 << 20];
static unsigned char memory[1 << 20] __attribute__((aligned(64)));

/* ---- offences -------------------------------------------------------------------------------- */

static uint32_t told_code;
static int told_err, told_count;

static int over_count;
static void told(void *owner, uint32_t code, int err)
{
	if (code == HD_EV_EP_OVER) { /* follows, when everything has completed */
		over_count++;
		return;
	}
	if (code == HD_EV_EP_ESTABLISHED)
		return;
	*(int *)owner = 1;
	told_code = code;
	told_err = err;
	told_count++;
}

static void open_told(struct pair *p, const char *t, uint32_t policy, int *owner, uint32_t pd)
{
	const struct hd_ep_attr attr = { .tell = told, .owner = owner, .pd = pd };

	pair_open(p, t);
	told_count = *owner = 0;
	qp_open(&p->a, RC, NULL);
	qp_open(&p->b, RC | policy, &attr);
	qps_ready(p);
}

/*
 * What is asked of b's memory is refused with err, and both have failed: what is behind
 * it is flushed, in order.
 */
static void check_offended(struct pair *p, const int *owner, int err)
{
	for (int i = 0; i < 3; i++)
		qp_send(&p->a, out, 8, &out[i]);
	qp_expect(p, &p->a, out, err);
	for (int i = 0; i < 3; i++)
		qp_expect(p, &p->a, &out[i], HD_S_CANCELLED);
	for (int i = 0; i < 3; i++)
		qp_expect(p, &p->b, &in[i], HD_S_CANCELLED);
	assert_int_equal(*owner, 1);
	assert_int_equal(told_count, 1);
	assert_int_equal(told_code, HD_EV_EP_FAILED);
	assert_int_equal(told_err, err);
	assert_int_equal(over_count, 1);
	over_count = 0;
	assert_int_equal(hd_qp_inspect(p->a.ep->qp).status, err);
	assert_int_equal(hd_qp_inspect(p->b.ep->qp).status, err);
}

static void offences(void **state)
{
	const struct {
		uint32_t policy, pd;
		uint64_t key;
		size_t at, len;
		enum hd_rma_op op;
		int err;
	} cases[] = {
		{ ALL_RIGHTS, 0, 1, 0, 8, HD_RMA_WRITE, HD_S_ACCESS },
		{ ALL_RIGHTS, 0, 1, 0, 8, HD_RMA_READ, HD_S_ACCESS },
		{ HD_EP_REMOTE_READ, 0, 0, 0, 8, HD_RMA_WRITE, HD_S_ACCESS },
		{ HD_EP_REMOTE_WRITE, 0, 0, 0, LONG, HD_RMA_READ, HD_S_ACCESS },
		{ ALL_RIGHTS, 0, 0, 1000, LONG, HD_RMA_WRITE, HD_S_RANGE },
		{ ALL_RIGHTS, 0, 0, LONG - 7, 8, HD_RMA_READ, HD_S_RANGE },
		{ ALL_RIGHTS, 4, 0, 0, 8, HD_RMA_WRITE, HD_S_ACCESS },
		{ ALL_RIGHTS, 4, 0, 0, LONG, HD_RMA_READ, HD_S_ACCESS },
	};
	struct pair p;
	int owner;

	EACH_TRANSPORT(t)
	{
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct hd_mr *mr;

			open_told(&p, t, cases[i].policy, &owner, cases[i].pd);
			mr = qp_region(&p.b, memory, LONG, 0);
			for (int k = 0; k < 3; k++)
				qp_recv(&p.b, in, sizeof(in), &in[k]);
			qp_rma(&p.a, cases[i].op, out, cases[i].len, hd_mr_key(mr) ^ cases[i].key,
			       memory + cases[i].at, out, 0);
			check_offended(&p, &owner, cases[i].err);
			hd_mr_close(mr);
			pair_close(&p);
		}
	}
}

static void too_long(void **state)
{
	static const size_t lens[] = { 9, 20000, LONG };
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (size_t i = 0; i < 3; i++) {
			qps_open(&p, t, RC);
			qp_recv(&p.b, in, 8, in);
			qp_recv(&p.b, in, 8, &in[1]);
			qp_send_as(&p.a, out, lens[i], out, HD_SEND_COMPLETE | HD_SEND_IMM);
			qp_send(&p.a, out, 1, &out[1]);
			e = qp_expect(&p, &p.b, in, HD_S_LENGTH);
			/* and nothing of its epoch */
			assert_true(e.flags & HD_C_IMM && e.imm == 0x1234);
			qp_expect(&p, &p.b, &in[1], HD_S_CANCELLED);
			qp_expect(&p, &p.a, out, HD_S_LENGTH);
			qp_expect(&p, &p.a, &out[1], HD_S_CANCELLED);
			pair_close(&p);
		}
	}
}

/* ---- states ---------------------------------------------------------------------------------- */

static void fails(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		for (int i = 0; i < 4; i++)
			qp_recv(&p.a, in, 8, &in[i]);
		qp_send(&p.a, out, 8, &out[0]);
		qp_send_as(&p.a, out, 8, &out[1], 0);
		qp_rma(&p.a, HD_RMA_WRITE, out, LONG, hd_mr_key(mr), memory, &out[2], 0);
		qp_rma(&p.a, HD_RMA_READ, out, LONG, hd_mr_key(mr), memory, &out[3], 0);
		qp_send(&p.a, out, LONG, &out[4]);
		pair_settle(&p, t[0] == 's' ? 0 : 10);
		hd_ep_fail(p.a.ep);
		hd_ep_fail(p.a.ep);
		for (int i = 0; i < 5; i++)
			qp_expect(&p, &p.a, &out[i], HD_S_CANCELLED);
		for (int i = 0; i < 4; i++)
			qp_expect(&p, &p.a, &in[i], HD_S_CANCELLED);
		qp_send_as(&p.a, out, 8, out, 0);
		qp_rma(&p.a, HD_RMA_READ, out, 8, hd_mr_key(mr), memory, &out[1], 0);
		qp_recv(&p.a, in, 8, in);
		qp_expect(&p, &p.a, out, HD_S_CANCELLED);
		qp_expect(&p, &p.a, &out[1], HD_S_CANCELLED);
		qp_expect(&p, &p.a, in, HD_S_CANCELLED);
		assert_int_equal(hd_ep_tx_left(p.a.ep), 64);
		qp_send(&p.b, out, 8, out);
		qp_expect(&p, &p.b, out, HD_S_REFUSED);
		qp_silence(&p, &p.a, 10);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* Behind what is flushed nothing is told to be wrong, though it was refused before that. */
static void flushed_in_front(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		qp_send(&p.a, out, LONG, &out[0]);
		qp_send(&p.a, out, 8, &out[1]);
		pair_settle(&p, 10);
		assert_true(hd_sq_accepted(p.a.ep->qp, p.a.ep->qp->life.sq.next - 1, HD_S_REFUSED));
		hd_ep_fail(p.a.ep);
		qp_expect(&p, &p.a, &out[0], HD_S_CANCELLED);
		qp_expect(&p, &p.a, &out[1], HD_S_CANCELLED);
		pair_close(&p);
	}
}

/* Long transfers in both directions are cut off, at whichever end. */
static void fails_in_the_middle(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int turns = 1; turns < 12; turns++) {
			qps_open(&p, t, RC);
			mr = qp_region(&p.b, memory, sizeof(memory), 0);
			qp_recv(&p.b, in, sizeof(in), in);
			qp_send(&p.a, out, sizeof(out), &out[0]);
			qp_rma(&p.a, HD_RMA_WRITE, out, sizeof(out), hd_mr_key(mr), memory, &out[1], 0);
			qp_rma(&p.a, HD_RMA_READ, out, sizeof(out), hd_mr_key(mr), memory, &out[2], 0);
			while (hd_ep_posted(p.b.ep)) /* until the first has met its receive */
				pair_settle(&p, 1);
			for (int i = 0; i < turns; i++) {
				hd_node_poll(p.a.node);
				hd_node_poll(p.b.node);
			}
			hd_ep_fail(turns & 1 ? p.b.ep : p.a.ep);
			pair_settle(&p, 5);
			assert_int_equal(pair_next(&p, &p.b).ctx == in, 1);
			for (int i = 0; i < 3; i++)
				assert_ptr_equal(pair_next(&p, &p.a).ctx, &out[i]);
			hd_mr_close(mr);
			pair_close(&p);
		}
	}
}

static void resets(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uint32_t number;

		qps_open(&p, t, RC);
		number = hd_ep_number(p.b.ep);
		for (int i = 0; i < 10; i++) {
			qp_recv(&p.b, in, sizeof(in), in);
			qp_send(&p.a, out, i & 1 ? LONG : 8, out);
			qp_expect(&p, &p.b, in, 0);
			qp_expect(&p, &p.a, out, 0);
			qp_recv(&p.a, in, 8, in); /* forgotten */
			if (i % 3 == 0)
				hd_ep_fail(p.a.ep);
			if (i % 3 == 1)
				qp_send(&p.a, out, 8, out);
			hd_ep_reset(i & 1 ? p.a.ep : p.b.ep);
			hd_ep_reset(i & 1 ? p.b.ep : p.a.ep);
			while (hd_cq_peek(p.a.cq))
				hd_cq_pop(p.a.cq);
			qps_ready(&p);
			assert_int_equal(hd_ep_number(p.b.ep), number);
			assert_int_equal(hd_qp_inspect(p.a.ep->qp).status, 0);
		}
		pair_close(&p);
	}
}

/* A fence waits for reads and atomics; a pause lets what is under way end. */
static void fences(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		for (int i = 0; i < 10; i++) {
			test_fill(memory, sizeof(memory), (unsigned)i);
			memset(in, 0, sizeof(in));
			qp_rma(&p.a, HD_RMA_READ, in, LONG, hd_mr_key(mr), memory, &in[0], 0);
			qp_rma(&p.a, HD_RMA_WRITE, in, LONG, hd_mr_key(mr), memory + LONG, &in[1],
			       HD_SEND_FENCE);
			qp_expect(&p, &p.a, &in[0], 0);
			qp_expect(&p, &p.a, &in[1], 0);
			test_check(memory + LONG, LONG, (unsigned)i);
		}
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* Both ready; a takes 64 sends, and its events are told. */
static void open_deep(struct pair *p, const char *t, int *owner)
{
	const struct hd_ep_attr attr = { .tell = told, .owner = owner, .tx_size = 64 };

	pair_open(p, t);
	told_count = 0;
	qp_open(&p->a, RC, &attr);
	qp_open(&p->b, RC, NULL);
	qps_ready(p);
}

/* Until something of what has been posted has left. */
static void until_under_way(struct pair *p, const struct side *s)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (s->ep->qp->life.sq.head == s->ep->qp->life.sq.next) {
		assert_true(hd_now_ns() < end);
		pair_settle(p, 1);
	}
}

static void pauses(void **state)
{
	struct pair p;
	int owner;

	EACH_TRANSPORT(t)
	{
		open_deep(&p, t, &owner);
		qp_send(&p.a, out, LONG, &out[0]);
		until_under_way(&p, &p.a);
		hd_ep_pause(p.a.ep, true);
		qp_send(&p.a, out, 8, &out[1]);
		qp_recv(&p.b, in, sizeof(in), &in[0]);
		qp_recv(&p.b, in, sizeof(in), &in[1]);
		assert_int_equal(told_count, 0);
		qp_expect(&p, &p.b, &in[0], 0);
		qp_expect(&p, &p.a, &out[0], 0);
		qp_silence(&p, &p.b, 5);
		assert_int_equal(told_count, 1);
		assert_int_equal(told_code, HD_EV_EP_DRAINED);
		hd_ep_pause(p.a.ep, false);
		qp_expect(&p, &p.b, &in[1], 0);
		qp_expect(&p, &p.a, &out[1], 0);
		pair_close(&p);
	}
}

/* Told when all that was posted has been done, and not before: at once where nothing is. */
static void finishes(void **state)
{
	struct pair p;
	int owner;

	EACH_TRANSPORT(t)
	{
		open_deep(&p, t, &owner);
		hd_ep_drain(p.a.ep);
		assert_int_equal(told_count, 1);
		assert_int_equal(told_code, HD_EV_EP_DRAINED);
		for (int i = 0; i < 3; i++)
			qp_send(&p.a, out, i == 1 ? LONG : 8, &out[i]);
		hd_ep_drain(p.a.ep);
		for (int i = 0; i < 3; i++) {
			qp_silence(&p, &p.a, 2);
			assert_int_equal(told_count, 1);
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_expect(&p, &p.b, &in[i], 0);
			qp_expect(&p, &p.a, &out[i], 0);
		}
		pair_settle(&p, 10);
		assert_int_equal(told_count, 2);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offences),
		cmocka_unit_test(too_long),
		cmocka_unit_test(fails),
		cmocka_unit_test(flushed_in_front),
		cmocka_unit_test(fails_in_the_middle),
		cmocka_unit_test(resets),
		cmocka_unit_test(fences),
		cmocka_unit_test(pauses),
		cmocka_unit_test(finishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
