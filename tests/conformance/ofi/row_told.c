/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M7 and M9, fi_msg(3) and fi_endpoint(3): which operations are told of, by every call and at every
 * length, and with which context.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define MOST (2 << 20)
#define CALLS 8 /* of either direction; odd ones are tagged, the last two ask to be told */

static const size_t lens[] = { 0, 8, 3000, 100000, MOST };

static bool asks(size_t call)
{
	return call >= CALLS - 2;
}

/*
 * What is not told of has no context: the parameter "is ignored if the operation will not generate
 * a successful completion".
 */
static void *context_of(size_t call)
{
	return asks(call) ? CTX(call) : NULL;
}

static ssize_t say(struct ct_ep *e, size_t call, void *buf, size_t len)
{
	const struct iovec iov = { buf, len };
	fi_addr_t to = e->addr[1];

	switch (call) {
	case 0:
		return fi_send(e->ep, buf, len, NULL, to, NULL);
	case 1:
		return fi_tsend(e->ep, buf, len, NULL, to, 6, NULL);
	case 2:
		return fi_sendv(e->ep, &iov, NULL, 1, to, NULL);
	case 3:
		return fi_tsendv(e->ep, &iov, NULL, 1, to, 6, NULL);
	default:
		return ct_send_one(e, &(struct ct_one){ .buf = buf,
							.len = len,
							.ctx = context_of(call),
							.flags = asks(call) ? FI_COMPLETION : 0,
							.tagged = call & 1,
							.tag = 6,
							.to = 1 });
	}
}

static ssize_t hear(struct ct_ep *e, size_t call, void *buf, size_t len)
{
	const struct iovec iov = { buf, len };

	switch (call) {
	case 0:
		return fi_recv(e->ep, buf, len, NULL, FI_ADDR_UNSPEC, NULL);
	case 1:
		return fi_trecv(e->ep, buf, len, NULL, FI_ADDR_UNSPEC, 6, 0, NULL);
	case 2:
		return fi_recvv(e->ep, &iov, NULL, 1, FI_ADDR_UNSPEC, NULL);
	case 3:
		return fi_trecvv(e->ep, &iov, NULL, 1, FI_ADDR_UNSPEC, 6, 0, NULL);
	default:
		return ct_recv_one(e, &(struct ct_one){ .buf = buf,
							.len = len,
							.ctx = context_of(call),
							.flags = asks(call) ? FI_COMPLETION : 0,
							.tagged = call & 1,
							.tag = 6 });
	}
}

/*
 * One message by every call; a counter says when they are complete, the CQ
 * tells of those that asked.
 */
static void selective_round(struct ct_ep *e, size_t len, size_t round, char **buf)
{
	struct fid_cntr *cntr = e->ct->rank ? e->rxcntr : e->txcntr;
	double end = ct_deadline(e->ct);

	for (size_t i = 0; e->ct->rank && i < CALLS; i++)
		CT_POST(e, hear(e, i, buf[i], len));
	ct_sync(e->ct, e);
	for (size_t i = 0; !e->ct->rank && i < CALLS; i++) {
		ct_fill(buf[i], len, i);
		CT_POST(e, say(e, i, buf[i], len));
	}
	while (fi_cntr_read(cntr) < CALLS * (round + 1)) {
		ct_late(e->ct, end, "operations to be counted");
		ct_progress(e);
	}
	for (size_t i = 0; i < CALLS; i++)
		if (asks(i))
			ct_done(e, CTX(i));
	ct_quiet(e, 10, "operations without FI_COMPLETION");
	for (size_t i = 0; e->ct->rank && i < CALLS; i++)
		ct_verify(e->ct, buf[i], len, i, "untold");
	ct_sync(e->ct, e);
}

static void selective_calls(struct ct *ct)
{
	struct ct_want want = { .tx_bind = FI_SELECTIVE_COMPLETION,
				.rx_bind = FI_SELECTIVE_COMPLETION,
				.msg_order = FI_ORDER_SAS,
				.counters = true };
	char *buf[CALLS];
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	for (size_t i = 0; i < CALLS; i++)
		buf[i] = ct_alloc(ct, MOST);
	for (size_t i = 0; i < CT_COUNT(lens) && lens[i] <= dom.info->ep_attr->max_msg_size; i++)
		selective_round(&e, lens[i], i, buf);
	for (size_t i = 0; i < CALLS; i++)
		free(buf[i]);
	ct_finish(&e);
}

/* Where binding was not selective everything is told of, with FI_COMPLETION and without. */
static void told_of_all(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	for (size_t i = 0; i < CALLS * CT_COUNT(lens); i++) {
		size_t len = lens[i / CALLS];

		if (ct->rank)
			CT_POST(&e, hear(&e, i % CALLS, buf, len));
		else
			CT_POST(&e, say(&e, i % CALLS, buf, len));
		ct_any(&e, &c);
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, c.ctx == context_of(i % CALLS));
		ct_sync(ct, &e);
	}
	ct_quiet(&e, 10, "one completion for each");
	free(buf);
	ct_finish(&e);
}

/*
 * Nobody has asked to be told, and each of them is cut: every one is told of, "even if a
 * completion is not requested".
 */
static void errors_received(struct ct *ct)
{
	struct ct_want want = { .rx_bind = FI_SELECTIVE_COMPLETION, .tx_bind = FI_SELECTIVE_COMPLETION };
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	for (size_t i = 0; i < 4 * (CT_COUNT(lens) - 1); i++) {
		struct ct_one o = { .buf = buf, .len = lens[1 + i / 4], .tagged = i & 1, .tag = 6, .to = 1 };

		if (ct->rank && i & 2) /* the message waits */
			ct_sync(ct, &e);
		if (ct->rank) {
			o.len -= 5;
			CT_POST(&e, ct_recv_one(&e, &o));
			ct_any(&e, &c);
			CT_EQ(ct, c.err, FI_ETRUNC);
			CT_EQ(ct, c.olen, 5);
			CT_EQ(ct, c.flags & (FI_RECV | FI_TAGGED), FI_RECV | (i & 1 ? FI_TAGGED : 0));
		} else {
			CT_POST(&e, ct_send_one(&e, &o));
		}
		if (!ct->rank && i & 2)
			ct_sync(ct, &e);
		ct_sync(ct, &e);
	}
	ct_quiet(&e, 20, "one completion for each error");
	free(buf);
	ct_finish(&e);
}

/* Sends to nobody, none of which asked to be told: each is, with its own context. */
static void errors_sent(struct ct *ct)
{
	struct ct_want want = { .rx_bind = FI_SELECTIVE_COMPLETION, .tx_bind = FI_SELECTIVE_COMPLETION };
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t told = 0;

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		ct_ep_close(&e);
		ct_close(&dom);
		ct_sync(ct, NULL);
		free(buf);
		return;
	}
	ct_sync(ct, &e);
	for (size_t i = 0; i < 2 * CT_COUNT(lens); i++) {
		struct ct_one o = {
			.buf = buf, .len = lens[i / 2], .ctx = CTX(i + 1), .tagged = i & 1, .tag = 6, .to = 1
		};
		ssize_t rc;

		while ((rc = ct_send_one(&e, &o)) == -FI_EAGAIN)
			ct_progress(&e);
		if (rc)
			continue; /* refused: told already */
		ct_of(&e, CTX(i + 1), &c);
		CT_TRUE(ct, c.err > 0);
		CT_EQ(ct, c.flags & (FI_SEND | FI_TAGGED), FI_SEND | (i & 1 ? FI_TAGGED : 0));
		told++;
	}
	CT_TRUE(ct, told > 0);
	ct_quiet(&e, 20, "one completion for each error");
	free(buf);
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * "the results of the peek operation are available in the completion queue", and what it claims
 * is received as configured.
 */
static void peek_selective(struct ct *ct)
{
	struct ct_want want = { .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_context2 mine = { { NULL } };
	struct ct_one o = { .ctx = &mine, .flags = FI_PEEK | FI_CLAIM, .tagged = true, .tag = 6 };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[2][8] = { "", "" };

	ct_start(ct, &dom, &e, &want);
	for (int i = 0; !ct->rank && i < 2; i++) {
		ct_fill(buf[i], 8, (uint64_t)i + 1);
		ct_tsend(&e, 1, buf[i], 8, 6, CTX(i + 1));
		ct_done(&e, CTX(i + 1));
	}
	for (int i = 0; ct->rank && i < 2; i++) {
		double end = ct_deadline(ct);

		do {
			o.flags = FI_PEEK | FI_CLAIM;
			CT_POST(&e, ct_recv_one(&e, &o));
			ct_of(&e, &mine, &c);
			CT_TRUE(ct, !c.err || c.err == FI_ENOMSG);
			ct_late(ct, end, "a peek to find its message");
		} while (c.err);
		o.buf = buf[i];
		o.len = 8;
		o.flags = FI_CLAIM | (i ? FI_COMPLETION : 0);
		CT_POST(&e, ct_recv_one(&e, &o));
		if (i)
			CT_EQ(ct, ct_done(&e, &mine), 8);
		else
			ct_quiet(&e, 20, "a claim without FI_COMPLETION");
		ct_verify(ct, buf[i], 8, (uint64_t)i + 1, "claimed");
		o.buf = NULL;
		o.len = 0;
	}
	ct_quiet(&e, 10, "what was asked for is told");
	ct_finish(&e);
}

/*
 * fi_cq(3): length and tag are those of what has been received, and data is there where
 * FI_REMOTE_CQ_DATA says so. Of what was sent none of them says anything, and
 * libfabric's providers have 0 there.
 */
static void fields(struct ct *ct)
{
	struct ct_one one = { .len = 16, .ctx = CTX(1), .tag = CT_TAG, .data = 77, .to = 1 };
	char buf[16] = "sixteen bytes..";
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	one.buf = buf;
	for (int i = 0; i < 4; i++) {
		one.tagged = i & 1;
		one.flags = FI_COMPLETION | (i & 2 ? FI_REMOTE_CQ_DATA : 0);
		if (ct->rank)
			ct_recv_kind(&e, one.tagged, buf, sizeof(buf), CTX(1));
		else
			CT_POST(&e, ct_send_one(&e, &one));
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, ct->rank ? sizeof(buf) : 0);
		CT_EQ(ct, c.tag, ct->rank && one.tagged ? CT_TAG : 0);
		CT_EQ(ct, c.data, ct->rank && i & 2 ? 77 : 0);
		CT_TRUE(ct, ct->rank || !c.buf);
	}
	ct_sync(ct, &e);
	ct_finish(&e);
}

const struct ct_case ct_told[] = {
	{ "CQ", "fields", CT_TWO(fields) },
	{ "M9", "selective-calls", CT_TWO(selective_calls) },
	{ "M9", "told-of-all", CT_TWO(told_of_all) },
	{ "M9", "errors-received", CT_TWO(errors_received) },
	{ "M9", "errors-sent", CT_TWO(errors_sent) },
	{ "T5", "peek-selective", CT_TWO(peek_selective) },
	{ 0 },
};
