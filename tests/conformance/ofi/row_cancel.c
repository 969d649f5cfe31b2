/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* T10: fi_cancel, fi_endpoint(3). */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

static size_t cancelled(struct ct_ep *e, size_t n)
{
	struct ct_comp c;
	size_t i, ours = 0;

	for (i = 0; i < n; i++) {
		ct_any(e, &c);
		if (c.err) {
			CT_EQ(e->ct, c.err, FI_ECANCELED);
			ours++;
		}
	}
	return ours;
}

static void cancel(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64];
	size_t i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; ct->rank && i < 20; i++) {
		/* The middle one of three equal receives, tagged and untagged in turn. */
		size_t k;

		for (k = 0; k < 3; k++) {
			if (i & 1)
				ct_trecv(&e, buf, sizeof(buf), 2, k == 1 ? 1 : 0, CTX(10 * i + k + 1));
			else
				ct_recv(&e, buf, sizeof(buf), CTX(10 * i + k + 1));
		}
		for (k = 0; k < 3; k++) {
			size_t which = (k + 1) % 3;

			CT_OK(ct, fi_cancel(&e.ep->fid, CTX(10 * i + which + 1)));
			ct_any(&e, &c);
			CT_EQ(ct, c.err, FI_ECANCELED);
			CT_TRUE(ct, c.ctx == CTX(10 * i + which + 1));
			/*
			 * A second time there is nothing to cancel; whatever it
			 * answers, no entry may come.
			 */
			fi_cancel(&e.ep->fid, CTX(10 * i + which + 1));
		}
	}
	ct_quiet(&e, 50, "cancelled twice");
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* "If multiple outstanding operations match the context parameter, only one will be canceled." */
static void cancel_one(struct ct *ct)
{
	char buf[3][64];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	for (size_t i = 0; ct->rank && i < 3; i++)
		ct_trecv(&e, buf[i], 64, 2, 0, CTX(1));
	for (size_t i = 0; ct->rank && i < 2; i++) {
		CT_OK(ct, fi_cancel(&e.ep->fid, CTX(1)));
		ct_any(&e, &c);
		CT_TRUE(ct, c.err == FI_ECANCELED && c.ctx == CTX(1));
		ct_quiet(&e, 20, "one cancel for several receives");
	}
	ct_sync(ct, &e);
	if (ct->rank) {
		CT_EQ(ct, ct_done(&e, CTX(1)), 9);
	} else {
		ct_tsend(&e, 1, buf[0], 9, 2, CTX(2));
		ct_done(&e, CTX(2));
	}
	ct_quiet(&e, 20, "receives with one context");
	ct_finish(&e);
}

/*
 * Cancels race with messages: each receive completes exactly once, either
 * way, and no message is lost.
 */
static void cancel_race(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	char(*buf)[64] = ct_alloc(ct, 1000 * 64);
	size_t i, n = 1000, gone = 0;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		for (i = 0; i < n; i++)
			ct_trecv(&e, buf[i], 64, 2, 0, CTX(i + 1));
		ct_sync(ct, &e);
		for (i = n; i-- > 0;)
			fi_cancel(&e.ep->fid, CTX(i + 1));
		gone = cancelled(&e, n);
		/* As many messages as receives were cancelled must still be there. */
		for (i = 0; i < gone; i++)
			ct_trecv(&e, buf[0], 64, 2, 0, CTX(5000 + i));
		for (i = 0; i < gone; i++)
			ct_done(&e, CTX(5000 + i));
		ct_quiet(&e, 50, "receives that raced with cancels");
	} else {
		ct_sync(ct, &e);
		for (i = 0; i < n; i++)
			ct_tsend(&e, 1, buf[i], 64, 2, CTX(i + 1));
		for (i = 0; i < n; i++)
			ct_done(&e, CTX(i + 1));
	}
	free(buf);
	ct_finish(&e);
}

/*
 * A large message whose receive is cancelled on the way in: one completion,
 * and the next one is fine.
 */
static void cancel_large(struct ct *ct)
{
	size_t len = 8 << 20;
	char *buf = ct_alloc(ct, len);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	int i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 10; i++) {
		if (ct->rank) {
			ct_trecv(&e, buf, len, 2, 0, CTX(1));
			ct_sync(ct, &e);
			ct_idle(&e, i);
			fi_cancel(&e.ep->fid, CTX(1));
			ct_of(&e, CTX(1), &c);
			CT_TRUE(ct, !c.err || c.err == FI_ECANCELED);
			if (c.err) {
				ct_trecv(&e, buf, len, 2, 0, CTX(2));
				CT_EQ(ct, ct_done(&e, CTX(2)), len);
			}
			ct_verify(ct, buf, len, (uint64_t)i, "after a cancel");
		} else {
			ct_fill(buf, len, (uint64_t)i);
			ct_sync(ct, &e);
			ct_tsend(&e, 1, buf, len, 2, CTX(1));
			ct_done(&e, CTX(1));
		}
	}
	free(buf);
	ct_finish(&e);
}

/*
 * fi_cq(3) has no flags for fi_cq_readerr; some programs say FI_SEND or FI_RECV all the same, and
 * must not lose their error for it.
 */
static void readerr_flags(struct ct *ct)
{
	static const uint64_t flags[] = { FI_RECV, FI_SEND, UINT64_MAX };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[64];

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	for (size_t i = 0; i < CT_COUNT(flags); i++) {
		struct fi_cq_err_entry err = { 0 };
		struct fi_cq_tagged_entry c;

		CT_EQ(ct, fi_cq_readerr(e.rxcq, &err, flags[i]), -FI_EAGAIN);
		ct_recv(&e, buf, sizeof(buf), CTX(i + 1));
		CT_OK(ct, fi_cancel(&e.ep->fid, CTX(i + 1)));
		CT_EQ(ct, fi_cq_read(e.rxcq, &c, 1), -FI_EAVAIL);
		CT_EQ(ct, fi_cq_readerr(e.rxcq, &err, flags[i]), 1);
		CT_TRUE(ct, err.op_context == CTX(i + 1));
		CT_EQ(ct, err.err, FI_ECANCELED);
	}
	ct_ep_close(&e);
	ct_close(&dom);
}

const struct ct_case ct_cancel[] = {
	{ "CQ", "readerr-flags", { readerr_flags } },		{ "T10", "cancel", CT_TWO(cancel) },
	{ "T10", "cancel-one-of-several", CT_TWO(cancel_one) }, { "T10", "cancel-race", CT_TWO(cancel_race) },
	{ "T10", "cancel-large", CT_TWO(cancel_large) },	{ 0 },
};
