/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

bool hd_is_mapped(const void *at, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t first = (uintptr_t)at & ~page;

	return msync((void *)first, (uintptr_t)at + bytes - first, MS_ASYNC) == 0 || errno != ENOMEM;
}

/* PROCMAP_QUERY of linux/fs.h, which may be older than the kernel. */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags; /* the answer: the mapping that addr is in */
	uint64_t page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY _IOWR('f', 17, struct query)
#define WRITABLE UINT64_C(2) /* of vma_flags */

bool hd_is_read_only(const void *at, size_t bytes)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint64_t end = (uintptr_t)at + bytes;
	bool writable = true;

	if (fd < 0)
		return false;
	for (uint64_t addr = (uintptr_t)at; writable && addr < end;) {
		struct query q = { .size = sizeof(q), .addr = addr };

		if (ioctl(fd, QUERY, &q) < 0 || q.end <= addr)
			break;
		writable = q.vma_flags & WRITABLE;
		addr = q.end;
	}
	close(fd);
	return !writable;
}
