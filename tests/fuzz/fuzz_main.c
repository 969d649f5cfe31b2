/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A fuzz target without libFuzzer: runs the files that it is given, or random inputs, as many as
 * HD_FUZZ_RUNS says, from HD_TEST_SEED. A finding ends the program by a signal; before each input
 * its number is kept where a debugger finds it, and HD_FUZZ_FIRST begins there.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LONGEST 1500
#define RUNS 3000

static volatile uint64_t current; /* number of the input that runs: for the debugger */

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static int run_file(const char *path)
{
	static uint8_t buf[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t n;

	if (!file) {
		perror(path);
		return 1;
	}
	n = fread(buf, 1, sizeof(buf), file);
	fclose(file);
	LLVMFuzzerTestOneInput(buf, n);
	return 0;
}

/* Exactly as long as it says, so that reading beyond it is noticed. */
static void run_random(uint64_t seed, uint64_t i)
{
	uint64_t random = mix(seed + i);
	size_t n = random % LONGEST;
	uint8_t *buf = malloc(n + 1);

	if (!buf)
		abort();
	for (size_t k = 0; k < n; k++)
		buf[k] = (uint8_t)(mix(random + k) >> 24);
	current = i;
	LLVMFuzzerTestOneInput(buf, n);
	free(buf);
}

int main(int argc, char **argv)
{
	uint64_t seed = number("HD_TEST_SEED", (uint64_t)time(NULL)), first = number("HD_FUZZ_FIRST", 0);
	uint64_t runs = number("HD_FUZZ_RUNS", RUNS);
	int failed = 0;

	LLVMFuzzerInitialize(&argc, &argv);
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			failed |= run_file(argv[i]);
		return failed;
	}
	printf("1..1\n# HD_TEST_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (uint64_t i = first; i < first + runs; i++)
		run_random(seed, i);
	printf("ok 1 - %llu random inputs\n", (unsigned long long)runs);
	return 0;
}
