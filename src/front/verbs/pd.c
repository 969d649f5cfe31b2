/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Protection domains: ibv_alloc_pd(3), ibv_alloc_td(3), ibv_alloc_parent_domain(3). */
#include "front/verbs/entry.h"
#include "front/verbs/newer.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <stdlib.h>

/* handle: another process's; 0: it is ours. quiet: as hv_import has it. */
static struct hv_pd *pd_make(struct hv_context *ctx, uint32_t handle, bool quiet)
{
	struct hv_pd *pd = hv_object_new(ctx, HV_KIND_PD, sizeof(*pd));

	if (!pd)
		return NULL;
	if (!hv_enter(ctx)) {
		hv_object_free(ctx, pd);
		return hv_fail(EIO);
	}
	pd->pub.context = &ctx->pub.context;
	pd->pub.handle = handle ? handle : ++ctx->next_handle;
	pd->number = ++ctx->next_pd;
	pd->import.far = handle;
	pd->import.quiet = quiet;
	hv_import_add(ctx, &pd->import, HV_IMPORT_PD, pd->pub.handle);
	ctx->objects++;
	hv_object_show(pd, pd->pub.handle);
	hv_leave(ctx);
	return pd;
}

struct ibv_pd *hv_pd_import(struct hv_context *ctx, uint32_t handle)
{
	struct hv_pd *pd = pd_make(ctx, handle, false);

	return pd ? &pd->pub : NULL;
}

struct ibv_pd *hv_pd_default(struct hv_context *ctx)
{
	struct hv_pd *pd = pd_make(ctx, 0, true);

	return pd ? &pd->pub : NULL;
}

struct ibv_pd *hv_ibv_alloc_pd(struct ibv_context *context)
{
	struct hv_pd *pd = pd_make(hv_context_of(context), 0, false);

	return pd ? &pd->pub : NULL;
}

int hv_ibv_dealloc_pd(struct ibv_pd *public)
{
	struct hv_context *ctx = hv_context_of(public->context);
	struct hv_pd *pd = hv_pd_of(public);
	bool last;
	int rc = HV_CHECK(public);

	if (rc)
		return rc;
	if (!hv_enter(ctx))
		return EIO;
	if (pd->users) {
		hv_leave(ctx);
		return EBUSY;
	}
	if (pd->parent)
		pd->parent->users--;
	if (pd->td)
		pd->td->users--;
	ctx->objects--;
	last = hv_import_destroyed(ctx, &pd->import);
	hv_object_hide(pd);
	hv_leave(ctx);
	if (last)
		hv_object_free(ctx, pd);
	return 0;
}

/* ---- thread domains, which promise that nobody else is there: noted, nothing is gained ---- */

struct ibv_td *hv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_td *td;

	if (attr->comp_mask)
		return hv_fail(EINVAL);
	td = hv_object_new(ctx, HV_KIND_TD, sizeof(*td));
	if (!td)
		return NULL;
	td->pub.context = context;
	if (!hv_enter(ctx)) {
		hv_object_free(ctx, td);
		return hv_fail(EIO);
	}
	hv_object_show(td, 0);
	ctx->objects++;
	hv_leave(ctx);
	return &td->pub;
}

int hv_dealloc_td(struct ibv_td *public)
{
	struct hv_td *td = hv_container(public, struct hv_td, pub);
	struct hv_context *ctx = hv_context_of(public->context);
	int rc = HV_CHECK_PLAIN(public);

	if (rc)
		return rc;
	if (!hv_enter(ctx))
		return EIO;
	if (td->users) {
		hv_leave(ctx);
		return EBUSY;
	}
	ctx->objects--;
	hv_leave(ctx);
	hv_object_free(ctx, td);
	return 0;
}

struct ibv_pd *hv_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | HV_PARENT_UNPROTECTED;
	struct hv_context *ctx = hv_context_of(context);
	struct hv_pd *pd;

	if (!attr->pd || attr->pd->context != context || HV_CHECK(attr->pd))
		return hv_fail(EINVAL);
	if (attr->comp_mask & ~known)
		return hv_fail(EINVAL);
	pd = pd_make(ctx, 0, false);
	if (!pd)
		return NULL;
	if (!hv_enter(ctx)) {
		hv_object_free(ctx, pd);
		return hv_fail(EIO);
	}
	pd->parent = hv_pd_real(hv_pd_of(attr->pd));
	pd->parent->users++;
	pd->number = pd->parent->number;
	if (attr->td) {
		pd->td = hv_container(attr->td, struct hv_td, pub);
		pd->td->users++;
	}
	hv_leave(ctx);
	return &pd->pub;
}
