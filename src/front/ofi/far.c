/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Addresses that are no plain index: receive contexts, and those of shared AVs; see av.h. The caller holds the node's lock. */
#include "front/ofi/auth.h"
#include "front/ofi/av_shared.h"

#include <stdlib.h>

/* ---- following the shared table -------------------------------------------------------------------------- */

void hd_fi_av_forget(struct hd_fi_av *av, uint32_t index)
{
	struct hd_dest **contexts = index < av->size && av->dest[index] ? av->entry[index].contexts : NULL;
	struct hd_fi_key *key = index < av->size && av->dest[index] ? av->entry[index].key : NULL;
	struct hd_dest *dest = hd_fi_av_take(av, index);

	if (key)
		hd_fi_auth_use(av, key, -1);
	for (size_t i = 0; contexts && i < (size_t)1 << av->context_bits; i++)
		if (contexts[i])
			hd_dest_put(contexts[i]);
	free(contexts);
	if (dest)
		hd_dest_put(dest);
}

/* The entry has changed. One that we cannot use is as one that holds nothing. */
static int follow_one(struct hd_fi_av *av, uint32_t index, uint32_t gen, const union hd_fi_addr *raw)
{
	int family = hd_fi_family(av->domain->addr_format);
	union hd_fi_addr addr;
	struct hd_dest *dest;
	int rc;

	hd_fi_av_forget(av, index);
	if (!(gen & 1) || hd_fi_addr_copy(raw, sizeof(*raw), family, &addr) ||
	    hd_dest_get_keyed(av->domain->node, &addr.sa, av->key, &dest))
		return 0;
	rc = hd_fi_av_put_at(av, index, dest, hd_dest_id(dest), &addr);
	if (rc)
		hd_dest_put(dest);
	else
		av->entry[index].gen = gen;
	return rc;
}

static void follow(struct hd_fi_av *av)
{
	uint64_t version = hd_fi_table_version(av->table);
	size_t used;

	if (version == av->version)
		return;
	used = hd_fi_table_used(av->table);
	for (size_t i = 0; i < used; i++) {
		union hd_fi_addr raw = { 0 };
		uint32_t gen = hd_fi_table_get(av->table, i, &raw);
		uint32_t ours = i < av->size && av->dest[i] ? av->entry[i].gen : 0;

		if (gen != ours && (gen & 1 || ours) && follow_one(av, (uint32_t)i, gen, &raw))
			return; /* no memory: again next time */
	}
	av->version = version;
}

/* ---- finding -------------------------------------------------------------------------------------------------- */

uint32_t hd_fi_av_index(struct hd_fi_av *av, fi_addr_t addr)
{
	if (av->table)
		follow(av);
	if (av->context_bits)
		addr &= UINT64_MAX >> av->context_bits;
	return addr < av->size && av->dest[addr] ? (uint32_t)addr : HD_FI_NO_INDEX;
}

static size_t context_of(const struct hd_fi_av *av, fi_addr_t addr)
{
	return av->context_bits ? addr >> (64 - av->context_bits) : 0;
}

/* The receive context of this number behind the name at the index. */
static struct hd_dest *context_dest(struct hd_fi_av *av, uint32_t index, size_t context)
{
	struct hd_fi_av_entry *entry = &av->entry[index];
	uint64_t key = entry->key ? hd_fi_auth_digest(entry->key) : av->key;
	union hd_fi_addr name = entry->addr;

	if (hd_name_slot(&name.sa))
		return NULL; /* an endpoint that shares its port with others has no contexts */
	if (!entry->contexts)
		entry->contexts = calloc((size_t)1 << av->context_bits, sizeof(struct hd_dest *));
	if (!entry->contexts)
		return NULL;
	hd_name_set_slot(&name.sa, (uint32_t)context);
	if (!entry->contexts[context] &&
	    hd_dest_get_keyed(av->domain->node, &name.sa, key, &entry->contexts[context]))
		return NULL;
	return entry->contexts[context];
}

struct hd_dest *hd_fi_av_far(struct hd_fi_av *av, fi_addr_t addr)
{
	size_t context = context_of(av, addr);
	uint32_t index;

	if (!av->table && !av->context_bits)
		return NULL;
	index = hd_fi_av_index(av, addr);
	if (index == HD_FI_NO_INDEX)
		return NULL;
	return context ? context_dest(av, index, context) : av->dest[index];
}

struct hd_dest *hd_fi_av_far_sender(struct hd_fi_av *av, fi_addr_t addr)
{
	uint32_t index = hd_fi_av_index(av, addr);

	return index == HD_FI_NO_INDEX ? NULL : av->dest[index];
}

fi_addr_t hd_fi_av_far_source(struct hd_fi_av *av, uint32_t id)
{
	uint32_t index;

	if (!av->table)
		return FI_ADDR_NOTAVAIL;
	follow(av);
	index = id < av->by_id_size ? av->by_id[id] : HD_FI_NO_INDEX;
	return index == HD_FI_NO_INDEX ? FI_ADDR_NOTAVAIL : index;
}
