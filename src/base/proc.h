/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What /proc tells of processes. */
#ifndef HD_BASE_PROC_H
#define HD_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * hd_proc_stat: of this process: its state ('Z': it waits for its parent to read how it ended, 'X':
 * it is dead), and when it began, in ticks of the kernel's, by which it is told from another one
 * that has got its number. False: it cannot be read.
 */
bool hd_proc_stat(pid_t pid, char *state, uint64_t *born);

/*
 * A process as the kernel has told of it: by its number, or else as the one that has the
 * socket with this inode open.
 */
struct hd_holder {
	pid_t pid; /* 0: see socket */
	uint64_t socket;
};

/*
 * hd_proc_has: has this process the socket with this inode open? False too where it cannot be seen.
 */
bool hd_proc_has(pid_t pid, uint64_t inode);

/* hd_proc_of: the process. 0: it is not seen from here. */
pid_t hd_proc_of(const struct hd_holder *h);

/*
 * hd_proc_of_socket: which process of our user has the socket with this inode open; of several, as
 * after a fork, the oldest. 0: none that is seen.
 */
pid_t hd_proc_of_socket(uint64_t inode);

#endif
