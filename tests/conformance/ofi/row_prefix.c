/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M19: FI_MSG_PREFIX, fi_msg(3) and fi_getinfo(3): space in front of every buffer,
 * counted in every length.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define TAG 0x7a67
#define DATA 0xa1b2c3d4u
#define LEN 1000
#define ROOM 64

/* arg: the type of endpoint */
static struct ct_want wanted(const struct ct *ct)
{
	return (struct ct_want){ .type = (enum fi_ep_type)ct->cs->arg, .mode = FI_MSG_PREFIX };
}

static size_t start(struct ct *ct, struct ct_dom *dom, struct ct_ep *e)
{
	struct ct_want want = wanted(ct);
	size_t p;

	ct_start(ct, dom, e, &want);
	p = dom->info->ep_attr->msg_prefix_size;
	CT_TRUE(ct, p > 0 && p % 8 == 0 && p <= 4096);
	return p;
}

/* The bit is a wish: the first info is without it, and whoever does not say it never meets it. */
static void info(struct ct *ct)
{
	struct ct_want want = wanted(ct);
	struct fi_info *h = ct_hints(ct, &want), *list, *i;
	bool plain = false, prefixed = false;
	int rc = ct_getinfo(ct, h, &list);

	if (rc == -FI_ENODATA)
		ct_unsupported(ct, "no such endpoints");
	CT_OK(ct, rc);
	for (i = list; i; i = i->next) {
		bool has = i->mode & FI_MSG_PREFIX;

		CT_EQ(ct, !!i->ep_attr->msg_prefix_size, has);
		CT_TRUE(ct, !has || i->ep_attr->msg_prefix_size % 8 == 0);
		plain = plain || !has;
		prefixed = prefixed || has;
	}
	if (!prefixed)
		ct_unsupported(ct, "no info has FI_MSG_PREFIX");
	CT_TRUE(ct, plain && !(list->mode & FI_MSG_PREFIX));
	fi_freeinfo(list);
	h->mode = 0;
	CT_OK(ct, ct_getinfo(ct, h, &list));
	for (i = list; i; i = i->next)
		CT_TRUE(ct, !(i->mode & FI_MSG_PREFIX) && !i->ep_attr->msg_prefix_size);
	fi_freeinfo(list);
	fi_freeinfo(h);
}

/* One call of each kind, into receives of the same number. */
enum {
	CALLS = 6
};

static void send_call(struct ct_ep *e, int n, char *buf, size_t p)
{
	size_t len = p + LEN;
	struct iovec iov[2] = { { buf, p + 10 }, { buf + p + 10, LEN - 10 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .addr = e->addr[1], .context = CTX(n) };

	switch (n) {
	case 0:
		CT_POST(e, fi_send(e->ep, buf, len, NULL, e->addr[1], CTX(n)));
		break;
	case 1:
		CT_POST(e, fi_sendv(e->ep, iov, NULL, 2, e->addr[1], CTX(n)));
		break;
	case 2:
		iov[0].iov_len = p; /* the prefix alone is a segment */
		iov[1] = (struct iovec){ buf + p, LEN };
		CT_POST(e, fi_sendmsg(e->ep, &m, FI_COMPLETION));
		break;
	case 3:
		CT_POST(e, fi_senddata(e->ep, buf, len, NULL, DATA, e->addr[1], CTX(n)));
		break;
	case 4:
		CT_POST(e, fi_inject(e->ep, buf, p + 8, e->addr[1]));
		return;
	default:
		CT_POST(e, fi_injectdata(e->ep, buf, p, DATA, e->addr[1]));
		return;
	}
	ct_done(e, CTX(n));
}

static void tsend_call(struct ct_ep *e, int n, char *buf, size_t p)
{
	size_t len = p + LEN;
	struct iovec iov[2] = { { buf, p + 10 }, { buf + p + 10, LEN - 10 } };
	struct fi_msg_tagged m = {
		.msg_iov = iov, .iov_count = 2, .addr = e->addr[1], .context = CTX(n), .tag = TAG
	};

	switch (n) {
	case 0:
		CT_POST(e, fi_tsend(e->ep, buf, len, NULL, e->addr[1], TAG, CTX(n)));
		break;
	case 1:
		CT_POST(e, fi_tsendv(e->ep, iov, NULL, 2, e->addr[1], TAG, CTX(n)));
		break;
	case 2:
		CT_POST(e, fi_tsendmsg(e->ep, &m, FI_COMPLETION));
		break;
	case 3:
		CT_POST(e, fi_tsenddata(e->ep, buf, len, NULL, DATA, e->addr[1], TAG, CTX(n)));
		break;
	case 4:
		CT_POST(e, fi_tinject(e->ep, buf, p + 8, e->addr[1], TAG));
		return;
	default:
		CT_POST(e, fi_tinjectdata(e->ep, buf, p, DATA, e->addr[1], TAG));
		return;
	}
	ct_done(e, CTX(n));
}

static size_t length(int n)
{
	return n < 4 ? LEN : n == 4 ? 8 : 0;
}

static void calls_send(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t p = start(ct, &dom, &e);
	char *buf = ct_alloc(ct, p + LEN);

	memset(buf, 0x77, p);
	for (int n = 0; n < 2 * CALLS; n++) {
		ct_fill(buf + p, LEN, 100 + (uint64_t)n);
		ct_sync(ct, &e);
		if (n < CALLS)
			send_call(&e, n, buf, p);
		else
			tsend_call(&e, n - CALLS, buf, p);
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

static void recv_call(struct ct_ep *e, int n, char *buf, size_t p)
{
	struct iovec iov[2] = { { buf, p + 4 }, { buf + p + 4, LEN + ROOM - 4 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = CTX(n) };
	struct fi_msg_tagged t = {
		.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = CTX(n), .tag = TAG
	};
	bool tagged = n >= CALLS;

	if (n % 3 == 0 && tagged)
		ct_trecv(e, buf, p + LEN + ROOM, TAG, 0, CTX(n));
	else if (n % 3 == 0)
		ct_recv(e, buf, p + LEN + ROOM, CTX(n));
	else if (n % 3 == 1 && tagged)
		CT_POST(e, fi_trecvv(e->ep, iov, NULL, 2, FI_ADDR_UNSPEC, TAG, 0, CTX(n)));
	else if (n % 3 == 1)
		CT_POST(e, fi_recvv(e->ep, iov, NULL, 2, FI_ADDR_UNSPEC, CTX(n)));
	else if (tagged)
		CT_POST(e, fi_trecvmsg(e->ep, &t, FI_COMPLETION));
	else
		CT_POST(e, fi_recvmsg(e->ep, &m, FI_COMPLETION));
}

static void calls_recv(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t p = start(ct, &dom, &e);
	char *buf = ct_alloc(ct, p + LEN + ROOM);

	for (int n = 0; n < 2 * CALLS; n++) {
		size_t len = length(n % CALLS);
		struct ct_comp c;

		memset(buf + p, 0x33, LEN + ROOM);
		recv_call(&e, n, buf, p);
		ct_sync(ct, &e);
		ct_of(&e, CTX(n), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, p + len);
		CT_EQ(ct, !!(c.flags & FI_REMOTE_CQ_DATA), n % CALLS == 3 || n % CALLS == 5);
		ct_verify(ct, buf + p, len, 100 + (uint64_t)n, "behind the prefix");
		CT_TRUE(ct, ct_untouched(buf + p + len, LEN + ROOM - len, 0x33));
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

/* The limits are for what is behind the prefix. */
static void limits_send(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t p = start(ct, &dom, &e), inject = dom.info->tx_attr->inject_size;
	char *buf = ct_alloc(ct, p + inject + 1);

	ct_sync(ct, &e);
	ct_fill(buf + p, inject, 9);
	CT_POST(&e, fi_tinject(e.ep, buf, p + inject, e.addr[1], TAG));
	CT_REFUSED(ct, fi_tinject(e.ep, buf, p + inject + 1, e.addr[1], TAG));
	CT_REFUSED(ct, fi_inject(e.ep, buf, p + inject + 1, e.addr[1]));
	free(buf);
	ct_finish(&e);
}

static void limits_recv(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t p = start(ct, &dom, &e), inject = dom.info->tx_attr->inject_size;
	char *buf = ct_alloc(ct, p + inject);
	struct ct_comp c;

	ct_trecv(&e, buf, p + inject, TAG, 0, CTX(1));
	ct_sync(ct, &e);
	ct_of(&e, CTX(1), &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.len, p + inject);
	ct_verify(ct, buf + p, inject, 9, "behind the prefix");
	free(buf);
	ct_finish(&e);
}

static void cut_send(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t p = start(ct, &dom, &e);
	char *buf = ct_alloc(ct, p + 100);

	ct_sync(ct, &e);
	ct_fill(buf + p, 100, 5);
	ct_tsend(&e, 1, buf, p + 100, TAG, CTX(1));
	ct_done(&e, CTX(1));
	free(buf);
	ct_finish(&e);
}

static void cut_recv(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t p = start(ct, &dom, &e);
	char *buf = ct_alloc(ct, p + 100);
	struct ct_comp c;

	memset(buf, 0x44, p + 100);
	ct_trecv(&e, buf, p + 60, TAG, 0, CTX(1));
	ct_sync(ct, &e);
	ct_of(&e, CTX(1), &c);
	CT_EQ(ct, c.err, FI_ETRUNC);
	CT_EQ(ct, c.olen, 40);
	CT_EQ(ct, c.len, p + 60);
	ct_verify(ct, buf + p, 60, 5, "what fits");
	CT_TRUE(ct, ct_untouched(buf + p + 60, 40, 0x44));
	free(buf);
	ct_finish(&e);
}

/* No room for the prefix, or not in one piece: refused by every call, with nothing posted. */
static void bad(struct ct *ct)
{
	struct ct_want want = wanted(ct);
	struct ct_dom dom;
	struct ct_ep e;
	size_t p;
	char *buf;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	p = dom.info->ep_attr->msg_prefix_size;
	buf = ct_alloc(ct, p + 8);
	e.addr[0] = ct_insert(&e, e.name);

	struct iovec split[2] = { { buf, p - 1 }, { buf + p - 1, 9 } };
	struct fi_msg m = { .msg_iov = split, .iov_count = 2, .addr = e.addr[0], .context = CTX(1) };
	struct fi_msg_tagged t = {
		.msg_iov = split, .iov_count = 2, .addr = e.addr[0], .context = CTX(1), .tag = TAG
	};

	CT_EQ(ct, fi_sendv(e.ep, split, NULL, 2, e.addr[0], CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_sendmsg(e.ep, &m, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_recvv(e.ep, split, NULL, 2, FI_ADDR_UNSPEC, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_recvmsg(e.ep, &m, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_tsendv(e.ep, split, NULL, 2, e.addr[0], TAG, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_tsendmsg(e.ep, &t, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_trecvv(e.ep, split, NULL, 2, FI_ADDR_UNSPEC, TAG, 0, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_trecvmsg(e.ep, &t, FI_COMPLETION), -FI_EINVAL);
	m.iov_count = t.iov_count = 0;
	CT_EQ(ct, fi_sendmsg(e.ep, &m, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_trecvmsg(e.ep, &t, FI_COMPLETION), -FI_EINVAL);
	CT_EQ(ct, fi_send(e.ep, buf, p - 1, NULL, e.addr[0], CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_send(e.ep, NULL, 0, NULL, e.addr[0], CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_recv(e.ep, buf, p - 1, NULL, FI_ADDR_UNSPEC, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_inject(e.ep, buf, 0, e.addr[0]), -FI_EINVAL);
	CT_EQ(ct, fi_senddata(e.ep, buf, p - 1, NULL, 1, e.addr[0], CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_injectdata(e.ep, buf, p - 1, 1, e.addr[0]), -FI_EINVAL);
	CT_EQ(ct, fi_tsend(e.ep, buf, p - 1, NULL, e.addr[0], TAG, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_trecv(e.ep, buf, p - 1, NULL, FI_ADDR_UNSPEC, TAG, 0, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_tinject(e.ep, buf, 0, e.addr[0], TAG), -FI_EINVAL);
	CT_EQ(ct, fi_tsenddata(e.ep, buf, p - 1, NULL, 1, e.addr[0], TAG, CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_tinjectdata(e.ep, buf, p - 1, 1, e.addr[0], TAG), -FI_EINVAL);
	ct_quiet(&e, 50, "refused calls");
	/* and it still works */
	ct_trecv(&e, buf, p + 8, TAG, 0, CTX(2));
	CT_POST(&e, fi_tinject(e.ep, buf, p, e.addr[0], TAG));
	CT_EQ(ct, ct_done(&e, CTX(2)), p);
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_prefix[] = {
	{ "M19", "info", { info }, 0, FI_EP_RDM },
	{ "M19", "info-dgram", { info }, 0, FI_EP_DGRAM },
	{ "M19", "calls", { calls_send, calls_recv }, 0, FI_EP_RDM },
	{ "M19", "calls-dgram", { calls_send, calls_recv }, 0, FI_EP_DGRAM },
	{ "M19", "limits", { limits_send, limits_recv }, 0, FI_EP_RDM },
	{ "M19", "limits-dgram", { limits_send, limits_recv }, 0, FI_EP_DGRAM },
	{ "M19", "truncated", { cut_send, cut_recv }, 0, FI_EP_RDM },
	{ "M19", "refused", { bad }, 0, FI_EP_RDM },
	{ "M19", "refused-dgram", { bad }, 0, FI_EP_DGRAM },
	{ 0 },
};
