/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MASK ((1u << HD_IDMAP_INDEX_BITS) - 1)
#define SLOTS_MAX (1u << HD_IDMAP_INDEX_BITS)
#define GENERATION_ONE (1u << HD_IDMAP_INDEX_BITS)

void hd_idmap_init(struct hd_idmap *map)
{
	memset(map, 0, sizeof(*map));
}

void hd_idmap_fini(struct hd_idmap *map)
{
	for (unsigned k = 0; k < HD_IDMAP_SEGMENTS; k++)
		free(map->segment[k]);
	hd_idmap_init(map);
}

static struct hd_idmap_slot *take_oldest_free(struct hd_idmap *map)
{
	struct hd_idmap_slot *slot = hd_idmap_slot(map, map->free_first);

	map->free_first = slot->next_free;
	map->free_count--;
	return slot;
}

/* A slot that was never used, or NULL: errno ENOMEM or ENOSPC. */
static struct hd_idmap_slot *take_fresh(struct hd_idmap *map)
{
	uint32_t index = map->used;
	struct hd_idmap_slot *slot;
	unsigned k = 0;
	uint32_t start = 0, room = 1u << HD_IDMAP_FIRST_BITS;

	if (index >= SLOTS_MAX) {
		errno = ENOSPC;
		return NULL;
	}
	while (index >= start + room) {
		start += room;
		room = start;
		k++;
	}
	if (!map->segment[k]) {
		map->segment[k] = calloc(room, sizeof(*slot));
		if (!map->segment[k])
			return NULL;
	}
	map->used++;
	slot = hd_idmap_slot(map, index);
	slot->id = index | GENERATION_ONE;
	return slot;
}

int hd_idmap_add(struct hd_idmap *map, void *ptr, uint32_t *id)
{
	struct hd_idmap_slot *slot = NULL;

	if (map->free_count < HD_IDMAP_REST)
		slot = take_fresh(map);
	if (!slot && map->free_count)
		slot = take_oldest_free(map);
	if (!slot)
		return -errno;
	slot->ptr = ptr;
	*id = slot->id;
	map->count++;
	return 0;
}

void hd_idmap_remove(struct hd_idmap *map, uint32_t id)
{
	struct hd_idmap_slot *slot = hd_idmap_find(map, id);
	uint32_t index = id & INDEX_MASK;

	if (!slot || !slot->ptr)
		return;
	slot->ptr = NULL;
	slot->id += GENERATION_ONE; /* the old number is outdated from here on */
	if (slot->id < GENERATION_ONE)
		slot->id += GENERATION_ONE;
	if (map->free_count++)
		hd_idmap_slot(map, map->free_last)->next_free = index;
	else
		map->free_first = index;
	map->free_last = index;
	map->count--;
}
