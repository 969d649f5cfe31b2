/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Threads: nodes that several use at once, and nodes that make progress by themselves. A thread
 * does not assert: it counts what went wrong in struct worker, and the test looks at that.
 */
#include "engine/test/test_pair.h"
#include "engine/test/test_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- messages -------------------------------------------------------------------------------- */

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

		w->wrong += worker_post(w) != 0;
		test_fill(w->out, len, (unsigned)i);
		if (w->first)
			w->wrong += say(w, len) != 0;
		while (!w->wrong && (!sent || !got)) {
			if (!worker_await(w, &e)) {
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
			worker_open(&w[n][i], w[n][0].s.node);
			w[n][i].first = n;
			w[n][i].rounds = rounds;
		}
	}
	for (int i = 0; i < pairs; i++) {
		side_names(&w[0][i].s, &w[1][i].s);
		side_names(&w[1][i].s, &w[0][i].s);
	}
	for (int i = 0; i < 2 * pairs; i++)
		worker_start(&w[i % 2][i / 2], ping_pong);
	for (int i = 0; i < 2 * pairs; i++)
		worker_finish(&w[i % 2][i / 2]);
	for (int n = 0; n < 2; n++) {
		for (int i = 0; i < pairs; i++)
			worker_close(&w[n][i]);
		assert_int_equal(hd_node_close(w[n][0].s.node), 0);
	}
}

static void two_nodes_with_a_thread_each(void **state)
{
	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		ping_pong_of(&node_alone, 1, 400);
	}
}

static void several_threads_share_each_node(void **state)
{
	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		ping_pong_of(&node_locked, THREADS, 200);
	}
}

static void several_threads_share_nodes_that_have_their_own(void **state)
{
	EACH_TRANSPORT(t)
	{
		setenv("HEDDLE_TRANSPORT", t, 1);
		ping_pong_of(&node_automatic, THREADS, 100);
	}
}

/* ---- automatic progress ---------------------------------------------------------------------- */

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

/*
 * Neither program calls into its node after it has posted and sent; one sleeps, the other computes.
 */
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
		side_open_with(&p.a, &node_automatic);
		side_open_with(&p.b, &node_automatic);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_nodes_with_a_thread_each),
		cmocka_unit_test(several_threads_share_each_node),
		cmocka_unit_test(several_threads_share_nodes_that_have_their_own),
		cmocka_unit_test(messages_move_while_the_programs_do_not_care),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
