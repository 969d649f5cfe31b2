/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See key.h. */
#include "engine/name/key.h"
#include "base/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A key that is in use here, and what stands for whoever has it, where receives name their source.
 */
struct hd_key {
	uint64_t key;
	struct hd_dest *sources;
};

uint64_t hd_key_digest(const void *key, size_t size)
{
	static const char what[] = "heddle authorization key";
	uint8_t out[HD_DIGEST_SIZE];
	struct hd_digest d;
	uint64_t digest;

	hd_digest_init(&d);
	hd_digest_add(&d, what, sizeof(what));
	hd_digest_add(&d, key, size);
	hd_digest_end(&d, out);
	memcpy(&digest, out, sizeof(digest));
	return digest ? digest : 1;
}

static int64_t key_find(const struct hd_node *node, uint64_t key)
{
	for (uint32_t i = 0; i < hd_names(node)->key_count; i++)
		if (hd_names(node)->keys[i].key == key)
			return i;
	return -1;
}

struct hd_dest *hd_key_stand_in(const struct hd_node *node, uint64_t key)
{
	int64_t i = key_find(node, key);

	return i < 0 ? NULL : hd_names(node)->keys[i].sources;
}

uint32_t hd_key_add(struct hd_node *node, uint64_t key, struct hd_dest *sources)
{
	struct hd_key *more =
		reallocarray(hd_names(node)->keys, hd_names(node)->key_count + 1, sizeof(*more));

	hd_assert_locked(node);
	if (!more)
		return 0;
	hd_names(node)->keys = more;
	hd_names(node)->keys[hd_names(node)->key_count] = (struct hd_key){ key, sources };
	return HD_SRC_GROUPS + hd_names(node)->key_count++;
}

uint32_t hd_key_group(const struct hd_node *node, uint64_t key)
{
	int64_t i = key ? key_find(node, key) : -1;

	return i < 0 ? 0 : HD_SRC_GROUPS + (uint32_t)i;
}

void hd_keys_close(struct hd_node *node)
{
	for (uint32_t i = 0; i < hd_names(node)->key_count; i++)
		free(hd_names(node)->keys[i].sources);
	free(hd_names(node)->keys);
}
