/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory of another process that can be mapped here, too. What is mapped is what the kernel says
 * that this process has at an address.
 */
#ifndef HEDDLE_FRONT_VERBS_IMPORT_WHERE_H
#define HEDDLE_FRONT_VERBS_IMPORT_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * hv_where: could others have this memory? 0; -EOPNOTSUPP: no, as it is private, or
 * not of one piece; -errno.
 */
int hv_where(const void *addr, size_t len);

/*
 * hv_where_map: a mapping of our own of what the process, of which this descriptor is the folder in
 * /proc, has there: from a mapping that we have, or from a descriptor of ours or of that process,
 * of a file that is our user's and long enough. NULL: there is none that we may have. *base and
 * *size: what munmap takes.
 */
char *hv_where_map(int process, uint64_t addr, size_t len, bool writable, void **base, size_t *size);

#endif
