/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Of the preload alone: the C library's functions through which programs look for files of devices.
 * What is asked of a file is answered from tree.c, what is done with a folder is done with a real
 * one (shadow.c); all other paths are the C library's. A folder that real devices have as well
 * shows those too.
 */
#undef _FILE_OFFSET_BITS /* here both names of each function are meant */
#define _LARGEFILE64_SOURCE

#include "front/verbs/tree.h"

#include "base/memfd.h"
#include "front/verbs/next.h"
#include "front/verbs/real.h"
#include "front/verbs/shadow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) &&
		       sizeof(struct dirent) == sizeof(struct dirent64),
	       "written for systems on which both are the same");

/* What a path is, and where the C library is to look. */
struct place {
	enum hv_file_kind kind;
	const char *path;	 /* for the C library */
	char name[HV_TREE_PATH]; /* of ours: without slashes that say nothing, and without dots */
	char shadow[PATH_MAX];
};

/*
 * Takes away the last part of a folder of ours, in which no link leads elsewhere; false for others.
 */
static bool go_up(char *out, size_t *len)
{
	enum hv_file_kind kind;

	out[*len] = '\0';
	kind = hv_file_kind(out);
	while ((kind == HV_FILE_DIR || kind == HV_FILE_SHARED_DIR) && *len && out[--*len] != '/')
		;
	return kind == HV_FILE_DIR || kind == HV_FILE_SHARED_DIR;
}

/*
 * "/sys/class/infiniband/./heddle0//ports/.." is "/sys/class/infiniband/heddle0". False: too
 * long, or not to be known.
 */
static bool normalize(const char *path, char *out)
{
	size_t len = 0;

	for (size_t part; *path; path += part + (path[part] == '/')) {
		part = strcspn(path, "/");
		if (part == 2 && !strncmp(path, "..", 2)) {
			if (!go_up(out, &len))
				return false;
		} else if (part && !(part == 1 && *path == '.')) {
			if (len + part + 2 > HV_TREE_PATH)
				return false;
			out[len++] = '/';
			memcpy(out + len, path, part);
			len += part;
		}
	}
	out[len] = '\0';
	return true;
}

/* Nearly all paths are none of ours: tell by their first bytes. */
static bool may_be_ours(const char *path)
{
	return path && (!strncmp(path, "/sys/class/infiniband", 21) || !strncmp(path, "/dev/infiniband", 15));
}

static void files_find_place(const char *path, struct place *p)
{
	p->path = path;
	p->kind = HV_FILE_NONE;
	if (!may_be_ours(path) || !normalize(path, p->name))
		return;
	p->kind = hv_file_kind(p->name);
	if (p->kind == HV_FILE_NONE && strstr(path, "/.."))
		p->path = p->name;
}

/* Is it a file that is answered for here? If not, p->path is where it is. */
static bool files_is_ours(const char *path, struct place *p)
{
	files_find_place(path, p);
	if (p->kind == HV_FILE_PLAIN || p->kind == HV_FILE_DEVICE)
		return true;
	if (p->kind != HV_FILE_NONE && !hv_shadow_path(p->name, p->shadow, sizeof(p->shadow)))
		p->path = p->shadow;
	return false;
}

/* Where a path is that only makes sense for a folder. */
static const char *folder(const char *path, struct place *p)
{
	files_is_ours(path, p);
	return p->path;
}

/* ---- stat ------------------------------------------------------------------------------------ */

/* Any number that no other file here has. */
static ino64_t files_number_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return hash | 1;
}

static int files_fill(const struct place *p, void *out)
{
	struct stat64 st = { .st_dev = makedev(0, 0x4844),
			     .st_ino = files_number_of(p->name),
			     .st_nlink = 1,
			     .st_blksize = 4096,
			     .st_mode = S_IFREG | 0444 };
	char text[HV_FILE_SIZE];

	if (p->kind == HV_FILE_DEVICE) {
		st.st_mode = S_IFCHR | 0666;
		/* the kernel's major number for verbs, and a minor that it leaves free */
		st.st_rdev = makedev(231, 192);
	} else {
		st.st_size = hv_file_read(p->name, text, sizeof(text));
	}
	memcpy(out, &st, sizeof(st));
	return 0;
}

#define STAT(name, type) \
	PUBLIC int name(const char *path, struct type *st) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? files_fill(&p, st) : HV_NEXT(name)(p.path, st); \
	}
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define STATAT(name, type) \
	PUBLIC int name(int dir, const char *path, struct type *st, int flags) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? files_fill(&p, st) : HV_NEXT(name)(dir, p.path, st, flags); \
	}
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)

static int fill_x(const struct place *p, struct statx *out)
{
	struct stat64 st;

	files_fill(p, &st);
	*out = (struct statx){
		.stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_SIZE | STATX_INO,
		.stx_blksize = (uint32_t)st.st_blksize,
		.stx_nlink = 1,
		.stx_mode = (uint16_t)st.st_mode,
		.stx_size = (uint64_t)st.st_size,
		.stx_ino = st.st_ino,
		.stx_dev_major = major(st.st_dev),
		.stx_dev_minor = minor(st.st_dev),
		.stx_rdev_major = major(st.st_rdev),
		.stx_rdev_minor = minor(st.st_rdev),
	};
	return 0;
}

PUBLIC int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	struct place p;

	return files_is_ours(path, &p) ? fill_x(&p, st) : HV_NEXT(statx)(dir, p.path, flags, mask, st);
}

/* What programs that were compiled for an older C library call. */
#define XSTAT(name, type) \
	int name(int version, const char *path, struct type *st); \
	PUBLIC int name(int version, const char *path, struct type *st) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? files_fill(&p, st) : HV_NEXT(name)(version, p.path, st); \
	}
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)

/* ---- access ---------------------------------------------------------------------------------- */

static int may(enum hv_file_kind kind, int mode)
{
	if (!(mode & (kind == HV_FILE_DEVICE ? X_OK : X_OK | W_OK)))
		return 0;
	errno = EACCES;
	return -1;
}

PUBLIC int access(const char *path, int mode)
{
	struct place p;

	return files_is_ours(path, &p) ? may(p.kind, mode) : HV_NEXT(access)(p.path, mode);
}

PUBLIC int eaccess(const char *path, int mode)
{
	struct place p;

	return files_is_ours(path, &p) ? may(p.kind, mode) : HV_NEXT(eaccess)(p.path, mode);
}

PUBLIC int euidaccess(const char *path, int mode)
{
	return eaccess(path, mode);
}

PUBLIC int faccessat(int dir, const char *path, int mode, int flags)
{
	struct place p;

	return files_is_ours(path, &p) ? may(p.kind, mode) : HV_NEXT(faccessat)(dir, p.path, mode, flags);
}

/* ---- open ------------------------------------------------------------------------------------ */

/*
 * What holds the text where the kernel gives no file in memory: it can be read, but not sought in.
 */
static int pipe_with(const char *text, size_t len, int flags)
{
	int p[2];
	bool whole;

	if (pipe2(p, O_NONBLOCK | (flags & O_CLOEXEC)) < 0)
		return -1;
	whole = write(p[1], text, len) == (ssize_t)len;
	close(p[1]);
	if (whole)
		return p[0];
	close(p[0]);
	errno = EIO;
	return -1;
}

/*
 * A file in memory with what there is to be read; the device itself is
 * nothing that could be opened.
 */
static int open_ours(const struct place *p, int flags)
{
	char text[HV_FILE_SIZE];
	ssize_t len;
	int fd;

	if (p->kind == HV_FILE_DEVICE || flags & O_DIRECTORY || (flags & O_ACCMODE) != O_RDONLY) {
		errno = flags & O_DIRECTORY ? ENOTDIR : p->kind == HV_FILE_DEVICE ? ENXIO : EACCES;
		return -1;
	}
	len = hv_file_read(p->name, text, sizeof(text));
	fd = memfd_create("heddle-sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0 && len >= 0 && hd_memfd_is_refused(errno))
		return pipe_with(text, (size_t)len, flags);
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
		struct place p; \
		va_list args; \
		mode_t mode; \
\
		va_start(args, flags); \
		mode = mode_in(flags, args); \
		va_end(args); \
		return files_is_ours(path, &p) ? open_ours(&p, flags) : HV_NEXT(name)(p.path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
	PUBLIC int name(int dir, const char *path, int flags, ...) \
	{ \
		struct place p; \
		va_list args; \
		mode_t mode; \
\
		va_start(args, flags); \
		mode = mode_in(flags, args); \
		va_end(args); \
		return files_is_ours(path, &p) ? open_ours(&p, flags) \
					       : HV_NEXT(name)(dir, p.path, flags, mode); \
	}
OPENAT(openat)
OPENAT(openat64)

/* What programs call that were compiled with _FORTIFY_SOURCE. */
#define OPEN_2(name) \
	int name(const char *path, int flags); \
	PUBLIC int name(const char *path, int flags) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? open_ours(&p, flags) : HV_NEXT(name)(p.path, flags); \
	}
OPEN_2(__open_2)
OPEN_2(__open64_2)

#define OPENAT_2(name) \
	int name(int dir, const char *path, int flags); \
	PUBLIC int name(int dir, const char *path, int flags) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? open_ours(&p, flags) : HV_NEXT(name)(dir, p.path, flags); \
	}
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

static FILE *fopen_ours(const struct place *p, const char *mode)
{
	int fd = open_ours(p, *mode == 'r' && !strchr(mode, '+') ? O_RDONLY | O_CLOEXEC : O_WRONLY);
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
		struct place p; \
		return files_is_ours(path, &p) ? fopen_ours(&p, mode) : HV_NEXT(name)(p.path, mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

/* ---- folders --------------------------------------------------------------------------------- */

PUBLIC DIR *opendir(const char *path)
{
	struct place p;

	if (!files_is_ours(path, &p)) {
		/* a libibverbs that is linked to its own functions has asked nothing before */
		if (p.kind == HV_FILE_SHARED_DIR)
			hv_real_notice(__builtin_return_address(0));
		return HV_NEXT(opendir)(p.path);
	}
	errno = ENOTDIR;
	return NULL;
}

#define SCANDIR(name, type) \
	PUBLIC int name(const char *path, struct type ***list, int (*pick)(const struct type *), \
			int (*compare)(const struct type **, const struct type **)) \
	{ \
		struct place p; \
		return HV_NEXT(name)(folder(path, &p), list, pick, compare); \
	}
SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

PUBLIC int chdir(const char *path)
{
	struct place p;

	return HV_NEXT(chdir)(folder(path, &p));
}

/* ---- attributes: files have none, as in sysfs; ls -l asks ------------------------------------ */

static ssize_t no_attribute(void)
{
	errno = ENODATA;
	return -1;
}

#define GETXATTR(name) \
	PUBLIC ssize_t name(const char *path, const char *attribute, void *value, size_t size) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? no_attribute() \
					       : HV_NEXT(name)(p.path, attribute, value, size); \
	}
GETXATTR(getxattr)
GETXATTR(lgetxattr)

#define LISTXATTR(name) \
	PUBLIC ssize_t name(const char *path, char *list, size_t size) \
	{ \
		struct place p; \
		return files_is_ours(path, &p) ? 0 : HV_NEXT(name)(p.path, list, size); \
	}
LISTXATTR(listxattr)
LISTXATTR(llistxattr)

/* ---- links: there are none ------------------------------------------------------------------- */

static ssize_t no_link(void)
{
	errno = EINVAL;
	return -1;
}

/* Is it one of ours, a folder or not? */
static bool files_is_known(const char *path, struct place *p)
{
	files_find_place(path, p);
	return p->kind != HV_FILE_NONE;
}

PUBLIC ssize_t readlink(const char *path, char *buf, size_t size)
{
	struct place p;

	return files_is_known(path, &p) ? no_link() : HV_NEXT(readlink)(p.path, buf, size);
}

PUBLIC ssize_t readlinkat(int dir, const char *path, char *buf, size_t size)
{
	struct place p;

	return files_is_known(path, &p) ? no_link() : HV_NEXT(readlinkat)(dir, p.path, buf, size);
}

PUBLIC char *realpath(const char *path, char *out)
{
	struct place p;

	if (!files_is_known(path, &p))
		return HV_NEXT(realpath)(p.path, out);
	return out ? strcpy(out, p.name) : strdup(p.name); /* out has room for PATH_MAX */
}

PUBLIC char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

char *__realpath_chk(const char *path, char *out, size_t size);
PUBLIC char *__realpath_chk(const char *path, char *out, size_t size)
{
	struct place p;

	return files_is_known(path, &p) ? realpath(path, out) : HV_NEXT(__realpath_chk)(p.path, out, size);
}
