/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory windows inside the engine: regions whose memory is a part of another region's, and
 * changes. Everything here is called with the node's lock.
 */
#ifndef HD_ENGINE_WINDOW_H
#define HD_ENGINE_WINDOW_H

#include "engine/mr/state.h"

struct hd_window {
	struct hd_mr *mr; /* itself, as a region */
	/* a part of which it is, or was when somebody began to copy who has not ended; or NULL */
	struct hd_mr *region;
	LIST_ENTRY(hd_window) entry; /* region->windows */
	uint64_t keys;		     /* its keys without their last byte */
	void *owner;		     /* hd_window_own */
	bool single;		     /* hd_window_open */
	bool bound;
	UT_hash_handle hh; /* hd_regions.windows, by keys */
};

/* hd_window_owns: is this one of the keys that a window may get? */
bool hd_window_owns(const struct hd_node *node, uint64_t key);

/*
 * hd_window_free: it is bound to nothing from now on: transfers through it end, peers see it no
 * longer. True: and nobody copies through it any more; else again, soon.
 */
bool hd_window_free(struct hd_window *w);

/*
 * hd_window_take_back: free the window with this key, which must be bound and `single`, to this
 * endpoint. 0; -EAGAIN: somebody copies through it still: again soon, with *begun as it is then
 * (false at first); a status: it is not such a key.
 */
int hd_window_take_back(struct hd_ep *ep, uint64_t key, bool *begun);

/*
 * hd_window_change: bind the window that has the first 24 bits of `key` to a part of a region, or
 * to nothing, by a request of this endpoint. 0; -EAGAIN: somebody copies by what was before: again
 * soon; a status: it may not be. The region is named by its key, for it may be closed before it is
 * the request's turn.
 */
struct hd_binding {
	uint64_t key, region; /* the window's from now on; of the region */
	bool to_nothing;
	bool from_zero;
	uint32_t access;
	uint64_t addr, len;
};
int hd_window_change(struct hd_ep *ep, const struct hd_binding *b);

/*
 * hd_windows_leave: the region is to go: wait until nobody copies through windows that were bound
 * to it; may give up the lock. -EBUSY: one is bound, or somebody was stopped in the middle of a
 * copy. hd_window_gone: the window is closing, and nobody copies through it.
 */
int hd_windows_leave(struct hd_mr *region);
void hd_window_gone(struct hd_mr *mr);

#endif
