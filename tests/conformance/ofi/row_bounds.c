/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M2 and M3: lengths, boundaries, scatter and gather, truncation, and calls before fi_enable. */
#include "ct.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PAD 16	 /* bytes behind every receive buffer that must stay as they are */
#define SLOTS 32 /* messages under way at once */

/* The n-th length of the boundary sweep: all small ones, then around powers of two. */
static bool sweep(size_t n, size_t *len)
{
	static const int around[] = { -1, 0, 1 };

	if (n <= 300) {
		*len = n;
		return true;
	}
	n -= 301;
	if (n / 3 > 13)
		return false;
	*len = ((size_t)512 << (n / 3)) + (size_t)around[n % 3];
	return true;
}

static void sweep_send(struct ct_ep *e, bool tagged)
{
	char *buf[SLOTS] = { NULL };
	size_t n, len;

	for (n = 0; sweep(n, &len); n++) {
		size_t s = n % SLOTS;

		if (buf[s])
			ct_done(e, CTX(n - SLOTS + 1));
		free(buf[s]);
		buf[s] = ct_alloc(e->ct, len);
		ct_fill(buf[s], len, n);
		if (tagged)
			ct_tsend(e, 1, buf[s], len, n, CTX(n + 1));
		else
			ct_send(e, 1, buf[s], len, CTX(n + 1));
	}
	for (len = n > SLOTS ? n - SLOTS : 0; len < n; len++) {
		ct_done(e, CTX(len + 1));
		free(buf[len % SLOTS]);
	}
}

static void sweep_check(struct ct_ep *e, char *buf, size_t n)
{
	size_t len = 0;

	sweep(n, &len);
	CT_EQ(e->ct, ct_done(e, CTX(n + 1)), len);
	ct_verify(e->ct, buf, len, n, "sweep");
	CT_TRUE(e->ct, ct_untouched(buf + len, PAD, 0x55));
	free(buf);
}

static void sweep_recv(struct ct_ep *e, bool tagged)
{
	char *buf[SLOTS] = { NULL };
	size_t n, len;

	for (n = 0; sweep(n, &len); n++) {
		size_t s = n % SLOTS;

		if (buf[s])
			sweep_check(e, buf[s], n - SLOTS);
		buf[s] = ct_alloc(e->ct, len + PAD);
		memset(buf[s], 0x55, len + PAD);
		/*
		 * Every second buffer is longer than its message: the
		 * boundary must end the receive.
		 */
		if (tagged)
			ct_trecv(e, buf[s], len + (n & 1 ? PAD : 0), n, 0, CTX(n + 1));
		else
			ct_recv(e, buf[s], len + (n & 1 ? PAD : 0), CTX(n + 1));
	}
	for (len = n > SLOTS ? n - SLOTS : 0; len < n; len++)
		sweep_check(e, buf[len % SLOTS], len);
}

static void boundaries(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	int tagged;

	ct_start(ct, &dom, &e, &want);
	for (tagged = 0; tagged < 2; tagged++) {
		if (ct->rank)
			sweep_recv(&e, tagged);
		else
			sweep_send(&e, tagged);
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

static const size_t large[] = { 1u << 20, 16u << 20, (64u << 20) - 1, 64u << 20 };

/* Both ways at once, so that a provider that copies for one side only is seen. */
static void large_both(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < CT_COUNT(large); i++) {
		char *out = ct_alloc(ct, large[i]), *in = ct_alloc(ct, large[i]);

		ct_fill(out, large[i], 2 * i + (size_t)ct->rank);
		if (i & 1)
			ct_recv(&e, in, large[i], CTX(1));
		else
			ct_trecv(&e, in, large[i], i, 0, CTX(1));
		if (i & 1)
			ct_send(&e, !ct->rank, out, large[i], CTX(2));
		else
			ct_tsend(&e, !ct->rank, out, large[i], i, CTX(2));
		CT_EQ(ct, ct_done(&e, CTX(1)), large[i]);
		ct_verify(ct, in, large[i], 2 * i + (size_t)!ct->rank, "large");
		ct_done(&e, CTX(2));
		ct_sync(ct, &e);
		free(in);
		free(out);
	}
	ct_finish(&e);
}

struct cut {
	size_t len, room;
};

static const struct cut cuts[] = { { 1, 0 },
				   { 100, 10 },
				   { 100, 99 },
				   { 5000, 4096 },
				   { 70000, 1000 },
				   { 1 << 20, 4096 },
				   { 1 << 20, (1 << 20) - 1 },
				   { 3 << 20, 0 } };

static void cut_send(struct ct_ep *e, const struct cut *c, bool tagged, char *buf)
{
	ct_fill(buf, c->len, c->len);
	if (tagged)
		ct_tsend(e, 1, buf, c->len, 5, CTX(1));
	else
		ct_send(e, 1, buf, c->len, CTX(1));
	/* The sender's side is complete: a short buffer is the receiver's own fault. */
	ct_done(e, CTX(1));
}

static void cut_recv(struct ct_ep *e, const struct cut *c, bool tagged, char *buf)
{
	struct ct *ct = e->ct;
	struct ct_comp got;

	memset(buf, 0x55, c->room + PAD);
	if (tagged)
		ct_trecv(e, buf, c->room, 5, 0, CTX(1));
	else
		ct_recv(e, buf, c->room, CTX(1));
	ct_of(e, CTX(1), &got);
	CT_EQ(ct, got.err, FI_ETRUNC);
	CT_EQ(ct, got.olen, c->len - c->room);
	CT_EQ(ct, got.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | (tagged ? FI_TAGGED : FI_MSG));
	CT_TRUE(ct, ct_untouched(buf + c->room, PAD, 0x55));
	/* What did fit counts as placed only as far as len says, fi_cq(3). */
	CT_TRUE(ct, got.len <= c->room);
	ct_verify(ct, buf, got.len, c->len, "the part that fits");
}

static void truncation(struct ct *ct)
{
	char *buf = ct_alloc(ct, (3 << 20) + PAD);
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 2 * CT_COUNT(cuts); i++) {
		const struct cut *c = &cuts[i / 2];

		if (ct->rank)
			cut_recv(&e, c, i & 1, buf);
		else
			cut_send(&e, c, i & 1, buf);
		/* The next message must not be touched by the one that was cut. */
		ct_ping(&e, !ct->rank);
	}
	free(buf);
	ct_finish(&e);
}

/* Splits len bytes at buf into n segments of uneven lengths, some of them empty. */
static void split(struct ct *ct, char *buf, size_t len, struct iovec *iov, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		size_t take = i == n - 1 ? len : ct_range(ct, 3) ? ct_range(ct, len + 1) : 0;

		iov[i] = (struct iovec){ buf, take };
		buf += take;
		len -= take;
	}
}

static void scatter_one(struct ct_ep *e, size_t n, size_t len, bool tagged)
{
	struct ct *ct = e->ct;
	struct iovec out[64], in[64];
	char *buf = ct_alloc(ct, len + PAD);

	memset(buf, 0x55, len + PAD);
	/* Both ranks draw both lists, to stay in step. */
	split(ct, buf, len, out, n);
	split(ct, buf, len, in, n);
	if (ct->rank && tagged)
		CT_POST(e, fi_trecvv(e->ep, in, NULL, n, FI_ADDR_UNSPEC, 3, 0, CTX(1)));
	else if (ct->rank)
		CT_POST(e, fi_recvv(e->ep, in, NULL, n, FI_ADDR_UNSPEC, CTX(1)));
	ct_sync(ct, e);
	if (ct->rank) {
		CT_EQ(ct, ct_done(e, CTX(1)), len);
		ct_verify(ct, buf, len, len, "scattered");
		CT_TRUE(ct, ct_untouched(buf + len, PAD, 0x55));
	} else {
		ct_fill(buf, len, len);
		if (tagged)
			CT_POST(e, fi_tsendv(e->ep, out, NULL, n, e->addr[1], 3, CTX(1)));
		else
			CT_POST(e, fi_sendv(e->ep, out, NULL, n, e->addr[1], CTX(1)));
		ct_done(e, CTX(1));
	}
	free(buf);
}

static void scatter(struct ct *ct)
{
	static const size_t lens[] = { 0, 1, 50, 1000, 9000, 70000, 1 << 20 };
	struct ct_dom dom;
	struct ct_ep e;
	size_t n, i, limit;

	ct_start(ct, &dom, &e, NULL);
	limit = dom.info->tx_attr->iov_limit;
	if (dom.info->rx_attr->iov_limit < limit)
		limit = dom.info->rx_attr->iov_limit;
	CT_TRUE(ct, limit >= 1 && limit <= 64);
	for (n = 1; n <= limit; n++)
		for (i = 0; i < 2 * CT_COUNT(lens); i++)
			scatter_one(&e, n, lens[i / 2], i & 1);
	ct_finish(&e);
}

/* A buffer scattered over segments can be too small as well. */
static void scatter_truncation(struct ct *ct)
{
	char buf[96 + PAD], out[100];
	struct iovec iov[2] = { { buf, 32 }, { buf + 32, 64 } };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	if (dom.info->rx_attr->iov_limit < 2)
		ct_unsupported(ct, "iov_limit is 1");
	if (ct->rank) {
		memset(buf, 0x55, sizeof(buf));
		CT_POST(&e, fi_recvv(e.ep, iov, NULL, 2, FI_ADDR_UNSPEC, CTX(1)));
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
		CT_EQ(ct, c.olen, 4);
		CT_TRUE(ct, ct_untouched(buf + 96, PAD, 0x55));
	} else {
		ct_fill(out, sizeof(out), 1);
		ct_send(&e, 1, out, sizeof(out), CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

static void over_max(struct ct *ct)
{
	size_t max;
	struct ct_dom dom;
	struct ct_ep e;
	char c = 0;

	ct_start(ct, &dom, &e, NULL);
	max = dom.info->ep_attr->max_msg_size;
	if (max == SIZE_MAX)
		ct_unsupported(ct, "max_msg_size is SIZE_MAX: no message can be over it");
	if (!ct->rank) {
		/* Refused by the length alone: nothing may be read from a buffer of one byte. */
		CT_REFUSED(ct, fi_send(e.ep, &c, max + 1, NULL, e.addr[1], NULL));
		CT_REFUSED(ct, fi_tsend(e.ep, &c, max + 1, NULL, e.addr[1], 1, NULL));
		CT_REFUSED(ct, fi_senddata(e.ep, &c, max + 1, NULL, 1, e.addr[1], NULL));
	}
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

static void before_enable(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_REFUSED(ct, fi_recv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	CT_REFUSED(ct, fi_trecv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	CT_REFUSED(ct, fi_send(e.ep, buf, 8, NULL, 0, NULL));
	CT_REFUSED(ct, fi_tsend(e.ep, buf, 8, NULL, 0, 1, NULL));
	CT_REFUSED(ct, fi_inject(e.ep, buf, 8, 0));
	CT_REFUSED(ct, fi_tinject(e.ep, buf, 8, 0, 1));
	/* What was refused is not there later either, and the endpoint can still be enabled. */
	ct_ep_enable(&e);
	ct_join(&e);
	ct_ping(&e, !ct->rank);
	ct_quiet(&e, 50, "calls before fi_enable");
	ct_finish(&e);
}

const struct ct_case ct_bounds[] = {
	{ "M2", "boundaries", { boundaries, boundaries } },
	{ "M2", "large", { large_both, large_both }, .seconds = 120, .slow = true },
	{ "M2", "truncation", { truncation, truncation } },
	{ "M2", "scatter-gather", { scatter, scatter } },
	{ "M2", "scatter-truncation", { scatter_truncation, scatter_truncation } },
	{ "M2", "over-max", { over_max, over_max } },
	{ "M3", "before-enable", { before_enable, before_enable } },
	{ 0 }
};
