/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A stranger has much to say and hangs up: what the node has to take apart costs so much for each
 * piece of it, however many there are. Measured is the processor's time of a few against that of a
 * hundred times as many. `--figures` prints the times of 10, 1,000 and 100,000 (bench/strangers).
 */
#include "attack/attack.h"
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 200
#define MANY (FEW * 100)
#define AT_MOST 600 /* times what few cost; were each to look at all others it would be 10,000 */

/* Frames are said many at a time, so that what is measured is not the stranger's own calls. */
static struct {
	unsigned char bytes[60000];
	size_t len;
} said;

static void say_out(struct wire *w)
{
	wire_raw(w, said.bytes, said.len);
	said.len = 0;
}

static void say(struct wire *w, const struct hd_pkt *pkt, const void *payload, uint32_t len)
{
	struct hd_tcp_frame f = { .len = len, .seq = ++w->seq, .ack = w->ack, .grant = w->grant, .pkt = *pkt };

	if (said.len + sizeof(f) + len > sizeof(said.bytes))
		say_out(w);
	memcpy(said.bytes + said.len, &f, sizeof(f));
	if (len)
		memcpy(said.bytes + said.len + sizeof(f), payload, len);
	said.len += sizeof(f) + len;
}

/* All has been heard when the endpoint that was spoken of last is of this generation. */
static void say_until(struct attack_scene *s, uint32_t index, uint16_t gen)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	say_out(s->w);
	while (hd_remote_gen(hd_links(s->a.node)->peers, index) != gen) {
		hd_node_poll(s->a.node);
		assert_true(hd_now_ns() < end);
	}
}

static void announce(struct attack_scene *s, uint32_t count, uint16_t gen)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };

	for (uint32_t i = 0; i < count; i++) {
		struct hd_announce a = { .index = i,
					 .gen = gen,
					 .port = (uint16_t)(2000 + i / 16384),
					 .slot = (uint16_t)(i % 16384) };

		say(s->w, &pkt, &a, sizeof(a));
	}
	say_until(s, count - 1, gen);
}

/* Endpoints begin anew, or are closed, one after the other; or all of them by a hang-up. */
static void renew_each(struct attack_scene *s, uint32_t count)
{
	announce(s, count, 2);
}

static void close_each(struct attack_scene *s, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		say(s->w, &(struct hd_pkt){ .kind = HD_PKT_GONE, .src = i, .gen = 1 }, NULL, 0);
	say_until(s, count - 1, 0);
}

static void hang_up(struct attack_scene *s, uint32_t count)
{
	wire_hang_up(s->w);
	until_alone(&s->a);
}

static uint64_t cost_of(struct attack_scene *s, uint32_t count,
			void (*then)(struct attack_scene *s, uint32_t count))
{
	uint64_t from;

	wire_greet(s->w, &s->a);
	announce(s, count, 1);
	from = cpu_ns();
	then(s, count);
	from = cpu_ns() - from;
	hang_up(s, count);
	return from;
}

static void costs_so_much_each(struct attack_scene *s, void (*then)(struct attack_scene *s, uint32_t count))
{
	uint64_t few = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t cost = cost_of(s, FEW, then);

		few = cost < few ? cost : few;
	}
	assert_in_range(cost_of(s, MANY, then), 0, few * AT_MOST);
}

static void hanging_up(void **state)
{
	costs_so_much_each(*state, hang_up);
}

static void closing_each(void **state)
{
	costs_so_much_each(*state, close_each);
}

static void beginning_anew(void **state)
{
	costs_so_much_each(*state, renew_each);
}

/* Sources go of which messages wait. */
#define SOURCES_FEW 40
#define SOURCES_MANY 4000 /* messages of the first window */

static uint64_t cost_of_messages(struct attack_scene *s, uint32_t count)
{
	uint64_t from;

	wire_greet(s->w, &s->a);
	announce(s, count, 1);
	for (uint32_t i = 0; i < count; i++) {
		struct hd_pkt pkt = wire_eager(s->w, 1000, 0);

		pkt.src = i;
		say(s->w, &pkt, NULL, 0);
	}
	announce(s, 1, 2);
	from = cpu_ns();
	hang_up(s, count);
	from = cpu_ns() - from;
	assert_int_equal(s->a.ep->rq->match[1].waiting, count);
	hd_rq_drop_waiting(s->a.ep->rq, s->a.ep);
	return from;
}

static void leaving_messages(void **state)
{
	uint64_t few = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t cost = cost_of_messages(*state, SOURCES_FEW);

		few = cost < few ? cost : few;
	}
	assert_in_range(cost_of_messages(*state, SOURCES_MANY), 0, few * AT_MOST);
}

static int figures(void)
{
	static const struct {
		const char *what;
		void (*then)(struct attack_scene *s, uint32_t count);
	} rows[] = { { "hang-up", hang_up },
		     { "closed one by one", close_each },
		     { "begun anew", renew_each } };
	static const uint32_t counts[] = { 10, 1000, 100000 };
	void *state;

	attack_setup(&state);
	printf("%-20s%14s%14s%14s   ns each\n", "announced endpoints", "10", "1,000", "100,000");
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		printf("%-20s", rows[r].what);
		for (size_t i = 0; i < 3; i++)
			printf("%14.0f", (double)cost_of(state, counts[i], rows[r].then) / counts[i]);
		printf("\n");
	}
	return attack_teardown(&state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hanging_up, attack_setup, attack_teardown),
		cmocka_unit_test_setup_teardown(closing_each, attack_setup, attack_teardown),
		cmocka_unit_test_setup_teardown(beginning_anew, attack_setup, attack_teardown),
		cmocka_unit_test_setup_teardown(leaving_messages, attack_setup, attack_teardown),
	};

	if (argc > 1 && !strcmp(argv[1], "--figures"))
		return figures();
	return cmocka_run_group_tests_name("flood", tests, NULL, NULL);
}
