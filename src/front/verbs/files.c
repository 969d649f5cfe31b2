/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Of the preload alone: the C library's functions through which programs look for files of devices. Paths of ours are answered from
 * tree.c, all others by the C library; a folder that real devices have as well is the real one, if it is there, with our entries first.
 */
#undef _FILE_OFFSET_BITS /* here both names of each function are meant */
#define _LARGEFILE64_SOURCE

#include "front/verbs/tree.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/lock.h"

#define PUBLIC __attribute__((visibility("default")))

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) &&
		       sizeof(struct dirent) == sizeof(struct dirent64),
	       "written for systems on which both are the same");

/* The function of the C library, looked up with each first use; a second thread finds the same. */
#define NEXT(name) \
	({ \
		static void *_Atomic found; \
		if (!found) \
			found = dlsym(RTLD_NEXT, #name); \
		(__typeof__(&(name)))found; \
	})

/* Nearly all paths are none of ours: tell by their first bytes. */
static enum hv_file_kind kind_of(const char *path)
{
	if (!path || (strncmp(path, "/sys/class/infiniband", 21) && strncmp(path, "/dev/infiniband", 15)))
		return HV_FILE_NONE;
	return hv_file_kind(path);
}

/* Is it to be answered here? A folder of real devices is where it is there. */
static bool is_ours(const char *path, enum hv_file_kind *kind)
{
	struct stat64 st;

	*kind = kind_of(path);
	if (*kind == HV_FILE_SHARED_DIR)
		return NEXT(fstatat64)(AT_FDCWD, path, &st, 0) < 0;
	return *kind != HV_FILE_NONE;
}

/* ---- stat ------------------------------------------------------------------------------------------------------------------ */

static int fill(enum hv_file_kind kind, const char *path, void *out)
{
	struct stat64 st = { .st_nlink = 1, .st_blksize = 4096, .st_mode = S_IFREG | 0444 };
	char text[256];

	if (kind == HV_FILE_DIR || kind == HV_FILE_SHARED_DIR) {
		st.st_mode = S_IFDIR | 0555;
	} else if (kind == HV_FILE_DEVICE) {
		st.st_mode = S_IFCHR | 0666;
		st.st_rdev = makedev(
			231, 192); /* the kernel's major number for verbs, and a minor that it leaves free */
	} else {
		st.st_size = hv_file_read(path, text, sizeof(text));
	}
	memcpy(out, &st, sizeof(st));
	return 0;
}

#define STAT(name, type) \
	PUBLIC int name(const char *path, struct type *st) \
	{ \
		enum hv_file_kind kind; \
		return is_ours(path, &kind) ? fill(kind, path, st) : NEXT(name)(path, st); \
	}
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define STATAT(name, type) \
	PUBLIC int name(int dir, const char *path, struct type *st, int flags) \
	{ \
		enum hv_file_kind kind; \
		return is_ours(path, &kind) ? fill(kind, path, st) : NEXT(name)(dir, path, st, flags); \
	}
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)

static int fill_x(enum hv_file_kind kind, const char *path, struct statx *out)
{
	struct stat64 st;

	fill(kind, path, &st);
	*out = (struct statx){
		.stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_SIZE,
		.stx_blksize = (uint32_t)st.st_blksize,
		.stx_nlink = 1,
		.stx_mode = (uint16_t)st.st_mode,
		.stx_size = (uint64_t)st.st_size,
		.stx_rdev_major = major(st.st_rdev),
		.stx_rdev_minor = minor(st.st_rdev),
	};
	return 0;
}

PUBLIC int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	enum hv_file_kind kind;

	return is_ours(path, &kind) ? fill_x(kind, path, st) : NEXT(statx)(dir, path, flags, mask, st);
}

/* What programs that were compiled for an older C library call. */
#define XSTAT(name, type) \
	int name(int version, const char *path, struct type *st); \
	PUBLIC int name(int version, const char *path, struct type *st) \
	{ \
		enum hv_file_kind kind; \
		return is_ours(path, &kind) ? fill(kind, path, st) : NEXT(name)(version, path, st); \
	}
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)

/* ---- access -------------------------------------------------------------------------------------------------------------------- */

static int may(enum hv_file_kind kind, int mode)
{
	bool ok = kind == HV_FILE_DEVICE ? !(mode & X_OK)
					 : !(mode & W_OK) && (kind != HV_FILE_PLAIN || !(mode & X_OK));

	if (ok)
		return 0;
	errno = EACCES;
	return -1;
}

PUBLIC int access(const char *path, int mode)
{
	enum hv_file_kind kind;

	return is_ours(path, &kind) ? may(kind, mode) : NEXT(access)(path, mode);
}

PUBLIC int faccessat(int dir, const char *path, int mode, int flags)
{
	enum hv_file_kind kind;

	return is_ours(path, &kind) ? may(kind, mode) : NEXT(faccessat)(dir, path, mode, flags);
}

/* ---- open ------------------------------------------------------------------------------------------------------------------------ */

/* A file in memory with what there is to be read; the device itself is nothing that could be opened. */
static int open_ours(enum hv_file_kind kind, const char *path, int flags)
{
	char text[256];
	ssize_t len;
	int fd;

	if (kind != HV_FILE_PLAIN || (flags & O_ACCMODE) != O_RDONLY) {
		errno = kind == HV_FILE_PLAIN ? EACCES : kind == HV_FILE_DEVICE ? ENXIO : EISDIR;
		return -1;
	}
	len = hv_file_read(path, text, sizeof(text));
	fd = memfd_create("heddle-sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd >= 0 && (len < 0 || write(fd, text, (size_t)len) != len || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		errno = EIO;
		return -1;
	}
	return fd;
}

static mode_t mode_in(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

#define OPEN(name) \
	PUBLIC int name(const char *path, int flags, ...) \
	{ \
		enum hv_file_kind kind; \
		va_list args; \
		mode_t mode; \
\
		va_start(args, flags); \
		mode = mode_in(flags, args); \
		va_end(args); \
		return is_ours(path, &kind) ? open_ours(kind, path, flags) : NEXT(name)(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
	PUBLIC int name(int dir, const char *path, int flags, ...) \
	{ \
		enum hv_file_kind kind; \
		va_list args; \
		mode_t mode; \
\
		va_start(args, flags); \
		mode = mode_in(flags, args); \
		va_end(args); \
		return is_ours(path, &kind) ? open_ours(kind, path, flags) \
					    : NEXT(name)(dir, path, flags, mode); \
	}
OPENAT(openat)
OPENAT(openat64)

static FILE *fopen_ours(enum hv_file_kind kind, const char *path, const char *mode)
{
	int fd = open_ours(kind, path, *mode == 'r' && !strchr(mode, '+') ? O_RDONLY | O_CLOEXEC : O_WRONLY);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !file) {
		int err = errno;

		close(fd);
		errno = err;
	}
	return file;
}

#define FOPEN(name) \
	PUBLIC FILE *name(const char *path, const char *mode) \
	{ \
		enum hv_file_kind kind; \
		return is_ours(path, &kind) ? fopen_ours(kind, path, mode) : NEXT(name)(path, mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

/* ---- folders ----------------------------------------------------------------------------------------------------------------------- */

/* What a program holds as DIR *: our entries, then those of the real folder, if there is one. */
struct folder {
	LIST_ENTRY(folder) entry;
	char *path;
	DIR *real; /* NULL: there is none */
	int next;
	struct dirent64 now;
};
static LIST_HEAD(, folder) folders = LIST_HEAD_INITIALIZER(folders);
HD_LOCK_DEFINE(folders_lock);
static atomic_int folder_count;

static struct folder *folder_of(const DIR *dir)
{
	struct folder *f;

	if (!folder_count)
		return NULL;
	hd_lock_take(&folders_lock);
	LIST_FOREACH(f, &folders, entry)
		if ((const void *)f == (const void *)dir)
			break;
	hd_lock_give(&folders_lock);
	return f;
}

static DIR *folder_open(const char *path)
{
	struct folder *f = calloc(1, sizeof(*f));

	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		errno = ENOMEM;
		return NULL;
	}
	f->real = NEXT(opendir)(path);
	hd_lock_take(&folders_lock);
	LIST_INSERT_HEAD(&folders, f, entry);
	folder_count++;
	hd_lock_give(&folders_lock);
	return (DIR *)(void *)f;
}

PUBLIC DIR *opendir(const char *path)
{
	enum hv_file_kind kind = kind_of(path);

	if (kind == HV_FILE_DIR || kind == HV_FILE_SHARED_DIR)
		return folder_open(path);
	if (kind == HV_FILE_NONE)
		return NEXT(opendir)(path);
	errno = ENOTDIR;
	return NULL;
}

static struct dirent64 *folder_read(struct folder *f)
{
	static const char *const dots[] = { ".", ".." };
	const char *name = f->next < 2 ? dots[f->next] : NULL;
	char full[512], buf[256];

	if (f->next < 2 && f->real) /* the real folder has them as well */
		f->next = 2;
	if (f->next >= 2)
		name = hv_file_list(f->path, f->next - 2, buf);
	if (!name)
		return f->real ? NEXT(readdir64)(f->real) : NULL;
	snprintf(f->now.d_name, sizeof(f->now.d_name), "%s", name);
	snprintf(full, sizeof(full), "%s/%s", f->path, name);
	f->now.d_type = kind_of(full) == HV_FILE_PLAIN	  ? DT_REG
			: kind_of(full) == HV_FILE_DEVICE ? DT_CHR
							  : DT_DIR;
	f->now.d_ino = (ino64_t)++f->next;
	f->now.d_reclen = sizeof(f->now);
	return &f->now;
}

PUBLIC struct dirent64 *readdir64(DIR *dir)
{
	struct folder *f = folder_of(dir);

	return f ? folder_read(f) : NEXT(readdir64)(dir);
}

PUBLIC struct dirent *readdir(DIR *dir)
{
	struct folder *f = folder_of(dir);

	return f ? (struct dirent *)(void *)folder_read(f) : NEXT(readdir)(dir);
}

PUBLIC void rewinddir(DIR *dir)
{
	struct folder *f = folder_of(dir);

	if (!f) {
		NEXT(rewinddir)(dir);
		return;
	}
	f->next = 0;
	if (f->real)
		NEXT(rewinddir)(f->real);
}

PUBLIC int dirfd(DIR *dir)
{
	struct folder *f = folder_of(dir);

	if (!f)
		return NEXT(dirfd)(dir);
	if (f->real)
		return NEXT(dirfd)(f->real);
	errno = ENOTSUP;
	return -1;
}

PUBLIC int closedir(DIR *dir)
{
	struct folder *f = folder_of(dir);

	if (!f)
		return NEXT(closedir)(dir);
	hd_lock_take(&folders_lock);
	LIST_REMOVE(f, entry);
	folder_count--;
	hd_lock_give(&folders_lock);
	if (f->real)
		NEXT(closedir)(f->real);
	free(f->path);
	free(f);
	return 0;
}
