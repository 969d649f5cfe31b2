/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Shared receive contexts and scalable endpoints, fi_endpoint(3), with what changes how messages
 * are received: FI_BUFFERED_RECV, FI_VARIABLE_MSG and FI_MSG_PREFIX; and one-sided operations
 * through contexts. Rank 1 has two receivers, rank 0 sends to both.
 */
#include "region.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define BITS 1
#define PAIR_OF 2
#define LIMIT 1000
#define MOST 300000
#define TAG 0x77

enum how { /* ct_case.arg, a set */
	SCALABLE = 1 << 0,
	PREFIX = 1 << 1,
	BUFFERED = 1 << 2,
	VARIABLE = 1 << 3,
	TAGGED = 1 << 4,
	EARLY = 1 << 5, /* messages come before contexts are enabled */
};

struct share {
	struct ct *ct;
	uintptr_t how;
	struct ct_dom dom;
	struct fid_av *av;
	struct fid_ep *srx, *sep;
	/* rank 1: receivers with their CQs; rank 0: only the first, which sends */
	struct ct_ep e[PAIR_OF];
	struct ct_ep tx;       /* rank 1, scalable: a sender, for one-sided operations */
	fi_addr_t to[PAIR_OF]; /* rank 0 */
	size_t prefix;
};

static const size_t lens[] = { 0, 1, 64, LIMIT, LIMIT + 1, 20000, MOST };

static struct fi_info *find_info(struct share *s, struct ct_want *want)
{
	struct fi_info *hints, *list, *i;
	struct ct *ct = s->ct;

	want->mode = (s->how & PREFIX ? FI_MSG_PREFIX : 0) | (s->how & BUFFERED ? FI_BUFFERED_RECV : 0);
	want->caps |= (s->how & VARIABLE ? FI_VARIABLE_MSG : 0) | (s->how & SCALABLE ? FI_NAMED_RX_CTX : 0);
	hints = ct_hints(ct, want);
	if (s->how & SCALABLE)
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = PAIR_OF;
	if (ct_getinfo(ct, hints, &list))
		ct_unsupported(ct, "fi_getinfo refuses what is to be shared");
	fi_freeinfo(hints);
	for (i = list; i && (i->mode & want->mode) != want->mode;)
		i = i->next;
	if (!i)
		ct_unsupported(ct, "no info has the mode");
	i = fi_dupinfo(i);
	fi_freeinfo(list);
	return i;
}

static void cq_open(struct share *s, struct ct_ep *e)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };

	e->ct = s->ct;
	e->dom = &s->dom;
	e->av = s->av;
	CT_OK(s->ct, fi_cq_open(s->dom.domain, &attr, &e->txcq, NULL));
	e->rxcq = e->txcq;
}

static void limit(struct share *s, struct fid_ep *ep)
{
	size_t bytes = LIMIT, least = 16;

	if (!(s->how & (BUFFERED | VARIABLE)))
		return;
	CT_OK(s->ct, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &bytes, sizeof(bytes)));
	CT_OK(s->ct, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &least, sizeof(least)));
}

/* An endpoint: the sender, or one that shares. */
static void plain_open(struct share *s, struct ct_ep *e)
{
	struct ct *ct = s->ct;

	cq_open(s, e);
	CT_OK(ct, fi_endpoint(s->dom.domain, s->dom.info, &e->ep, NULL));
	CT_OK(ct, fi_ep_bind(e->ep, &s->av->fid, 0));
	CT_OK(ct, fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | FI_RECV));
	if (s->srx)
		CT_OK(ct, fi_ep_bind(e->ep, &s->srx->fid, 0));
	ct_ep_enable(e);
}

static void srx_open(struct share *s)
{
	struct fi_rx_attr attr = *s->dom.info->rx_attr;
	int rc = fi_srx_context(s->dom.domain, &attr, &s->srx, NULL);

	if (rc == -FI_ENOSYS)
		ct_unsupported(s->ct, "fi_srx_context: %s", fi_strerror(-rc));
	CT_OK(s->ct, rc);
	limit(s, s->srx);
	for (int i = 0; i < PAIR_OF; i++)
		plain_open(s, &s->e[i]);
	if (s->how & (BUFFERED | VARIABLE)) {
		size_t value = 5;

		CT_REFUSED(s->ct, fi_setopt(&s->srx->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &value,
					    sizeof(value))); /* it is in use */
		CT_REFUSED(s->ct, fi_recv(s->e[0].ep, &value, 1, NULL, FI_ADDR_UNSPEC, NULL));
	}
}

static void ctx_open(struct share *s, struct ct_ep *e, int index, bool sends)
{
	struct ct *ct = s->ct;

	cq_open(s, e);
	CT_OK(ct, sends ? fi_tx_context(s->sep, index, NULL, &e->ep, NULL)
			: fi_rx_context(s->sep, index, NULL, &e->ep, NULL));
	CT_OK(ct, fi_ep_bind(e->ep, &e->txcq->fid, sends ? FI_TRANSMIT : FI_RECV));
	if (!sends)
		limit(s, e->ep);
	if (sends || !(s->how & EARLY))
		CT_OK(ct, fi_enable(e->ep));
}

static void sep_open(struct share *s)
{
	size_t len = CT_NAME;

	CT_OK(s->ct, fi_scalable_ep(s->dom.domain, s->dom.info, &s->sep, NULL));
	CT_OK(s->ct, fi_scalable_ep_bind(s->sep, &s->av->fid, 0));
	ctx_open(s, &s->tx, 0, true);
	for (int i = 0; i < PAIR_OF; i++)
		ctx_open(s, &s->e[i], i, false);
	CT_OK(s->ct, fi_enable(s->sep));
	CT_OK(s->ct, fi_getname(&s->sep->fid, s->e[0].name, &len));
}

static void meet(struct share *s)
{
	int names = s->how & SCALABLE ? 1 : PAIR_OF;
	struct ct *ct = s->ct;
	char name[CT_NAME];

	for (int i = 0; i < names; i++) {
		if (ct->rank) {
			ct_put(ct, 0, s->e[i].name, CT_NAME);
			continue;
		}
		ct_get(ct, NULL, 1, name, CT_NAME);
		s->to[i] = ct_insert(s->e, name);
	}
	if (ct->rank) {
		ct_get(ct, NULL, 0, name, CT_NAME);
		s->to[0] = ct_insert(s->e, name);
	} else {
		ct_put(ct, 1, s->e[0].name, CT_NAME);
		if (s->how & SCALABLE)
			s->to[1] = fi_rx_addr(s->to[0], 1, BITS);
	}
	ct_sync(ct, NULL);
}

static void begin(struct ct *ct, struct share *s, uint64_t caps)
{
	struct ct_want want = { .caps = caps, .msg_order = FI_ORDER_SAS };
	struct fi_av_attr av = { .count = 4 };

	memset(s, 0, sizeof(*s));
	s->ct = ct;
	s->how = ct->cs->arg;
	s->dom.ct = ct;
	s->dom.info = find_info(s, &want);
	s->dom.want = want;
	s->prefix = s->how & PREFIX ? s->dom.info->ep_attr->msg_prefix_size : 0;
	CT_OK(ct, fi_fabric(s->dom.info->fabric_attr, &s->dom.fabric, NULL));
	CT_OK(ct, fi_domain(s->dom.fabric, s->dom.info, &s->dom.domain, NULL));
	av.rx_ctx_bits = !ct->rank && s->how & SCALABLE ? BITS : 0;
	CT_OK(ct, fi_av_open(s->dom.domain, &av, &s->av, NULL));
	if (!ct->rank) {
		s->dom.info->ep_attr->tx_ctx_cnt = s->dom.info->ep_attr->rx_ctx_cnt = 1;
		plain_open(s, s->e);
	} else if (s->how & SCALABLE) {
		sep_open(s);
	} else {
		srx_open(s);
	}
	meet(s);
}

static void shut(struct ct_ep *e)
{
	if (!e->ep)
		return;
	CT_OK(e->ct, fi_close(&e->ep->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
	free(e->stash);
}

static void end(struct share *s)
{
	struct ct *ct = s->ct;

	ct_sync(ct, s->e);
	for (int i = 0; i < PAIR_OF; i++)
		shut(&s->e[i]);
	shut(&s->tx);
	if (s->srx)
		CT_OK(ct, fi_close(&s->srx->fid));
	if (s->sep)
		CT_OK(ct, fi_close(&s->sep->fid));
	CT_OK(ct, fi_close(&s->av->fid));
	ct_close(&s->dom);
}

/* Where the buffers of receiver i are posted, and its messages claimed. */
static struct fid_ep *desk(const struct share *s, int i)
{
	return s->srx ? s->srx : s->e[i].ep;
}

static void send_to(struct share *s, int i, const void *buf, size_t len, uint64_t data)
{
	struct ct_ep *e = s->e;

	if (s->how & TAGGED)
		CT_POST(e, fi_tsenddata(e->ep, buf, len + s->prefix, NULL, data, s->to[i], TAG, CTX(1)));
	else
		CT_POST(e, fi_senddata(e->ep, buf, len + s->prefix, NULL, data, s->to[i], CTX(1)));
}

static ssize_t take(struct share *s, int i, struct fi_recv_context *c, void *buf, uint64_t flags)
{
	struct iovec iov = { buf, MOST };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = c };
	struct fi_msg_tagged t = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = c };

	return s->how & TAGGED ? fi_trecvmsg(desk(s, i), &t, flags) : fi_recvmsg(desk(s, i), &m, flags);
}

/*
 * A message is handed over at receiver i: told there, and given back where buffers would be posted.
 */
static void told(struct share *s, int i, size_t len, uint64_t seed, char *buf)
{
	struct fi_recv_context *context;
	struct ct *ct = s->ct;
	struct ct_comp c;

	if (s->how & TAGGED)
		CT_POST(&s->e[i], fi_trecv(desk(s, i), NULL, 7, NULL, FI_ADDR_UNSPEC, TAG, 0, CTX(5)));
	ct_any(&s->e[i], &c);
	CT_EQ(ct, c.err, 0);
	context = c.ctx;
	CT_TRUE(ct, context->ep == (s->how & TAGGED ? NULL : desk(s, i)));
	CT_TRUE(ct, context->context == (s->how & TAGGED ? CTX(5) : NULL));
	CT_EQ(ct, c.len, len);
	CT_EQ(ct, c.data, seed);
	CT_EQ(ct, !!(c.flags & FI_MORE), len > LIMIT);
	ct_verify(ct, c.buf, len > LIMIT ? 16 : len, seed, "handed over");
	if (seed & 1) {
		CT_OK(ct, take(s, i, context, NULL, FI_DISCARD));
		CT_REFUSED(ct, take(s, i, context, buf, FI_CLAIM));
		return;
	}
	context->context = CTX(6);
	CT_POST(&s->e[i], take(s, i, context, buf, FI_CLAIM));
	ct_any(&s->e[i], &c);
	CT_EQ(ct, c.err, 0);
	CT_TRUE(ct, c.ctx == CTX(6) && c.flags & FI_CLAIM);
	CT_EQ(ct, c.len, len);
	ct_verify(ct, buf, len, seed, "claimed");
}

static void handed_over(struct ct *ct)
{
	char *buf = ct_alloc(ct, MOST);
	uint64_t seed = 0;
	struct share s;

	begin(ct, &s, FI_MSG | FI_TAGGED);
	for (size_t k = 0; k < 2 * CT_COUNT(lens); k++) {
		size_t len = lens[k / 2];

		for (int i = 0; i < PAIR_OF; i++, seed++) {
			ct_fill(buf, len, seed);
			if (!ct->rank)
				send_to(&s, i, buf, len, seed);
			if (!seed && s.how & EARLY) {
				ct_sync(ct, ct->rank ? &s.tx : s.e);
				ct_idle(ct->rank ? &s.tx : s.e, 50);
				for (int n = 0; ct->rank && n < PAIR_OF; n++)
					CT_OK(ct, fi_enable(s.e[n].ep));
			}
			if (ct->rank)
				told(&s, i, len, seed, buf);
			else
				ct_done(s.e, CTX(1));
			ct_sync(ct, s.e[i].ep ? &s.e[i] : s.e);
		}
	}
	for (int i = 0; ct->rank && i < PAIR_OF; i++)
		ct_quiet(&s.e[i], 20, "what has been given back");
	end(&s);
	free(buf);
}

/* The space in front of every buffer, counted wherever the message comes out. */
static void prefixed(struct ct *ct)
{
	static const size_t lengths[] = { 0, 1, 64, 5000, 16000 };
	char *buf = ct_alloc(ct, MOST);
	struct ct_comp c;
	struct share s;

	begin(ct, &s, FI_MSG | FI_TAGGED);
	for (size_t k = 0; k < CT_COUNT(lengths); k++)
		for (int i = 0; i < PAIR_OF; i++) {
			size_t len = lengths[k];

			if (ct->rank && s.how & TAGGED)
				CT_OK(ct,
				      fi_trecv(desk(&s, i), buf, MOST, NULL, FI_ADDR_UNSPEC, TAG, 0, CTX(5)));
			else if (ct->rank)
				CT_OK(ct, fi_recv(desk(&s, i), buf, MOST, NULL, FI_ADDR_UNSPEC, CTX(5)));
			ct_sync(ct, s.e[i].ep ? &s.e[i] : s.e);
			if (!ct->rank) {
				ct_fill(buf + s.prefix, len, k);
				send_to(&s, i, buf, len, k);
				ct_done(s.e, CTX(1));
			} else {
				ct_any(&s.e[i], &c);
				CT_EQ(ct, c.err, 0);
				CT_EQ(ct, c.len, len + s.prefix);
				CT_EQ(ct, c.data, k);
				ct_verify(ct, buf + s.prefix, len, k, "behind a prefix");
			}
			if (ct->rank && s.prefix)
				CT_REFUSED(ct, fi_recv(desk(&s, i), buf, s.prefix - 1, NULL, FI_ADDR_UNSPEC,
						       CTX(5)));
		}
	end(&s);
	free(buf);
}

/* Reads, writes and atomics: from a sender of a scalable endpoint, and at any of its receivers. */
static void one_sided(struct ct *ct)
{
	struct {
		uint64_t addr, key;
	} at[2], mine;
	uint64_t local[8], *mem = ct_alloc(ct, 4096), key;
	struct fid_mr *mr;
	struct ct_ep *tx;
	struct share s;

	begin(ct, &s, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC);
	tx = ct->rank ? &s.tx : s.e;
	key = 70 + (uint64_t)ct->rank;
	CT_OK(ct, fi_mr_reg(s.dom.domain, mem, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &mr, NULL));
	mine.key = fi_mr_key(mr);
	mine.addr = s.dom.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem : 0;
	ct_put(ct, !ct->rank, &mine, sizeof(mine));
	ct_get(ct, tx, !ct->rank, &at[0], sizeof(at[0]));
	for (int i = 0; i < (ct->rank ? 1 : PAIR_OF); i++) {
		fi_addr_t to = s.to[i];
		uint64_t base = at[0].addr + (uint64_t)i * 64, one = 1;

		memset(local, 0x5a, sizeof(local));
		CT_POST(tx, fi_write(tx->ep, local, 64, NULL, to, base, at[0].key, CTX(1)));
		ct_done(tx, CTX(1));
		memset(local, 0, sizeof(local));
		CT_POST(tx, fi_read(tx->ep, local, 64, NULL, to, base, at[0].key, CTX(2)));
		ct_done(tx, CTX(2));
		CT_TRUE(ct, ct_untouched((unsigned char *)local, 64, 0x5a));
		CT_POST(tx, fi_fetch_atomic(tx->ep, &one, 1, NULL, local, NULL, to, base, at[0].key,
					    FI_UINT64, FI_SUM, CTX(3)));
		ct_done(tx, CTX(3));
		CT_EQ(ct, local[0], 0x5a5a5a5a5a5a5a5a);
		CT_POST(tx, fi_read(tx->ep, local, 8, NULL, to, base, at[0].key, CTX(4)));
		ct_done(tx, CTX(4));
		CT_EQ(ct, local[0], 0x5a5a5a5a5a5a5a5b);
	}
	ct_sync(ct, tx);
	CT_EQ(ct, mem[0], 0x5a5a5a5a5a5a5a5b);
	CT_OK(ct, fi_close(&mr->fid));
	end(&s);
	free(mem);
}

#define EACH(row, name, f, how) \
	{ row, name, CT_TWO(f), .arg = (how) }, \
	{ \
		row, name "-tagged", CT_TWO(f), .arg = (how) | TAGGED \
	}

const struct ct_case ct_share[] = {
	EACH("SRX", "srx-buffered", handed_over, BUFFERED),
	EACH("SRX", "srx-variable", handed_over, VARIABLE),
	EACH("SRX", "srx-prefix", prefixed, PREFIX),
	EACH("SEP", "sep-buffered", handed_over, SCALABLE | BUFFERED),
	EACH("SEP", "sep-buffered-early", handed_over, SCALABLE | BUFFERED | EARLY),
	EACH("SEP", "sep-variable", handed_over, SCALABLE | VARIABLE),
	EACH("SEP", "sep-prefix", prefixed, SCALABLE | PREFIX),
	{ "SEP", "sep-one-sided", CT_TWO(one_sided), .arg = SCALABLE },
	{ 0 },
};
