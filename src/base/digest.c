/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/digest.h"

#include <string.h>

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_word[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(const uint8_t *block, uint32_t w[64])
{
	for (int i = 0; i < 16; i++)
		w[i] = big_endian(block + (size_t)i * 4);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] +
		       (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
}

static void digest_mix(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], s[8];

	expand(block, w);
	memcpy(s, state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t e = s[4], a = s[0];
		uint32_t t1 = s[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & s[5]) ^ (~e & s[6])) +
			      round_word[i] + w[i];
		uint32_t t2 =
			(ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

void hd_digest_init(struct hd_digest *d)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(d->state, first, sizeof(first));
	d->len = 0;
}

void hd_digest_add(struct hd_digest *d, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		size_t at = d->len % HD_DIGEST_BLOCK;
		size_t n = HD_DIGEST_BLOCK - at < len ? HD_DIGEST_BLOCK - at : len;

		memcpy(d->block + at, p, n);
		d->len += n;
		p += n;
		len -= n;
		if (at + n == HD_DIGEST_BLOCK)
			digest_mix(d->state, d->block);
	}
}

void hd_digest_end(struct hd_digest *d, uint8_t out[HD_DIGEST_SIZE])
{
	static const uint8_t pad[HD_DIGEST_BLOCK] = { 0x80 };
	uint64_t bits = d->len * 8;
	size_t at = d->len % HD_DIGEST_BLOCK;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	hd_digest_add(d, pad, (at < 56 ? 56 : 56 + HD_DIGEST_BLOCK) - at);
	hd_digest_add(d, length, sizeof(length));
	for (int i = 0; i < HD_DIGEST_SIZE; i++)
		out[i] = (uint8_t)(d->state[i / 4] >> (24 - 8 * (i % 4)));
	explicit_bzero(d, sizeof(*d));
}
