/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Parting: what has been said is heard, though who said it is gone, and what was taken back is not.
 */
#include "transport/tcp_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- parting ---- */

/*
 * What was sent is not lost when the link is closed at once, not even when the other
 * end's words were never read.
 */
static void last_words_are_heard(void **state)
{
	static uint8_t junk[100000];
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	uint8_t hello[HELLO_FRAME], frame[HD_TCP_HEAD + 8];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	for (int rude = 0; rude < 2; rude++) {
		scene_greet(&s, hello);
		if (rude)
			assert_int_equal(send(s.fd, junk, sizeof(junk), MSG_NOSIGNAL), sizeof(junk));
		for (uint64_t i = 0; i < 2000; i++)
			assert_int_equal(s.end->link->ops->send(s.end->link, &pkt, &i, sizeof(i)), 0);
		rig_end_close(s.end, -ESHUTDOWN);
		scene_turns(&s, scene_gone);
		for (uint64_t i = 0; i < 2000; i++) {
			scene_hear(&s, frame, sizeof(frame));
			assert_memory_equal(frame + HD_TCP_HEAD, &i, sizeof(i));
		}
		assert_int_equal(recv(s.fd, frame, 1, 0), 0);
	}
	scene_close(&s);
}

/*
 * A put that is not written belongs to the engine again: neither it nor a
 * header without it may follow.
 */
static void unwritten_puts_are_not_sent(void **state)
{
	static uint8_t payload[HD_FRAME_MAX];
	const struct hd_pkt pkt = { .kind = HD_PKT_DATA };
	const struct iovec iov = { payload, sizeof(payload) };
	struct hd_put puts[HD_TCP_PUTS];
	uint8_t hello[HELLO_FRAME];
	struct scene s;
	int waiting = 0;

	scene_open(&s, "127.0.0.1");
	scene_greet(&s, hello);
	for (int i = 0; i < 4; i++)
		waiting += !s.end->link->ops->put(s.end->link, &pkt, &iov, 1, sizeof(payload), &puts[i]);
	assert_in_range(waiting, 1, 4); /* the first goes at once */
	rig_end_close(s.end, -ESHUTDOWN);
	scene_turns(&s, scene_gone);
	for (; waiting < 4; waiting++) {
		scene_hear(&s, hello, HD_TCP_HEAD);
		scene_hear(&s, payload, sizeof(payload));
		scene_hear(&s, hello, HD_TCP_CHECK);
	}
	assert_int_equal(recv(s.fd, hello, 1, 0), 0);
	scene_close(&s);
}

static int told;

static void put_is_done(struct hd_put *put)
{
	told++;
}

/* The payloads of a put that is taken back may change at once; what is sent is what they were. */
static void a_put_that_is_taken_back_is_still_sent(void **state)
{
	static uint8_t payload[4][60000];
	const struct hd_pkt pkt = { .kind = HD_PKT_DATA };
	struct hd_put puts[3]; /* the last one is for two payloads */
	uint8_t hello[HELLO_FRAME], *copy = malloc(sizeof(payload[0]));
	struct scene s;

	assert_non_null(copy);
	scene_open(&s, "127.0.0.1");
	scene_greet(&s, hello);
	told = 0;
	for (int i = 0; i < 4; i++) {
		const struct iovec iov[2] = { { payload[i], 11111 },
					      { payload[i] + 11111, sizeof(payload[i]) - 11111 } };

		rig_fill(payload[i], 0, sizeof(payload[i]), (uint64_t)i);
		struct hd_put *put = &puts[i < 2 ? i : 2];

		*put = (struct hd_put){ .done = put_is_done, .link = s.end->link };
		assert_int_equal(s.end->link->ops->put(s.end->link, &pkt, iov, 2, sizeof(payload[i]), put),
				 !i);
	}
	assert_int_equal(s.end->link->ops->unput(s.end->link, &puts[2]), 0);
	memset(payload[2], 0, 2 * sizeof(payload[2]));
	for (int i = 0; i < 4; i++) {
		scene_hear(&s, hello, HD_TCP_HEAD);
		scene_hear(&s, copy, sizeof(payload[i]));
		scene_hear(&s, hello, HD_TCP_CHECK);
		assert_true(rig_same(copy, 0, sizeof(payload[i]), (uint64_t)i));
	}
	for (int i = 0; i < 4; i++)
		rig_poll(s.node);
	assert_int_equal(told, 1); /* the first was done when it was put */
	scene_close(&s);
	free(copy);
}

/* Neither are they lost behind such a payload, when the link is closed before it is written. */
static void what_follows_a_put_that_is_taken_back_is_heard(void **state)
{
	static uint8_t payload[3][60000], heard[sizeof(payload[0])];
	const struct hd_pkt pkt = { .kind = HD_PKT_DATA };
	struct hd_put put = { .done = put_is_done };
	uint8_t frame[HELLO_FRAME];
	uint64_t last = 12345;
	struct scene s;

	scene_open(&s, "127.0.0.1");
	scene_greet(&s, frame);
	for (int i = 0; i < 3; i++) {
		const struct iovec iov = { payload[i], sizeof(payload[i]) };

		rig_fill(payload[i], 0, sizeof(payload[i]), (uint64_t)i);
		put.link = s.end->link;
		assert_int_equal(s.end->link->ops->put(s.end->link, &pkt, &iov, 1, sizeof(payload[i]), &put),
				 !i);
	}
	assert_int_equal(s.end->link->ops->unput(s.end->link, &put), 0);
	assert_int_equal(s.end->link->ops->send(s.end->link, &pkt, &last, sizeof(last)), 0);
	rig_end_close(s.end, -ESHUTDOWN);
	scene_turns(&s, scene_gone);
	for (int i = 0; i < 3; i++) {
		scene_hear(&s, frame, HD_TCP_HEAD);
		scene_hear(&s, heard, sizeof(heard));
		scene_hear(&s, frame, HD_TCP_CHECK);
		assert_true(rig_same(heard, 0, sizeof(heard), (uint64_t)i));
	}
	scene_hear(&s, frame, HD_TCP_HEAD + sizeof(last));
	assert_memory_equal(frame + HD_TCP_HEAD, &last, sizeof(last));
	assert_int_equal(recv(s.fd, frame, 1, 0), 0);
	scene_close(&s);
}

struct late_reader {
	int fd;
	uint64_t heard;
};

/* Talks and listens by turns, until there is no more. */
static void *read_late(void *arg)
{
	static uint8_t junk[10000], buf[10000];
	struct late_reader *r = arg;
	ssize_t n;

	do {
		(void)!send(r->fd, junk, sizeof(junk), MSG_NOSIGNAL | MSG_DONTWAIT);
		n = recv(r->fd, buf, sizeof(buf), 0);
		r->heard += n > 0 ? (uint64_t)n : 0;
	} while (n > 0);
	return NULL;
}

static uint8_t payload[10000];
static const struct hd_pkt payload_pkt = { .kind = HD_PKT_EAGER };

/* A scene in which we have talked until nothing more could be said; returns how many bytes. */
static uint64_t scene_talks(struct scene *s)
{
	uint8_t hello[HELLO_FRAME];
	uint64_t said = 0;

	scene_open(s, "127.0.0.1");
	scene_greet(s, hello);
	while (s->end->link->ops->send(s->end->link, &payload_pkt, payload, sizeof(payload)) == 0) {
		said += HD_TCP_HEAD + sizeof(payload) + HD_TCP_CHECK;
		rig_poll(s->node);
	}
	return said;
}

/* A node that closes waits for one that has no room at the moment, and goes on talking. */
static void last_words_wait_for_room(void **state)
{
	struct late_reader reader;
	pthread_t thread;
	struct scene s;
	uint64_t said = scene_talks(&s);

	reader = (struct late_reader){ .fd = s.fd };
	rig_end_close(s.end, -ESHUTDOWN);
	scene_turns(&s, scene_gone);
	s.fd = -1;
	assert_int_equal(pthread_create(&thread, NULL, read_late, &reader), 0);
	scene_close(&s);
	pthread_join(thread, NULL);
	assert_int_equal(reader.heard, said);
	close(reader.fd);
}

/* But not for ever, and not for one that has gone. */
static void last_words_do_not_wait_for_ever(void **state)
{
	struct scene s;
	uint64_t start;
	int fd;

	for (int gone = 0; gone < 2; gone++) {
		scene_talks(&s);
		rig_end_close(s.end, -ESHUTDOWN);
		scene_turns(&s, scene_gone);
		fd = s.fd;
		s.fd = -1;
		if (gone)
			close(fd);
		start = hd_now_ns();
		scene_close(&s);
		if (gone)
			continue;
		assert_true(hd_now_ns() - start >= 900 * HD_NS_PER_MS);
		close(fd);
	}
}

/* A process that ends forgets what comes in; its other threads do not go on behind that. */
static void last_words_end_the_listening(void **state)
{
	static uint8_t buf[10000];
	struct scene s;
	uint64_t said = scene_talks(&s), heard = 0;
	bool first = true;

	do {
		ssize_t n;

		assert_int_equal(send(s.fd, payload, sizeof(payload), MSG_NOSIGNAL), sizeof(payload));
		if (!hd_tcp_last(s.port, false)) {
			/* the kernel has sent the rest since the last look */
			assert_false(first);
			break;
		}
		first = false;
		assert_int_equal(send(s.fd, payload, sizeof(payload), MSG_NOSIGNAL), sizeof(payload));
		rig_poll(s.node);
		assert_false(s.end->link->down);
		assert_int_equal(s.end->link->ops->send(s.end->link, &payload_pkt, payload, sizeof(payload)),
				 -EAGAIN);
		while (hd_tcp_last(s.port, true) && (n = recv(s.fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
			heard += (uint64_t)n;
		hd_tcp_last(s.port, false);
	} while (hd_tcp_last(s.port, true));
	while (heard < said)
		heard += (uint64_t)recv(s.fd, buf, sizeof(buf), 0);
	assert_int_equal(heard, said);
	assert_int_equal(recv(s.fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
	rig_end_close(s.end, -ESHUTDOWN);
	scene_turns(&s, scene_gone);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_words_are_heard),
		cmocka_unit_test(unwritten_puts_are_not_sent),
		cmocka_unit_test(a_put_that_is_taken_back_is_still_sent),
		cmocka_unit_test(what_follows_a_put_that_is_taken_back_is_heard),
		cmocka_unit_test(last_words_wait_for_room),
		cmocka_unit_test(last_words_do_not_wait_for_ever),
		cmocka_unit_test(last_words_end_the_listening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
