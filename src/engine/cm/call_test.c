/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Calls that come to nothing: nobody listens, who accepts says no or nothing, either end goes
 * before there is a connection.
 */
#include "engine/test/test_rig.h"
#include "said.h"

#include <errno.h>
#include <stdlib.h>

static bool none_left; /* memory for who is looked up next */

int __real_hd_dest_get_keyed(struct hd_node *node, const struct sockaddr *name, uint64_t auth,
			     struct hd_dest **out);
int __wrap_hd_dest_get_keyed(struct hd_node *node, const struct sockaddr *name, uint64_t auth,
			     struct hd_dest **out);
int __wrap_hd_dest_get_keyed(struct hd_node *node, const struct sockaddr *name, uint64_t auth,
			     struct hd_dest **out)
{
	return none_left ? -ENOMEM : __real_hd_dest_get_keyed(node, name, auth, out);
}

/* ---- not coming about ------------------------------------------------------------------------ */

static void nobody_listens(void **state)
{
	EACH_TRANSPORT(transport)
	{
		char in[8];
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		hd_service_close(r.service);
		r.service = NULL;
		assert_int_equal(post(&r.a, in, 8), 0);
		said_begin();
		call(&r, NULL);
		g = next(&r, r.ea);
		said_end();
		assert_true(said("no connection", "is the other program running"));
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ECONNREFUSED);
		assert_int_equal(completion(&r, &r.a).err, HD_S_CANCELLED);
		assert_int_equal(post(&r.a, in, 8), -ENOTCONN);
		assert_int_equal(say(&r.a, "x", 1), -ENOTCONN);
		assert_int_equal(hd_ep_connect(r.a.ep, &(struct hd_connect_args){ .to = (void *)&r.name }),
				 -EISCONN);
		rig_close(&r);
	}
}

/* An endpoint is no service, and a service that does not listen yet is none either. */
static void not_a_service(void **state)
{
	struct rig r;

	rig_open(&r, "shm");
	hd_service_close(r.service);
	assert_int_equal(hd_service_open(r.server, &(struct hd_service_attr){ 0 }, &r.service), 0);
	assert_int_equal(hd_service_name(r.service, AF_INET, &r.name), 0);
	call(&r, NULL);
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	end_close_ep(&r.a);
	end_open_ep(&r.a, r.ea);
	assert_int_equal(hd_ep_name(r.b.ep, AF_INET, &r.name), 0);
	call(&r, NULL);
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	none(&r, r.eb);
	rig_close(&r);
}

static void rejection_brings_data(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		said_begin();
		call(&r, NULL);
		hd_request_reject(called(&r), &(struct hd_cm_data){ "not you", 7, 3 });
		g = next(&r, r.ea);
		said_end();
		assert_true(said("no connection", "the program at the other end says no"));
		assert_int_equal(g.err, ECONNREFUSED);
		assert_string_equal(g.data, "not you");
		assert_int_equal(g.word, 3);
		assert_int_equal(r.service->pending, 0);
		rig_close(&r);
	}
}

static void no_answer(void **state)
{
	struct hd_request *request;
	struct rig r;

	setenv("HEDDLE_ANSWER_TIMEOUT", "100", 1);
	rig_open(&r, "shm");
	said_begin();
	call(&r, NULL);
	request = called(&r);
	assert_int_equal(next(&r, r.ea).err, ETIMEDOUT);
	said_end();
	assert_true(said("no connection", "`heddle info --links` there"));
	settle(&r, 5);
	assert_int_equal(hd_ep_accept(r.b.ep, request, NULL), -ECONNABORTED);
	none(&r, r.eb);
	rig_close(&r);
	unsetenv("HEDDLE_ANSWER_TIMEOUT");
}

/*
 * The caller goes while its request waits: unread, it vanishes; read, accepting it fails, and the
 * endpoint may take another.
 */
static void caller_goes(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_request *request;
		struct rig r;

		rig_open(&r, transport);
		call(&r, NULL);
		while (!r.service->pending)
			turn(&r);
		end_close_ep(&r.a);
		none(&r, r.eb);
		assert_int_equal(r.service->pending, 0);
		end_open_ep(&r.a, r.ea);
		call(&r, NULL);
		request = called(&r);
		end_close(&r.a);
		end_open(&r.a, r.ea);
		settle(&r, 20);
		assert_int_equal(hd_ep_accept(r.b.ep, request, NULL), -ECONNABORTED);
		assert_int_equal(r.service->pending, 0);
		join(&r);
		rig_close(&r);
	}
}

/* It gives up, and nobody has looked since: what has come by the answer counts. */
static void caller_goes_unseen(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_connect_args args = { .timeout_ms = 50 };
		struct hd_request *request;
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		args.to = (struct sockaddr *)&r.name;
		assert_int_equal(hd_ep_connect(r.a.ep, &args), 0);
		request = called(&r);
		while (!poll_event(r.ea, &g)) /* the service's node stands still meanwhile */
			hd_node_poll(r.a.node);
		assert_int_equal(g.err, ETIMEDOUT);
		assert_int_equal(hd_ep_accept(r.b.ep, request, NULL), -ECONNABORTED);
		assert_int_equal(r.service->pending, 0);
		end_close_ep(&r.a);
		end_open_ep(&r.a, r.ea);
		join(&r);
		rig_close(&r);
	}
}

/* The acceptor goes before the caller has come to it. */
static void acceptor_goes(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		end_close_ep(&r.b);
		g = next(&r, r.ea);
		if (!g.err) /* it had been told so much already */
			g = next(&r, r.ea);
		assert_true(g.err == ECONNREFUSED || g.code == HD_EV_DOWN);
		rig_close(&r);
	}
}

/* Another endpoint of the acceptor's node, with its name, takes its place. */
static void replace_acceptor(struct rig *r)
{
	struct sockaddr_storage name;
	const struct hd_ep_attr attr = { .type = HD_EP_MSG,
					 .tx_cq = r->b.cq,
					 .rx_cq = r->b.cq,
					 .bind = (struct sockaddr *)&name,
					 .evq = r->eb,
					 .owner = &r->b };

	assert_int_equal(hd_ep_name(r->b.ep, AF_INET, &name), 0);
	end_close_ep(&r->b);
	assert_int_equal(hd_ep_open(r->b.node, &attr, &r->b.ep), 0);
}

/*
 * The acceptance comes by another link than the word that the one before has
 * gone, and may be there first.
 */
static void acceptor_takes_anothers_place(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_request *rejected, *request;
		struct end before, other;
		int up = 0, down = 0;
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		before = r.a;
		end_open_ep(&r.a, r.ea);
		call(&r, NULL);
		rejected = called(&r);
		other = r.a;
		end_open_ep(&r.a, r.ea);
		call(&r, NULL);
		request = called(&r);
		hd_request_reject(rejected, NULL); /* what comes by that link is read first */
		replace_acceptor(&r);
		assert_int_equal(hd_ep_accept(r.b.ep, request, NULL), 0);
		for (int i = 0; i < 3; i++) {
			struct got g = next(&r, r.ea);

			up += g.code == HD_EV_UP && !g.err;
			down += g.code == HD_EV_DOWN;
		}
		assert_int_equal(up, 1);
		assert_int_equal(down, 1);
		assert_int_equal(next(&r, r.eb).code, HD_EV_UP);
		passes(&r, &r.a, &r.b, 100);
		end_close_ep(&before);
		end_close_ep(&other);
		rig_close(&r);
	}
}

static void backlog_is_kept(void **state)
{
	struct end more[3];
	struct rig r;

	rig_open(&r, "shm");
	hd_service_set_backlog(r.service, 2);
	for (int i = 0; i < 3; i++) {
		more[i] = r.a;
		end_open_ep(&more[i], r.ea);
		assert_int_equal(
			hd_ep_connect(more[i].ep, &(struct hd_connect_args){ .to = (void *)&r.name }), 0);
	}
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	assert_int_equal(r.service->pending, 2);
	hd_service_close(r.service); /* with requests that wait */
	r.service = NULL;
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
	none(&r, r.eb);
	for (int i = 0; i < 3; i++)
		end_close_ep(&more[i]);
	rig_close(&r);
}

/* There is no memory for whom the acceptance names. */
static void no_memory_for_the_way(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_request *request;
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		call(&r, NULL);
		request = called(&r);
		assert_int_equal(hd_ep_accept(r.b.ep, request, NULL), 0);
		none_left = true;
		g = next(&r, r.ea);
		none_left = false;
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, ENOMEM); /* nor is there any to tell him who has accepted */
		rig_close(&r);
	}
}

/* There is none at first: the acceptance is not lost. */
static void memory_for_the_way_comes(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		call(&r, NULL);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		none_left = true;
		while (r.a.ep->conn->state == HD_CONN_ASKED)
			turn(&r);
		none_left = false;
		g = next(&r, r.ea);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, 0);
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_UP);
		assert_int_equal(g.err, 0);
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_listens),	 cmocka_unit_test(not_a_service),
		cmocka_unit_test(rejection_brings_data), cmocka_unit_test(no_answer),
		cmocka_unit_test(no_memory_for_the_way), cmocka_unit_test(memory_for_the_way_comes),
		cmocka_unit_test(caller_goes),		 cmocka_unit_test(caller_goes_unseen),
		cmocka_unit_test(acceptor_goes),	 cmocka_unit_test(acceptor_takes_anothers_place),
		cmocka_unit_test(backlog_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
