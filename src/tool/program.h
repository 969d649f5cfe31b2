/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_PROGRAM_H
#define HEDDLE_TOOL_PROGRAM_H

#include <stddef.h>

/* Why a program will not see what its environment asks for. */
enum hd_program_kind {
	/* dynamic, of this machine's kind: or a script, whose interpreter is not looked at */
	HD_PROGRAM_FITS,
	HD_PROGRAM_STATIC, /* no dynamic linker: it loads nothing */
	/* set-uid, set-gid or with file capabilities: the dynamic linker ignores the environment */
	HD_PROGRAM_PRIVILEGED,
	HD_PROGRAM_FOREIGN, /* of another architecture or word size: it cannot load our libraries */
};

/*
 * hd_program_find looks a program up as execvp(3) does and writes its path. -ENOENT when there is
 * none, -EACCES when there is one that may not be executed, -EISDIR for a folder.
 */
int hd_program_find(const char *name, char *path, size_t size);

/* hd_program_kind reads the file's mode and ELF header; what cannot be read counts as fitting. */
enum hd_program_kind hd_program_kind(const char *path);

/*
 * hd_program_obstacle says in words why such a program is not served, or returns NULL when it is.
 */
const char *hd_program_obstacle(enum hd_program_kind kind);

/*
 * hd_program_lack says in words what the program of that name needs of a device that Heddle's have
 * not; NULL for all others. Static storage.
 */
const char *hd_program_lack(const char *path);

#endif
