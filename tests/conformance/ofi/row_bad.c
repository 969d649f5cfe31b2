/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M22: wrong arguments are refused at the call, nothing is posted, and the
 * endpoint goes on working.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN_FLAG (1ULL << 42) /* no flag of any operation in the installed headers */

static struct fi_msg msg1(struct iovec *iov, size_t n, fi_addr_t addr)
{
	return (struct fi_msg){ .msg_iov = iov, .iov_count = n, .addr = addr, .context = CTX(1) };
}

static struct fi_msg_tagged tmsg1(struct iovec *iov, size_t n, fi_addr_t addr)
{
	return (struct fi_msg_tagged){ .msg_iov = iov, .iov_count = n, .addr = addr, .context = CTX(1) };
}

static void segments(struct ct *ct)
{
	struct iovec iov[65];
	struct fi_msg_tagged t;
	struct fi_msg m;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[65];
	size_t i, n;

	ct_start_up(ct, &dom, &e, NULL);
	for (i = 0; i < 65; i++)
		iov[i] = (struct iovec){ buf + i, 1 };
	if (!ct->rank) {
		n = dom.info->tx_attr->iov_limit + 1;
		CT_TRUE(ct, n <= 65);
		m = msg1(iov, n, e.addr[1]);
		t = tmsg1(iov, n, e.addr[1]);
		CT_EQ(ct, fi_sendv(e.ep, iov, NULL, n, e.addr[1], CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_sendmsg(e.ep, &m, 0), -FI_EINVAL);
		CT_EQ(ct, fi_tsendv(e.ep, iov, NULL, n, e.addr[1], 1, CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_tsendmsg(e.ep, &t, 0), -FI_EINVAL);
		n = dom.info->rx_attr->iov_limit + 1;
		CT_TRUE(ct, n <= 65);
		m = msg1(iov, n, FI_ADDR_UNSPEC);
		t = tmsg1(iov, n, FI_ADDR_UNSPEC);
		CT_EQ(ct, fi_recvv(e.ep, iov, NULL, n, FI_ADDR_UNSPEC, CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_recvmsg(e.ep, &m, 0), -FI_EINVAL);
		CT_EQ(ct, fi_trecvv(e.ep, iov, NULL, n, FI_ADDR_UNSPEC, 1, 0, CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_trecvmsg(e.ep, &t, 0), -FI_EINVAL);
	}
	ct_finish_quiet(&e);
}

static void null_buffers(struct ct *ct)
{
	struct iovec bad = { NULL, 8 };
	struct fi_msg m = msg1(NULL, 1, FI_ADDR_UNSPEC);
	struct fi_msg_tagged t = tmsg1(NULL, 1, FI_ADDR_UNSPEC);
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, NULL);
	if (!ct->rank) {
		CT_EQ(ct, fi_recvmsg(e.ep, &m, 0), -FI_EINVAL);
		CT_EQ(ct, fi_trecvmsg(e.ep, &t, 0), -FI_EINVAL);
		m.addr = t.addr = e.addr[1];
		CT_EQ(ct, fi_sendmsg(e.ep, &m, 0), -FI_EINVAL);
		CT_EQ(ct, fi_tsendmsg(e.ep, &t, 0), -FI_EINVAL);
		CT_EQ(ct, fi_sendv(e.ep, NULL, NULL, 1, e.addr[1], CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_recvv(e.ep, NULL, NULL, 1, FI_ADDR_UNSPEC, CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_sendv(e.ep, &bad, NULL, 1, e.addr[1], CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_send(e.ep, NULL, 8, NULL, e.addr[1], CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_tsend(e.ep, NULL, 8, NULL, e.addr[1], 1, CTX(1)), -FI_EINVAL);
		CT_EQ(ct, fi_inject(e.ep, NULL, 8, e.addr[1]), -FI_EINVAL);
	}
	ct_finish_quiet(&e);
}

static void get_nowhere(struct ct_ep *e, struct iovec *iov, size_t count, bool tagged)
{
	if (count > 1 && tagged)
		CT_POST(e, fi_trecvv(e->ep, iov, NULL, count, FI_ADDR_UNSPEC, CT_TAG, 0, CTX(1)));
	else if (count > 1)
		CT_POST(e, fi_recvv(e->ep, iov, NULL, count, FI_ADDR_UNSPEC, CTX(1)));
	else
		ct_recv_kind(e, tagged, NULL, 8, CTX(1));
}

/*
 * Nothing is written to NULL, whatever its length: what has no bytes is received there, and
 * what has some is cut off.
 */
static void null_room(struct ct *ct)
{
	char in[8], out[16];
	struct iovec iov[2] = { { in, 8 }, { NULL, 8 } };
	struct ct_comp c;
	struct ct_dom dom;
	struct ct_ep e;

	ct_fill(out, 16, 1);
	ct_start_up(ct, &dom, &e, NULL);
	for (size_t i = 0; i < (ct->conf->type == FI_EP_DGRAM ? 8 : 16); i++) {
		/* datagrams need not wait */
		const bool tagged = i & 1, two = i & 2, late = i & 8;
		const size_t fits = two ? 8 : 0, len = i & 4 ? fits + 8 : fits;

		if (ct->rank && !late)
			get_nowhere(&e, iov, two ? 2 : 1, tagged);
		ct_sync(ct, &e);
		if (!ct->rank && tagged)
			ct_tsend(&e, 1, out, len, CT_TAG, CTX(2));
		else if (!ct->rank)
			ct_send(&e, 1, out, len, CTX(2));
		ct_sync(ct, &e);
		if (!ct->rank) {
			ct_done(&e, CTX(2));
			continue;
		}
		if (late)
			get_nowhere(&e, iov, two ? 2 : 1, tagged);
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, len > fits ? FI_ETRUNC : 0);
		if (two)
			ct_verify(ct, in, 8, 1, "before NULL");
	}
	ct_finish_quiet(&e);
}

/* A NULL buffer of no bytes is an empty message, not a mistake. */
static void null_empty(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, NULL);
	if (ct->rank) {
		ct_recv(&e, NULL, 0, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), 0);
		CT_POST(&e, fi_recvv(e.ep, NULL, NULL, 0, FI_ADDR_UNSPEC, CTX(2)));
		CT_EQ(ct, ct_done(&e, CTX(2)), 0);
	} else {
		ct_send(&e, 1, NULL, 0, CTX(1));
		ct_done(&e, CTX(1));
		CT_POST(&e, fi_sendv(e.ep, NULL, NULL, 0, e.addr[1], CTX(2)));
		ct_done(&e, CTX(2));
	}
	ct_finish_quiet(&e);
}

/* arg: the AV's type; an index that was never inserted can only be told of a table */
static void destinations(struct ct *ct)
{
	struct ct_want want = { .av_type = (enum fi_av_type)ct->cs->arg };
	fi_addr_t wrong[] = { FI_ADDR_NOTAVAIL, FI_ADDR_UNSPEC, 77 };
	size_t i, n = ct->cs->arg == FI_AV_TABLE ? 3 : 2;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };

	ct_start_up(ct, &dom, &e, &want);
	for (i = 0; i < n && !ct->rank; i++) {
		CT_REFUSED(ct, fi_send(e.ep, buf, 8, NULL, wrong[i], CTX(1)));
		CT_REFUSED(ct, fi_inject(e.ep, buf, 8, wrong[i]));
		CT_REFUSED(ct, fi_senddata(e.ep, buf, 8, NULL, 1, wrong[i], CTX(1)));
		CT_REFUSED(ct, fi_tsend(e.ep, buf, 8, NULL, wrong[i], 1, CTX(1)));
		CT_REFUSED(ct, fi_tinject(e.ep, buf, 8, wrong[i], 1));
	}
	ct_finish_quiet(&e);
}

static void removed_destination(struct ct *ct)
{
	struct ct_want want = { .av_type = FI_AV_TABLE };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };

	ct_start_up(ct, &dom, &e, &want);
	ct_sync(ct, &e);
	if (!ct->rank) {
		fi_addr_t was = e.addr[1];
		char name[CT_NAME];
		size_t len = sizeof(name);

		CT_OK(ct, fi_av_lookup(e.av, was, name, &len));
		CT_OK(ct, fi_av_remove(e.av, &e.addr[1], 1, 0));
		CT_REFUSED(ct, fi_send(e.ep, buf, 8, NULL, was, CTX(1)));
		CT_REFUSED(ct, fi_av_lookup(e.av, was, name, &len));
		e.addr[1] = ct_insert(&e, name);
	}
	ct_finish_quiet(&e);
}

static void op_flags(struct ct *ct)
{
	struct iovec iov = { NULL, 0 };
	struct fi_msg_tagged t;
	struct fi_msg m;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, NULL);
	if (!ct->rank) {
		m = msg1(&iov, 1, e.addr[1]);
		t = tmsg1(&iov, 1, e.addr[1]);
		CT_REFUSED(ct, fi_sendmsg(e.ep, &m, UNKNOWN_FLAG));
		CT_REFUSED(ct, fi_tsendmsg(e.ep, &t, UNKNOWN_FLAG));
		CT_REFUSED(ct, fi_sendmsg(e.ep, &m, FI_PEEK));
		/* Without the capability of the same name, multicast is refused, fi_msg(3). */
		CT_REFUSED(ct, fi_sendmsg(e.ep, &m, FI_MULTICAST));
		m.addr = t.addr = FI_ADDR_UNSPEC;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, UNKNOWN_FLAG));
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, UNKNOWN_FLAG));
		/*
		 * A multi-receive needs FI_MULTI_RECV among the capabilities,
		 * fi_getinfo(3); these had not.
		 */
		if (!(dom.info->caps & FI_MULTI_RECV))
			CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
	}
	ct_finish_quiet(&e);
}

static void peek_flags(struct ct *ct)
{
	struct iovec iov = { NULL, 0 };
	struct fi_msg_tagged t = tmsg1(&iov, 1, FI_ADDR_UNSPEC);
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, NULL);
	if (!ct->rank) {
		struct fi_context2 never = { { NULL } };

		/* Claiming and discarding need the context that names the message, fi_tagged(3). */
		t.context = NULL;
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, FI_CLAIM));
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, FI_PEEK | FI_CLAIM));
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, FI_CLAIM | FI_DISCARD));
		t.context = &never;
		/* Discard goes with peek or claim only. */
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, FI_DISCARD));
		/* Nothing was claimed with this context. */
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, FI_CLAIM));
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, FI_CLAIM | FI_DISCARD));
	}
	ct_finish_quiet(&e);
}

/* An endpoint that may only send does not receive, and the other way round. */
static void directions(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | (ct->cs->arg ? FI_SEND : FI_RECV) };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };

	ct_start(ct, &dom, &e, &want);
	if (dom.info->caps & (ct->cs->arg ? FI_RECV : FI_SEND))
		ct_unsupported(ct, "the provider offers both directions though one was asked for");
	if (ct->cs->arg) {
		CT_REFUSED(ct, fi_recv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, CTX(1)));
		CT_REFUSED(ct, fi_trecv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1)));
	} else {
		CT_REFUSED(ct, fi_send(e.ep, buf, 8, NULL, e.addr[!ct->rank], CTX(1)));
		CT_REFUSED(ct, fi_tsend(e.ep, buf, 8, NULL, e.addr[!ct->rank], 1, CTX(1)));
		CT_REFUSED(ct, fi_inject(e.ep, buf, 8, e.addr[!ct->rank]));
	}
	ct_quiet(&e, 30, "refused calls");
	ct_finish(&e);
}

/* arg: the only kind of message that was asked for */
static void kinds(struct ct *ct)
{
	struct ct_want want = { .caps = ct->cs->arg };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };

	ct_start(ct, &dom, &e, &want);
	if ((dom.info->caps & (FI_MSG | FI_TAGGED)) != ct->cs->arg)
		ct_unsupported(ct, "the provider offers both kinds though one was asked for");
	if (ct->cs->arg == FI_MSG) {
		CT_REFUSED(ct, fi_trecv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1)));
		CT_REFUSED(ct, fi_tsend(e.ep, buf, 8, NULL, e.addr[!ct->rank], 1, CTX(1)));
	} else {
		CT_REFUSED(ct, fi_recv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, CTX(1)));
		CT_REFUSED(ct, fi_send(e.ep, buf, 8, NULL, e.addr[!ct->rank], CTX(1)));
	}
	ct_quiet(&e, 30, "refused calls");
	ct_finish(&e);
}

const struct ct_case ct_bad[] = { { "M22", "segments", CT_TWO(segments) },
				  { "M22", "null-buffers", CT_TWO(null_buffers) },
				  { "M22", "null-empty", CT_TWO(null_empty) },
				  { "M22", "null-room", CT_TWO(null_room) },
				  { "M22", "destinations-map", CT_TWO(destinations), .arg = FI_AV_MAP },
				  { "M22", "destinations-table", CT_TWO(destinations), .arg = FI_AV_TABLE },
				  { "M22", "destination-removed", CT_TWO(removed_destination) },
				  { "M22", "operation-flags", CT_TWO(op_flags) },
				  { "M22", "peek-flags", CT_TWO(peek_flags) },
				  { "M22", "send-only", CT_TWO(directions), .arg = 1 },
				  { "M22", "receive-only", CT_TWO(directions), .arg = 0 },
				  { "M22", "untagged-only", CT_TWO(kinds), .arg = FI_MSG },
				  { "M22", "tagged-only", CT_TWO(kinds), .arg = FI_TAGGED },
				  { 0 } };
