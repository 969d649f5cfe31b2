/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints and peers that go away in the middle of something: everything ends, once,
 * and nothing is left behind.
 */
#include "engine/test/test_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* ---- closing under way ----------------------------------------------------------------------- */

/* The other endpoint closes while more is queued for it than it has granted credit for. */
static void gone_endpoint_fails_what_is_queued(void **state)
{
	unsigned char out[4096] = { 0 };
	struct pair p;
	int failed = 0;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		failed = 0;
		for (int i = 0; i < 100; i++)
			assert_int_equal(hd_send(p.a.ep, p.a.to, out, sizeof(out), 1, 0, out,
						 TAGGED(HD_SEND_COMPLETE | HD_SEND_INJECT)),
					 0);
		pair_settle(&p, 50);
		assert_true(hd_peer_inspect(p.a.to->peer).queued);
		hd_ep_close(p.b.ep);
		for (int i = 0; i < 100; i++)
			failed += pair_next(&p, &p.a).err == HD_S_REFUSED;
		assert_true(failed > 50);
		hd_dest_put(p.b.to);
		assert_int_equal(hd_cq_close(p.b.cq), 0);
		assert_int_equal(hd_node_close(p.b.node), 0);
		side_close(&p.a);
	}
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

/*
 * The sender closes its endpoint between two frames of a long message, and its memory goes away:
 * nothing reads that any more, and the receive ends in error.
 */
static void sender_closes_between_frames(void **state)
{
	const size_t n = 64 << 20;
	unsigned char *in = malloc(n);
	struct pair p;

	setenv("HEDDLE_DIRECT_COPY", "no", 1);
	EACH_TRANSPORT(t)
	for (int turns = 0; turns < 5; turns++) {
		unsigned char *out = calloc(1, n);

		pair_open(&p, t);
		side_post(&p.b, in, n, 1, 0, NULL, in);
		in[0] = 1;
		pair_push(&p, &p.a, out, n, 1, HD_SEND_COMPLETE);
		while (in[0]) {
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
		}
		for (int i = 0; i < turns; i++)
			hd_node_poll(p.a.node);
		hd_ep_close(p.a.ep);
		free(out);
		assert_int_not_equal(pair_next(&p, &p.b).err, 0);
		assert_true(TAILQ_EMPTY(&hd_links(p.b.node)->peers->pending));
		hd_dest_put(p.a.to);
		assert_int_equal(hd_cq_close(p.a.cq), 0);
		assert_int_equal(hd_node_close(p.a.node), 0);
		side_close(&p.b);
	}
	unsetenv("HEDDLE_DIRECT_COPY");
	free(in);
}

/* ---- messages that come in pieces ------------------------------------------------------------ */

#define LONG_ONE 50000u

/* Half of an eager message is on its way to s. */
static void begin_message(struct wire *w, struct side *s, uint8_t flags)
{
	static const unsigned char half[LONG_ONE / 2];
	struct hd_pkt pkt;

	wire_greet(w, s);
	pkt = wire_eager(w, 1, flags);
	wire_head(w, &pkt, LONG_ONE);
	wire_raw(w, half, sizeof(half));
	wire_settle(w);
	assert_int_equal(hd_rq_inspect(s->ep->rq).waiting[1] > 0, 1);
}

static void end_message(struct wire *w)
{
	static const unsigned char half[LONG_ONE / 2];

	wire_raw(w, half, sizeof(half));
	wire_check(w, LONG_ONE);
	wire_settle(w);
}

/* The node holds no message of the peer, and has given back all of its credit. */
static void no_credit_is_held(const struct side *s)
{
	assert_int_equal(hd_peer_inspect(hd_links(s->node)->peers).held, 0);
	assert_int_equal(hd_peer_inspect(hd_links(s->node)->peers).taken_in, 0);
}

static void hear_answer(struct wire *w, uint8_t kind, uint32_t op, int err)
{
	do
		assert_true(wire_hear(w));
	while (w->pkt.kind == HD_PKT_GONE);
	assert_int_equal(w->pkt.kind, kind);
	assert_int_equal(w->pkt.op, op);
	assert_int_equal(w->pkt.imm, err);
}

/* The message is answered with this, once. */
static void one_answer(struct wire *w, uint8_t kind, int err)
{
	const struct hd_pkt last = { .kind = HD_PKT_RTS, .op = 99, .dst = UINT32_MAX };
	const uint64_t len = 1;

	hear_answer(w, kind, 77, err);
	wire_say(w, &last, &len, sizeof(len));
	hear_answer(w, HD_PKT_FIN, 99, HD_S_REFUSED);
}

/* Closes the endpoint of s, so that only the node and its queue are left. */
static void close_endpoint(struct side *s)
{
	hd_ep_close(s->ep);
	s->ep = NULL;
}

static void close_rest(struct side *s)
{
	assert_int_equal(hd_cq_close(s->cq), 0);
	assert_int_equal(hd_node_close(s->node), 0);
}

enum found {
	WAITS,
	MATCHED,
	CLAIMED
};

/* What has become of the half message in the meantime. */
static struct hd_claim *find_message(struct side *s, enum found how, unsigned char *in)
{
	struct iovec iov = { in, LONG_ONE };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1, .ctx = in
	};
	struct hd_claim *claim = NULL;

	if (how == MATCHED)
		assert_int_equal(hd_recv(s->ep, &args), 0);
	args.count = 0;
	if (how == CLAIMED) {
		assert_int_equal(hd_peek(s->ep, &args, HD_PEEK_CLAIM, &claim), 0);
		assert_non_null(claim);
		hd_cq_pop(s->cq);
	}
	return claim;
}

/*
 * The endpoint closes while a message for it is coming in: the sender gets one
 * answer, and nothing is kept.
 */
static void endpoint_closes_within_a_message(void **state)
{
	static const uint8_t flags[] = { HD_PKT_F_ACK, HD_PKT_F_DELIVERED,
					 HD_PKT_F_ACK | HD_PKT_F_DELIVERED };
	unsigned char *in = malloc(LONG_ONE);
	struct wire w;
	struct side s;

	for (enum found how = WAITS; how <= CLAIMED; how++)
		for (size_t i = 0; i < sizeof(flags); i++) {
			side_open(&s);
			begin_message(&w, &s, flags[i]);
			find_message(&s, how, in);
			close_endpoint(&s);
			end_message(&w);
			one_answer(&w, HD_PKT_FIN, HD_S_REFUSED);
			no_credit_is_held(&s);
			wire_hang_up(&w);
			close_rest(&s);
		}
	free(in);
}

/*
 * Of all who are in the middle of one each is told, and so is nobody else: the next one
 * of theirs is as any other.
 */
static void endpoint_closes_within_messages_of_several(void **state)
{
	struct wire w[3];
	struct side s;

	side_open(&s);
	for (int i = 0; i < 3; i++)
		begin_message(&w[i], &s, HD_PKT_F_ACK);
	end_message(&w[1]);
	close_endpoint(&s);
	for (int i = 0; i < 3; i++) {
		if (i != 1)
			end_message(&w[i]);
		one_answer(&w[i], HD_PKT_FIN, HD_S_REFUSED);
	}
	for (int i = 0; i < 3; i++)
		wire_hang_up(&w[i]);
	close_rest(&s);
}

/*
 * The sender dies in the middle: a receive that has met the message gets an error, and
 * the message is forgotten.
 */
static void sender_dies_within_a_message(void **state)
{
	unsigned char *in = malloc(LONG_ONE);
	struct wire w;
	struct side s;

	for (enum found how = WAITS; how <= CLAIMED; how++) {
		struct iovec iov = { in, LONG_ONE };
		struct hd_recv_args args = { .iov = &iov,
					     .count = 1,
					     .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE,
					     .tag = 1,
					     .ctx = in };
		struct hd_claim *claim;

		side_open(&s);
		begin_message(&w, &s, 0);
		claim = find_message(&s, how, in);
		wire_hang_up(&w);
		while (hd_links(s.node)->peers)
			hd_node_poll(s.node);
		if (how == CLAIMED)
			assert_int_equal(hd_claim_recv(s.ep, claim, &args), 0);
		if (how == WAITS) {
			assert_null(hd_cq_peek(s.cq));
		} else {
			assert_int_equal(hd_cq_peek(s.cq)->err, HD_S_LOST);
			assert_ptr_equal(hd_cq_peek(s.cq)->ctx, in);
			hd_cq_pop(s.cq);
		}
		assert_int_equal(hd_links_inspect(s.node).units, 0);
		close_endpoint(&s);
		close_rest(&s);
	}
	free(in);
}

/* A claimed message is given back before all of it is here. */
static void claim_is_discarded_within_a_message(void **state)
{
	static const uint8_t flags[] = { HD_PKT_F_ACK, HD_PKT_F_DELIVERED };
	struct wire w;
	struct side s;

	for (size_t i = 0; i < sizeof(flags); i++) {
		side_open(&s);
		begin_message(&w, &s, flags[i]);
		hd_claim_discard(s.ep, find_message(&s, CLAIMED, NULL), NULL);
		end_message(&w);
		one_answer(&w, HD_PKT_ACK, 0);
		no_credit_is_held(&s);
		wire_hang_up(&w);
		close_endpoint(&s);
		close_rest(&s);
	}
}

/*
 * It waits as soon as it is announced, so it is found and discarded then; its sender
 * hears that it was taken.
 */
static void half_a_message_is_found_and_discarded(void **state)
{
	static const uint8_t flags[] = { HD_PKT_F_ACK, HD_PKT_F_DELIVERED };
	const struct hd_recv_args args = { .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1 };
	struct wire w;
	struct side s;

	for (size_t i = 0; i < sizeof(flags); i++) {
		side_open(&s);
		begin_message(&w, &s, flags[i]);
		for (int peek = 0; peek < 3; peek++) { /* looked at, discarded, gone */
			assert_int_equal(hd_peek(s.ep, &args, peek == 1 ? HD_PEEK_DISCARD : 0, NULL), 0);
			assert_int_equal(hd_cq_peek(s.cq)->err, peek == 2 ? HD_S_NO_MESSAGE : 0);
			assert_int_equal(hd_cq_peek(s.cq)->len, peek == 2 ? 0 : LONG_ONE);
			hd_cq_pop(s.cq);
		}
		end_message(&w);
		one_answer(&w, HD_PKT_ACK, 0);
		no_credit_is_held(&s);
		wire_hang_up(&w);
		close_endpoint(&s);
		close_rest(&s);
	}
}

/* ---- multi-receive buffers ------------------------------------------------------------------- */

/*
 * A long message comes into the buffer while a short one uses up its rest: it is released with
 * whichever ends last, once.
 */
static void multi_receive_is_released_by_its_last_message(void **state)
{
	const size_t big = 8 << 20, small = 1000;
	unsigned char *out = malloc(big), *in = malloc(big + small);
	struct iovec iov = { in, big + small };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_MULTI | HD_RECV_COMPLETE, .ctx = in
	};
	struct hd_cqe e;
	struct pair p;

	test_fill(out, big, 1);
	EACH_TRANSPORT(t)
	for (int late = 0; late < 2; late++) {
		pair_open(&p, t);
		if (!late)
			assert_int_equal(hd_recv(p.b.ep, &args), 0);
		assert_int_equal(hd_send(p.a.ep, p.a.to, out, big, 0, 0, out, 0), 0);
		assert_int_equal(hd_send(p.a.ep, p.a.to, out, small, 0, 0, out, HD_SEND_INJECT), 0);
		if (late) {
			pair_settle(&p, 30);
			assert_int_equal(hd_recv(p.b.ep, &args), 0);
		}
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		assert_false(e.flags & HD_C_MULTI_RECV);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		assert_true(e.flags & HD_C_MULTI_RECV);
		test_check(in, big, 1);
		test_check(in + big, small, 1);
		pair_close(&p);
	}
	free(out);
	free(in);
}

/*
 * Cancelling releases the buffer too, but not before a message that has begun
 * to come into it has ended.
 */
static void cancelled_multi_receive_waits_for_its_messages(void **state)
{
	unsigned char *in = malloc(2 * LONG_ONE);
	struct iovec iov = { in, 2 * LONG_ONE };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_MULTI | HD_RECV_COMPLETE, .ctx = in
	};
	struct hd_pkt pkt;
	struct wire w;
	struct side s;

	for (int how = 0; how < 3; how++) {
		side_open(&s);
		assert_int_equal(hd_recv(s.ep, &args), 0);
		wire_greet(&w, &s);
		pkt = wire_eager(&w, 0, HD_PKT_F_ACK);
		pkt.flags &= ~HD_PKT_F_TAGGED;
		wire_head(&w, &pkt, LONG_ONE);
		wire_raw(&w, in, LONG_ONE / 2);
		wire_settle(&w);
		assert_int_equal(hd_cancel(s.ep, in), 0);
		assert_int_equal(hd_cq_peek(s.cq)->err, HD_S_CANCELLED);
		assert_false(hd_cq_peek(s.cq)->flags & HD_C_MULTI_RECV);
		hd_cq_pop(s.cq);
		if (how == 0)
			end_message(&w);
		else
			wire_hang_up(&w);
		while (how < 2 && !hd_cq_peek(s.cq))
			hd_node_poll(s.node);
		if (how < 2) {
			assert_int_equal(hd_cq_peek(s.cq)->err, how ? HD_S_LOST : 0);
			assert_true(hd_cq_peek(s.cq)->flags & HD_C_MULTI_RECV);
		}
		close_endpoint(&s);
		wire_hang_up(&w);
		close_rest(&s);
	}
	free(in);
}

/* ---- messages of peers that are gone --------------------------------------------------------- */

/* As many whole messages of n bytes as the first window holds come to s, and wait there. */
static int fill_window(struct wire *w, struct side *s, uint32_t n)
{
	static const unsigned char bytes[4000];
	struct hd_pkt pkt = wire_eager(w, 5, 0);
	size_t count = w->theirs.window / hd_units(n), all = hd_rq_inspect(s->ep->rq).waiting[1] + count;

	for (size_t i = 0; i < count; i++)
		wire_say(w, &pkt, bytes, n);
	while (hd_rq_inspect(s->ep->rq).waiting[1] < all)
		hd_node_poll(s->node);
	return (int)count;
}

/*
 * Peers that leave messages behind and die, one after the other, hold no more memory
 * together than is allowed.
 */
static void dead_peers_share_the_cap(void **state)
{
	unsigned char in[4000];
	int sent = 0, greeted = 0;
	struct hd_hello h;
	struct hd_pkt hello = { .kind = HD_PKT_HELLO };
	struct wire w;
	struct side s;

	setenv("HEDDLE_UNEXPECTED_MAX", "1M", 1);
	side_open(&s);
	for (;;) {
		wire_dial(&w, &s);
		wire_hello(&w, &h);
		wire_say(&w, &hello, &h, sizeof(h));
		wire_hear_kind(&w, HD_PKT_HELLO);
		wire_hang_up(&w);
		while (hd_links_inspect(s.node).links)
			hd_node_poll(s.node);
		if (w.pkt.flags & HD_HELLO_F_REFUSED)
			break;
		assert_true(greeted++ < 5);
		wire_greet(&w, &s);
		sent += fill_window(&w, &s, sizeof(in));
		wire_hang_up(&w);
		while (hd_links(s.node)->peers)
			hd_node_poll(s.node);
	}
	assert_true(greeted > 2);
	for (int i = 0; i < sent; i++) {
		side_post(&s, in, sizeof(in), 5, 0, NULL, in);
		assert_int_equal(hd_cq_peek(s.cq)->err, 0);
		assert_int_equal(hd_cq_peek(s.cq)->len, sizeof(in));
		hd_cq_pop(s.cq);
	}
	assert_int_equal(hd_links_inspect(s.node).units, 0);
	wire_greet(&w, &s);
	wire_hang_up(&w);
	side_close(&s);
	unsetenv("HEDDLE_UNEXPECTED_MAX");
}

static struct hd_dest *name_of(struct side *s, const char *addr, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct hd_dest *dest;

	assert_int_equal(inet_pton(AF_INET, addr, &in.sin_addr), 1);
	assert_int_equal(hd_dest_get(s->node, (void *)&in, &dest), 0);
	return dest;
}

/*
 * A message of a peer that nobody knows waits; the peer dies, and its number goes to somebody else,
 * who has not sent anything.
 */
static void a_number_given_anew_inherits_no_message(void **state)
{
	struct hd_pkt pkt, announce = { .kind = HD_PKT_ANNOUNCE };
	const struct hd_announce own = { .index = 3, .gen = 1, .port = 4000 };
	struct hd_dest *others[200];
	char in[8] = "";
	struct wire w;
	struct side s;

	side_open(&s);
	wire_greet(&w, &s);
	wire_say(&w, &announce, &own, sizeof(own));
	pkt = wire_eager(&w, 5, 0);
	pkt.src = own.index;
	wire_say(&w, &pkt, "hello", 6);
	wire_settle(&w);
	wire_hang_up(&w);
	while (hd_links(s.node)->peers)
		hd_node_poll(s.node);
	for (int i = 0; i < 200; i++) {
		others[i] = name_of(&s, "127.0.0.1", (uint16_t)(5000 + i));
		side_post(&s, in, sizeof(in), 5, 0, others[i], in);
		assert_null(hd_cq_peek(s.cq));
		assert_int_equal(hd_cancel(s.ep, in), 0);
		hd_cq_pop(s.cq);
	}
	side_post(&s, in, sizeof(in), 5, 0, NULL, in);
	assert_int_equal(hd_cq_peek(s.cq)->src, 0);
	assert_string_equal(in, "hello");
	hd_cq_pop(s.cq);
	for (int i = 0; i < 200; i++)
		hd_dest_put(others[i]);
	side_close(&s);
}

/*
 * A message waits from somebody whom the program then calls by a name that was not
 * announced: it is from that name.
 */
static void a_waiting_message_follows_its_sender_to_a_new_name(void **state)
{
	unsigned char *out = calloc(1, 1 << 20), *in = malloc(1 << 20);
	struct pair p;

	EACH_TRANSPORT(t)
	for (int big = 0; big < 2; big++) {
		size_t n = big ? 1 << 20 : 100;
		struct hd_dest *alias;
		struct hd_cqe e;

		memset(&p, 0, sizeof(p));
		setenv("HEDDLE_TRANSPORT", t, 1);
		side_open(&p.a);
		side_open(&p.b);
		side_names(&p.a, &p.b);
		pair_push(&p, &p.a, out, n, 1, 0);
		pair_settle(&p, 20);
		p.b.to = alias = name_of(&p.b, "127.0.0.2", p.a.ep->bound_port->port);
		pair_push(&p, &p.b, out, 8, 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.b).err, 0);
		side_post(&p.b, in, n, 1, 0, alias, in);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		assert_int_equal(side_number(&p.b, e.src, 0), hd_dest_id(alias));
		pair_close(&p);
	}
	free(out);
	free(in);
}

/* ---- credit ---------------------------------------------------------------------------------- */

/*
 * Half of the window is held by messages that wait, nearly a quarter has been freed but is not
 * worth a grant: the longest eager message must go through all the same, since nothing else
 * would ever bring the grant.
 */
static void longest_eager_message_gets_its_credit(void **state)
{
	unsigned char *out = calloc(1, 16384), *in = malloc(16384);
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		for (int i = 0; i < 128; i++)
			pair_push(&p, &p.a, out, 0, 1, 0);
		for (int i = 0; i < 63; i++) {
			side_post(&p.b, in, 8, 2, 0, NULL, in);
			pair_push(&p, &p.a, out, i ? 0 : 8, 2, 0);
			assert_int_equal(pair_next(&p, &p.b).err, 0);
		}
		assert_int_equal(hd_peer_inspect(hd_links(p.b.node)->peers).held,
				 hd_peer_inspect(hd_links(p.b.node)->peers).window / 2);
		side_post(&p.b, in, 16384, 2, 0, NULL, in);
		pair_push(&p, &p.a, out, 16384, 2, 0);
		assert_int_equal(pair_next(&p, &p.b).len, 16384);
		pair_close(&p);
	}
	unsetenv("HEDDLE_UNEXPECTED_PEER");
	free(out);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gone_endpoint_fails_what_is_queued),
		cmocka_unit_test(sender_closes_between_frames),
		cmocka_unit_test(endpoint_closes_within_a_message),
		cmocka_unit_test(endpoint_closes_within_messages_of_several),
		cmocka_unit_test(sender_dies_within_a_message),
		cmocka_unit_test(claim_is_discarded_within_a_message),
		cmocka_unit_test(half_a_message_is_found_and_discarded),
		cmocka_unit_test(multi_receive_is_released_by_its_last_message),
		cmocka_unit_test(cancelled_multi_receive_waits_for_its_messages),
		cmocka_unit_test(longest_eager_message_gets_its_credit),
		cmocka_unit_test(dead_peers_share_the_cap),
		cmocka_unit_test(a_number_given_anew_inherits_no_message),
		cmocka_unit_test(a_waiting_message_follows_its_sender_to_a_new_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
