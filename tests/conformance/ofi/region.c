/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "region.h"

#include <stdlib.h>

struct ct_place ct_region_ready(struct ct_ep *e, struct fid_mr *mr, const void *base)
{
	int mode = e->dom->info->domain_attr->mr_mode;

	if (mode & FI_MR_ENDPOINT)
		CT_OK(e->ct, fi_mr_bind(mr, &e->ep->fid, 0));
	if (mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		CT_OK(e->ct, fi_mr_enable(mr));
	return (struct ct_place){
		.addr = mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC) ? (uintptr_t)base : 0,
		.key = fi_mr_key(mr),
	};
}

void ct_region_open(struct ct_ep *e, struct ct_region *r, size_t len, uint64_t access, uint64_t key)
{
	r->mem = ct_alloc(e->ct, len);
	CT_OK(e->ct, fi_mr_reg(e->dom->domain, r->mem, len, access, 0, key, 0, &r->mr, NULL));
	r->at = ct_region_ready(e, r->mr, r->mem);
}

void ct_region_close(struct ct_ep *e, struct ct_region *r)
{
	CT_OK(e->ct, fi_close(&r->mr->fid));
	free(r->mem);
}

void ct_offer(struct ct_ep *e, struct ct_region *r, size_t len, uint64_t access, struct ct_place *at)
{
	if (e->ct->rank != 1) {
		ct_get(e->ct, e, 1, at, sizeof(*at));
		return;
	}
	ct_region_open(e, r, len, access, 7);
	for (int i = 0; i < e->ct->procs; i++)
		if (i != 1)
			ct_put(e->ct, i, &r->at, sizeof(r->at));
}

void ct_rig_open(struct ct_rig *x, struct ct *ct, const struct ct_want *want, size_t len, uint64_t access)
{
	ct_start(ct, &x->dom, &x->e, want);
	ct_offer(&x->e, &x->r, len, access, &x->at);
}

void ct_rig_open_counted(struct ct_rig *x, struct ct *ct, const struct ct_want *want, size_t len,
			 uint64_t access)
{
	struct ct_want disabled = *want;

	disabled.disabled = true;
	ct_open(ct, &x->dom, &disabled);
	ct_ep_open(&x->dom, &x->e);
	if (want->late)
		ct_ep_enable(&x->e);
	x->read = ct_cntr_bind(&x->e, ct->rank ? FI_REMOTE_READ : FI_READ);
	x->write = ct_cntr_bind(&x->e, ct->rank ? FI_REMOTE_WRITE : FI_WRITE);
	if (!want->late)
		ct_ep_enable(&x->e);
	ct_join(&x->e);
	ct_offer(&x->e, &x->r, len, access, &x->at);
}

void ct_take_back(struct ct_ep *e, struct ct_region *r)
{
	ct_sync(e->ct, e);
	if (e->ct->rank == 1)
		ct_region_close(e, r);
	ct_finish(e);
}

struct fid_cntr *ct_cntr_bind(struct ct_ep *e, uint64_t what)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	CT_OK(e->ct, fi_cntr_open(e->dom->domain, &attr, &cntr, NULL));
	CT_OK(e->ct, fi_ep_bind(e->ep, &cntr->fid, what));
	return cntr;
}

void ct_reaches(struct ct_ep *e, struct fid_cntr *cntr, uint64_t value)
{
	double end = ct_deadline(e->ct);

	while (fi_cntr_read(cntr) < value) {
		ct_late(e->ct, end, "a counter");
		if (!ct_progress(e))
			ct_pause();
	}
	CT_EQ(e->ct, fi_cntr_read(cntr), value);
	CT_EQ(e->ct, fi_cntr_readerr(cntr), 0);
}

void ct_wrote(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.flags & (FI_RMA | FI_WRITE | FI_READ | FI_SEND), FI_RMA | FI_WRITE);
}

void ct_have_read(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.flags & (FI_RMA | FI_WRITE | FI_READ | FI_RECV), FI_RMA | FI_READ);
}

struct fi_msg_rma ct_rma_to(const struct ct_ep *e, const struct iovec *iov, const struct fi_rma_iov *there,
			    void *ctx)
{
	return (struct fi_msg_rma){ .msg_iov = iov,
				    .iov_count = 1,
				    .addr = e->addr[1],
				    .rma_iov = there,
				    .rma_iov_count = 1,
				    .context = ctx };
}
