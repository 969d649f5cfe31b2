/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Local memory regions: dat_lmr_create and the others, and what segments of
 * operations are checked by.
 */
#include "base/mapping.h"
#include "front/dat/dat_front.h"

#include <dat2/dat_ib_extensions.h>
#include <errno.h>
#include <string.h>

#define REMOTE \
	((unsigned)DAT_MEM_PRIV_REMOTE_READ_FLAG | (unsigned)DAT_MEM_PRIV_REMOTE_WRITE_FLAG | \
	 (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
#define PRIVILEGES ((unsigned)DAT_MEM_PRIV_ALL_FLAG | (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)

/* ---- making ---------------------------------------------------------------------------------- */

uint32_t hu_access(unsigned privileges)
{
	return (privileges & DAT_MEM_PRIV_LOCAL_READ_FLAG ? HD_ACCESS_LOCAL_READ : 0) |
	       (privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG ? HD_ACCESS_LOCAL_WRITE : 0) |
	       (privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG ? HD_ACCESS_REMOTE_READ : 0) |
	       (privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? HD_ACCESS_REMOTE_WRITE : 0) |
	       (privileges & (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC
			? HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH
			: 0);
}

/* Where the memory is; what is wrong with the description otherwise. */
static DAT_RETURN find_memory(DAT_LMR_PARAM *p, struct hu_lmr **twin, void **at)
{
	switch (p->mem_type) {
	case DAT_MEM_TYPE_VIRTUAL:
		*at = p->region_desc.for_va;
		return DAT_SUCCESS;
	case DAT_MEM_TYPE_LMR:
		*twin = p->region_desc.for_lmr_handle;
		if (!hu_is(*twin, DAT_HANDLE_TYPE_LMR))
			return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
		*at = (void *)(uintptr_t)(*twin)->param.registered_address;
		p->length = (*twin)->param.length;
		return DAT_SUCCESS;
	case DAT_MEM_TYPE_SHARED_VIRTUAL:
		/*
		 * as any other: there is no table of a device's to be shared,
		 * for which the name is meant
		 */
		if (!p->region_desc.for_shared_memory.shared_memory_id)
			return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		*at = p->region_desc.for_shared_memory.virtual_address;
		return DAT_SUCCESS;
	default:
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
}

/* What is not there: providers over verbs say the same of EFAULT. A region may be of nothing. */
static DAT_RETURN check_memory(const DAT_LMR_PARAM *p, const void *at)
{
	if ((uintptr_t)at + p->length < (uintptr_t)at)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!hd_is_usable(at, p->length, p->mem_priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return DAT_SUCCESS;
}

const char hu_gone[1];
/* dat_lmr_free: what uses the region afterwards reports a protection violation. */
static const struct hd_mr_fault fault = { (void *)hu_gone, HD_S_PROTECTION };

/* With the lock. */
static DAT_RETURN lmr_make(struct hu_ia *ia, const DAT_LMR_PARAM *param, void *at, struct hu_lmr *twin,
			   struct hu_lmr **out)
{
	struct hu_lmr *lmr = hu_make(ia, DAT_HANDLE_TYPE_LMR, sizeof(*lmr));
	const struct iovec iov = { at, param->length };
	struct hd_mr_attr attr = { .iov = &iov,
				   .count = 1,
				   .access = hu_access(param->mem_priv) | HD_ACCESS_BIND,
				   .key_bytes = 4,
				   .owner = lmr,
				   .fault = &fault };
	int rc;

	if (!lmr)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	lmr->pz = param->pz_handle;
	lmr->param = *param;
	attr.pd = lmr->pz->number;
	attr.flags = param->va_type == DAT_VA_TYPE_VA ? HD_MR_VIRTUAL : 0;
	rc = hd_mr_open(ia->node, &attr, &lmr->mr);
	if (rc) {
		hu_unmake(&lmr->o);
		return rc == -ENOMEM ? hu_errno(rc)
				     : hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	}
	lmr->param.lmr_context = (DAT_LMR_CONTEXT)hd_mr_key(lmr->mr);
	if ((unsigned)param->mem_priv & REMOTE) /* nobody else has a use for it otherwise */
		lmr->param.rmr_context = lmr->param.lmr_context;
	lmr->param.registered_size = param->length;
	lmr->param.registered_address = (uintptr_t)at;
	lmr->twin = twin;
	if (twin)
		twin->o.users++;
	lmr->pz->o.users++;
	*out = lmr;
	return DAT_SUCCESS;
}

DAT_RETURN hu_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region,
			 DAT_VLEN length, DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			 DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			 DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			 DAT_VADDR *registered_address)
{
	struct hu_ia *ia = ia_handle;
	DAT_LMR_PARAM param = { .mem_type = mem_type,
				.region_desc = region,
				.length = length,
				.pz_handle = pz_handle,
				.mem_priv = privileges,
				.va_type = va_type };
	struct hu_lmr *lmr = NULL, *twin = NULL;
	void *at = NULL;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!hu_is(pz_handle, DAT_HANDLE_TYPE_PZ) || ((struct hu_pz *)pz_handle)->o.ia != ia)
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if ((unsigned)privileges & ~PRIVILEGES)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (!lmr_handle)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = find_memory(&param, &twin, &at);
	if (!rc)
		rc = check_memory(&param, at);
	if (!rc)
		rc = lmr_make(ia, &param, at, twin, &lmr);
	hu_leave(ia);
	if (rc)
		return rc;
	*lmr_handle = lmr;
	if (lmr_context)
		*lmr_context = lmr->param.lmr_context;
	if (rmr_context)
		*rmr_context = lmr->param.rmr_context;
	if (registered_length)
		*registered_length = lmr->param.registered_size;
	if (registered_address)
		*registered_address = lmr->param.registered_address;
	return DAT_SUCCESS;
}

DAT_RETURN hu_lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	const struct hu_lmr *lmr = handle;

	if (!hu_is(lmr, DAT_HANDLE_TYPE_LMR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if ((unsigned)mask & ~(unsigned)DAT_LMR_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = lmr->param;
	param->ia_handle = hu_ia_handle(lmr->o.ia);
	return DAT_SUCCESS;
}

/* With the lock, which others may have had meanwhile, and posted. */
static bool lmr_close(struct hu_lmr *lmr)
{
	const struct hu_lmr **near = &lmr->o.ia->lmr_near[lmr->param.lmr_context % HU_LMR_NEAR];

	if (hd_mr_close(lmr->mr) < 0)
		return false;
	if (*near == lmr)
		*near = NULL;
	return true;
}

DAT_RETURN hu_lmr_free(DAT_LMR_HANDLE handle)
{
	struct hu_lmr *lmr = handle;
	struct hu_ia *ia;
	bool used;

	if (!hu_is(lmr, DAT_HANDLE_TYPE_LMR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	ia = lmr->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	used = lmr->o.users > 0 || !lmr_close(lmr);
	if (!used) {
		if (lmr->twin)
			lmr->twin->o.users--;
		lmr->pz->o.users--;
		hu_free(&lmr->o);
	}
	hu_leave(ia);
	return used ? hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE) : DAT_SUCCESS;
}

/* Memory is coherent here: lmr_sync_req says that nobody has to call these. */
static DAT_RETURN sync_segments(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return count && !segments ? hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2) : DAT_SUCCESS;
}

DAT_RETURN hu_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	return sync_segments(ia, segments, count);
}

DAT_RETURN hu_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	return sync_segments(ia, segments, count);
}

/* ---- segments -------------------------------------------------------------------------------- */

static __attribute__((noinline)) const struct hu_lmr *lmr_find(struct hu_ia *ia, DAT_LMR_CONTEXT context)
{
	const struct hu_lmr *lmr = hd_mr_find(ia->node, context);

	if (!lmr || lmr->o.type != DAT_HANDLE_TYPE_LMR)
		return NULL;
	if (lmr->param.lmr_context == context)
		ia->lmr_near[context % HU_LMR_NEAR] = lmr;
	return lmr;
}

static inline DAT_RETURN segment(struct hu_ia *ia, const struct hu_local *local, const DAT_LMR_TRIPLET *t,
				 struct iovec *out, struct hd_mr **region)
{
	const struct hu_lmr *lmr = ia->lmr_near[t->lmr_context % HU_LMR_NEAR];
	uint64_t from = t->virtual_address;

	if (hu_unlikely(!lmr || lmr->param.lmr_context != t->lmr_context))
		lmr = lmr_find(ia, t->lmr_context);
	/* as on InfiniBand, whoever may do anything with a region may read it here */
	if (hu_unlikely(!lmr || (local->write && !(lmr->param.mem_priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))))
		return hu_error(DAT_PRIVILEGES_VIOLATION,
				local->write ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
	if (hu_unlikely(lmr->pz != local->pz))
		return hu_error(DAT_PROTECTION_VIOLATION,
				local->write ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ);
	if (lmr->param.va_type == DAT_VA_TYPE_VA)
		from -= lmr->param.registered_address;
	if (hu_unlikely(from > lmr->param.length || t->segment_length > lmr->param.length - from))
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + local->arg));
	*region = lmr->mr;
	*out = (struct iovec){ (char *)(uintptr_t)lmr->param.registered_address + from, t->segment_length };
	return DAT_SUCCESS;
}

DAT_RETURN hu_segments(struct hu_ia *ia, const struct hu_local *local, struct hu_iov *out)
{
	DAT_RETURN rc;

	out->count = 0;
	out->total = 0;
	if (local->count < 0 || local->count > local->most)
		return hu_error(DAT_INVALID_PARAMETER,
				(DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + local->arg - 1));
	if (local->count && !local->iov)
		return hu_error(DAT_INVALID_PARAMETER, (DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + local->arg));
	for (int i = 0; i < local->count; i++) {
		if (!local->iov[i].segment_length) /* the rest of it may be anything */
			continue;
		rc = segment(ia, local, &local->iov[i], &out->iov[out->count], &out->regions[out->count]);
		if (rc)
			return rc;
		out->total += out->iov[out->count++].iov_len;
	}
	return out->total > HU_MAX_MESSAGE ? hu_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE) : DAT_SUCCESS;
}
