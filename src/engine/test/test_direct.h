/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Two nodes over shared memory, of which one reads and writes the memory of the other. */
#ifndef HD_TEST_DIRECT_H
#define HD_TEST_DIRECT_H

#include "engine/core/core.h"
#include "engine/mr/mr.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"
#include "transport/vm_seam.h"

#define BIG (2 * HD_DIRECT_SLICE + (1u << 20) + 5)
#define KEY 77
#define ALL (HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE)
#define DONE HD_SEND_COMPLETE

/*
 * direct_region: a region of s that others may read and write. direct_permit: its endpoint may be
 * read and written, and has this policy.
 * direct_open: two nodes that have talked to each other, so that a link stands; and the target has
 * not been seen to poll for a while.
 *
 * direct_post: an operation of a, on the region KEY of b; imm is 4711, ctx is buf. direct_alone:
 * the next completion of a, which alone makes progress until then. direct_turns: n turns of s.
 * direct_nothing_done: turns of a bring no completion. direct_refused: a write and a read end with
 * this errno, since the target says so.
 */
struct hd_mr *direct_region(struct side *s, uint64_t key, void *at, size_t len, uint32_t flags);
void direct_permit(struct side *s, uint32_t policy);
void direct_open(struct pair *p, uint32_t policy);
void direct_close(struct pair *p);
int direct_post(struct pair *p, enum hd_rma_op op, void *buf, size_t len, uint64_t addr, uint32_t flags);
struct hd_cqe direct_alone(struct pair *p);
void direct_turns(struct side *s, int n);
bool direct_nothing_done(struct pair *p);
void direct_refused(struct pair *p, uint64_t addr, size_t len, int err);

#endif
