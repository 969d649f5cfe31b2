/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What queue pairs keep back: before they are ready, without a receive, behind something else; for
 * how long, and in which order.
 */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONG (300u << 10)

static unsigned char out[1 << 20], in[1 << 20], memory[1 << 20];

/*
 * A has a queue pair that is ready, as `mine` says; B's is ready as `theirs`
 * says, or not at all (NULL).
 */
static void a_is_ready(struct pair *p, const char *transport, const struct hd_qp_attr *mine,
		       const struct hd_qp_attr *theirs)
{
	qps_new(p, transport, RC);
	qp_ready(&p->a, &p->b, mine);
	if (theirs)
		qp_ready(&p->b, &p->a, theirs);
}

/* B posts a receive, and what A has sent from `out` comes. */
static void takes_in(struct pair *p)
{
	qp_recv(&p->b, in, sizeof(in), in);
	qp_expect(p, &p->b, in, 0);
	qp_expect(p, &p->a, out, 0);
}

static void becomes_ready_and_takes_in(struct pair *p)
{
	qp_ready(&p->b, &p->a, NULL);
	takes_in(p);
}

static void waits_until_ready(void **state)
{
	static const size_t lens[] = { 8, LONG, 40000, 0 };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		a_is_ready(&p, t, NULL, NULL);
		for (int i = 0; i < 4; i++)
			qp_recv(&p.b, in, sizeof(in), &in[i]);
		for (int i = 0; i < 4; i++)
			qp_send(&p.a, out, lens[i], &out[i]);
		qp_silence(&p, &p.a, 20);
		qp_silence(&p, &p.b, 20);
		qp_ready(&p.b, &p.a, NULL);
		for (int i = 0; i < 4; i++)
			assert_int_equal(qp_expect(&p, &p.b, &in[i], 0).len, lens[i]);
		for (int i = 0; i < 4; i++)
			qp_expect(&p, &p.a, &out[i], 0);
		pair_close(&p);
	}
}

static void is_not_ready_in_time(void **state)
{
	struct hd_qp_attr attr = qp_attr();
	struct pair p;

	attr.timeout_ms = 30;
	EACH_TRANSPORT(t)
	{
		a_is_ready(&p, t, &attr, NULL);
		for (int i = 0; i < 3; i++)
			qp_send(&p.a, out, i ? 8 : LONG, &out[i]);
		qp_expect(&p, &p.a, &out[0], HD_S_TIMEOUT);
		for (int i = 1; i < 3; i++)
			qp_expect(&p, &p.a, &out[i], HD_S_CANCELLED);
		assert_int_equal(hd_qp_inspect(p.a.ep->qp).status, HD_S_TIMEOUT);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, 0);
		qp_recv(&p.b, in, sizeof(in), in);
		qp_ready(&p.b, &p.a, NULL);
		qp_silence(&p, &p.b, 20);
		pair_close(&p);
	}
}

/*
 * What waited until the endpoint was ready, and now waits for a receive, has all the time that
 * its sender has for that.
 */
static void each_wait_has_a_time_of_its_own(void **state)
{
	struct hd_qp_attr attr = qp_attr();
	struct pair p;

	attr.timeout_ms = 3600 * 1000;
	EACH_TRANSPORT(t)
	{
		a_is_ready(&p, t, &attr, NULL);
		qp_send(&p.a, out, 8, out);
		while (!hd_qp_inspect(p.b.ep->qp).queued)
			pair_settle(&p, 1);
		assert_true(hd_qp_inspect(p.b.ep->qp).due != 0);
		qp_ready(&p.b, &p.a, NULL);
		assert_true(hd_qp_inspect(p.b.ep->qp).rnr_wait);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).due, 0); /* qp_attr: without end */
		takes_in(&p);
		pair_close(&p);
	}
}

static int senders_held(const struct side *s)
{
	struct hd_peer *peer, *next;
	int n = 0;

	HASH_ITER(hh, hd_links(s->node)->peers, peer, next)
		n += hd_peer_inspect(peer).held > 0;
	return n;
}

static void settle_until_senders(struct pair *p, struct side *third, int n)
{
	while (senders_held(&p->b) != n) {
		if (third)
			hd_node_poll(third->node);
		pair_settle(p, 1);
	}
}

/*
 * B is not ready. A third side has sent it `count` messages, with an hour of patience; then A,
 * whose patience has no end, one.
 */
static void two_wait(struct pair *p, const char *transport, struct side *third, int count)
{
	struct hd_qp_attr hasty = qp_attr();

	hasty.timeout_ms = 3600 * 1000;
	qps_new(p, transport, RC);
	side_open(third);
	qp_open(third, RC, NULL);
	assert_int_equal(third->ep->gen, p->a.ep->gen);
	qp_ready(third, &p->b, &hasty);
	for (int i = 0; i < count; i++)
		qp_send(third, out, 8, &out[i]);
	settle_until_senders(p, third, 1);
	assert_true(hd_qp_inspect(p->b.ep->qp).due != 0);
	qp_ready(&p->a, &p->b, NULL);
	qp_send(&p->a, out, 8, out);
	settle_until_senders(p, third, 2);
}

/* Two wait; when the first has been given up, the other has waited as well. */
static void all_wait_from_when_they_came(void **state)
{
	struct hd_qp_attr attr = qp_attr();
	struct hd_pkt_epoch longest = { 0 };
	struct pair p;

	attr.timeout_ms = 3600 * 1000;
	hd_patience_set(&longest, 7, attr.timeout_ms);
	EACH_TRANSPORT(t)
	{
		struct side c = { 0 };
		uint64_t came;

		qps_new(&p, t, RC);
		side_open(&c);
		qp_open(&c, RC, NULL);
		qp_ready(&c, &p.b, &attr);
		qp_send(&c, out, 8, out);
		settle_until_senders(&p, &c, 1);
		qp_ready(&p.a, &p.b, &attr);
		qp_send(&p.a, out, 8, out);
		settle_until_senders(&p, &c, 2);
		came = hd_now_ns();
		pair_settle(&p, 30);
		side_close(&c);
		while (senders_held(&p.b) > 1 || !hd_qp_inspect(p.b.ep->qp).due)
			pair_settle(&p, 1);
		assert_in_range(hd_qp_inspect(p.b.ep->qp).due, 1,
				came + (hd_patience_ms(longest) + 5) * HD_NS_PER_MS);
		pair_close(&p);
	}
}

/* Two wait; the one that came first goes, and takes its time with it. */
static void a_time_goes_with_its_sender(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct side c = { 0 };

		two_wait(&p, t, &c, 1);
		side_close(&c);
		settle_until_senders(&p, NULL, 1);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).due, 0);
		becomes_ready_and_takes_in(&p);
		pair_close(&p);
	}
}

/*
 * Two wait for one that is not ready: when time is up for the first, nothing happens to the other,
 * whose generation is the same.
 */
static void a_time_is_its_senders_own(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct side c = { 0 };

		two_wait(&p, t, &c, 3);
		hd_node_lock(p.b.node);
		hd_respq_timed(&p.b.ep->qp->respq.timer);
		hd_node_unlock(p.b.node);
		assert_int_equal(senders_held(&p.b), 1);
		while (hd_cq_count(c.cq) < 3)
			settle_until_senders(&p, &c, 1), hd_node_poll(c.node);
		assert_int_equal(hd_cq_peek(c.cq)->err, HD_S_TIMEOUT);
		becomes_ready_and_takes_in(&p);
		side_close(&c);
		pair_close(&p);
	}
}

static void waits_for_receive(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 20; i++) {
			memset(out, i, 8);
			qp_send_as(&p.a, out, i % 5 ? 8 : LONG, &out[i], HD_SEND_COMPLETE | HD_SEND_IMM);
			qp_silence(&p, &p.a, 2);
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			assert_int_equal((uint32_t)qp_expect(&p, &p.b, &in[i], 0).imm, 0x1234);
			assert_int_equal(in[7], i);
			qp_expect(&p, &p.a, &out[i], 0);
		}
		pair_close(&p);
	}
}

/*
 * Retries are counted at the target alone, which does not fail for them; what came behind
 * is not delivered either.
 */
static void no_receive_in_time(void **state)
{
	struct hd_qp_attr mine = qp_attr(), theirs = qp_attr();
	struct pair p;
	uint64_t began;

	mine.rnr_retry = 3;
	theirs.rnr_timer_us = 10000;
	EACH_TRANSPORT(t)
	{
		a_is_ready(&p, t, &mine, &theirs);
		qp_recv(&p.b, in, sizeof(in), in);
		for (int i = 0; i < 3; i++)
			qp_send(&p.a, out, 8, &out[i]);
		began = hd_now_ns();
		qp_expect(&p, &p.b, in, 0);
		qp_expect(&p, &p.a, &out[0], 0);
		qp_expect(&p, &p.a, &out[1], HD_S_RNR);
		assert_true(hd_now_ns() - began > 25 * HD_NS_PER_MS);
		qp_expect(&p, &p.a, &out[2], HD_S_CANCELLED);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, 0);
		qp_recv(&p.b, in, sizeof(in), in);
		qp_silence(&p, &p.b, 10);
		/* both begin anew */
		hd_ep_reset(p.a.ep);
		hd_ep_reset(p.b.ep);
		qps_ready(&p);
		qp_send(&p.a, out, 8, out);
		qp_silence(&p, &p.b, 10); /* receives went with the reset */
		takes_in(&p);
		pair_close(&p);
	}
}

static void no_retries(void **state)
{
	struct hd_qp_attr mine = qp_attr(), theirs = qp_attr();
	struct pair p;

	mine.rnr_retry = 0;
	EACH_TRANSPORT(t)
	{
		a_is_ready(&p, t, &mine, &theirs);
		qp_send(&p.a, out, LONG, out);
		qp_expect(&p, &p.a, out, HD_S_RNR);
		pair_close(&p);
	}
}

/* One-sided operations do not overtake a message that waits, whoever carries them out. */
static void keeps_order(void **state)
{
	struct hd_mr *mr;
	uint64_t key;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		memset(memory, 0, sizeof(memory));
		memset(out, 7, sizeof(out));
		qps_open(&p, t, RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		key = hd_mr_key(mr);
		qp_send(&p.a, out, 8, &out[0]);
		qp_rma(&p.a, HD_RMA_WRITE, out, 8, key, memory, &out[1], 0);
		qp_rma(&p.a, HD_RMA_WRITE, out, LONG, key, memory + 4096, &out[2], 0);
		qp_rma(&p.a, HD_RMA_READ, out + LONG, 16384, key, memory + 4096, &out[3], 0);
		qp_send(&p.a, out, 8, &out[4]);
		qp_silence(&p, &p.a, 20);
		assert_int_equal(memory[0], 0);
		assert_int_equal(memory[4096], 0);
		memset(out + LONG, 0, 16384);
		qp_recv(&p.b, in, sizeof(in), &in[0]);
		qp_recv(&p.b, in, sizeof(in), &in[1]);
		for (int i = 0; i < 2; i++)
			qp_expect(&p, &p.b, &in[i], 0);
		assert_int_equal(memory[4096 + LONG - 1], 7);
		for (int i = 0; i < 5; i++)
			assert_int_equal(qp_expect(&p, &p.a, &out[i], 0).tag, i % 4 ? 6 : 5);
		assert_int_equal(out[LONG + 16383], 7);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

static void written_with_data(void **state)
{
	struct hd_cqe e;
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		for (int i = 0; i < 3; i++) {
			size_t len = i == 2 ? LONG : i * 100u;

			memset(memory, 0, len);
			memset(out, 9, sizeof(out));
			qp_rma(&p.a, HD_RMA_WRITE, out, len, hd_mr_key(mr), memory, out, HD_SEND_IMM);
			qp_silence(&p, &p.a, 5);
			qp_recv(&p.b, in, sizeof(in), in);
			e = qp_expect(&p, &p.b, in, 0);
			assert_int_equal(e.flags, HD_C_RECV | HD_C_MSG | HD_C_IMM | HD_C_RMA | HD_C_REMOTE |
							  HD_C_WRITE);
			assert_int_equal((uint32_t)e.imm, 99);
			assert_int_equal(e.tag, len);
			if (len)
				assert_int_equal(memory[len - 1], 9);
			qp_expect(&p, &p.a, out, 0);
		}
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* While one waits, others between the same nodes go on, however much it has posted. */
static void others_go_on(void **state)
{
	struct hd_ep *slow[2];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 64; i++)
			qp_send(&p.a, out, 16000, &out[i]);
		slow[0] = p.a.ep;
		slow[1] = p.b.ep;
		p.a.ep = p.b.ep = NULL;
		qp_open(&p.a, RC, NULL);
		qp_open(&p.b, RC, NULL);
		qps_ready(&p);
		for (int i = 0; i < 100; i++) {
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_send(&p.a, out, i % 10 ? 16000 : LONG, &out[i]);
			qp_expect(&p, &p.b, &in[i], 0);
			qp_expect(&p, &p.a, &out[i], 0);
		}
		hd_ep_close(p.a.ep);
		hd_ep_close(p.b.ep);
		p.a.ep = slow[0];
		p.b.ep = slow[1];
		for (int i = 0; i < 64; i++) {
			qp_recv(&p.b, in, sizeof(in), &in[i]);
			qp_expect(&p, &p.b, &in[i], 0);
		}
		for (int i = 0; i < 64; i++)
			qp_expect(&p, &p.a, &out[i], 0);
		pair_close(&p);
	}
}

/* A queue that several share lets in whoever has waited longest. */
static void shared_queue(void **state)
{
	const struct iovec iov = { in, sizeof(in) };
	struct hd_recv_args args = { .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE };
	struct hd_ep *post, *a[3], *b[3];
	struct hd_rq *rq;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		assert_int_equal(hd_rq_open(p.b.node, false, &rq), 0);
		assert_int_equal(hd_ep_open(p.b.node,
					    &(struct hd_ep_attr){
						    .type = HD_EP_RDM, .policy = HD_EP_NAMELESS, .rq = rq },
					    &post),
				 0);
		hd_ep_close(p.a.ep);
		hd_ep_close(p.b.ep);
		for (int i = 0; i < 3; i++) {
			p.a.ep = p.b.ep = NULL;
			qp_open(&p.a, RC, NULL);
			qp_open(&p.b, RC, &(struct hd_ep_attr){ .rq = rq });
			qps_ready(&p);
			qp_send(&p.a, out, 8, &out[i]);
			pair_settle(&p, 30);
			a[i] = p.a.ep;
			b[i] = p.b.ep;
		}
		assert_null(hd_cq_peek(p.b.cq));
		for (int i = 0; i < 3; i++) {
			args.ctx = &in[i];
			assert_int_equal(hd_recv(post, &args), 0);
			p.b.ep = b[i];
			qp_expect(&p, &p.b, &in[i], 0);
			p.a.ep = a[i];
			qp_expect(&p, &p.a, &out[i], 0);
		}
		for (int i = 0; i < 2; i++) {
			hd_ep_close(a[i]);
			hd_ep_close(b[i]);
		}
		hd_ep_close(p.b.ep);
		hd_ep_close(post);
		assert_int_equal(hd_rq_close(rq), 0);
		p.b.ep = NULL;
		side_endpoint(&p.b, HD_EP_RDM);
		pair_close(&p);
	}
}

/* B has no receive for what A has sent. */
static void open_with_four_held(struct pair *p, const char *transport)
{
	qps_open(p, transport, RC);
	for (int i = 0; i < 4; i++)
		qp_send(&p->a, out, i % 2 ? LONG : 8, &out[i]);
	pair_settle(p, 20);
}

/* Its sender goes, or fails, while a message is held. */
static void sender_gone(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int how = 0; how < 2; how++) {
			open_with_four_held(&p, t);
			if (how) {
				hd_ep_fail(p.a.ep);
				for (int i = 0; i < 4; i++)
					qp_expect(&p, &p.a, &out[i], HD_S_CANCELLED);
				pair_settle(&p, 20);
			} else {
				side_close(&p.a);
				side_open(&p.a);
				pair_settle(&p, 20);
				qp_recv(&p.b, in, sizeof(in), in);
				qp_silence(&p, &p.b, 20);
			}
			pair_close(&p);
		}
	}
}

/* The one that holds closes, or fails: senders hear of it. */
static void holder_gone(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int how = 0; how < 3; how++) {
			open_with_four_held(&p, t);
			if (how == 2) {
				hd_ep_fail(p.b.ep);
				qp_expect(&p, &p.a, &out[0], HD_S_REFUSED);
			} else if (how) {
				side_endpoint(&p.b, HD_EP_RDM);
				qp_expect(&p, &p.a, &out[0], HD_S_REFUSED);
			} else {
				hd_ep_reset(p.b.ep);
				qp_expect(&p, &p.a, &out[0], HD_S_REFUSED);
			}
			for (int i = 1; i < 4; i++)
				qp_expect(&p, &p.a, &out[i], HD_S_CANCELLED);
			pair_close(&p);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_until_ready),
		cmocka_unit_test(is_not_ready_in_time),
		cmocka_unit_test(waits_for_receive),
		cmocka_unit_test(no_receive_in_time),
		cmocka_unit_test(no_retries),
		cmocka_unit_test(keeps_order),
		cmocka_unit_test(written_with_data),
		cmocka_unit_test(others_go_on),
		cmocka_unit_test(shared_queue),
		cmocka_unit_test(sender_gone),
		cmocka_unit_test(holder_gone),
		cmocka_unit_test(each_wait_has_a_time_of_its_own),
		cmocka_unit_test(all_wait_from_when_they_came),
		cmocka_unit_test(a_time_goes_with_its_sender),
		cmocka_unit_test(a_time_is_its_senders_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
