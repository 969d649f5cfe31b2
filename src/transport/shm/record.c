/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The records that make a link, with the descriptors that travel in them. */
#include "transport/shm/shm.h"

#include <sys/socket.h>
#include <unistd.h>

int hd_shm_record_send(int sock, const struct hd_shm_record *r)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(HD_SHM_HELLO_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)&r->hello, sizeof(r->hello) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (r->fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)r->fds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN((size_t)r->fds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), r->fd, (size_t)r->fds * sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return 0;
}

static void record_take_fds(struct hd_shm_record *r, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < count && r->fds < HD_SHM_HELLO_FDS; i++)
			memcpy(&r->fd[r->fds++], CMSG_DATA(c) + (size_t)i * sizeof(int), sizeof(int));
	}
}

void hd_shm_record_close_fds(struct hd_shm_record *r)
{
	for (int i = 0; i < r->fds; i++)
		if (r->fd[i] >= 0)
			close(r->fd[i]);
	r->fds = 0;
}

int hd_shm_record_recv(int sock, struct hd_shm_record *r)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(HD_SHM_HELLO_FDS * sizeof(int))];
	} control;
	struct iovec iov = { &r->hello, sizeof(r->hello) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	r->fds = 0;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	record_take_fds(r, &msg);
	if (n == 0)
		return -ECONNRESET;
	if (msg.msg_flags & MSG_CTRUNC)
		/* more than there is room for, be it here or in our table of descriptors */
		return -EMFILE;
	return n == sizeof(r->hello) && !(msg.msg_flags & MSG_TRUNC) ? 0 : -EPROTO;
}

int hd_shm_record_check(const struct hd_shm_record *r, enum hd_shm_hello_step step, int min,
			const uint8_t nonce[16])
{
	const struct hd_shm_hello *h = &r->hello;

	if (h->magic != HD_SHM_MAGIC || h->version != HD_SHM_VERSION || h->step != step)
		return -EPROTO;
	if (r->fds != min + !!(h->flags & HD_SHM_F_PIDFD))
		return -EPROTO;
	return memcmp(h->nonce, nonce, sizeof(h->nonce)) == 0 ? 0 : -EACCES;
}
