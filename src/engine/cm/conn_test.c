/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections: a caller in one node, a service in a second, the endpoint that accepts in a third.
 */
#include "engine/test/test_rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- coming about ---------------------------------------------------------------------------- */

static void both_ends_learn(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct sockaddr_storage from, peer, own;
		struct rig r;
		struct got g;

		rig_open(&r, transport);
		call(&r, "who is there");
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_REQUEST);
		assert_string_equal(g.data, "who is there");
		assert_int_equal(g.word, 77);
		hd_request_from(g.request, &from);
		assert_int_equal(hd_ep_name(r.a.ep, AF_INET, &own), 0);
		assert_int_equal(((struct sockaddr_in *)&from)->sin_port,
				 ((struct sockaddr_in *)&own)->sin_port);
		assert_int_equal(hd_ep_accept(r.b.ep, g.request, &(struct hd_cm_data){ "me", 2, 78 }), 0);
		g = next(&r, r.ea);
		assert_int_equal(g.code, HD_EV_UP);
		assert_ptr_equal(g.owner, &r.a);
		assert_string_equal(g.data, "me");
		assert_int_equal(g.word, 78);
		g = next(&r, r.eb);
		assert_int_equal(g.code, HD_EV_UP);
		assert_ptr_equal(g.owner, &r.b);
		assert_int_equal(g.len, 0);
		assert_int_equal(hd_ep_peer_name(r.b.ep, &peer), 0);
		assert_memory_equal(&peer, &from, sizeof(struct sockaddr_in));
		assert_int_equal(hd_ep_peer_name(r.a.ep, &peer), 0);
		assert_memory_equal(&peer, &r.name, sizeof(struct sockaddr_in));
		rig_close(&r);
	}
}

static void data_passes(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 5000, 40000, 300000, 3000000 };

	EACH_TRANSPORT(transport)
	{
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			passes(&r, &r.a, &r.b, sizes[i]);
			passes(&r, &r.b, &r.a, sizes[i]);
		}
		rig_close(&r);
	}
}

/* Receives that were posted before there was a connection are there for the first message. */
static void receives_come_first(void **state)
{
	EACH_TRANSPORT(transport)
	{
		char in[2][16] = { "", "" };
		struct rig r;

		rig_open(&r, transport);
		assert_int_equal(post(&r.a, in[0], 16), 0);
		assert_int_equal(post(&r.b, in[1], 16), 0);
		assert_int_equal(say(&r.a, "early", 6), -ENOTCONN);
		join(&r);
		assert_int_equal(say(&r.a, "to b", 5), 0);
		assert_int_equal(say(&r.b, "to a", 5), 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(completion(&r, &r.a).err, 0);
			assert_int_equal(completion(&r, &r.b).err, 0);
		}
		assert_string_equal(in[0], "to a");
		assert_string_equal(in[1], "to b");
		rig_close(&r);
	}
}

/*
 * A caller that gives a time of its own is not answered in it, and does not wait as
 * long as the setting says.
 */
static void own_time(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_connect_args args = { .timeout_ms = 100 };
		uint64_t before = hd_now_ns();
		struct got got;
		struct rig r;

		rig_open(&r, transport);
		args.to = (struct sockaddr *)&r.name;
		args.space = r.space;
		args.number = r.number;
		assert_int_equal(hd_ep_connect(r.a.ep, &args), 0);
		(void)called(&r);
		got = next(&r, r.ea);
		assert_int_equal(got.code, HD_EV_UP);
		assert_int_equal(got.err, ETIMEDOUT);
		assert_true(hd_now_ns() - before >= 100 * HD_NS_PER_MS);
		rig_close(&r);
	}
}

/* Whoever leaves may say a word of its front's own. */
static void last_words(void **state)
{
	EACH_TRANSPORT(transport)
	{
		for (uint64_t word = 0; word < 3; word++) {
			const struct hd_cm_data why = { .word = word << 40 };
			struct got got;
			struct rig r;

			rig_open(&r, transport);
			join(&r);
			assert_int_equal(
				word ? hd_ep_disconnect(r.a.ep, &why) : hd_ep_disconnect(r.a.ep, NULL), 0);
			got = next(&r, r.eb);
			assert_int_equal(got.code, HD_EV_DOWN);
			assert_true(got.word == word << 40);
			assert_int_equal(hd_ep_disconnect(r.b.ep, &why), -ENOTCONN);
			rig_close(&r);
		}
	}
}

/* An alarm for when a connection is over; none when the endpoint is closed before. */
static void alarms(void **state)
{
	struct rig r;

	rig_open(&r, "shm");
	assert_int_equal(hd_ep_alarm(r.a.ep, 1), -ENOTCONN);
	join(&r);
	assert_int_equal(hd_ep_alarm(r.a.ep, 1), -ENOTCONN);
	assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), 0);
	assert_int_equal(next(&r, r.eb).code, HD_EV_DOWN);
	assert_int_equal(hd_ep_alarm(r.a.ep, 5), 0);
	assert_int_equal(hd_ep_alarm(r.b.ep, 5), 0);
	end_close_ep(&r.b);
	assert_int_equal(next(&r, r.ea).code, HD_EV_ALARM);
	settle(&r, 10);
	assert_int_equal(hd_evq_wait(r.eb, 0, false), -EAGAIN);
	rig_close(&r);
}

/* One node may hold the caller, the service and the acceptor. */
static void one_node_is_enough(void **state)
{
	struct hd_node *own;
	struct end b;
	struct rig r;

	rig_open(&r, "shm");
	hd_service_close(r.service);
	own = r.server;
	r.server = r.a.node;
	service_open(&r);
	b = r.b;
	r.b = (struct end){ .node = r.a.node };
	assert_int_equal(hd_cq_open(r.b.node, &(struct hd_cq_attr){ .size = 64 }, &r.b.cq), 0);
	end_open_ep(&r.b, r.eb);
	join(&r);
	passes(&r, &r.a, &r.b, 100);
	passes(&r, &r.b, &r.a, 500000);
	end_close_ep(&r.b);
	assert_int_equal(hd_cq_close(r.b.cq), 0);
	hd_service_close(r.service);
	r.service = NULL;
	r.b = b;
	r.server = own;
	rig_close(&r);
}

/* ---- parting --------------------------------------------------------------------------------- */

static void shutdown_flushes(void **state)
{
	EACH_TRANSPORT(transport)
	{
		static char big[1 << 20];
		char in[4][16];
		struct rig r;
		struct hd_cqe c;

		rig_open(&r, transport);
		join(&r);
		for (int i = 0; i < 4; i++)
			assert_int_equal(post(i < 2 ? &r.a : &r.b, in[i], 16), 0);
		assert_int_equal(say(&r.a, big, sizeof(big)), 0); /* is only promised */
		assert_int_equal(say(&r.b, "in flight", 10), 0);
		assert_int_equal(completion(&r, &r.b).err, 0);
		assert_int_equal(hd_ep_disconnect(r.b.ep, NULL), 0);
		for (int i = 2; i < 4; i++) { /* all of it has been written */
			c = *hd_cq_peek(r.b.cq);
			hd_cq_pop(r.b.cq);
			assert_int_equal(c.err, HD_S_CANCELLED);
			assert_ptr_equal(c.ctx, in[i]);
		}
		c = completion(&r, &r.a);
		assert_int_equal(c.err, 0); /* what was sent before it left is here */
		assert_ptr_equal(c.ctx, in[0]);
		assert_int_equal(next(&r, r.ea).code, HD_EV_DOWN);
		for (int i = 0; i < 2; i++) /* the send and the other receive */
			assert_int_equal(completion(&r, &r.a).err, HD_S_CANCELLED);
		assert_int_equal(say(&r.a, "x", 1), -ENOTCONN);
		assert_int_equal(say(&r.b, "x", 1), -ENOTCONN);
		assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), -ENOTCONN);
		none(&r, r.eb);
		rig_close(&r);
	}
}

/*
 * Whole messages that wait when the other end leaves may still be received; then
 * there is nothing to wait for.
 */
static void what_waits_stays(void **state)
{
	EACH_TRANSPORT(transport)
	{
		char in[16] = "";
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		assert_int_equal(say(&r.a, "farewell", 9), 0);
		end_close_ep(&r.a);
		assert_int_equal(next(&r, r.eb).code, HD_EV_DOWN);
		assert_int_equal(post(&r.b, in, 16), 0);
		assert_int_equal(completion(&r, &r.b).err, 0);
		assert_string_equal(in, "farewell");
		assert_int_equal(post(&r.b, in, 16), -ENOTCONN);
		rig_close(&r);
	}
}

static void both_leave_at_once(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		assert_int_equal(hd_ep_disconnect(r.a.ep, NULL), 0);
		assert_int_equal(hd_ep_disconnect(r.b.ep, NULL), 0);
		none(&r, r.ea);
		none(&r, r.eb);
		rig_close(&r);
	}
}

/*
 * A message is being copied when one end leaves: whichever it is, both ends get their
 * errors and nothing hangs.
 */
static void leaves_in_the_middle(void **state)
{
	enum {
		LEN = 32 << 20
	};

	EACH_TRANSPORT(transport)
	for (int who = 0; who < 2; who++) {
		char *out = calloc(1, LEN), *in = calloc(1, LEN);
		struct hd_cqe c;
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		assert_int_equal(post(&r.b, in, LEN), 0);
		assert_int_equal(say(&r.a, out, LEN), 0);
		for (int i = 0; i < 6; i++)
			turn(&r);
		assert_int_equal(hd_ep_disconnect(who ? r.a.ep : r.b.ep, NULL), 0);
		assert_int_equal(next(&r, who ? r.eb : r.ea).code, HD_EV_DOWN);
		c = completion(&r, &r.a);
		assert_true(c.err == HD_S_CANCELLED || !c.err);
		c = completion(&r, &r.b);
		assert_true(c.err == HD_S_CANCELLED || !c.err);
		rig_close(&r);
		free(out);
		free(in);
	}
}

static void peer_dies(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct got got;
		char in[16];
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		assert_int_equal(post(&r.b, in, 16), 0);
		end_close_ep(&r.a);
		assert_int_equal(hd_cq_close(r.a.cq), 0);
		assert_int_equal(hd_node_close(r.a.node), 0);
		assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &r.a.node), 0);
		assert_int_equal(hd_cq_open(r.a.node, &(struct hd_cq_attr){ .size = 64 }, &r.a.cq), 0);
		got = next(&r, r.eb);
		assert_int_equal(got.code, HD_EV_DOWN);
		assert_true(got.word == 0); /* its endpoint was closed, and not lost */
		assert_int_equal(completion(&r, &r.b).err, HD_S_CANCELLED);
		rig_close(&r);
	}
}

/* ---- who may send ---------------------------------------------------------------------------- */

static void strangers_are_refused(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct sockaddr_storage name;
		struct hd_dest *to[2];
		struct end c = { 0 };
		char in[16] = "";
		struct rig r;

		rig_open(&r, transport);
		join(&r);
		assert_int_equal(post(&r.b, in, 16), 0);
		c.node = r.a.node; /* even of the same node */
		c.cq = r.a.cq;
		assert_int_equal(hd_ep_open(c.node, &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = c.cq },
					    &c.ep),
				 0);
		assert_int_equal(hd_ep_name(r.b.ep, AF_INET, &name), 0);
		assert_int_equal(hd_dest_get(c.node, (void *)&name, &to[0]), 0);
		assert_int_equal(hd_dest_get(c.node, (void *)&r.name, &to[1]), 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(hd_send(c.ep, to[i], "intruder", 9, 0, 0, in,
						 HD_SEND_COMPLETE | HD_SEND_ACKED),
					 0);
			assert_int_equal(completion(&r, &c).err, HD_S_REFUSED);
			assert_int_equal(hd_send(c.ep, to[i], "x", 1, 0, 0, in, HD_SEND_INJECT), 0);
		}
		settle(&r, 10);
		assert_string_equal(in, "");
		assert_null(hd_cq_peek(r.b.cq));
		hd_dest_put(to[0]);
		hd_dest_put(to[1]);
		hd_ep_close(c.ep);
		passes(&r, &r.b, &r.a, 10);
		rig_close(&r);
	}
}

/* ---- many ------------------------------------------------------------------------------------ */

static long descriptors(void)
{
	long n = 0;
	char path[32];

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static void a_thousand(void **state)
{
	EACH_TRANSPORT(transport)
	{
		long before = 0;
		struct rig r;

		rig_open(&r, transport);
		for (int i = 0; i < 1000; i++) {
			join(&r);
			end_close_ep(i & 1 ? &r.a : &r.b);
			assert_int_equal(next(&r, i & 1 ? r.eb : r.ea).code, HD_EV_DOWN);
			end_close_ep(i & 1 ? &r.b : &r.a);
			for (int turns = 0; turns < 200; turns++)
				turn(&r);
			end_open_ep(&r.a, r.ea);
			end_open_ep(&r.b, r.eb);
			if (i == 20)
				before = descriptors();
		}
		settle(&r, 5);
		assert_in_range(descriptors(), 0, before + 4);
		assert_in_range(hd_links_inspect(r.a.node).dest_room, 0, 64);
		rig_close(&r);
	}
}

/* Whoever leaves: what the other had been asked to read it sends no more. */
static void reads_end_with_it(void **state)
{
	const size_t len = 4u << 20;
	unsigned char *mem = calloc(1, len), *mine = calloc(1, len);

	setenv("HEDDLE_DIRECT_COPY", "no", 1);
	EACH_TRANSPORT(t)
	for (int whose = 0; whose < 2; whose++) {
		const struct hd_rma_seg seg = { 0, len, 77 };
		const struct iovec ours = { mine, len }, theirs = { mem, len };
		const struct hd_mr_attr attr = { .iov = &theirs,
						 .count = 1,
						 .access = HD_ACCESS_REMOTE_READ,
						 .flags = HD_MR_KEY,
						 .key = 77 };
		const struct hd_rma_args args = {
			.op = HD_RMA_READ, .iov = &ours, .count = 1, .segs = &seg, .seg_count = 1
		};
		uint64_t end = hd_now_ns() + PATIENCE;
		struct hd_peer *peer;
		struct hd_mr *mr;
		struct rig r;

		rig_open(&r, t);
		r.b.ep->policy |= HD_EP_REMOTE_READ;
		assert_int_equal(hd_mr_open(r.b.node, &attr, &mr), 0);
		join(&r);
		peer = (*hd_ep_to(r.b.ep))->peer;
		for (int i = 0; i < 8; i++)
			assert_int_equal(hd_rma(r.a.ep, *hd_ep_to(r.a.ep), &args), 0);
		hd_node_poll(r.a.node); /* they leave */
		while (!hd_peer_inspect(peer).framing && hd_now_ns() < end)
			hd_node_poll(r.b.node);
		assert_true(hd_peer_inspect(peer).framing);
		assert_int_equal(hd_ep_disconnect(whose ? r.a.ep : r.b.ep, NULL), 0);
		while (hd_peer_inspect(peer).pending && hd_now_ns() < end)
			hd_node_poll(r.b.node);
		assert_true(!hd_peer_inspect(peer).pending && !hd_peer_inspect(peer).framing);
		for (int i = 0; i < 8; i++)
			assert_int_equal(completion(&r, &r.a).err, HD_S_CANCELLED);
		assert_int_equal(hd_mr_close(mr), 0);
		rig_close(&r);
	}
	unsetenv("HEDDLE_DIRECT_COPY");
	free(mem);
	free(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_learn),	cmocka_unit_test(data_passes),
		cmocka_unit_test(receives_come_first),	cmocka_unit_test(own_time),
		cmocka_unit_test(last_words),		cmocka_unit_test(alarms),
		cmocka_unit_test(one_node_is_enough),	cmocka_unit_test(shutdown_flushes),
		cmocka_unit_test(what_waits_stays),	cmocka_unit_test(both_leave_at_once),
		cmocka_unit_test(leaves_in_the_middle), cmocka_unit_test(peer_dies),
		cmocka_unit_test(reads_end_with_it),	cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(a_thousand),
	};

	return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
