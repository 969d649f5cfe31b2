/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M16, M17, T8: buffered receives, fi_msg(3), fi_tagged(3), fi_endpoint(3). */
#include "buffered.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 10000
#define MIN 48
#define MOST (2 << 20)

static const size_t lens[] = { 0, 1, 8, 64, 4000, LIMIT, LIMIT + 1, 20000, 70000, 300000, MOST };

/*
 * The bit in hints says that a program could; what it gets is the plain info
 * first, and one with the bit.
 */
static void infos(struct ct *ct)
{
	struct ct_want want = { .mode = FI_BUFFERED_RECV };
	struct fi_info *hints = ct_hints(ct, &want), *info, *i;
	bool found = false;

	CT_OK(ct, ct_getinfo(ct, hints, &info));
	CT_TRUE(ct, !(info->mode & FI_BUFFERED_RECV));
	for (i = info->next; i; i = i->next)
		found |= i->mode & FI_BUFFERED_RECV;
	fi_freeinfo(info);
	if (!found)
		ct_unsupported(ct, "no info has FI_BUFFERED_RECV");
	hints->mode = 0;
	CT_OK(ct, ct_getinfo(ct, hints, &info));
	for (i = info; i; i = i->next)
		CT_TRUE(ct, !(i->mode & FI_BUFFERED_RECV));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* What is here of a message that has been handed over: all of it, or the beginning and FI_MORE. */
static void check_told(struct ct *ct, const struct ct_comp *c, size_t len, uint64_t seed)
{
	CT_EQ(ct, c->len, len);
	CT_EQ(ct, !!(c->flags & FI_MORE), len > LIMIT);
	CT_TRUE(ct, c->flags & FI_REMOTE_CQ_DATA);
	CT_EQ(ct, c->data, len);
	if (len)
		CT_TRUE(ct, c->buf);
	ct_verify(ct, c->buf, len > LIMIT ? MIN : len, seed, "handed over");
}

/*
 * Every size, claimed and discarded; in the order in which they came, or behind each other's back.
 */
static void sizes(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	for (i = 0; i < 4 * CT_COUNT(lens); i++) {
		size_t len = lens[i / 4];
		struct fi_recv_context *context;

		if (!ct->rank) {
			ct_fill(buf, len, i);
			bf_send(&e, 1, buf, len, len, CTX(1));
			ct_sync(ct, &e);
			ct_done(&e, CTX(1));
			continue;
		}
		if (i & 1) /* so that it waits unasked for, where tags are asked for */
			ct_sync(ct, &e);
		bf_expect(&e, CTX(5));
		context = bf_told(&e, CTX(5), &c);
		check_told(ct, &c, len, i);
		CT_EQ(ct, c.src, e.addr[0]);
		if (i & 2) {
			memset(buf, 0, len);
			bf_claim(&e, context, buf, len, CTX(6), &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.len, len);
			CT_EQ(ct, c.data, len);
			CT_EQ(ct, c.src, e.addr[0]);
			ct_verify(ct, buf, len, i, "claimed");
		} else {
			bf_discard(&e, context);
		}
		if (!(i & 1))
			ct_sync(ct, &e);
	}
	ct_quiet(&e, 20, "discarded messages");
	free(buf);
	ct_finish(&e);
}

#define ORDER 200

/* Notices come in the order of the sends, whatever the sizes; claims may be made in any. */
static void order(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	struct fi_recv_context *context[ORDER];
	char *buf[ORDER];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	bf_start(ct, &dom, &e, &want, 1000, MIN);
	for (i = 0; i < ORDER; i++) {
		size_t len = lens[ct_range(ct, CT_COUNT(lens) - 1)];

		buf[i] = ct_alloc(ct, len);
		if (!ct->rank) {
			ct_fill(buf[i], len, i);
			bf_send(&e, 1, buf[i], len, i, CTX(i + 1));
			continue;
		}
		bf_expect(&e, CTX(i + 1));
		context[i] = bf_told(&e, CTX(i + 1), &c);
		CT_EQ(ct, c.data, i);
		CT_EQ(ct, c.len, len);
	}
	for (i = 0; i < ORDER; i++) {
		size_t k = (i * 37 + 11) % ORDER; /* 37 has no divisor in common with 200 */

		if (!ct->rank) {
			ct_done(&e, CTX(i + 1));
		} else if (k % 3) {
			bf_claim(&e, context[k], buf[k], MIN, CTX(k + 1), &c);
			CT_TRUE(ct, !c.err || c.err == FI_ETRUNC);
			ct_verify(ct, buf[k], c.len, k, "claimed out of order");
		} else {
			bf_discard(&e, context[k]);
		}
	}
	for (i = 0; i < ORDER; i++)
		free(buf[i]);
	ct_finish(&e);
}

/* Too small a buffer for a claim: what fits, and an error that says how much did not. */
static void claim_truncated(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	for (i = 3; i < CT_COUNT(lens); i++) {
		if (!ct->rank) {
			ct_fill(buf, lens[i], i);
			bf_send(&e, 1, buf, lens[i], 0, CTX(1));
			ct_done(&e, CTX(1));
			continue;
		}
		memset(buf, 0x55, MOST);
		bf_expect(&e, CTX(2));
		bf_claim(&e, bf_told(&e, CTX(2), &c), buf, lens[i] - 60, CTX(3), &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
		CT_EQ(ct, c.olen, 60);
		CT_TRUE(ct, c.flags & FI_CLAIM);
		ct_verify(ct, buf, lens[i] - 60, i, "cut");
		CT_TRUE(ct, ct_untouched(buf + lens[i] - 60, 60, 0x55));
	}
	free(buf);
	ct_finish(&e);
}

/* Everything that is no message of ours, or no longer. */
static void refusals(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	struct fi_recv_context none = { 0 }, *a, *b;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64];

	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	if (!ct->rank) {
		bf_send(&e, 1, buf, 64, 0, CTX(1));
		bf_send(&e, 1, buf, 64, 0, CTX(1));
		ct_done(&e, CTX(1));
		ct_done(&e, CTX(1));
		ct_finish(&e);
		return;
	}
	bf_expect(&e, CTX(2));
	bf_expect(&e, CTX(3));
	a = bf_told(&e, CTX(2), &c);
	b = bf_told(&e, CTX(3), &c);
	CT_TRUE(ct, a != b);
	CT_EQ(ct, bf_take(&e, NULL, buf, 64, FI_CLAIM), -FI_EINVAL);
	CT_EQ(ct, bf_take(&e, NULL, buf, 64, FI_DISCARD), -FI_EINVAL);
	CT_REFUSED(ct, bf_take(&e, &none, buf, 64, FI_CLAIM));
	CT_REFUSED(ct, bf_take(&e, &none, buf, 64, FI_DISCARD));
	CT_REFUSED(ct, bf_take(&e, a, NULL, 64, FI_CLAIM)); /* and it is still there */
	bf_claim(&e, a, buf, 64, CTX(4), &c);
	CT_REFUSED(ct, bf_take(&e, a, buf, 64, FI_CLAIM));
	CT_REFUSED(ct, bf_take(&e, a, buf, 64, FI_DISCARD));
	bf_discard(&e, b);
	CT_REFUSED(ct, bf_take(&e, b, buf, 64, FI_DISCARD));
	CT_REFUSED(ct, bf_take(&e, b, buf, 64, FI_CLAIM));
	if (!(ct->cs->arg & BF_TAGGED)) {
		CT_REFUSED(ct, fi_recv(e.ep, buf, 64, NULL, FI_ADDR_UNSPEC, CTX(5)));
		CT_REFUSED(ct, bf_take(&e, NULL, buf, 64, 0));
		CT_REFUSED(ct, bf_take(&e, &none, buf, 64, FI_MULTI_RECV | FI_CLAIM));
	}
	ct_quiet(&e, 20, "what was refused");
	ct_finish(&e);
}

/* An endpoint without the mode knows neither flag, and has no such options. */
static void not_without_mode(struct ct *ct)
{
	struct fi_recv_context none = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	size_t value = 64;
	char buf[8];

	ct_start(ct, &dom, &e, NULL);
	CT_REFUSED(ct, bf_take(&e, &none, buf, 8, FI_CLAIM));
	CT_REFUSED(ct, bf_take(&e, &none, buf, 8, FI_DISCARD));
	CT_REFUSED(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &value, sizeof(value)));
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

static size_t option(struct ct_ep *e, int name)
{
	size_t value = 0, len = sizeof(value);

	CT_OK(e->ct, fi_getopt(&e->ep->fid, FI_OPT_ENDPOINT, name, &value, &len));
	CT_EQ(e->ct, len, sizeof(value));
	return value;
}

static void options(struct ct *ct)
{
	static const int names[] = { FI_OPT_BUFFERED_LIMIT, FI_OPT_BUFFERED_MIN };
	struct ct_want want = bf_want(ct);
	size_t i, value, most = SIZE_MAX;
	struct ct_dom dom;
	struct ct_ep e;

	want.disabled = true;
	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_TRUE(ct, option(&e, FI_OPT_BUFFERED_LIMIT) > 0);
	for (i = 0; i < CT_COUNT(names); i++) {
		struct fid *fid = &e.ep->fid;

		value = 100;
		CT_OK(ct, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &value, sizeof(value)));
		CT_EQ(ct, option(&e, names[i]), 100);
		CT_OK(ct, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &most, sizeof(most)));
		value = option(&e, names[i]);
		CT_TRUE(ct, value > 100 && value < SIZE_MAX);
		value++;
		CT_EQ(ct, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &value, sizeof(value)), -FI_EMSGSIZE);
		CT_REFUSED(ct, fi_setopt(fid, FI_OPT_ENDPOINT, names[i], &value, 3));
		CT_EQ(ct, option(&e, names[i]), value - 1);
	}
	ct_ep_enable(&e);
	value = 100;
	CT_REFUSED(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, names[0], &value, sizeof(value)));
	ct_ep_close(&e);
	ct_close(&dom);
}

#define MANY 20000

/*
 * Messages that the program keeps hold the sender up at some point, and nothing is
 * lost; they stay readable.
 */
static void kept(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	struct {
		struct fi_recv_context *context;
		void *buf;
	} *all = ct_alloc(ct, MANY * sizeof(*all));
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char *buf = ct_alloc(ct, MANY * 100);
	size_t i;

	want.tx_bind = FI_SELECTIVE_COMPLETION;
	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	for (i = 0; i < MANY; i++) {
		if (ct->rank) {
			bf_expect(&e, CTX(i));
			all[i].context = bf_told(&e, CTX(i), &c);
			all[i].buf = c.buf;
			continue;
		}
		ct_fill(buf + i * 100, 100, i);
		bf_send(&e, 1, buf + i * 100, 100, i, NULL);
	}
	for (i = MANY; ct->rank && i-- > 0;) {
		ct_verify(ct, all[i].buf, 100, i, "kept");
		bf_discard(&e, all[i].context);
	}
	ct_finish(&e);
	free(all);
	free(buf);
}

/* Long messages beyond what is buffered at a time, of a limit as large as can be. */
static void long_limit(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = ct_alloc(ct, 64 * 100000);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	bf_start(ct, &dom, &e, &want, SIZE_MAX, SIZE_MAX);
	for (i = 0; i < 64; i++) {
		char *at = buf + i * 100000;

		if (!ct->rank) {
			ct_fill(at, 100000, i);
			bf_send(&e, 1, at, 100000, i, CTX(1));
			continue;
		}
		bf_expect(&e, CTX(1));
		bf_told(&e, CTX(1), &c);
		CT_EQ(ct, c.len, 100000);
		CT_TRUE(ct, !(c.flags & FI_MORE));
		ct_verify(ct, c.buf, 100000, i, "a long one, whole");
		bf_discard(&e, c.ctx);
	}
	for (i = 0; !ct->rank && i < 64; i++)
		ct_done(&e, CTX(1));
	free(buf);
	ct_finish(&e);
}

/*
 * The receiver closes its endpoint while it holds messages: those who still
 * wait for them learn of it.
 */
static void closed_while_queued(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = ct_alloc(ct, MOST);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	if (ct->rank) {
		bf_expect(&e, CTX(1));
		bf_expect(&e, CTX(2));
		bf_told(&e, CTX(1), &c);
		bf_told(&e, CTX(2), &c);
		ct_ep_close(&e);
		ct_close(&dom);
	} else {
		bf_send(&e, 1, buf, 100, 0, CTX(1));
		bf_send(&e, 1, buf, MOST, 0, CTX(2));
		ct_done(&e, CTX(1));
		ct_of(&e, CTX(2), &c);
		CT_TRUE(ct, c.err);
		ct_ep_close(&e);
		ct_close(&dom);
	}
	free(buf);
}

/*
 * The sender is killed: what it has sent whole can be read and claimed, what it
 * has only announced cannot.
 */
static void sender_dies(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = ct_alloc(ct, MOST);
	struct fi_recv_context *small, *large;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	if (!ct->rank) {
		ct_doomed(ct);
		ct_fill(buf, MOST, 1);
		bf_send(&e, 1, buf, 100, 0, CTX(1));
		bf_send(&e, 1, buf, MOST, 0, CTX(2));
		for (;;)
			ct_idle(&e, 100);
	}
	bf_expect(&e, CTX(1));
	bf_expect(&e, CTX(2));
	small = bf_told(&e, CTX(1), &c);
	large = bf_told(&e, CTX(2), &c);
	CT_TRUE(ct, c.flags & FI_MORE);
	CT_OK(ct, kill(ct->pid[0], SIGKILL));
	ct_idle(&e, 50);
	ct_verify(ct, c.buf, MIN, 1, "the beginning of a dead program's message");
	bf_claim(&e, small, buf, MOST, CTX(3), &c);
	CT_EQ(ct, c.err, 0);
	ct_verify(ct, buf, 100, 1, "from a dead program");
	bf_claim(&e, large, buf, MOST, CTX(4), &c);
	CT_TRUE(ct, c.err);
	free(buf);
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * A tag that was posted can be cancelled, and takes no message then; peeking
 * and claiming works beside.
 */
static void tags(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	struct fi_recv_context mine = { .context = CTX(7) };
	struct fi_msg_tagged look = { .addr = FI_ADDR_UNSPEC, .tag = BF_TAG, .context = &mine };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64] = "";

	bf_start(ct, &dom, &e, &want, LIMIT, MIN);
	if (ct->rank) {
		struct iovec iov = { buf, 64 };

		bf_expect(&e, CTX(1));
		CT_OK(ct, fi_cancel(&e.ep->fid, CTX(1)));
		ct_any(&e, &c);
		CT_EQ(ct, c.err, FI_ECANCELED);
		CT_TRUE(ct, c.ctx == CTX(1));
		ct_sync(ct, &e);
		do { /* until it has come */
			CT_POST(&e, fi_trecvmsg(e.ep, &look, FI_PEEK | FI_CLAIM));
			ct_of(&e, &mine, &c);
		} while (c.err == FI_ENOMSG);
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, !mine.ep && mine.context == CTX(7)); /* it is the program's */
		bf_expect(&e, CTX(2));
		ct_quiet(&e, 20, "a claimed message");
		look.msg_iov = &iov;
		look.iov_count = 1;
		mine.context = CTX(8);
		CT_OK(ct, fi_trecvmsg(e.ep, &look, FI_CLAIM));
		ct_of(&e, CTX(8), &c);
		CT_EQ(ct, c.len, 64);
		CT_TRUE(ct, !c.err && c.flags & FI_CLAIM);
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &look, FI_CLAIM)); /* once is enough */
		ct_verify(ct, buf, 64, 1, "peeked and claimed");
		ct_sync(ct, &e);
		bf_discard(&e, bf_told(&e, CTX(2), &c));
	} else {
		ct_sync(ct, &e);
		ct_fill(buf, 64, 1);
		bf_send(&e, 1, buf, 64, 0, CTX(1));
		ct_sync(ct, &e);
		bf_send(&e, 1, buf, 64, 0, CTX(1));
		ct_done(&e, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

#define BOTH(row, trow, name, f) \
	{ row, name, CT_TWO(f) }, \
	{ \
		trow, name "-tagged", CT_TWO(f), .arg = BF_TAGGED \
	}
#define VARIABLE(name, f) \
	{ "M18", "variable-" name, CT_TWO(f), .arg = BF_VARIABLE }, \
	{ \
		"T9", "variable-" name "-tagged", CT_TWO(f), .arg = BF_VARIABLE | BF_TAGGED \
	}

const struct ct_case ct_buffered[] = {
	{ "M16", "buffered-infos", { infos } },
	{ "M16", "buffered-options", { options } },
	{ "M16", "buffered-not-without-mode", CT_TWO(not_without_mode) },
	{ "T8", "buffered-not-without-mode-tagged", CT_TWO(not_without_mode), .arg = BF_TAGGED },
	BOTH("M16", "T8", "buffered-sizes", sizes),
	BOTH("M16", "T8", "buffered-order", order),
	BOTH("M16", "T8", "buffered-kept", kept),
	BOTH("M16", "T8", "buffered-long-limit", long_limit),
	BOTH("M17", "T8", "claim-truncated", claim_truncated),
	BOTH("M17", "T8", "claim-refusals", refusals),
	BOTH("M17", "T8", "buffered-closed-while-held", closed_while_queued),
	BOTH("M17", "T8", "buffered-sender-dies", sender_dies),
	VARIABLE("sizes", sizes),
	VARIABLE("order", order),
	VARIABLE("kept", kept),
	VARIABLE("refusals", refusals),
	{ "T8", "buffered-tags", CT_TWO(tags), .arg = BF_TAGGED },
	{ 0 },
};
