/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/import/where.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define HUGE_PAGE (UINT64_C(2) << 20)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* What is mapped at an address. */
struct where {
	/* of the file, or of what the kernel has for shared memory without one */
	uint32_t major, minor;
	uint64_t inode;
	uint64_t offset; /* of the first byte */
};

/* A line of /proc/self/maps. */
struct line {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	char rights[5];
};

static bool line_next(FILE *maps, struct line *l)
{
	char text[512];

	while (fgets(text, sizeof(text), maps)) {
		int n = sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &l->start,
			       &l->end, l->rights, &l->offset, &l->major, &l->minor, &l->inode);

		if (n == 7)
			return true; /* else: the rest of a long name */
	}
	return false;
}

static bool is_same(const struct line *l, const struct where *w)
{
	return l->rights[3] == 's' && l->inode && l->inode == w->inode && l->major == w->major &&
	       l->minor == w->minor;
}

/* ---- whoever has the memory ------------------------------------------------------------------ */

static int where_look(FILE *maps, uint64_t from, uint64_t end, struct where *w)
{
	uint64_t at = from;
	struct line l;

	while (at < end && line_next(maps, &l)) {
		if (at < l.start || at >= l.end)
			continue;
		if (at == from)
			*w = (struct where){ .major = l.major,
					     .minor = l.minor,
					     .inode = l.inode,
					     .offset = l.offset + (from - l.start) };
		if (!is_same(&l, w) || l.offset + (at - l.start) != w->offset + (at - from))
			return -EOPNOTSUPP;
		at = l.end;
	}
	return at < end ? -EOPNOTSUPP : 0;
}

/* 0, -EOPNOTSUPP, or -errno. */
static int where_find(int process, uint64_t addr, size_t len, struct where *w)
{
	int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC), rc;
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");

	if (!maps) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = where_look(maps, addr, addr + len, w);
	fclose(maps);
	return rc;
}

int hv_where(const void *addr, size_t len)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), rc;
	struct where w;

	if (self < 0)
		return -errno;
	rc = where_find(self, (uintptr_t)addr, len, &w);
	close(self);
	return rc;
}

/* ---- who is to have it, too ------------------------------------------------------------------ */

/* What of the file is mapped: whole pages. */
struct range {
	uint64_t offset;
	size_t size;
};

static struct range around(const struct where *w, size_t len, uint64_t page)
{
	uint64_t first = w->offset & ~(page - 1), end = (w->offset + len + page - 1) & ~(page - 1);

	return (struct range){ first, end - first };
}

/* A second mapping of what one of ours shows, which stays when that goes. */
static void *from_ours(const struct where *w, const struct range *r, bool writable)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	void *out = MAP_FAILED;
	struct line l;

	while (maps && out == MAP_FAILED && line_next(maps, &l))
		if (is_same(&l, w) && (!writable || l.rights[1] == 'w') && l.rights[0] == 'r' &&
		    l.offset <= r->offset && r->offset + r->size <= l.offset + (l.end - l.start))
			out = mremap((void *)(l.start + (r->offset - l.offset)), 0, r->size, MREMAP_MAYMOVE);
	if (maps)
		fclose(maps);
	return out;
}

/* A file of our user's, which is that one. */
static bool is_file(const struct where *w, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_ino == w->inode &&
	       major(st->st_dev) == w->major && minor(st->st_dev) == w->minor;
}

/*
 * And it is long enough, and may be written to; one that has no seals may be made shorter
 * afterwards, which is as with memory of our own.
 */
static bool will_do(int fd, const struct stat *st, const struct range *r, size_t len, uint64_t offset,
		    bool writable)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return (uint64_t)st->st_size >= offset + len && (uint64_t)st->st_size > r->offset &&
	       !(writable && seals > 0 && seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

/* What is only looked at does nothing yet; a device would, or a pipe. */
static void *where_from_file(int dir, const char *name, const struct where *w, const struct range *r,
			     size_t len, bool writable)
{
	int look = openat(dir, name, O_PATH | O_CLOEXEC), fd = -1;
	void *out = MAP_FAILED;
	char path[64];
	struct stat st;

	if (look < 0)
		return out;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", look);
	if (fstat(look, &st) == 0 && is_file(w, &st))
		fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd >= 0 && will_do(fd, &st, r, len, w->offset, writable))
		out = mmap(NULL, r->size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd,
			   (off_t)r->offset);
	close(look);
	if (fd >= 0)
		close(fd);
	return out;
}

/* By a descriptor of this process. */
static void *from_process(int process, const struct where *w, const struct range *r, size_t len,
			  bool writable)
{
	int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	void *out = MAP_FAILED;
	struct dirent *e;
	struct stat st;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && out == MAP_FAILED && (e = readdir(dir)))
		if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && is_file(w, &st))
			out = where_from_file(dirfd(dir), e->d_name, w, r, len, writable);
	if (dir)
		closedir(dir);
	return out;
}

static void *where_get(int process, const struct where *w, const struct range *r, size_t len, bool writable)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	void *out = from_ours(w, r, writable);

	if (out == MAP_FAILED && self >= 0)
		out = from_process(self, w, r, len, writable);
	if (out == MAP_FAILED)
		out = from_process(process, w, r, len, writable);
	if (self >= 0)
		close(self);
	return out;
}

char *hv_where_map(int process, uint64_t addr, size_t len, bool writable, void **base, size_t *size)
{
	const uint64_t pages[] = { (uint64_t)sysconf(_SC_PAGESIZE), HUGE_PAGE };
	struct where w;

	if (addr + len < addr || where_find(process, addr, len, &w) || w.offset > INT64_MAX - 2 * HUGE_PAGE ||
	    len > INT64_MAX - 2 * HUGE_PAGE - w.offset)
		return NULL;
	for (int i = 0; i < 2; i++) {
		struct range r = around(&w, len, pages[i]);

		*size = r.size;
		*base = where_get(process, &w, &r, len, writable);
		if (*base != MAP_FAILED)
			return (char *)*base + (w.offset - r.offset);
	}
	return NULL;
}
