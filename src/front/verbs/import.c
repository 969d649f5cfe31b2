/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3). The cmd_fd of a context is a memfd that holds nothing: whatever
 * descriptor leads to the same one is that context's. Another process has no way to ours.
 */
#include "base/lock.h"
#include "front/verbs/dm.h"
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "heddle-verbs"

static LIST_HEAD(, hv_context) contexts = LIST_HEAD_INITIALIZER(contexts);
HD_LOCK_DEFINE(imports_lock)

/* ---- devices ------------------------------------------------------------------------------------------------------------------ */

int hv_import_open(struct hv_context *ctx)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	ctx->pub.context.cmd_fd = fd;
	ctx->opens = 1;
	hd_lock_take(&imports_lock);
	LIST_INSERT_HEAD(&contexts, ctx, import_entry);
	hd_lock_give(&imports_lock);
	return 0;
}

bool hv_import_close(struct hv_context *ctx)
{
	bool last;

	hd_lock_take(&imports_lock);
	last = --ctx->opens == 0;
	if (last) {
		LIST_REMOVE(ctx, import_entry);
		close(ctx->pub.context.cmd_fd);
		ctx->pub.context.cmd_fd = -1;
	}
	hd_lock_give(&imports_lock);
	return last;
}

static bool leads_to(const struct hv_context *ctx, const struct stat *st)
{
	struct stat own;

	return fstat(ctx->pub.context.cmd_fd, &own) == 0 && own.st_dev == st->st_dev &&
	       own.st_ino == st->st_ino;
}

static struct hv_context *by_fd(int fd)
{
	struct hv_context *ctx;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	hd_lock_take(&imports_lock);
	LIST_FOREACH(ctx, &contexts, import_entry)
		if (leads_to(ctx, &st)) {
			ctx->opens++;
			break;
		}
	hd_lock_give(&imports_lock);
	return ctx;
}

/* Of a context of ours that is in another process. */
static bool is_elsewhere(int fd)
{
	char path[64], to[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, to, sizeof(to) - 1) > 0 && !strncmp(to, "/memfd:" NAME, strlen("/memfd:" NAME));
}

HV_PUBLIC struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct hv_context *ctx = by_fd(cmd_fd);

	if (ctx) {
		close(cmd_fd); /* it is ours from now on */
		return &ctx->pub.context;
	}
	if (is_elsewhere(cmd_fd))
		return hv_fail(EOPNOTSUPP);
	return hv_real_import(cmd_fd);
}

/* ---- objects ------------------------------------------------------------------------------------------------------------------ */

void hv_import_add(struct hv_context *ctx, struct hv_import *i, enum hv_import_kind kind, uint32_t handle)
{
	i->kind = kind;
	i->handle = handle;
	i->refs = 1;
	LIST_INSERT_HEAD(&ctx->imports, i, entry);
}

bool hv_import_destroyed(struct hv_import *i)
{
	LIST_REMOVE(i, entry);
	return hv_import_put(i);
}

/* One reference more; NULL with errno. */
static struct hv_import *find(struct ibv_context *context, enum hv_import_kind kind, uint32_t handle)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_import *i;

	if (!hv_enter(ctx))
		return hv_fail(EIO);
	LIST_FOREACH(i, &ctx->imports, entry)
		if (i->kind == kind && i->handle == handle) {
			i->refs++;
			break;
		}
	hv_leave(ctx);
	return i ? i : hv_fail(ENOENT);
}

static void give_back(struct ibv_context *context, struct hv_import *i, void *object)
{
	struct hv_context *ctx = hv_context_of(context);
	bool last;

	if (!hv_enter(ctx))
		return;
	last = hv_import_put(i);
	hv_leave(ctx);
	if (last)
		free(object);
}

struct ibv_pd *hv_ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct hv_import *i = find(context, HV_IMPORT_PD, handle);

	return i ? &hv_container(i, struct hv_pd, import)->pub : NULL;
}

void hv_ibv_unimport_pd(struct ibv_pd *pub)
{
	struct hv_pd *pd = hv_pd_of(pub);

	give_back(pub->context, &pd->import, pd);
}

struct ibv_mr *hv_ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct hv_import *i = find(pd->context, HV_IMPORT_MR, handle);

	return i ? &hv_container(i, struct hv_mr, import)->pub : NULL;
}

void hv_ibv_unimport_mr(struct ibv_mr *pub)
{
	struct hv_mr *mr = hv_mr_of(pub);

	give_back(pub->context, &mr->import, mr);
}

struct ibv_dm *hv_ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct hv_import *i = find(context, HV_IMPORT_DM, handle);

	return i ? &hv_container(i, struct hv_dm, import)->pub : NULL;
}

void hv_ibv_unimport_dm(struct ibv_dm *pub)
{
	struct hv_dm *dm = hv_container(pub, struct hv_dm, pub);

	give_back(pub->context, &dm->import, dm);
}
