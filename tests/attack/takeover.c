/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Another user of the host wants what A sends to B: by B's name, by B's id, or
 * by the advert of a third.
 */
#include "attack/attack.h"
#include "base/realm.h"
#include "engine/cm/conn.h"
#include "skip.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scene {
	struct side a, b;
	struct side *all[2];
	struct wire *w;
	struct sockaddr_storage b_name;
};

static int setup(void **state)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	s.w = calloc(1, sizeof(*s.w));
	s.w->fd = -1;
	side_open(&s.a);
	side_open(&s.b);
	s.all[0] = &s.a;
	s.all[1] = &s.b;
	assert_int_equal(hd_ep_name(s.b.ep, AF_INET, &s.b_name), 0);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	wire_hang_up(s->w);
	side_close(&s->a);
	side_close(&s->b);
	free(s->w);
	return 0;
}

/* A and B are on one host, and there are others. */
static int setup_hosts(void **state)
{
	attack_hosts_open();
	return setup(state);
}

static int teardown_hosts(void **state)
{
	teardown(state);
	attack_hosts_close();
	return 0;
}

/* A sends one message to B's name; B gets it, and the stranger gets none. */
static void b_gets_it(struct scene *s)
{
	char out[8] = "for B", in[8] = "";
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	if (!s->a.to)
		assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	side_post(&s->b, in, sizeof(in), 1, 0, NULL, in);
	do {
		rc = hd_send(s->a.ep, s->a.to, out, sizeof(out), 1, 0, NULL, HD_SEND_TAGGED | HD_SEND_INJECT);
		attack_poll(s->all, 2, 1);
		assert_true(hd_now_ns() < end);
	} while (rc == -EAGAIN);
	assert_int_equal(rc, 0);
	while (!hd_cq_peek(s->b.cq)) {
		attack_poll(s->all, 2, 1);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(hd_cq_peek(s->b.cq)->err, 0);
	hd_cq_pop(s->b.cq);
	assert_string_equal(in, "for B");
}

static void a_name_that_another_user_has_not(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	attack_greet(s->w, &s->a, STRANGER, NULL);
	attack_announce(s->w, 3, &s->b_name);
	attack_poll(s->all, 2, 5);
	b_gets_it(s);
}

/* The same when A wants B's name already, and nothing has been said to it yet. */
static void a_name_that_is_wanted(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	attack_greet(s->w, &s->a, STRANGER, NULL);
	attack_announce(s->w, 3, &s->b_name);
	attack_poll(s->all, 2, 5);
	b_gets_it(s);
}

/* What a user listens at himself is believed: peers find each other by what they announce. */
static void ones_own_name_is_believed(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage own;
	struct hd_dest *dest;
	int fd;

	attack_needs_root();
	fd = attack_listen(STRANGER, &own);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &dest), 0);
	attack_greet(s->w, &s->a, STRANGER, NULL);
	attack_announce(s->w, 3, &own);
	attack_poll(s->all, 2, 5);
	assert_int_equal(dest->state, HD_DEST_BOUND);
	hd_dest_put(dest);
	close(fd);
}

/* He calls himself as B does, before A has heard of B: B is another all the same. */
static void an_id_that_is_anothers(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	attack_greet(s->w, &s->a, STRANGER, hd_node_id(s->b.node));
	attack_announce(s->w, 3, &s->b_name);
	attack_poll(s->all, 2, 5);
	b_gets_it(s);
}

/* And B can call A, who knows the stranger by B's id. */
static void an_id_does_not_keep_its_owner_out(void **state)
{
	struct scene *s = *state;
	struct scene turned = *s;

	attack_needs_root();
	attack_greet(s->w, &s->a, STRANGER, hd_node_id(s->b.node));
	attack_poll(s->all, 2, 5);
	turned.a = s->b;
	turned.b = s->a;
	assert_int_equal(hd_ep_name(s->a.ep, AF_INET, &turned.b_name), 0);
	b_gets_it(&turned);
	s->b.to = turned.a.to;
}

/* All that was said is in the other end's socket, and the kernel forgets whose this one was. */
static void hang_up_behind_it(struct wire *w)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	uint64_t end = hd_now_ns() + PATIENCE;

	assert_int_equal(shutdown(w->fd, SHUT_WR), 0);
	while (info.tcpi_state != TCP_FIN_WAIT2) {
		assert_int_equal(getsockopt(w->fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
		assert_true(hd_now_ns() < end);
	}
	wire_hang_up(w);
}

/* A message as if from B, whose name he says is his; A listens to nobody yet. */
static void speaks_as_b(struct scene *s)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO }, use = { .kind = HD_PKT_USE };
	struct hd_hello h;
	struct hd_pkt pkt;

	s->w->node = s->b.node;
	wire_hello(s->w, &h);
	wire_say(s->w, &hello, &h, sizeof(h));
	wire_say(s->w, &use, NULL, 0);
	attack_announce(s->w, 3, &s->b_name);
	s->w->answer.op = s->a.ep->gen;
	s->w->answer.imm = s->a.ep->index;
	pkt = wire_eager(s->w, 1, 0);
	pkt.src = 3;
	wire_say(s->w, &pkt, "from B?", 8);
}

/*
 * Of a socket that its process has closed the kernel says that it is root's, as we are: what
 * it has said is nobody's.
 */
static void a_name_of_who_has_hung_up(void **state)
{
	struct scene *s = *state;
	char in[8];

	attack_needs_root();
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	side_post(&s->a, in, sizeof(in), 1, 0, NULL, in);
	attack_dial(s->w, &s->a, STRANGER);
	speaks_as_b(s);
	hang_up_behind_it(s->w);
	attack_poll(s->all, 1, 20);
	assert_null(hd_cq_peek(s->a.cq));
	b_gets_it(s);
}

/* He calls from a port that he has taken. */
static void dial_from_a_port(struct wire *w, struct side *s, struct sockaddr_in *port)
{
	socklen_t size = sizeof(*port);
	struct sockaddr_storage name;
	const int one = 1;

	*port = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(hd_ep_name(s->ep, AF_INET, &name), 0);
	assert_true(attack_as(STRANGER));
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(attack_as(0));
	assert_int_equal(setsockopt(w->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(w->fd, (struct sockaddr *)port, size), 0);
	assert_int_equal(getsockname(w->fd, (struct sockaddr *)port, &size), 0);
	assert_true(!connect(w->fd, (struct sockaddr *)&name, size) || errno == EINPROGRESS);
}

/* One of ours listens there since. */
static int listen_in_his_place(const struct sockaddr_in *port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int one = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)port, sizeof(*port)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/*
 * He hangs up, and the kernel has forgotten his socket: as it does after a second (TCP_LINGER2)
 * or a minute, but at once.
 */
static void be_forgotten(struct wire *w)
{
	const int one = 1;

	skip_unless(setsockopt(w->fd, IPPROTO_TCP, TCP_REPAIR, &one, sizeof(one)) == 0,
		    "run with CAP_NET_ADMIN: only so a socket can be forgotten at once");
	wire_hang_up(w);
}

/*
 * One of ours has his port since, and is what the kernel finds when it is asked
 * whose the connection is.
 */
static void a_name_of_who_has_left_his_port_to_us(void **state)
{
	struct scene *s = *state;
	struct sockaddr_in port;
	char in[8];
	int fd;

	attack_needs_root();
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	side_post(&s->a, in, sizeof(in), 1, 0, s->a.to, in);
	dial_from_a_port(s->w, &s->a, &port);
	speaks_as_b(s);
	be_forgotten(s->w);
	fd = listen_in_his_place(&port);
	attack_poll(s->all, 1, 20);
	assert_null(hd_cq_peek(s->a.cq));
	b_gets_it(s);
	close(fd);
}

/*
 * Whose he is the kernel does not tell, and neither whose the name is, for it is nobody's yet:
 * that does not make it his.
 */
static void a_name_that_nobody_has_yet(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage name;
	struct sockaddr_in port;
	struct hd_dest *dest;

	attack_needs_root();
	close(attack_listen(0, &name));
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&name, &dest), 0);
	dial_from_a_port(s->w, &s->a, &port);
	s->b_name = name;
	speaks_as_b(s);
	be_forgotten(s->w);
	for (struct settling t = settling(20); settling_on(&t);) {
		hd_node_poll(s->a.node);
		assert_int_not_equal(dest->state, HD_DEST_BOUND);
	}
	hd_dest_put(dest);
}

static uint32_t answered(const struct scene *s)
{
	return hd_events(s->a.node)->answered;
}

/*
 * A has accepted a call of B's, and waits for him: who calls himself as B does ends that
 * neither by a word nor by going.
 */
static void a_call_that_is_anothers(void **state)
{
	const struct hd_ep_attr attr = { .type = HD_EP_MSG };
	struct hd_pkt leave = { .kind = HD_PKT_LEAVE, .src = 5 };
	const struct hd_pkt gone = { .kind = HD_PKT_GONE, .src = 5, .gen = 1 };
	struct scene *s = *state;
	struct hd_request r = { .node = *hd_node_id(s->b.node),
				.realm = hd_realm_own(),
				.from = { .index = 5, .gen = 1 } };
	struct hd_accept answer;
	struct hd_ep *ep;

	attack_needs_root();
	assert_int_equal(hd_ep_open(s->a.node, &attr, &ep), 0);
	assert_int_equal(hd_conn_expect(ep, &r, &answer), 0);
	attack_greet(s->w, &s->a, STRANGER, hd_node_id(s->b.node));
	leave.dst = ep->index;
	leave.gen = ep->gen;
	wire_say(s->w, &leave, NULL, 0);
	wire_settle(s->w);
	assert_int_equal(answered(s), 1);
	wire_say(s->w, &gone, NULL, 0);
	wire_settle(s->w);
	assert_int_equal(answered(s), 1);
	wire_hang_up(s->w);
	until_alone(&s->a);
	assert_int_equal(answered(s), 1);
	hd_ep_close(ep);
}

/*
 * A stranger whom A calls passes B's advert on, as if it were his, or calls himself as B does as
 * well: what A has to say is not for B.
 */
static void passes_on(struct scene *s, unsigned uid, bool as_b)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO, .op = 1, .imm = 0 };
	struct sockaddr_storage own;
	struct hd_hello b, mine;
	struct wire *through = calloc(1, sizeof(*through));
	struct hd_dest *dest;
	char in[32];
	int fd;

	/* B has told its advert to the stranger, and A is greeting B at this moment */
	wire_greet(through, &s->b);
	b = through->theirs;
	fd = attack_listen(uid, &own);
	side_post(&s->b, in, sizeof(in), 0, UINT64_MAX, NULL, in);
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&own, &dest), 0);
	assert_int_equal(hd_send(s->a.ep, dest, "for the stranger", 17, 1, 0, NULL,
				 HD_SEND_TAGGED | HD_SEND_INJECT),
			 0);
	attack_accept(s->w, fd, uid, s->a.node);
	wire_hear_kind(s->w, HD_PKT_HELLO);
	memcpy(&mine, s->w->payload, sizeof(mine));
	assert_int_equal(hd_dest_get(s->a.node, (struct sockaddr *)&s->b_name, &s->a.to), 0);
	assert_int_equal(hd_dest_connect(s->a.to), 0);
	if (as_b)
		s->w->id = b.id;
	wire_hello(s->w, &mine);
	memcpy(mine.advert, b.advert, sizeof(mine.advert));
	mine.advert_len = b.advert_len;
	wire_say(s->w, &hello, &mine, sizeof(mine));
	attack_poll(s->all, 2, 50);
	assert_null(hd_cq_peek(s->b.cq));
	wire_hear_kind(s->w, HD_PKT_USE); /* over the stranger's own link */
	wire_hear_kind(s->w, HD_PKT_EAGER);
	assert_string_equal((const char *)s->w->payload, "for the stranger");
	wire_hang_up(through);
	wire_hang_up(s->w);
	attack_poll(s->all, 2, 5);
	hd_dest_put(dest);
	close(fd);
	free(through);
}

static void an_advert_that_is_anothers(void **state)
{
	passes_on(*state, 0, false);
}

static void an_advert_and_an_id_that_are_anothers(void **state)
{
	attack_needs_root();
	passes_on(*state, STRANGER, true);
}

/* He is on another host, which B has answered as any. */
static void an_advert_of_this_host_from_another(void **state)
{
	attack_needs_hosts();
	attack_from(0);
	passes_on(*state, 0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_that_another_user_has_not, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_that_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(ones_own_name_is_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_that_is_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_does_not_keep_its_owner_out, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_of_who_has_hung_up, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_of_who_has_left_his_port_to_us, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_that_nobody_has_yet, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_that_is_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(an_advert_that_is_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(an_advert_and_an_id_that_are_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(an_advert_of_this_host_from_another, setup_hosts,
						teardown_hosts),
	};

	return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
