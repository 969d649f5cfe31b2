/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Triggered operations, fi_trigger(3). */
#include "region.h"
#include "triggered.h"

#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

/* A send or receive of either kind with flags, in the ways that take flags. */
struct call {
	bool tagged, receives;
	int rank;
	void *buf;
	size_t len;
	uint64_t tag, flags;
	void *ctx;
};

static ssize_t make(struct ct_ep *e, const struct call *c)
{
	struct iovec iov = { c->buf, c->len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = e->addr[c->rank], .context = c->ctx };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = e->addr[c->rank], .tag = c->tag, .context = c->ctx
	};
	ssize_t rc;

	if (c->receives)
		m.addr = t.addr = FI_ADDR_UNSPEC;
	if (c->tagged)
		rc = c->receives ? fi_trecvmsg(e->ep, &t, c->flags) : fi_tsendmsg(e->ep, &t, c->flags);
	else
		rc = c->receives ? fi_recvmsg(e->ep, &m, c->flags) : fi_sendmsg(e->ep, &m, c->flags);
	memset(&iov, 0xff, sizeof(iov)); /* the program's segments need not live on */
	return rc;
}

static ssize_t trigger(struct ct_ep *e, struct call c)
{
	c.flags |= FI_TRIGGER | FI_COMPLETION;
	return make(e, &c);
}

/* ---- triggered operations -------------------------------------------------------------------- */

/* Sends leave in the order of their thresholds, equal ones as they were made; arg: tagged. */
static void order(struct ct *ct)
{
	static const size_t threshold[] = { 3, 1, 2, 2, 9 }, sequence[] = { 1, 2, 3, 0, 4 };
	struct fi_triggered_context ctx[CT_COUNT(threshold)];
	uint64_t value[CT_COUNT(threshold)];
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &triggering);
	if (!ct->rank) {
		struct fid_cntr *c = tr_cntr(&dom);

		for (i = 0; i < CT_COUNT(threshold); i++) {
			value[i] = i;
			tr_when(&ctx[i], c, threshold[i]);
			CT_OK(ct, trigger(&e, (struct call){ .tagged = ct->cs->arg,
							     .rank = 1,
							     .buf = &value[i],
							     .len = 8,
							     .tag = 1,
							     .ctx = &ctx[i] }));
		}
		ct_quiet(&e, 30, "a threshold");
		CT_OK(ct, fi_cntr_add(c, 3));
		for (i = 0; i < 4; i++)
			ct_done(&e, &ctx[sequence[i]]);
		ct_quiet(&e, 30, "the last threshold");
		CT_OK(ct, fi_cntr_set(c, 100));
		ct_done(&e, &ctx[4]);
		CT_EQ(ct, fi_cntr_read(e.txcntr), CT_COUNT(threshold));
		CT_OK(ct, fi_close(&c->fid));
	} else {
		for (i = 0; i < CT_COUNT(threshold); i++)
			if (ct->cs->arg)
				ct_trecv(&e, &value[i], 8, 1, 0, CTX(i + 1));
			else
				ct_recv(&e, &value[i], 8, CTX(i + 1));
		for (i = 0; i < CT_COUNT(threshold); i++) {
			ct_done(&e, CTX(i + 1));
			CT_EQ(ct, value[i], sequence[i]);
		}
	}
	ct_finish(&e);
}

/*
 * Where the condition holds already there is nothing to wait for; injected
 * data may be written over.
 */
static void at_once(struct ct *ct)
{
	struct fi_triggered_context ctx;
	char buf[64], in[64];
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &triggering);
	if (!ct->rank) {
		struct fid_cntr *c = tr_cntr(&dom);
		struct call s = {
			.tagged = true, .rank = 1, .buf = buf, .len = sizeof(buf), .tag = 1, .ctx = &ctx
		};

		ct_fill(buf, sizeof(buf), 5);
		tr_when(&ctx, c, 0);
		CT_OK(ct, trigger(&e, s));
		ct_done(&e, &ctx);
		tr_when(&ctx, c, 1);
		s.flags = FI_INJECT;
		CT_OK(ct, trigger(&e, s));
		memset(buf, 0, sizeof(buf));
		CT_OK(ct, fi_cntr_add(c, 1));
		ct_done(&e, &ctx);
		CT_OK(ct, fi_close(&c->fid));
	} else {
		for (int i = 0; i < 2; i++) {
			ct_trecv(&e, in, sizeof(in), 1, 0, CTX(1));
			ct_done(&e, CTX(1));
			ct_verify(ct, in, sizeof(in), 5, "a triggered send");
		}
	}
	ct_finish(&e);
}

/*
 * Messages go back and forth without any call but those that make progress: each
 * receive triggers a send.
 */
static void bounce(struct ct *ct)
{
	struct fi_triggered_context ctx[MANY];
	size_t len = ct->cs->arg;
	char *in = ct_alloc(ct, MANY * len), *out = ct_alloc(ct, len);
	struct ct_dom dom;
	struct ct_ep e;
	double end = ct_deadline(ct);
	size_t i;

	ct_fill(out, len, 7);
	ct_start(ct, &dom, &e, &triggering);
	for (i = 0; i < MANY; i++) {
		struct call s = {
			.tagged = true, .rank = !ct->rank, .buf = out, .len = len, .tag = 1, .ctx = &ctx[i]
		};

		ct_trecv(&e, in + i * len, len, 1, 0, CTX(i + 1));
		tr_when(&ctx[i], e.rxcntr, i + (ct->rank ? 1 : 0)); /* rank 0 begins */
		CT_OK(ct, trigger(&e, s));
	}
	while (fi_cntr_read(e.rxcntr) < MANY || fi_cntr_read(e.txcntr) < MANY)
		ct_late(ct, end, "triggered sends to go back and forth");
	for (i = 0; i < MANY; i++) {
		ct_done(&e, CTX(i + 1));
		ct_done(&e, &ctx[i]);
		ct_verify(ct, in + i * len, len, 7, "a bounced message");
	}
	ct_finish(&e);
	free(in);
	free(out);
}

/*
 * A triggered receive takes no message before its time, and then one that has long
 * been there; arg: tagged.
 */
static void receive(struct ct *ct)
{
	struct fi_triggered_context ctx;
	char a[8] = "", b[8] = "";
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &triggering);
	if (ct->rank) {
		struct fid_cntr *c = tr_cntr(&dom);

		tr_when(&ctx, c, 1);
		CT_OK(ct, trigger(&e, (struct call){ .tagged = ct->cs->arg,
						     .receives = true,
						     .buf = a,
						     .len = 8,
						     .tag = 1,
						     .ctx = &ctx }));
		ct_sync(ct, &e);
		ct_quiet(&e, 50, "the trigger of a receive");
		if (ct->cs->arg)
			ct_trecv(&e, b, 8, 1, 0, CTX(2));
		else
			ct_recv(&e, b, 8, CTX(2));
		ct_done(&e, CTX(2));
		CT_TRUE(ct, !strcmp(b, "first"));
		CT_OK(ct, fi_cntr_add(c, 1));
		CT_EQ(ct, ct_done(&e, &ctx), 7);
		CT_TRUE(ct, !strcmp(a, "second"));
		CT_OK(ct, fi_close(&c->fid));
	} else {
		ct_sync(ct, &e);
		for (int i = 0; i < 2; i++) {
			if (ct->cs->arg)
				ct_tsend(&e, 1, i ? "second" : "first", i ? 7 : 6, 1, CTX(1));
			else
				ct_send(&e, 1, i ? "second" : "first", i ? 7 : 6, CTX(1));
			ct_done(&e, CTX(1));
		}
	}
	ct_finish(&e);
}

static void refused(struct ct *ct)
{
	struct fi_triggered_context ctx;
	struct fi_context2 foreign[8] = { 0 };
	static char huge[1];
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &triggering);
	if (!ct->rank) {
		struct fid_cntr *c = tr_cntr(&dom);
		struct call s = { .tagged = true, .rank = 1, .buf = huge, .len = 1, .tag = 1, .ctx = NULL };

		CT_REFUSED(ct, trigger(&e, s));
		s.ctx = &ctx;
		tr_when(&ctx, c, 1);
		ctx.event_type = (enum fi_trigger_event)77;
		CT_REFUSED(ct, trigger(&e, s));
		tr_when(&ctx, (struct fid_cntr *)foreign, 1);
		CT_REFUSED(ct, trigger(&e, s));
		tr_when(&ctx, NULL, 1);
		CT_REFUSED(ct, trigger(&e, s));
		tr_when(&ctx, c, 1);
		s.len = dom.info->ep_attr->max_msg_size + 1;
		CT_REFUSED(ct, trigger(&e, s));
		s.len = dom.info->tx_attr->inject_size + 1;
		s.flags = FI_INJECT;
		CT_REFUSED(ct, trigger(&e, s));
		CT_OK(ct, fi_close(&c->fid)); /* nothing waits there */
		ct_ping(&e, 1);
	} else {
		ct_ping(&e, 0);
	}
	ct_finish(&e);
}

/* fi_cancel ends one that waits; closing the endpoint forgets it, and lets the counter go. */
static void cancel(struct ct *ct)
{
	struct fi_triggered_context ctx[2];
	struct ct_dom dom;
	struct ct_comp comp;
	struct ct_ep e;
	struct fid_cntr *c;
	char buf[8];

	ct_open(ct, &dom, &triggering);
	ct_ep_open(&dom, &e);
	e.addr[0] = ct_insert(&e, e.name);
	c = tr_cntr(&dom);
	for (int i = 0; i < 2; i++) {
		tr_when(&ctx[i], c, 1);
		CT_OK(ct,
		      trigger(&e, (struct call){
					  .tagged = true, .buf = buf, .len = 8, .tag = 1, .ctx = &ctx[i] }));
	}
	CT_OK(ct, fi_cancel(&e.ep->fid, &ctx[0]));
	ct_of(&e, &ctx[0], &comp);
	CT_EQ(ct, comp.err, FI_ECANCELED);
	CT_EQ(ct, fi_close(&c->fid), -FI_EBUSY);
	ct_ep_close(&e);
	CT_OK(ct, fi_cntr_add(c, 5));
	CT_EQ(ct, fi_cntr_read(c), 5);
	CT_OK(ct, fi_close(&c->fid));
	ct_close(&dom);
}

const struct ct_case ct_trigger[] = {
	{ "TRIGGER", "order", CT_TWO(order), .arg = 0 },
	{ "TRIGGER", "order-tagged", CT_TWO(order), .arg = 1 },
	{ "TRIGGER", "at-once", CT_TWO(at_once) },
	{ "TRIGGER", "bounce", CT_TWO(bounce), .arg = 8 },
	{ "TRIGGER", "bounce-large", CT_TWO(bounce), .arg = 1 << 20 },
	{ "TRIGGER", "receive", CT_TWO(receive), .arg = 0 },
	{ "TRIGGER", "receive-tagged", CT_TWO(receive), .arg = 1 },
	{ "TRIGGER", "refused", CT_TWO(refused) },
	{ "TRIGGER", "cancel", { cancel } },
	{ 0 },
};
