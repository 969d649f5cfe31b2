/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs: their numbers, messages of all lengths, one-sided operations;
 * those that are not reliable.
 */
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

/*
 * Everything is accepted up to the bound, without progress; the buffer of an
 * injected one is ours at once.
 */
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

/* ---- one-sided operations -------------------------------------------------------------------- */

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

/* ---- unreliable ones ------------------------------------------------------------------------- */

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
	assert_memory_equal(&from->grh, "\xef\xcd\xab\x89", 4);
	filled_for = from->number;
	memset(at, 'h', 40);
	return 4711;
}

static void datagram(struct pair *p, uint32_t qkey, size_t len)
{
	const struct hd_pkt_qp head = { .grh = { .mark_low = 0xef,
						 .traffic_class = 0xcd,
						 .hop_limit = 0xab,
						 .global = 1,
						 .ipv6 = 0,
						 .mark_high = 0x22 },
					.imm = 55,
					.qkey = qkey };
	const uint64_t tag = UINT64_C(0x123456789a);
	const struct iovec iov = { out, len };

	assert_int_equal(
		hd_ud_send(p->a.ep, p->a.to, &iov, 1, head, tag, out, HD_SEND_COMPLETE | HD_SEND_IMM), 0);
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

/*
 * Nodes that have promised to serve need no program that polls: what is posted
 * gets there, and completes.
 */
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

/*
 * A number that is free again is another's only after many others have been: what is still said of
 * its owner is not taken for his.
 */
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
		cmocka_unit_test(uc),
		cmocka_unit_test(ud),
		cmocka_unit_test(what_is_not_sent_costs_nothing),
		cmocka_unit_test(numbers_are_not_used_again_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
