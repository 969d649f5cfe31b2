/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Another user crowds the join socket of a node: he becomes no pending join, and is not let in
 * without end in one turn.
 */
#include "attack/attack.h"
#include "transport/shm/shm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CROWD 100
#define AT_ONCE 32 /* of a turn */

static struct hd_shm_port *port_of(struct hd_node *node)
{
	for (int i = 0; i < hd_core(node)->port_count; i++)
		if (hd_core(node)->ports[i]->transport == &hd_shm_transport)
			return (struct hd_shm_port *)hd_core(node)->ports[i];
	return NULL;
}

static int join_as(const struct hd_shm_port *port, unsigned uid)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, n = 1 + sprintf(sa.sun_path + 1, "heddle.");

	for (int i = 0; i < 16; i++)
		n += sprintf(sa.sun_path + n, "%02x", port->advert.join_name[i]);
	assert_true(attack_as(uid));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
			 0);
	assert_true(attack_as(0));
	return fd;
}

static int sent_away(const int *sock)
{
	int n = 0;
	char c;

	for (int i = 0; i < CROWD; i++)
		n += recv(sock[i], &c, 1, MSG_PEEK) >= 0 || errno != EAGAIN;
	return n;
}

static void a_crowd_of_another_user(void **state)
{
	struct attack_scene *s = *state;
	struct hd_shm_port *port = port_of(s->a.node);
	uint64_t end = hd_now_ns() + PATIENCE;
	int sock[CROWD], ours;

	attack_needs_root();
	assert_non_null(port);
	hd_node_lock(s->a.node);
	assert_int_equal(hd_shm_join_open(port), 0);
	hd_node_unlock(s->a.node);
	for (int i = 0; i < CROWD; i++)
		sock[i] = join_as(port, STRANGER);
	ours = join_as(port, 0);
	for (int before = 0, now; !port->pending_join_count; before = now) {
		hd_node_poll(s->a.node);
		now = sent_away(sock);
		assert_in_range(now - before, 0, AT_ONCE);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(sent_away(sock), CROWD);
	assert_int_equal(port->pending_join_count, 1);
	for (int i = 0; i < CROWD; i++)
		close(sock[i]);
	close(ours);
	serves(&s->a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_crowd_of_another_user, attack_setup, attack_teardown),
	};

	return cmocka_run_group_tests_name("joins", tests, NULL, NULL);
}
