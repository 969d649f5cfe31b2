/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory regions and windows (window.h), for those who carry out a peer's one-sided operations, and
 * for requests here that name regions. A region is reachable from when it is enabled until it is
 * disabled or closed, or the endpoint that it is bound to closes.
 *
 * Called with the node's lock; nothing touches the memory itself. hd_mr_close alone may
 * give the lock back and wait, for a peer that copies. Upcalls: struct hd_mr_hold, and
 * `leaves` of hd_regions_init.
 */
#ifndef HD_ENGINE_MR_H
#define HD_ENGINE_MR_H

#include "engine/link/link.h"
#include "engine/mr/state.h"
#include "engine/mr/window.h"

/*
 * A transfer that executes over several turns of progress holds the regions that it reads or
 * writes. When such a region stops being reachable, end() is called once, after the hold was
 * dropped: it must leave nobody who touches the memory, and may complete the transfer in error, but
 * must not close regions.
 */
struct hd_mr_hold {
	struct hd_mr *mr; /* NULL: not held */
	void (*end)(struct hd_mr_hold *hold);
	LIST_ENTRY(hd_mr_hold) entry;
};

struct hd_mr {
	struct hd_node *node;
	uint64_t key;
	uint32_t access; /* enum hd_access */
	/* remote addresses are virtual ones; else they count bytes from the first segment on */
	bool virtual;
	bool enabled;
	uint32_t pd; /* hd_mr_attr */
	uint64_t base;
	void *owner;
	/* of the node page: peers on this host reach it by themselves; -1: none. See direct.c */
	int row;
	struct hd_ep *ep;	      /* reachable through this endpoint only; NULL: through any */
	struct hd_cntr *read, *write; /* count accesses of peers; NULL: none */
	uint64_t *keys;		      /* authorization keys that reach it */
	uint32_t key_count;	      /* 0: all */
	struct hd_dest *from;	      /* the only one who reaches it; NULL: all */
	LIST_HEAD(hd_mr_holds, hd_mr_hold) holds;
	/* of which a peer's process has been stopped in the middle: hd_mr_keep */
	struct hd_mr_holds kept;
	LIST_HEAD(, hd_window) windows; /* of which it has a part, see window.h */
	struct hd_window *window;	/* it is one; else NULL */
	/* what requests of our own use it; posted_*: rq's, see rq/regions.c */
	const struct hd_mr_fault *fault;
	/* receives: to this queue, the last by this number of its; NULL: to none, or several */
	struct hd_rq *posted_to;
	LIST_ENTRY(hd_mr) posted_entry; /* posted_to->regions */
	uint64_t posted_seq;
	bool posted_often; /* to several */
	uint32_t ops;	   /* operations that use it, each segment counted */
	UT_hash_handle hh;
	int count;
	struct iovec iov[];
};

/* hd_mr_posted: the newest receive that leads to it is this one, by its number: rq/regions.c. */
static inline void hd_mr_posted(struct hd_mr *mr, uint64_t seq)
{
	mr->posted_seq = seq;
}

/*
 * hd_mr_inspect: how it stands with a region or a window, for tests and for who wants to
 * show it. It changes nothing.
 */
struct hd_mr_view {
	uint64_t key;
	uint32_t access; /* enum hd_access */
	bool enabled;
	/* of the node page; -1: peers of this host do not reach it by themselves */
	int row;
	uint32_t ops;	  /* operations of ours that use it, each segment counted */
	uint32_t holds;	  /* of peers, whose requests are being carried out */
	uint32_t windows; /* that have a part of it */
};
struct hd_mr_view hd_mr_inspect(const struct hd_mr *mr);

/*
 * hd_regions_init: of a new node. `leaves` is an upcall: a region closes (`to` NULL), so requests
 * here must not use it from now on. False: a peer's process has been stopped in the middle of a
 * copy to it for one: ask again. With the node's lock; it may end requests and complete them, and
 * calls nothing here but hd_mr_moved.
 */
void hd_regions_init(struct hd_node *node, bool (*leaves)(struct hd_mr *from, struct hd_mr *to));

/* What an operation of a peer wants to touch. */
struct hd_mr_want {
	uint64_t key, addr, len; /* addr: as the region was registered, virtual or from 0 */
	/* enum hd_access, the remote ones: all of these rights are needed */
	uint32_t access;
	const struct hd_ep *ep; /* the endpoint that the operation came to */
	/* hd_dest_id of the endpoint that it came from, 0 when it has no name here */
	uint32_t from;
};

/*
 * hd_mr_reach: find the memory that an operation wants. 0: iov (room for HD_MAX_IOV) and *count
 * name it, *mr (may be NULL) its region. -EACCES: no such key, not this right, not through this
 * endpoint; -ERANGE: outside of the region. An operation of length 0 touches nothing, whatever its
 * key says: *count 0, *mr NULL.
 */
int hd_mr_reach(struct hd_node *node, const struct hd_mr_want *want, struct iovec *iov, int *count,
		struct hd_mr **mr);

/*
 * hd_mr_flushable: would hd_mr_reach find it? An operation of length 0 asks for the region as a
 * whole, and its key and rights count.
 */
int hd_mr_flushable(struct hd_node *node, const struct hd_mr_want *want);

/*
 * hd_mr_at: the region with this key, or NULL. hd_mr_key_draw: a random key of so many bytes that
 * nobody has, 0, -EIO, -ENOSPC. Those that are drawn for regions have an even number of
 * HD_WINDOW_KEYS in them, those of windows an odd one. hd_mr_key_is_free: might it be drawn?
 * hd_mr_rekey: the region has this key from now on, which nobody has; -ENOMEM: it is found by none,
 * until it gets another.
 */
struct hd_mr *hd_mr_at(struct hd_node *node, uint64_t key);
#define HD_WINDOW_KEYS 256u
int hd_mr_key_draw(struct hd_node *node, unsigned bytes, uint64_t *key);
bool hd_mr_key_is_free(const struct hd_node *node, uint64_t key);
int hd_mr_rekey(struct hd_mr *mr, uint64_t key);

/*
 * hd_mr_hold: tell hold->end, which drops it, when the region goes; hd_mr_drop: no longer. Dropping
 * what is not held does nothing. hd_mr_keep: instead of dropping it, by hold->end and whoever it
 * ends: a peer's process has been stopped in the middle of a copy to the region, which stays until
 * it is dropped.
 */
void hd_mr_hold(struct hd_mr *mr, struct hd_mr_hold *hold, void (*end)(struct hd_mr_hold *hold));
void hd_mr_drop(struct hd_mr_hold *hold);
void hd_mr_keep(struct hd_mr_hold *hold);

/*
 * hd_mr_touched: a peer's operation with these rights (enum hd_access) has been executed on so many
 * bytes of the region: count it.
 */
static inline void hd_mr_touched(struct hd_mr *mr, uint32_t access, uint64_t bytes)
{
	if (access & (HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_FETCH))
		hd_cntr_count(mr->read, bytes);
	if (access & (HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC))
		hd_cntr_count(mr->write, bytes);
}

/*
 * hd_mr_moved: a segment of a request lies in `from`, and `to`, or nothing (NULL), takes its place;
 * filled: bytes are to come there. True: *iov is where it is from now on; false: nowhere.
 */
bool hd_mr_moved(const struct hd_mr *from, const struct hd_mr *to, struct iovec *iov, bool filled);

/*
 * hd_mrs_settled: nobody copies any more from or to any region that is disabled. False: ask again.
 */
bool hd_mrs_settled(struct hd_node *node);

/*
 * hd_mr_stand_back: others go on for a moment, with the lock, which the caller has once, before it
 * is asked again (so often as `round` says) who copies.
 */
void hd_mr_stand_back(struct hd_node *node, int round);

/*
 * hd_mr_check (check.c): asserts in builds with assertions that its key, its row, holds
 * and windows are its own.
 */
#ifdef NDEBUG
static inline void hd_mr_check(const struct hd_mr *mr)
{
}
#else
void hd_mr_check(const struct hd_mr *mr);
#endif

/*
 * hd_mrs_drop_ep: the endpoint goes; regions that are bound to it belong to nobody and open nothing
 * any more, and its windows are free.
 */
void hd_mrs_drop_ep(struct hd_ep *ep);

#endif
