/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See siphash.h. */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t turned(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = turned(v[1], 13) ^ v[0];
	v[0] = turned(v[0], 32);
	v[2] += v[3];
	v[3] = turned(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = turned(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = turned(v[1], 17) ^ v[2];
	v[2] = turned(v[2], 32);
}

static void siphash_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	siphash_round(v);
	v[0] ^= word;
}

uint64_t hd_siphash(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
			  key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };
	const unsigned char *at = data;
	uint64_t word;
	size_t left;

	for (left = len; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		siphash_word(v, le64toh(word));
	}
	word = 0;
	memcpy(&word, at, left);
	siphash_word(v, le64toh(word) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
