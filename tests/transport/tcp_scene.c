/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/tcp_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

struct sockaddr_storage scene_address(const char *text, in_port_t port)
{
	struct sockaddr_storage addr = { .ss_family = strchr(text, ':') ? AF_INET6 : AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;
	void *at = addr.ss_family == AF_INET ? (void *)&in->sin_addr : (void *)&in6->sin6_addr;

	assert_int_equal(inet_pton(addr.ss_family, text, at), 1);
	in->sin_port = port; /* at the same place in both families */
	return addr;
}

in_port_t scene_port(const struct sockaddr_storage *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_port;
}

int scene_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

void scene_open(struct scene *s, const char *at)
{
	*s = (struct scene){ .node = rig_node_open(), .fd = -1 };
	s->port = rig_port_open(s->node, &hd_tcp_transport);
	assert_non_null(s->port);
	s->listener.addr = scene_address(at, 0);
	assert_int_equal(hd_tcp_transport.listen(s->port, &s->listener), 0);
}

void scene_close(struct scene *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->listener.priv)
		hd_tcp_transport.unlisten(s->port, &s->listener);
	assert_true(rig_node_close(s->node));
}

static void turn(struct scene *s, uint64_t deadline)
{
	rig_poll(s->node);
	assert_string_equal(s->node->complaint, "");
	if (hd_now_ns() > deadline)
		fail_msg("five seconds have passed");
}

static uint64_t five_seconds(void)
{
	return hd_now_ns() + 5 * HD_NS_PER_S;
}

void scene_turns(struct scene *s, bool (*cond)(struct scene *s))
{
	uint64_t deadline = five_seconds();

	while (!cond(s))
		turn(s, deadline);
}

static struct rig_end *newest(struct scene *s)
{
	struct rig_end *end, *last = NULL;

	TAILQ_FOREACH(end, &s->node->ends, entry)
		last = end;
	return last;
}

static bool has_newcomer(struct scene *s)
{
	return newest(s) != s->end;
}

void scene_dial(struct scene *s)
{
	const struct sockaddr_storage *to = &s->listener.addr;

	if (s->fd >= 0)
		close(s->fd);
	s->fd = scene_socket(to->ss_family);
	s->end = newest(s);
	assert_int_equal(connect(s->fd, (const struct sockaddr *)to,
				 hd_sockaddr_size((const struct sockaddr *)to)),
			 0);
	scene_turns(s, has_newcomer);
	s->end = newest(s);
	assert_true(s->end->accepted);
}

void scene_greet(struct scene *s, uint8_t hello[HELLO_FRAME])
{
	scene_dial(s);
	scene_hear(s, hello, HELLO_FRAME);
}

void scene_say(struct scene *s, const void *buf, size_t n)
{
	const char *at = buf;
	uint64_t deadline = five_seconds();

	while (n) {
		ssize_t r = send(s->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(s, deadline);
			continue;
		}
		at += r;
		n -= (size_t)r;
	}
}

void scene_hear(struct scene *s, void *buf, size_t n)
{
	char *at = buf;
	uint64_t deadline = five_seconds();

	while (n) {
		ssize_t r = recv(s->fd, at, n, MSG_DONTWAIT);

		if (r < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(s, deadline);
			continue;
		}
		assert_int_not_equal(r, 0);
		at += r;
		n -= (size_t)r;
	}
}

bool scene_gone(struct scene *s)
{
	return s->end->was_down && s->end->closed;
}
