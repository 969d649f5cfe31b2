/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Scalable endpoints, fi_endpoint(3), and addresses of their receive contexts,
 * fi_av(3). Rank 1 has one.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define CTXS 4
#define BITS 2
#define LEN 64
#define BIG (256u << 10)

struct scalable {
	struct ct *ct;
	struct ct_dom dom;
	struct fid_ep *sep;
	struct fid_av *av;
	struct ct_ep tx[CTXS], rx[CTXS]; /* contexts of rank 1, each with its CQ */
	struct ct_ep e;			 /* rank 0: an ordinary endpoint */
	fi_addr_t peer;			 /* the other rank */
};

static struct fi_info *sep_info(struct ct *ct, uint64_t caps)
{
	struct ct_want want = { .caps = caps, .ep_key = strcmp(ct->cs->row, "M20") ? NULL : "the job" };
	struct fi_info *hints = ct_hints(ct, &want), *info;

	hints->ep_attr->tx_ctx_cnt = CTXS;
	hints->ep_attr->rx_ctx_cnt = CTXS;
	if (ct_getinfo(ct, hints, &info))
		ct_unsupported(ct, "fi_getinfo refuses %d contexts", CTXS);
	fi_freeinfo(hints);
	CT_TRUE(ct, info->domain_attr->max_ep_tx_ctx >= CTXS && info->domain_attr->max_ep_rx_ctx >= CTXS);
	CT_EQ(ct, info->ep_attr->tx_ctx_cnt, CTXS);
	CT_EQ(ct, info->ep_attr->rx_ctx_cnt, CTXS);
	return info;
}

static void open_domain(struct ct *ct, struct ct_dom *dom, struct fi_info *info)
{
	memset(dom, 0, sizeof(*dom));
	dom->ct = ct;
	dom->info = info;
	CT_OK(ct, fi_fabric(info->fabric_attr, &dom->fabric, NULL));
	CT_OK(ct, fi_domain(dom->fabric, info, &dom->domain, NULL));
}

/* A context with a CQ; tx: which way. */
static void open_ctx(struct scalable *s, struct ct_ep *e, int index, bool tx, bool enable)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct ct *ct = s->ct;

	memset(e, 0, sizeof(*e));
	e->ct = ct;
	e->dom = &s->dom;
	e->av = s->av;
	CT_OK(ct, fi_cq_open(s->dom.domain, &cq, &e->txcq, NULL));
	e->rxcq = e->txcq;
	if (tx)
		CT_OK(ct, fi_tx_context(s->sep, index, NULL, &e->ep, NULL));
	else
		CT_OK(ct, fi_rx_context(s->sep, index, NULL, &e->ep, NULL));
	CT_OK(ct, fi_ep_bind(e->ep, &e->txcq->fid, tx ? FI_TRANSMIT : FI_RECV));
	if (enable)
		CT_OK(ct, fi_enable(e->ep));
}

static void close_ctx(struct ct_ep *e)
{
	CT_OK(e->ct, fi_close(&e->ep->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
	free(e->stash);
}

static void open_sep(struct scalable *s)
{
	int rc = fi_scalable_ep(s->dom.domain, s->dom.info, &s->sep, NULL);

	if (rc == -FI_ENOSYS)
		ct_unsupported(s->ct, "fi_scalable_ep: %s", fi_strerror(-rc));
	CT_OK(s->ct, rc);
	CT_OK(s->ct, fi_scalable_ep_bind(s->sep, &s->av->fid, 0));
}

static void exchange(struct scalable *s)
{
	struct ct *ct = s->ct;
	struct ct_ep *any = ct->rank ? &s->tx[0] : &s->e;
	char name[CT_NAME];
	size_t len = sizeof(name);

	if (ct->rank) {
		CT_OK(ct, fi_enable(s->sep));
		CT_OK(ct, fi_getname(&s->sep->fid, name, &len));
		ct_put(ct, 0, name, CT_NAME);
	} else {
		ct_put(ct, 1, s->e.name, CT_NAME);
	}
	ct_get(ct, NULL, !ct->rank, name, CT_NAME);
	s->peer = ct_insert(any, name);
	ct_sync(ct, NULL);
}

/* enable: have all of rank 1's contexts enabled */
static void begin(struct ct *ct, struct scalable *s, uint64_t caps, bool enable)
{
	struct fi_av_attr av = { .count = 4, .rx_ctx_bits = ct->rank ? 0 : BITS };
	int i;

	memset(s, 0, sizeof(*s));
	s->ct = ct;
	open_domain(ct, &s->dom, sep_info(ct, caps));
	s->dom.want.caps = caps;
	CT_OK(ct, fi_av_open(s->dom.domain, &av, &s->av, NULL));
	if (ct->rank) {
		open_sep(s);
		for (i = 0; i < CTXS; i++) {
			open_ctx(s, &s->tx[i], i, true, enable);
			open_ctx(s, &s->rx[i], i, false, enable);
		}
	} else {
		s->dom.info->ep_attr->tx_ctx_cnt = s->dom.info->ep_attr->rx_ctx_cnt = 1;
		ct_ep_open(&s->dom, &s->e);
		CT_OK(ct, fi_close(&s->e.ep->fid)); /* with an AV that has room for contexts */
		CT_OK(ct, fi_close(&s->e.av->fid));
		s->e.av = s->av;
		CT_OK(ct, fi_endpoint(s->dom.domain, s->dom.info, &s->e.ep, NULL));
		CT_OK(ct, fi_ep_bind(s->e.ep, &s->e.av->fid, 0));
		CT_OK(ct, fi_ep_bind(s->e.ep, &s->e.txcq->fid, FI_TRANSMIT | FI_RECV));
		ct_ep_enable(&s->e);
	}
	exchange(s);
}

static void end(struct scalable *s)
{
	struct ct *ct = s->ct;
	int i;

	ct_sync(ct, ct->rank ? &s->rx[0] : &s->e);
	if (ct->rank) {
		CT_EQ(ct, fi_close(&s->sep->fid), -FI_EBUSY);
		for (i = 0; i < CTXS; i++) {
			close_ctx(&s->tx[i]);
			close_ctx(&s->rx[i]);
		}
		CT_EQ(ct, fi_close(&s->av->fid), -FI_EBUSY);
		CT_OK(ct, fi_close(&s->sep->fid));
		CT_OK(ct, fi_close(&s->av->fid));
	} else {
		ct_ep_close(&s->e);
	}
	ct_close(&s->dom);
}

static void send_to(struct scalable *s, fi_addr_t to, const void *buf, size_t len)
{
	CT_POST(&s->e, fi_tsend(s->e.ep, buf, len, NULL, to, 9, CTX(1)));
	ct_done(&s->e, CTX(1));
}

/*
 * Each context gets what was sent to it, and no other does. Without one in the address it
 * is the first. arg: bytes
 */
static void receive(struct ct *ct)
{
	const size_t len = ct->cs->arg;
	struct scalable s;
	char *buf = ct_alloc(ct, CTXS * len);
	int i;

	begin(ct, &s, FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX, true);
	for (i = 0; i < CTXS && ct->rank; i++)
		CT_POST(&s.rx[i],
			fi_trecv(s.rx[i].ep, buf + i * len, len, NULL, FI_ADDR_UNSPEC, 9, 0, CTX(i)));
	ct_sync(ct, ct->rank ? &s.rx[0] : &s.e);
	for (i = CTXS - 1; i >= 0; i--) {
		if (ct->rank) {
			CT_EQ(ct, ct_done(&s.rx[i], CTX(i)), len);
			ct_verify(ct, buf + i * len, len, (uint64_t)i, "receive context");
		} else {
			ct_fill(buf, len, (uint64_t)i);
			send_to(&s, i ? fi_rx_addr(s.peer, i, BITS) : s.peer, buf, len);
		}
	}
	for (i = 0; i < CTXS && ct->rank; i++)
		ct_quiet(&s.rx[i], 5, "one message each");
	end(&s);
	free(buf);
}

/* Whatever context sends, it comes from the endpoint's one address. */
static void source(struct ct *ct)
{
	struct scalable s;
	struct ct_comp c;
	char buf[LEN];
	int i;

	begin(ct, &s, FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV, true);
	for (i = 0; i < CTXS; i++) {
		ct_fill(buf, LEN, (uint64_t)i);
		if (ct->rank == 0) {
			fi_addr_t from = i % 2 ? fi_rx_addr(s.peer, i, BITS) : s.peer;

			CT_POST(&s.e, fi_recv(s.e.ep, buf, LEN, NULL, from, buf));
			ct_sync(ct, &s.e);
			ct_any(&s.e, &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.src, s.peer);
			ct_verify(ct, buf, LEN, (uint64_t)i, "sent by a context");
		} else {
			ct_sync(ct, &s.tx[0]);
			CT_POST(&s.tx[i], fi_send(s.tx[i].ep, buf, LEN, NULL, s.peer, CTX(i + 1)));
			ct_done(&s.tx[i], CTX(i + 1));
		}
		ct_sync(ct, ct->rank ? &s.tx[0] : &s.e);
	}
	end(&s);
}

/* The endpoint is enabled, its contexts are not: what is sent to them waits. */
static void early(struct ct *ct)
{
	struct scalable s;
	char buf[LEN];
	int i;

	begin(ct, &s, FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX, false);
	for (i = 0; i < CTXS && !ct->rank; i++) {
		ct_fill(buf, LEN, (uint64_t)i);
		send_to(&s, fi_rx_addr(s.peer, i, BITS), buf, LEN);
	}
	ct_sync(ct, ct->rank ? &s.tx[0] : &s.e);
	for (i = 0; i < CTXS && ct->rank; i++) {
		CT_REFUSED(ct, fi_trecv(s.rx[i].ep, buf, LEN, NULL, FI_ADDR_UNSPEC, 9, 0, CTX(i)));
		CT_OK(ct, fi_enable(s.rx[i].ep));
		CT_POST(&s.rx[i], fi_trecv(s.rx[i].ep, buf, LEN, NULL, FI_ADDR_UNSPEC, 9, 0, CTX(i)));
		ct_done(&s.rx[i], CTX(i));
		ct_verify(ct, buf, LEN, (uint64_t)i, "waited for its context");
	}
	end(&s);
}

/* A context goes and comes back: what it had posted is gone, and messages find the new one. */
static void reopen(struct ct *ct)
{
	struct scalable s;
	char old[LEN], buf[LEN];

	begin(ct, &s, FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX, true);
	ct_fill(buf, LEN, 1);
	if (ct->rank) {
		memset(old, 0x55, LEN);
		CT_POST(&s.rx[2], fi_trecv(s.rx[2].ep, old, LEN, NULL, FI_ADDR_UNSPEC, 9, 0, old));
		close_ctx(&s.rx[2]);
		open_ctx(&s, &s.rx[2], 2, false, true);
		ct_sync(ct, NULL);
		memset(buf, 0, LEN);
		CT_POST(&s.rx[2], fi_trecv(s.rx[2].ep, buf, LEN, NULL, FI_ADDR_UNSPEC, 9, 0, buf));
		ct_done(&s.rx[2], buf);
		ct_verify(ct, buf, LEN, 1, "context that came back");
		CT_TRUE(ct, ct_untouched((unsigned char *)old, LEN, 0x55));
	} else {
		ct_sync(ct, NULL);
		send_to(&s, fi_rx_addr(s.peer, 2, BITS), buf, LEN);
	}
	end(&s);
}

/*
 * An ordinary endpoint has no further contexts: what is sent to one fails, and nothing else does.
 */
static void nobody(struct ct *ct)
{
	struct fi_av_attr attr = { .count = 4, .rx_ctx_bits = BITS };
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct fid_av *av;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char name[CT_NAME], buf[LEN] = { 0 };
	size_t len = sizeof(name);

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank == 0) {
		CT_OK(ct, fi_av_lookup(e.av, e.addr[1], name, &len));
		CT_OK(ct, fi_close(&e.ep->fid));
		if (fi_av_open(dom.domain, &attr, &av, NULL))
			ct_unsupported(ct, "fi_av_open refuses rx_ctx_bits");
		CT_OK(ct, fi_endpoint(dom.domain, dom.info, &e.ep, NULL));
		CT_OK(ct, fi_ep_bind(e.ep, &av->fid, 0));
		CT_OK(ct, fi_ep_bind(e.ep, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
		CT_OK(ct, fi_enable(e.ep));
		CT_EQ(ct, fi_av_insert(av, name, 1, &addr, 0, NULL), 1);
		CT_POST(&e, fi_tsend(e.ep, buf, LEN, NULL, fi_rx_addr(addr, 3, BITS), 9, CTX(3)));
		ct_any(&e, &c);
		CT_TRUE(ct, c.err && c.ctx == CTX(3));
		CT_POST(&e, fi_tsend(e.ep, buf, LEN, NULL, addr, 9, CTX(4)));
		ct_done(&e, CTX(4));
		CT_OK(ct, fi_close(&e.ep->fid));
		CT_OK(ct, fi_close(&av->fid));
		CT_OK(ct, fi_endpoint(dom.domain, dom.info, &e.ep, NULL));
	} else {
		ct_trecv(&e, buf, LEN, 9, 0, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

static void bad(struct ct *ct)
{
	struct fi_av_attr av = { .count = 4 }, bits = { .rx_ctx_bits = 63 };
	struct fid_ep *ctx = NULL, *second = NULL;
	struct scalable s = { .ct = ct };
	struct fid_av *other = NULL;
	char buf[LEN] = { 0 };

	open_domain(ct, &s.dom, sep_info(ct, FI_MSG | FI_TAGGED));
	CT_OK(ct, fi_av_open(s.dom.domain, &av, &s.av, NULL));
	CT_REFUSED(ct, fi_av_open(s.dom.domain, &bits, &other, NULL));
	open_sep(&s);
	CT_REFUSED(ct, fi_scalable_ep_bind(s.sep, &s.av->fid, 0));
	CT_REFUSED(ct, fi_tx_context(s.sep, -1, NULL, &ctx, NULL));
	CT_REFUSED(ct, fi_tx_context(s.sep, CTXS, NULL, &ctx, NULL));
	CT_REFUSED(ct, fi_rx_context(s.sep, CTXS, NULL, &ctx, NULL));
	CT_OK(ct, fi_rx_context(s.sep, 1, NULL, &ctx, NULL));
	CT_REFUSED(ct, fi_rx_context(s.sep, 1, NULL, &second, NULL));
	CT_REFUSED(ct, fi_enable(ctx)); /* it has no CQ */
	CT_REFUSED(ct, fi_ep_bind(ctx, &s.av->fid, 0));
	CT_REFUSED(ct, fi_send(s.sep, buf, LEN, NULL, 0, NULL));
	CT_REFUSED(ct, fi_recv(s.sep, buf, LEN, NULL, 0, NULL));
	CT_EQ(ct, fi_close(&s.sep->fid), -FI_EBUSY);
	CT_OK(ct, fi_close(&ctx->fid));
	CT_OK(ct, fi_close(&s.sep->fid));
	CT_REFUSED(ct, fi_endpoint(s.dom.domain, s.dom.info, &ctx, NULL)); /* of several contexts */
	CT_OK(ct, fi_close(&s.av->fid));
	ct_close(&s.dom);
}

/* It has the name that it was given before it is enabled: fi_cm(3). */
static void named(struct ct *ct)
{
	struct fi_av_attr av = { .count = 4 };
	struct scalable s = { .ct = ct };
	char name[CT_NAME] = "", again[CT_NAME] = "";
	size_t len = sizeof(name), size = sizeof(again);

	open_domain(ct, &s.dom, sep_info(ct, FI_MSG | FI_TAGGED));
	CT_OK(ct, fi_av_open(s.dom.domain, &av, &s.av, NULL));
	open_sep(&s);
	CT_OK(ct, fi_enable(s.sep));
	CT_OK(ct, fi_getname(&s.sep->fid, name, &len));
	CT_OK(ct, fi_close(&s.sep->fid));
	open_sep(&s);
	CT_OK(ct, fi_setname(&s.sep->fid, name, len));
	CT_OK(ct, fi_getname(&s.sep->fid, again, &size));
	CT_TRUE(ct, size == len && !memcmp(again, name, len));
	CT_OK(ct, fi_enable(s.sep));
	CT_OK(ct, fi_getname(&s.sep->fid, again, &size));
	CT_TRUE(ct, size == len && !memcmp(again, name, len));
	CT_OK(ct, fi_close(&s.sep->fid));
	CT_OK(ct, fi_close(&s.av->fid));
	ct_close(&s.dom);
}

const struct ct_case ct_sep[] = { { "SEP", "receive", { receive, receive }, .arg = LEN },
				  { "SEP", "receive-long", { receive, receive }, .arg = BIG },
				  { "SEP", "source", { source, source } },
				  { "SEP", "early", { early, early } },
				  { "SEP", "reopen", { reopen, reopen } },
				  { "M20", "auth-scalable", { receive, receive }, .arg = LEN },
				  { "M20", "auth-scalable-source", { source, source } },
				  { "M20", "auth-scalable-early", { early, early } },
				  { "SEP", "nobody", { nobody, nobody } },
				  { "SEP", "bad", { bad } },
				  { "SEP", "name-assigned", { named } },
				  { 0 } };
