/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The memory of objects, and what they were given out as. */
#include "front/verbs/object.h"

#include "base/lock.h"
#include "front/verbs/verbs_front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

HD_LOCK_DEFINE(kept_lock);
static STAILQ_HEAD(, hv_object) kept[HV_KINDS];

__attribute__((constructor)) static void kept_init(void)
{
	for (int i = 0; i < HV_KINDS; i++)
		STAILQ_INIT(&kept[i]);
}

/*
 * Where destroyed objects are: the device is ours, so that their calls come to us; its functions
 * are those of a dead one.
 */
static struct hv_context *nowhere(void)
{
	static struct hv_context none;
	static atomic_bool made;

	if (!atomic_load_explicit(&made, memory_order_acquire)) {
		/* whoever does so does the same */
		none.pub.context.device = &hv_devices[HV_INFINIBAND].pub;
		hv_fill_ops(&none, true);
		atomic_store_explicit(&made, true, memory_order_release);
	}
	return &none;
}

uint32_t hv_object_max(enum hv_kind kind)
{
	static const uint32_t most[HV_KINDS] = {
		[HV_KIND_PD] = HV_MAX_PD,   [HV_KIND_MR] = HV_MAX_OBJECTS, [HV_KIND_MW] = HV_MAX_OBJECTS,
		[HV_KIND_CQ] = HV_MAX_CQ,   [HV_KIND_AH] = HV_MAX_AH,	   [HV_KIND_QP] = HV_MAX_QP,
		[HV_KIND_SRQ] = HV_MAX_SRQ,
	};

	return most[kind] ? most[kind] : HV_MAX_OBJECTS;
}

static bool object_count(struct hv_context *ctx, enum hv_kind kind)
{
	uint32_t n = atomic_fetch_add_explicit(&ctx->counts[kind], 1, memory_order_relaxed);

	if (n < hv_object_max(kind))
		return true;
	atomic_fetch_sub_explicit(&ctx->counts[kind], 1, memory_order_relaxed);
	return false;
}

/* The one that has been kept longest; NULL: there is none. */
static struct hv_object *take_kept(enum hv_kind kind)
{
	struct hv_object *o;

	hd_lock_take(&kept_lock);
	o = STAILQ_FIRST(&kept[kind]);
	if (o)
		STAILQ_REMOVE_HEAD(&kept[kind], next);
	hd_lock_give(&kept_lock);
	return o;
}

void *hv_object_new(struct hv_context *ctx, enum hv_kind kind, size_t size)
{
	struct hv_object *o;

	if (!object_count(ctx, kind))
		return hv_fail(ENOMEM);
	o = take_kept(kind);
	if (o)
		memset(o + 1, 0, size);
	else
		o = calloc(1, sizeof(*o) + size);
	if (!o) {
		atomic_fetch_sub_explicit(&ctx->counts[kind], 1, memory_order_relaxed);
		return hv_fail(ENOMEM);
	}
	o->context = NULL;
	o->handle = 0;
	o->kind = kind;
	return o + 1;
}

void hv_object_show(void *object, uint32_t handle)
{
	struct hv_object *o = hv_object_of(object);

	o->context = *(struct ibv_context **)object;
	o->handle = handle;
}

void hv_object_hide(void *object)
{
	hv_object_of(object)->context = NULL;
}

void hv_object_free(struct hv_context *ctx, void *object)
{
	struct hv_object *o = hv_object_of(object);

	atomic_fetch_sub_explicit(&ctx->counts[o->kind], 1, memory_order_relaxed);
	hv_object_hide(object);
	*(struct ibv_context **)object = &nowhere()->pub.context;
	hd_lock_take(&kept_lock);
	STAILQ_INSERT_TAIL(&kept[o->kind], o, next);
	hd_lock_give(&kept_lock);
}
