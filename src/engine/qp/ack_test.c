/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a queue pair has accepted, told by shared memory: nobody waits for a program that has
 * gone to do something else.
 */
#include "engine/core/core.h"
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <poll.h>

static char out[4][64], in[4][64];

static struct hd_qp *pair_of(const struct side *s)
{
	return s->ep->qp;
}

static void turn(struct side *s)
{
	hd_node_lock(s->node);
	hd_node_poll(s->node);
	hd_node_unlock(s->node);
}

/* The next completion of s, which alone makes progress. */
static void alone(struct side *s, void *ctx, int err)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	const struct hd_cqe *e;

	while (!(e = hd_cq_peek(s->cq))) {
		turn(s);
		assert_true(hd_now_ns() < end);
	}
	assert_ptr_equal(e->ctx, ctx);
	assert_int_equal(e->err, err);
	hd_cq_pop(s->cq);
}

/* A message has gone each way, so that both know each other. */
static void open_talking(struct pair *p)
{
	qps_open(p, "shm", RC);
	for (int i = 0; i < 2; i++) {
		struct side *from = i ? &p->b : &p->a, *to = i ? &p->a : &p->b;

		qp_recv(to, in[0], 64, in[0]);
		qp_send(from, out[0], 8, out[0]);
		qp_expect(p, to, in[0], 0);
		qp_expect(p, from, out[0], 0);
	}
}

/* b takes the message, and makes no turn of progress any more. */
static void send_and_take(struct pair *p)
{
	qp_recv(&p->b, in[1], 64, in[1]);
	qp_send(&p->a, out[1], 8, out[1]);
	alone(&p->b, in[1], 0);
}

static void its_sender_need_not_wait(void **state)
{
	struct pair p;

	open_talking(&p);
	send_and_take(&p);
	alone(&p.a, out[1], 0);
	assert_int_equal(hd_qp_inspect(pair_of(&p.a)).ordered, 0);
	pair_close(&p);
}

static void wakes_a_sleeper(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	struct pair p;

	open_talking(&p);
	fd.fd = hd_core(p.a.node)->epoll_fd;
	qp_recv(&p.b, in[1], 64, in[1]);
	qp_send(&p.a, out[1], 8, out[1]);
	hd_node_lock(p.a.node);
	while (hd_sleep_arm(p.a.node))
		hd_sleep_disarm(p.a.node);
	assert_int_equal(poll(&fd, 1, 0), 0);
	alone(&p.b, in[1], 0);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	hd_sleep_disarm(p.a.node);
	hd_node_unlock(p.a.node);
	alone(&p.a, out[1], 0);
	pair_close(&p);
}

/* a has gone to sleep; with its lock from then on. */
static struct pollfd fall_asleep(struct side *s)
{
	hd_node_lock(s->node);
	while (hd_sleep_arm(s->node))
		hd_sleep_disarm(s->node);
	return (struct pollfd){ .fd = hd_core(s->node)->epoll_fd, .events = POLLIN };
}

static void pause_sends(struct side *s)
{
	hd_node_lock(s->node);
	hd_ep_pause(s->ep, true);
	hd_node_unlock(s->node);
}

static void get_up(struct side *s)
{
	hd_sleep_disarm(s->node);
	hd_node_unlock(s->node);
}

/* A message that tells nobody, and a sleeper who is left alone when it is accepted. */
static void lets_sleep_who_waits_for_nothing(void **state)
{
	struct pollfd fd;
	struct pair p;

	open_talking(&p);
	qp_recv(&p.b, in[1], 64, in[1]);
	qp_send_as(&p.a, out[1], 8, NULL, 0);
	fd = fall_asleep(&p.a);
	alone(&p.b, in[1], 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	get_up(&p.a);
	for (int i = 0; i < 8; i++)
		turn(&p.a);
	assert_int_equal(hd_qp_inspect(pair_of(&p.a)).ordered, 0);
	pair_close(&p);
}

/* Another thread sends what it wants to hear of, behind what nobody does, while one sleeps. */
static void wakes_for_what_was_sent_meanwhile(void **state)
{
	static char mem[8];
	struct pollfd fd;
	struct hd_mr *mr;
	struct pair p;

	for (int what = 0; what < 3; what++) {
		open_talking(&p);
		mr = qp_region(&p.b, mem, sizeof(mem), 0);
		qp_recv(&p.b, in[1], 64, in[1]);
		qp_recv(&p.b, in[2], 64, in[2]);
		qp_send_as(&p.a, out[1], 8, NULL, 0);
		fd = fall_asleep(&p.a);
		hd_node_unlock(p.a.node);
		if (what == 0)
			qp_send(&p.a, out[2], 8, out[2]);
		else if (what == 1)
			qp_rma(&p.a, HD_RMA_WRITE, out[2], 8, hd_mr_key(mr), mem, out[2], 0);
		else
			pause_sends(&p.a);
		alone(&p.b, in[1], 0);
		hd_node_lock(p.a.node);
		assert_int_equal(poll(&fd, 1, 10000), 1);
		get_up(&p.a);
		while (what == 2 && *hd_ep_state(p.a.ep) != HD_QP_SQD_DRAINED)
			turn(&p.a);
		if (what != 2)
			qp_expect(&p, &p.a, out[2], 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* A completion that is told behind it, of something that has ended already. */
static void wakes_for_what_is_told_behind(void **state)
{
	struct pollfd fd;
	struct pair p;

	open_talking(&p);
	qp_recv(&p.b, in[1], 64, in[1]);
	qp_recv(&p.b, in[2], 64, in[2]);
	qp_send_as(&p.a, out[1], 8, NULL, 0);
	qp_send(&p.a, out[2], 8, out[2]);
	fd = fall_asleep(&p.a);
	alone(&p.b, in[1], 0);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	get_up(&p.a);
	qp_expect(&p, &p.a, out[2], 0);
	pair_close(&p);
}

static int post_quietly(struct side *s)
{
	int rc;

	hd_node_lock(s->node);
	rc = hd_qp_send(s->ep, &(struct iovec){ out[1], 8 }, 1, 0, 0, NULL, 0);
	hd_node_unlock(s->node);
	return rc;
}

/*
 * A thread fills the line with what tells nobody, and goes on trying, while another one sleeps for
 * the node: nobody else looks.
 */
static void finds_room_while_one_sleeps(void **state)
{
	struct pair p;
	int count = 0;

	open_talking(&p);
	fall_asleep(&p.a);
	hd_node_unlock(p.a.node);
	while (!post_quietly(&p.a))
		count++;
	assert_true(count > 8);
	for (int i = 0; i < count; i++)
		qp_recv(&p.b, in[1], 64, in[1]);
	for (int i = 0; i < count; i++)
		alone(&p.b, in[1], 0);
	assert_int_equal(post_quietly(&p.a), 0);
	hd_node_lock(p.a.node);
	get_up(&p.a);
	pair_close(&p);
}

/* The same where they have been accepted only after the last try: the sleeper gets up for it. */
static void wakes_for_who_wants_room(void **state)
{
	struct pollfd fd;
	struct pair p;
	int count = 0;

	open_talking(&p);
	while (!post_quietly(&p.a))
		count++;
	fd = fall_asleep(&p.a);
	hd_node_unlock(p.a.node);
	assert_int_equal(post_quietly(&p.a), -EAGAIN);
	hd_node_lock(p.a.node);
	while (poll(&fd, 1, 0) == 1) { /* that it wants some now is news for the sleeper, too */
		get_up(&p.a);
		turn(&p.a);
		fd = fall_asleep(&p.a);
	}
	hd_node_unlock(p.a.node);
	assert_int_equal(post_quietly(&p.a), -EAGAIN);
	for (int i = 0; i < count; i++)
		qp_recv(&p.b, in[1], 64, in[1]);
	for (int i = 0; i < count; i++)
		alone(&p.b, in[1], 0);
	hd_node_lock(p.a.node);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	get_up(&p.a);
	assert_int_equal(post_quietly(&p.a), 0);
	pair_close(&p);
}

/* One asks whether all has been sent, and nobody else looks. */
static void is_found_by_who_asks_while_one_sleeps(void **state)
{
	struct pair p;

	open_talking(&p);
	qp_recv(&p.b, in[1], 64, in[1]);
	qp_send_as(&p.a, out[1], 8, NULL, 0);
	fall_asleep(&p.a);
	assert_false(hd_ep_tx_idle(p.a.ep));
	alone(&p.b, in[1], 0);
	assert_true(hd_ep_tx_idle(p.a.ep));
	get_up(&p.a);
	pair_close(&p);
}

/* Who goes to sleep when it has been accepted already is told at once. */
static void keeps_awake(void **state)
{
	struct pair p;

	open_talking(&p);
	send_and_take(&p);
	hd_node_lock(p.a.node);
	assert_true(hd_sleep_arm(p.a.node) > 0);
	hd_sleep_disarm(p.a.node);
	hd_node_unlock(p.a.node);
	assert_ptr_equal(hd_cq_peek(p.a.cq)->ctx, out[1]);
	pair_close(&p);
}

static void travels_with_an_answer(void **state)
{
	struct pair p;

	open_talking(&p);
	for (int i = 0; i < 3; i++) {
		qp_recv(&p.a, in[2], 64, in[2]);
		send_and_take(&p);
		assert_true(pair_of(&p.b)->life.accepted.pending);
		qp_send(&p.b, out[2], 8, out[2]);
		assert_false(pair_of(&p.b)->life.accepted.pending);
		hd_ack_leave(pair_of(&p.a)); /* the row alone would tell nobody */
		alone(&p.a, out[1], 0);	     /* in front of the answer */
		alone(&p.a, in[2], 0);
		alone(&p.b, out[2], 0);
	}
	pair_close(&p);
}

/* An answer that carries nothing, because it is long, comes behind the news all the same. */
static void is_known_before_an_answer(void **state)
{
	static char big[2][300 << 10];
	struct pair p;

	open_talking(&p);
	qp_recv(&p.a, big[0], sizeof(big[0]), in[2]);
	send_and_take(&p);
	qp_send(&p.b, big[1], sizeof(big[1]), out[2]);
	qp_expect(&p, &p.a, out[1], 0);
	qp_expect(&p, &p.a, in[2], 0);
	qp_expect(&p, &p.b, out[2], 0);
	pair_close(&p);
}

/* What was accepted has been accepted, though the other end is no more. */
static void outlives_its_endpoint(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct pair p;

		open_talking(&p);
		send_and_take(&p);
		hd_node_lock(p.b.node);
		if (i == 0)
			hd_ep_reset(p.b.ep);
		else if (i == 1)
			qp_open(&p.b, RC, NULL);
		hd_node_unlock(p.b.node);
		if (i == 2) {
			side_close(&p.b);
			side_open(&p.b);
		}
		qp_expect(&p, &p.a, out[1], 0);
		pair_close(&p);
	}
}

static void say(struct pair *p, uint64_t word)
{
	struct hd_link *link = pair_of(&p->b)->life.dest->peer->link;

	link->ops->accept(link, p->b.ep->index, word);
}

/*
 * A row is the other end's to write: nothing is believed of it but what concerns a
 * message that is on its way.
 */
static void lies_about_nothing_else(void **state)
{
	struct pair p;
	uint64_t me;
	uint32_t seq;

	open_talking(&p);
	me = (uint64_t)hd_row_for(p.a.ep->index, p.a.ep->gen) << 32;
	seq = pair_of(&p.a)->life.sq.tail;
	qp_send(&p.a, out[1], 8, out[1]); /* nobody receives */
	for (uint32_t i = 0; i < 3; i++) {
		say(&p, me | (seq + 1 + i)); /* not sent yet */
		turn(&p.a);
		say(&p, me | (seq - 1 - i)); /* long over */
		turn(&p.a);
		say(&p, (me + (UINT64_C(1) << 32)) | seq); /* somebody else's */
		turn(&p.a);
		say(&p, UINT64_MAX);
		qp_silence(&p, &p.a, 1);
	}
	qp_recv(&p.b, in[1], 64, in[1]);
	qp_expect(&p, &p.b, in[1], 0);
	qp_expect(&p, &p.a, out[1], 0);
	pair_close(&p);
}

static unsigned said;
static const struct hd_link_ops *real;

static void say_and_count(struct hd_link *link, uint32_t row, uint64_t word)
{
	said++;
	real->accept(link, row, word);
}

/*
 * Several messages that come in one turn are told of by one word, also where not
 * all of them find a receive.
 */
static void is_said_once_in_a_turn(void **state)
{
	struct hd_link_ops counting;
	struct hd_link *link;
	struct pair p;

	open_talking(&p);
	link = pair_of(&p.b)->life.dest->peer->link;
	real = link->ops;
	counting = *real;
	counting.accept = say_and_count;
	link->ops = &counting;
	for (int posted = 4; posted >= 3; posted--) {
		said = 0;
		for (int i = 0; i < posted; i++)
			qp_recv(&p.b, in[i], 64, in[i]);
		for (int i = 0; i < 4; i++)
			qp_send(&p.a, out[i], 8, out[i]);
		for (int i = 0; i < posted; i++)
			alone(&p.b, in[i], 0);
		assert_int_equal(said, 1);
		for (int i = 0; i < posted; i++)
			alone(&p.a, out[i], 0);
	}
	qp_recv(&p.b, in[3], 64, in[3]);
	assert_int_equal(said, 2); /* it is let in where it is posted */
	alone(&p.b, in[3], 0);
	alone(&p.a, out[3], 0);
	link->ops = real;
	pair_close(&p);
}

/* More than are looked at in one turn: each has its own. */
static void many_are_looked_at(void **state)
{
	enum {
		COUNT = 100
	};
	static char buf[2][COUNT][8];
	struct hd_ep *ep[2][COUNT];
	struct pair p;

	qps_open(&p, "shm", RC);
	for (int i = 0; i < COUNT; i++) {
		qp_recv(&p.b, buf[0][i], 8, buf[0][i]);
		qp_send(&p.a, buf[1][i], 8, buf[1][i]);
		qp_expect(&p, &p.b, buf[0][i], 0);
		ep[0][i] = p.a.ep;
		ep[1][i] = p.b.ep;
		p.a.ep = p.b.ep = NULL;
		qp_open(&p.a, RC, NULL);
		qp_open(&p.b, RC, NULL);
		qps_ready(&p);
	}
	while (hd_cq_count(p.a.cq) < COUNT)
		turn(&p.a);
	for (int i = 0; i < COUNT; i++) {
		hd_ep_close(ep[0][i]);
		hd_ep_close(ep[1][i]);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_sender_need_not_wait),
		cmocka_unit_test(wakes_a_sleeper),
		cmocka_unit_test(keeps_awake),
		cmocka_unit_test(lets_sleep_who_waits_for_nothing),
		cmocka_unit_test(wakes_for_what_was_sent_meanwhile),
		cmocka_unit_test(wakes_for_what_is_told_behind),
		cmocka_unit_test(finds_room_while_one_sleeps),
		cmocka_unit_test(wakes_for_who_wants_room),
		cmocka_unit_test(is_found_by_who_asks_while_one_sleeps),
		cmocka_unit_test(travels_with_an_answer),
		cmocka_unit_test(is_known_before_an_answer),
		cmocka_unit_test(outlives_its_endpoint),
		cmocka_unit_test(lies_about_nothing_else),
		cmocka_unit_test(is_said_once_in_a_turn),
		cmocka_unit_test(many_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
