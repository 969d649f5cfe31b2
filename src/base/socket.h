/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HD_BASE_SOCKET_H
#define HD_BASE_SOCKET_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * hd_socket: socket(2), of the kernel. Programs are run with libraries that put something else
 * in the place of socket() (librspreload makes rsockets, which are made of us), and sockets of
 * ours must not become that.
 */
static inline int hd_socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, domain, type, protocol);
}

#endif
