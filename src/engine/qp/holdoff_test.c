/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs whose other end goes away with something under way: what had been accepted is told at
 * once, what is lost later.
 */
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>

#define LONG (300u << 10)
#define HOLDOFF_MS 200

static unsigned char out[LONG], in[LONG];

/* Both ends wait for so long, in the time of the test. */
static void holdoff_open_as(struct pair *p, const char *transport, uint32_t type)
{
	struct hd_qp_attr attr = qp_attr();

	attr.holdoff_ms = HOLDOFF_MS;
	qps_new(p, transport, type);
	qp_ready(&p->a, &p->b, &attr);
	qp_ready(&p->b, &p->a, &attr);
}

static void holdoff_open(struct pair *p, const char *transport)
{
	holdoff_open_as(p, transport, RC);
}

/* The other node goes, or its endpoint alone. */
static void leave(struct side *s, bool node)
{
	if (!node) {
		qp_open(s, RC, NULL);
		return;
	}
	side_close(s);
	side_open(s);
}

/* hd_now_ns() when the first completion of side s comes, which is not popped. */
static uint64_t next_at(struct pair *p, struct side *s)
{
	while (!hd_cq_peek(s->cq))
		pair_settle(p, 1);
	return hd_now_ns();
}

/*
 * Messages that were accepted complete at once; the one that was not waits, and with it what is
 * posted later, which nobody gets.
 */
static void sends(void **state)
{
	static const size_t lens[] = { 8, LONG };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int i = 0; i < 4; i++) {
			uint64_t since;

			holdoff_open(&p, t);
			qp_recv(&p.b, in, sizeof(in), in);
			qp_send(&p.a, out, 8, &out[0]);
			qp_expect(&p, &p.b, in, 0);
			qp_send(&p.a, out, lens[i % 2], &out[1]);
			qp_send(&p.a, out, 8, &out[2]);
			qp_expect(&p, &p.a, &out[0], 0);
			pair_settle(&p, 10);
			since = hd_now_ns();
			leave(&p.b, i / 2);
			pair_settle(&p, 10);
			qp_send(&p.a, out, 8, &out[3]);
			assert_true(next_at(&p, &p.a) - since >= HOLDOFF_MS * (uint64_t)HD_NS_PER_MS);
			assert_true(pair_next(&p, &p.a).err != HD_S_CANCELLED);
			qp_expect(&p, &p.a, &out[2], HD_S_CANCELLED);
			qp_expect(&p, &p.a, &out[3], HD_S_CANCELLED);
			assert_int_not_equal(hd_qp_inspect(p.a.ep->qp).status, 0);
			pair_close(&p);
		}
	}
}

/* b's receive has met a message of which not all has come; a second one is posted behind it. */
static void begin(struct pair *p)
{
	qp_recv(&p->b, in, sizeof(in), &in[0]);
	qp_recv(&p->b, in, sizeof(in), &in[1]);
	qp_send(&p->a, out, LONG, out);
	while (hd_ep_posted(p->b.ep) == 2) {
		hd_node_poll(p->b.node);
		if (hd_ep_posted(p->b.ep) == 2)
			hd_node_poll(p->a.node);
	}
}

/* And then a goes. */
static void cut(struct pair *p, bool node)
{
	begin(p);
	leave(&p->a, node);
}

/* True: it has come in whole after all, as it may by shared memory. */
static bool came_whole(struct pair *p)
{
	const struct hd_cqe *e;

	pair_settle(p, 10);
	e = hd_cq_peek(p->b.cq);
	if (!e)
		return false;
	assert_ptr_equal(e->ctx, &in[0]);
	assert_int_equal(e->err, 0);
	return true;
}

/*
 * Who receives is not told that the other end has gone: the receive ends with the endpoint,
 * and before those behind it.
 */
static void receives(void **state)
{
	static const uint32_t types[] = { RC, UC };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int i = 0; i < 4; i++) {
			holdoff_open_as(&p, t, types[i / 2]);
			cut(&p, i % 2);
			if (!came_whole(&p)) {
				qp_silence(&p, &p.b, 2 * HOLDOFF_MS);
				assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, 0);
				hd_ep_fail(p.b.ep);
				qp_expect(&p, &p.b, &in[0], HD_S_CANCELLED);
				qp_expect(&p, &p.b, &in[1], HD_S_CANCELLED);
			}
			pair_close(&p);
		}
	}
}

/* Of an unreliable one the next receive gets the next message. */
static void unreliable_goes_on(void **state)
{
	struct hd_qp_attr attr = qp_attr();
	struct pair p;

	EACH_TRANSPORT(t)
	{
		holdoff_open_as(&p, t, UC);
		begin(&p);
		hd_ep_reset(p.a.ep);
		if (!came_whole(&p)) {
			qp_ready(&p.a, &p.b, &attr);
			qp_send(&p.a, out, 8, out);
			qp_expect(&p, &p.a, out, 0);
			qp_expect(&p, &p.b, &in[1], 0);
		}
		pair_close(&p);
	}
}

/* The program ends it before the time is over: then it is over. */
static void ended(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		holdoff_open(&p, t);
		qp_send(&p.a, out, 8, &out[0]);
		pair_settle(&p, 10);
		leave(&p.b, false);
		pair_settle(&p, 10);
		hd_ep_reset(p.a.ep);
		qp_silence(&p, &p.a, 2 * HOLDOFF_MS);
		assert_int_equal(hd_qp_inspect(p.a.ep->qp).status, 0);
		pair_close(&p);

		holdoff_open(&p, t);
		cut(&p, true);
		pair_settle(&p, 10);
		hd_ep_fail(p.b.ep);
		for (int i = 0; i < 2; i++) {
			assert_non_null(hd_cq_peek(p.b.cq));
			hd_cq_pop(p.b.cq);
		}
		qp_silence(&p, &p.b, 2 * HOLDOFF_MS);
		pair_close(&p);

		holdoff_open(&p, t);
		cut(&p, true);
		pair_settle(&p, 10);
		pair_close(&p);
	}
}

/* The other host is heard of no more. */
static void a_receive_from_a_host_that_is_silent(void **state)
{
	struct pair p;

	holdoff_open(&p, "tcp");
	begin(&p);
	hd_node_lock(p.b.node);
	hd_link_down(p.b.ep->qp->life.dest->peer->link, -ETIMEDOUT, "the other end is silent");
	hd_node_unlock(p.b.node);
	if (!came_whole(&p)) {
		qp_silence(&p, &p.b, 2 * HOLDOFF_MS);
		assert_int_equal(hd_qp_inspect(p.b.ep->qp).status, 0);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends),
		cmocka_unit_test(receives),
		cmocka_unit_test(unreliable_goes_on),
		cmocka_unit_test(ended),
		cmocka_unit_test(a_receive_from_a_host_that_is_silent),
	};

	return cmocka_run_group_tests_name("holdoff", tests, NULL, NULL);
}
