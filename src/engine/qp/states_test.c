/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The states of a queue pair: the table itself, and what each transition does to what a
 * queue pair has at that time.
 */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define LONG (4u << 20)

static unsigned char *out, *in;

static int buffers_make(void **state)
{
	out = calloc(1, LONG);
	in = calloc(1, LONG);
	return !out || !in;
}

static int buffers_free(void **state)
{
	free(out);
	free(in);
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

/*
 * A letter for each state, in the order of enum hd_qp_state; a row for each transition says
 * where it leads from there.
 */
static const char letters[] = "riRSpdqDxefE";
static const char *const arrows[HD_QP_STEPS] = {
	[HD_QP_STEP_INIT] = "i...........",    [HD_QP_STEP_PAIR] = "RR..........",
	[HD_QP_STEP_START] = "..S.........",   [HD_QP_STEP_PAUSE] = "...dqdqd....",
	[HD_QP_STEP_DRAINED] = ".....DD.....", [HD_QP_STEP_RESUME] = ".....SpSe...",
	[HD_QP_STEP_PEND] = "...ppqqq....",    [HD_QP_STEP_SQE] = "...eexxxxe..",
	[HD_QP_STEP_GO_ON] = "........DS..",   [HD_QP_STEP_FAIL] = "ffffffffff..",
	[HD_QP_STEP_FLUSH] = "EEEEEEEEEEE.",   [HD_QP_STEP_RESET] = "rrrrrrrrrrrr",
};

static void the_table(void **state)
{
	for (int step = 0; step < HD_QP_STEPS; step++)
		for (int from = 0; from < HD_QP_STATES; from++) {
			struct hd_qp qp = { .life.state = (enum hd_qp_state)from };
			const char to = arrows[step][from];

			assert_int_equal(hd_qp_may(&qp, (enum hd_qp_step)step), to != '.');
			assert_int_equal(hd_qp_ask(&qp, (enum hd_qp_step)step), to == '.' ? -EINVAL : 0);
			assert_int_equal(letters[qp.life.state], to == '.' ? letters[from] : to);
		}
}

/* ---- each of them with something to do ------------------------------------------------------- */

static int drained, over;

static void told(void *owner, uint32_t code, int err)
{
	drained += code == HD_EV_EP_DRAINED;
	over += code == HD_EV_EP_OVER;
}

/*
 * What a has; numbers are contexts of completions: 1 and 2 its sends, 3 its
 * receive, 4 the other end's send.
 */
enum situation {
	EMPTY,
	WAITING,   /* two requests, and no link yet */
	UNDER_WAY, /* two requests, for which the other end has no receive */
	ENDED,	   /* one such, and one behind it that is known to be wrong */
	HELD,	   /* the other end's request, without a receive */
	LANE,	   /* the other end's long message comes in */
	SITUATIONS
};

static void until(struct pair *p, const uint32_t *a, const uint32_t *b, bool same)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while ((*a == *b) != same) {
		assert_true(hd_now_ns() < end);
		hd_node_poll(p->b.node);
		hd_node_poll(p->a.node);
	}
}

static void send_wrong(struct side *s, int err, void *ctx)
{
	const struct hd_failed_args args = { .status = err, .ctx = ctx };

	assert_int_equal(hd_send_failed(s->ep, *hd_ep_to(s->ep), &args), 0);
}

static void situation_make(struct pair *p, enum situation what)
{
	struct hd_qp *q = p->a.ep->qp;
	const uint32_t zero = 0;

	if (what == WAITING || what == UNDER_WAY || what == ENDED)
		qp_send(&p->a, out, 8, (void *)1);
	if (what == WAITING || what == UNDER_WAY)
		qp_send(&p->a, out, 8, (void *)2);
	if (what == ENDED)
		send_wrong(&p->a, HD_S_INVALID, (void *)2);
	if (what == UNDER_WAY || what == ENDED)
		until(p, &q->life.sq.next, &q->life.sq.tail, true);
	if (what == LANE)
		qp_recv(&p->a, in, LONG, (void *)3);
	if (what == HELD || what == LANE)
		qp_send(&p->b, out, what == LANE ? LONG : 8, (void *)4);
	if (what == LANE)
		until(p, &q->life.lane.transfers, &zero, false);
	while (what == HELD && !hd_qp_inspect(q).queued)
		pair_settle(p, 1);
	if (what == EMPTY)
		pair_settle(p, 1);
}

enum action {
	PAUSE,
	RESUME,
	FINISH,
	FAIL,
	RESET,
	ACTIONS
};

/* The other end has receives now, and a has one for what it keeps. */
static void feed(struct pair *p, enum situation what)
{
	qp_recv(&p->b, in, LONG, (void *)5);
	qp_recv(&p->b, in, LONG, (void *)6);
	if (what == HELD)
		qp_recv(&p->a, in, LONG, (void *)3);
	pair_settle(p, 10);
}

static void act(struct pair *p, enum action how)
{
	if (how == PAUSE || how == RESUME)
		assert_int_equal(hd_ep_pause(p->a.ep, true), 0);
	if (how == RESUME)
		assert_int_equal(hd_ep_pause(p->a.ep, false), 0);
	if (how == FINISH)
		hd_ep_drain(p->a.ep);
	if (how == FAIL)
		hd_ep_fail(p->a.ep);
	if (how == RESET)
		hd_ep_reset(p->a.ep);
}

/*
 * What is to be: the state at once and, where it goes on, when the other end has receives;
 * completions of a in order, and of 4 at the other end.
 */
struct expected {
	enum hd_qp_state at_once, then;
	struct {
		int ctx, err;
	} of_a[2];
	int of_b; /* errno of 4; -1: it has none */
	int drained_at_once, drained, over;
};

#define BOTH_DONE \
	{ \
		{ 1, 0 }, \
		{ \
			2, 0 \
		} \
	}
#define BOTH_FLUSHED \
	{ \
		{ 1, HD_S_CANCELLED }, \
		{ \
			2, HD_S_CANCELLED \
		} \
	}
#define ONE_WRONG \
	{ \
		{ 1, 0 }, \
		{ \
			2, HD_S_INVALID \
		} \
	}
#define RECEIVED \
	{ \
		{ \
			3, 0 \
		} \
	}

static const struct expected expected[SITUATIONS][ACTIONS] = {
	[EMPTY] = { [PAUSE] = { HD_QP_SQD_DRAINED, HD_QP_SQD_DRAINED, .of_b = -1, .drained_at_once = 1,
				.drained = 1 },
		    [RESUME] = { HD_QP_RTS, HD_QP_RTS, .of_b = -1, .drained_at_once = 1, .drained = 1 },
		    [FINISH] = { HD_QP_RTS, HD_QP_RTS, .of_b = -1, .drained_at_once = 1, .drained = 1 },
		    [FAIL] = { HD_QP_ERR, .of_b = -1 },
		    [RESET] = { HD_QP_RESET, .of_b = -1 } },
	[WAITING] = { [PAUSE] = { HD_QP_SQD_DRAINED, HD_QP_SQD_DRAINED, .of_b = -1, .drained_at_once = 1,
				  .drained = 1 },
		      [RESUME] = { HD_QP_RTS, HD_QP_RTS, BOTH_DONE, -1, 1, 1, 0 },
		      [FINISH] = { HD_QP_RTS, HD_QP_RTS, BOTH_DONE, -1, 0, 1, 0 },
		      [FAIL] = { HD_QP_ERR, 0, BOTH_FLUSHED, -1, 0, 0, 0 },
		      [RESET] = { HD_QP_RESET, .of_b = -1 } },
	[UNDER_WAY] = { [PAUSE] = { HD_QP_SQD, HD_QP_SQD_DRAINED, BOTH_DONE, -1, 0, 1, 0 },
			[RESUME] = { HD_QP_RTS, HD_QP_RTS, BOTH_DONE, -1, 0, 0, 0 },
			[FINISH] = { HD_QP_RTS, HD_QP_RTS, BOTH_DONE, -1, 0, 1, 0 },
			[FAIL] = { HD_QP_ERR, 0, BOTH_FLUSHED, -1, 0, 0, 0 },
			[RESET] = { HD_QP_RESET, .of_b = -1 } },
	[ENDED] = { [PAUSE] = { HD_QP_SQD_PENDING, HD_QP_ERR, ONE_WRONG, -1, 0, 1, 1 },
		    [RESUME] = { HD_QP_RTS_PENDING, HD_QP_ERR, ONE_WRONG, -1, 0, 0, 1 },
		    [FINISH] = { HD_QP_RTS_PENDING, HD_QP_ERR, ONE_WRONG, -1, 0, 1, 1 },
		    [FAIL] = { HD_QP_ERR, 0, BOTH_FLUSHED, -1, 0, 0, 0 },
		    [RESET] = { HD_QP_RESET, .of_b = -1 } },
	[HELD] = { [PAUSE] = { HD_QP_SQD_DRAINED, HD_QP_SQD_DRAINED, RECEIVED, 0, 1, 1, 0 },
		   [RESUME] = { HD_QP_RTS, HD_QP_RTS, RECEIVED, 0, 1, 1, 0 },
		   [FINISH] = { HD_QP_RTS, HD_QP_RTS, RECEIVED, 0, 1, 1, 0 },
		   [FAIL] = { HD_QP_ERR, .of_b = HD_S_REFUSED },
		   [RESET] = { HD_QP_RESET, .of_b = HD_S_REFUSED } },
	[LANE] = { [PAUSE] = { HD_QP_SQD_DRAINED, HD_QP_SQD_DRAINED, RECEIVED, 0, 1, 1, 0 },
		   [RESUME] = { HD_QP_RTS, HD_QP_RTS, RECEIVED, 0, 1, 1, 0 },
		   [FINISH] = { HD_QP_RTS, HD_QP_RTS, RECEIVED, 0, 1, 1, 0 },
		   [FAIL] = { HD_QP_ERR, 0, { { 3, HD_S_CANCELLED } }, HD_S_REFUSED, 0, 0, 0 },
		   [RESET] = { HD_QP_RESET, .of_b = HD_S_REFUSED } },
};

static void completions_check(struct pair *p, const struct expected *e)
{
	struct hd_cqe c;

	for (int i = 0; i < 2 && e->of_a[i].ctx; i++)
		qp_expect(p, &p->a, (void *)(intptr_t)e->of_a[i].ctx, e->of_a[i].err);
	assert_null(hd_cq_peek(p->a.cq));
	while (e->of_b >= 0) {
		c = pair_next(p, &p->b);
		if (c.ctx != (void *)4)
			continue;
		assert_int_equal(c.err, e->of_b);
		break;
	}
}

static void nothing_is_left(const struct hd_qp *q)
{
	assert_int_equal(q->life.sq.head, q->life.sq.tail);
	assert_int_equal(q->life.sq.units + q->life.sq.ordered + q->life.sq.reading + q->life.sq.direct, 0);
	assert_int_equal(q->life.lane.transfers, 0);
	assert_true(!hd_qp_inspect(q).queued && STAILQ_EMPTY(&q->life.holdoff.receives));
	assert_false(q->life.sq.stalled_on || q->life.sq.settles || q->life.accepted.link ||
		     q->respq.timer.due || q->respq.rnr_wait.rq);
}

/* Both begin anew, and what was is forgotten. */
static void as_new(struct pair *p)
{
	hd_ep_reset(p->a.ep);
	hd_ep_reset(p->b.ep);
	while (hd_cq_peek(p->b.cq))
		hd_cq_pop(p->b.cq);
	qps_ready(p);
	nothing_is_left(p->a.ep->qp);
	qp_recv(&p->b, in, 8, (void *)7);
	qp_send(&p->a, out, 8, (void *)8);
	qp_expect(p, &p->a, (void *)8, 0);
	qp_expect(p, &p->b, (void *)7, 0);
	assert_int_equal(*hd_ep_state(p->a.ep), HD_QP_RTS);
}

static void transition(const char *t, enum situation what, enum action how)
{
	const struct hd_ep_attr attr = { .tell = told, .tx_size = 64 };
	const struct expected *e = &expected[what][how];
	struct pair p;

	pair_open(&p, t);
	qp_open(&p.a, RC | ALL_RIGHTS, &attr);
	qp_open(&p.b, RC | ALL_RIGHTS, NULL);
	qps_ready(&p);
	situation_make(&p, what);
	drained = over = 0;
	act(&p, how);
	assert_int_equal(*hd_ep_state(p.a.ep), e->at_once);
	assert_int_equal(drained, e->drained_at_once);
	if (how < FAIL) {
		feed(&p, what);
		completions_check(&p, e);
		assert_int_equal(*hd_ep_state(p.a.ep), e->then);
	} else {
		completions_check(&p, e);
		nothing_is_left(p.a.ep->qp);
		assert_int_equal(*hd_ep_state(p.a.ep), e->at_once);
	}
	assert_int_equal(drained, e->drained);
	assert_int_equal(over, e->over);
	as_new(&p);
	pair_close(&p);
}

static void each_transition(void **state)
{
	EACH_TRANSPORT(t)
	for (int what = 0; what < SITUATIONS; what++)
		for (int how = 0; how < ACTIONS; how++)
			transition(t, (enum situation)what, (enum action)how);
}

/* ---- what is not reliable -------------------------------------------------------------------- */

static void uc_open(struct pair *p, const char *t)
{
	const struct hd_ep_attr attr = { .tell = told, .tx_size = 64 };

	pair_open(p, t);
	qp_open(&p->a, UC | ALL_RIGHTS, &attr);
	qp_open(&p->b, UC | ALL_RIGHTS, NULL);
	qps_ready(p);
	drained = over = 0;
}

/*
 * One that is wrong stops the send queue, and what is behind it is flushed,
 * until it is told to go on.
 */
static void sqe_and_back(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uc_open(&p, t);
		send_wrong(&p.a, HD_S_INVALID, (void *)1);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQE);
		qp_send(&p.a, out, 8, (void *)2);
		qp_expect(&p, &p.a, (void *)1, HD_S_INVALID);
		qp_expect(&p, &p.a, (void *)2, HD_S_CANCELLED);
		assert_int_equal(hd_ep_pause(p.a.ep, true), -EINVAL);
		assert_int_equal(hd_ep_start(p.a.ep), -EINVAL);
		assert_int_equal(hd_ep_go_on(p.a.ep), 0);
		assert_int_equal(hd_ep_go_on(p.a.ep), -EINVAL);
		qp_send(&p.a, out, 8, (void *)3);
		qp_expect(&p, &p.a, (void *)3, 0);
		assert_int_equal(drained + over, 0);
		as_new(&p);
		pair_close(&p);
	}
}

/* In SQD it waits for its turn, as all do. */
static void sqe_after_sqd(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uc_open(&p, t);
		assert_int_equal(hd_ep_pause(p.a.ep, true), 0);
		assert_int_equal(drained, 1);
		send_wrong(&p.a, HD_S_INVALID, (void *)1);
		qp_send(&p.a, out, 8, (void *)2);
		pair_settle(&p, 2);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQD_DRAINED);
		assert_int_equal(hd_ep_pause(p.a.ep, false), 0);
		qp_expect(&p, &p.a, (void *)1, HD_S_INVALID);
		qp_expect(&p, &p.a, (void *)2, HD_S_CANCELLED);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQE);
		assert_int_equal(drained, 1);
		pair_close(&p);
	}
}

/* Datagrams: what is wrong completes at once where nothing waits before it. */
static void datagrams(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		qp_open(&p.a, HD_EP_NUMBERED | HD_EP_DROP, NULL);
		assert_int_equal(hd_ep_init(p.a.ep), 0);
		assert_int_equal(hd_ep_pair(p.a.ep, &(struct hd_qp_attr){ .only_receives = true }), 0);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_RTR);
		assert_int_equal(hd_ep_pause(p.a.ep, true), -EINVAL);
		assert_int_equal(hd_ep_start(p.a.ep), 0);
		assert_int_equal(hd_ep_pause(p.a.ep, true), 0);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQD_DRAINED);
		send_wrong(&p.a, HD_S_INVALID, (void *)1);
		qp_expect(&p, &p.a, (void *)1, HD_S_INVALID);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQD_SQE);
		assert_int_equal(hd_ep_pause(p.a.ep, false), 0);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQE);
		send_wrong(&p.a, HD_S_CANCELLED, (void *)2);
		qp_expect(&p, &p.a, (void *)2, HD_S_CANCELLED);
		assert_int_equal(hd_ep_go_on(p.a.ep), 0);
		hd_ep_fail(p.a.ep);
		send_wrong(&p.a, HD_S_CANCELLED, (void *)3);
		qp_expect(&p, &p.a, (void *)3, HD_S_CANCELLED);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_ERR);
		pair_close(&p);
	}
}

/* ---- the way to RTS -------------------------------------------------------------------------- */

static void to_rts(void **state)
{
	const struct hd_qp_attr nobody = { 0 };
	struct hd_qp_attr attr = qp_attr();
	struct sockaddr_storage name;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		assert_int_equal(hd_ep_name(p.b.ep, AF_UNSPEC, &name), 0);
		attr.to = (void *)&name;
		attr.only_receives = true;
		qp_ready(&p.b, &p.a, NULL);
		assert_int_equal(hd_ep_start(p.a.ep), -EINVAL);
		assert_int_equal(hd_ep_pair(p.a.ep, &nobody), -EINVAL);
		assert_int_equal(hd_ep_init(p.a.ep), 0);
		assert_int_equal(hd_ep_init(p.a.ep), -EINVAL);
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), 0);
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), -EISCONN);
		assert_int_equal(hd_send(p.a.ep, *hd_ep_to(p.a.ep), out, 8, 0, 0, NULL, 0), -ENOTCONN);
		qp_recv(&p.a, in, 8, (void *)3);
		qp_send(&p.b, out, 8, (void *)4);
		qp_expect(&p, &p.a, (void *)3, 0);
		qp_expect(&p, &p.b, (void *)4, 0);
		assert_int_equal(hd_ep_start(p.a.ep), 0);
		assert_int_equal(hd_ep_start(p.a.ep), -EINVAL);
		hd_ep_fail(p.a.ep);
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), -EINVAL);
		as_new(&p);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table),	cmocka_unit_test(each_transition),
		cmocka_unit_test(sqe_and_back), cmocka_unit_test(sqe_after_sqd),
		cmocka_unit_test(datagrams),	cmocka_unit_test(to_rts),
	};

	return cmocka_run_group_tests(tests, buffers_make, buffers_free);
}
