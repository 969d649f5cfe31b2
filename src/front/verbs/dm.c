/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Device memory, ibv_alloc_dm(3): ordinary memory that the program does not see but through
 * ibv_memcpy_to_dm(3), ibv_memcpy_from_dm(3) and regions, whose addresses begin at 0. No node is
 * needed for it but to register it, so a forked child has it, too: what its parent had before, and
 * what it allocates itself with its parent's context, as over a card.
 */
#include "front/verbs/dm.h"

#include "base/lock.h"
#include "front/verbs/entry.h"
#include "front/verbs/mr.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNIT 4 /* bytes */
#define LOG_ALIGN_MOST 21

static struct hv_dm *dm_of(struct ibv_dm *dm)
{
	return hv_container(dm, struct hv_dm, pub);
}

static bool has(const struct hv_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

/*
 * 0 or a positive errno. What devices have is reached in units of 4 bytes only, and
 * programs are to notice it here.
 */
static int check_copy(const struct hv_dm *dm, uint64_t offset, size_t length)
{
	if (!has(dm, offset, length))
		return EFAULT;
	return (offset | length) % UNIT ? EINVAL : 0;
}

static int memcpy_to(struct ibv_dm *pub, uint64_t offset, const void *from, size_t length)
{
	struct hv_dm *dm = dm_of(pub);
	int rc = check_copy(dm, offset, length);

	if (!rc)
		memcpy(dm->memory + offset, from, length);
	return hv_tell(rc);
}

static int memcpy_from(void *to, struct ibv_dm *pub, uint64_t offset, size_t length)
{
	struct hv_dm *dm = dm_of(pub);
	int rc = check_copy(dm, offset, length);

	if (!rc)
		memcpy(to, dm->memory + offset, length);
	return hv_tell(rc);
}

/* ---- where it lies: in the context's cmd_fd, so that other processes can have it, too -------- */

static size_t pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) & ~(page - 1);
}

/*
 * This much of the descriptor (-1: of no file) at an address that is a multiple of align, or NULL.
 */
static char *map_at(struct hv_dm *dm, int fd, size_t align)
{
	int flags = MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	size_t size = pages(dm->length), room = align > pages(1) ? size + align : size;
	char *base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at;

	if (base == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)base + align - 1) & ~(uintptr_t)(align - 1));
	if (mmap(at, size, PROT_READ | PROT_WRITE, flags, fd, (off_t)dm->offset) == MAP_FAILED) {
		munmap(base, room);
		return NULL;
	}
	dm->map = base;
	dm->map_size = room;
	return at;
}

/* Who copies afterwards finds that nothing is there. */
static void dm_unmap(struct hv_dm *dm)
{
	munmap(dm->map, dm->map_size);
	dm->memory = NULL;
	dm->length = 0;
}

static struct hv_dm *dm_make(struct hv_context *ctx, size_t length)
{
	struct hv_dm *dm = hv_object_new(ctx, HV_KIND_DM, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->length = length;
	dm->pub.context = &ctx->pub.context;
	dm->pub.memcpy_to_dm = memcpy_to;
	dm->pub.memcpy_from_dm = memcpy_from;
	return dm;
}

/* Its part of the descriptor, which nobody has had before. With the lock. 0 or a positive errno. */
static int take_share(struct hv_context *ctx, struct hv_dm *dm, size_t align)
{
	int fd = ctx->pub.context.cmd_fd;
	bool has_file = ctx->dm_end > 0;

	if (dm->length > HV_MAX_DM - ctx->dm_used)
		return ENOMEM;
	dm->offset = ctx->dm_end;
	if (has_file && ftruncate(fd, (off_t)(dm->offset + pages(dm->length))) < 0)
		return ENOMEM;
	dm->memory = map_at(dm, has_file ? fd : -1, align);
	if (!dm->memory)
		return ENOMEM;
	ctx->dm_end += has_file ? pages(dm->length) : 0;
	ctx->dm_used += dm->length;
	ctx->objects++;
	dm->pub.handle = ++ctx->next_handle;
	hv_import_add(ctx, &dm->import, HV_IMPORT_DM, dm->pub.handle);
	return 0;
}

/* Who has imported it keeps the pages until he lets go. With the lock. */
static void give_share(struct hv_context *ctx, const struct hv_dm *dm)
{
	ctx->objects--;
	if (dm->import.far)
		return;
	ctx->dm_used -= dm->length;
	if (!ctx->dm_end)
		return;
	(void)fallocate(ctx->pub.context.cmd_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)dm->offset, (off_t)pages(dm->length));
}

/* ---- a forked child: its own, which no other process imports --------------------------------- */

HD_LOCK_DEFINE(child_lock); /* stands for the node's, which nobody gets there */

static int child_take(struct hv_context *ctx, struct hv_dm *dm, size_t align)
{
	int rc = ENOMEM;

	hd_lock_take(&child_lock);
	if (dm->length <= HV_MAX_DM - ctx->dm_used)
		dm->memory = map_at(dm, -1, align);
	if (dm->memory) {
		ctx->dm_used += dm->length;
		dm->pub.handle = ++ctx->next_handle;
		dm->forked = true;
		rc = 0;
	}
	hd_lock_give(&child_lock);
	return rc;
}

/* What the parent has allocated is the parent's to free. */
static int child_free(struct hv_context *ctx, struct hv_dm *dm)
{
	if (!dm->forked)
		return EIO;
	hd_lock_take(&child_lock);
	ctx->dm_used -= dm->length;
	hd_lock_give(&child_lock);
	dm_unmap(dm);
	hv_object_hide(dm);
	hv_object_free(ctx, dm);
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

struct ibv_dm *hv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_dm *dm;
	size_t align;
	int rc;

	if (attr->comp_mask || !attr->length || attr->length > HV_MAX_DM ||
	    attr->log_align_req > LOG_ALIGN_MOST)
		return hv_fail(EINVAL);
	dm = dm_make(ctx, attr->length);
	if (!dm)
		return NULL;
	align = (size_t)1 << attr->log_align_req;
	if (hv_enter(ctx)) {
		rc = take_share(ctx, dm, align);
		hv_leave(ctx);
	} else {
		rc = child_take(ctx, dm, align);
	}
	if (!rc) {
		hv_object_show(dm, dm->pub.handle);
		return &dm->pub;
	}
	hv_object_free(ctx, dm);
	return hv_fail(rc);
}

struct ibv_dm *hv_dm_import(struct hv_context *ctx, uint32_t handle, int fd, uint64_t offset, size_t length)
{
	struct hv_dm *dm = dm_make(ctx, length);
	int rc = EIO;

	if (!dm)
		return NULL;
	dm->offset = offset;
	dm->import.far = true;
	dm->pub.handle = handle;
	if (hv_enter(ctx)) {
		dm->memory = map_at(dm, fd, 1);
		rc = dm->memory ? 0 : ENOMEM;
		if (!rc) {
			ctx->objects++;
			hv_import_add(ctx, &dm->import, HV_IMPORT_DM, handle);
		}
		hv_leave(ctx);
	}
	if (!rc) {
		hv_object_show(dm, dm->pub.handle);
		return &dm->pub;
	}
	hv_object_free(ctx, dm);
	return hv_fail(rc);
}

int hv_free_dm(struct ibv_dm *pub)
{
	struct hv_context *ctx = hv_context_of(pub->context);
	struct hv_dm *dm = dm_of(pub);
	bool busy, last = false;
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (!hv_enter(ctx))
		return child_free(ctx, dm);
	busy = dm->users > 0;
	if (!busy) {
		give_share(ctx, dm);
		dm_unmap(dm);
		last = hv_import_destroyed(ctx, &dm->import);
		hv_object_hide(dm);
	}
	hv_leave(ctx);
	if (busy)
		return EBUSY;
	if (last)
		hv_object_free(ctx, dm);
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
