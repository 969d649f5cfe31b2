/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queues that are named by messages: which one gets what, who may, and what becomes of
 * messages when a queue goes.
 */
#include "engine/test/test_qp.h"

#include <errno.h>
#include <string.h>

#define NAMING (RC | HD_EP_XRC)
#define DOMAIN 9
#define LONG (700u << 10)

static unsigned char out[LONG], in[2][LONG];

/* A queue of side b, with a CQ of its own and the endpoint whose number is its name. */
struct queue {
	struct hd_cq *cq;
	struct hd_rq *rq;
	struct hd_ep *by;
};

static void queue_open(struct side *s, struct queue *q, uint64_t domain)
{
	struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE, .domain = domain, .pd = 7
	};

	hd_node_lock(s->node);
	assert_int_equal(hd_cq_open(s->node, &(struct hd_cq_attr){ .size = 64 }, &q->cq), 0);
	assert_int_equal(hd_rq_open(s->node, false, &q->rq), 0);
	attr.rq = q->rq;
	attr.rx_cq = q->cq;
	assert_int_equal(hd_ep_open(s->node, &attr, &q->by), 0);
	hd_node_unlock(s->node);
}

static void queue_close(struct side *s, struct queue *q)
{
	hd_node_lock(s->node);
	hd_ep_close(q->by);
	assert_int_equal(hd_rq_close(q->rq), 0);
	assert_int_equal(hd_cq_close(q->cq), 0);
	hd_node_unlock(s->node);
}

static void post(struct queue *q, void *buf, size_t len, void *ctx)
{
	struct side by = { .node = q->by->node, .ep = q->by };

	qp_recv(&by, buf, len, ctx);
}

static void send_to(struct side *s, uint32_t number, size_t len, void *ctx)
{
	hd_node_lock(s->node);
	assert_int_equal(hd_send(s->ep, *hd_ep_to(s->ep), out, len, 5, (uint64_t)number << 32 | 0x1234, ctx,
				 HD_SEND_COMPLETE),
			 0);
	hd_node_unlock(s->node);
}

static void open_both(struct pair *p, const char *transport)
{
	pair_open(p, transport);
	qp_open(&p->a, NAMING, NULL);
	qp_open(&p->b, NAMING | ALL_RIGHTS, &(struct hd_ep_attr){ .tx_size = 64, .domain = DOMAIN });
	qps_ready(p);
}

static struct hd_cqe next_of(struct pair *p, struct queue *q)
{
	struct side s = p->b;

	s.cq = q->cq;
	return pair_next(p, &s);
}

static void messages_go_where_they_say(void **state)
{
	static const size_t lens[] = { 8, LONG, 0, 40000 };
	struct queue q[2];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		open_both(&p, t);
		queue_open(&p.b, &q[0], DOMAIN);
		queue_open(&p.b, &q[1], DOMAIN);
		test_fill(out, LONG, 4);
		for (int i = 0; i < 8; i++)
			send_to(&p.a, hd_ep_number(q[i & 1].by), lens[i / 2], &out[i]);
		qp_silence(&p, &p.a, 10);
		for (int i = 0; i < 8; i++) {
			struct hd_cqe e;

			memset(in[i & 1], 0, LONG);
			post(&q[i & 1], in[i & 1], LONG, &in[i & 1][i]);
			e = next_of(&p, &q[i & 1]);
			assert_ptr_equal(e.ctx, &in[i & 1][i]);
			assert_int_equal(e.err, 0);
			assert_int_equal(e.ep, hd_ep_index(p.b.ep));
			assert_int_equal(e.len, lens[i / 2]);
			test_check(in[i & 1], lens[i / 2], 4);
			qp_expect(&p, &p.a, &out[i], 0);
		}
		assert_null(hd_cq_peek(p.b.cq));
		queue_close(&p.b, &q[0]);
		queue_close(&p.b, &q[1]);
		pair_close(&p);
	}
}

/* Nobody has the number, or somebody of another domain, or of none. */
static void strangers_are_refused(void **state)
{
	struct queue own, other;
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 4; i++) {
		uint32_t number;

		open_both(&p, t);
		queue_open(&p.b, &own, DOMAIN);
		queue_open(&p.b, &other, i == 1 ? DOMAIN + 1 : 0);
		number = i == 0	  ? hd_ep_number(own.by) + 100
			 : i == 3 ? hd_ep_number(p.b.ep)
				  : hd_ep_number(other.by);
		post(&own, in[0], 8, in[0]);
		post(&other, in[1], 8, in[1]);
		send_to(&p.a, number, 8, &out[0]);
		qp_expect(&p, &p.a, &out[0], HD_S_INVALID);
		pair_settle(&p, 5);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, HD_S_INVALID);
		assert_null(hd_cq_peek(own.cq));
		assert_null(hd_cq_peek(other.cq));
		queue_close(&p.b, &own);
		queue_close(&p.b, &other);
		pair_close(&p);
	}
}

/* Those that name queues and those that do not have nothing to say to each other. */
static void kinds_do_not_mix(void **state)
{
	struct queue q;
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 2; i++) {
		pair_open(&p, t);
		qp_open(&p.a, i ? NAMING : RC, NULL);
		qp_open(&p.b, i ? RC : NAMING, &(struct hd_ep_attr){ .domain = DOMAIN });
		qps_ready(&p);
		queue_open(&p.b, &q, DOMAIN);
		post(&q, in[0], 8, in[0]);
		if (i)
			qp_recv(&p.b, in[1], 8, in[1]);
		send_to(&p.a, i ? hd_ep_number(q.by) : 0, 8, &out[0]);
		qp_expect(&p, &p.a, &out[0], HD_S_REFUSED);
		assert_null(hd_cq_peek(q.cq));
		assert_null(hd_cq_peek(p.b.cq));
		queue_close(&p.b, &q);
		pair_close(&p);
	}
}

/*
 * It goes while a message waits for a receive of its, or is coming in: its sender learns of it, and
 * the other queue is as it was.
 */
static void queues_go(void **state)
{
	struct queue q[2];
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	for (int coming = 0; coming < 2; coming++) {
		open_both(&p, t);
		queue_open(&p.b, &q[0], DOMAIN);
		queue_open(&p.b, &q[1], DOMAIN);
		post(&q[1], in[1], 8, in[1]);
		send_to(&p.a, hd_ep_number(q[0].by), LONG, &out[0]);
		if (coming)
			post(&q[0], in[0], LONG, in[0]);
		for (int i = 0; i < 3; i++) {
			hd_node_poll(p.b.node);
			hd_node_poll(p.a.node);
		}
		queue_close(&p.b, &q[0]);
		e = pair_next(&p, &p.a);
		assert_ptr_equal(e.ctx, &out[0]);
		assert_true(coming || e.err == HD_S_INVALID);
		pair_settle(&p, 5);
		assert_null(hd_cq_peek(q[1].cq));
		assert_int_equal(hd_rq_inspect(q[1].rq).posted[0], 1);
		queue_close(&p.b, &q[1]);
		pair_close(&p);
	}
}

static void memory_is_of_its_zone(void **state)
{
	static const uint32_t zones[] = { 7, 8 };
	struct queue q;
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 2; i++) {
		const struct iovec iov = { out, 64 };
		struct hd_mr *mr;
		struct hd_rma_seg seg;

		open_both(&p, t);
		queue_open(&p.b, &q, DOMAIN);
		mr = qp_region(&p.b, in[0], LONG, zones[i]);
		seg = (struct hd_rma_seg){ (uintptr_t)in[0], 64, hd_mr_key(mr) };
		memset(in[0], 0, 64);
		test_fill(out, 64, 2);
		hd_node_lock(p.a.node);
		assert_int_equal(hd_rma(p.a.ep, *hd_ep_to(p.a.ep),
					&(struct hd_rma_args){ .op = HD_RMA_WRITE,
							       .iov = &iov,
							       .count = 1,
							       .segs = &seg,
							       .seg_count = 1,
							       .imm = (uint64_t)hd_ep_number(q.by) << 32,
							       .ctx = out,
							       .flags = HD_SEND_COMPLETE }),
				 0);
		hd_node_unlock(p.a.node);
		qp_expect(&p, &p.a, out, i ? HD_S_ACCESS : 0);
		if (!i)
			test_check(in[0], 64, 2);
		hd_node_lock(p.b.node);
		assert_int_equal(hd_mr_close(mr), 0);
		hd_node_unlock(p.b.node);
		queue_close(&p.b, &q);
		pair_close(&p);
	}
}

/* ---- a write that finds its receive taken ---------------------------------------------------- */

/* A second pair of the same two nodes, for the same queues. */
struct second {
	struct side a, b;
};

static void second_open(struct pair *p, struct second *s)
{
	*s = (struct second){ .a = { .node = p->a.node, .cq = p->a.cq },
			      .b = { .node = p->b.node, .cq = p->b.cq } };
	qp_open(&s->a, NAMING, NULL);
	qp_open(&s->b, NAMING | ALL_RIGHTS, &(struct hd_ep_attr){ .tx_size = 64, .domain = DOMAIN });
	qp_ready(&s->a, &s->b, NULL);
	qp_ready(&s->b, &s->a, NULL);
}

static void side_drop(struct side *s)
{
	hd_node_lock(s->node);
	hd_ep_close(s->ep);
	hd_node_unlock(s->node);
	s->ep = NULL;
}

static void write_long(struct pair *p, struct hd_mr *mr, uint32_t number)
{
	const struct iovec iov = { out, LONG };
	const struct hd_rma_seg seg = { (uintptr_t)in[0], LONG, hd_mr_key(mr) };

	hd_node_lock(p->a.node);
	assert_int_equal(hd_rma(p->a.ep, *hd_ep_to(p->a.ep),
				&(struct hd_rma_args){ .op = HD_RMA_WRITE,
						       .iov = &iov,
						       .count = 1,
						       .segs = &seg,
						       .seg_count = 1,
						       .imm = (uint64_t)number << 32 | 7,
						       .ctx = out,
						       .flags = HD_SEND_COMPLETE | HD_SEND_IMM }),
			 0);
	hd_node_unlock(p->a.node);
}

/*
 * A long write with immediate data is let in, for there is a receive; which the second pair's
 * message takes before the write is over.
 */
static struct hd_mr *write_without_receive(struct pair *p, struct second *s, struct queue *q)
{
	struct hd_mr *mr = qp_region(&p->b, in[0], LONG, 7);

	pair_settle(p, 20);
	post(q, in[1], 8, in[1]);
	write_long(p, mr, hd_ep_number(q->by));
	send_to(&s->a, hd_ep_number(q->by), 8, s);
	assert_int_equal(next_of(p, q).ep, hd_ep_index(s->b.ep));
	for (int i = 0; i < 2; i++) /* of the write and of the message, which are of two pairs */
		assert_int_equal(pair_next(p, &p->a).err, 0);
	assert_null(hd_cq_peek(q->cq));
	return mr;
}

static void finish(struct pair *p, struct second *s, struct hd_mr *mr)
{
	side_drop(&s->a);
	side_drop(&s->b);
	hd_node_lock(p->b.node);
	assert_int_equal(hd_mr_close(mr), 0);
	hd_node_unlock(p->b.node);
}

/* It waits for the next receive; unless its pair goes before. */
static void a_write_waits_for_its_receive(void **state)
{
	EACH_TRANSPORT(t)
	for (int goes = 0; goes < 3; goes++) {
		struct second s;
		struct hd_mr *mr;
		struct queue q;
		struct hd_cqe e;
		struct pair p;

		open_both(&p, t);
		queue_open(&p.b, &q, DOMAIN);
		second_open(&p, &s);
		mr = write_without_receive(&p, &s, &q);
		if (goes == 1) {
			qp_open(&p.b, NAMING, NULL); /* another, for this one closes */
		} else if (goes == 2) {
			hd_node_lock(p.b.node);
			hd_ep_reset(p.b.ep);
			hd_node_unlock(p.b.node);
		}
		post(&q, in[1], 8, &q);
		pair_settle(&p, 5);
		assert_int_equal(hd_rq_inspect(q.rq).posted[0], goes != 0);
		if (!goes) {
			e = next_of(&p, &q);
			assert_ptr_equal(e.ctx, &q);
			assert_int_equal(e.tag, LONG);
			assert_true(e.flags & HD_C_WRITE);
		}
		assert_null(hd_cq_peek(q.cq));
		finish(&p, &s, mr);
		queue_close(&p.b, &q);
		pair_close(&p);
	}
}

/* Nor does its pair turn to another queue before: it would complete there. */
static void a_write_completes_where_it_was_named(void **state)
{
	EACH_TRANSPORT(t)
	{
		struct queue q[2];
		struct second s;
		struct hd_mr *mr;
		struct hd_cqe e;
		struct pair p;

		open_both(&p, t);
		queue_open(&p.b, &q[0], DOMAIN);
		queue_open(&p.b, &q[1], DOMAIN);
		second_open(&p, &s);
		mr = write_without_receive(&p, &s, &q[0]);
		post(&q[1], in[1], 8, &q[1]);
		send_to(&p.a, hd_ep_number(q[1].by), 8, &out[1]);
		pair_settle(&p, 10);
		assert_null(hd_cq_peek(q[1].cq));
		post(&q[0], in[1], 8, &q[0]);
		e = next_of(&p, &q[0]);
		assert_ptr_equal(e.ctx, &q[0]);
		assert_true(e.flags & HD_C_WRITE);
		assert_ptr_equal(next_of(&p, &q[1]).ctx, &q[1]);
		qp_expect(&p, &p.a, &out[1], 0);
		finish(&p, &s, mr);
		queue_close(&p.b, &q[0]);
		queue_close(&p.b, &q[1]);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_go_where_they_say),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(kinds_do_not_mix),
		cmocka_unit_test(queues_go),
		cmocka_unit_test(memory_is_of_its_zone),
		cmocka_unit_test(a_write_waits_for_its_receive),
		cmocka_unit_test(a_write_completes_where_it_was_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
