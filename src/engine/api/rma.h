/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-sided and atomic operations. Rules that hold for all calls: engine.h. */
#ifndef HD_ENGINE_API_RMA_H
#define HD_ENGINE_API_RMA_H

#include "engine/api/types.h"

/* ---- one-sided operations -------------------------------------------------------------------- */

enum hd_rma_op {
	HD_RMA_WRITE,
	HD_RMA_READ,
	HD_RMA_FLUSH, /* hd_flush's own */
};

struct hd_rma_args {
	enum hd_rma_op op;
	const struct iovec *iov; /* ours: count at most HD_MAX_IOV; copied */
	int count;
	int seg_count; /* at most HD_RMA_SEGS */
	/* the target's, of the same length in all; copied; never NULL */
	const struct hd_rma_seg *segs;
	uint64_t imm;
	uint64_t tag; /* paired endpoints: hd_cqe.tag of the completion; else 0 */
	void *ctx;
	/* enum hd_send_flag: COMPLETE, INJECT; for writes IMM, SOLICITED; DELIVERED always holds */
	uint32_t flags;
};

/*
 * Two operations of up to so many bytes find the target's memory in the order in which they were
 * started, at any place of it.
 */
#define HD_RMA_ORDERED 4096

/*
 * hd_rma: read or write the target's memory, fi_rma(3). Answers as hd_send; the completion
 * (HD_C_RMA with HD_C_READ or HD_C_WRITE) says that the data is where it belongs, or carries the
 * errno of the target: HD_S_ACCESS, HD_S_RANGE and others of hd_mr_reach, HD_S_REFUSED when the
 * endpoint is gone. Then nothing was written, unless the region or the endpoint was closed or the
 * peer died on the way. At the target a write with IMM makes a completion HD_C_RMA | HD_C_REMOTE |
 * HD_C_WRITE | HD_C_IMM in the receiving CQ. On endpoints with HD_EP_IMM_RECV it uses up an
 * untagged receive, and waits for one, as a message of length 0 does: the completion is that of the
 * receive, with those flags as well, and has the bytes that were written in `tag`.
 */
int hd_rma(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args);

/*
 * hd_flush: of a reliable paired endpoint: when it completes (HD_C_RMA), what this one wrote before
 * can be seen by everybody at the target. args->imm: enum hd_flush; no memory of ours, and one
 * segment of the target's, which HD_FLUSH_REGION makes all of its region. Answers as hd_rma; in
 * hd_cqe.err HD_S_INVALID where the target's endpoint does not allow it, HD_S_ACCESS where its
 * region does not, or HD_FLUSH_PERSISTENT was asked for: no memory is known to be that. Without a
 * type of placement no right is needed.
 */
int hd_flush(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args);

/* ---- atomic operations ----------------------------------------------------------------------- */

/*
 * hd_atomic_size: bytes of one element (enum hd_atomic_type), 0 for a number that is no type.
 * hd_atomic_can: whether an operation (enum hd_atomic_op) is there for this type, in this way (enum
 * hd_atomic_how). Any numbers, any thread, no lock.
 */
size_t hd_atomic_size(uint32_t type);
bool hd_atomic_can(uint32_t how, uint32_t op, uint32_t type);

/*
 * hd_atomic_apply: what one does to count elements, by hd_atomic_can() with
 * HD_ATOMIC_BASE, in memory that nobody else touches meanwhile and that cannot go. Nothing
 * need be aligned. Any thread, no lock.
 */
void hd_atomic_apply(uint32_t op, uint32_t type, void *at, const void *operands, size_t count);

struct hd_atomic_args {
	uint32_t how, op, type;		       /* hd_atomic_can() them */
	const struct iovec *iov, *compare_iov; /* ours; taken over when hd_atomic returns */
	const struct iovec *result_iov;	       /* ours, for the old values */
	/* segments: at most HD_MAX_IOV; 0 where the operation has none */
	int count, compare_count, result_count;
	int seg_count;		       /* 1 to HD_RMA_SEGS */
	const struct hd_rma_seg *segs; /* the target's; copied */
	uint64_t tag;		       /* as in struct hd_rma_args */
	void *ctx;
	uint64_t imm; /* HD_EP_XRC: the upper half, as in hd_send; else 0 */
	/* enum hd_send_flag: COMPLETE, GATED, FENCE, WORK. INJECT and DELIVERED always hold */
	uint32_t flags;
};

/*
 * hd_atomic: change the target's memory, fi_atomic(3): each element by itself, by the target's
 * engine, so that operations of all peers have one order; with the CPU's own atomic instructions
 * where it is aligned and has up to 8 bytes. All lengths given are equal, divide into whole
 * elements, and are at most HD_ATOMIC_BYTES. Answers as hd_send; the completion (HD_C_ATOMIC with
 * HD_C_READ when old values came back, else HD_C_WRITE) says that it has been done, or carries the
 * target's errno, and then nothing was: HD_S_ACCESS and HD_S_RANGE as in hd_rma, HD_S_INVALID for
 * elements that do not lie in one piece, HD_S_REFUSED when the endpoint is gone.
 */
int hd_atomic(struct hd_ep *ep, struct hd_dest *dest, const struct hd_atomic_args *args);

#endif
