/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Authorization keys in an AV, fi_av_insert_auth_key(3). Their addresses have a bit that no index into an AV reaches, so that they are
 * refused wherever FI_AUTH_KEY is missing.
 */
#include "front/ofi/auth_av.h"
#include "front/ofi/auth.h"

#include <stdlib.h>
#include <string.h>

#define KEY_BIT (UINT64_C(1) << 41)

struct hd_fi_key *hd_fi_auth_at(const struct hd_fi_av *av, fi_addr_t addr)
{
	uint64_t slot = addr ^ KEY_BIT;
	struct hd_fi_key *key = slot < av->key_count ? av->keys[slot] : NULL;

	return key && key->live ? key : NULL;
}

fi_addr_t hd_fi_auth_addr(const struct hd_fi_key *key)
{
	return KEY_BIT | key->slot;
}

uint64_t hd_fi_auth_digest(const struct hd_fi_key *key)
{
	return key->digest;
}

static void key_free(struct hd_fi_av *av, struct hd_fi_key *key)
{
	av->keys[key->slot] = NULL;
	explicit_bzero(key->bytes, key->size);
	free(key);
}

void hd_fi_auth_use(struct hd_fi_av *av, struct hd_fi_key *key, int by)
{
	key->addrs += (uint32_t)by;
	if (!key->addrs && !key->live)
		key_free(av, key);
}

void hd_fi_auth_free(struct hd_fi_av *av)
{
	for (uint32_t i = 0; i < av->key_count; i++)
		if (av->keys[i])
			key_free(av, av->keys[i]);
	free(av->keys);
}

static struct hd_fi_key *key_with(const struct hd_fi_av *av, uint64_t digest)
{
	for (uint32_t i = 0; i < av->key_count; i++)
		if (av->keys[i] && av->keys[i]->digest == digest)
			return av->keys[i];
	return NULL;
}

/* A free slot of av->keys, or a negative errno. */
static int slot_take(struct hd_fi_av *av)
{
	struct hd_fi_key **more;
	uint32_t i;

	for (i = 0; i < av->key_count; i++)
		if (!av->keys[i])
			return (int)i;
	if (i == HD_FI_AUTH_KEYS)
		return -FI_ENOSPC;
	more = reallocarray(av->keys, i + 1, sizeof(struct hd_fi_key *));
	if (!more)
		return -FI_ENOMEM;
	av->keys = more;
	av->keys[av->key_count++] = NULL;
	return (int)i;
}

static int key_insert(struct hd_fi_av *av, const void *bytes, size_t size, fi_addr_t *addr)
{
	uint64_t digest = hd_key_digest(bytes, size);
	struct hd_fi_key *key = key_with(av, digest);
	int slot = key ? (int)key->slot : slot_take(av);

	if (slot < 0)
		return slot;
	if (!key) {
		key = calloc(1, sizeof(*key) + size);
		if (!key)
			return -FI_ENOMEM;
		key->digest = digest;
		key->slot = (uint32_t)slot;
		key->size = size;
		memcpy(key->bytes, bytes, size);
		av->keys[slot] = key;
	}
	key->live = true;
	*addr = hd_fi_auth_addr(key);
	return 0;
}

int hd_fi_auth_insert(struct fid_av *fid, const void *bytes, size_t size, fi_addr_t *addr, uint64_t flags)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (!av->domain->av_keys || !bytes || !addr || !size || size > HD_FI_AUTH_MAX)
		return -FI_EINVAL;
	hd_fi_lock(av->domain);
	rc = key_insert(av, bytes, size, addr);
	hd_fi_unlock(av->domain);
	return rc;
}

int hd_fi_auth_lookup(struct fid_av *fid, fi_addr_t addr, void *bytes, size_t *size)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	const struct hd_fi_key *key;
	uint32_t index;

	if (!av->domain->av_keys || !size || (!bytes && *size))
		return -FI_EINVAL;
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
	return key ? 0 : -FI_EINVAL;
}

int hd_fi_auth_remove(struct hd_fi_av *av, fi_addr_t addr)
{
	struct hd_fi_key *key = hd_fi_auth_at(av, addr);

	if (!key)
		return -FI_EINVAL;
	if (key->eps)
		return -FI_EBUSY;
	key->live = false;
	hd_fi_auth_use(av, key, 0);
	return 0;
}
