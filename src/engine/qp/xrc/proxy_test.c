/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests that name a queue of another node: side a sends to side b, and the queue is
 * that of a third node, c.
 */
#include "engine/test/test_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMING (RC | HD_EP_XRC)
#define DOMAIN 9
#define LONG (700u << 10)

static unsigned char out[LONG], in[LONG];

struct three {
	struct pair p;
	struct side c;
	struct hd_ep *via, *guest, *by; /* of b, c, c */
	struct hd_rq *rq;
	uint32_t strayed; /* the number that was looked for last */
	int strays;
	bool deaf; /* nobody looks for a way */
};

static struct three rig;

static void stray(void *owner, uint32_t number)
{
	struct three *t = owner;

	t->strayed = number;
	t->strays++;
}

/*
 * What a front does: an endpoint here, and one there, paired; anew, where it is
 * asked again after a reset.
 */
static void lead(struct three *t)
{
	struct side b = { .node = t->p.b.node, .ep = t->via }, c = { .node = t->c.node, .ep = t->guest };

	b.cq = t->p.b.cq;
	c.cq = t->c.cq;
	qp_open(&b, NAMING, NULL);
	qp_open(&c, NAMING | ALL_RIGHTS, &(struct hd_ep_attr){ .tx_size = 4, .domain = DOMAIN });
	qp_ready(&b, &c, NULL);
	qp_ready(&c, &b, NULL);
	t->via = b.ep;
	t->guest = c.ep;
	hd_ep_proxy(t->p.b.ep, t->strayed, t->via);
}

static void turn(struct three *t)
{
	hd_node_poll(t->p.a.node);
	hd_node_poll(t->p.b.node);
	hd_node_poll(t->c.node);
	if (!t->strayed || t->deaf)
		return;
	if (t->strayed == hd_ep_number(t->by))
		lead(t);
	else
		hd_ep_proxy(t->p.b.ep, t->strayed, NULL);
	t->strayed = 0;
}

static void turns(struct three *t, int n)
{
	while (n--)
		turn(t);
}

static struct hd_cqe next(struct three *t, struct side *s)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	struct hd_cqe e;

	while (!hd_cq_peek(s->cq)) {
		turn(t);
		assert_true(hd_now_ns() < end);
	}
	e = *hd_cq_peek(s->cq);
	hd_cq_pop(s->cq);
	return e;
}

static void expect(struct three *t, void *ctx, int err)
{
	struct hd_cqe e = next(t, &t->p.a);

	assert_int_equal(e.err, err);
	assert_ptr_equal(e.ctx, ctx);
}

static void start(struct three *t, const char *transport)
{
	struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE, .domain = DOMAIN, .pd = 7
	};

	memset(t, 0, sizeof(*t));
	pair_open(&t->p, transport);
	side_open(&t->c);
	qp_open(&t->p.a, NAMING, NULL);
	qp_open(&t->p.b, NAMING | ALL_RIGHTS,
		&(struct hd_ep_attr){ .tx_size = 4, .domain = DOMAIN, .stray = stray, .owner = t });
	qp_ready(&t->p.a, &t->p.b, NULL);
	qp_ready(&t->p.b, &t->p.a, NULL);
	assert_int_equal(hd_rq_open(t->c.node, false, &t->rq), 0);
	attr.rq = t->rq;
	attr.rx_cq = t->c.cq;
	assert_int_equal(hd_ep_open(t->c.node, &attr, &t->by), 0);
	test_fill(out, LONG, 4);
	memset(in, 0, LONG);
}

static void finish(struct three *t)
{
	if (t->via)
		hd_ep_close(t->via);
	if (t->guest)
		hd_ep_close(t->guest);
	if (t->by)
		hd_ep_close(t->by);
	assert_int_equal(hd_rq_close(t->rq), 0);
	side_close(&t->c);
	pair_close(&t->p);
}

static void post(struct three *t, size_t len, void *ctx)
{
	struct side by = { .node = t->c.node, .ep = t->by };

	qp_recv(&by, in, len, ctx);
}

static uint64_t naming(struct three *t)
{
	return (uint64_t)hd_ep_number(t->by) << 32 | 0x1234;
}

static void send_len(struct three *t, size_t len, void *ctx)
{
	struct hd_ep *ep = t->p.a.ep;

	assert_int_equal(
		hd_send(ep, *hd_ep_to(ep), out, len, 5, naming(t), ctx, HD_SEND_COMPLETE | HD_SEND_IMM), 0);
}

static void rma(struct three *t, enum hd_rma_op op, size_t len, uint64_t key, uint32_t flags)
{
	const struct iovec iov = { out, len };
	const struct hd_rma_seg seg = { (uintptr_t)in, len, key };
	struct hd_ep *ep = t->p.a.ep;

	assert_int_equal(hd_rma(ep, *hd_ep_to(ep),
				&(struct hd_rma_args){ .op = op,
						       .iov = &iov,
						       .count = 1,
						       .segs = &seg,
						       .seg_count = 1,
						       .imm = naming(t),
						       .ctx = out,
						       .flags = HD_SEND_COMPLETE | flags }),
			 0);
}

/*
 * Short and long, with and without a receive that waits; in order, and told of where the queue is.
 */
static void messages_get_there(void **state)
{
	static const size_t lens[] = { 8, LONG, 0, 40000 };
	struct three *t = &rig;

	EACH_TRANSPORT(name)
	{
		start(t, name);
		for (int i = 0; i < 8; i++)
			send_len(t, lens[i % 4], &out[i]);
		turns(t, 200);
		assert_null(hd_cq_peek(t->p.a.cq)); /* nothing is told of before it is received */
		for (int i = 0; i < 8; i++) {
			struct hd_cqe e;

			memset(in, 0, LONG);
			post(t, LONG, &in[i]);
			e = next(t, &t->c);
			assert_ptr_equal(e.ctx, &in[i]);
			assert_int_equal(e.err, 0);
			assert_int_equal(e.len, lens[i % 4]);
			assert_int_equal((uint32_t)e.imm, 0x1234);
			assert_int_equal(e.ep, hd_ep_index(t->guest));
			test_check(in, lens[i % 4], 4);
			expect(t, &out[i], 0);
		}
		assert_int_equal(t->strays, 1);
		finish(t);
	}
}

static void memory_is_reached(void **state)
{
	static const size_t lens[] = { 8, 3000, LONG };
	struct three *t = &rig;

	EACH_TRANSPORT(name)
	for (int i = 0; i < 3; i++) {
		struct hd_mr *mr;
		struct hd_cqe e;

		start(t, name);
		mr = qp_region(&t->c, in, LONG, 7);
		post(t, 0, in);
		rma(t, HD_RMA_WRITE, lens[i], hd_mr_key(mr), HD_SEND_IMM);
		expect(t, out, 0);
		test_check(in, lens[i], 4);
		e = next(t, &t->c);
		assert_int_equal(e.tag, lens[i]);
		memset(out, 0, LONG);
		rma(t, HD_RMA_READ, lens[i], hd_mr_key(mr), 0);
		expect(t, out, 0);
		test_check(out, lens[i], 4);
		rma(t, HD_RMA_WRITE, lens[i], hd_mr_key(mr) + 1, 0);
		expect(t, out, HD_S_ACCESS);
		turns(t, 5);
		assert_int_equal(hd_qp_inspect(t->p.b.ep->qp).status, HD_S_ACCESS);
		assert_int_equal(hd_mr_close(mr), 0);
		finish(t);
	}
}

static void words_are_changed(void **state)
{
	struct three *t = &rig;

	EACH_TRANSPORT(name)
	{
		uint64_t word = 41, add = 1, was = 0;
		const struct iovec ours = { &add, 8 }, result = { &was, 8 };
		struct hd_atomic_args args = { .how = HD_ATOMIC_FETCH,
					       .op = HD_ATOMIC_SUM,
					       .type = HD_ATOMIC_U64,
					       .iov = &ours,
					       .result_iov = &result,
					       .count = 1,
					       .result_count = 1,
					       .seg_count = 1,
					       .ctx = out,
					       .flags = HD_SEND_COMPLETE };
		struct hd_rma_seg seg = { (uintptr_t)&word, 8, 0 };
		struct hd_mr *mr;

		start(t, name);
		mr = qp_region(&t->c, &word, 8, 7);
		seg.key = hd_mr_key(mr);
		args.segs = &seg;
		args.imm = naming(t);
		assert_int_equal(hd_atomic(t->p.a.ep, *hd_ep_to(t->p.a.ep), &args), 0);
		expect(t, out, 0);
		assert_int_equal(was, 41);
		assert_int_equal(word, 42);
		assert_int_equal(hd_mr_close(mr), 0);
		finish(t);
	}
}

enum offence {
	NO_QUEUE,
	NO_RIGHT,
	NO_ROOM,
	NO_RECEIVE,
	NO_WAY /* the queue's node goes while its way is known */
};

/*
 * Who sends learns of it, and T fails as if the queue were its own node's; but for want
 * of a receive it goes on.
 */
static void errors_come_back(void **state)
{
	static const int errs[] = { HD_S_INVALID, HD_S_ACCESS, HD_S_LENGTH, HD_S_RNR, HD_S_INVALID };
	struct three *t = &rig;

	EACH_TRANSPORT(name)
	for (int i = NO_QUEUE; i <= NO_WAY; i++) {
		struct hd_qp_attr attr = qp_attr();
		struct hd_mr *mr;
		uint64_t imm;

		start(t, name);
		imm = naming(t);
		attr.rnr_retry = i == NO_RECEIVE ? 1 : 7;
		hd_ep_pair_tune(t->p.a.ep, &attr);
		mr = qp_region(&t->c, in, LONG, 7);
		if (i == NO_WAY) {
			post(t, LONG, in);
			send_len(t, 8, out);
			expect(t, out, 0);
			hd_ep_close(t->guest);
			hd_ep_close(t->by);
			t->guest = t->by = NULL;
			t->deaf = true;
		}
		if (i == NO_QUEUE || i == NO_WAY) {
			struct hd_ep *ep = t->p.a.ep;

			imm = i == NO_QUEUE ? UINT64_C(0x123456) << 32 : imm;
			assert_int_equal(hd_send(ep, *hd_ep_to(ep), out, 8, 5, imm, out, HD_SEND_COMPLETE),
					 0);
		} else if (i == NO_RIGHT) {
			hd_ep_allow(t->p.b.ep, HD_EP_REMOTE_READ);
			rma(t, HD_RMA_WRITE, 8, hd_mr_key(mr), 0);
		} else {
			if (i == NO_ROOM)
				post(t, 4, in);
			send_len(t, 8, out);
		}
		expect(t, out, errs[i]);
		turns(t, 5);
		assert_int_equal(hd_qp_inspect(t->p.b.ep->qp).status, i == NO_RECEIVE ? 0 : errs[i]);
		assert_int_equal(hd_mr_close(mr), 0);
		finish(t);
	}
}

/* Whatever is on its way is forgotten by whoever goes, and nothing else notices. */
static void anybody_may_go(void **state)
{
	struct three *t = &rig;

	EACH_TRANSPORT(name)
	for (int i = 0; i < 40; i++) {
		start(t, name);
		send_len(t, i & 1 ? LONG : 8, out);
		if (i & 2)
			post(t, LONG, in);
		turns(t, i / 4 * 3);
		switch (i % 5) {
		case 0:
			hd_ep_reset(t->p.b.ep);
			break;
		case 1:
			hd_ep_fail(t->p.b.ep);
			break;
		case 2:
			if (t->via)
				hd_ep_close(t->via);
			t->via = NULL;
			break;
		case 3:
			hd_ep_reset(t->p.a.ep);
			break;
		default:
			hd_ep_close(t->by);
			t->by = NULL;
			t->deaf = true;
		}
		turns(t, 20);
		finish(t);
	}
}

/*
 * The node that has asked goes, with its link: nobody is answered, and the way, and
 * the queue, are for others.
 */
static void who_has_asked_goes(void **state)
{
	struct three *t = &rig;

	EACH_TRANSPORT(name)
	for (int i = 0; i < 4; i++) {
		uint64_t end = hd_now_ns() + PATIENCE;
		struct hd_node_id id;

		start(t, name);
		send_len(t, i & 1 ? LONG : 8, out);
		while (!hd_xrc_proxy_is_busy(t->p.b.ep->qp)) {
			turn(t);
			assert_true(hd_now_ns() < end);
		}
		if (i & 2) /* until it waits at the queue */
			turns(t, 200);
		id = hd_core(t->p.a.node)->page->id;
		side_close(&t->p.a);
		while (hd_peer_of_ours(t->p.b.node, &id)) {
			hd_node_poll(t->p.b.node);
			hd_node_poll(t->c.node);
			assert_true(hd_now_ns() < end);
		}
		for (int n = 0; n < 20; n++) {
			hd_node_poll(t->p.b.node);
			hd_node_poll(t->c.node);
		}
		side_open(&t->p.a);
		finish(t);
	}
}

/* ---- questions ------------------------------------------------------------------------------- */

struct answered {
	struct hd_ask ask;
	int times, err;
};

static void told(struct hd_ask *ask, int err)
{
	struct answered *a = hd_container(ask, struct answered, ask);

	a->times++;
	a->err = err;
}

/* Says it the other way round; refuses what is short. */
static int reply(void *owner, const struct hd_question *q)
{
	const unsigned char *from = q->data;

	assert_non_null(q->from);
	for (size_t i = 0; i < q->len; i++)
		q->answer[i] = from[q->len - 1 - i];
	return q->len < 2 ? -EDOM : (int)q->len;
}

static void asking_open(struct side *s, int (*asked)(void *owner, const struct hd_question *q))
{
	const struct hd_ep_attr attr = { .type = HD_EP_RDM,
					 .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE,
					 .asked = asked };

	hd_ep_close(s->ep);
	assert_int_equal(hd_ep_open(s->node, &attr, &s->ep), 0);
}

static void questions_are_answered(void **state)
{
	static const size_t lens[] = { 5, HD_ASK_MAX, 1, 2 };
	static const int errs[] = { 0, 0, EDOM, 0 };
	struct answered a[4], none = { .times = 0 };
	struct pair p;

	EACH_TRANSPORT(name)
	{
		memset(a, 0, sizeof(a));
		pair_open(&p, name);
		asking_open(&p.a, NULL);
		asking_open(&p.b, reply);
		hd_dest_put(p.a.to);
		side_names(&p.a, &p.b);
		test_fill(out, HD_ASK_MAX, 1);
		for (int i = 0; i < 4; i++) {
			a[i].ask.told = told;
			assert_int_equal(hd_ep_ask(p.a.ep, p.a.to, out, lens[i], &a[i].ask), 0);
		}
		assert_int_equal(hd_ep_ask(p.a.ep, p.a.to, out, HD_ASK_MAX + 1, &none.ask), -EINVAL);
		assert_int_equal(hd_ep_ask(p.a.ep, p.a.to, out, 0, &none.ask), -EINVAL);
		while (!a[3].times)
			pair_settle(&p, 1);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(a[i].times, 1);
			assert_int_equal(a[i].err, errs[i]);
			assert_int_equal(a[i].ask.len, errs[i] ? 0 : lens[i]);
			for (size_t k = 0; k < a[i].ask.len; k++)
				assert_int_equal(a[i].ask.answer[k], out[lens[i] - 1 - k]);
		}
		pair_close(&p);
	}
}

/*
 * Nobody answers there, or he goes before he does: one errno, once; what is asked by an endpoint
 * that closes is never told of.
 */
static void questions_fail(void **state)
{
	struct answered a = { .times = 0 };
	struct pair p;

	EACH_TRANSPORT(name)
	for (int i = 0; i < 3; i++) {
		a = (struct answered){ .ask.told = told };
		pair_open(&p, name);
		asking_open(&p.a, NULL);
		asking_open(&p.b, i ? reply : NULL);
		hd_dest_put(p.a.to);
		side_names(&p.a, &p.b);
		assert_int_equal(hd_ep_ask(p.a.ep, p.a.to, out, 8, &a.ask), 0);
		if (i == 1) {
			hd_node_poll(p.a.node);
			asking_open(&p.b, reply);
		} else if (i == 2) {
			asking_open(&p.a, NULL);
		}
		pair_settle(&p, 20);
		while (i < 2 && !a.times)
			pair_settle(&p, 1);
		assert_int_equal(a.times, i < 2);
		assert_true(i == 2 || a.err == ECONNREFUSED);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_get_there),	  cmocka_unit_test(memory_is_reached),
		cmocka_unit_test(words_are_changed),	  cmocka_unit_test(errors_come_back),
		cmocka_unit_test(anybody_may_go),	  cmocka_unit_test(who_has_asked_goes),
		cmocka_unit_test(questions_are_answered), cmocka_unit_test(questions_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
