/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Answers name the life of the queue pair that they are for: one for the life before means nothing
 * to the next, whatever its number.
 */
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>

static char out[64], in[64];

static struct hd_qp *pair_of(const struct side *s)
{
	return s->ep->qp;
}

static void exchange(struct pair *p, struct side *from, struct side *to)
{
	qp_recv(to, in, sizeof(in), in);
	qp_send(from, out, 8, out);
	qp_expect(p, to, in, 0);
	qp_expect(p, from, out, 0);
}

static void begin_anew(struct pair *p, struct side *s, struct side *other)
{
	hd_node_lock(s->node);
	hd_ep_reset(s->ep);
	hd_node_unlock(s->node);
	qp_ready(s, other, NULL);
	pair_settle(p, 5);
}

/*
 * Both are in their second life, and have talked. Then a sends what nobody
 * receives; returns its number.
 */
static uint32_t open_and_send(struct pair *p, const char *transport)
{
	qps_open(p, transport, RC);
	exchange(p, &p->a, &p->b);
	exchange(p, &p->b, &p->a);
	begin_anew(p, &p->a, &p->b);
	begin_anew(p, &p->b, &p->a);
	exchange(p, &p->a, &p->b);
	exchange(p, &p->b, &p->a);
	qp_send(&p->a, out, 8, &out[1]);
	return pair_of(&p->a)->life.sq.tail - 1;
}

static void hear(struct side *s, const struct hd_pkt *pkt)
{
	hd_node_lock(s->node);
	assert_int_equal(hd_deliver(pair_of(s)->life.dest->peer->link, pkt, NULL, 0), 0);
	hd_node_poll(s->node);
	hd_node_unlock(s->node);
}

static void expect_nothing(struct side *s)
{
	assert_null(hd_cq_peek(s->cq));
	assert_int_equal(hd_qp_inspect(s->ep->qp).status, 0);
}

/* Acceptances and refusals, by packet. */
static void by_packet(void **state)
{
	static const int errs[] = { 0, HD_S_REFUSED, HD_S_TIMEOUT };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int i = 0; i < 3; i++) {
			struct hd_pkt pkt = { .kind = errs[i] ? HD_PKT_FIN : HD_PKT_ACK,
					      .flags = HD_PKT_F_SSN,
					      .op = open_and_send(&p, t),
					      .imm = (uint64_t)errs[i] };

			pkt.dst = p.a.ep->index;
			pkt.gen = (uint16_t)(p.a.ep->gen - 1);
			hear(&p.a, &pkt);
			expect_nothing(&p.a);
			pkt.gen = p.a.ep->gen;
			hear(&p.a, &pkt);
			qp_expect(&p, &p.a, &out[1], errs[i]);
			pair_close(&p);
		}
	}
}

/* The row of a queue pair in shared memory. */
static void by_row(void **state)
{
	struct hd_link *link;
	struct pair p;
	uint32_t seq = open_and_send(&p, "shm");

	link = pair_of(&p.b)->life.dest->peer->link;
	for (int old = 1; old >= 0; old--) {
		uint32_t to = hd_row_for(p.a.ep->index, (uint16_t)(p.a.ep->gen - old));

		link->ops->accept(link, p.b.ep->index, (uint64_t)to << 32 | seq);
		hd_node_lock(p.a.node);
		assert_int_equal(hd_ack_look(pair_of(&p.a)), !old);
		hd_node_unlock(p.a.node);
		if (old)
			expect_nothing(&p.a);
	}
	qp_expect(&p, &p.a, &out[1], 0);
	pair_close(&p);
}

/* In passing, in a message for the life before. */
static void in_passing(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_pkt pkt = { .kind = HD_PKT_EAGER, .qp.msn = open_and_send(&p, t) };

		for (int old = 1; old >= 0; old--) {
			pkt.gen = (uint16_t)(p.a.ep->gen - old);
			hd_node_lock(p.a.node);
			hd_ack_piggybacked(pair_of(&p.a), &pkt);
			hd_node_unlock(p.a.node);
			if (old)
				expect_nothing(&p.a);
		}
		qp_expect(&p, &p.a, &out[1], 0);
		pair_close(&p);
	}
}

/* Where the other end stands: asked by the life before. */
static void about_a_life(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_pkt pkt = { .kind = HD_PKT_EPOCH, .op = HD_EPOCH_STANDS, .imm = 5 };
		struct hd_qp *a;

		open_and_send(&p, t);
		a = pair_of(&p.a);
		a->life.resp.epoch_asked = true;
		pkt.dst = p.a.ep->index;
		pkt.src = a->life.dest->remote;
		pkt.tag = a->life.dest->gen;
		pkt.gen = (uint16_t)(p.a.ep->gen - 1);
		hear(&p.a, &pkt);
		assert_true(a->life.resp.epoch_asked && !a->life.resp.epoch_told);
		pkt.gen = p.a.ep->gen;
		hear(&p.a, &pkt);
		assert_true(!a->life.resp.epoch_asked && a->life.resp.epoch_told);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_packet),
		cmocka_unit_test(by_row),
		cmocka_unit_test(in_passing),
		cmocka_unit_test(about_a_life),
	};

	return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
