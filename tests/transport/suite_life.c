/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Links that end, links that never come to be, and many links. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "transport/suite_tests.h"

static void close_end(struct world *w, struct rig_end *end)
{
	rig_lock(end->node);
	rig_end_close(end, -ECONNABORTED);
	rig_unlock(end->node);
	world_kick(end->node);
}

static void still_works(struct world *w, int from, int to)
{
	const struct rig_plan plan = { .packets = 100, .most = 5000, .how = RIG_SEND | RIG_PUT };
	struct pair p = world_pair(w, from, to);

	pair_plan(w, &p, &plan);
	world_until(w, 20, pair_quiet, &p);
}

void suite_closing_an_end_is_noticed_by_the_other(void **state)
{
	struct world w;

	world_open(&w, *state, 2);
	for (int i = 0; i < 6; i++) {
		struct pair p = world_pair(&w, i % 2, (i + 1) % 2);

		close_end(&w, i / 2 % 2 ? p.a : p.b);
		world_until(&w, 20, end_gone, p.a);
		world_until(&w, 20, end_gone, p.b);
		assert_true(p.a->err < 0 && p.b->err < 0);
	}
	still_works(&w, 0, 1);
	world_close(&w);
}

void suite_closing_under_traffic_leaves_nothing(void **state)
{
	struct rig_plan plan = { .packets = UINT64_MAX,
				 .most = HD_FRAME_MAX,
				 .message_most = 1 << 20,
				 .truncates = true,
				 .may_fail = true };
	uint64_t random = suite_seed();
	struct world w;

	world_open(&w, *state, 2);
	plan.how = RIG_SEND | RIG_SENDV | RIG_PUT | RIG_UNPUT | (w.suite->fetches ? RIG_RTS | RIG_UNGET : 0);
	for (int i = 0; i < 5 + SUITE_SCALE(10); i++) {
		struct pair p = world_pair(&w, 0, w.count - 1);

		pair_plan(&w, &p, &plan);
		for (uint64_t turns = rig_between(&random, 0, 40); turns; turns--)
			world_turn(&w);
		close_end(&w, rig_draw(&random) % 2 ? p.a : p.b);
		world_until(&w, 20, end_gone, p.a);
		world_until(&w, 20, end_gone, p.b);
	}
	still_works(&w, 0, w.count - 1);
	world_close(&w);
}

static bool all_gone(void *arg)
{
	struct world *w = arg;
	struct rig_end *end;

	for (int i = 0; i < w->count; i++)
		TAILQ_FOREACH(end, &w->node[i]->ends, entry)
			if (!end->closed)
				return false;
	return true;
}

void suite_closing_while_connecting_leaves_nothing(void **state)
{
	struct rig_end *end;
	struct world w;

	world_open(&w, *state, 2);
	for (int i = 0; i < 24; i++) {
		assert_int_equal(world_call(&w, 0, 1, &end), 0);
		for (int turns = i / 2; turns; turns--)
			world_turn(&w);
		close_end(&w, end);
		world_until(&w, 20, end_gone, end);
	}
	world_until(&w, 20, all_gone, &w);
	still_works(&w, 0, 1);
	world_close(&w);
}

/* A call that must come to nothing, at once or later. Returns the negative errno. */
static int fails(struct world *w, int rc, struct rig_end *end)
{
	if (rc)
		return rc;
	world_until(w, 20, end_gone, end);
	return end->err;
}

void suite_a_place_where_nobody_listens_refuses(void **state)
{
	struct rig_end *end = NULL;
	struct hd_listener *l;
	struct world w;
	struct hd_port *port;
	int to, rc;

	world_open(&w, *state, 2);
	to = w.count - 1;
	l = &w.listener[to];
	port = w.node[to]->port[0];
	rig_lock(port->node);
	port->transport->unlisten(port, l);
	rig_unlock(port->node);
	rc = world_call(&w, 0, to, &end);
	assert_int_equal(fails(&w, rc, end), -ECONNREFUSED);
	rig_lock(port->node);
	assert_int_equal(port->transport->listen(port, l), 0);
	rig_unlock(port->node);
	still_works(&w, 0, to);
	world_close(&w);
}

void suite_a_stranger_is_not_let_in(void **state)
{
	struct rig_end *end = NULL;
	struct world w;
	int rc;

	world_open(&w, *state, 2);
	rig_lock(w.node[1]);
	w.node[1]->allows = false;
	rig_unlock(w.node[1]);
	rc = world_call(&w, 0, 1, &end);
	assert_true(fails(&w, rc, end) < 0);
	rig_lock(w.node[1]);
	assert_int_equal(w.node[1]->opened, 0);
	w.node[1]->allows = true;
	rig_unlock(w.node[1]);
	still_works(&w, 0, 1);
	world_close(&w);
}

static bool up_or_gone(void *arg)
{
	struct rig_end *end = arg;

	return (end->up && end->greeted) || end_gone(end);
}

/*
 * Cut, damaged and invented adverts. A damaged one may still lead somewhere; then the
 * link must come up as any.
 */
void suite_a_bad_advert_is_refused(void **state)
{
	unsigned char good[HD_HELLO_ADVERT], bad[HD_HELLO_ADVERT];
	uint64_t random = suite_seed();
	struct hd_port *port;
	struct world w;
	size_t len;

	world_open(&w, *state, 2);
	port = w.node[1]->port[0];
	rig_lock(w.node[1]);
	len = port->transport->advertise(port, good, sizeof(good));
	rig_unlock(w.node[1]);
	assert_in_range(len, 1, sizeof(good));
	for (int i = 0; i < 120; i++) {
		size_t bad_len = i % 3 ? len : rig_draw(&random) % len;
		struct rig_end *end;
		int rc;

		memcpy(bad, good, sizeof(bad));
		if (i % 3 == 1)
			bad[rig_draw(&random) % len] ^= (unsigned char)(1u << rig_draw(&random) % 8);
		if (i % 3 == 2)
			rig_fill(bad, 0, sizeof(bad), rig_draw(&random));
		rig_lock(w.node[0]);
		rc = rig_connect(w.node[0]->port[0], bad, bad_len, &end);
		rig_unlock(w.node[0]);
		if (rc) {
			assert_true(rc < 0);
			continue;
		}
		world_until(&w, 20, up_or_gone, end);
		close_end(&w, end);
		world_until(&w, 20, end_gone, end);
	}
	still_works(&w, 0, 1);
	world_close(&w);
}

void suite_a_node_that_is_not_known_is_not_let_in(void **state)
{
	struct rig_end *end = NULL;
	struct world w;
	int rc;

	world_open(&w, *state, 2);
	rig_lock(w.node[1]);
	w.node[1]->knows = false;
	rig_unlock(w.node[1]);
	rc = world_call(&w, 0, 1, &end);
	assert_true(fails(&w, rc, end) < 0);
	rig_lock(w.node[1]);
	assert_int_equal(w.node[1]->opened, w.node[1]->closed);
	w.node[1]->knows = true;
	rig_unlock(w.node[1]);
	still_works(&w, 0, 1);
	world_close(&w);
}

#define LINKS 64

/*
 * With threads a quarter of them: so many threads take long to be scheduled, and tell nothing more.
 */
void suite_many_links_from_one_node(void **state)
{
	const struct rig_plan plan = {
		.packets = 60, .most = 3000, .burst = 20, .how = RIG_SEND | RIG_SENDV | RIG_PUT
	};
	int links = ((struct mode *)*state)->threads ? LINKS / 4 : LINKS;
	struct pair p[LINKS];
	struct world w;

	world_open(&w, *state, links + 1);
	world_lock(&w);
	for (int i = 0; i <= links; i++)
		w.node[i]->sleepy = true;
	world_unlock(&w);
	for (int i = 0; i < links; i++)
		p[i] = world_pair(&w, 0, i + 1);
	for (int i = 0; i < links; i++)
		pair_plan(&w, &p[i], &plan);
	for (int i = 0; i < links; i++)
		world_until(&w, 50, pair_quiet, &p[i]);
	for (int i = 0; i < links; i += 2)
		close_end(&w, p[i].a);
	for (int i = 0; i < links; i += 2)
		world_until(&w, 20, end_gone, p[i].b);
	for (int i = 1; i < links; i += 2)
		pair_plan(&w, &p[i], &plan);
	for (int i = 1; i < links; i += 2)
		world_until(&w, 50, pair_quiet, &p[i]);
	world_close(&w);
}
