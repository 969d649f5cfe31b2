/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The paths whose instructions are counted: paths.c. */
#ifndef HD_BENCH_PATHS_H
#define HD_BENCH_PATHS_H

/* Operations at a time: how often their ends are looked for depends on the clock, and weighs less so. */
#define BATCH 4

/* Both ends are in this process and use one thread. open: connect them. batch: BATCH operations, until both ends have been told of all.
 * Both give up on any failure. */
struct path {
	const char *name;
	void (*open)(void);
	void (*batch)(void);
};

extern const struct path fi_paths[], verbs_paths[]; /* the last has no name */

#endif
