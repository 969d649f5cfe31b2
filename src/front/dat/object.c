/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What all handles have in common. */
#include "base/lock.h"
#include "front/dat/dat_front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

DAT_RETURN hu_errno(int rc)
{
	switch (-rc) {
	case 0:
		return DAT_SUCCESS;
	case ENOMEM:
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	case EMFILE:
	case ENFILE:
	case ENOSPC:
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	case EAGAIN:
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	case EADDRINUSE:
		return hu_error(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE);
	case EADDRNOTAVAIL:
		return hu_error(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
	default:
		return hu_error(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	}
}

int hu_timeout_ms(DAT_TIMEOUT us)
{
	if (us == DAT_TIMEOUT_INFINITE)
		return -1;
	return (int)(us / 1000 + (us % 1000 != 0));
}

void *hu_begin(DAT_HANDLE handle, DAT_HANDLE_TYPE type, DAT_RETURN_SUBTYPE sub, DAT_RETURN *rc)
{
	struct hu_object *o = handle;

	*rc = DAT_SUCCESS;
	if (hu_unlikely(!hu_is(o, type)))
		*rc = hu_error(DAT_INVALID_HANDLE, sub);
	else if (hu_unlikely(!hu_enter(o->ia)))
		*rc = HU_DEAD;
	return hu_unlikely(*rc) ? NULL : o;
}

/*
 * libdat2 exports it for providers, without a header: from the program's handle to ours, or
 * from ours to the program's.
 */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *out);

DAT_IA_HANDLE hu_ia_handle(struct hu_ia *ia)
{
	DAT_IA_HANDLE theirs;

	return dats_get_ia_handle(ia, &theirs) ? (DAT_IA_HANDLE)ia : theirs;
}

void hu_waiters_add(struct hu_ia *ia, int by)
{
	pthread_mutex_lock(&ia->mutex);
	ia->waiters += by;
	if (!ia->waiters)
		pthread_cond_broadcast(&ia->left);
	pthread_mutex_unlock(&ia->mutex);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * libdat2 reads the first word of any handle, and we the next, before anybody knows whether
 * it has been freed: so the memory of objects stays what it is. Of objects of all IAs that
 * have been freed, by type.
 */
#define KINDS (DAT_HANDLE_TYPE_EXTENSION_BASE + 32)

HD_LOCK_DEFINE(pool);
static STAILQ_HEAD(hu_freed, hu_object) freed[KINDS];

static void *take_freed(DAT_HANDLE_TYPE type, size_t size)
{
	struct hu_object *o;

	hd_lock_take(&pool);
	o = STAILQ_FIRST(&freed[type]);
	if (o)
		STAILQ_REMOVE_HEAD(&freed[type], free);
	hd_lock_give(&pool);
	return o ? memset(o, 0, size) : calloc(1, size);
}

void hu_release(struct hu_object *o)
{
	hd_lock_take(&pool);
	if (!freed[o->type].stqh_last)
		STAILQ_INIT(&freed[o->type]);
	STAILQ_INSERT_TAIL(&freed[o->type], o, free);
	hd_lock_give(&pool);
}

__attribute__((destructor)) static void object_give_back(void)
{
	struct hu_object *o;

	for (int i = 0; i < KINDS; i++)
		while ((o = STAILQ_FIRST(&freed[i]))) {
			STAILQ_REMOVE_HEAD(&freed[i], free);
			free(o);
		}
}

void *hu_make(struct hu_ia *ia, DAT_HANDLE_TYPE type, size_t size)
{
	struct hu_object *o = take_freed(type, size);

	if (!o)
		return NULL;
	o->provider = ia->o.provider;
	o->magic = HU_MAGIC;
	o->type = type;
	o->ia = ia;
	LIST_INSERT_HEAD(&ia->objects, o, entry);
	hu_count_made(ia, type, 1);
	return o;
}

void hu_unmake(struct hu_object *o)
{
	hu_count_made(o->ia, o->type, -1);
	LIST_REMOVE(o, entry);
	o->magic = 0;
	hu_release(o);
}

void hu_free(struct hu_object *o)
{
	hu_count_freed(o->ia, o->type);
	LIST_REMOVE(o, entry);
	o->magic = 0;
	hu_release(o);
}

/* ---- any handle ------------------------------------------------------------------------------ */

static bool object_is_any(DAT_HANDLE handle)
{
	const struct hu_object *o = handle;

	return o && !((uintptr_t)o & 7) && o->magic == HU_MAGIC;
}

DAT_RETURN hu_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	struct hu_object *o = handle;

	if (!object_is_any(handle))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	o->context = context;
	return DAT_SUCCESS;
}

DAT_RETURN hu_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	const struct hu_object *o = handle;

	if (!object_is_any(handle))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!context)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*context = o->context;
	return DAT_SUCCESS;
}

DAT_RETURN hu_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	const struct hu_object *o = handle;

	if (!object_is_any(handle))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!type)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*type = o->type;
	return DAT_SUCCESS;
}
