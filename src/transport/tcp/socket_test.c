/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Calling and being called, running out of descriptors, and parting. */
#include "transport/tcp_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- calling ---- */

/* An address that answers nothing: a listener whose queue is full drops what else comes. */
static int deaf_listener(struct sockaddr_storage *addr, int *caller)
{
	socklen_t len = sizeof(*addr);
	int fd = scene_socket(AF_INET);

	*addr = scene_address("127.0.0.1", 0);
	assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	*caller = scene_socket(AF_INET);
	assert_int_equal(connect(*caller, (struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
	return fd;
}

static void a_call_without_an_answer_ends_in_time(void **state)
{
	struct sockaddr_storage addr;
	struct scene s;
	uint64_t start;
	int fd, caller;

	setenv("HEDDLE_CONNECT_TIMEOUT", "300", 1);
	hd_config_load();
	fd = deaf_listener(&addr, &caller);
	scene_open(&s, "127.0.0.1");
	start = hd_now_ns();
	assert_int_equal(rig_connect(s.port, &addr, sizeof(addr), &s.end), 0);
	scene_turns(&s, scene_gone);
	assert_int_equal(s.end->err, -ETIMEDOUT);
	assert_in_range(hd_now_ns() - start, 290 * HD_NS_PER_MS, 20 * HD_NS_PER_S);
	scene_close(&s);
	close(caller);
	close(fd);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
	hd_config_load();
}

static void bad_addresses_are_refused_at_once(void **state)
{
	const struct sockaddr_storage in = scene_address("127.0.0.1", htons(1)),
				      none = { .ss_family = AF_UNSPEC }, strange = { .ss_family = AF_UNIX };
	struct rig_end *end = NULL;
	struct scene s;

	scene_open(&s, "127.0.0.1");
	assert_int_equal(rig_connect(s.port, &in, sizeof(struct sockaddr_in) - 1, &end), -EINVAL);
	assert_int_equal(rig_connect(s.port, &in, 0, &end), -EAFNOSUPPORT);
	assert_int_equal(rig_connect(s.port, &none, sizeof(none), &end), -EAFNOSUPPORT);
	assert_int_equal(rig_connect(s.port, &strange, sizeof(strange), &end), -EAFNOSUPPORT);
	assert_null(end);
	scene_close(&s);
}

static void meeting_oneself_is_noticed(void **state)
{
	struct sockaddr_storage addr = scene_address("127.0.0.1", 0);
	socklen_t len = sizeof(addr);
	int pair[2], fd = scene_socket(AF_INET);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
	assert_true(hd_tcp_sock_to_self(fd));
	close(fd);
	fd = deaf_listener(&addr, pair);
	assert_false(hd_tcp_sock_to_self(pair[0]));
	close(pair[0]);
	close(fd);
}

/* ---- listening ---- */

static void listen_answers_what_is_wrong(void **state)
{
	struct hd_listener second = { 0 };
	struct scene s;

	scene_open(&s, "127.0.0.1");
	second.addr = s.listener.addr;
	assert_int_equal(hd_tcp_transport.listen(s.port, &second), -EADDRINUSE);
	second.addr = scene_address("192.0.2.1", 0); /* nobody's: RFC 5737 */
	assert_int_equal(hd_tcp_transport.listen(s.port, &second), -EADDRNOTAVAIL);
	second.addr.ss_family = AF_UNIX;
	assert_int_equal(hd_tcp_transport.listen(s.port, &second), -EAFNOSUPPORT);
	scene_close(&s);
}

static void a_port_can_be_used_again_at_once(void **state)
{
	struct sockaddr_storage addr;
	uint8_t hello[HELLO_FRAME];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	scene_greet(&s, hello);
	addr = s.listener.addr;
	rig_end_close(s.end, -ESHUTDOWN); /* it closes first, so that its port is the one that lingers */
	scene_turns(&s, scene_gone);
	hd_tcp_transport.unlisten(s.port, &s.listener);
	s.listener.addr = addr;
	assert_int_equal(hd_tcp_transport.listen(s.port, &s.listener), 0);
	assert_int_equal(scene_port(&s.listener.addr), scene_port(&addr));
	scene_greet(&s, hello);
	scene_close(&s);
}

static void one_wildcard_serves_both_families(void **state)
{
	static const char *const from[] = { "127.0.0.1", "::1" };
	struct scene s;

	scene_open(&s, "::");
	for (int i = 0; i < 2; i++) {
		const in_port_t port = scene_port(&s.listener.addr);

		s.listener.addr = scene_address(from[i], port);
		scene_dial(&s);
		assert_int_equal(s.end->link->where.ss_family, s.listener.addr.ss_family);
		assert_int_not_equal(scene_port(&s.end->link->where), 0);
		assert_true(s.end->link->is_local);
		assert_ptr_equal(s.end->listener, &s.listener);
	}
	scene_close(&s);
}

/* ---- descriptors ---- */

static int highest_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY);

	close(fd);
	return fd;
}

static struct rlimit limit_descriptors(rlim_t n)
{
	struct rlimit old, now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	now = old;
	now.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return old;
}

static bool turned_away(struct scene *s)
{
	char c;

	return recv(s->fd, &c, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EINTR);
}

/* Callers are sent away at once, nothing spins, and it goes on when there are descriptors again. */
static void without_descriptors_callers_are_turned_away(void **state)
{
	const struct sockaddr *to;
	struct epoll_event event;
	struct rlimit old;
	struct scene s;
	int spare;

	scene_open(&s, "127.0.0.1");
	to = (struct sockaddr *)&s.listener.addr;
	s.fd = scene_socket(AF_INET);
	spare = highest_descriptor();
	old = limit_descriptors((rlim_t)spare);
	assert_int_equal(connect(s.fd, to, sizeof(struct sockaddr_in)), 0);
	scene_turns(&s, turned_away);
	assert_true(TAILQ_EMPTY(&s.node->ends));
	assert_int_equal(epoll_wait(s.node->epoll_fd, &event, 1, 20), 0);
	assert_int_equal(rig_connect(s.port, to, sizeof(s.listener.addr), &s.end), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	scene_dial(&s);
	scene_close(&s);
}

static bool connected(struct scene *s)
{
	return s->end->up;
}

/* Even the reserve is gone: the listener looks away, and looks again later. */
static void without_a_reserve_the_listener_pauses(void **state)
{
	const struct sockaddr *to;
	struct epoll_event event;
	struct rlimit old;
	struct scene s;

	scene_open(&s, "127.0.0.1");
	to = (struct sockaddr *)&s.listener.addr;
	close(tcp_port(s.port)->reserve);
	tcp_port(s.port)->reserve = -1;
	s.fd = scene_socket(AF_INET);
	old = limit_descriptors((rlim_t)highest_descriptor());
	assert_int_equal(connect(s.fd, to, sizeof(struct sockaddr_in)), 0);
	for (int i = 0; i < 100; i++)
		rig_poll(s.node);
	assert_int_equal(epoll_wait(s.node->epoll_fd, &event, 1, 20), 0);
	assert_true(TAILQ_EMPTY(&s.node->ends));
	setrlimit(RLIMIT_NOFILE, &old);
	while (TAILQ_EMPTY(&s.node->ends))
		rig_poll(s.node);
	s.end = TAILQ_FIRST(&s.node->ends);
	scene_turns(&s, connected);
	scene_close(&s);
}

/* ---- parting ---- */

/*
 * What was sent is not lost when the link is closed at once, not even when the other end's words were never
 * read.
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

/* A put that is not written belongs to the engine again: neither it nor a header without it may follow. */
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

/* A node that closes waits for one that has no room at the moment, and goes on talking. */
static void last_words_wait_for_room(void **state)
{
	static uint8_t payload[10000];
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	uint8_t hello[HELLO_FRAME];
	struct late_reader reader;
	uint64_t said = 0;
	pthread_t thread;
	struct scene s;

	scene_open(&s, "127.0.0.1");
	scene_greet(&s, hello);
	while (s.end->link->ops->send(s.end->link, &pkt, payload, sizeof(payload)) == 0) {
		said += HD_TCP_HEAD + sizeof(payload) + HD_TCP_CHECK;
		rig_poll(s.node);
	}
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
	static uint8_t payload[10000];
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	uint8_t hello[HELLO_FRAME];
	struct scene s;
	uint64_t start;
	int fd;

	for (int gone = 0; gone < 2; gone++) {
		scene_open(&s, "127.0.0.1");
		scene_greet(&s, hello);
		while (s.end->link->ops->send(s.end->link, &pkt, payload, sizeof(payload)) == 0)
			rig_poll(s.node);
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
	static uint8_t payload[10000], buf[10000];
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	uint64_t said = 0, heard = 0;
	uint8_t hello[HELLO_FRAME];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	scene_greet(&s, hello);
	while (s.end->link->ops->send(s.end->link, &pkt, payload, sizeof(payload)) == 0) {
		said += HD_TCP_HEAD + sizeof(payload) + HD_TCP_CHECK;
		rig_poll(s.node);
	}
	do {
		ssize_t n;

		assert_int_equal(send(s.fd, payload, sizeof(payload), MSG_NOSIGNAL), sizeof(payload));
		assert_true(hd_tcp_last(s.port, false));
		assert_int_equal(send(s.fd, payload, sizeof(payload), MSG_NOSIGNAL), sizeof(payload));
		rig_poll(s.node);
		assert_false(s.end->link->down);
		assert_int_equal(s.end->link->ops->send(s.end->link, &pkt, payload, sizeof(payload)),
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

/* ---- hot and cold ---- */

static bool cold(struct scene *s)
{
	return !tcp_link(s->end->link)->hot;
}

static bool all_came_back(struct scene *s)
{
	uint8_t buf[4096];
	ssize_t r = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (r > 0)
		scene_say(s, buf, (size_t)r);
	return rig_end_idle(s->end) && s->end->rx == s->end->tx;
}

/*
 * A busy socket is read without epoll, a silent one by epoll alone, and it may be one and the other by turns.
 */
static void busy_links_leave_the_epoll_set_and_come_back(void **state)
{
	struct hd_tcp_link *l;
	struct scene s;

	scene_open(&s, "127.0.0.1");
	scene_dial(&s);
	l = tcp_link(s.end->link);
	for (int i = 0; i < 3; i++) {
		s.end->plan = (struct rig_plan){ .packets = 1, .most = 8, .how = RIG_SEND };
		scene_turns(&s, all_came_back);
		assert_true(l->hot && l->watched);
		s.end->plan = (struct rig_plan){ .packets = 1000, .most = 8, .burst = 1, .how = RIG_SEND };
		scene_turns(&s, all_came_back);
		assert_true(l->hot && !l->watched);
		scene_turns(&s, cold);
		assert_true(l->watched && !s.port->active);
	}
	scene_close(&s);
}

/* ---- gathering ---- */

#define FRAME (HD_TCP_HEAD + 8)

static void send_frames_of(struct scene *s, uint8_t kind, int count)
{
	const struct hd_pkt pkt = { .kind = kind };
	const uint64_t payload = 1;

	for (int i = 0; i < count; i++)
		assert_int_equal(s->end->link->ops->send(s->end->link, &pkt, &payload, sizeof(payload)), 0);
}

static void send_frames(struct scene *s, int count)
{
	send_frames_of(s, HD_PKT_EAGER, count);
}

/* Frames that are there for the other end, which reads none; the loopback has them as soon as they are written. */
static int frames_there(struct scene *s)
{
	int bytes;

	assert_int_equal(ioctl(s->fd, FIONREAD, &bytes), 0);
	assert_int_equal(bytes % FRAME, 0);
	return bytes / FRAME;
}

/* The first frame after a poll leaves at once, but not the first of a stream, which is one call each poll. */
static void a_stream_leaves_at_the_poll(void **state)
{
	uint8_t hello[HELLO_FRAME];
	struct scene s;

	scene_open(&s, "127.0.0.1");
	scene_greet(&s, hello);
	rig_poll(s.node);
	send_frames(&s, 20);
	assert_int_equal(frames_there(&s), 1);
	rig_poll(s.node);
	assert_int_equal(frames_there(&s), 20);
	for (int i = 2; i < 5; i++) {
		send_frames(&s, 20);
		assert_int_equal(frames_there(&s), 20 * (i - 1));
		rig_poll(s.node);
		assert_int_equal(frames_there(&s), 20 * i);
	}
	send_frames(&s, 10);
	send_frames_of(&s, HD_PKT_LEAVE, 1); /* the program may not poll any more */
	assert_int_equal(frames_there(&s), 91);
	send_frames(&s, 9);
	rig_poll(s.node);
	for (int i = 0; i < 100; i++) /* a pause ends it */
		rig_poll(s.node);
	send_frames(&s, 20);
	assert_int_equal(frames_there(&s), 101);
	rig_poll(s.node);
	send_frames(&s, 1); /* and so does a frame that is alone */
	assert_int_equal(frames_there(&s), 120);
	rig_poll(s.node);
	send_frames(&s, 1);
	assert_int_equal(frames_there(&s), 122);
	scene_close(&s);
}

/* ---- options ---- */

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void sockets_are_tuned(void **state)
{
	struct scene s;
	int fd;

	setenv("HEDDLE_KEEPALIVE", "2500", 1);
	setenv("HEDDLE_PEER_TIMEOUT", "7000", 1);
	hd_config_load();
	scene_open(&s, "127.0.0.1");
	scene_dial(&s);
	fd = tcp_link(s.end->link)->watch.fd;
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 3);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	scene_close(&s);
	unsetenv("HEDDLE_KEEPALIVE");
	unsetenv("HEDDLE_PEER_TIMEOUT");
	hd_config_load();
}

/* ---- hosts that are gone ---- */

/* The loopback interface of a network of our own. */
static bool lo_set(bool up)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0 };
	int fd = scene_socket(AF_INET), rc = ioctl(fd, SIOCSIFFLAGS, &r);

	close(fd);
	return rc == 0;
}

static uint32_t silence_of(struct scene *s, bool more)
{
	struct hd_link *link = s->end->link;

	return link->ops->silence(link, more);
}

/* What its host has not acknowledged counts, not what its program does not read; and nobody who is waited for no longer is asked. */
static void a_host_that_is_gone_is_silent(void **state)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	struct scene s;
	uint64_t since, end;
	uint32_t ms = 0;
	int fd;

	if (unshare(CLONE_NEWNET) < 0 || !lo_set(true))
		skip(); /* not allowed here */
	scene_open(&s, "127.0.0.1");
	scene_dial(&s);
	fd = tcp_link(s.end->link)->watch.fd;
	for (int i = 0; i < 5; i++) {
		s.end->link->ops->send(s.end->link, &pkt, NULL, 0);
		assert_int_equal(silence_of(&s, true), 0);
		usleep(20000);
	}
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
	assert_true(lo_set(false));
	since = hd_now_ns();
	s.end->link->ops->send(s.end->link, &pkt, NULL, 0);
	for (end = since + 10 * HD_NS_PER_S; ms < 500 && hd_now_ns() < end; usleep(50000))
		ms = silence_of(&s, true);
	assert_in_range(ms, 500, (hd_now_ns() - since) / HD_NS_PER_MS + 200);
	assert_true(lo_set(true));
	assert_int_equal(silence_of(&s, false), 0);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), hd_config_ms(HD_SET_KEEPALIVE) / 1000);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_without_an_answer_ends_in_time),
		cmocka_unit_test(bad_addresses_are_refused_at_once),
		cmocka_unit_test(meeting_oneself_is_noticed),
		cmocka_unit_test(listen_answers_what_is_wrong),
		cmocka_unit_test(a_port_can_be_used_again_at_once),
		cmocka_unit_test(one_wildcard_serves_both_families),
		cmocka_unit_test(without_descriptors_callers_are_turned_away),
		cmocka_unit_test(without_a_reserve_the_listener_pauses),
		cmocka_unit_test(last_words_are_heard),
		cmocka_unit_test(unwritten_puts_are_not_sent),
		cmocka_unit_test(a_put_that_is_taken_back_is_still_sent),
		cmocka_unit_test(what_follows_a_put_that_is_taken_back_is_heard),
		cmocka_unit_test(last_words_wait_for_room),
		cmocka_unit_test(last_words_do_not_wait_for_ever),
		cmocka_unit_test(last_words_end_the_listening),
		cmocka_unit_test(busy_links_leave_the_epoll_set_and_come_back),
		cmocka_unit_test(a_stream_leaves_at_the_poll),
		cmocka_unit_test(sockets_are_tuned),
		cmocka_unit_test(a_host_that_is_gone_is_silent), /* the last: its network is another */
	};

	setenv("HEDDLE_LOG", "error", 0);
	hd_config_load();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
