/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The greeting: calls that cross, come twice, come to nothing, or take their time. */
#include "engine/test_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A second call from a node whose first is being greeted is another name's: it is merged, and the first goes on. */
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
	assert_false(first.pkt.flags & (HD_PKT_F_MERGED | HD_PKT_F_REFUSED));
	wire_dial(&second, &s);
	second.id = first.id;
	say_hello(&second);
	wire_hear_kind(&second, HD_PKT_HELLO);
	assert_true(second.pkt.flags & HD_PKT_F_MERGED);
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
			assert_int_equal(hd_ep_open(p.b.node, &(struct hd_ep_attr){ .rx_cq = p.b.cq, .tx_cq = p.b.cq }, &other), 0);
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
			assert_int_equal(hd_send(p.a.ep, other_to, "other", 6, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE | HD_SEND_ACKED)), 0);
			for (int n = 0; n < 2; n++) {
				assert_int_equal(pair_next(&p, &p.a).err, 0);
				assert_int_equal(pair_next(&p, &p.b).err, 0);
			}
			assert_string_equal(in[0], "first");
			assert_string_equal(in[1], "other");
			assert_int_equal(HASH_COUNT(p.a.node->peers), 1);
			hd_dest_put(other_to);
			hd_ep_close(other);
			pair_close(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_call_does_not_disturb_the_first),
		cmocka_unit_test(two_endpoints_of_a_node_are_called_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
