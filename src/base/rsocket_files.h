/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_RSOCKET_FILES_H
#define HEDDLE_BASE_RSOCKET_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The files of rsocket(7) that say what rsockets have that nobody has set: rsocket_files.def. */
#define HD_RSOCKET_FOLDER "/etc/rdma/rsocket/"

enum hd_rsocket_file {
#define HD_RSOCKET_FILE(name, file, unit, least, most, fallback, meaning) HD_RSOCKET_##name,
#include "base/rsocket_files.def"
#undef HD_RSOCKET_FILE
	HD_RSOCKET_FILES,
};

struct hd_rsocket_file_info {
	const char *file; /* in HD_RSOCKET_FOLDER */
	const char *unit;
	int least, most;
	int fallback; /* -1: none */
	const char *meaning;
};

/* hd_rsocket_file_at: file number i, or NULL beyond the last. Static storage. */
const struct hd_rsocket_file_info *hd_rsocket_file_at(unsigned i);

/*
 * hd_rsocket_file_read: the number in the file, of which more than the most is the most; its
 * default, where there is no such file, or what is in it is none that it takes, of which the log
 * warns. *found: it is the file's. Any thread.
 */
int hd_rsocket_file_read(enum hd_rsocket_file id, bool *found);

/* hd_rsocket_file_help: what it takes, such as "bytes from 1 to 4096", cut to `size` bytes. */
void hd_rsocket_file_help(enum hd_rsocket_file id, char *text, size_t size);

#endif
