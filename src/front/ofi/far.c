/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Addresses that are no plain index: receive contexts, those of shared AVs, and what programs call
 * senders; see av.h. The caller holds the node's lock.
 */
#include "front/ofi/auth.h"
#include "front/ofi/av_shared.h"

#include <stdlib.h>

/* ---- following the shared table -------------------------------------------------------------- */

void hd_fi_av_forget(struct hd_fi_av *av, uint32_t index)
{
	struct hd_dest **contexts = index < av->size && av->dest[index] ? av->entry[index].contexts : NULL;
	struct hd_fi_key *key = index < av->size && av->dest[index] ? av->entry[index].key : NULL;
	struct hd_dest *dest = hd_fi_av_take(av, index);

	if (key)
		hd_fi_auth_use(key, -1);
	for (size_t i = 0; contexts && i < (size_t)1 << av->context_bits; i++)
		if (contexts[i])
			hd_dest_put(contexts[i]);
	free(contexts);
	if (dest)
		hd_dest_put(dest);
}

/* An entry of the table, as it is now. */
struct followed {
	uint32_t index, gen, key;
	union hd_fi_addr raw;
};

/* Its key, where there are keys: everybody may have written the slot. */
static struct hd_fi_key *far_key_of(const struct hd_fi_av *av, const struct followed *f)
{
	return f->key && f->key <= av->key_count ? av->keys[f->key - 1] : NULL;
}

/* The entry has changed. One that we cannot use is as one that holds nothing. */
static int far_follow_one(struct hd_fi_av *av, const struct followed *f)
{
	int family = hd_fi_family(av->domain->addr_format);
	struct hd_fi_key *key = far_key_of(av, f);
	union hd_fi_addr addr;
	struct hd_dest *dest;
	int rc;

	hd_fi_av_forget(av, f->index);
	if (!(f->gen & 1) || av->domain->av_keys != !!key ||
	    hd_fi_addr_copy(&f->raw, sizeof(f->raw), family, &addr) ||
	    hd_dest_get_keyed(av->domain->node, &addr.sa, key ? hd_fi_auth_digest(key) : av->key, &dest))
		return 0;
	rc = hd_fi_av_put_at(av, f->index, dest, hd_dest_id(dest), &addr);
	if (rc) {
		hd_dest_put(dest);
		return rc;
	}
	av->entry[f->index].gen = f->gen;
	av->entry[f->index].key = key;
	if (key)
		hd_fi_auth_use(key, 1);
	return 0;
}

void hd_fi_av_follow(struct hd_fi_av *av)
{
	uint64_t version = av->table ? hd_fi_table_version(av->table) : av->version;
	size_t used;

	if (version == av->version || hd_fi_auth_follow(av))
		return;
	used = hd_fi_table_used(av->table);
	for (size_t i = 0; i < used; i++) {
		struct followed f = { .index = (uint32_t)i };
		uint32_t ours = i < av->size && av->dest[i] ? av->entry[i].gen : 0;

		f.gen = hd_fi_table_get(av->table, i, &f.raw, &f.key);
		if (f.gen != ours && (f.gen & 1 || ours) && far_follow_one(av, &f))
			return; /* no memory: again next time */
	}
	av->version = version;
}

/* ---- finding --------------------------------------------------------------------------------- */

uint32_t hd_fi_av_index(struct hd_fi_av *av, fi_addr_t addr)
{
	hd_fi_av_follow(av);
	if (av->context_bits)
		addr &= UINT64_MAX >> av->context_bits;
	return addr < av->size && av->dest[addr] ? (uint32_t)addr : HD_FI_NO_INDEX;
}

static size_t far_context_of(const struct hd_fi_av *av, fi_addr_t addr)
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
	size_t context = far_context_of(av, addr);
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

static uint32_t far_by_id(const struct hd_fi_av *av, uint32_t id)
{
	return id < av->by_id_size ? av->by_id[id] : HD_FI_NO_INDEX;
}

/*
 * By any of his numbers: the program may have inserted him by another name
 * than he has spoken under.
 */
static uint32_t far_sender_index(struct hd_fi_av *av, uint32_t id)
{
	const struct hd_fi_domain *domain = hd_fi_av_whole(av)->domain;
	struct hd_source_walk walk = { 0 };
	uint32_t index, number;

	hd_fi_av_follow(av);
	index = far_by_id(av, id);
	while (index == HD_FI_NO_INDEX && domain && (number = hd_source_next(domain->node, id, &walk)))
		index = far_by_id(av, number);
	return index;
}

fi_addr_t hd_fi_av_far_source(struct hd_fi_av *av, uint32_t id)
{
	uint32_t index = far_sender_index(av, id);

	if (index == HD_FI_NO_INDEX)
		return FI_ADDR_NOTAVAIL;
	return av->user_ids ? hd_fi_av_whole(av)->entry[index].user_id : index;
}

bool hd_fi_av_far_knows(struct hd_fi_av *av, uint32_t id)
{
	return far_sender_index(av, id) != HD_FI_NO_INDEX;
}
