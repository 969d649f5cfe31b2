/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The send queue of datagrams: what waits in it, in which order it leaves and completes, and how
 * it ends with the states.
 */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define UD (HD_EP_NUMBERED | HD_EP_DROP)
#define PLACES 64 /* of qp_open */

static unsigned char in[PLACES][256];
static const struct hd_pkt_qp nothing; /* is said beside: no immediate data, and the Q_Key 0 */
static unsigned drained;

static void told(void *owner, uint32_t code, int err)
{
	drained += code == HD_EV_EP_DRAINED;
}

static void uds_open(struct pair *p, const char *transport)
{
	const struct hd_ep_attr attr = { .tx_size = PLACES, .tell = told };

	drained = 0;
	pair_open(p, transport);
	qp_open(&p->a, UD, &attr);
	qp_open(&p->b, UD, NULL);
	hd_dest_put(p->a.to);
	side_names(&p->a, &p->b);
	assert_int_equal(hd_ep_pair(p->a.ep, &(struct hd_qp_attr){ .to = NULL }), 0);
	assert_int_equal(hd_ep_pair(p->b.ep, &(struct hd_qp_attr){ .to = NULL }), 0);
}

static int ud_throw(struct side *s, struct hd_dest *to, unsigned number)
{
	unsigned char byte = (unsigned char)number;
	const struct iovec iov = { &byte, 1 };
	int rc = hd_ud_send(s->ep, to, &iov, 1, nothing, number, (void *)(uintptr_t)number, HD_SEND_COMPLETE);

	byte = 255; /* it is the program's again */
	return rc;
}

static void throws(struct side *s, struct hd_dest *to, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ud_throw(s, to, first + i), 0);
}

static void expect_sent(struct pair *p, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		qp_expect(p, &p->a, (void *)(uintptr_t)i, 0);
}

static void expect_flushed(struct pair *p, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		qp_expect(p, &p->a, (void *)(uintptr_t)i, HD_S_CANCELLED);
}

static void wants(struct side *s, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		qp_recv(s, in[i], sizeof(in[i]), in[i]);
}

static void expect_arrived(struct pair *p, struct side *s, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++) {
		qp_expect(p, s, in[i], 0);
		assert_int_equal(in[i][0], i);
	}
}

/* Where the other end is awake, but nobody listens. */
static struct hd_dest *nowhere(struct side *s)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(1) };
	struct hd_dest *to;

	inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
	assert_int_equal(hd_dest_get(s->node, (void *)&name, &to), 0);
	return to;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void for_the_link(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		assert_null(p.a.ep->qp->wqes); /* it takes no room before something waits */
		wants(&p.b, 1, 8);
		throws(&p.a, p.a.to, 1, 8);
		assert_null(hd_cq_peek(p.a.cq));
		assert_int_equal(hd_ep_tx_left(p.a.ep), PLACES - 8);
		assert_false(hd_ep_tx_idle(p.a.ep));
		expect_sent(&p, 1, 8);
		expect_arrived(&p, &p.b, 1, 8);
		assert_true(hd_ep_tx_idle(p.a.ep));
		wants(&p.b, 9, 1);
		throws(&p.a, p.a.to, 9, 1);
		assert_non_null(hd_cq_peek(p.a.cq)); /* at once */
		expect_sent(&p, 9, 1);
		expect_arrived(&p, &p.b, 9, 1);
		pair_close(&p);
	}
}

/* The queue takes so many and no more, and the rest when there is room again. */
static void as_many_as_it_has_places(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		throws(&p.a, p.a.to, 0, PLACES);
		assert_int_equal(hd_ep_tx_left(p.a.ep), 0);
		assert_int_equal(ud_throw(&p.a, p.a.to, PLACES), -EAGAIN);
		assert_int_equal(hd_ud_lost(p.a.ep, 0, NULL, 0), -EAGAIN);
		assert_int_equal(hd_send_failed(p.a.ep, NULL,
						&(struct hd_failed_args){ .status = HD_S_INVALID }),
				 -EAGAIN);
		expect_sent(&p, 0, PLACES);
		throws(&p.a, p.a.to, 7, 1);
		expect_sent(&p, 7, 1);
		pair_close(&p);
	}
}

/* Its link is full: nothing is lost, and nothing overtakes. */
static void for_the_peer_to_wake(void **state)
{
	static unsigned char big[8192];
	const struct iovec iov = { big, sizeof(big) };
	unsigned sent = 0, told_of = 0;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		throws(&p.a, p.a.to, 0, 1);
		expect_sent(&p, 0, 1);
		pair_settle(&p, 5);
		for (sent = told_of = 0; hd_ep_tx_left(p.a.ep); sent++)
			assert_int_equal(hd_ud_send(p.a.ep, p.a.to, &iov, 1, nothing, sent,
						    (void *)(uintptr_t)sent, HD_SEND_COMPLETE),
					 0);
		for (; told_of < sent - PLACES; told_of++) {
			assert_int_equal(hd_cq_peek(p.a.cq)->tag, told_of);
			hd_cq_pop(p.a.cq);
		}
		assert_null(hd_cq_peek(p.a.cq));
		expect_sent(&p, told_of, PLACES);
		assert_int_equal(hd_ep_tx_left(p.a.ep), PLACES);
		pair_close(&p);
	}
}

/* One that cannot be reached yet holds up what completes, but not what goes to others. */
static void others_go_meanwhile(void **state)
{
	struct sockaddr_storage name;
	struct hd_dest *self;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		assert_int_equal(hd_ep_name(p.a.ep, AF_UNSPEC, &name), 0);
		assert_int_equal(hd_dest_get(p.a.node, (void *)&name, &self), 0);
		throws(&p.a, self, 0, 1);
		expect_sent(&p, 0, 1);
		pair_settle(&p, 5); /* it has arrived, and found no receive */
		throws(&p.a, p.a.to, 1, 2);
		wants(&p.a, 3, 2);
		throws(&p.a, self, 3, 2);
		for (struct settling s = settling(5); settling_on(&s);)
			hd_node_poll(p.a.node); /* the other one sleeps */
		expect_arrived(&p, &p.a, 3, 2);
		assert_null(hd_cq_peek(p.a.cq));
		assert_int_equal(hd_ud_lost(p.a.ep, 5, (void *)5, HD_SEND_COMPLETE), 0);
		throws(&p.a, p.a.to, 6, 1);
		wants(&p.b, 1, 2);
		wants(&p.b, 6, 1);
		expect_sent(&p, 1, 6);
		expect_arrived(&p, &p.b, 1, 2);
		expect_arrived(&p, &p.b, 6, 1);
		hd_dest_put(self);
		pair_close(&p);
	}
}

/* Nobody is told that it is lost, and it holds up nobody for longer than a call takes. */
static void to_nobody(void **state)
{
	struct hd_dest *to;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		to = nowhere(&p.a);
		wants(&p.b, 21, 1);
		throws(&p.a, to, 1, 20);
		throws(&p.a, p.a.to, 21, 1);
		expect_sent(&p, 1, 21);
		expect_arrived(&p, &p.b, 21, 1);
		assert_int_equal(to->refs, 1);
		hd_dest_put(to);
		pair_close(&p);
	}
}

/* Its region goes while it waits: ibv_dereg_mr(3) finds nothing that uses it. */
static void what_waits_needs_no_region(void **state)
{
	unsigned char memory[8] = { 77 };
	const struct iovec iov = { memory, 1 };
	struct hd_mr *mr, *regions[1];
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		mr = regions[0] = qp_region(&p.a, memory, sizeof(memory), 0);
		*hd_ep_regions(p.a.ep) = regions;
		wants(&p.b, 1, 1);
		memory[0] = 1;
		assert_int_equal(hd_ud_send(p.a.ep, p.a.to, &iov, 1, nothing, 1, (void *)1, HD_SEND_COMPLETE),
				 0);
		*hd_ep_regions(p.a.ep) = NULL;
		memory[0] = 99;
		hd_mr_close(mr);
		expect_sent(&p, 1, 1);
		expect_arrived(&p, &p.b, 1, 1);
		pair_close(&p);
	}
}

/* The other node goes while its link is full, and what waits for that is lost. */
static void the_peer_goes(void **state)
{
	static unsigned char big[8192];
	const struct iovec iov = { big, sizeof(big) };
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		throws(&p.a, p.a.to, 0, 1);
		expect_sent(&p, 0, 1);
		pair_settle(&p, 5);
		while (hd_ep_tx_left(p.a.ep))
			assert_int_equal(
				hd_ud_send(p.a.ep, p.a.to, &iov, 1, nothing, 3, &p, HD_SEND_COMPLETE), 0);
		side_close(&p.b);
		side_open(&p.b);
		while (hd_ep_tx_left(p.a.ep) < PLACES) {
			e = pair_next(&p, &p.a);
			assert_ptr_equal(e.ctx, &p);
			assert_int_equal(e.err, 0);
		}
		pair_close(&p);
	}
}

/* ---- states ---------------------------------------------------------------------------------- */

static void not_before_rts(void **state)
{
	struct pair p;

	uds_open(&p, test_transports[0]);
	hd_ep_reset(p.a.ep);
	assert_int_equal(ud_throw(&p.a, p.a.to, 1), -ENOTCONN);
	assert_int_equal(hd_ep_pair(p.a.ep, &(struct hd_qp_attr){ .only_receives = true }), 0);
	assert_int_equal(ud_throw(&p.a, p.a.to, 1), -ENOTCONN);
	assert_int_equal(hd_ep_start(p.a.ep), 0);
	throws(&p.a, p.a.to, 1, 1);
	expect_sent(&p, 1, 1);
	pair_close(&p);
}

static void err_flushes(void **state)
{
	struct hd_dest *to;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		to = p.a.to;
		throws(&p.a, to, 1, 3);
		hd_ep_fail(p.a.ep);
		throws(&p.a, to, 4, 2);
		expect_flushed(&p, 1, 5);
		assert_true(hd_ep_tx_idle(p.a.ep));
		assert_int_equal(to->refs, 1);
		qp_silence(&p, &p.a, 5);
		pair_close(&p);
	}
}

static void reset_drops(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		throws(&p.a, p.a.to, 1, 3);
		hd_ep_reset(p.a.ep);
		assert_int_equal(p.a.to->refs, 1);
		assert_int_equal(hd_ep_tx_left(p.a.ep), PLACES);
		qp_silence(&p, &p.a, 5);
		assert_int_equal(hd_ep_pair(p.a.ep, &(struct hd_qp_attr){ .to = NULL }), 0);
		wants(&p.b, 4, 1);
		throws(&p.a, p.a.to, 4, 1);
		expect_sent(&p, 4, 1);
		expect_arrived(&p, &p.b, 4, 1);
		throws(&p.a, nowhere(&p.a), 5, 1); /* given back with the node */
		pair_close(&p);
	}
}

/* SQD: nothing begins, what has been posted before included, until it is resumed. */
static void sqd_drains(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		wants(&p.b, 1, 5);
		throws(&p.a, p.a.to, 1, 2);
		assert_int_equal(hd_ep_pause(p.a.ep, true), 0);
		assert_int_equal(drained, 1);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQD_DRAINED);
		throws(&p.a, p.a.to, 3, 1);
		qp_silence(&p, &p.a, 20);
		throws(&p.a, p.a.to, 4, 1);
		qp_silence(&p, &p.a, 5);
		assert_null(hd_cq_peek(p.b.cq));
		hd_ep_drain(p.a.ep);
		assert_int_equal(drained, 1);
		assert_int_equal(hd_ep_pause(p.a.ep, false), 0);
		throws(&p.a, p.a.to, 5, 1);
		expect_sent(&p, 1, 5);
		expect_arrived(&p, &p.b, 1, 5);
		assert_int_equal(drained, 2);
		pair_close(&p);
	}
}

static void wrong(struct side *s, unsigned number)
{
	const struct hd_failed_args args = { .status = HD_S_PROTECTION, .ctx = (void *)(uintptr_t)number };

	assert_int_equal(hd_send_failed(s->ep, NULL, &args), 0);
}

/* Something wrong takes its turn: what is before it goes, and what is behind it does not. */
static void sqe_in_its_turn(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	for (int pauses = 0; pauses < 2; pauses++) {
		uds_open(&p, t);
		wants(&p.b, 1, 5);
		throws(&p.a, p.a.to, 1, 2);
		if (pauses)
			assert_int_equal(hd_ep_pause(p.a.ep, true), 0);
		wrong(&p.a, 3);
		assert_int_equal(*hd_ep_state(p.a.ep), pauses ? HD_QP_SQD_DRAINED : HD_QP_RTS_PENDING);
		if (pauses)
			assert_int_equal(hd_ep_pause(p.a.ep, false), 0);
		throws(&p.a, p.a.to, 4, 2);
		assert_null(hd_cq_peek(p.a.cq));
		expect_sent(&p, 1, 2);
		qp_expect(&p, &p.a, (void *)3, HD_S_PROTECTION);
		expect_flushed(&p, 4, 2);
		assert_int_equal(*hd_ep_state(p.a.ep), HD_QP_SQE);
		throws(&p.a, p.a.to, 6, 1);
		expect_flushed(&p, 6, 1);
		assert_int_equal(hd_ep_go_on(p.a.ep), 0);
		throws(&p.a, p.a.to, 3, 1);
		expect_sent(&p, 3, 1);
		expect_arrived(&p, &p.b, 1, 3);
		qp_silence(&p, &p.b, 5);
		pair_close(&p);
	}
}

/* What is no message is refused, by the door and behind it, and nothing is left of it. */
static void sends_messages_alone(void **state)
{
	unsigned char byte = 0;
	const struct iovec iov = { &byte, 1 };
	const struct hd_rma_seg seg = { .addr = (uintptr_t)&byte, .len = 1, .key = 7 };
	const struct hd_send_args a = { .iov = &iov, .count = 1, .flags = HD_SEND_COMPLETE };
	struct hd_op *op;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uds_open(&p, t);
		assert_int_equal(hd_rma(p.a.ep, p.a.to,
					&(struct hd_rma_args){ .op = HD_RMA_READ,
							       .iov = &iov,
							       .count = 1,
							       .segs = &seg,
							       .seg_count = 1,
							       .flags = HD_SEND_COMPLETE }),
				 -EOPNOTSUPP);
		op = hd_op_make(p.a.ep, p.a.to, &a);
		assert_non_null(op);
		assert_int_equal(hd_op_post(op), -EINVAL);
		assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
		qp_silence(&p, &p.a, 5);
		throws(&p.a, p.a.to, 3, 1);
		expect_sent(&p, 3, 1);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(for_the_link),
		cmocka_unit_test(as_many_as_it_has_places),
		cmocka_unit_test(for_the_peer_to_wake),
		cmocka_unit_test(others_go_meanwhile),
		cmocka_unit_test(to_nobody),
		cmocka_unit_test(what_waits_needs_no_region),
		cmocka_unit_test(the_peer_goes),
		cmocka_unit_test(not_before_rts),
		cmocka_unit_test(err_flushes),
		cmocka_unit_test(reset_drops),
		cmocka_unit_test(sqd_drains),
		cmocka_unit_test(sqe_in_its_turn),
		cmocka_unit_test(sends_messages_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
