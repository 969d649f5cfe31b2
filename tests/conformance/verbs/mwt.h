/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the cases of memory windows share. Rank 1 owns them, rank 0 uses them. */
#ifndef MWT_H
#define MWT_H

#include "vt.h"

#define MWT_AT 4096	    /* where windows begin in the buffer */
#define MWT_BIND 100	    /* wr_id of what changes windows */
#define MWT_BEYOND (700000) /* a place that no window here has */

/* The owner of the windows is rank 1. Its region gives no right to others: windows do. */
struct mwt_owner {
	struct ct_ep e;
	struct ibv_mr *mr;
};

/* What the other rank is told of one. */
struct mwt_window {
	uint64_t addr;
	uint32_t rkey;
};

/*
 * mwt_need: the device has windows, or the case is not for it. mwt_own: rank 1 begins; mwt_disown
 * ends that. mwt_renew: both queue pairs are as new.
 */
void mwt_need(struct ct *ct, struct ct_ep *e);
void mwt_own(struct ct *ct, struct mwt_owner *o, const struct vt_want *want);
void mwt_disown(struct mwt_owner *o);
void mwt_renew(struct ct_ep *e);

/*
 * mwt_post_bind posts it, by the call or the work request that its type has: the key that it gets.
 * mwt_bound: and waits for it. mwt_done: what was posted has completed.
 */
struct ibv_mw *mwt_alloc(struct ct_ep *e, enum ibv_mw_type type);
struct ibv_mw_bind_info mwt_info(const struct mwt_owner *o, size_t at, size_t len, unsigned access);
uint32_t mwt_post_bind(struct ct_ep *e, struct ibv_mw *mw, const struct ibv_mw_bind_info *i);
struct mwt_window mwt_bound(struct mwt_owner *o, struct ibv_mw *mw, size_t at, size_t len, unsigned access);
void mwt_local_inv(struct ct_ep *e, uint32_t rkey);
void mwt_done(struct ct_ep *e, enum ibv_wc_opcode opcode);

/* mwt_touch: rank 0: an operation on the window, at this place of it. */
void mwt_touch(struct ct_ep *e, enum ibv_wr_opcode op, const struct mwt_window *w, uint64_t at, uint32_t len,
	       enum ibv_wc_status status);

#endif
