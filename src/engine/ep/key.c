/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Authorization keys. Endpoints exchange something only where they have a key in common, or none. A key is known by a digest of 64 bits
 * everywhere in the engine and on the wire; the key itself stays with the front.
 *
 * An endpoint with several keys has a face for each: an endpoint of the engine with an index of its own, which shares everything with the
 * first one, its name included. So everything that knows endpoints knows faces, and a message goes from a face to a face.
 *
 * Where a receive may name a key instead of a source, a key is a group: a source number from HD_SRC_GROUPS on. See match.h.
 */
#include "base/digest.h"
#include "engine/link/peer.h"
#include "engine/name/bound_port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A key that is in use here, and what stands for whoever has it, where receives name their source. */
struct hd_key {
	uint64_t key;
	struct hd_dest sources;
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

/* ---- groups of sources ------------------------------------------------------------------------------------------------- */

static struct hd_key *key_find(const struct hd_node *node, uint64_t key)
{
	for (uint32_t i = 0; i < node->key_count; i++)
		if (node->keys[i]->key == key)
			return node->keys[i];
	return NULL;
}

const struct hd_dest *hd_key_sources(struct hd_node *node, uint64_t key)
{
	struct hd_key *k = key_find(node, key), **more;

	hd_assert_locked(node);
	if (k)
		return &k->sources;
	more = reallocarray(node->keys, node->key_count + 1, sizeof(*more));
	if (!more)
		return NULL;
	node->keys = more;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->key = key;
	hd_dest_stand_in(&k->sources, node);
	k->sources.id = HD_SRC_GROUPS + node->key_count;
	node->keys[node->key_count++] = k;
	return &k->sources;
}

uint32_t hd_key_group(const struct hd_node *node, uint64_t key)
{
	const struct hd_key *k = key ? key_find(node, key) : NULL;

	return k ? k->sources.id : 0;
}

uint32_t hd_key_source_group(void *node, uint32_t src)
{
	const struct hd_dest *dest = hd_dest_by_id(node, src);

	return dest ? hd_key_group(node, dest->key) : 0;
}

uint32_t hd_key_message_group(const struct hd_wnode *w)
{
	const struct hd_ep *ep = hd_container(w, struct hd_msg, w)->ep;

	return hd_key_group(ep->node, ep->key);
}

void hd_keys_close(struct hd_node *node)
{
	for (uint32_t i = 0; i < node->key_count; i++)
		free(node->keys[i]);
	free(node->keys);
}

/* ---- faces --------------------------------------------------------------------------------------------------------------- */

struct hd_ep *hd_ep_alias(struct hd_ep *ep, uint64_t key)
{
	if (ep->key == key)
		return ep;
	for (uint32_t i = 0; i < ep->other_count; i++)
		if (ep->others[i]->key == key)
			return ep->others[i];
	return NULL;
}

uint32_t hd_ep_aliases(const struct hd_ep *ep)
{
	return ep->other_count + 1;
}

struct hd_ep *hd_ep_alias_at(struct hd_ep *ep, uint32_t i)
{
	return i ? ep->others[i - 1] : ep;
}

static int face_open(struct hd_ep *ep, const struct hd_ep_attr *attr, uint64_t key)
{
	struct hd_ep_attr other = *attr;

	other.keys = &key;
	other.key_count = 1;
	other.main = ep;
	other.rq = ep->rq;
	other.txq = ep->tx;
	return hd_ep_open(ep->node, &other, &ep->others[ep->other_count]);
}

int hd_aliases_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	int rc = 0;

	if (attr->key_count < 2)
		return 0;
	ep->others = calloc(attr->key_count - 1, sizeof(struct hd_ep *));
	if (!ep->others)
		return -ENOMEM;
	for (uint32_t i = 1; i < attr->key_count && !rc; i++) {
		if (hd_ep_alias(ep, attr->keys[i]))
			continue;
		rc = face_open(ep, attr, attr->keys[i]);
		ep->other_count += !rc;
	}
	return rc;
}

void hd_aliases_close(struct hd_ep *ep)
{
	while (ep->other_count)
		hd_ep_close(ep->others[--ep->other_count]);
	free(ep->others);
	ep->others = NULL;
}
