/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Packet sequence numbers, and the lives of queue pairs: which messages a life takes. */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <string.h>

#define LONG (300u << 10)
#define SOON 30 /* ms */

static unsigned char out[LONG], in[LONG], memory[64];

/* s begins a life: its requests with this number, those of the other side with that. */
static void begin(struct side *s, struct side *other, uint32_t sq_psn, uint32_t rq_psn)
{
	struct hd_qp_attr attr = qp_attr();

	attr.timeout_ms = SOON;
	attr.rq_psn = rq_psn;
	qp_ready(s, other, &attr);
	hd_node_lock(s->node);
	hd_ep_set_psn(s->ep, sq_psn);
	hd_node_unlock(s->node);
}

static void begin_both(struct pair *p, uint32_t a, uint32_t b)
{
	begin(&p->a, &p->b, a, b);
	begin(&p->b, &p->a, b, a);
}

static void reset(struct side *s)
{
	hd_node_lock(s->node);
	hd_ep_reset(s->ep);
	hd_cq_drop(s->cq, hd_ep_index(s->ep));
	hd_node_unlock(s->node);
}

static void exchange(struct pair *p, struct side *from, struct side *to, size_t len)
{
	qp_recv(to, in, sizeof(in), in);
	qp_send(from, out, len, out);
	qp_expect(p, to, in, 0);
	qp_expect(p, from, out, 0);
}

static void expect_psns(const struct side *s, uint32_t sq, uint32_t rq)
{
	uint32_t got_sq, got_rq;

	hd_ep_psns(s->ep, &got_sq, &got_rq);
	assert_int_equal(got_sq, sq);
	assert_int_equal(got_rq, rq);
}

/* They run on, through 0, and what both ends say of them stays the same. */
static void count(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		begin_both(&p, 0xfffffe, 7);
		for (uint32_t i = 0; i < 5; i++) {
			expect_psns(&p.a, (0xfffffe + i) & 0xffffff, 7 + i);
			expect_psns(&p.b, 7 + i, (0xfffffe + i) & 0xffffff);
			exchange(&p, &p.a, &p.b, i & 1 ? LONG : 8);
			exchange(&p, &p.b, &p.a, 8);
		}
		pair_close(&p);
	}
}

/* Bits beyond 24 are no part of them. */
static void high_bits(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		begin(&p.a, &p.b, 0x5000001, 2);
		begin(&p.b, &p.a, 0x7000002, 1);
		exchange(&p, &p.a, &p.b, 8);
		exchange(&p, &p.b, &p.a, 8);
		pair_close(&p);
	}
}

/* Whatever it is, it ends as if nobody were there, and touches nothing. */
static void disagree(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	for (int what = 0; what < 4; what++)
		EACH_TRANSPORT(t)
		{
			qps_new(&p, t, RC);
			begin(&p.a, &p.b, 1, 2);
			begin(&p.b, &p.a, 2, what & 1 ? 0 : 3);
			mr = qp_region(&p.b, memory, sizeof(memory), 0);
			memset(memory, 1, sizeof(memory));
			memset(out, 2, 64);
			qp_recv(&p.b, in, sizeof(in), in);
			if (what == 2)
				qp_rma(&p.a, HD_RMA_WRITE, out, 64, hd_mr_key(mr), memory, out, 0);
			else if (what == 3)
				qp_rma(&p.a, HD_RMA_READ, out, 64, hd_mr_key(mr), memory, out, 0);
			else
				qp_send(&p.a, out, what ? LONG : 8, out);
			qp_expect(&p, &p.a, out, HD_S_TIMEOUT);
			assert_null(hd_cq_peek(p.b.cq));
			assert_int_equal(memory[63], 1);
			assert_int_equal(out[63], 2);
			assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, 0);
			hd_mr_close(mr);
			pair_close(&p);
		}
}

/* Each message of an unreliable pair begins anew. */
static void unreliable(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, UC);
		begin(&p.a, &p.b, 1, 2);
		begin(&p.b, &p.a, 2, 3);
		exchange(&p, &p.a, &p.b, 8);
		exchange(&p, &p.a, &p.b, 8);
		pair_close(&p);
	}
}

/*
 * What was sent to a life that has ended, and nobody has looked at, is not for the next one, though
 * its numbers are the same.
 */
static void leftovers(void **state)
{
	struct pair p;

	for (int what = 0; what < 4; what++)
		EACH_TRANSPORT(t)
		{
			qps_new(&p, t, what & 2 ? UC : RC);
			begin_both(&p, 1, 1);
			pair_settle(&p, 5);
			exchange(&p, &p.b, &p.a, 8); /* there is a link; b has let in nothing */
			memset(out, 1, 8);
			qp_send(&p.a, out, 8, out);
			if (what & 1)
				qp_send(&p.a, out, 8, out);
			reset(&p.b);
			begin(&p.b, &p.a, 1, 1);
			qp_recv(&p.b, in, sizeof(in), in);
			reset(&p.a);
			begin(&p.a, &p.b, 1, 1);
			qp_silence(&p, &p.b, 10);
			memset(out, 2, 8);
			qp_send(&p.a, out, 8, out);
			qp_expect(&p, &p.b, in, 0);
			qp_expect(&p, &p.a, out, 0);
			assert_int_equal(in[0], 2);
			exchange(&p, &p.b, &p.a, 8);
			pair_close(&p);
		}
}

/* a's queue pair has another, at the same place, as its successor. */
static void succeed(struct pair *p)
{
	uint32_t index = hd_ep_index(p->a.ep);

	qp_open(&p->a, RC | ALL_RIGHTS, NULL);
	assert_int_equal(hd_ep_index(p->a.ep), index);
}

/*
 * What a queue pair had sent that is closed is not its successor's, though
 * nobody had looked at it yet.
 */
static void closed(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		qp_ready(&p.a, &p.b, NULL);
		memset(out, 1, 8);
		qp_send(&p.a, out, 8, out);
		while (!hd_qp_inspect(p.b.ep->qp).queued)
			pair_settle(&p, 1);
		succeed(&p);
		qps_ready(&p);
		qp_recv(&p.b, in, sizeof(in), in);
		memset(out, 2, 8);
		qp_send(&p.a, out, 8, out);
		qp_expect(&p, &p.b, in, 0);
		assert_int_equal(in[0], 2);
		qp_expect(&p, &p.a, out, 0);
		pair_close(&p);
	}
}

/* b alone makes progress until it holds something of this generation of a's. */
static void turn_until_queued(struct pair *p, const struct hd_peer *a)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!hd_qp_inspect(p->b.ep->qp).queued || hd_remote_gen(a, hd_ep_index(p->a.ep)) != p->a.ep->gen) {
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
}

/*
 * a does not look what has come: two questions wait there, of which the first was about one that
 * has been closed meanwhile. TCP would send nothing.
 */
static void late_answers(void **state)
{
	const struct hd_peer *a;
	struct pair p;

	qps_new(&p, "shm", RC);
	qps_ready(&p);
	exchange(&p, &p.b, &p.a, 8); /* b has let in nothing */
	a = p.b.ep->qp->life.dest->peer;
	qp_send(&p.a, out, 8, out);
	reset(&p.b);
	qp_ready(&p.b, &p.a, NULL);
	turn_until_queued(&p, a);
	assert_true(p.b.ep->qp->life.resp.epoch_asked);
	succeed(&p);
	qp_ready(&p.a, &p.b, NULL);
	qp_send(&p.a, out, 8, out);
	turn_until_queued(&p, a);
	reset(&p.b);
	qp_ready(&p.b, &p.a, NULL);
	assert_true(p.b.ep->qp->life.resp.epoch_asked);
	qp_recv(&p.b, in, sizeof(in), in);
	qp_expect(&p, &p.b, in, 0);
	qp_expect(&p, &p.a, out, 0);
	pair_close(&p);
}

/* Their count wraps. */
static void many_lives(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		begin_both(&p, 1, 1);
		hd_names(p.b.node)->ep_gens[hd_ep_index(p.b.ep)] = 0xfffd;
		for (uint32_t i = 0; i < 5; i++) {
			reset(&p.b);
			reset(&p.a);
			assert_int_not_equal(p.b.ep->gen, 0);
			begin_both(&p, i, i);
			exchange(&p, &p.a, &p.b, 8);
		}
		pair_close(&p);
	}
}

/* Both begin anew and go on before either has heard of it. */
static void at_once(void **state)
{
	struct pair p;

	for (int what = 0; what < 4; what++)
		EACH_TRANSPORT(t)
		{
			qps_new(&p, t, what & 1 ? UC : RC);
			begin_both(&p, 1, 1);
			exchange(&p, &p.b, &p.a, 8);
			if (what & 2)
				exchange(&p, &p.a, &p.b, 8);
			for (uint32_t i = 0; i < 5; i++) {
				reset(i & 1 ? &p.a : &p.b);
				reset(i & 1 ? &p.b : &p.a);
				begin_both(&p, i, i);
				exchange(&p, &p.a, &p.b, 8);
				exchange(&p, &p.b, &p.a, LONG / 20);
			}
			pair_close(&p);
		}
}

/*
 * One is faster: its messages wait until the other one begins anew as well, whether it has
 * failed meanwhile or not.
 */
static void early(void **state)
{
	struct pair p;

	for (int fails = 0; fails < 2; fails++)
		EACH_TRANSPORT(t)
		{
			struct hd_qp_attr attr = qp_attr();

			qps_new(&p, t, RC);
			begin_both(&p, 1, 1);
			exchange(&p, &p.a, &p.b, 8);
			exchange(&p, &p.b, &p.a, 8);
			qp_recv(&p.b, in, sizeof(in), &in[1]);
			reset(&p.a);
			qp_ready(&p.a, &p.b, &attr); /* patient */
			qp_send(&p.a, out, 8, out);
			if (fails) {
				pair_settle(&p, 5);
				hd_ep_fail(p.b.ep);
				qp_expect(&p, &p.b, &in[1], HD_S_CANCELLED);
			}
			qp_silence(&p, &p.b, 10);
			assert_null(hd_cq_peek(p.a.cq));
			reset(&p.b);
			qp_recv(&p.b, in, sizeof(in), in);
			qp_ready(&p.b, &p.a, &attr);
			qp_expect(&p, &p.b, in, 0);
			qp_expect(&p, &p.a, out, 0);
			pair_close(&p);
		}
}

/*
 * One end alone begins anew: with the numbers at which the other one stands they agree,
 * with others they do not.
 */
static void one_end(void **state)
{
	struct pair p;

	for (int right = 0; right < 2; right++)
		EACH_TRANSPORT(t)
		{
			uint32_t sq, rq;

			qps_new(&p, t, RC);
			begin_both(&p, 10, 20);
			for (int i = 0; i < 3; i++)
				exchange(&p, &p.a, &p.b, 8);
			exchange(&p, &p.b, &p.a, 8);
			hd_ep_psns(p.a.ep, &sq, &rq);
			assert_int_equal(sq, 13);
			assert_int_equal(rq, 21);
			reset(&p.b);
			begin(&p.b, &p.a, right ? rq : 20, right ? sq : 10);
			if (right) {
				exchange(&p, &p.a, &p.b, 8);
				exchange(&p, &p.b, &p.a, 8);
			} else {
				qp_recv(&p.b, in, sizeof(in), in);
				qp_send(&p.a, out, 8, out);
				qp_expect(&p, &p.a, out, HD_S_TIMEOUT);
				assert_null(hd_cq_peek(p.b.cq));
			}
			pair_close(&p);
		}
}

static uint32_t patience_made(uint32_t ms)
{
	struct hd_pkt_epoch epoch = { 0 };

	hd_patience_set(&epoch, 7, ms);
	return hd_patience_ms(epoch);
}

/*
 * Four times what a card was told is the most that may pass (see ibv_modify_qp(3),
 * timeout): nothing is rounded up.
 */
static void no_time_is_made_longer(void **state)
{
	for (uint32_t ms = 1; ms < 1u << 30; ms += 1 + ms / 3) {
		uint32_t made = patience_made(ms);

		assert_true(made <= ms);
		assert_true(made > ms / 2);
	}
	assert_int_equal(patience_made(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(count),      cmocka_unit_test(high_bits),
		cmocka_unit_test(disagree),   cmocka_unit_test(unreliable),
		cmocka_unit_test(leftovers),  cmocka_unit_test(at_once),
		cmocka_unit_test(early),      cmocka_unit_test(one_end),
		cmocka_unit_test(closed),     cmocka_unit_test(late_answers),
		cmocka_unit_test(many_lives), cmocka_unit_test(no_time_is_made_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
