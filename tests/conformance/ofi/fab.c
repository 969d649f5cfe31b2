/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Fabric objects: from the hints of a case to endpoints that know each other. */
#include "connect.h"

#include <stdlib.h>
#include <string.h>

static size_t put_key(const char *key, uint8_t **out)
{
	*out = key ? (uint8_t *)strdup(key) : NULL;
	return *out ? strlen(key) : 0;
}

const char *ct_node(const struct ct *ct)
{
	return ct->conf->node[ct->rank];
}

struct fi_info *ct_hints(struct ct *ct, const struct ct_want *want)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		ct_fail(ct, "fi_allocinfo: no memory");
	h->caps = want->caps ? want->caps : ct->conf->caps;
	if (ct->conf->type == FI_EP_MSG && !want->type)
		/* "only applies to connectionless endpoints", fi_getinfo(3) */
		h->caps &= ~FI_SOURCE;
	h->mode = want->mode;
	h->ep_attr->type = want->type ? want->type : ct->conf->type;
	h->fabric_attr->prov_name = strdup(ct->conf->provider);
	h->tx_attr->op_flags = want->tx_op_flags;
	h->rx_attr->op_flags = want->rx_op_flags;
	h->rx_attr->size = want->rx_size;
	h->tx_attr->msg_order = want->msg_order;
	h->rx_attr->msg_order = want->msg_order;
	h->ep_attr->max_order_raw_size = want->max_order;
	h->ep_attr->max_order_war_size = want->max_order;
	h->ep_attr->max_order_waw_size = want->max_order;
	h->tx_attr->comp_order = want->tx_comp_order;
	h->rx_attr->comp_order = want->rx_comp_order;
	h->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (want->mr_mode)
		h->domain_attr->mr_mode = want->mr_mode == CT_MR_NONE ? 0 : want->mr_mode;
	h->domain_attr->resource_mgmt = want->rm ? want->rm : FI_RM_ENABLED;
	h->domain_attr->av_type = want->av_type;
	h->domain_attr->auth_key_size = put_key(want->domain_key, &h->domain_attr->auth_key);
	if (want->av_keys)
		h->domain_attr->auth_key_size = SIZE_MAX;
	h->ep_attr->auth_key_size = put_key(want->ep_key, &h->ep_attr->auth_key);
	h->domain_attr->threading = want->threading ? want->threading : ct->conf->threading;
	h->domain_attr->data_progress = want->progress ? want->progress : ct->conf->progress;
	return h;
}

int ct_getinfo(struct ct *ct, struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(CT_API, ct_node(ct), NULL, ct_node(ct) ? FI_SOURCE : 0, hints, info);
}

/* The first info with the modes wanted: those that need less come before it. */
static void pick_mode(struct ct_dom *dom)
{
	struct fi_info *list = dom->info, *i;
	uint64_t mode = dom->want.mode;

	for (i = list; i && (i->mode & mode) != mode;)
		i = i->next;
	if (!i)
		ct_unsupported(dom->ct, "no info has mode %s", fi_tostr(&mode, FI_TYPE_MODE));
	dom->info = fi_dupinfo(i);
	fi_freeinfo(list);
}

void ct_open(struct ct *ct, struct ct_dom *dom, const struct ct_want *want)
{
	static const struct ct_want usual;
	struct fi_info *hints;
	int rc;

	memset(dom, 0, sizeof(*dom));
	dom->ct = ct;
	dom->want = want ? *want : usual;
	hints = ct_hints(ct, &dom->want);
	rc = ct_getinfo(ct, hints, &dom->info);
	if (rc == -FI_ENODATA || rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_getinfo refuses what this case needs: %s (caps %s)", fi_strerror(-rc),
			       fi_tostr(&hints->caps, FI_TYPE_CAPS));
	CT_OK(ct, rc);
	fi_freeinfo(hints);
	if (dom->want.mode)
		pick_mode(dom);
	CT_OK(ct, fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	CT_OK(ct, fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
}

void ct_close(struct ct_dom *dom)
{
	CT_OK(dom->ct, fi_close(&dom->domain->fid));
	CT_OK(dom->ct, fi_close(&dom->fabric->fid));
	fi_freeinfo(dom->info);
}

static struct fid_cq *open_cq(struct ct_dom *dom)
{
	const struct ct_want *w = &dom->want;
	struct fi_cq_attr attr = {
		.size = w->cq_size,
		.format = w->format ? w->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = w->wait,
		.wait_set = w->wait_set,
		.wait_cond = w->cond,
	};
	struct fid_cq *cq;
	int rc = fi_cq_open(dom->domain, &attr, &cq, NULL);

	/* Wait objects are no part of the hints: their refusal comes only here. */
	if (w->wait != FI_WAIT_NONE && rc == -FI_ENOSYS)
		ct_unsupported(dom->ct, "fi_cq_open refuses wait object %d: %s", w->wait, fi_strerror(-rc));
	CT_OK(dom->ct, rc);
	return cq;
}

static struct fid_cntr *open_counter(struct ct_ep *e, uint64_t what)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = e->dom->want.wait,
				     .wait_set = e->dom->want.wait_set };
	struct fid_cntr *cntr;
	int rc = fi_cntr_open(e->dom->domain, &attr, &cntr, NULL);

	if (rc == -FI_ENOSYS)
		ct_unsupported(e->ct, "fi_cntr_open: %s", fi_strerror(-rc));
	CT_OK(e->ct, rc);
	CT_OK(e->ct, fi_ep_bind(e->ep, &cntr->fid, what));
	return cntr;
}

void ct_ep_open(struct ct_dom *dom, struct ct_ep *e)
{
	const struct ct_want *w = &dom->want;
	struct fi_av_attr av = { .type = w->av_type, .count = 16, .flags = w->av_flags };
	struct fi_info *info;
	int i;

	memset(e, 0, sizeof(*e));
	e->ct = dom->ct;
	e->dom = dom;
	for (i = 0; i < CT_PROCS; i++)
		e->addr[i] = FI_ADDR_NOTAVAIL;
	CT_OK(e->ct, fi_av_open(dom->domain, &av, &e->av, NULL));
	e->txcq = open_cq(dom);
	e->rxcq = w->split ? open_cq(dom) : e->txcq;
	info = ct_connects(dom) ? ct_connect_info(e) : fi_dupinfo(dom->info);
	CT_OK(e->ct, fi_endpoint(dom->domain, info, &e->ep,
				 e)); /* what errors without a context of their own name */
	fi_freeinfo(info);
	if (!ct_connects(dom))
		CT_OK(e->ct, fi_ep_bind(e->ep, &e->av->fid, 0));
	if (w->split || w->tx_bind != w->rx_bind) {
		CT_OK(e->ct, fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | w->tx_bind));
		CT_OK(e->ct, fi_ep_bind(e->ep, &e->rxcq->fid, FI_RECV | w->rx_bind));
	} else {
		CT_OK(e->ct, fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | FI_RECV | w->tx_bind));
	}
	if (w->counters) {
		e->txcntr = open_counter(e, FI_SEND);
		e->rxcntr = open_counter(e, FI_RECV);
	}
	if (ct_connects(dom))
		ct_connect_bind(e);
	if (!w->disabled)
		ct_ep_enable(e);
}

void ct_ep_enable(struct ct_ep *e)
{
	CT_OK(e->ct, fi_enable(e->ep));
	if (ct_connects(e->dom))
		ct_connect_begin(e);
	e->namelen = sizeof(e->name);
	CT_OK(e->ct, fi_getname(&e->ep->fid, e->name, &e->namelen));
	CT_TRUE(e->ct, e->namelen > 0 && e->namelen <= sizeof(e->name));
}

void ct_ep_close(struct ct_ep *e)
{
	CT_OK(e->ct, fi_close(&e->ep->fid));
	ct_connect_close(e);
	if (e->txcntr) {
		CT_OK(e->ct, fi_close(&e->txcntr->fid));
		CT_OK(e->ct, fi_close(&e->rxcntr->fid));
	}
	if (e->rxcq != e->txcq)
		CT_OK(e->ct, fi_close(&e->rxcq->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
	CT_OK(e->ct, fi_close(&e->av->fid));
	free(e->stash);
	e->stash = NULL;
}

fi_addr_t ct_insert(struct ct_ep *e, const char *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	/*
	 * fi_av(3) wants names in FI_ADDR_STR format as an array of strings; libfabric's
	 * own shm provider (1.17) takes the string itself. No other provider that this
	 * runs on has string names.
	 */
	CT_EQ(e->ct, fi_av_insert(e->av, name, 1, &addr, 0, NULL), 1);
	CT_TRUE(e->ct, addr != FI_ADDR_NOTAVAIL);
	return addr;
}

void ct_join(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	char name[CT_NAME];
	int r;

	if (ct_connects(e->dom) && ct->procs > 1) {
		ct_connect_end(e);
		return;
	}
	for (r = 0; r < ct->procs; r++)
		if (r != ct->rank)
			ct_put(ct, r, e->name, sizeof(e->name));
	for (r = 0; r < ct->procs; r++) {
		if (r == ct->rank)
			continue;
		ct_get(ct, NULL, r, name, sizeof(name));
		e->addr[r] = ct_insert(e, name);
	}
	ct_sync(ct, e);
}

void ct_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, const struct ct_want *want)
{
	ct_open(ct, dom, want);
	ct_ep_open(dom, e);
	ct_join(e);
}

void ct_start_up(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, const struct ct_want *want)
{
	ct_start(ct, dom, e, want);
	ct_ping(e, !ct->rank);
}

void ct_finish_quiet(struct ct_ep *e)
{
	ct_sync(e->ct, e);
	ct_ping(e, !e->ct->rank);
	ct_quiet(e, 30, "refused calls");
	ct_finish(e);
}

void ct_finish(struct ct_ep *e)
{
	ct_sync(e->ct, e);
	ct_ep_close(e);
	ct_close(e->dom);
}
