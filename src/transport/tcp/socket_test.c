/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Calling and being called, running out of descriptors, and what the kernel is told of a socket. */
#include "transport/tcp_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/config.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdlib.h>
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
	/* it closes first, so that its port is the one that lingers */
	rig_end_close(s.end, -ESHUTDOWN);
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
 * A busy socket is read without epoll, a silent one by epoll alone, and it may be
 * one and the other by turns.
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

/*
 * Frames that are there for the other end, which reads none; the loopback has them as
 * soon as they are written.
 */
static int frames_there(struct scene *s)
{
	int bytes;

	assert_int_equal(ioctl(s->fd, FIONREAD, &bytes), 0);
	assert_int_equal(bytes % FRAME, 0);
	return bytes / FRAME;
}

/*
 * The first frame after a poll leaves at once, but not the first of a stream,
 * which is one call each poll.
 */
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

/*
 * What its host has not acknowledged counts, not what its program does not read; and nobody who is
 * waited for no longer is asked.
 */
static void a_host_that_is_gone_is_silent(void **state)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	struct scene s;
	uint64_t since, end;
	uint32_t ms = 0;
	int fd;

	skip_unless(unshare(CLONE_NEWNET) == 0 && lo_set(true),
		    "run as root, where network namespaces can be made");
	scene_open(&s, "127.0.0.1");
	scene_dial(&s);
	fd = tcp_link(s.end->link)->watch.fd;
	for (int i = 0; i < 5; i++) {
		s.end->link->ops->send(s.end->link, &pkt, NULL, 0);
		assert_int_equal(silence_of(&s, true), 0);
		usleep(20000); /* what is judged is time */
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
		cmocka_unit_test(busy_links_leave_the_epoll_set_and_come_back),
		cmocka_unit_test(a_stream_leaves_at_the_poll),
		cmocka_unit_test(sockets_are_tuned),
		/* the last: its network is another */
		cmocka_unit_test(a_host_that_is_gone_is_silent),
	};

	setenv("HEDDLE_LOG", "error", 0);
	hd_config_load();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
