/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Inputs for engine_fuzz to begin with: engine_seeds DIRECTORY writes them there. Each has a
 * settled peer, one step several times with bytes that differ, and turns of progress: so every step
 * is met soon, and libFuzzer has something to cross.
 */
#include <stdio.h>
#include <stdlib.h>

#define STEPS 64 /* at least as many as there are; more begin again */
#define TURNS 4
#define BYTES 12 /* that a step may eat */

static int write_one(const char *dir, unsigned step, unsigned kind)
{
	char path[4096];
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/seed-%02u-%u", dir, step, kind) >= (int)sizeof(path))
		return 1;
	file = fopen(path, "wb");
	if (!file) {
		perror(path);
		return 1;
	}
	fputc(1, file); /* settled */
	for (unsigned turn = 0; turn < TURNS; turn++) {
		fputc((int)step, file);
		for (unsigned i = 0; i < BYTES; i++)
			fputc((int)((kind * 41 + turn * 29 + i * (kind + 1)) & 0xff), file);
	}
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (unsigned step = 0; step < STEPS; step++)
		for (unsigned kind = 0; kind < 4; kind++)
			failed |= write_one(argv[1], step, kind);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
