/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Time, chance and test patterns. */
#include "case.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 40.0 /* seconds that one wait may take, and CT_BUSY times that */

double ct_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ct_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ct_deadline(const struct ct *ct)
{
	return ct_now() + PATIENCE * CT_BUSY * ct->conf->scale;
}

void ct_late(struct ct *ct, double end, const char *what)
{
	if (ct_now() > end)
		ct_fail(ct, "waited too long for %s", what);
}

void ct_pause(void)
{
	static _Thread_local unsigned int n;

	/* The peer may need this very CPU: yield, and now and then really sleep. */
	if (++n % 64)
		sched_yield();
	else
		usleep(50);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t ct_rand(struct ct *ct)
{
	return mix(ct->rng++);
}

uint64_t ct_range(struct ct *ct, uint64_t n)
{
	return ct_rand(ct) % n;
}

void *ct_alloc(struct ct *ct, size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		ct_fail(ct, "no memory for %zu bytes", len);
	return p;
}

void ct_fill(void *buf, size_t len, uint64_t seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i += 8) {
		uint64_t w = mix(mix(seed) + i);

		memcpy(p + i, &w, len - i < 8 ? len - i : 8);
	}
}

bool ct_match(const void *buf, size_t len, uint64_t seed, size_t off)
{
	const unsigned char *p = buf;
	size_t i = 0;

	while (i < len) {
		size_t at = off + i, skip = at % 8, n = 8 - skip;
		uint64_t w = mix(mix(seed) + (at - skip));

		if (n > len - i)
			n = len - i;
		if (memcmp(p + i, (unsigned char *)&w + skip, n))
			return false;
		i += n;
	}
	return true;
}

void ct_verify(struct ct *ct, const void *buf, size_t len, uint64_t seed, const char *what)
{
	if (!ct_match(buf, len, seed, 0))
		ct_fail(ct, "%s: wrong data in a message of %zu bytes", what, len);
}

bool ct_untouched(const void *buf, size_t len, unsigned char c)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != c)
			return false;
	return true;
}

long ct_memory(struct ct *ct, const char *kind)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	const size_t len = strlen(kind);
	char line[256];
	long kib = -1;

	while (f && kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, kind, len) && line[len] == ':')
			kib = strtol(line + len + 1, NULL, 10);
	if (f)
		fclose(f);
	if (kib < 0)
		ct_fail(ct, "/proc/self/smaps_rollup has no line %s", kind);
	return kib;
}
