/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M1 and T1: every send call into every receive call, fi_msg(3) and fi_tagged(3). */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

enum send_call {
	SEND,
	SENDV,
	SENDMSG,
	INJECT,
	SENDDATA,
	INJECTDATA,
	SEND_CALLS
};
enum recv_call {
	RECV,
	RECVV,
	RECVMSG,
	RECV_CALLS
};

#define DATA 0xa1b2c3d4u /* fits any cq_data_size a provider may have */
#define TAG 0x7a67
#define ARG(tagged, send, recv) ((uintptr_t)((tagged) << 16 | (send) << 8 | (recv)))
#define ALL 0xff

struct plan { /* one message of a case */
	bool tagged;
	int send, recv;
	size_t len;
	uint64_t seed;
};

static void post_recv(struct ct_ep *e, const struct plan *p, void *buf)
{
	struct iovec iov = { buf, p->len + 8 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = CTX(1) };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = TAG, .context = CTX(1)
	};

	switch (p->recv) {
	case RECV:
		if (p->tagged)
			ct_trecv(e, buf, iov.iov_len, TAG, 0, CTX(1));
		else
			ct_recv(e, buf, iov.iov_len, CTX(1));
		break;
	case RECVV:
		if (p->tagged)
			CT_POST(e, fi_trecvv(e->ep, &iov, NULL, 1, FI_ADDR_UNSPEC, TAG, 0, CTX(1)));
		else
			CT_POST(e, fi_recvv(e->ep, &iov, NULL, 1, FI_ADDR_UNSPEC, CTX(1)));
		break;
	default:
		if (p->tagged)
			CT_POST(e, fi_trecvmsg(e->ep, &t, FI_COMPLETION));
		else
			CT_POST(e, fi_recvmsg(e->ep, &m, FI_COMPLETION));
	}
}

static void post_tsend(struct ct_ep *e, const struct plan *p, void *buf, fi_addr_t to)
{
	struct iovec iov = { buf, p->len };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = TAG, .context = CTX(2)
	};

	switch (p->send) {
	case SEND:
		CT_POST(e, fi_tsend(e->ep, buf, p->len, NULL, to, TAG, CTX(2)));
		break;
	case SENDV:
		CT_POST(e, fi_tsendv(e->ep, &iov, NULL, 1, to, TAG, CTX(2)));
		break;
	case SENDMSG:
		CT_POST(e, fi_tsendmsg(e->ep, &t, FI_COMPLETION));
		break;
	case INJECT:
		CT_POST(e, fi_tinject(e->ep, buf, p->len, to, TAG));
		break;
	case SENDDATA:
		CT_POST(e, fi_tsenddata(e->ep, buf, p->len, NULL, DATA, to, TAG, CTX(2)));
		break;
	default:
		CT_POST(e, fi_tinjectdata(e->ep, buf, p->len, DATA, to, TAG));
	}
}

static void post_send(struct ct_ep *e, const struct plan *p, void *buf, fi_addr_t to)
{
	struct iovec iov = { buf, p->len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = to, .context = CTX(2) };

	switch (p->send) {
	case SEND:
		CT_POST(e, fi_send(e->ep, buf, p->len, NULL, to, CTX(2)));
		break;
	case SENDV:
		CT_POST(e, fi_sendv(e->ep, &iov, NULL, 1, to, CTX(2)));
		break;
	case SENDMSG:
		CT_POST(e, fi_sendmsg(e->ep, &m, FI_COMPLETION));
		break;
	case INJECT:
		CT_POST(e, fi_inject(e->ep, buf, p->len, to));
		break;
	case SENDDATA:
		CT_POST(e, fi_senddata(e->ep, buf, p->len, NULL, DATA, to, CTX(2)));
		break;
	default:
		CT_POST(e, fi_injectdata(e->ep, buf, p->len, DATA, to));
	}
}

static bool is_inject(int call)
{
	return call == INJECT || call == INJECTDATA;
}

/* What fi_cq(3) says of FI_MSG beside these is for row CQ to see. */
static void kind(struct ct *ct, const struct plan *p, uint64_t flags, uint64_t direction)
{
	CT_EQ(ct, flags & (FI_SEND | FI_RECV | FI_TAGGED), direction | (p->tagged ? FI_TAGGED : 0));
}

static void sender(struct ct_ep *e, const struct plan *p)
{
	struct ct *ct = e->ct;
	char *buf = ct_alloc(ct, p->len);
	struct ct_comp c;

	ct_fill(buf, p->len, p->seed);
	ct_sync(ct, e);
	if (p->tagged)
		post_tsend(e, p, buf, e->addr[1]);
	else
		post_send(e, p, buf, e->addr[1]);
	if (is_inject(p->send)) {
		memset(buf, 0xee, p->len);
		ct_sync(ct, e);
		ct_quiet(e, 0, "an inject writes no completion");
	} else {
		ct_of(e, CTX(2), &c);
		CT_EQ(ct, c.err, 0);
		kind(ct, p, c.flags, FI_SEND);
		ct_sync(ct, e);
	}
	free(buf);
}

static void receiver(struct ct_ep *e, const struct plan *p)
{
	struct ct *ct = e->ct;
	bool data = p->send == SENDDATA || p->send == INJECTDATA;
	char *buf = ct_alloc(ct, p->len + 8);
	struct ct_comp c;

	memset(buf, 0x55, p->len + 8);
	post_recv(e, p, buf);
	ct_sync(ct, e);
	ct_of(e, CTX(1), &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.len, p->len);
	kind(ct, p, c.flags, FI_RECV);
	CT_EQ(ct, !!(c.flags & FI_REMOTE_CQ_DATA), data);
	if (data)
		CT_EQ(ct, c.data, DATA);
	if (p->tagged)
		CT_EQ(ct, c.tag, TAG);
	ct_verify(ct, buf, p->len, p->seed, "received");
	CT_TRUE(ct, ct_untouched(buf + p->len, 8, 0x55));
	ct_sync(ct, e);
	free(buf);
}

/* One pair of calls over all the sizes that the send call takes. */
static void pair(struct ct_ep *e, struct plan p)
{
	size_t inject = e->dom->info->tx_attr->inject_size;
	const size_t sizes[] = { 0, 1, 7, 8, 64, inject - 1, inject, inject + 1, 4096, 20000, 300000 };
	size_t i;

	for (i = 0; i < CT_COUNT(sizes); i++) {
		/* Without any inject space only the empty message can be injected. */
		if (sizes[i] > 300000 || (is_inject(p.send) && sizes[i] > inject) ||
		    sizes[i] > e->dom->info->ep_attr->max_msg_size)
			continue;
		p.len = sizes[i];
		p.seed++;
		if (e->ct->rank)
			receiver(e, &p);
		else
			sender(e, &p);
	}
}

static void calls(struct ct *ct)
{
	uintptr_t arg = ct->cs->arg;
	struct plan p = { .tagged = arg >> 16, .seed = 1 };
	struct ct_dom dom;
	struct ct_ep e;
	bool data;

	ct_start(ct, &dom, &e, NULL);
	data = dom.info->domain_attr->cq_data_size > 0;
	if (!data && ((arg >> 8 & 0xff) == SENDDATA || (arg >> 8 & 0xff) == INJECTDATA))
		ct_unsupported(ct, "completions carry no data of the sender's");
	for (p.send = 0; p.send < SEND_CALLS; p.send++) {
		if (!data && (p.send == SENDDATA || p.send == INJECTDATA))
			continue;
		for (p.recv = 0; p.recv < RECV_CALLS; p.recv++) {
			if ((arg >> 8 & 0xff) != ALL && (int)(arg >> 8 & 0xff) != p.send)
				continue;
			if ((arg & 0xff) != ALL && (int)(arg & 0xff) != p.recv)
				continue;
			pair(&e, p);
			p.seed += 100;
		}
	}
	ct_finish(&e);
}

#define CASE(r, n, tagged, send, recv) \
	{ \
		r, n, { calls, calls }, .arg = ARG(tagged, send, recv) \
	}

const struct ct_case ct_calls[] = { CASE("M1", "send", 0, SEND, ALL),
				    CASE("M1", "sendv", 0, SENDV, ALL),
				    CASE("M1", "sendmsg", 0, SENDMSG, ALL),
				    CASE("M1", "inject", 0, INJECT, ALL),
				    CASE("M1", "senddata", 0, SENDDATA, ALL),
				    CASE("M1", "injectdata", 0, INJECTDATA, ALL),
				    CASE("M1", "recv", 0, ALL, RECV),
				    CASE("M1", "recvv", 0, ALL, RECVV),
				    CASE("M1", "recvmsg", 0, ALL, RECVMSG),
				    CASE("T1", "tsend", 1, SEND, ALL),
				    CASE("T1", "tsendv", 1, SENDV, ALL),
				    CASE("T1", "tsendmsg", 1, SENDMSG, ALL),
				    CASE("T1", "tinject", 1, INJECT, ALL),
				    CASE("T1", "tsenddata", 1, SENDDATA, ALL),
				    CASE("T1", "tinjectdata", 1, INJECTDATA, ALL),
				    CASE("T1", "trecv", 1, ALL, RECV),
				    CASE("T1", "trecvv", 1, ALL, RECVV),
				    CASE("T1", "trecvmsg", 1, ALL, RECVMSG),
				    { 0 } };
