/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Services that are shut: their port is free, and who has called and been read of
 * is answered all the same.
 */
#include "base/config.h"
#include "base/sockaddr.h"
#include "engine/test/test_rig.h"

/*
 * A rig whose service has been shut with a request that was read; the
 * service is the test's to close.
 */
static struct hd_request *shut_open(struct rig *r, const char *transport, struct hd_service **shut)
{
	struct hd_request *read;

	rig_open(r, transport);
	call(r, NULL);
	read = called(r);
	*shut = r->service;
	r->service = NULL;
	assert_int_equal(hd_service_shut(*shut), 1);
	settle(r, 20); /* the caller hears that there is no such service any more */
	return read;
}

static void shut_close(struct rig *r, struct hd_service *shut)
{
	hd_service_close(shut);
	rig_close(r);
}

/*
 * Another node has the port at once; who calls it comes there, from a node that
 * knew the one before, too.
 */
static void its_port_is_anothers(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_request *read, *other;
		struct sockaddr_storage name;
		struct hd_service *shut;
		struct end again, late;
		struct hd_node *next_node;
		struct rig r;

		read = shut_open(&r, transport, &shut);
		assert_int_equal(hd_service_name(shut, AF_INET, &name), 0);
		assert_memory_equal(&name, &r.name, hd_sockaddr_size((struct sockaddr *)&name));
		assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &next_node), 0);
		assert_int_equal(hd_service_open(next_node,
						 &(struct hd_service_attr){ .bind = (void *)&r.name },
						 &r.service),
				 0);
		assert_int_equal(
			hd_service_listen(r.service,
					  &(struct hd_listen_args){ .evq = r.eb, .owner = &r, .backlog = 8 }),
			0);
		again = (struct end){ .node = r.a.node, .cq = r.a.cq };
		end_open_ep(&again, r.ea);
		late = (struct end){ .node = r.b.node, .cq = r.b.cq };
		end_open_ep(&late, r.eb);
		assert_int_equal(hd_ep_connect(again.ep, &(struct hd_connect_args){ .to = (void *)&r.name }),
				 0);
		other = called(&r);
		assert_int_equal(hd_ep_accept(late.ep, other, NULL), 0);
		both_up(&r);
		assert_int_equal(hd_ep_accept(r.b.ep, read, NULL), 0);
		both_up(&r);
		passes(&r, &r.a, &r.b, 1000);
		end_close_ep(&again);
		end_close_ep(&late);
		hd_service_close(r.service);
		r.service = NULL;
		assert_int_equal(hd_node_close(next_node), 0);
		shut_close(&r, shut);
	}
}

static void who_is_not_answered_is_refused(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_service *shut;
		struct got g;
		struct rig r;

		shut_open(&r, transport, &shut);
		none(&r, r.ea);
		assert_int_equal(hd_node_close(r.server), -EBUSY);
		hd_service_close(shut);
		g = next(&r, r.ea);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ECONNREFUSED);
		rig_close(&r);
	}
}

/* He may think better of it meanwhile. */
static void the_caller_leaves(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_request *read;
		struct hd_service *shut;
		struct rig r;

		read = shut_open(&r, transport, &shut);
		assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), 0);
		settle(&r, 20);
		assert_int_equal(hd_ep_accept(r.b.ep, read, NULL), -ECONNABORTED);
		shut_close(&r, shut);
	}
}

/* The node goes, and its answer with it. */
static void the_node_dies(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_service *shut;
		struct got g;
		struct rig r;

		shut_open(&r, transport, &shut);
		hd_link_down(hd_links(r.a.node)->peers->link, -ECONNRESET, NULL);
		g = next(&r, r.ea);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ECONNRESET);
		shut_close(&r, shut);
	}
}

/*
 * A service is closed before a call to it has been taken in, and nobody makes progress there any
 * more: whoever has the port next gets it.
 */
static void who_is_not_read_of_calls_again(void **state)
{
	EACH_TRANSPORT(transport)
	{
		uint64_t until = hd_now_ns() + PATIENCE;
		struct hd_node *next_node;
		struct hd_service *after;
		struct got g;
		struct rig r;

		rig_open(&r, transport);
		join(&r); /* so that the port is known */
		end_close_ep(&r.a);
		end_open_ep(&r.a, r.ea);
		call(&r, NULL);
		hd_service_close(r.service);
		r.service = NULL;
		assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &next_node), 0);
		assert_int_equal(hd_service_open(next_node,
						 &(struct hd_service_attr){ .bind = (void *)&r.name },
						 &after),
				 0);
		assert_int_equal(
			hd_service_listen(after,
					  &(struct hd_listen_args){ .evq = r.ea, .owner = &r, .backlog = 8 }),
			0);
		do {
			hd_node_poll(next_node);
			assert_true(hd_now_ns() < until);
		} while (!poll_event(r.ea, &g));
		assert_int_equal(g.code, HD_EV_REQUEST);
		hd_request_reject(g.request, NULL);
		assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
		hd_service_close(after);
		assert_int_equal(hd_node_close(next_node), 0);
		rig_close(&r);
	}
}

/* Again and again: once is enough. */
static void shut_twice(void **state)
{
	struct hd_request *read;
	struct hd_service *shut;
	struct rig r;

	read = shut_open(&r, "tcp", &shut);
	assert_int_equal(hd_service_shut(shut), 1);
	assert_int_equal(hd_service_listen(shut, &(struct hd_listen_args){ .evq = r.eb, .backlog = 8 }),
			 -ESHUTDOWN);
	hd_request_reject(read, NULL);
	assert_int_equal(hd_service_shut(shut), 0);
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	shut_close(&r, shut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_port_is_anothers),
		cmocka_unit_test(who_is_not_answered_is_refused),
		cmocka_unit_test(who_is_not_read_of_calls_again),
		cmocka_unit_test(the_caller_leaves),
		cmocka_unit_test(the_node_dies),
		cmocka_unit_test(shut_twice),
	};

	hd_config_load();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
