/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M6 and M11, fi_msg(3): what inject promises, by every call that has it, when the message has to
 * wait, and when it fails.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

/* Data that a completion can carry. */
static uint64_t data_of(const struct ct_dom *dom, uint64_t i)
{
	size_t n = dom->info->domain_attr->cq_data_size;
	uint64_t data = 0xfedcba9876543210 ^ i;

	return n >= 8 ? data : data & ((UINT64_C(1) << (8 * n)) - 1);
}

enum injecting {
	INJECT,
	INJECTDATA,
	TINJECT,
	TINJECTDATA,
	INJECTS
};

static ssize_t inject(struct ct_ep *e, enum injecting call, const void *buf, size_t len, uint64_t data)
{
	fi_addr_t to = e->addr[!e->ct->rank];

	switch (call) {
	case INJECT:
		return fi_inject(e->ep, buf, len, to);
	case INJECTDATA:
		return fi_injectdata(e->ep, buf, len, data, to);
	case TINJECT:
		return fi_tinject(e->ep, buf, len, to, 6);
	default:
		return fi_tinjectdata(e->ep, buf, len, data, to, 6);
	}
}

static bool is_tagged(size_t call)
{
	return call >= TINJECT;
}

#define ROUNDS 40

static void take_injected(struct ct_ep *e, size_t i, char *buf, size_t room)
{
	struct ct *ct = e->ct;
	struct ct_comp c;

	ct_recv_kind(e, is_tagged(i % INJECTS), buf, room, CTX(i + 1));
	ct_of(e, CTX(i + 1), &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.len, i % (room + 1));
	CT_EQ(ct, !!(c.flags & FI_REMOTE_CQ_DATA), i & 1);
	if (i & 1)
		CT_EQ(ct, c.data, data_of(e->dom, i));
	ct_verify(ct, buf, c.len, i, "injected");
}

/*
 * All four calls, over a connection that is up, to a receiver that posts nothing
 * before all have been made.
 */
static void every_call(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	size_t i, max;
	char *buf;

	ct_start(ct, &dom, &e, &want);
	if (!dom.info->domain_attr->cq_data_size)
		ct_unsupported(ct, "cq_data_size is 0");
	buf = ct_inject_room(&e, 0, &max);
	ct_ping(&e, !ct->rank);
	for (i = 0; !ct->rank && i < ROUNDS; i++) {
		size_t len = i % (max + 1);

		ct_fill(buf, len, i);
		CT_POST(&e, inject(&e, i % INJECTS, buf, len, data_of(&dom, i)));
		memset(buf, 0xee, max);
	}
	ct_sync(ct, &e);
	for (i = 0; ct->rank && i < ROUNDS; i++)
		take_injected(&e, i, buf, max);
	ct_sync(ct, &e);
	ct_quiet(&e, 20, "injects");
	free(buf);
	ct_finish(&e);
}

/*
 * "the CQ entry will be suppressed even if the default behavior of the endpoint is to write CQ
 * entries". arg: what the defaults are besides; they say FI_COMPLETION too. A counter counts them.
 */
static void never_told(struct ct *ct)
{
	struct ct_want want = { .tx_bind = FI_SELECTIVE_COMPLETION,
				.tx_op_flags = FI_COMPLETION | ct->cs->arg,
				.counters = true };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 }, in[2 * INJECTS + 2][8];
	double end;

	ct_start(ct, &dom, &e, &want);
	if (!dom.info->domain_attr->cq_data_size)
		ct_unsupported(ct, "cq_data_size is 0");
	for (size_t i = 0; ct->rank && i < 2 * INJECTS + 2; i++) {
		ct_recv_kind(&e, i & 1, in[i], 8, CTX(i + 1));
	}
	ct_sync(ct, &e);
	for (size_t i = 0; !ct->rank && i < 2 * INJECTS; i++)
		CT_POST(&e, inject(&e, i % INJECTS, buf, 8, 1));
	end = ct_deadline(ct);
	while (!ct->rank && fi_cntr_read(e.txcntr) < 2 * INJECTS) {
		ct_late(ct, end, "injects to be counted");
		ct_progress(&e);
	}
	if (!ct->rank) {
		ct_quiet(&e, 20, "injects");
		ct_send(&e, 1, buf, 8, CTX(1));
		ct_tsend(&e, 1, buf, 8, 6, CTX(2));
		ct_done(&e, CTX(1));
		ct_done(&e, CTX(2));
		CT_EQ(ct, fi_cntr_readerr(e.txcntr), 0);
	}
	for (size_t i = 0; ct->rank && i < 2 * INJECTS + 2; i++)
		CT_EQ(ct, ct_done(&e, CTX(i + 1)), 8);
	ct_finish(&e);
}

/*
 * The calls without flags over inject_size, where FI_INJECT is the endpoint's default: refused, but
 * for what has flags of its own.
 */
static void default_over(struct ct_ep *e, char *buf, size_t max)
{
	struct ct *ct = e->ct;
	struct iovec iov[2] = { { buf, max }, { buf + max, 1 } };
	fi_addr_t to = e->addr[1];

	CT_REFUSED(ct, fi_send(e->ep, buf, max + 1, NULL, to, CTX(9)));
	CT_REFUSED(ct, fi_sendv(e->ep, iov, NULL, 2, to, CTX(9)));
	CT_REFUSED(ct, fi_senddata(e->ep, buf, max + 1, NULL, 1, to, CTX(9)));
	CT_REFUSED(ct, fi_tsend(e->ep, buf, max + 1, NULL, to, 6, CTX(9)));
	CT_REFUSED(ct, fi_tsendv(e->ep, iov, NULL, 2, to, 6, CTX(9)));
	CT_REFUSED(ct, fi_tsenddata(e->ep, buf, max + 1, NULL, 1, to, 6, CTX(9)));
	ct_fill(buf, max + 1, 3);
	CT_POST(e, ct_send_one(e, &(struct ct_one){ .buf = buf, .len = max + 1, .ctx = CTX(3), .to = 1 }));
	CT_EQ(ct, ct_done(e, CTX(3)) <= max + 1, 1);
}

/*
 * FI_INJECT in op_flags, fi_endpoint(3): every buffer is free on return, and the
 * operation completes all the same.
 */
static void by_default(struct ct *ct)
{
	struct ct_want want = { .tx_op_flags = FI_INJECT, .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char *buf;

	ct_start_up(ct, &dom, &e, &want);
	buf = ct_inject_room(&e, 1, &max);
	for (uint64_t i = 1; i < 3; i++) {
		bool tagged = i == 2;

		if (ct->rank) {
			ct_sync(ct, &e);
			ct_recv_kind(&e, tagged, buf, max, CTX(i));
			CT_EQ(ct, ct_done(&e, CTX(i)), max);
			ct_verify(ct, buf, max, i, "injected by default");
			continue;
		}
		ct_fill(buf, max, i);
		if (tagged)
			ct_tsend(&e, 1, buf, max, 6, CTX(i));
		else
			ct_send(&e, 1, buf, max, CTX(i));
		memset(buf, 0xee, max);
		ct_sync(ct, &e);
		ct_done(&e, CTX(i));
	}
	if (ct->rank)
		ct_recv(&e, buf, max + 1, CTX(3));
	ct_sync(ct, &e);
	if (!ct->rank) {
		default_over(&e, buf, max);
	} else {
		CT_EQ(ct, ct_done(&e, CTX(3)), max + 1);
		ct_verify(ct, buf, max + 1, 3, "flags of the call");
	}
	ct_quiet(&e, 20, "refused injects");
	free(buf);
	ct_finish(&e);
}

/* The limit is that of the info which the endpoint was opened with. */
static void size_less(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[17], in[INJECTS][17];

	ct_open(ct, &dom, NULL);
	if (dom.info->tx_attr->inject_size < 16 || !dom.info->domain_attr->cq_data_size)
		ct_unsupported(ct, "nothing less than inject_size can be asked for, or there is no CQ data");
	dom.info->tx_attr->inject_size = 16;
	ct_ep_open(&dom, &e);
	ct_join(&e);
	ct_ping(&e, !ct->rank);
	for (size_t i = 0; ct->rank && i < INJECTS; i++) {
		ct_recv_kind(&e, is_tagged(i), in[i], 17, CTX(i + 1));
	}
	ct_sync(ct, &e);
	for (size_t i = 0; !ct->rank && i < INJECTS; i++) {
		CT_EQ(ct, inject(&e, i, buf, 17, 1), -FI_EMSGSIZE);
		CT_POST(&e, inject(&e, i, buf, 16, 1));
	}
	for (size_t i = 0; ct->rank && i < INJECTS; i++)
		CT_EQ(ct, ct_done(&e, CTX(i + 1)), 16);
	ct_quiet(&e, 20, "refused injects");
	ct_finish(&e);
}

/*
 * Nobody is there: an inject has no context that its error could name, so it names the endpoint's,
 * NOTES of fi_endpoint(3). arg: which call
 */
static void to_nobody(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	ssize_t rc;

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank) {
		ct_ep_close(&e);
		ct_close(&dom);
		ct_sync(ct, NULL);
		return;
	}
	ct_sync(ct, &e);
	while ((rc = inject(&e, (enum injecting)ct->cs->arg, "x", 1, 1)) == -FI_EAGAIN)
		ct_progress(&e);
	if (!rc) { /* else it was refused, which tells as much */
		ct_any(&e, &c);
		CT_TRUE(ct, c.err > 0);
		CT_EQ(ct, c.flags & (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED),
		      FI_SEND | (is_tagged(ct->cs->arg) ? FI_TAGGED : FI_MSG));
		CT_TRUE(ct, c.ctx == &e);
	}
	ct_quiet(&e, 20, "one inject");
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * What has been accepted arrives, though its sender makes no call after it, and has made none
 * before that made a connection: who only tries again is accepted in the end.
 */
static void first_of_all(struct ct *ct)
{
	double end = ct_deadline(ct);
	struct ct_dom dom;
	struct ct_ep e;
	char in[8];
	ssize_t rc;

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank) {
		ct_recv_kind(&e, is_tagged(ct->cs->arg), in, sizeof(in), CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), 1);
		ct_sync(ct, NULL);
	} else {
		while ((rc = inject(&e, (enum injecting)ct->cs->arg, "x", 1, 1)) == -FI_EAGAIN) {
			ct_late(ct, end, "the inject to be accepted");
			ct_pause();
		}
		CT_EQ(ct, rc, 0);
		ct_sync(ct, NULL);
	}
	ct_finish(&e);
}

/* ---- M11 ------------------------------------------------------------------------------------- */

static const uint64_t levels[] = { 0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE };

#define KINDS (2 * CT_COUNT(levels))

static size_t segments(const struct ct_dom *dom, size_t i)
{
	size_t most = dom->info->tx_attr->iov_limit;

	return i & 2 ? most < 3 ? most : 3 : 1;
}

/* A message in n segments, all of them to be overwritten when the call has returned. */
static ssize_t send_parts(struct ct_ep *e, size_t i, char *buf, size_t len)
{
	size_t n = segments(e->dom, i);
	struct iovec iov[3] = { { buf, len / n }, { buf + len / n, len / n }, { NULL, 0 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = n, .addr = e->addr[1], .context = CTX(i + 1) };
	struct fi_msg_tagged t = {
		.msg_iov = iov, .iov_count = n, .addr = e->addr[1], .tag = 6, .context = CTX(i + 1)
	};
	uint64_t flags = FI_INJECT | FI_COMPLETION | levels[i / 2];

	if (n > 1)
		iov[n - 1] = (struct iovec){ buf + (n - 1) * (len / n), len - (n - 1) * (len / n) };
	return i & 1 ? fi_tsendmsg(e->ep, &t, flags) : fi_sendmsg(e->ep, &m, flags);
}

/*
 * Of every level: the buffer is free on return though the operation goes on, and
 * completes when its level says.
 */
static void flag_waits(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char *buf;

	ct_start_up(ct, &dom, &e, &want);
	buf = ct_inject_room(&e, 0, &max);
	for (size_t i = 0; !ct->rank && i < KINDS; i++) {
		ct_fill(buf, max, i);
		CT_POST(&e, send_parts(&e, i, buf, max));
		memset(buf, 0xee, max);
	}
	ct_sync(ct, &e);
	for (size_t i = 0; i < KINDS; i++) {
		if (!ct->rank) {
			ct_done(&e, CTX(i + 1));
			continue;
		}
		ct_recv_kind(&e, i & 1, buf, max, CTX(i + 1));
		CT_EQ(ct, ct_done(&e, CTX(i + 1)), max);
		ct_verify(ct, buf, max, i, "FI_INJECT that waited");
	}
	ct_quiet(&e, 20, "FI_INJECT completes once");
	free(buf);
	ct_finish(&e);
}

/* It "completes as configured": where completions are selective, when it is asked to. */
static void flag_selective(struct ct *ct)
{
	struct ct_want want = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct ct_dom dom;
	struct ct_ep e;
	char out[8] = "", in[4][8];

	ct_start(ct, &dom, &e, &want);
	for (size_t i = 0; i < 4; i++) {
		struct ct_one o = { .buf = ct->rank ? in[i] : out,
				    .len = 8,
				    .ctx = CTX(i + 1),
				    .tagged = i & 1,
				    .tag = 6,
				    .to = 1 };

		o.flags = ct->rank ? 0 : FI_INJECT | (i & 2 ? FI_COMPLETION : 0);
		if (ct->rank)
			CT_POST(&e, ct_recv_one(&e, &o));
		else
			CT_POST(&e, ct_send_one(&e, &o));
	}
	for (size_t i = ct->rank ? 0 : 2; i < 4; i++)
		ct_done(&e, CTX(i + 1));
	ct_quiet(&e, 30, "FI_INJECT without FI_COMPLETION");
	ct_finish(&e);
}

/* The sum of all segments counts. */
static void flag_sum(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char *buf;

	ct_start_up(ct, &dom, &e, NULL);
	buf = ct_inject_room(&e, 1, &max);
	for (size_t i = 2; i < 4; i++) { /* untagged, tagged */
		if (!ct->rank) {
			if (segments(&dom, i) > 1)
				CT_EQ(ct, send_parts(&e, i, buf, max + 1), -FI_EMSGSIZE);
			CT_POST(&e, send_parts(&e, i, buf, max));
		} else {
			ct_recv_kind(&e, i & 1, buf, max, CTX(i + 1));
		}
		ct_done(&e, CTX(i + 1));
	}
	ct_quiet(&e, 30, "what was refused");
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_inject[] = {
	{ "M6", "inject-every-call", CT_TWO(every_call) },
	{ "M6", "inject-never-told", CT_TWO(never_told) },
	{ "M6", "inject-never-told-of-delivery", CT_TWO(never_told), .arg = FI_DELIVERY_COMPLETE },
	{ "M6", "inject-by-default", CT_TWO(by_default) },
	{ "M6", "inject-size-less", CT_TWO(size_less) },
	{ "M6", "inject-first-of-all", CT_TWO(first_of_all), .arg = INJECT },
	{ "M6", "inject-first-of-all-tagged", CT_TWO(first_of_all), .arg = TINJECTDATA },
	{ "M6", "inject-to-nobody", CT_TWO(to_nobody), .arg = INJECT },
	{ "M6", "inject-to-nobody-tagged", CT_TWO(to_nobody), .arg = TINJECTDATA },
	{ "M11", "inject-flag-waits", CT_TWO(flag_waits) },
	{ "M11", "inject-flag-selective", CT_TWO(flag_selective) },
	{ "M11", "inject-flag-sum", CT_TWO(flag_sum) },
	{ 0 },
};
