/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The paths whose instructions are counted: paths.c. */
#ifndef HD_BENCH_PATHS_H
#define HD_BENCH_PATHS_H

/*
 * Operations at a time: how often their ends are looked for depends on the
 * clock, and weighs less so.
 */
#define BATCH 4

/* Both ends are in this process and use one thread. open: connect them. batch: BATCH operations,
 * until both ends have been told of all. Both give up on any failure. */
struct path {
	const char *name;
	void (*open)(void);
	void (*batch)(void);
};

/*
 * Before a batch of short writes, which go by packet to a target that has polled a moment ago,
 * and else by a direct copy: lets that moment pass, so that they always go the second way.
 * Nothing is counted meanwhile.
 */
void paths_pause(void);

extern const struct path fi_paths[], verbs_paths[]; /* the last has no name */

#endif
