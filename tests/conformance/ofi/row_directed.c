/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M5, fi_msg(3) and fi_tagged(3): src_addr of every receive call, at every length, where it
 * counts and where it does not.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define MOST 600000
#define CALLS 6 /* odd ones are tagged */
#define TAG 6

static const struct ct_want directing = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
					  .msg_order = FI_ORDER_SAS };
static const size_t lens[] = { 0, 8, 3000, 100000, MOST };

static ssize_t hear(struct ct_ep *e, size_t call, void *buf, size_t len, fi_addr_t from, void *ctx)
{
	const struct iovec iov = { buf, len };

	switch (call) {
	case 0:
		return fi_recv(e->ep, buf, len, NULL, from, ctx);
	case 1:
		return fi_trecv(e->ep, buf, len, NULL, from, TAG, 0, ctx);
	case 2:
		return fi_recvv(e->ep, &iov, NULL, 1, from, ctx);
	case 3:
		return fi_trecvv(e->ep, &iov, NULL, 1, from, TAG, 0, ctx);
	default:
		return ct_recv_one(e, &(struct ct_one){ .buf = buf,
							.len = len,
							.ctx = ctx,
							.flags = FI_COMPLETION,
							.tagged = call & 1,
							.tag = TAG,
							.from = &from });
	}
}

static void say(struct ct_ep *e, size_t call, const void *buf, size_t len)
{
	if (call & 1)
		ct_tsend(e, 0, buf, len, TAG, CTX(70));
	else
		ct_send(e, 0, buf, len, CTX(70));
}

/* Who sends fills with its rank; what rank 0 has got must be from that rank. */
static void got(struct ct_ep *e, void *ctx, const char *buf, size_t len, int from)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.len, len);
	CT_EQ(e->ct, c.src, e->addr[from]);
	ct_verify(e->ct, buf, len, (uint64_t)from, "from whom it was asked");
}

/*
 * Rank 1 sends first, rank 2 is asked first. Posted before the messages come
 * (arg 0), or after (arg 1).
 */
static void every_call(struct ct *ct)
{
	char *buf[2] = { ct_alloc(ct, MOST), ct_alloc(ct, MOST) };
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &directing);
	for (size_t i = 0; i < CALLS * CT_COUNT(lens); i++) {
		size_t call = i % CALLS, len = lens[i / CALLS];

		if (len > dom.info->ep_attr->max_msg_size)
			break;
		if (ct->rank == 1) {
			ct_fill(buf[0], len, 1);
			if (!ct->cs->arg)
				ct_sync(ct, &e);
			say(&e, call, buf[0], len);
		}
		if (!ct->rank && !ct->cs->arg) {
			CT_POST(&e, hear(&e, call, buf[1], len, e.addr[2], CTX(2)));
			CT_POST(&e, hear(&e, call, buf[0], len, e.addr[1], CTX(1)));
		}
		if (ct->rank != 1 || ct->cs->arg)
			ct_sync(ct, &e);
		if (ct->rank == 2) {
			ct_fill(buf[0], len, 2);
			say(&e, call, buf[0], len);
		}
		if (!ct->rank && ct->cs->arg) {
			ct_idle(&e, 5);
			CT_POST(&e, hear(&e, call, buf[1], len, e.addr[2], CTX(2)));
			CT_POST(&e, hear(&e, call, buf[0], len, e.addr[1], CTX(1)));
		}
		if (ct->rank) {
			ct_done(&e, CTX(70));
		} else {
			got(&e, CTX(1), buf[0], len, 1);
			got(&e, CTX(2), buf[1], len, 2);
		}
		ct_sync(ct, &e);
	}
	free(buf[0]);
	free(buf[1]);
	ct_finish(&e);
}

/*
 * Receives for anybody and for one are searched in the order in which they were posted: the oldest
 * that may take a message takes it.
 */
static void in_order(struct ct *ct)
{
	static const int from[] = { 0, 2, 1, 0, 2, 0, 1 }; /* 0: anybody */
	/*
	 * what each of them gets when ranks 2, 2, 1, 1, 1, 2, 1 send in this order, one after
	 * the other has been received
	 */
	static const int sends[] = { 2, 2, 1, 1, 1, 2, 1 };
	static const size_t takes[] = { 0, 1, 2, 3, 5, 4, 6 };
	char buf[CT_COUNT(from)][8];
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &directing);
	for (size_t tagged = 0; tagged < 2; tagged++) {
		for (size_t i = 0; !ct->rank && i < CT_COUNT(from); i++)
			CT_POST(&e, hear(&e, tagged, buf[i], 8, from[i] ? e.addr[from[i]] : FI_ADDR_UNSPEC,
					 CTX(i + 1)));
		ct_sync(ct, &e);
		for (size_t i = 0; i < CT_COUNT(sends); i++) {
			if (ct->rank == sends[i]) {
				ct_fill(buf[0], 8, (uint64_t)ct->rank);
				say(&e, tagged, buf[0], 8);
				ct_done(&e, CTX(70));
			} else if (!ct->rank) {
				got(&e, CTX(takes[i] + 1), buf[takes[i]], 8, sends[i]);
			}
			ct_sync(ct, &e);
		}
	}
	ct_quiet(&e, 10, "each message is received once");
	ct_finish(&e);
}

/* A buffer for many, for messages of rank 2 alone: those of rank 1 go to the one behind it. */
static void many(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV,
				.msg_order = FI_ORDER_SAS };
	char *buf = ct_alloc(ct, 20000), one[100];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	for (int i = 0; !ct->rank && i < 2; i++)
		CT_POST(&e, ct_recv_one(&e, &(struct ct_one){ .buf = buf + 10000 * i,
							      .len = 10000,
							      .ctx = CTX(2 - i),
							      .flags = FI_MULTI_RECV,
							      .from = &e.addr[2 - i] }));
	ct_sync(ct, &e);
	for (int i = 0; i < 20; i++) {
		if (ct->rank) {
			ct_fill(one, sizeof(one), (uint64_t)ct->rank);
			ct_send(&e, 0, one, sizeof(one), CTX(70));
			ct_done(&e, CTX(70));
			continue;
		}
		for (int from = 1; from < 3; from++) {
			ct_of(&e, CTX(from), &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.len, sizeof(one));
			CT_EQ(ct, c.src, e.addr[from]);
			ct_verify(ct, c.buf, sizeof(one), (uint64_t)from, "in the buffer of its sender");
		}
	}
	ct_sync(ct, &e);
	free(buf);
	ct_finish(&e);
}

/*
 * An address that is none is refused by every call, and nothing is posted;
 * one that was removed, too.
 */
static void refused(struct ct *ct)
{
	struct ct_want want = directing;
	fi_addr_t wrong[] = { 77, UINT64_C(1) << 60, 0 };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "";

	want.av_type = FI_AV_TABLE;
	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	if (!ct->rank) {
		wrong[2] = ct_insert(&e, e.name);
		CT_OK(ct, fi_av_remove(e.av, &wrong[2], 1, 0));
	}
	for (size_t i = 0; !ct->rank && i < CALLS * CT_COUNT(wrong); i++)
		CT_EQ(ct, hear(&e, i % CALLS, buf, 8, wrong[i / CALLS], CTX(i + 1)), -FI_EINVAL);
	for (size_t i = 0; !ct->rank && i < CT_COUNT(wrong); i++)
		CT_EQ(ct,
		      ct_recv_one(&e, &(struct ct_one){ .ctx = CTX(1),
							.flags = FI_PEEK,
							.tagged = true,
							.from = &wrong[i] }),
		      -FI_EINVAL);
	ct_sync(ct, &e);
	ct_ping(&e, !ct->rank);
	ct_quiet(&e, 20, "what was refused");
	ct_finish(&e);
}

/* Not configured: whatever is in src_addr, nothing is looked up, and any message matches. */
static void anything(struct ct *ct)
{
	static const fi_addr_t wrong[] = { 77, UINT64_C(1) << 60, 0, FI_ADDR_UNSPEC };
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "";

	ct_start(ct, &dom, &e, &want);
	if (dom.info->caps & FI_DIRECTED_RECV)
		ct_unsupported(ct, "FI_DIRECTED_RECV is on though it was not asked for");
	for (size_t i = 0; i < CALLS * CT_COUNT(wrong); i++) {
		if (!ct->rank)
			CT_POST(&e, hear(&e, i % CALLS, buf, 8, wrong[i / CALLS], CTX(70)));
		else
			say(&e, i % CALLS, buf, 8);
		ct_done(&e, CTX(70));
	}
	ct_finish(&e);
}

const struct ct_case ct_directed[] = {
	{ "M5", "directed-calls", CT_THREE(every_call) },
	{ "M5", "directed-calls-late", CT_THREE(every_call), .arg = 1 },
	{ "M5", "directed-in-order", CT_THREE(in_order) },
	{ "M5", "directed-multi-recv", CT_THREE(many) },
	{ "M5", "directed-refused", { refused, refused } },
	{ "M5", "src-addr-ignored", { anything, anything } },
	{ 0 },
};
