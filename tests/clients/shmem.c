/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * An OpenSHMEM program: each PE puts to its right neighbour, gets from its left one, and all count
 * by atomic operations. Prints "shmem: ok, N PEs" when everything is where it belongs.
 */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

#define BYTES (1u << 20)
#define WORDS (BYTES / sizeof(long))
#define ROUNDS 1000

/* all of it is symmetric: the others reach it */
static char from_left[BYTES];
static long flag, counter, shared, wrong, wrong_of_all;
static long sync_words[SHMEM_REDUCE_SYNC_SIZE], work_words[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static long value(int pe, size_t i)
{
	return pe * 10000000L + (long)i;
}

/* What is put before a fence is there when the flag behind it is. */
static void put(int me, int left, int right)
{
	static char mine[BYTES];

	memset(mine, 'a' + me, BYTES);
	shmem_putmem(from_left, mine, BYTES, right);
	shmem_fence();
	shmem_long_p(&flag, 1 + me, right);
	shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1 + left);
	for (size_t i = 0; i < BYTES; i++)
		wrong += from_left[i] != 'a' + left;
}

static void get(int me, int left, long *heap)
{
	static long got[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		heap[i] = value(me, i);
	shmem_barrier_all();
	shmem_getmem(got, heap, BYTES, left);
	for (size_t i = 0; i < WORDS; i++)
		wrong += got[i] != value(left, i);
}

static void count(int me, int n)
{
	for (int i = 0; i < ROUNDS; i++) {
		shmem_long_atomic_inc(&counter, (me + i) % n);
		wrong += shmem_long_atomic_fetch_add(&shared, 2, 0) % 2;
	}
	shmem_barrier_all();
	wrong += counter < ROUNDS / n * n || (!me && shared != 2L * ROUNDS * n);
	wrong += shmem_long_atomic_compare_swap(&counter, -1, 0, (me + 1) % n) == -1;
}

int main(void)
{
	long *heap;
	int me, n;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		sync_words[i] = SHMEM_SYNC_VALUE;
	heap = shmem_malloc(BYTES);
	shmem_barrier_all();
	put(me, (me + n - 1) % n, (me + 1) % n);
	get(me, (me + n - 1) % n, heap);
	count(me, n);
	shmem_long_sum_to_all(&wrong_of_all, &wrong, 1, 0, 0, n, work_words, sync_words);
	if (!me && !wrong_of_all)
		printf("shmem: ok, %d PEs\n", n);
	shmem_free(heap);
	shmem_finalize();
	return wrong != 0;
}
