/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Authorization keys in an AV, fi_av_insert_auth_key(3). Their addresses have a bit that no index
 * into an AV reaches, so that they are refused wherever FI_AUTH_KEY is missing.
 */
#include "front/ofi/auth_av.h"
#include "front/ofi/av_shared.h"

#include <stdlib.h>
#include <string.h>

#define KEY_BIT (UINT64_C(1) << 41)

struct hd_fi_key *hd_fi_auth_at(struct hd_fi_av *av, fi_addr_t addr)
{
	uint64_t slot = addr ^ KEY_BIT;
	struct hd_fi_key *key;

	hd_fi_av_follow(av);
	key = slot < av->key_count ? av->keys[slot] : NULL;

	return key && key->live ? key : NULL;
}

fi_addr_t hd_fi_auth_addr(const struct hd_fi_key *key)
{
	return KEY_BIT | key->slot;
}

uint32_t hd_fi_auth_slot(const struct hd_fi_key *key)
{
	return key->slot;
}

uint64_t hd_fi_auth_digest(const struct hd_fi_key *key)
{
	return key->digest;
}

static void key_free(struct hd_fi_key *key)
{
	if (key->av->keys[key->slot] == key)
		key->av->keys[key->slot] = NULL;
	explicit_bzero(key->bytes, key->size);
	free(key);
}

static void key_unuse(struct hd_fi_key *key)
{
	if (!key->addrs && !key->eps && !key->live)
		key_free(key);
}

void hd_fi_auth_use(struct hd_fi_key *key, int by)
{
	key->addrs += (uint32_t)by;
	key_unuse(key);
}

int hd_fi_auth_hold(struct hd_fi_key *key, bool on)
{
	struct hd_fi_table *table = key->av->table;
	int rc = 0;

	if (table && (on ? !key->eps : key->eps == 1))
		rc = hd_fi_table_key_hold(table, key->slot, key->gen, on);
	if (rc && on)
		return rc;
	key->eps += on ? 1 : -1;
	key_unuse(key);
	return 0;
}

void hd_fi_auth_free(struct hd_fi_av *av)
{
	for (uint32_t i = 0; i < av->key_count; i++)
		if (av->keys[i])
			key_free(av->keys[i]);
	free(av->keys);
}

static struct hd_fi_key *key_make(struct hd_fi_av *av, uint32_t slot, const void *bytes, size_t size)
{
	struct hd_fi_key *key = calloc(1, sizeof(*key) + size);

	if (!key)
		return NULL;
	key->av = av;
	key->slot = slot;
	key->digest = hd_key_digest(bytes, size);
	key->size = size;
	memcpy(key->bytes, bytes, size);
	av->keys[slot] = key;
	return key;
}

/* ---- shared AVs ------------------------------------------------------------------------------ */

int hd_fi_auth_share(struct hd_fi_av *av)
{
	av->keys = calloc(HD_FI_AUTH_KEYS, sizeof(struct hd_fi_key *));
	if (!av->keys)
		return hd_fi_no(FI_ENOMEM);
	av->key_count = HD_FI_AUTH_KEYS;
	return 0;
}

static int auth_av_follow_one(struct hd_fi_av *av, uint32_t slot)
{
	struct hd_fi_table_key now = { 0 };
	uint32_t gen = hd_fi_table_key_get(av->table, slot, &now);
	struct hd_fi_key *key = av->keys[slot];

	if (key && key->gen != gen) {
		av->keys[slot] = NULL;
		key->live = false;
		key_unuse(key);
		key = NULL;
	}
	if (!(gen & 1))
		return 0;
	if (!key)
		key = key_make(av, slot, now.bytes, now.size);
	if (!key)
		return hd_fi_no(FI_ENOMEM);
	key->gen = gen;
	key->live = now.live;
	explicit_bzero(&now, sizeof(now));
	return 0;
}

int hd_fi_auth_follow(struct hd_fi_av *av)
{
	int rc = 0;

	for (uint32_t i = 0; i < av->key_count && !rc; i++)
		rc = auth_av_follow_one(av, i);
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static struct hd_fi_key *key_with(const struct hd_fi_av *av, uint64_t digest)
{
	for (uint32_t i = 0; i < av->key_count; i++)
		if (av->keys[i] && av->keys[i]->digest == digest)
			return av->keys[i];
	return NULL;
}

/* A free slot of av->keys, or a negative errno. */
static int auth_av_slot_take(struct hd_fi_av *av)
{
	struct hd_fi_key **more;
	uint32_t i;

	for (i = 0; i < av->key_count; i++)
		if (!av->keys[i])
			return (int)i;
	if (i == HD_FI_AUTH_KEYS)
		return hd_fi_no(FI_ENOSPC, "the address vector has as many keys as it can hold");
	more = reallocarray(av->keys, i + 1, sizeof(struct hd_fi_key *));
	if (!more)
		return hd_fi_no(FI_ENOMEM);
	av->keys = more;
	av->keys[av->key_count++] = NULL;
	return (int)i;
}

static int auth_av_insert_shared(struct hd_fi_av *av, const void *bytes, size_t size, fi_addr_t *addr)
{
	int slot = hd_fi_table_key_insert(av->table, bytes, size);

	if (slot < 0)
		return slot;
	*addr = KEY_BIT | (uint64_t)slot;
	return 0;
}

static int key_insert(struct hd_fi_av *av, const void *bytes, size_t size, fi_addr_t *addr)
{
	struct hd_fi_key *key = key_with(av, hd_key_digest(bytes, size));
	int slot = key ? (int)key->slot : auth_av_slot_take(av);

	if (slot < 0)
		return slot;
	if (!key)
		key = key_make(av, (uint32_t)slot, bytes, size);
	if (!key)
		return hd_fi_no(FI_ENOMEM);
	key->live = true;
	*addr = hd_fi_auth_addr(key);
	return 0;
}

int hd_fi_auth_insert(struct fid_av *fid, const void *bytes, size_t size, fi_addr_t *addr, uint64_t flags)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	int rc;

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_av_insert_auth_key takes no flags");
	if (!av->domain->av_keys || !bytes || !addr || !size || size > HD_FI_AUTH_MAX)
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_insert_auth_key without a key, room for its address, or FI_AV_AUTH_KEY; or the key is too long");
	hd_fi_lock(av->domain);
	rc = av->table ? auth_av_insert_shared(av, bytes, size, addr) : key_insert(av, bytes, size, addr);
	hd_fi_unlock(av->domain);
	return rc;
}

int hd_fi_auth_lookup(struct fid_av *fid, fi_addr_t addr, void *bytes, size_t *size)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	const struct hd_fi_key *key;
	uint32_t index;

	if (!av->domain->av_keys || !size || (!bytes && *size))
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_lookup_auth_key without room for the key, or in a domain without FI_AV_AUTH_KEY");
	hd_fi_lock(av->domain);
	key = hd_fi_auth_at(av, addr);
	if (!key) {
		index = hd_fi_av_index(av, addr);
		key = index == HD_FI_NO_INDEX ? NULL : av->entry[index].key;
	}
	if (key) {
		if (*size)
			memcpy(bytes, key->bytes, *size < key->size ? *size : key->size);
		*size = key->size;
	}
	hd_fi_unlock(av->domain);
	return key ? 0
		   : hd_fi_no(FI_EINVAL, "fi_av_lookup_auth_key of a key that is not in the address vector");
}

int hd_fi_auth_remove(struct hd_fi_av *av, fi_addr_t addr)
{
	struct hd_fi_key *key = hd_fi_auth_at(av, addr);

	if (!key)
		return hd_fi_no(FI_EINVAL, "fi_av_remove of a key that is not in the address vector");
	if (key->eps)
		return hd_fi_no(FI_EBUSY, "fi_av_remove of a key that addresses or endpoints use");
	if (av->table)
		return hd_fi_table_key_remove(av->table, key->slot);
	key->live = false;
	key_unuse(key);
	return 0;
}
