/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Numbers for pointers, to be sent to peers who send them back. A number is a slot's
 * index and its generation:
 *
 *	 31        22 21                       0
 *	+------------+--------------------------+
 *	| generation | index                    |   generation 1 to 1023, so that no number is 0
 *	+------------+--------------------------+
 *
 * Slots are reused in the order in which they were freed, and not before HD_IDMAP_REST others are
 * free, so an outdated number is recognised for long (HD_IDMAP_REST * 1023 additions at least).
 * Slots live in segments that double and never move. Threads: the caller's lock.
 */
#ifndef HEDDLE_BASE_IDMAP_H
#define HEDDLE_BASE_IDMAP_H

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

#define HD_IDMAP_INDEX_BITS 22
#define HD_IDMAP_FIRST_BITS 8 /* log2 of the slots of the first segment */
#define HD_IDMAP_SEGMENTS (HD_IDMAP_INDEX_BITS - HD_IDMAP_FIRST_BITS + 1)
#define HD_IDMAP_REST 128

struct hd_idmap_slot {
	void *ptr; /* NULL: free */
	uint32_t id;
	uint32_t next_free;
};

struct hd_idmap {
	uint32_t count;			/* of pointers in it */
	uint32_t used;			/* slots that were ever used: those below have memory */
	uint32_t free_count;		/* slots that wait for reuse */
	uint32_t free_first, free_last; /* indices, valid while free_count is above 0 */
	struct hd_idmap_slot *segment[HD_IDMAP_SEGMENTS];
};

/* hd_idmap_init makes an empty map. Allocates nothing. */
void hd_idmap_init(struct hd_idmap *map);

/* hd_idmap_fini frees the slots; the pointers are the caller's. */
void hd_idmap_fini(struct hd_idmap *map);

/*
 * hd_idmap_add gives ptr, which is not NULL, a number, never 0. -ENOMEM; -ENOSPC:
 * 4 Mi pointers are in it.
 */
int hd_idmap_add(struct hd_idmap *map, void *ptr, uint32_t *id);

/* hd_idmap_remove frees the number. One that stands for nothing is ignored. */
void hd_idmap_remove(struct hd_idmap *map, uint32_t id);

/* Slot of an index below map->used. */
static inline struct hd_idmap_slot *hd_idmap_slot(const struct hd_idmap *map, uint32_t index)
{
	uint32_t top;

	if (hd_likely(index < 1u << HD_IDMAP_FIRST_BITS))
		return &map->segment[0][index];
	top = 31 - (uint32_t)__builtin_clz(index);
	return &map->segment[top - (HD_IDMAP_FIRST_BITS - 1)][index - (1u << top)];
}

/* The slot whose number this is, or will be when it is used again; NULL: there is none. */
static inline struct hd_idmap_slot *hd_idmap_find(const struct hd_idmap *map, uint32_t id)
{
	uint32_t index = id & ((1u << HD_IDMAP_INDEX_BITS) - 1);
	struct hd_idmap_slot *slot;

	if (index >= map->used)
		return NULL;
	slot = hd_idmap_slot(map, index);
	return slot->id == id ? slot : NULL;
}

/*
 * hd_idmap_get returns what the number stands for, or NULL: any number is
 * safe, those from a peer too.
 */
static inline void *hd_idmap_get(const struct hd_idmap *map, uint32_t id)
{
	const struct hd_idmap_slot *slot = hd_idmap_find(map, id);

	return slot ? slot->ptr : NULL;
}

#endif
