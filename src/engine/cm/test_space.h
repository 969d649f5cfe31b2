/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Units that claim names of services: where they have them to themselves. */
#ifndef HD_ENGINE_CM_TEST_SPACE_H
#define HD_ENGINE_CM_TEST_SPACE_H

#include "base/config.h"
#include "engine/cm/space.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* A TCP socket that listens at this port of every address, or -1. */
static inline int squat(uint16_t port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 4)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * A name space of this process alone, for other tests and programs of this machine have names too,
 * whose ports nobody has now: the first four of each number below.
 */
static inline uint32_t own_space(void)
{
	const uint32_t first = (uint32_t)getpid() << 8; /* the one after may be used, too */

	for (uint32_t at = first; at < first + 256; at += 2) {
		int fd = 0;

		for (unsigned i = 0; fd >= 0 && i < 20 * 4; i++)
			if ((fd = squat(hd_space_port(at, 7471 + i / 4, i % 4))) >= 0)
				close(fd);
		if (fd >= 0)
			return at;
	}
	return first;
}

#endif
