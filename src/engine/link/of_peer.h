/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What rooms above keep of a peer and find again by what he says: lists by a key that is his
 * choice, so that what he ends costs him a look at no more than that, whatever else there is of his
 * or of others. Those with equal keys are one list, since many of them would make one chain of a
 * table long for everything else in it. The table hashes with the node's secret. With the node's
 * lock; nothing blocks.
 */
#ifndef HD_ENGINE_OF_PEER_H
#define HD_ENGINE_OF_PEER_H

#include "engine/link/peer.h"

/* Embedded in what is kept. Zeroed memory is in no list. */
struct hd_of_peer {
	struct hd_of_peer_list *list; /* NULL: in none */
	LIST_ENTRY(hd_of_peer) entry;
};

/*
 * hd_of_peer_nobody: it is in no list, for memory that is not zero. hd_of_peer_enter: it is the
 * first of this key from now on; 0 or -ENOMEM. hd_of_peer_leave: it is in no list, if it has been;
 * before the peer is freed. hd_of_peer_first: the last to come of this key, or NULL.
 * hd_of_peer_any: any of this kind, or NULL.
 */
static inline void hd_of_peer_nobody(struct hd_of_peer *what)
{
	what->list = NULL;
}
int hd_of_peer_enter(struct hd_peer *peer, enum hd_of_peer_kind kind, uint64_t key, struct hd_of_peer *what);
void hd_of_peer_leave(struct hd_node *node, struct hd_of_peer *what);
struct hd_of_peer *hd_of_peer_first(struct hd_peer *peer, enum hd_of_peer_kind kind, uint64_t key);
struct hd_of_peer *hd_of_peer_any(struct hd_peer *peer, enum hd_of_peer_kind kind);

#endif
