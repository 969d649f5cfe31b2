/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Queue pairs: numbers, who talks with whom, messages of all lengths, failing, resetting. */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONG (300u << 10)

static unsigned char out[1 << 20], in[1 << 20];

static void numbers(void **state)
{
	uint32_t seen[300];
	struct hd_ep *eps[300];
	struct side s;

	side_open(&s);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .policy = RC },
					    &eps[i]),
				 0);
		seen[i] = hd_ep_number(eps[i]);
		assert_true(seen[i] > 255 && seen[i] < 0xffffff);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(seen[k], seen[i]);
	}
	for (int i = 0; i < 300; i++)
		hd_ep_close(eps[i]);
	side_close(&s);
}

/* With the host's address it is the name. */
static void numbers_are_names(void **state)
{
	struct sockaddr_storage name, made;
	struct side s;

	side_open(&s);
	qp_open(&s, RC, NULL);
	assert_int_equal(hd_ep_name(s.ep, AF_INET, &name), 0);
	made = name;
	hd_name_set_number((struct sockaddr *)&made, hd_ep_number(s.ep) ^ 0x101);
	assert_memory_not_equal(&made, &name, sizeof(name));
	hd_name_set_number((struct sockaddr *)&made, hd_ep_number(s.ep));
	assert_memory_equal(&made, &name, sizeof(name));
	side_close(&s);
}

/* A number that is free again is the last to be given out. */
static void numbers_rest(void **state)
{
	struct hd_ep *keep, *ep;
	uint32_t first = 0, number;
	struct side s;

	side_open(&s);
	assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .policy = RC }, &keep),
			 0);
	for (int i = 0; i < 253; i++) {
		assert_int_equal(
			hd_ep_open(s.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .policy = RC }, &ep), 0);
		number = hd_ep_number(ep);
		hd_ep_close(ep);
		if (!i)
			first = number;
		else
			assert_int_not_equal(number, first);
	}
	hd_ep_close(keep);
	side_close(&s);
}

static void messages(void **state)
{
	static const size_t lens[] = { 0, 1, 8, 4096, 16384, 16385, 65536, LONG };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct hd_sender sender;
			struct hd_cqe e;

			test_fill(out, lens[i], (unsigned)i);
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_send(&p.a, out, lens[i], &out[i]);
			e = qp_expect(&p, &p.b, &in[i], 0);
			assert_int_equal(e.len, lens[i]);
			assert_int_equal(e.flags, HD_C_RECV | HD_C_MSG);
			hd_sender_of(p.b.node, e.src, &sender);
			assert_int_equal(sender.number, hd_ep_number(p.a.ep));
			test_check(in, lens[i], (unsigned)i);
			e = qp_expect(&p, &p.a, &out[i], 0);
			assert_int_equal(e.tag, 5);
			assert_int_equal(e.len, lens[i]);
		}
		pair_close(&p);
	}
}

/* Many of mixed lengths, with and without completions, in order at both ends. */
static void in_order(void **state)
{
	static const size_t lens[] = { 8, LONG, 100, 40000, 0, 20000, 1 };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 60; i++)
			qp_recv(&p.b, in, sizeof(in), &in[i]);
		for (int i = 0; i < 60; i++)
			qp_send_as(&p.a, out, lens[i % 7], &out[i], i % 3 ? HD_SEND_COMPLETE : 0);
		for (int i = 0; i < 60; i++)
			assert_int_equal(qp_expect(&p, &p.b, &in[i], 0).len, lens[i % 7]);
		for (int i = 0; i < 60; i++)
			if (i % 3)
				qp_expect(&p, &p.a, &out[i], 0);
		assert_int_equal(hd_ep_tx_left(p.a.ep), 64 - (59 % 3 == 0));
		qp_silence(&p, &p.a, 5);
		pair_close(&p);
	}
}

/* Everything is accepted up to the bound, without progress; the buffer of an injected one is ours at once. */
static void accepts(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		char text[8] = "heddle";

		qps_open(&p, t, RC);
		for (int i = 0; i < 64; i++)
			qp_send_as(&p.a, text, sizeof(text), &out[i], HD_SEND_COMPLETE | HD_SEND_INJECT);
		assert_int_equal(hd_ep_tx_left(p.a.ep), 0);
		assert_int_equal(hd_send(p.a.ep, *hd_ep_to(p.a.ep), text, 1, 0, 0, NULL, 0), -EAGAIN);
		memset(text, 0, sizeof(text));
		for (int i = 0; i < 64; i++) {
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_expect(&p, &p.b, &in[i], 0);
			assert_string_equal((char *)in, "heddle");
		}
		for (int i = 0; i < 64; i++)
			qp_expect(&p, &p.a, &out[i], 0);
		pair_close(&p);
	}
}

/* ---- one-sided operations ------------------------------------------------------------------------------------------------ */

static unsigned char memory[1 << 20] __attribute__((aligned(64)));

static void reads_and_writes(void **state)
{
	static const size_t lens[] = { 1, 8, 4096, 20000, LONG, 1 << 20 };
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct hd_cqe e;

			test_fill(out, lens[i], (unsigned)i);
			qp_rma(&p.a, HD_RMA_WRITE, out, lens[i], hd_mr_key(mr), memory, &out[i], 0);
			qp_rma(&p.a, HD_RMA_READ, in, lens[i], hd_mr_key(mr), memory, &in[i], 0);
			e = qp_expect(&p, &p.a, &out[i], 0);
			assert_int_equal(e.flags, HD_C_RMA | HD_C_WRITE);
			assert_int_equal(e.len, lens[i]);
			e = qp_expect(&p, &p.a, &in[i], 0);
			assert_int_equal(e.flags, HD_C_RMA | HD_C_READ);
			assert_int_equal(e.tag, 6);
			test_check(memory, lens[i], (unsigned)i);
			test_check(in, lens[i], (unsigned)i);
		}
		hd_mr_close(mr);
		pair_close(&p);
	}
}

static void add(struct side *s, uint64_t *old, uint64_t by, uint64_t key, const void *at, void *ctx,
		uint32_t flags)
{
	const struct iovec mine = { &by, 8 }, result = { old, 8 };
	const struct hd_rma_seg seg = { .addr = (uintptr_t)at, .len = 8, .key = key };

	assert_int_equal(hd_atomic(s->ep, *hd_ep_to(s->ep),
				   &(struct hd_atomic_args){ .how = HD_ATOMIC_FETCH,
							     .op = HD_ATOMIC_SUM,
							     .type = HD_ATOMIC_U64,
							     .iov = &mine,
							     .count = 1,
							     .result_iov = &result,
							     .result_count = 1,
							     .segs = &seg,
							     .seg_count = 1,
							     .tag = 7,
							     .ctx = ctx,
							     .flags = HD_SEND_COMPLETE | flags }),
			 0);
}

static void atomics(void **state)
{
	uint64_t old[4] = { 0 };
	struct hd_cqe e;
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	for (int odd = 1; odd < 8; odd *= 2) {
		pair_open(&p, t);
		qp_open(&p.a, RC, NULL);
		qp_open(&p.b, RC | ALL_RIGHTS, &(struct hd_ep_attr){ .pd = 9 });
		qps_ready(&p);
		mr = qp_region(&p.b, memory, sizeof(memory), 9);
		memset(memory, 0, 64);
		for (int i = 0; i < 4; i++)
			add(&p.a, &old[i], 3, hd_mr_key(mr), memory + 8, &old[i], 0);
		for (int i = 0; i < 4; i++) {
			e = qp_expect(&p, &p.a, &old[i], 0);
			assert_int_equal(e.flags, HD_C_ATOMIC | HD_C_READ);
			assert_int_equal(e.len, 8);
			assert_int_equal(e.tag, 7);
			assert_int_equal(old[i], 3 * i);
		}
		add(&p.a, &old[0], 3, hd_mr_key(mr), memory + 8 + odd, &old[0], 0);
		qp_expect(&p, &p.a, &old[0], HD_S_INVALID);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* ---- offences ------------------------------------------------------------------------------------------------------------ */

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

/* What is asked of b's memory is refused with err, and both have failed: what is behind it is flushed, in order. */
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
			assert_true(e.flags & HD_C_IMM && e.imm == 0x1234); /* and nothing of its epoch */
			qp_expect(&p, &p.b, &in[1], HD_S_CANCELLED);
			qp_expect(&p, &p.a, out, HD_S_LENGTH);
			qp_expect(&p, &p.a, &out[1], HD_S_CANCELLED);
			pair_close(&p);
		}
	}
}

/* ---- states -------------------------------------------------------------------------------------------------------------- */

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

static void strangers(void **state)
{
	struct side other;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		side_open(&other);
		qp_open(&other, RC, NULL);
		qp_ready(&other, &p.b, NULL);
		qp_recv(&p.b, in, sizeof(in), in);
		qp_send(&other, out, 8, out);
		while (!hd_cq_peek(other.cq)) {
			hd_node_poll(other.node);
			pair_settle(&p, 1);
		}
		assert_int_equal(hd_cq_peek(other.cq)->err, HD_S_REFUSED);
		qp_silence(&p, &p.b, 5);
		qp_send(&p.a, out, 8, out);
		qp_expect(&p, &p.b, in, 0);
		qp_expect(&p, &p.a, out, 0);
		side_close(&other);
		pair_close(&p);
	}
}

static void other_node_gone(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 3; i++)
			qp_send(&p.a, out, i ? LONG : 8, &out[i]);
		pair_settle(&p, 10);
		side_close(&p.b);
		side_open(&p.b);
		assert_true(pair_next(&p, &p.a).err);
		for (int i = 1; i < 3; i++)
			qp_expect(&p, &p.a, &out[i], HD_S_CANCELLED);
		pair_close(&p);
	}
}

static void nobody_there(void **state)
{
	struct sockaddr_storage name;
	struct hd_qp_attr attr = qp_attr();
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		qp_open(&p.a, RC, NULL);
		assert_int_equal(hd_send(p.a.ep, *hd_ep_to(p.a.ep), out, 1, 0, 0, NULL, 0), -ENOTCONN);
		hd_ep_fail(p.a.ep); /* what has failed flushes, whoever it would have been for */
		qp_send(&p.a, out, 8, &out[0]);
		qp_expect(&p, &p.a, &out[0], HD_S_CANCELLED);
		hd_ep_reset(p.a.ep);
		assert_int_equal(hd_ep_name(p.b.ep, AF_UNSPEC, &name), 0);
		hd_name_set_slot((void *)&name, 77);
		attr.to = (void *)&name;
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), 0);
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), -EISCONN);
		qp_send(&p.a, out, 8, &out[0]);
		qp_send(&p.a, out, LONG, &out[1]);
		qp_expect(&p, &p.a, &out[0], HD_S_REFUSED);
		qp_expect(&p, &p.a, &out[1], HD_S_CANCELLED);
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

/* ---- unreliable ones ----------------------------------------------------------------------------------------------------- */

static void uc(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, UC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		qp_send(&p.a, out, 8, &out[0]);
		qp_send(&p.a, out, LONG, &out[1]);
		qp_rma(&p.a, HD_RMA_WRITE, out, 8, hd_mr_key(mr) + 1, memory, &out[2], 0);
		for (int i = 0; i < 3; i++)
			qp_expect(&p, &p.a, &out[i], 0);
		qp_silence(&p, &p.b, 10);
		test_fill(out, LONG, 3);
		qp_recv(&p.b, in, sizeof(in), &in[0]);
		qp_recv(&p.b, in, sizeof(in), &in[1]);
		qp_send(&p.a, out, 8, &out[0]);
		qp_send(&p.a, out, LONG, &out[1]);
		qp_rma(&p.a, HD_RMA_WRITE, out, LONG, hd_mr_key(mr), memory, &out[2], 0);
		for (int i = 0; i < 2; i++)
			qp_expect(&p, &p.b, &in[i], 0);
		for (int i = 0; i < 3; i++)
			qp_expect(&p, &p.a, &out[i], 0);
		test_check(in, LONG, 3);
		test_check(memory, LONG, 3);
		assert_int_equal(hd_qp_inspect(p.a.ep->qp).status | hd_qp_inspect(p.b.ep->qp).status, 0);
		hd_mr_close(mr);
		side_close(&p.b);
		side_open(&p.b);
		qp_send(&p.a, out, LONG, &out[1]);
		qp_expect(&p, &p.a, &out[1], 0);
		pair_close(&p);
	}
}

static uint32_t filled_for;

static uint64_t fill_head(void *owner, const struct hd_sender *from, void *at)
{
	assert_true(from->addr && !from->group);
	assert_int_equal(from->word, 0x89abcdef);
	filled_for = from->number;
	memset(at, 'h', 40);
	return 4711;
}

static void datagram(struct pair *p, uint32_t qkey, size_t len)
{
	const uint64_t tag = UINT64_C(0x89abcdef) << HD_SENDER_WORD | 3;
	const struct iovec iov = { out, len };

	assert_int_equal(hd_ud_send(p->a.ep, p->a.to, &iov, 1, tag, (uint64_t)qkey << 32 | 55, out,
				    HD_SEND_COMPLETE | HD_SEND_IMM),
			 0);
	assert_true(qp_expect(p, &p->a, out, 0).tag == tag);
	pair_settle(p, 3);
}

static void ud(void **state)
{
	const struct hd_qp_attr ready = { .to = NULL };
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		const struct hd_ep_attr attr = { .head = 40, .head_fill = fill_head, .owner = &p.b };
		struct iovec iov[2] = { { in, 30 }, { in + 100, 5000 } };

		pair_open(&p, t);
		qp_open(&p.a, HD_EP_NUMBERED | HD_EP_DROP, NULL);
		qp_open(&p.b, HD_EP_NUMBERED | HD_EP_DROP, &attr);
		hd_dest_put(p.a.to);
		side_names(&p.a, &p.b);
		hd_ep_set_qkey(p.b.ep, 17);
		test_fill(out, 5000, 8);
		assert_int_equal(hd_recv(p.b.ep, &(struct hd_recv_args){ .iov = iov,
									 .count = 2,
									 .flags = HD_RECV_COMPLETE,
									 .ctx = in }),
				 0);
		assert_int_equal(hd_ep_pair(p.a.ep, &ready), 0);
		datagram(&p, 17, 8); /* not ready */
		qp_silence(&p, &p.b, 3);
		assert_int_equal(hd_ep_pair(p.b.ep, &ready), 0);
		datagram(&p, 18, 8);
		qp_silence(&p, &p.b, 3);
		datagram(&p, 17, 4096);
		e = qp_expect(&p, &p.b, in, 0);
		assert_int_equal(e.len, 4136);
		assert_int_equal((uint32_t)e.imm, 55);
		assert_int_equal(filled_for, hd_ep_number(p.a.ep));
		assert_int_equal(e.tag, 4711);
		assert_memory_equal(in, "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhh", 30);
		assert_memory_equal(in + 100, "hhhhhhhhhh", 10);
		test_check(in + 110, 4096, 8);
		datagram(&p, 17, 8); /* no receive */
		qp_recv(&p.b, in, 5000, in);
		qp_silence(&p, &p.b, 3);
		hd_ep_fail(p.b.ep);
		qp_expect(&p, &p.b, in, HD_S_CANCELLED);
		pair_close(&p);
	}
}

/* Nodes that have promised to serve need no program that polls: what is posted gets there, and completes. */
static void by_itself(void **state)
{
	const struct hd_node_attr serves = { .front = "test", .serve = true };
	const uint32_t kinds[] = { RC, UC };

	EACH_TRANSPORT(transport)
	{
		for (int i = 0; i < 2; i++) {
			struct pair p = { 0 };
			char got[8] = "";

			setenv("HEDDLE_TRANSPORT", transport, 1);
			side_open_with(&p.a, &serves);
			side_open_with(&p.b, &serves);
			qp_open(&p.a, kinds[i], NULL);
			qp_open(&p.b, kinds[i], NULL);
			qps_ready(&p);
			qp_recv(&p.b, got, 8, got);
			qp_send(&p.a, "itself!", 8, &p);
			assert_int_equal(hd_cq_wait(p.b.cq, 1, 10000), 0);
			assert_string_equal(got, "itself!");
			assert_int_equal(hd_cq_wait(p.a.cq, 1, 10000), 0);
			pair_close(&p);
		}
	}
}

/* A request that meets a queue pair of another kind is not carried out, nor called good; the link, and what else goes over it, stays. */
static void requests_of_another_kind(void **state)
{
	static const uint32_t kinds[] = { UC, HD_EP_NUMBERED | HD_EP_DROP };
	unsigned char from[8] = { 0 }, to[8];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 4; i++) {
		const struct hd_peer *peer;

		qps_new(&p, t, RC);
		qp_open(&p.b, kinds[i / 2], NULL);
		qp_ready(&p.a, &p.b, NULL);
		qp_ready(&p.b, &p.a, NULL);
		qp_recv(&p.b, to, sizeof(to), to);
		pair_settle(&p, 10);
		peer = hd_links(p.a.node)->peers;
		if (i % 2)
			qp_rma(&p.a, HD_RMA_READ, from, sizeof(from), 77, to, from, HD_SEND_COMPLETE);
		else
			qp_send(&p.a, from, sizeof(from), from);
		qp_expect(&p, &p.a, from, HD_S_REFUSED);
		pair_settle(&p, 5);
		assert_null(hd_cq_peek(p.b.cq));
		assert_true(peer && hd_links(p.a.node)->peers == peer &&
			    hd_peer_inspect(peer).state == HD_PEER_LIVE);
		pair_close(&p);
	}
}

/* Nor is a write, by packet with its data, by an offer, or by a copy of the initiator's own where it finds the memory. */
static void writes_of_another_kind(void **state)
{
	static const size_t lens[] = { 8, 8192, 1 << 20 };
	static unsigned char from[1 << 20], to[1 << 20];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 6; i++) {
		const uint32_t flags = HD_SEND_COMPLETE | (i < 3 ? 0 : HD_SEND_IMM);
		const struct hd_peer *peer;
		struct hd_mr *mr;

		memset(from, 1, sizeof(from));
		memset(to, 0, sizeof(to));
		qps_new(&p, t, RC);
		qp_open(&p.b, UC | ALL_RIGHTS, NULL);
		qps_ready(&p);
		mr = qp_region(&p.b, to, sizeof(to), 0);
		qp_recv(&p.b, NULL, 0, to);
		pair_settle(&p, 10);
		peer = hd_links(p.a.node)->peers;
		qp_rma(&p.a, HD_RMA_WRITE, from, lens[i % 3], hd_mr_key(mr), to, from, flags);
		qp_expect(&p, &p.a, from, HD_S_REFUSED);
		pair_settle(&p, 5);
		assert_null(hd_cq_peek(p.b.cq));
		for (size_t k = 0; k < lens[i % 3]; k++)
			assert_int_equal(to[k], 0);
		assert_true(peer && hd_links(p.a.node)->peers == peer &&
			    hd_peer_inspect(peer).state == HD_PEER_LIVE);
		hd_node_lock(p.b.node);
		assert_int_equal(hd_mr_close(mr), 0);
		hd_node_unlock(p.b.node);
		pair_close(&p);
	}
}

/* An unreliable one's comes to nothing at a reliable one, and its sender hears nothing of that. */
static void an_unreliable_request_at_a_reliable_one(void **state)
{
	unsigned char from[8] = { 0 }, to[8];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, UC);
		qp_open(&p.b, RC, NULL);
		qps_ready(&p);
		qp_recv(&p.b, to, sizeof(to), to);
		qp_send(&p.a, from, sizeof(from), from);
		qp_expect(&p, &p.a, from, 0);
		qp_silence(&p, &p.b, 10);
		pair_close(&p);
	}
}

/* A number that is free again is another's only after many others have been: what is still said of its owner is not taken for his. */
static void numbers_are_not_used_again_at_once(void **state)
{
	static uint32_t seen[1000];
	struct pair p;

	qps_new(&p, "tcp", RC);
	for (unsigned i = 0; i < 1000; i++) {
		seen[i] = hd_ep_number(p.a.ep);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
		qp_open(&p.a, i % 3 ? RC : UC, NULL);
	}
	assert_in_range(hd_names(p.a.node)->listening, 1, 16);
	pair_close(&p);
}

static int full(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return -EAGAIN;
}

/* A message that finds its link full has cost nothing, waits for its turn, and is paid for once. */
static void what_is_not_sent_costs_nothing(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		const struct hd_link_ops *ops;
		struct hd_link_ops no_room;
		struct hd_peer *peer;
		uint32_t spent;

		qps_open(&p, t, RC);
		for (int i = 0; i < 2; i++)
			qp_recv(&p.b, in, 8, in);
		qp_send(&p.a, out, 8, out);
		qp_expect(&p, &p.a, out, 0);
		qp_expect(&p, &p.b, in, 0);
		peer = hd_links(p.a.node)->peers;
		ops = peer->link->ops;
		no_room = *ops;
		no_room.send = full;
		spent = hd_credit_spent(peer);
		peer->link->ops = &no_room;
		qp_send(&p.a, out, 8, out);
		assert_int_equal(hd_credit_spent(peer), spent);
		peer->link->ops = ops;
		qp_expect(&p, &p.a, out, 0);
		qp_expect(&p, &p.b, in, 0);
		assert_int_equal(hd_credit_spent(peer), spent + hd_units(8));
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_itself),
		cmocka_unit_test(numbers),
		cmocka_unit_test(numbers_are_names),
		cmocka_unit_test(numbers_rest),
		cmocka_unit_test(messages),
		cmocka_unit_test(in_order),
		cmocka_unit_test(accepts),
		cmocka_unit_test(reads_and_writes),
		cmocka_unit_test(atomics),
		cmocka_unit_test(offences),
		cmocka_unit_test(too_long),
		cmocka_unit_test(fails),
		cmocka_unit_test(flushed_in_front),
		cmocka_unit_test(fails_in_the_middle),
		cmocka_unit_test(resets),
		cmocka_unit_test(strangers),
		cmocka_unit_test(other_node_gone),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(fences),
		cmocka_unit_test(pauses),
		cmocka_unit_test(finishes),
		cmocka_unit_test(uc),
		cmocka_unit_test(ud),
		cmocka_unit_test(what_is_not_sent_costs_nothing),
		cmocka_unit_test(requests_of_another_kind),
		cmocka_unit_test(writes_of_another_kind),
		cmocka_unit_test(an_unreliable_request_at_a_reliable_one),
		cmocka_unit_test(numbers_are_not_used_again_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
