/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory windows, and what else a queue pair carries out by itself. What they open is tested in
 * tests/conformance/verbs as well.
 */
#include "engine/mr/mr.h"
#include "engine/test/test_qp.h"
#include "transport/vm_seam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 70000
#define ACTX ((void *)1)
#define BCTX ((void *)2)

static unsigned char mem[SIZE], mine[SIZE];

static struct hd_mr *region(struct side *s)
{
	const struct iovec iov = { mem, sizeof(mem) };
	const struct hd_mr_attr attr = { .iov = &iov,
					 .count = 1,
					 .access = HD_ACCESS_LOCAL_WRITE | HD_ACCESS_BIND,
					 .flags = HD_MR_VIRTUAL,
					 .key_bytes = 4 };
	struct hd_mr *mr;

	assert_int_equal(hd_mr_open(s->node, &attr, &mr), 0);
	return mr;
}

static struct hd_mr *window(struct side *s, bool single)
{
	struct hd_mr *mw;

	assert_int_equal(hd_window_open(s->node, 0, single, &mw), 0);
	return mw;
}

static struct hd_bind_args whole(const struct hd_mr *mw, const struct hd_mr *mr)
{
	return (struct hd_bind_args){ .key = hd_mr_key(mw) ^ 1,
				      .region = mr,
				      .addr = (uintptr_t)mem,
				      .len = sizeof(mem),
				      .access = HD_ACCESS_REMOTE_WRITE,
				      .tag = 9,
				      .ctx = BCTX,
				      .flags = HD_SEND_COMPLETE };
}

static void bind_whole(struct side *s, const struct hd_mr *mw, const struct hd_mr *mr)
{
	const struct hd_bind_args args = whole(mw, mr);
	const struct hd_cqe *e;

	assert_int_equal(hd_window_bind(s->ep, &args), 0);
	e = hd_cq_peek(s->cq);
	assert_true(e && e->ctx == BCTX && !e->err && e->tag == 9 && e->flags & HD_C_LOCAL);
	hd_cq_pop(s->cq);
	assert_int_equal(hd_mr_key(mw), args.key);
}

static void keys_are_its_own(void **state)
{
	struct hd_mr *mw;
	struct pair p;
	uint64_t base;

	qps_open(&p, "shm", RC);
	mw = window(&p.b, true);
	base = hd_mr_key(mw) & ~UINT64_C(0xff);
	assert_true(base && base >> 32 == 0);
	for (uint64_t i = 0; i < 256; i++)
		assert_false(hd_mr_key_is_free(p.b.node, base + i));
	assert_null(hd_mr_find(p.b.node, hd_mr_key(mw)));
	assert_int_equal(hd_mr_close(mw), 0);
	assert_true(hd_mr_key_is_free(p.b.node, base + 0x80) || hd_mr_key_is_free(p.b.node, base + 0x81));
	pair_close(&p);
}

/* By any key that it may get; one that it has and is not bound by is lost. */
static void its_owner_is_found(void **state)
{
	struct hd_mr *mr, *mw;
	struct pair p;
	bool lost;

	pair_open(&p, "shm");
	qp_open(&p.b, RC, NULL);
	qp_ready(&p.b, &p.a, NULL);
	mr = region(&p.b);
	mw = window(&p.b, true);
	assert_null(hd_window_find(p.b.node, hd_mr_key(mw), &lost));
	hd_window_own(mw, &p);
	assert_ptr_equal(hd_window_find(p.b.node, hd_mr_key(mw), &lost), &p);
	assert_true(lost);
	assert_ptr_equal(hd_window_find(p.b.node, hd_mr_key(mw) ^ 1, &lost), &p);
	assert_false(lost);
	bind_whole(&p.b, mw, mr);
	assert_ptr_equal(hd_window_find(p.b.node, hd_mr_key(mw), &lost), &p);
	assert_false(lost);
	assert_null(hd_window_find(p.b.node, hd_mr_key(mr), &lost));
	assert_false(lost);
	assert_int_equal(hd_window_invalidate(p.b.ep, &(struct hd_bind_args){ .key = hd_mr_key(mw) }), 0);
	assert_non_null(hd_window_find(p.b.node, hd_mr_key(mw), &lost));
	assert_true(lost);
	assert_int_equal(hd_mr_close(mw), 0);
	assert_int_equal(hd_mr_close(mr), 0);
	pair_close(&p);
}

/* Nobody is at the other end, and nobody need be. */
static void binding_needs_nobody(void **state)
{
	struct hd_mr *mr, *mw;
	struct pair p;

	pair_open(&p, "tcp");
	qp_open(&p.b, RC, NULL);
	qp_ready(&p.b, &p.a, NULL);
	mr = region(&p.b);
	mw = window(&p.b, true);
	bind_whole(&p.b, mw, mr);
	assert_true(hd_mr_has_windows(mr));
	assert_int_equal(hd_mr_close(mr), -EBUSY);
	hd_ep_close(p.b.ep); /* and the window is bound to nothing */
	p.b.ep = NULL;
	assert_false(hd_mr_has_windows(mr));
	assert_int_equal(hd_mr_close(mr), 0);
	assert_int_equal(hd_mr_close(mw), 0);
	qp_open(&p.b, RC, NULL);
	pair_close(&p);
}

static void it_opens_what_it_is_bound_to(void **state)
{
	EACH_TRANSPORT(name)
	{
		struct hd_mr *mr, *mw;
		struct pair p;

		qps_open(&p, name, RC);
		mr = region(&p.b);
		mw = window(&p.b, false);
		bind_whole(&p.b, mw, mr);
		for (size_t len = 8; len <= SIZE; len += SIZE - 8) {
			memset(mem, 0, sizeof(mem));
			memset(mine, (int)len, sizeof(mine));
			qp_rma(&p.a, HD_RMA_WRITE, mine, len, hd_mr_key(mw), mem, ACTX, 0);
			qp_expect(&p, &p.a, ACTX, 0);
			assert_memory_equal(mem, mine, len);
		}
		bind_whole(&p.b, mw, mr); /* under another key */
		assert_int_equal(hd_mr_close(mw), 0);
		qp_rma(&p.a, HD_RMA_WRITE, mine, 8, hd_mr_key(mr), mem, ACTX,
		       0); /* the region itself never did */
		qp_expect(&p, &p.a, ACTX, HD_S_ACCESS);
		assert_int_equal(hd_mr_close(mr), 0);
		pair_close(&p);
	}
}

/* ---- who copies is waited for ---------------------------------------------------------------- */

struct middle {
	struct pair *p;
	struct hd_mr *mr, *mw;
	bool by_message;
	bool begun;
	uint64_t key;
};

/* In the middle of a copy through the window: it is to be taken back. */
static void in_the_middle(void *arg)
{
	struct middle *m = arg;
	struct side *b = &m->p->b;
	const struct hd_bind_args args = { .key = m->key, .ctx = BCTX, .flags = HD_SEND_COMPLETE };

	if (m->by_message)
		assert_int_equal(hd_window_take_back(b->ep, m->key, &m->begun), -EAGAIN);
	else
		assert_int_equal(hd_window_invalidate(b->ep, &args), 0);
	for (int i = 0; i < 1000; i++)
		hd_node_poll(b->node);
	assert_null(hd_cq_peek(b->cq));
	assert_false(hd_mr_has_windows(m->mr));
	if (m->by_message)
		assert_int_equal(hd_mr_close(m->mr), -EBUSY); /* after it has waited */
}

static void who_copies_is_waited_for(void **state)
{
	for (int by_message = 0; by_message < 2; by_message++) {
		struct middle m = { .by_message = by_message };
		struct pair p;

		qps_open(&p, "shm", RC);
		m.p = &p;
		m.mr = region(&p.b);
		m.mw = window(&p.b, true);
		bind_whole(&p.b, m.mw, m.mr);
		m.key = hd_mr_key(m.mw);
		/* so that there is a link */
		qp_rma(&p.a, HD_RMA_WRITE, mine, SIZE, m.key, mem, ACTX, 0);
		qp_expect(&p, &p.a, ACTX, 0);
		vm_seam = (struct vm_seam){ .before = in_the_middle, .arg = &m };
		qp_rma(&p.a, HD_RMA_WRITE, mine, SIZE, m.key, mem, ACTX, 0);
		qp_expect(&p, &p.a, ACTX, 0);
		assert_int_equal(vm_seam.calls > 0, 1);
		vm_seam = (struct vm_seam){ 0 };
		if (by_message)
			assert_int_equal(hd_window_take_back(p.b.ep, m.key, &m.begun), 0);
		else
			qp_expect(&p, &p.b, BCTX, 0);
		assert_int_equal(hd_mr_close(m.mr), 0);
		assert_int_equal(hd_mr_close(m.mw), 0);
		pair_close(&p);
	}
}

/* By a message to the endpoint that it is bound to, in its domain, and by no other. */
static void nobody_else_takes_it_back(void **state)
{
	struct side other;
	struct hd_mr *mr, *mw;
	bool begun = false;
	struct pair p;

	qps_open(&p, "shm", RC);
	mr = region(&p.b);
	mw = window(&p.b, true);
	bind_whole(&p.b, mw, mr);
	other = p.b;
	other.ep = NULL;
	qp_open(&other, RC, NULL);
	assert_int_equal(hd_window_take_back(other.ep, hd_mr_key(mw), &begun), HD_S_ACCESS);
	hd_ep_close(other.ep);
	p.b.ep->pd++;
	assert_int_equal(hd_window_take_back(p.b.ep, hd_mr_key(mw), &begun), HD_S_ACCESS);
	p.b.ep->pd--;
	assert_false(begun);
	assert_int_equal(hd_window_take_back(p.b.ep, hd_mr_key(mw), &begun), 0);
	assert_int_equal(hd_mr_close(mw), 0);
	assert_int_equal(hd_mr_close(mr), 0);
	pair_close(&p);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void nothing_behind_it_is_started(void **state)
{
	EACH_TRANSPORT(name)
	{
		static unsigned char big[1 << 20], in[1 << 20];
		struct hd_bind_args args;
		struct hd_mr *mr, *mw;
		struct pair p;

		qps_open(&p, name, RC);
		mr = region(&p.a);
		mw = window(&p.a, true);
		args = whole(mw, mr);
		args.len++;
		qp_send(&p.a, big, sizeof(big), (void *)11);
		assert_int_equal(hd_window_bind(p.a.ep, &args), 0);
		qp_send(&p.a, big, 8, (void *)12);
		qp_recv(&p.b, in, sizeof(in), (void *)21);
		qp_recv(&p.b, in, sizeof(in), (void *)22);
		qp_expect(&p, &p.a, (void *)11, 0);
		qp_expect(&p, &p.a, BCTX, HD_S_RANGE);
		qp_expect(&p, &p.a, (void *)12, HD_S_CANCELLED);
		qp_expect(&p, &p.b, (void *)21, 0);
		qp_silence(&p, &p.b, 5);
		assert_int_equal(hd_mr_close(mr), 0);
		assert_int_equal(hd_mr_close(mw), 0);
		pair_close(&p);
	}
}

static void an_unreliable_one_is_halted(void **state)
{
	const struct hd_failed_args wrong = { .status = EBADSLT, .tag = 3, .ctx = (void *)2 };

	EACH_TRANSPORT(name)
	{
		unsigned char in[64];
		struct pair p;

		qps_open(&p, name, UC);
		qp_recv(&p.b, in, sizeof(in), (void *)21);
		qp_recv(&p.b, in, sizeof(in), (void *)22);
		qp_recv(&p.a, in, sizeof(in), (void *)31);
		qp_send(&p.a, mine, 8, (void *)1);
		assert_int_equal(hd_send_failed(p.a.ep, *hd_ep_to(p.a.ep), &wrong), 0);
		qp_send(&p.a, mine, 8, (void *)3);
		qp_expect(&p, &p.a, (void *)1, 0);
		assert_int_equal(qp_expect(&p, &p.a, (void *)2, EBADSLT).tag, 3);
		qp_expect(&p, &p.a, (void *)3, HD_S_CANCELLED);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQE);
		assert_int_equal(hd_qp_inspect(p.a.ep->qp).status, 0);
		qp_send(&p.a, mine, 8, (void *)4);
		qp_expect(&p, &p.a, (void *)4, HD_S_CANCELLED);
		qp_expect(&p, &p.b, (void *)21, 0);
		qp_send(&p.b, mine, 8, (void *)5); /* it still receives */
		qp_expect(&p, &p.b, (void *)5, 0);
		qp_expect(&p, &p.a, (void *)31, 0);
		hd_ep_go_on(p.a.ep);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_RTS);
		qp_send(&p.a, mine, 8, (void *)6);
		qp_expect(&p, &p.a, (void *)6, 0);
		qp_expect(&p, &p.b, (void *)22, 0);
		pair_close(&p);
	}
}

/* A message to be received where the memory is wrong: both ends are told so. */
static void a_faulty_receive_is_told_of(void **state)
{
	EACH_TRANSPORT(name)
	{
		const struct iovec none = { mem, 0 };
		struct pair p;

		qps_open(&p, name, RC);
		assert_int_equal(hd_recv(p.b.ep,
					 &(struct hd_recv_args){ .iov = &none,
								 .count = 1,
								 .flags = HD_RECV_COMPLETE | HD_RECV_FAULT,
								 .ctx = BCTX }),
				 0);
		qp_send(&p.a, mine, 8, ACTX);
		qp_expect(&p, &p.a, ACTX, HD_S_OPERATIONAL);
		qp_expect(&p, &p.b, BCTX, HD_S_PROTECTION);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_its_own),
		cmocka_unit_test(its_owner_is_found),
		cmocka_unit_test(binding_needs_nobody),
		cmocka_unit_test(it_opens_what_it_is_bound_to),
		cmocka_unit_test(who_copies_is_waited_for),
		cmocka_unit_test(nobody_else_takes_it_back),
		cmocka_unit_test(nothing_behind_it_is_started),
		cmocka_unit_test(an_unreliable_one_is_halted),
		cmocka_unit_test(a_faulty_receive_is_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
