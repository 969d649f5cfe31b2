/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/ofi/av.h"

#include <stdlib.h>

#define FIRST_SIZE 16

static int grow_by_id(struct hd_fi_av *av, uint32_t id)
{
	size_t size = av->by_id_size ? av->by_id_size : FIRST_SIZE;
	uint32_t *by_id;

	if (id < av->by_id_size)
		return 0;
	while (size <= id)
		size *= 2;
	by_id = realloc(av->by_id, size * sizeof(*by_id));
	if (!by_id)
		return hd_fi_no(FI_ENOMEM);
	for (size_t i = av->by_id_size; i < size; i++)
		by_id[i] = HD_FI_NO_INDEX;
	av->by_id = by_id;
	av->by_id_size = size;
	av->direct_ids = av->table || av->user_ids ? 0 : size;
	return 0;
}

int hd_fi_av_reserve(struct hd_fi_av *av, size_t size)
{
	struct hd_dest **dest;
	struct hd_fi_av_entry *entry;

	if (size <= av->size)
		return 0;
	if (size >= HD_FI_NO_INDEX)
		return hd_fi_no(FI_ENOMEM);
	entry = reallocarray(av->entry, size, sizeof(*entry));
	if (!entry)
		return hd_fi_no(FI_ENOMEM);
	av->entry = entry;
	dest = reallocarray(av->dest, size, sizeof(*dest));
	if (!dest)
		return hd_fi_no(FI_ENOMEM);
	for (size_t i = av->size; i < size; i++) {
		dest[i] = NULL;
		entry[i].gen = 0;
	}
	av->dest = dest;
	av->size = size;
	av->direct = av->table ? 0 : size;
	return 0;
}

/* Keep the index under its destination: the oldest one stays the one that by_id names. */
static void chain(struct hd_fi_av *av, uint32_t index)
{
	struct hd_fi_av_entry *entry = &av->entry[index];
	uint32_t head = av->by_id[entry->id];

	if (head == HD_FI_NO_INDEX) {
		entry->next = HD_FI_NO_INDEX;
		av->by_id[entry->id] = index;
	} else {
		entry->next = av->entry[head].next;
		av->entry[head].next = index;
	}
}

static void unchain(struct hd_fi_av *av, uint32_t index)
{
	uint32_t *link = &av->by_id[av->entry[index].id];

	while (*link != index)
		link = &av->entry[*link].next;
	*link = av->entry[index].next;
}

int hd_fi_av_put_at(struct hd_fi_av *av, size_t index, struct hd_dest *dest, uint32_t id,
		    const union hd_fi_addr *addr)
{
	size_t size = av->size ? av->size : FIRST_SIZE;
	int rc = grow_by_id(av, id);

	while (size <= index)
		size *= 2;
	if (!rc)
		rc = hd_fi_av_reserve(av, size);
	if (rc)
		return rc;
	av->dest[index] = dest;
	av->entry[index].addr = *addr;
	av->entry[index].id = id;
	av->entry[index].contexts = NULL;
	av->entry[index].key = NULL;
	av->entry[index].user_id = av->users_unnamed ? FI_ADDR_NOTAVAIL : index;
	chain(av, (uint32_t)index);
	return 0;
}

int64_t hd_fi_av_put(struct hd_fi_av *av, struct hd_dest *dest, uint32_t id, const union hd_fi_addr *addr)
{
	size_t index = av->lowest;
	int rc;

	while (index < av->size && av->dest[index])
		index++;
	av->lowest = index;
	rc = hd_fi_av_put_at(av, index, dest, id, addr);
	if (rc)
		return rc;
	av->lowest = index + 1;
	return (int64_t)index;
}

struct hd_dest *hd_fi_av_take(struct hd_fi_av *av, size_t index)
{
	struct hd_dest *dest = index < av->size ? av->dest[index] : NULL;

	if (!dest)
		return NULL;
	unchain(av, (uint32_t)index);
	av->dest[index] = NULL;
	if (index < av->lowest)
		av->lowest = index;
	return dest;
}

void hd_fi_av_free(struct hd_fi_av *av)
{
	free(av->dest);
	free(av->entry);
	free(av->by_id);
}
