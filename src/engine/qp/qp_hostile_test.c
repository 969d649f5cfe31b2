/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Queue pairs against a peer that says what it likes. */
#include "engine/test/test_qp.h"
#include "engine/test/test_wire.h"
#include "transport/tcp/frame.h"

#include <string.h>

static unsigned char in[4096];

/* A greeting for the slot of s->ep, which is a queue pair. */
static void greet(struct wire *w, struct side *s)
{
	struct hd_pkt hello = { .kind = HD_PKT_HELLO }, use = { .kind = HD_PKT_USE };
	struct hd_hello h;

	hello.dst = hd_ep_number(s->ep) & 255;
	wire_dial(w, s);
	wire_hello(w, &h);
	wire_say(w, &hello, &h, sizeof(h));
	wire_hear_kind(w, HD_PKT_HELLO);
	w->answer = w->pkt;
	wire_say(w, &use, NULL, 0);
	wire_hear_kind(w, HD_PKT_ANNOUNCE);
}

static void open_side(struct side *s, struct wire *w)
{
	side_open(s);
	qp_open(s, RC | ALL_RIGHTS, NULL);
	greet(w, s);
}

static struct hd_pkt request(const struct wire *w, uint8_t kind, uint8_t flags)
{
	struct hd_pkt pkt = wire_eager(w, 0, 0);

	pkt.kind = kind;
	pkt.flags = flags;
	return pkt;
}

/* What nobody may say ends the link, and nothing else. */
static void malformed(void **state)
{
	static const uint8_t zeros[200];
	static const struct {
		uint8_t kind;
		uint32_t len;
	} cases[] = { { HD_PKT_RTS, 7 },
		      { HD_PKT_RTS, 113 },
		      { HD_PKT_WRITE, 7 },
		      { HD_PKT_WRITE, 31 },
		      { HD_PKT_WRITE, 200 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t body[200];
		struct hd_pkt pkt;
		struct side s;
		struct wire w;

		memcpy(body, zeros, sizeof(body));
		body[0] = cases[i].len == 200 ? 255 : 1;
		open_side(&s, &w);
		pkt = request(&w, cases[i].kind, 0);
		wire_say(&w, &pkt, body, cases[i].len);
		wire_gone(&w);
		side_close(&s);
	}
}

/* Answers for numbers that stand for nothing, to endpoints that are none, are forgotten. */
static void answers(void **state)
{
	struct side s;
	struct wire w;

	open_side(&s, &w);
	for (uint32_t i = 0; i < 64; i++) {
		struct hd_pkt pkt = { .kind = i & 1 ? HD_PKT_ACK : HD_PKT_FIN,
				      .flags = HD_PKT_F_SSN,
				      .dst = i * 7919,
				      .op = i * 0x9e3779b9u,
				      .imm = (uint64_t)i << i };

		if (i % 4 == 0)
			pkt.dst = hd_ep_index(s.ep);
		wire_say(&w, &pkt, NULL, 0);
	}
	wire_settle(&w);
	assert_null(hd_cq_peek(s.cq));
	assert_int_equal(hd_qp_inspect(s.ep->qp).status, 0);
	wire_hang_up(&w);
	side_close(&s);
}

/* One that is not ready keeps what fits the credit, and cuts off who says more. */
static void floods(void **state)
{
	struct side s;
	struct wire w;

	open_side(&s, &w);
	for (int i = 0; i < 10; i++) {
		struct hd_pkt pkt = request(&w, HD_PKT_EAGER, HD_PKT_F_ACK | HD_PKT_F_SSN);

		pkt.op = (uint32_t)i;
		wire_say(&w, &pkt, in, 100);
		pkt.gen++; /* of nobody, perhaps of one to come */
		wire_say(&w, &pkt, in, 100);
		wire_hear_kind(&w, HD_PKT_FIN);
		assert_int_equal(w.pkt.op, i);
		assert_int_equal(w.pkt.flags, HD_PKT_F_SSN);
	}
	assert_null(hd_cq_peek(s.cq));
	hd_ep_reset(s.ep); /* they may mean the life that begins */
	wire_settle(&w);
	hd_ep_fail(s.ep);
	for (int i = 0; i < 10; i++) {
		wire_hear_kind(&w, HD_PKT_FIN);
		assert_int_equal(w.pkt.op, i);
	}
	wire_hang_up(&w);
	side_close(&s);
}

/*
 * Tagged messages are for no queue pair; neither are those of somebody else than it is paired with.
 */
static void strangers(void **state)
{
	struct side s, other;
	struct hd_pkt pkt;
	struct wire w;

	open_side(&s, &w);
	side_open(&other);
	qp_open(&other, RC, NULL);
	qp_ready(&s, &other, NULL);
	qp_recv(&s, in, sizeof(in), in);
	pkt = request(&w, HD_PKT_EAGER, HD_PKT_F_ACK | HD_PKT_F_SSN | HD_PKT_F_TAGGED);
	wire_say(&w, &pkt, in, 10);
	wire_hear_kind(&w, HD_PKT_FIN);
	assert_null(hd_cq_peek(s.cq));
	wire_hang_up(&w);
	side_close(&other);
	side_close(&s);
}

/* Questions cost no credit: who asks and never hears the answers does not fill our memory. */
static void asks_and_never_listens(void **state)
{
	struct hd_tcp_frame frames[400] = { 0 };
	size_t many = sizeof(frames) / sizeof(frames[0]);
	struct side s;
	struct wire w;

	open_side(&s, &w);
	for (size_t said = 0; hd_links_inspect(s.node).links; said += sizeof(frames)) {
		assert_true(said < 2 * (size_t)HD_CTL_MAX);
		for (size_t i = 0; i < many; i++) {
			frames[i].seq = ++w.seq;
			frames[i].ack = w.ack;
			frames[i].pkt = request(&w, HD_PKT_EPOCH, 0);
			frames[i].pkt.op = HD_EPOCH_ASKS;
		}
		wire_raw(&w, frames, sizeof(frames));
	}
	wire_hang_up(&w);
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed),
		cmocka_unit_test(answers),
		cmocka_unit_test(floods),
		cmocka_unit_test(strangers),
		cmocka_unit_test(asks_and_never_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
