/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Where memory comes from, told to another process, which maps the same. */
#ifndef HEDDLE_FRONT_VERBS_IMPORT_WHERE_H
#define HEDDLE_FRONT_VERBS_IMPORT_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hv_where {
	uint32_t major, minor; /* of the file, or of what the kernel has for shared memory without one */
	uint64_t inode;
	uint64_t offset; /* of the first byte */
	int32_t pid;	 /* whose memory it is */
	int32_t zero;
};

/* hv_where: of this memory: 0; -EOPNOTSUPP: others cannot have it, as it is private, or not of one piece; -errno. */
int hv_where(const void *addr, size_t len, struct hv_where *out);

/*
 * hv_where_map: a mapping of our own: from one that we have, or from a descriptor of ours or of that process. NULL: there is none that we may
 * have. *base and *size: what munmap takes.
 */
char *hv_where_map(const struct hv_where *w, size_t len, bool writable, void **base, size_t *size);

#endif
