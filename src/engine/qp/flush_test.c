/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Flushes of queue pairs: what they wait for, who may ask for them, and what a peer may say by one.
 */
#include "engine/test/test_qp.h"
#include "engine/test/test_wire.h"

#include <string.h>

#define LONG (300u << 10)
#define RIGHTS (ALL_RIGHTS | HD_EP_REMOTE_FLUSH)

static unsigned char out[LONG], in[LONG], memory[LONG];

static void flush(struct side *s, uint64_t key, const void *at, uint64_t len, uint32_t how, void *ctx)
{
	const struct hd_rma_seg seg = { .addr = (uintptr_t)at, .len = len, .key = key };
	const struct hd_rma_args args = { .op = HD_RMA_FLUSH,
					  .seg_count = 1,
					  .segs = &seg,
					  .imm = how,
					  .tag = 6,
					  .ctx = ctx,
					  .flags = HD_SEND_COMPLETE };

	hd_node_lock(s->node);
	assert_int_equal(hd_flush(s->ep, *hd_ep_to(s->ep), &args), 0);
	hd_node_unlock(s->node);
}

static struct hd_mr *region(struct side *s, uint32_t access)
{
	const struct iovec iov = { memory, sizeof(memory) };
	const struct hd_mr_attr attr = {
		.iov = &iov, .count = 1, .access = HD_ACCESS_REMOTE_WRITE | access, .flags = HD_MR_VIRTUAL
	};
	struct hd_mr *mr;

	hd_node_lock(s->node);
	assert_int_equal(hd_mr_open(s->node, &attr, &mr), 0);
	hd_node_unlock(s->node);
	return mr;
}

static void pair_begin(struct pair *p, const char *t, uint32_t kind, uint32_t rights)
{
	pair_open(p, t);
	qp_open(&p->a, kind, NULL);
	qp_open(&p->b, kind | rights, NULL);
	qps_ready(p);
}

/* It is behind what was posted before, however that goes, and in front of what comes after it. */
static void in_their_order(void **state)
{
	static const size_t lens[] = { 8, 8192, 65536, LONG };
	struct hd_mr *mr;
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_begin(&p, t, RC, RIGHTS);
		mr = region(&p.b, HD_ACCESS_REMOTE_FLUSH);
		for (unsigned i = 0; i < 12; i++) {
			size_t len = lens[i % 4];

			test_fill(out, len, i);
			qp_rma(&p.a, HD_RMA_WRITE, out, len, hd_mr_key(mr), memory, out, 0);
			qp_rma(&p.a, HD_RMA_WRITE, out, len, hd_mr_key(mr), memory, in, 0);
			flush(&p.a, hd_mr_key(mr), memory, len,
			      HD_FLUSH_GLOBAL | (i % 2 ? HD_FLUSH_REGION : 0), memory);
			qp_rma(&p.a, HD_RMA_WRITE, out, 1, hd_mr_key(mr), memory, out, 0);
			qp_expect(&p, &p.a, out, 0);
			qp_expect(&p, &p.a, in, 0);
			e = qp_expect(&p, &p.a, memory, 0);
			test_check(memory, len, i);
			assert_int_equal(e.len, 0);
			assert_int_equal(e.tag, 6);
			qp_expect(&p, &p.a, out, 0);
		}
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* A message before it that finds no receive is not over, so neither is the flush. */
static void behind_what_is_held(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_begin(&p, t, RC, RIGHTS);
		mr = region(&p.b, HD_ACCESS_REMOTE_FLUSH);
		qp_send(&p.a, out, 8, out);
		flush(&p.a, hd_mr_key(mr), memory, 8, HD_FLUSH_GLOBAL, memory);
		qp_silence(&p, &p.a, 10);
		qp_recv(&p.b, in, sizeof(in), in);
		qp_expect(&p, &p.a, out, 0);
		qp_expect(&p, &p.a, memory, 0);
		qp_expect(&p, &p.b, in, 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

static void who_may(void **state)
{
	static const struct {
		uint32_t kind, rights, access, how;
		uint64_t key;
		size_t len;
		int err;
	} cases[] = {
		{ RC, ALL_RIGHTS, HD_ACCESS_REMOTE_FLUSH, HD_FLUSH_GLOBAL, 0, 8, HD_S_INVALID },
		{ RC, RIGHTS, 0, HD_FLUSH_GLOBAL, 0, 8, HD_S_ACCESS },
		{ RC, RIGHTS, 0, HD_FLUSH_GLOBAL, 0, 0, HD_S_ACCESS },
		{ RC, RIGHTS, HD_ACCESS_REMOTE_FLUSH, HD_FLUSH_PERSISTENT, 0, 8, HD_S_ACCESS },
		{ RC, RIGHTS, HD_ACCESS_REMOTE_FLUSH, HD_FLUSH_GLOBAL, 1, 8, HD_S_ACCESS },
		{ RC, RIGHTS, HD_ACCESS_REMOTE_FLUSH, HD_FLUSH_GLOBAL | HD_FLUSH_REGION, 1, 8, HD_S_ACCESS },
		{ RC, RIGHTS, HD_ACCESS_REMOTE_FLUSH, HD_FLUSH_GLOBAL, 0, LONG + 1, HD_S_RANGE },
		{ RC, RIGHTS, HD_ACCESS_REMOTE_FLUSH, HD_FLUSH_GLOBAL | HD_FLUSH_REGION, 0, LONG + 1, 0 },
		{ RC, ALL_RIGHTS, 0, 0, 0, 8, 0 },
	};
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pair_begin(&p, t, cases[i].kind, cases[i].rights);
		mr = region(&p.b, cases[i].access);
		flush(&p.a, hd_mr_key(mr) ^ cases[i].key, memory, cases[i].len, cases[i].how, memory);
		qp_expect(&p, &p.a, memory, cases[i].err);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* An unreliable queue pair flushes nothing, and says so. */
static void at_another_kind(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		qp_open(&p.a, RC, NULL);
		qp_open(&p.b, UC | RIGHTS, NULL);
		qps_ready(&p);
		mr = region(&p.b, HD_ACCESS_REMOTE_FLUSH);
		flush(&p.a, hd_mr_key(mr), memory, 8, HD_FLUSH_GLOBAL, memory);
		qp_expect(&p, &p.a, memory, HD_S_REFUSED);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/*
 * A peer that says it to an endpoint which is no queue pair is refused; one whose list is wrong, or
 * who brings data with it, is cut off.
 */
static void from_strangers(void **state)
{
	static const struct {
		uint8_t segs;
		uint32_t more;
		bool gone;
	} cases[] = { { 1, 0, false }, { 0, 0, false }, { 1, 1, true }, { 9, 0, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct {
			struct hd_rma head;
			struct hd_rma_seg seg[10];
		} body = { .head.count = cases[i].segs };
		uint32_t len = sizeof(body.head) + cases[i].segs * (uint32_t)sizeof(body.seg[0]);
		struct hd_pkt pkt;
		struct side s;
		struct wire w;

		side_open(&s);
		s.ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
		wire_greet(&w, &s);
		pkt = wire_eager(&w, 0, 0);
		pkt.kind = HD_PKT_FLUSH;
		pkt.flags = 0;
		pkt.op = 5;
		pkt.imm = i % 2 ? 0 : HD_FLUSH_GLOBAL;
		wire_say(&w, &pkt, &body, len + cases[i].more);
		if (cases[i].gone) {
			wire_gone(&w);
		} else {
			wire_hear_kind(&w, HD_PKT_FIN);
			assert_int_equal(w.pkt.op, 5);
			assert_int_equal(w.pkt.imm, HD_S_INVALID);
		}
		wire_hang_up(&w);
		side_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_their_order), cmocka_unit_test(behind_what_is_held),
		cmocka_unit_test(who_may),	  cmocka_unit_test(at_another_kind),
		cmocka_unit_test(from_strangers),
	};

	return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
