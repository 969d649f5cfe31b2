/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M13: completion levels, fi_cq(3) "Completion event semantics". */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

static const size_t lens[] = { 0, 8, 3000, 100000, 2 << 20 };

static void level_send(struct ct_ep *e, uint64_t flags, size_t len, char *buf)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = e->addr[1], .context = CTX(1) };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = e->addr[1], .tag = 1, .context = CTX(2)
	};
	ssize_t rc;

	ct_fill(buf, len, len);
	while ((rc = fi_sendmsg(e->ep, &m, flags)) == -FI_EAGAIN)
		ct_progress(e);
	if (rc == -FI_EOPNOTSUPP || rc == -FI_ENOSYS)
		ct_unsupported(e->ct, "fi_sendmsg refuses this completion level: %s", fi_strerror((int)-rc));
	CT_OK(e->ct, rc);
	ct_done(e, CTX(1));
	/* Complete at any level means that the buffer may be used again. */
	memset(buf, 0xee, len);
	ct_fill(buf, len, len + 1);
	CT_POST(e, fi_tsendmsg(e->ep, &t, flags));
	ct_done(e, CTX(2));
	memset(buf, 0xee, len);
}

static void level_recv(struct ct_ep *e, size_t len, char *buf, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = CTX(1) };

	CT_POST(e, fi_recvmsg(e->ep, &m, flags));
	CT_EQ(e->ct, ct_done(e, CTX(1)), len);
	ct_verify(e->ct, buf, len, len, "level");
	ct_trecv(e, buf, len, 1, 0, CTX(1));
	CT_EQ(e->ct, ct_done(e, CTX(1)), len);
	ct_verify(e->ct, buf, len, len + 1, "level");
}

/* arg: the level */
static void level(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 2 << 20);
	size_t i;

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < CT_COUNT(lens); i++) {
		if (ct->rank)
			level_recv(&e, lens[i], buf, i & 1 ? FI_TRANSMIT_COMPLETE : 0);
		else
			level_send(&e, ct->cs->arg | FI_COMPLETION, lens[i], buf);
	}
	free(buf);
	ct_finish(&e);
}

/* The level as default of the endpoint, for all calls. */
static void level_default(struct ct *ct)
{
	struct ct_want want = { .tx_op_flags = ct->cs->arg, .rx_op_flags = FI_TRANSMIT_COMPLETE };
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 2 << 20);
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < CT_COUNT(lens); i++) {
		if (ct->rank) {
			ct_recv(&e, buf, lens[i], CTX(1));
			CT_EQ(ct, ct_done(&e, CTX(1)), lens[i]);
			ct_verify(ct, buf, lens[i], i, "level");
		} else {
			ct_fill(buf, lens[i], i);
			ct_send(&e, 1, buf, lens[i], CTX(1));
			ct_done(&e, CTX(1));
		}
	}
	free(buf);
	ct_finish(&e);
}

/*
 * The destination stands still (SIGSTOP, with all its threads): nothing can be processed there, so
 * no completion may come before it goes on.
 */
static void delivery_held(struct ct_ep *e, size_t len, char *buf)
{
	struct ct *ct = e->ct;
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = e->addr[1], .context = CTX(1) };
	ssize_t rc;

	ct_stop_rank(ct, 1);
	ct_fill(buf, len, len);
	do
		rc = ct->cs->arg ? fi_send(e->ep, buf, len, NULL, e->addr[1], CTX(1))
				 : fi_sendmsg(e->ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
	while (rc == -FI_EAGAIN && (ct_progress(e), true));
	if (!rc)
		ct_quiet(e, 50, "FI_DELIVERY_COMPLETE with a destination that is stopped");
	ct_cont_rank(ct, 1);
	if (rc == -FI_EOPNOTSUPP || rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_sendmsg refuses FI_DELIVERY_COMPLETE: %s", fi_strerror((int)-rc));
	CT_OK(ct, rc);
	ct_done(e, CTX(1));
	ct_sync(ct, e);
}

/* arg: what the endpoint's defaults say; 0: the call says it */
static void delivery(struct ct *ct)
{
	struct ct_want want = { .tx_op_flags = ct->cs->arg };
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 2 << 20);
	size_t i;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	for (i = 0; i < CT_COUNT(lens); i++) {
		if (ct->rank)
			ct_recv(&e, buf, lens[i], CTX(1));
		ct_sync(ct, &e);
		if (!ct->rank) {
			delivery_held(&e, lens[i], buf);
			continue;
		}
		CT_EQ(ct, ct_done(&e, CTX(1)), lens[i]);
		ct_verify(ct, buf, lens[i], lens[i], "delivered");
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

/* ---- T4 ---- */

enum match_end {
	RECEIVED,
	DISCARDED,
	CLAIMED, /* and then dropped */
};

/* The other rank takes the message from under its own sync: a receive, or a peek that drops it. */
static void match_take(struct ct_ep *e, size_t len, char *buf, enum match_end end)
{
	struct fi_context2 mine = { { NULL } };
	struct fi_msg_tagged t = { .addr = FI_ADDR_UNSPEC, .tag = 4, .context = &mine };
	uint64_t how = end == CLAIMED ? FI_CLAIM : FI_DISCARD;
	struct ct_comp c;

	if (end == RECEIVED) {
		ct_trecv(e, buf, len, 4, 0, CTX(1));
		CT_EQ(e->ct, ct_done(e, CTX(1)), len);
		return;
	}
	do {
		CT_POST(e, fi_trecvmsg(e->ep, &t, FI_PEEK | how));
		ct_of(e, &mine, &c);
	} while (c.err == FI_ENOMSG);
	CT_EQ(e->ct, c.err, 0);
	if (end == CLAIMED) {
		CT_POST(e, fi_trecvmsg(e->ep, &t, FI_CLAIM | FI_DISCARD));
		ct_done(e, &mine);
	}
}

/*
 * The send is not complete while the message only waits at the target: it must be
 * matched, or dropped. arg: end
 */
static void match_complete(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	char *buf = ct_alloc(ct, 2 << 20);
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < CT_COUNT(lens); i++) {
		struct iovec iov = { buf, lens[i] };
		struct fi_msg_tagged t = {
			.msg_iov = &iov, .iov_count = 1, .addr = e.addr[1], .tag = 4, .context = CTX(1)
		};

		if (!ct->rank) {
			CT_POST(&e, fi_tsendmsg(e.ep, &t, FI_MATCH_COMPLETE | FI_COMPLETION));
			ct_tsend(&e, 1, buf, 8, 5, CTX(2));
			ct_done(&e, CTX(2));
			ct_quiet(&e, 50, "FI_MATCH_COMPLETE of a message that nobody has taken");
			ct_sync(ct, &e);
			ct_done(&e, CTX(1));
		} else {
			/* what came behind it is here, so it is itself */
			ct_trecv(&e, buf, 8, 5, 0, CTX(2));
			CT_EQ(ct, ct_done(&e, CTX(2)), 8);
			ct_sync(ct, &e);
			match_take(&e, lens[i], buf, (enum match_end)ct->cs->arg);
		}
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_level[] = {
	{ "M13", "inject-complete", { level, level }, .arg = FI_INJECT_COMPLETE },
	{ "M13", "transmit-complete", { level, level }, .arg = FI_TRANSMIT_COMPLETE },
	{ "M13", "delivery-complete", { level, level }, .arg = FI_DELIVERY_COMPLETE },
	{ "M13", "transmit-complete-default", { level_default, level_default }, .arg = FI_TRANSMIT_COMPLETE },
	{ "M13", "delivery-complete-default", { level_default, level_default }, .arg = FI_DELIVERY_COMPLETE },
	{ "M13", "match-complete", { level, level }, .arg = FI_MATCH_COMPLETE },
	{ "M13", "match-complete-default", { level_default, level_default }, .arg = FI_MATCH_COMPLETE },
	{ "T4", "match-complete-received", { match_complete, match_complete }, .arg = RECEIVED },
	{ "T4", "match-complete-discarded", { match_complete, match_complete }, .arg = DISCARDED },
	{ "T4", "match-complete-claimed", { match_complete, match_complete }, .arg = CLAIMED },
	{ "M13", "delivery-not-before", { delivery, delivery }, .slow = true },
	{ "M13",
	  "delivery-not-before-default",
	  { delivery, delivery },
	  .arg = FI_DELIVERY_COMPLETE,
	  .slow = true },
	{ 0 }
};
