/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Callers that go while they are accepted: who has accepted learns of it. */
#include "engine/test/test_rig.h"

/* The acceptor stands still. */
static void turn_of_two(struct rig *r)
{
	hd_node_poll(r->a.node);
	hd_node_poll(r->server);
}

/*
 * Nobody comes to be connected to the endpoint that has accepted, which is of another node than the
 * service: the caller has left or closed before it has read that it was accepted, or on its way
 * there. Where its node is there, that is told.
 */
static void caller_goes_late(void **state)
{
	EACH_TRANSPORT(transport)
	for (int way = 0; way < 4; way++) {
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		while (way / 2 && r.a.ep->conn->state == HD_CONN_ASKED)
			turn_of_two(&r);
		if (way % 2)
			end_close_ep(&r.a);
		else
			assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), 0);
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ECONNREFUSED);
		rig_close(&r);
	}
}

/* Its node goes before it could be told, also while that is under way. */
static void caller_goes_silently(void **state)
{
	setenv("HEDDLE_ANSWER_TIMEOUT", "100", 1);
	for (int under_way = 0; under_way < 2; under_way++) {
		struct rig r;
		struct got g;

		rig_open(&r, "tcp");
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		while (under_way && r.a.ep->conn->state == HD_CONN_ASKED)
			turn_of_two(&r);
		end_close(&r.a);
		end_open(&r.a, r.ea);
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_UP);
		assert_true(g.err == ETIMEDOUT || (under_way && g.err == ECONNRESET));
		rig_close(&r);
	}
	unsetenv("HEDDLE_ANSWER_TIMEOUT");
}

/* Of a call that was answered nothing is kept. */
static void answered_in_time(void **state)
{
	struct rig r;

	rig_open(&r, "tcp");
	join(&r);
	assert_int_equal(hd_conns(r.a.node)->next_withdrawn, 0);
	end_close_ep(&r.a);
	assert_int_equal(hd_conns(r.a.node)->next_withdrawn, 0); /* it was answered */
	assert_true(LIST_EMPTY(&hd_conns(r.a.node)->declines));
	rig_close(&r);
}

/* The caller gives up before it has read that it was accepted: the acceptance is answered. */
static void accepted_too_late(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct end late;
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		late = (struct end){ .node = r.server };
		assert_int_equal(hd_cq_open(r.server, &(struct hd_cq_attr){ .size = 64 }, &late.cq), 0);
		end_open_ep(&late, r.eb);
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(late.ep, called(&r), NULL), 0);
		assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), 0);
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ECONNREFUSED);
		end_close_ep(&late);
		assert_int_equal(hd_cq_close(late.cq), 0);
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caller_goes_late),
		cmocka_unit_test(caller_goes_silently),
		cmocka_unit_test(answered_in_time),
		cmocka_unit_test(accepted_too_late),
	};

	return cmocka_run_group_tests_name("decline", tests, NULL, NULL);
}
