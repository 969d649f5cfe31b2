/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Unreliable endpoints: what arrives, what is lost, and that losing costs nobody anything. */
#include "engine/test/test_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void open_pair(struct pair *p, const char *transport)
{
	memset(p, 0, sizeof(*p));
	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open(&p->a);
	side_open(&p->b);
	side_endpoint(&p->a, HD_EP_DGRAM);
	side_endpoint(&p->b, HD_EP_DGRAM);
	side_names(&p->a, &p->b);
	side_names(&p->b, &p->a);
}

static int thrown, told; /* by a; what has completed */

static void hear(struct pair *p)
{
	const struct hd_cqe *e;

	for (; (e = hd_cq_peek(p->a.cq)); told++) {
		assert_int_equal(e->err, 0);
		assert_true(e->flags & HD_C_SEND);
		hd_cq_pop(p->a.cq);
	}
}

/*
 * A tagged datagram from a: it is always taken, and completes before the call returns,
 * unless it waits for the link.
 */
static void throw(struct pair * p, const void *buf, size_t len, uint64_t tag)
{
	assert_int_equal(hd_send(p->a.ep, p->a.to, buf, len, tag, 0, (void *)(uintptr_t)tag,
				 TAGGED(HD_SEND_COMPLETE)),
			 0);
	thrown++;
	hear(p);
	assert_int_equal(thrown - told, hd_ep_inspect(p->a.ep).outstanding);
}

static void all_told(struct pair *p)
{
	hear(p);
	assert_int_equal(told, thrown);
	assert_int_equal(hd_ep_inspect(p->a.ep).outstanding, 0);
}

static void first_datagrams_wait_for_the_link(void **state)
{
	static unsigned char in[4][HD_MAX_DGRAM], out[4][HD_MAX_DGRAM];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		thrown = told = 0;
		open_pair(&p, t);
		for (unsigned i = 0; i < 4; i++)
			side_post(&p.b, in[i], sizeof(in[i]), i, 0, NULL, in[i]);
		for (unsigned i = 0; i < 4; i++) {
			test_fill(out[i], sizeof(out[i]), i);
			throw(&p, out[i], sizeof(out[i]), i);
			assert_int_equal(told, 0); /* nobody has been reached */
		}
		for (unsigned i = 0; i < 4; i++) {
			struct hd_cqe e = pair_next(&p, &p.b);

			assert_int_equal(e.err, 0);
			assert_int_equal(e.tag, i);
			assert_int_equal(e.len, sizeof(out[i]));
			assert_int_equal(e.src, hd_dest_id(p.b.to));
			test_check(in[i], sizeof(out[i]), i);
		}
		all_told(&p);
		pair_close(&p);
	}
}

/*
 * What comes before its receive waits as in a socket: so much and no more, in order,
 * and its credit comes back.
 */
static void what_comes_early_is_kept_as_a_socket_would(void **state)
{
	static unsigned char in[HD_MAX_DGRAM], out[HD_MAX_DGRAM];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 2; i++) {
		size_t len = i ? sizeof(out) : 8;
		unsigned fits = 212992 / (len + 768), got = 0;

		open_pair(&p, t);
		thrown = told = 0;
		for (unsigned n = 0; n < 600; n++) {
			throw(&p, out, len, n);
			hd_node_poll(p.a.node);
			pair_settle(&p, 0);
			if (n == 300)
				assert_in_range(hd_rq_inspect(p.b.ep->rq).early, 1, 212992);
		}
		for (;; got++) {
			side_post(&p.b, in, sizeof(in), 0, UINT64_MAX, NULL, in);
			if (!hd_cq_peek(p.b.cq))
				break;
			assert_int_equal(hd_cq_peek(p.b.cq)->tag, got);
			hd_cq_pop(p.b.cq);
		}
		assert_int_equal(got, fits);
		assert_int_equal(hd_rq_inspect(p.b.ep->rq).early, 0);
		assert_int_equal(hd_peer_inspect(hd_links(p.b.node)->peers).held, 0);
		throw(&p, out, 8, 7777);
		assert_int_equal(pair_next(&p, &p.b).tag, 7777);
		assert_null(hd_cq_peek(p.b.cq));
		pair_close(&p);
	}
}

static void nobody_waits_for_a_target_that_sleeps(void **state)
{
	unsigned char in[16], out[4096] = { 0 };
	struct iovec iov[2] = { { out, 100 }, { out, 200 } };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		open_pair(&p, t);
		throw(&p, out, 8, 1);
		pair_settle(&p, 50);
		for (unsigned i = 0; i < 20000; i++) {
			throw(&p, out, sizeof(out), 2);
			assert_int_equal(hd_sendv(p.a.ep, p.a.to, iov, 2, 3, 0, NULL, HD_SEND_TAGGED), 0);
		}
		assert_true(hd_ep_inspect(p.a.ep).outstanding <= 64);
		pair_settle(&p, 50);
		assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
		side_post(&p.b, in, sizeof(in), 4, 0, NULL, in);
		throw(&p, out, 8, 4);
		assert_int_equal(pair_next(&p, &p.b).tag, 4);
		pair_close(&p);
	}
}

static void an_unknown_destination_is_silence(void **state)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = htons(1) };
	struct hd_dest *to;
	struct pair p;
	char byte = 0;

	inet_pton(AF_INET, "127.0.0.1", &nobody.sin_addr);
	EACH_TRANSPORT(t)
	{
		open_pair(&p, t);
		to = p.a.to;
		assert_int_equal(hd_dest_get(p.a.node, (void *)&nobody, &p.a.to), 0);
		for (unsigned i = 0; i < 200; i++)
			throw(&p, &byte, 1, i);
		pair_settle(&p, 50);
		all_told(&p);
		hd_dest_put(p.a.to);
		p.a.to = to;
		pair_close(&p);
	}
}

static void a_target_that_closes_is_silence(void **state)
{
	struct pair p;
	char byte = 0;

	EACH_TRANSPORT(t)
	{
		open_pair(&p, t);
		throw(&p, &byte, 1, 1);
		pair_settle(&p, 50);
		side_endpoint(&p.b, HD_EP_DGRAM);
		for (unsigned i = 0; i < 300; i++)
			throw(&p, &byte, 1, i);
		pair_settle(&p, 50);
		all_told(&p);
		pair_close(&p);
	}
}

/* A reliable sender that calls a datagram endpoint is told so where it waits for an answer. */
static void reliable_senders_are_answered(void **state)
{
	unsigned char out[200000] = { 0 };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		open_pair(&p, t);
		side_endpoint(&p.a, HD_EP_RDM);
		pair_push(&p, &p.a, out, 8, 1, HD_SEND_COMPLETE | HD_SEND_ACKED);
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_REFUSED);
		pair_push(&p, &p.a, out, 8, 1, HD_SEND_COMPLETE | HD_SEND_DELIVERED);
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_REFUSED);
		pair_push(&p, &p.a, out, sizeof(out), 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_REFUSED);
		pair_push(&p, &p.a, out, 8, 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		pair_settle(&p, 50);
		assert_int_equal(hd_peer_inspect(hd_links(p.b.node)->peers).held,
				 hd_units(8)); /* which did not want to be answered */
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_datagrams_wait_for_the_link),
		cmocka_unit_test(what_comes_early_is_kept_as_a_socket_would),
		cmocka_unit_test(nobody_waits_for_a_target_that_sleeps),
		cmocka_unit_test(an_unknown_destination_is_silence),
		cmocka_unit_test(a_target_that_closes_is_silence),
		cmocka_unit_test(reliable_senders_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
