/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A host between A and B translates addresses: who calls one of its own is connected with one of
 * this host, as by NAT (here a program there passes on what comes). A and B are two nodes of one
 * host all the same, and what B tells of its shared memory and its names comes from elsewhere.
 */
#include "attack/attack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct scene {
	struct side a, b;
	struct side *all[2], *leads_to;
	struct wire *far; /* its connection to whom it leads to; near: to who has called */
	int door, near;
	struct sockaddr_storage name; /* of the door */
	struct hd_dest *through;
};

static int setup(void **state)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	attack_hosts_open();
	s.door = s.near = -1;
	s.far = calloc(1, sizeof(*s.far));
	s.far->fd = -1;
	side_open(&s.a);
	side_open(&s.b);
	s.all[0] = &s.a;
	s.all[1] = &s.b;
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	wire_hang_up(s->far);
	if (s->near >= 0)
		close(s->near);
	if (s->door >= 0)
		close(s->door);
	if (s->through)
		hd_dest_put(s->through);
	side_close(&s->a);
	side_close(&s->b);
	free(s->far);
	attack_hosts_close();
	return 0;
}

/* The other host has a name that leads to this one. */
static void translate(struct scene *s, struct side *to)
{
	attack_from(0);
	s->door = attack_listen(0, &s->name);
	s->leads_to = to;
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->name, &s->through), 0);
}

static void translate_part(int from, int to)
{
	char buf[4096];
	ssize_t n = recv(from, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		assert_int_equal(send(to, buf, (size_t)n, MSG_NOSIGNAL), n);
}

static void turn(struct scene *s)
{
	attack_poll(s->all, 2, 1);
	if (s->near < 0) {
		s->near = accept4(s->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (s->near >= 0)
			attack_dial(s->far, s->leads_to, 0);
	}
	if (s->near >= 0) {
		translate_part(s->near, s->far->fd);
		translate_part(s->far->fd, s->near);
	}
}

/* A message of A's arrives there. */
static void says(struct scene *s, struct hd_dest *to, struct side *at)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	char out[8] = "a word", in[8] = "";
	int rc;

	side_post(at, in, sizeof(in), 1, 0, NULL, in);
	do {
		rc = hd_send(s->a.ep, to, out, sizeof(out), 1, 0, NULL, HD_SEND_TAGGED | HD_SEND_INJECT);
		turn(s);
		assert_true(hd_now_ns() < end);
	} while (rc == -EAGAIN);
	assert_int_equal(rc, 0);
	while (!hd_cq_peek(at->cq)) {
		turn(s);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(hd_cq_peek(at->cq)->err, 0);
	hd_cq_pop(at->cq);
	assert_string_equal(in, "a word");
}

static const char *transport_of(const struct hd_dest *dest)
{
	return dest->peer->link->port->transport->name;
}

static void an_advert_is_not_followed(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage own;

	attack_needs_hosts();
	translate(s, &s->b);
	assert_int_equal(hd_ep_name(s->b.ep, AF_INET, &own), 0);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &s->a.to), 0);
	says(s, s->through, &s->b);
	assert_string_equal(transport_of(s->through), "tcp");
	/* the name that B has on this host is not told from elsewhere, and leads to B's memory */
	assert_true(s->a.to->state != HD_DEST_BOUND || s->a.to->peer != s->through->peer);
	says(s, s->a.to, &s->b);
	assert_string_equal(transport_of(s->a.to), "shm");
	assert_string_equal(transport_of(s->through), "tcp");
	says(s, s->through, &s->b);
	assert_int_equal(hd_links_inspect(s->a.node).links, 2);
}

/* The same when they know each other already. */
static void an_advert_of_a_friend_is_not_followed(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage own;

	attack_needs_hosts();
	translate(s, &s->b);
	assert_int_equal(hd_ep_name(s->b.ep, AF_INET, &own), 0);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &s->a.to), 0);
	says(s, s->a.to, &s->b);
	says(s, s->through, &s->b);
	assert_string_equal(transport_of(s->a.to), "shm");
	assert_string_equal(transport_of(s->through), "tcp");
}

/* A's own call comes back to it. */
static void a_call_to_oneself(void **state)
{
	struct scene *s = *state;

	attack_needs_hosts();
	translate(s, &s->a);
	says(s, s->through, &s->a);
	assert_ptr_equal(s->through->peer, hd_links(s->a.node)->self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_advert_is_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_advert_of_a_friend_is_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_to_oneself, setup, teardown),
	};

	return cmocka_run_group_tests_name("translated", tests, NULL, NULL);
}
