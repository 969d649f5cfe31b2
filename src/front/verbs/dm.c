/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Device memory, ibv_alloc_dm(3): ordinary memory that the program does not see but through ibv_memcpy_to_dm(3), ibv_memcpy_from_dm(3) and
 * regions, whose addresses begin at 0.
 */
#include "front/verbs/dm.h"
#include "front/verbs/entry.h"
#include "front/verbs/mr.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN_LEAST 64
#define LOG_ALIGN_MOST 21

static struct hv_dm *dm_of(struct ibv_dm *dm)
{
	return hv_container(dm, struct hv_dm, pub);
}

static bool has(const struct hv_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int memcpy_to(struct ibv_dm *pub, uint64_t offset, const void *from, size_t length)
{
	struct hv_dm *dm = dm_of(pub);

	if (!has(dm, offset, length))
		return EFAULT;
	memcpy(dm->memory + offset, from, length);
	return 0;
}

static int memcpy_from(void *to, struct ibv_dm *pub, uint64_t offset, size_t length)
{
	struct hv_dm *dm = dm_of(pub);

	if (!has(dm, offset, length))
		return EFAULT;
	memcpy(to, dm->memory + offset, length);
	return 0;
}

/* With the lock. 0 or a positive errno. */
static int take_share(struct hv_context *ctx, struct hv_dm *dm)
{
	if (dm->length > HV_MAX_DM - ctx->dm_used)
		return ENOMEM;
	ctx->dm_used += dm->length;
	ctx->objects++;
	dm->pub.handle = ++ctx->next_handle;
	hv_import_add(ctx, &dm->import, HV_IMPORT_DM, dm->pub.handle);
	return 0;
}

static void dm_free(struct hv_dm *dm)
{
	if (dm)
		free(dm->memory);
	free(dm);
}

struct ibv_dm *hv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct hv_context *ctx = hv_context_of(context);
	size_t align = ALIGN_LEAST;
	struct hv_dm *dm;
	int rc = EIO;

	if (attr->comp_mask || !attr->length || attr->length > HV_MAX_DM ||
	    attr->log_align_req > LOG_ALIGN_MOST)
		return hv_fail(EINVAL);
	if (attr->log_align_req > 6)
		align = (size_t)1 << attr->log_align_req;
	dm = calloc(1, sizeof(*dm));
	if (dm)
		dm->memory = aligned_alloc(align, (attr->length + align - 1) & ~(align - 1));
	if (!dm || !dm->memory) {
		dm_free(dm);
		return hv_fail(ENOMEM);
	}
	memset(dm->memory, 0, attr->length);
	dm->length = attr->length;
	dm->pub.context = context;
	dm->pub.memcpy_to_dm = memcpy_to;
	dm->pub.memcpy_from_dm = memcpy_from;
	if (hv_enter(ctx)) {
		rc = take_share(ctx, dm);
		hv_leave(ctx);
	}
	if (!rc)
		return &dm->pub;
	dm_free(dm);
	return hv_fail(rc);
}

int hv_free_dm(struct ibv_dm *pub)
{
	struct hv_context *ctx = hv_context_of(pub->context);
	struct hv_dm *dm = dm_of(pub);
	bool busy, last = false;

	if (!hv_enter(ctx))
		return EIO;
	busy = dm->users > 0;
	if (!busy) {
		ctx->dm_used -= dm->length;
		ctx->objects--;
		free(dm->memory);
		dm->memory = NULL;
		last = hv_import_destroyed(&dm->import);
	}
	hv_leave(ctx);
	if (busy)
		return EBUSY;
	if (last)
		free(dm);
	return 0;
}

struct ibv_mr *hv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *pub, uint64_t offset, size_t length,
			    unsigned int access)
{
	struct hv_dm *dm = dm_of(pub);

	if (pd->context != pub->context || !has(dm, offset, length) || !(access & IBV_ACCESS_ZERO_BASED))
		return hv_fail(EINVAL);
	return hv_mr_of_device(hv_pd_of(pd), dm->memory + offset, length, access, &dm->users);
}
