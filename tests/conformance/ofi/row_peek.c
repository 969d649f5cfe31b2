/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* T5 to T7: peek, claim, discard; fi_tagged(3). */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define DATA 0x5eed

struct look { /* a receive call with flags */
	void *buf;
	size_t len;
	uint64_t tag, ignore, flags;
	bool directed;
	fi_addr_t from; /* where directed */
	void *ctx;
};

static void post_look(struct ct_ep *e, const struct look *l)
{
	struct iovec iov = { l->buf, l->len };
	struct fi_msg_tagged t = {
		.msg_iov = &iov,
		.iov_count = 1,
		.tag = l->tag,
		.ignore = l->ignore,
		.addr = l->directed ? l->from : FI_ADDR_UNSPEC,
		.context = l->ctx,
	};
	ssize_t rc;

	while ((rc = fi_trecvmsg(e->ep, &t, l->flags)) == -FI_EAGAIN)
		ct_progress(e);
	if (rc == -FI_EOPNOTSUPP || rc == -FI_ENOSYS || rc == -FI_EINVAL || rc == -FI_EBADFLAGS)
		ct_unsupported(e->ct, "fi_trecvmsg refuses flags %s: %s",
			       fi_tostr(&l->flags, FI_TYPE_OP_FLAGS), fi_strerror((int)-rc));
	CT_OK(e->ct, rc);
}

/* Peeks once; returns whether a message was found. */
static bool peek(struct ct_ep *e, const struct look *l, struct ct_comp *c)
{
	post_look(e, l);
	ct_of(e, l->ctx, c);
	if (!c->err)
		return true;
	CT_EQ(e->ct, c->err, FI_ENOMSG);
	return false;
}

/* Peeks until the message is there: peek tells only of what has arrived. */
static void peek_until(struct ct_ep *e, const struct look *l, struct ct_comp *c)
{
	double end = ct_deadline(e->ct);

	while (!peek(e, l, c)) {
		ct_late(e->ct, end, "a peek to find its message");
		ct_pause();
	}
}

static void taken(struct ct_ep *e, uint64_t tag, uint64_t ignore, size_t len, uint64_t seed)
{
	char *buf = ct_alloc(e->ct, len + 1);
	size_t got;

	ct_trecv(e, buf, len + 1, tag, ignore, CTX(70));
	got = ct_done(e, CTX(70));
	if (e->dom->want.format != FI_CQ_FORMAT_CONTEXT)
		CT_EQ(e->ct, got, len);
	ct_verify(e->ct, buf, len, seed, "taken");
	free(buf);
}

static void give(struct ct_ep *e, uint64_t tag, size_t len, uint64_t seed)
{
	char *buf = ct_alloc(e->ct, len);

	ct_fill(buf, len, seed);
	CT_POST(e, fi_tsenddata(e->ep, buf, len, NULL, DATA, e->addr[1], tag, CTX(71)));
	/* Large ones complete only when taken: meet first, so that the other rank gets there. */
	ct_sync(e->ct, e);
	ct_done(e, CTX(71));
	free(buf);
}

/* ---- T5 ---- */

static const size_t lens[] = { 0, 40, 5000, 300000 };

static void peek_found(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < CT_COUNT(lens); i++) {
		struct look l = { .tag = 0x100, .ignore = 0xff, .flags = FI_PEEK, .ctx = CTX(1) };

		if (!ct->rank) {
			give(&e, 0x123, lens[i], i);
		} else {
			peek_until(&e, &l, &c);
			CT_EQ(ct, c.len, lens[i]);
			CT_EQ(ct, c.tag, 0x123);
			CT_EQ(ct, c.flags & (FI_RECV | FI_TAGGED | FI_MSG), FI_RECV | FI_TAGGED);
			CT_TRUE(ct, c.flags & FI_REMOTE_CQ_DATA);
			CT_EQ(ct, c.data, DATA);
			CT_TRUE(ct, !c.buf);
			CT_EQ(ct, c.src, e.addr[0]);
			/* It is still there: for another peek, and for a receive. */
			CT_TRUE(ct, peek(&e, &l, &c));
			taken(&e, 0x123, 0, lens[i], i);
			CT_TRUE(ct, !peek(&e, &l, &c));
			ct_sync(ct, &e);
		}
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

static void peek_not_found(struct ct *ct)
{
	struct look l = { .tag = 5, .flags = FI_PEEK, .ctx = CTX(1) };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank) {
		CT_TRUE(ct, !peek(&e, &l, &c));
		ct_sync(ct, &e);
		/*
		 * One with another tag has arrived, which a ping behind it shows: still no match.
		 */
		ct_ping(&e, 0);
		CT_TRUE(ct, !peek(&e, &l, &c));
		/* The peek did not stay: a message that comes now is not eaten by it. */
		ct_sync(ct, &e);
		ct_ping(&e, 0);
		taken(&e, 5, 0, 30, 2);
		taken(&e, 6, 0, 20, 1);
	} else {
		char a[20], b[30];

		ct_sync(ct, &e);
		ct_fill(a, 20, 1);
		ct_fill(b, 30, 2);
		ct_tsend(&e, 1, a, 20, 6, CTX(1));
		ct_ping(&e, 1);
		ct_sync(ct, &e);
		ct_tsend(&e, 1, b, 30, 5, CTX(2));
		ct_ping(&e, 1);
		ct_done(&e, CTX(1));
		ct_done(&e, CTX(2));
	}
	ct_finish(&e);
}

/*
 * With a buffer given: a copy of as much as fits, or none and buf NULL; len is
 * always the whole. arg: format
 */
static void peek_copy(struct ct *ct)
{
	struct ct_want want = { .format = (enum fi_cq_format)ct->cs->arg };
	bool may_copy = ct->cs->arg == FI_CQ_FORMAT_DATA || ct->cs->arg == FI_CQ_FORMAT_TAGGED;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i, room = 1000;
	char *buf = ct_alloc(ct, room + 16);

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < CT_COUNT(lens); i++) {
		struct look l = { .buf = buf, .len = room, .tag = 3, .flags = FI_PEEK, .ctx = CTX(1) };

		if (!ct->rank) {
			give(&e, 3, lens[i], i);
			ct_sync(ct, &e);
			continue;
		}
		memset(buf, 0x55, room + 16);
		peek_until(&e, &l, &c);
		if (ct->cs->arg != FI_CQ_FORMAT_CONTEXT)
			CT_EQ(ct, c.len, lens[i]);
		CT_TRUE(ct, !c.buf || (c.buf == buf && may_copy));
		if (c.buf)
			ct_verify(ct, buf, lens[i] < room ? lens[i] : room, i, "peeked");
		else
			CT_TRUE(ct, ct_untouched(buf, room, 0x55));
		CT_TRUE(ct, ct_untouched(buf + room, 16, 0x55));
		taken(&e, 3, 0, lens[i], i);
		ct_sync(ct, &e);
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

/*
 * What is copied fills the segments in turn, and buf is the first of them; a segment of
 * no bytes may be anywhere.
 */
static void peek_segments(struct ct *ct)
{
	char buf[64 + 16], rest[16];
	struct iovec iov[3] = { { buf, 24 }, { NULL, 0 }, { buf + 24, 40 } };
	struct fi_msg_tagged t = {
		.msg_iov = iov, .iov_count = 3, .addr = FI_ADDR_UNSPEC, .tag = 3, .context = CTX(1)
	};
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	if (dom.info->rx_attr->iov_limit < 3)
		ct_unsupported(ct, "iov_limit %zu", dom.info->rx_attr->iov_limit);
	for (size_t i = 0; i < CT_COUNT(lens); i++) {
		double end = ct_deadline(ct);

		if (!ct->rank) {
			give(&e, 3, lens[i], i);
			ct_sync(ct, &e);
			continue;
		}
		memset(buf, 0x55, sizeof(buf));
		memset(rest, 0x55, sizeof(rest));
		do {
			ct_late(ct, end, "a peek to find its message");
			CT_POST(&e, fi_trecvmsg(e.ep, &t, FI_PEEK));
			ct_of(&e, CTX(1), &c);
		} while (c.err == FI_ENOMSG);
		CT_EQ(ct, c.len, lens[i]);
		CT_TRUE(ct, !c.buf || c.buf == buf);
		if (c.buf)
			ct_verify(ct, buf, lens[i] < 64 ? lens[i] : 64, i, "peeked in segments");
		CT_TRUE(ct, !memcmp(buf + 64, rest, sizeof(rest)));
		taken(&e, 3, 0, lens[i], i);
		ct_sync(ct, &e);
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

/* Directed peek: the message of rank 1 is older, that of rank 2 is asked for. */
static void peek_source(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64];

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		ct_fill(buf, 64, (uint64_t)ct->rank);
		if (ct->rank == 2)
			ct_sync(ct, &e);
		ct_tsend(&e, 0, buf, 30 + (size_t)ct->rank, 4, CTX(1));
		ct_done(&e, CTX(1));
		if (ct->rank == 1)
			ct_sync(ct, &e);
	} else {
		struct look l = {
			.tag = 4, .flags = FI_PEEK, .directed = true, .from = e.addr[2], .ctx = CTX(1)
		};

		ct_sync(ct, &e);
		peek_until(&e, &l, &c);
		CT_EQ(ct, c.len, 32);
		CT_EQ(ct, c.src, e.addr[2]);
		l.from = e.addr[1];
		peek_until(&e, &l, &c);
		CT_EQ(ct, c.len, 31);
		CT_EQ(ct, c.src, e.addr[1]);
		taken(&e, 4, 0, 31, 1);
		taken(&e, 4, 0, 32, 2);
	}
	ct_finish(&e);
}

/* ---- T6, T7 ---- */

/* Takes a claimed message; every size may be claimed. */
static void claim(struct ct_ep *e, struct fi_context2 *ctx, size_t len, uint64_t seed)
{
	struct look l = {
		.buf = ct_alloc(e->ct, len + 1), .len = len + 1, .tag = 8, .flags = FI_CLAIM, .ctx = ctx
	};

	post_look(e, &l);
	CT_EQ(e->ct, ct_done(e, ctx), len);
	ct_verify(e->ct, l.buf, len, seed, "claimed");
	free(l.buf);
}

static void peek_claim(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct fi_context2 ctx = { { NULL } };
	struct look l = { .tag = 8, .flags = FI_PEEK | FI_CLAIM, .ctx = &ctx };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < CT_COUNT(lens); i++) {
		if (!ct->rank) {
			char *a = ct_alloc(ct, lens[i]), b[9];

			ct_fill(a, lens[i], i);
			ct_fill(b, 9, 90 + i);
			ct_tsend(&e, 1, a, lens[i], 8, CTX(1));
			ct_tsend(&e, 1, b, 9, 8, CTX(2));
			ct_sync(ct, &e);
			ct_done(&e, CTX(1));
			ct_done(&e, CTX(2));
			free(a);
			continue;
		}
		peek_until(&e, &l, &c);
		CT_EQ(ct, c.len, lens[i]);
		/*
		 * The claimed one is out of reach: another peek and another
		 * receive get the second message.
		 */
		taken(&e, 8, 0, 9, 90 + i);
		claim(&e, &ctx, lens[i], i);
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

/* A claim with too small a buffer is a receive with too small a buffer. */
static void claim_cut(struct ct *ct)
{
	struct fi_context2 ctx = { { NULL } };
	char *buf = ct_alloc(ct, lens[3]);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	for (size_t i = 1; i < CT_COUNT(lens); i++) {
		struct look l = { .tag = 8, .flags = FI_PEEK | FI_CLAIM, .ctx = &ctx };

		if (!ct->rank) {
			give(&e, 8, lens[i], i);
			continue;
		}
		peek_until(&e, &l, &c);
		l = (struct look){ .buf = buf, .len = lens[i] - 9, .tag = 8, .flags = FI_CLAIM, .ctx = &ctx };
		post_look(&e, &l);
		ct_of(&e, &ctx, &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
		CT_EQ(ct, c.olen, 9);
		ct_verify(ct, buf, c.len, i, "claimed and cut");
		ct_sync(ct, &e);
	}
	free(buf);
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* Several claimed at a time, taken in another order, each by its own context. */
static void claim_many(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct fi_context2 ctx[4] = { { { NULL } } };
	char buf[4][50];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < 4; i++) {
		struct look l = { .tag = 8, .flags = FI_PEEK | FI_CLAIM, .ctx = &ctx[i] };

		if (ct->rank) {
			peek_until(&e, &l, &c);
			CT_EQ(ct, c.len, 40 + i);
		} else {
			ct_fill(buf[i], 50, i);
			ct_tsend(&e, 1, buf[i], 40 + i, 8, CTX(i + 1));
		}
	}
	for (i = 0; i < 4; i++) {
		if (ct->rank)
			claim(&e, &ctx[3 - i], 40 + 3 - i, 3 - i);
		else
			ct_done(&e, CTX(i + 1));
	}
	ct_finish(&e);
}

/* arg 0: peek and discard at once; 1: claim first, then discard */
static void discard(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct fi_context2 ctx = { { NULL } };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < CT_COUNT(lens); i++) {
		struct look l = { .tag = 8,
				  .ctx = &ctx,
				  .flags = FI_PEEK | (ct->cs->arg ? FI_CLAIM : FI_DISCARD) };

		if (!ct->rank) {
			give(&e, 8, lens[i], i);
			/*
			 * Dropped is delivered, as far as the sender is concerned;
			 * then comes the next one.
			 */
			give(&e, 8, 77, 200 + i);
			continue;
		}
		peek_until(&e, &l, &c);
		CT_EQ(ct, c.len, lens[i]);
		if (ct->cs->arg) {
			l.flags = FI_CLAIM | FI_DISCARD;
			/* Buffers are ignored with FI_DISCARD, even impossible ones. */
			l.buf = CTX(8);
			l.len = 1000;
			post_look(&e, &l);
			/* what is dropped is what was claimed, whatever else this call says */
			l.tag = 0;
			ct_of(&e, &ctx, &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.len, lens[i]);
			CT_EQ(ct, c.tag, 8);
			CT_EQ(ct, c.data, DATA);
		}
		ct_sync(ct, &e);
		taken(&e, 8, 0, 77, 200 + i);
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

static ssize_t look(struct ct_ep *e, struct fi_context2 *ctx, uint64_t flags)
{
	struct fi_msg_tagged t = { .tag = 8, .addr = FI_ADDR_UNSPEC, .context = ctx };

	return fi_trecvmsg(e->ep, &t, flags);
}

/*
 * What is no claim, is one no more, or is one of something else: refused at the
 * call, and nothing completes.
 */
static void look_refused(struct ct *ct)
{
	struct fi_context2 ctx = { { NULL } }, none = { { NULL } };
	struct look l = { .tag = 8, .flags = FI_PEEK | FI_CLAIM, .ctx = &ctx };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank) {
		CT_EQ(ct, look(&e, NULL, FI_PEEK | FI_CLAIM), -FI_EINVAL);
		CT_EQ(ct, look(&e, NULL, FI_CLAIM), -FI_EINVAL);
		CT_EQ(ct, look(&e, NULL, FI_CLAIM | FI_DISCARD), -FI_EINVAL);
		CT_EQ(ct, look(&e, &none, FI_CLAIM), -FI_EINVAL);
		CT_EQ(ct, look(&e, &none, FI_CLAIM | FI_DISCARD), -FI_EINVAL);
		CT_EQ(ct, look(&e, &none, FI_DISCARD), -FI_EINVAL);
		CT_EQ(ct, look(&e, &none, FI_PEEK | FI_CLAIM | FI_DISCARD), -FI_EINVAL);
		CT_TRUE(ct, !peek(&e, &l, &c)); /* nothing is here, so nothing is claimed */
		CT_EQ(ct, look(&e, &ctx, FI_CLAIM), -FI_EINVAL);
		ct_sync(ct, &e);
		peek_until(&e, &l, &c);
		CT_EQ(ct, look(&e, &ctx, FI_PEEK | FI_CLAIM), -FI_EINVAL); /* it holds one */
		claim(&e, &ctx, 50, 1);
		CT_EQ(ct, look(&e, &ctx, FI_CLAIM), -FI_EINVAL);
		CT_EQ(ct, look(&e, &ctx, FI_CLAIM | FI_DISCARD), -FI_EINVAL);
		ct_quiet(&e, 20, "what was refused");
	} else {
		ct_sync(ct, &e);
		give(&e, 8, 50, 1);
	}
	if (ct->rank)
		ct_sync(ct, &e); /* give's */
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/*
 * Exactly one completion is read for each peek: that is all that there is to read, and the message
 * must come in nevertheless.
 */
static void peek_alone(struct ct *ct)
{
	const struct look l = { .tag = 9, .flags = FI_PEEK, .ctx = CTX(1) };
	double end = ct_deadline(ct);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char word[8] = "word";

	ct_start(ct, &dom, &e, NULL);
	if (!ct->rank) {
		ct_tsend(&e, 1, word, 8, 9, CTX(1));
		ct_done(&e, CTX(1));
		ct_sync(ct, &e);
	}
	for (bool found = false; ct->rank && !found;) {
		post_look(&e, &l);
		while (!ct_read_cq(&e, e.rxcq, &c))
			ct_late(ct, end, "what a peek says");
		found = !c.err;
		ct_late(ct, end, "a peek to find its message");
	}
	if (ct->rank) {
		ct_trecv(&e, word, 8, 9, 0, CTX(2));
		ct_done(&e, CTX(2));
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

const struct ct_case ct_peek[] = {
	{ "T5", "peek-alone", CT_TWO(peek_alone) },
	{ "T5", "peek-found", CT_TWO(peek_found) },
	{ "T5", "peek-not-found", CT_TWO(peek_not_found) },
	{ "T5", "peek-copy-tagged", CT_TWO(peek_copy), .arg = FI_CQ_FORMAT_TAGGED },
	{ "T5", "peek-copy-data", CT_TWO(peek_copy), .arg = FI_CQ_FORMAT_DATA },
	{ "T5", "peek-copy-msg", CT_TWO(peek_copy), .arg = FI_CQ_FORMAT_MSG },
	{ "T5", "peek-copy-context", CT_TWO(peek_copy), .arg = FI_CQ_FORMAT_CONTEXT },
	{ "T5", "peek-source", { peek_source, peek_source, peek_source } },
	{ "T5", "peek-segments", CT_TWO(peek_segments) },
	{ "T6", "claim-cut", CT_TWO(claim_cut) },
	{ "T6", "peek-claim", CT_TWO(peek_claim) },
	{ "T6", "claim-many", CT_TWO(claim_many) },
	{ "T6", "look-refused", CT_TWO(look_refused) },
	{ "T7", "peek-discard", CT_TWO(discard), .arg = 0 },
	{ "T7", "claim-discard", CT_TWO(discard), .arg = 1 },
	{ 0 }
};
