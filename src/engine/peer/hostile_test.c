/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer that says what it must not. It is cut off with one line in the log, or what it says comes to nothing; whichever it is,
 * the node lives on, and a well-behaved peer is served.
 */
#include "base/log.h"
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* ---- the log is counted ---------------------------------------------------------------------------------------------------- */

static unsigned lines;
static char last_line[HD_LOG_MAX];

static bool count_line(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	if (level <= HD_LOG_WARN) {
		lines++;
		strcpy(last_line, message);
	}
	return true;
}

static void listen_to_the_log(bool on)
{
	lines = 0;
	hd_log_set_sink(on ? count_line : NULL, NULL);
}

/* ---- the well-behaved peer --------------------------------------------------------------------------------------------------- */

static void serves(struct side *s)
{
	struct wire *w = malloc(sizeof(*w));
	struct hd_pkt pkt;
	char in[8];

	wire_greet(w, s);
	side_post(s, in, sizeof(in), 4711, 0, NULL, in);
	pkt = wire_eager(w, 4711, HD_PKT_F_ACK);
	wire_say(w, &pkt, "hello", 6);
	wire_hear_kind(w, HD_PKT_ACK);
	assert_int_equal(hd_cq_peek(s->cq)->err, 0);
	assert_string_equal(in, "hello");
	hd_cq_pop(s->cq);
	wire_hang_up(w);
	free(w);
}

static void until_alone(struct side *s)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!TAILQ_EMPTY(&s->node->links)) {
		hd_node_poll(s->node);
		assert_true(hd_now_ns() < end);
	}
	assert_null(s->node->peers);
}

/* ---- one thing that is wrong ------------------------------------------------------------------------------------------------- */

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
	lines = 0;
	wrong->say(w, wrong->arg);
	wire_gone(w);
	until_alone(s);
	if (lines != 1)
		fail_msg("%s: %u lines in the log, the last one: %s", wrong->what, lines, last_line);
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

	while (s->ep->rq->match[1].waiting) {
		side_post(s, in, sizeof(in), 0, UINT64_MAX, NULL, in);
		while (hd_cq_peek(s->cq))
			hd_cq_pop(s->cq);
	}
	assert_int_equal(s->node->window_units, 0);
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

/* ---- other people's business -------------------------------------------------------------------------------------------------- */

/* Two peers; the node sends a long message to the first, and fetches one from it. */
struct affair {
	struct side s;
	struct wire *first, *second;
	unsigned char *out, *in;
	uint32_t sending, fetching; /* the node's operations, both with the first peer */
};

#define AFFAIR_LEN (200u << 10)

static void affair_open(struct affair *a)
{
	const struct hd_pkt announce = { .kind = HD_PKT_ANNOUNCE };
	const struct hd_announce own = { .index = 7, .gen = 1, .port = 4000 };
	const uint64_t len = AFFAIR_LEN;
	struct sockaddr_storage at;
	socklen_t size = sizeof(at);
	struct hd_pkt pkt;

	a->first = malloc(sizeof(*a->first));
	a->second = malloc(sizeof(*a->second));
	a->out = malloc(AFFAIR_LEN);
	a->in = malloc(AFFAIR_LEN);
	test_fill(a->out, AFFAIR_LEN, 5);
	side_open(&a->s);
	wire_greet(a->first, &a->s);
	wire_say(a->first, &announce, &own, sizeof(own));
	assert_int_equal(getsockname(a->first->fd, (void *)&at, &size), 0);
	((struct sockaddr_in *)&at)->sin_port = htons(own.port);
	assert_int_equal(hd_dest_get(a->s.node, (void *)&at, &a->s.to), 0);
	assert_int_equal(a->s.to->state, HD_DEST_BOUND);
	assert_int_equal(
		hd_send(a->s.ep, a->s.to, a->out, AFFAIR_LEN, 1, 0, a->out, TAGGED(HD_SEND_COMPLETE)), 0);
	wire_hear_kind(a->first, HD_PKT_RTS);
	a->sending = a->first->pkt.op;
	side_post(&a->s, a->in, AFFAIR_LEN, 1, 0, NULL, a->in);
	pkt = wire_eager(a->first, 1, 0);
	pkt.kind = HD_PKT_RTS;
	wire_say(a->first, &pkt, &len, sizeof(len));
	wire_hear_kind(a->first, HD_PKT_CTS);
	a->fetching = (uint32_t)a->first->pkt.imm;
	assert_int_equal(a->first->pkt.tag, AFFAIR_LEN);
	wire_greet(a->second, &a->s);
}

/* Nothing has been disturbed: both messages come to their end. */
static void affair_ends_well(struct affair *a)
{
	struct hd_pkt data = { .kind = HD_PKT_DATA, .op = a->fetching },
		      fin = { .kind = HD_PKT_FIN, .op = a->sending };
	struct hd_pkt cts = { .kind = HD_PKT_CTS, .op = a->sending, .imm = 1, .tag = 60000 };

	for (uint32_t at = 0; at < AFFAIR_LEN; at += 50 << 10) {
		data.tag = at;
		wire_say(a->first, &data, a->out + at, 50 << 10);
	}
	wire_hear_kind(a->first, HD_PKT_FIN);
	assert_int_equal(a->first->pkt.imm, 0);
	assert_int_equal(hd_cq_peek(a->s.cq)->err, 0);
	assert_ptr_equal(hd_cq_peek(a->s.cq)->ctx, a->in);
	hd_cq_pop(a->s.cq);
	test_check(a->in, AFFAIR_LEN, 5);
	wire_say(a->first, &cts, NULL, 0);
	wire_hear_kind(a->first, HD_PKT_DATA);
	assert_int_equal(a->first->len, 60000);
	test_check(a->first->payload, 60000, 5);
	wire_say(a->first, &fin, NULL, 0);
	while (!hd_cq_peek(a->s.cq))
		hd_node_poll(a->s.node);
	assert_int_equal(hd_cq_peek(a->s.cq)->err, 0);
	hd_cq_pop(a->s.cq);
}

static void affair_close(struct affair *a)
{
	wire_hang_up(a->first);
	wire_hang_up(a->second);
	side_close(&a->s);
	free(a->first);
	free(a->second);
	free(a->out);
	free(a->in);
}

struct meddling {
	const char *what;
	bool by_first; /* else by the second */
	bool fetched;  /* about the message that the node fetches, else about the one that it sends */
	struct hd_pkt pkt;
	uint32_t len;
};

/* op is filled in. */
static const struct meddling meddlings[] = {
	{ "CTS of a stranger", false, false, { .kind = HD_PKT_CTS, .tag = 100, .imm = 1 }, 0 },
	{ "FIN of a stranger", false, false, { .kind = HD_PKT_FIN }, 0 },
	{ "ACK of a stranger", false, false, { .kind = HD_PKT_ACK }, 0 },
	{ "error of a stranger", false, false, { .kind = HD_PKT_FIN, .imm = EIO }, 0 },
	{ "FIN of a stranger to a receive", false, true, { .kind = HD_PKT_FIN, .imm = EIO }, 0 },
	{ "DATA of a stranger", false, true, { .kind = HD_PKT_DATA }, 1000 },
	{ "long DATA of a stranger", false, true, { .kind = HD_PKT_DATA }, 70000 },
	{ "CTS of a stranger to a receive", false, true, { .kind = HD_PKT_CTS, .tag = 100 }, 0 },
	{ "CTS of a stranger for a part",
	  false,
	  false,
	  { .kind = HD_PKT_CTS, .flags = HD_PKT_F_PART, .tag = 100, .imm = 1 },
	  0 },
	{ "CTS for a part of no length",
	  true,
	  false,
	  { .kind = HD_PKT_CTS, .flags = HD_PKT_F_PART, .tag = 0, .imm = 1 },
	  0 },
	{ "CTS for a part of more than there is",
	  true,
	  false,
	  { .kind = HD_PKT_CTS, .flags = HD_PKT_F_PART, .tag = UINT64_MAX, .imm = 1 },
	  0 },
	{ "CTS for a part of a receive",
	  true,
	  true,
	  { .kind = HD_PKT_CTS, .flags = HD_PKT_F_PART, .tag = 10, .imm = 1 },
	  0 },
	{ "CTS for nothing", true, false, { .kind = HD_PKT_CTS, .tag = 0 }, 0 },
	{ "CTS for more than there is", true, false, { .kind = HD_PKT_CTS, .tag = AFFAIR_LEN + 1 }, 0 },
	{ "CTS with an impossible operation",
	  true,
	  false,
	  { .kind = HD_PKT_CTS, .tag = 10, .imm = UINT64_C(1) << 32 },
	  0 },
	{ "ACK of a request", true, false, { .kind = HD_PKT_ACK }, 0 },
	{ "DATA for a send", true, false, { .kind = HD_PKT_DATA }, 1000 },
	{ "long DATA for a send", true, false, { .kind = HD_PKT_DATA }, 70000 },
	{ "DATA out of order", true, true, { .kind = HD_PKT_DATA, .tag = 1 }, 1000 },
	{ "DATA from far", true, true, { .kind = HD_PKT_DATA, .tag = UINT64_MAX }, 1000 },
	{ "DATA of no length", true, true, { .kind = HD_PKT_DATA }, 0 },
	{ "too much DATA", true, true, { .kind = HD_PKT_DATA }, AFFAIR_LEN + 1 },
	{ "FIN without an error to a receive", true, true, { .kind = HD_PKT_FIN }, 0 },
	{ "ACK to a receive", true, true, { .kind = HD_PKT_ACK }, 0 },
	{ "CTS to a receive", true, true, { .kind = HD_PKT_CTS, .tag = 10 }, 0 },
};

static void meddle(const struct meddling *m)
{
	static const unsigned char zero[AFFAIR_LEN + 1];
	struct hd_pkt pkt = m->pkt;
	struct affair a;

	affair_open(&a);
	pkt.op = m->fetched ? a.fetching : a.sending;
	lines = 0;
	wire_say(m->by_first ? a.first : a.second, &pkt, zero, m->len);
	wire_gone(m->by_first ? a.first : a.second);
	if (lines != 1)
		fail_msg("%s: %u lines in the log, the last one: %s", m->what, lines, last_line);
	if (!m->by_first) {
		affair_ends_well(&a);
	} else {
		for (int i = 0; i < 2; i++) {
			while (!hd_cq_peek(a.s.cq))
				hd_node_poll(a.s.node);
			assert_int_not_equal(hd_cq_peek(a.s.cq)->err, 0);
			hd_cq_pop(a.s.cq);
		}
		assert_int_equal(a.s.node->op_ids.count, 0);
	}
	affair_close(&a);
}

static void meddlers_are_cut_off(void **state)
{
	listen_to_the_log(true);
	for (size_t i = 0; i < sizeof(meddlings) / sizeof(meddlings[0]); i++)
		meddle(&meddlings[i]);
	listen_to_the_log(false);
}

/* CTS for a part of what the node sends: the frame that answers it holds the beginning. */
static void ask_part(struct affair *a, uint64_t len)
{
	const struct hd_pkt cts = {
		.kind = HD_PKT_CTS, .flags = HD_PKT_F_PART, .op = a->sending, .imm = 1, .tag = len
	};

	wire_say(a->first, &cts, NULL, 0);
	for (uint64_t got = 0; got < len; got += a->first->len) {
		wire_hear_kind(a->first, HD_PKT_DATA);
		assert_int_equal(a->first->pkt.tag, got);
		assert_in_range(a->first->len, 1, len - got);
	}
}

/* Two in one breath: the second comes while the first is being answered. */
static void ask_twice_at_once(struct affair *a)
{
	struct wire *w = a->first;
	struct hd_tcp_frame twice[2];

	for (int i = 0; i < 2; i++)
		twice[i] = (struct hd_tcp_frame){ .seq = ++w->seq,
						  .ack = w->ack,
						  .grant = w->grant,
						  .pkt = { .kind = HD_PKT_CTS,
							   .flags = HD_PKT_F_PART,
							   .op = a->sending,
							   .imm = 1,
							   .tag = AFFAIR_LEN } };
	wire_raw(w, twice, sizeof(twice));
}

/* Parts are asked for one at a time and as often as wanted; the message is complete when it is answered, and not before. */
static void parts_may_be_asked_for_again(void **state)
{
	struct affair a;

	listen_to_the_log(true);
	affair_open(&a);
	for (int i = 0; i < 5; i++)
		ask_part(&a, i % 2 ? 50000 : 1);
	assert_null(hd_cq_peek(a.s.cq));
	assert_int_equal(lines, 0);
	affair_ends_well(&a); /* with a CTS for the rest */
	affair_close(&a);

	for (int how = 0; how < 2; how++) {
		struct hd_pkt answer = { .kind = HD_PKT_ACK };

		affair_open(&a);
		lines = 0;
		if (how) {
			ask_twice_at_once(&a);
		} else { /* it is not complete by an answer to another kind of message */
			ask_part(&a, 1000);
			answer.op = a.sending;
			wire_say(a.first, &answer, NULL, 0);
		}
		wire_gone(a.first);
		assert_int_equal(lines, 1);
		affair_close(&a);
	}
	listen_to_the_log(false);
}

/* What can be late without anybody's fault: it comes to nothing, and nobody is cut off for it. */
static void what_may_be_late_is_ignored(void **state)
{
	static const unsigned char zero[70000];
	struct wire *w = malloc(sizeof(*w));
	struct hd_pkt pkt;
	struct side s;

	side_open(&s);
	listen_to_the_log(true);
	wire_greet(w, &s);
	pkt = (struct hd_pkt){ .kind = HD_PKT_FIN, .op = 12345 };
	wire_say(w, &pkt, NULL, 0);
	pkt.kind = HD_PKT_ACK;
	wire_say(w, &pkt, NULL, 0);
	pkt.kind = HD_PKT_DATA;
	wire_say(w, &pkt, zero, 100);
	wire_say(w, &pkt, zero, 70000);
	pkt = (struct hd_pkt){ .kind = HD_PKT_GONE, .src = 3, .gen = 9 };
	wire_say(w, &pkt, NULL, 0);
	pkt.src = UINT32_MAX;
	wire_say(w, &pkt, NULL, 0);
	pkt = (struct hd_pkt){ .kind = HD_PKT_CTS, .op = 12345, .tag = 10, .imm = 99 };
	wire_say(w, &pkt, NULL, 0);
	wire_hear_kind(w, HD_PKT_FIN);
	assert_int_equal(w->pkt.op, 99);
	assert_int_equal(w->pkt.imm, ECANCELED);
	for (int whole = 0; whole < 2; whole++)
		for (int gen = 0; gen < 2; gen++) {
			pkt = wire_eager(w, 1, HD_PKT_F_ACK);
			pkt.dst += !gen;
			pkt.gen += (uint16_t)gen;
			wire_say(w, &pkt, zero, whole ? 100 : 60000);
			wire_hear_kind(w, HD_PKT_FIN);
			assert_int_equal(w->pkt.op, 77);
			assert_int_equal(w->pkt.imm, ECONNREFUSED);
		}
	pkt.kind = HD_PKT_RTS;
	wire_say(w, &pkt, zero, 8);
	wire_hear_kind(w, HD_PKT_FIN);
	assert_int_equal(w->pkt.imm, ECONNREFUSED);
	assert_int_equal(lines, 0);
	assert_int_equal(s.node->peers->rx_held, 0);
	assert_int_equal(s.node->peers->rx_freed, s.node->peers->rx_spent);
	wire_hang_up(w);
	until_alone(&s);
	serves(&s);
	listen_to_the_log(false);
	side_close(&s);
	free(w);
}

/* An endpoint that is announced under ever more names is not remembered by all of them. */
static void names_have_an_end(void **state)
{
	struct wire *w = malloc(sizeof(*w));
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	struct hd_announce a = { .index = 3, .gen = 1, .port = 5000, .addr = { 0xfd } };
	struct side s;

	side_open(&s);
	wire_greet(w, &s);
	for (uint32_t i = 0; i < 5000; i++) {
		memcpy(&a.addr[12], &i, sizeof(i));
		wire_say(w, &pkt, &a, sizeof(a));
	}
	wire_settle(w);
	assert_in_range(HASH_COUNT(s.node->names), 1, 100);
	serves(&s);
	wire_hang_up(w);
	until_alone(&s);
	side_close(&s);
	free(w);
}

/* ---- valid conversations with something changed ------------------------------------------------------------------------------- */

struct fuzz {
	struct side s;
	struct wire *w;
	uint64_t random;
	int changed; /* step that something is changed in */
	int step;
	uint32_t cts_op; /* operation that the node asks frames for; 0: none */
	unsigned asked, received;
	unsigned char in[4][9000];
};

static uint64_t draw(struct fuzz *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

/* A few bits, a byte, or a word of interest. */
static void change(struct fuzz *f, unsigned char *at, size_t len)
{
	static const uint32_t words[] = { 0,	  1,	   2,	       0x7f,	   0xff,
					  0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
	size_t place = draw(f) % len;

	if (draw(f) % 2)
		at[place] ^= (unsigned char)(1u << draw(f) % 8);
	else if (draw(f) % 2 || len < 4)
		at[place] = (unsigned char)draw(f);
	else
		memcpy(at + (place + 4 > len ? len - 4 : place), &words[draw(f) % 10], 4);
}

/* Whatever the node says is heard, as far as it is there; true: something was, or it has hung up. */
static bool hear(struct fuzz *f)
{
	struct hd_tcp_frame frame;
	bool heard = false;
	ssize_t n;

	for (int i = 0; i < 6; i++)
		hd_node_poll(f->s.node);
	while ((n = recv(f->w->fd, &frame, sizeof(frame), MSG_PEEK)) == sizeof(frame)) {
		heard = true;
		if (!wire_hear(f->w))
			break;
		if (f->w->pkt.kind == HD_PKT_CTS) {
			f->asked++;
			f->cts_op = (uint32_t)f->w->pkt.imm;
		}
		if (f->w->pkt.kind == HD_PKT_HELLO)
			f->w->answer = f->w->pkt;
	}
	return heard || n >= 0;
}

/* The right thing to say now would be answered: give the node the time for it. */
static void hear_answer(struct fuzz *f)
{
	uint64_t end = hd_now_ns() + HD_NS_PER_MS;

	while (!hear(f) && hd_now_ns() < end)
		;
}

/* A frame, whole or in pieces, once or twice, as it is or changed. */
static void say(struct fuzz *f, struct hd_pkt pkt, const void *payload, uint32_t len)
{
	struct hd_tcp_frame frame = { .len = len, .seq = ++f->w->seq, .ack = f->w->ack, .pkt = pkt };
	unsigned char bytes[sizeof(frame) + 9000];
	size_t size = sizeof(frame) + len, cut;

	memcpy(bytes, &frame, sizeof(frame));
	if (len)
		memcpy(bytes + sizeof(frame), payload, len);
	if (f->step++ == f->changed) {
		switch (draw(f) % 8) {
		case 0: /* only the packet's header, so that the frame is right */
		case 1:
		case 2:
			change(f, bytes + offsetof(struct hd_tcp_frame, pkt), sizeof(struct hd_pkt));
			break;
		case 3:
			change(f, bytes, sizeof(frame));
			break;
		case 4:
			change(f, bytes, size);
			break;
		case 5:
			return; /* left out */
		case 6:		/* said twice, numbered right */
			wire_raw(f->w, bytes, size);
			frame.seq = ++f->w->seq;
			memcpy(bytes, &frame, sizeof(frame));
			break;
		default:
			if (len)
				change(f, bytes + sizeof(frame), len);
			break;
		}
	}
	cut = draw(f) % 3 ? size : draw(f) % size;
	wire_raw(f->w, bytes, cut);
	wire_raw(f->w, bytes + cut, size - cut);
	hear(f);
}

static void converse(struct fuzz *f)
{
	static const unsigned char zero[9000];
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO };
	struct hd_announce own[3] = { { .gen = 1, .port = 4000 }, { .index = 5, .gen = 2, .port = 4001 } };
	uint64_t len = 9000;
	struct hd_hello h;

	wire_hello(f->w, &h);
	say(f, pkt, &h, sizeof(h));
	hear_answer(f);
	say(f, (struct hd_pkt){ .kind = HD_PKT_USE }, NULL, 0);
	say(f, (struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, own, sizeof(own));
	for (int i = 0; i < 4; i++) {
		pkt = wire_eager(f->w, (uint64_t)i % 2, i % 2 ? HD_PKT_F_ACK : HD_PKT_F_IMM);
		pkt.src = i % 2 ? 5 : 0;
		say(f, pkt, zero, i * 2500u);
	}
	pkt.kind = HD_PKT_RTS;
	pkt.tag = 2;
	say(f, pkt, &len, sizeof(len));
	hear_answer(f);
	pkt = (struct hd_pkt){ .kind = HD_PKT_DATA, .op = f->cts_op };
	for (pkt.tag = 0; f->cts_op && pkt.tag < len; pkt.tag += 3000)
		say(f, pkt, zero, 3000);
	say(f, (struct hd_pkt){ .kind = HD_PKT_GONE, .src = 5, .gen = 2 }, NULL, 0);
}

static void conversation(struct fuzz *f, uint64_t seed)
{
	f->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	f->changed = (int)(draw(f) % 14);
	f->step = 0;
	f->cts_op = 0;
	wire_dial(f->w, &f->s);
	for (int i = 0; i < 3; i++)
		side_post(&f->s, f->in[i], sizeof(f->in[i]), (uint64_t)i, 0, NULL, f->in[i]);
	converse(f);
	if (draw(f) % 4 == 0)
		hd_ep_close(f->s.ep);
	else
		f->s.to = (void *)f; /* the endpoint stays */
	wire_hang_up(f->w);
	until_alone(&f->s);
}

/* Nothing of the conversation is left. */
static void is_clean(struct fuzz *f)
{
	for (; hd_cq_peek(f->s.cq); hd_cq_pop(f->s.cq))
		f->received += hd_cq_peek(f->s.cq)->err == 0;
	for (int i = 0; i < 3; i++)
		hd_cancel(f->s.ep, f->in[i]);
	for (int i = 0; i < 2; i++)
		while (f->s.ep->rq->match[i].waiting) {
			struct iovec iov = { f->in[3], sizeof(f->in[3]) };

			assert_int_equal(hd_recv(f->s.ep, &(struct hd_recv_args){ .iov = &iov,
										  .count = 1,
										  .flags = (uint32_t)i,
										  .ignore = UINT64_MAX }),
					 0);
		}
	while (hd_cq_peek(f->s.cq))
		hd_cq_pop(f->s.cq);
	assert_int_equal(f->s.node->window_units, 0);
	assert_int_equal(f->s.node->op_ids.count, 0);
	for (uint32_t i = 0; i < f->s.node->dest_count; i++)
		assert_null(f->s.node->dests[i]);
}

static void changed_conversations_do_no_harm(void **state)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_DIRECTED };
	struct fuzz *f = calloc(1, sizeof(*f));
	uint64_t end = hd_now_ns() + 2500 * HD_NS_PER_MS, seed;

	f->w = malloc(sizeof(*f->w));
	listen_to_the_log(true);
	side_open(&f->s);
	attr.tx_cq = attr.rx_cq = f->s.cq;
	for (seed = 1; seed <= 3000 && (seed <= 100 || hd_now_ns() < end); seed++) {
		conversation(f, seed);
		if (!f->s.to) { /* it has closed its endpoint in between */
			while (hd_cq_peek(f->s.cq))
				hd_cq_pop(f->s.cq);
			assert_int_equal(hd_ep_open(f->s.node, &attr, &f->s.ep), 0);
		}
		f->s.to = NULL;
		is_clean(f);
	}
	assert_true(f->asked > seed / 3 && f->received > seed); /* most of what is said is right */
	serves(&f->s);
	listen_to_the_log(false);
	side_close(&f->s);
	free(f->w);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_are_cut_off),
		cmocka_unit_test(peers_are_cut_off),
		cmocka_unit_test(meddlers_are_cut_off),
		cmocka_unit_test(parts_may_be_asked_for_again),
		cmocka_unit_test(what_may_be_late_is_ignored),
		cmocka_unit_test(names_have_an_end),
		cmocka_unit_test(changed_conversations_do_no_harm),
	};

	setenv("HEDDLE_TRANSPORT", "tcp", 1); /* what is said over the socket counts */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
