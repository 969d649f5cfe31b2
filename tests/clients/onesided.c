/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * An MPI program of one-sided operations that checks its data: puts and gets of all sizes between
 * fences and under locks, accumulates, and counters that all ranks draw numbers from. Prints
 * "onesided: ok" on rank 0 and exits with 0, or says what is wrong and aborts.
 */
#include <mpi.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20) /* bytes of a put */
#define DRAWS 200

static int rank, ranks;

static void wrong(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void wrong(const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "onesided: rank %d: %s\n", rank, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static unsigned char pattern(int from, int round, size_t i)
{
	return (unsigned char)(((size_t)from * 53 + (size_t)round * 11 + i * 3 + (i >> 9)) * 151 + 7);
}

static void fill(unsigned char *at, size_t len, int from, int round)
{
	for (size_t i = 0; i < len; i++)
		at[i] = pattern(from, round, i);
}

static void check(const unsigned char *at, size_t len, int from, int round, const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != pattern(from, round, i))
			wrong("%s: byte %zu of %zu from rank %d is wrong", what, i, len, from);
}

static void *window(size_t len, MPI_Win *win)
{
	void *base;

	if (MPI_Win_allocate((MPI_Aint)len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win))
		wrong("no window of %zu bytes", len);
	memset(base, 0, len);
	MPI_Barrier(MPI_COMM_WORLD);
	return base;
}

/* Each rank puts into the next one, and gets from it what that has put into its own neighbour. */
static void put_and_get(size_t len, int round)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	unsigned char *out = malloc(LONGEST), *in = calloc(1, LONGEST), *mem;
	MPI_Win win;

	if (!out || !in)
		wrong("no memory");
	mem = window(LONGEST + 16, &win);
	fill(out, len, rank, round);
	MPI_Win_fence(0, win);
	MPI_Put(out, (int)len, MPI_BYTE, next, 8, (int)len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check(mem + 8, len, before, round, "put");
	MPI_Get(in, (int)len, MPI_BYTE, next, 8, (int)len, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check(in, len, rank, round, "get");
	if (mem[7] || mem[8 + len])
		wrong("a put of %zu bytes wrote beside its place", len);
	MPI_Win_free(&win);
	free(out);
	free(in);
}

/* The same under a lock, with the target busy elsewhere: it only waits in a barrier. */
static void locked(size_t len, int round)
{
	unsigned char *out = malloc(LONGEST), *in = calloc(1, LONGEST), *mem;
	int next = (rank + 1) % ranks;
	MPI_Win win;

	if (!out || !in)
		wrong("no memory");
	mem = window(LONGEST, &win);
	fill(out, len, rank, round);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
	MPI_Put(out, (int)len, MPI_BYTE, next, 0, (int)len, MPI_BYTE, win);
	MPI_Win_flush(next, win);
	MPI_Get(in, (int)len, MPI_BYTE, next, 0, (int)len, MPI_BYTE, win);
	MPI_Win_unlock(next, win);
	check(in, len, rank, round, "get under a lock");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	check(mem, len, (rank + ranks - 1) % ranks, round, "put under a lock");
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
	free(out);
	free(in);
}

/* All ranks add to the same array of rank 0, integers and floating-point numbers. */
static void accumulate(void)
{
	enum {
		N = 100
	};
	int64_t integers[N];
	double reals[N];
	MPI_Win win;

	window(sizeof(integers) + sizeof(reals), &win);
	for (int i = 0; i < N; i++) {
		integers[i] = rank + i;
		reals[i] = 0.5 * rank + i;
	}
	MPI_Win_lock_all(0, win);
	MPI_Accumulate(integers, N, MPI_INT64_T, 0, 0, N, MPI_INT64_T, MPI_SUM, win);
	MPI_Accumulate(reals, N, MPI_DOUBLE, 0, sizeof(integers), N, MPI_DOUBLE, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(integers, N, MPI_INT64_T, 0, 0, N, MPI_INT64_T, win);
	MPI_Get(reals, N, MPI_DOUBLE, 0, sizeof(integers), N, MPI_DOUBLE, win);
	MPI_Win_unlock(0, win);
	for (int i = 0; i < N; i++) {
		int sum = ranks * (ranks - 1) / 2;

		if (integers[i] != sum + ranks * i || reals[i] != 0.5 * sum + (double)ranks * i)
			wrong("accumulate: element %d is %lld and %f", i, (long long)integers[i], reals[i]);
	}
	MPI_Win_free(&win);
}

/* Numbers drawn from one counter by all: each once, and none is left out. */
static void draw(void)
{
	int64_t one = 1, got, mine = 0, all = 0, last = -1, total = (int64_t)ranks * DRAWS;
	MPI_Win win;

	window(sizeof(int64_t), &win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < DRAWS; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		if (got <= last || got >= total)
			wrong("drew %lld after %lld", (long long)got, (long long)last);
		last = got;
		mine += got;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (all != total * (total - 1) / 2)
		wrong("the numbers drawn add up to %lld", (long long)all);
	MPI_Win_free(&win);
}

/* A spin lock made of compare and swap protects a plain get and put. */
static void swap(void)
{
	int32_t zero = 0, one = 1, was;
	int64_t value;
	MPI_Win win;

	window(16, &win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < DRAWS / 4; i++) {
		do {
			MPI_Compare_and_swap(&one, &zero, &was, MPI_INT32_T, 0, 0, win);
			MPI_Win_flush(0, win);
		} while (was);
		MPI_Get(&value, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		value++;
		MPI_Put(&value, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		MPI_Accumulate(&zero, 1, MPI_INT32_T, 0, 0, 1, MPI_INT32_T, MPI_REPLACE, win);
		MPI_Win_flush(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get(&value, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, win);
	MPI_Win_flush(0, win);
	if (value != (int64_t)ranks * (DRAWS / 4))
		wrong("a count under a lock of compare and swap is %lld", (long long)value);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 1, 8, 100, 4096, 5000, 65536, 300000, LONGEST };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		put_and_get(lens[i], (int)i);
		locked(lens[i], (int)i + 20);
	}
	accumulate();
	draw();
	swap();
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("onesided: ok, %d ranks\n", ranks);
	MPI_Finalize();
	return 0;
}
