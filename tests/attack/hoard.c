/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A stranger has us keep more than he says: memory for endpoints that he has not. */
#include "attack/attack.h"

#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
	struct attack_scene *s;

	attack_setup(state);
	s = *state;
	wire_greet(s->w, &s->a);
	return 0;
}

static void announce(struct wire *w, uint32_t index, uint16_t gen)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };
	const struct hd_announce a = {
		.index = index, .gen = gen, .port = 2000, .slot = (uint16_t)(index % 16384)
	};

	wire_say(w, &pkt, &a, sizeof(a));
}

/* 688 bytes made 16 MiB resident. */
static void endpoints_far_apart(void **state)
{
	struct attack_scene *s = *state;
	struct hd_peer *peer = hd_links(s->a.node)->peers;

	for (uint32_t i = 1; i <= 16; i++)
		announce(s->w, (UINT32_C(1) << 20) - i * 1000, (uint16_t)i);
	wire_settle(s->w);
	assert_in_range(peer->remote_count, 0, 256);
	for (uint32_t i = 1; i <= 16; i++) {
		uint32_t index = (UINT32_C(1) << 20) - i * 1000;

		assert_int_equal(hd_remote_gen(peer, index), i);
		assert_non_null(hd_dest_by_id(s->a.node, hd_remote_source(peer, index)));
		wire_say(s->w, &(struct hd_pkt){ .kind = HD_PKT_GONE, .src = index, .gen = (uint16_t)i },
			 NULL, 0);
	}
	wire_settle(s->w);
	assert_null(peer->far);
	assert_true(LIST_EMPTY(&peer->dests));
}

/*
 * Who has them has them in a table in the end, in whatever order he says so; and what
 * comes from each is known to.
 */
static void endpoints_that_there_are(void **state)
{
	struct attack_scene *s = *state;
	struct hd_peer *peer = hd_links(s->a.node)->peers;
	struct hd_pkt pkt = wire_eager(s->w, 1, 0);

	for (uint32_t i = 4096; i--;)
		announce(s->w, i, 1);
	pkt.src = 4095;
	wire_say(s->w, &pkt, NULL, 0);
	wire_settle(s->w);
	assert_int_equal(peer->remote_count, 4096);
	assert_null(peer->far);
	for (uint32_t i = 0; i < 4096; i++) {
		struct hd_dest *d = hd_dest_by_id(s->a.node, hd_remote_source(peer, i));

		assert_non_null(d);
		assert_int_equal(d->remote, i);
	}
	assert_int_equal(hd_match_first_waiting(&s->a.ep->rq->match[1])->by_src.src,
			 hd_remote_source(peer, 4095));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(endpoints_far_apart, setup, attack_teardown),
		cmocka_unit_test_setup_teardown(endpoints_that_there_are, setup, attack_teardown),
	};

	return cmocka_run_group_tests_name("hoard", tests, NULL, NULL);
}
