/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HD_BASE_EPOLL_H
#define HD_BASE_EPOLL_H

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * epoll(7), of the kernel. As with hd_socket: librspreload puts sets of rsockets in the place of
 * epoll_create1() and its like, from the release of rdma-core on that has repoll_create, and a
 * node's progress, which those sets wait for, cannot stand on them.
 */
static inline int hd_epoll_create(void)
{
	return (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
}

static inline int hd_epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, set, op, fd, event);
}

/* hd_epoll_look: epoll_wait(2) that does not wait. */
static inline int hd_epoll_look(int set, struct epoll_event *events, int most)
{
	return (int)syscall(SYS_epoll_pwait, set, events, most, 0, NULL, 0);
}

#endif
