/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * RMA: orders between messages and one-sided operations, and the order of data of any length, of
 * msg_order and max_order_raw_size and its like in fi_endpoint(3). Rank 1 makes no progress for a
 * while, so that what need not wait for it is early.
 */
#include "region.h"

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIG (2u << 20)
#define ALL (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROUNDS 5
#define AT 100	/* where in the region messages are received, */
#define TEXT 64 /* and of how many bytes */

static void order_open(struct ct_rig *x, struct ct *ct, uint64_t order, size_t max_order)
{
	const struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA,
				      .msg_order = order,
				      .max_order = max_order };

	ct_rig_open(x, ct, &want, BIG, ALL);
	CT_EQ(ct, x->dom.info->tx_attr->msg_order & order, order);
	CT_EQ(ct, x->dom.info->rx_attr->msg_order & order, order);
	CT_TRUE(ct, x->dom.info->ep_attr->max_order_raw_size >= max_order);
	CT_TRUE(ct, x->dom.info->ep_attr->max_order_war_size >= max_order);
	CT_TRUE(ct, x->dom.info->ep_attr->max_order_waw_size >= max_order);
}

/* A receive in the region; then nothing for some time, and both have the same round. */
static void receive_late(struct ct_rig *x)
{
	ct_trecv(&x->e, x->r.mem + AT, TEXT, 5, 0, CTX(1));
	ct_sync(x->e.ct, &x->e);
	usleep(5000); /* what has come waits until it is asked for */
	ct_done(&x->e, CTX(1));
}

/*
 * FI_ORDER_RAS: a read finds what was sent before it, where that has been
 * received into what it reads.
 */
static void read_after_send(struct ct *ct)
{
	size_t len = ct->cs->arg;
	char *in = ct_alloc(ct, len), text[TEXT];
	struct ct_rig x;

	order_open(&x, ct, FI_ORDER_RAS, 0);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		if (ct->rank) {
			receive_late(&x);
		} else {
			ct_fill(text, TEXT, i);
			ct_sync(ct, &x.e);
			ct_tsend(&x.e, 1, text, TEXT, 5, CTX(1));
			CT_POST(&x.e,
				fi_read(x.e.ep, in, len, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
			ct_done(&x.e, CTX(2));
			ct_done(&x.e, CTX(1));
			ct_verify(ct, in + AT, TEXT, i, "read after it was sent");
		}
		ct_sync(ct, &x.e);
	}
	free(in);
	ct_take_back(&x.e, &x.r);
}

/*
 * FI_ORDER_WAS: a write stays, where a message that was sent before it has been
 * received into the same place.
 */
static void write_after_send(struct ct *ct)
{
	size_t len = ct->cs->arg;
	char *out = ct_alloc(ct, len), text[TEXT];
	struct ct_rig x;

	order_open(&x, ct, FI_ORDER_WAS, 0);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		ct_fill(out, len, i);
		ct_fill(text, TEXT, i + 100);
		if (ct->rank) {
			receive_late(&x);
		} else {
			ct_sync(ct, &x.e);
			ct_tsend(&x.e, 1, text, TEXT, 5, CTX(1));
			CT_POST(&x.e,
				fi_write(x.e.ep, out, len, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
			ct_done(&x.e, CTX(2));
			ct_done(&x.e, CTX(1));
		}
		ct_sync(ct, &x.e);
		if (ct->rank)
			ct_verify(ct, x.r.mem, len, i, "written after a message");
		ct_sync(ct, &x.e);
	}
	free(out);
	ct_take_back(&x.e, &x.r);
}

/* FI_ORDER_SAR: who gets the message may change what was read before. */
static void send_after_read(struct ct *ct)
{
	char *in = ct_alloc(ct, BIG), text[TEXT];
	struct ct_rig x;

	order_open(&x, ct, FI_ORDER_SAR, 0);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		if (ct->rank) {
			ct_fill(x.r.mem, BIG, i);
			ct_trecv(&x.e, text, TEXT, 5, 0, CTX(1));
			ct_sync(ct, &x.e);
			ct_done(&x.e, CTX(1));
			memset(x.r.mem, 0, BIG);
		} else {
			ct_sync(ct, &x.e);
			CT_POST(&x.e,
				fi_read(x.e.ep, in, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
			ct_tsend(&x.e, 1, text, TEXT, 5, CTX(1));
			ct_done(&x.e, CTX(2));
			ct_done(&x.e, CTX(1));
			ct_verify(ct, in, BIG, i, "read before a message");
		}
		ct_sync(ct, &x.e);
	}
	free(in);
	ct_take_back(&x.e, &x.r);
}

/*
 * A write, reads of its end and of all, and another write of its end, posted at once;
 * all of it keeps its order.
 */
static void long_data_round(struct ct_rig *x, char *out, char *in, unsigned i)
{
	const size_t end = BIG - TEXT;
	char last[TEXT], text[TEXT];
	struct ct_ep *e = &x->e;

	ct_fill(out, BIG, i);
	ct_fill(text, TEXT, i + 100);
	CT_POST(e, fi_write(e->ep, out, BIG, NULL, e->addr[1], x->at.addr, x->at.key, CTX(1)));
	CT_POST(e, fi_read(e->ep, last, TEXT, NULL, e->addr[1], x->at.addr + end, x->at.key, CTX(2)));
	CT_POST(e, fi_read(e->ep, in, BIG, NULL, e->addr[1], x->at.addr, x->at.key, CTX(3)));
	CT_POST(e, fi_write(e->ep, text, TEXT, NULL, e->addr[1], x->at.addr + end, x->at.key, CTX(4)));
	for (uintptr_t n = 1; n <= 4; n++)
		ct_done(e, CTX(n));
	CT_TRUE(e->ct, ct_match(last, TEXT, i, end));
	ct_verify(e->ct, in, BIG, i, "read between two writes");
}

static void order_of_long_data(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *in = ct_alloc(ct, BIG);
	struct ct_rig x;

	order_open(&x, ct, FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW, BIG + 1);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		if (!ct->rank)
			long_data_round(&x, out, in, i);
		ct_sync(ct, &x.e);
		if (ct->rank)
			ct_verify(ct, x.r.mem + BIG - TEXT, TEXT, i + 100, "written last");
		ct_sync(ct, &x.e);
	}
	free(out);
	free(in);
	ct_take_back(&x.e, &x.r);
}

const struct ct_case ct_rma_order[] = {
	{ "RMA", "rma-short-reads-after-messages", CT_TWO(read_after_send), .arg = AT + TEXT },
	{ "RMA", "rma-long-reads-after-messages", CT_TWO(read_after_send), .arg = 100000 },
	{ "RMA", "rma-short-writes-after-messages", CT_TWO(write_after_send), .arg = AT + TEXT },
	{ "RMA", "rma-long-writes-after-messages", CT_TWO(write_after_send), .arg = 100000 },
	{ "RMA", "rma-messages-after-reads", CT_TWO(send_after_read) },
	{ "RMA", "rma-order-of-long-data", CT_TWO(order_of_long_data) },
	{ 0 },
};
