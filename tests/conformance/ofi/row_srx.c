/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Shared contexts, fi_endpoint(3). Rank 1 has endpoints that share one, rank 0 knows them all. */
#include "ct.h"

#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FEW 4
#define MANY 1000
#define LEN 64
#define BIG (256u << 10)

struct sharing {
	struct ct *ct;
	struct ct_dom dom;
	int count;
	struct ct_ep *e;   /* rank 1: those that share, each with its own CQ; rank 0: one */
	struct fid_av *av; /* rank 1: of all of them */
	struct fid_ep *srx;
	struct fid_stx *stx;
	fi_addr_t *to; /* rank 0 */
};

static void check_support(struct ct *ct, int rc, const char *what)
{
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "%s: %s", what, fi_strerror(FI_ENOSYS));
	CT_OK(ct, rc);
}

static void open_contexts(struct sharing *s)
{
	struct fi_rx_attr rx = *s->dom.info->rx_attr;
	struct fi_tx_attr tx = *s->dom.info->tx_attr;

	check_support(s->ct, fi_srx_context(s->dom.domain, &rx, &s->srx, NULL), "fi_srx_context");
	check_support(s->ct, fi_stx_context(s->dom.domain, &tx, &s->stx, NULL), "fi_stx_context");
}

/* One that shares; not enabled yet. cq NULL: of its own. */
static void open_one(struct sharing *s, struct ct_ep *e, struct fid_cq *cq)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 256 };
	struct ct *ct = s->ct;

	memset(e, 0, sizeof(*e));
	e->ct = ct;
	e->dom = &s->dom;
	e->av = s->av;
	if (!cq)
		CT_OK(ct, fi_cq_open(s->dom.domain, &attr, &cq, NULL));
	e->txcq = e->rxcq = cq;
	CT_OK(ct, fi_endpoint(s->dom.domain, s->dom.info, &e->ep, NULL));
	CT_OK(ct, fi_ep_bind(e->ep, &s->av->fid, 0));
	CT_OK(ct, fi_ep_bind(e->ep, &cq->fid, FI_TRANSMIT | FI_RECV | s->dom.want.rx_bind));
	CT_OK(ct, fi_ep_bind(e->ep, &s->srx->fid, 0));
	CT_OK(ct, fi_ep_bind(e->ep, &s->stx->fid, 0));
}

static void exchange_names(struct sharing *s)
{
	char name[CT_NAME];
	int i;

	for (i = 0; i < s->count; i++) {
		if (s->ct->rank == 1) {
			ct_put(s->ct, 0, s->e[i].name, CT_NAME);
			continue;
		}
		ct_get(s->ct, NULL, 1, name, CT_NAME);
		s->to[i] = ct_insert(s->e, name);
	}
	if (s->ct->rank == 1) {
		ct_get(s->ct, NULL, 0, name, CT_NAME);
		s->e->addr[0] = ct_insert(s->e, name);
	} else {
		ct_put(s->ct, 1, s->e->name, CT_NAME);
	}
	ct_sync(s->ct, NULL);
}

static void begin(struct ct *ct, struct sharing *s, const struct ct_want *want, int count, bool one_cq)
{
	struct fi_av_attr av = { .count = 16 };
	int i;

	memset(s, 0, sizeof(*s));
	s->ct = ct;
	s->count = count;
	s->e = ct_alloc(ct, count * sizeof(*s->e));
	s->to = ct_alloc(ct, count * sizeof(*s->to));
	ct_open(ct, &s->dom, want);
	if (ct->rank == 0) {
		ct_ep_open(&s->dom, s->e);
	} else {
		open_contexts(s);
		CT_OK(ct, fi_av_open(s->dom.domain, &av, &s->av, NULL));
		for (i = 0; i < count; i++) {
			open_one(s, &s->e[i], i && one_cq ? s->e[0].txcq : NULL);
			ct_ep_enable(&s->e[i]);
		}
	}
	exchange_names(s);
}

static void end(struct sharing *s)
{
	struct ct *ct = s->ct;
	int i;

	ct_sync(ct, s->e);
	if (ct->rank == 0) {
		ct_ep_close(s->e);
	} else {
		for (i = 0; i < s->count; i++)
			CT_OK(ct, fi_close(&s->e[i].ep->fid));
		CT_OK(ct, fi_close(&s->srx->fid));
		CT_OK(ct, fi_close(&s->stx->fid));
		for (i = 0; i < s->count; i++) {
			if (!i || s->e[i].txcq != s->e[0].txcq)
				CT_OK(ct, fi_close(&s->e[i].txcq->fid));
			free(s->e[i].stash);
		}
		CT_OK(ct, fi_close(&s->av->fid));
	}
	ct_close(&s->dom);
	free(s->e);
	free(s->to);
}

static void start_to(struct sharing *s, int i, const void *buf, size_t len, bool tagged)
{
	if (tagged)
		CT_POST(s->e, fi_tsend(s->e->ep, buf, len, NULL, s->to[i], 7, CTX(1)));
	else
		CT_POST(s->e, fi_send(s->e->ep, buf, len, NULL, s->to[i], CTX(1)));
}

static void send_to(struct sharing *s, int i, const void *buf, size_t len, bool tagged)
{
	start_to(s, i, buf, len, tagged);
	ct_done(s->e, CTX(1));
}

static void post(struct sharing *s, void *buf, size_t len, bool tagged)
{
	if (tagged)
		CT_POST(s->e, fi_trecv(s->srx, buf, len, NULL, FI_ADDR_UNSPEC, 7, 0, buf));
	else
		CT_POST(s->e, fi_recv(s->srx, buf, len, NULL, FI_ADDR_UNSPEC, buf));
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Buffers in order to whoever gets a message; the completion is that endpoint's. arg: bytes */
static void share(struct ct *ct)
{
	const size_t len = ct->cs->arg;
	struct sharing s;
	struct ct_comp c;
	char *buf = ct_alloc(ct, 8 * len);
	int i;

	begin(ct, &s, NULL, FEW, false);
	for (i = 0; i < 8; i++) {
		int to = (i * 3 + 1) % FEW;

		if (ct->rank == 1 && i < 4)
			post(&s, buf + i * len, len, i % 2);
		ct_sync(ct, s.e);
		if (ct->rank == 0) {
			ct_fill(buf, len, (uint64_t)i);
			start_to(&s, to, buf, len, i % 2);
		}
		ct_sync(ct, s.e);
		if (ct->rank == 1) {
			if (i >= 4)
				post(&s, buf + i * len, len, i % 2); /* it waits already */
			ct_any(&s.e[to], &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.len, len);
			CT_TRUE(ct, c.ctx == buf + i * len);
			ct_verify(ct, c.ctx, len, (uint64_t)i, "shared receive");
		} else {
			ct_done(s.e, CTX(1));
		}
	}
	end(&s);
	free(buf);
}

/* As many as there may be open files, and more: all of them receive. */
static void many(struct ct *ct)
{
	struct rlimit limit;
	struct sharing s;
	struct ct_comp c;
	char *buf = ct_alloc(ct, MANY * LEN);
	int i;

	CT_OK(ct, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 1024 < limit.rlim_max ? 1024 : limit.rlim_max;
	CT_OK(ct, setrlimit(RLIMIT_NOFILE, &limit));
	begin(ct, &s, NULL, MANY, true);
	for (i = 0; i < MANY && ct->rank == 1; i++)
		post(&s, buf + i * LEN, LEN, true);
	ct_sync(ct, s.e);
	for (i = 0; i < MANY; i++) {
		if (ct->rank == 0) {
			memcpy(buf, &i, sizeof(i));
			send_to(&s, i, buf, LEN, true);
		} else {
			ct_any(s.e, &c);
			CT_EQ(ct, c.err, 0);
			CT_TRUE(ct, c.ctx == buf + i * LEN);
			CT_EQ(ct, memcmp(c.ctx, &i, sizeof(i)), 0);
		}
	}
	end(&s);
	free(buf);
}

/* One buffer for the messages of all of them. */
static void multi(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV };
	char *buf = ct_alloc(ct, 4096), out[LEN];
	struct iovec iov = { buf, 4096 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf };
	struct sharing s;
	struct ct_comp c;
	int i;

	begin(ct, &s, &want, FEW, false);
	if (ct->rank == 1)
		CT_POST(s.e, fi_recvmsg(s.srx, &msg, FI_MULTI_RECV));
	ct_sync(ct, s.e);
	for (i = 0; i < FEW; i++) {
		if (ct->rank == 0) {
			ct_fill(out, LEN, (uint64_t)i);
			send_to(&s, i, out, LEN, false);
		} else {
			ct_any(&s.e[i], &c);
			CT_EQ(ct, c.err, 0);
			CT_TRUE(ct, (char *)c.buf >= buf && (char *)c.buf + LEN <= buf + 4096);
			ct_verify(ct, c.buf, LEN, (uint64_t)i, "part of a shared buffer");
		}
		ct_sync(ct, s.e);
	}
	end(&s);
	free(buf);
}

/* FI_SELECTIVE_COMPLETION of the endpoint decides where the receive does not. */
static void selective(struct ct *ct)
{
	struct ct_want want = { .rx_bind = FI_SELECTIVE_COMPLETION };
	char in[2][LEN], out[LEN] = { 0 };
	struct iovec iov = { in[1], LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in[1] };
	struct sharing s;
	struct ct_comp c;
	int i;

	begin(ct, &s, ct->rank == 1 ? &want : NULL, FEW, false);
	if (ct->rank == 1) {
		post(&s, in[0], LEN, false);
		CT_POST(s.e, fi_recvmsg(s.srx, &msg, FI_COMPLETION));
	}
	ct_sync(ct, s.e);
	for (i = 0; i < 2 && ct->rank == 0; i++)
		send_to(&s, 2, out, LEN, false);
	if (ct->rank == 1) {
		ct_any(&s.e[2], &c);
		CT_TRUE(ct, c.ctx == in[1]);
		ct_quiet(&s.e[2], 50, "a receive that did not ask for it");
	}
	end(&s);
}

static void directed(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	char in[LEN], out[LEN] = { 0 };
	struct sharing s;

	begin(ct, &s, &want, FEW, false);
	if (ct->rank == 1) {
		CT_POST(s.e, fi_recv(s.srx, in, LEN, NULL, s.e->addr[0], in));
		ct_sync(ct, s.e);
		ct_done(&s.e[3], in);
		CT_REFUSED(ct, fi_recv(s.srx, in, LEN, NULL, 4711, in));
	} else {
		ct_sync(ct, s.e);
		send_to(&s, 3, out, LEN, false);
	}
	end(&s);
}

/* Exactly one endpoint tells of the buffer, with this error. */
static void told_once(struct sharing *s, const void *buf, int err)
{
	struct ct_comp c;
	int told = 0;

	for (int i = 0; i < s->count; i++) {
		ct_idle(&s->e[i], 20);
		while (ct_poll(&s->e[i], &c)) {
			CT_EQ(s->ct, c.err, err);
			CT_TRUE(s->ct, c.ctx == buf);
			told++;
		}
	}
	CT_EQ(s->ct, told, 1);
}

/* What no endpoint has taken is told by one of them. */
static void cancel(struct ct *ct)
{
	char in[LEN];
	struct sharing s;

	begin(ct, &s, NULL, FEW, false);
	if (ct->rank == 1) {
		post(&s, in, LEN, false);
		CT_OK(ct, fi_cancel(&s.srx->fid, in));
		told_once(&s, in, FI_ECANCELED);
	}
	end(&s);
}

/*
 * A receive that is posted when a counter says so is told of as others are: by who takes it, and by
 * one of them where nobody has.
 */
static void triggered(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_TRIGGER };
	char in[LEN], out[LEN] = { 0 };
	struct iovec iov = { in, LEN };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in };
	struct fi_op_msg op = { .msg = msg, .flags = FI_COMPLETION };
	struct fi_deferred_work work = { .op_type = FI_OP_RECV, .threshold = 1, .op.msg = &op };
	struct fi_triggered_context when = { .event_type = FI_TRIGGER_THRESHOLD };
	struct fid_cntr *cntr;
	struct sharing s;

	begin(ct, &s, &want, FEW, false);
	if (ct->rank == 1) {
		CT_OK(ct, fi_cntr_open(s.dom.domain, NULL, &cntr, NULL));
		op.ep = s.srx;
		work.triggering_cntr = cntr;
		check_support(ct, fi_control(&s.dom.domain->fid, FI_QUEUE_WORK, &work), "FI_QUEUE_WORK");
		CT_OK(ct, fi_cntr_add(cntr, 1));
		ct_sync(ct, s.e);
		CT_EQ(ct, ct_done(&s.e[2], in), LEN);
		CT_OK(ct, fi_control(&s.dom.domain->fid, FI_QUEUE_WORK, &work));
		CT_OK(ct, fi_control(&s.dom.domain->fid, FI_CANCEL_WORK, &work));
		told_once(&s, in, FI_ECANCELED);
		when.trigger.threshold = (struct fi_trigger_threshold){ cntr, 9 };
		msg.context = &when;
		CT_OK(ct, fi_recvmsg(s.srx, &msg, FI_TRIGGER));
		CT_OK(ct, fi_cancel(&s.srx->fid, &when));
		told_once(&s, &when, FI_ECANCELED);
		CT_OK(ct, fi_close(&cntr->fid));
	} else {
		ct_sync(ct, s.e);
		send_to(&s, 2, out, LEN, false);
	}
	end(&s);
}

static ssize_t look(struct sharing *s, struct fi_context *ctx, struct iovec *iov, uint64_t flags)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 7, .context = ctx
	};

	return fi_trecvmsg(s->srx, &msg, flags);
}

/* A search that finds nothing may be told by any of them. */
static void any_of(struct sharing *s, struct ct_comp *c)
{
	double end = ct_deadline(s->e->ct);

	for (int i = 0; !ct_poll(&s->e[i], c); i = (i + 1) % FEW) {
		ct_late(s->e->ct, end, "a completion");
		ct_pause();
	}
}

/* Found: told by the endpoint that it came to; claimed and received through the shared context. */
static void peek(struct ct *ct)
{
	struct fi_context ctx;
	char in[LEN], out[LEN];
	struct iovec iov = { in, LEN };
	struct sharing s;
	struct ct_comp c;

	begin(ct, &s, NULL, FEW, false);
	ct_fill(out, LEN, 3);
	if (ct->rank == 0)
		send_to(&s, 2, out, LEN, true);
	ct_sync(ct, s.e);
	if (ct->rank == 1) {
		double late = ct_deadline(ct);

		do {
			ct_late(ct, late, "a peek to find its message");
			CT_OK(ct, look(&s, &ctx, &iov, FI_PEEK | FI_CLAIM));
			any_of(&s, &c);
		} while (c.err == FI_ENOMSG);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, LEN);
		CT_OK(ct, look(&s, &ctx, &iov, FI_CLAIM));
		ct_any(&s.e[2], &c);
		CT_EQ(ct, c.err, 0);
		ct_verify(ct, in, LEN, 3, "claimed through a shared context");
	}
	end(&s);
}

/* An endpoint goes, what is posted stays, and messages to the others still arrive. */
static void close_one(struct ct *ct)
{
	char in[LEN], out[LEN] = { 0 };
	struct sharing s;

	begin(ct, &s, NULL, FEW, false);
	if (ct->rank == 1) {
		post(&s, in, LEN, false);
		CT_OK(ct, fi_close(&s.e[0].ep->fid));
		ct_sync(ct, NULL);
		ct_done(&s.e[1], in);
		open_one(&s, &s.e[0], s.e[0].txcq);
	} else {
		ct_sync(ct, NULL);
		send_to(&s, 1, out, LEN, false);
	}
	end(&s);
}

/* Connected endpoints share as others do; what is posted outlives a connection. */
static void connected(struct ct *ct)
{
	struct ct_want want = { .type = FI_EP_MSG, .disabled = true };
	char in[2][LEN], out[LEN];
	struct fid_ep *srx;
	struct fi_rx_attr rx;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	rx = *dom.info->rx_attr;
	ct_ep_open(&dom, &e);
	check_support(ct, fi_srx_context(dom.domain, &rx, &srx, NULL), "fi_srx_context");
	CT_OK(ct, fi_ep_bind(e.ep, &srx->fid, 0));
	for (int i = 0; i < 2; i++) /* before there is a connection */
		CT_OK(ct, fi_trecv(srx, in[i], LEN, NULL, FI_ADDR_UNSPEC, 7, 0, in[i]));
	ct_ep_enable(&e);
	ct_join(&e);
	ct_fill(out, LEN, (uint64_t)ct->rank);
	ct_tsend(&e, !ct->rank, out, LEN, 7, CTX(1));
	ct_done(&e, CTX(1));
	ct_done(&e, in[0]);
	ct_verify(ct, in[0], LEN, !ct->rank, "shared by a connected endpoint");
	ct_sync(ct, &e);
	if (!ct->rank) /* the other end may hear of it before it could do the same */
		CT_OK(ct, fi_shutdown(e.ep, 0));
	ct_quiet(&e, 20, "a shared buffer");
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&srx->fid));
	ct_close(&dom);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A shared transmit context changes nothing about what is sent and where it completes. */
static void transmit(struct ct *ct)
{
	char in[FEW][LEN], out[LEN];
	struct sharing s;
	int i;

	begin(ct, &s, NULL, FEW, false);
	for (i = 0; i < FEW && ct->rank == 0; i++)
		ct_recv(s.e, in[i], LEN, in[i]);
	ct_sync(ct, s.e);
	for (i = 0; i < FEW; i++) {
		ct_fill(out, LEN, (uint64_t)i);
		if (ct->rank == 1) {
			CT_POST(&s.e[i], fi_send(s.e[i].ep, out, LEN, NULL, s.e->addr[0], CTX(i + 1)));
			ct_done(&s.e[i], CTX(i + 1));
		} else {
			ct_done(s.e, in[i]);
			ct_verify(ct, in[i], LEN, (uint64_t)i, "sent through a shared context");
		}
	}
	end(&s);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void bad(struct ct *ct)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .count = 1 };
	struct sharing s = { .ct = ct };
	struct fid_av *other;
	struct fid_cq *cq;
	struct ct_ep e;
	char in[LEN];

	ct_open(ct, &s.dom, NULL);
	open_contexts(&s);
	CT_OK(ct, fi_av_open(s.dom.domain, &av_attr, &s.av, NULL));
	CT_OK(ct, fi_cq_open(s.dom.domain, &cq_attr, &cq, NULL));
	/* its endpoints are bound, it is not */
	CT_REFUSED(ct, fi_ep_bind(s.srx, &cq->fid, FI_RECV));
	open_one(&s, &e, cq);
	CT_REFUSED(ct, fi_ep_bind(e.ep, &s.srx->fid, 0));
	CT_REFUSED(ct, fi_ep_bind(e.ep, &s.stx->fid, 0));
	CT_OK(ct, fi_enable(e.ep));
	/* buffers go to the context */
	CT_REFUSED(ct, fi_recv(e.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in));
	CT_REFUSED(ct, fi_send(s.srx, in, LEN, NULL, 0, in));
	CT_EQ(ct, fi_close(&s.srx->fid), -FI_EBUSY);
	CT_OK(ct, fi_close(&e.ep->fid));
	/* Those who share share their AV, too. */
	open_one(&s, &e, cq);
	CT_OK(ct, fi_enable(e.ep));
	CT_OK(ct, fi_av_open(s.dom.domain, &av_attr, &other, NULL));
	s.av = other;
	{
		struct ct_ep stranger;

		open_one(&s, &stranger, cq);
		CT_REFUSED(ct, fi_enable(stranger.ep));
		CT_OK(ct, fi_close(&stranger.ep->fid));
	}
	CT_OK(ct, fi_close(&other->fid));
	CT_OK(ct, fi_close(&e.ep->fid));
	CT_OK(ct, fi_close(&s.srx->fid));
	CT_OK(ct, fi_close(&s.stx->fid));
	CT_OK(ct, fi_close(&cq->fid));
	CT_OK(ct, fi_close(&e.av->fid));
	ct_close(&s.dom);
}

/*
 * A transmit context may come after fi_enable, before the first operation;
 * then it is the endpoint's.
 */
static void late_transmit(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	struct fi_tx_attr tx;
	struct fid_stx *stx;
	struct ct_dom dom;
	char buf[LEN] = { 0 };
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	tx = *dom.info->tx_attr;
	dom.info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	check_support(ct, fi_stx_context(dom.domain, &tx, &stx, NULL), "fi_stx_context");
	ct_ep_open(&dom, &e);
	ct_ep_enable(&e);
	CT_OK(ct, fi_ep_bind(e.ep, &stx->fid, 0));
	e.addr[0] = ct_insert(&e, e.name);
	for (int i = 0; i < FEW; i++) {
		ct_recv(&e, buf, LEN, CTX(1));
		ct_send(&e, 0, buf, LEN, CTX(2));
		ct_done(&e, CTX(2));
		ct_done(&e, CTX(1));
	}
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&stx->fid));
	ct_close(&dom);
}

/*
 * A transmit context may be closed before its endpoint, which goes on: only completion queues,
 * vectors and the like are to be closed last.
 */
static void transmit_gone(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	struct fid_stx *stx;
	char buf[LEN] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	dom.info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	check_support(ct, fi_stx_context(dom.domain, dom.info->tx_attr, &stx, NULL), "fi_stx_context");
	ct_ep_open(&dom, &e);
	CT_OK(ct, fi_ep_bind(e.ep, &stx->fid, 0));
	ct_ep_enable(&e);
	e.addr[0] = ct_insert(&e, e.name);
	for (int i = 0; i < FEW; i++) {
		if (i == FEW / 2)
			CT_OK(ct, fi_close(&stx->fid));
		ct_recv(&e, buf, LEN, CTX(1));
		ct_send(&e, 0, buf, LEN, CTX(2));
		ct_done(&e, CTX(2));
		ct_done(&e, CTX(1));
	}
	ct_ep_close(&e);
	ct_close(&dom);
}

/* FI_SHARED_CONTEXT promises that one will be bound. */
static void promised(struct ct *ct)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .count = 1 };
	struct fi_info *hints = ct_hints(ct, &(struct ct_want){ 0 });
	struct ct_dom dom;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fi_info *info;

	ct_open(ct, &dom, NULL);
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (ct_getinfo(ct, hints, &info))
		ct_unsupported(ct, "fi_getinfo refuses FI_SHARED_CONTEXT");
	CT_TRUE(ct, info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT);
	CT_TRUE(ct, info->domain_attr->max_ep_srx_ctx > 0);
	CT_OK(ct, fi_cq_open(dom.domain, &cq_attr, &cq, NULL));
	CT_OK(ct, fi_av_open(dom.domain, &av_attr, &av, NULL));
	CT_OK(ct, fi_endpoint(dom.domain, info, &ep, NULL));
	CT_OK(ct, fi_ep_bind(ep, &av->fid, 0));
	CT_OK(ct, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CT_REFUSED(ct, fi_enable(ep));
	CT_OK(ct, fi_close(&ep->fid));
	CT_OK(ct, fi_close(&cq->fid));
	CT_OK(ct, fi_close(&av->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	ct_close(&dom);
}

const struct ct_case ct_srx[] = { { "SRX", "share", { share, share }, .arg = LEN },
				  { "SRX", "share-long", { share, share }, .arg = BIG },
				  { "SRX", "late-transmit", { late_transmit } },
				  { "SRX", "transmit-gone", { transmit_gone } },
				  { "SRX", "thousand", { many, many }, .seconds = 120 },
				  { "SRX", "multi-recv", { multi, multi } },
				  { "SRX", "selective", { selective, selective } },
				  { "SRX", "directed", { directed, directed } },
				  { "SRX", "cancel", { cancel, cancel } },
				  { "SRX", "triggered", { triggered, triggered } },
				  { "SRX", "peek", { peek, peek } },
				  { "SRX", "close-one", { close_one, close_one } },
				  { "CM", "shared-receives", { connected, connected } },
				  { "SRX", "transmit", { transmit, transmit } },
				  { "SRX", "bad", { bad } },
				  { "SRX", "promised", { promised } },
				  { 0 } };
