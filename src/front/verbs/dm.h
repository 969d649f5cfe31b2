/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Device memory: dm.c. */
#ifndef HEDDLE_FRONT_VERBS_DM_H
#define HEDDLE_FRONT_VERBS_DM_H

#include "front/verbs/verbs_front.h"

struct hv_dm {
	struct ibv_dm pub;
	char *memory;
	size_t length;
	uint64_t offset; /* in cmd_fd */
	void *map;	 /* what munmap takes */
	size_t map_size;
	int users; /* regions: under the lock */
	/* a forked child's own: neither in cmd_fd nor in the list of what can be imported */
	bool forked;
	struct hv_import import;
};

/*
 * hv_dm_import: one that stands for another process's, which lies there in this descriptor of its
 * context; NULL with errno.
 */
struct ibv_dm *hv_dm_import(struct hv_context *ctx, uint32_t handle, int fd, uint64_t offset, size_t length);

#endif
