/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The files that the kernel has for each real device and that programs look for; ours are in no
 * file system, but answers to questions. Any thread, no lock; nothing is opened, made or left
 * behind here (shadow.h has folders that the kernel knows).
 */
#ifndef HEDDLE_FRONT_VERBS_TREE_H
#define HEDDLE_FRONT_VERBS_TREE_H

#include <stddef.h>
#include <sys/types.h>

#define HV_FILE_SIZE 256 /* contents are shorter */
#define HV_TREE_PATH 512 /* and so are paths */

enum hv_file_kind {
	HV_FILE_NONE, /* not one of ours */
	HV_FILE_PLAIN,
	HV_FILE_DIR,
	HV_FILE_SHARED_DIR, /* a folder that a host with real devices has as well */
	HV_FILE_DEVICE,	    /* a character device */
};

/* hv_file_kind: what an absolute path is. Two slashes in a row are none of ours. */
enum hv_file_kind hv_file_kind(const char *path);

/*
 * hv_file_read: the contents of a file, cut to size, not terminated: its length; -ENOENT:
 * not one of ours; -EISDIR.
 */
ssize_t hv_file_read(const char *path, char *buf, size_t size);

/*
 * hv_tree_walk: calls fn for each folder and file there is, folders before what is in them, until
 * one call does not return 0; what the last one returned. text: the contents of a HV_FILE_PLAIN.
 */
typedef int (*hv_tree_fn)(const char *path, enum hv_file_kind kind, const char *text, void *arg);
int hv_tree_walk(hv_tree_fn fn, void *arg);

#endif
