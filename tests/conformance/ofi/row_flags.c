/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M6 to M11: inject, flags per call, remote CQ data, selective completion, FI_MORE. */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 500

/* Between ranks 0 and 1. */
static ssize_t sendmsg1(struct ct_ep *e, void *buf, size_t len, void *ctx, uint64_t data, uint64_t flags)
{
	return ct_send_one(e, &(struct ct_one){ .buf = buf,
						.len = len,
						.ctx = ctx,
						.data = data,
						.flags = flags,
						.to = !e->ct->rank });
}

static ssize_t tsendmsg1(struct ct_ep *e, void *buf, size_t len, uint64_t tag, void *ctx, uint64_t data,
			 uint64_t flags)
{
	return ct_send_one(e, &(struct ct_one){ .buf = buf,
						.len = len,
						.ctx = ctx,
						.tagged = true,
						.tag = tag,
						.data = data,
						.flags = flags,
						.to = !e->ct->rank });
}

static ssize_t recvmsg1(struct ct_ep *e, void *buf, size_t len, void *ctx, uint64_t flags)
{
	return ct_recv_one(e, &(struct ct_one){ .buf = buf, .len = len, .ctx = ctx, .flags = flags });
}

static ssize_t trecvmsg1(struct ct_ep *e, void *buf, size_t len, uint64_t tag, void *ctx, uint64_t flags)
{
	return ct_recv_one(
		e, &(struct ct_one){
			   .buf = buf, .len = len, .ctx = ctx, .tagged = true, .tag = tag, .flags = flags });
}

/* ---- M6, M11 ---- */

/* Takes ROUNDS messages of growing length, in order, tagged and untagged in turn. */
static void take_rounds(struct ct_ep *e, size_t max)
{
	char *buf = ct_alloc(e->ct, max + 1);
	size_t i;

	for (i = 0; i < ROUNDS; i++) {
		if (i & 1)
			ct_trecv(e, buf, max + 1, i, 0, CTX(i + 1));
		else
			ct_recv(e, buf, max + 1, CTX(i + 1));
		CT_EQ(e->ct, ct_done(e, CTX(i + 1)), i % (max + 1));
		ct_verify(e->ct, buf, i % (max + 1), i, "injected");
	}
	free(buf);
}

static ssize_t inject_round(struct ct_ep *e, bool flag, size_t i, char *buf, size_t len)
{
	if (flag && i & 1)
		return tsendmsg1(e, buf, len, i, CTX(i + 1), 0, FI_INJECT | FI_COMPLETION);
	if (flag)
		return sendmsg1(e, buf, len, CTX(i + 1), 0, FI_INJECT);
	return i & 1 ? fi_tinject(e->ep, buf, len, e->addr[1], i) : fi_inject(e->ep, buf, len, e->addr[1]);
}

/*
 * Every length, the buffer overwritten on return. arg 1: by FI_INJECT, which completes as
 * configured: here, all of them.
 */
static void inject_reuse(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	bool flag = ct->cs->arg;
	struct ct_dom dom;
	struct ct_ep e;
	size_t i, max;
	char *buf;

	ct_start(ct, &dom, &e, &want);
	buf = ct_inject_room(&e, 1, &max);
	if (ct->rank)
		take_rounds(&e, max);
	for (i = 0; !ct->rank && i < ROUNDS; i++) {
		size_t len = i % (max + 1);

		ct_fill(buf, len, i);
		CT_POST(&e, inject_round(&e, flag, i, buf, len));
		memset(buf, 0xee, max);
	}
	for (i = 0; flag && !ct->rank && i < ROUNDS; i++)
		ct_done(&e, CTX(i + 1));
	ct_sync(ct, &e);
	ct_quiet(&e, 20, "fi_inject");
	ct_ping(&e, !ct->rank);
	free(buf);
	ct_finish(&e);
}

static void inject_over(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char *buf;

	ct_start(ct, &dom, &e, NULL);
	buf = ct_inject_room(&e, 1, &max);
	/* First of all the connection: before it -FI_EAGAIN may be the answer to anything. */
	ct_ping(&e, !ct->rank);
	if (!ct->rank) {
		CT_REFUSED(ct, fi_inject(e.ep, buf, max + 1, e.addr[1]));
		CT_REFUSED(ct, fi_injectdata(e.ep, buf, max + 1, 1, e.addr[1]));
		CT_REFUSED(ct, fi_tinject(e.ep, buf, max + 1, e.addr[1], 1));
		CT_REFUSED(ct, fi_tinjectdata(e.ep, buf, max + 1, 1, e.addr[1], 1));
		CT_REFUSED(ct, sendmsg1(&e, buf, max + 1, CTX(1), 0, FI_INJECT));
		CT_REFUSED(ct, tsendmsg1(&e, buf, max + 1, 1, CTX(1), 0, FI_INJECT));
	}
	ct_ping(&e, !ct->rank);
	ct_quiet(&e, 30, "refused injects");
	free(buf);
	ct_finish(&e);
}

static void inject_equal(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char *buf;

	ct_start(ct, &dom, &e, NULL);
	buf = ct_inject_room(&e, 0, &max);
	if (ct->rank) {
		ct_recv(&e, buf, max, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), max);
		ct_verify(ct, buf, max, 3, "inject_size bytes");
	} else {
		ct_fill(buf, max, 3);
		CT_POST(&e, sendmsg1(&e, buf, max, CTX(1), 0, FI_INJECT));
		memset(buf, 0xee, max);
		ct_done(&e, CTX(1));
	}
	free(buf);
	ct_finish(&e);
}

/* ---- M7 ---- */

static void null_context(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64];
	int i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 6; i++) {
		if (ct->rank && i & 1)
			CT_POST(&e, trecvmsg1(&e, buf, 64, 4, NULL, 0));
		else if (ct->rank)
			CT_POST(&e, recvmsg1(&e, buf, 64, NULL, 0));
		else if (i & 1)
			ct_tsend(&e, 1, "x", 1, 4, NULL);
		else
			ct_send(&e, 1, "x", 1, NULL);
		ct_any(&e, &c);
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, !c.ctx);
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

/*
 * Endpoint defaults say FI_COMPLETION (arg 1) or not (arg 0); the flags of fi_sendmsg and
 * fi_recvmsg take their place, while fi_send and fi_recv follow the defaults.
 */
static void override(struct ct *ct)
{
	uint64_t on = ct->cs->arg ? FI_COMPLETION : 0;
	struct ct_want want = {
		.tx_op_flags = on,
		.rx_op_flags = on,
		.msg_order = FI_ORDER_SAS,
		.tx_bind = FI_SELECTIVE_COMPLETION,
		.rx_bind = FI_SELECTIVE_COMPLETION,
	};
	uint64_t flags = on ? 0 : FI_COMPLETION;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[4][8];

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		ct_recv(&e, buf[0], 8, CTX(1));
		CT_POST(&e, recvmsg1(&e, buf[1], 8, CTX(2), flags));
		ct_trecv(&e, buf[2], 8, 1, 0, CTX(1));
		CT_POST(&e, trecvmsg1(&e, buf[3], 8, 1, CTX(2), flags));
	}
	ct_sync(ct, &e);
	if (!ct->rank) {
		ct_send(&e, 1, "1", 1, CTX(1));
		CT_POST(&e, sendmsg1(&e, "2", 1, CTX(2), 0, flags));
		ct_tsend(&e, 1, "3", 1, 1, CTX(1));
		CT_POST(&e, tsendmsg1(&e, "4", 1, 1, CTX(2), 0, flags));
	}
	ct_of(&e, on ? CTX(1) : CTX(2), &c);
	CT_EQ(ct, c.err, 0);
	ct_of(&e, on ? CTX(1) : CTX(2), &c);
	CT_EQ(ct, c.err, 0);
	ct_quiet(&e, 50, "calls whose flags ask for no completion");
	ct_sync(ct, &e);
	if (ct->rank)
		CT_TRUE(ct, buf[0][0] == '1' && buf[1][0] == '2' && buf[2][0] == '3' && buf[3][0] == '4');
	ct_finish(&e);
}

/* ---- M8 ---- */

static const uint64_t datas[] = { 0, 1, 0x80, 0xff00, 0x12345678, 0xffffffff, 0x123456789abcdef0, ~0ull };

static uint64_t data_of(struct ct_dom *dom, size_t i)
{
	size_t n = dom->info->domain_attr->cq_data_size;
	uint64_t mask = n >= 8 ? ~0ull : (1ull << (8 * n)) - 1;

	return datas[i % CT_COUNT(datas)] & mask;
}

static void data_send(struct ct_ep *e, size_t i, void *buf, size_t len)
{
	uint64_t data = data_of(e->dom, i);
	fi_addr_t to = e->addr[1];
	void *ctx = CTX(i + 1);

	switch (i % 7) {
	case 0:
		CT_POST(e, fi_senddata(e->ep, buf, len, NULL, data, to, ctx));
		break;
	case 1:
		CT_POST(e, fi_tsenddata(e->ep, buf, len, NULL, data, to, 6, ctx));
		break;
	case 2:
		CT_POST(e, sendmsg1(e, buf, len, ctx, data, FI_REMOTE_CQ_DATA));
		break;
	case 3:
		CT_POST(e, tsendmsg1(e, buf, len, 6, ctx, data, FI_REMOTE_CQ_DATA));
		break;
	case 4:
		CT_POST(e, sendmsg1(e, buf, len, ctx, data, 0));
		break;
	case 5:
		CT_POST(e, tsendmsg1(e, buf, len, 6, ctx, data, 0));
		break;
	default:
		CT_POST(e, fi_send(e->ep, buf, len, NULL, to, ctx));
	}
	ct_done(e, ctx);
}

static void cq_data(struct ct *ct)
{
	static const size_t lens[] = { 0, 10, 5000, 200000 };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 200000);
	size_t i;

	ct_start(ct, &dom, &e, NULL);
	if (!dom.info->domain_attr->cq_data_size)
		ct_unsupported(ct, "cq_data_size is 0");
	for (i = 0; i < 7 * CT_COUNT(datas) * CT_COUNT(lens); i++) {
		size_t len = lens[i / 7 % CT_COUNT(lens)];
		bool tagged = i % 7 < 6 && i % 7 & 1, data = i % 7 < 4;

		if (!ct->rank) {
			data_send(&e, i, buf, len);
			continue;
		}
		if (tagged)
			ct_trecv(&e, buf, 200000, 6, 0, CTX(1));
		else
			ct_recv(&e, buf, 200000, CTX(1));
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, len);
		CT_EQ(ct, !!(c.flags & FI_REMOTE_CQ_DATA), data);
		if (data)
			CT_EQ(ct, c.data, data_of(&dom, i));
	}
	free(buf);
	ct_finish(&e);
}

/* ---- M9 ---- */

/* arg: which direction is selective, FI_TRANSMIT or FI_RECV */
static void selective(struct ct *ct)
{
	bool tx = ct->cs->arg == 1;
	struct ct_want want = {
		.msg_order = FI_ORDER_SAS,
		.tx_bind = tx ? FI_SELECTIVE_COMPLETION : 0,
		.rx_bind = tx ? 0 : FI_SELECTIVE_COMPLETION,
	};
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[16];
	size_t i, len = 1;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; ct->rank && i < 8; i++)
		CT_POST(&e, recvmsg1(&e, buf, sizeof(buf), CTX(i + 1), i & 1 ? FI_COMPLETION : 0));
	ct_sync(ct, &e);
	for (i = 0; !ct->rank && i < 8; i++)
		CT_POST(&e, sendmsg1(&e, buf, len, CTX(i + 1), 0, i & 1 ? FI_COMPLETION : 0));
	/* Of the eight only every second was asked to complete, where that is looked at. */
	for (i = 0; i < 8; i++) {
		if (!(i & 1) && tx == !ct->rank)
			continue;
		ct_of(&e, CTX(i + 1), &c);
		CT_EQ(ct, c.err, 0);
	}
	ct_quiet(&e, 50, "operations without FI_COMPLETION");
	ct_finish(&e);
}

/* Without selective binding the flag is ignored: everything completes. */
static void not_selective(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[16];
	size_t i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 4; i++) {
		if (ct->rank)
			CT_POST(&e, recvmsg1(&e, buf, sizeof(buf), CTX(1), i & 1 ? FI_COMPLETION : 0));
		else
			CT_POST(&e, sendmsg1(&e, buf, 1, CTX(1), 0, i & 1 ? FI_COMPLETION : 0));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

static void errors_complete(struct ct *ct)
{
	struct ct_want want = { .rx_bind = FI_SELECTIVE_COMPLETION, .tx_bind = FI_SELECTIVE_COMPLETION };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[16] = { 0 };

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		CT_POST(&e, recvmsg1(&e, buf, 4, CTX(1), 0));
		ct_sync(ct, &e);
		ct_any(&e, &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
		CT_POST(&e, trecvmsg1(&e, buf, 4, 77, CTX(2), 0));
		CT_OK(ct, fi_cancel(&e.ep->fid, CTX(2)));
		ct_any(&e, &c);
		CT_EQ(ct, c.err, FI_ECANCELED);
	} else {
		ct_sync(ct, &e);
		CT_POST(&e, sendmsg1(&e, buf, 16, CTX(1), 0, 0));
	}
	ct_sync(ct, &e);
	ct_quiet(&e, 50, "selective completion");
	ct_finish(&e);
}

/* ---- M10 ---- */

static void more_send(struct ct_ep *e, char *buf, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		/*
		 * Runs of up to 16 that end without the flag, or with another
		 * kind of call, or not at all.
		 */
		uint64_t more = i % 16 == 15 || i % 37 == 36 ? 0 : FI_MORE;

		ct_fill(buf + 64 * i, 64, i);
		if (i % 50 == 49)
			CT_POST(e, fi_inject(e->ep, buf + 64 * i, 8, e->addr[1]));
		else
			CT_POST(e, sendmsg1(e, buf + 64 * i, 64, CTX(i + 1), 0, more));
	}
	for (i = 0; i < n; i++)
		if (i % 50 != 49)
			ct_done(e, CTX(i + 1));
}

static void more(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	size_t i, n = 1000;
	char *buf = ct_alloc(ct, 64 * n);

	ct_start(ct, &dom, &e, &want);
	if (!ct->rank)
		more_send(&e, buf, n);
	for (i = 0; ct->rank && i < n; i++) {
		size_t len = i % 50 == 49 ? 8 : 64;

		CT_POST(&e, recvmsg1(&e, buf, 64, CTX(i + 1), i & 1 ? FI_MORE : 0));
		CT_EQ(ct, ct_done(&e, CTX(i + 1)), len);
		ct_verify(ct, buf, len, i, "more");
	}
	free(buf);
	ct_finish(&e);
}

/* The last call says FI_MORE too and nothing follows: progress alone must send it off. */
static void more_progress(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[64];
	int i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 3; i++) {
		if (ct->rank)
			CT_POST(&e, trecvmsg1(&e, buf, 64, 2, CTX(i + 1), FI_MORE));
		else
			CT_POST(&e, tsendmsg1(&e, buf, 64, 2, CTX(i + 1), 0, FI_MORE));
	}
	for (i = 0; i < 3; i++)
		ct_done(&e, CTX(i + 1));
	ct_finish(&e);
}

const struct ct_case ct_flags[] = { { "M6", "inject-reuse", { inject_reuse, inject_reuse } },
				    { "M6", "inject-over", { inject_over, inject_over } },
				    { "M7", "null-context", { null_context, null_context } },
				    { "M7", "flags-add-completion", { override, override }, .arg = 0 },
				    { "M7", "flags-drop-completion", { override, override }, .arg = 1 },
				    { "M8", "cq-data", { cq_data, cq_data } },
				    { "M9", "selective-transmit", { selective, selective }, .arg = 1 },
				    { "M9", "selective-receive", { selective, selective }, .arg = 2 },
				    { "M9", "not-selective", { not_selective, not_selective } },
				    { "M9", "errors-complete", { errors_complete, errors_complete } },
				    { "M10", "more", { more, more } },
				    { "M10", "more-progress", { more_progress, more_progress } },
				    { "M11", "inject-flag", { inject_reuse, inject_reuse }, .arg = 1 },
				    { "M11", "inject-equal", { inject_equal, inject_equal } },
				    { 0 } };
