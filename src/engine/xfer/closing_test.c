/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What is fetched by a link and given up while the other process has been stopped in the middle of writing to it: its memory is the program's when
 * that is over, and not before. The link here says so when the test wants it to.
 */
#include "engine/test/test_qp.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <pthread.h>
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

/* What side b fetches is stuck from now on. */
static struct hd_transfer *get_stuck(struct pair *p)
{
	struct hd_transfer *t;
	struct hd_link *link;

	for (;;) {
		hd_node_poll(p->b.node);
		t = TAILQ_FIRST(&p->b.ep->transfers);
		if (t && t->state == HD_TRANSFER_GET)
			break;
		hd_node_poll(p->a.node);
	}
	link = t->pending.peer->link;
	stuck = (struct stuck){ .ops = *link->ops, .real = link->ops, .holds = true };
	stuck.ops.unget = stuck_unget;
	stuck.ops.settled = stuck_settled;
	link->ops = &stuck.ops;
	return t;
}

/* Side b fetches a message. */
static struct hd_transfer *fetching(struct pair *p)
{
	pair_open(p, "shm");
	pair_push(p, &p->b, "x", 1, 1, 0);
	pair_settle(p, 1);
	while (hd_cq_peek(p->a.cq) || hd_cq_peek(p->b.cq))
		hd_cq_pop(hd_cq_peek(p->a.cq) ? p->a.cq : p->b.cq);
	side_post(&p->b, to, LONG, 7, 0, NULL, to);
	pair_push(p, &p->a, from, LONG, 7, 0);
	return get_stuck(p);
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

/* Another thread of the program: it works with another endpoint, and only then the process is out of the copy. */
static void *goes_on(void *arg)
{
	struct side other = *(struct side *)arg;

	hd_node_lock(other.node);
	other.ep = NULL;
	side_endpoint(&other, HD_EP_RDM);
	hd_ep_close(other.ep);
	stuck.holds = false;
	hd_node_unlock(other.node);
	return NULL;
}

/* So its closing call waits before it, and others go on. It stands as it did, for whoever ends it. */
static void endpoint_settles(void **state)
{
	struct hd_transfer *t;
	pthread_t other;
	struct pair p;

	t = fetching(&p);
	hd_node_lock(p.b.node);
	assert_int_equal(pthread_create(&other, NULL, goes_on, &p.b), 0);
	hd_ep_settle(p.b.ep);
	assert_false(stuck.holds);
	assert_int_equal(t->state, HD_TRANSFER_STOPPED);
	side_endpoint(&p.b, HD_EP_RDM);
	hd_node_unlock(p.b.node);
	pthread_join(other, NULL);
	assert_int_equal(stuck.waited, 0);
	pair_close(&p);
}

/* What happens to it while the lock is away is as it always was. */
static void settling_is_cancelled(void **state)
{
	struct hd_transfer *t;
	struct pair p;

	t = fetching(&p);
	assert_true(hd_transfers_stop(p.b.ep));
	assert_true(hd_transfers_stop(p.b.ep));
	assert_int_equal(t->state, HD_TRANSFER_STOPPED);
	hd_transfer_cancel(t, HD_S_CANCELLED);
	assert_int_equal(t->state, HD_TRANSFER_CLOSING);
	nothing_completes(&p);
	stuck.holds = false;
	while (hd_transfers_stop(p.b.ep))
		continue;
	its_end(&p, HD_S_CANCELLED);
	assert_int_equal(stuck.waited, 0);
}

static void settling_link_down(void **state)
{
	struct hd_transfer *t;
	struct hd_link *link;
	struct pair p;

	t = fetching(&p);
	link = t->pending.peer->link;
	assert_true(hd_transfers_stop(p.b.ep));
	hd_link_down(link, -ECONNRESET, "a test");
	nothing_completes(&p);
	stuck.holds = false;
	its_end(&p, HD_S_LOST);
	assert_int_equal(stuck.waited, 0);
}

/* The requests of a queue pair that fails are flushed in their order, whatever of them was stopped first. */
static void queue_pair_settles(void **state)
{
	static char first, second, third;
	struct hd_transfer *t;
	pthread_t other;
	struct pair p;

	qps_open(&p, "shm", RC);
	qp_recv(&p.b, to, 1, &first);
	qp_send(&p.a, from, 1, &first);
	qp_expect(&p, &p.b, &first, 0);
	qp_recv(&p.b, to, LONG, &second);
	qp_recv(&p.b, to, 1, &third);
	qp_send(&p.a, from, LONG, &second);
	hd_node_poll(p.a.node);
	t = get_stuck(&p);
	hd_node_lock(p.b.node);
	assert_int_equal(pthread_create(&other, NULL, goes_on, &p.b), 0);
	hd_ep_settle(p.b.ep);
	assert_int_equal(t->state, HD_TRANSFER_STOPPED);
	hd_ep_fail(p.b.ep);
	hd_node_unlock(p.b.node);
	pthread_join(other, NULL);
	qp_expect(&p, &p.b, &second, HD_S_CANCELLED);
	qp_expect(&p, &p.b, &third, HD_S_CANCELLED);
	assert_int_equal(stuck.waited, 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_up),
		cmocka_unit_test(link_down),
		cmocka_unit_test(endpoint_closes),
		cmocka_unit_test(endpoint_settles),
		cmocka_unit_test(settling_is_cancelled),
		cmocka_unit_test(settling_link_down),
		cmocka_unit_test(queue_pair_settles),
	};
	int rc;

	from = calloc(1, LONG);
	to = calloc(1, LONG);
	rc = from && to ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	free(from);
	free(to);
	return rc;
}
