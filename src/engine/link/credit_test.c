/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Credit: the store that all windows come from, and what stalls the short way of sends. */
#include "engine/link/link.h"
#include "engine/test/test_pair.h"

#include <errno.h>

/* A message from a to b, so that each has a peer. */
static void acquaint(struct pair *p)
{
	char in[8], out[8] = "";

	side_post(&p->b, in, sizeof(in), 1, 0, NULL, in);
	pair_push(p, &p->a, out, sizeof(out), 1, 0);
	assert_int_equal(pair_next(p, &p->b).err, 0);
}

/*
 * What is handed over may take more out of the store than there is in it: nothing
 * else comes out of it then.
 */
static void an_empty_store_gives_nothing(void **state)
{
	const struct hd_node_id other = { { 1, 2 } };

	EACH_TRANSPORT(t)
	{
		struct hd_node *node;
		struct hd_peer *peer;
		uint32_t window, max;
		struct pair p;

		pair_open(&p, t);
		acquaint(&p);
		node = p.b.node;
		peer = hd_links(node)->peers;
		max = hd_links(node)->window_max;
		window = hd_peer_inspect(peer).window;
		hd_links(node)->window_max = hd_links(node)->window_units - 1;
		assert_int_equal(hd_credit_room(node), 0);
		hd_credit_hold(peer, window / 2 + 1);
		assert_int_equal(hd_peer_inspect(peer).window, window);
		hd_credit_unhold(peer, window / 2 + 1);
		assert_null(hd_peer_make(node, &other, NULL));
		hd_links(node)->window_max = max;
		pair_close(&p);
	}
}

/* The short way is open again when the last reason is gone, in whichever order they go. */
static void all_reasons_stall(void **state)
{
	EACH_TRANSPORT(t)
	{
		struct hd_peer *peer;
		struct pair p;

		pair_open(&p, t);
		acquaint(&p);
		pair_settle(&p, 1);
		peer = p.a.to->peer;
		assert_int_equal(hd_peer_inspect(peer).eager, hd_peer_inspect(peer).eager_limit);
		hd_peer_stall(peer, HD_STALL_FENCE);
		hd_peer_stall(peer, HD_STALL_DOWN);
		hd_peer_settle(peer);
		hd_peer_unstall(peer, HD_STALL_FENCE);
		assert_int_equal(hd_peer_inspect(peer).eager, -1);
		hd_peer_unstall(peer, HD_STALL_DOWN);
		assert_int_equal(hd_peer_inspect(peer).eager, hd_peer_inspect(peer).eager_limit);
		pair_close(&p);
	}
}

static int full(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return -EAGAIN;
}

static int fullv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		 size_t len)
{
	return -EAGAIN;
}

/* What a link has no room for has cost nothing. */
static void what_is_not_sent_costs_nothing(void **state)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	char byte[2] = { 0 };
	const struct iovec iov[2] = { { byte, 1 }, { byte + 1, 1 } };

	EACH_TRANSPORT(t)
	{
		const struct hd_link_ops *ops;
		struct hd_link_ops no_room;
		struct hd_peer *peer;
		struct pair p;
		uint32_t spent;

		pair_open(&p, t);
		acquaint(&p);
		pair_settle(&p, 1);
		peer = p.a.to->peer;
		ops = peer->link->ops;
		no_room = *ops;
		no_room.send = full;
		no_room.sendv = fullv;
		peer->link->ops = &no_room;
		spent = hd_credit_spent(peer);
		assert_int_equal(hd_peer_post(peer, &pkt, byte, 1, 3), -EAGAIN);
		assert_int_equal(hd_credit_spent(peer), spent);
		assert_int_equal(hd_peer_postv(peer, &pkt, iov, 2, 2, 3), -EAGAIN);
		assert_int_equal(hd_credit_spent(peer), spent);
		peer->link->ops = ops;
		pair_close(&p);
	}
}

/*
 * What a full link does not take of what must not be lost is kept, long or short,
 * and nothing overtakes it.
 */
static void answers_wait_in_order(void **state)
{
	static const struct hd_announce of_nobody[3] = { { .index = 900, .gen = 1 },
							 { .index = 901, .gen = 1 },
							 { .index = 902, .gen = 1 } };
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };

	EACH_TRANSPORT(t)
	{
		const struct hd_link_ops *ops;
		struct hd_link_ops no_room;
		struct hd_peer *peer;
		struct hd_ctl *c;
		struct pair p;

		pair_open(&p, t);
		acquaint(&p);
		pair_settle(&p, 1);
		peer = p.a.to->peer;
		ops = peer->link->ops;
		no_room = *ops;
		no_room.send = full;
		peer->link->ops = &no_room;
		hd_peer_send(peer, &pkt, of_nobody, sizeof(of_nobody));
		peer->link->ops = ops;
		hd_peer_send(peer, &pkt, of_nobody, sizeof(of_nobody[0]));
		c = TAILQ_FIRST(&peer->ctl);
		assert_true(c && c->len == sizeof(of_nobody));
		c = TAILQ_NEXT(c, entry);
		assert_true(c && c->len == sizeof(of_nobody[0]));
		assert_int_equal(hd_peer_inspect(peer).eager, -1);
		pair_settle(&p, 5);
		assert_false(hd_peer_inspect(peer).answers);
		assert_int_equal(hd_peer_inspect(peer).eager, hd_peer_inspect(peer).eager_limit);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_store_gives_nothing),
		cmocka_unit_test(all_reasons_stall),
		cmocka_unit_test(what_is_not_sent_costs_nothing),
		cmocka_unit_test(answers_wait_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
