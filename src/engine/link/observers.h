/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the rooms above have to do when something happens to a peer, a link or a destination. There
 * is one table, put together by src/engine/node/observers.c, which is the only place that says in
 * which order the rooms are told: programs see it in the order of their completions. Lists end with
 * NULL.
 *
 * All are called with the node's lock, from a turn of progress or from a call of the program's, and
 * block nowhere. They may send to other peers, give destinations back and bring links down (which
 * are taken apart later), but not free the peer or link that they are told of.
 */
#ifndef HD_ENGINE_OBSERVERS_H
#define HD_ENGINE_OBSERVERS_H

#include "engine/link/budget.h"
#include "engine/link/dest.h"
#include "engine/link/peer.h"

struct hd_link_observers {
	/*
	 * The link is down, and about to be taken apart: what was coming in over it is cut off.
	 * status: how what was under way ends.
	 */
	void (*broken)(struct hd_link *link, enum hd_status status);
	/*
	 * The peer is dead: it takes nothing any more, and is freed afterwards. status: how what
	 * was under way ends for what was under way.
	 */
	void (*ended[8])(struct hd_peer *peer, enum hd_status status);
	/*
	 * The destination leads to a live peer now: what waits for it
	 * (hd_dest.waiting) can be sent.
	 */
	void (*bound)(struct hd_dest *dest);
	/*
	 * What is queued for this destination, which is about to be idle, shall not be started.
	 * status: how what was under way ends.
	 */
	void (*unreached)(struct hd_dest *dest, enum hd_status status);
	/*
	 * The destination, which has just been bound, and others were names of one endpoint of the
	 * live peer: it has several numbers (hd_source_next).
	 */
	void (*joined)(struct hd_dest *dest);
	/*
	 * So many sources are no more (hd_dest_by_id finds none), and their numbers are wanted for
	 * others. True: nothing is from one of them any more. False: there are too few of them for
	 * the look through all that waits.
	 */
	bool (*forgotten)(struct hd_node *node, uint32_t count);
	/*
	 * What the share's peer, which is gone, has left waiting (hd_share.left) shall be dropped.
	 * The share may be gone afterwards.
	 */
	void (*forgo)(struct hd_share *share);
	/* An endpoint of the peer's has begun anew, hd_remote.gen says so, or has ended. */
	void (*renewed)(struct hd_peer *peer, uint32_t index);
	/*
	 * The live peer can be sent something, perhaps: push what waits, in the order of the list,
	 * and return how much went. Nothing of `push` is called while an answer waits;
	 * `push_direct` needs no packets, and is.
	 */
	int (*push[4])(struct hd_peer *peer);
	int (*push_direct)(struct hd_peer *peer);
};

#endif
