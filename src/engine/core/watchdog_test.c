/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program that polls until it has its message, and then looks at its memory without a word: the
 * node's thread learns of it.
 */
#include "engine/test/test_pair.h"

#include "engine/core/core.h"
#include "engine/mr/mr.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY 5
#define HOPES 8

static const struct hd_node_attr alone = { .front = "test" };
static const struct hd_node_attr automatic = { .front = "test", .auto_progress = true };

struct watched {
	struct pair p; /* a writes, b is written to and has the thread */
	struct hd_mr *mr;
	unsigned char mem[64], in[64], out[64];
	uint64_t end;
};

static void watched_open(struct watched *w)
{
	struct iovec iov = { w->mem, sizeof(w->mem) };
	const struct hd_mr_attr attr = {
		.iov = &iov, .count = 1, .access = HD_ACCESS_REMOTE_WRITE, .flags = HD_MR_KEY, .key = KEY
	};

	setenv("HEDDLE_TRANSPORT", "tcp", 1);
	side_open_with(&w->p.a, &alone);
	side_open_with(&w->p.b, &automatic);
	side_names(&w->p.a, &w->p.b);
	hd_node_lock(w->p.b.node);
	w->p.b.ep->policy |= HD_EP_REMOTE_WRITE;
	assert_int_equal(hd_mr_open(w->p.b.node, &attr, &w->mr), 0);
	hd_node_unlock(w->p.b.node);
	w->end = hd_now_ns() + PATIENCE;
}

static void watched_close(struct watched *w)
{
	hd_node_lock(w->p.b.node);
	hd_mr_close(w->mr);
	hd_node_unlock(w->p.b.node);
	side_close(&w->p.a);
	side_close(&w->p.b);
}

/* A polls until both have what they wait for; what it has gathered leaves when it polls. */
static void until_done(struct watched *w)
{
	bool a_done = false, b_done = false;

	while (!a_done || !b_done) {
		if (!a_done)
			a_done = side_poll(&w->p.a);
		else
			hd_node_poll(w->p.a.node);
		if (!b_done)
			b_done = side_poll(&w->p.b);
		assert_true(hd_now_ns() < w->end);
	}
}

/* A message, for which both programs poll. */
static void message(struct watched *w)
{
	struct side *a = &w->p.a, *b = &w->p.b;
	struct iovec in = { w->in, sizeof(w->in) };

	hd_node_lock(b->node);
	assert_int_equal(hd_recv(b->ep,
				 &(struct hd_recv_args){ .iov = &in, .count = 1, .flags = HD_RECV_COMPLETE }),
			 0);
	hd_node_unlock(b->node);
	while (hd_send(a->ep, a->to, w->out, sizeof(w->out), 0, 0, NULL, HD_SEND_COMPLETE) == -EAGAIN)
		hd_node_poll(a->node);
	until_done(w);
}

static void write_post(struct watched *w)
{
	const struct hd_rma_seg seg = { 0, sizeof(w->out), KEY };
	const struct iovec iov = { w->out, sizeof(w->out) };
	const struct hd_rma_args args = { .op = HD_RMA_WRITE,
					  .iov = &iov,
					  .count = 1,
					  .segs = &seg,
					  .seg_count = 1,
					  .flags = HD_SEND_COMPLETE };

	while (hd_rma(w->p.a.ep, w->p.a.to, &args) == -EAGAIN)
		hd_node_poll(w->p.a.node);
}

/* NULL, or what has not come in time. */
static void *polls_alone(void *arg)
{
	struct watched *w = arg;

	while (!side_poll(&w->p.a))
		if (hd_now_ns() >= w->end)
			return w;
	return NULL;
}

/*
 * A write, while the target's program is away. A's thread is another: one that had polled both
 * would see to b meanwhile (nodes.c).
 */
static void await_write(struct watched *w)
{
	pthread_t thread;
	void *late;

	assert_int_equal(pthread_create(&thread, NULL, polls_alone, w), 0);
	pthread_join(thread, &late);
	assert_null(late);
}

static void write_alone(struct watched *w)
{
	write_post(w);
	await_write(w);
}

static unsigned credit(struct watched *w)
{
	struct hd_node *node = w->p.b.node;
	unsigned n;

	hd_node_lock(node);
	n = hd_core(node)->worker.asks & HD_ASK_WATCHDOG ? hd_core(node)->worker.watchdog.credit : 0;
	hd_node_unlock(node);
	return n;
}

/*
 * The program polls on after each message: watching over it is in vain, and ends. The lock
 * keeps the thread out of it.
 */
static void polls_on(struct watched *w)
{
	struct hd_node *node = w->p.b.node;

	hd_node_lock(node);
	for (int i = 0; i < 64 && hd_core(node)->worker.asks & HD_ASK_WATCHDOG; i++) {
		hd_watchdog_polled(node, 1);
		for (int j = 0; j < 64; j++)
			hd_watchdog_polled(node, 0);
	}
	assert_false(hd_core(node)->worker.asks & HD_ASK_WATCHDOG);
	hd_node_unlock(node);
}

static void who_leaves_is_watched_over(void **state)
{
	struct watched w;

	watched_open(&w);
	assert_int_equal(credit(&w), 0);
	for (int rounds = 0; rounds<20; rounds += credit(&w)> 0) {
		message(&w);
		write_alone(&w);
	}
	polls_on(&w);
	message(&w);
	write_alone(&w);
	watched_close(&w);
}

/* B's thread has armed itself, and sleeps. */
static void until_asleep(struct watched *w)
{
	const struct hd_node_page *page = hd_core(w->p.b.node)->page;

	while (!(atomic_load(&page->sleep_seq) & 1)) {
		assert_true(hd_now_ns() < w->end);
		usleep(100);
	}
}

/*
 * One that leaves for longer: the thread sleeps armed, then is called back,
 * and watches over it again.
 */
static void who_stays_away_is_served(void **state)
{
	struct watched w;

	watched_open(&w);
	while (!credit(&w)) {
		message(&w);
		write_alone(&w);
	}
	for (int i = 0; i < 10; i++) {
		message(&w);
		until_asleep(&w);
		write_alone(&w);
		write_alone(&w);
	}
	watched_close(&w);
}

static void watch_begins(struct watched *w)
{
	struct hd_node *node = w->p.b.node;

	while (!credit(w)) {
		message(w);
		write_alone(w);
	}
	hd_node_lock(node);
	hd_core(node)->worker.watchdog.hopes = HOPES;
	hd_core(node)->worker.watchdog.pause = 0;
}

/*
 * What is written behind news comes with it: nobody is woken for it. The lock
 * keeps the thread out of it.
 */
static void what_follows_news_comes_with_it(void **state)
{
	struct watched w;
	struct hd_node *node;

	watched_open(&w);
	node = w.p.b.node;
	watch_begins(&w);
	w.mem[0] = 0;
	w.out[0] = 1;
	write_post(&w);
	while (!w.mem[0]) {
		hd_node_poll(w.p.a.node);
		hd_watchdog_polled(node, 1);
		assert_true(hd_now_ns() < w.end);
		hd_core(node)->worker.watchdog.hopes = HOPES;
	}
	assert_false(hd_core(node)->worker.watchdog.handed);
	hd_watchdog_polled(node, 1); /* nothing follows */
	assert_true(hd_core(node)->worker.watchdog.handed);
	hd_node_unlock(node);
	await_write(&w);
	watched_close(&w);
}

/*
 * Who waits in vain too often does so less, and who is left to look for something else still less.
 */
static void lingering_in_vain_pauses(void **state)
{
	struct watched w;
	struct hd_watchdog *g;

	watched_open(&w);
	watch_begins(&w);
	g = &hd_core(w.p.b.node)->worker.watchdog;
	for (int i = 0; i < HOPES; i++) {
		assert_int_equal(g->pause, 0);
		hd_watchdog_polled(w.p.b.node, 1);
	}
	assert_int_not_equal(g->pause, 0);
	g->handed = false;
	hd_watchdog_begin(w.p.b.node);
	hd_watchdog_begin(w.p.b.node);
	assert_int_equal(g->next_pause, 4 * g->pause / 2);
	hd_node_unlock(w.p.b.node);
	watched_close(&w);
}

/*
 * A program that gets news in each of its turns, as who asks and is answered: a linger of 30 us for
 * each sixteenth would be all it does.
 */
static void lingering_in_vain_becomes_rare(void **state)
{
	struct watched w;
	struct hd_watchdog *g;

	watched_open(&w);
	watch_begins(&w);
	g = &hd_core(w.p.b.node)->worker.watchdog;
	while (!g->pause)
		hd_watchdog_polled(w.p.b.node, 1);
	for (unsigned turns = g->pause; turns < 4096; turns *= 2) {
		assert_int_equal(g->pause, turns);
		for (unsigned i = 0; i < turns; i++)
			hd_watchdog_polled(w.p.b.node, 1);
	}
	hd_node_unlock(w.p.b.node);
	watched_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_leaves_is_watched_over),	   cmocka_unit_test(who_stays_away_is_served),
		cmocka_unit_test(what_follows_news_comes_with_it), cmocka_unit_test(lingering_in_vain_pauses),
		cmocka_unit_test(lingering_in_vain_becomes_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
