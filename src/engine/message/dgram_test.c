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

/* A tagged datagram from a: it is always taken, and completes before the call returns. */
static void throw(struct pair * p, const void *buf, size_t len, uint64_t tag)
{
	const struct hd_cqe *e;

	assert_int_equal(hd_send(p->a.ep, p->a.to, buf, len, tag, 0, (void *)(uintptr_t)tag,
				 TAGGED(HD_SEND_COMPLETE)),
			 0);
	e = hd_cq_peek(p->a.cq);
	assert_non_null(e);
	assert_int_equal(e->err, 0);
	assert_int_equal(e->tag, tag);
	assert_true(e->flags & HD_C_SEND);
	hd_cq_pop(p->a.cq);
}

static void first_datagrams_wait_for_the_link(void **state)
{
	unsigned char in[4][HD_MAX_DGRAM], out[HD_MAX_DGRAM];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		open_pair(&p, t);
		for (unsigned i = 0; i < 4; i++)
			side_post(&p.b, in[i], sizeof(in[i]), i, 0, NULL, in[i]);
		for (unsigned i = 0; i < 4; i++) {
			test_fill(out, sizeof(out), i);
			throw(&p, out, sizeof(out), i); /* the buffer is free again */
		}
		for (unsigned i = 0; i < 4; i++) {
			struct hd_cqe e = pair_next(&p, &p.b);

			assert_int_equal(e.err, 0);
			assert_int_equal(e.tag, i);
			assert_int_equal(e.len, sizeof(out));
			assert_int_equal(e.src, hd_dest_id(p.b.to));
			test_check(in[i], sizeof(out), i);
		}
		assert_int_equal(p.a.ep->tx->ops, 0);
		pair_close(&p);
	}
}

static void what_finds_no_receive_is_dropped(void **state)
{
	unsigned char in[16], out[HD_MAX_DGRAM] = { 0 };
	struct pair p;

	EACH_TRANSPORT(t)
	{
		open_pair(&p, t);
		for (unsigned i = 0; i < 2000; i++) { /* many times all the credit that there is */
			throw(&p, out, i % 2 ? sizeof(out) : 8, 1);
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
		}
		pair_settle(&p, 50);
		assert_int_equal(p.b.node->peers->rx_held, 0);
		side_post(&p.b, in, sizeof(in), 0, UINT64_MAX, NULL, in);
		throw(&p, out, 8, 7);
		assert_int_equal(pair_next(&p, &p.b).tag, 7);
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
		assert_true(p.a.ep->tx->ops <= 64);
		pair_settle(&p, 50);
		assert_int_equal(p.a.ep->tx->ops, 0);
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
		pair_settle(&p, 100);
		assert_null(hd_cq_peek(p.a.cq));
		assert_int_equal(p.a.ep->tx->ops, 0);
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
		pair_settle(&p, 100);
		assert_null(hd_cq_peek(p.a.cq));
		assert_int_equal(p.a.ep->tx->ops, 0);
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
		assert_int_equal(pair_next(&p, &p.a).err, ECONNREFUSED);
		pair_push(&p, &p.a, out, 8, 1, HD_SEND_COMPLETE | HD_SEND_DELIVERED);
		assert_int_equal(pair_next(&p, &p.a).err, ECONNREFUSED);
		pair_push(&p, &p.a, out, sizeof(out), 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.a).err, ECONNREFUSED);
		pair_push(&p, &p.a, out, 8, 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		pair_settle(&p, 50);
		assert_int_equal(p.b.node->peers->rx_held, 0);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_datagrams_wait_for_the_link),
		cmocka_unit_test(what_finds_no_receive_is_dropped),
		cmocka_unit_test(nobody_waits_for_a_target_that_sleeps),
		cmocka_unit_test(an_unknown_destination_is_silence),
		cmocka_unit_test(a_target_that_closes_is_silence),
		cmocka_unit_test(reliable_senders_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
