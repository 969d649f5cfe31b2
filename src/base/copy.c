/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See copy.h. */
#include "base/copy.h"

#include <stdint.h>

#define LINE 64u

static void plain(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}

struct hd_copy_ops hd_copy_ops = { .wide = plain, .past = plain };

#if defined(__x86_64__)
#include <immintrin.h>

/*
 * Half a line a vector: two stores fill a line, and as many lines are on their way as the processor has room for stores. Two
 * lines a turn, all loads before all stores. What is left over goes by memcpy(3), which is short by then.
 */
__attribute__((target("avx2"))) static void wide_avx2(void *to, const void *from, size_t n)
{
	const __m256i *s = from;
	__m256i *d = to;

	for (; n >= 2 * LINE; n -= 2 * LINE, s += 4, d += 4) {
		__m256i a = _mm256_loadu_si256(s), b = _mm256_loadu_si256(s + 1);
		__m256i c = _mm256_loadu_si256(s + 2), e = _mm256_loadu_si256(s + 3);

		_mm256_storeu_si256(d, a);
		_mm256_storeu_si256(d + 1, b);
		_mm256_storeu_si256(d + 2, c);
		_mm256_storeu_si256(d + 3, e);
	}
	if (n)
		memcpy(d, s, n);
}

/* Whole lines alone go past the caches: part of one would cost a read and a write of memory. */
__attribute__((target("avx2"))) static void past_avx2(void *to, const void *from, size_t n)
{
	size_t head = -(uintptr_t)to % LINE;
	const __m256i *s = (const void *)((const char *)from + head);
	__m256i *d = (void *)((char *)to + head);

	memcpy(to, from, head);
	for (n -= head; n >= LINE; n -= LINE, s += 2, d += 2) {
		__m256i a = _mm256_loadu_si256(s), b = _mm256_loadu_si256(s + 1);

		_mm256_stream_si256(d, a);
		_mm256_stream_si256(d + 1, b);
	}
	if (n)
		memcpy(d, s, n);
	_mm_sfence(); /* a release does not wait for these stores */
}

/* The same with what every x86-64 has. */
static void wide_sse2(void *to, const void *from, size_t n)
{
	const __m128i *s = from;
	__m128i *d = to;

	for (; n >= LINE; n -= LINE, s += 4, d += 4) {
		__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
		__m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);

		_mm_storeu_si128(d, a);
		_mm_storeu_si128(d + 1, b);
		_mm_storeu_si128(d + 2, c);
		_mm_storeu_si128(d + 3, e);
	}
	if (n)
		memcpy(d, s, n);
}

static void past_sse2(void *to, const void *from, size_t n)
{
	size_t head = -(uintptr_t)to % LINE;
	const __m128i *s = (const void *)((const char *)from + head);
	__m128i *d = (void *)((char *)to + head);

	memcpy(to, from, head);
	for (n -= head; n >= LINE; n -= LINE, s += 4, d += 4)
		for (int i = 0; i < 4; i++)
			_mm_stream_si128(d + i, _mm_loadu_si128(s + i));
	if (n)
		memcpy(d, s, n);
	_mm_sfence();
}

const struct hd_copy_ops hd_copy_choices[] = {
	{ .wide = plain, .past = plain },
	{ .wide = wide_sse2, .past = past_sse2 },
	{ .wide = wide_avx2, .past = past_avx2 },
};

int hd_copy_best(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2") ? 2 : 1;
}
#else
/* Elsewhere memcpy(3) is as good as anything that we know. */
const struct hd_copy_ops hd_copy_choices[] = { { .wide = plain, .past = plain } };

int hd_copy_best(void)
{
	return 0;
}
#endif

__attribute__((constructor)) static void choose(void)
{
	hd_copy_ops = hd_copy_choices[hd_copy_best()];
}
