/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Two nodes that read and write the memory of each other. */
#ifndef HD_TEST_RMA_H
#define HD_TEST_RMA_H

#include "engine/link/link.h"
#include "engine/test/test_pair.h"

#include "engine/mr/mr.h"

#define BIG ((3u << 20) + 5)
#define KEY 77
#define ALL (HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE)
#define DONE HD_SEND_COMPLETE

#define BOTH(test) \
	cmocka_unit_test(test), cmocka_unit_test_setup_teardown(test, rma_by_packets, rma_by_either)

/*
 * rma_region: a region of s. rma_open: two nodes whose endpoints may be read and written. rma_post:
 * an operation of a, when there is room: 0, or what it was refused with. rma_go: one on the region
 * KEY of b; ctx is buf. rma_expect: the next completion of a is of this.
 * rma_by_packets: over shared memory too, where the initiator could do it all by itself;
 * rma_by_either: no more so.
 */
struct hd_mr *rma_region(struct side *s, uint64_t key, void *at, size_t len, uint32_t access);
void rma_open(struct pair *p, const char *transport);
int rma_post(struct pair *p, const struct hd_rma_args *args);
void rma_go(struct pair *p, enum hd_rma_op op, void *buf, size_t len, uint64_t addr, uint32_t flags);
void rma_expect(struct pair *p, enum hd_rma_op op, void *ctx, int err);
int rma_by_packets(void **state);
int rma_by_either(void **state);

#endif
