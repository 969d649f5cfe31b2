/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests at a join socket: an abstract UNIX address, random, at which a node listens once it has
 * advertised that (join.c). Such an address leaves nothing behind when its owner dies.
 */
#include "transport/shm/shm.h"

#include "base/socket.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

socklen_t hd_shm_join_address(struct sockaddr_un *sa, const uint8_t join_name[16])
{
	int n = 1; /* after the zero byte that makes it abstract */

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n += snprintf(sa->sun_path + n, sizeof(sa->sun_path) - 1, "heddle.");
	for (int i = 0; i < 16; i++)
		n += snprintf(sa->sun_path + n, sizeof(sa->sun_path) - (size_t)n, "%02x", join_name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
}

int hd_shm_join_socket(void)
{
	int fd = hd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int hd_shm_join_request(const struct hd_shm_advert *advert)
{
	struct sockaddr_un sa;
	socklen_t len = hd_shm_join_address(&sa, advert->join_name);
	int fd = hd_shm_join_socket(), err;

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* ---- who is there? ---- */

int hd_shm_who(int sock, struct ucred *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, out, &len) < 0 ? -errno : 0;
}

int hd_shm_pidfd(pid_t pid)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	return fd >= 0 ? fd : pid > 0 ? -errno : -EINVAL; /* 0: it is in no namespace of ours */
}

/*
 * The kernel keeps with a join socket who has begun to listen there, whoever has the socket by now.
 */
int hd_shm_join_process(const struct hd_shm_advert *advert)
{
	int sock = hd_shm_join_request(advert), err;
	struct ucred cred;

	if (sock < 0)
		return sock;
	err = hd_shm_who(sock, &cred);
	close(sock);
	return err ? err : hd_shm_pidfd(cred.pid);
}
