/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the fuzz targets share: reading decisions out of an input, which may end at any time. */
#ifndef HD_TESTS_FUZZ_H
#define HD_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MUST: a finding unless this holds; assertions may be off. */
#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

struct input {
	const uint8_t *at;
	size_t left;
};

/* Zeroes follow the end. */
static inline uint64_t input_take(struct input *in, size_t n)
{
	uint64_t v = 0;
	size_t have = n < in->left ? n : in->left;

	memcpy(&v, in->at, have);
	in->at += have;
	in->left -= have;
	return v;
}

static inline uint8_t input_byte(struct input *in)
{
	return (uint8_t)input_take(in, 1);
}

/* A number below `limit`, out of one byte. */
static inline unsigned input_below(struct input *in, unsigned limit)
{
	return input_byte(in) % limit;
}

/* libFuzzer's door; with another compiler fuzz_main.c calls it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#endif
