/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Another user of the host asks what only processes of our user are told (XRC, importing), and
 * listens for what they ask each other.
 */
#include "attack/attack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
	struct side a;
	struct side *all[1];
	struct hd_ep *voice;
	struct wire *w;
	int asked;
};

static int answer(void *owner, const struct hd_question *q)
{
	struct scene *s = owner;

	s->asked++;
	memcpy(q->answer, "secret", 6);
	return 6;
}

static int setup(void **state)
{
	static struct scene s;
	const struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE, .asked = answer, .owner = &s
	};

	memset(&s, 0, sizeof(s));
	s.w = calloc(1, sizeof(*s.w));
	s.w->fd = -1;
	side_open(&s.a);
	assert_int_equal(hd_ep_open(s.a.node, &attr, &s.voice), 0);
	s.all[0] = &s.a;
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	wire_hang_up(s->w);
	hd_ep_close(s->voice);
	side_close(&s->a);
	free(s->w);
	return 0;
}

/* Asks, by an endpoint that he has announced; the answer is in w. */
static void ask(struct scene *s, unsigned uid)
{
	struct hd_pkt ask = { .kind = HD_PKT_ASK, .op = 7, .src = 3, .dst = s->voice->index };
	struct sockaddr_storage name;
	int fd = attack_listen(uid, &name);

	attack_greet(s->w, &s->a, uid, NULL);
	attack_announce(s->w, 3, &name);
	ask.gen = s->voice->gen;
	wire_say(s->w, &ask, "?", 1);
	wire_hear_kind(s->w, HD_PKT_TOLD);
	assert_int_equal(s->w->pkt.op, 7);
	close(fd);
}

static void another_user_is_told_nothing(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	ask(s, STRANGER);
	assert_int_equal(s->w->pkt.imm, EACCES);
	assert_int_equal(s->asked, 0);
}

static void our_own_is(void **state)
{
	struct scene *s = *state;

	ask(s, 0);
	assert_int_equal(s->w->pkt.imm, 0);
	assert_int_equal(s->asked, 1);
	assert_memory_equal(s->w->payload, "secret", 6);
}

struct heard {
	struct hd_ask ask;
	int times, err;
};

static void told(struct hd_ask *ask, int err)
{
	struct heard *h = hd_container(ask, struct heard, ask);

	h->times++;
	h->err = err;
}

/*
 * Where one of ours was, a stranger listens: the question, which has a secret
 * in it, is not sent to him.
 */
static void a_stranger_is_asked_nothing(void **state)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO, .op = 1, .imm = 3 };
	struct heard h = { .ask.told = told };
	struct hd_hello mine;
	uint64_t end = hd_now_ns() + PATIENCE;
	struct scene *s = *state;
	struct sockaddr_storage name;
	struct hd_dest *to;
	int fd;

	attack_needs_root();
	fd = attack_listen(STRANGER, &name);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&name, &to), 0);
	assert_int_equal(hd_ep_ask(s->voice, to, "secret", 6, &h.ask), 0);
	attack_accept(s->w, fd, STRANGER, s->a.node);
	wire_hear_kind(s->w, HD_PKT_HELLO);
	wire_hello(s->w, &mine);
	wire_say(s->w, &hello, &mine, sizeof(mine));
	while (!h.times) {
		attack_poll(s->all, 1, 1);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(h.err, EACCES);
	hd_dest_put(to);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_user_is_told_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(our_own_is, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stranger_is_asked_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
