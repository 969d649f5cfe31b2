/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints and peers that go away in the middle of something: everything ends, once, and nothing is left behind. */
#include "engine/test_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- closing under way --------------------------------------------------------------------------------------------- */

/* The other endpoint closes while more is queued for it than it has granted credit for. */
static void gone_endpoint_fails_what_is_queued(void **state)
{
	unsigned char out[4096] = { 0 };
	struct pair p;
	int failed = 0;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	EACH_TRANSPORT(t) {
		pair_open(&p, t);
		failed = 0;
		for (int i = 0; i < 100; i++)
			assert_int_equal(hd_send(p.a.ep, p.a.to, out, sizeof(out), 1, 0, out,
						 TAGGED(HD_SEND_COMPLETE | HD_SEND_INJECT)), 0);
		pair_settle(&p, 50);
		assert_false(TAILQ_EMPTY(&p.a.to->peer->queue));
		hd_ep_close(p.b.ep);
		for (int i = 0; i < 100; i++)
			failed += pair_next(&p, &p.a).err == ECONNREFUSED;
		assert_true(failed > 50);
		hd_dest_put(p.b.to);
		assert_int_equal(hd_cq_close(p.b.cq), 0);
		assert_int_equal(hd_node_close(p.b.node), 0);
		side_close(&p.a);
	}
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

/*
 * The sender closes its endpoint between two frames of a long message, and its memory goes away: nothing reads that any more, and
 * the receive ends in error.
 */
static void sender_closes_between_frames(void **state)
{
	const size_t n = 64 << 20;
	unsigned char *in = malloc(n);
	struct pair p;

	setenv("HEDDLE_DIRECT_COPY", "no", 1);
	EACH_TRANSPORT(t)
		for (int turns = 0; turns < 5; turns++) {
			unsigned char *out = calloc(1, n);

			pair_open(&p, t);
			side_post(&p.b, in, n, 1, 0, NULL, in);
			in[0] = 1;
			pair_push(&p, &p.a, out, n, 1, HD_SEND_COMPLETE);
			while (in[0]) {
				hd_node_poll(p.a.node);
				hd_node_poll(p.b.node);
			}
			for (int i = 0; i < turns; i++)
				hd_node_poll(p.a.node);
			hd_ep_close(p.a.ep);
			free(out);
			assert_int_not_equal(pair_next(&p, &p.b).err, 0);
			assert_true(TAILQ_EMPTY(&p.b.node->peers->ops));
			hd_dest_put(p.a.to);
			assert_int_equal(hd_cq_close(p.a.cq), 0);
			assert_int_equal(hd_node_close(p.a.node), 0);
			side_close(&p.b);
		}
	unsetenv("HEDDLE_DIRECT_COPY");
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gone_endpoint_fails_what_is_queued),
		cmocka_unit_test(sender_closes_between_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
