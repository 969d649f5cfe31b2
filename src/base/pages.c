/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>

static void *pages_map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* mmap aligns to small pages only: map more, and give back what sticks out. */
void *hd_pages_get(size_t bytes)
{
	char *raw;
	size_t before;

	if (bytes < HD_HUGE_PAGE)
		return pages_map(bytes);
	bytes = (bytes + HD_HUGE_PAGE - 1) & ~(HD_HUGE_PAGE - 1);
	raw = pages_map(bytes + HD_HUGE_PAGE);
	if (!raw)
		return NULL;
	before = -(uintptr_t)raw & (HD_HUGE_PAGE - 1);
	if (before)
		munmap(raw, before);
	munmap(raw + before + bytes, HD_HUGE_PAGE - before);
	madvise(raw + before, bytes, MADV_HUGEPAGE);
	return raw + before;
}

void hd_pages_put(void *at, size_t bytes)
{
	if (!at)
		return;
	if (bytes >= HD_HUGE_PAGE)
		bytes = (bytes + HD_HUGE_PAGE - 1) & ~(HD_HUGE_PAGE - 1);
	munmap(at, bytes);
}
