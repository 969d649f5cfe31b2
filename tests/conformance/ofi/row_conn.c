/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connections: fi_cm(3), passive endpoints of fi_endpoint(3), and their events, fi_eq(3). Rank 0 listens, rank 1 calls. */
#include "connect.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One end of a connection, opened step by step. */
struct end {
	struct ct *ct;
	struct ct_dom dom;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct ct_ep e; /* only ep and CQs */
	char name[CT_NAME];
	size_t namelen;
};

static void open_dom(struct ct *ct, struct end *d)
{
	const struct ct_want want = { .type = FI_EP_MSG };

	memset(d, 0, sizeof(*d));
	d->ct = ct;
	ct_open(ct, &d->dom, &want);
	ct_eq_open(&d->dom, &d->eq);
	if (!ct->rank && ct->procs > 1) {
		d->pep = ct_listen(&d->dom, d->eq, d->name, &d->namelen);
		ct_put(ct, 1, d->name, sizeof(d->name));
	} else if (ct->rank) {
		ct_get(ct, NULL, 0, d->name, sizeof(d->name));
	}
}

/* An endpoint with its queue; info NULL: the domain's. */
static void open_ep(struct end *d, struct fi_info *info, struct ct_ep *e)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };

	memset(e, 0, sizeof(*e));
	e->ct = d->ct;
	e->dom = &d->dom;
	CT_OK(d->ct, fi_cq_open(d->dom.domain, &attr, &e->txcq, NULL));
	e->rxcq = e->txcq;
	CT_OK(d->ct, fi_endpoint(d->dom.domain, info ? info : d->dom.info, &e->ep, NULL));
	CT_OK(d->ct, fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | FI_RECV));
	CT_OK(d->ct, fi_ep_bind(e->ep, &d->eq->fid, 0));
}

static void close_ep(struct ct_ep *e)
{
	CT_OK(e->ct, fi_close(&e->ep->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
	free(e->stash);
}

static void close_dom(struct end *d)
{
	if (d->pep)
		CT_OK(d->ct, fi_close(&d->pep->fid));
	CT_OK(d->ct, fi_close(&d->eq->fid));
	ct_close(&d->dom);
}

static struct fi_info *request(struct end *d)
{
	return ct_request(d->ct, d->eq, d->pep, NULL, NULL);
}

/* Both ranks: an endpoint that is connected. */
static void join(struct ct *ct, struct end *d)
{
	struct fi_info *info;

	open_dom(ct, d);
	if (ct->rank) {
		open_ep(d, NULL, &d->e);
		CT_OK(ct, fi_connect(d->e.ep, d->name, NULL, 0));
	} else {
		info = request(d);
		open_ep(d, info, &d->e);
		fi_freeinfo(info);
		CT_OK(ct, fi_accept(d->e.ep, NULL, 0));
	}
	ct_expect(ct, d->eq, FI_CONNECTED, &d->e.ep->fid);
}

static void finish(struct end *d)
{
	close_ep(&d->e);
	close_dom(d);
}

/* The next event must be an error of this endpoint; its data goes to *data. */
static void failed(struct end *d, struct fid *fid, int err, const char *data)
{
	struct fi_eq_err_entry entry = { 0 };
	char buf[1024];
	uint32_t event;

	CT_EQ(d->ct, ct_event(d->ct, d->eq, &event, buf, sizeof(buf)), -FI_EAVAIL);
	CT_EQ(d->ct, fi_eq_readerr(d->eq, &entry, 0), sizeof(entry));
	CT_TRUE(d->ct, entry.fid == fid);
	CT_EQ(d->ct, entry.err, err);
	CT_TRUE(d->ct, fi_eq_strerror(d->eq, entry.prov_errno, entry.err_data, buf, sizeof(buf)) != NULL);
	if (!data)
		return;
	CT_TRUE(d->ct, entry.err_data_size >= strlen(data));
	CT_TRUE(d->ct, !memcmp(entry.err_data, data, strlen(data)));
}

static void no_event(struct end *d, int ms)
{
	struct fi_eq_cm_entry cm;
	double end = ct_now() + ms / 1e3;
	uint32_t event;

	do {
		CT_EQ(d->ct, fi_eq_read(d->eq, &event, &cm, sizeof(cm), 0), -FI_EAGAIN);
		ct_pause();
	} while (ct_now() < end);
}

/* A send that was under way: the reason depends on what comes first. */
static void broken_off(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_TRUE(e->ct, c.err > 0);
}

static void cancelled(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, FI_ECANCELED);
}

/* ---- M3, M5 -------------------------------------------------------------------------------------------- */

static void before_enable(struct ct *ct)
{
	struct end d;
	char buf[8] = { 0 };

	open_dom(ct, &d);
	open_ep(&d, NULL, &d.e);
	CT_REFUSED(ct, fi_recv(d.e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	CT_REFUSED(ct, fi_trecv(d.e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	CT_REFUSED(ct, fi_send(d.e.ep, buf, 8, NULL, 0, NULL));
	CT_REFUSED(ct, fi_tinject(d.e.ep, buf, 8, 0, 1));
	CT_OK(ct, fi_enable(d.e.ep));
	CT_REFUSED(ct, fi_send(d.e.ep, buf, 8, NULL, 0, NULL));
	CT_REFUSED(ct, fi_tsend(d.e.ep, buf, 8, NULL, 0, 1, NULL));
	CT_REFUSED(ct, fi_inject(d.e.ep, buf, 8, 0));
	CT_OK(ct, fi_recv(d.e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	ct_quiet(&d.e, 20, "what was refused");
	finish(&d);
}

/* Posted before fi_connect and before fi_accept, and there for the first message. */
static void receives_first(struct ct *ct)
{
	struct fi_info *info = NULL;
	char in[16] = "", say[2][16] = { "from the called", "from the caller" };
	struct end d;

	open_dom(ct, &d);
	if (!ct->rank)
		info = request(&d);
	else
		open_ep(&d, NULL, &d.e);
	if (ct->rank) { /* enabled first, so that a receive can be posted */
		CT_OK(ct, fi_enable(d.e.ep));
		ct_recv(&d.e, in, 16, CTX(1));
		CT_OK(ct, fi_connect(d.e.ep, d.name, NULL, 0));
	} else {
		open_ep(&d, info, &d.e);
		fi_freeinfo(info);
		CT_OK(ct, fi_enable(d.e.ep));
		ct_recv(&d.e, in, 16, CTX(1));
		CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
	}
	ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
	CT_POST(&d.e, fi_send(d.e.ep, say[ct->rank], 16, NULL, 0, CTX(2)));
	CT_EQ(ct, ct_done(&d.e, CTX(1)), 16);
	CT_TRUE(ct, !strcmp(in, say[!ct->rank]));
	ct_done(&d.e, CTX(2));
	ct_sync(ct, &d.e);
	finish(&d);
}

static void addresses_ignored(struct ct *ct)
{
	static const fi_addr_t any[] = { 0, 1, 77, FI_ADDR_UNSPEC, 1ull << 40 };
	struct end d;
	char in[5][8], out[8] = "message";
	size_t i;

	join(ct, &d);
	for (i = 0; i < CT_COUNT(any); i++) {
		CT_POST(&d.e, fi_recv(d.e.ep, in[i], 8, NULL, any[4 - i], CTX(10 + i)));
		CT_POST(&d.e, fi_send(d.e.ep, out, 8, NULL, any[i], CTX(20 + i)));
	}
	for (i = 0; i < CT_COUNT(any); i++) {
		CT_EQ(ct, ct_done(&d.e, CTX(10 + i)), 8);
		ct_done(&d.e, CTX(20 + i));
	}
	ct_sync(ct, &d.e);
	finish(&d);
}

/* ---- names and private data ------------------------------------------------------------------------------- */

static void data_both_ways(struct ct *ct)
{
	char room[sizeof(struct fi_eq_cm_entry) + 1024], data[16] = "";
	struct fi_eq_cm_entry *cm = (void *)room;
	struct fi_info *info;
	size_t len = 5, size = 0;
	uint32_t event;
	struct end d;
	ssize_t n;

	open_dom(ct, &d);
	if (ct->rank) {
		open_ep(&d, NULL, &d.e);
		CT_OK(ct, fi_connect(d.e.ep, d.name, "hello", 5));
		n = ct_event(ct, d.eq, &event, room, sizeof(room));
		CT_EQ(ct, event, FI_CONNECTED);
		CT_TRUE(ct, n >= (ssize_t)sizeof(*cm) + 7 && !memcmp(cm->data, "welcome", 7));
	} else {
		info = ct_request(ct, d.eq, d.pep, data, &len);
		CT_TRUE(ct, !memcmp(data, "hello", 5));
		open_ep(&d, info, &d.e);
		CT_TRUE(ct, info->src_addr && info->dest_addr);
		fi_freeinfo(info);
		CT_OK(ct, fi_accept(d.e.ep, "welcome", 7));
		ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
	}
	len = sizeof(size);
	CT_OK(ct, fi_getopt(&d.e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	CT_TRUE(ct, size >= 7 && len == sizeof(size));
	ct_sync(ct, &d.e);
	finish(&d);
}

static void names(struct ct *ct)
{
	char own[CT_NAME] = "", peer[CT_NAME] = "", theirs[CT_NAME];
	size_t len = 1, peerlen = sizeof(peer);
	struct end d;

	join(ct, &d);
	CT_EQ(ct, fi_getpeer(d.e.ep, own, &len), -FI_ETOOSMALL);
	CT_TRUE(ct, len > 1 && len <= sizeof(own));
	CT_OK(ct, fi_getpeer(d.e.ep, peer, &peerlen));
	len = sizeof(own);
	CT_OK(ct, fi_getname(&d.e.ep->fid, own, &len));
	ct_put(ct, !ct->rank, own, sizeof(own));
	ct_get(ct, &d.e, !ct->rank, theirs, sizeof(theirs));
	/* Who accepted has the name that was called. */
	CT_TRUE(ct, ct->rank ? !memcmp(theirs, d.name, peerlen) : !memcmp(own, d.name, d.namelen));
	/* The caller's peer is where it called; the other's is the caller. */
	CT_TRUE(ct, !memcmp(peer, ct->rank ? d.name : theirs, peerlen));
	ct_sync(ct, &d.e);
	finish(&d);
}

/* An active endpoint gets the address that a passive one has reserved. */
static void inherited(struct ct *ct)
{
	char reserved[CT_NAME] = "", own[CT_NAME] = "";
	size_t len = sizeof(reserved), ownlen = sizeof(own);
	struct fi_info *info;
	struct fid_pep *pep;
	struct end d;

	open_dom(ct, &d);
	CT_OK(ct, fi_passive_ep(d.dom.fabric, d.dom.info, &pep, NULL));
	CT_OK(ct, fi_getname(&pep->fid, reserved, &len));
	info = fi_dupinfo(d.dom.info);
	info->handle = &pep->fid;
	open_ep(&d, info, &d.e);
	info->handle = NULL;
	fi_freeinfo(info);
	CT_OK(ct, fi_close(&pep->fid));
	CT_OK(ct, fi_enable(d.e.ep));
	CT_OK(ct, fi_getname(&d.e.ep->fid, own, &ownlen));
	CT_TRUE(ct, len == ownlen && !memcmp(own, reserved, len));
	finish(&d);
}

/* ---- no connection ------------------------------------------------------------------------------------------ */

static void refused(struct ct *ct)
{
	struct end d;
	char in[8];

	open_dom(ct, &d);
	if (!ct->rank) {
		CT_OK(ct, fi_close(&d.pep->fid));
		d.pep = NULL;
	}
	ct_sync(ct, NULL);
	if (ct->rank) {
		open_ep(&d, NULL, &d.e);
		CT_OK(ct, fi_enable(d.e.ep));
		ct_recv(&d.e, in, 8, CTX(1));
		CT_OK(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		failed(&d, &d.e.ep->fid, FI_ECONNREFUSED, NULL);
		cancelled(&d.e, CTX(1));
		CT_REFUSED(ct, fi_send(d.e.ep, in, 8, NULL, 0, NULL));
		CT_REFUSED(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		close_ep(&d.e);
	}
	close_dom(&d);
}

/* Rank 1's endpoint calls. */
static void call(struct end *d)
{
	open_ep(d, NULL, &d->e);
	CT_OK(d->ct, fi_connect(d->e.ep, d->name, NULL, 0));
}

static void rejected(struct ct *ct)
{
	struct fi_info *info;
	struct end d;

	open_dom(ct, &d);
	if (ct->rank) {
		call(&d);
		failed(&d, &d.e.ep->fid, FI_ECONNREFUSED, "not today");
		close_ep(&d.e);
	} else {
		info = request(&d);
		CT_OK(ct, fi_reject(d.pep, info->handle, "not today", 9));
		CT_REFUSED(ct, fi_reject(d.pep, info->handle, NULL, 0));
		CT_REFUSED(ct, fi_endpoint(d.dom.domain, info, &d.e.ep, NULL));
		fi_freeinfo(info);
	}
	ct_sync(ct, NULL);
	close_dom(&d);
}

/* The program that listens never answers. */
static void unanswered(struct ct *ct)
{
	struct fi_info *info;
	struct end d;

	if (strcmp(ct->conf->provider, "heddle"))
		ct_unsupported(ct, "there is no setting for how long an answer may take");
	open_dom(ct, &d);
	if (ct->rank) {
		call(&d);
		failed(&d, &d.e.ep->fid, FI_ETIMEDOUT, NULL);
		close_ep(&d.e);
		ct_sync(ct, NULL);
	} else {
		info = request(&d);
		ct_sync(ct, NULL);
		no_event(&d, 50);
		open_ep(&d, info, &d.e); /* too late, which only fi_accept finds out */
		CT_REFUSED(ct, fi_accept(d.e.ep, NULL, 0));
		fi_freeinfo(info);
		close_ep(&d.e);
	}
	close_dom(&d);
}

/* The caller is killed while its request waits. */
static void caller_killed(struct ct *ct)
{
	struct fi_info *info;
	struct end d;

	open_dom(ct, &d);
	if (ct->rank) {
		call(&d);
		ct_doomed(ct);
		for (;;) {
			fi_cq_read(d.e.txcq, NULL, 0);
			ct_pause();
		}
	}
	info = request(&d);
	CT_OK(ct, kill(ct->pid[1], SIGKILL));
	no_event(&d, 300);
	open_ep(&d, info, &d.e);
	fi_freeinfo(info);
	if (!fi_accept(d.e.ep, NULL,
		       0)) { /* it may be too early to know: then an error entry, or an end at once */
		struct fi_eq_err_entry err = { 0 };
		struct fi_eq_cm_entry cm;
		uint32_t event;

		if (ct_event(ct, d.eq, &event, &cm, sizeof(cm)) == -FI_EAVAIL)
			CT_EQ(ct, fi_eq_readerr(d.eq, &err, 0), sizeof(err));
		else
			CT_TRUE(ct, event == FI_SHUTDOWN || event == FI_CONNECTED);
	}
	finish(&d);
}

/* An accepted request cannot be accepted again, nor can the endpoint. */
static void twice(struct ct *ct)
{
	struct fi_info *info;
	struct ct_ep second;
	struct end d;

	open_dom(ct, &d);
	if (ct->rank) {
		call(&d);
		CT_REFUSED(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		CT_REFUSED(ct, fi_accept(d.e.ep, NULL, 0));
	} else {
		info = request(&d);
		open_ep(&d, info, &d.e);
		open_ep(&d, info, &second);
		CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
		CT_REFUSED(ct, fi_accept(d.e.ep, NULL, 0));
		CT_REFUSED(ct, fi_accept(second.ep, NULL, 0));
		CT_REFUSED(ct, fi_connect(second.ep, d.name, NULL, 0));
		CT_REFUSED(ct, fi_reject(d.pep, info->handle, NULL, 0));
		close_ep(&second);
		fi_freeinfo(info);
	}
	ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
	no_event(&d, 20);
	ct_sync(ct, &d.e);
	finish(&d);
}

/* A listener closes with a request that was read and one that was not. */
static void listener_closes(struct ct *ct)
{
	struct fi_info *info;
	struct ct_ep e[2];
	struct end d;
	int i;

	open_dom(ct, &d);
	if (ct->rank) {
		for (i = 0; i < 2; i++) {
			open_ep(&d, NULL, &e[i]);
			CT_OK(ct, fi_connect(e[i].ep, d.name, NULL, 0));
		}
		for (i = 0; i < 2; i++) {
			struct fi_eq_err_entry err = { 0 };
			struct fi_eq_cm_entry cm;
			uint32_t event;

			CT_EQ(ct, ct_event(ct, d.eq, &event, &cm, sizeof(cm)), -FI_EAVAIL);
			CT_EQ(ct, fi_eq_readerr(d.eq, &err, 0), sizeof(err));
			CT_TRUE(ct, err.err == FI_ECONNREFUSED || err.err == FI_ECONNRESET);
		}
		close_ep(&e[0]);
		close_ep(&e[1]);
	} else {
		info = request(&d);
		CT_OK(ct, fi_close(&d.pep->fid));
		d.pep = NULL;
		CT_REFUSED(ct, fi_endpoint(d.dom.domain, info, &e[0].ep, NULL)); /* the handle is stale */
		fi_freeinfo(info);
		no_event(&d, 20);
	}
	ct_sync(ct, NULL);
	close_dom(&d);
}

#define CALLS 20

/* Whoever calls again once he is connected finds a listener that knows of that: FI_CONNECTED stands before the next FI_CONNREQ. */
static void one_after_another(struct ct *ct)
{
	struct ct_ep e[CALLS];
	struct fi_info *info;
	struct end d;

	open_dom(ct, &d);
	for (int i = 0; i < CALLS; i++) {
		if (ct->rank) {
			open_ep(&d, NULL, &e[i]);
			CT_OK(ct, fi_connect(e[i].ep, d.name, NULL, 0));
		} else {
			info = request(&d);
			open_ep(&d, info, &e[i]);
			fi_freeinfo(info);
			CT_OK(ct, fi_accept(e[i].ep, NULL, 0));
		}
		ct_expect(ct, d.eq, FI_CONNECTED, &e[i].ep->fid);
	}
	ct_sync(ct, NULL);
	for (int i = 0; i < CALLS; i++)
		close_ep(&e[i]);
	close_dom(&d);
}

/* ---- parting ------------------------------------------------------------------------------------------------- */

static void shut_down(struct ct *ct)
{
	char in[3][16] = { "" }, *big = ct_alloc(ct, 1 << 20);
	struct end d;
	int i;

	join(ct, &d);
	for (i = 0; i < 3; i++)
		ct_recv(&d.e, in[i], 16, CTX(10 + i));
	if (!ct->rank) /* nobody takes it */
		CT_POST(&d.e, fi_tsend(d.e.ep, big, 1 << 20, NULL, 0, 1, CTX(2)));
	ct_sync(ct, &d.e);
	if (ct->rank) {
		CT_POST(&d.e, fi_send(d.e.ep, "last words", 10, NULL, 0, CTX(1)));
		ct_done(&d.e, CTX(1));
		CT_REFUSED(ct, fi_shutdown(d.e.ep, 1));
		CT_OK(ct, fi_shutdown(d.e.ep, 0));
		ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid); /* one for each endpoint, whoever it was */
	} else {
		ct_done(&d.e, CTX(10));
		CT_TRUE(ct, !strcmp(in[0], "last words"));
		ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
		cancelled(&d.e, CTX(2));
	}
	for (i = !ct->rank; i < 3; i++)
		cancelled(&d.e, CTX(10 + i));
	CT_EQ(ct, fi_send(d.e.ep, in[0], 8, NULL, 0, NULL), -FI_ENOTCONN);
	CT_EQ(ct, fi_tinject(d.e.ep, in[0], 8, 0, 1), -FI_ENOTCONN);
	CT_OK(ct, fi_shutdown(d.e.ep, 0)); /* who hears of the end may answer it */
	no_event(&d, 50);
	ct_quiet(&d.e, 20, "after the end");
	ct_sync(ct, &d.e);
	finish(&d);
	free(big);
}

static void killed(struct ct *ct)
{
	char in[2][16], *big = ct_alloc(ct, 4 << 20);
	struct end d;

	join(ct, &d);
	if (ct->rank) {
		ct_doomed(ct);
		ct_put(ct, 0, "k", 1);
		for (;;)
			pause();
	}
	ct_recv(&d.e, in[0], 16, CTX(1));
	ct_trecv(&d.e, in[1], 16, 5, 0, CTX(2));
	CT_POST(&d.e, fi_send(d.e.ep, big, 4 << 20, NULL, 0, CTX(3)));
	ct_get(ct, &d.e, 1, in[0], 1);
	CT_OK(ct, kill(ct->pid[1], SIGKILL));
	ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
	cancelled(&d.e, CTX(1));
	cancelled(&d.e, CTX(2));
	broken_off(&d.e, CTX(3));
	CT_EQ(ct, fi_send(d.e.ep, big, 8, NULL, 0, NULL), -FI_ENOTCONN);
	finish(&d);
	free(big);
}

/* Closing with everything outstanding: silently here, FI_SHUTDOWN and errors there. */
static void close_outstanding(struct ct *ct)
{
	char in[16][32], *big = ct_alloc(ct, 1 << 20);
	struct end d;
	int i;

	join(ct, &d);
	for (i = 0; i < 16; i++)
		ct_trecv(&d.e, in[i], 32, 100 + (uint64_t)i, 0, CTX(100 + i));
	CT_POST(&d.e, fi_send(d.e.ep, big, 1 << 20, NULL, 0, CTX(1)));
	ct_sync(ct, &d.e);
	if (!ct->rank) {
		ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
		broken_off(&d.e, CTX(1));
		for (i = 0; i < 16; i++)
			cancelled(&d.e, CTX(100 + i));
	}
	finish(&d);
	free(big);
}

static int descriptors(void)
{
	int n = 0, fd;
	char path[32];

	for (fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += access(path, F_OK) == 0;
	}
	return n;
}

/* One or the other leaves first; rank 0 must have heard of it before the next call. */
static void part(struct end *d, int i)
{
	char c = 'P';

	if (d->ct->rank && i & 1) {
		CT_OK(d->ct, fi_shutdown(d->e.ep, 0));
		if (i & 2) /* what is not read goes with the endpoint */
			ct_expect(d->ct, d->eq, FI_SHUTDOWN, &d->e.ep->fid);
		ct_get(d->ct, &d->e, 0, &c, 1);
	} else if (!d->ct->rank && i & 1) {
		ct_expect(d->ct, d->eq, FI_SHUTDOWN, &d->e.ep->fid);
		ct_put(d->ct, 1, &c, 1);
	} else if (d->ct->rank) {
		ct_expect(d->ct, d->eq, FI_SHUTDOWN, &d->e.ep->fid);
	}
	close_ep(&d->e);
}

/*
 * KiB of our own that are held; a link's rings are of a fixed size, and are touched as they fill. What malloc keeps for later is given back first:
 * how much that is depends on how much of the connection before is still there when the next begins.
 */
static long held(struct ct *ct)
{
	malloc_trim(0);
	return ct_memory(ct, "Anonymous");
}

/* A thousand connections, one after the other, leave nothing behind. */
static void thousand(struct ct *ct)
{
	struct fi_info *info;
	struct end d;
	int i, before = 0;
	long kib = 0;

	open_dom(ct, &d);
	for (i = 0; i < 1000; i++) {
		if (ct->rank) {
			open_ep(&d, NULL, &d.e);
			CT_OK(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		} else {
			info = request(&d);
			open_ep(&d, info, &d.e);
			fi_freeinfo(info);
			CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
		}
		ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
		part(&d, i);
		if (i == 10)
			before = descriptors();
		if (i == 100)
			kib = held(ct);
	}
	/* not even 150 bytes for each of the 900 after that */
	if (CT_OWN_MEMORY && held(ct) > kib + 128)
		ct_fail(ct, "%ld KiB after 100 connections, %ld after 1000", kib, held(ct));
	CT_TRUE(ct, descriptors() <= before + 4);
	ct_sync(ct, NULL);
	close_dom(&d);
}

/* ---- what is in use, what is missing --------------------------------------------------------------------------- */

static void busy(struct ct *ct)
{
	struct end d;

	join(ct, &d);
	CT_EQ(ct, fi_close(&d.eq->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&d.e.txcq->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&d.dom.domain->fid), -FI_EBUSY);
	ct_sync(ct, &d.e);
	close_ep(&d.e);
	if (!ct->rank) {
		CT_EQ(ct, fi_close(&d.eq->fid), -FI_EBUSY); /* the passive endpoint still */
		CT_EQ(ct, fi_close(&d.dom.fabric->fid), -FI_EBUSY);
	}
	close_dom(&d);
}

static void enable_without(struct ct *ct)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_pep *pep;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct end d;

	open_dom(ct, &d);
	CT_OK(ct, fi_cq_open(d.dom.domain, &attr, &cq, NULL));
	CT_OK(ct, fi_endpoint(d.dom.domain, d.dom.info, &ep, NULL));
	CT_OK(ct, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CT_REFUSED(ct, fi_enable(ep));
	CT_OK(ct, fi_ep_bind(ep, &d.eq->fid, 0));
	CT_OK(ct, fi_enable(ep));
	CT_OK(ct, fi_close(&ep->fid));
	CT_OK(ct, fi_close(&cq->fid));
	CT_OK(ct, fi_passive_ep(d.dom.fabric, d.dom.info, &pep, NULL));
	CT_REFUSED(ct, fi_listen(pep));
	CT_OK(ct, fi_pep_bind(pep, &d.eq->fid, 0));
	CT_OK(ct, fi_listen(pep));
	CT_OK(ct, fi_close(&pep->fid));
	close_dom(&d);
}

/* fi_eq_sread sleeps until the connection is there; its descriptor polls readable. */
static void sread(struct ct *ct)
{
	struct fi_eq_cm_entry cm;
	uint32_t event = 99;
	struct end d;
	double cpu;

	open_dom(ct, &d);
	if (ct->rank) {
		ct_sync(ct, NULL);
		ct_let_sleep(ct->pid[0]);
		call(&d);
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), 30000, 0), sizeof(cm));
		CT_EQ(ct, event, FI_CONNECTED);
	} else {
		cpu = ct_cpu();
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), 20, 0), -FI_EAGAIN);
		ct_sync(ct, NULL); /* before that nobody calls */
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), 30000, 0), sizeof(cm));
		CT_EQ(ct, event, FI_CONNREQ);
		CT_TRUE(ct, ct_cpu() - cpu < 0.15);
		open_ep(&d, cm.info, &d.e);
		fi_freeinfo(cm.info);
		CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), -1, 0), sizeof(cm));
		CT_EQ(ct, event, FI_CONNECTED);
	}
	ct_sync(ct, &d.e);
	finish(&d);
}

const struct ct_case ct_conn[] = {
	{ "M3", "conn-before-enable", { before_enable } },
	{ "M3", "conn-receives-first", { receives_first, receives_first } },
	{ "M5", "conn-addresses-ignored", { addresses_ignored, addresses_ignored } },
	{ "CM", "data", { data_both_ways, data_both_ways } },
	{ "CM", "names", { names, names } },
	{ "CM", "one-after-another", { one_after_another, one_after_another } },
	{ "CM", "inherited", { inherited } },
	{ "CM", "refused", { refused, refused } },
	{ "CM", "rejected", { rejected, rejected } },
	{ "CM",
	  "unanswered",
	  { unanswered, unanswered },
	  .setting = "HEDDLE_ANSWER_TIMEOUT=300",
	  .slow = true },
	{ "CM", "caller-killed", { caller_killed, caller_killed } },
	{ "CM", "twice", { twice, twice } },
	{ "CM", "listener-closes", { listener_closes, listener_closes } },
	{ "CM", "shutdown", { shut_down, shut_down } },
	{ "CM", "killed", { killed, killed } },
	{ "CM", "close-outstanding", { close_outstanding, close_outstanding } },
	{ "CM", "thousand", { thousand, thousand }, .seconds = 120 },
	{ "CM", "busy", { busy, busy } },
	{ "CM", "enable-without", { enable_without } },
	{ "CM", "sread", { sread, sread } },
	{ 0 }
};
