/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A peer that sends what it should not, in pieces, too slowly, or stops in the middle. */
#include "transport/tcp_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/config.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- frames that are wrong ---- */

/* The node has sent one frame. What follows is right, save for one thing. */
static const struct wrong {
	const char *what;
	struct hd_tcp_frame frame[2];
} wrongs[] = {
	{ "number 0", { { .seq = 0, .pkt.kind = HD_TCP_PKT_GRANT } } },
	{ "number 2 first", { { .seq = 2, .pkt.kind = HD_TCP_PKT_GRANT } } },
	{ "a number twice",
	  { { .seq = 1, .pkt.kind = HD_TCP_PKT_GRANT }, { .seq = 1, .pkt.kind = HD_TCP_PKT_GRANT } } },
	{ "too long", { { .seq = 1, .len = HD_TCP_LEN_MAX + 1, .pkt.kind = HD_PKT_HELLO } } },
	{ "as long as can be", { { .seq = 1, .len = UINT32_MAX, .pkt.kind = HD_PKT_HELLO } } },
	{ "acknowledges the future", { { .seq = 1, .ack = 2, .pkt.kind = HD_TCP_PKT_GRANT } } },
	{ "takes an ack back",
	  { { .seq = 1, .ack = 1, .pkt.kind = HD_TCP_PKT_GRANT },
	    { .seq = 2, .ack = 0, .pkt.kind = HD_TCP_PKT_GRANT } } },
	{ "takes credit back",
	  { { .seq = 1, .grant = 9, .pkt.kind = HD_TCP_PKT_GRANT },
	    { .seq = 2, .grant = 8, .pkt.kind = HD_TCP_PKT_GRANT } } },
	{ "of no kind", { { .seq = 1, .pkt.kind = HD_TCP_PKT_GRANT + 1 } } },
	{ "a grant with payload", { { .seq = 1, .len = 1, .pkt.kind = HD_TCP_PKT_GRANT } } },
};

static struct hd_tcp_frame on_the_wire(struct hd_tcp_frame f)
{
	f.len = htole32(f.len);
	f.seq = htole32(f.seq);
	f.ack = htole32(f.ack);
	f.grant = htole32(f.grant);
	return f;
}

static void wrong_frames_end_the_link_and_nothing_else(void **state)
{
	uint8_t hello[HELLO_FRAME];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct hd_tcp_frame first = on_the_wire(wrongs[i].frame[0]),
				    second = on_the_wire(wrongs[i].frame[1]);

		scene_greet(&s, hello);
		scene_say(&s, &first, sizeof(first));
		if (second.pkt.kind) {
			rig_poll(s.node);
			assert_false(s.end->was_down);
			scene_say(&s, &second, sizeof(second));
		}
		scene_turns(&s, scene_gone);
		if (s.end->err != -EPROTO)
			fail_msg("%s: %d", wrongs[i].what, s.end->err);
	}
	scene_greet(&s, hello);
	scene_say(&s, hello, sizeof(hello));
	while (s.end->rx < 1)
		rig_poll(s.node);
	scene_close(&s);
}

static void noise_ends_the_link(void **state)
{
	static const char web[] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n";
	uint8_t noise[4096];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	for (unsigned i = 0; i < 20; i++) {
		rig_fill(noise, 0, sizeof(noise), i + 1);
		scene_dial(&s);
		scene_say(&s, i ? (const void *)noise : web, i ? HD_TCP_HEAD + i * 31 : sizeof(web) - 1);
		scene_turns(&s, scene_gone);
		assert_int_equal(s.end->err, -EPROTO);
	}
	scene_close(&s);
}

/* ---- frames that stop ---- */

static void a_stream_may_stop_anywhere(void **state)
{
	static const size_t stops[] = {
		0, 1, 15, 16, 47, 48, 49, 300, HELLO_FRAME - 1, HELLO_FRAME, HELLO_FRAME + 5
	};
	uint8_t hello[HELLO_FRAME * 2];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		scene_greet(&s, hello);
		memcpy(hello + HELLO_FRAME, hello, HELLO_FRAME);
		scene_say(&s, hello, stops[i]);
		for (int turns = 0; turns < 20; turns++)
			rig_poll(s.node);
		assert_false(s.end->was_down);
		shutdown(s.fd, SHUT_WR);
		scene_turns(&s, scene_gone);
		assert_int_equal(s.end->err, -ECONNRESET);
		assert_int_equal(s.end->rx, stops[i] >= HELLO_FRAME);
	}
	scene_close(&s);
}

/* ---- pieces ---- */

struct mirror {
	uint8_t buf[1 << 20];
	size_t head, tail;
	uint64_t random;
};

/* Give back what came, a piece of it. */
static void reflect(struct scene *s, struct mirror *m, size_t most)
{
	size_t have = m->tail - m->head;
	ssize_t r = 0;

	if (have)
		r = send(s->fd, m->buf + m->head, rig_between(&m->random, 1, most < have ? most : have),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (r > 0)
		m->head += (size_t)r;
	if (m->head < m->tail)
		return;
	r = recv(s->fd, m->buf, sizeof(m->buf), MSG_DONTWAIT);
	m->head = 0;
	m->tail = r > 0 ? (size_t)r : 0;
}

static void echo(struct scene *s, struct mirror *m, const struct rig_plan *plan, size_t most)
{
	s->end->plan = *plan;
	for (uint64_t turns = 0; !rig_end_idle(s->end) || s->end->rx < s->end->tx; turns++) {
		reflect(s, m, most);
		rig_poll(s->node);
		assert_string_equal(s->node->complaint, "");
		assert_false(s->end->was_down);
		assert_true(turns < 10000000);
	}
}

static void frames_arrive_in_pieces_of_any_size(void **state)
{
	static const size_t pieces[] = { 1, 2, 7, 47, 48, 49, 100, 1000, 5000, 70000, 300000 };
	struct mirror *m = calloc(1, sizeof(*m));
	struct scene s;

	assert_non_null(m);
	scene_open(&s, "127.0.0.1");
	scene_dial(&s);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		const struct rig_plan plan = {
			.packets = pieces[i] < 1000 ? 30 : 200,
			.most = pieces[i] < 1000 ? 1000 : HD_FRAME_MAX,
			.burst = 3,
			.how = RIG_SEND | RIG_SENDV | RIG_PUT,
			.truncates = true,
		};

		s.end->grant_step = 3;
		echo(&s, m, &plan, pieces[i]);
	}
	scene_close(&s);
	free(m);
}

/* ---- a slow reader ---- */

static bool stuck(struct scene *s)
{
	static uint64_t seen;
	static int turns;

	if (seen != s->end->tx)
		turns = 0;
	seen = s->end->tx;
	return ++turns > 50;
}

/*
 * The node is told that there is no room, keeps a bounded amount, and everything
 * it took arrives in order.
 */
static void a_slow_reader_gets_everything(void **state)
{
	struct mirror *m = calloc(1, sizeof(*m));
	struct scene s;

	assert_non_null(m);
	for (unsigned how = RIG_SEND; how <= RIG_PUT; how <<= 1) {
		scene_open(&s, "127.0.0.1");
		scene_dial(&s);
		s.end->plan = (struct rig_plan){ .packets = UINT64_MAX, .most = 60000, .how = how };
		scene_turns(&s, stuck);
		assert_true(tcp_link(s.end->link)->tx.cap <= 1 << 20);
		m->head = m->tail = 0;
		echo(&s, m, &(struct rig_plan){ .packets = 10, .most = 100, .how = how }, sizeof(m->buf));
		scene_close(&s);
	}
	free(m);
}

/*
 * Packets that no buffer was made for: what the socket does not take is kept all the same,
 * and the memory given back.
 */
static void packets_beyond_the_buffer_wait_too(void **state)
{
	struct mirror *m = calloc(1, sizeof(*m));
	struct scene s;

	assert_non_null(m);
	setenv("HEDDLE_EAGER_TCP", "3M", 1);
	hd_config_load();
	scene_open(&s, "127.0.0.1");
	scene_dial(&s);
	s.end->plan = (struct rig_plan){
		.packets = UINT64_MAX, .least = 5 << 19, .most = 3 << 20, .how = RIG_SEND | RIG_SENDV
	};
	scene_turns(&s, stuck);
	assert_true(tcp_link(s.end->link)->tx.cap > 1 << 20);
	echo(&s, m, &(struct rig_plan){ .packets = 10, .most = 100, .how = RIG_SEND }, sizeof(m->buf));
	assert_true(tcp_link(s.end->link)->tx.cap <= 1 << 20);
	scene_close(&s);
	free(m);
	unsetenv("HEDDLE_EAGER_TCP");
	hd_config_load();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_frames_end_the_link_and_nothing_else),
		cmocka_unit_test(noise_ends_the_link),
		cmocka_unit_test(a_stream_may_stop_anywhere),
		cmocka_unit_test(frames_arrive_in_pieces_of_any_size),
		cmocka_unit_test(a_slow_reader_gets_everything),
		cmocka_unit_test(packets_beyond_the_buffer_wait_too),
	};

	setenv("HEDDLE_LOG", "error", 0);
	hd_config_load();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
