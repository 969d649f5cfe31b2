/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * RMA: fi_rma(3), with fi_mr(3) and the order that fi_endpoint(3) defines. Rank 0 reads and writes
 * the memory of the others, which do no more than wait in ct_sync, where they make progress.
 */
#include "region.h"

#include <stdlib.h>
#include <string.h>

#define BIG (2u << 20)
#define ALL (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct ct_want rma = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

static const size_t lens[] = { 0, 1, 8, 13, 64, 1000, 4096, 5000, 16384, 65536, 100000, 300000, BIG - 64 };

/* ---- the calls ------------------------------------------------------------------------------- */

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
			ct_wrote(&x.e, CTX(1));
			memset(in, 0, lens[i]);
			CT_POST(&x.e, fi_read(x.e.ep, in, lens[i], NULL, x.e.addr[1], x.at.addr + 16,
					      x.at.key, CTX(2)));
			ct_have_read(&x.e, CTX(2));
			ct_verify(ct, in, lens[i], i, "read back");
		}
		ct_sync(ct, &x.e);
		if (ct->rank == 1) {
			/* FI_DELIVERY_COMPLETE was not asked for, but the read has seen it */
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

/*
 * fi_writev, fi_readv: segments here, one there. fi_writemsg, fi_readmsg: segments on both sides.
 */
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
		ct_wrote(&x.e, CTX(1));
		iov[0].iov_base = in + odd;
		iov[2].iov_base = in;
		iov[0].iov_len = len - odd;
		iov[2].iov_len = odd;
		CT_POST(&x.e, fi_readv(x.e.ep, iov, NULL, 3, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
		ct_have_read(&x.e, CTX(2));
		CT_TRUE(ct, !memcmp(in + odd, out, len - odd) && !memcmp(in, out + len - odd, odd));
		iov[0].iov_base = out;
		iov[2].iov_base = out + len - odd;
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION | FI_MORE));
		ct_wrote(&x.e, CTX(3));
		iov[0].iov_base = in;
		iov[2].iov_base = in + len - odd;
		memset(in, 0, len);
		CT_POST(&x.e, fi_readmsg(x.e.ep, &m, FI_COMPLETION));
		ct_have_read(&x.e, CTX(3));
		ct_verify(ct, in, len, 5, "both sides in segments");
		CT_POST(&x.e,
			fi_read(x.e.ep, in, half, NULL, x.e.addr[1], x.at.addr + BIG / 2, x.at.key, CTX(4)));
		ct_have_read(&x.e, CTX(4));
		ct_verify(ct, in, half, 5, "the first remote segment");
		m.iov_count = m.rma_iov_count = 0; /* nothing at all */
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION));
		ct_wrote(&x.e, CTX(3));
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
		struct fi_msg_rma m = ct_rma_to(&x.e, &iov, &there, CTX(1));

		if (!max || max > BIG / 4)
			ct_unsupported(ct, "inject_size %zu", max);
		ct_fill(out, max, 1);
		CT_POST(&x.e, fi_inject_write(x.e.ep, out, max, x.e.addr[1], x.at.addr, x.at.key));
		ct_fill(out, max, 2);
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_INJECT | FI_COMPLETION));
		memset(out, 0, max);
		ct_wrote(&x.e, CTX(1));
		ct_quiet(&x.e, 20, "inject");
		CT_POST(&x.e, fi_read(x.e.ep, in, 2 * max, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
		ct_have_read(&x.e, CTX(2));
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
			ct_wrote(&e, CTX(1));
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

/*
 * FI_SELECTIVE_COMPLETION, and FI_DELIVERY_COMPLETE: whoever has the completion
 * may tell others to look.
 */
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
		struct fi_msg_rma m = ct_rma_to(&x.e, &iov, &there, CTX(3));

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
		ct_wrote(&x.e, CTX(3));
	}
	ct_sync(ct, &x.e);
	if (ct->rank == 1)
		ct_verify(ct, x.r.mem + BIG, BIG, 4, "delivered");
	ct_take_back(&x.e, &x.r);
	free(out);
	free(untold);
}

/* ---- order ----------------------------------------------------------------------------------- */

/*
 * A promised order is asked for, or the case is not supported; size: what the
 * endpoint promises for data.
 */
static void ordered_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, uint64_t order)
{
	struct ct_want want = rma;

	want.msg_order = order;
	ct_start(ct, dom, e, &want);
	CT_EQ(ct, dom->info->tx_attr->msg_order & order, order);
}

/*
 * Up to the promised size the last write is what stays, and a read sees what was written before it.
 */
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
			ct_wrote(&e, CTX(1));
			ct_have_read(&e, CTX(2));
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
			ct_wrote(&e, CTX(1));
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
		struct fi_msg_rma m = ct_rma_to(&x.e, &iov, &there, CTX(2));
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
			ct_have_read(&x.e, CTX(2));
			ct_verify(ct, in, BIG, 9 + (uint64_t)i, "read behind a fence");
		}
	}
	free(out);
	free(in);
	ct_take_back(&x.e, &x.r);
}

/*
 * A message that nobody has taken stops a fenced write; a fenced message stops behind a long write.
 */
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
		struct fi_msg_rma m = ct_rma_to(&x.e, &iov, &there, CTX(2));
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

/* ---- counters -------------------------------------------------------------------------------- */

/*
 * FI_READ and FI_WRITE count ours; FI_REMOTE_READ and FI_REMOTE_WRITE those of others. The page
 * has that with FI_RMA_EVENT, and counters bound before fi_enable; programs leave out the one
 * (arg) or do not the other.
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
		ct_wrote(&x.e, CTX(1));
		CT_POST(&x.e, fi_read(x.e.ep, buf, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, CTX(2)));
		ct_have_read(&x.e, CTX(2));
		ct_put(ct, 1, buf, 1);
	} else {
		ct_get(ct, NULL, 0, buf, 1); /* sleeps in read(2) */
	}
	free(buf);
	ct_take_back(&x.e, &x.r);
}

/* Of no bytes, and no segment on either side: done, and told where there are data. */
static void no_segments(struct ct *ct)
{
	struct fi_msg_rma m = { .context = CTX(1), .data = 9 };
	struct ct_rig x;
	struct ct_comp c;

	ct_rig_open(&x, ct, &rma, 64, ALL);
	if (!ct->rank) {
		m.addr = x.e.addr[1];
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION));
		ct_wrote(&x.e, CTX(1));
		CT_POST(&x.e, fi_readmsg(x.e.ep, &m, FI_COMPLETION));
		ct_have_read(&x.e, CTX(1));
		CT_POST(&x.e, fi_writemsg(x.e.ep, &m, FI_COMPLETION | FI_REMOTE_CQ_DATA));
		ct_wrote(&x.e, CTX(1));
	} else {
		ct_any(&x.e, &c);
		CT_TRUE(ct, !c.err && c.flags & FI_REMOTE_WRITE && c.data == 9 && !c.len);
	}
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
			ct_wrote(&e, CTX(100 + p));
			CT_POST(&e, fi_read(e.ep, in, len, NULL, e.addr[p],
					    at[p].addr + (uint64_t)ct->rank * 65536, at[p].key, CTX(200)));
			ct_have_read(&e, CTX(200));
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
	{ "RMA", "rma-no-segments-on-either-side", { no_segments, no_segments } },
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
	{ "RMA", "rma-served-without-calls-of-the-target", { served_without_calls, served_without_calls } },
	{ "RMA", "rma-all-to-all", { crossing, crossing, crossing } },
	{ 0 },
};
