/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What endpoints share: ports, receive queues, transmit bounds, names. */
#include "engine/test/test_pair.h"
#include "engine/test/test_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CROWD 40

static struct hd_ep_attr attr_of(const struct side *s)
{
	return (struct hd_ep_attr){ .type = HD_EP_RDM,
				    .policy = HD_EP_DIRECTED,
				    .tx_cq = s->cq,
				    .rx_cq = s->cq,
				    .min_multi_recv = 64 };
}

static struct hd_ep *open_ep(const struct side *s, const struct hd_ep_attr *attr)
{
	struct hd_ep *ep;

	assert_int_equal(hd_ep_open(s->node, attr, &ep), 0);
	return ep;
}

static struct hd_dest *dest_of(const struct side *s, const struct hd_ep *ep, uint32_t slot)
{
	struct sockaddr_storage name;
	struct hd_dest *dest;

	assert_int_equal(hd_ep_name(ep, AF_UNSPEC, &name), 0);
	if (slot)
		hd_name_set_slot((void *)&name, slot);
	assert_int_equal(hd_dest_get(s->node, (void *)&name, &dest), 0);
	return dest;
}

static void post(struct hd_ep *ep, void *buf, size_t len, uint32_t flags)
{
	struct iovec iov = { buf, len };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | flags, .tag = 1, .ctx = buf
	};

	assert_int_equal(hd_recv(ep, &args), 0);
}

static void push(struct pair *p, struct hd_ep *ep, struct hd_dest *to, const void *buf, size_t len,
		 uint32_t flags)
{
	int rc;

	while ((rc = hd_send(ep, to, buf, len, 1, 0, (void *)buf, TAGGED(flags))) == -EAGAIN)
		pair_settle(p, 1);
	assert_int_equal(rc, 0);
}

/* ---- receive queues -------------------------------------------------------------------------- */

struct shared {
	struct pair p;
	struct hd_rq *rq;
	struct hd_ep *poster, *ep[2];
	struct hd_dest *to[2];
};

static void shared_open(struct shared *s, const char *transport)
{
	struct hd_ep_attr attr;

	pair_open(&s->p, transport);
	assert_int_equal(hd_rq_open(s->p.b.node, true, &s->rq), 0);
	attr = attr_of(&s->p.b);
	attr.rq = s->rq;
	for (int i = 0; i < 2; i++) {
		s->ep[i] = open_ep(&s->p.b, &attr);
		s->to[i] = dest_of(&s->p.a, s->ep[i], 0);
		attr.policy |= HD_EP_RX_SELECTIVE; /* the second one */
	}
	attr = (struct hd_ep_attr){
		.type = HD_EP_RDM, .policy = HD_EP_NAMELESS, .rq = s->rq, .min_multi_recv = 64
	};
	s->poster = open_ep(&s->p.b, &attr);
}

static void shared_close(struct shared *s)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hd_rq_close(s->rq), -EBUSY);
		hd_dest_put(s->to[i]);
		if (s->ep[i])
			hd_ep_close(s->ep[i]);
	}
	hd_ep_close(s->poster);
	assert_int_equal(hd_rq_close(s->rq), 0);
	pair_close(&s->p);
}

/* Posted through one, taken by another, early and late, short and long. */
static void a_buffer_goes_to_whoever_gets_a_message(void **state)
{
	static unsigned char out[300000], in[2][300000];
	struct sockaddr_storage none;
	struct shared s;

	EACH_TRANSPORT(t)
	for (int late = 0; late < 2; late++)
		for (size_t n = 8; n <= sizeof(out); n += sizeof(out) - 8) {
			struct hd_cqe e;

			shared_open(&s, t);
			assert_int_equal(hd_ep_name(s.poster, AF_UNSPEC, &none), -ENOENT);
			test_fill(out, n, 3);
			for (int i = 0; i < 2 && !late; i++)
				post(s.poster, in[i], n, HD_RECV_COMPLETE);
			push(&s.p, s.p.a.ep, s.to[1], out, n, 0);
			pair_settle(&s.p, 20);
			push(&s.p, s.p.a.ep, s.to[0], out, n, 0);
			pair_settle(&s.p, 20);
			for (int i = 0; i < 2 && late; i++)
				post(s.poster, in[i], n, HD_RECV_COMPLETE);
			for (int i = 0; i < 2; i++) {
				e = pair_next(&s.p, &s.p.b);
				assert_int_equal(e.err, 0);
				assert_int_equal(e.ep, hd_ep_index(s.ep[e.ctx == in[0]]));
				test_check(e.ctx, n, 3);
			}
			shared_close(&s);
		}
}

/* What a receive leaves open, the endpoint that takes it decides. */
static void completions_are_as_the_taker_was_bound(void **state)
{
	unsigned char in[3][8];
	struct shared s;
	struct hd_cqe e;

	shared_open(&s, "shm");
	for (int i = 0; i < 3; i++)
		post(s.poster, in[i], 8, i < 2 ? HD_RECV_SHARED : HD_RECV_COMPLETE);
	for (int i = 2; i >= 0; i--) {
		push(&s.p, s.p.a.ep, s.to[i != 1], "1234567", 8,
		     0); /* to the selective one, but the second */
		pair_settle(&s.p, 20);
	}
	e = pair_next(&s.p, &s.p.b);
	assert_ptr_equal(e.ctx, in[1]);
	e = pair_next(&s.p, &s.p.b);
	assert_ptr_equal(e.ctx, in[2]);
	assert_null(hd_cq_peek(s.p.b.cq));
	shared_close(&s);
}

static void an_endpoint_that_closes_leaves_the_buffers(void **state)
{
	unsigned char in[2][8];
	struct shared s;
	struct hd_cqe e;

	EACH_TRANSPORT(t)
	{
		shared_open(&s, t);
		post(s.poster, in[0], 8, HD_RECV_COMPLETE);
		post(s.poster, in[1], 8, HD_RECV_COMPLETE);
		push(&s.p, s.p.a.ep, s.to[0], "1234567", 8, 0);
		assert_ptr_equal(pair_next(&s.p, &s.p.b).ctx, in[0]);
		hd_ep_close(s.ep[0]);
		s.ep[0] = NULL;
		push(&s.p, s.p.a.ep, s.to[1], "1234567", 8, 0);
		e = pair_next(&s.p, &s.p.b);
		assert_ptr_equal(e.ctx, in[1]);
		assert_int_equal(e.ep, hd_ep_index(s.ep[1]));
		shared_close(&s);
	}
}

/*
 * Cancelled and not found: said where somebody listens. Claimed, and its endpoint gone: an
 * error instead of the message.
 */
static void what_nobody_took_is_told_all_the_same(void **state)
{
	struct iovec iov = { (unsigned char[8]){ 0 }, 8 };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1, .ctx = &iov
	};
	struct hd_claim *claim;
	struct shared s;
	struct hd_cqe e;

	EACH_TRANSPORT(t)
	{
		shared_open(&s, t);
		assert_int_equal(hd_recv(s.poster, &args), 0);
		assert_int_equal(hd_cancel(s.poster, &iov), 0);
		assert_int_equal(pair_next(&s.p, &s.p.b).err, HD_S_CANCELLED);
		assert_int_equal(hd_peek(s.poster, &args, 0, NULL), 0);
		assert_int_equal(pair_next(&s.p, &s.p.b).err, HD_S_NO_MESSAGE);
		push(&s.p, s.p.a.ep, s.to[0], "1234567", 8, HD_SEND_ACKED | HD_SEND_COMPLETE);
		pair_settle(&s.p, 20);
		assert_int_equal(hd_peek(s.poster, &args, HD_PEEK_CLAIM, &claim), 0);
		e = pair_next(&s.p, &s.p.b);
		assert_int_equal(e.err, 0);
		assert_int_equal(e.ep, hd_ep_index(s.ep[0]));
		assert_non_null(claim);
		hd_ep_close(s.ep[0]);
		s.ep[0] = NULL;
		assert_int_equal(pair_next(&s.p, &s.p.a).err, HD_S_REFUSED);
		assert_int_equal(hd_claim_recv(s.poster, claim, &args), 0);
		e = pair_next(&s.p, &s.p.b);
		assert_int_not_equal(e.err, 0);
		assert_int_equal(e.ep, hd_ep_index(s.ep[1]));
		shared_close(&s);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * Descriptors are short: names stay different, each leads where it should, and the
 * port alone leads nowhere.
 */
static void crowded_endpoints_keep_their_names(void **state)
{
	struct rlimit before, few = { 64, 64 };
	struct hd_ep *ep[CROWD];
	struct hd_ep_attr attr;
	struct hd_dest *to;
	struct pair p;

	getrlimit(RLIMIT_NOFILE, &before);
	few.rlim_max = before.rlim_max;
	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		attr = attr_of(&p.b);
		setrlimit(RLIMIT_NOFILE, &few);
		for (int i = 0; i < CROWD; i++)
			ep[i] = open_ep(&p.b, &attr);
		assert_true(hd_names(p.b.node)->listening <= 64 / 4 + 1);
		for (int i = 0; i < CROWD; i++) {
			unsigned char in[8];

			to = dest_of(&p.a, ep[i], 0);
			assert_int_equal(hd_dest_id(to) == 0, 0);
			post(ep[i], in, sizeof(in), HD_RECV_COMPLETE);
			push(&p, p.a.ep, to, "1234567", 8, 0);
			assert_int_equal(pair_next(&p, &p.b).ep, hd_ep_index(ep[i]));
			hd_dest_put(to);
		}
		to = dest_of(&p.a, ep[CROWD - 1], 60000);
		push(&p, p.a.ep, to, "1234567", 8, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_REFUSED);
		hd_dest_put(to);
		for (int i = 0; i < CROWD; i++)
			hd_ep_close(ep[i]);
		setrlimit(RLIMIT_NOFILE, &before);
		pair_close(&p);
	}
}

/* A stranger's first call is for a slot, not for the port. */
static void a_slot_can_be_called_first(void **state)
{
	unsigned char in[8];
	struct hd_ep_attr attr;
	struct hd_ep *second;
	struct hd_dest *to;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		memset(&p, 0, sizeof(p));
		setenv("HEDDLE_TRANSPORT", t, 1);
		side_open(&p.a);
		side_open(&p.b);
		attr = attr_of(&p.b);
		attr.beside = p.b.ep;
		attr.slot = 5;
		second = open_ep(&p.b, &attr);
		assert_int_equal(hd_ep_open(p.b.node, &attr, &(struct hd_ep *){ NULL }), -EADDRINUSE);
		to = dest_of(&p.a, p.b.ep, 5);
		post(second, in, sizeof(in), HD_RECV_COMPLETE);
		push(&p, p.a.ep, to, "1234567", 8, 0);
		assert_int_equal(pair_next(&p, &p.b).ep, hd_ep_index(second));
		hd_dest_put(to);
		hd_ep_close(second);
		pair_close(&p);
	}
}

/* A nameless endpoint's messages come from the one that it stands beside. */
static void a_nameless_sender_has_its_neighbours_name(void **state)
{
	unsigned char in[8];
	struct hd_ep_attr attr;
	struct hd_ep *sender;
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		attr = attr_of(&p.a);
		attr.policy = HD_EP_NAMELESS;
		attr.beside = p.a.ep;
		sender = open_ep(&p.a, &attr);
		side_post(&p.b, in, sizeof(in), 1, 0, p.b.to, in);
		push(&p, sender, p.a.to, "1234567", 8, HD_SEND_COMPLETE);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.src, hd_dest_id(p.b.to));
		e = pair_next(&p, &p.a);
		assert_int_equal(e.ep, hd_ep_index(sender));
		hd_ep_close(sender);
		pair_close(&p);
	}
}

/* Nobody is told of it, but a peer could guess: it gets no buffer of those who share. */
static void a_nameless_endpoint_takes_no_messages(void **state)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_NAMELESS };
	unsigned char in[8];
	struct hd_ep *poster;
	struct hd_pkt pkt;
	struct wire w;
	struct side s;

	side_open(&s);
	attr.rq = s.ep->rq;
	poster = open_ep(&s, &attr);
	post(poster, in, sizeof(in), HD_RECV_COMPLETE);
	wire_greet(&w, &s);
	pkt = wire_eager(&w, 1, 0);
	pkt.dst = poster->index;
	pkt.gen = poster->gen;
	wire_say(&w, &pkt, "1234567", 8);
	wire_settle(&w);
	assert_int_equal(hd_rq_inspect(s.ep->rq).posted[1], 1);
	pkt = wire_eager(&w, 1, 0);
	wire_say(&w, &pkt, "1234567", 8);
	for (int i = 0; i < 5000 && !hd_cq_poll(s.cq); i++)
		wire_settle(&w);
	assert_non_null(hd_cq_peek(s.cq));
	assert_ptr_equal(hd_cq_peek(s.cq)->ctx, in);
	wire_hang_up(&w);
	hd_ep_close(poster);
	side_close(&s);
}

static void slots_are_read_only_where_they_were_written(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4000) }, rubbish;
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(4000) };

	assert_int_equal(hd_name_slot((void *)&in), 0);
	assert_int_equal(hd_name_slot((void *)&in6), 0);
	hd_name_set_slot((void *)&in, 300);
	hd_name_set_slot((void *)&in6, 300);
	assert_int_equal(hd_name_slot((void *)&in), 300);
	assert_int_equal(hd_name_slot((void *)&in6), 300);
	in.sin_port = in6.sin6_port = htons(4001); /* another address, in memory that held a name */
	assert_int_equal(hd_name_slot((void *)&in), 0);
	assert_int_equal(hd_name_slot((void *)&in6), 0);
	memset(&rubbish, 0xff, sizeof(rubbish));
	rubbish.sin_family = AF_INET;
	assert_int_equal(hd_name_slot((void *)&rubbish), 0);
	hd_name_set_slot((void *)&in, 0);
	hd_name_set_slot((void *)&in6, 0);
	for (size_t i = 0; i < sizeof(in.sin_zero); i++)
		assert_int_equal(in.sin_zero[i], 0);
	assert_int_equal(in6.sin6_flowinfo, 0);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Receives posted before are forgotten, what waits stays, completions go to the new queue. */
static void a_rebound_endpoint_completes_elsewhere(void **state)
{
	unsigned char in[2][8];
	struct hd_ep_attr attr;
	struct hd_cq *other;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		assert_int_equal(hd_cq_open(p.b.node, &(struct hd_cq_attr){ .size = 8 }, &other), 0);
		post(p.b.ep, in[0], 8, HD_RECV_COMPLETE);
		attr = attr_of(&p.b);
		attr.rx_cq = other;
		hd_ep_rebind(p.b.ep, &attr);
		push(&p, p.a.ep, p.a.to, "1234567", 8, 0);
		pair_settle(&p, 20);
		assert_null(hd_cq_peek(p.b.cq));
		assert_null(hd_cq_peek(other));
		assert_int_equal(hd_cq_close(other), -EBUSY);
		post(p.b.ep, in[1], 8, HD_RECV_COMPLETE);
		assert_ptr_equal(hd_cq_peek(other)->ctx, in[1]);
		hd_cq_pop(other);
		attr = attr_of(&p.b);
		hd_ep_rebind(p.b.ep, &attr);
		assert_int_equal(hd_cq_close(other), 0);
		pair_close(&p);
	}
}

/* Two endpoints, one bound: what one has under way the other has not. */
static void a_shared_bound_is_one_bound(void **state)
{
	struct hd_ep_attr attr;
	struct hd_txq *txq;
	struct hd_ep *ep[2];
	struct pair p;

	pair_open(&p, "tcp");
	assert_int_equal(hd_txq_open(p.a.node, 3, &txq), 0);
	attr = attr_of(&p.a);
	attr.txq = txq;
	for (int i = 0; i < 2; i++)
		ep[i] = open_ep(&p.a, &attr);
	assert_int_equal(hd_txq_close(txq), -EBUSY);
	for (int i = 0; i < 3; i++)
		push(&p, ep[i % 2], p.a.to, "1234567", 8, HD_SEND_ACKED | HD_SEND_COMPLETE);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hd_send(ep[i], p.a.to, "1", 1, 1, 0, NULL, TAGGED(HD_SEND_ACKED)), -EAGAIN);
	for (int i = 0; i < 2; i++)
		hd_ep_close(ep[i]);
	assert_int_equal(hd_txq_close(txq), 0);
	pair_close(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_goes_to_whoever_gets_a_message),
		cmocka_unit_test(completions_are_as_the_taker_was_bound),
		cmocka_unit_test(an_endpoint_that_closes_leaves_the_buffers),
		cmocka_unit_test(what_nobody_took_is_told_all_the_same),
		cmocka_unit_test(crowded_endpoints_keep_their_names),
		cmocka_unit_test(a_slot_can_be_called_first),
		cmocka_unit_test(a_nameless_sender_has_its_neighbours_name),
		cmocka_unit_test(a_nameless_endpoint_takes_no_messages),
		cmocka_unit_test(slots_are_read_only_where_they_were_written),
		cmocka_unit_test(a_rebound_endpoint_completes_elsewhere),
		cmocka_unit_test(a_shared_bound_is_one_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
