/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What is known of a peer's endpoints, by their indexes. Those are dense, since each node gives the
 * smallest out that is free, so a table has them. But the table grows with how many are known, and
 * not to where the peer says that it has one: others are in a hash until then.
 */
#include "engine/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE_MAX (1u << 20) /* endpoints of one peer */
#define TABLE_FIRST 64u	      /* entries that it may have anyway */
#define TABLE_EACH 8u	      /* and for each endpoint that something leads to */

struct hd_far_remote {
	uint32_t index;
	struct hd_remote remote;
	uint64_t key;
	UT_hash_handle hh; /* hd_peer.far */
};

static struct hd_far_remote *remote_far_find(const struct hd_peer *peer, uint32_t index)
{
	struct hd_far_remote *far = NULL;

	if (peer->far)
		HASH_FIND_BYHASHVALUE(hh, peer->far, &index, sizeof(index),
				      hd_links_hash(peer->node, &index, sizeof(index)), far);
	return far;
}

struct hd_remote *hd_remote_far(const struct hd_peer *peer, uint32_t index)
{
	struct hd_far_remote *far = remote_far_find(peer, index);

	return far ? &far->remote : NULL;
}

uint64_t hd_remote_far_key(const struct hd_peer *peer, uint32_t index)
{
	const struct hd_far_remote *far = remote_far_find(peer, index);

	return far ? far->key : 0;
}

static int remote_far_make(struct hd_peer *peer, uint32_t index)
{
	struct hd_far_remote *far = remote_far_find(peer, index);

	if (far)
		return 0;
	far = calloc(1, sizeof(*far));
	if (!far)
		return -ENOMEM;
	far->index = index;
	HASH_ADD_BYHASHVALUE(hh, peer->far, index, sizeof(far->index),
			     hd_links_hash(peer->node, &index, sizeof(index)), far);
	if (hd_is_in_table(&far->hh))
		return 0;
	free(far);
	return -ENOMEM;
}

static void remote_far_drop(struct hd_peer *peer, struct hd_far_remote *far)
{
	HASH_DEL(peer->far, far);
	free(far);
}

/* The table has room for these now. */
static void remotes_settle(struct hd_peer *peer)
{
	struct hd_far_remote *far, *next;

	HASH_ITER(hh, peer->far, far, next) {
		if (far->index >= peer->remote_count)
			continue;
		peer->remotes[far->index] = far->remote;
		hd_remote_keys(peer)[far->index] = far->key;
		remote_far_drop(peer, far);
	}
}

static int remotes_grow(struct hd_peer *peer, uint32_t n)
{
	struct hd_remote *before = peer->remotes, *more = calloc(n, sizeof(*more) + sizeof(uint64_t));
	uint32_t count = peer->remote_count;

	if (!more)
		return -ENOMEM;
	if (count) {
		memcpy(more, before, count * sizeof(*more));
		memcpy(more + n, before + count, count * sizeof(uint64_t));
	}
	free(before);
	peer->remotes = more;
	peer->remote_count = n;
	remotes_settle(peer);
	return 0;
}

int hd_peer_remote(struct hd_peer *peer, uint32_t index)
{
	uint32_t n = peer->remote_count ? peer->remote_count : 8;

	if (index < peer->remote_count)
		return 0;
	if (index >= REMOTE_MAX)
		return -ERANGE;
	if (index >= TABLE_FIRST && index / TABLE_EACH > peer->dest_count)
		return remote_far_make(peer, index);
	while (n <= index)
		n *= 2;
	return remotes_grow(peer, n);
}

void hd_remote_set_key(struct hd_peer *peer, uint32_t index, uint64_t key)
{
	if (index < peer->remote_count)
		hd_remote_keys(peer)[index] = key;
	else
		remote_far_find(peer, index)->key = key;
}

void hd_remote_forget(struct hd_peer *peer, uint32_t index)
{
	struct hd_remote *remote = hd_remote_at(peer, index);
	const struct hd_dest *next = hd_dest_by_id(peer->node, remote->dest_id);

	remote->gone = remote->gen;
	remote->gen = next ? next->gen : 0;
	hd_remote_set_key(peer, index, next ? next->key : 0);
	if (!next && index >= peer->remote_count)
		remote_far_drop(peer, remote_far_find(peer, index));
}

/*
 * Generations are compared as numbers that wrap, so of the one that is there
 * now nothing is concluded.
 */
bool hd_remote_has_gone(const struct hd_peer *peer, uint32_t index, uint16_t gen)
{
	const struct hd_remote *remote = hd_remote_at(peer, index);

	return remote && remote->gone && remote->gen != gen && (int16_t)(gen - remote->gone) <= 0;
}

bool hd_peer_has_left(const struct hd_peer *peer)
{
	bool had = false;

	for (uint32_t i = 0; i < peer->remote_count; i++) {
		if (peer->remotes[i].gen)
			return false;
		had |= peer->remotes[i].gone != 0;
	}
	return had && !peer->far;
}

void hd_remotes_free(struct hd_peer *peer)
{
	struct hd_far_remote *far, *next;

	HASH_ITER(hh, peer->far, far, next)
		remote_far_drop(peer, far);
	free(peer->remotes);
}
