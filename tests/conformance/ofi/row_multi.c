/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M12, M25: FI_MULTI_RECV, fi_msg(3) and fi_cq(3). */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 16384
#define MIN 2000 /* as long as the longest message: then none is ever cut */
#define MSGS 400

struct sink { /* one multi-receive buffer in use */
	char *buf;
	size_t used;   /* end of what has been placed */
	size_t placed; /* messages */
	bool released;
};

static size_t mlen(size_t i)
{
	static const size_t lens[] = { 0, 1, 100, 7, 512, 333, 64, 2000 };

	return lens[i % CT_COUNT(lens)];
}

static void post(struct ct_ep *e, struct sink *s, uint64_t flags)
{
	struct iovec iov = { s->buf, ROOM };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = s };

	s->used = s->placed = 0;
	s->released = false;
	memset(s->buf, 0x55, ROOM);
	CT_POST(e, fi_recvmsg(e->ep, &m, FI_MULTI_RECV | flags));
}

static void set_min(struct ct_ep *e)
{
	size_t min = MIN, len = sizeof(min);

	CT_OK(e->ct, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	min = 0;
	CT_OK(e->ct, fi_getopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len));
	CT_EQ(e->ct, min, MIN);
	CT_EQ(e->ct, len, sizeof(min));
}

/* arg: the option is set before the endpoint is enabled; the page allows either. */
static void begin(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, const struct ct_want *want)
{
	ct_open(ct, dom, want);
	ct_ep_open(dom, e);
	if (ct->cs->arg)
		set_min(e);
	ct_ep_enable(e);
	if (!ct->cs->arg)
		set_min(e);
	ct_join(e);
}

/* One completion of a sink: a message, a release, or both at once. */
static bool account(struct ct *ct, const struct ct_comp *c, size_t msg)
{
	struct sink *s = c->ctx;
	bool message = c->flags & FI_RECV;
	size_t at;

	CT_EQ(ct, c->err, 0);
	CT_TRUE(ct, message || c->flags & FI_MULTI_RECV);
	CT_TRUE(ct, !s->released);
	if (message) {
		/*
		 * Packed one behind the other, at most with a gap for alignment;
		 * without data there is no place.
		 */
		at = c->len ? (size_t)((char *)c->buf - s->buf) : s->used;
		if (at < s->used || at > s->used + 64 || at + c->len > ROOM)
			ct_fail(ct, "message %zu placed at %zu, after %zu", msg, at, s->used);
		if (ROOM - at < MIN)
			ct_fail(ct, "message %zu placed with %zu bytes left, minimum %d", msg, ROOM - at,
				MIN);
		CT_EQ(ct, c->len, mlen(msg));
		ct_verify(ct, c->buf, c->len, msg, "multi-receive");
		s->used = at + c->len;
		s->placed++;
	}
	if (c->flags & FI_MULTI_RECV) {
		s->released = true;
		/*
		 * Released only when less than the minimum was left (a gap
		 * for alignment may count).
		 */
		if (ROOM - s->used >= MIN + 64)
			ct_fail(ct, "released with %zu bytes left, minimum %d", ROOM - s->used, MIN);
	}
	return message;
}

static void receiver(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct sink s[2];
	struct ct_comp c;
	size_t got = 0, releases = 0;
	int i;

	for (i = 0; i < 2; i++) {
		s[i].buf = ct_alloc(ct, ROOM);
		post(e, &s[i], 0);
	}
	ct_sync(ct, e);
	while (got < MSGS) {
		ct_any(e, &c);
		got += account(ct, &c, got);
		if (c.flags & FI_MULTI_RECV) {
			releases++;
			post(e, c.ctx, 0);
		}
	}
	CT_TRUE(ct, releases > 5);
	ct_sync(ct, e);
	free(s[0].buf);
	free(s[1].buf);
}

static void multi(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV, .msg_order = FI_ORDER_SAS, .disabled = true };
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 2000);
	size_t i;

	begin(ct, &dom, &e, &want);
	if (ct->rank) {
		receiver(&e);
	} else {
		ct_sync(ct, &e);
		for (i = 0; i < MSGS; i++) {
			ct_fill(buf, mlen(i), i);
			ct_send(&e, 1, buf, mlen(i), CTX(1));
			ct_done(&e, CTX(1));
		}
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

/* Messages that came before the buffer was posted are packed into it too. */
static void multi_late(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV, .msg_order = FI_ORDER_SAS, .disabled = true };
	struct sink s = { .buf = ct_alloc(ct, ROOM) };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 2000);
	size_t i;

	begin(ct, &dom, &e, &want);
	for (i = 0; !ct->rank && i < 7; i++) {
		ct_fill(buf, mlen(i), i);
		CT_POST(&e, fi_send(e.ep, buf, mlen(i), NULL, e.addr[1], CTX(1)));
		ct_done(&e, CTX(1));
	}
	if (ct->rank) {
		ct_idle(&e, 50);
		post(&e, &s, 0);
		for (i = 0; i < 7; i++) {
			ct_any(&e, &c);
			CT_TRUE(ct, account(ct, &c, i));
		}
	}
	free(buf);
	free(s.buf);
	ct_finish(&e);
}

/* The release is reported even where completions are suppressed. */
static void multi_selective(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV,
				.msg_order = FI_ORDER_SAS,
				.disabled = true,
				.rx_bind = FI_SELECTIVE_COMPLETION };
	struct sink s = { .buf = ct_alloc(ct, ROOM) };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[1000] = { 0 };
	int i;

	begin(ct, &dom, &e, &want);
	if (ct->rank)
		post(&e, &s, 0);
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_any(&e, &c);
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, c.flags & FI_MULTI_RECV);
		CT_TRUE(ct, c.ctx == &s);
		ct_quiet(&e, 50, "suppressed completions");
	} else {
		for (i = 0; i < ROOM / (int)sizeof(buf); i++) {
			ct_send(&e, 1, buf, sizeof(buf), CTX(1));
			ct_done(&e, CTX(1));
		}
	}
	ct_sync(ct, &e);
	free(s.buf);
	ct_finish(&e);
}

/* A message too long for what is left must not be cut while another buffer is posted behind. */
static void multi_next(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV, .msg_order = FI_ORDER_SAS, .disabled = true };
	struct sink s[2] = { { .buf = ct_alloc(ct, ROOM) }, { .buf = ct_alloc(ct, ROOM) } };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t n = 0, size = MIN, left;
	char buf[MIN];

	begin(ct, &dom, &e, &want);
	if (ct->rank) {
		post(&e, &s[0], 0);
		post(&e, &s[1], 0);
	}
	ct_sync(ct, &e);
	/* Messages as long as the minimum: each of them fits whole, in both buffers, to the end. */
	for (left = 2 * (ROOM / size - 1); left; left--, n++) {
		if (ct->rank) {
			do {
				ct_any(&e, &c);
				CT_EQ(ct, c.err, 0);
			} while (!(c.flags & FI_RECV));
			CT_EQ(ct, c.len, size);
			ct_verify(ct, c.buf, size, n, "multi-receive to the end");
		} else {
			ct_fill(buf, size, n);
			ct_send(&e, 1, buf, size, CTX(1));
			ct_done(&e, CTX(1));
		}
	}
	ct_sync(ct, &e);
	free(s[0].buf);
	free(s[1].buf);
	ct_finish(&e);
}

static void say(struct ct_ep *e, size_t from, size_t to)
{
	char buf[2000];

	for (size_t i = from; !e->ct->rank && i < to; i++) {
		ct_fill(buf, mlen(i), i);
		ct_send(e, 1, buf, mlen(i), CTX(1));
		ct_done(e, CTX(1));
	}
}

/*
 * In op_flags, fi_endpoint(3): fi_recv follows them, fi_recvmsg its own flags. What has taken
 * messages and is cancelled says so once, and takes no more.
 */
static void multi_default(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV,
				.msg_order = FI_ORDER_SAS,
				.rx_op_flags = FI_MULTI_RECV,
				.disabled = true };
	struct sink s = { .buf = ct_alloc(ct, ROOM) };
	struct iovec iov = { s.buf, ROOM };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = CTX(9) };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	begin(ct, &dom, &e, &want);
	if (ct->rank)
		CT_POST(&e, fi_recv(e.ep, s.buf, ROOM, NULL, FI_ADDR_UNSPEC, &s));
	ct_sync(ct, &e);
	say(&e, 0, 3);
	for (size_t i = 0; ct->rank && i < 3; i++) {
		ct_of(&e, &s, &c);
		CT_TRUE(ct, account(ct, &c, i));
	}
	if (ct->rank) {
		CT_OK(ct, fi_cancel(&e.ep->fid, &s));
		ct_of(&e, &s, &c);
		CT_EQ(ct, c.err, FI_ECANCELED);
		CT_POST(&e, fi_recvmsg(e.ep, &m, 0));
	}
	ct_sync(ct, &e);
	say(&e, 3, 5);
	if (ct->rank) {
		ct_of(&e, CTX(9), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, mlen(3));
		CT_TRUE(ct, !(c.flags & FI_MULTI_RECV));
		ct_quiet(&e, 30, "a receive without the flag");
		ct_recv(&e, s.buf, ROOM,
			&s); /* follows the defaults again, and finds the other message waiting */
		ct_of(&e, &s, &c);
		CT_EQ(ct, c.len, mlen(4));
	}
	ct_sync(ct, &e);
	free(s.buf);
	ct_finish(&e);
}

#define LONG_ROOM (4 << 20)

static size_t long_at(size_t i)
{
	static const size_t lens[] = { 300000, 8, 100000, 0, 1 << 20, 20000 };

	return lens[i % CT_COUNT(lens)];
}

/*
 * Long ones and short ones in one buffer, each whole and where its completion says; what does not
 * fit any more waits for another receive, and the buffer is released.
 */
static void multi_long(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV, .msg_order = FI_ORDER_SAS, .disabled = true };
	char *buf = ct_alloc(ct, LONG_ROOM + 64);
	struct ct_one o = { .buf = buf, .len = LONG_ROOM, .ctx = CTX(1), .flags = FI_MULTI_RECV };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t left = LONG_ROOM; /* or a little less: gaps for alignment */

	begin(ct, &dom, &e, &want);
	memset(buf, 0x55, LONG_ROOM + 64);
	if (ct->rank)
		CT_POST(&e, ct_recv_one(&e, &o));
	ct_sync(ct, &e);
	for (size_t i = 0; i < 16; left -= long_at(i++)) {
		if (!ct->rank) {
			ct_fill(buf, long_at(i), i);
			ct_send(&e, 1, buf, long_at(i), CTX(2));
			ct_done(&e, CTX(2));
			continue;
		}
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, long_at(i));
		CT_TRUE(ct, !(c.flags & FI_MULTI_RECV));
		ct_verify(ct, c.buf, c.len, i, "long and short in one buffer");
	}
	if (!ct->rank) {
		ct_send(&e, 1, buf, 1 << 20, CTX(2));
		ct_done(&e, CTX(2));
	} else {
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
		CT_TRUE(ct, ct_untouched(buf + LONG_ROOM - left + 1024, left - 1024, 0x55));
		ct_recv(&e, buf, LONG_ROOM, CTX(3));
		CT_EQ(ct, ct_done(&e, CTX(3)), 1 << 20);
	}
	ct_sync(ct, &e);
	ct_quiet(&e, 20, "a buffer that was released");
	free(buf);
	ct_finish(&e);
}

/* than what is left of a buffer after some of HALF, though that is more than MIN */
#define TOO_LONG 6000
#define HALF 3000

/* The next completion of s is a message; whether it releases s as well. */
static bool message_of(struct ct_ep *e, struct sink *s, size_t len, uint64_t seed)
{
	struct ct_comp c;

	ct_of(e, s, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_TRUE(e->ct, c.flags & FI_RECV);
	CT_EQ(e->ct, c.len, len);
	CT_TRUE(e->ct, (char *)c.buf >= s->buf && (char *)c.buf + len <= s->buf + ROOM);
	ct_verify(e->ct, c.buf, len, seed, "whole, in one buffer");
	return c.flags & FI_MULTI_RECV;
}

static void released_alone(struct ct_ep *e, struct sink *s)
{
	struct ct_comp c;

	ct_of(e, s, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
}

/*
 * Four messages of HALF leave more than the minimum, but less than the next one needs. It goes
 * whole to the buffer behind, and the first is released, though it has that much room. arg 1: the
 * buffer behind is posted when that has been told; arg 2: the messages come before any buffer.
 */
static void multi_too_long(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV, .msg_order = FI_ORDER_SAS, .disabled = true };
	struct sink s[2] = { { .buf = ct_alloc(ct, ROOM) }, { .buf = ct_alloc(ct, ROOM) } };
	const uintptr_t how = ct->cs->arg;
	char buf[6][TOO_LONG];
	struct ct_dom dom;
	struct ct_ep e;

	begin(ct, &dom, &e, &want);
	if (ct->rank && how != 2)
		post(&e, &s[0], 0);
	if (ct->rank && !how)
		post(&e, &s[1], 0);
	ct_sync(ct, &e);
	for (size_t i = 0; !ct->rank && i < 6; i++) {
		ct_fill(buf[i], TOO_LONG, i);
		ct_send(&e, 1, buf[i], i == 4 ? TOO_LONG : HALF, CTX(1));
	}
	if (ct->rank && how == 2) {
		ct_idle(&e, 50);
		post(&e, &s[0], 0);
		post(&e, &s[1], 0);
	}
	if (ct->rank) {
		for (size_t i = 0; i < 4; i++)
			CT_TRUE(ct, !message_of(&e, &s[0], HALF, i));
		released_alone(&e, &s[0]);
		CT_TRUE(ct, ct_untouched(s[0].buf + ROOM - 4000, 4000, 0x55));
		if (how == 1)
			post(&e, &s[1], 0);
		CT_TRUE(ct, !message_of(&e, &s[1], TOO_LONG, 4));
		CT_TRUE(ct, !message_of(&e, &s[1], HALF, 5));
	}
	for (size_t i = 0; !ct->rank && i < 6; i++)
		ct_done(&e, CTX(1));
	ct_sync(ct, &e);
	free(s[0].buf);
	free(s[1].buf);
	ct_finish(&e);
}

const struct ct_case ct_multi[] = { { "M12", "multi-recv", { multi, multi } },
				    { "M12", "multi-recv-set-early", { multi, multi }, .arg = 1 },
				    { "M12", "multi-recv-late", { multi_late, multi_late } },
				    { "M12", "multi-recv-release", { multi_selective, multi_selective } },
				    { "M12", "multi-recv-next", { multi_next, multi_next } },
				    { "M12", "multi-recv-long", { multi_long, multi_long } },
				    { "M12", "multi-recv-default", { multi_default, multi_default } },
				    { "M25", "multi-recv-too-long", CT_TWO(multi_too_long) },
				    { "M25", "multi-recv-too-long-late", CT_TWO(multi_too_long), .arg = 1 },
				    { "M25", "multi-recv-too-long-waiting", CT_TWO(multi_too_long),
				      .arg = 2 },
				    { 0 } };
