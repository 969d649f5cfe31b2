/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What is fetched by a link and given up while the other process has been stopped in the middle of writing to it: its memory is the program's when
 * that is over, and not before. The link here says so when the test wants it to.
 */
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <stdlib.h>

#define LONG (8u << 20)

static struct stuck {
	struct hd_link_ops ops; /* of the link, but for two */
	const struct hd_link_ops *real;
	bool holds;
	int waited; /* calls that could not but wait */
} stuck;

static int stuck_unget(struct hd_link *link, struct hd_get *get, bool wait)
{
	stuck.real->unget(link, get, true); /* which knows nothing of it from now on */
	stuck.waited += stuck.holds && wait;
	return stuck.holds && !wait ? -EINPROGRESS : 0;
}

static bool stuck_settled(struct hd_link *link)
{
	return !stuck.holds && stuck.real->settled(link);
}

static unsigned char *from, *to;

/* Side b fetches a message. */
static struct hd_transfer *fetching(struct pair *p)
{
	struct hd_transfer *t = NULL;
	struct hd_link *link;

	pair_open(p, "shm");
	pair_push(p, &p->b, "x", 1, 1, 0);
	pair_settle(p, 1);
	while (hd_cq_peek(p->a.cq) || hd_cq_peek(p->b.cq))
		hd_cq_pop(hd_cq_peek(p->a.cq) ? p->a.cq : p->b.cq);
	side_post(&p->b, to, LONG, 7, 0, NULL, to);
	pair_push(p, &p->a, from, LONG, 7, 0);
	while (!t || t->state != HD_TRANSFER_GET) {
		hd_node_poll(p->b.node);
		t = hd_transfers_first(p->b.to->peer);
	}
	link = p->b.to->peer->link;
	stuck = (struct stuck){ .ops = *link->ops, .real = link->ops, .holds = true };
	stuck.ops.unget = stuck_unget;
	stuck.ops.settled = stuck_settled;
	link->ops = &stuck.ops;
	return t;
}

static void nothing_completes(struct pair *p)
{
	for (int i = 0; i < 200; i++)
		assert_null(hd_cq_poll(p->b.cq));
}

static void its_end(struct pair *p, enum hd_status status)
{
	struct hd_cqe e = pair_next(p, &p->b);

	assert_ptr_equal(e.ctx, to);
	assert_int_equal(e.err, status);
	pair_close(p);
}

static void given_up(void **state)
{
	struct hd_transfer *t;
	struct pair p;

	t = fetching(&p);
	hd_transfer_cancel(t, HD_S_CANCELLED);
	assert_int_equal(t->state, HD_TRANSFER_CLOSING);
	nothing_completes(&p);
	hd_transfer_cancel(t, HD_S_LOST); /* once more */
	hd_transfer_spoil(t, HD_S_PROTECTION);
	assert_int_equal(t->state, HD_TRANSFER_CLOSING);
	stuck.holds = false;
	t->get.done(&t->get, -ECANCELED);
	its_end(&p, HD_S_CANCELLED);
	assert_int_equal(stuck.waited, 0);
}

static void link_down(void **state)
{
	struct hd_link *link;
	struct pair p;

	link = fetching(&p)->pending.peer->link;
	hd_link_down(link, -ECONNRESET, "a test");
	nothing_completes(&p);
	stuck.holds = false;
	its_end(&p, HD_S_LOST);
	assert_int_equal(stuck.waited, 0);
}

/* Where the memory goes with what the program calls, that waits. */
static void endpoint_closes(void **state)
{
	struct pair p;

	fetching(&p);
	side_endpoint(&p.b, HD_EP_RDM); /* the one before is closed */
	assert_int_equal(stuck.waited, 1);
	stuck.holds = false;
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_up),
		cmocka_unit_test(link_down),
		cmocka_unit_test(endpoint_closes),
	};
	int rc;

	from = calloc(1, LONG);
	to = calloc(1, LONG);
	rc = from && to ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	free(from);
	free(to);
	return rc;
}
