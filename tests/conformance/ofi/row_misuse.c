/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Misuse that leaves everything usable. Where each kind of it is tested:
 *
 *	claim of nothing, double claim, discard after claim, NULL context	T6 look-refused, M17 claim-refusals
 *	peek with a stale context						T6 look-refused
 *	cancel of a completed receive						MISUSE cancel-completed
 *	a buffer over limits							M2 over-max, M6 inject-over, M22 segments, M19 limits
 *	remove of an address in use						MISUSE remove-in-use
 *	close of what is in use							MISUSE close-in-use, and of other kinds: EP close-busy, CM busy, SRX bad,
 *										SEP bad, ALIAS bad, POLL refused, WAIT refused, M15, TRIGGER
 *	a full queue								M21 full-queue-again, full-queue-overrun; EQ overrun
 *	accept after the caller died						CM caller-killed
 *	connect to nobody							CM refused, MISUSE connect-nobody
 *	many connects and closes						CM thousand
 */
#include "connect.h"
#include "region.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A receive that has got its message cannot be cancelled, and stays what it is; before the
 * completion is read, and after.
 */
static void cancel_completed(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64];

	ct_start(ct, &dom, &e, NULL);
	for (uint64_t i = 0; i < 4; i++) {
		if (!ct->rank) {
			ct_fill(buf, 64, i);
			ct_tsend(&e, 1, buf, 64, 2, CTX(1));
			ct_done(&e, CTX(1));
			ct_sync(ct, &e);
			continue;
		}
		ct_trecv(&e, buf, 64, 2, 0, CTX(7));
		ct_sync(ct, &e); /* it has come and has been kept by the harness */
		if (i & 1) {
			ct_any(&e, &c);
			fi_cancel(&e.ep->fid, CTX(7));
		} else {
			fi_cancel(&e.ep->fid, CTX(7));
			ct_any(&e, &c);
			if (c.err == FI_ECANCELED) {
				/* it was in time: the message is still there */
				ct_trecv(&e, buf, 64, 2, 0, CTX(7));
				ct_any(&e, &c);
			}
		}
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, c.ctx == CTX(7));
		ct_verify(ct, buf, 64, i, "cancelled too late");
		ct_quiet(&e, 20, "a completed receive that was cancelled");
	}
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/*
 * An address goes while messages to it are under way and receives wait for it:
 * those end as they would have.
 */
static void remove_in_use(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	size_t len = 1 << 20;
	char *big = ct_alloc(ct, len), small[64], name[CT_NAME] = "";
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	if (!ct->rank) {
		ct_fill(big, len, 1);
		ct_tsend(&e, 1, big, len, 1, CTX(1));
		CT_POST(&e, fi_trecv(e.ep, small, 64, NULL, e.addr[1], 2, 0, CTX(2)));
		ct_get(ct, &e, 1, name, sizeof(name));
		CT_OK(ct, fi_av_remove(e.av, &e.addr[1], 1, 0));
		CT_REFUSED(ct, fi_tsend(e.ep, small, 64, NULL, e.addr[1], 3, CTX(3)));
		CT_REFUSED(ct, fi_trecv(e.ep, small, 64, NULL, e.addr[1], 3, 0, CTX(3)));
		ct_sync(ct, &e);
		ct_done(&e, CTX(1));
		CT_OK(ct, fi_cancel(&e.ep->fid, CTX(2)));
		struct ct_comp c;
		ct_of(&e, CTX(2), &c);
		CT_EQ(ct, c.err, FI_ECANCELED);
		e.addr[1] = ct_insert(&e, name);
	} else {
		ct_put(ct, 0, e.name, sizeof(e.name));
		ct_sync(ct, &e);
		ct_trecv(&e, big, len, 1, 0, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), len);
		ct_verify(ct, big, len, 1, "to an address that is no more");
	}
	ct_ping(&e, !ct->rank);
	free(big);
	ct_finish(&e);
}

/*
 * A region keeps its domain and its counter; an endpoint its queues; and everything
 * works after the refusals.
 */
static void close_in_use(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT, .counters = true };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct ct_dom dom;
	struct fid_mr *mr;
	struct ct_ep e;
	char mem[64];

	ct_start(ct, &dom, &e, &want);
	CT_OK(ct, fi_cntr_open(dom.domain, &attr, &cntr, NULL));
	CT_OK(ct, fi_mr_reg(dom.domain, mem, sizeof(mem), FI_REMOTE_WRITE, 0, 99, FI_RMA_EVENT, &mr, NULL));
	CT_OK(ct, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	for (int i = 0; i < 2; i++) {
		CT_EQ(ct, fi_close(&cntr->fid), -FI_EBUSY);
		CT_EQ(ct, fi_close(&e.txcq->fid), -FI_EBUSY);
		CT_EQ(ct, fi_close(&e.rxcntr->fid), -FI_EBUSY);
		CT_EQ(ct, fi_close(&dom.domain->fid), -FI_EBUSY);
		CT_EQ(ct, fi_close(&dom.fabric->fid), -FI_EBUSY);
	}
	CT_OK(ct, fi_close(&mr->fid));
	CT_OK(ct, fi_close(&cntr->fid));
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/*
 * Nobody listens there, or nobody is there: an error entry, whatever is posted completes in error,
 * and the next one connects.
 */
static void connect_nobody(struct ct *ct)
{
	const struct ct_want want = { .type = FI_EP_MSG };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char name[CT_NAME], buf[1024], in[8];
	struct fi_eq_err_entry entry;
	struct fi_info *info;
	struct fid_pep *pep;
	struct ct_dom dom;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep, *other;
	uint32_t event;
	size_t len;

	ct_open(ct, &dom, &want);
	ct_eq_open(&dom, &eq);
	CT_OK(ct, fi_cq_open(dom.domain, &attr, &cq, NULL));
	nobody.sin_port = htons(1); /* reserved, and nobody's */
	for (int i = 0; i < 20; i++) {
		struct fi_cq_err_entry failed = { 0 };

		CT_OK(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
		CT_OK(ct, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		CT_OK(ct, fi_ep_bind(ep, &eq->fid, 0));
		CT_OK(ct, fi_enable(ep));
		CT_OK(ct, fi_recv(ep, in, 8, NULL, 0, NULL));
		CT_OK(ct, fi_connect(ep, &nobody, NULL, 0));
		CT_EQ(ct, ct_event(ct, eq, &event, buf, sizeof(buf)), -FI_EAVAIL);
		memset(&entry, 0, sizeof(entry));
		CT_EQ(ct, fi_eq_readerr(eq, &entry, 0), sizeof(entry));
		CT_TRUE(ct, entry.fid == &ep->fid && entry.err);
		CT_EQ(ct, fi_cq_readerr(cq, &failed, 0), 1);
		CT_EQ(ct, failed.err, FI_ECANCELED);
		CT_REFUSED(ct, fi_send(ep, in, 8, NULL, 0, NULL));
		CT_OK(ct, fi_close(&ep->fid));
	}
	pep = ct_listen(&dom, eq, name, &len);
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
	CT_OK(ct, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CT_OK(ct, fi_ep_bind(ep, &eq->fid, 0));
	CT_OK(ct, fi_connect(ep, name, NULL, 0));
	info = ct_request(ct, eq, pep, NULL, NULL);
	CT_OK(ct, fi_endpoint(dom.domain, info, &other, NULL));
	fi_freeinfo(info);
	CT_OK(ct, fi_ep_bind(other, &cq->fid, FI_TRANSMIT | FI_RECV));
	CT_OK(ct, fi_ep_bind(other, &eq->fid, 0));
	CT_OK(ct, fi_accept(other, NULL, 0));
	for (int i = 0; i < 2; i++) {
		CT_TRUE(ct, ct_event(ct, eq, &event, buf, sizeof(buf)) > 0);
		CT_EQ(ct, event, FI_CONNECTED);
	}
	CT_OK(ct, fi_close(&ep->fid));
	CT_OK(ct, fi_close(&other->fid));
	CT_OK(ct, fi_close(&pep->fid));
	CT_OK(ct, fi_close(&cq->fid));
	CT_OK(ct, fi_close(&eq->fid));
	ct_close(&dom);
}

const struct ct_case ct_misuse[] = {
	{ "MISUSE", "cancel-completed", { cancel_completed, cancel_completed }, 0, 0 },
	{ "MISUSE", "remove-in-use", { remove_in_use, remove_in_use }, 0, 0 },
	{ "MISUSE", "close-in-use", { close_in_use, close_in_use }, 0, 0 },
	{ "MISUSE", "connect-nobody", { connect_nobody }, 0, 0 },
	{ 0 },
};
