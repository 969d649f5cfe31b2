/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/shadow.h"

#include "front/verbs/next.h"
#include "front/verbs/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/log.h"

#define NAME_BYTES 8 /* of the digest */
#define NEW ".new-"  /* not finished yet */
#define WEEK (7 * 24 * 60 * 60)
#define HOUR (60 * 60)

/* ---- what is to be there --------------------------------------------------------------------- */

struct piece {
	STAILQ_ENTRY(piece) entry;
	enum hv_file_kind kind;
	bool link; /* to the path itself, which is a real device's */
	char path[HV_TREE_PATH];
	char text[HV_FILE_SIZE];
};
STAILQ_HEAD(pieces, piece);

static int piece_add(struct pieces *all, const char *path, enum hv_file_kind kind, const char *text,
		     bool link)
{
	struct piece *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->kind = kind;
	p->link = link;
	snprintf(p->path, sizeof(p->path), "%s", path);
	snprintf(p->text, sizeof(p->text), "%s", text ? text : "");
	STAILQ_INSERT_TAIL(all, p, entry);
	return 0;
}

/* What real devices have in this folder, in the order in which it is found. */
static int pieces_add_real(struct pieces *all, const char *folder)
{
	DIR *dir = HV_NEXT(opendir)(folder);
	char path[HV_TREE_PATH];
	struct dirent *e;
	int rc = 0;

	while (dir && !rc && (e = readdir(dir)))
		if (*e->d_name != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path))
			rc = piece_add(all, path, HV_FILE_PLAIN, NULL, true);
	if (dir)
		closedir(dir);
	return rc;
}

static int collect(const char *path, enum hv_file_kind kind, const char *text, void *arg)
{
	int rc = piece_add(arg, path, kind, text, false);

	return !rc && kind == HV_FILE_SHARED_DIR ? pieces_add_real(arg, path) : rc;
}

static void pieces_drop(struct pieces *all)
{
	struct piece *p;

	while ((p = STAILQ_FIRST(all))) {
		STAILQ_REMOVE_HEAD(all, entry);
		free(p);
	}
}

static void name_of(const struct pieces *all, char *out)
{
	uint8_t sum[HD_DIGEST_SIZE];
	const struct piece *p;
	struct hd_digest d;

	hd_digest_init(&d);
	STAILQ_FOREACH(p, all, entry) {
		hd_digest_add(&d, p->path, strlen(p->path) + 1);
		hd_digest_add(&d, p->text, strlen(p->text) + 1);
	}
	hd_digest_end(&d, sum);
	for (int i = 0; i < NAME_BYTES; i++)
		sprintf(out + 2 * (size_t)i, "%02x", sum[i]);
}

/* ---- making it ------------------------------------------------------------------------------- */

static int write_file(const char *path, const struct piece *p)
{
	size_t len = strlen(p->text);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0)
		return -errno;
	int rc = write(fd, p->text, len) == (ssize_t)len ? 0 : -EIO;
	close(fd);
	return rc;
}

static bool make_folders(const char *root, char *path)
{
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		bool failed = mkdir(path, 0755) && errno != EEXIST;
		*slash = '/';
		if (failed)
			return false;
	}
	return !mkdir(path, 0755);
}

static int make_piece(const char *root, const struct piece *p)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", root, p->path) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (p->link)
		/* what is ours stands */
		return symlink(p->path, path) && errno != EEXIST ? -errno : 0;
	if (p->kind == HV_FILE_PLAIN || p->kind == HV_FILE_DEVICE)
		return write_file(path, p);
	return make_folders(root, path) ? 0 : -errno;
}

static int shadow_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	remove(path);
	return 0;
}

static void remove_tree(const char *root)
{
	nftw(root, shadow_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Those that nobody needs any more, or that were not finished. */
static void shadow_sweep(const char *base)
{
	DIR *dir = HV_NEXT(opendir)(base);
	struct dirent *e;
	char path[PATH_MAX];
	struct stat st;

	while (dir && (e = readdir(dir))) {
		time_t most = strncmp(e->d_name, NEW, strlen(NEW)) ? WEEK : HOUR;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    snprintf(path, sizeof(path), "%s/%s", base, e->d_name) >= (int)sizeof(path))
			continue;
		if (!lstat(path, &st) && time(NULL) - st.st_mtime > most)
			remove_tree(path);
	}
	if (dir)
		closedir(dir);
}

/* Whoever is first has made it; all others have made the same. */
static int shadow_make(const char *base, const char *root, const struct pieces *all)
{
	const struct piece *p;
	char fresh[PATH_MAX];
	int rc = 0;

	if (snprintf(fresh, sizeof(fresh), "%s/" NEW "XXXXXX", base) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	if (!mkdtemp(fresh))
		return -errno;
	STAILQ_FOREACH(p, all, entry)
		if (!rc)
			rc = make_piece(fresh, p);
	if (!rc && rename(fresh, root))
		rc = errno == EEXIST || errno == ENOTEMPTY ? 1 : -errno;
	if (rc)
		remove_tree(fresh);
	else
		shadow_sweep(base);
	return rc > 0 ? 0 : rc;
}

/* ---- where it is ----------------------------------------------------------------------------- */

/* The i-th folder that may hold ours, or false. */
static bool candidate(int i, char *out, size_t size)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

	if (i == 0)
		return runtime && *runtime == '/'
			       ? snprintf(out, size, "%s/heddle", runtime) < (int)size
			       : snprintf(out, size, "/run/user/%u/heddle", (unsigned)geteuid()) > 0;
	return snprintf(out, size, "%s/heddle-%u", i == 1 ? "/dev/shm" : "/tmp", (unsigned)geteuid()) > 0;
}

/* Ours, and nobody else's to write to? */
static int base_check(const char *base)
{
	struct stat st;

	if (mkdir(base, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(base, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

static int root_in(const char *base, const char *name, const struct pieces *all, char *root)
{
	struct stat st;
	int rc = base_check(base);

	if (rc)
		return rc;
	if (snprintf(root, PATH_MAX, "%s/%s", base, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (lstat(root, &st))
		return shadow_make(base, root, all);
	if (time(NULL) - st.st_mtime > HOUR)
		utimensat(AT_FDCWD, root, NULL, 0); /* it is in use */
	return 0;
}

static int root_find(char *root)
{
	struct pieces all = STAILQ_HEAD_INITIALIZER(all);
	char name[2 * NAME_BYTES + 1], base[PATH_MAX];
	int rc = hv_tree_walk(collect, &all);

	if (!rc) {
		name_of(&all, name);
		rc = -ENOENT;
		for (int i = 0; rc && i < 3; i++)
			if (candidate(i, base, sizeof(base)))
				rc = root_in(base, name, &all, root);
	}
	pieces_drop(&all);
	return rc;
}

int hv_shadow_path(const char *path, char *out, size_t size)
{
	char root[PATH_MAX];
	int rc = root_find(root);

	if (rc) {
		HD_LOG_EVERY_MS(
			60000, HD_LOG_WARN,
			"the folder %s cannot be shown: no place for it in XDG_RUNTIME_DIR, /dev/shm or /tmp: %s: make one of them writable",
			path, strerror(-rc));
		return rc;
	}
	return snprintf(out, size, "%s%s", root, path) < (int)size ? 0 : -ENAMETOOLONG;
}
