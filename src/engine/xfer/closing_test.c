/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What is fetched by a link and given up while the other process has been stopped in the middle of
 * writing to it: its memory is the program's when that is over, and not before. The link here says
 * so when the test wants it to.
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
	int waited;	    /* calls that could not but wait */
	struct hd_get *get; /* which it is in the middle of, and knows to be given up */
} stuck;

static int stuck_unget(struct hd_link *link, struct hd_get *get, bool wait)
{
	stuck.real->unget(link, get, true); /* which knows nothing of it from now on */
	stuck.waited += stuck.holds && wait;
	stuck.get = get;
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
	hd_transfer_fail(t, HD_S_PROTECTION);
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

/*
 * Another thread of the program: it works with another endpoint, and only then the
 * process is out of the copy.
 */
static void *goes_on(void *arg)
{
	struct side other = *(struct side *)arg;

	hd_node_lock(other.node);
	other.ep = NULL;
	side_endpoint(&other, HD_EP_RDM);
	hd_ep_close(other.ep);
	stuck.holds = false;
	stuck.get->done(stuck.get, -ECANCELED);
	hd_node_unlock(other.node);
	return NULL;
}

static pthread_t other;

/*
 * Side b has the node's lock from now on, which the other thread wants as
 * well; until that has had it.
 */
static void others_wait(struct pair *p)
{
	hd_node_share(p->b.node);
	hd_node_lock(p->b.node);
	assert_int_equal(pthread_create(&other, NULL, goes_on, &p->b), 0);
}

static void others_went_on(struct pair *p)
{
	assert_false(stuck.holds);
	assert_int_equal(stuck.waited, 0);
	pthread_join(other, NULL);
}

/*
 * So its closing call waits before it, and others go on. It stands as it did, for whoever ends it.
 */
static void endpoint_settles(void **state)
{
	struct hd_transfer *t;
	struct pair p;

	t = fetching(&p);
	others_wait(&p);
	hd_ep_settle(p.b.ep);
	others_went_on(&p);
	assert_int_equal(t->state, HD_TRANSFER_STOPPED);
	side_endpoint(&p.b, HD_EP_RDM);
	assert_int_equal(stuck.waited, 0);
	hd_node_unlock(p.b.node);
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

/*
 * The requests of a queue pair that fails are flushed in their order, whatever
 * of them was stopped first.
 */
static void queue_pair_settles(void **state)
{
	static char first, second, third;
	struct hd_transfer *t;
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
	others_wait(&p);
	hd_ep_settle(p.b.ep);
	others_went_on(&p);
	assert_int_equal(t->state, HD_TRANSFER_STOPPED);
	hd_ep_fail(p.b.ep);
	assert_int_equal(stuck.waited, 0);
	qp_expect(&p, &p.b, &second, HD_S_CANCELLED);
	qp_expect(&p, &p.b, &third, HD_S_CANCELLED);
	hd_node_unlock(p.b.node);
	pair_close(&p);
}

static int over; /* times that a queue pair has said so */
static void qp_over(void *owner, uint32_t code, int err)
{
	over += code == HD_EV_EP_OVER;
}

/*
 * Side b fetches the message of one receive, and another is behind it. Is everything
 * flushed that is posted there?
 */
static char falls_second, falls_third;
static struct hd_transfer *falling(struct pair *p)
{
	static char first;

	over = 0;
	qps_new(p, "shm", RC);
	qp_open(&p->b, RC | ALL_RIGHTS, &(struct hd_ep_attr){ .tx_size = 64, .tell = qp_over });
	qps_ready(p);
	qp_recv(&p->b, to, 1, &first);
	qp_send(&p->a, from, 1, &first);
	qp_expect(p, &p->b, &first, 0);
	qp_recv(&p->b, to, LONG, &falls_second);
	qp_recv(&p->b, to, 1, &falls_third);
	qp_send(&p->a, from, LONG, &falls_second);
	hd_node_poll(p->a.node);
	return get_stuck(p);
}

static void falls(struct pair *p)
{
	assert_int_equal(*hd_ep_state(p->b.ep), HD_QP_ERR_FALLING);
	assert_false(hd_cq_peek(p->b.cq) || over || stuck.waited);
	stuck.holds = false;
	stuck.get->done(stuck.get, -ECANCELED);
}

static void has_fallen(struct pair *p)
{
	qp_expect(p, &p->b, &falls_second, HD_S_CANCELLED);
	qp_expect(p, &p->b, &falls_third, HD_S_CANCELLED);
	assert_int_equal(*hd_ep_state(p->b.ep), HD_QP_ERR);
	assert_int_equal(over, 1);
	assert_int_equal(stuck.waited, 0);
	pair_close(p);
}

/*
 * One that fails by itself does so in a turn of progress, which must not wait: it
 * fails when that is over.
 */
static void queue_pair_fails(void **state)
{
	static char nowhere[8];
	struct pair p;

	falling(&p);
	qp_rma(&p.b, HD_RMA_READ, nowhere, sizeof(nowhere), 0x1234567, from, nowhere, 0);
	while (*hd_ep_state(p.b.ep) < HD_QP_ERR_FALLING) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
	}
	qp_expect(&p, &p.b, nowhere, HD_S_ACCESS);
	pair_settle(&p, 20);
	falls(&p);
	has_fallen(&p);
}

/* So does one that is to fail, for who must not wait. */
static void queue_pair_falls(void **state)
{
	struct hd_transfer *t;
	struct pair p;

	t = falling(&p);
	assert_false(hd_ep_fall(p.b.ep));
	assert_int_equal(t->state, HD_TRANSFER_STOPPED);
	assert_false(hd_ep_fall(p.b.ep)); /* once is enough */
	pair_settle(&p, 20);
	falls(&p);
	has_fallen(&p);
}

/* And closing it, and that it fails at once when nobody copies, is as ever. */
static void queue_pair_falls_and_closes(void **state)
{
	struct pair p;

	falling(&p);
	assert_false(hd_ep_fall(p.b.ep));
	stuck.holds = false;
	side_endpoint(&p.b, HD_EP_RDM);
	pair_settle(&p, 20);
	assert_false(hd_cq_peek(p.b.cq) || over || stuck.waited);
	qp_open(&p.b, RC | ALL_RIGHTS, NULL);
	qp_recv(&p.b, to, 1, &falls_third);
	assert_true(hd_ep_fall(p.b.ep));
	assert_int_equal(hd_cq_peek(p.b.cq)->err, HD_S_CANCELLED);
	hd_cq_pop(p.b.cq);
	pair_close(&p);
}

/*
 * A queue of XRC's that closes gives back memory of receives, which messages of other endpoints are
 * coming into: those are waited for as well.
 */
static void queue_of_others_closes(void **state)
{
	struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE, .domain = 9, .pd = 7
	};
	struct side by;
	struct pair p;

	pair_open(&p, "shm");
	qp_open(&p.a, RC | HD_EP_XRC, NULL);
	qp_open(&p.b, RC | HD_EP_XRC, &(struct hd_ep_attr){ .tx_size = 64, .domain = 9 });
	qps_ready(&p);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_rq_open(p.b.node, false, &attr.rq), 0);
	attr.rx_cq = p.b.cq;
	by = p.b;
	assert_int_equal(hd_ep_open(p.b.node, &attr, &by.ep), 0);
	hd_node_unlock(p.b.node);
	qp_recv(&by, to, LONG, to);
	hd_node_lock(p.a.node);
	assert_int_equal(hd_send(p.a.ep, *hd_ep_to(p.a.ep), from, LONG, 5,
				 (uint64_t)hd_ep_number(by.ep) << 32, from, HD_SEND_COMPLETE),
			 0);
	hd_node_unlock(p.a.node);
	get_stuck(&p);
	others_wait(&p);
	hd_ep_settle(by.ep);
	others_went_on(&p);
	hd_ep_close(by.ep);
	assert_int_equal(stuck.waited, 0);
	assert_int_equal(hd_rq_close(attr.rq), 0);
	qp_expect(&p, &p.a, from, HD_S_REFUSED);
	hd_node_unlock(p.b.node);
	pair_close(&p);
}

/*
 * A peer's write, by packets, as its region counts them. Closing that waits
 * as well, and others go on.
 */
static void region_is_written(void **state)
{
	struct hd_cntr *cntr;
	struct hd_mr *mr;
	struct pair p;

	qps_open(&p, "shm", RC);
	mr = qp_region(&p.b, to, LONG, 0);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_cntr_open(p.b.node, &cntr), 0);
	hd_mr_bind_cntrs(mr, NULL, cntr);
	hd_node_unlock(p.b.node);
	qp_rma(&p.a, HD_RMA_WRITE, from, LONG, hd_mr_key(mr), to, &p, 0);
	get_stuck(&p);
	others_wait(&p);
	assert_int_equal(hd_mr_close(mr), 0);
	others_went_on(&p);
	assert_int_equal(hd_cntr_close(cntr), 0);
	qp_expect(&p, &p.a, &p, HD_S_ACCESS);
	hd_node_unlock(p.b.node);
	pair_close(&p);
}

/* So does closing one that a receive is of, which fails. */
static void region_is_received_into(void **state)
{
	static const struct hd_mr_fault fault = { .buf = "", .err = EFAULT };
	const struct iovec iov = { to, LONG };
	const struct hd_mr_attr attr = { .iov = &iov,
					 .count = 1,
					 .access = HD_ACCESS_LOCAL_WRITE,
					 .flags = HD_MR_VIRTUAL,
					 .fault = &fault };
	struct hd_recv_args recv = { .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE, .ctx = to };
	struct hd_mr *mr;
	struct pair p;

	qps_open(&p, "shm", RC);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_mr_open(p.b.node, &attr, &mr), 0);
	recv.region = mr;
	recv.regions = &mr;
	assert_int_equal(hd_recv(p.b.ep, &recv), 0);
	hd_node_unlock(p.b.node);
	qp_send(&p.a, from, LONG, from);
	get_stuck(&p);
	others_wait(&p);
	assert_int_equal(hd_mr_close(mr), 0);
	others_went_on(&p);
	qp_expect(&p, &p.b, to, HD_S_PROTECTION);
	hd_node_unlock(p.b.node);
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
		cmocka_unit_test(queue_pair_fails),
		cmocka_unit_test(queue_pair_falls),
		cmocka_unit_test(queue_pair_falls_and_closes),
		cmocka_unit_test(queue_of_others_closes),
		cmocka_unit_test(region_is_written),
		cmocka_unit_test(region_is_received_into),
	};
	int rc;

	from = calloc(1, LONG);
	to = calloc(1, LONG);
	rc = from && to ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	free(from);
	free(to);
	return rc;
}
