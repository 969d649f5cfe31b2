/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M10, fi_msg(3): FI_MORE says that another call follows; whatever does, nothing is lost or late.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 12
#define LEN 64

static const uint64_t others[] = {
	0, FI_INJECT, FI_REMOTE_CQ_DATA, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE
};

static void more(struct ct_ep *e, int to, char *buf, size_t i)
{
	struct ct_one o = { .buf = buf + LEN * i,
			    .len = LEN,
			    .ctx = CTX(i + 1),
			    .flags = FI_MORE | others[i % CT_COUNT(others)],
			    .tagged = i & 1,
			    .tag = 6,
			    .to = to };

	ct_fill(o.buf, LEN, i);
	CT_POST(e, ct_send_one(e, &o));
}

static void take(struct ct_ep *e, char *buf, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ct_one o = { .buf = buf + LEN * i,
				    .len = LEN,
				    .ctx = CTX(i + 1),
				    .flags = FI_MORE,
				    .tagged = i & 1,
				    .tag = 6 };

		CT_POST(e, ct_recv_one(e, &o));
	}
	for (size_t i = 0; i < n; i++) {
		CT_EQ(e->ct, ct_done(e, CTX(i + 1)), LEN);
		ct_verify(e->ct, buf + LEN * i, LEN, i, "FI_MORE");
	}
}

/*
 * With every other flag, to two ranks in turn; what ends a run is a call of another kind,
 * or nothing but progress.
 */
static void flushed(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	char *buf = ct_alloc(ct, (BATCH + 1) * LEN), *big = ct_alloc(ct, 1 << 20), in[8];
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	for (size_t i = 0; !ct->rank && i < 2 * BATCH; i++)
		more(&e, 1 + (int)(i & 1), buf, i / 2);
	if (ct->rank)
		take(&e, buf, BATCH);
	for (size_t i = 0; !ct->rank && i < 2 * BATCH; i++)
		ct_done(&e, CTX(i / 2 + 1));
	/* and now behind each of them another call */
	for (size_t i = 0; i < 4; i++) {
		if (ct->rank == 1) {
			ct_recv(&e, big, 1 << 20, CTX(90));
			ct_recv(&e, in, 8, CTX(91));
			ct_done(&e, CTX(90));
			ct_done(&e, CTX(91));
		} else if (!ct->rank) {
			struct ct_one o = { .buf = big,
					    .len = i & 2 ? 1 << 20 : 8,
					    .ctx = CTX(90),
					    .flags = FI_MORE,
					    .to = 1 };

			CT_POST(&e, ct_send_one(&e, &o));
			if (i & 1)
				CT_POST(&e, fi_inject(e.ep, in, 8, e.addr[1]));
			else
				ct_send(&e, 1, in, 8, CTX(91));
			ct_done(&e, CTX(90));
			if (!(i & 1))
				ct_done(&e, CTX(91));
		}
	}
	ct_quiet(&e, 10, "each completes once");
	free(buf);
	free(big);
	ct_finish(&e);
}

/* The last call says FI_MORE, and then the program sleeps: that is progress too. */
static void sleeps(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_UNSPEC, .msg_order = FI_ORDER_SAS };
	struct fi_cq_tagged_entry got;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[LEN] = "";

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	for (size_t i = 0; i < 20; i++) {
		struct ct_one o = { .buf = buf, .len = LEN, .ctx = CTX(i + 1), .flags = FI_MORE, .to = 1 };

		if (!ct->rank) {
			o.flags |= FI_DELIVERY_COMPLETE;
			CT_POST(&e, ct_send_one(&e, &o));
		} else {
			CT_POST(&e, ct_recv_one(&e, &o));
		}
		CT_EQ(ct, fi_cq_sread(e.txcq, &got, 1, NULL, (int)((ct_deadline(ct) - ct_now()) * 1000)), 1);
		CT_TRUE(ct, got.op_context == CTX(i + 1));
	}
	ct_finish(&e);
}

const struct ct_case ct_more[] = {
	{ "M10", "more-flushed", { flushed, flushed, flushed } },
	{ "M10", "more-sleeps", { sleeps, sleeps } },
	{ 0 },
};
