/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The other end of a queue pair: it is called, cannot be reached, goes, or is another
 * than who sends something.
 */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define LONG (300u << 10)

static unsigned char out[1 << 20], in[1 << 20];

/* ---- it is called ---------------------------------------------------------------------------- */

/*
 * a is ready for b by an address that b's greeting does not carry, and where
 * nobody answers at the time.
 */
static void ready_in_vain(struct pair *p)
{
	struct hd_qp_attr attr = qp_attr();
	struct sockaddr_storage name;
	struct hd_dest *dest;

	assert_int_equal(hd_ep_name(p->b.ep, AF_INET, &name), 0);
	((struct sockaddr_in *)&name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	attr.to = (void *)&name;
	assert_int_equal(hd_ep_pair(p->a.ep, &attr), 0);
	dest = p->a.ep->qp->life.dest;
	assert_int_equal(dest->state, HD_DEST_CONNECTING);
	hd_link_down(dest->link, -EHOSTUNREACH, "as where no way leads");
	pair_settle(p, 5);
	assert_int_equal(dest->state, HD_DEST_IDLE);
}

static void called_when_something_comes(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, RC);
		ready_in_vain(&p);
		qp_ready(&p.b, &p.a, NULL);
		qp_recv(&p.a, in, sizeof(in), in);
		qp_send(&p.b, out, 8, out);
		qp_expect(&p, &p.a, in, 0);
		qp_expect(&p, &p.b, out, 0);
		pair_close(&p);
	}
}

/* ---- it is another, or none ------------------------------------------------------------------ */

static void strangers(void **state)
{
	struct side other;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		side_open(&other);
		qp_open(&other, RC, NULL);
		qp_ready(&other, &p.b, NULL);
		qp_recv(&p.b, in, sizeof(in), in);
		qp_send(&other, out, 8, out);
		while (!hd_cq_peek(other.cq)) {
			hd_node_poll(other.node);
			pair_settle(&p, 1);
		}
		assert_int_equal(hd_cq_peek(other.cq)->err, HD_S_REFUSED);
		qp_silence(&p, &p.b, 5);
		qp_send(&p.a, out, 8, out);
		qp_expect(&p, &p.b, in, 0);
		qp_expect(&p, &p.a, out, 0);
		side_close(&other);
		pair_close(&p);
	}
}

static void other_node_gone(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 3; i++)
			qp_send(&p.a, out, i ? LONG : 8, &out[i]);
		pair_settle(&p, 10);
		side_close(&p.b);
		side_open(&p.b);
		assert_true(pair_next(&p, &p.a).err);
		for (int i = 1; i < 3; i++)
			qp_expect(&p, &p.a, &out[i], HD_S_CANCELLED);
		pair_close(&p);
	}
}

static void nobody_there(void **state)
{
	struct sockaddr_storage name;
	struct hd_qp_attr attr = qp_attr();
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		qp_open(&p.a, RC, NULL);
		assert_int_equal(hd_send(p.a.ep, *hd_ep_to(p.a.ep), out, 1, 0, 0, NULL, 0), -ENOTCONN);
		hd_ep_fail(p.a.ep); /* what has failed flushes, whoever it would have been for */
		qp_send(&p.a, out, 8, &out[0]);
		qp_expect(&p, &p.a, &out[0], HD_S_CANCELLED);
		hd_ep_reset(p.a.ep);
		assert_int_equal(hd_ep_name(p.b.ep, AF_UNSPEC, &name), 0);
		hd_name_set_slot((void *)&name, 77);
		attr.to = (void *)&name;
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), 0);
		assert_int_equal(hd_ep_pair(p.a.ep, &attr), -EISCONN);
		qp_send(&p.a, out, 8, &out[0]);
		qp_send(&p.a, out, LONG, &out[1]);
		qp_expect(&p, &p.a, &out[0], HD_S_REFUSED);
		qp_expect(&p, &p.a, &out[1], HD_S_CANCELLED);
		pair_close(&p);
	}
}

/*
 * A request that meets a queue pair of another kind is not carried out, nor called good; the link,
 * and what else goes over it, stays.
 */
static void requests_of_another_kind(void **state)
{
	static const uint32_t kinds[] = { UC, HD_EP_NUMBERED | HD_EP_DROP };
	unsigned char from[8] = { 0 }, to[8];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 4; i++) {
		const struct hd_peer *peer;

		qps_new(&p, t, RC);
		qp_open(&p.b, kinds[i / 2], NULL);
		qp_ready(&p.a, &p.b, NULL);
		qp_ready(&p.b, &p.a, NULL);
		qp_recv(&p.b, to, sizeof(to), to);
		pair_settle(&p, 10);
		peer = hd_links(p.a.node)->peers;
		if (i % 2)
			qp_rma(&p.a, HD_RMA_READ, from, sizeof(from), 77, to, from, HD_SEND_COMPLETE);
		else
			qp_send(&p.a, from, sizeof(from), from);
		qp_expect(&p, &p.a, from, HD_S_REFUSED);
		pair_settle(&p, 5);
		assert_null(hd_cq_peek(p.b.cq));
		assert_true(peer && hd_links(p.a.node)->peers == peer &&
			    hd_peer_inspect(peer).state == HD_PEER_LIVE);
		pair_close(&p);
	}
}

/*
 * Nor is a write, by packet with its data, by an offer, or by a copy of the initiator's own
 * where it finds the memory.
 */
static void writes_of_another_kind(void **state)
{
	static const size_t lens[] = { 8, 8192, 1 << 20 };
	static unsigned char from[1 << 20], to[1 << 20];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 6; i++) {
		const uint32_t flags = HD_SEND_COMPLETE | (i < 3 ? 0 : HD_SEND_IMM);
		const struct hd_peer *peer;
		struct hd_mr *mr;

		memset(from, 1, sizeof(from));
		memset(to, 0, sizeof(to));
		qps_new(&p, t, RC);
		qp_open(&p.b, UC | ALL_RIGHTS, NULL);
		qps_ready(&p);
		mr = qp_region(&p.b, to, sizeof(to), 0);
		qp_recv(&p.b, NULL, 0, to);
		pair_settle(&p, 10);
		peer = hd_links(p.a.node)->peers;
		qp_rma(&p.a, HD_RMA_WRITE, from, lens[i % 3], hd_mr_key(mr), to, from, flags);
		qp_expect(&p, &p.a, from, HD_S_REFUSED);
		pair_settle(&p, 5);
		assert_null(hd_cq_peek(p.b.cq));
		for (size_t k = 0; k < lens[i % 3]; k++)
			assert_int_equal(to[k], 0);
		assert_true(peer && hd_links(p.a.node)->peers == peer &&
			    hd_peer_inspect(peer).state == HD_PEER_LIVE);
		hd_node_lock(p.b.node);
		assert_int_equal(hd_mr_close(mr), 0);
		hd_node_unlock(p.b.node);
		pair_close(&p);
	}
}

/* An unreliable one's comes to nothing at a reliable one, and its sender hears nothing of that. */
static void an_unreliable_request_at_a_reliable_one(void **state)
{
	unsigned char from[8] = { 0 }, to[8];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_new(&p, t, UC);
		qp_open(&p.b, RC, NULL);
		qps_ready(&p);
		qp_recv(&p.b, to, sizeof(to), to);
		qp_send(&p.a, from, sizeof(from), from);
		qp_expect(&p, &p.a, from, 0);
		qp_silence(&p, &p.b, 10);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(called_when_something_comes),
		cmocka_unit_test(strangers),
		cmocka_unit_test(other_node_gone),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(requests_of_another_kind),
		cmocka_unit_test(writes_of_another_kind),
		cmocka_unit_test(an_unreliable_request_at_a_reliable_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
