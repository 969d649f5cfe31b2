/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Contexts: a node of the engine for each ibv_open_device(3). */
#include "front/verbs/cancel.h"
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Counted from what stands first in release 44: later ones grow upwards, and what they have in
 * front of it is NULL here.
 */
#define FROM_44(end) ((end)-offsetof(struct verbs_context, query_port))
static_assert(FROM_44(sizeof(struct verbs_context)) ==
			      /* it has one, whose size the C library chooses */
			      608 + sizeof(pthread_mutex_t) &&
		      FROM_44(offsetof(struct verbs_context, sz)) == 312 &&
		      FROM_44(offsetof(struct verbs_context, context)) == 320,
	      "the layout that programs are compiled for");

void *hv_fail(int err)
{
	errno = err < 0 ? -err : err;
	return NULL;
}

void hv_shield(struct hv_context *ctx)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ctx->cancel_state);
}

/*
 * In a forked child: what goes through the context answers with errors, mostly;
 * hv_enter refuses the rest.
 */
static void on_fork(void *arg)
{
	hv_fork_ops(arg);
}

static int node_open(struct hv_context *ctx)
{
	struct hd_node_attr attr = {
		.front = "verbs",
		.locked = true,
		.serve = true,
		.on_fork = on_fork,
		.arg = ctx,
	};

	return hd_node_open(&attr, &ctx->node);
}

static void context_fill(struct hv_context *ctx, struct hv_device *device)
{
	ctx->pub.sz = sizeof(ctx->pub);
	ctx->pub.context.device = &device->pub;
	ctx->pub.context.async_fd = hd_channel_fd(ctx->async);
	ctx->pub.context.num_comp_vectors = 1;
	ctx->pub.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ctx->pub.context.mutex, NULL);
	hv_fill_ops(ctx, false);
}

static int context_open(struct hv_context *ctx, struct hv_device *device)
{
	int rc = node_open(ctx);

	if (rc)
		return rc;
	ctx->device = device;
	rc = hd_channel_open(ctx->node, &ctx->async);
	if (!rc)
		rc = hv_port_load(device, &ctx->port);
	if (!rc)
		rc = hv_import_open(ctx);
	if (!rc) {
		context_fill(ctx, device);
		return 0;
	}
	if (ctx->async)
		hd_channel_close(ctx->async);
	hd_node_close(ctx->node);
	return rc;
}

struct ibv_context *hv_ibv_open_device(struct ibv_device *device)
{
	struct hv_context *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (!ctx)
		return hv_fail(ENOMEM);
	rc = context_open(ctx, hv_device_of(device));
	if (rc) {
		free(ctx);
		return hv_fail(rc);
	}
	hv_cancel_watch(ctx);
	return &ctx->pub.context;
}

static void retire(struct hv_context *ctx)
{
	struct hv_aside mine;

	if (!hv_enter(ctx))
		return;
	mine = hv_aside(ctx);
	hd_node_retire(ctx->node);
	hv_back(ctx, mine);
	hv_leave(ctx);
}

/* What is no object of the program's. */
static void context_shut(struct hv_context *ctx)
{
	if (!hv_enter(ctx))
		return;
	hv_import_shut(ctx);
	hv_leave(ctx);
}

/*
 * ibv_close_device(3) does not release what was made in the context: it stays, and so
 * does the context, until the program ends; nothing of it outlives that. But nobody
 * is served by it any more.
 */
int hv_ibv_close_device(struct ibv_context *context)
{
	struct hv_context *ctx = hv_context_of(context);

	if (hd_node_dead(ctx->node)) {
		errno = EIO;
		return -1;
	}
	if (!hv_import_close(ctx))
		return 0;
	if (ctx->objects) {
		retire(ctx);
		return 0;
	}
	hv_cancel_forget(ctx);
	context_shut(ctx);
	if (hd_node_close(ctx->node)) {
		hv_cancel_watch(ctx);
		retire(ctx);
		return 0;
	}
	hv_events_drop(ctx);
	hd_channel_close(ctx->async);
	hv_null_room_free(ctx);
	pthread_mutex_destroy(&ctx->pub.context.mutex);
	free(ctx->qps);
	free(ctx);
	return 0;
}
