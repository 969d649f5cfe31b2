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

static bool is_same(const struct line *l, const struct hv_where *w)
{
	return l->rights[3] == 's' && l->inode && l->inode == w->inode && l->major == w->major &&
	       l->minor == w->minor;
}

/* ---- whoever has the memory ------------------------------------------------------------------------------------------------------------ */

static int where_look(FILE *maps, uint64_t from, uint64_t end, struct hv_where *w)
{
	uint64_t at = from;
	struct line l;

	while (at < end && line_next(maps, &l)) {
		if (at < l.start || at >= l.end)
			continue;
		if (at == from)
			*w = (struct hv_where){ .major = l.major,
						.minor = l.minor,
						.inode = l.inode,
						.offset = l.offset + (from - l.start),
						.pid = getpid() };
		if (!is_same(&l, w) || l.offset + (at - l.start) != w->offset + (at - from))
			return -EOPNOTSUPP;
		at = l.end;
	}
	return at < end ? -EOPNOTSUPP : 0;
}

int hv_where(const void *addr, size_t len, struct hv_where *out)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int rc;

	if (!maps)
		return -errno;
	rc = where_look(maps, (uintptr_t)addr, (uintptr_t)addr + len, out);
	fclose(maps);
	return rc;
}

/* ---- who is to have it, too -------------------------------------------------------------------------------------------------------------- */

/* What of the file is mapped: whole pages. */
struct range {
	uint64_t offset;
	size_t size;
};

static struct range around(const struct hv_where *w, size_t len, uint64_t page)
{
	uint64_t first = w->offset & ~(page - 1), end = (w->offset + len + page - 1) & ~(page - 1);

	return (struct range){ first, end - first };
}

/* A second mapping of what one of ours shows, which stays when that goes. */
static void *from_ours(const struct hv_where *w, const struct range *r, bool writable)
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

static bool is_file(const struct hv_where *w, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_ino == w->inode && major(st->st_dev) == w->major &&
	       minor(st->st_dev) == w->minor;
}

/* What the path leads to may have changed since it was looked at. */
static void *where_from_file(const char *path, const struct hv_where *w, const struct range *r, bool writable)
{
	int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	void *out = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return out;
	if (fstat(fd, &st) == 0 && is_file(w, &st))
		out = mmap(NULL, r->size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd,
			   (off_t)r->offset);
	close(fd);
	return out;
}

/* By a descriptor of this process. */
static void *from_process(const char *process, const struct hv_where *w, const struct range *r, bool writable)
{
	char path[320];
	void *out = MAP_FAILED;
	struct dirent *e;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", process);
	dir = opendir(path);
	while (dir && out == MAP_FAILED && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/fd/%s", process, e->d_name);
		if (stat(path, &st) == 0 && is_file(w, &st))
			out = where_from_file(path, w, r, writable);
	}
	if (dir)
		closedir(dir);
	return out;
}

char *hv_where_map(const struct hv_where *w, size_t len, bool writable, void **base, size_t *size)
{
	const uint64_t pages[] = { (uint64_t)sysconf(_SC_PAGESIZE), HUGE_PAGE };
	char other[16];

	if (w->offset > INT64_MAX - 2 * HUGE_PAGE || len > INT64_MAX - 2 * HUGE_PAGE - w->offset)
		return NULL; /* there is no such file */
	snprintf(other, sizeof(other), "%d", (int)w->pid);
	for (int i = 0; i < 2; i++) {
		struct range r = around(w, len, pages[i]);

		*size = r.size;
		*base = from_ours(w, &r, writable);
		if (*base == MAP_FAILED)
			*base = from_process("self", w, &r, writable);
		if (*base == MAP_FAILED && w->pid > 0)
			*base = from_process(other, w, &r, writable);
		if (*base != MAP_FAILED)
			return (char *)*base + (w->offset - r.offset);
	}
	return NULL;
}
