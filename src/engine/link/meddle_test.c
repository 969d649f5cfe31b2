/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer that meddles with other people's operations, asks for the same twice, or is late: what
 * it says comes to nothing.
 */
#include "base/log.h"
#include "engine/test/test_hostile.h"
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

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
	/* about the message that the node fetches, else about the one that it sends */
	bool fetched;
	struct hd_pkt pkt;
	uint32_t len;
};

/* op is filled in. */
static const struct meddling meddlings[] = {
	{ "CTS of a stranger", false, false, { .kind = HD_PKT_CTS, .tag = 100, .imm = 1 }, 0 },
	{ "FIN of a stranger", false, false, { .kind = HD_PKT_FIN }, 0 },
	{ "ACK of a stranger", false, false, { .kind = HD_PKT_ACK }, 0 },
	{ "error of a stranger", false, false, { .kind = HD_PKT_FIN, .imm = HD_S_PROTOCOL }, 0 },
	{ "FIN of a stranger to a receive", false, true, { .kind = HD_PKT_FIN, .imm = HD_S_PROTOCOL }, 0 },
	{ "DATA of a stranger", false, true, { .kind = HD_PKT_DATA }, 1000 },
	{ "long DATA of a stranger", false, true, { .kind = HD_PKT_DATA }, 70000 },
	{ "CTS of a stranger to a receive", false, true, { .kind = HD_PKT_CTS, .tag = 100 }, 0 },
	{ "CTS of a stranger for a part",
	  false,
	  false,
	  { .kind = HD_PKT_CTS, .flags = HD_CTS_F_PART, .tag = 100, .imm = 1 },
	  0 },
	{ "CTS for a part of no length",
	  true,
	  false,
	  { .kind = HD_PKT_CTS, .flags = HD_CTS_F_PART, .tag = 0, .imm = 1 },
	  0 },
	{ "CTS for a part of more than there is",
	  true,
	  false,
	  { .kind = HD_PKT_CTS, .flags = HD_CTS_F_PART, .tag = UINT64_MAX, .imm = 1 },
	  0 },
	{ "CTS for a part of a receive",
	  true,
	  true,
	  { .kind = HD_PKT_CTS, .flags = HD_CTS_F_PART, .tag = 10, .imm = 1 },
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
	log_lines = 0;
	wire_say(m->by_first ? a.first : a.second, &pkt, zero, m->len);
	wire_gone(m->by_first ? a.first : a.second);
	if (log_lines != 1)
		fail_msg("%s: %u lines in the log, the last one: %s", m->what, log_lines, log_last_line);
	if (!m->by_first) {
		affair_ends_well(&a);
	} else {
		for (int i = 0; i < 2; i++) {
			while (!hd_cq_peek(a.s.cq))
				hd_node_poll(a.s.node);
			assert_int_not_equal(hd_cq_peek(a.s.cq)->err, 0);
			hd_cq_pop(a.s.cq);
		}
		assert_int_equal(hd_links_inspect(a.s.node).pending, 0);
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
		.kind = HD_PKT_CTS, .flags = HD_CTS_F_PART, .op = a->sending, .imm = 1, .tag = len
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
							   .flags = HD_CTS_F_PART,
							   .op = a->sending,
							   .imm = 1,
							   .tag = AFFAIR_LEN } };
	wire_raw(w, twice, sizeof(twice));
}

/*
 * Parts are asked for one at a time and as often as wanted; the message is complete when it is
 * answered, and not before.
 */
static void parts_may_be_asked_for_again(void **state)
{
	struct affair a;

	listen_to_the_log(true);
	affair_open(&a);
	for (int i = 0; i < 5; i++)
		ask_part(&a, i % 2 ? 50000 : 1);
	assert_null(hd_cq_peek(a.s.cq));
	assert_int_equal(log_lines, 0);
	affair_ends_well(&a); /* with a CTS for the rest */
	affair_close(&a);

	for (int how = 0; how < 2; how++) {
		struct hd_pkt answer = { .kind = HD_PKT_ACK };

		affair_open(&a);
		log_lines = 0;
		if (how) {
			ask_twice_at_once(&a);
		} else { /* it is not complete by an answer to another kind of message */
			ask_part(&a, 1000);
			answer.op = a.sending;
			wire_say(a.first, &answer, NULL, 0);
		}
		wire_gone(a.first);
		assert_int_equal(log_lines, 1);
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
	assert_int_equal(w->pkt.imm, HD_S_CANCELLED);
	for (int whole = 0; whole < 2; whole++)
		for (int gen = 0; gen < 2; gen++) {
			pkt = wire_eager(w, 1, HD_PKT_F_ACK);
			pkt.dst += !gen;
			pkt.gen += (uint16_t)gen;
			wire_say(w, &pkt, zero, whole ? 100 : 60000);
			wire_hear_kind(w, HD_PKT_FIN);
			assert_int_equal(w->pkt.op, 77);
			assert_int_equal(w->pkt.imm, HD_S_REFUSED);
		}
	pkt.kind = HD_PKT_RTS;
	wire_say(w, &pkt, zero, 8);
	wire_hear_kind(w, HD_PKT_FIN);
	assert_int_equal(w->pkt.imm, HD_S_REFUSED);
	assert_int_equal(log_lines, 0);
	assert_int_equal(hd_peer_inspect(hd_links(s.node)->peers).held, 0);
	assert_int_equal(hd_peer_inspect(hd_links(s.node)->peers).taken_in, 0);
	wire_hang_up(w);
	until_alone(&s);
	serves(&s);
	listen_to_the_log(false);
	side_close(&s);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(meddlers_are_cut_off),
		cmocka_unit_test(parts_may_be_asked_for_again),
		cmocka_unit_test(what_may_be_late_is_ignored),
	};

	setenv("HEDDLE_TRANSPORT", "tcp", 1); /* what is said over the socket counts */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
