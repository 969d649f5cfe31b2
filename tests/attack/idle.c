/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A stranger calls as often as he can and says nothing: descriptors are left, others get in,
 * and the log does not grow.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILES 400
#define CALLS 150 /* a quarter are taken */
#define USERS 80

struct scene {
	struct side a;
	struct rlimit files;
	int fd[CALLS];
};

static int setup(void **state)
{
	static struct scene s;
	struct rlimit few;

	getrlimit(RLIMIT_NOFILE, &s.files);
	few = s.files;
	few.rlim_cur = FILES;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	side_open(&s.a);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < CALLS; i++)
		close(s->fd[i]);
	side_close(&s->a);
	setrlimit(RLIMIT_NOFILE, &s->files);
	return 0;
}

static void call_idly(struct scene *s)
{
	struct sockaddr_storage name;

	assert_int_equal(hd_ep_name(s->a.ep, AF_INET, &name), 0);
	for (int i = 0; i < CALLS; i++) {
		s->fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(s->fd[i] >= 0);
		assert_int_equal(connect(s->fd[i], (void *)&name, sizeof(struct sockaddr_in)), 0);
		hd_node_poll(s->a.node);
	}
	for (struct settling t = settling(5); settling_on(&t);)
		hd_node_poll(s->a.node);
}

static void others_get_in(void **state)
{
	struct scene *s = *state;

	call_idly(s);
	assert_in_range(hd_links(s->a.node)->link_count, 1, FILES / 4);
	serves(&s->a);
}

/*
 * One who called before, and says something at last, is not the one that is
 * closed while another has more.
 */
static void another_user_is_not_shut_out(void **state)
{
	struct scene *s = *state;
	struct wire *w = calloc(1, sizeof(*w));
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO };
	struct hd_hello h;

	attack_needs_root();
	attack_dial(w, &s->a, STRANGER);
	for (struct settling t = settling(5); settling_on(&t);)
		hd_node_poll(s->a.node);
	call_idly(s);
	wire_hello(w, &h);
	wire_say(w, &hello, &h, sizeof(h));
	wire_hear_kind(w, HD_PKT_HELLO);
	wire_hang_up(w);
	free(w);
}

/* Each of many who call once is there still when one more calls as often as he can. */
static void many_users_are_not_shut_out(void **state)
{
	struct scene *s = *state;
	struct wire *w = calloc(USERS, sizeof(*w));
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO };
	struct hd_hello h;

	attack_needs_root();
	for (unsigned i = 0; i < USERS; i++) {
		attack_dial(&w[i], &s->a, STRANGER + i);
		hd_node_poll(s->a.node);
	}
	call_idly(s);
	for (unsigned i = 0; i < USERS; i++) {
		wire_hello(&w[i], &h);
		wire_say(&w[i], &hello, &h, sizeof(h));
		wire_hear_kind(&w[i], HD_PKT_HELLO);
		wire_hang_up(&w[i]);
	}
	free(w);
}

static void the_log_counts(void **state)
{
	struct scene *s = *state;
	static const char web[] =
		"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody who has anything to say\r\n\r\n";
	struct wire *w = calloc(1, sizeof(*w));
	unsigned lines;

	for (int i = 0; i < CALLS; i++)
		s->fd[i] = -1;
	listen_to_the_log(true);
	for (int i = 0; i < CALLS; i++) {
		wire_dial(w, &s->a);
		wire_raw(w, web, sizeof(web) - 1);
		wire_gone(w);
	}
	lines = log_lines;
	listen_to_the_log(false);
	assert_in_range(lines, 1, CALLS / 2);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(others_get_in, setup, teardown),
		cmocka_unit_test_setup_teardown(another_user_is_not_shut_out, setup, teardown),
		cmocka_unit_test_setup_teardown(many_users_are_not_shut_out, setup, teardown),
		cmocka_unit_test_setup_teardown(the_log_counts, setup, teardown),
	};

	return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
