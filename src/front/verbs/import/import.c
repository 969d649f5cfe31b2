/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3). The cmd_fd of a
 * context is a memfd: whatever descriptor leads to the same one is that context's. It holds where
 * the context is to be asked, and its device memory, for other processes.
 */
#include "base/lock.h"
#include "base/memfd.h"
#include "base/random.h"
#include "base/socket.h"
#include "front/verbs/dm.h"
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "heddle-verbs"

static LIST_HEAD(, hv_context) contexts = LIST_HEAD_INITIALIZER(contexts);
HD_LOCK_DEFINE(imports_lock);

/* ---- devices --------------------------------------------------------------------------------- */

static int card_write(const struct hv_context *ctx, int fd)
{
	struct hv_card card = { .magic = HV_CARD_MAGIC,
				.device = ctx->device->index,
				.voice = ctx->voice ? hd_ep_number(ctx->voice) : 0,
				.secret = ctx->secret };

	return !ctx->dm_end || pwrite(fd, &card, sizeof(card), 0) == sizeof(card) ? 0 : -EIO;
}

/*
 * Where the kernel gives no file in memory: something with an inode of its own, which only
 * this process can import.
 */
static int card_stand_in(void)
{
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int card_open(struct hv_context *ctx)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;

	ctx->dm_end = 0;
	if (fd < 0)
		return hd_memfd_is_refused(errno) ? card_stand_in() : -errno;
	ctx->dm_end = HV_CARD_ROOM;
	if (hd_random(&ctx->secret, sizeof(ctx->secret)) || ftruncate(fd, HV_CARD_ROOM) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		rc = -EIO;
	if (!rc)
		rc = card_write(ctx, fd);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int hv_voice(struct hv_context *ctx)
{
	const struct hd_ep_attr attr = { .type = HD_EP_RDM,
					 .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE,
					 .asked = hv_import_asked,
					 .owner = ctx };
	int rc;

	if (ctx->voice)
		return 0;
	rc = hd_ep_open(ctx->node, &attr, &ctx->voice);
	return rc ? rc : card_write(ctx, ctx->pub.context.cmd_fd);
}

int hv_import_open(struct hv_context *ctx)
{
	int fd = card_open(ctx);

	if (fd < 0)
		return fd;
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
		if (!hd_node_dead(ctx->node) && leads_to(ctx, &st)) {
			ctx->opens++;
			break;
		}
	hd_lock_give(&imports_lock);
	return ctx;
}

/* Is it that of a context which another process has, or of the parent's of this one? */
static bool is_card(int fd, struct hv_card *card)
{
	char path[64], to[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, to, sizeof(to) - 1) > 0 &&
	       !strncmp(to, "/memfd:" NAME, strlen("/memfd:" NAME)) &&
	       fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK && /* what is mapped of it stays */
	       pread(fd, card, sizeof(*card), 0) == sizeof(*card) &&
	       !memcmp(card->magic, HV_CARD_MAGIC, sizeof(card->magic)) && card->device < HV_DEVICES;
}

HV_PUBLIC struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct hv_context *ctx = by_fd(cmd_fd);
	struct hv_card card;

	if (!ctx)
		return is_card(cmd_fd, &card) ? hv_import_far_device(cmd_fd, &card) : hv_real_import(cmd_fd);
	close(cmd_fd); /* it is ours from now on */
	return &ctx->pub.context;
}

/* ---- objects --------------------------------------------------------------------------------- */

void hv_import_add(struct hv_context *ctx, struct hv_import *i, enum hv_import_kind kind, uint32_t handle)
{
	i->kind = kind;
	i->handle = handle;
	i->refs = 1;
	LIST_INSERT_HEAD(&ctx->imports, i, entry);
	if (!i->quiet)
		(void)hv_voice(ctx); /* without one it cannot be imported elsewhere */
}

struct hv_import *hv_import_seek(struct hv_context *ctx, enum hv_import_kind kind, uint32_t handle)
{
	struct hv_import *i;

	LIST_FOREACH(i, &ctx->imports, entry)
		if (i->kind == kind && i->handle == handle)
			return i;
	return NULL;
}

/*
 * Nothing can be imported any more, and nobody who lives has asked: the voice has a TCP
 * port, which others may need.
 */
static void fall_silent(struct hv_context *ctx)
{
	const struct hv_import *i;

	if (!ctx->voice || ctx->origin || !LIST_EMPTY(&ctx->borrowers))
		return;
	LIST_FOREACH(i, &ctx->imports, entry)
		if (!i->quiet)
			return;
	hd_ep_close(ctx->voice);
	ctx->voice = NULL;
	(void)card_write(ctx, ctx->pub.context.cmd_fd); /* an old number there leads nowhere */
}

bool hv_import_destroyed(struct hv_context *ctx, struct hv_import *i)
{
	LIST_REMOVE(i, entry);
	i->gone = true;
	fall_silent(ctx);
	return hv_import_put(i);
}

/* One reference more; NULL with errno. */
static struct hv_import *import_find(struct ibv_context *context, enum hv_import_kind kind, uint32_t handle)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_import *i;

	if (!hv_enter(ctx))
		return hv_fail(EIO);
	i = hv_import_seek(ctx, kind, handle);
	if (i)
		i->refs++;
	hv_leave(ctx);
	return i ? i : hv_fail(ENOENT);
}

/*
 * Take an import back. False: it is the last of what stands for another process's object,
 * which is to be destroyed.
 */
static bool import_give_back(struct ibv_context *context, struct hv_import *i, void *object)
{
	struct hv_context *ctx = hv_context_of(context);
	bool last = false, goes;

	if (!hv_enter(ctx))
		return true;
	goes = i->far && !i->gone && i->refs == 1;
	if (!goes)
		last = hv_import_put(i);
	hv_leave(ctx);
	if (last)
		hv_object_free(ctx, object);
	return !goes;
}

struct ibv_pd *hv_ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct hv_import *i = import_find(context, HV_IMPORT_PD, handle);

	if (i)
		return &hv_container(i, struct hv_pd, import)->pub;
	return errno == ENOENT ? hv_import_far_pd(hv_context_of(context), handle) : NULL;
}

void hv_ibv_unimport_pd(struct ibv_pd *pub)
{
	struct hv_pd *pd = hv_pd_of(pub);

	if (!import_give_back(pub->context, &pd->import, pd))
		hv_ibv_dealloc_pd(pub);
}

struct ibv_mr *hv_ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct hv_import *i = import_find(pd->context, HV_IMPORT_MR, handle);

	if (i)
		return &hv_container(i, struct hv_mr, import)->pub;
	return errno == ENOENT ? hv_import_far_mr(pd, handle) : NULL;
}

void hv_ibv_unimport_mr(struct ibv_mr *pub)
{
	struct hv_mr *mr = hv_mr_of(pub);

	if (!import_give_back(pub->context, &mr->import, mr))
		hv_ibv_dereg_mr(pub);
}

struct ibv_dm *hv_ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct hv_import *i = import_find(context, HV_IMPORT_DM, handle);

	if (i)
		return &hv_container(i, struct hv_dm, import)->pub;
	return errno == ENOENT ? hv_import_far_dm(hv_context_of(context), handle) : NULL;
}

void hv_ibv_unimport_dm(struct ibv_dm *pub)
{
	struct hv_dm *dm = hv_container(pub, struct hv_dm, pub);

	if (!import_give_back(pub->context, &dm->import, dm))
		hv_free_dm(pub);
}
