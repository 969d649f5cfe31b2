/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"

void hd_ctl_pair(int fd[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		hd_give_up("socketpair: %s", strerror(errno));
}

void hd_ctl_tcp_pair(int fd[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || fd[0] < 0 || bind(listener, (struct sockaddr *)&sa, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&sa, &len) ||
	    connect(fd[0], (struct sockaddr *)&sa, len) || (fd[1] = accept(listener, NULL, NULL)) < 0)
		hd_give_up("no TCP connection over loopback: %s", strerror(errno));
	close(listener);
	for (int i = 0; i < 2; i++)
		if (setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
			hd_give_up("TCP_NODELAY: %s", strerror(errno));
}

pid_t hd_ctl_fork(void)
{
	pid_t parent = getpid();
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		hd_give_up("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1); /* the parent died before the line above */
	}
	return child;
}

void hd_ctl_put(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			hd_give_up("the other process is gone");
		p += n;
		len -= (size_t)n;
	}
}

void hd_ctl_get(int fd, void *buf, size_t len, void (*turn)(void *arg), void *arg)
{
	char *p = buf;

	while (len) {
		ssize_t n = recv(fd, p, len, turn ? MSG_DONTWAIT : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			turn(arg);
			continue;
		}
		if (n <= 0)
			hd_give_up("the other process is gone");
		p += n;
		len -= (size_t)n;
	}
}

void hd_ctl_reap(pid_t child, const char *what)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			hd_give_up("waitpid: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		hd_give_up("the %s process failed", what);
}
