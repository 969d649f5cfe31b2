/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_ep_alias, fi_endpoint(3): a handle with default flags of its own. */
#include "triggered.h"

#include <rdma/fi_atomic.h>

#include <string.h>

#define LEN 64

static struct fid_ep *alias_of(struct ct_ep *e, uint64_t flags)
{
	struct fid_ep *alias = NULL; /* a compiler may not see that CT_OK ends the process */
	int rc = fi_ep_alias(e->ep, &alias, flags);

	if (rc == -FI_ENOSYS)
		ct_unsupported(e->ct, "fi_ep_alias: %s", fi_strerror(-rc));
	CT_OK(e->ct, rc);
	return alias;
}

static uint64_t flags_of(struct ct_ep *e, struct fid_ep *ep, uint64_t which)
{
	CT_OK(e->ct, fi_control(&ep->fid, FI_GETOPSFLAG, &which));
	return which;
}

/* Sends complete through the alias that says so, and only there. */
static void transmit(struct ct *ct)
{
	struct ct_want want = { .tx_bind = FI_SELECTIVE_COMPLETION };
	char out[LEN] = { 0 }, in[2][LEN];
	struct fid_ep *alias;
	struct ct_dom dom;
	struct ct_ep e;
	struct ct_comp c;

	ct_start(ct, &dom, &e, &want);
	alias = alias_of(&e, FI_TRANSMIT | FI_COMPLETION);
	CT_EQ(ct, flags_of(&e, alias, FI_TRANSMIT), FI_COMPLETION);
	CT_EQ(ct, flags_of(&e, e.ep, FI_TRANSMIT), 0);
	if (ct->rank == 1) {
		ct_recv(&e, in[0], LEN, in[0]);
		ct_recv(&e, in[1], LEN, in[1]);
		ct_sync(ct, &e);
		ct_done(&e, in[0]);
		ct_done(&e, in[1]);
	} else {
		ct_sync(ct, &e);
		CT_POST(&e, fi_send(e.ep, out, LEN, NULL, e.addr[1], CTX(1)));
		CT_POST(&e, fi_send(alias, out, LEN, NULL, e.addr[1], CTX(2)));
		ct_any(&e, &c);
		CT_TRUE(ct, c.ctx == CTX(2));
		ct_quiet(&e, 50, "a send that did not ask for it");
	}
	CT_EQ(ct, fi_close(&e.ep->fid), -FI_EBUSY);
	CT_OK(ct, fi_close(&alias->fid));
	ct_finish(&e);
}

/* Receives of both handles are the same endpoint's: one order, one queue. */
static void receive(struct ct *ct)
{
	struct ct_want want = { .rx_bind = FI_SELECTIVE_COMPLETION, .msg_order = FI_ORDER_SAS };
	char out[LEN], in[2][LEN];
	struct fid_ep *alias;
	struct ct_dom dom;
	struct ct_ep e;
	struct ct_comp c;

	ct_start(ct, &dom, &e, &want);
	alias = alias_of(&e, FI_RECV | FI_COMPLETION);
	if (ct->rank == 1) {
		CT_POST(&e, fi_recv(e.ep, in[0], LEN, NULL, FI_ADDR_UNSPEC, in[0]));
		CT_POST(&e, fi_recv(alias, in[1], LEN, NULL, FI_ADDR_UNSPEC, in[1]));
		ct_sync(ct, &e);
		ct_any(&e, &c);
		CT_TRUE(ct, c.ctx == in[1]);
		ct_verify(ct, in[0], LEN, 0, "first");
		ct_verify(ct, in[1], LEN, 1, "second");
		CT_POST(&e, fi_recv(e.ep, in[0], LEN, NULL, FI_ADDR_UNSPEC, in[0]));
		CT_OK(ct, fi_cancel(&alias->fid, in[0]));
		ct_of(&e, in[0], &c);
		CT_EQ(ct, c.err, FI_ECANCELED);
	} else {
		ct_sync(ct, &e);
		for (uint64_t i = 0; i < 2; i++) {
			ct_fill(out, LEN, i);
			CT_POST(&e, fi_send(e.ep, out, LEN, NULL, e.addr[1], CTX(1)));
			ct_done(&e, CTX(1));
		}
	}
	CT_OK(ct, fi_close(&alias->fid));
	ct_finish(&e);
}

/* Made before the endpoint is enabled: it is then, with it. Its flags change alone. */
static void early(struct ct *ct)
{
	struct ct_want want = { .tx_bind = FI_SELECTIVE_COMPLETION, .disabled = true };
	uint64_t flags = FI_TRANSMIT;
	char out[LEN] = { 0 }, in[LEN];
	struct fid_ep *alias;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	alias = alias_of(&e, FI_TRANSMIT | FI_COMPLETION);
	CT_REFUSED(ct, fi_send(alias, out, LEN, NULL, 0, NULL));
	ct_ep_enable(&e);
	ct_join(&e);
	if (ct->rank == 1) {
		ct_recv(&e, in, LEN, in);
		ct_sync(ct, &e);
		ct_done(&e, in);
	} else {
		ct_sync(ct, &e);
		CT_POST(&e, fi_send(alias, out, LEN, NULL, e.addr[1], CTX(1)));
		ct_done(&e, CTX(1));
	}
	CT_OK(ct, fi_control(&alias->fid, FI_SETOPSFLAG, &flags));
	CT_EQ(ct, flags_of(&e, alias, FI_TRANSMIT), 0);
	flags = FI_TRANSMIT | FI_COMPLETION;
	CT_OK(ct, fi_control(&e.ep->fid, FI_SETOPSFLAG, &flags));
	CT_EQ(ct, flags_of(&e, alias, FI_TRANSMIT), 0);
	CT_OK(ct, fi_close(&alias->fid));
	ct_finish(&e);
}

/* One whose calls all wait for a counter, whatever call it is */
static void triggers(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER };
	struct fi_triggered_context ctx[5];
	uint64_t word[5] = { 1, 2, 3, 4, 5 }, sum = 0;
	struct fid_cntr *cntr;
	struct fid_ep *alias;
	struct ct_rig x;

	ct_rig_open(&x, ct, &want, 16, FI_REMOTE_READ | FI_REMOTE_WRITE);
	if (ct->rank) {
		ct_recv(&x.e, &word[0], 8, CTX(1));
		ct_trecv(&x.e, &word[1], 8, 7, 0, CTX(2));
		ct_sync(ct, &x.e);
		ct_done(&x.e, CTX(1));
		ct_done(&x.e, CTX(2));
		CT_TRUE(ct, word[0] == 1 && word[1] == 2);
		ct_take_back(&x.e, &x.r);
		return;
	}
	cntr = tr_cntr(&x.dom);
	alias = alias_of(&x.e, FI_TRANSMIT | FI_TRIGGER);
	for (size_t i = 0; i < 5; i++)
		tr_when(&ctx[i], cntr, i + 1);
	ct_sync(ct, &x.e);
	CT_OK(ct, fi_send(alias, &word[0], 8, NULL, x.e.addr[1], &ctx[0]));
	CT_OK(ct, fi_tsend(alias, &word[1], 8, NULL, x.e.addr[1], 7, &ctx[1]));
	CT_OK(ct, fi_write(alias, &word[2], 8, NULL, x.e.addr[1], x.at.addr, x.at.key, &ctx[2]));
	CT_OK(ct, fi_atomic(alias, &word[3], 1, NULL, x.e.addr[1], x.at.addr, x.at.key, FI_UINT64, FI_SUM,
			    &ctx[3]));
	CT_OK(ct, fi_read(alias, &sum, 8, NULL, x.e.addr[1], x.at.addr, x.at.key, &ctx[4]));
	ct_quiet(&x.e, 30, "what waits for a counter");
	for (size_t i = 0; i < 5; i++) {
		CT_OK(ct, fi_cntr_add(cntr, 1));
		ct_done(&x.e, &ctx[i]);
	}
	CT_EQ(ct, sum, 7);
	CT_OK(ct, fi_close(&alias->fid));
	CT_OK(ct, fi_close(&cntr->fid));
	ct_take_back(&x.e, &x.r);
}

/* What triggers_more() does to rank 1. */
static void trigger_targets(struct ct_rig *x, uint64_t *word)
{
	const uint64_t data[] = { 0, 20, 0, 40, 60 };
	struct ct *ct = x->e.ct;
	struct ct_comp c;

	memset(word, 0, 4 * sizeof(*word));
	ct_recv(&x->e, &word[0], 8, CTX(1));
	ct_recv(&x->e, &word[1], 8, CTX(2));
	ct_trecv(&x->e, &word[2], 8, 7, 0, CTX(3));
	ct_trecv(&x->e, &word[3], 8, 8, 0, CTX(4));
	ct_sync(ct, &x->e);
	for (uintptr_t i = 0; i < 5; i++) {
		if (i < 4)
			ct_of(&x->e, CTX(i + 1), &c);
		else
			ct_any(&x->e, &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.flags & FI_REMOTE_CQ_DATA ? c.data : 0, data[i]);
		CT_TRUE(ct, i < 4 ? word[i] == i + 1 : c.flags & FI_REMOTE_WRITE);
	}
	ct_sync(ct, &x->e);
	CT_TRUE(ct, !memcmp(x->r.mem, (const uint64_t[]){ 5, 6 }, 16));
	ct_take_back(&x->e, &x->r);
}

/* Its calls with lists and with data, and reads, wait as well, and do what they do elsewhere. */
static void triggers_more(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_TRIGGER };
	struct fi_triggered_context ctx[7];
	uint64_t word[] = { 1, 2, 3, 4, 5, 6, 0 };
	struct iovec iov[7];
	struct fid_cntr *cntr;
	struct fid_ep *alias;
	struct ct_rig x;

	for (size_t i = 0; i < CT_COUNT(word); i++)
		iov[i] = (struct iovec){ &word[i], 8 };
	ct_rig_open(&x, ct, &want, 16, FI_REMOTE_READ | FI_REMOTE_WRITE);
	if (ct->rank) {
		trigger_targets(&x, word);
		return;
	}
	cntr = tr_cntr(&x.dom);
	alias = alias_of(&x.e, FI_TRANSMIT | FI_TRIGGER);
	for (size_t i = 0; i < CT_COUNT(word); i++)
		tr_when(&ctx[i], cntr, i + 1);
	ct_sync(ct, &x.e);
	CT_OK(ct, fi_sendv(alias, &iov[0], NULL, 1, x.e.addr[1], &ctx[0]));
	CT_OK(ct, fi_senddata(alias, &word[1], 8, NULL, 20, x.e.addr[1], &ctx[1]));
	CT_OK(ct, fi_tsendv(alias, &iov[2], NULL, 1, x.e.addr[1], 7, &ctx[2]));
	CT_OK(ct, fi_tsenddata(alias, &word[3], 8, NULL, 40, x.e.addr[1], 8, &ctx[3]));
	CT_OK(ct, fi_writev(alias, &iov[4], NULL, 1, x.e.addr[1], x.at.addr, x.at.key, &ctx[4]));
	CT_OK(ct, fi_writedata(alias, &word[5], 8, NULL, 60, x.e.addr[1], x.at.addr + 8, x.at.key, &ctx[5]));
	CT_OK(ct, fi_readv(alias, &iov[6], NULL, 1, x.e.addr[1], x.at.addr, x.at.key, &ctx[6]));
	memset(iov, 0xff, sizeof(iov)); /* the program's segments need not live on */
	ct_quiet(&x.e, 30, "what waits for a counter");
	for (size_t i = 0; i < CT_COUNT(word); i++) {
		CT_OK(ct, fi_cntr_add(cntr, 1));
		ct_done(&x.e, &ctx[i]);
	}
	CT_EQ(ct, word[6], 5);
	ct_sync(ct, &x.e);
	CT_OK(ct, fi_close(&alias->fid));
	CT_OK(ct, fi_close(&cntr->fid));
	ct_take_back(&x.e, &x.r);
}

/*
 * Receives through the alias of a receiver, whatever call they are: none takes a
 * message before its time.
 */
static void triggers_receives(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_TRIGGER };
	struct fi_triggered_context ctx[4];
	uint64_t word[4] = { 0 }, out = 0;
	struct iovec iov[4];
	struct fid_cntr *cntr;
	struct fid_ep *alias;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	if (!ct->rank) {
		for (int i = 0; i < 4; i++, ct_done(&e, CTX(1))) {
			out = (uint64_t)i + 1;
			if (i < 2)
				ct_send(&e, 1, &out, 8, CTX(1));
			else
				ct_tsend(&e, 1, &out, 8, 7, CTX(1));
		}
		ct_sync(ct, &e);
		ct_finish(&e);
		return;
	}
	cntr = tr_cntr(&dom);
	alias = alias_of(&e, FI_RECV | FI_TRIGGER);
	for (size_t i = 0; i < 4; i++) {
		tr_when(&ctx[i], cntr, i + 1);
		iov[i] = (struct iovec){ &word[i], 8 };
	}
	CT_OK(ct, fi_recv(alias, &word[0], 8, NULL, FI_ADDR_UNSPEC, &ctx[0]));
	CT_OK(ct, fi_recvv(alias, &iov[1], NULL, 1, FI_ADDR_UNSPEC, &ctx[1]));
	CT_OK(ct, fi_trecv(alias, &word[2], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &ctx[2]));
	CT_OK(ct, fi_trecvv(alias, &iov[3], NULL, 1, FI_ADDR_UNSPEC, 4, 3, &ctx[3]));
	memset(iov, 0xff, sizeof(iov));
	ct_sync(ct, &e);
	ct_quiet(&e, 30, "what waits for a counter");
	for (size_t i = 0; i < 4; i++) {
		CT_EQ(ct, word[i], 0);
		CT_OK(ct, fi_cntr_add(cntr, 1));
		CT_EQ(ct, ct_done(&e, &ctx[i]), 8);
		CT_EQ(ct, word[i], i + 1);
	}
	CT_OK(ct, fi_close(&alias->fid));
	CT_OK(ct, fi_close(&cntr->fid));
	ct_finish(&e);
}

/* Options are the endpoint's, whichever of the two they are set through. */
static void options(struct ct *ct)
{
	size_t value = 77, got = 0, len = sizeof(got);
	struct fid_ep *alias;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	alias = alias_of(&e, FI_TRANSMIT);
	CT_OK(ct, fi_setopt(&alias->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	CT_OK(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CT_EQ(ct, got, 77);
	value = 78;
	CT_OK(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	CT_OK(ct, fi_getopt(&alias->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CT_EQ(ct, got, 78);
	CT_OK(ct, fi_close(&alias->fid));
	ct_ep_close(&e);
	ct_close(&dom);
}

static void bad(struct ct *ct)
{
	struct fid_ep *alias = NULL;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	CT_OK(ct, fi_close(&alias_of(&e, FI_TRANSMIT)->fid));
	CT_REFUSED(ct, fi_ep_alias(e.ep, &alias, 0));
	CT_REFUSED(ct, fi_ep_alias(e.ep, &alias, FI_TRANSMIT | FI_RECV));
	CT_REFUSED(ct, fi_ep_alias(e.ep, &alias, FI_TRANSMIT | FI_PEEK));
	ct_ep_close(&e);
	ct_close(&dom);
}

const struct ct_case ct_alias[] = { { "ALIAS", "transmit", { transmit, transmit } },
				    { "ALIAS", "receive", { receive, receive } },
				    { "ALIAS", "early", { early, early } },
				    { "ALIAS", "triggers", { triggers, triggers } },
				    { "ALIAS", "triggers-more", { triggers_more, triggers_more } },
				    { "ALIAS", "triggers-receives", { triggers_receives, triggers_receives } },
				    { "ALIAS", "options", { options } },
				    { "ALIAS", "bad", { bad } },
				    { 0 } };
