/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Objects of one size, from slabs that are never given back before fini.
 *
 *	slab      slab 2 times as large, up to HD_POOL_SLAB_MAX
 *	+------+  +------+
 *	| link |->| link |-> …
 *	+------+  +------+
 *	| obj | | obj |<-- free <-- free <-- … last put, first got: its lines are still in the cache
 *	| obj | | obj | | obj | |......|<-- fresh: never used yet, memory not touched +------+
 *	+------+
 *
 * Objects start on cache lines. Threads: the caller's lock.
 */
#ifndef HEDDLE_BASE_POOL_H
#define HEDDLE_BASE_POOL_H

#include <stddef.h>

#include "base/poison.h"

#define HD_POOL_LINE 64
#define HD_POOL_SLAB_MAX ((size_t)2 << 20) /* bytes */

struct hd_pool_object {
	struct hd_pool_object *next;
};

struct hd_pool {
	struct hd_pool_object *free;
	char *fresh, *end;  /* of the newest slab */
	size_t object_size; /* bytes that callers may use */
	size_t stride;
	size_t slab_bytes; /* of the next slab */
	struct hd_pool_slab *slabs;
};

/*
 * hd_pool_init makes an empty pool; the first slab will hold `per_slab` objects (at
 * least 1). Allocates nothing.
 */
void hd_pool_init(struct hd_pool *pool, size_t object_size, unsigned per_slab);

/* hd_pool_fini frees all slabs, with every object that is still out. */
void hd_pool_fini(struct hd_pool *pool);

/* The first use of an object; NULL when memory is out. */
void *hd_pool_get_fresh(struct hd_pool *pool);

/* hd_pool_get returns an object of undefined content, or NULL when memory is out. */
static inline void *hd_pool_get(struct hd_pool *pool)
{
	struct hd_pool_object *o = pool->free;

	if (__builtin_expect(!o, 0))
		return hd_pool_get_fresh(pool);
	hd_unpoison(o, pool->object_size);
	pool->free = o->next;
	return o;
}

/* hd_pool_put takes an object back. */
static inline void hd_pool_put(struct hd_pool *pool, void *object)
{
	struct hd_pool_object *o = object;

	o->next = pool->free;
	pool->free = o;
	hd_poison(o, pool->object_size);
}

#endif
