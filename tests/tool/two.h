/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program that hangs, and a child of it that is the other end: what stands between them is a
 * socket. two_begin: this is the program, or the child; before anything is opened. two_tell,
 * two_hear: a number for the other, which is waited for. two_hang: the program prints "ready", and
 * ends with its standard input; the child ends with the program.
 */
#ifndef TWO_H
#define TWO_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct two {
	bool is_child;
	pid_t pid; /* of the child; in it 0 */
	int fd;
};

static inline struct two two_begin(void)
{
	struct two t;
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) || (pid = fork()) < 0) {
		perror("two processes");
		exit(1);
	}
	t = (struct two){ .is_child = pid == 0, .pid = pid, .fd = fds[pid == 0] };
	close(fds[pid != 0]);
	return t;
}

static inline void two_tell(const struct two *t, uint64_t number)
{
	if (write(t->fd, &number, sizeof(number)) != sizeof(number))
		exit(1);
}

static inline uint64_t two_hear(const struct two *t)
{
	uint64_t number;

	if (read(t->fd, &number, sizeof(number)) != sizeof(number))
		exit(1);
	return number;
}

static inline void two_hang(const struct two *t)
{
	struct pollfd until = { .fd = t->is_child ? t->fd : STDIN_FILENO, .events = POLLIN };

	if (!t->is_child) {
		puts("ready");
		fflush(stdout);
	}
	poll(&until, 1, -1);
}

#endif
