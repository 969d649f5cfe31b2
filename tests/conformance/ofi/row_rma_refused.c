/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * RMA: what is refused, fi_rma(3) and fi_mr(3): by the target, by the call, for want of a
 * capability; and a target or a region that goes. Rank 0 reads and writes the memory of the others.
 */
#include "region.h"

#include <stdlib.h>
#include <string.h>

#define BIG (2u << 20)
#define ALL (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct ct_want rma = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

/* ---- errors ---------------------------------------------------------------------------------- */

struct offence {
	struct ct_place at;
	bool read;
};

static void offend(struct ct_ep *e, const struct offence *bad, char *buf, size_t n)
{
	struct ct *ct = e->ct;
	struct ct_comp c;

	if (bad->read)
		CT_POST(e, fi_read(e->ep, buf, n, NULL, e->addr[1], bad->at.addr, bad->at.key, CTX(n)));
	else
		CT_POST(e, fi_write(e->ep, buf, n, NULL, e->addr[1], bad->at.addr, bad->at.key, CTX(n)));
	ct_any(e, &c);
	CT_TRUE(ct, c.ctx == CTX(n));
	if (c.err != FI_EACCES && c.err != FI_EKEYREJECTED && c.err != FI_ENOKEY && c.err != FI_EINVAL &&
	    c.err != FI_EPERM && c.err != ERANGE)
		ct_fail(ct, "%s of %zu bytes at key %#llx completes with %d (%s)",
			bad->read ? "a read" : "a write", n, (unsigned long long)bad->at.key, c.err,
			fi_strerror(c.err));
}

/* `at`: may only be written; `other`: only be read; `gone`: it was closed. */
static void offend_all(struct ct_ep *e, struct ct_place at, struct ct_place gone, struct ct_place other,
		       size_t n)
{
	const struct offence bad[] = {
		{ { at.addr, at.key + 1000 }, false },		  /* no such key */
		{ { at.addr + BIG / 2 - n + 1, at.key }, false }, /* beyond the end */
		{ { at.addr - 1, at.key }, false },
		{ gone, false },
		{ gone, true },
		{ other, false },
		{ at, true },
	};
	char *buf = ct_alloc(e->ct, n);
	struct ct_comp c;

	memset(buf, 1, n);
	for (size_t k = 0; k < CT_COUNT(bad); k++)
		offend(e, &bad[k], buf, n);
	/* an error completes even where success does not */
	if (n <= e->dom->info->tx_attr->inject_size) {
		CT_POST(e, fi_inject_write(e->ep, buf, n, e->addr[1], at.addr, at.key + 1000));
		ct_any(e, &c);
		CT_TRUE(e->ct, c.err != 0);
		CT_TRUE(e->ct, c.ctx == e);
	}
	free(buf);
}

/*
 * What the target refuses: the initiator learns it, nothing is written, and the endpoint goes on.
 */
static void refused(struct ct *ct)
{
	static const size_t sizes_[] = { 16, 1000, 100000, BIG / 2 };
	struct ct_region r, closed = { 0 }, shut = { 0 };
	struct ct_place at, gone, other;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &rma);
	ct_offer(&e, &r, BIG / 2, FI_REMOTE_WRITE, &at);
	if (ct->rank) {
		ct_region_open(&e, &closed, 4096, ALL, 8);
		ct_region_open(&e, &shut, BIG, FI_REMOTE_READ, 9);
		ct_put(ct, 0, &closed.at, sizeof(closed.at));
		ct_put(ct, 0, &shut.at, sizeof(shut.at));
		ct_region_close(&e, &closed);
	} else {
		ct_get(ct, &e, 1, &gone, sizeof(gone));
		ct_get(ct, &e, 1, &other, sizeof(other));
	}
	ct_sync(ct, &e);
	for (size_t i = 0; i < CT_COUNT(sizes_) && !ct->rank; i++)
		offend_all(&e, at, gone, other, sizes_[i]);
	ct_sync(ct, &e);
	if (ct->rank) {
		CT_TRUE(ct, ct_untouched(r.mem, BIG / 2, 0));
		CT_TRUE(ct, ct_untouched(shut.mem, BIG, 0));
		ct_region_close(&e, &shut);
	}
	ct_sync(ct, &e);
	ct_ping(&e, 1 - ct->rank);
	ct_take_back(&e, &r);
}

/* Arguments that cannot be. */
static void bad_arguments(struct ct *ct)
{
	char buf[64];
	struct ct_rig x;

	ct_rig_open(&x, ct, &rma, 4096, ALL);
	if (!ct->rank) {
		struct fi_rma_iov there[64] = { { x.at.addr, 64, x.at.key } };
		struct iovec iov[64] = { { buf, 64 } };
		struct fi_msg_rma m = ct_rma_to(&x.e, iov, there, CTX(3));
		size_t iovs = x.dom.info->tx_attr->iov_limit, segs = x.dom.info->tx_attr->rma_iov_limit;

		if (iovs < 64)
			CT_REFUSED(ct, fi_writev(x.e.ep, iov, NULL, iovs + 1, x.e.addr[1], x.at.addr,
						 x.at.key, NULL));
		m.rma_iov_count = segs + 1;
		if (segs < 64)
			CT_REFUSED(ct, fi_writemsg(x.e.ep, &m, 0));
		m.rma_iov_count = 1;
		there[0].len = 63; /* not as long as ours */
		CT_REFUSED(ct, fi_writemsg(x.e.ep, &m, 0));
		there[0].len = 64;
		CT_REFUSED(ct, fi_writemsg(x.e.ep, &m, FI_PEEK));
		CT_REFUSED(ct, fi_readmsg(x.e.ep, &m, FI_PEEK));
		CT_REFUSED(ct, fi_readmsg(x.e.ep, &m, FI_REMOTE_CQ_DATA));
		CT_REFUSED(ct, fi_write(x.e.ep, NULL, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, NULL));
		CT_REFUSED(ct, fi_read(x.e.ep, buf, 8, NULL, x.e.addr[1] + 77, x.at.addr, x.at.key, NULL));
		if (x.dom.info->ep_attr->max_msg_size < SIZE_MAX)
			CT_REFUSED(ct, fi_write(x.e.ep, buf, x.dom.info->ep_attr->max_msg_size + 1, NULL,
						x.e.addr[1], x.at.addr, x.at.key, NULL));
		ct_quiet(&x.e, 20, "refused calls");
	}
	ct_take_back(&x.e, &x.r);
}

/* An endpoint without the capability refuses the call, and a target without it the access. */
static void not_asked_for(struct ct *ct)
{
	struct ct_want want = { .caps = ct->rank ? FI_MSG | FI_TAGGED : FI_MSG | FI_TAGGED | FI_RMA };
	char buf[64] = { 1 };
	struct ct_rig x;
	struct ct_comp c;

	ct_rig_open(&x, ct, &want, 4096, ALL);
	if (ct->rank) {
		CT_REFUSED(ct, fi_write(x.e.ep, buf, 8, NULL, x.e.addr[0], 0, 1, NULL));
		CT_REFUSED(ct, fi_read(x.e.ep, buf, 8, NULL, x.e.addr[0], 0, 1, NULL));
	} else {
		CT_POST(&x.e, fi_write(x.e.ep, buf, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		ct_of(&x.e, CTX(1), &c);
		CT_TRUE(ct, c.err != 0);
	}
	ct_sync(ct, &x.e);
	if (ct->rank)
		CT_TRUE(ct, ct_untouched(x.r.mem, 4096, 0));
	ct_take_back(&x.e, &x.r);
}

/*
 * Modifiers that name the target's side alone, with messages: fi_getinfo(3) has FI_READ and
 * FI_WRITE for who starts operations, but libfabric's tcp with rxm, shm and sockets take them of
 * such an endpoint too, and programs start them.
 */
static void target_side_named(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | ct->cs->arg };
	char buf[64];
	struct ct_rig x;

	ct_rig_open(&x, ct, &want, 4096, ct->cs->arg);
	if (ct->rank) {
		ct_fill(x.r.mem, 64, 1);
		ct_sync(ct, &x.e);
	} else {
		ct_sync(ct, &x.e);
		ct_fill(buf, 64, 2);
	}
	if (!ct->rank && ct->cs->arg == FI_REMOTE_READ) {
		CT_POST(&x.e, fi_read(x.e.ep, buf, 64, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		ct_have_read(&x.e, CTX(1));
		ct_verify(ct, buf, 64, 1, "read");
	} else if (!ct->rank) {
		struct iovec iov = { buf, 64 };
		struct fi_rma_iov there = { x.at.addr, 64, x.at.key };
		struct fi_msg_rma m = ct_rma_to(&x.e, &iov, &there, CTX(1));

		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		ct_wrote(&x.e, CTX(1));
	}
	ct_sync(ct, &x.e);
	if (ct->rank && ct->cs->arg == FI_REMOTE_WRITE)
		ct_verify(ct, x.r.mem, 64, 2, "written");
	ct_take_back(&x.e, &x.r);
}

/* The target is killed with much under way: every operation ends, and ends once. */
static void dead_target(struct ct *ct)
{
	char *buf = ct_alloc(ct, BIG);
	struct ct_rig x;
	struct ct_comp c;
	int i;

	ct_rig_open(&x, ct, &rma, BIG, ALL);
	if (ct->rank) {
		ct_doomed(ct);
		ct_sync(ct, &x.e);
		abort();
	}
	CT_POST(&x.e, fi_write(x.e.ep, buf, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(77)));
	ct_wrote(&x.e, CTX(77));
	ct_sync(ct, &x.e);
	for (i = 0; i < 16; i++) {
		ssize_t rc =
			i % 2 ? fi_read(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(i))
			      : fi_write(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(i));

		if (rc == -FI_EAGAIN)
			break;
		CT_OK(ct, rc);
	}
	while (i-- > 0)
		ct_any(&x.e, &c);
	ct_quiet(&x.e, 50, "a dead target");
	free(buf);
	ct_ep_close(&x.e);
	ct_close(&x.dom);
}

/*
 * The region is closed under a flood of long operations: each ends, and
 * nothing is written afterwards.
 */
static void closed_under_way(struct ct *ct)
{
	char *buf = ct_alloc(ct, BIG);
	struct ct_rig x;
	int i;

	ct_rig_open(&x, ct, &rma, BIG, ALL);
	ct_sync(ct, &x.e);
	memset(buf, 1, BIG);
	if (!ct->rank) {
		struct ct_comp c;

		for (i = 0; i < 8; i++)
			CT_POST(&x.e, i % 2 ? fi_read(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr,
						      x.at.key, CTX(1))
					    : fi_write(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr,
						       x.at.key, CTX(1)));
		for (i = 0; i < 8; i++)
			ct_of(&x.e, CTX(1), &c);
		ct_sync(ct, &x.e);
	} else {
		for (i = 0; i < 20; i++)
			ct_progress(&x.e);
		CT_OK(ct, fi_close(&x.r.mr->fid));
		memset(x.r.mem, 0x55, BIG);
		ct_sync(ct, &x.e);
		CT_TRUE(ct, ct_untouched(x.r.mem, BIG, 0x55));
		free(x.r.mem);
	}
	free(buf);
	ct_ping(&x.e, 1 - ct->rank);
	ct_finish(&x.e);
}

const struct ct_case ct_rma_refused[] = {
	{ "RMA", "rma-what-the-target-refuses", { refused, refused } },
	{ "RMA", "rma-bad-arguments", { bad_arguments, bad_arguments } },
	{ "RMA", "rma-capabilities-not-asked-for", { not_asked_for, not_asked_for } },
	{ "RMA",
	  "rma-remote-read-alone-named",
	  { target_side_named, target_side_named },
	  .arg = FI_REMOTE_READ },
	{ "RMA",
	  "rma-remote-write-alone-named",
	  { target_side_named, target_side_named },
	  .arg = FI_REMOTE_WRITE },
	{ "RMA", "rma-a-target-that-dies", { dead_target, dead_target } },
	{ "RMA", "rma-a-region-closed-under-way", { closed_under_way, closed_under_way } },
	{ 0 },
};
