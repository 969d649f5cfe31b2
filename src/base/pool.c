/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/pool.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "base/pages.h"

struct hd_pool_slab {
	alignas(HD_POOL_LINE) struct hd_pool_slab *next;
	size_t bytes;
};

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

void hd_pool_init(struct hd_pool *pool, size_t object_size, unsigned per_slab)
{
	memset(pool, 0, sizeof(*pool));
	if (object_size < sizeof(struct hd_pool_object))
		object_size = sizeof(struct hd_pool_object);
	pool->object_size = object_size;
	pool->stride = round_up(object_size + HD_REDZONE, HD_POOL_LINE);
	pool->slab_bytes = sizeof(struct hd_pool_slab) + pool->stride * (per_slab ? per_slab : 1);
}

void hd_pool_fini(struct hd_pool *pool)
{
	struct hd_pool_slab *slab, *next;

	for (slab = pool->slabs; slab; slab = next) {
		next = slab->next;
		hd_unpoison(slab, slab->bytes);
		hd_pages_put(slab, slab->bytes);
	}
	pool->slabs = NULL;
	pool->free = NULL;
	pool->fresh = pool->end = NULL;
}

static size_t next_slab_bytes(const struct hd_pool *pool)
{
	size_t twice = pool->slab_bytes * 2;

	if (twice <= HD_POOL_SLAB_MAX)
		return twice;
	return pool->slab_bytes > HD_POOL_SLAB_MAX ? pool->slab_bytes : HD_POOL_SLAB_MAX;
}

static bool slab_add(struct hd_pool *pool)
{
	size_t bytes = round_up(pool->slab_bytes, 4096);
	struct hd_pool_slab *slab = hd_pages_get(bytes);

	if (!slab)
		return false;
	slab->bytes = bytes;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->fresh = (char *)(slab + 1);
	pool->end = (char *)slab + bytes;
	hd_poison(pool->fresh, (size_t)(pool->end - pool->fresh));
	pool->slab_bytes = next_slab_bytes(pool);
	return true;
}

void *hd_pool_get_fresh(struct hd_pool *pool)
{
	char *o;

	if ((size_t)(pool->end - pool->fresh) < pool->stride && !slab_add(pool))
		return NULL;
	o = pool->fresh;
	pool->fresh += pool->stride;
	hd_unpoison(o, pool->object_size);
	return o;
}
