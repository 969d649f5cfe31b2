/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "ends.h"

#include <stdlib.h>
#include <string.h>

void end_open_dom(struct ct *ct, struct end *d)
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

void end_open_ep(struct end *d, struct fi_info *info, struct ct_ep *e)
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

void end_close_ep(struct ct_ep *e)
{
	CT_OK(e->ct, fi_close(&e->ep->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
	free(e->stash);
}

void end_close_dom(struct end *d)
{
	if (d->pep)
		CT_OK(d->ct, fi_close(&d->pep->fid));
	CT_OK(d->ct, fi_close(&d->eq->fid));
	ct_close(&d->dom);
}

struct fi_info *end_request(struct end *d)
{
	return ct_request(d->ct, d->eq, d->pep, NULL, NULL);
}

void end_join(struct ct *ct, struct end *d)
{
	struct fi_info *info;

	end_open_dom(ct, d);
	if (ct->rank) {
		end_open_ep(d, NULL, &d->e);
		CT_OK(ct, fi_connect(d->e.ep, d->name, NULL, 0));
	} else {
		info = end_request(d);
		end_open_ep(d, info, &d->e);
		fi_freeinfo(info);
		CT_OK(ct, fi_accept(d->e.ep, NULL, 0));
	}
	ct_expect(ct, d->eq, FI_CONNECTED, &d->e.ep->fid);
}

void end_finish(struct end *d)
{
	end_close_ep(&d->e);
	end_close_dom(d);
}

void end_no_event(struct end *d, int ms)
{
	struct fi_eq_cm_entry cm;
	double end = ct_now() + ms / 1e3;
	uint32_t event;

	do {
		CT_EQ(d->ct, fi_eq_read(d->eq, &event, &cm, sizeof(cm), 0), -FI_EAGAIN);
		ct_pause();
	} while (ct_now() < end);
}

/* Rank 1's endpoint calls. */
void end_call(struct end *d)
{
	end_open_ep(d, NULL, &d->e);
	CT_OK(d->ct, fi_connect(d->e.ep, d->name, NULL, 0));
}

void end_cancelled(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, FI_ECANCELED);
}
