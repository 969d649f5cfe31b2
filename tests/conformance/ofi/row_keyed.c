/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M20: what endpoints with the keys of their AV do as well: messages that are handed over, or wait
 * for a counter; strangers.
 */
#include "buffered.h"
#include "keyed.h"
#include "triggered.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

#define LONG 300000

/* ---- buffered and variable-length messages --------------------------------------------------- */

/*
 * The program is told which key a message came with. The flag says nothing where a message has been
 * chosen, and is no error.
 */
static void claim_with_flag(struct ct *ct, struct keyed *s, struct fi_recv_context *context, char *buf,
			    size_t len)
{
	struct ct_comp c;

	context->context = CTX(5);
	CT_POST(&s->e, bf_take(&s->e, context, buf, len, FI_CLAIM | FI_AUTH_KEY));
	ct_of(&s->e, CTX(5), &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.len, len);
	ct_verify(ct, buf, len, len, "claimed");
}

/*
 * Tags are posted by key, the wrong way round; untagged messages come as
 * they come. arg: enum bf_arg
 */
static void handed(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	const size_t limit = 1000, min = 64;
	char *buf = ct_alloc(ct, LONG);
	struct ct_comp c;
	struct keyed s;

	want.caps |= FI_DIRECTED_RECV;
	kd_open(ct, &s, &want, 0);
	CT_OK(ct, fi_setopt(&s.e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &limit, sizeof(limit)));
	CT_OK(ct, fi_setopt(&s.e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &min, sizeof(min)));
	kd_meet(ct, &s, 0);
	for (size_t len = 8; len <= LONG; len *= 33) {
		for (int k = KD_KEYS - 1; k >= 0 && ct->rank && ct->cs->arg & BF_TAGGED; k--)
			CT_POST(&s.e, kd_trecv(&s.e, CTX(k), 0, s.key[k], BF_TAG, 0, 0));
		ct_sync(ct, &s.e);
		for (int k = 0; k < KD_KEYS; k++) {
			struct fi_recv_context *context;

			if (!ct->rank) {
				s.e.addr[1] = s.to[1][k];
				ct_fill(buf, len, len);
				bf_send(&s.e, 1, buf, len, (uint64_t)k, CTX(9));
				ct_done(&s.e, CTX(9));
				continue;
			}
			context = bf_told(&s.e, CTX(k), &c);
			CT_EQ(ct, c.data, k);
			CT_EQ(ct, c.len, len);
			CT_EQ(ct, c.src, s.to[0][k]);
			CT_EQ(ct, !!(c.flags & FI_MORE), len > limit);
			ct_verify(ct, c.buf, len > limit ? min : len, len, "what was handed over");
			if (k)
				bf_discard(&s.e, context);
			else
				claim_with_flag(ct, &s, context, buf, len);
		}
	}
	ct_finish(&s.e);
	free(buf);
}

/* What waits is looked for by key, and claimed so. */
static void handed_peek(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	struct fi_recv_context context = { 0 };
	struct fi_msg_tagged m = { .context = &context, .tag = 3 };
	struct ct_comp c;
	struct keyed s;

	want.caps |= FI_DIRECTED_RECV;
	kd_open(ct, &s, &want, 0);
	kd_meet(ct, &s, 0);
	if (!ct->rank)
		kd_say(&s.e, s.to[1][1], 3);
	ct_sync(ct, &s.e);
	if (ct->rank) {
		double end = ct_deadline(ct);

		m.addr = s.key[1];
		do {
			ct_late(ct, end, "a peek to find its message");
			CT_POST(&s.e, fi_trecvmsg(s.e.ep, &m, FI_PEEK | FI_AUTH_KEY));
			ct_of(&s.e, &context, &c);
		} while (c.err == FI_ENOMSG);
		CT_EQ(ct, c.err, 0);
		m.addr = s.key[0];
		CT_POST(&s.e, fi_trecvmsg(s.e.ep, &m, FI_PEEK | FI_AUTH_KEY));
		ct_of(&s.e, &context, &c);
		CT_EQ(ct, c.err, FI_ENOMSG);
		m.addr = s.key[1];
		CT_POST(&s.e, fi_trecvmsg(s.e.ep, &m, FI_PEEK | FI_CLAIM | FI_AUTH_KEY));
		ct_of(&s.e, &context, &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.src, s.to[0][1]);
		m.addr = s.key[0]; /* says nothing: the message has been chosen */
		CT_POST(&s.e, fi_trecvmsg(s.e.ep, &m, FI_CLAIM | FI_DISCARD | FI_AUTH_KEY));
	}
	ct_finish(&s.e);
}

static void handed_refused(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	struct fi_recv_context context = { 0 };
	struct keyed s;

	kd_open(ct, &s, &want, 0);
	kd_meet(ct, &s, 0);
	CT_REFUSED(ct, kd_trecv(&s.e, CTX(1), 0, s.key[0], BF_TAG, 0, 0));
	CT_REFUSED(ct, kd_trecv(&s.e, &context, 0, s.key[0], BF_TAG, 0, FI_PEEK));
	CT_REFUSED(ct, kd_trecv(&s.e, &context, 0, s.key[0], BF_TAG, 0, FI_CLAIM));
	CT_REFUSED(ct, bf_take(&s.e, &context, NULL, 0, FI_DISCARD | FI_AUTH_KEY));
	ct_quiet(&s.e, 20, "nothing was posted");
	ct_finish(&s.e);
}

/* ---- triggered receives ---------------------------------------------------------------------- */

enum trigger_arg {
	UNTAGGED,
	TAGGED,
	DEFERRED
};

struct waiting { /* one receive that waits for its counter */
	struct fi_triggered_context when;
	struct fi_deferred_work work;
	struct fi_op_tagged tagged;
	struct iovec iov;
	uint64_t in;
};

static ssize_t post_waiting(struct keyed *s, struct waiting *w, struct fid_cntr *c, fi_addr_t src)
{
	struct fi_msg m = { .msg_iov = &w->iov, .iov_count = 1, .addr = src, .context = &w->when };
	struct fi_msg_tagged t = {
		.msg_iov = &w->iov, .iov_count = 1, .addr = src, .context = &w->when, .tag = 7
	};
	const uint64_t flags = FI_AUTH_KEY | FI_COMPLETION;

	w->iov = (struct iovec){ &w->in, sizeof(w->in) };
	w->when.event_type = FI_TRIGGER_THRESHOLD;
	w->when.trigger.threshold = (struct fi_trigger_threshold){ c, 1 };
	if (s->e.ct->cs->arg == UNTAGGED)
		return fi_recvmsg(s->e.ep, &m, flags | FI_TRIGGER);
	if (s->e.ct->cs->arg == TAGGED)
		return fi_trecvmsg(s->e.ep, &t, flags | FI_TRIGGER);
	w->tagged = (struct fi_op_tagged){ .ep = s->e.ep, .msg = t, .flags = flags };
	w->work = (struct fi_deferred_work){
		.threshold = 1, .triggering_cntr = c, .op_type = FI_OP_TRECV, .op.tagged = &w->tagged
	};
	return fi_control(&s->dom.domain->fid, FI_QUEUE_WORK, &w->work);
}

/* By key 1 first, then by key 0. arg: enum trigger_arg */
static void triggered(struct ct *ct)
{
	const struct ct_want want = { .caps = KD_DIRECTED | FI_TRIGGER };
	struct waiting w[KD_KEYS] = { 0 }, bad = { 0 };
	struct fid_cntr *c;
	struct keyed s;

	kd_open(ct, &s, &want, 0);
	kd_meet(ct, &s, 0);
	c = tr_cntr(&s.dom);
	if (ct->rank) {
		CT_REFUSED(ct, post_waiting(&s, &bad, c, 12345));
		CT_REFUSED(ct, post_waiting(&s, &bad, c, s.to[0][0]));
		for (int k = KD_KEYS - 1; k >= 0; k--)
			CT_OK(ct, post_waiting(&s, &w[k], c, s.key[k]));
		CT_OK(ct, fi_cntr_add(c, 1));
		ct_idle(&s.e, 20);
	}
	ct_sync(ct, &s.e);
	for (int k = 0; k < KD_KEYS; k++) {
		uint64_t out = 10 + (uint64_t)k;
		struct ct_comp got;

		if (ct->rank) {
			ct_of(&s.e, &w[k].when, &got);
			CT_EQ(ct, got.err, 0);
			CT_EQ(ct, got.src, s.to[0][k]);
			CT_EQ(ct, w[k].in, out);
			continue;
		}
		if (ct->cs->arg == UNTAGGED)
			CT_POST(&s.e, fi_send(s.e.ep, &out, sizeof(out), NULL, s.to[1][k], CTX(1)));
		else
			CT_POST(&s.e, fi_tsend(s.e.ep, &out, sizeof(out), NULL, s.to[1][k], 7, CTX(1)));
		ct_done(&s.e, CTX(1));
	}
	ct_sync(ct, &s.e);
	CT_OK(ct, fi_close(&s.e.ep->fid));
	CT_OK(ct, fi_close(&c->fid));
	kd_close(ct, &s);
}

/* ---- senders that are not in the AV ---------------------------------------------------------- */

/*
 * Rank 0 is known to rank 1 by its first key only. A receive by key takes it all the same;
 * FI_SOURCE_ERR tells its address.
 */
static void stranger(struct ct *ct)
{
	const struct ct_want want = { .caps = KD_DIRECTED | FI_SOURCE_ERR };
	char name[CT_NAME] = { 0 };
	struct fi_cq_err_entry err = { .err_data = name, .err_data_size = sizeof(name) };
	struct fi_cq_tagged_entry entry;
	uint64_t in[2] = { 0 };
	double end = ct_deadline(ct);
	struct keyed s;
	ssize_t rc;

	kd_open(ct, &s, &want, 0);
	kd_meet(ct, &s, 0);
	if (ct->rank) {
		CT_OK(ct, fi_av_remove(s.e.av, &s.to[0][1], 1, 0));
		for (int i = 0; i < 2; i++)
			CT_POST(&s.e, kd_trecv(&s.e, &in[i], 8, s.key[1], 0, UINT64_MAX, FI_COMPLETION));
	}
	ct_sync(ct, &s.e);
	if (!ct->rank) {
		kd_say(&s.e, s.to[1][1], 1);
	} else {
		while ((rc = fi_cq_read(s.e.rxcq, &entry, 1)) == -FI_EAGAIN) {
			ct_late(ct, end, "a message");
			ct_pause();
		}
		CT_EQ(ct, rc, -FI_EAVAIL);
		CT_EQ(ct, fi_cq_readerr(s.e.rxcq, &err, 0), 1);
		CT_EQ(ct, err.err, FI_EADDRNOTAVAIL);
		CT_TRUE(ct, err.op_context == &in[0] && in[0] == 1);
		CT_EQ(ct, err.err_data_size, s.e.namelen);
		s.to[0][1] = kd_insert(ct, s.e.av, name, s.key[1]);
	}
	ct_sync(ct, &s.e);
	if (ct->rank)
		kd_got(ct, &s.e, &in[1], 2, s.to[0][1]);
	else
		kd_say(&s.e, s.to[1][1], 2);
	ct_finish(&s.e);
}

/*
 * One key in the AV: an address that was inserted with one that came later is
 * not reached with the first.
 */
static void one_key(struct ct *ct)
{
	const struct ct_want want = { .caps = KD_DIRECTED };
	uint64_t in = 0;
	struct keyed s;

	kd_open(ct, &s, &want, ct->rank ? 0 : 1);
	kd_meet(ct, &s, ct->rank ? 0 : 1);
	if (ct->rank) {
		ct_trecv(&s.e, &in, 8, 0, UINT64_MAX, &in);
		ct_sync(ct, &s.e);
		kd_got(ct, &s.e, &in, 2, s.to[0][1]);
	} else {
		fi_addr_t late = kd_insert_key(ct, s.e.av, kd_keys[0]), addr;
		char name[CT_NAME];
		size_t len = CT_NAME;

		ct_sync(ct, &s.e);
		CT_OK(ct, fi_av_lookup(s.e.av, s.to[1][1], name, &len));
		addr = kd_insert(ct, s.e.av, name, late);
		CT_REFUSED(ct, fi_tsend(s.e.ep, &in, 8, NULL, addr, 1, NULL));
		CT_REFUSED(ct, fi_tinject(s.e.ep, &in, 8, addr, 1));
		kd_say(&s.e, s.to[1][1], 2);
	}
	ct_finish(&s.e);
}

const struct ct_case ct_keyed_cases[] = {
	{ "M20", "auth-buffered", CT_TWO(handed) },
	{ "M20", "auth-buffered-tagged", CT_TWO(handed), .arg = BF_TAGGED },
	{ "M20", "auth-variable", CT_TWO(handed), .arg = BF_VARIABLE },
	{ "M20", "auth-variable-tagged", CT_TWO(handed), .arg = BF_VARIABLE | BF_TAGGED },
	{ "M20", "auth-buffered-peek", CT_TWO(handed_peek), .arg = BF_TAGGED },
	{ "M20", "auth-buffered-refused", CT_TWO(handed_refused), .arg = BF_TAGGED },
	{ "M20", "auth-trigger", CT_TWO(triggered), .arg = UNTAGGED },
	{ "M20", "auth-trigger-tagged", CT_TWO(triggered), .arg = TAGGED },
	{ "M20", "auth-trigger-work", CT_TWO(triggered), .arg = DEFERRED },
	{ "M20", "auth-stranger", CT_TWO(stranger) },
	{ "M20", "auth-one-key", CT_TWO(one_key) },
	{ 0 },
};
