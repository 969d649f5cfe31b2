/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Memory that others may reach: regions and windows. Rules that hold for all calls: engine.h. */
#ifndef HD_ENGINE_API_REGION_H
#define HD_ENGINE_API_REGION_H

#include "engine/api/types.h"

/* ---- memory ---------------------------------------------------------------------------------- */

enum hd_access { /* of a memory region */
	HD_ACCESS_LOCAL_READ = 1 << 0,
	HD_ACCESS_LOCAL_WRITE = 1 << 1,
	HD_ACCESS_REMOTE_READ = 1 << 2,
	HD_ACCESS_REMOTE_WRITE = 1 << 3,
	HD_ACCESS_REMOTE_ATOMIC = 1 << 4, /* atomic operations may change it */
	HD_ACCESS_REMOTE_FETCH = 1 << 5,  /* and may answer with what it held */
	HD_ACCESS_BIND = 1 << 6,	  /* windows may be bound to it */
	HD_ACCESS_REMOTE_FLUSH = 1 << 7,  /* hd_flush */
	HD_ACCESS_REMOTE = HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC |
			   HD_ACCESS_REMOTE_FETCH | HD_ACCESS_REMOTE_FLUSH,
};

enum hd_mr_flag {
	HD_MR_KEY = 1 << 0, /* the key is chosen by the caller; else a random one */
	/*
	 * peers give virtual addresses; else offsets, which begin at 0 and
	 * run on through the segments
	 */
	HD_MR_VIRTUAL = 1 << 1,
	HD_MR_DISABLED = 1 << 2, /* nobody reaches it before hd_mr_enable */
};

struct hd_mr_attr {
	const struct iovec *iov; /* count at most HD_MAX_IOV; copied */
	int count;
	uint32_t access;    /* enum hd_access */
	uint32_t flags;	    /* enum hd_mr_flag */
	unsigned key_bytes; /* length of random keys; 0: 8 */
	uint64_t key;
	/*
	 * authorization keys; copied: only endpoints with one of them reach it;
	 * none: all that can reach ours
	 */
	const uint64_t *auth;
	uint32_t auth_count;
	struct hd_dest *from; /* only this endpoint reaches it; NULL: any */
	/* protection domain: reached through endpoints of the same one only; 0: none */
	uint32_t pd;
	void *owner; /* hd_mr_find */
	/* without HD_MR_VIRTUAL: the offset at which the first segment begins */
	uint64_t base;
	/*
	 * what becomes of requests that use it when it closes: see
	 * hd_mr_move. NULL: nothing uses it
	 */
	const struct hd_mr_fault *fault;
};

/*
 * Requests of queue pairs may name the regions of their segments: receives by hd_recv_args.region,
 * what is sent by hd_ep_regions, which is where the front says before each post, at a place that is
 * valid during that call, which regions the segments are of (NULL: of none).
 *
 * When such a region closes, receives that are posted have no room any more, HD_RECV_FAULT, and
 * `buf` as their place; what has been posted to be sent goes on where its bytes have left, or as a
 * copy if it is short and waits; else it completes in its turn with `err`, and what moves bytes at
 * the moment with it or, a receive, with HD_S_PROTECTION: both ends fail as for other errors of the
 * kind. hd_mr_move: `to` takes the place of `from`, of one segment each: its addresses are in `to`
 * now, where that is of the same domain, has the right that is needed, and reaches as far. It costs
 * what there is to be looked at in the queue that the region was posted to last, if that has
 * something as old; in all queues where it has been posted to several. False: something goes on to
 * use `from`, since a peer's process has been stopped in the middle of writing there; so closing
 * `from` waits for that, without the lock, or answers -EBUSY.
 */
struct hd_mr_fault {
	void *buf;
	int err; /* positive */
};
bool hd_mr_move(struct hd_mr *from, struct hd_mr *to);
struct hd_mr *const **hd_ep_regions(struct hd_ep *ep);

/*
 * hd_mr_open: register memory; pages are not touched, and need not be there. -ENOKEY: the key is
 * taken; -ENOSPC: no key of that length is free. hd_mr_close ends what peers are doing with the
 * region at the moment, so that the memory is the caller's own when it returns 0. It may wait for a
 * peer that copies by itself, and give up the lock meanwhile; -EBUSY: after a second one was still
 * not done, since it was stopped in the middle: the region is disabled, stays, and may be closed
 * again. hd_mr_rename: it has this key from now on, also one that was another's; -ENOKEY: which
 * somebody has.
 *
 * hd_mr_enable and hd_mr_disable: peers reach it from now on, no longer. hd_mr_bind_ep: they reach
 * it through this endpoint only (NULL: through any); when that closes, the region is disabled.
 * hd_mr_bind_cntrs: count what they read and write; NULL: nothing.
 */
int hd_mr_open(struct hd_node *node, const struct hd_mr_attr *attr, struct hd_mr **out);
int hd_mr_close(struct hd_mr *mr);
int hd_mr_rename(struct hd_mr *mr, uint64_t key);
uint64_t hd_mr_key(const struct hd_mr *mr);
/* the owner of the region with this key; NULL: none */
void *hd_mr_find(struct hd_node *node, uint64_t key);
void hd_mr_enable(struct hd_mr *mr);
void hd_mr_disable(struct hd_mr *mr);
void hd_mr_bind_ep(struct hd_mr *mr, struct hd_ep *ep);
void hd_mr_bind_cntrs(struct hd_mr *mr, struct hd_cntr *read, struct hd_cntr *write);

/* ---- memory windows -------------------------------------------------------------------------- */

/*
 * A window, ibv_alloc_mw(3), is a region whose memory is a part of another region, or none, and is
 * changed by operations of a queue pair, each of which ends when nobody reaches what was before.
 * hd_mr_key is the key that it has by now; its keys differ in the last of 4 bytes only. hd_mr_close
 * closes it, bound or not. hd_mr_find does not find it.
 *
 * hd_window_open: a window of this protection domain, bound to nothing; single: once bound it is
 * reached through that queue pair alone, and cannot be bound again before it has been taken back.
 * 0, -ENOMEM, -ENOSPC. hd_mr_has_windows: some are bound to it: hd_mr_close answers -EBUSY.
 *
 * hd_window_bind: in its turn among what `ep` sends, the window with one of these keys gets this
 * one. hd_window_invalidate: in its turn, the window with this key is bound to nothing; it must be
 * single, and of this endpoint. Both answer as hd_send. Completions (HD_C_LOCAL) have tag and ctx;
 * err: HD_S_ACCESS (no such window or region, of another domain, or without this right), HD_S_RANGE
 * (not all of it is in the region), HD_S_INVALID (a single one that is bound, or to nothing). The
 * endpoint has failed then.
 *
 * A message with HD_SEND_TAKE_BACK frees the window in the same way, at its receiver, before it
 * completes there: with HD_C_IMM, and HD_IMM_TAKEN_BACK in hd_cqe.imm beside the key. Where that is
 * no such window both ends get HD_S_ACCESS.
 */
#define HD_IMM_TAKEN_BACK (UINT64_C(1) << 32)
struct hd_bind_args {
	uint64_t key;		    /* of the window from now on; hd_window_invalidate: as it is */
	const struct hd_mr *region; /* NULL: to nothing; so does len 0 */
	uint64_t addr, len;	    /* what of it: addr as its peers would say */
	uint32_t access;	    /* enum hd_access: those of peers */
	bool from_zero;		    /* addresses begin at 0; else at addr */
	uint64_t tag;
	void *ctx;
	uint32_t flags; /* enum hd_send_flag: COMPLETE, FENCE */
};
int hd_window_open(struct hd_node *node, uint32_t pd, bool single, struct hd_mr **out);
bool hd_mr_has_windows(const struct hd_mr *mr);

/*
 * hd_window_own: it is the front's. hd_window_find: the owner of the window that has this
 * key, or may get it; NULL: none. *lost: it has it, and is bound to nothing, because
 * somebody has taken it back.
 */
void hd_window_own(struct hd_mr *window, void *owner);
void *hd_window_find(const struct hd_node *node, uint64_t key, bool *lost);
int hd_window_bind(struct hd_ep *ep, const struct hd_bind_args *args);
int hd_window_invalidate(struct hd_ep *ep, const struct hd_bind_args *args);

#endif
