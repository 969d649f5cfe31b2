/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The side of a process that imports from another one. Its context is one of its own, in which
 * stand for the other's objects: a domain of its own, and regions with the other's keys over a
 * mapping of the same memory. So they live on when the other process has died, as on hardware.
 */
#include "base/proc.h"
#include "front/verbs/call.h"
#include "front/verbs/dm.h"
#include "front/verbs/entry.h"
#include "front/verbs/import/words.h"
#include "front/verbs/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_HANDLE (UINT32_C(1) << 30) /* of what is made here: not one of the other's */

struct hv_origin {
	int fd;
	struct hd_dest *voice;		 /* NULL: not known yet */
	LIST_HEAD(, hv_mr_far) arrivals; /* regions that are being imported */
};

/* ---- contexts -------------------------------------------------------------------------------- */

struct ibv_context *hv_import_far_device(int fd, const struct hv_card *card)
{
	struct hv_origin *origin = calloc(1, sizeof(*origin));
	struct ibv_context *context = origin ? hv_ibv_open_device(&hv_devices[card->device].pub) : NULL;
	struct hv_context *ctx;

	if (!context) {
		free(origin);
		return origin ? NULL : hv_fail(ENOMEM);
	}
	ctx = hv_context_of(context);
	origin->fd = fd;
	ctx->origin = origin;
	ctx->next_handle = FIRST_HANDLE;
	return context;
}

void hv_import_far_shut(struct hv_context *ctx)
{
	if (!ctx->origin)
		return;
	if (ctx->origin->voice)
		hd_dest_put(ctx->origin->voice);
	close(ctx->origin->fd);
	free(ctx->origin);
	ctx->origin = NULL;
}

static bool card_read(const struct hv_origin *origin, struct hv_card *card)
{
	return pread(origin->fd, card, sizeof(*card), 0) == sizeof(*card);
}

/* Where the other answers. 0 or a positive errno. With the lock. */
static int origin_find(struct hv_context *ctx, const struct hv_card *card)
{
	struct hv_origin *origin = ctx->origin;
	struct sockaddr_storage name;

	if (origin->voice)
		return 0;
	if (!card->voice || !hd_node_address(ctx->node, 0, &name))
		return ENOENT;
	hd_name_set_number((struct sockaddr *)&name, card->voice);
	return -hd_dest_get(ctx->node, (struct sockaddr *)&name, &origin->voice);
}

/* 0 or a positive errno. Without the lock. */
static int far_ask(struct hv_context *ctx, enum hv_word_kind what, uint32_t handle,
		   struct hv_import_answer *a)
{
	struct hv_import_question q = { .what = what, .handle = handle };
	struct hv_call *call;
	struct hv_card card;
	int rc;

	if (!ctx->origin)
		return ENOENT;
	if (!card_read(ctx->origin, &card))
		return EIO;
	q.secret = card.secret;
	if (!hv_enter(ctx))
		return EIO;
	rc = -hv_voice(ctx);
	if (!rc)
		rc = origin_find(ctx, &card);
	if (!rc)
		rc = hv_call_start(ctx, ctx->voice, ctx->origin->voice, &q, sizeof(q), &call);
	hv_leave(ctx);
	if (!rc)
		rc = hv_call_end(ctx, call, a, sizeof(*a), -1);
	return rc ? rc : a->err;
}

/* ---- objects --------------------------------------------------------------------------------- */

struct ibv_pd *hv_import_far_pd(struct hv_context *ctx, uint32_t handle)
{
	struct hv_import_answer a;
	int rc = far_ask(ctx, HV_TELL_PD, handle, &a);

	return rc ? hv_fail(rc) : hv_pd_import(ctx, handle);
}

/* The process that answers: what it says is there, is at most its own. -errno. Without the lock. */
static int origin_holder(struct hv_context *ctx, struct hd_holder *out)
{
	int rc = -EIO;

	if (!hv_enter(ctx))
		return rc;
	if (ctx->origin && ctx->origin->voice)
		rc = hd_dest_holder(ctx->origin->voice, out);
	hv_leave(ctx);
	return rc;
}

/* Its folder in /proc, which is no other's once it is open; a descriptor, or -1. */
static int origin_process(struct hv_context *ctx)
{
	struct hd_holder before, after;
	char path[32];
	pid_t pid;
	int fd;

	if (origin_holder(ctx, &before))
		return -1;
	pid = hd_proc_of(&before);
	if (pid <= 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* it was alive then, and has not given its number to another one */
	if (fd >= 0 && (origin_holder(ctx, &after) || hd_proc_of(&after) != pid)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static char *far_map(struct hv_context *ctx, const struct hv_import_answer *a, struct hv_mr_far *far)
{
	int process = origin_process(ctx);
	char *at;

	if (process < 0)
		return NULL;
	at = hv_where_map(process, a->place, a->length, a->access & IBV_ACCESS_LOCAL_WRITE, &far->map,
			  &far->map_size);
	close(process);
	return at;
}

static struct ibv_mr *import_mr(struct ibv_pd *pd, struct hv_mr_far *far)
{
	struct hv_import *real = &hv_pd_real(hv_pd_of(pd))->import;
	struct hv_import_answer a;
	struct ibv_mr *mr;
	int rc = far_ask(hv_context_of(pd->context), HV_TELL_MR, far->handle, &a);

	if (!rc && (!real->far || real->handle != a.pd))
		rc = EINVAL;
	if (rc)
		return hv_fail(rc);
	far->key = a.key;
	far->access = a.access;
	far->iova = a.iova;
	far->length = a.length;
	if (a.length)
		far->memory = far_map(hv_context_of(pd->context), &a, far);
	if (a.length && !far->memory)
		return hv_fail(EOPNOTSUPP);
	mr = hv_mr_import(pd, far);
	if (!mr && far->map)
		munmap(far->map, far->map_size);
	return mr;
}

/* That the region goes may be said as soon as the other has told of it. */
struct ibv_mr *hv_import_far_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct hv_context *ctx = hv_context_of(pd->context);
	struct hv_mr_far far = { .handle = handle };
	struct ibv_mr *mr;
	int before;

	if (!ctx->origin)
		return hv_fail(ENOENT);
	if (!hv_enter(ctx))
		return hv_fail(EIO);
	LIST_INSERT_HEAD(&ctx->origin->arrivals, &far, entry);
	hv_leave(ctx);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* it is in the list */
	mr = import_mr(pd, &far);
	if (hv_enter(ctx)) {
		LIST_REMOVE(&far, entry);
		hv_leave(ctx);
	}
	pthread_setcancelstate(before, NULL);
	return mr;
}

/* Within the other's descriptor, which does not become shorter. */
static bool dm_is_there(const struct hv_origin *origin, const struct hv_import_answer *a)
{
	struct stat st;

	return a->length && a->length <= HV_MAX_DM && fstat(origin->fd, &st) == 0 &&
	       a->place <= (uint64_t)st.st_size && a->length <= (uint64_t)st.st_size - a->place;
}

struct ibv_dm *hv_import_far_dm(struct hv_context *ctx, uint32_t handle)
{
	struct hv_import_answer a;
	int rc = far_ask(ctx, HV_TELL_DM, handle, &a);

	if (!rc && !dm_is_there(ctx->origin, &a))
		rc = EPROTO;
	return rc ? hv_fail(rc) : hv_dm_import(ctx, handle, ctx->origin->fd, a.place, a.length);
}

void hv_import_far_revoked(struct hv_context *ctx, uint32_t handle, const struct hv_secret *secret)
{
	struct hv_import *i = hv_import_seek(ctx, HV_IMPORT_MR, handle);
	struct hv_mr_far *far;
	struct hv_card card;

	if (!ctx->origin || (!i && LIST_EMPTY(&ctx->origin->arrivals)) || !card_read(ctx->origin, &card) ||
	    !hv_secret_same(&card.secret, secret))
		return;
	if (i && i->far)
		hv_mr_revoke(hv_container(i, struct hv_mr, import));
	LIST_FOREACH(far, &ctx->origin->arrivals, entry)
		far->revoked |= far->handle == handle;
}
