/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Records that make a link over shared memory, made by hand, and the sockets that they go through.
 */
#ifndef HD_SHM_RECORD_H
#define HD_SHM_RECORD_H

#include "base/config.h"
#include "transport/shm_duo.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* A record and what comes with it; each test spoils one thing of it. */
struct record {
	struct hd_shm_hello hello;
	size_t len;
	int fd[8];
	int fds;
	uint8_t more[64];
};

/*
 * join_socket: one that is not connected, and the address of the join socket. join_request: one
 * that is. join_false: one that listens where the advert, which it fills in, says that a join
 * socket is. join_answer: what the other side does about what was sent: a record comes (1), or the
 * end (0); -1: neither within two seconds.
 *
 * record_good: as it should be in this step. record_close: its descriptors. record_page,
 * record_memory: those of a page and of a link's memory of this size, with these seals, and this
 * magic in front; record_memfd: of no contents. open_descriptors: how many there are.
 */
int join_socket(const struct hd_shm_advert *advert, struct sockaddr_un *sa, socklen_t *len);
int join_request(const struct hd_shm_advert *advert);
void record_send(int sock, const struct record *r);
int record_memfd(size_t size, int seals);
int record_page(size_t size, int seals, uint32_t magic, const struct hd_node_id *id);
int record_memory(size_t size, int seals, uint32_t magic);
struct record record_good(const struct hd_shm_advert *advert, enum hd_shm_hello_step step);
void record_close(struct record *r);
int join_answer(struct duo *d, int sock);
int open_descriptors(void);
int join_false(struct hd_shm_advert *advert, int backlog);

#endif
