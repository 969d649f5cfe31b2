/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/shm_record.h"

#include "base/clock.h"
#include "base/config.h"
#include "transport/shm_duo.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

int join_socket(const struct hd_shm_advert *advert, struct sockaddr_un *sa, socklen_t *len)
{
	char name[64];
	int n = snprintf(name, sizeof(name), "heddle.");

	for (int i = 0; i < 16; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", advert->join_name[i]);
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(sa->sun_path + 1, name, (size_t)n);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int join_request(const struct hd_shm_advert *advert)
{
	struct sockaddr_un sa;
	socklen_t len;
	int fd = join_socket(advert, &sa, &len);

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	return fd;
}

void record_send(int sock, const struct record *r)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)r, r->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	uint8_t wire[sizeof(*r)];

	memcpy(wire, &r->hello, sizeof(r->hello));
	memset(wire + sizeof(r->hello), 0, sizeof(wire) - sizeof(r->hello));
	iov.iov_base = wire;
	if (r->fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)r->fds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN((size_t)r->fds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), r->fd, (size_t)r->fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), r->len);
}

int record_memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

struct page_head {
	uint32_t magic;
	uint16_t version, size_kib;
	int32_t pid;
	uint32_t rows;
	struct hd_node_id id;
};

int record_page(size_t size, int seals, uint32_t magic, const struct hd_node_id *id)
{
	struct page_head head = { .magic = magic, .version = HD_PAGE_VERSION, .pid = getpid(), .id = *id };
	int fd = record_memfd(size, 0);

	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

int record_memory(size_t size, int seals, uint32_t magic)
{
	struct {
		uint32_t magic, version;
		uint64_t size;
	} head = { magic, HD_SHM_VERSION, sizeof(struct hd_shm_mem) };
	int fd = record_memfd(size, 0);

	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

struct record record_good(const struct hd_shm_advert *advert, enum hd_shm_hello_step step)
{
	struct record r = {
		.hello = { .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION, .step = (uint8_t)step }
	};

	r.len = sizeof(r.hello);
	memcpy(r.hello.nonce, advert->nonce, sizeof(r.hello.nonce));
	r.hello.id.word[0] = 4711;
	if (step == HD_SHM_READY)
		return r;
	r.fd[r.fds++] = record_page(sizeof(struct hd_page_file), SIZE_SEALS | F_SEAL_FUTURE_WRITE,
				    HD_PAGE_MAGIC, &r.hello.id);
	r.fd[r.fds++] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (step == HD_SHM_JOIN)
		r.fd[r.fds++] = record_memory(sizeof(struct hd_shm_mem), SIZE_SEALS, HD_SHM_MAGIC);
	return r;
}

void record_close(struct record *r)
{
	for (int i = 0; i < r->fds; i++)
		close(r->fd[i]);
}

int join_answer(struct duo *d, int sock)
{
	struct hd_shm_hello hello;

	for (int i = 0; i < 2000; i++) {
		struct pollfd p = { .fd = sock, .events = POLLIN };

		duo_turns(d, 10);
		if (poll(&p, 1, 1) > 0)
			return recv(sock, &hello, sizeof(hello), 0) > 0;
	}
	return -1;
}

int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int join_false(struct hd_shm_advert *advert, int backlog)
{
	struct sockaddr_un sa;
	socklen_t len;
	int fd;

	*advert = (struct hd_shm_advert){ .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION };
	rig_fill(advert->join_name, 0, sizeof(advert->join_name), hd_now_ns());
	fd = join_socket(advert, &sa, &len);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}
