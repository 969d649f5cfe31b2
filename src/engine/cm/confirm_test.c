/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections that are confirmed, services that shut, and event queues that
 * programs poll without arming.
 */
#include "engine/cm/test_space.h"
#include "engine/test/test_rig.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

static uint32_t space; /* own_space */

/* ---- confirming ------------------------------------------------------------------------------ */

static void answered(struct rig *r)
{
	struct got g;

	r->confirms = true;
	call(r, "q");
	assert_int_equal(hd_ep_confirm(r->a.ep), -ENOTCONN);
	assert_int_equal(hd_ep_accept(r->b.ep, called(r), &(struct hd_cm_data){ "yes", 3, 5 }), 0);
	g = next(r, r->ea);
	assert_int_equal(g.code, HD_EV_ANSWER);
	assert_string_equal(g.data, "yes");
	assert_int_equal(g.word, 5);
	none(r, r->eb);
}

static void the_acceptor_waits_for_the_word(void **state)
{
	struct rig r;

	rig_open_at(&r, "shm", space, 7477);
	answered(&r);
	assert_int_equal(hd_ep_confirm(r.a.ep), 0);
	assert_int_equal(next(&r, r.eb).code, HD_EV_UP);
	assert_int_equal(hd_ep_confirm(r.a.ep), -ENOTCONN);
	none(&r, r.ea);
	passes(&r, &r.a, &r.b, 100);
	passes(&r, &r.b, &r.a, 100);
	rig_close(&r);
}

/* The acceptor's program knows that the caller is there before the caller says so. */
static void the_acceptor_may_presume(void **state)
{
	struct rig r;

	for (int confirms = 0; confirms < 2; confirms++) {
		rig_open_at(&r, "shm", space, 7490 + (uint64_t)confirms);
		assert_int_equal(hd_ep_presume(r.b.ep), -ENOTCONN);
		answered(&r);
		assert_int_equal(hd_ep_presume(r.a.ep), -ENOTCONN);
		assert_int_equal(hd_ep_presume(r.b.ep), 0);
		assert_int_equal(hd_ep_presume(r.b.ep), -EISCONN);
		assert_int_equal(next(&r, r.eb).code, HD_EV_UP);
		if (confirms) {
			assert_int_equal(hd_ep_confirm(r.a.ep), 0);
			passes(&r, &r.a, &r.b, 100);
			none(&r, r.eb);
			assert_int_equal(hd_ep_presume(r.b.ep), -EISCONN);
		} else {
			assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), 0);
			assert_int_equal(next(&r, r.eb).code, HD_EV_DOWN);
			assert_int_equal(hd_ep_presume(r.b.ep), -ENOTCONN);
		}
		rig_close(&r);
	}
}

/*
 * Its program has taken the connection for made, so it lasts as others do, however long
 * the caller takes to say so.
 */
static void presumed_for_good(void **state)
{
	struct rig r;

	setenv("HEDDLE_ANSWER_TIMEOUT", "100", 1);
	for (int confirms = 0; confirms < 2; confirms++) {
		rig_open_at(&r, "shm", space, 7482 + (uint64_t)confirms);
		answered(&r);
		assert_int_equal(hd_ep_presume(r.b.ep), 0);
		assert_int_equal(next(&r, r.eb).code, HD_EV_UP);
		settle(&r, 250);
		none(&r, r.eb);
		if (confirms) {
			assert_int_equal(hd_ep_confirm(r.a.ep), 0);
			passes(&r, &r.a, &r.b, 100);
		} else {
			end_close(&r.a);
			end_open(&r.a, r.ea);
			assert_int_equal(next(&r, r.eb).code, HD_EV_DOWN);
		}
		rig_close(&r);
	}
	unsetenv("HEDDLE_ANSWER_TIMEOUT");
}

static void the_caller_may_think_better_of_it(void **state)
{
	struct rig r;
	struct got g;

	rig_open_at(&r, "shm", space, 7478);
	answered(&r);
	assert_int_equal(hd_ep_disconnect(r.a.ep, &(struct hd_cm_data){ "no, thanks", 10, 6 }), 0);
	g = next(&r, r.eb);
	assert_int_equal(g.code, HD_EV_UP);
	assert_int_equal(g.err, ECONNREFUSED);
	assert_int_equal(g.word, 6);
	assert_string_equal(g.data, "no, thanks");
	assert_int_equal(hd_ep_confirm(r.a.ep), -ENOTCONN);
	rig_close(&r);
}

/* The node that accepts has a link to the caller's, by which it learns that nobody will come. */
static void the_caller_may_be_gone(void **state)
{
	struct end b = { 0 };
	struct rig r;
	struct got g;

	for (int i = 0; i < 2; i++) {
		rig_open_at(&r, "tcp", space, 7484);
		b.node = r.server;
		end_open_ep(&b, r.eb);
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(b.ep, called(&r), NULL), 0);
		end_close_ep(&r.a);
		if (i == 1) {
			end_close(&r.a);
			end_open(&r.a, r.ea);
		}
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ECONNRESET);
		assert_int_equal(hd_events(r.server)->answered, 0);
		end_close_ep(&b);
		rig_close(&r);
	}
}

static void the_acceptor_may_be_gone(void **state)
{
	struct rig r;
	struct got g;

	rig_open_at(&r, "tcp", space, 7479);
	answered(&r);
	end_close_ep(&r.b);
	g = next(&r, r.ea);
	assert_int_equal(g.code, HD_EV_UP);
	assert_int_equal(g.err, ECONNRESET);
	assert_int_equal(hd_ep_confirm(r.a.ep), -ENOTCONN);
	rig_close(&r);
}

/* ---- queues that are polled ------------------------------------------------------------------ */

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* The program only looks at descriptors: everything comes about all the same. */
static void descriptors_are_enough(void **state)
{
	const struct hd_node_attr attr = { .front = "test", .locked = true, .serve = true };
	struct hd_evq *ea, *eb;
	struct got g;
	struct rig r = { .space = space, .number = 7480 };
	int fa, fb;

	assert_int_equal(hd_evq_open(64, &ea), 0);
	assert_int_equal(hd_evq_open(64, &eb), 0);
	fa = hd_evq_event_fd(ea);
	fb = hd_evq_event_fd(eb);
	assert_int_equal(hd_node_open(&attr, &r.server), 0);
	assert_int_equal(hd_node_open(&attr, &r.a.node), 0);
	r.eb = eb;
	hd_node_lock(r.server);
	service_open(&r);
	hd_node_unlock(r.server);
	hd_node_lock(r.a.node);
	end_open_ep(&r.a, ea);
	call(&r, "knock");
	hd_node_unlock(r.a.node);
	assert_true(readable(fb, 10000));
	assert_true(poll_event(eb, &g));
	assert_string_equal(g.data, "knock");
	assert_false(readable(fb, 0));
	assert_false(readable(fa, 0));
	hd_node_lock(r.server);
	hd_request_reject(g.request, NULL);
	hd_node_unlock(r.server);
	assert_true(readable(fa, 10000));
	assert_true(poll_event(ea, &g));
	assert_int_equal(g.err, ECONNREFUSED);
	assert_false(readable(fa, 0));
	hd_node_lock(r.a.node);
	end_close_ep(&r.a);
	hd_node_unlock(r.a.node);
	hd_node_lock(r.server);
	hd_service_close(r.service);
	hd_node_unlock(r.server);
	assert_int_equal(hd_node_close(r.a.node), 0);
	assert_int_equal(hd_node_close(r.server), 0);
	assert_int_equal(hd_evq_close(ea), 0);
	assert_int_equal(hd_evq_close(eb), 0);
}

/* What nobody has read goes along to the other queue, and so does what comes later. */
static void events_move(void **state)
{
	struct hd_evq *to;
	struct rig r;

	rig_open_at(&r, "tcp", space, 7481);
	assert_int_equal(hd_evq_open(64, &to), 0);
	call(&r, "early");
	settle(&r, 50);
	assert_int_equal(hd_service_set_evq(r.service, to), 0);
	none(&r, r.eb);
	assert_true(readable(hd_evq_event_fd(to), 0));
	assert_int_equal(hd_evq_close(to), -EBUSY);
	hd_request_reject(next(&r, to).request, NULL);
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	end_close_ep(&r.a);
	end_open_ep(&r.a, r.ea);
	assert_int_equal(hd_ep_set_evq(r.a.ep, to), 0);
	call(&r, "late");
	hd_request_reject(next(&r, to).request, NULL);
	assert_int_equal(next(&r, to).err, ECONNREFUSED);
	none(&r, r.ea);
	assert_int_equal(hd_service_set_evq(r.service, r.eb), 0);
	assert_int_equal(hd_ep_set_evq(r.a.ep, r.ea), 0);
	assert_int_equal(hd_evq_close(to), 0);
	rig_close(&r);
}

/*
 * A service that is shut answers what has been read, and nothing else; its name
 * can be had again at once.
 */
static void a_service_shuts(void **state)
{
	struct hd_service *again;
	struct hd_request *read;
	struct rig r;
	struct end c;

	rig_open_at(&r, "tcp", space, 7483);
	end_open(&c, r.ea);
	call(&r, NULL);
	read = called(&r);
	assert_int_equal(hd_ep_connect(c.ep, &(struct hd_connect_args){ .to = (void *)&r.name,
									.space = space,
									.number = 7483 }),
			 0);
	for (int i = 0; i < 1000 || r.service->pending < 2; i++) {
		turn(&r);
		hd_node_poll(c.node);
	}
	assert_int_equal(hd_service_shut(r.service), 1);
	again = r.service;
	service_open(&r);
	assert_int_equal(hd_ep_accept(r.b.ep, read, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct got g = { 0 };

		while (!poll_event(r.ea, &g)) {
			turn(&r);
			hd_node_poll(c.node);
		}
		assert_int_equal(g.err, g.owner == &c ? ECONNREFUSED : 0);
	}
	assert_int_equal(next(&r, r.eb).code, HD_EV_UP);
	hd_service_close(again);
	end_close(&c);
	end_close_ep(&r.a);
	assert_int_equal(next(&r, r.eb).code, HD_EV_DOWN);
	end_close_ep(&r.b);
	end_open_ep(&r.a, r.ea);
	end_open_ep(&r.b, r.eb);
	join(&r);
	rig_close(&r);
}

/* Calling, being turned away and closing a thousand times leaves nothing behind. */
static void nothing_grows(void **state)
{
	uint32_t dests = 0, eps = 0;
	struct rig r;

	rig_open_at(&r, "tcp", space, 7482);
	for (int i = 0; i < 1000; i++) {
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		both_up(&r);
		end_close_ep(&r.a);
		assert_int_equal(next(&r, r.eb).code, HD_EV_DOWN);
		end_close_ep(&r.b);
		end_open_ep(&r.a, r.ea);
		end_open_ep(&r.b, r.eb);
		if (i == 100) {
			dests = hd_links_inspect(r.a.node).dest_room;
			eps = hd_names(r.a.node)->ep_count;
		}
	}
	assert_int_equal(hd_links_inspect(r.a.node).dest_room, dests);
	assert_int_equal(hd_names(r.a.node)->ep_count, eps);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_acceptor_waits_for_the_word),
		cmocka_unit_test(the_acceptor_may_presume),
		cmocka_unit_test(presumed_for_good),
		cmocka_unit_test(the_caller_may_think_better_of_it),
		cmocka_unit_test(the_acceptor_may_be_gone),
		cmocka_unit_test(the_caller_may_be_gone),
		cmocka_unit_test(descriptors_are_enough),
		cmocka_unit_test(events_move),
		cmocka_unit_test(a_service_shuts),
		cmocka_unit_test(nothing_grows),
	};

	hd_config_load();
	space = own_space();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
