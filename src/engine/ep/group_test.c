/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Groups: who hears what, and that nobody hears what is none of ours. */
#include "engine/test/test_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP "239.255.72.68"
#define BURST 128 /* sends: what the usual queue holds */

static struct sockaddr_in group_at(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return in;
}

static uint16_t free_port(void)
{
	return (uint16_t)(20000 + getpid() % 20000);
}

static struct hd_group *join(struct side *s, unsigned how)
{
	struct sockaddr_in in = group_at(GROUP, free_port());
	struct hd_group *group;

	assert_int_equal(
		hd_group_join(s->ep, &(struct hd_group_attr){ .addr = (void *)&in, .how = how }, &group), 0);
	return group;
}

static void post_with(struct side *s, void *buf, size_t len, uint32_t flags)
{
	struct iovec iov = { buf, len };

	assert_int_equal(hd_recv(s->ep, &(struct hd_recv_args){ .iov = &iov,
								.count = 1,
								.flags = HD_RECV_COMPLETE | flags,
								.ctx = buf }),
			 0);
}

static void post(struct side *s, void *buf, size_t len)
{
	post_with(s, buf, len, 0);
}

static void cast(struct hd_group *group, void *buf, size_t len)
{
	struct iovec iov[2] = { { buf, len / 2 }, { (char *)buf + len / 2, len - len / 2 } };

	assert_int_equal(hd_group_send(group,
				       &(struct hd_group_args){ .iov = iov,
								.count = 2,
								.imm = 7,
								.ctx = buf,
								.flags = HD_SEND_IMM | HD_SEND_COMPLETE }),
			 0);
}

/* What the pair has open, bound to the loopback address, which every host has. */
static void open_here(struct pair *p)
{
	setenv("HEDDLE_ADDR", "127.0.0.1", 1);
	pair_open(p, "tcp");
}

static void close_here(struct pair *p)
{
	pair_close(p);
	unsetenv("HEDDLE_ADDR");
}

static void all_members_hear(void **state)
{
	unsigned char out[HD_MAX_DGRAM], a[HD_MAX_DGRAM], b[HD_MAX_DGRAM];
	struct hd_group *ga, *gb;
	struct hd_cqe e;
	struct pair p;

	open_here(&p);
	ga = join(&p.a, HD_GROUP_SEND | HD_GROUP_RECV);
	gb = join(&p.b, HD_GROUP_RECV);
	post(&p.a, a, sizeof(a));
	post(&p.b, b, sizeof(b));
	test_fill(out, sizeof(out), 3);
	cast(ga, out, sizeof(out));
	e = pair_next(&p, &p.a); /* of the send */
	assert_true(e.flags & HD_C_SEND && e.ctx == out);
	for (int i = 0; i < 2; i++) {
		e = i ? pair_next(&p, &p.b) : pair_next(&p, &p.a);
		assert_int_equal(e.err, 0);
		assert_int_equal(e.len, sizeof(out));
		assert_true(e.flags & HD_C_RECV && e.flags & HD_C_MSG && e.flags & HD_C_IMM);
		assert_int_equal(e.imm, 7);
		assert_ptr_equal(e.ctx, i ? b : a);
	}
	test_check(a, sizeof(out), 3);
	test_check(b, sizeof(out), 3);
	hd_group_leave(ga);
	hd_group_leave(gb);
	close_here(&p);
}

/*
 * What a send queue holds is posted at once, as programs do that measure; nobody
 * takes anything meanwhile.
 */
static void a_full_queue_of_sends_arrives(void **state)
{
	static unsigned char out[4096], in[BURST][4096];
	struct hd_group *ga, *gb;
	struct pair p;

	open_here(&p);
	ga = join(&p.a, HD_GROUP_SEND);
	gb = join(&p.b, HD_GROUP_RECV);
	for (int i = 0; i < BURST; i++)
		post(&p.b, in[i], sizeof(in[i]));
	for (int i = 0; i < BURST; i++) {
		test_fill(out, sizeof(out), i);
		cast(ga, out, sizeof(out));
	}
	for (int i = 0; i < BURST; i++) {
		struct hd_cqe e = pair_next(&p, &p.b);

		assert_int_equal(e.err, 0);
		assert_ptr_equal(e.ctx, in[i]);
		test_check(in[i], sizeof(in[i]), i);
	}
	hd_group_leave(ga);
	hd_group_leave(gb);
	close_here(&p);
}

static void sources_are_known_by_name(void **state)
{
	unsigned char byte = 1, in[8];
	struct hd_group *ga, *gb;
	struct pair p;

	open_here(&p);
	ga = join(&p.a, HD_GROUP_SEND);
	gb = join(&p.b, HD_GROUP_RECV);
	post(&p.b, in, sizeof(in));
	cast(ga, &byte, 1);
	assert_int_equal(pair_next(&p, &p.b).src, 0); /* they have never met */
	pair_push(&p, &p.a, &byte, 1, 1, 0);
	pair_settle(&p, 50);
	post(&p.b, in, sizeof(in));
	cast(ga, &byte, 1);
	assert_int_equal(pair_next(&p, &p.b).src, hd_dest_id(p.b.to));
	hd_group_leave(ga);
	hd_group_leave(gb);
	close_here(&p);
}

static struct hd_group *join_word(struct side *s, uint64_t word, bool not_own)
{
	struct sockaddr_in in = group_at(GROUP, free_port());
	const struct hd_group_attr attr = { .addr = (void *)&in,
					    .how = HD_GROUP_SEND | HD_GROUP_RECV,
					    .from = hd_names(s->node)->addrs[0].ss_family == AF_INET
							    ? (void *)&hd_names(s->node)->addrs[0]
							    : NULL,
					    .word = word,
					    .not_own = not_own };
	struct hd_group *group;

	assert_int_equal(hd_group_join(s->ep, &attr, &group), 0);
	return group;
}

/* Two groups at one address hear each their own; who does not want to hear itself does not. */
static void words_tell_groups_apart(void **state)
{
	unsigned char one = 1, two = 2, a[8], b[8];
	struct hd_group *ga, *gb, *other;
	struct pair p;

	open_here(&p);
	ga = join_word(&p.a, 77, true);
	gb = join_word(&p.b, 77, false);
	other = join_word(&p.a, 78, false);
	post(&p.a, a, sizeof(a));
	post(&p.b, b, sizeof(b));
	cast(ga, &one, 1);
	assert_ptr_equal(pair_next(&p, &p.a).ctx, &one); /* of the send */
	assert_ptr_equal(pair_next(&p, &p.b).ctx, b);
	pair_settle(&p, 50);
	assert_null(hd_cq_peek(p.a.cq));
	post(&p.b, b, sizeof(b));
	cast(other, &two, 1);
	assert_ptr_equal(pair_next(&p, &p.a).ctx, &two);
	assert_ptr_equal(pair_next(&p, &p.a).ctx, a);
	assert_int_equal(a[0], 2);
	pair_settle(&p, 50);
	assert_null(hd_cq_peek(p.b.cq));
	hd_group_leave(ga);
	hd_group_leave(gb);
	hd_group_leave(other);
	close_here(&p);
}

static void members_without_a_receive_lose_it(void **state)
{
	unsigned char byte = 1, in[8];
	struct hd_group *ga, *gb;
	struct pair p;
	int late = 0;

	open_here(&p);
	ga = join(&p.a, HD_GROUP_SEND);
	gb = join(&p.b, HD_GROUP_RECV);
	for (int i = 0; i < 1000; i++) {
		cast(ga, &byte, 1);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
	}
	pair_settle(&p, 50);
	byte = 2;
	post(&p.b, in, sizeof(in));
	cast(ga, &byte, 1);
	for (pair_next(&p, &p.b); in[0] != 2; pair_next(&p, &p.b)) {
		post(&p.b, in, sizeof(in)); /* a busy kernel may give some of them late */
		assert_in_range(++late, 0, 990);
	}
	hd_group_leave(gb);
	post(&p.b, in, sizeof(in)); /* who has left hears nothing */
	cast(ga, &byte, 1);
	pair_settle(&p, 50);
	assert_null(hd_cq_peek(p.b.cq));
	hd_group_leave(ga);
	close_here(&p);
}

static int try_join(struct side *s, const void *addr, unsigned how)
{
	struct hd_group *group;

	return hd_group_join(s->ep, &(struct hd_group_attr){ .addr = addr, .how = how }, &group);
}

static void no_group_is_refused(void **state)
{
	struct sockaddr_in bad[] = { group_at("127.0.0.1", 99), group_at(GROUP, 0) };
	struct sockaddr_in good = group_at(GROUP, free_port());
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = 9 };
	struct pair p;

	open_here(&p);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(try_join(&p.a, &bad[i], HD_GROUP_SEND), -EINVAL);
	assert_int_equal(try_join(&p.a, &good, 0), -EINVAL);
	assert_int_equal(try_join(&p.a, &six, HD_GROUP_SEND), -EINVAL);
	inet_pton(AF_INET6, "ff02::4844", &six.sin6_addr);
	/* its names are IPv4 addresses */
	assert_int_equal(try_join(&p.a, &six, HD_GROUP_SEND), -EADDRNOTAVAIL);
	close_here(&p);
}

/*
 * A stranger's datagrams: too short, of another protocol, of kinds and flags
 * that may not be, too long.
 */
static void strangers_are_not_heard(void **state)
{
	struct hd_cast_head good = { .magic = HD_WIRE_MAGIC,
				     .version = HD_WIRE_VERSION,
				     .pkt = { .kind = HD_PKT_EAGER } };
	struct sockaddr_in to = group_at(GROUP, free_port());
	struct in_addr here = { .s_addr = htonl(INADDR_LOOPBACK) };
	static unsigned char buf[sizeof(good) + HD_CAST_MAX + 1];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned char in[8] = { 0 };
	struct hd_group *group;
	struct pair p;

	open_here(&p);
	group = join(&p.b, HD_GROUP_RECV);
	post(&p.b, in, sizeof(in));
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &here, sizeof(here)), 0);
	for (int i = 0; i < 10; i++) {
		struct hd_cast_head bad = good;
		size_t len = sizeof(bad) + 1;

		bad.magic += i == 0;
		bad.version += i == 1;
		bad.pkt.kind = i == 2 ? HD_PKT_RTS : bad.pkt.kind;
		bad.pkt.flags = i == 3 ? HD_PKT_F_ACK : i == 4 ? 0x80 : 0;
		bad.more = i == 8   ? HD_CAST_KEYS
			   : i == 9 ? 1
				    : 0;  /* more than there may be, than there are */
		bad.pkt.src = UINT32_MAX; /* of nobody, whom we do not know */
		len = i == 5 ? sizeof(bad) - 1 : i == 6 ? 0 : i >= 7 && i < 9 ? sizeof(buf) - (i - 7) : len;
		memcpy(buf, &bad, sizeof(bad));
		assert_int_equal(sendto(fd, buf, len, 0, (void *)&to, sizeof(to)), len);
	}
	pair_settle(&p, 50);
	assert_null(hd_cq_peek(p.b.cq));
	memcpy(buf, &good, sizeof(good));
	buf[sizeof(good)] = 9;
	assert_int_equal(sendto(fd, buf, sizeof(good) + 1, 0, (void *)&to, sizeof(to)), sizeof(good) + 1);
	assert_int_equal(pair_next(&p, &p.b).len, 1);
	assert_int_equal(in[0], 9);
	hd_group_leave(group);
	close_here(&p);
	close(fd);
}

static void who_may_not_come_is_not_heard(void **state)
{
	unsigned char byte = 1, in[8];
	struct hd_group *ga, *gb;
	struct pair p;

	setenv("HEDDLE_ALLOW", "198.51.100.0/24", 1);
	open_here(&p);
	ga = join(&p.a, HD_GROUP_SEND);
	gb = join(&p.b, HD_GROUP_RECV);
	post(&p.b, in, sizeof(in));
	cast(ga, &byte, 1);
	pair_settle(&p, 50);
	assert_null(hd_cq_peek(p.b.cq));
	hd_group_leave(ga);
	hd_group_leave(gb);
	close_here(&p);
	unsetenv("HEDDLE_ALLOW");
}

/* ---- authorization keys ---------------------------------------------------------------------- */

static void open_keyed(struct pair *p, const uint64_t *a, const uint64_t *b)
{
	open_here(p);
	side_keys(&p->a, a, (a[0] != 0) + (a[1] != 0), HD_EP_RDM);
	side_keys(&p->b, b, (b[0] != 0) + (b[1] != 0), HD_EP_RDM);
}

/*
 * A datagram is heard by whoever has one of its sender's keys, once, as the one
 * that has the first of them.
 */
static void one_key_in_common_is_enough(void **state)
{
	static const struct {
		uint64_t a[2], b[2];
		int face; /* of b, or -1: it hears nothing */
	} cases[] = { { { 1, 2 }, { 2, 3 }, 0 }, { { 1, 2 }, { 3, 2 }, 1 }, { { 1, 2 }, { 2, 1 }, 1 },
		      { { 1 }, { 2, 1 }, 1 },	 { { 1, 2 }, { 2 }, 0 },    { { 1 }, { 2 }, -1 },
		      { { 1, 2 }, { 3 }, -1 },	 { { 1, 2 }, { 0 }, -1 },   { { 0 }, { 1, 2 }, -1 },
		      { { 0 }, { 0 }, 0 },	 { { 1, 2 }, { 3, 4 }, -1 } };
	unsigned char byte = 1, in[2][8];
	struct hd_group *ga, *gb;
	struct pair p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_keyed(&p, cases[i].a, cases[i].b);
		ga = join(&p.a, HD_GROUP_SEND);
		gb = join(&p.b, HD_GROUP_RECV);
		post(&p.b, in[0], sizeof(in[0]));
		post(&p.b, in[1], sizeof(in[1]));
		cast(ga, &byte, 1);
		if (cases[i].face >= 0) {
			struct hd_cqe e = pair_next(&p, &p.b);

			assert_int_equal(e.len, 1);
			assert_int_equal(e.ep, hd_ep_index(hd_ep_alias_at(p.b.ep, (uint32_t)cases[i].face)));
		}
		pair_settle(&p, 50);
		assert_null(hd_cq_peek(p.b.cq));
		hd_group_leave(ga);
		hd_group_leave(gb);
		close_here(&p);
	}
}

/* Receives by key, of whom nobody knows, and then of whom they have met. */
static void receives_by_key_hear_groups(void **state)
{
	static const uint64_t keys[2] = { 1, 2 };
	unsigned char byte = 1, in[8];
	struct iovec iov = { in, sizeof(in) };
	struct hd_recv_args args = { .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE, .ctx = in };
	struct hd_group *ga, *gb;
	struct pair p;

	open_keyed(&p, keys, keys);
	ga = join(&p.a, HD_GROUP_SEND);
	gb = join(&p.b, HD_GROUP_RECV);
	for (int known = 0; known < 2; known++) {
		struct hd_cqe e;

		if (known) {
			struct sockaddr_storage at;
			struct hd_dest *to;

			assert_int_equal(hd_ep_name(p.b.ep, AF_UNSPEC, &at), 0);
			assert_int_equal(hd_dest_get_keyed(p.a.node, (void *)&at, 1, &to), 0);
			assert_int_equal(hd_send(p.a.ep, to, &byte, 1, 1, 0, NULL, TAGGED(HD_SEND_KEYED)), 0);
			pair_settle(&p, 50);
			hd_dest_put(to);
		}
		args.src = hd_key_sources(p.b.node, 3);
		assert_int_equal(hd_recv(p.b.ep, &args), 0);
		cast(ga, &byte, 1);
		pair_settle(&p, 50);
		assert_null(hd_cq_peek(p.b.cq));
		assert_int_equal(hd_cancel(p.b.ep, in), 0);
		assert_int_equal(pair_next(&p, &p.b).err, HD_S_CANCELLED);
		args.src = hd_key_sources(p.b.node, 2);
		assert_int_equal(hd_recv(p.b.ep, &args), 0);
		cast(ga, &byte, 1);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.ep, hd_ep_index(hd_ep_alias_at(p.b.ep, 1)));
		assert_int_equal(e.src != 0, known);
	}
	hd_group_leave(ga);
	hd_group_leave(gb);
	close_here(&p);
}

/*
 * The last of as many keys as there may be is as good as the first, and the longest
 * datagram has room beside them.
 */
static void only_so_many_keys_join(void **state)
{
	struct sockaddr_in at = group_at(GROUP, free_port());
	uint64_t keys[HD_CAST_KEYS + 1];
	struct hd_group *group;
	struct pair p;

	open_here(&p);
	for (uint32_t i = 0; i <= HD_CAST_KEYS; i++)
		keys[i] = i + 1;
	side_keys(&p.a, keys, HD_CAST_KEYS + 1, HD_EP_RDM);
	assert_int_equal(try_join(&p.a, &at, HD_GROUP_SEND), -E2BIG);
	side_keys(&p.a, keys, HD_CAST_KEYS, HD_EP_RDM);
	side_keys(&p.b, &keys[HD_CAST_KEYS - 1], 1, HD_EP_RDM);
	group = join(&p.a, HD_GROUP_SEND);
	{
		static unsigned char out[HD_MAX_DGRAM], in[HD_MAX_DGRAM];
		struct hd_group *gb = join(&p.b, HD_GROUP_RECV);

		post(&p.b, in, sizeof(in));
		test_fill(out, sizeof(out), 4);
		cast(group, out, sizeof(out));
		assert_int_equal(pair_next(&p, &p.b).len, sizeof(out));
		test_check(in, sizeof(in), 4);
		hd_group_leave(gb);
	}
	hd_group_leave(group);
	close_here(&p);
}

/*
 * Receives in order: what comes from the group while a long message comes in waits for its turn,
 * where there is memory for it.
 */
static void it_waits_for_its_turn(void **state)
{
	static unsigned char big[1 << 20], in[1 << 20], out[1000], got[2][1000];
	const struct sockaddr_in elsewhere = group_at("192.0.2.1", 7);
	struct hd_group *ga, *gb;
	struct hd_dest *other;
	uint64_t end = hd_now_ns() + PATIENCE;
	uint32_t free_units, for_peers;
	struct hd_cqe e;
	struct pair p;

	open_here(&p);
	ga = join(&p.a, HD_GROUP_SEND);
	gb = join(&p.b, HD_GROUP_RECV);
	post_with(&p.b, in, sizeof(in), HD_RECV_TAGGED | HD_RECV_ORDERED);
	for (int i = 0; i < 2; i++)
		post_with(&p.b, got[i], sizeof(got[i]), HD_RECV_ORDERED);
	test_fill(big, sizeof(big), 5);
	test_fill(out, sizeof(out), 6);
	pair_push(&p, &p.a, big, sizeof(big), 0, 0);
	while (!hd_ep_inspect(p.b.ep).coming_in) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
		assert_true(hd_now_ns() < end);
	}
	cast(ga, out, sizeof(out)); /* and a sends no more of the long one */
	while (!hd_ep_inspect(p.b.ep).deferred) {
		hd_node_poll(p.b.node);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(hd_dest_get(p.b.node, (const struct sockaddr *)&elsewhere, &other), 0);
	hd_dest_bind(other, p.b.to->peer, p.b.to->remote,
		     p.b.to->gen); /* its sender has two names meanwhile */
	free_units = hd_links(p.b.node)->window_max - hd_links(p.b.node)->window_units;
	for_peers = hd_links(p.b.node)->window_max / 4;
	hd_links(p.b.node)->window_units += free_units - for_peers;
	cast(ga, big, sizeof(out)); /* this one is lost */
	for (uint64_t until = hd_now_ns() + 20 * HD_NS_PER_MS; hd_now_ns() < until;)
		hd_node_poll(p.b.node);
	hd_links(p.b.node)->window_units -= free_units - for_peers;
	assert_int_equal(hd_ep_inspect(p.b.ep).deferred, 1);
	e = pair_next(&p, &p.b);
	assert_ptr_equal(e.ctx, in);
	test_check(in, sizeof(in), 5);
	e = pair_next(&p, &p.b);
	assert_ptr_equal(e.ctx, got[0]);
	assert_int_equal(e.len, sizeof(out));
	assert_int_equal(e.imm, 7);
	test_check(got[0], sizeof(out), 6);
	assert_true(e.flags & HD_C_CAST);
	assert_int_equal(e.src, hd_dest_id(p.b.to));
	assert_int_equal(side_number(&p.b, e.src, 1), hd_dest_id(other));
	hd_dest_put(other);
	cast(ga, out, sizeof(out));
	assert_ptr_equal(pair_next(&p, &p.b).ctx, got[1]);
	assert_int_equal(hd_links(p.b.node)->window_max - hd_links(p.b.node)->window_units,
			 free_units + hd_units(sizeof(out)));
	hd_group_leave(ga);
	hd_group_leave(gb);
	close_here(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_members_hear),
		cmocka_unit_test(a_full_queue_of_sends_arrives),
		cmocka_unit_test(sources_are_known_by_name),
		cmocka_unit_test(members_without_a_receive_lose_it),
		cmocka_unit_test(words_tell_groups_apart),
		cmocka_unit_test(no_group_is_refused),
		cmocka_unit_test(strangers_are_not_heard),
		cmocka_unit_test(who_may_not_come_is_not_heard),
		cmocka_unit_test(it_waits_for_its_turn),
		cmocka_unit_test(one_key_in_common_is_enough),
		cmocka_unit_test(receives_by_key_hear_groups),
		cmocka_unit_test(only_so_many_keys_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
