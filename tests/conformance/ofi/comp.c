/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Completions: read from queues of any format into one form, kept until a case asks for them. */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

static void from_entry(enum fi_cq_format format, const struct fi_cq_tagged_entry *t, struct ct_comp *c)
{
	/* The formats are prefixes of each other, fi_cq(3). */
	c->ctx = t->op_context;
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	c->flags = t->flags;
	c->len = t->len;
	if (format == FI_CQ_FORMAT_MSG)
		return;
	c->buf = t->buf;
	c->data = t->data;
	if (format != FI_CQ_FORMAT_DATA)
		c->tag = t->tag;
}

static void from_error(struct ct_ep *e, struct fid_cq *cq, struct ct_comp *c)
{
	struct fi_cq_err_entry err = { 0 };

	CT_EQ(e->ct, fi_cq_readerr(cq, &err, 0), 1);
	CT_TRUE(e->ct, err.err > 0);
	c->ctx = err.op_context;
	c->flags = err.flags;
	c->len = err.len;
	c->buf = err.buf;
	c->data = err.data;
	c->tag = err.tag;
	c->olen = err.olen;
	c->err = err.err;
}

bool ct_read_cq(struct ct_ep *e, struct fid_cq *cq, struct ct_comp *c)
{
	const struct ct_want *w = &e->dom->want;
	struct fi_cq_tagged_entry t;
	ssize_t rc;

	memset(c, 0, sizeof(*c));
	memset(&t, 0, sizeof(t));
	c->src = FI_ADDR_NOTAVAIL;
	c->tx = cq == e->txcq && cq != e->rxcq;
	if (w->caps & FI_SOURCE)
		rc = fi_cq_readfrom(cq, &t, 1, &c->src);
	else
		rc = fi_cq_read(cq, &t, 1);
	if (rc == -FI_EAGAIN)
		return false;
	if (rc == -FI_EAVAIL) {
		from_error(e, cq, c);
		return true;
	}
	if (rc != 1)
		ct_fail(e->ct, "reading a CQ gives %zd (%s)", rc, fi_strerror((int)-rc));
	from_entry(w->format ? w->format : FI_CQ_FORMAT_TAGGED, &t, c);
	return true;
}

static void keep(struct ct_ep *e, const struct ct_comp *c)
{
	if (e->tail == e->cap) {
		size_t cap = e->cap ? 2 * e->cap : 64;
		struct ct_comp *p = realloc(e->stash, cap * sizeof(*p));

		if (!p)
			ct_fail(e->ct, "no memory for completions");
		e->stash = p;
		e->cap = cap;
	}
	e->stash[e->tail++] = *c;
}

bool ct_progress(struct ct_ep *e)
{
	struct ct_comp c;
	bool any = false;
	int n;

	for (n = 0; n < 64 && ct_read_cq(e, e->txcq, &c); n++) {
		keep(e, &c);
		any = true;
	}
	if (e->rxcq == e->txcq)
		return any;
	for (n = 0; n < 64 && ct_read_cq(e, e->rxcq, &c); n++) {
		keep(e, &c);
		any = true;
	}
	return any;
}

static void take(struct ct_ep *e, size_t i, struct ct_comp *c)
{
	*c = e->stash[i];
	if (i == e->head)
		e->head++;
	else
		memmove(&e->stash[i], &e->stash[i + 1], (--e->tail - i) * sizeof(*c));
	if (e->head == e->tail)
		e->head = e->tail = 0;
}

bool ct_poll(struct ct_ep *e, struct ct_comp *c)
{
	if (e->head == e->tail && !ct_progress(e))
		return false;
	take(e, e->head, c);
	return true;
}

void ct_any(struct ct_ep *e, struct ct_comp *c)
{
	double end = ct_deadline(e->ct);

	while (!ct_poll(e, c)) {
		ct_late(e->ct, end, "a completion");
		ct_pause();
	}
}

void ct_of(struct ct_ep *e, void *ctx, struct ct_comp *c)
{
	double end = ct_deadline(e->ct);
	size_t i = e->head;

	for (;;) {
		for (; i < e->tail; i++) {
			if (e->stash[i].ctx == ctx) {
				take(e, i, c);
				return;
			}
		}
		if (ct_progress(e))
			continue;
		if (ct_now() > end)
			ct_fail(e->ct, "no completion for context %p", ctx);
		ct_pause();
	}
}

size_t ct_done(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	if (c.err)
		ct_fail(e->ct, "the operation with context %p failed: %s", ctx, fi_strerror(c.err));
	return c.len;
}

void ct_quiet(struct ct_ep *e, int ms, const char *what)
{
	double end = ct_now() + ms / 1e3;
	struct ct_comp c;

	do {
		if (ct_poll(e, &c))
			ct_fail(e->ct, "%s: unexpected completion (context %p, flags %s, error %d)", what,
				c.ctx, fi_tostr(&c.flags, FI_TYPE_CQ_EVENT_FLAGS), c.err);
		ct_pause();
	} while (ct_now() < end);
}

void ct_idle(struct ct_ep *e, int ms)
{
	double end = ct_now() + ms / 1e3;

	do {
		if (!ct_progress(e))
			ct_pause();
	} while (ct_now() < end);
}

void ct_send(struct ct_ep *e, int rank, const void *buf, size_t len, void *ctx)
{
	CT_POST(e, fi_send(e->ep, buf, len, NULL, e->addr[rank], ctx));
}

/* Cases about something else that use tags are not failed by a provider that never promised any. */
static void need_tags(const struct ct_ep *e)
{
	if (!(e->dom->info->caps & FI_TAGGED))
		ct_unsupported(e->ct, "no tagged messages");
}

void ct_tsend(struct ct_ep *e, int rank, const void *buf, size_t len, uint64_t tag, void *ctx)
{
	need_tags(e);
	CT_POST(e, fi_tsend(e->ep, buf, len, NULL, e->addr[rank], tag, ctx));
}

void ct_recv(struct ct_ep *e, void *buf, size_t len, void *ctx)
{
	CT_POST(e, fi_recv(e->ep, buf, len, NULL, FI_ADDR_UNSPEC, ctx));
}

void ct_trecv(struct ct_ep *e, void *buf, size_t len, uint64_t tag, uint64_t ignore, void *ctx)
{
	need_tags(e);
	CT_POST(e, fi_trecv(e->ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, ignore, ctx));
}

/* A tag for each direction between each two ranks: several may ping one at a time. */
static uint64_t ping_tag(int from, int to)
{
	return 0x70696e6700000000 | (uint64_t)from << 8 | (uint64_t)to;
}

void ct_ping(struct ct_ep *e, int rank)
{
	int me = e->ct->rank;
	unsigned char out[64], in[64] = { 0 };

	ct_fill(out, sizeof(out), 1000 + (uint64_t)me);
	ct_trecv(e, in, sizeof(in), ping_tag(rank, me), 0, CTX(0x7ead));
	if (e->ct->conf->type == FI_EP_DGRAM) { /* what comes before its receive is lost */
		char c = 'P';

		ct_put(e->ct, rank, &c, 1);
		ct_get(e->ct, e, rank, &c, 1);
	}
	ct_tsend(e, rank, out, sizeof(out), ping_tag(me, rank), CTX(0x7ead0));
	CT_EQ(e->ct, ct_done(e, CTX(0x7ead)), sizeof(in));
	ct_verify(e->ct, in, sizeof(in), 1000 + (uint64_t)rank, "ping");
	ct_done(e, CTX(0x7ead0));
}
