/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See of_peer.h. */
#include "engine/link/of_peer.h"

#include <errno.h>
#include <stdlib.h>

struct hd_of_peer_list {
	struct hd_of_peer_key {
		uint64_t serial; /* of the peer */
		uint64_t kind;	 /* enum hd_of_peer_kind */
		uint64_t key;
	} key;
	LIST_HEAD(, hd_of_peer) all;	   /* never empty */
	LIST_ENTRY(hd_of_peer_list) entry; /* peer->keyed[kind] */
	UT_hash_handle hh;		   /* hd_links.keyed */
};

static struct hd_of_peer_list *of_peer_find(const struct hd_peer *peer, enum hd_of_peer_kind kind,
					    uint64_t key)
{
	const struct hd_of_peer_key by = { peer->serial, kind, key };
	struct hd_of_peer_list *list;

	HASH_FIND_BYHASHVALUE(hh, hd_links(peer->node)->keyed, &by, sizeof(by),
			      hd_links_hash(peer->node, &by, sizeof(by)), list);
	return list;
}

int hd_of_peer_enter(struct hd_peer *peer, enum hd_of_peer_kind kind, uint64_t key, struct hd_of_peer *what)
{
	struct hd_of_peer_list *list = of_peer_find(peer, kind, key);

	if (!list) {
		list = calloc(1, sizeof(*list));
		if (!list)
			return -ENOMEM;
		list->key = (struct hd_of_peer_key){ peer->serial, kind, key };
		HASH_ADD_BYHASHVALUE(hh, hd_links(peer->node)->keyed, key, sizeof(list->key),
				     hd_links_hash(peer->node, &list->key, sizeof(list->key)), list);
		if (!hd_is_in_table(&list->hh)) {
			free(list);
			return -ENOMEM;
		}
		LIST_INSERT_HEAD(&peer->keyed[kind], list, entry);
	}
	what->list = list;
	LIST_INSERT_HEAD(&list->all, what, entry);
	return 0;
}

void hd_of_peer_leave(struct hd_node *node, struct hd_of_peer *what)
{
	struct hd_of_peer_list *list = what->list;

	if (!list)
		return;
	what->list = NULL;
	LIST_REMOVE(what, entry);
	if (!LIST_EMPTY(&list->all))
		return;
	LIST_REMOVE(list, entry);
	HASH_DEL(hd_links(node)->keyed, list);
	free(list);
}

struct hd_of_peer *hd_of_peer_first(struct hd_peer *peer, enum hd_of_peer_kind kind, uint64_t key)
{
	struct hd_of_peer_list *list = of_peer_find(peer, kind, key);

	return list ? LIST_FIRST(&list->all) : NULL;
}

struct hd_of_peer *hd_of_peer_any(struct hd_peer *peer, enum hd_of_peer_kind kind)
{
	struct hd_of_peer_list *list = LIST_FIRST(&peer->keyed[kind]);

	return list ? LIST_FIRST(&list->all) : NULL;
}
