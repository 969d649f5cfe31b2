/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a listener's program may do with a request but answer it, and what goes with calls and
 * answers: fi_cm(3). Rank 0 listens, rank 1 calls.
 */
#include "connect.h"

#include <stdlib.h>
#include <string.h>

struct side {
	struct ct *ct;
	struct ct_dom dom;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_cq *cq;
	char name[CT_NAME];
	size_t namelen;
};

static void side_open(struct ct *ct, struct side *s)
{
	const struct ct_want want = { .type = FI_EP_MSG };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };

	memset(s, 0, sizeof(*s));
	s->ct = ct;
	ct_open(ct, &s->dom, &want);
	ct_eq_open(&s->dom, &s->eq);
	CT_OK(ct, fi_cq_open(s->dom.domain, &attr, &s->cq, NULL));
	if (ct->rank) {
		ct_get(ct, NULL, 0, s->name, sizeof(s->name));
	} else {
		s->pep = ct_listen(&s->dom, s->eq, s->name, &s->namelen);
		ct_put(ct, 1, s->name, sizeof(s->name));
	}
}

static void side_close(struct side *s)
{
	ct_sync(s->ct, NULL);
	if (s->pep)
		CT_OK(s->ct, fi_close(&s->pep->fid));
	CT_OK(s->ct, fi_close(&s->cq->fid));
	CT_OK(s->ct, fi_close(&s->eq->fid));
	ct_close(&s->dom);
}

/* info NULL: the domain's. */
static struct fid_ep *end_open(struct side *s, struct fi_info *info)
{
	struct fid_ep *ep;

	CT_OK(s->ct, fi_endpoint(s->dom.domain, info ? info : s->dom.info, &ep, CTX(77)));
	CT_OK(s->ct, fi_ep_bind(ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	CT_OK(s->ct, fi_ep_bind(ep, &s->eq->fid, 0));
	return ep;
}

static void refused(struct side *s, struct fid_ep *ep)
{
	struct fi_eq_err_entry err = { 0 };
	char buf[1024];
	uint32_t event;

	CT_EQ(s->ct, ct_event(s->ct, s->eq, &event, buf, sizeof(buf)), -FI_EAVAIL);
	CT_EQ(s->ct, fi_eq_readerr(s->eq, &err, 0), sizeof(err));
	CT_TRUE(s->ct, err.fid == &ep->fid);
	CT_TRUE(s->ct, err.context == CTX(77)); /* fi_connect has none of its own: fi_eq(3) */
	CT_EQ(s->ct, err.err, FI_ECONNREFUSED);
}

/* ---- data ------------------------------------------------------------------------------------ */

/*
 * FI_OPT_CM_DATA_SIZE bounds what is exchanged: as many bytes arrive, and one more is cut off, at
 * each call: fi_cm(3), notes.
 */
static void data_bounds(struct ct *ct)
{
	char room[sizeof(struct fi_eq_cm_entry) + 4096], *data;
	size_t size = 0, len = sizeof(size), got;
	struct fi_eq_cm_entry *cm = (void *)room;
	struct fi_info *info;
	struct fid_ep *ep = NULL;
	uint32_t event;
	struct side s;

	side_open(ct, &s);
	if (ct->rank)
		ep = end_open(&s, NULL);
	CT_OK(ct, fi_getopt(ct->rank ? &ep->fid : &s.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size,
			    &len));
	CT_TRUE(ct, size > 0 && size < 4096);
	data = ct_alloc(ct, size + 1);
	memset(data, 0x30 + ct->rank, size + 1);
	if (ct->rank) {
		CT_OK(ct, fi_connect(ep, s.name, data, size + 1));
		CT_EQ(ct, ct_event(ct, s.eq, &event, room, sizeof(room)), (ssize_t)(sizeof(*cm) + size));
		CT_EQ(ct, event, FI_CONNECTED);
		CT_TRUE(ct, cm->data[0] == 0x30 && cm->data[size - 1] == 0x30);
	} else {
		got = size;
		info = ct_request(ct, s.eq, s.pep, room, &got);
		CT_TRUE(ct, room[0] == 0x31 && room[size - 1] == 0x31);
		ep = end_open(&s, info);
		CT_OK(ct, fi_accept(ep, data, size + 1));
		ct_expect(ct, s.eq, FI_CONNECTED, &ep->fid);
		fi_freeinfo(info);
	}
	ct_sync(ct, NULL);
	CT_OK(ct, fi_close(&ep->fid));
	free(data);
	side_close(&s);
}

/* ---- no answer ------------------------------------------------------------------------------- */

/*
 * The endpoint that was opened for a request goes before it has accepted: so the request has
 * failed, and its caller is told.
 */
static void acceptor_closes(struct ct *ct)
{
	struct fi_info *info;
	struct fid_ep *ep;
	struct side s;

	side_open(ct, &s);
	if (ct->rank) {
		ep = end_open(&s, NULL);
		CT_OK(ct, fi_connect(ep, s.name, NULL, 0));
		refused(&s, ep);
		CT_OK(ct, fi_close(&ep->fid));
	} else {
		info = ct_request(ct, s.eq, s.pep, NULL, NULL);
		ep = end_open(&s, info);
		CT_OK(ct, fi_close(&ep->fid));
		CT_EQ(ct, fi_reject(s.pep, info->handle, NULL, 0), -FI_EINVAL);
		CT_REFUSED(ct, fi_endpoint(s.dom.domain, info, &ep, NULL));
		fi_freeinfo(info);
	}
	side_close(&s);
}

/*
 * Of two endpoints that were opened for a request one may go, and the other accepts it; and
 * one whose request was answered by another takes nobody else's, though its handle may be of
 * the same place in memory.
 */
static void second_acceptor(struct ct *ct)
{
	struct fid_ep *ep, *late, *spare, *stale;
	struct fi_info *info;
	struct side s;

	side_open(ct, &s);
	if (ct->rank) {
		ep = end_open(&s, NULL);
		CT_OK(ct, fi_connect(ep, s.name, NULL, 0));
		ct_expect(ct, s.eq, FI_CONNECTED, &ep->fid);
		late = end_open(&s, NULL);
		CT_OK(ct, fi_connect(late, s.name, NULL, 0));
		ct_expect(ct, s.eq, FI_CONNECTED, &late->fid);
	} else {
		info = ct_request(ct, s.eq, s.pep, NULL, NULL);
		spare = end_open(&s, info);
		stale = end_open(&s, info);
		ep = end_open(&s, info);
		CT_OK(ct, fi_close(&spare->fid));
		CT_OK(ct, fi_accept(ep, NULL, 0));
		ct_expect(ct, s.eq, FI_CONNECTED, &ep->fid);
		fi_freeinfo(info);
		info = ct_request(ct, s.eq, s.pep, NULL, NULL);
		CT_REFUSED(ct, fi_accept(stale, NULL, 0));
		CT_OK(ct, fi_close(&stale->fid));
		late = end_open(&s, info);
		CT_OK(ct, fi_accept(late, NULL, 0));
		ct_expect(ct, s.eq, FI_CONNECTED, &late->fid);
		fi_freeinfo(info);
	}
	ct_sync(ct, NULL);
	CT_OK(ct, fi_close(&ep->fid));
	CT_OK(ct, fi_close(&late->fid));
	side_close(&s);
}

/* ---- the next listener ----------------------------------------------------------------------- */

static struct fid_ep *answer(struct side *s)
{
	struct fi_info *info = ct_request(s->ct, s->eq, s->pep, NULL, NULL);
	struct fid_ep *ep = end_open(s, info);

	fi_freeinfo(info);
	CT_OK(s->ct, fi_accept(ep, NULL, 0));
	ct_expect(s->ct, s->eq, FI_CONNECTED, &ep->fid);
	return ep;
}

static struct fid_ep *call(struct side *s)
{
	struct fid_ep *ep = end_open(s, NULL);

	CT_OK(s->ct, fi_connect(ep, s->name, NULL, 0));
	ct_expect(s->ct, s->eq, FI_CONNECTED, &ep->fid);
	return ep;
}

static void listen_again(struct side *s)
{
	struct fi_info *info = fi_dupinfo(s->dom.info);

	CT_OK(s->ct, fi_close(&s->pep->fid));
	free(info->src_addr);
	info->src_addr = ct_alloc(s->ct, s->namelen);
	memcpy(info->src_addr, s->name, s->namelen);
	info->src_addrlen = s->namelen;
	CT_OK(s->ct, fi_passive_ep(s->dom.fabric, info, &s->pep, NULL));
	CT_OK(s->ct, fi_pep_bind(s->pep, &s->eq->fid, 0));
	CT_OK(s->ct, fi_listen(s->pep));
	fi_freeinfo(info);
}

/*
 * A listener goes, and another comes at its port: who calls that meets it, though he has read
 * nothing of the first one's end.
 */
static void listener_reopened(struct ct *ct)
{
	struct fid_ep *ep;
	struct side s;
	char word;

	side_open(ct, &s);
	ep = ct->rank ? call(&s) : answer(&s);
	for (int i = 0; i < 3; i++) {
		CT_OK(ct, fi_close(&ep->fid));
		if (ct->rank) {
			ct_get(ct, NULL, 0, &word, 1);
			ep = call(&s);
		} else {
			listen_again(&s);
			ct_put(ct, 1, "l", 1);
			ep = answer(&s);
		}
	}
	ct_sync(ct, NULL);
	CT_OK(ct, fi_close(&ep->fid));
	side_close(&s);
}

/*
 * A passive endpoint has the name that it is given, before it listens and then;
 * FI_BACKLOG is for either time.
 */
static void pep_named(struct side *s)
{
	char name[CT_NAME] = "";
	size_t len = sizeof(name);
	int backlog = 1;

	CT_OK(s->ct, fi_close(&s->pep->fid));
	CT_OK(s->ct, fi_passive_ep(s->dom.fabric, s->dom.info, &s->pep, NULL));
	CT_OK(s->ct, fi_pep_bind(s->pep, &s->eq->fid, 0));
	CT_OK(s->ct, fi_control(&s->pep->fid, FI_BACKLOG, &backlog));
	CT_OK(s->ct, fi_setname(&s->pep->fid, s->name, s->namelen));
	CT_OK(s->ct, fi_listen(s->pep));
	CT_OK(s->ct, fi_getname(&s->pep->fid, name, &len));
	CT_TRUE(s->ct, len == s->namelen && !memcmp(name, s->name, len));
	CT_OK(s->ct, fi_control(&s->pep->fid, FI_BACKLOG, &backlog));
}

static void listener_named(struct ct *ct)
{
	struct fid_ep *ep;
	struct side s;
	char word;

	side_open(ct, &s);
	if (ct->rank) {
		ct_get(ct, NULL, 0, &word, 1);
	} else {
		pep_named(&s);
		ct_put(ct, 1, "l", 1);
	}
	ep = ct->rank ? call(&s) : answer(&s);
	ct_sync(ct, NULL);
	CT_OK(ct, fi_close(&ep->fid));
	side_close(&s);
}

const struct ct_case ct_answer[] = {
	{ "CM", "data-bounds", { data_bounds, data_bounds } },
	{ "CM", "acceptor-closes", { acceptor_closes, acceptor_closes } },
	{ "CM", "second-acceptor", { second_acceptor, second_acceptor } },
	{ "CM", "listener-reopened", { listener_reopened, listener_reopened } },
	{ "CM", "listener-named", { listener_named, listener_named } },
	{ 0 },
};
