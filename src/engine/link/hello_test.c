/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The greeting: calls that cross, come twice, come to nothing, or take their time. */
#include "engine/test/test_wire.h"
#include "said.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool full; /* there is room for nothing that somebody has us keep */

bool __real_hd_budget_keep(struct hd_budget *budget, uint32_t units);
bool __wrap_hd_budget_keep(struct hd_budget *budget, uint32_t units);
bool __wrap_hd_budget_keep(struct hd_budget *budget, uint32_t units)
{
	return !full && __real_hd_budget_keep(budget, units);
}

static void say_hello(struct wire *w)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO };
	struct hd_hello h;

	wire_hello(w, &h);
	wire_say(w, &hello, &h, sizeof(h));
}

static void say_use(struct wire *w)
{
	const struct hd_pkt use = { .kind = HD_PKT_USE };

	wire_say(w, &use, NULL, 0);
}

/*
 * A second call from a node whose first is being greeted is another name's: it is
 * merged, and the first goes on.
 */
static void second_call_does_not_disturb_the_first(void **state)
{
	struct wire first, second;
	struct hd_pkt pkt;
	struct side s;
	char in[8];

	side_open(&s);
	wire_dial(&first, &s);
	say_hello(&first);
	wire_hear_kind(&first, HD_PKT_HELLO);
	first.answer = first.pkt;
	assert_false(first.pkt.flags & (HD_HELLO_F_MERGED | HD_HELLO_F_REFUSED));
	wire_dial(&second, &s);
	second.id = first.id;
	say_hello(&second);
	wire_hear_kind(&second, HD_PKT_HELLO);
	assert_true(second.pkt.flags & HD_HELLO_F_MERGED);
	wire_hang_up(&second);
	say_use(&first);
	wire_hear_kind(&first, HD_PKT_ANNOUNCE);
	side_post(&s, in, sizeof(in), 1, 0, NULL, in);
	pkt = wire_eager(&first, 1, 0);
	wire_say(&first, &pkt, "hello", 6);
	wire_settle(&first);
	assert_int_equal(hd_cq_peek(s.cq)->err, 0);
	hd_cq_pop(s.cq);
	wire_hang_up(&first);
	side_close(&s);
}

/*
 * Where that cannot be kept for him he is not greeted to the end, or he would
 * take the next one for it.
 */
static void closes_unheard_while_a_caller_is_greeted(void **state)
{
	struct hd_ep *other;
	struct wire w;
	struct side s;

	side_open(&s);
	assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .rx_cq = s.cq, .tx_cq = s.cq }, &other), 0);
	wire_dial(&w, &s);
	say_hello(&w);
	wire_hear_kind(&w, HD_PKT_HELLO);
	assert_int_equal(hd_links_inspect(s.node).peers, 1);
	full = true;
	hd_ep_close(other);
	full = false;
	wire_settle(&w);
	assert_int_equal(hd_links_inspect(s.node).peers, 0);
	wire_hang_up(&w);
	side_close(&s);
}

/*
 * An endpoint closes, and another gets its index, while somebody is greeted who may have been told
 * of it: he hears of that first.
 */
static void closes_while_a_caller_is_greeted(void **state)
{
	struct hd_ep *other, *next;
	struct wire w;
	struct side s;
	uint32_t index;
	uint16_t gen;

	side_open(&s);
	assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .rx_cq = s.cq, .tx_cq = s.cq }, &other), 0);
	wire_dial(&w, &s);
	say_hello(&w);
	wire_hear_kind(&w, HD_PKT_HELLO);
	index = other->index;
	gen = other->gen;
	hd_ep_close(other);
	assert_int_equal(hd_ep_open(s.node, &(struct hd_ep_attr){ .rx_cq = s.cq, .tx_cq = s.cq }, &next), 0);
	say_use(&w);
	do
		assert_true(wire_hear(&w));
	while (w.pkt.kind != HD_PKT_GONE && w.pkt.kind != HD_PKT_ANNOUNCE);
	assert_int_equal(w.pkt.kind, HD_PKT_GONE);
	assert_int_equal(w.pkt.src, index);
	assert_int_equal(w.pkt.gen, gen);
	wire_hear_kind(&w, HD_PKT_ANNOUNCE);
	wire_hang_up(&w);
	hd_ep_close(next);
	side_close(&s);
}

/* Two endpoints of one node are called at the same time: both messages arrive, over one link. */
static void two_endpoints_of_a_node_are_called_at_once(void **state)
{
	struct sockaddr_storage name;
	struct hd_dest *other_to;
	struct hd_ep *other;
	struct pair p;
	char in[2][8];

	EACH_TRANSPORT(t)
	for (int i = 0; i < 30; i++) {
		pair_open(&p, t);
		assert_int_equal(hd_ep_open(p.b.node,
					    &(struct hd_ep_attr){ .rx_cq = p.b.cq, .tx_cq = p.b.cq }, &other),
				 0);
		hd_ep_name(other, AF_UNSPEC, &name);
		assert_int_equal(hd_dest_get(p.a.node, (void *)&name, &other_to), 0);
		side_post(&p.b, in[0], 8, 1, 0, NULL, in[0]);
		assert_int_equal(hd_recv(other,
					 &(struct hd_recv_args){ .iov = &(struct iovec){ in[1], 8 },
								 .count = 1,
								 .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE,
								 .tag = 1 }),
				 0);
		pair_push(&p, &p.a, "first", 6, 1, HD_SEND_COMPLETE | HD_SEND_ACKED);
		for (int turn = 0; turn < i; turn++)
			hd_node_poll(turn % 3 ? p.a.node : p.b.node);
		assert_int_equal(hd_send(p.a.ep, other_to, "other", 6, 1, 0, NULL,
					 TAGGED(HD_SEND_COMPLETE | HD_SEND_ACKED)),
				 0);
		for (int n = 0; n < 2; n++) {
			assert_int_equal(pair_next(&p, &p.a).err, 0);
			assert_int_equal(pair_next(&p, &p.b).err, 0);
		}
		assert_string_equal(in[0], "first");
		assert_string_equal(in[1], "other");
		assert_int_equal(hd_links_inspect(p.a.node).peers, 1);
		hd_dest_put(other_to);
		hd_ep_close(other);
		pair_close(&p);
	}
}

/* ---- time ------------------------------------------------------------------------------------ */

static void poll_for(struct hd_node *node, int ms)
{
	uint64_t end = hd_now_ns() + ms * HD_NS_PER_MS;

	while (hd_now_ns() < end)
		hd_node_poll(node);
}

static bool is_live(const struct hd_node *node)
{
	return hd_links(node)->peers && hd_peer_inspect(hd_links(node)->peers).state == HD_PEER_LIVE;
}

static void message_arrives(struct pair *p)
{
	char in[8];

	side_post(&p->b, in, sizeof(in), 1, 0, NULL, in);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	assert_int_equal(pair_next(p, &p->a).err, 0);
	assert_string_equal(in, "hello");
}

/*
 * A program computes for longer than the time-out, after the answer to its call has come
 * but before it could look.
 */
static void caller_that_computes_does_not_time_out(void **state)
{
	struct pair p;

	setenv("HEDDLE_CONNECT_TIMEOUT", "100", 1);
	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		pair_push(&p, &p.a, "hello", 6, 1, HD_SEND_COMPLETE);
		poll_for(p.a.node, 20); /* long enough for the link to be left to epoll */
		poll_for(p.b.node, 10);
		assert_non_null(hd_links(p.b.node)->peers);
		assert_null(hd_links(p.a.node)->peers);
		usleep(120000); /* it computes: this is what the test is about */
		message_arrives(&p);
		pair_close(&p);
	}
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
}

/* Both stood still for longer than the time-out, before either had heard of the other. */
static void a_time_without_progress_does_not_count(void **state)
{
	struct pair p;

	setenv("HEDDLE_CONNECT_TIMEOUT", "300", 1);
	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		pair_push(&p, &p.a, "hello", 6, 1, HD_SEND_COMPLETE);
		usleep(400000);		/* likewise */
		poll_for(p.a.node, 50); /* time is up, and the other end has not been asked yet */
		message_arrives(&p);
		pair_close(&p);
	}
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
}

/*
 * The called program computes, while the caller has chosen its link already. False: it took longer
 * than the time-out to get there.
 */
static bool called_computes(const char *transport, int ms)
{
	char text[16];
	struct pair p;

	snprintf(text, sizeof(text), "%d", ms);
	setenv("HEDDLE_CONNECT_TIMEOUT", text, 1);
	pair_open(&p, transport);
	pair_push(&p, &p.a, "hello", 6, 1, HD_SEND_COMPLETE | HD_SEND_ACKED);
	while (!is_live(p.a.node) && !hd_cq_peek(p.a.cq)) {
		poll_for(p.a.node, 1);
		if (!is_live(p.a.node))
			hd_node_poll(p.b.node);
	}
	if (hd_cq_peek(p.a.cq)) {
		pair_close(&p);
		return false;
	}
	assert_false(is_live(p.b.node));
	poll_for(p.a.node, 5 * ms / 2);
	message_arrives(&p);
	pair_settle(&p, 10);
	assert_int_equal(hd_links_inspect(p.a.node).links, 1);
	assert_int_equal(hd_links_inspect(p.b.node).links, 1);
	pair_close(&p);
	return true;
}

static void called_that_computes_loses_nothing(void **state)
{
	EACH_TRANSPORT(t)
	{
		int ms = 100;

		while (!called_computes(t, ms))
			ms *= 2;
	}
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
}

/* Somebody takes the call and says nothing: that is the time-out's business. */
static void silence_times_out(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	uint64_t begin, ms;
	struct pair p;

	setenv("HEDDLE_CONNECT_TIMEOUT", "100", 1);
	assert_int_equal(bind(fd, (void *)&at, len), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (void *)&at, &len), 0);
	pair_open(&p, "auto");
	hd_dest_put(p.a.to);
	assert_int_equal(hd_dest_get(p.a.node, (void *)&at, &p.a.to), 0);
	begin = hd_now_ns();
	pair_push(&p, &p.a, "hello", 6, 1, HD_SEND_COMPLETE);
	assert_int_equal(pair_next(&p, &p.a).err, HD_S_TIMEOUT);
	ms = (hd_now_ns() - begin) / HD_NS_PER_MS;
	assert_in_range(ms, 100, 30000);
	pair_close(&p);
	close(fd);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
}

/* ---- ways that are barred -------------------------------------------------------------------- */

static void open_with(struct side *s, const char *transport)
{
	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open(s);
}

/*
 * One end takes shared memory alone, the other cannot: whoever calls, it is an
 * error and not a way round.
 */
static void shm_alone_means_shm_alone(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair p = { 0 };
		struct hd_cqe e;

		open_with(&p.a, i ? "shm" : "tcp");
		open_with(&p.b, i ? "tcp" : "shm");
		side_names(&p.a, &p.b);
		pair_push(&p, &p.a, "hello", 6, 1, HD_SEND_COMPLETE | HD_SEND_ACKED);
		e = pair_next(&p, &p.a);
		assert_int_equal(e.err, i ? HD_S_UNREACHABLE : HD_S_LOST);
		assert_null(hd_cq_peek(p.b.cq));
		pair_close(&p);
	}
}

#define JOIN_NAME (2 + 8) /* within an advert of shared memory: docs/shm-layout.md */

/* Somebody takes the call of s, and says that he is to be joined where nobody listens. */
static void answer_with_no_join_socket(struct side *s, struct wire *w)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	struct hd_hello h;

	assert_int_equal(bind(fd, (void *)&at, len), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (void *)&at, &len), 0);
	assert_int_equal(hd_dest_get(s->node, (void *)&at, &s->to), 0);
	assert_int_equal(
		hd_send(s->ep, s->to, "hello", 6, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE | HD_SEND_INJECT)), 0);
	*w = (struct wire){ .node = s->node, .fd = accept(fd, NULL, NULL), .id.word = { 1, 2 } };
	close(fd);
	assert_true(w->fd >= 0);
	assert_int_equal(fcntl(w->fd, F_SETFL, O_NONBLOCK), 0);
	wire_hear_kind(w, HD_PKT_HELLO);
	memcpy(&w->theirs, w->payload, sizeof(w->theirs));
	wire_hello(w, &h);
	memcpy(h.advert, w->theirs.advert, sizeof(h.advert));
	h.advert_len = w->theirs.advert_len;
	assert_int_equal(h.advert[0], HD_TNUM_SHM);
	h.advert[JOIN_NAME] ^= 1;
	wire_say(w, &hello, &h, sizeof(h));
}

/*
 * He has become another program, or is behind a translation of addresses: with shared memory alone
 * that is said, else the first link is taken.
 */
static void nobody_is_at_the_join_socket(void **state)
{
	static const char *const ways[] = { "shm", "auto" };

	for (int i = 0; i < 2; i++) {
		struct wire w;
		struct side s;

		open_with(&s, ways[i]);
		said_begin();
		answer_with_no_join_socket(&s, &w);
		if (i) {
			wire_hear_kind(&w, HD_PKT_USE);
			assert_false(said("nothing but shared memory", ""));
		} else {
			while (!hd_cq_peek(s.cq))
				hd_node_poll(s.node);
			assert_int_equal(hd_cq_peek(s.cq)->err, HD_S_REFUSED);
			hd_cq_pop(s.cq);
			assert_true(said("nothing but shared memory", "become another program"));
		}
		said_end();
		wire_hang_up(&w);
		side_close(&s);
	}
	unsetenv("HEDDLE_TRANSPORT");
}

/* What ends a link for want of something here says what to do about that. */
static void a_link_that_ends_says_what_is_short(void **state)
{
	static const int errors[] = { -EMFILE, -ENOMEM, -EPROTO };
	static const char *const words[] = { "ulimit -n", "give this process more memory",
					     "give this process more memory" };

	for (int i = 0; i < 3; i++) {
		struct side s;
		struct wire w;

		side_open(&s);
		wire_greet(&w, &s);
		said_begin();
		if (errors[i] == -EPROTO)
			hd_link_without_memory(TAILQ_FIRST(&hd_links(s.node)->links), "a packet");
		else
			hd_link_down(TAILQ_FIRST(&hd_links(s.node)->links), errors[i], "it is short");
		said_end();
		assert_true(said("closed: ", words[i]));
		wire_hang_up(&w);
		side_close(&s);
	}
}

/* A caller whom this node has no room for hears at which end that is, and what bounds it. */
static void who_finds_no_room_is_told_of_it(void **state)
{
	struct pair p = { 0 };

	setenv("HEDDLE_UNEXPECTED_MAX", "64K", 1);
	open_with(&p.b, "tcp");
	unsetenv("HEDDLE_UNEXPECTED_MAX");
	open_with(&p.a, "tcp");
	side_names(&p.a, &p.b);
	hd_links(p.b.node)->window_units = hd_links(p.b.node)->window_max;
	said_begin();
	pair_push(&p, &p.a, "hello", 6, 1, HD_SEND_COMPLETE);
	(void)pair_next(&p, &p.a);
	said_end();
	assert_true(said("the other end has no room", "raise HEDDLE_UNEXPECTED_MAX or ulimit -n there"));
	assert_true(said("cannot be reached", "raise HEDDLE_UNEXPECTED_MAX"));
	hd_links(p.b.node)->window_units = 0;
	pair_close(&p);
}

/* ---- closing in the middle ------------------------------------------------------------------- */

/* The node closes at every step of the greeting, on either side. */
static void node_closes_within_the_greeting(void **state)
{
	EACH_TRANSPORT(t)
	for (int i = 0; i < 60; i++) {
		struct pair p;

		pair_open(&p, t);
		pair_push(&p, &p.a, "hello", 6, 1, 0);
		for (int turn = 0; turn < i / 2; turn++) {
			poll_for(turn % 2 ? p.a.node : p.b.node, 0);
			hd_node_poll(turn % 2 ? p.a.node : p.b.node);
			usleep(20);
		}
		side_close(i % 2 ? &p.a : &p.b);
		side_close(i % 2 ? &p.b : &p.a);
	}
}

/* It closes while a destination waits to be tried again. */
static void node_closes_between_two_tries(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	struct side s;

	assert_int_equal(bind(fd, (void *)&at, len), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (void *)&at, &len), 0);
	side_open(&s);
	assert_int_equal(hd_dest_get(s.node, (void *)&at, &s.to), 0);
	assert_int_equal(
		hd_send(s.ep, s.to, "hello", 6, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE | HD_SEND_INJECT)), 0);
	close(accept(fd, NULL, NULL));
	while (!s.to->retry.due)
		hd_node_poll(s.node);
	side_close(&s);
	close(fd);
}

/* ---- who goes before he is greeted ----------------------------------------------------------- */

static struct hd_node_id joins;

static bool somebody_joins(struct hd_port *port, const struct hd_node_id *id)
{
	return !memcmp(id, &joins, sizeof(joins));
}

/* Of another user, who calls himself as one of ours that is joining: he can't be that one. */
static void who_is_of_another_user_is_not_waited_for(void **state)
{
	struct hd_transport tells;
	struct hd_port *port;
	struct wire w;
	struct side s;

	skip_unless(geteuid() == 0, "run as root: only root can be another user");
	side_open(&s);
	port = hd_core(s.node)->ports[0];
	tells = *port->transport;
	tells.joining = somebody_joins;
	port->transport = &tells;
	assert_int_equal(seteuid(65534), 0);
	wire_dial(&w, &s);
	assert_int_equal(seteuid(0), 0);
	joins = w.id;
	say_hello(&w);
	wire_hear_kind(&w, HD_PKT_HELLO);
	assert_non_null(hd_peer_find(s.node, &w.id, hd_realm_of_user(65534)));
	wire_hang_up(&w);
	for (int i = 0; i < 2000; i++)
		hd_node_poll(s.node);
	assert_null(hd_peer_find(s.node, &w.id, hd_realm_of_user(65534)));
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_of_another_user_is_not_waited_for),
		cmocka_unit_test(second_call_does_not_disturb_the_first),
		cmocka_unit_test(closes_while_a_caller_is_greeted),
		cmocka_unit_test(closes_unheard_while_a_caller_is_greeted),
		cmocka_unit_test(two_endpoints_of_a_node_are_called_at_once),
		cmocka_unit_test(caller_that_computes_does_not_time_out),
		cmocka_unit_test(a_time_without_progress_does_not_count),
		cmocka_unit_test(called_that_computes_loses_nothing),
		cmocka_unit_test(silence_times_out),
		/* before others that say so: a line a second */
		cmocka_unit_test(nobody_is_at_the_join_socket),
		cmocka_unit_test(shm_alone_means_shm_alone),
		cmocka_unit_test(a_link_that_ends_says_what_is_short),
		cmocka_unit_test(who_finds_no_room_is_told_of_it),
		cmocka_unit_test(node_closes_within_the_greeting),
		cmocka_unit_test(node_closes_between_two_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
