/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

void wire_dial(struct wire *w, struct side *s)
{
	struct sockaddr_storage name;
	const int one = 1;

	*w = (struct wire){ .node = s->node };
	assert_int_equal(getrandom(&w->id, sizeof(w->id), 0), sizeof(w->id));
	assert_int_equal(hd_ep_name(s->ep, AF_INET, &name), 0);
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(w->fd >= 0);
	assert_int_equal(setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(connect(w->fd, (void *)&name, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(fcntl(w->fd, F_SETFL, O_NONBLOCK), 0);
}

void wire_hang_up(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

void wire_hello(const struct wire *w, struct hd_hello *h)
{
	*h = (struct hd_hello){ .magic = HD_WIRE_MAGIC,
				.version = HD_WIRE_VERSION,
				.id = w->id,
				.incarnation = 1,
				.window = 4096 };
}

void wire_raw(struct wire *w, const void *bytes, size_t len)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	const char *at = bytes;

	while (len) {
		ssize_t n = send(w->fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return; /* cut off already */
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
		hd_node_poll(w->node);
		assert_true(hd_now_ns() < end);
	}
}

void wire_head(struct wire *w, const struct hd_pkt *pkt, uint32_t len)
{
	struct hd_tcp_frame f = { .len = len, .seq = ++w->seq, .ack = w->ack, .grant = w->grant, .pkt = *pkt };

	wire_raw(w, &f, sizeof(f));
}

void wire_say(struct wire *w, const struct hd_pkt *pkt, const void *payload, uint32_t len)
{
	wire_head(w, pkt, len);
	wire_raw(w, payload, len);
	wire_check(w, len);
}

void wire_check(struct wire *w, uint32_t len)
{
	static const char good[HD_TCP_CHECK];

	wire_raw(w, good, hd_tcp_check_of(len));
}

/* Exactly len bytes; false: the node has hung up. */
static bool hear_bytes(struct wire *w, void *to, size_t len)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	char *at = to;

	while (len) {
		ssize_t n = recv(w->fd, at, len, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
		hd_node_poll(w->node);
		assert_true(hd_now_ns() < end);
	}
	return true;
}

bool wire_hear(struct wire *w)
{
	struct hd_tcp_frame f;
	uint32_t check = 0;

	do {
		if (!hear_bytes(w, &f, sizeof(f)))
			return false;
		w->ack = f.seq;
		w->pkt = f.pkt;
		w->len = f.len;
		assert_true(f.len <= sizeof(w->payload));
		if (!hear_bytes(w, w->payload, f.len) || !hear_bytes(w, &check, hd_tcp_check_of(f.len)))
			return false;
		assert_int_equal(check, 0);
	} while (f.pkt.kind == HD_TCP_PKT_GRANT);
	return true;
}

void wire_hear_kind(struct wire *w, uint8_t kind)
{
	do
		assert_true(wire_hear(w));
	while (w->pkt.kind != kind);
}

void wire_greet(struct wire *w, struct side *s)
{
	struct hd_pkt hello = { .kind = HD_PKT_HELLO }, use = { .kind = HD_PKT_USE };
	struct hd_hello h;

	wire_dial(w, s);
	wire_hello(w, &h);
	wire_say(w, &hello, &h, sizeof(h));
	wire_hear_kind(w, HD_PKT_HELLO);
	w->answer = w->pkt;
	assert_int_equal(w->len, sizeof(w->theirs));
	memcpy(&w->theirs, w->payload, sizeof(w->theirs));
	wire_say(w, &use, NULL, 0);
	wire_hear_kind(w, HD_PKT_ANNOUNCE);
}

struct hd_pkt wire_eager(const struct wire *w, uint64_t tag, uint8_t flags)
{
	return (struct hd_pkt){ .kind = HD_PKT_EAGER,
				.flags = flags | HD_PKT_F_TAGGED,
				.gen = (uint16_t)w->answer.op,
				.dst = (uint32_t)w->answer.imm,
				.op = 77,
				.tag = tag };
}

/*
 * Bytes that the kernel has not given to the node's socket yet: a busy host may
 * leave them lying for a while.
 */
static bool is_on_the_way(const struct wire *w)
{
	int left = 0;

	return ioctl(w->fd, SIOCOUTQ, &left) == 0 && left > 0;
}

void wire_settle(struct wire *w)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (is_on_the_way(w)) {
		hd_node_poll(w->node);
		assert_true(hd_now_ns() < end);
	}
	for (struct settling s = settling(0); settling_on(&s);)
		hd_node_poll(w->node);
}

void wire_gone(struct wire *w)
{
	while (wire_hear(w))
		;
	wire_hang_up(w);
}
