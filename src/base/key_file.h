/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The file with the key that nodes share (HEDDLE_KEY_FILE): one line, «heddle-key 1 » and 64
 * hexadecimal digits. It belongs to the user whose process reads it, and nobody else may open it.
 */
#ifndef HEDDLE_BASE_KEY_FILE_H
#define HEDDLE_BASE_KEY_FILE_H

#include <stddef.h>
#include <stdint.h>

#define HD_KEY_SIZE 32 /* bytes */

/*
 * hd_key_file_read: 0, or -EACCES: others may open it, or it is another user's; -EBADMSG: no key
 * stands in it; or what open(2) and read(2) answer. *why, unless NULL: a few words for whoever has
 * to mend it, static. Any thread; blocks on the file alone.
 */
int hd_key_file_read(const char *path, uint8_t key[HD_KEY_SIZE], const char **why);

/*
 * hd_key_file_make: a new file with a new random key, mode 0600. -EEXIST: there is one already,
 * which is not touched; or another errno.
 */
int hd_key_file_make(const char *path);

#endif
