/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * RMA: fi_rma(3), with fi_mr(3) and the order that fi_endpoint(3) defines. Rank 0 reads and writes the memory
 * of the others, which do no more than wait in ct_sync, where they make progress.
 */
#include "region.h"

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define BIG (2u << 20)
#define ALL (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct ct_want rma = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

static void wrote(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.flags & (FI_RMA | FI_WRITE | FI_READ | FI_SEND), FI_RMA | FI_WRITE);
}

static void have_read(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.flags & (FI_RMA | FI_WRITE | FI_READ | FI_RECV), FI_RMA | FI_READ);
}

/* One segment here, one there. */
static struct fi_msg_rma target(const struct ct_ep *e, const struct iovec *iov,
				const struct fi_rma_iov *there, void *ctx)
{
	return (struct fi_msg_rma){ .msg_iov = iov,
				    .iov_count = 1,
				    .addr = e->addr[1],
				    .rma_iov = there,
				    .rma_iov_count = 1,
				    .context = ctx };
}

static const size_t lens[] = { 0, 1, 8, 13, 64, 1000, 4096, 5000, 16384, 65536, 100000, 300000, BIG - 64 };

/* ---- the calls ------------------------------------------------------------------------------------------ */

/* Every size, written and read back, into the middle of a region; the bytes around it stay. */
static void sizes(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *in = ct_alloc(ct, BIG);
	struct ct_rig x;
	size_t i;

	ct_rig_open(&x, ct, &rma, BIG, ALL);
	for (i = 0; i < CT_COUNT(lens); i++) {
		if (!ct->rank) {
			ct_fill(out, lens[i], i);
			CT_POST(&x.e, fi_write(x.e.ep, out, lens[i], NULL, x.e.addr[1], x.at.addr + 16,
					       x.at.key, CTX(1)));
			wrote(&x.e, CTX(1));
			memset(in, 0, lens[i]);
			CT_POST(&x.e, fi_read(x.e.ep, in, lens[i], NULL, x.e.addr[1], x.at.addr + 16,
					      x.at.key, CTX(2)));
			have_read(&x.e, CTX(2));
			ct_verify(ct, in, lens[i], i, "read back");
		}
		ct_sync(ct, &x.e);
		if (ct->rank == 1) { /* FI_DELIVERY_COMPLETE was not asked for, but the read has seen it */
			ct_verify(ct, x.r.mem + 16, lens[i], i, "written");
			CT_TRUE(ct, ct_untouched(x.r.mem, 16, 0));
			CT_TRUE(ct, ct_untouched(x.r.mem + 16 + lens[i], 48, 0));
			memset(x.r.mem, 0, BIG);
		}
		ct_sync(ct, &x.e);
	}
	if (ct->rank == 1) /* nobody tells the target */
		ct_quiet(&x.e, 5, "a target");
	free(out);
	free(in);
	ct_take_back(&x.e, &x.r);
}

/* fi_writev, fi_readv: segments here, one there. fi_writemsg, fi_readmsg: segments on both sides. */
static void vectors(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *in = ct_alloc(ct, BIG);
	size_t len = ct->cs->arg, half = len / 2, odd = len / 5 + 1;
	struct iovec iov[3] = { { out, odd }, { out + odd, 0 }, { out + odd, len - odd } };
	struct ct_rig x;

	ct_rig_open(&x, ct, &rma, BIG, ALL);
	if (x.dom.info->tx_attr->iov_limit < 3 || x.dom.info->tx_attr->rma_iov_limit < 2)
		ct_unsupported(ct, "iov_limit %zu, rma_iov_limit %zu", x.dom.info->tx_attr->iov_limit,
			       x.dom.info->tx_attr->rma_iov_limit);
	if (!ct->rank) {
		struct fi_rma_iov there[2] = { { x.at.addr + BIG / 2, half, x.at.key },
					       { x.at.addr, len - half, x.at.key } };
		struct fi_msg_rma m = { .msg_iov = iov,
					.iov_count = 3,
					.addr = x.e.addr[1],
					.rma_iov = there,
					.rma_iov_count = 2,
					.context = CTX(3) };

		ct_fill(out, len, 5);
		CT_POST(&x.e, fi_writev(x.e.ep, iov, NULL, 3, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		wrote(&x.e, CTX(1));
		iov[0].iov_base = in + odd;
		iov[2].iov_base = in;
		iov[0].iov_len = len - odd;
		iov[2].iov_len = odd;
		CT_POST(&x.e, fi_readv(x.e.ep, iov, NULL, 3, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
		have_read(&x.e, CTX(2));
		CT_TRUE(ct, !memcmp(in + odd, out, len - odd) && !memcmp(in, out + len - odd, odd));
		iov[0].iov_base = out;
		iov[2].iov_base = out + len - odd;
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION | FI_MORE));
		wrote(&x.e, CTX(3));
		iov[0].iov_base = in;
		iov[2].iov_base = in + len - odd;
		memset(in, 0, len);
		CT_POST(&x.e, fi_readmsg(x.e.ep, &m, FI_COMPLETION));
		have_read(&x.e, CTX(3));
		ct_verify(ct, in, len, 5, "both sides in segments");
		CT_POST(&x.e,
			fi_read(x.e.ep, in, half, NULL, x.e.addr[1], x.at.addr + BIG / 2, x.at.key, CTX(4)));
		have_read(&x.e, CTX(4));
		ct_verify(ct, in, half, 5, "the first remote segment");
		m.iov_count = m.rma_iov_count = 0; /* nothing at all */
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION));
		wrote(&x.e, CTX(3));
	}
	free(out);
	free(in);
	ct_take_back(&x.e, &x.r);
}

/* fi_inject_write, FI_INJECT: the buffer is ours on return; the first completes only in error. */
static void inject(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *in = ct_alloc(ct, BIG);
	struct ct_rig x;

	ct_rig_open(&x, ct, &rma, BIG, ALL);
	if (!ct->rank) {
		size_t max = x.dom.info->tx_attr->inject_size;
		struct iovec iov = { out, max };
		struct fi_rma_iov there = { x.at.addr + max, max, x.at.key };
		struct fi_msg_rma m = target(&x.e, &iov, &there, CTX(1));

		if (!max || max > BIG / 4)
			ct_unsupported(ct, "inject_size %zu", max);
		ct_fill(out, max, 1);
		CT_POST(&x.e, fi_inject_write(x.e.ep, out, max, x.e.addr[1], x.at.addr, x.at.key));
		ct_fill(out, max, 2);
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_INJECT | FI_COMPLETION));
		memset(out, 0, max);
		wrote(&x.e, CTX(1));
		ct_quiet(&x.e, 20, "inject");
		CT_POST(&x.e, fi_read(x.e.ep, in, 2 * max, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
		have_read(&x.e, CTX(2));
		ct_verify(ct, in, max, 1, "fi_inject_write");
		ct_verify(ct, in + max, max, 2, "FI_INJECT");
		CT_REFUSED(ct, fi_inject_write(x.e.ep, out, max + 1, x.e.addr[1], x.at.addr, x.at.key));
		iov.iov_len = there.len = max + 1;
		CT_REFUSED(ct, fi_writemsg(x.e.ep, &m, FI_INJECT));
	}
	free(out);
	free(in);
	ct_take_back(&x.e, &x.r);
}

/* FI_REMOTE_CQ_DATA: a completion at the target after the data, which takes no receive. */
static void cq_data(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), in[64];
	struct ct_want want = rma;
	struct ct_region r;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_place at;
	struct ct_ep e;
	size_t i;

	want.caps |= FI_SOURCE;
	ct_start(ct, &dom, &e, &want);
	if (dom.info->domain_attr->cq_data_size < 8)
		ct_unsupported(ct, "cq_data_size %zu", dom.info->domain_attr->cq_data_size);
	ct_offer(&e, &r, BIG, ALL, &at);
	if (ct->rank == 1)
		ct_recv(&e, in, sizeof(in), CTX(9));
	ct_sync(ct, &e);
	for (i = 0; i < CT_COUNT(lens); i++) {
		uint64_t data = 0xfedcba9876543210 + i;

		ct_fill(out, lens[i], i);
		if (!ct->rank && lens[i] <= dom.info->tx_attr->inject_size && i % 2) {
			CT_POST(&e,
				fi_inject_writedata(e.ep, out, lens[i], data, e.addr[1], at.addr, at.key));
		} else if (!ct->rank) {
			CT_POST(&e, fi_writedata(e.ep, out, lens[i], NULL, data, e.addr[1], at.addr, at.key,
						 CTX(1)));
			wrote(&e, CTX(1));
		} else {
			ct_any(&e, &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct,
			      c.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_RECV | FI_SEND),
			      FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
			CT_EQ(ct, c.data, data);
			CT_EQ(ct, c.src, e.addr[0]);
			ct_verify(ct, r.mem, lens[i], i, "written before the completion");
		}
		ct_sync(ct, &e);
	}
	if (!ct->rank) { /* the receive is there still */
		ct_send(&e, 1, out, 64, CTX(2));
		ct_done(&e, CTX(2));
	} else {
		CT_EQ(ct, ct_done(&e, CTX(9)), 64);
	}
	free(out);
	ct_take_back(&e, &r);
}

/* FI_SELECTIVE_COMPLETION, and FI_DELIVERY_COMPLETE: whoever has the completion may tell others to look. */
static void completions(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *untold = ct_alloc(ct, BIG);
	struct ct_want want = rma;
	struct ct_rig x;

	want.tx_bind = FI_SELECTIVE_COMPLETION;
	want.split = true;
	ct_rig_open(&x, ct, &want, 2 * BIG, ALL);
	if (!ct->rank) {
		struct iovec iov;
		struct fi_rma_iov there;
		struct fi_msg_rma m = target(&x.e, &iov, &there, CTX(3));

		/* nobody knows when these have ended, so they have memory of their own */
		CT_POST(&x.e, fi_write(x.e.ep, untold, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		CT_POST(&x.e,
			fi_read(x.e.ep, untold + 8, 8, NULL, x.e.addr[1], x.at.addr + 8, x.at.key, CTX(2)));
		iov.iov_base = untold + 16;
		iov.iov_len = BIG - 16;
		there = (struct fi_rma_iov){ x.at.addr + 16, BIG - 16, x.at.key };
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, 0));
		ct_quiet(&x.e, 50, "without FI_COMPLETION");
		iov = (struct iovec){ out, BIG };
		there = (struct fi_rma_iov){ x.at.addr + BIG, BIG, x.at.key };
		ct_fill(out, BIG, 4);
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		wrote(&x.e, CTX(3));
	}
	ct_sync(ct, &x.e);
	if (ct->rank == 1)
		ct_verify(ct, x.r.mem + BIG, BIG, 4, "delivered");
	ct_take_back(&x.e, &x.r);
	free(out);
	free(untold);
}

/* ---- order ---------------------------------------------------------------------------------------------- */

/* A promised order is asked for, or the case is not supported; size: what the endpoint promises for data. */
static void ordered_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, uint64_t order)
{
	struct ct_want want = rma;

	want.msg_order = order;
	ct_start(ct, dom, e, &want);
	CT_EQ(ct, dom->info->tx_attr->msg_order & order, order);
}

/* Up to the promised size the last write is what stays, and a read sees what was written before it. */
static void order_of_data(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *in = ct_alloc(ct, BIG);
	struct ct_region r;
	struct ct_dom dom;
	struct ct_place at;
	struct ct_ep e;
	size_t len, i;

	ordered_start(ct, &dom, &e, FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_WAR);
	ct_offer(&e, &r, BIG, ALL, &at);
	len = dom.info->ep_attr->max_order_waw_size;
	if (len > dom.info->ep_attr->max_order_raw_size)
		len = dom.info->ep_attr->max_order_raw_size;
	if (len > dom.info->ep_attr->max_order_war_size)
		len = dom.info->ep_attr->max_order_war_size;
	if (!len)
		ct_unsupported(ct, "no order of data");
	if (len > 65536)
		len = 65536;
	if (!ct->rank) {
		len -= 1; /* smaller than the size, says the page */
		for (i = 0; i < 16; i++) {
			ct_fill(out + i * len, len, i);
			CT_POST(&e,
				fi_write(e.ep, out + i * len, len, NULL, e.addr[1], at.addr, at.key, CTX(1)));
			CT_POST(&e,
				fi_read(e.ep, in + i * len, len, NULL, e.addr[1], at.addr, at.key, CTX(2)));
		}
		for (i = 0; i < 16; i++) {
			wrote(&e, CTX(1));
			have_read(&e, CTX(2));
		}
		for (i = 0; i < 16; i++)
			ct_verify(ct, in + i * len, len, i, "read between two writes");
	}
	free(out);
	free(in);
	ct_take_back(&e, &r);
}

/* FI_ORDER_SAW: who gets the message finds the data, whatever its size. */
static void send_after_write(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), in[64];
	struct ct_region r;
	struct ct_dom dom;
	struct ct_place at;
	struct ct_ep e;
	size_t i;

	ordered_start(ct, &dom, &e, FI_ORDER_SAW);
	ct_offer(&e, &r, BIG, ALL, &at);
	for (i = 0; i < CT_COUNT(lens); i++) {
		ct_fill(out, lens[i], i + 3);
		if (!ct->rank) {
			CT_POST(&e, fi_write(e.ep, out, lens[i], NULL, e.addr[1], at.addr, at.key, CTX(1)));
			ct_tsend(&e, 1, out, 64, 5, CTX(2));
			wrote(&e, CTX(1));
			ct_done(&e, CTX(2));
		} else {
			ct_trecv(&e, in, sizeof(in), 5, 0, CTX(1));
			ct_done(&e, CTX(1));
			ct_verify(ct, r.mem, lens[i], i + 3, "written before the message");
		}
		ct_sync(ct, &e);
	}
	free(out);
	ct_take_back(&e, &r);
}

/* M14: a fenced operation waits for all before it, of any kind. */
static void fence(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), *in = ct_alloc(ct, BIG);
	struct ct_want want = rma;
	struct ct_rig x;

	want.caps |= FI_FENCE;
	ct_rig_open(&x, ct, &want, BIG, ALL);
	if (!ct->rank) {
		struct iovec iov = { in, BIG };
		struct fi_rma_iov there = { x.at.addr, BIG, x.at.key };
		struct fi_msg_rma m = target(&x.e, &iov, &there, CTX(2));
		struct ct_comp c;
		int i;

		for (i = 0; i < 4; i++) {
			ct_fill(out, BIG, 9 + (uint64_t)i);
			memset(in, 0, BIG);
			CT_POST(&x.e,
				fi_write(x.e.ep, out, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
			CT_POST(&x.e, fi_readmsg(x.e.ep, &m, FI_FENCE | FI_COMPLETION));
			ct_any(&x.e, &c);
			CT_EQ(ct, c.err, 0);
			CT_TRUE(ct, c.ctx == CTX(1));
			have_read(&x.e, CTX(2));
			ct_verify(ct, in, BIG, 9 + (uint64_t)i, "read behind a fence");
		}
	}
	free(out);
	free(in);
	ct_take_back(&x.e, &x.r);
}

/* A message that nobody has taken stops a fenced write; a fenced message stops behind a long write. */
static void fence_and_messages(struct ct *ct)
{
	char *out = ct_alloc(ct, BIG), text[8] = "fence";
	struct ct_want want = rma;
	struct ct_rig x;

	want.caps |= FI_FENCE | FI_TAGGED;
	want.tx_op_flags = FI_MATCH_COMPLETE;
	ct_rig_open(&x, ct, &want, BIG, ALL);
	ct_fill(out, BIG, 3);
	if (!ct->rank) {
		struct iovec iov = { out, BIG }, word = { text, 8 };
		struct fi_rma_iov there = { x.at.addr, BIG, x.at.key };
		struct fi_msg_rma m = target(&x.e, &iov, &there, CTX(2));
		struct fi_msg_tagged t = {
			.msg_iov = &word, .iov_count = 1, .addr = x.e.addr[1], .tag = 2, .context = CTX(3)
		};

		ct_tsend(&x.e, 1, text, 8, 1, CTX(1));
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_FENCE | FI_COMPLETION));
		CT_POST(&x.e, fi_tsendmsg(x.e.ep, &t, FI_FENCE | FI_COMPLETION));
		ct_quiet(&x.e, 50, "a fenced write");
		ct_sync(ct, &x.e);
		for (uintptr_t i = 1; i <= 3; i++) {
			struct ct_comp c;

			ct_any(&x.e, &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, (uintptr_t)c.ctx, i);
		}
	} else {
		ct_trecv(&x.e, text, 8, 2, 0, CTX(2));
		ct_sync(ct, &x.e);
		CT_TRUE(ct, ct_untouched(x.r.mem, BIG, 0));
		ct_trecv(&x.e, text, 8, 1, 0, CTX(1));
		ct_done(&x.e, CTX(1));
		ct_done(&x.e, CTX(2));
		ct_verify(ct, x.r.mem, BIG, 3, "what was written before the fenced message");
	}
	free(out);
	ct_take_back(&x.e, &x.r);
}

/* ---- counters --------------------------------------------------------------------------------------------- */

/*
 * FI_READ and FI_WRITE count ours; FI_REMOTE_READ and FI_REMOTE_WRITE those of others. The page has that with FI_RMA_EVENT, and counters
 * bound before fi_enable; programs leave out the one (arg) or do not the other.
 */
static void count_both(struct ct *ct, bool late)
{
	struct ct_want want = rma;
	char *buf = ct_alloc(ct, BIG);
	struct ct_rig x;

	want.caps |= (uint64_t)ct->cs->arg;
	want.late = late;
	ct_rig_open_counted(&x, ct, &want, BIG, ALL);
	if (!ct->rank) {
		CT_POST(&x.e, fi_read(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		CT_POST(&x.e, fi_read(x.e.ep, buf, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		CT_POST(&x.e, fi_write(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		CT_POST(&x.e, fi_write(x.e.ep, buf, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		CT_POST(&x.e, fi_inject_write(x.e.ep, buf, 8, x.e.addr[1], x.at.addr, x.at.key));
	}
	ct_reaches(&x.e, x.read, 2);
	ct_reaches(&x.e, x.write, 3);
	CT_EQ(ct, fi_cntr_readerr(x.write), 0);
	free(buf);
	ct_sync(ct, &x.e);
	if (ct->rank)
		ct_region_close(&x.e, &x.r);
	CT_OK(ct, fi_close(&x.e.ep->fid));
	CT_OK(ct, fi_close(&x.read->fid));
	CT_OK(ct, fi_close(&x.write->fid));
	CT_OK(ct, fi_close(&x.e.txcq->fid));
	CT_OK(ct, fi_close(&x.e.av->fid));
	free(x.e.stash);
	ct_close(&x.dom);
}

static void counters(struct ct *ct)
{
	count_both(ct, false);
}

static void counters_late(struct ct *ct)
{
	count_both(ct, true);
}

/* ---- errors ------------------------------------------------------------------------------------------------- */

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

/* What the target refuses: the initiator learns it, nothing is written, and the endpoint goes on. */
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
		struct fi_msg_rma m = target(&x.e, iov, there, CTX(3));
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
 * Modifiers that name the target's side alone, with messages: fi_getinfo(3) has FI_READ and FI_WRITE for who starts operations, but
 * libfabric's tcp with rxm, shm and sockets take them of such an endpoint too, and programs start them.
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
		have_read(&x.e, CTX(1));
		ct_verify(ct, buf, 64, 1, "read");
	} else if (!ct->rank) {
		struct iovec iov = { buf, 64 };
		struct fi_rma_iov there = { x.at.addr, 64, x.at.key };
		struct fi_msg_rma m = target(&x.e, &iov, &there, CTX(1));

		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		wrote(&x.e, CTX(1));
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
	wrote(&x.e, CTX(77));
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

/* The region is closed under a flood of long operations: each ends, and nothing is written afterwards. */
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

/* With FI_PROGRESS_AUTO the target's program need do nothing: here it does not even call. */
static void served_without_calls(struct ct *ct)
{
	char *buf = ct_alloc(ct, BIG);
	struct ct_want want = rma;
	struct ct_rig x;

	want.progress = FI_PROGRESS_AUTO;
	ct_rig_open(&x, ct, &want, BIG, ALL);
	ct_sync(ct, &x.e);
	if (!ct->rank) {
		CT_POST(&x.e, fi_write(x.e.ep, buf, BIG, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(1)));
		wrote(&x.e, CTX(1));
		CT_POST(&x.e, fi_read(x.e.ep, buf, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
		have_read(&x.e, CTX(2));
		ct_put(ct, 1, buf, 1);
	} else {
		ct_get(ct, NULL, 0, buf, 1); /* sleeps in read(2) */
	}
	free(buf);
	ct_take_back(&x.e, &x.r);
}

/* Both ways at once, between three, with messages in between: nothing is lost or mixed up. */
static void crossing(struct ct *ct)
{
	char *buf = ct_alloc(ct, 3 * 65536), *in = ct_alloc(ct, 3 * 65536);
	struct ct_place at[CT_PROCS];
	struct ct_region r;
	struct ct_dom dom;
	struct ct_ep e;
	int i, p;

	ct_start(ct, &dom, &e, &rma);
	ct_region_open(&e, &r, 3 * 65536, ALL, 7);
	for (p = 0; p < ct->procs; p++)
		if (p != ct->rank)
			ct_put(ct, p, &r.at, sizeof(r.at));
	for (p = 0; p < ct->procs; p++)
		if (p != ct->rank)
			ct_get(ct, &e, p, &at[p], sizeof(at[p]));
	ct_sync(ct, &e);
	for (i = 0; i < 60; i++) {
		size_t len = ct_range(ct, 65536) + 1;

		for (p = 0; p < ct->procs; p++) {
			char *mine = buf + p * 65536;

			if (p == ct->rank)
				continue;
			ct_fill(mine, len, (uint64_t)(i * 8 + ct->rank));
			CT_POST(&e,
				fi_write(e.ep, mine, len, NULL, e.addr[p],
					 at[p].addr + (uint64_t)ct->rank * 65536, at[p].key, CTX(100 + p)));
		}
		for (p = 0; p < ct->procs; p++) {
			if (p == ct->rank)
				continue;
			wrote(&e, CTX(100 + p));
			CT_POST(&e, fi_read(e.ep, in, len, NULL, e.addr[p],
					    at[p].addr + (uint64_t)ct->rank * 65536, at[p].key, CTX(200)));
			have_read(&e, CTX(200));
			ct_verify(ct, in, len, (uint64_t)(i * 8 + ct->rank), "crossing");
		}
	}
	ct_sync(ct, &e);
	ct_region_close(&e, &r);
	free(buf);
	free(in);
	ct_finish(&e);
}

extern const struct ct_case ct_rma[];
const struct ct_case ct_rma[] = {
	{ "RMA", "rma-every-size-written-and-read-back", { sizes, sizes } },
	{ "RMA", "rma-segments-on-both-sides-short", { vectors, vectors }, .arg = 1000 },
	{ "RMA", "rma-segments-on-both-sides-long", { vectors, vectors }, .arg = 900001 },
	{ "RMA", "rma-inject", { inject, inject } },
	{ "RMA", "rma-remote-CQ-data", { cq_data, cq_data } },
	{ "RMA", "rma-selective-completion-and-delivery", { completions, completions } },
	{ "RMA", "rma-order-of-data", { order_of_data, order_of_data } },
	{ "RMA", "rma-messages-after-writes", { send_after_write, send_after_write } },
	{ "M14", "rma-fence-behind-a-write", { fence, fence } },
	{ "M14", "rma-fences-among-messages", { fence_and_messages, fence_and_messages } },
	{ "RMA", "rma-counters-of-both-sides", { counters, counters }, .arg = FI_RMA_EVENT },
	{ "RMA", "rma-counters-without-rma-event", { counters, counters } },
	{ "RMA", "rma-counters-bound-late", { counters_late, counters_late } },
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
	{ "RMA", "rma-served-without-calls-of-the-target", { served_without_calls, served_without_calls } },
	{ "RMA", "rma-all-to-all", { crossing, crossing, crossing } },
	{ 0 },
};
