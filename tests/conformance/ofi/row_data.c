/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M8, fi_msg(3) and fi_cq(3): remote CQ data where the message waits, shares its buffer,
 * is cut, or is looked at.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define MOST 300000

static const size_t lens[] = { 0, 40, 5000, MOST };

static uint64_t data_of(const struct ct_dom *dom, uint64_t i)
{
	size_t n = dom->info->domain_attr->cq_data_size;
	uint64_t data = UINT64_C(0x8000000000000001) * (i + 1);

	return n >= 8 ? data : data & ((UINT64_C(1) << (8 * n)) - 1);
}

static void begin(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, uint64_t caps)
{
	struct ct_want want = { .caps = caps, .msg_order = FI_ORDER_SAS };

	ct_start(ct, dom, e, &want);
	if (!dom->info->domain_attr->cq_data_size)
		ct_unsupported(ct, "cq_data_size is 0");
}

static void with_data(struct ct_ep *e, void *buf, size_t len, size_t i)
{
	struct ct_one o = { .buf = buf,
			    .len = len,
			    .ctx = CTX(i + 1),
			    .flags = FI_REMOTE_CQ_DATA,
			    .data = data_of(e->dom, i),
			    .tagged = i & 1,
			    .tag = 6,
			    .to = 1 };

	CT_POST(e, ct_send_one(e, &o));
}

static void check(struct ct_ep *e, const struct ct_comp *c, size_t i)
{
	CT_TRUE(e->ct, c->flags & FI_REMOTE_CQ_DATA);
	CT_EQ(e->ct, c->data, data_of(e->dom, i));
}

/* arg: bytes that the receive is short of; then the error's entry has the data */
static void waiting(struct ct *ct)
{
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	begin(ct, &dom, &e, 0);
	for (size_t i = 0; i < 2 * CT_COUNT(lens); i++) {
		size_t len = lens[i / 2], less = ct->cs->arg < len ? ct->cs->arg : 0;

		if (!ct->rank) {
			with_data(&e, buf, len, i);
			ct_sync(ct, &e);
			ct_of(&e, CTX(i + 1), &c);
			CT_EQ(ct, c.err, 0);
			/* "only applies to receive completions" */
			CT_TRUE(ct, !(c.flags & FI_REMOTE_CQ_DATA));
			continue;
		}
		ct_sync(ct, &e);
		ct_recv_kind(&e, i & 1, buf, len - less, CTX(i + 1));
		ct_of(&e, CTX(i + 1), &c);
		CT_EQ(ct, c.err, less ? FI_ETRUNC : 0);
		check(&e, &c, i);
	}
	free(buf);
	ct_finish(&e);
}

/* Each message in a buffer for many has its own. */
static void shared_buffer(struct ct *ct)
{
	char *buf = ct_alloc(ct, MOST);
	struct ct_one o = { .buf = buf, .len = MOST, .ctx = CTX(99), .flags = FI_MULTI_RECV };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	begin(ct, &dom, &e, FI_MSG | FI_MULTI_RECV);
	if (ct->rank)
		CT_POST(&e, ct_recv_one(&e, &o));
	ct_sync(ct, &e);
	for (size_t i = 0; i < 40; i += 2) {
		if (!ct->rank) {
			with_data(&e, buf, lens[i % 3], i);
			ct_done(&e, CTX(i + 1));
			continue;
		}
		ct_of(&e, CTX(99), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, lens[i % 3]);
		check(&e, &c, i);
	}
	ct_sync(ct, &e);
	free(buf);
	ct_finish(&e);
}

/* "available CQ data" is in what a peek tells, and again with the message. */
static void peeked(struct ct *ct)
{
	struct ct_one look = { .ctx = CTX(50), .flags = FI_PEEK, .tagged = true, .tag = 6 };
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	begin(ct, &dom, &e, 0);
	for (size_t i = 1; i < 2 * CT_COUNT(lens); i += 2) {
		double end = ct_deadline(ct);

		if (!ct->rank) {
			with_data(&e, buf, lens[i / 2], i);
			ct_sync(ct, &e);
			ct_done(&e, CTX(i + 1));
			continue;
		}
		do {
			ct_late(ct, end, "a peek to find its message");
			CT_POST(&e, ct_recv_one(&e, &look));
			ct_of(&e, CTX(50), &c);
		} while (c.err == FI_ENOMSG);
		CT_EQ(ct, c.err, 0);
		check(&e, &c, i);
		ct_recv_kind(&e, i & 1, buf, MOST, CTX(i + 1));
		ct_of(&e, CTX(i + 1), &c);
		CT_EQ(ct, c.err, 0);
		check(&e, &c, i);
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_data[] = {
	{ "M8", "cq-data-waiting", CT_TWO(waiting) },
	{ "M8", "cq-data-cut", CT_TWO(waiting), .arg = 7 },
	{ "M8", "cq-data-multi-recv", CT_TWO(shared_buffer) },
	{ "M8", "cq-data-peeked", CT_TWO(peeked) },
	{ 0 },
};
