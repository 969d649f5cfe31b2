/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How many descriptors the process may have: the limit may be raised or lowered at any time, so it
 * is asked for when it is needed. Any thread.
 */
#ifndef HEDDLE_BASE_FILES_H
#define HEDDLE_BASE_FILES_H

#include <stdint.h>
#include <sys/resource.h>

#define HD_FILES_USUAL 1024u /* where the kernel does not tell */

static inline uint64_t hd_files_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? HD_FILES_USUAL : limit.rlim_cur;
}

#endif
