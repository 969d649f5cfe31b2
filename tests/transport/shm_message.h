/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Long messages between two nodes of one process, over shared memory. */
#ifndef HD_SHM_MESSAGE_H
#define HD_SHM_MESSAGE_H

#include "base/config.h"
#include "forbid.h"
#include "transport/shm/copy.h"
#include "transport/shm_duo.h"

#define BIG (3u << 20)
#define LAST_CHUNK ((hd_shm_chunks(BIG) - 1) * hd_shm_chunk(BIG))

/* One message on its way from node 0 to node 1. */
struct message {
	struct hd_get get; /* first */
	struct hd_offer offer;
	uint8_t blob[HD_OFFER_MAX];
	size_t blob_len;
	struct iovec from[HD_IOV_MAX], to[HD_IOV_MAX];
	uint8_t *sent, *received;
	size_t len;
	int done, err;
};

static const size_t sizes[] = { 1, 100, 4096, 65535, 65536, 65537, 131072, 300001, 1 << 20, BIG, BIG + 1 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/*
 * message_make: one of so many bytes, in so many segments at either end. message_get: let the
 * receiver fetch it. message_arrives: it does, as it was. message_free: with its offer. transfer:
 * all of that; false: it has not arrived.
 */
void message_make(struct message *m, struct duo *d, size_t len, int segs_from, int segs_to);
int message_get(struct message *m, struct duo *d);
void message_free(struct message *m, struct duo *d);
bool message_arrives(struct message *m, struct duo *d);
bool transfer(struct duo *d, size_t len, int segs_from, int segs_to);

#endif
