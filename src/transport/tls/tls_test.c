/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Two ends of a sealed connection, and a wire between them that a test can read and change. */
#include "base/copy.h"
#include "base/seal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct hd_seal_module hd_seal_module;

enum {
	CALLER,
	CALLED
};

static const uint8_t key_a[HD_SEAL_KEY] = "this is a key for a test, no 1.";
static const uint8_t key_b[HD_SEAL_KEY] = "this is a key for a test, no 2.";

struct end {
	struct hd_sealer *sealer;
	struct hd_seal *seal;
	int near, far;	/* its socket, and where the wire takes its bytes from */
	uint64_t bytes; /* that the wire has taken from it */
};

struct scene {
	struct end end[2];
	int rc[2];
	uint8_t last[64 << 10]; /* what the wire has taken last */
	size_t last_len;
};

static void end_open(struct scene *s, int who, const uint8_t *key, int id, uint64_t records)
{
	struct hd_sealer_attr attr = { .id = { (uint8_t)id, 7 }, .records = records, .copy = hd_copy };
	int pair[2];

	memcpy(attr.key, key, HD_SEAL_KEY);
	assert_int_equal(hd_seal_module.open(&attr, &s->end[who].sealer), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	s->end[who].near = pair[0];
	s->end[who].far = pair[1];
	s->end[who].seal = hd_seal_module.begin(s->end[who].sealer, pair[0], who == CALLER);
	assert_non_null(s->end[who].seal);
	s->rc[who] = -EAGAIN;
}

static void scene_open(struct scene *s, const uint8_t *caller, const uint8_t *called, uint64_t records)
{
	memset(s, 0, sizeof(*s));
	end_open(s, CALLER, caller, 1, records);
	end_open(s, CALLED, called, 2, records);
}

static void scene_close(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		hd_seal_module.end(s->end[i].seal);
		hd_seal_module.close(s->end[i].sealer);
		close(s->end[i].near);
		close(s->end[i].far);
	}
}

/* Take what this end has sent: how many bytes. */
static size_t wire_take(struct scene *s, int from)
{
	ssize_t n = recv(s->end[from].far, s->last, sizeof(s->last), MSG_DONTWAIT);

	s->last_len = n > 0 ? (size_t)n : 0;
	s->end[from].bytes += s->last_len;
	return s->last_len;
}

static void wire_put(struct scene *s, int to)
{
	assert_int_equal(send(s->end[to].far, s->last, s->last_len, MSG_NOSIGNAL), s->last_len);
}

static void wire_run(struct scene *s)
{
	for (int i = 0; i < 2; i++)
		while (wire_take(s, i))
			wire_put(s, !i);
}

static void shake_one(struct scene *s, int who)
{
	bool writes;

	if (s->rc[who] == -EAGAIN)
		s->rc[who] = hd_seal_module.shake(s->end[who].seal, &writes);
}

static void shake(struct scene *s)
{
	for (int i = 0; i < 20 && (s->rc[0] == -EAGAIN || s->rc[1] == -EAGAIN); i++) {
		shake_one(s, CALLER);
		wire_run(s);
		shake_one(s, CALLED);
		wire_run(s);
	}
}

static void say(struct scene *s, int who, const void *buf, size_t len)
{
	struct iovec iov = { (void *)buf, len };
	size_t left;

	assert_int_equal(hd_seal_module.write(s->end[who].seal, &iov, 1, &left), len);
	assert_int_equal(left, 0);
}

static ssize_t hear(struct scene *s, int who, void *buf, size_t len)
{
	struct iovec iov = { buf, len };
	bool gone = false, more;

	return hd_seal_module.read(s->end[who].seal, &iov, 1, &gone, &more);
}

static void ends_with_one_key_talk(void **state)
{
	struct scene s;
	char buf[64];

	scene_open(&s, key_a, key_a, 0);
	shake(&s);
	assert_int_equal(s.rc[CALLER], 0);
	assert_int_equal(s.rc[CALLED], 0);
	for (int who = 0; who < 2; who++) {
		say(&s, who, "a word", 7);
		assert_int_equal(hear(&s, !who, buf, sizeof(buf)), -EAGAIN);
		wire_run(&s);
		assert_int_equal(hear(&s, !who, buf, sizeof(buf)), 7);
		assert_string_equal(buf, "a word");
	}
	scene_close(&s);
}

static void another_key_is_refused_by_both(void **state)
{
	struct scene s;

	scene_open(&s, key_a, key_b, 0);
	shake(&s);
	assert_int_equal(s.rc[CALLED], -EACCES);
	assert_int_equal(s.rc[CALLER], -EACCES);
	scene_close(&s);
}

/*
 * Nobody speaks to who does not begin with the key: not one byte leaves that he could not
 * have asked any server for.
 */
static void plain_words_are_refused(void **state)
{
	struct scene s;
	bool writes;

	scene_open(&s, key_a, key_a, 0);
	memset(s.last, 1, 4096);
	s.last_len = 4096;
	wire_put(&s, CALLED);
	assert_int_equal(hd_seal_module.shake(s.end[CALLED].seal, &writes), -EACCES);
	assert_true(wire_take(&s, CALLED) < 16); /* an alert, at most */
	scene_close(&s);
}

static void a_caller_refuses_plain_words(void **state)
{
	struct scene s;
	bool writes;

	scene_open(&s, key_a, key_a, 0);
	assert_int_equal(hd_seal_module.shake(s.end[CALLER].seal, &writes), -EAGAIN);
	memset(s.last, 0, 512);
	s.last_len = 512;
	wire_put(&s, CALLER);
	assert_int_equal(hd_seal_module.shake(s.end[CALLER].seal, &writes), -EACCES);
	scene_close(&s);
}

/*
 * A call that comes in a record for each byte, and is longer than any of ours, is not waited for:
 * each costs two calls of the kernel's.
 */
static void a_call_without_end_is_refused(void **state)
{
	struct scene s;
	bool writes;

	scene_open(&s, key_a, key_a, 0);
	for (int i = 0; i < 10000; i++) {
		static const uint8_t begins[] = { 1, 1, 0x80, 0 }; /* a ClientHello of 96 KiB */
		const uint8_t record[] = { 22, 3, 1, 0, 1, i < 4 ? begins[i] : 0 };

		memcpy(s.last + s.last_len, record, sizeof(record));
		s.last_len += sizeof(record);
	}
	wire_put(&s, CALLED);
	assert_int_equal(hd_seal_module.shake(s.end[CALLED].seal, &writes), -EACCES);
	scene_close(&s);
}

/* Each place of what is sent is turned over once: nothing of it is ever taken for a word. */
static void changed_bytes_are_noticed(void **state)
{
	for (size_t at = 0; at < 29; at++) {
		struct scene s;
		char buf[64];

		scene_open(&s, key_a, key_a, 0);
		shake(&s);
		say(&s, CALLER, "a word", 7);
		assert_int_equal(wire_take(&s, CALLER), 29); /* header, 7, type, tag */
		s.last[at] ^= 0x10;
		wire_put(&s, CALLED);
		assert_int_not_equal(hear(&s, CALLED, buf, sizeof(buf)), 7);
		scene_close(&s);
	}
}

static void what_is_said_twice_or_sent_back_is_noticed(void **state)
{
	for (int back = 0; back < 2; back++) {
		struct scene s;
		char buf[64];

		scene_open(&s, key_a, key_a, 0);
		shake(&s);
		say(&s, CALLER, "a word", 7);
		wire_take(&s, CALLER);
		wire_put(&s, CALLED);
		wire_put(&s, back ? CALLER : CALLED);
		assert_int_equal(hear(&s, CALLED, buf, 7), 7);
		assert_int_equal(hear(&s, back ? CALLER : CALLED, buf, sizeof(buf)), -EBADMSG);
		scene_close(&s);
	}
}

/* A whole conversation that was recorded leads nowhere: the other end has drawn a new number. */
static void a_recorded_call_is_refused(void **state)
{
	static uint8_t recorded[64 << 10];
	struct scene s, again;
	size_t n = 0;
	bool writes;

	scene_open(&s, key_a, key_a, 0);
	scene_open(&again, key_a, key_a, 0);
	for (int i = 0; i < 4; i++) {
		shake_one(&s, CALLER);
		while (wire_take(&s, CALLER)) {
			memcpy(recorded + n, s.last, s.last_len);
			n += s.last_len;
			wire_put(&s, CALLED);
		}
		shake_one(&s, CALLED);
		wire_run(&s);
	}
	assert_int_equal(s.rc[CALLED], 0);
	memcpy(again.last, recorded, n);
	again.last_len = n;
	wire_put(&again, CALLED);
	assert_int_equal(hd_seal_module.shake(again.end[CALLED].seal, &writes), -EACCES);
	scene_close(&s);
	scene_close(&again);
}

static void a_node_that_hears_itself_notices(void **state)
{
	struct scene s = { 0 };

	end_open(&s, CALLER, key_a, 5, 0);
	end_open(&s, CALLED, key_a, 5, 0);
	shake(&s);
	assert_int_equal(s.rc[CALLED], 0);
	assert_true(hd_seal_module.heard_self(s.end[CALLED].seal));
	scene_close(&s);
	scene_open(&s, key_a, key_a, 0);
	shake(&s);
	assert_false(hd_seal_module.heard_self(s.end[CALLED].seal));
	scene_close(&s);
}

/*
 * Longer than a record, in pieces of all lengths, both ways, while keys
 * follow keys every few records.
 */
static void long_words_come_whole_through_many_keys(void **state)
{
	enum {
		LEN = 300000
	};
	uint8_t *out = malloc(LEN), *in = malloc(LEN);
	struct scene s;

	scene_open(&s, key_a, key_a, 3);
	shake(&s);
	for (size_t i = 0; i < LEN; i++)
		out[i] = (uint8_t)(i * 2654435761u >> 13);
	for (int who = 0; who < 2; who++) {
		size_t taken = 0, got = 0, left, step = 1;

		while (got < LEN) {
			struct iovec iov[3];
			ssize_t n;
			size_t part = LEN - taken < step ? LEN - taken : step;

			iov[0] = (struct iovec){ out + taken, part / 3 };
			iov[1] = (struct iovec){ out + taken + part / 3, 0 };
			iov[2] = (struct iovec){ out + taken + part / 3, part - part / 3 };
			n = hd_seal_module.write(s.end[who].seal, iov, part ? 3 : 0, &left);
			assert_true(n >= 0);
			taken += (size_t)n;
			step = step * 3 / 2 + 1;
			wire_run(&s);
			n = hear(&s, !who, in + got, LEN - got);
			assert_true(n > 0 || n == -EAGAIN);
			got += n > 0 ? (size_t)n : 0;
		}
		assert_memory_equal(out, in, LEN);
	}
	scene_close(&s);
	free(out);
	free(in);
}

/* What the socket does not take waits, is said to wait, and leaves when it can. */
static void a_full_socket_takes_the_rest_later(void **state)
{
	enum {
		LEN = 4 << 20
	};
	uint8_t *out = calloc(1, LEN), *in = malloc(LEN);
	size_t taken = 0, got = 0, left = 0;
	struct scene s;

	scene_open(&s, key_a, key_a, 0);
	shake(&s);
	memset(out, 0x5a, LEN);
	while (!left) {
		struct iovec iov = { out + taken, LEN - taken };
		ssize_t n = hd_seal_module.write(s.end[CALLER].seal, &iov, 1, &left);

		assert_true(n > 0);
		taken += (size_t)n;
	}
	assert_true(taken < LEN);
	while (got < taken) {
		ssize_t n;

		wire_run(&s);
		n = hear(&s, CALLED, in + got, LEN - got);
		assert_true(n > 0 || n == -EAGAIN);
		got += n > 0 ? (size_t)n : 0;
		assert_int_equal(hd_seal_module.write(s.end[CALLER].seal, NULL, 0, &left), 0);
	}
	assert_int_equal(left, 0);
	assert_memory_equal(out, in, taken);
	scene_close(&s);
	free(out);
	free(in);
}

static void the_end_is_told(void **state)
{
	struct scene s;
	char buf[8];

	scene_open(&s, key_a, key_a, 0);
	shake(&s);
	shutdown(s.end[CALLED].far, SHUT_WR);
	assert_int_equal(hear(&s, CALLED, buf, sizeof(buf)), 0);
	scene_close(&s);
}

/* ---- groups ---- */

struct members {
	uint64_t records; /* of one key */
	struct hd_sealer *sealer[2];
	struct hd_seal_group *group[2];
	uint8_t wire[4096], out[4096];
};

static void members_open(struct members *m, const uint8_t *one, const uint8_t *other, const char *name)
{
	const uint8_t *keys[2] = { one, other };

	for (int i = 0; i < 2; i++) {
		struct hd_sealer_attr attr = { .id = { (uint8_t)(i + 1) }, .records = m->records };

		memcpy(attr.key, keys[i], HD_SEAL_KEY);
		assert_int_equal(hd_seal_module.open(&attr, &m->sealer[i]), 0);
		m->group[i] =
			hd_seal_module.group(m->sealer[i], i ? name : "group", strlen(i ? name : "group"));
		assert_non_null(m->group[i]);
	}
}

static void members_close(struct members *m)
{
	for (int i = 0; i < 2; i++) {
		hd_seal_module.group_end(m->group[i]);
		hd_seal_module.close(m->sealer[i]);
	}
}

static ssize_t wrap(struct members *m, const char *text)
{
	struct iovec iov[3] = { { (void *)text, strlen(text) / 2 }, { NULL, 0 } };

	iov[2] = (struct iovec){ (char *)text + iov[0].iov_len, strlen(text) - iov[0].iov_len };
	return hd_seal_module.wrap(m->group[0], iov, 3, m->wire, sizeof(m->wire));
}

static ssize_t unwrap(struct members *m, size_t len)
{
	memset(m->out, 0, sizeof(m->out));
	return hd_seal_module.unwrap(m->group[1], m->wire, len, m->out, sizeof(m->out));
}

static void a_group_hears_its_members(void **state)
{
	struct members m = { 0 };
	ssize_t n;

	members_open(&m, key_a, key_a, "group");
	n = wrap(&m, "a word to all");
	assert_int_equal(n, 13 + HD_SEAL_MORE);
	assert_null(memmem(m.wire, (size_t)n, "word", 4));
	assert_int_equal(unwrap(&m, (size_t)n), 13);
	assert_string_equal((char *)m.out, "a word to all");
	n = wrap(&m, "");
	assert_int_equal(unwrap(&m, (size_t)n), 0);
	members_close(&m);
}

static void a_group_hears_nobody_else(void **state)
{
	struct members m = { 0 };
	ssize_t n;

	members_open(&m, key_b, key_a, "group");
	n = wrap(&m, "a word to all");
	assert_int_equal(unwrap(&m, (size_t)n), -EACCES);
	members_close(&m);
	members_open(&m, key_a, key_a, "another group");
	n = wrap(&m, "a word to all");
	assert_int_equal(unwrap(&m, (size_t)n), -EACCES);
	members_close(&m);
	members_open(&m, key_a, key_a, "group");
	assert_int_equal(unwrap(&m, 0), -EACCES);
	memset(m.wire, 0x5a, sizeof(m.wire));
	assert_int_equal(unwrap(&m, 200), -EACCES);
	members_close(&m);
}

static void a_changed_datagram_is_noticed(void **state)
{
	struct members m = { 0 };
	size_t n;

	members_open(&m, key_a, key_a, "group");
	n = (size_t)wrap(&m, "a word to all");
	for (size_t at = 0; at < n; at++) {
		m.wire[at] ^= 1;
		assert_int_equal(unwrap(&m, n), -EACCES);
		m.wire[at] ^= 1;
		assert_int_equal(unwrap(&m, at), -EACCES);
	}
	assert_int_equal(unwrap(&m, n), 13);
	members_close(&m);
}

static void datagrams_come_once_and_in_any_order(void **state)
{
	enum {
		COUNT = 1100
	};
	static uint8_t kept[COUNT][HD_SEAL_MORE + 4];
	struct members m = { 0 };

	members_open(&m, key_a, key_a, "group");
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(wrap(&m, "word"), sizeof(kept[i]));
		memcpy(kept[i], m.wire, sizeof(kept[i]));
	}
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 500; i++) {
			int which = (i * 7) % 500; /* each once, up and down */

			memcpy(m.wire, kept[which], sizeof(kept[which]));
			assert_int_equal(unwrap(&m, sizeof(kept[which])), round ? -EALREADY : 4);
		}
	memcpy(m.wire, kept[COUNT - 1], sizeof(kept[0]));
	assert_int_equal(unwrap(&m, sizeof(kept[0])), 4);
	memcpy(m.wire, kept[600], sizeof(kept[0])); /* within the window of 1024 */
	assert_int_equal(unwrap(&m, sizeof(kept[0])), 4);
	assert_int_equal(unwrap(&m, sizeof(kept[0])), -EALREADY);
	memcpy(m.wire, kept[499], sizeof(kept[0])); /* heard before the window moved */
	assert_int_equal(unwrap(&m, sizeof(kept[0])), -EALREADY);
	memcpy(m.wire, kept[70], sizeof(kept[0])); /* older than the window */
	assert_int_equal(unwrap(&m, sizeof(kept[0])), -EALREADY);
	members_close(&m);
}

/*
 * Who says much takes another key, which those who hear him find by the datagram; what has
 * come does not come again.
 */
static void a_member_takes_new_keys(void **state)
{
	enum {
		COUNT = 8
	};
	static uint8_t kept[COUNT][HD_SEAL_MORE + 4];
	struct members m = { .records = 3 };
	int keys = 0;

	members_open(&m, key_a, key_a, "group");
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(wrap(&m, "word"), sizeof(kept[i]));
		memcpy(kept[i], m.wire, sizeof(kept[i]));
		keys += !i || memcmp(kept[i] + 24, kept[i - 1] + 24, 16) != 0; /* the salt */
		assert_int_equal(unwrap(&m, sizeof(kept[i])), 4);
	}
	assert_int_equal(keys, 3);
	for (int i = 0; i < COUNT; i++) {
		memcpy(m.wire, kept[i], sizeof(kept[i]));
		assert_int_equal(unwrap(&m, sizeof(kept[i])), -EALREADY);
	}
	members_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_with_one_key_talk),
		cmocka_unit_test(another_key_is_refused_by_both),
		cmocka_unit_test(plain_words_are_refused),
		cmocka_unit_test(a_caller_refuses_plain_words),
		cmocka_unit_test(a_call_without_end_is_refused),
		cmocka_unit_test(changed_bytes_are_noticed),
		cmocka_unit_test(what_is_said_twice_or_sent_back_is_noticed),
		cmocka_unit_test(a_recorded_call_is_refused),
		cmocka_unit_test(a_node_that_hears_itself_notices),
		cmocka_unit_test(long_words_come_whole_through_many_keys),
		cmocka_unit_test(a_full_socket_takes_the_rest_later),
		cmocka_unit_test(the_end_is_told),
		cmocka_unit_test(a_group_hears_its_members),
		cmocka_unit_test(a_group_hears_nobody_else),
		cmocka_unit_test(a_changed_datagram_is_noticed),
		cmocka_unit_test(datagrams_come_once_and_in_any_order),
		cmocka_unit_test(a_member_takes_new_keys),
	};

	return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}
