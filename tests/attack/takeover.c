/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Another user of the host wants what A sends to B: by B's name, by B's id, or by the advert of a third. */
#include "attack/attack.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
	struct side a, b;
	struct side *all[2];
	struct wire *w;
	struct sockaddr_storage b_name;
};

static int setup(void **state)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	s.w = calloc(1, sizeof(*s.w));
	s.w->fd = -1;
	side_open(&s.a);
	side_open(&s.b);
	s.all[0] = &s.a;
	s.all[1] = &s.b;
	assert_int_equal(hd_ep_name(s.b.ep, AF_INET, &s.b_name), 0);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	wire_hang_up(s->w);
	side_close(&s->a);
	side_close(&s->b);
	free(s->w);
	return 0;
}

/* A sends one message to B's name; B gets it, and the stranger gets none. */
static void b_gets_it(struct scene *s)
{
	char out[8] = "for B", in[8] = "";
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	if (!s->a.to)
		assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	side_post(&s->b, in, sizeof(in), 1, 0, NULL, in);
	do {
		rc = hd_send(s->a.ep, s->a.to, out, sizeof(out), 1, 0, NULL, HD_SEND_TAGGED | HD_SEND_INJECT);
		attack_poll(s->all, 2, 1);
		assert_true(hd_now_ns() < end);
	} while (rc == -EAGAIN);
	assert_int_equal(rc, 0);
	while (!hd_cq_peek(s->b.cq)) {
		attack_poll(s->all, 2, 1);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(hd_cq_peek(s->b.cq)->err, 0);
	hd_cq_pop(s->b.cq);
	assert_string_equal(in, "for B");
}

static void a_name_that_another_user_has_not(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	attack_greet(s->w, &s->a, STRANGER, NULL);
	attack_announce(s->w, 3, &s->b_name);
	attack_poll(s->all, 2, 5);
	b_gets_it(s);
}

/* The same when A wants B's name already, and nothing has been said to it yet. */
static void a_name_that_is_wanted(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	attack_greet(s->w, &s->a, STRANGER, NULL);
	attack_announce(s->w, 3, &s->b_name);
	attack_poll(s->all, 2, 5);
	b_gets_it(s);
}

/* What a user listens at himself is believed: peers find each other by what they announce. */
static void ones_own_name_is_believed(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage own;
	struct hd_dest *dest;
	int fd;

	attack_needs_root();
	fd = attack_listen(STRANGER, &own);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &dest), 0);
	attack_greet(s->w, &s->a, STRANGER, NULL);
	attack_announce(s->w, 3, &own);
	attack_poll(s->all, 2, 5);
	assert_int_equal(dest->state, HD_DEST_BOUND);
	hd_dest_put(dest);
	close(fd);
}

/* He calls himself as B does, before A has heard of B: B is another all the same. */
static void an_id_that_is_anothers(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	attack_greet(s->w, &s->a, STRANGER, hd_node_id(s->b.node));
	attack_announce(s->w, 3, &s->b_name);
	attack_poll(s->all, 2, 5);
	b_gets_it(s);
}

/* And B can call A, who knows the stranger by B's id. */
static void an_id_does_not_keep_its_owner_out(void **state)
{
	struct scene *s = *state;
	struct scene turned = *s;

	attack_needs_root();
	attack_greet(s->w, &s->a, STRANGER, hd_node_id(s->b.node));
	attack_poll(s->all, 2, 5);
	turned.a = s->b;
	turned.b = s->a;
	assert_int_equal(hd_ep_name(s->a.ep, AF_INET, &turned.b_name), 0);
	b_gets_it(&turned);
	s->b.to = turned.a.to;
}

/* A stranger whom A calls passes B's advert on, as if it were his: what A has to say is not for B. */
static void an_advert_that_is_anothers(void **state)
{
	struct scene *s = *state;
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO, .op = 1, .imm = 0 };
	struct sockaddr_storage own;
	struct hd_hello b, mine;
	struct wire *through = calloc(1, sizeof(*through));
	struct hd_dest *dest;
	char in[32];
	int fd;

	/* B has told its advert to the stranger, and A is greeting B at this moment */
	wire_greet(through, &s->b);
	b = through->theirs;
	fd = attack_listen(0, &own);
	side_post(&s->b, in, sizeof(in), 0, UINT64_MAX, NULL, in);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &dest), 0);
	assert_int_equal(hd_send(s->a.ep, dest, "for the stranger", 17, 1, 0, NULL,
				 HD_SEND_TAGGED | HD_SEND_INJECT),
			 0);
	attack_accept(s->w, fd, 0, s->a.node);
	wire_hear_kind(s->w, HD_PKT_HELLO);
	memcpy(&mine, s->w->payload, sizeof(mine));
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	assert_int_equal(hd_dest_connect(s->a.to), 0);
	wire_hello(s->w, &mine);
	memcpy(mine.advert, b.advert, sizeof(mine.advert));
	mine.advert_len = b.advert_len;
	wire_say(s->w, &hello, &mine, sizeof(mine));
	attack_poll(s->all, 2, 50);
	assert_null(hd_cq_peek(s->b.cq));
	wire_hear_kind(s->w, HD_PKT_USE); /* over the stranger's own link */
	wire_hear_kind(s->w, HD_PKT_EAGER);
	assert_string_equal((const char *)s->w->payload, "for the stranger");
	wire_hang_up(through);
	wire_hang_up(s->w);
	attack_poll(s->all, 2, 5);
	hd_dest_put(dest);
	close(fd);
	free(through);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_that_another_user_has_not, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_that_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(ones_own_name_is_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_that_is_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_does_not_keep_its_owner_out, setup, teardown),
		cmocka_unit_test_setup_teardown(an_advert_that_is_anothers, setup, teardown),
	};

	return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
