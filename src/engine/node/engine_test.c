/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine through its own door: two nodes in one process, over every
 * transport; what fronts rely on.
 */
#include "engine/test/test_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the tests ------------------------------------------------------------------------------- */

static const size_t sizes[] = { 0,     1,     8,     24,    25,	    64,	     1000,	   4096,
				16384, 16385, 65536, 65537, 300000, 1 << 20, (5 << 20) + 7 };

static void sizes_posted_and_waiting(void **state)
{
	unsigned char *out = malloc(6 << 20), *in = malloc(6 << 20);
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int late = 0; late < 2; late++) {
				size_t n = sizes[i];
				struct hd_cqe e;

				test_fill(out, n, i + late);
				memset(in, 0, n);
				if (!late)
					side_post(&p.b, in, n, 5, 0, NULL, in);
				pair_push(&p, &p.a, out, n, 5, HD_SEND_COMPLETE);
				if (late) {
					pair_settle(&p, 5);
					side_post(&p.b, in, n, 5, 0, p.b.to, in);
				}
				e = pair_next(&p, &p.b);
				assert_int_equal(e.err, 0);
				assert_int_equal(e.len, n);
				assert_int_equal(e.tag, 5);
				assert_ptr_equal(e.ctx, in);
				assert_int_equal(e.src, hd_dest_id(p.b.to));
				test_check(in, n, i + late);
				e = pair_next(&p, &p.a);
				assert_int_equal(e.err, 0);
				assert_ptr_equal(e.ctx, out);
			}
		pair_close(&p);
	}
	free(out);
	free(in);
}

/* Nobody waits for credit that the first window can never hold. */
static void sizes_with_eager_settings_beyond_the_window(void **state)
{
	setenv("HEDDLE_EAGER_SHM", "1G", 1);
	setenv("HEDDLE_EAGER_TCP", "1G", 1);
	sizes_posted_and_waiting(state);
	unsetenv("HEDDLE_EAGER_SHM");
	unsetenv("HEDDLE_EAGER_TCP");
}

/*
 * The buffer of an injected message is free on return, whatever the limit of eager ones is: also
 * where it is announced first.
 */
static void inject_beyond_the_eager_limit(void **state)
{
	unsigned char out[HD_MAX_INJECT], in[HD_MAX_INJECT];
	struct pair p;

	setenv("HEDDLE_EAGER_SHM", "0", 1);
	setenv("HEDDLE_EAGER_TCP", "0", 1);
	EACH_TRANSPORT(t)
	for (size_t n = 1; n <= sizeof(out); n += sizeof(out) - 1) {
		pair_open(&p, t);
		pair_push(&p, &p.a, out, 0, 4, 0);
		pair_settle(&p, 5);
		test_fill(out, n, 1);
		pair_push(&p, &p.a, out, n, 5, HD_SEND_INJECT);
		memset(out, 0xee, n);
		pair_settle(&p, 5);
		side_post(&p.b, in, n, 5, 0, NULL, in);
		assert_int_equal(pair_next(&p, &p.b).len, n);
		test_check(in, n, 1);
		pair_close(&p);
	}
	unsetenv("HEDDLE_EAGER_SHM");
	unsetenv("HEDDLE_EAGER_TCP");
}

static void truncation(void **state)
{
	unsigned char *out = calloc(1, 1 << 20), in[100];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int big = 0; big < 2; big++) {
		size_t n = big ? 1 << 20 : 200;
		struct hd_cqe e;

		pair_open(&p, t);
		side_post(&p.b, in, sizeof(in), 1, 0, NULL, in);
		pair_push(&p, &p.a, out, n, 1, HD_SEND_COMPLETE);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, HD_S_LENGTH);
		assert_int_equal(e.olen, n - sizeof(in));
		e = pair_next(&p, &p.a);
		assert_int_equal(e.err, 0);
		pair_close(&p);
	}
	free(out);
}

static void multi_receive(void **state)
{
	_Alignas(8) unsigned char buf[1024], out[200];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int late = 0; late < 2; late++) {
		struct iovec iov = { buf, sizeof(buf) };
		struct hd_recv_args args = {
			.iov = &iov, .count = 1, .flags = HD_RECV_MULTI | HD_RECV_COMPLETE, .ctx = buf
		};
		struct hd_cqe e;

		pair_open(&p, t);
		if (!late)
			assert_int_equal(hd_recv(p.b.ep, &args), 0);
		for (int i = 0; i < 5; i++) {
			test_fill(out, 200, i);
			while (hd_send(p.a.ep, p.a.to, out, 200, 0, 0, NULL, HD_SEND_INJECT) == -EAGAIN)
				pair_settle(&p, 1);
		}
		if (late) {
			pair_settle(&p, 20);
			assert_int_equal(hd_recv(p.b.ep, &args), 0);
		}
		for (int i = 0; i < 5; i++) {
			e = pair_next(&p, &p.b);
			assert_int_equal(e.err, 0);
			assert_int_equal(e.len, 200);
			assert_ptr_equal(e.buf, buf + i * 200);
			test_check(e.buf, 200, i);
			assert_int_equal(!!(e.flags & HD_C_MULTI_RECV), i == 4);
		}
		pair_close(&p);
	}
}

/*
 * Parts begin aligned, and a buffer with less room left than was asked for is given back: of the
 * nodes of tests 64 bytes.
 */
static void multi_receive_parts(void **state)
{
	_Alignas(8) unsigned char buf[200], out[150] = { 0 };
	struct pair p;

	EACH_TRANSPORT(t)
	for (int left = 56; left <= 64; left += 8) {
		struct iovec iov = { buf, 8 + 128 + (size_t)left };
		struct hd_recv_args args = {
			.iov = &iov, .count = 1, .flags = HD_RECV_MULTI | HD_RECV_COMPLETE, .ctx = buf
		};
		static const size_t lens[] = { 5, 121 }; /* which take 8 and 128 */
		struct hd_cqe e;

		pair_open(&p, t);
		assert_int_equal(hd_recv(p.b.ep, &args), 0);
		for (int i = 0; i < 2; i++) {
			while (hd_send(p.a.ep, p.a.to, out, lens[i], 0, 0, NULL, HD_SEND_INJECT) == -EAGAIN)
				pair_settle(&p, 1);
			e = pair_next(&p, &p.b);
			assert_int_equal(e.len, lens[i]);
			assert_ptr_equal(e.buf, buf + i * 8);
			assert_int_equal(!!(e.flags & HD_C_MULTI_RECV), i == 1 && left < 64);
		}
		pair_close(&p);
	}
}

static void peek_and_claim(void **state)
{
	unsigned char *out = malloc(1 << 20), *in = malloc(1 << 20);
	struct pair p;

	EACH_TRANSPORT(t)
	for (int big = 0; big < 2; big++) {
		size_t n = big ? 1 << 20 : 100;
		struct iovec iov = { in, n };
		struct hd_recv_args args = { .iov = &iov,
					     .count = 1,
					     .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE,
					     .tag = 9,
					     .ctx = in };
		struct hd_claim *claim;
		struct hd_cqe e;

		pair_open(&p, t);
		args.count = 0;
		assert_int_equal(hd_peek(p.b.ep, &args, 0, NULL), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, HD_S_NO_MESSAGE);
		test_fill(out, n, 3);
		pair_push(&p, &p.a, out, n, 9, HD_SEND_COMPLETE | HD_SEND_ACKED);
		pair_settle(&p, 20);
		assert_int_equal(hd_peek(p.b.ep, &args, HD_PEEK_CLAIM, &claim), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		assert_int_equal(e.len, n);
		assert_non_null(claim);
		assert_null(hd_cq_peek(p.a.cq)); /* not matched yet */
		args.count = 1;
		assert_int_equal(hd_claim_recv(p.b.ep, claim, &args), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.len, n);
		test_check(in, n, 3);
		e = pair_next(&p, &p.a);
		assert_int_equal(e.err, 0);
		pair_push(&p, &p.a, out, n, 9, HD_SEND_COMPLETE | HD_SEND_ACKED);
		pair_settle(&p, 20);
		assert_int_equal(hd_peek(p.b.ep, &args, HD_PEEK_DISCARD, NULL), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		e = pair_next(&p, &p.a);
		assert_int_equal(e.err, 0);
		pair_close(&p);
	}
	free(out);
	free(in);
}

static void cancel_gives_one_error(void **state)
{
	unsigned char in[8];
	struct hd_cqe e;
	struct pair p;

	pair_open(&p, "shm");
	side_post(&p.b, in, 8, 1, 0, NULL, in);
	assert_int_equal(hd_cancel(p.b.ep, in), 0);
	assert_int_equal(hd_cancel(p.b.ep, in), -ENOENT);
	e = pair_next(&p, &p.b);
	assert_int_equal(e.err, HD_S_CANCELLED);
	assert_null(hd_cq_peek(p.b.cq));
	pair_close(&p);
}

/* Of several with one context the oldest. */
static void cancel_takes_the_oldest(void **state)
{
	unsigned char in[8];
	struct pair p;

	pair_open(&p, "shm");
	for (uint64_t tag = 1; tag <= 3; tag++)
		side_post(&p.b, in, 8, tag, tag & 1, NULL, in);
	for (uint64_t tag = 1; tag <= 3; tag++) {
		struct hd_cqe e;

		assert_int_equal(hd_cancel(p.b.ep, in), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, HD_S_CANCELLED);
		assert_int_equal(e.tag, tag & ~(tag & 1));
	}
	pair_close(&p);
}

/*
 * Far more than a window, to a receiver that takes nothing: the sender is told to wait,
 * then all arrives in order.
 */
static void flood_is_bounded_and_lossless(void **state)
{
	unsigned char out[64] = { 0 }, in[64];
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "1M", 1);
	EACH_TRANSPORT(t)
	{
		uint32_t sent = 0, got = 0;
		uint64_t end = hd_now_ns() + PATIENCE;
		bool refused = false;

		pair_open(&p, t);
		while (!refused && sent < 200000) {
			memcpy(out, &sent, 4);
			refused = hd_send(p.a.ep, p.a.to, out, sent % 2 ? 0 : 64, 7, sent, NULL,
					  TAGGED(HD_SEND_IMM | HD_SEND_INJECT)) == -EAGAIN;
			sent += !refused;
			if (refused && sent < 3000) { /* still connecting, or the ring is full */
				refused = false;
				assert_true(hd_now_ns() < end);
			}
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
		}
		assert_true(refused);
		assert_true(sent > 3000);
		assert_true(hd_links_inspect(p.b.node).units <= (1 << 20) / HD_UNIT);
		for (; got < sent; got++) {
			struct hd_cqe e;

			side_post(&p.b, in, 64, 7, 0, NULL, in);
			e = pair_next(&p, &p.b);
			assert_int_equal(e.imm, got);
			assert_int_equal(e.len, got % 2 ? 0 : 64);
		}
		pair_close(&p);
	}
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

static void closed_peer_fails_operations(void **state)
{
	unsigned char *out = calloc(1, 1 << 20);
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		pair_push(&p, &p.a, out, 1 << 20, 1, HD_SEND_COMPLETE);
		pair_push(&p, &p.a, out, 8, 1, HD_SEND_COMPLETE | HD_SEND_ACKED);
		pair_settle(&p, 20);
		hd_ep_close(p.b.ep);
		for (int i = 0; i < 2; i++) {
			uint64_t end = hd_now_ns() + PATIENCE;

			while (!hd_cq_peek(p.a.cq)) {
				hd_node_poll(p.a.node);
				hd_node_poll(p.b.node);
				assert_true(hd_now_ns() < end);
			}
			e = *hd_cq_peek(p.a.cq);
			hd_cq_pop(p.a.cq);
			assert_int_not_equal(e.err, 0);
		}
		hd_dest_put(p.b.to);
		hd_cq_close(p.b.cq);
		assert_int_equal(hd_node_close(p.b.node), 0);
		pair_settle(&(struct pair){ p.a, p.a }, 20);
		side_close(&p.a);
	}
	free(out);
}

static void self_send(void **state)
{
	unsigned char *out = malloc(1 << 20), *in = malloc(1 << 20);
	struct sockaddr_storage name;
	struct hd_dest *self;
	struct pair p;

	pair_open(&p, "shm");
	hd_ep_name(p.a.ep, AF_UNSPEC, &name);
	assert_int_equal(hd_dest_get(p.a.node, (void *)&name, &self), 0);
	for (size_t n = 1; n <= 1 << 20; n *= 1024) {
		struct hd_cqe e[2];

		test_fill(out, n, 1);
		assert_int_equal(hd_send(p.a.ep, self, out, n, 4, 0, out, TAGGED(HD_SEND_COMPLETE)), 0);
		side_post(&p.a, in, n, 4, 0, self, in);
		e[0] = pair_next(&p, &p.a);
		e[1] = pair_next(&p, &p.a);
		assert_int_equal(e[0].err | e[1].err, 0);
		test_check(in, n, 1);
	}
	hd_dest_put(self);
	pair_close(&p);
	free(out);
	free(in);
}

static void unreachable_completes_in_error(void **state)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET,
				      .sin_port = htons(1),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_dest *dest;
	struct hd_cqe e;
	struct pair p;
	char out[8];

	pair_open(&p, "auto");
	assert_int_equal(hd_dest_get(p.a.node, (void *)&nobody, &dest), 0);
	assert_int_equal(hd_send(p.a.ep, dest, out, 8, 0, 0, out, 0), 0);
	e = pair_next(&p, &p.a);
	assert_int_equal(e.err, HD_S_REFUSED);
	assert_ptr_equal(e.ctx, out);
	hd_dest_put(dest);
	pair_close(&p);
}

static void both_call_at_once(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	for (int i = 0; i < 20; i++) {
		char a[8] = "from a", b[8] = "from b", to_a[8], to_b[8];

		pair_open(&p, t);
		side_post(&p.a, to_a, 8, 1, 0, p.a.to, to_a);
		side_post(&p.b, to_b, 8, 1, 0, p.b.to, to_b);
		pair_push(&p, &p.a, a, 8, 1, 0);
		pair_push(&p, &p.b, b, 8, 1, 0);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		assert_int_equal(pair_next(&p, &p.b).err, 0);
		assert_string_equal(to_a, "from b");
		assert_string_equal(to_b, "from a");
		pair_settle(&p, 1);
		assert_int_equal(hd_links_inspect(p.a.node).peers, 1);
		pair_close(&p);
	}
}

static void wait_sleeps_until_woken(void **state)
{
	struct pair p;

	pair_open(&p, "shm");
	assert_int_equal(hd_cq_wait(p.a.cq, 1, 30), -EAGAIN);
	hd_cq_signal(p.a.cq);
	assert_int_equal(hd_cq_wait(p.a.cq, 1, 10000), -ECANCELED);
	assert_int_equal(hd_cq_wait(p.a.cq, 1, 5), -EAGAIN);
	pair_close(&p);
}

static void arm(struct pair *p, struct hd_cq *cq)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (hd_cq_arm(cq) == -EAGAIN) {
		hd_cq_poll(cq);
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
}

/*
 * Two sleep; what wakes one of them must not make peers believe that the other
 * needs no waking any more.
 */
static void one_sleeper_does_not_hide_another(void **state)
{
	struct hd_cq *other;
	char text[8] = "wake up", in[8];
	struct pair p;

	pair_open(&p, "shm");
	assert_int_equal(hd_cq_open(p.a.node, &(struct hd_cq_attr){ .size = 64, .waitable = true }, &other),
			 0);
	side_post(&p.a, in, sizeof(in), 1, 0, NULL, in);
	pair_push(&p, &p.b, text, sizeof(text), 1, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	arm(&p, other);
	for (int i = 0; i < 3; i++) {
		struct pollfd fd = { .fd = hd_cq_fd(p.a.cq), .events = POLLIN };

		arm(&p, p.a.cq);
		side_post(&p.a, in, sizeof(in), 1, 0, NULL, in);
		assert_int_equal(hd_send(p.b.ep, p.b.to, text, sizeof(text), 1, 0, NULL, TAGGED(0)), 0);
		assert_int_equal(poll(&fd, 1, 5000), 1);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
	}
	assert_int_equal(hd_cq_close(other), 0);
	pair_close(&p);
}

/* No descriptor can be had while the statement behind it runs. */
static struct rlimit few_descriptors(void)
{
	struct rlimit before, now;
	int next = dup(0);

	assert_true(next >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = before;
	now.rlim_cur = (rlim_t)next;
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(dup(0), -1);
	return before;
}

/* Who has got a queue to wait at can wait there, whatever the program has opened since. */
static void sleeps_without_descriptors(void **state)
{
	char text[8] = "wake up", in[8];
	struct rlimit before;
	struct pair p;
	int came, none;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		side_post(&p.a, in, sizeof(in), 1, 0, NULL, in);
		pair_push(&p, &p.b, text, sizeof(text), 1, 0);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		before = few_descriptors();
		none = hd_cq_wait(p.a.cq, 1, 20);
		side_post(&p.a, in, sizeof(in), 1, 0, NULL, in);
		pair_push(&p, &p.b, text, sizeof(text), 1, 0);
		came = hd_cq_wait(p.a.cq, 1, 10000);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(none, -EAGAIN);
		assert_int_equal(came, 0);
		hd_cq_signal(p.a.cq);
		assert_int_equal(hd_cq_wait(p.a.cq, 2, 10000), -ECANCELED);
		pair_close(&p);
	}
}

/*
 * One thread sleeps while another makes progress with much traffic, and then stops: the sleeper
 * must notice what comes next.
 */
static void a_sleeper_outlasts_a_busy_time(void **state)
{
	struct hd_cq *other;
	char text[8] = "wake up", in[8];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct pollfd fd = { .events = POLLIN };
		uint64_t end = hd_now_ns() + PATIENCE;
		int woken;

		pair_open(&p, t);
		assert_int_equal(hd_cq_open(p.a.node, &(struct hd_cq_attr){ .size = 64, .waitable = true },
					    &other),
				 0);
		fd.fd = hd_cq_fd(other);
		for (int i = 0; i < 1000; i++) {
			if (i == 1)
				arm(&p, other);
			side_post(&p.a, in, sizeof(in), 1, 0, NULL, in);
			pair_push(&p, &p.b, text, sizeof(text), 1, 0);
			assert_int_equal(pair_next(&p, &p.a).err, 0);
		}
		do /* what else has come is taken in */
			pair_settle(&p, 2);
		while (poll(&fd, 1, 0) && hd_now_ns() < end);
		pair_push(&p, &p.b, text, sizeof(text), 1, 0);
		while (!(woken = poll(&fd, 1, 10)) && hd_now_ns() < end)
			hd_node_poll(p.b.node); /* which may have put it behind something else */
		assert_int_equal(woken, 1);
		assert_int_equal(hd_cq_close(other), 0);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_posted_and_waiting),
		cmocka_unit_test(sizes_with_eager_settings_beyond_the_window),
		cmocka_unit_test(inject_beyond_the_eager_limit),
		cmocka_unit_test(truncation),
		cmocka_unit_test(multi_receive),
		cmocka_unit_test(multi_receive_parts),
		cmocka_unit_test(peek_and_claim),
		cmocka_unit_test(cancel_gives_one_error),
		cmocka_unit_test(cancel_takes_the_oldest),
		cmocka_unit_test(flood_is_bounded_and_lossless),
		cmocka_unit_test(closed_peer_fails_operations),
		cmocka_unit_test(self_send),
		cmocka_unit_test(unreachable_completes_in_error),
		cmocka_unit_test(both_call_at_once),
		cmocka_unit_test(wait_sleeps_until_woken),
		cmocka_unit_test(one_sleeper_does_not_hide_another),
		cmocka_unit_test(sleeps_without_descriptors),
		cmocka_unit_test(a_sleeper_outlasts_a_busy_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
