/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connected endpoints, for cases that were written for connectionless ones. Two ranks are connected
 * pair by pair: the n-th endpoint of rank 0 with the n-th of rank 1. Rank 0 is called: it has no
 * endpoint before a request has come, so the other calls when it enables its own, and both finish
 * in ct_join.
 */
#include "connect.h"

#include <stdlib.h>
#include <string.h>

ssize_t ct_event(struct ct *ct, struct fid_eq *eq, uint32_t *event, void *buf, size_t len)
{
	double end = ct_deadline(ct);
	ssize_t n;

	while ((n = fi_eq_read(eq, event, buf, len, 0)) == -FI_EAGAIN) {
		ct_late(ct, end, "an event");
		ct_pause();
	}
	return n;
}

struct fi_info *ct_request(struct ct *ct, struct fid_eq *eq, struct fid_pep *pep, char *data, size_t *len)
{
	char room[sizeof(struct fi_eq_cm_entry) + 512];
	struct fi_eq_cm_entry *cm = (void *)room;
	uint32_t event = 99;
	ssize_t n = ct_event(ct, eq, &event, room, sizeof(room));

	CT_TRUE(ct, n >= (ssize_t)sizeof(*cm));
	CT_EQ(ct, event, FI_CONNREQ);
	CT_TRUE(ct, cm->fid == &pep->fid && cm->info && cm->info->handle);
	n -= (ssize_t)sizeof(*cm);
	if (data) {
		CT_TRUE(ct, (size_t)n >= *len);
		memcpy(data, cm->data, *len);
	}
	return cm->info;
}

void ct_expect(struct ct *ct, struct fid_eq *eq, uint32_t wanted, struct fid *fid)
{
	struct fi_eq_cm_entry cm = { 0 };
	uint32_t event = 99;
	ssize_t n = ct_event(ct, eq, &event, &cm, sizeof(cm));

	if (n == -FI_EAVAIL) {
		struct fi_eq_err_entry err = { 0 };

		CT_EQ(ct, fi_eq_readerr(eq, &err, 0), sizeof(err));
		ct_fail(ct, "an error instead of event %u: %s", wanted, fi_strerror(err.err));
	}
	CT_EQ(ct, n, sizeof(cm));
	CT_EQ(ct, event, wanted);
	CT_TRUE(ct, cm.fid == fid);
}

void ct_eq_open(struct ct_dom *dom, struct fid_eq **eq)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	CT_OK(dom->ct, fi_eq_open(dom->fabric, &attr, eq, NULL));
}

struct fid_pep *ct_listen(struct ct_dom *dom, struct fid_eq *eq, char *name, size_t *len)
{
	struct fid_pep *pep;

	CT_OK(dom->ct, fi_passive_ep(dom->fabric, dom->info, &pep, NULL));
	CT_OK(dom->ct, fi_pep_bind(pep, &eq->fid, 0));
	CT_OK(dom->ct, fi_listen(pep));
	*len = CT_NAME;
	CT_OK(dom->ct, fi_getname(&pep->fid, name, len));
	return pep;
}

bool ct_connects(const struct ct_dom *dom)
{
	return dom->info->ep_attr->type == FI_EP_MSG;
}

/* The info that an endpoint is opened with: rank 0's is that of the request. */
struct fi_info *ct_connect_info(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	size_t len;

	if (ct->procs == 1)
		return fi_dupinfo(e->dom->info);
	if (ct->procs > 2)
		ct_unsupported(ct, "a connected endpoint has one peer");
	ct_eq_open(e->dom, &e->eq);
	if (ct->rank) {
		ct_get(ct, NULL, 0, e->peer, sizeof(e->peer));
		return fi_dupinfo(e->dom->info);
	}
	e->pep = ct_listen(e->dom, e->eq, e->peer, &len);
	ct_put(ct, 1, e->peer, sizeof(e->peer));
	return ct_request(ct, e->eq, e->pep, NULL, NULL);
}

void ct_connect_bind(struct ct_ep *e)
{
	if (!e->eq)
		ct_eq_open(e->dom, &e->eq);
	CT_OK(e->ct, fi_ep_bind(e->ep, &e->eq->fid, 0));
}

/* The endpoint is enabled: call, where we are to. */
void ct_connect_begin(struct ct_ep *e)
{
	if (e->ct->procs == 2 && e->ct->rank)
		CT_OK(e->ct, fi_connect(e->ep, e->peer, NULL, 0));
}

void ct_connect_end(struct ct_ep *e)
{
	struct ct *ct = e->ct;

	if (!ct->rank)
		CT_OK(ct, fi_accept(e->ep, NULL, 0));
	ct_expect(ct, e->eq, FI_CONNECTED, &e->ep->fid);
	e->addr[1 - ct->rank] = FI_ADDR_UNSPEC; /* not looked at */
	ct_sync(ct, e);
}

void ct_connect_close(struct ct_ep *e)
{
	if (e->pep)
		CT_OK(e->ct, fi_close(&e->pep->fid));
	if (e->eq)
		CT_OK(e->ct, fi_close(&e->eq->fid));
}
