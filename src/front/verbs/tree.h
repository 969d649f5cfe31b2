/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The files that the kernel has for each real device and that programs look for; ours are in no file system, but answers to questions.
 * Any thread, no lock; nothing is opened, made or left behind.
 */
#ifndef HEDDLE_FRONT_VERBS_TREE_H
#define HEDDLE_FRONT_VERBS_TREE_H

#include <stddef.h>
#include <sys/types.h>

enum hv_file_kind {
	HV_FILE_NONE, /* not one of ours */
	HV_FILE_PLAIN,
	HV_FILE_DIR,
	HV_FILE_SHARED_DIR, /* a folder that a host with real devices has as well */
	HV_FILE_DEVICE,	    /* a character device */
};

/* hv_file_kind: what an absolute path is. Two slashes in a row are none of ours. */
enum hv_file_kind hv_file_kind(const char *path);

/* hv_file_read: the contents of a file, cut to size, not terminated: its length; -ENOENT: not one of ours; -EISDIR. */
ssize_t hv_file_read(const char *path, char *buf, size_t size);

/* hv_file_list: the name of the i-th entry of a folder of ours; NULL beyond the last. `name` has room for 256 bytes. */
const char *hv_file_list(const char *path, int i, char *name);

#endif
