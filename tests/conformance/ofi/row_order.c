/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M4: comp_order, fi_endpoint(3), and what a full completion queue means, resource
 * management of fi_domain(3).
 */
#include "region.h"

#include <pthread.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BIG (1 << 20)
#define FEW 6

static void next_is(struct ct_ep *e, uint64_t ctx, int err)
{
	struct ct_comp c;

	ct_any(e, &c);
	CT_EQ(e->ct, (uintptr_t)c.ctx, ctx);
	CT_EQ(e->ct, !!c.err, err);
}

/* The next completions have the contexts from..to. */
static void all_are(struct ct_ep *e, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		next_is(e, from, 0);
}

static void begin_strict(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, struct ct_want want)
{
	want.tx_comp_order = want.rx_comp_order = FI_ORDER_STRICT;
	want.msg_order |= FI_ORDER_SAS;
	ct_start(ct, dom, e, &want);
	CT_EQ(ct, dom->info->tx_attr->comp_order & FI_ORDER_STRICT, FI_ORDER_STRICT);
	CT_EQ(ct, dom->info->rx_attr->comp_order & FI_ORDER_STRICT, FI_ORDER_STRICT);
}

/*
 * The first message is long, and taken last: what comes behind it has left at once, and
 * must not be told of before.
 */
static void sends(struct ct *ct)
{
	char *big = ct_alloc(ct, BIG), small[FEW][64];
	struct ct_dom dom;
	struct ct_ep e;

	begin_strict(ct, &dom, &e, (struct ct_want){ 0 });
	if (!ct->rank) {
		ct_fill(big, BIG, 1);
		ct_tsend(&e, 1, big, BIG, 1, CTX(1));
		for (uint64_t i = 0; i < FEW; i++) {
			ct_fill(small[i], 64, i);
			ct_tsend(&e, 1, small[i], 64, 2 + i, CTX(2 + i));
		}
		ct_idle(&e, 50);
		ct_sync(ct, &e);
		all_are(&e, 1, FEW + 1);
	} else {
		for (uint64_t i = 0; i < FEW; i++) {
			ct_trecv(&e, small[i], 64, 2 + i, 0, CTX(2 + i));
			CT_EQ(ct, ct_done(&e, CTX(2 + i)), 64);
			ct_verify(ct, small[i], 64, i, "behind a long one");
		}
		ct_sync(ct, &e);
		ct_trecv(&e, big, BIG, 1, 0, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), BIG);
		ct_verify(ct, big, BIG, 1, "the long one");
	}
	free(big);
	ct_finish(&e);
}

/*
 * What is silent when it works still holds its place: nothing is told of too early,
 * and nothing is told of it.
 */
static void selective(struct ct *ct)
{
	char *big = ct_alloc(ct, BIG), small[64] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;

	begin_strict(ct, &dom, &e, (struct ct_want){ .tx_bind = FI_SELECTIVE_COMPLETION });
	if (!ct->rank) {
		struct iovec iov = { small, 64 };
		struct fi_msg_tagged t = {
			.msg_iov = &iov, .iov_count = 1, .addr = e.addr[1], .tag = 2, .context = CTX(2)
		};

		ct_tsend(&e, 1, big, BIG, 1, CTX(1));
		CT_POST(&e, fi_tsendmsg(e.ep, &t, FI_COMPLETION));
		CT_POST(&e, fi_tinject(e.ep, small, 64, e.addr[1], 3));
		ct_idle(&e, 50);
		ct_sync(ct, &e);
		next_is(&e, 2, 0);
		ct_quiet(&e, 50, "silent sends");
	} else {
		ct_trecv(&e, small, 64, 3, 0, CTX(3));
		ct_done(&e, CTX(3));
		ct_sync(ct, &e);
		ct_trecv(&e, big, BIG, 1, 0, CTX(1));
		ct_done(&e, CTX(1));
		ct_trecv(&e, small, 64, 2, 0, CTX(2));
		ct_done(&e, CTX(2));
	}
	free(big);
	ct_finish(&e);
}

/* An error has its place as well, and what was complete before it happened comes behind it. */
static void failure(struct ct *ct)
{
	char *big = ct_alloc(ct, BIG), small[64] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;

	begin_strict(ct, &dom, &e, (struct ct_want){ 0 });
	if (ct->rank) {
		ct_trecv(&e, small, 64, 2, 0, CTX(2));
		ct_done(&e, CTX(2));
		ct_doomed(ct);
		ct_put(ct, 0, small, 1);
		raise(SIGKILL);
	}
	ct_tsend(&e, 1, big, BIG, 1, CTX(1));
	ct_tsend(&e, 1, small, 64, 2, CTX(2));
	ct_get(ct, &e, 1, small, 1);
	next_is(&e, 1, 1);
	next_is(&e, 2, 0);
	free(big);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* Datagrams: sends to whomever complete as they were posted, and what arrives as it came. */
static void datagrams(struct ct *ct)
{
	struct ct_want want = { .type = FI_EP_DGRAM };
	char buf[FEW][64];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	uintptr_t last = 0;
	char done = 0;

	begin_strict(ct, &dom, &e, want);
	for (uintptr_t i = 0; ct->rank && i < FEW; i++)
		ct_recv(&e, buf[i], 64, CTX(1 + i));
	ct_sync(ct, &e);
	if (!ct->rank) {
		for (uintptr_t i = 0; i < FEW; i++)
			ct_send(&e, 1, buf[i], 64, CTX(1 + i));
		all_are(&e, 1, FEW);
		ct_put(ct, 1, &done, 1);
	} else {
		ct_get(ct, &e, 0, &done, 1);
		ct_idle(&e, 50);
		while (ct_poll(&e, &c)) {
			CT_TRUE(ct, !c.err && (uintptr_t)c.ctx > last);
			last = (uintptr_t)c.ctx;
		}
	}
	ct_finish(&e);
}

/* One-sided operations stand in the same order. */
static void one_sided(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA };
	char *big = ct_alloc(ct, BIG), local[2][64];
	struct ct_region r;
	struct ct_place at;
	struct ct_dom dom;
	struct ct_ep e;
	void *desc = NULL;

	begin_strict(ct, &dom, &e, want);
	if (dom.info->domain_attr->mr_mode & FI_MR_LOCAL)
		ct_unsupported(ct, "needs local registration");
	ct_offer(&e, &r, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, &at);
	if (!ct->rank) {
		ct_tsend(&e, 1, big, BIG, 1, CTX(1));
		ct_fill(local[0], 64, 5);
		CT_POST(&e, fi_write(e.ep, local[0], 64, desc, e.addr[1], at.addr, at.key, CTX(2)));
		CT_POST(&e, fi_read(e.ep, local[1], 64, desc, e.addr[1], at.addr + 64, at.key, CTX(3)));
		ct_tsend(&e, 1, local[0], 64, 2, CTX(4));
		ct_idle(&e, 50);
		ct_sync(ct, &e);
		all_are(&e, 1, 4);
	} else {
		ct_idle(&e, 50);
		ct_sync(ct, &e);
		ct_trecv(&e, big, BIG, 1, 0, CTX(1));
		ct_done(&e, CTX(1));
		ct_trecv(&e, local[0], 64, 2, 0, CTX(2));
		ct_done(&e, CTX(2));
		ct_verify(ct, r.mem, 64, 5, "written");
	}
	free(big);
	ct_take_back(&e, &r);
}

/*
 * arg: the messages come before the receives. Long ones take their time, and
 * short ones behind them wait.
 */
static void receives(struct ct *ct)
{
	static const size_t len[FEW] = { BIG, 16, 100000, 8, 3000, 1 };
	char *buf[FEW];
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	begin_strict(ct, &dom, &e, (struct ct_want){ 0 });
	for (i = 0; i < FEW; i++)
		buf[i] = ct_alloc(ct, BIG);
	if (ct->rank && ct->cs->arg)
		ct_sync(ct, &e);
	for (i = 0; ct->rank && i < FEW; i++)
		ct_trecv(&e, buf[i], BIG, i, 0, CTX(1 + i));
	if (ct->rank || !ct->cs->arg)
		ct_sync(ct, &e);
	for (i = 0; !ct->rank && i < FEW; i++) {
		ct_fill(buf[i], len[i], i);
		ct_tsend(&e, 1, buf[i], len[i], i, CTX(1 + i));
	}
	if (!ct->rank && ct->cs->arg) {
		ct_idle(&e, 50);
		ct_sync(ct, &e);
		ct_sync(ct, &e);
	}
	all_are(&e, 1, FEW);
	for (i = 0; i < FEW; i++) {
		ct_verify(ct, buf[i], len[i], i, "in order");
		free(buf[i]);
	}
	ct_finish(&e);
}

/*
 * One buffer for long and short messages: the completion that releases it
 * is the last that names it.
 */
static void multi(struct ct *ct)
{
	static const size_t len[3] = { BIG, 64, 40000 };
	char *buf = ct_alloc(ct, 2 * BIG);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i, all = 0;

	begin_strict(ct, &dom, &e, (struct ct_want){ .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV });
	for (i = 0; i < 3; i++)
		all += (len[i] + 7) & ~(size_t)7;
	if (ct->rank) {
		struct iovec iov = { buf, all };
		struct fi_msg m = {
			.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = CTX(7)
		};

		CT_POST(&e, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
	}
	ct_sync(ct, &e);
	for (i = 0; !ct->rank && i < 3; i++)
		ct_send(&e, 1, buf, len[i], CTX(1 + i));
	for (i = 0; i < 3; i++) {
		ct_any(&e, &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, (uintptr_t)c.ctx, ct->rank ? 7 : 1 + i);
		if (!ct->rank)
			continue;
		CT_EQ(ct, c.len, len[i]);
		CT_TRUE(ct, i == 2 || !(c.flags & FI_MULTI_RECV));
	}
	free(buf);
	ct_finish(&e);
}

/* ---- FI_ORDER_DATA --------------------------------------------------------------------------- */

/*
 * What two messages fill one after the other, watched by a thread: no byte is there before
 * those that come before it.
 */
struct watched {
	volatile char *mem;
	size_t len;
	atomic_bool stop;
	size_t broken; /* where it was not so; 0: nowhere */
};

static void *watch(void *arg)
{
	struct watched *w = arg;

	while (!atomic_load(&w->stop)) {
		bool there = false;

		for (size_t i = w->len - 1; i > 4096; i -= i % 61 + 1) {
			if (w->mem[i])
				there = true;
			else if (there)
				w->broken = i;
		}
	}
	return NULL;
}

static void data_order(struct ct *ct)
{
	struct ct_want want = { .rx_comp_order = FI_ORDER_DATA, .msg_order = FI_ORDER_SAS };
	const size_t second = BIG + 64;
	struct watched w = { .len = 3 * BIG };
	struct ct_dom dom;
	struct ct_ep e;
	pthread_t thread;
	char *buf;

	ct_start(ct, &dom, &e, &want);
	CT_TRUE(ct, dom.info->rx_attr->comp_order & FI_ORDER_DATA);
	buf = ct_alloc(ct, w.len);
	if (!ct->rank) {
		memset(buf, 1, w.len);
		ct_sync(ct, &e);
		ct_tsend(&e, 1, buf, second, 1, CTX(1));
		ct_tsend(&e, 1, buf, 64, 2, CTX(2));
		ct_tsend(&e, 1, buf, w.len - second - 64, 3, CTX(3));
		for (uintptr_t i = 1; i <= 3; i++)
			ct_done(&e, CTX(i));
	} else {
		w.mem = buf;
		CT_OK(ct, pthread_create(&thread, NULL, watch, &w));
		ct_trecv(&e, buf, second, 1, 0, CTX(1));
		ct_trecv(&e, buf + second, 64, 2, 0, CTX(2));
		ct_trecv(&e, buf + second + 64, w.len - second - 64, 3, 0, CTX(3));
		ct_sync(ct, &e);
		for (uintptr_t i = 1; i <= 3; i++)
			ct_done(&e, CTX(i));
		atomic_store(&w.stop, true);
		pthread_join(thread, NULL);
		if (w.broken)
			ct_fail(ct, "byte %zu was not there when one behind it was", w.broken);
		CT_TRUE(ct, ct_untouched((unsigned char *)buf, w.len, 1));
	}
	free(buf);
	ct_finish(&e);
}

/* ---- resource management --------------------------------------------------------------------- */

#define QUEUE 64
#define FLOOD 2000

/* Makes progress without reading a completion. */
static void push_on(struct ct_ep *e)
{
	fi_cq_read(e->txcq, NULL, 0);
	ct_pause();
}

/* Reads a CQ to its end: how many good entries, in order; the error behind them, or 0. */
static size_t drain(struct ct_ep *e, size_t first, int *err)
{
	struct fi_cq_err_entry bad = { 0 };
	struct fi_cq_tagged_entry t;
	size_t n = first;
	ssize_t rc;

	while ((rc = fi_cq_read(e->txcq, &t, 1)) == 1)
		CT_EQ(e->ct, (uintptr_t)t.op_context, ++n);
	*err = 0;
	if (rc == -FI_EAVAIL) {
		CT_EQ(e->ct, fi_cq_readerr(e->txcq, &bad, 0), 1);
		*err = bad.err;
	}
	return n;
}

static void take_all(struct ct *ct, struct ct_ep *e)
{
	char in[8];
	uint64_t n;

	ct_get(ct, e, 0, &n, sizeof(n));
	if (ct->conf->type == FI_EP_DGRAM)
		return; /* they have been dropped */
	for (uint64_t i = 0; i < n; i++) {
		ct_trecv(e, in, 8, 1, 0, CTX(1));
		ct_done(e, CTX(1));
	}
}

/*
 * The program protects its queues itself, and does not: nothing is lost in silence. What was there
 * is read first; then it is an overrun, for good.
 */
static void rm_disabled(struct ct *ct)
{
	struct ct_want want = { .rm = FI_RM_DISABLED, .cq_size = QUEUE };
	double end = ct_deadline(ct);
	char out[8] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	uint64_t n = 0;
	size_t got = 0;
	int err;

	if (ct->rank) {
		want.cq_size = 0;
		ct_start(ct, &dom, &e, &want);
		/* what comes of the flood is not looked at: an overrun is fatal to its endpoints */
		ct_finish(&e);
		return;
	}
	ct_start(ct, &dom, &e, &want);
	CT_TRUE(ct, dom.info->domain_attr->resource_mgmt != FI_RM_UNSPEC);
	while (n < FLOOD) {
		ssize_t rc = fi_tsend(e.ep, out, 8, NULL, e.addr[1], 1, CTX(n + 1));

		ct_late(ct, end, "sends to be accepted");
		if (!rc)
			n++;
		else if (rc != -FI_EAGAIN || n > FLOOD / 2)
			break;
		else
			push_on(&e);
	}
	do {
		ct_late(ct, end, "all completions, or an overrun");
		got = drain(&e, got, &err);
	} while (got < n && !err);
	for (int i = 0; err && i < 3; i++) { /* else it was protected all the same */
		CT_EQ(ct, err, FI_EOVERRUN);
		CT_TRUE(ct, got < n);
		CT_EQ(ct, drain(&e, got, &err), got);
	}
	e.head = e.tail = 0;
	ct_sync(ct, NULL);
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * With it enabled a full queue refuses with -FI_EAGAIN, both directions, or takes in more than it
 * was made for; nothing is lost.
 */
static void rm_enabled(struct ct *ct)
{
	struct ct_want want = { .rm = FI_RM_ENABLED, .cq_size = QUEUE };
	double end = ct_deadline(ct);
	char out[8] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	uint64_t n = 0;
	int err, again = 0;
	size_t got = 0;

	if (ct->rank) {
		want.cq_size = 0;
		ct_start(ct, &dom, &e, &want);
		take_all(ct, &e);
		ct_finish(&e);
		return;
	}
	ct_start(ct, &dom, &e, &want);
	while (n < FLOOD && again < 100) {
		ssize_t rc = fi_tsend(e.ep, out, 8, NULL, e.addr[1], 1, CTX(n + 1));

		ct_late(ct, end, "sends to be accepted");
		if (!rc) {
			n++;
			continue;
		}
		CT_EQ(ct, rc, -FI_EAGAIN);
		again++;
		push_on(&e);
	}
	ct_put(ct, 1, &n, sizeof(n));
	while (got < n) {
		ct_late(ct, end, "all completions");
		got = drain(&e, got, &err);
		CT_EQ(ct, err, 0);
	}
	CT_EQ(ct, got, n);
	ct_finish(&e);
}

const struct ct_case ct_order[] = {
	{ "M4", "strict-sends", { sends, sends }, 0, 0 },
	{ "M4", "strict-selective", { selective, selective }, 0, 0 },
	{ "M4", "strict-failure", { failure, failure }, 0, 0 },
	{ "M4", "dgram-strict", { datagrams, datagrams }, 0, 0 },
	{ "M4", "strict-one-sided", { one_sided, one_sided }, 0, 0 },
	{ "M4", "strict-receives", { receives, receives }, 0, 0 },
	{ "M4", "strict-receives-late", { receives, receives }, 0, 1 },
	{ "M4", "strict-multi-recv", { multi, multi }, 0, 0 },
	{ "M4", "data-order", { data_order, data_order }, 0, 0 },
	{ "M21", "full-queue-overrun", { rm_disabled, rm_disabled }, 0, 0 },
	{ "M21", "full-queue-again", { rm_enabled, rm_enabled }, 0, 0 },
	{ 0 },
};
