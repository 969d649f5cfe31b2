/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M20: endpoints with the keys of their AV that share: receive contexts, scalable endpoints,
 * groups, address vectors.
 */
#include "buffered.h"
#include "keyed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A receive by key; where messages are handed over (arg: whether they are) it is a tag alone. */
static void expect(struct ct_ep *e, uint64_t *in, fi_addr_t key)
{
	CT_POST(e, kd_trecv(e, in, sizeof(*in), key, 0, UINT64_MAX, FI_COMPLETION));
}

/* The next message that is handed over, which is given back through `via`: whom it was for. */
static void *told(struct ct_ep *e, struct ct_ep *via, struct ct_comp *c)
{
	struct fi_msg_tagged m = { 0 };
	void *whom;

	ct_any(e, c);
	CT_EQ(e->ct, c->err, 0);
	CT_TRUE(e->ct, c->ctx && *(uint64_t *)c->buf == c->tag);
	m.context = c->ctx;
	whom = ((struct fi_recv_context *)c->ctx)->context;
	CT_POST(via, fi_trecvmsg(via->ep, &m, FI_DISCARD));
	return whom;
}

static void gets(struct ct_ep *e, uint64_t *in, uint64_t tag, fi_addr_t src)
{
	struct ct *ct = e->ct;
	struct ct_comp c;

	if (!ct->cs->arg) {
		kd_got(ct, e, in, tag, src);
		return;
	}
	CT_TRUE(ct, told(e, e, &c) == in);
	CT_EQ(ct, c.tag, tag);
	CT_EQ(ct, c.src, src);
}

/* ---- shared receive contexts ----------------------------------------------------------------- */

#define SHARERS 2

struct sharing {
	struct keyed s; /* rank 1: the AV, the CQ; no endpoint of its own */
	struct fid_ep *srx, *ep[SHARERS];
	struct ct_ep at_srx;		/* rank 1: to post through */
	fi_addr_t to[SHARERS][KD_KEYS]; /* rank 0 */
};

static void open_sharer(struct sharing *w, int i, char name[CT_NAME])
{
	struct ct *ct = w->s.e.ct;
	size_t len = CT_NAME;

	CT_OK(ct, fi_endpoint(w->s.dom.domain, w->s.dom.info, &w->ep[i], NULL));
	CT_OK(ct, fi_ep_bind(w->ep[i], &w->s.e.av->fid, 0));
	CT_OK(ct, fi_ep_bind(w->ep[i], &w->s.e.txcq->fid, FI_TRANSMIT | FI_RECV));
	CT_OK(ct, fi_ep_bind(w->ep[i], &w->srx->fid, 0));
	CT_OK(ct, fi_enable(w->ep[i]));
	CT_OK(ct, fi_getname(&w->ep[i]->fid, name, &len));
}

static void open_sharing(struct ct *ct, struct sharing *w)
{
	const struct ct_want want = { .caps = KD_DIRECTED, .mode = ct->cs->arg ? FI_BUFFERED_RECV : 0 };
	struct fi_rx_attr rx;
	char name[CT_NAME];
	int rc;

	memset(w, 0, sizeof(*w));
	kd_open(ct, &w->s, &want, 0);
	rx = *w->s.dom.info->rx_attr;
	rx.mode |= want.mode;
	rc = fi_srx_context(w->s.dom.domain, &rx, &w->srx, NULL);
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_srx_context: %s", fi_strerror(-rc));
	CT_OK(ct, rc);
	if (!ct->rank) {
		ct_ep_enable(&w->s.e);
		ct_put(ct, 1, w->s.e.name, CT_NAME);
	} else {
		CT_OK(ct, fi_close(&w->s.e.ep->fid));
		ct_get(ct, NULL, 0, name, CT_NAME);
		for (int k = 0; k < KD_KEYS; k++)
			w->s.to[0][k] = kd_insert(ct, w->s.e.av, name, w->s.key[k]);
	}
	for (int i = 0; i < SHARERS; i++) {
		if (ct->rank) {
			open_sharer(w, i, name);
			ct_put(ct, 0, name, CT_NAME);
			continue;
		}
		ct_get(ct, NULL, 1, name, CT_NAME);
		for (int k = 0; k < KD_KEYS; k++)
			w->to[i][k] = kd_insert(ct, w->s.e.av, name, w->s.key[k]);
	}
	w->s.e.ep = ct->rank ? w->ep[0] : w->s.e.ep;
	w->at_srx = w->s.e;
	w->at_srx.ep = w->srx;
}

static void close_sharing(struct ct *ct, struct sharing *w)
{
	ct_sync(ct, &w->s.e);
	if (!ct->rank)
		CT_OK(ct, fi_close(&w->s.e.ep->fid));
	for (int i = 0; i < SHARERS && ct->rank; i++)
		CT_OK(ct, fi_close(&w->ep[i]->fid));
	CT_OK(ct, fi_close(&w->srx->fid));
	kd_close(ct, &w->s);
}

/* Each message has come to the receive for its key, in whatever order the program is told. */
static void shared_got(struct sharing *w, uint64_t in[SHARERS * KD_KEYS])
{
	struct ct *ct = w->s.e.ct;

	for (int i = 0; i < SHARERS * KD_KEYS; i++) {
		struct ct_comp c;
		ptrdiff_t n;

		if (ct->cs->arg)
			n = (uint64_t *)told(&w->s.e, &w->at_srx, &c) - in;
		else {
			ct_any(&w->s.e, &c);
			CT_EQ(ct, c.err, 0);
			n = (uint64_t *)c.ctx - in;
		}
		CT_TRUE(ct, n >= 0 && n < SHARERS * KD_KEYS);
		CT_EQ(ct, c.tag, 10 * (n / KD_KEYS) + n % KD_KEYS);
		CT_EQ(ct, c.src, w->s.to[0][n % KD_KEYS]);
	}
}

/*
 * A buffer of the shared context is for one key, whichever endpoint it comes to; posted before the
 * messages, and after them, the wrong way round. arg: messages are handed over
 */
static void shared(struct ct *ct)
{
	uint64_t in[SHARERS * KD_KEYS] = { 0 };
	struct sharing w;

	open_sharing(ct, &w);
	for (int late = 0; late < 2; late++) {
		if (late != !ct->rank)
			ct_sync(ct, &w.s.e);
		if (late && ct->rank)
			ct_idle(&w.s.e, 50);
		for (int n = 0; n < SHARERS * KD_KEYS; n++) {
			int k = n % KD_KEYS;

			if (ct->rank)
				expect(&w.at_srx, &in[n - k + 1 - k], w.s.key[1 - k]);
			else
				kd_say(&w.s.e, w.to[n / KD_KEYS][k], (unsigned)(10 * (n / KD_KEYS) + k));
		}
		if (late == !ct->rank)
			ct_sync(ct, &w.s.e);
		if (ct->rank)
			shared_got(&w, in);
		ct_sync(ct, &w.s.e);
	}
	if (ct->rank) {
		CT_REFUSED(ct, kd_trecv(&w.at_srx, in, 8, 12345, 1, 0, 0));
		CT_REFUSED(ct, kd_trecv(&w.at_srx, in, 8, w.s.to[0][0], 1, 0, 0));
	}
	close_sharing(ct, &w);
}

/* ---- scalable endpoints ---------------------------------------------------------------------- */

#define CTXS 2
#define BITS 1

struct scaled {
	struct ct_dom dom;
	struct fid_av *av;
	struct fid_ep *sep;
	struct ct_ep tx[CTXS], rx[CTXS], e; /* rank 1: contexts, rank 0: an endpoint */
	fi_addr_t key[KD_KEYS], to[KD_KEYS];
};

static void open_cq(struct scaled *s, struct ct_ep *e)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };

	e->ct = s->dom.ct;
	e->dom = &s->dom;
	CT_OK(e->ct, fi_cq_open(s->dom.domain, &attr, &e->txcq, NULL));
	e->rxcq = e->txcq;
}

static void enable_ctx(struct ct_ep *e, uint64_t how)
{
	CT_OK(e->ct, fi_ep_bind(e->ep, &e->txcq->fid, how));
	CT_OK(e->ct, fi_enable(e->ep));
}

/* Without a key in the AV there is nothing to enable the endpoint with. */
static void open_sep(struct ct *ct, struct scaled *s)
{
	int rc;

	s->dom.info->ep_attr->tx_ctx_cnt = s->dom.info->ep_attr->rx_ctx_cnt = CTXS;
	rc = fi_scalable_ep(s->dom.domain, s->dom.info, &s->sep, NULL);
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_scalable_ep: %s", fi_strerror(-rc));
	CT_OK(ct, rc);
	CT_OK(ct, fi_scalable_ep_bind(s->sep, &s->av->fid, 0));
	for (int i = 0; i < CTXS; i++) {
		open_cq(s, &s->tx[i]);
		open_cq(s, &s->rx[i]);
		CT_OK(ct, fi_tx_context(s->sep, i, NULL, &s->tx[i].ep, NULL));
		CT_OK(ct, fi_rx_context(s->sep, i, NULL, &s->rx[i].ep, NULL));
	}
	CT_REFUSED(ct, fi_enable(s->sep));
}

static void open_scaled(struct ct *ct, struct scaled *s)
{
	const struct ct_want want = { .caps = KD_DIRECTED | FI_NAMED_RX_CTX,
				      .mode = ct->cs->arg ? FI_BUFFERED_RECV : 0,
				      .av_keys = true };
	struct fi_av_attr av = { .count = 4, .rx_ctx_bits = ct->rank ? 0 : BITS };
	char name[CT_NAME];
	size_t len = CT_NAME;

	memset(s, 0, sizeof(*s));
	ct_open(ct, &s->dom, &want);
	CT_OK(ct, fi_av_open(s->dom.domain, &av, &s->av, NULL));
	if (ct->rank) {
		open_sep(ct, s);
	} else {
		open_cq(s, &s->e);
		CT_OK(ct, fi_endpoint(s->dom.domain, s->dom.info, &s->e.ep, NULL));
		CT_OK(ct, fi_ep_bind(s->e.ep, &s->av->fid, 0));
	}
	for (int k = 0; k < KD_KEYS; k++)
		s->key[k] = kd_insert_key(ct, s->av, kd_keys[k]);
	if (ct->rank)
		CT_OK(ct, fi_enable(s->sep));
	else
		enable_ctx(&s->e, FI_TRANSMIT | FI_RECV);
	CT_OK(ct, fi_getname(ct->rank ? &s->sep->fid : &s->e.ep->fid, name, &len));
	ct_put(ct, !ct->rank, name, CT_NAME);
	ct_get(ct, NULL, !ct->rank, name, CT_NAME);
	for (int k = 0; k < KD_KEYS; k++)
		s->to[k] = kd_insert(ct, s->av, name, s->key[k]);
	CT_EQ(ct, fi_av_remove(s->av, &s->key[0], 1, FI_AUTH_KEY), -FI_EBUSY);
}

static void close_ctx(struct ct_ep *e)
{
	CT_OK(e->ct, fi_close(&e->ep->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
	free(e->stash);
}

static void close_scaled(struct ct *ct, struct scaled *s)
{
	ct_sync(ct, ct->rank ? &s->rx[0] : &s->e);
	for (int i = 0; i < CTXS && ct->rank; i++) {
		close_ctx(&s->tx[i]);
		close_ctx(&s->rx[i]);
	}
	if (ct->rank)
		CT_OK(ct, fi_close(&s->sep->fid));
	else
		close_ctx(&s->e);
	CT_OK(ct, fi_av_remove(s->av, s->key, KD_KEYS, FI_AUTH_KEY));
	CT_OK(ct, fi_close(&s->av->fid));
	ct_close(&s->dom);
}

/*
 * Each context is reached with each key, the second before it is enabled; what one sends has
 * the key of its destination.
 */
static void scaled(struct ct *ct)
{
	uint64_t in[CTXS][KD_KEYS] = { { 0 } }, back[KD_KEYS] = { 0 };
	struct scaled s;

	open_scaled(ct, &s);
	if (ct->rank)
		enable_ctx(&s.rx[0], FI_RECV); /* which makes progress for all */
	for (int n = 0; n < CTXS * KD_KEYS && !ct->rank; n++)
		kd_say(&s.e, fi_rx_addr(s.to[n % KD_KEYS], n / KD_KEYS, BITS), (unsigned)n);
	ct_sync(ct, ct->rank ? &s.rx[0] : &s.e);
	for (int i = 0; i < CTXS && ct->rank; i++) {
		if (i)
			enable_ctx(&s.rx[i], FI_RECV);
		enable_ctx(&s.tx[i], FI_TRANSMIT);
		CT_REFUSED(ct, kd_trecv(&s.rx[i], &in[i][0], 8, s.to[0], 0, UINT64_MAX, 0));
		for (int k = KD_KEYS - 1; k >= 0; k--) {
			expect(&s.rx[i], &in[i][k], s.key[k]);
			gets(&s.rx[i], &in[i][k], (unsigned)(i * KD_KEYS + k), s.to[k]);
		}
	}
	for (int k = KD_KEYS - 1; k >= 0 && !ct->rank; k--)
		expect(&s.e, &back[k], s.key[k]);
	ct_sync(ct, ct->rank ? &s.rx[0] : &s.e);
	for (int k = 0; k < KD_KEYS; k++) {
		if (ct->rank)
			kd_say(&s.tx[1], s.to[k], (unsigned)k);
		else
			gets(&s.e, &back[k], (unsigned)k, s.to[k]);
	}
	close_scaled(ct, &s);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void join(struct ct *ct, struct keyed *s, struct fid_mc **mc)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ct_port(0)) };

	inet_pton(AF_INET, "239.255.77.69", &to.sin_addr);
	CT_OK(ct, fi_join(s->e.ep, &to, 0, mc, NULL));
	CT_TRUE(ct, fi_mc_addr(*mc) != FI_ADDR_NOTAVAIL);
}

/*
 * Rank 0 has both keys, and so has rank 1, which hears what it says once, and by the second key
 * where it asks for that. Rank 2 has the second alone, or (arg) another, and then hears nothing.
 */
static void group(struct ct *ct)
{
	const struct ct_want want = { .caps = KD_DIRECTED | FI_MULTICAST };
	const bool stranger = ct->rank == 2 && ct->cs->arg;
	const int first = stranger ? KD_KEYS : ct->rank == 2;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct iovec iov = { "psst", 4 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = CTX(3) };
	char in[2][64] = { { 0 } };
	struct fid_mc *mc;
	struct fid_eq *eq;
	struct ct_comp c;
	struct keyed s;

	kd_open(ct, &s, &want, first);
	if (s.dom.info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "names are not IPv4 addresses");
	if (stranger)
		kd_insert_key(ct, s.e.av, kd_keys[2]);
	CT_OK(ct, fi_eq_open(s.dom.fabric, &attr, &eq, NULL));
	CT_OK(ct, fi_ep_bind(s.e.ep, &eq->fid, 0));
	kd_meet(ct, &s, first);
	join(ct, &s, &mc);
	for (int round = 0; round < 2; round++) {
		if (ct->rank == 1 && round)
			CT_POST(&s.e, kd_recv(&s.e, in[0], sizeof(in[0]), s.key[1], FI_COMPLETION));
		else if (ct->rank)
			ct_recv(&s.e, in[0], sizeof(in[0]), in[0]);
		ct_recv(&s.e, in[1], sizeof(in[1]), in[1]);
		ct_sync(ct, &s.e);
		m.addr = fi_mc_addr(mc);
		if (!ct->rank) {
			CT_POST(&s.e, fi_sendmsg(s.e.ep, &m, FI_MULTICAST | FI_COMPLETION));
			ct_done(&s.e, CTX(3));
			CT_EQ(ct, ct_done(&s.e, in[1]), 4); /* itself is a member */
		} else if (!stranger) {
			ct_of(&s.e, in[0], &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.len, 4);
			if (c.src != FI_ADDR_NOTAVAIL) /* who has not been met is not known */
				CT_EQ(ct, c.src, s.to[0][ct->rank == 2 || round]);
		}
		ct_sync(ct, &s.e);
		ct_quiet(&s.e, 50, "nobody hears it twice, or without a key");
		for (int i = !stranger; i < 2 && ct->rank; i++) { /* what is left */
			CT_OK(ct, fi_cancel(&s.e.ep->fid, in[i]));
			ct_of(&s.e, in[i], &c);
			CT_EQ(ct, c.err, FI_ECANCELED);
		}
	}
	CT_OK(ct, fi_close(&mc->fid));
	CT_OK(ct, fi_close(&s.e.ep->fid));
	CT_OK(ct, fi_close(&eq->fid));
	kd_close(ct, &s);
}

/* ---- shared address vectors ------------------------------------------------------------------ */

static void name_of(struct ct *ct, char *name, size_t size)
{
	snprintf(name, size, "ct-keys-%d-%llx", (int)getpgrp(), (unsigned long long)ct_rand(ct));
}

static int open_named(struct keyed *s, const char *name, uint64_t flags, struct fid_av **av)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = 64, .name = name, .flags = flags };

	return fi_av_open(s->dom.domain, &attr, av, NULL);
}

/* With the endpoint's AV in place of one of its own. */
static void use_av(struct ct *ct, struct keyed *s, struct fid_av *av)
{
	CT_OK(ct, fi_close(&s->e.ep->fid));
	CT_OK(ct, fi_close(&s->e.av->fid));
	s->e.av = av;
	CT_OK(ct, fi_endpoint(s->dom.domain, s->dom.info, &s->e.ep, NULL));
	CT_OK(ct, fi_ep_bind(s->e.ep, &av->fid, 0));
	CT_OK(ct, fi_ep_bind(s->e.ep, &s->e.txcq->fid, FI_TRANSMIT | FI_RECV));
}

/* Rank 0 puts keys and addresses into it, in which rank 1 finds them. */
static void share_keys(struct ct *ct, struct keyed *s, struct fid_av *av)
{
	fi_addr_t none[KD_KEYS];

	if (!ct->rank) {
		for (int k = 0; k < KD_KEYS; k++)
			s->key[k] = kd_insert_key(ct, av, kd_keys[k]);
		ct_sync(ct, NULL);
		ct_put(ct, 1, s->key, sizeof(s->key));
	} else {
		ct_get(ct, NULL, 0, s->key, sizeof(s->key));
		CT_REFUSED(ct, kd_ops(ct, av)->insert_key(av, KD_FIRST, 3, none, 0));
	}
}

static void share_addresses(struct ct *ct, struct keyed *s, struct fid_av *av, fi_addr_t to[2][KD_KEYS])
{
	char name[2][CT_NAME];

	memcpy(name[ct->rank], s->e.name, CT_NAME);
	if (ct->rank) {
		ct_put(ct, 0, s->e.name, CT_NAME);
		ct_get(ct, NULL, 0, to, 2 * sizeof(to[0]));
	} else {
		ct_get(ct, NULL, 1, name[1], CT_NAME);
		for (int n = 0; n < 2 * KD_KEYS; n++)
			to[n / KD_KEYS][n % KD_KEYS] =
				kd_insert(ct, av, name[n / KD_KEYS], s->key[n % KD_KEYS]);
		ct_put(ct, 1, to, 2 * sizeof(to[0]));
	}
}

static void by_each_key(struct ct *ct, struct keyed *s, fi_addr_t to[2][KD_KEYS])
{
	uint64_t in[KD_KEYS] = { 0 };

	for (int k = 0; k < KD_KEYS; k++)
		CT_POST(&s->e, kd_trecv(&s->e, &in[1 - k], 8, s->key[1 - k], 0, UINT64_MAX, FI_COMPLETION));
	ct_sync(ct, &s->e);
	for (int k = 0; k < KD_KEYS; k++)
		kd_say(&s->e, to[!ct->rank][k], (unsigned)k);
	for (int k = 0; k < KD_KEYS; k++)
		kd_got(ct, &s->e, &in[k], (unsigned)k, to[!ct->rank][k]);
	ct_sync(ct, &s->e);
}

/* Nobody removes a key that an endpoint of either has. */
static void remove_key(struct ct *ct, struct keyed *s, struct fid_av *av)
{
	if (ct->rank)
		CT_REFUSED(ct, fi_av_remove(av, &s->key[0], 1, FI_AUTH_KEY));
	else
		CT_EQ(ct, fi_av_remove(av, &s->key[0], 1, FI_AUTH_KEY), -FI_EBUSY);
	ct_sync(ct, &s->e);
	if (!ct->rank) {
		CT_OK(ct, fi_close(&s->e.ep->fid));
		/* rank 1 has it */
		CT_EQ(ct, fi_av_remove(av, &s->key[0], 1, FI_AUTH_KEY), -FI_EBUSY);
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
		CT_OK(ct, fi_av_remove(av, &s->key[0], 1, FI_AUTH_KEY));
		ct_sync(ct, NULL);
	} else {
		ct_sync(ct, NULL);
		CT_OK(ct, fi_close(&s->e.ep->fid));
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
	}
}

/*
 * Rank 0 writes keys and addresses into the AV, rank 1 only reads it; both talk, with both
 * keys, by the same numbers.
 */
static void shared_av(struct ct *ct)
{
	const struct ct_want want = { .caps = KD_DIRECTED };
	char text[64], key[CT_NAME];
	struct fid_av *av, *none;
	fi_addr_t to[2][KD_KEYS];
	struct keyed s;
	size_t size;
	int rc;

	name_of(ct, text, sizeof(text));
	kd_open(ct, &s, &want, KD_KEYS);
	if (ct->rank)
		ct_sync(ct, NULL);
	rc = open_named(&s, text, ct->rank ? FI_READ : 0, &av);
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_av_open refuses a name: %s", fi_strerror(-rc));
	CT_OK(ct, rc);
	use_av(ct, &s, av);
	share_keys(ct, &s, av);
	ct_ep_enable(&s.e);
	share_addresses(ct, &s, av, to);
	by_each_key(ct, &s, to);
	remove_key(ct, &s, av);
	size = sizeof(text); /* addresses were inserted with it */
	CT_OK(ct, kd_ops(ct, av)->lookup_key(av, to[0][0], key, &size));
	CT_TRUE(ct, size == strlen(kd_keys[0]) && !memcmp(key, kd_keys[0], size));
	CT_REFUSED(ct, kd_ops(ct, av)->lookup_key(av, s.key[0], key, &size));
	CT_REFUSED(ct, open_named(&s, "a name that nobody has", FI_READ, &none));
	kd_close(ct, &s);
}

const struct ct_case ct_keyed_share[] = {
	{ "M20", "auth-shared-context", CT_TWO(shared) },
	{ "M20", "auth-shared-context-buffered", CT_TWO(shared), .arg = 1 },
	{ "M20", "auth-scalable", CT_TWO(scaled) },
	{ "M20", "auth-scalable-buffered", CT_TWO(scaled), .arg = 1 },
	{ "M20", "auth-groups", CT_THREE(group), .arg = 0 },
	{ "M20", "auth-groups-without", CT_THREE(group), .arg = 1 },
	{ "M20", "auth-shared-av", CT_TWO(shared_av) },
	{ 0 },
};
