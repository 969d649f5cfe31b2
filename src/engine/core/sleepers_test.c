/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Threads that sleep, whom nothing may be kept from: a message, a signal, credit, a counter. */
#include "asleep.h"
#include "cpu.h"
#include "engine/test/test_pair.h"
#include "engine/test/test_worker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- automatic progress ---------------------------------------------------------------------- */

static void pair_open_with(struct pair *p, const char *transport, const struct hd_node_attr *a,
			   const struct hd_node_attr *b)
{
	memset(p, 0, sizeof(*p));
	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open_with(&p->a, a);
	side_open_with(&p->b, b);
	side_names(&p->a, &p->b);
	side_names(&p->b, &p->a);
}

/* ---- sleepers -------------------------------------------------------------------------------- */

static void *wait_once(void *arg)
{
	struct worker *w = arg;

	w->rc = worker_asleep(w);
	w->cpu_ns = cpu_ns();
	return NULL;
}

static void wait_until_asleep(const struct hd_cq *cq, int sleepers)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	int n;

	do {
		usleep(1000);
		hd_node_lock(cq->node);
		n = cq->w.sleepers;
		hd_node_unlock(cq->node);
	} while (n < sleepers && hd_now_ns() < end);
	assert_int_equal(n, sleepers);
	let_others_sleep(); /* in the kernel */
}

/* Does the CQ come to hold so many completions without our help? They are taken out. */
static bool comes_to_cq(struct hd_cq *cq, int count)
{
	uint64_t end = hd_now_ns() + PATIENCE / 10;

	while (count && hd_now_ns() < end) {
		hd_node_lock(cq->node);
		while (count && hd_cq_peek(cq)) {
			hd_cq_pop(cq);
			count--;
		}
		hd_node_unlock(cq->node);
		usleep(200);
	}
	return !count;
}

/*
 * One thread sleeps on its CQ; another sends, and calls nothing else: everything leaves, to the
 * other node and to itself.
 */
static void sends_leave_while_another_sleeps(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	for (int to_self = 0; to_self < 2; to_self++) {
		struct worker sleeper = { 0 }, receiver = { .rounds = 50 };
		struct side *to;
		char text[8] = "text";

		pair_open_with(&p, t, &node_locked, &node_locked);
		to = to_self ? &p.a : &p.b;
		worker_open(&sleeper, p.a.node);
		hd_node_lock(p.a.node);
		hd_dest_put(p.a.to);
		hd_node_unlock(p.a.node);
		side_names(&p.a, to);
		receiver.s = *to;
		receiver.s.to = NULL;
		receiver.in = malloc(LONGEST);
		worker_start(&sleeper, wait_once);
		wait_until_asleep(sleeper.s.cq, 1);
		for (int i = 0; i < 50; i++) {
			struct hd_cqe e;

			assert_int_equal(worker_post(&receiver), 0);
			if (i % 8 == 0)
				usleep(3000); /* links cool down */
			hd_node_lock(p.a.node);
			assert_int_equal(hd_send(p.a.ep, p.a.to, text, 8, 1, 0, NULL, TAGGED(0)), 0);
			if (i % 2)
				assert_int_equal(hd_send(p.a.ep, p.a.to, text, 8, 1, 0, NULL, TAGGED(0)), 0);
			hd_node_unlock(p.a.node);
			if (i % 2)
				assert_int_equal(worker_post(&receiver), 0);
			if (to_self) { /* whoever waits here would make progress: only look */
				assert_true(comes_to_cq(to->cq, 1 + i % 2));
			} else {
				assert_true(worker_await(&receiver, &e));
				if (i % 2)
					assert_true(worker_await(&receiver, &e));
			}
		}
		hd_cq_signal(sleeper.s.cq);
		worker_finish(&sleeper);
		assert_int_equal(sleeper.rc, -ECANCELED);
		worker_close(&sleeper);
		free(receiver.in);
		side_close(&p.a);
		side_close(&p.b);
	}
}

/* A waiter and its CPU time; takes the completion that it was woken for. */
static void *take_one(void *arg)
{
	struct worker *w = arg;
	struct hd_cqe e;

	w->wrong = !worker_await(w, &e);
	w->cpu_ns = cpu_ns();
	return NULL;
}

/*
 * As many threads sleep on one CQ as messages come: each gets one, also when
 * all of them come at once.
 */
static void each_message_wakes_a_thread(void **state)
{
	struct worker w[THREADS];
	char text[8] = "text";
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open_with(&p, t, &node_locked, &node_locked);
		for (int round = 0; round < 30; round++) {
			for (int i = 0; i < THREADS; i++) {
				w[i] = (struct worker){ .s = p.b, .in = malloc(LONGEST) };
				assert_int_equal(worker_post(&w[i]), 0);
				worker_start(&w[i], take_one);
			}
			if (round % 2)
				wait_until_asleep(p.b.cq, THREADS);
			hd_node_lock(p.a.node);
			for (int i = 0; i < THREADS; i++)
				assert_int_equal(hd_send(p.a.ep, p.a.to, text, 8, 1, 0, NULL,
							 TAGGED(HD_SEND_INJECT)),
						 0);
			hd_node_poll(p.a.node);
			hd_node_unlock(p.a.node);
			for (int n = 0; !round && n < 1000; n++) {
				/* the first time, somebody has to greet */
				hd_node_lock(p.a.node);
				hd_node_poll(p.a.node);
				hd_node_unlock(p.a.node);
				usleep(100);
			}
			for (int i = 0; i < THREADS; i++) {
				worker_finish(&w[i]);
				free(w[i].in);
			}
		}
		side_close(&p.a);
		side_close(&p.b);
	}
}

/*
 * A thread sleeps on the CQ, the program polls its descriptor: neither takes the other's wake away.
 */
static void thread_and_descriptor_wake_both(void **state)
{
	char text[8] = "text";
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open_with(&p, t, &node_locked, &node_locked);
		for (int round = 0; round < 20; round++) {
			struct worker w = { .s = p.b, .in = malloc(LONGEST) };
			struct pollfd fd = { .fd = hd_cq_fd(p.b.cq), .events = POLLIN };
			const struct hd_cqe *e;
			int rc;

			assert_int_equal(worker_post(&w), 0);
			assert_int_equal(worker_post(&w), 0);
			worker_start(&w, take_one);
			wait_until_asleep(p.b.cq, 1);
			do {
				hd_node_lock(p.b.node);
				rc = hd_cq_arm(p.b.cq);
				hd_node_unlock(p.b.node);
			} while (rc == -EAGAIN);
			assert_int_equal(rc, 0);
			hd_node_lock(p.a.node);
			for (int i = 0; i < 2; i++)
				assert_int_equal(hd_send(p.a.ep, p.a.to, text, 8, 1, 0, NULL,
							 TAGGED(HD_SEND_INJECT)),
						 0);
			for (int n = 0; !round && n < 1000; n++) {
				hd_node_poll(p.a.node);
				hd_node_unlock(p.a.node);
				usleep(100);
				hd_node_lock(p.a.node);
			}
			hd_node_poll(p.a.node);
			hd_node_unlock(p.a.node);
			worker_finish(&w);
			for (uint64_t end = hd_now_ns() + PATIENCE;;) {
				assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
				assert_true(hd_now_ns() < end);
				hd_node_lock(p.b.node);
				e = hd_cq_poll(p.b.cq);
				if (e)
					hd_cq_pop(p.b.cq);
				rc = e ? 0 : hd_cq_arm(p.b.cq);
				hd_node_unlock(p.b.node);
				if (e)
					break;
			}
			free(w.in);
		}
		side_close(&p.a);
		side_close(&p.b);
	}
}

/* A signal wakes everybody who waits, once; afterwards they sleep again, and do not spin. */
static void a_signal_wakes_all_who_wait(void **state)
{
	struct worker w[THREADS];
	struct pair p;

	pair_open_with(&p, "shm", &node_locked, &node_locked);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < THREADS; i++) {
			w[i] = (struct worker){ .s = p.b };
			worker_start(&w[i], wait_once);
		}
		wait_until_asleep(p.b.cq, THREADS);
		hd_cq_signal(p.b.cq);
		if (round % 2)
			hd_cq_signal(p.b.cq);
		for (int i = 0; i < THREADS; i++) {
			worker_finish(&w[i]);
			assert_int_equal(w[i].rc, -ECANCELED);
		}
		while (hd_cq_wait(p.b.cq, 1, 1) == -ECANCELED)
			;
	}
	uint64_t cpu = cpu_ns();

	assert_int_equal(hd_cq_wait(p.b.cq, 1, 200), -EAGAIN);
	assert_in_range(cpu_ns() - cpu, 0, 50 * HD_NS_PER_MS);
	side_close(&p.a);
	side_close(&p.b);
}

/*
 * Signals that come while the waiter comes and goes: none is lost, and none makes the next
 * sleep a short one for ever.
 */
static void *signal_often(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->rounds; i++) {
		hd_cq_signal(w->s.cq);
		if (i % 16 == 0)
			usleep(50);
	}
	return NULL;
}

static void signals_at_any_moment_do_no_harm(void **state)
{
	struct worker w = { .rounds = 2000 };
	struct hd_cq *cq;
	struct pair p;
	uint64_t cpu;

	pair_open_with(&p, "shm", &node_locked, &node_locked);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_cq_open(p.b.node, &(struct hd_cq_attr){ .size = 8 }, &cq),
			 0); /* descriptors on demand */
	hd_node_unlock(p.b.node);
	w.s.cq = cq;
	worker_start(&w, signal_often);
	while (hd_cq_wait(cq, 1, 50) == -ECANCELED)
		;
	worker_finish(&w);
	while (hd_cq_wait(cq, 1, 1) == -ECANCELED)
		;
	cpu = cpu_ns();
	assert_int_equal(hd_cq_wait(cq, 1, 200), -EAGAIN);
	assert_in_range(cpu_ns() - cpu, 0, 50 * HD_NS_PER_MS);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_cq_close(cq), 0);
	hd_node_unlock(p.b.node);
	side_close(&p.a);
	side_close(&p.b);
}

/*
 * What is queued waits for credit that the other end does not give: the waiter sleeps, and goes
 * on when the credit comes.
 */
static void waiting_for_credit_is_sleeping(void **state)
{
	unsigned char out[4096] = { 0 };
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	EACH_TRANSPORT(t)
	{
		struct worker sleeper = { 0 }, receiver = { 0 };
		struct hd_cqe e;

		pair_open_with(&p, t, &node_locked, &node_locked);
		hd_node_lock(p.a.node);
		for (int i = 0; i < 40; i++)
			assert_int_equal(hd_send(p.a.ep, p.a.to, out, sizeof(out), 1, 0, NULL,
						 TAGGED(HD_SEND_INJECT)),
					 0);
		hd_node_unlock(p.a.node);
		for (int n = 0; n < 500; n++) {
			hd_node_lock(p.a.node);
			hd_node_poll(p.a.node);
			hd_node_unlock(p.a.node);
			hd_node_lock(p.b.node);
			hd_node_poll(p.b.node);
			hd_node_unlock(p.b.node);
			usleep(50);
		}
		assert_false(TAILQ_EMPTY(&hd_core(p.a.node)->pushing));
		worker_open(&sleeper, p.a.node);
		worker_start(&sleeper, wait_once);
		wait_until_asleep(sleeper.s.cq, 1);
		usleep(50000); /* an hour, for who does not sleep */
		receiver.s = p.b;
		receiver.in = malloc(LONGEST);
		for (int i = 0; i < 40; i++) {
			assert_int_equal(worker_post(&receiver), 0);
			assert_true(worker_await(&receiver, &e));
		}
		hd_cq_signal(sleeper.s.cq);
		worker_finish(&sleeper);
		assert_in_range(sleeper.cpu_ns, 0, 40 * HD_NS_PER_MS);
		worker_close(&sleeper);
		free(receiver.in);
		side_close(&p.a);
		side_close(&p.b);
	}
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

/* The same with itself: the one who could give the credit needs the lock for it. */
static void waiting_for_own_credit_keeps_nobody_out(void **state)
{
	struct worker sleeper = { 0 }, receiver = { 0 };
	unsigned char out[4096] = { 0 };
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	pair_open_with(&p, "shm", &node_locked, &node_locked);
	hd_node_lock(p.a.node);
	hd_dest_put(p.a.to);
	hd_node_unlock(p.a.node);
	side_names(&p.a, &p.a);
	hd_node_lock(p.a.node);
	for (int i = 0; i < 40; i++)
		assert_int_equal(
			hd_send(p.a.ep, p.a.to, out, sizeof(out), 1, 0, NULL, TAGGED(HD_SEND_INJECT)), 0);
	hd_node_unlock(p.a.node);
	for (int n = 0; n < 500; n++) {
		hd_node_lock(p.a.node);
		hd_node_poll(p.a.node);
		hd_node_unlock(p.a.node);
		usleep(20);
	}
	worker_open(&sleeper, p.a.node);
	worker_start(&sleeper, wait_once);
	wait_until_asleep(sleeper.s.cq, 1);
	receiver.s = p.a;
	receiver.in = malloc(LONGEST);
	for (int i = 0; i < 40; i++)
		assert_int_equal(worker_post(&receiver), 0);
	assert_true(comes_to_cq(p.a.cq, 40));
	hd_cq_signal(sleeper.s.cq);
	worker_finish(&sleeper);
	worker_close(&sleeper);
	free(receiver.in);
	side_close(&p.a);
	side_close(&p.b);
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

/* ---- counters -------------------------------------------------------------------------------- */

struct counted {
	pthread_t thread;
	struct hd_cntr *c;
	uint64_t goal, asleep_ns;
	int rc;
};

static void *wait_count(void *arg)
{
	struct counted *w = arg;

	uint64_t begin = hd_now_ns();

	w->rc = hd_cntr_wait(w->c, w->goal, WAIT_MS);
	w->asleep_ns = hd_now_ns() - begin;
	return NULL;
}

static void counters_wake_at_their_goals(void **state)
{
	struct counted w[THREADS];
	struct hd_cntr *c;
	struct pair p;

	pair_open_with(&p, "shm", &node_locked, &node_locked);
	hd_node_lock(p.a.node);
	assert_int_equal(hd_cntr_open(p.a.node, &c), 0);
	hd_node_unlock(p.a.node);
	for (int failing = 0; failing < 2; failing++) {
		for (int i = 0; i < THREADS; i++) {
			w[i] = (struct counted){ .c = c, .goal = hd_cntr_read(c) + (unsigned)(i + 1) * 10 };
			assert_int_equal(pthread_create(&w[i].thread, NULL, wait_count, &w[i]), 0);
		}
		for (int n = 0; n < 10 * THREADS - (failing ? 10 : 0); n++) {
			hd_node_lock(p.a.node);
			hd_cntr_add(c, 1);
			hd_node_unlock(p.a.node);
			usleep(n % 4 * 100);
		}
		if (failing) {
			let_others_sleep();
			hd_node_lock(p.a.node);
			hd_cntr_adderr(c, 1);
			hd_node_unlock(p.a.node);
		}
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(w[i].thread, NULL), 0);
			assert_int_equal(w[i].rc, failing && i == THREADS - 1 ? -EIO : 0);
			assert_in_range(w[i].asleep_ns, 0, WAIT_MS / 2 * HD_NS_PER_MS);
		}
	}
	assert_int_equal(hd_cntr_wait(c, hd_cntr_read(c) + 1, 20), -ETIMEDOUT);
	hd_node_lock(p.a.node);
	assert_int_equal(hd_cntr_close(c), 0);
	hd_node_unlock(p.a.node);
	side_close(&p.a);
	side_close(&p.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_leave_while_another_sleeps),
		cmocka_unit_test(each_message_wakes_a_thread),
		cmocka_unit_test(thread_and_descriptor_wake_both),
		cmocka_unit_test(a_signal_wakes_all_who_wait),
		cmocka_unit_test(signals_at_any_moment_do_no_harm),
		cmocka_unit_test(waiting_for_credit_is_sleeping),
		cmocka_unit_test(waiting_for_own_credit_keeps_nobody_out),
		cmocka_unit_test(counters_wake_at_their_goals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
