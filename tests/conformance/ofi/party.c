/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Members of collective groups. */
#include "party.h"
#include "keyed.h"

#include <rdma/fi_eq.h>
#include <stdlib.h>
#include <string.h>

int party_count(const struct party *p, const int *list)
{
	int n = 0;

	if (!list)
		return p->members;
	while (list[n] >= 0)
		n++;
	return n;
}

int party_rank(const struct party *p, const int *list, int member)
{
	if (!list)
		return member;
	for (int i = 0; list[i] >= 0; i++)
		if (list[i] == member)
			return i;
	return -1;
}

/* ---- opening ---- */

static void seat_open(struct party *p, struct seat *s)
{
	struct ct *ct = p->ct;

	if (s == p->seat) {
		s->ep = p->e.ep;
	} else {
		CT_OK(ct, fi_endpoint(p->dom.domain, p->dom.info, &s->ep, NULL));
		CT_OK(ct, fi_ep_bind(s->ep, &p->e.av->fid, 0));
		CT_OK(ct, fi_ep_bind(s->ep, &p->e.txcq->fid, FI_TRANSMIT | FI_RECV | p->dom.want.tx_bind));
	}
	CT_OK(ct, fi_ep_bind(s->ep, &p->eq->fid, 0));
	if (p->cntr)
		CT_OK(ct, fi_ep_bind(s->ep, &p->cntr->fid, FI_WRITE));
	CT_OK(ct, fi_enable(s->ep));
}

static void seats_open(struct party *p)
{
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct ct *ct = p->ct;

	CT_OK(ct, fi_eq_open(p->dom.fabric, &eq, &p->eq, NULL));
	if (p->dom.want.counters)
		CT_OK(ct, fi_cntr_open(p->dom.domain, &cntr, &p->cntr, NULL));
	if (p->dom.want.av_keys)
		p->key = kd_insert_key(ct, p->e.av, KD_FIRST);
	for (int m = ct->rank; m < p->members; m += ct->procs) {
		p->seat[p->seats].member = m;
		seat_open(p, &p->seat[p->seats++]);
	}
}

/* Names of all, and into the AV from a place on that is another one in each process. */
static void seats_meet(struct party *p)
{
	struct ct *ct = p->ct;
	char name[PARTY_MAX][CT_NAME];

	memset(name, 0, sizeof(name));
	for (int i = 0; i < p->seats; i++) {
		size_t len = CT_NAME;

		CT_OK(ct, fi_getname(&p->seat[i].ep->fid, name[p->seat[i].member], &len));
		for (int r = 0; r < ct->procs; r++)
			if (r != ct->rank)
				ct_put(ct, r, name[p->seat[i].member], CT_NAME);
	}
	for (int m = 0; m < p->members; m++)
		if (m % ct->procs != ct->rank)
			ct_get(ct, NULL, m % ct->procs, name[m], CT_NAME);
	for (int i = 0; i < p->members; i++) {
		const int m = (i + ct->rank + 1) % p->members;

		p->addr[m] = p->dom.want.av_keys ? kd_insert(ct, p->e.av, name[m], p->key)
						 : ct_insert(&p->e, name[m]);
	}
	ct_sync(ct, &p->e);
}

void party_open(struct ct *ct, struct party *p, int members, const struct ct_want *want)
{
	struct ct_want w = *want;

	memset(p, 0, sizeof(*p));
	p->ct = ct;
	p->members = members;
	w.caps = (w.caps ? w.caps : FI_MSG | FI_TAGGED) | FI_COLLECTIVE;
	w.type = FI_EP_RDM;
	w.disabled = true;
	ct_open(ct, &p->dom, &w);
	p->dom.want.counters = false;
	ct_ep_open(&p->dom, &p->e);
	p->dom.want.counters = w.counters;
	seats_open(p);
	seats_meet(p);
}

void party_close(struct party *p)
{
	ct_sync(p->ct, &p->e);
	party_shut(p);
}

void party_shut(struct party *p)
{
	struct ct *ct = p->ct;

	for (int i = p->seats ? 1 : 0; i < p->seats; i++)
		CT_OK(ct, fi_close(&p->seat[i].ep->fid));
	CT_OK(ct, fi_close(&p->e.ep->fid));
	if (p->cntr)
		CT_OK(ct, fi_close(&p->cntr->fid));
	CT_OK(ct, fi_close(&p->eq->fid));
	CT_OK(ct, fi_close(&p->e.txcq->fid));
	CT_OK(ct, fi_close(&p->e.av->fid));
	ct_close(&p->dom);
	free(p->e.stash);
}

/* ---- joining ---- */

static void make_set(struct party *p, int g, const int *list)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };

	CT_OK(p->ct, fi_av_set(p->e.av, &attr, &p->set[g], NULL));
	for (int i = 0; i < party_count(p, list); i++)
		CT_OK(p->ct, fi_av_set_insert(p->set[g], p->addr[list ? list[i] : i]));
}

void party_call(struct party *p, int g, const int *list)
{
	fi_addr_t addr;

	make_set(p, g, list);
	CT_OK(p->ct, fi_av_set_addr(p->set[g], &addr));
	for (int i = 0; i < p->seats; i++)
		if (party_rank(p, list, p->seat[i].member) >= 0)
			CT_OK(p->ct, fi_join_collective(p->seat[i].ep, addr, p->set[g], 0, &p->seat[i].mc[g],
							&p->seat[i].mc[g]));
}

bool party_event(struct party *p, uint32_t *code, struct fi_eq_err_entry *err)
{
	struct fi_eq_entry entry;
	ssize_t rc = fi_eq_read(p->eq, code, &entry, sizeof(entry), 0);

	memset(err, 0, sizeof(*err));
	if (rc == -FI_EAGAIN)
		return false;
	if (rc == -FI_EAVAIL) {
		CT_EQ(p->ct, fi_eq_readerr(p->eq, err, 0), sizeof(*err));
		return true;
	}
	CT_EQ(p->ct, rc, sizeof(entry));
	CT_TRUE(p->ct, entry.context == entry.fid->context && entry.fid->fclass == FI_CLASS_MC);
	return true;
}

void party_wait_joined(struct party *p, int events)
{
	const double end = ct_deadline(p->ct);
	struct fi_eq_err_entry err;
	uint32_t code;

	while (events > 0) {
		ct_late(p->ct, end, "groups to be joined");
		if (!party_event(p, &code, &err)) {
			ct_pause();
			continue;
		}
		CT_EQ(p->ct, err.err, 0);
		CT_EQ(p->ct, code, FI_JOIN_COMPLETE);
		events--;
	}
}

void party_join(struct party *p, int g, const int *list)
{
	int events = 0;

	party_call(p, g, list);
	for (int i = 0; i < p->seats; i++)
		events += p->seat[i].mc[g] != NULL;
	party_wait_joined(p, events);
}

void party_leave(struct party *p, int g)
{
	for (int i = 0; i < p->seats; i++)
		if (p->seat[i].mc[g]) {
			CT_OK(p->ct, fi_close(&p->seat[i].mc[g]->fid));
			p->seat[i].mc[g] = NULL;
		}
	if (p->set[g])
		CT_OK(p->ct, fi_close(&p->set[g]->fid));
	p->set[g] = NULL;
}
