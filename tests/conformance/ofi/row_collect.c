/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M23: counters as the collectors of sends and receives, fi_endpoint(3) and fi_cntr(3): each
 * message counts, whether it writes a completion or not, and what ends in error counts as an error.
 */
#include "region.h"

#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 12
#define LONG 300000

static const struct ct_want quiet = { .tx_bind = FI_SELECTIVE_COMPLETION,
				      .rx_bind = FI_SELECTIVE_COMPLETION,
				      .counters = true };

static size_t length(const struct ct_ep *e, int call)
{
	size_t inject = e->dom->info->tx_attr->inject_size;

	if (call % 6 >= 4)
		return inject < 16 ? inject : 16;
	return call % 2 ? LONG : 100;
}

static void msg_call(struct ct_ep *e, int call, char *buf, size_t len)
{
	struct iovec iov[2] = { { buf, len / 2 }, { buf + len / 2, len - len / 2 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .addr = e->addr[1], .context = CTX(7) };

	switch (call) {
	case 0:
		CT_POST(e, fi_send(e->ep, buf, len, NULL, e->addr[1], CTX(7)));
		break;
	case 1:
		CT_POST(e, fi_sendv(e->ep, iov, NULL, 2, e->addr[1], CTX(7)));
		break;
	case 2:
		CT_POST(e, fi_sendmsg(e->ep, &m, 0));
		break;
	case 3:
		CT_POST(e, fi_senddata(e->ep, buf, len, NULL, 1, e->addr[1], CTX(7)));
		break;
	case 4:
		CT_POST(e, fi_inject(e->ep, buf, len, e->addr[1]));
		break;
	default:
		CT_POST(e, fi_injectdata(e->ep, buf, len, 1, e->addr[1]));
	}
}

static void tagged_call(struct ct_ep *e, int call, char *buf, size_t len)
{
	struct iovec iov[2] = { { buf, len / 2 }, { buf + len / 2, len - len / 2 } };
	struct fi_msg_tagged m = {
		.msg_iov = iov, .iov_count = 2, .addr = e->addr[1], .tag = CT_TAG, .context = CTX(7)
	};

	switch (call) {
	case 0:
		CT_POST(e, fi_tsend(e->ep, buf, len, NULL, e->addr[1], CT_TAG, CTX(7)));
		break;
	case 1:
		CT_POST(e, fi_tsendv(e->ep, iov, NULL, 2, e->addr[1], CT_TAG, CTX(7)));
		break;
	case 2:
		CT_POST(e, fi_tsendmsg(e->ep, &m, 0));
		break;
	case 3:
		CT_POST(e, fi_tsenddata(e->ep, buf, len, NULL, 1, e->addr[1], CT_TAG, CTX(7)));
		break;
	case 4:
		CT_POST(e, fi_tinject(e->ep, buf, len, e->addr[1], CT_TAG));
		break;
	default:
		CT_POST(e, fi_tinjectdata(e->ep, buf, len, 1, e->addr[1], CT_TAG));
	}
}

static void nothing_written(struct ct_ep *e)
{
	ct_quiet(e, 20, "nobody asked for completions");
}

/*
 * Each call by itself, one buffer for each: the counters tell when the memory is ready, and
 * no completion is written.
 */
static void each_call(struct ct *ct)
{
	char *buf = ct_alloc(ct, LONG);
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &quiet);
	for (int call = 0; call < CALLS; call++) {
		size_t len = length(&e, call);

		if (ct->rank) {
			ct_recv_kind(&e, call >= CALLS / 2, buf, LONG, CTX(8));
			ct_reaches(&e, e.rxcntr, (uint64_t)call + 1);
			ct_verify(ct, buf, len, (uint64_t)call, "counted");
		} else {
			ct_fill(buf, len, (uint64_t)call);
			if (call < CALLS / 2)
				msg_call(&e, call, buf, len);
			else
				tagged_call(&e, call - CALLS / 2, buf, len);
			ct_reaches(&e, e.txcntr, (uint64_t)call + 1);
			memset(buf, 0, len); /* counted: it has left */
		}
	}
	nothing_written(&e);
	CT_EQ(ct, fi_cntr_read(ct->rank ? e.txcntr : e.rxcntr), 0);
	free(buf);
	ct_finish(&e);
}

static void errors_become(struct ct_ep *e, struct fid_cntr *cntr, uint64_t errors, uint64_t value)
{
	double end = ct_deadline(e->ct);

	while (fi_cntr_readerr(cntr) < errors || fi_cntr_read(cntr) < value) {
		ct_late(e->ct, end, "the values of a counter");
		if (!ct_progress(e))
			ct_pause();
	}
	ct_idle(e, 10);
	CT_EQ(e->ct, fi_cntr_readerr(cntr), errors);
	CT_EQ(e->ct, fi_cntr_read(cntr), value);
}

static void error_is(struct ct_ep *e, void *ctx, int err)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, err);
}

/*
 * What is cut, and what is cancelled, is an error of the receives; the counter goes
 * on to count what is not.
 */
static void errors_received(struct ct *ct)
{
	const bool tagged = ct->cs->arg;
	char *buf = ct_alloc(ct, LONG);
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &quiet);
	for (uint64_t i = 0; i < 4; i++) {
		struct ct_one out = { .buf = buf,
				      .len = i % 2 ? LONG : 64,
				      .ctx = CTX(1),
				      .to = 1,
				      .tagged = tagged,
				      .tag = CT_TAG };

		if (ct->rank) {
			ct_recv_kind(&e, tagged, buf, 8, CTX(2));
			errors_become(&e, e.rxcntr, i + 1, 0);
			error_is(&e, CTX(2), FI_ETRUNC);
		} else {
			CT_POST(&e, ct_send_one(&e, &out));
		}
	}
	if (ct->rank) {
		ct_recv_kind(&e, tagged, buf, 8, CTX(3));
		CT_OK(ct, fi_cancel(&e.ep->fid, CTX(3)));
		errors_become(&e, e.rxcntr, 5, 0);
		error_is(&e, CTX(3), FI_ECANCELED);
		ct_recv_kind(&e, tagged, buf, 8, CTX(4));
	}
	ct_sync(ct, &e);
	if (!ct->rank) {
		struct ct_one out = {
			.buf = buf, .len = 8, .ctx = CTX(1), .to = 1, .tagged = tagged, .tag = CT_TAG
		};

		CT_POST(&e, ct_send_one(&e, &out));
		/* to send more than the other takes is no error here */
		ct_reaches(&e, e.txcntr, 5);
	} else {
		errors_become(&e, e.rxcntr, 5, 1);
	}
	nothing_written(&e);
	free(buf);
	ct_finish(&e);
}

/*
 * A send to somebody who has gone is an error of the sends, with a completion, though nobody
 * asked for those of successes.
 */
static void errors_sent(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[8] = "";

	ct_start(ct, &dom, &e, &quiet);
	if (!ct->rank)
		ct_send(&e, 1, buf, 8, CTX(1));
	else
		ct_recv(&e, buf, 8, CTX(1));
	ct_reaches(&e, ct->rank ? e.rxcntr : e.txcntr, 1);
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_ep_close(&e);
		ct_close(&dom);
		ct_sync(ct, NULL);
		return;
	}
	ct_sync(ct, &e);
	ct_idle(&e, 50);
	ct_send(&e, 1, buf, 8, CTX(2));
	ct_of(&e, CTX(2), &c);
	CT_TRUE(ct, c.err > 0);
	errors_become(&e, e.txcntr, 1, 1);
	CT_EQ(ct, fi_cntr_readerr(e.rxcntr), 0);
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * One counter for both directions, and for what is one-sided besides; or one
 * that is for messages alone.
 */
static void one_counter(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .disabled = true };
	const uint64_t rma = ct->cs->arg ? FI_WRITE | FI_READ : 0;
	struct fid_cntr *cntr;
	struct ct_region r;
	struct ct_place at;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[64] = "", in[64];

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	cntr = ct_cntr_bind(&e, FI_SEND | FI_RECV | rma);
	ct_ep_enable(&e);
	ct_join(&e);
	ct_offer(&e, &r, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, &at);
	if (!ct->rank) {
		CT_POST(&e, fi_write(e.ep, buf, 64, NULL, e.addr[1], at.addr, at.key, CTX(3)));
		ct_done(&e, CTX(3));
		CT_POST(&e, fi_read(e.ep, in, 64, NULL, e.addr[1], at.addr, at.key, CTX(4)));
		ct_done(&e, CTX(4));
		ct_reaches(&e, cntr, rma ? 2 : 0);
	}
	ct_recv(&e, in, 64, CTX(1));
	ct_send(&e, !ct->rank, buf, 64, CTX(2));
	ct_done(&e, CTX(1));
	ct_done(&e, CTX(2));
	ct_reaches(&e, cntr, rma && !ct->rank ? 4 : 2);
	ct_sync(ct, &e);
	if (ct->rank)
		ct_region_close(&e, &r);
	ct_sync(ct, &e);
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&cntr->fid));
	ct_close(&dom);
}

/*
 * Each message that a multi-receive buffer takes counts, and that the buffer is released does not.
 */
static void many_in_one(struct ct *ct)
{
	enum {
		ROOM = 4096,
		SIZE = 256,
		LEAST = 1000,
		/* how many fit before less than that is left */
		FIT = (ROOM - LEAST) / SIZE + 1
	};
	struct ct_want want = quiet;
	size_t least = LEAST;
	char *buf = ct_alloc(ct, ROOM);
	struct ct_one o = { .buf = buf, .len = ROOM, .ctx = CTX(1), .flags = FI_MULTI_RECV };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	want.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV;
	want.disabled = true;
	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_OK(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	ct_ep_enable(&e);
	ct_join(&e);
	if (ct->rank) {
		CT_POST(&e, ct_recv_one(&e, &o));
		ct_of(&e, CTX(1), &c); /* that it is released is told, fi_msg(3) */
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, c.flags & FI_MULTI_RECV);
		ct_reaches(&e, e.rxcntr, FIT);
	} else {
		for (int i = 0; i < FIT; i++)
			ct_send(&e, 1, buf, SIZE, CTX(1));
		ct_reaches(&e, e.txcntr, FIT);
	}
	nothing_written(&e);
	ct_sync(ct, &e);
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_collect[] = {
	{ "M23", "collect-each-call", CT_TWO(each_call) },
	{ "M23", "collect-errors-received", CT_TWO(errors_received) },
	{ "M23", "collect-errors-received-tagged", CT_TWO(errors_received), .arg = 1 },
	{ "M23", "collect-errors-sent", CT_TWO(errors_sent) },
	{ "M23", "collect-messages-alone", CT_TWO(one_counter) },
	{ "M23", "collect-everything", CT_TWO(one_counter), .arg = 1 },
	{ "M23", "collect-many-in-one", CT_TWO(many_in_one) },
	{ 0 },
};
