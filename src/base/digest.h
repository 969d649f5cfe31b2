/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* SHA-256 (FIPS 180-4), for what must not be told but has to be compared. */
#ifndef HD_BASE_DIGEST_H
#define HD_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define HD_DIGEST_SIZE 32
#define HD_DIGEST_BLOCK 64

struct hd_digest {
	uint32_t state[8];
	uint64_t len; /* bytes taken in so far */
	uint8_t block[HD_DIGEST_BLOCK];
};

/*
 * hd_digest_init begins, hd_digest_add takes `len` more bytes in, hd_digest_end writes the digest
 * and wipes *d, which has to be begun anew afterwards. Any thread; nothing is allocated.
 */
void hd_digest_init(struct hd_digest *d);
void hd_digest_add(struct hd_digest *d, const void *data, size_t len);
void hd_digest_end(struct hd_digest *d, uint8_t out[HD_DIGEST_SIZE]);

#endif
