/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections: fi_cm(3), passive endpoints of fi_endpoint(3), and their events, fi_eq(3). Rank
 * 0 listens, rank 1 calls.
 */
#include "ends.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- M3, M5 ---------------------------------------------------------------------------------- */

static void before_enable(struct ct *ct)
{
	struct end d;
	char buf[8] = { 0 };

	end_open_dom(ct, &d);
	end_open_ep(&d, NULL, &d.e);
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
	end_finish(&d);
}

/* Posted before fi_connect and before fi_accept, and there for the first message. */
static void receives_first(struct ct *ct)
{
	struct fi_info *info = NULL;
	char in[16] = "", say[2][16] = { "from the called", "from the caller" };
	struct end d;

	end_open_dom(ct, &d);
	if (!ct->rank)
		info = end_request(&d);
	else
		end_open_ep(&d, NULL, &d.e);
	if (ct->rank) { /* enabled first, so that a receive can be posted */
		CT_OK(ct, fi_enable(d.e.ep));
		ct_recv(&d.e, in, 16, CTX(1));
		CT_OK(ct, fi_connect(d.e.ep, d.name, NULL, 0));
	} else {
		end_open_ep(&d, info, &d.e);
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
	end_finish(&d);
}

static void addresses_ignored(struct ct *ct)
{
	static const fi_addr_t any[] = { 0, 1, 77, FI_ADDR_UNSPEC, 1ull << 40 };
	struct end d;
	char in[5][8], out[8] = "message";
	size_t i;

	end_join(ct, &d);
	for (i = 0; i < CT_COUNT(any); i++) {
		CT_POST(&d.e, fi_recv(d.e.ep, in[i], 8, NULL, any[4 - i], CTX(10 + i)));
		CT_POST(&d.e, fi_send(d.e.ep, out, 8, NULL, any[i], CTX(20 + i)));
	}
	for (i = 0; i < CT_COUNT(any); i++) {
		CT_EQ(ct, ct_done(&d.e, CTX(10 + i)), 8);
		ct_done(&d.e, CTX(20 + i));
	}
	ct_sync(ct, &d.e);
	end_finish(&d);
}

/* ---- names and private data ------------------------------------------------------------------ */

static void data_both_ways(struct ct *ct)
{
	char room[sizeof(struct fi_eq_cm_entry) + 1024], data[16] = "";
	struct fi_eq_cm_entry *cm = (void *)room;
	struct fi_info *info;
	size_t len = 5, size = 0;
	uint32_t event;
	struct end d;
	ssize_t n;

	end_open_dom(ct, &d);
	if (ct->rank) {
		end_open_ep(&d, NULL, &d.e);
		CT_OK(ct, fi_connect(d.e.ep, d.name, "hello", 5));
		n = ct_event(ct, d.eq, &event, room, sizeof(room));
		CT_EQ(ct, event, FI_CONNECTED);
		CT_TRUE(ct, n >= (ssize_t)sizeof(*cm) + 7 && !memcmp(cm->data, "welcome", 7));
	} else {
		info = ct_request(ct, d.eq, d.pep, data, &len);
		CT_TRUE(ct, !memcmp(data, "hello", 5));
		end_open_ep(&d, info, &d.e);
		CT_TRUE(ct, info->src_addr && info->dest_addr);
		fi_freeinfo(info);
		CT_OK(ct, fi_accept(d.e.ep, "welcome", 7));
		ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
	}
	len = sizeof(size);
	CT_OK(ct, fi_getopt(&d.e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	CT_TRUE(ct, size >= 7 && len == sizeof(size));
	ct_sync(ct, &d.e);
	end_finish(&d);
}

static void names(struct ct *ct)
{
	char own[CT_NAME] = "", peer[CT_NAME] = "", theirs[CT_NAME];
	size_t len = 1, peerlen = sizeof(peer);
	struct end d;

	end_join(ct, &d);
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
	end_finish(&d);
}

/* An active endpoint gets the address that a passive one has reserved. */
static void inherited(struct ct *ct)
{
	char reserved[CT_NAME] = "", own[CT_NAME] = "";
	size_t len = sizeof(reserved), ownlen = sizeof(own);
	struct fi_info *info;
	struct fid_pep *pep;
	struct end d;

	end_open_dom(ct, &d);
	CT_OK(ct, fi_passive_ep(d.dom.fabric, d.dom.info, &pep, NULL));
	CT_OK(ct, fi_getname(&pep->fid, reserved, &len));
	info = fi_dupinfo(d.dom.info);
	info->handle = &pep->fid;
	end_open_ep(&d, info, &d.e);
	info->handle = NULL;
	fi_freeinfo(info);
	CT_OK(ct, fi_close(&pep->fid));
	CT_OK(ct, fi_enable(d.e.ep));
	CT_OK(ct, fi_getname(&d.e.ep->fid, own, &ownlen));
	CT_TRUE(ct, len == ownlen && !memcmp(own, reserved, len));
	end_finish(&d);
}

/* ---- no connection --------------------------------------------------------------------------- */

static void refused(struct ct *ct)
{
	struct end d;
	char in[8];

	end_open_dom(ct, &d);
	if (!ct->rank) {
		CT_OK(ct, fi_close(&d.pep->fid));
		d.pep = NULL;
	}
	ct_sync(ct, NULL);
	if (ct->rank) {
		end_open_ep(&d, NULL, &d.e);
		CT_OK(ct, fi_enable(d.e.ep));
		ct_recv(&d.e, in, 8, CTX(1));
		CT_OK(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		failed(&d, &d.e.ep->fid, FI_ECONNREFUSED, NULL);
		end_cancelled(&d.e, CTX(1));
		CT_REFUSED(ct, fi_send(d.e.ep, in, 8, NULL, 0, NULL));
		CT_REFUSED(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		end_close_ep(&d.e);
	}
	end_close_dom(&d);
}

static void rejected(struct ct *ct)
{
	struct fi_info *info;
	struct end d;

	end_open_dom(ct, &d);
	if (ct->rank) {
		end_call(&d);
		failed(&d, &d.e.ep->fid, FI_ECONNREFUSED, "not today");
		end_close_ep(&d.e);
	} else {
		info = end_request(&d);
		CT_OK(ct, fi_reject(d.pep, info->handle, "not today", 9));
		CT_REFUSED(ct, fi_reject(d.pep, info->handle, NULL, 0));
		CT_REFUSED(ct, fi_endpoint(d.dom.domain, info, &d.e.ep, NULL));
		fi_freeinfo(info);
	}
	ct_sync(ct, NULL);
	end_close_dom(&d);
}

/* The program that listens never answers. */
static void unanswered(struct ct *ct)
{
	struct fi_info *info;
	struct end d;

	if (strcmp(ct->conf->provider, "heddle"))
		ct_unsupported(ct, "there is no setting for how long an answer may take");
	end_open_dom(ct, &d);
	if (ct->rank) {
		end_call(&d);
		failed(&d, &d.e.ep->fid, FI_ETIMEDOUT, NULL);
		end_close_ep(&d.e);
		ct_sync(ct, NULL);
	} else {
		info = end_request(&d);
		ct_sync(ct, NULL);
		end_no_event(&d, 50);
		end_open_ep(&d, info, &d.e); /* too late, which only fi_accept finds out */
		CT_REFUSED(ct, fi_accept(d.e.ep, NULL, 0));
		fi_freeinfo(info);
		end_close_ep(&d.e);
	}
	end_close_dom(&d);
}

/* The caller is killed while its request waits. */
static void caller_killed(struct ct *ct)
{
	struct fi_info *info;
	struct end d;

	end_open_dom(ct, &d);
	if (ct->rank) {
		end_call(&d);
		ct_doomed(ct);
		for (;;) {
			fi_cq_read(d.e.txcq, NULL, 0);
			ct_pause();
		}
	}
	info = end_request(&d);
	CT_OK(ct, kill(ct->pid[1], SIGKILL));
	end_no_event(&d, 300);
	end_open_ep(&d, info, &d.e);
	fi_freeinfo(info);
	if (!fi_accept(d.e.ep, NULL, 0)) {
		/* it may be too early to know: then an error entry, or an end at once */
		struct fi_eq_err_entry err = { 0 };
		struct fi_eq_cm_entry cm;
		uint32_t event;

		if (ct_event(ct, d.eq, &event, &cm, sizeof(cm)) == -FI_EAVAIL)
			CT_EQ(ct, fi_eq_readerr(d.eq, &err, 0), sizeof(err));
		else
			CT_TRUE(ct, event == FI_SHUTDOWN || event == FI_CONNECTED);
	}
	end_finish(&d);
}

/* An accepted request cannot be accepted again, nor can the endpoint. */
static void twice(struct ct *ct)
{
	struct fi_info *info;
	struct ct_ep second;
	struct end d;

	end_open_dom(ct, &d);
	if (ct->rank) {
		end_call(&d);
		CT_REFUSED(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		CT_REFUSED(ct, fi_accept(d.e.ep, NULL, 0));
	} else {
		info = end_request(&d);
		end_open_ep(&d, info, &d.e);
		end_open_ep(&d, info, &second);
		CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
		CT_REFUSED(ct, fi_accept(d.e.ep, NULL, 0));
		CT_REFUSED(ct, fi_accept(second.ep, NULL, 0));
		CT_REFUSED(ct, fi_connect(second.ep, d.name, NULL, 0));
		CT_REFUSED(ct, fi_reject(d.pep, info->handle, NULL, 0));
		end_close_ep(&second);
		fi_freeinfo(info);
	}
	ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
	end_no_event(&d, 20);
	ct_sync(ct, &d.e);
	end_finish(&d);
}

/* A listener closes: two requests have been read, which can still be answered, and one has not. */
#define CLOSING 3

static void connect_one(struct end *d, struct ct_ep *e)
{
	end_open_ep(d, NULL, e);
	CT_OK(d->ct, fi_connect(e->ep, d->name, NULL, 0));
}

static void accept_one(struct end *d, struct fi_info *info, struct ct_ep *e)
{
	end_open_ep(d, info, e);
	fi_freeinfo(info);
	CT_OK(d->ct, fi_accept(e->ep, NULL, 0));
	ct_expect(d->ct, d->eq, FI_CONNECTED, &e->ep->fid);
}

/* One of those who called has been accepted, and the others refused. */
static void callers_hear(struct end *d, struct ct_ep *e)
{
	struct ct *ct = d->ct;
	int up = 0;

	for (int i = 0; i < CLOSING; i++) {
		struct fi_eq_err_entry err = { 0 };
		struct fi_eq_cm_entry cm;
		uint32_t event;

		if (ct_event(ct, d->eq, &event, &cm, sizeof(cm)) != -FI_EAVAIL) {
			CT_EQ(ct, event, FI_CONNECTED);
			up++;
			continue;
		}
		CT_EQ(ct, fi_eq_readerr(d->eq, &err, 0), sizeof(err));
		CT_TRUE(ct, err.err == FI_ECONNREFUSED || err.err == FI_ECONNRESET);
	}
	CT_EQ(ct, up, 1);
	ct_sync(ct, NULL);
	for (int i = 0; i < CLOSING; i++)
		end_close_ep(&e[i]);
}

static struct fid_pep *listen_again(struct end *d)
{
	struct fi_info *info = fi_dupinfo(d->dom.info);
	struct fid_pep *pep;

	free(info->src_addr);
	info->src_addr = malloc(d->namelen);
	info->src_addrlen = d->namelen;
	memcpy(info->src_addr, d->name, d->namelen);
	CT_OK(d->ct, fi_passive_ep(d->dom.fabric, info, &pep, NULL));
	CT_OK(d->ct, fi_pep_bind(pep, &d->eq->fid, 0));
	CT_OK(d->ct, fi_listen(pep));
	fi_freeinfo(info);
	return pep;
}

static void listener_closes(struct ct *ct)
{
	struct fi_info *info[2];
	struct ct_ep e[CLOSING], after;
	struct end d;

	end_open_dom(ct, &d);
	if (ct->rank) {
		for (int i = 0; i < CLOSING; i++)
			connect_one(&d, &e[i]);
		callers_hear(&d, e);
		ct_sync(ct, NULL);
		connect_one(&d, &after); /* the address is another's */
		ct_expect(ct, d.eq, FI_CONNECTED, &after.ep->fid);
	} else {
		info[0] = end_request(&d);
		info[1] = end_request(&d);
		CT_OK(ct, fi_close(&d.pep->fid));
		end_open_ep(&d, info[1], &e[1]);
		end_close_ep(&e[1]); /* which is no */
		accept_one(&d, info[0], &e[0]);
		/* the handle is stale */
		CT_REFUSED(ct, fi_endpoint(d.dom.domain, info[1], &after.ep, NULL));
		fi_freeinfo(info[1]);
		ct_sync(ct, NULL);
		end_close_ep(&e[0]);
		d.pep = listen_again(&d);
		ct_sync(ct, NULL);
		accept_one(&d, end_request(&d), &after);
	}
	ct_sync(ct, NULL);
	end_close_ep(&after);
	end_close_dom(&d);
}

#define CALLS 20

/*
 * Whoever calls again once he is connected finds a listener that knows of that: FI_CONNECTED stands
 * before the next FI_CONNREQ.
 */
static void one_after_another(struct ct *ct)
{
	struct ct_ep e[CALLS];
	struct fi_info *info;
	struct end d;

	end_open_dom(ct, &d);
	for (int i = 0; i < CALLS; i++) {
		if (ct->rank) {
			end_open_ep(&d, NULL, &e[i]);
			CT_OK(ct, fi_connect(e[i].ep, d.name, NULL, 0));
		} else {
			info = end_request(&d);
			end_open_ep(&d, info, &e[i]);
			fi_freeinfo(info);
			CT_OK(ct, fi_accept(e[i].ep, NULL, 0));
		}
		ct_expect(ct, d.eq, FI_CONNECTED, &e[i].ep->fid);
	}
	ct_sync(ct, NULL);
	for (int i = 0; i < CALLS; i++)
		end_close_ep(&e[i]);
	end_close_dom(&d);
}

/* ---- what is in use, what is missing --------------------------------------------------------- */

static void busy(struct ct *ct)
{
	struct end d;

	end_join(ct, &d);
	CT_EQ(ct, fi_close(&d.eq->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&d.e.txcq->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&d.dom.domain->fid), -FI_EBUSY);
	ct_sync(ct, &d.e);
	end_close_ep(&d.e);
	if (!ct->rank) {
		CT_EQ(ct, fi_close(&d.eq->fid), -FI_EBUSY); /* the passive endpoint still */
		CT_EQ(ct, fi_close(&d.dom.fabric->fid), -FI_EBUSY);
	}
	end_close_dom(&d);
}

static void enable_without(struct ct *ct)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_pep *pep;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct end d;

	end_open_dom(ct, &d);
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
	end_close_dom(&d);
}

/* fi_eq_sread sleeps until the connection is there; its descriptor polls readable. */
static void sread(struct ct *ct)
{
	struct fi_eq_cm_entry cm;
	uint32_t event = 99;
	struct end d;
	double cpu;

	end_open_dom(ct, &d);
	if (ct->rank) {
		ct_sync(ct, NULL);
		ct_let_sleep(ct->pid[0]);
		end_call(&d);
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), 30000, 0), sizeof(cm));
		CT_EQ(ct, event, FI_CONNECTED);
	} else {
		cpu = ct_cpu();
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), 20, 0), -FI_EAGAIN);
		ct_sync(ct, NULL); /* before that nobody calls */
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), 30000, 0), sizeof(cm));
		CT_EQ(ct, event, FI_CONNREQ);
		CT_TRUE(ct, ct_cpu() - cpu < 0.15);
		end_open_ep(&d, cm.info, &d.e);
		fi_freeinfo(cm.info);
		CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
		CT_EQ(ct, fi_eq_sread(d.eq, &event, &cm, sizeof(cm), -1, 0), sizeof(cm));
		CT_EQ(ct, event, FI_CONNECTED);
	}
	ct_sync(ct, &d.e);
	end_finish(&d);
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
	{ "CM", "busy", { busy, busy } },
	{ "CM", "enable-without", { enable_without } },
	{ "CM", "sread", { sread, sread } },
	{ 0 }
};
