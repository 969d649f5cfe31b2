/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The control channel between the processes of one benchmark: a socketpair made before the fork. It
 * carries addresses and commands, never a timed message. */
#ifndef HD_BENCH_CTL_H
#define HD_BENCH_CTL_H

#include <stddef.h>
#include <sys/types.h>

/* hd_ctl_pair - make the channel: two descriptors of one stream. Gives up on failure. */
void hd_ctl_pair(int fd[2]);

/*
 * hd_ctl_tcp_pair - a connected pair of TCP sockets over 127.0.0.1, without delay: what is timed
 * beside us. Gives up on failure.
 */
void hd_ctl_tcp_pair(int fd[2]);

/* hd_ctl_fork - flush stdout and fork; the child is killed when its parent dies. Returns
 * as fork() does, never -1. */
pid_t hd_ctl_fork(void);

/* hd_ctl_put - write all of buf. Blocks; gives up when the other process is gone. */
void hd_ctl_put(int fd, const void *buf, size_t len);

/* hd_ctl_get - read exactly len bytes. With turn set, turn(arg) is called over and over while
 * nothing has arrived (it drives a provider with manual progress); with turn NULL the process
 * sleeps. Gives up at end of file. */
void hd_ctl_get(int fd, void *buf, size_t len, void (*turn)(void *arg), void *arg);

/* hd_ctl_reap - wait for a child and give up when it did not exit with status 0. Blocks. */
void hd_ctl_reap(pid_t child, const char *what);

#endif
