/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/indices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BITS 64u
#define BIT(i) (UINT64_C(1) << ((i) % BITS))

static int words_grow(uint64_t **words, uint32_t from, uint32_t to)
{
	uint64_t *more = realloc(*words, to * sizeof(*more));

	if (!more)
		return -ENOMEM;
	memset(more + from, 0, (to - from) * sizeof(*more));
	*words = more;
	return 0;
}

/* How many words the summary of so many has. */
static uint32_t some_words(uint32_t count)
{
	return (count / BITS + BITS - 1) / BITS;
}

int hd_indices_grow(struct hd_indices *x, uint32_t n)
{
	uint32_t from = x->count;

	if (words_grow(&x->free, from / BITS, n / BITS) < 0 ||
	    words_grow(&x->some, some_words(from), some_words(n)) < 0)
		return -ENOMEM;
	x->count = n;
	for (uint32_t i = from; i < n; i++)
		hd_indices_put(x, i);
	return 0;
}

/* The summary of all that a node ever has is some hundred words long. */
uint32_t hd_indices_take(struct hd_indices *x)
{
	for (uint32_t s = 0; s < some_words(x->count); s++) {
		uint32_t word, i;

		if (!x->some[s])
			continue;
		word = s * BITS + (uint32_t)__builtin_ctzll(x->some[s]);
		i = word * BITS + (uint32_t)__builtin_ctzll(x->free[word]);
		x->free[word] &= ~BIT(i);
		if (!x->free[word])
			x->some[s] &= ~BIT(word);
		return i;
	}
	return x->count;
}

void hd_indices_put(struct hd_indices *x, uint32_t i)
{
	x->free[i / BITS] |= BIT(i);
	x->some[i / BITS / BITS] |= BIT(i / BITS);
}

void hd_indices_fini(struct hd_indices *x)
{
	free(x->free);
	free(x->some);
	*x = (struct hd_indices){ 0 };
}
