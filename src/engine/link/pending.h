/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * struct hd_pending: what waits for a peer to answer: a message for its acknowledgement, a request
 * to send for its CTS, a read, an atomic operation, a question, and what comes in from a peer for
 * its data. It is embedded in its owner, and has
 *
 *	a number, which the peer sends back with what it answers; it is recognised for long after
 *	its end, as that of nothing (base/idmap.h); a place in its peer's list, from when it has
 *	been sent until it ends, so that it can be told that the peer is gone.
 *
 *	hd_pending_number ─► hd_pending_join ─► … ─► hd_pending_leave ─► hd_pending_forget
 *	                                        └─► ops->lost, which leaves
 *
 * All is called with the node's lock, and blocks nowhere.
 */
#ifndef HD_ENGINE_PENDING_H
#define HD_ENGINE_PENDING_H

#include "engine/link/peer.h"

/* What its owner does with it; its address also tells whose it is. */
struct hd_pending_ops {
	/*
	 * The peer is gone, its link is down and reads none of our memory any more: end in error, a
	 * status. It leaves its peer, and is freed or not, as the owner likes; it may end others,
	 * queue something for other peers, and complete.
	 */
	void (*lost)(struct hd_pending *pending, enum hd_status status);
};

struct hd_pending {
	TAILQ_ENTRY(hd_pending) under; /* peer->pending */
	const struct hd_pending_ops *ops;
	/* whom it waits for; NULL: it has not been sent. hd_pending_to, or hd_pending_join */
	struct hd_peer *peer;
	uint32_t id; /* in hd_links.op_ids; 0: none */
};

/*
 * hd_pending_number: it is of this kind, and gets a number. 0; -ENOMEM or -ENOSPC: it has
 * none, and nothing is to be undone. hd_pending_forget: its number stands for nothing from now
 * on; it is in no peer's list.
 */
static inline int hd_pending_number(struct hd_node *node, struct hd_pending *pending,
				    const struct hd_pending_ops *ops)
{
	pending->ops = ops;
	return hd_idmap_add(&hd_links(node)->op_ids, pending, &pending->id);
}
static inline void hd_pending_forget(struct hd_node *node, struct hd_pending *pending)
{
	hd_idmap_remove(&hd_links(node)->op_ids, pending->id);
}

/*
 * hd_pending_unnumbered: it is of this kind, and gets none: its answer names something else.
 * hd_pending_to: whom it will wait for, while it is in no list; NULL: nobody.
 */
static inline void hd_pending_unnumbered(struct hd_pending *pending, const struct hd_pending_ops *ops)
{
	pending->ops = ops;
}
static inline void hd_pending_to(struct hd_pending *pending, struct hd_peer *peer)
{
	pending->peer = peer;
}

/*
 * hd_pending_join: this live peer owes an answer from now on, after what it owed already.
 * hd_pending_leave: not any more; `peer` stays as it is.
 */
static inline void hd_pending_join(struct hd_pending *pending, struct hd_peer *peer)
{
	pending->peer = peer;
	TAILQ_INSERT_TAIL(&peer->pending, pending, under);
}
static inline void hd_pending_leave(struct hd_pending *pending)
{
	TAILQ_REMOVE(&pending->peer->pending, pending, under);
}

/*
 * hd_pending_find: what has this number, which may be anything that a peer has sent; NULL: nothing,
 * or of another kind. That the peer who asks is the one whom it waits for is for the caller to see.
 */
static inline struct hd_pending *hd_pending_find(const struct hd_node *node, uint32_t id,
						 const struct hd_pending_ops *ops)
{
	struct hd_pending *pending = hd_idmap_get(&hd_links(node)->op_ids, id);

	return hd_likely(pending && pending->ops == ops) ? pending : NULL;
}

/*
 * hd_pendings_ended: the peer is dead: each is lost, the oldest first. What is begun at it
 * meanwhile is lost too. status: with which.
 */
void hd_pendings_ended(struct hd_peer *peer, enum hd_status status);

#endif
