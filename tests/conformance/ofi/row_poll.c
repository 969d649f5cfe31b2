/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Poll sets, fi_poll(3). */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored \
	"-Wdeprecated-declarations" /* newer headers warn of poll sets, which programs still use */

#define TXQ CTX(11)
#define RXQ CTX(12)
#define TXC CTX(13)
#define RXC CTX(14)

static struct fid_poll *open_set(struct ct_dom *dom)
{
	struct fi_poll_attr attr = { 0 };
	struct fid_poll *set;
	int rc = fi_poll_open(dom->domain, &attr, &set);

	if (rc == -FI_ENOSYS)
		ct_unsupported(dom->ct, "fi_poll_open: %s", fi_strerror(-rc));
	CT_OK(dom->ct, rc);
	return set;
}

/* Both queues and both counters of the endpoint, which say who they are by their context. */
static struct fid_poll *poll_all(struct ct_ep *e)
{
	struct fid_poll *set = open_set(e->dom);

	e->txcq->fid.context = TXQ;
	e->rxcq->fid.context = RXQ;
	e->txcntr->fid.context = TXC;
	e->rxcntr->fid.context = RXC;
	CT_OK(e->ct, fi_poll_add(set, &e->txcq->fid, 0));
	CT_OK(e->ct, fi_poll_add(set, &e->rxcq->fid, 0));
	CT_OK(e->ct, fi_poll_add(set, &e->txcntr->fid, 0));
	CT_OK(e->ct, fi_poll_add(set, &e->rxcntr->fid, 0));
	return set;
}

static void drop_all(struct ct_ep *e, struct fid_poll *set)
{
	CT_OK(e->ct, fi_poll_del(set, &e->txcq->fid, 0));
	CT_OK(e->ct, fi_poll_del(set, &e->rxcq->fid, 0));
	CT_OK(e->ct, fi_poll_del(set, &e->txcntr->fid, 0));
	CT_OK(e->ct, fi_poll_del(set, &e->rxcntr->fid, 0));
	CT_OK(e->ct, fi_close(&set->fid));
}

static const struct ct_want split = { .split = true, .counters = true };

/* Polls until this context is among those returned, and makes progress by nothing else. */
static void poll_for(struct ct_ep *e, struct fid_poll *set, const void *ctx)
{
	double end = ct_deadline(e->ct);
	void *got[8];

	for (;;) {
		int n = fi_poll(set, got, 8);

		CT_TRUE(e->ct, n >= 0 && n <= 8);
		for (int i = 0; i < n; i++) {
			CT_TRUE(e->ct, got[i] == TXQ || got[i] == RXQ || got[i] == TXC || got[i] == RXC);
			if (got[i] == ctx)
				return;
		}
		ct_late(e->ct, end, "fi_poll to return a context");
	}
}

static bool polls(struct ct_ep *e, struct fid_poll *set, const void *ctx)
{
	void *got[8];
	int n = fi_poll(set, got, 8);
	bool found = false;

	CT_TRUE(e->ct, n >= 0);
	for (int i = 0; i < n; i++)
		found |= got[i] == ctx;
	return found;
}

/*
 * fi_poll moves messages of any size, and returns a queue until it is read, a
 * counter once. arg: bytes.
 */
static void contexts(struct ct *ct)
{
	size_t len = ct->cs->arg;
	char *buf = ct_alloc(ct, len);
	struct fid_poll *set;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &split);
	set = poll_all(&e);
	CT_TRUE(ct, !polls(&e, set, RXQ) && !polls(&e, set, TXQ));
	if (ct->rank) {
		ct_trecv(&e, buf, len, 1, 0, CTX(1));
		ct_sync(ct, NULL);
		poll_for(&e, set, RXC);
		CT_TRUE(ct, polls(&e, set, RXQ));
		CT_TRUE(ct, polls(&e, set, RXQ));
		CT_TRUE(ct, !polls(&e, set, RXC));
		ct_done(&e, CTX(1));
		CT_TRUE(ct, !polls(&e, set, RXQ));
		ct_verify(ct, buf, len, 3, "a message moved by fi_poll");
	} else {
		ct_fill(buf, len, 3);
		ct_sync(ct, NULL);
		ct_tsend(&e, 1, buf, len, 1, CTX(1));
		poll_for(&e, set, TXQ);
		ct_done(&e, CTX(1));
	}
	ct_sync(ct, &e);
	drop_all(&e, set);
	ct_finish(&e);
	free(buf);
}

/* What the program does to a counter itself is no event. */
static void own_changes(struct ct *ct)
{
	struct fid_poll *set;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &split);
	ct_ep_open(&dom, &e);
	set = poll_all(&e);
	polls(&e, set, RXC);
	CT_OK(ct, fi_cntr_add(e.rxcntr, 5));
	CT_TRUE(ct, !polls(&e, set, RXC));
	CT_OK(ct, fi_cntr_set(e.rxcntr, 1));
	CT_TRUE(ct, !polls(&e, set, RXC));
	drop_all(&e, set);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* With room for one context only: whoever is returned is read, and then the other one is. */
static void small_array(struct ct *ct)
{
	struct fid_poll *set;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[8] = { 0 };
	bool tx = false, rx = false;
	double end = ct_deadline(ct);

	ct_open(ct, &dom, &split);
	ct_ep_open(&dom, &e);
	e.addr[0] = ct_insert(&e, e.name);
	set = poll_all(&e);
	CT_OK(ct, fi_trecv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1)));
	CT_POST(&e, fi_tsend(e.ep, buf, 8, NULL, e.addr[0], 1, CTX(2)));
	while (!tx || !rx) {
		void *got = NULL;

		CT_TRUE(ct, fi_poll(set, &got, 1) <= 1);
		if (got == TXQ)
			tx |= ct_read_cq(&e, e.txcq, &c) && c.ctx == CTX(2);
		if (got == RXQ)
			rx |= ct_read_cq(&e, e.rxcq, &c) && c.ctx == CTX(1);
		ct_late(ct, end, "both queues, one at a time");
	}
	drop_all(&e, set);
	ct_ep_close(&e);
	ct_close(&dom);
}

static void refused(struct ct *ct)
{
	struct fi_poll_attr attr = { .flags = 1 };
	struct fid_poll *set, *none = NULL;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &split);
	ct_ep_open(&dom, &e);
	set = open_set(&dom);
	CT_REFUSED(ct, fi_poll_open(dom.domain, &attr, &none));
	CT_REFUSED(ct, fi_poll_add(set, &e.ep->fid, 0));
	CT_REFUSED(ct, fi_poll_del(set, &e.ep->fid, 0));
	CT_OK(ct, fi_poll_add(set, &e.txcq->fid, 0));
	CT_OK(ct, fi_close(&e.ep->fid));
	CT_EQ(ct, fi_close(&e.txcq->fid), -FI_EBUSY); /* it is polled */
	CT_OK(ct, fi_poll_del(set, &e.txcq->fid, 0));
	CT_OK(ct, fi_close(&set->fid));
	CT_OK(ct, fi_close(&e.txcq->fid));
	CT_OK(ct, fi_close(&e.rxcq->fid));
	CT_OK(ct, fi_close(&e.txcntr->fid));
	CT_OK(ct, fi_close(&e.rxcntr->fid));
	CT_OK(ct, fi_close(&e.av->fid));
	ct_close(&dom);
}

const struct ct_case ct_poll_sets[] = {
	{ "POLL", "contexts", CT_TWO(contexts), .arg = 64 },
	{ "POLL", "contexts-large", CT_TWO(contexts), .arg = 3 << 20 },
	{ "POLL", "own-changes", { own_changes } },
	{ "POLL", "small-array", { small_array } },
	{ "POLL", "refused", { refused } },
	{ 0 },
};
