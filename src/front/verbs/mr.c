/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory regions: ibv_reg_mr(3), ibv_rereg_mr(3), ibv_alloc_null_mr(3). Each is a region
 * of the engine, which answers for what others do with its key; local keys are checked
 * here. No page is touched.
 */
#include "front/verbs/mr.h"
#include "base/mapping.h"
#include "front/verbs/entry.h"
#include "front/verbs/newer.h"
#include "front/verbs/ops.h"
#include "front/verbs/qp.h"
#include "front/verbs/status.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KEY_BYTES 4
#define NULL_BYTES (UINT64_C(1) << 32) /* as long as a segment can be */
#define KNOWN \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | \
	 IBV_ACCESS_HUGETLB | HV_ACCESS_FLUSH_GLOBAL)

/* What a region is to be. */
struct wanted {
	struct hv_pd *pd;
	void *addr;
	size_t length;
	uint64_t iova;
	/* enum ibv_access_flags, without optional ones, which change nothing here */
	uint32_t access;
	bool changes;		     /* ibv_rereg_mr: it may not become empty */
	const struct hv_mr_far *far; /* NULL: it is ours */
	bool is_null;
};

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_access(uint32_t access)
{
	uint32_t changing = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (access & HV_ACCESS_FLUSH_PERSISTENT)
		return EOPNOTSUPP;
	if (access & ~(uint32_t)KNOWN)
		return EINVAL;
	return access & changing && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

static int mr_check(const struct wanted *w)
{
	int rc = HV_CHECK(&w->pd->pub);

	if (!rc)
		rc = check_access(w->access);
	if (rc)
		return rc;
	if ((!w->length && w->changes) || (uintptr_t)w->addr + w->length < (uintptr_t)w->addr ||
	    w->iova + w->length < w->iova)
		return EINVAL;
	/* on demand all memory might be named, by which devices have IBV_ODP_SUPPORT_IMPLICIT */
	if (w->access & IBV_ACCESS_ON_DEMAND)
		return !w->addr && w->length == SIZE_MAX ? EINVAL : 0;
	return hd_is_usable(w->addr, w->length, w->access & IBV_ACCESS_LOCAL_WRITE) ? 0 : EFAULT;
}

/* ---- life ------------------------------------------------------------------------------------ */

uint32_t hv_engine_access(uint32_t access)
{
	uint32_t a = HD_ACCESS_LOCAL_READ;

	if (access & IBV_ACCESS_LOCAL_WRITE)
		a |= HD_ACCESS_LOCAL_WRITE;
	if (access & IBV_ACCESS_REMOTE_READ)
		a |= HD_ACCESS_REMOTE_READ;
	if (access & IBV_ACCESS_REMOTE_WRITE)
		a |= HD_ACCESS_REMOTE_WRITE;
	if (access & IBV_ACCESS_REMOTE_ATOMIC)
		a |= HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH;
	if (access & IBV_ACCESS_MW_BIND)
		a |= HD_ACCESS_BIND;
	if (access & HV_ACCESS_FLUSH_GLOBAL)
		a |= HD_ACCESS_REMOTE_FLUSH;
	return a;
}

/* Requests that use a region which is no more. */
static const struct hd_mr_fault fault = { (void *)hv_bad_key, HD_S_PROTECTION };

/* With the lock. */
static int region_open(struct hv_mr *mr, const struct wanted *w, struct hd_mr **out)
{
	struct iovec iov = { .iov_base = w->addr, .iov_len = w->length };
	struct hd_mr_attr attr = {
		.iov = &iov,
		.count = 1,
		.access = hv_engine_access(w->access),
		.flags = (w->iova == (uintptr_t)w->addr ? HD_MR_VIRTUAL : 0) | (w->far ? HD_MR_KEY : 0),
		.key = w->far ? w->far->key : 0,
		.key_bytes = KEY_BYTES,
		.pd = hv_pd_real(w->pd)->number,
		.base = w->iova,
		.owner = mr,
		.fault = &fault,
	};

	return hd_mr_open(hv_context_of(w->pd->pub.context)->node, &attr, out);
}

/* The engine's region is the region from here on. With the lock. */
static void region_take(struct hv_mr *mr, const struct wanted *w, struct hd_mr *region)
{
	mr->mr = region;
	mr->access = w->access;
	mr->iova = w->iova;
	mr->memory = w->addr;
	mr->pub.context = w->pd->pub.context;
	mr->pub.pd = &w->pd->pub;
	mr->pub.addr = w->addr;
	mr->pub.length = w->length;
	mr->pub.lkey = mr->pub.rkey = (uint32_t)hd_mr_key(region);
	w->pd->users++;
}

/*
 * Room that is read as zeros and written to no avail: address space, of which no more is used than
 * the longest write needs.
 */
static int null_room(struct hv_context *ctx)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (ctx->zeros)
		return 0;
	ctx->zeros = mmap(NULL, NULL_BYTES, PROT_READ, how, -1, 0);
	ctx->waste = mmap(NULL, NULL_BYTES, PROT_READ | PROT_WRITE, how, -1, 0);
	if (ctx->zeros != MAP_FAILED && ctx->waste != MAP_FAILED)
		return 0;
	hv_null_room_free(ctx);
	return ENOMEM;
}

void hv_null_room_free(struct hv_context *ctx)
{
	if (ctx->zeros && ctx->zeros != MAP_FAILED)
		munmap(ctx->zeros, NULL_BYTES);
	if (ctx->waste && ctx->waste != MAP_FAILED)
		munmap(ctx->waste, NULL_BYTES);
	ctx->zeros = ctx->waste = NULL;
}

/* With the lock. */
static int verbs_mr_open(struct hv_context *ctx, struct hv_mr *mr, const struct wanted *w)
{
	struct hd_mr *region;
	int rc = region_open(mr, w, &region);

	if (rc)
		return -rc;
	region_take(mr, w, region);
	if (w->is_null) {
		mr->is_null = true;
		mr->pub.length = SIZE_MAX;
	}
	if (w->far && w->far->revoked)
		hv_mr_revoke(mr);
	mr->pub.handle = w->far ? w->far->handle : ++ctx->next_handle;
	mr->import.far = w->far;
	hv_import_add(ctx, &mr->import, HV_IMPORT_MR, mr->pub.handle);
	hv_object_show(mr, mr->pub.handle);
	ctx->objects++;
	return 0;
}

static struct ibv_mr *mr_make(const struct wanted *w)
{
	struct hv_context *ctx = hv_context_of(w->pd->pub.context);
	struct hv_mr *mr = hv_object_new(ctx, HV_KIND_MR, sizeof(*mr));
	int rc = EIO;

	if (!mr)
		return NULL;
	if (hv_enter(ctx)) {
		rc = w->is_null ? null_room(ctx) : 0;
		if (!rc)
			rc = verbs_mr_open(ctx, mr, w);
		hv_leave(ctx);
	}
	if (rc) {
		hv_object_free(ctx, mr);
		return hv_fail(rc);
	}
	return &mr->pub;
}

static struct ibv_mr *mr_register(struct wanted *w)
{
	int rc;

	w->access &= ~(uint32_t)IBV_ACCESS_OPTIONAL_RANGE;
	if (w->access & IBV_ACCESS_ZERO_BASED)
		w->iova = 0;
	rc = mr_check(w);
	return rc ? hv_fail(rc) : mr_make(w);
}

struct ibv_mr *hv_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				   unsigned int access)
{
	struct wanted w = { hv_pd_of(pd), addr, length, iova, access, false, NULL };

	return mr_register(&w);
}

struct ibv_mr *hv_alloc_null_mr(struct ibv_pd *pd)
{
	const struct wanted w = { .pd = hv_pd_of(pd), .access = IBV_ACCESS_LOCAL_WRITE, .is_null = true };
	int rc = HV_CHECK(pd);

	return rc ? hv_fail(rc) : mr_make(&w);
}

struct ibv_mr *hv_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return hv_ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *hv_ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return hv_ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

int hv_region_close(struct hv_context *ctx, struct hd_mr *region)
{
	struct hv_aside mine = hv_aside(ctx);
	int rc = hd_mr_close(region);

	hv_back(ctx, mine);
	return rc;
}

struct ibv_mr *hv_mr_of_device(struct hv_pd *pd, void *memory, size_t length, unsigned int access, int *users)
{
	struct hv_context *ctx = hv_context_of(pd->pub.context);
	struct wanted w = { pd, memory, length, 0, access, false, NULL };
	struct ibv_mr *mr = mr_register(&w);

	if (!mr)
		return NULL;
	mr->addr = NULL;
	hv_mr_of(mr)->users = users;
	if (hv_enter(ctx)) {
		++*users;
		hv_leave(ctx);
	}
	return mr;
}

struct ibv_mr *hv_mr_import(struct ibv_pd *pd, const struct hv_mr_far *far)
{
	struct wanted w = { hv_pd_of(pd), far->memory, far->length, far->iova, far->access, false, far };
	struct ibv_mr *mr = mr_register(&w);

	if (!mr)
		return NULL;
	mr->addr = NULL; /* the page: it is not applicable */
	hv_mr_of(mr)->map = far->map;
	hv_mr_of(mr)->map_size = far->map_size;
	return mr;
}

void hv_mr_revoke(struct hv_mr *mr)
{
	hd_mr_disable(mr->mr);
	mr->pub.length = 0;
}

/*
 * End what others are doing with it, and forget it where it was found last. -EBUSY: somebody
 * does not end. With the lock.
 */
static int region_close(struct hv_context *ctx, struct hv_mr *mr)
{
	struct hv_mr **near = &ctx->mr_near[mr->pub.lkey % HV_MR_NEAR];
	int rc = hv_region_close(ctx, mr->mr);

	if (*near == mr) /* others may have posted meanwhile */
		*near = NULL;
	if (!rc)
		hv_pd_of(mr->pub.pd)->users--;
	return rc;
}

int hv_ibv_dereg_mr(struct ibv_mr *public)
{
	struct hv_context *ctx = hv_context_of(public->context);
	struct hv_mr *mr = hv_mr_of(public);
	bool last = false;
	int rc = HV_CHECK(public);

	if (!rc)
		rc = hv_import_revoke(ctx, &mr->import);
	if (rc)
		return rc;
	rc = region_close(ctx, mr);
	if (!rc) {
		if (mr->users)
			--*mr->users;
		ctx->objects--;
		last = hv_import_destroyed(ctx, &mr->import);
		hv_object_hide(mr);
	}
	hv_leave(ctx);
	if (!rc && mr->map)
		munmap(mr->map, mr->map_size);
	if (last)
		hv_object_free(ctx, mr);
	return -rc;
}

/* ---- changing one, ibv_rereg_mr(3) ----------------------------------------------------------- */

static int input_error(int err)
{
	errno = err;
	return IBV_REREG_MR_ERR_INPUT;
}

/*
 * A region with the same keys takes the old one's place, as cards have it: peers that know them
 * need not be told. That the old one has gone is sure before this returns. With the lock.
 */
static int mr_replace(struct hv_context *ctx, struct hv_mr *mr, const struct wanted *w)
{
	struct hd_mr *region;
	int rc = hd_mr_has_windows(mr->mr) ? -EBUSY : region_open(mr, w, &region);

	if (rc)
		return input_error(-rc);
	hd_mr_move(mr->mr, region);
	rc = region_close(ctx, mr);
	if (rc) { /* disabled: nobody reaches it any more */
		hv_region_close(ctx, region);
		errno = -rc;
		return IBV_REREG_MR_ERR_CMD;
	}
	rc = hd_mr_rename(region, mr->pub.rkey);
	region_take(mr, w, region);
	if (!rc)
		return 0;
	errno = -rc; /* without memory nobody finds it any more, and it can be deregistered */
	return IBV_REREG_MR_ERR_CMD;
}

int hv_ibv_rereg_mr(struct ibv_mr *public, int flags, struct ibv_pd *pd, void *addr, size_t length,
		    int access)
{
	const int known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
			  IBV_REREG_MR_CHANGE_ACCESS;
	struct hv_context *ctx = hv_context_of(public->context);
	struct hv_mr *mr = hv_mr_of(public);
	struct wanted w = {
		hv_pd_of(public->pd), public->addr, public->length, mr->iova, mr->access, true, NULL
	};
	int rc;

	if (HV_CHECK(public) || !flags || flags & ~known || !mr->mr || mr->is_null || mr->users ||
	    mr->import.far)
		return input_error(EINVAL);
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return input_error(EINVAL);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && !addr)
		return input_error(EINVAL);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		if (!pd || pd->context != public->context || HV_CHECK(pd))
			return input_error(EINVAL);
		w.pd = hv_pd_of(pd);
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		w.access = (uint32_t)access & ~(uint32_t)IBV_ACCESS_OPTIONAL_RANGE;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		w.addr = addr;
		w.length = length;
		w.iova = w.access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	}
	rc = mr_check(&w);
	if (!rc)
		rc = hv_import_revoke(ctx, &mr->import);
	if (rc)
		return input_error(rc);
	rc = mr_replace(ctx, mr, &w);
	hv_leave(ctx);
	return rc;
}

/*
 * May it be fetched before it is needed? 0 or a positive errno; the page has two for a key, and
 * these are the ones of Linux' drivers.
 */
static int advise_check(const struct hv_context *ctx, const struct hv_pd *pd, const struct ibv_sge *sge,
			bool write)
{
	const struct hv_mr *mr = hd_mr_find(ctx->node, sge->lkey);
	uint64_t at = mr ? sge->addr - mr->iova : 0;
	bool lost;

	if (!mr)
		return hd_window_find(ctx->node, sge->lkey, &lost) ? EINVAL : ENOENT;
	if (mr->pub.lkey != sge->lkey || !(mr->access & IBV_ACCESS_ON_DEMAND))
		return ENOENT;
	if (!hv_mr_is_of(mr, pd) || (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
		return EPERM;
	if (at > mr->pub.length || sge->length > mr->pub.length - at)
		return EFAULT;
	return hd_is_usable(mr->memory + at, sge->length, write) ? 0 : EFAULT;
}

/* Pages come when they are needed: there is nothing to be fetched before. */
int hv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge,
		 uint32_t count)
{
	struct hv_context *ctx = hv_context_of(pd->context);
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int rc = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT || flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH ||
	    !count)
		return EINVAL;
	if (!hv_enter(ctx))
		return EIO;
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = advise_check(ctx, hv_pd_of(pd), &sge[i], write);
	hv_leave(ctx);
	return rc;
}

/* ---- local keys ------------------------------------------------------------------------------ */

bool hv_local_apart(struct hv_context *ctx, const struct hv_pd *pd, const struct ibv_sge *sge, bool write,
		    struct iovec *iov, struct hd_mr **region)
{
	struct hv_mr *mr = sge->length ? hd_mr_find(ctx->node, sge->lkey) : NULL;

	*iov = (struct iovec){ NULL, sge->length };
	*region = NULL;
	if (!mr)
		return !sge->length;
	if (!mr->is_null) {
		if (mr->pub.lkey == sge->lkey)
			ctx->mr_near[sge->lkey % HV_MR_NEAR] = mr;
		return hv_mr_locate(mr, pd, sge, write, iov, region);
	}
	*region = mr->mr;
	iov->iov_base = write ? ctx->waste : ctx->zeros;
	return hv_mr_is_of(mr, pd) && (!write || mr->access & IBV_ACCESS_LOCAL_WRITE);
}

uint32_t hv_local_room(struct hv_context *ctx, const struct ibv_sge *sge)
{
	const struct hv_mr *mr = hd_mr_find(ctx->node, sge->lkey);
	uint64_t at = mr ? sge->addr - mr->iova : 0;

	if (!mr || at >= mr->pub.length)
		return 0;
	return sge->length < mr->pub.length - at ? sge->length : (uint32_t)(mr->pub.length - at);
}
