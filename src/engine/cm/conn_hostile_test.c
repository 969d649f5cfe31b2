/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connection packets from a peer that says what it likes: word for word, right and wrong. */
#include "engine/cm/cm.h"
#include "engine/test/test_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLER 5 /* the peer's endpoint */
#define GEN 9

struct scene {
	struct side s;
	struct hd_evq *evq;
	struct hd_service *service;
	struct hd_ep *ep; /* connected, or to be */
	struct wire *w;
	struct hd_request *request;
	uint32_t code; /* of the last event */
	int err;
};

static ssize_t take(const struct hd_event *e, void *arg)
{
	struct scene *x = arg;

	x->code = e->code;
	x->err = e->err;
	x->request = e->request;
	return 0;
}

static bool event(struct scene *x)
{
	return hd_evq_read(x->evq, 0, take, x) == 0 || hd_evq_read(x->evq, HD_EVQ_ERROR, take, x) == 0;
}

static void scene_open(struct scene *x)
{
	struct hd_listen_args args = { .backlog = 3 };

	memset(x, 0, sizeof(*x));
	side_open(&x->s);
	assert_int_equal(hd_evq_open(64, &x->evq), 0);
	args.evq = x->evq;
	assert_int_equal(hd_service_open(x->s.node, &(struct hd_service_attr){ 0 }, &x->service), 0);
	assert_int_equal(hd_service_listen(x->service, &args), 0);
	assert_int_equal(
		hd_ep_open(x->s.node,
			   &(struct hd_ep_attr){ .type = HD_EP_MSG, .rx_cq = x->s.cq, .evq = x->evq },
			   &x->ep),
		0);
	x->w = malloc(sizeof(*x->w));
	wire_greet(x->w, &x->s);
}

static void scene_close(struct scene *x)
{
	wire_hang_up(x->w);
	free(x->w);
	hd_ep_close(x->ep);
	hd_service_close(x->service);
	side_close(&x->s);
	assert_int_equal(hd_evq_close(x->evq), 0);
}

static struct hd_pkt to(const struct hd_ep *ep, uint8_t kind)
{
	return (struct hd_pkt){ .kind = kind, .dst = ep->index, .gen = ep->gen, .src = CALLER, .op = 77 };
}

static void ask(struct scene *x, uint32_t op)
{
	struct hd_connect body = { .type = HD_EP_MSG, .from = { .index = CALLER, .gen = GEN, .port = 1 } };
	struct hd_pkt pkt = to(x->service->ep, HD_PKT_CONNECT);

	pkt.op = op;
	wire_say(x->w, &pkt, &body, offsetof(struct hd_connect, data));
}

static void wait_event(struct scene *x, uint32_t code)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!event(x))
		assert_true(hd_now_ns() < end);
	assert_int_equal(x->code, code);
}

/* Ask and be accepted; returns the token. */
static uint64_t accepted(struct scene *x)
{
	struct hd_accept body;

	ask(x, 77);
	wait_event(x, HD_EV_REQUEST);
	assert_int_equal(hd_ep_accept(x->ep, x->request, NULL), 0);
	wire_hear_kind(x->w, HD_PKT_ACCEPT);
	assert_int_equal(x->w->pkt.op, 77);
	assert_int_equal(x->w->len, offsetof(struct hd_accept, data));
	memcpy(&body, x->w->payload, x->w->len);
	assert_int_equal(body.ep.index, x->ep->index);
	return body.token;
}

static void say_ready(struct scene *x, uint64_t token, uint32_t src, uint64_t gen)
{
	struct hd_pkt pkt = to(x->ep, HD_PKT_READY);

	pkt.src = src;
	pkt.tag = token;
	pkt.imm = gen;
	wire_say(x->w, &pkt, NULL, 0);
}

/*
 * READY is believed from whom it must come from, with the token; all else is
 * told that nobody is there.
 */
static void only_the_right_one_is_let_in(void **state)
{
	struct hd_pkt leave;
	uint64_t token;
	struct scene x;
	char in[8] = "";

	scene_open(&x);
	say_ready(&x, 1, CALLER, GEN); /* nobody waits yet */
	wire_hear_kind(x.w, HD_PKT_LEAVE);
	token = accepted(&x);
	say_ready(&x, token + 1, CALLER, GEN);
	wire_hear_kind(x.w, HD_PKT_LEAVE);
	assert_int_equal(x.w->pkt.dst, CALLER);
	assert_int_equal(x.w->pkt.gen, GEN);
	say_ready(&x, token, CALLER + 1, GEN);
	wire_hear_kind(x.w, HD_PKT_LEAVE);
	say_ready(&x, token, CALLER, GEN + 1);
	wire_hear_kind(x.w, HD_PKT_LEAVE);
	say_ready(&x, token, CALLER, UINT64_MAX);
	wire_hear_kind(x.w, HD_PKT_LEAVE);
	assert_false(event(&x));
	say_ready(&x, token, CALLER, GEN);
	wait_event(&x, HD_EV_UP);
	assert_int_equal(x.err, 0);
	leave = to(x.ep, HD_PKT_LEAVE); /* of another endpoint */
	leave.src = CALLER + 1;
	wire_say(x.w, &leave, NULL, 0);
	wire_settle(x.w);
	assert_false(event(&x));
	assert_int_equal(
		hd_recv(x.ep,
			&(struct hd_recv_args){ .iov = &(struct iovec){ in, 8 }, .count = 1, .ctx = in }),
		0);
	leave.kind = HD_PKT_EAGER; /* a message from that one is not for us */
	wire_say(x.w, &leave, "bad", 4);
	leave.src = CALLER;
	wire_say(x.w, &leave, "good", 5);
	wire_settle(x.w);
	assert_string_equal(in, "good");
	leave.kind = HD_PKT_LEAVE;
	wire_say(x.w, &leave, NULL, 0);
	wait_event(&x, HD_EV_DOWN);
	wire_say(x.w, &leave, NULL, 0);
	wire_settle(x.w);
	assert_false(event(&x));
	scene_close(&x);
}

/* More requests than may wait are refused, and what one takes back makes room. */
static void a_flood_is_bounded(void **state)
{
	struct hd_pkt leave;
	struct scene x;

	scene_open(&x);
	for (uint32_t i = 0; i < 200; i++)
		ask(&x, i + 1);
	for (uint32_t i = 0; i < 197; i++) {
		wire_hear_kind(x.w, HD_PKT_REJECT);
		assert_int_equal(x.w->pkt.imm, ECONNREFUSED);
		assert_int_equal(x.w->pkt.dst, CALLER);
	}
	assert_int_equal(x.service->pending, 3);
	leave = to(x.service->ep, HD_PKT_LEAVE);
	for (leave.op = 1; leave.op < 200; leave.op++)
		wire_say(x.w, &leave, NULL, 0);
	wire_settle(x.w);
	assert_int_equal(x.service->pending, 0);
	assert_false(event(&x)); /* nobody hears of what was taken back */
	ask(&x, 7);
	wait_event(&x, HD_EV_REQUEST);
	wire_hang_up(x.w);
	while (hd_links(x.s.node)->peers)
		hd_node_poll(x.s.node);
	assert_int_equal(x.service->pending, 1); /* the program has its handle */
	assert_int_equal(hd_ep_accept(x.ep, x.request, NULL), -ECONNABORTED);
	scene_close(&x);
}

/* Answers that nobody waits for come to nothing. */
static void answers_out_of_the_blue(void **state)
{
	static const uint8_t kinds[] = { HD_PKT_ACCEPT, HD_PKT_REJECT, HD_PKT_READY, HD_PKT_LEAVE };
	struct hd_accept body = { 0 };
	struct scene x;

	scene_open(&x);
	for (size_t i = 0; i < sizeof(kinds); i++) {
		const struct hd_ep *whom[] = { x.ep, x.s.ep, x.service->ep };
		size_t len = kinds[i] == HD_PKT_ACCEPT ? sizeof(body) : 0;

		for (int k = 0; k < 3; k++) {
			struct hd_pkt pkt = to(whom[k], kinds[i]);

			pkt.imm = kinds[i] == HD_PKT_REJECT ? ECONNREFUSED : 0;
			wire_say(x.w, &pkt, &body, (uint32_t)len);
			pkt.gen++;
			wire_say(x.w, &pkt, &body, (uint32_t)len);
			pkt.dst = UINT32_MAX;
			wire_say(x.w, &pkt, &body, (uint32_t)len);
		}
	}
	wire_settle(x.w);
	assert_false(event(&x));
	assert_non_null(hd_links(x.s.node)->peers);
	accepted(&x);
	scene_close(&x);
}

static void requests_that_mean_nobody(void **state)
{
	struct hd_connect body = { .type = HD_EP_MSG, .from = { .index = CALLER, .gen = GEN } };
	struct scene x;

	scene_open(&x);
	for (int i = 0; i < 6; i++) {
		struct hd_connect wrong = body;
		struct hd_pkt pkt = to(i == 0 ? x.ep : i == 1 ? x.s.ep : x.service->ep, HD_PKT_CONNECT);

		if (i == 2)
			pkt.gen++;
		if (i == 3)
			wrong.type = HD_EP_RDM;
		if (i == 4)
			wrong.from.index++;
		if (i == 5)
			wrong.space = 0x106;
		wire_say(x.w, &pkt, &wrong, sizeof(wrong));
		wire_hear_kind(x.w, HD_PKT_REJECT);
		assert_int_equal(x.w->pkt.imm, i == 3 || i == 4 ? ECONNREFUSED : ENOENT);
	}
	assert_false(event(&x));
	scene_close(&x);
}

static void malformed_ones_end_the_link(void **state)
{
	static const struct {
		uint8_t kind;
		uint32_t len;
		uint64_t imm;
	} wrong[] = {
		{ HD_PKT_CONNECT, 0, 0 },
		{ HD_PKT_CONNECT, offsetof(struct hd_connect, data) - 1, 0 },
		{ HD_PKT_CONNECT, sizeof(struct hd_connect) + 1, 0 },
		{ HD_PKT_ACCEPT, offsetof(struct hd_accept, data) - 1, 0 },
		{ HD_PKT_ACCEPT, sizeof(struct hd_accept) + 1, 0 },
		{ HD_PKT_REJECT, HD_CM_PRIVATE + 1, ECONNREFUSED },
		{ HD_PKT_REJECT, 0, 0 },
		{ HD_PKT_REJECT, 0, 4096 },
		{ HD_PKT_LEAVE, HD_CM_PRIVATE + 1, 0 },
	};
	static const unsigned char bytes[1024];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct hd_pkt pkt;
		struct scene x;

		scene_open(&x);
		pkt = to(x.service->ep, wrong[i].kind);
		pkt.imm = wrong[i].imm;
		wire_say(x.w, &pkt, bytes, wrong[i].len);
		wire_gone(x.w);
		assert_false(event(&x));
		scene_close(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_right_one_is_let_in), cmocka_unit_test(a_flood_is_bounded),
		cmocka_unit_test(answers_out_of_the_blue),	cmocka_unit_test(requests_that_mean_nobody),
		cmocka_unit_test(malformed_ones_end_the_link),
	};

	return cmocka_run_group_tests_name("conn_hostile", tests, NULL, NULL);
}
