/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Regions that are not of the program's own memory. */
#ifndef HEDDLE_FRONT_VERBS_MR_H
#define HEDDLE_FRONT_VERBS_MR_H

#include "front/verbs/verbs_front.h"

/*
 * hv_mr_of_device: a region of this memory, of which the program has no address; *users counts it
 * until it is deregistered, under the lock. NULL with errno.
 */
struct ibv_mr *hv_mr_of_device(struct hv_pd *pd, void *memory, size_t length, unsigned int access,
			       int *users);

/* Another process's region, over our mapping of the same memory. */
struct hv_mr_far {
	uint32_t handle, key, access;
	uint64_t iova;
	size_t length;
	char *memory;
	void *map;
	size_t map_size;
	bool revoked;		     /* it went while it was being imported: under the lock */
	LIST_ENTRY(hv_mr_far) entry; /* far.c's */
};

/*
 * hv_mr_import: one that stands for it, and unmaps the mapping when it goes; NULL with errno:
 * ENOKEY: a region of ours has the key.
 */
struct ibv_mr *hv_mr_import(struct ibv_pd *pd, const struct hv_mr_far *far);

/*
 * hv_mr_revoke: neither key leads to an imported region any more: local ones find no byte
 * there, and the engine refuses the rest. What is being copied by others at this moment ends
 * by itself. With the lock.
 */
void hv_mr_revoke(struct hv_mr *mr);

#endif
