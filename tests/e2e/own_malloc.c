/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A module for LD_PRELOAD: a malloc of the program's own that is older than C11, as the
 * registration caches of MPI libraries bring one. It has malloc, calloc, realloc, free, memalign,
 * posix_memalign and valloc, and no aligned_alloc, which stays the C library's. free ends the
 * process when it is given what is not its own. Nothing is used twice.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOM ((size_t)4 << 30)

static _Atomic(char *) start;
static atomic_size_t used;

/* The length of what is given out stands in the 16 bytes in front of it. */
static size_t *length_of(void *at)
{
	return (size_t *)at - 2;
}

static char *room(void)
{
	char *there = atomic_load(&start), *made;

	if (there)
		return there;
	made = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made == MAP_FAILED)
		abort();
	if (atomic_compare_exchange_strong(&start, &there, made))
		return made;
	munmap(made, ROOM);
	return there;
}

static void *give(size_t align, size_t bytes)
{
	char *from = room();
	size_t at;
	void *out;

	if (bytes > ROOM / 2)
		return NULL;
	align = align < 16 ? 16 : align;
	at = atomic_fetch_add(&used, bytes + align + 32);
	if (at + bytes + align + 32 > ROOM)
		return NULL;
	out = (void *)(((uintptr_t)from + at + 16 + align - 1) & ~(uintptr_t)(align - 1));
	*length_of(out) = bytes;
	return out;
}

void *malloc(size_t bytes)
{
	return give(16, bytes);
}

void *calloc(size_t n, size_t each)
{
	return each && n > SIZE_MAX / each ? NULL : give(16, n * each);
}

void free(void *at)
{
	static const char word[] = "own_malloc: free of what is another malloc's\n";

	if (!at || ((char *)at > room() && (char *)at < room() + ROOM))
		return;
	if (write(STDERR_FILENO, word, sizeof(word) - 1) < 0)
		_exit(3);
	abort();
}

void *realloc(void *at, size_t bytes)
{
	void *to = give(16, bytes);

	if (!at || !to)
		return to;
	memcpy(to, at, *length_of(at) < bytes ? *length_of(at) : bytes);
	free(at);
	return to;
}

void *memalign(size_t align, size_t bytes)
{
	return give(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *at = give(align, bytes);

	if (!at)
		return ENOMEM;
	*out = at;
	return 0;
}

void *valloc(size_t bytes)
{
	return give(4096, bytes);
}
