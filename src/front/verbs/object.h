/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the program holds pointers to. In front of each object lies what it was given out as, so
 * that a handle that has been changed, a context that is another's, and an object that has been
 * destroyed are found out, where the kernel finds them out for cards. Memory of destroyed objects
 * is kept for objects of the same kind, the oldest first: who looks into one finds that it is none.
 */
#ifndef HEDDLE_FRONT_VERBS_OBJECT_H
#define HEDDLE_FRONT_VERBS_OBJECT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct hv_context;
struct ibv_context;

enum hv_kind {
	HV_KIND_PD,
	HV_KIND_MR,
	HV_KIND_MW,
	HV_KIND_CQ,
	HV_KIND_AH,
	HV_KIND_QP,
	HV_KIND_SRQ,
	HV_KIND_CHANNEL,
	HV_KIND_TD,
	HV_KIND_DM,
	HV_KIND_XRCD,
	HV_KINDS
};

struct hv_object {
	STAILQ_ENTRY(hv_object) next; /* of those that are kept */
	const struct ibv_context *context;
	uint32_t handle;
	uint32_t kind;
} __attribute__((aligned(16)));

/* hv_object_max: how many of a kind a context may have: what ibv_query_device(3) says. */
uint32_t hv_object_max(enum hv_kind kind);

/*
 * hv_object_new: zeroed memory for an object of this context; it begins with its public structure,
 * whose first member is the context. NULL with errno: no memory, or as many as may be.
 * hv_object_show: the program gets it, with this handle (0: of its kind none has one).
 * hv_object_hide: it has been destroyed, and is to be freed later. hv_object_free: nothing refers
 * to it any more. Any thread.
 */
void *hv_object_new(struct hv_context *ctx, enum hv_kind kind, size_t size);
void hv_object_show(void *object, uint32_t handle);
void hv_object_hide(void *object);
void hv_object_free(struct hv_context *ctx, void *object);

static inline struct hv_object *hv_object_of(const void *object)
{
	return (struct hv_object *)(uintptr_t)object - 1;
}

/*
 * HV_CHECK: is this still what was given out? 0; ENOENT: it has been changed;
 * EINVAL: it has been destroyed.
 */
static inline int hv_object_check(const void *object, const struct ibv_context *context, uint32_t handle)
{
	const struct hv_object *o = hv_object_of(object);

	if (__builtin_expect(o->context == context && o->handle == handle, 1))
		return 0;
	return o->context ? ENOENT : EINVAL;
}
#define HV_CHECK(pub) hv_object_check(pub, (pub)->context, (pub)->handle)
/* of those that have no handle */
#define HV_CHECK_PLAIN(pub) hv_object_check(pub, (pub)->context, 0)

#endif
