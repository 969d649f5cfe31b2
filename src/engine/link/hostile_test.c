/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer that says what it must not. It is cut off with one line in the log, or what it says comes
 * to nothing; whichever it is, the node lives on, and a well-behaved peer is served.
 */
#include "base/log.h"
#include "engine/test/test_hostile.h"
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

#include <stdlib.h>
#include <string.h>

/* ---- one thing that is wrong ----------------------------------------------------------------- */

/* What is said, beside an otherwise right conversation; `arg` is the row's. */
struct wrong {
	const char *what;
	void (*say)(struct wire *w, uint64_t arg);
	uint64_t arg;
};

static void noise(struct wire *w, uint64_t seed)
{
	unsigned char bytes[600];

	test_fill(bytes, sizeof(bytes), (unsigned)seed);
	wire_raw(w, bytes, sizeof(bytes));
}

static void web(struct wire *w, uint64_t arg)
{
	static const char text[] =
		"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: lost\r\nAccept: text/html\r\n\r\n";

	wire_raw(w, text, sizeof(text) - 1);
}

static void hello_of(struct wire *w, uint32_t len)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_HELLO };
	unsigned char bytes[sizeof(struct hd_hello) + 64] = { 0 };
	struct hd_hello h;

	wire_hello(w, &h);
	memcpy(bytes, &h, sizeof(h));
	wire_say(w, &pkt, bytes, len);
}

static void hello_length(struct wire *w, uint64_t len)
{
	hello_of(w, (uint32_t)len);
}

/* HELLO with a word changed: arg is offset << 32 | value. */
static void hello_with(struct wire *w, uint64_t arg)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_HELLO };
	uint32_t value = (uint32_t)arg;
	struct hd_hello h;

	wire_hello(w, &h);
	memcpy((char *)&h + (arg >> 32), &value, sizeof(value));
	wire_say(w, &pkt, &h, sizeof(h));
}

#define WORD(member, value) ((uint64_t)offsetof(struct hd_hello, member) << 32 | (value))

static void hello_twice(struct wire *w, uint64_t arg)
{
	hello_of(w, sizeof(struct hd_hello));
	hello_of(w, sizeof(struct hd_hello));
}

/* A packet of this kind, without or with n bytes of payload: arg is kind << 32 | n. */
static void packet(struct wire *w, uint64_t arg)
{
	static const unsigned char zero[70000];
	const struct hd_pkt pkt = { .kind = (uint8_t)(arg >> 32),
				    .gen = (uint16_t)w->answer.op,
				    .dst = (uint32_t)w->answer.imm };

	wire_say(w, &pkt, zero, (uint32_t)arg);
}

#define KIND(kind, n) ((uint64_t)(kind) << 32 | (n))

static void packet_after_hello(struct wire *w, uint64_t arg)
{
	hello_of(w, sizeof(struct hd_hello));
	packet(w, arg);
}

static void endless_frame(struct wire *w, uint64_t arg)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_HELLO };

	wire_head(w, &pkt, (uint32_t)arg);
}

static const struct wrong strangers[] = {
	{ "noise", noise, 1 },
	{ "other noise", noise, 200 },
	{ "a web browser", web, 0 },
	{ "HELLO without payload", hello_length, 0 },
	{ "HELLO too short", hello_length, sizeof(struct hd_hello) - 1 },
	{ "HELLO too long", hello_length, sizeof(struct hd_hello) + 1 },
	{ "wrong magic", hello_with, WORD(magic, 0xdeadbeef) },
	{ "wrong version", hello_with, WORD(version, 77) },
	{ "too many addresses", hello_with, WORD(version, HD_WIRE_VERSION | (HD_HELLO_ADDRS + 1) << 16) },
	{ "adverts too long", hello_with, WORD(called_port, (HD_HELLO_ADVERT + 1u) << 16) },
	{ "a window that wraps", hello_with, WORD(window, 0x80000000u) },
	{ "HELLO twice", hello_twice, 0 },
	{ "USE first", packet, KIND(HD_PKT_USE, 0) },
	{ "ANNOUNCE first", packet, KIND(HD_PKT_ANNOUNCE, 24) },
	{ "GONE first", packet, KIND(HD_PKT_GONE, 0) },
	{ "EAGER first", packet, KIND(HD_PKT_EAGER, 8) },
	{ "long EAGER first", packet, KIND(HD_PKT_EAGER, 70000) },
	{ "RTS first", packet, KIND(HD_PKT_RTS, 8) },
	{ "CTS first", packet, KIND(HD_PKT_CTS, 0) },
	{ "DATA first", packet, KIND(HD_PKT_DATA, 100) },
	{ "long DATA first", packet, KIND(HD_PKT_DATA, 70000) },
	{ "FIN first", packet, KIND(HD_PKT_FIN, 0) },
	{ "ACK first", packet, KIND(HD_PKT_ACK, 0) },
	{ "EAGER before USE", packet_after_hello, KIND(HD_PKT_EAGER, 8) },
	{ "RTS before USE", packet_after_hello, KIND(HD_PKT_RTS, 8) },
	{ "DATA before USE", packet_after_hello, KIND(HD_PKT_DATA, 8) },
	{ "ANNOUNCE before USE", packet_after_hello, KIND(HD_PKT_ANNOUNCE, 24) },
	{ "GONE before USE", packet_after_hello, KIND(HD_PKT_GONE, 0) },
	{ "a PUT of nothing", packet, KIND(HD_PKT_PUT, 0) },
	{ "a PUT of too much", packet, KIND(HD_PKT_PUT, HD_PUT_MAX + 1) },
	{ "a PUT without end", packet, KIND(HD_PKT_PUT, 60000) },
	{ "a packet of no kind", packet, KIND(HD_PKT_NONE, 0) },
	{ "a packet of the next kind", packet, KIND(HD_PKT_KINDS, 0) },
	{ "a packet of a far kind", packet, KIND(0xef, 10) },
	{ "a transport's own packet", packet, KIND(0xf5, 0) },
	{ "a long packet of no kind", packet, KIND(99, 70000) },
	{ "a frame without end", endless_frame, HD_TCP_LEN_MAX + 1 },
	{ "a frame beyond 31 bits", endless_frame, UINT32_MAX },
};

static void eager_beyond_credit(struct wire *w, uint64_t n)
{
	static const unsigned char zero[65536];
	struct hd_pkt pkt = wire_eager(w, 1, 0);

	for (uint64_t spent = 0; spent <= (uint64_t)w->theirs.window * 8;
	     spent += hd_units(n)) /* more than it can grow to */
		wire_say(w, &pkt, zero, (uint32_t)n);
}

static void rts_beyond_credit(struct wire *w, uint64_t n)
{
	struct hd_pkt pkt = wire_eager(w, 1, 0);
	const uint64_t len = 1 << 20;

	pkt.kind = HD_PKT_RTS;
	for (uint64_t spent = 0; spent <= (uint64_t)w->theirs.window * 8; spent += HD_UNITS_RTS)
		wire_say(w, &pkt, &len, sizeof(len));
}

static void announcement(struct wire *w, uint64_t index)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	const struct hd_announce a = { .index = (uint32_t)index, .gen = 1, .port = 5000 };

	wire_say(w, &pkt, &a, sizeof(a));
}

static const struct wrong peers[] = {
	{ "HELLO in the middle", packet, KIND(HD_PKT_HELLO, sizeof(struct hd_hello)) },
	{ "USE in the middle", packet, KIND(HD_PKT_USE, 0) },
	{ "empty messages without credit", eager_beyond_credit, 0 },
	{ "messages without credit", eager_beyond_credit, 60000 },
	{ "requests without credit", rts_beyond_credit, 0 },
	{ "RTS without a length", packet, KIND(HD_PKT_RTS, 7) },
	{ "RTS that is empty", packet, KIND(HD_PKT_RTS, 0) },
	{ "RTS with too long an offer", packet, KIND(HD_PKT_RTS, sizeof(struct hd_rts) + 1) },
	{ "ANNOUNCE out of range", announcement, 1 << 20 },
	{ "ANNOUNCE far out of range", announcement, UINT32_MAX },
	{ "ANNOUNCE and a bit", packet, KIND(HD_PKT_ANNOUNCE, 25) },
	{ "ANNOUNCE of too many", packet, KIND(HD_PKT_ANNOUNCE, 17 * sizeof(struct hd_announce)) },
	{ "ANNOUNCE without end", packet, KIND(HD_PKT_ANNOUNCE, 60000) },
	{ "a packet of no kind", packet, KIND(HD_PKT_NONE, 0) },
	{ "a packet of a far kind", packet, KIND(0xef, 0) },
	{ "a long GONE", packet, KIND(HD_PKT_GONE, 60000) },
	{ "a frame without end", endless_frame, HD_TCP_LEN_MAX + 1 },
};

static void cut_off(struct side *s, struct wire *w, const struct wrong *wrong)
{
	log_lines = 0;
	wrong->say(w, wrong->arg);
	wire_gone(w);
	until_alone(s);
	if (log_lines != 1)
		fail_msg("%s: %u lines in the log, the last one: %s", wrong->what, log_lines, log_last_line);
}

static void strangers_are_cut_off(void **state)
{
	struct wire *w = malloc(sizeof(*w));
	struct side s;

	side_open(&s);
	listen_to_the_log(true);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
		wire_dial(w, &s);
		cut_off(&s, w, &strangers[i]);
	}
	serves(&s);
	listen_to_the_log(false);
	side_close(&s);
	free(w);
}

/* What nobody has posted for was taken in before the peer went too far. */
static void receive_what_waits(struct side *s)
{
	static char in[65536];

	while (hd_rq_inspect(s->ep->rq).waiting[1]) {
		side_post(s, in, sizeof(in), 0, UINT64_MAX, NULL, in);
		while (hd_cq_peek(s->cq))
			hd_cq_pop(s->cq);
	}
	assert_int_equal(hd_links_inspect(s->node).units, 0);
}

static void peers_are_cut_off(void **state)
{
	struct wire *w = malloc(sizeof(*w));
	struct side s;

	setenv("HEDDLE_UNEXPECTED_PEER", "512K", 1);
	side_open(&s);
	listen_to_the_log(true);
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		wire_greet(w, &s);
		cut_off(&s, w, &peers[i]);
		receive_what_waits(&s);
		serves(&s);
		until_alone(&s);
	}
	listen_to_the_log(false);
	side_close(&s);
	free(w);
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

/* ---- other people's business ----------------------------------------------------------------- */

/* An endpoint that is announced under ever more names is not remembered by all of them. */
static void names_have_an_end(void **state)
{
	struct wire *w = malloc(sizeof(*w));
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	struct hd_announce a = { .index = 3, .gen = 1, .port = 5000, .addr = { [10] = 0xff, 0xff, 127 } };
	struct side s;

	side_open(&s);
	wire_greet(w, &s);
	for (uint32_t i = 0; i < 5000; i++) {
		memcpy(&a.addr[13], &i, 3);
		wire_say(w, &pkt, &a, sizeof(a));
	}
	wire_settle(w);
	assert_in_range(HASH_COUNT(hd_links(s.node)->names), 1, 100);
	serves(&s);
	wire_hang_up(w);
	until_alone(&s);
	side_close(&s);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_are_cut_off),
		cmocka_unit_test(peers_are_cut_off),
		cmocka_unit_test(names_have_an_end),
	};

	setenv("HEDDLE_TRANSPORT", "tcp", 1); /* what is said over the socket counts */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
