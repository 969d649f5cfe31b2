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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gone_endpoint_fails_what_is_queued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
