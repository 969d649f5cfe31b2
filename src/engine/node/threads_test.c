/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Threads: nodes that several use at once, nodes that make progress by themselves, and sleepers, whom nothing may be kept from. A
 * thread does not assert: it counts what went wrong in struct worker, and the test looks at that.
 */
#include "engine/test/test_pair.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define WAIT_MS 20000

struct worker {
	pthread_t thread;
	struct side s; /* whose node it uses, with an endpoint and a CQ of its own */
	struct worker *other;
	int first; /* sends first */
	int rounds;
	int wrong;
	int rc;
	uint64_t cpu_ns; /* what it has used */
	uint64_t asleep_ns; /* its longest wait: one that ends at its time-out was not woken, even if it then finds something */
	unsigned char *out, *in;
};

#define LONGEST (200u << 10)

static const struct hd_node_attr locked = { .front = "test", .locked = true };
static const struct hd_node_attr alone = { .front = "test" };
static const struct hd_node_attr automatic = { .front = "test", .auto_progress = true };

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * HD_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void start(struct worker *w, void *(*fn)(void *))
{
	assert_int_equal(pthread_create(&w->thread, NULL, fn, w), 0);
}

static void finish(struct worker *w)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	assert_int_equal(w->wrong, 0);
	assert_in_range(w->asleep_ns, 0, WAIT_MS / 2 * HD_NS_PER_MS);
}

static int asleep(struct worker *w)
{
	uint64_t begin = hd_now_ns();
	int rc = hd_cq_wait(w->s.cq, WAIT_MS);

	if (hd_now_ns() - begin > w->asleep_ns)
		w->asleep_ns = hd_now_ns() - begin;
	return rc;
}

/* An endpoint and a CQ more on a node that stands. */
static void another_endpoint(struct worker *w, struct hd_node *node)
{
	w->s.node = node;
	hd_node_lock(node);
	assert_int_equal(hd_cq_open(node, &(struct hd_cq_attr){ .size = 64, .waitable = true }, &w->s.cq), 0);
	assert_int_equal(
		hd_ep_open(node,
			   &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = w->s.cq, .rx_cq = w->s.cq },
			   &w->s.ep),
		0);
	hd_node_unlock(node);
	w->out = malloc(LONGEST);
	w->in = malloc(LONGEST);
}

static void close_endpoint(struct worker *w)
{
	hd_node_lock(w->s.node);
	if (w->s.to)
		hd_dest_put(w->s.to);
	hd_ep_close(w->s.ep);
	assert_int_equal(hd_cq_close(w->s.cq), 0);
	hd_node_unlock(w->s.node);
	free(w->out);
	free(w->in);
}

/* ---- messages ------------------------------------------------------------------------------------------------------------ */

/* The next completion of the worker's CQ; asleep until it comes. False: it did not, or with an error. */
static bool await(struct worker *w, struct hd_cqe *out)
{
	const struct hd_cqe *e;

	for (;;) {
		hd_node_lock(w->s.node);
		e = hd_cq_peek(w->s.cq);
		if (e) {
			*out = *e;
			hd_cq_pop(w->s.cq);
		}
		hd_node_unlock(w->s.node);
		if (e)
			return !out->err;
		if (asleep(w) < 0)
			return false;
	}
}

static int post(struct worker *w)
{
	struct iovec iov = { w->in, LONGEST };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1
	};
	int rc;

	hd_node_lock(w->s.node);
	rc = hd_recv(w->s.ep, &args);
	hd_node_unlock(w->s.node);
	return rc;
}

static int say(struct worker *w, size_t len)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	do {
		hd_node_lock(w->s.node);
		rc = hd_send(w->s.ep, w->s.to, w->out, len, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE));
		if (rc == -EAGAIN)
			hd_node_poll(w->s.node);
		hd_node_unlock(w->s.node);
	} while (rc == -EAGAIN && hd_now_ns() < end);
	return rc;
}

static size_t length_of(int round)
{
	return round % 16 == 15 ? LONGEST : round % 4 == 3 ? 3000 : 8;
}

static bool is_wrong(const unsigned char *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i<len; i += len> 100 ? 97 : 1)
		if (at[i] != (unsigned char)(seed + i * 31 + (i >> 8)))
			return true;
	return false;
}

static void *ping_pong(void *arg)
{
	struct worker *w = arg;
	struct hd_cqe e;

	for (int i = 0; i < w->rounds && !w->wrong; i++) {
		size_t len = length_of(i);
		bool sent = false, got = false;

		w->wrong += post(w) != 0;
		test_fill(w->out, len, (unsigned)i);
		if (w->first)
			w->wrong += say(w, len) != 0;
		while (!w->wrong && (!sent || !got)) {
			if (!await(w, &e)) {
				w->wrong++;
				break;
			}
			if (e.flags & HD_C_SEND) {
				sent = true;
				continue;
			}
			got = true;
			w->wrong += e.len != len || is_wrong(w->in, len, (unsigned)i);
			if (!w->first)
				w->wrong += say(w, len) != 0;
		}
	}
	hd_node_lock(w->s.node); /* what was said last may wait for a poll */
	hd_node_poll(w->s.node);
	hd_node_unlock(w->s.node);
	return NULL;
}

static void ping_pong_of(const struct hd_node_attr *attr, int pairs, int rounds)
{
	struct worker w[2][THREADS] = { 0 };

	for (int n = 0; n < 2; n++) {
		assert_int_equal(hd_node_open(attr, &w[n][0].s.node), 0);
		for (int i = 0; i < pairs; i++) {
			another_endpoint(&w[n][i], w[n][0].s.node);
			w[n][i].first = n;
			w[n][i].rounds = rounds;
		}
	}
	for (int i = 0; i < pairs; i++) {
		side_names(&w[0][i].s, &w[1][i].s);
		side_names(&w[1][i].s, &w[0][i].s);
	}
	for (int i = 0; i < 2 * pairs; i++)
		start(&w[i % 2][i / 2], ping_pong);
	for (int i = 0; i < 2 * pairs; i++)
		finish(&w[i % 2][i / 2]);
	for (int n = 0; n < 2; n++) {
		for (int i = 0; i < pairs; i++)
			close_endpoint(&w[n][i]);
		assert_int_equal(hd_node_close(w[n][0].s.node), 0);
	}
}

static void two_nodes_with_a_thread_each(void **state)
{
	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		ping_pong_of(&alone, 1, 400);
	}
}

static void several_threads_share_each_node(void **state)
{
	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		ping_pong_of(&locked, THREADS, 200);
	}
}

static void several_threads_share_nodes_that_have_their_own(void **state)
{
	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		ping_pong_of(&automatic, THREADS, 100);
	}
}

/* ---- automatic progress ------------------------------------------------------------------------------------------------------ */

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

static struct hd_cntr *count_receives(struct side *s)
{
	struct hd_cntr *c;

	hd_node_lock(s->node);
	assert_int_equal(hd_cntr_open(s->node, &c), 0);
	hd_ep_close(s->ep);
	assert_int_equal(hd_ep_open(s->node,
				    &(struct hd_ep_attr){ .type = HD_EP_RDM,
							  .tx_cq = s->cq,
							  .rx_cq = s->cq,
							  .cntrs = { .send = c, .recv = c } },
				    &s->ep),
			 0);
	hd_node_unlock(s->node);
	return c;
}

static void close_counter(struct side *s, struct hd_cntr *c)
{
	if (s->to)
		hd_dest_put(s->to);
	s->to = NULL;
	hd_node_lock(s->node);
	hd_ep_close(s->ep);
	assert_int_equal(hd_cntr_close(c), 0);
	assert_int_equal(hd_cq_close(s->cq), 0);
	hd_node_unlock(s->node);
	assert_int_equal(hd_node_close(s->node), 0);
}

static void post_many(struct side *s, unsigned char *in, size_t len, int count)
{
	hd_node_lock(s->node);
	for (int i = 0; i < count; i++)
		side_post(s, in + (size_t)i * len, len, 1, 0, NULL, in);
	hd_node_unlock(s->node);
}

static bool comes_to(struct hd_cntr *c, uint64_t value, bool computing)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (hd_cntr_read(c) < value && hd_now_ns() < end)
		if (!computing)
			usleep(1000);
	return hd_cntr_read(c) == value;
}

/* Neither program calls into its node after it has posted and sent; one sleeps, the other computes. */
static void messages_move_while_the_programs_do_not_care(void **state)
{
	const size_t len = LONGEST;
	unsigned char *out = malloc(8 * len), *in = malloc(8 * len);
	struct hd_cntr *sent, *got;
	struct pair p;

	test_fill(out, 8 * len, 3);
	EACH_TRANSPORT(t)
	for (int computing = 0; computing < 2; computing++) {
		memset(in, 0, 8 * len);
		memset(&p, 0, sizeof(p));
		setenv("HEDDLE_TRANSPORT", t, 1);
		side_open_with(&p.a, &automatic);
		side_open_with(&p.b, &automatic);
		sent = count_receives(&p.a);
		got = count_receives(&p.b);
		side_names(&p.a, &p.b);
		post_many(&p.b, in, len, 8);
		hd_node_lock(p.a.node);
		for (size_t i = 0; i < 8; i++)
			assert_int_equal(hd_send(p.a.ep, p.a.to, out + i * len, len, 1, 0, NULL, TAGGED(0)),
					 0);
		hd_node_unlock(p.a.node);
		assert_true(comes_to(got, 8, computing));
		assert_true(comes_to(sent, 8, computing));
		hd_node_lock(p.b.node); /* the thread's writes are ours from here on */
		test_check(in, 8 * len, 3);
		hd_node_unlock(p.b.node);
		hd_node_lock(p.a.node);
		hd_dest_put(p.a.to);
		p.a.to = NULL;
		hd_node_unlock(p.a.node);
		close_counter(&p.a, sent);
		close_counter(&p.b, got);
	}
	free(out);
	free(in);
}

/* ---- sleepers ---------------------------------------------------------------------------------------------------------------- */

static void *wait_once(void *arg)
{
	struct worker *w = arg;

	w->rc = asleep(w);
	w->cpu_ns = thread_cpu_ns();
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
	usleep(5000); /* into the kernel */
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

/* One thread sleeps on its CQ; another sends, and calls nothing else: everything leaves, to the other node and to itself. */
static void sends_leave_while_another_sleeps(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	for (int to_self = 0; to_self < 2; to_self++) {
		struct worker sleeper = { 0 }, receiver = { .rounds = 50 };
		struct side *to;
		char text[8] = "text";

		pair_open_with(&p, t, &locked, &locked);
		to = to_self ? &p.a : &p.b;
		another_endpoint(&sleeper, p.a.node);
		hd_node_lock(p.a.node);
		hd_dest_put(p.a.to);
		hd_node_unlock(p.a.node);
		side_names(&p.a, to);
		receiver.s = *to;
		receiver.s.to = NULL;
		receiver.in = malloc(LONGEST);
		start(&sleeper, wait_once);
		wait_until_asleep(sleeper.s.cq, 1);
		for (int i = 0; i < 50; i++) {
			struct hd_cqe e;

			assert_int_equal(post(&receiver), 0);
			if (i % 8 == 0)
				usleep(3000); /* links cool down */
			hd_node_lock(p.a.node);
			assert_int_equal(hd_send(p.a.ep, p.a.to, text, 8, 1, 0, NULL, TAGGED(0)), 0);
			if (i % 2)
				assert_int_equal(hd_send(p.a.ep, p.a.to, text, 8, 1, 0, NULL, TAGGED(0)), 0);
			hd_node_unlock(p.a.node);
			if (i % 2)
				assert_int_equal(post(&receiver), 0);
			if (to_self) { /* whoever waits here would make progress: only look */
				assert_true(comes_to_cq(to->cq, 1 + i % 2));
			} else {
				assert_true(await(&receiver, &e));
				if (i % 2)
					assert_true(await(&receiver, &e));
			}
		}
		hd_cq_signal(sleeper.s.cq);
		finish(&sleeper);
		assert_int_equal(sleeper.rc, -ECANCELED);
		close_endpoint(&sleeper);
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

	w->wrong = !await(w, &e);
	w->cpu_ns = thread_cpu_ns();
	return NULL;
}

/* As many threads sleep on one CQ as messages come: each gets one, also when all of them come at once. */
static void each_message_wakes_a_thread(void **state)
{
	struct worker w[THREADS];
	char text[8] = "text";
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open_with(&p, t, &locked, &locked);
		for (int round = 0; round < 30; round++) {
			for (int i = 0; i < THREADS; i++) {
				w[i] = (struct worker){ .s = p.b, .in = malloc(LONGEST) };
				assert_int_equal(post(&w[i]), 0);
				start(&w[i], take_one);
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
			for (int n = 0; !round && n < 1000; n++) { /* the first time, somebody has to greet */
				hd_node_lock(p.a.node);
				hd_node_poll(p.a.node);
				hd_node_unlock(p.a.node);
				usleep(100);
			}
			for (int i = 0; i < THREADS; i++) {
				finish(&w[i]);
				free(w[i].in);
			}
		}
		side_close(&p.a);
		side_close(&p.b);
	}
}

/* A thread sleeps on the CQ, the program polls its descriptor: neither takes the other's wake away. */
static void thread_and_descriptor_wake_both(void **state)
{
	char text[8] = "text";
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open_with(&p, t, &locked, &locked);
		for (int round = 0; round < 20; round++) {
			struct worker w = { .s = p.b, .in = malloc(LONGEST) };
			struct pollfd fd = { .fd = hd_cq_fd(p.b.cq), .events = POLLIN };
			const struct hd_cqe *e;
			int rc;

			assert_int_equal(post(&w), 0);
			assert_int_equal(post(&w), 0);
			start(&w, take_one);
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
			finish(&w);
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

	pair_open_with(&p, "shm", &locked, &locked);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < THREADS; i++) {
			w[i] = (struct worker){ .s = p.b };
			start(&w[i], wait_once);
		}
		wait_until_asleep(p.b.cq, THREADS);
		hd_cq_signal(p.b.cq);
		if (round % 2)
			hd_cq_signal(p.b.cq);
		for (int i = 0; i < THREADS; i++) {
			finish(&w[i]);
			assert_int_equal(w[i].rc, -ECANCELED);
		}
		while (hd_cq_wait(p.b.cq, 1) == -ECANCELED)
			;
	}
	uint64_t cpu = thread_cpu_ns();

	assert_int_equal(hd_cq_wait(p.b.cq, 200), -EAGAIN);
	assert_in_range(thread_cpu_ns() - cpu, 0, 50 * HD_NS_PER_MS);
	side_close(&p.a);
	side_close(&p.b);
}

/* Signals that come while the waiter comes and goes: none is lost, and none makes the next sleep a short one for ever. */
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

	pair_open_with(&p, "shm", &locked, &locked);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_cq_open(p.b.node, &(struct hd_cq_attr){ .size = 8 }, &cq),
			 0); /* descriptors on demand */
	hd_node_unlock(p.b.node);
	w.s.cq = cq;
	start(&w, signal_often);
	while (hd_cq_wait(cq, 50) == -ECANCELED)
		;
	finish(&w);
	while (hd_cq_wait(cq, 1) == -ECANCELED)
		;
	cpu = thread_cpu_ns();
	assert_int_equal(hd_cq_wait(cq, 200), -EAGAIN);
	assert_in_range(thread_cpu_ns() - cpu, 0, 50 * HD_NS_PER_MS);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_cq_close(cq), 0);
	hd_node_unlock(p.b.node);
	side_close(&p.a);
	side_close(&p.b);
}

/* What is queued waits for credit that the other end does not give: the waiter sleeps, and goes on when the credit comes. */
static void waiting_for_credit_is_sleeping(void **state)
{
	unsigned char out[4096] = { 0 };
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	EACH_TRANSPORT(t)
	{
		struct worker sleeper = { 0 }, receiver = { 0 };
		struct hd_cqe e;

		pair_open_with(&p, t, &locked, &locked);
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
		assert_false(TAILQ_EMPTY(&p.a.node->busy));
		another_endpoint(&sleeper, p.a.node);
		start(&sleeper, wait_once);
		wait_until_asleep(sleeper.s.cq, 1);
		usleep(200000);
		receiver.s = p.b;
		receiver.in = malloc(LONGEST);
		for (int i = 0; i < 40; i++) {
			assert_int_equal(post(&receiver), 0);
			assert_true(await(&receiver, &e));
		}
		hd_cq_signal(sleeper.s.cq);
		finish(&sleeper);
		assert_in_range(sleeper.cpu_ns, 0, 60 * HD_NS_PER_MS);
		close_endpoint(&sleeper);
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
	pair_open_with(&p, "shm", &locked, &locked);
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
	another_endpoint(&sleeper, p.a.node);
	start(&sleeper, wait_once);
	wait_until_asleep(sleeper.s.cq, 1);
	receiver.s = p.a;
	receiver.in = malloc(LONGEST);
	for (int i = 0; i < 40; i++)
		assert_int_equal(post(&receiver), 0);
	assert_true(comes_to_cq(p.a.cq, 40));
	hd_cq_signal(sleeper.s.cq);
	finish(&sleeper);
	close_endpoint(&sleeper);
	free(receiver.in);
	side_close(&p.a);
	side_close(&p.b);
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

/* ---- counters ------------------------------------------------------------------------------------------------------------- */

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

	pair_open_with(&p, "shm", &locked, &locked);
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
			usleep(10000);
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
		cmocka_unit_test(two_nodes_with_a_thread_each),
		cmocka_unit_test(several_threads_share_each_node),
		cmocka_unit_test(several_threads_share_nodes_that_have_their_own),
		cmocka_unit_test(messages_move_while_the_programs_do_not_care),
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
