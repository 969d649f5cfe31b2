/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_FRONTS_H
#define HEDDLE_TOOL_FRONTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Setting up the environment in which a program finds Heddle behind the
 * interface that it is written to.
 */

struct hd_front_choice {
	bool any_provider; /* leave it to the program which libfabric provider to use */
	bool drop_in;	   /* programs that load libibverbs themselves are to find ours */
};

struct hd_front {
	const char *name; /* "libfabric" */
	/* what the front is loaded from, relative to the build or the library folder */
	const char *file;
	/* not every installation has it: without it its programs are not served */
	bool optional;
	/* what its programs open, where that has a name of its own here; or NULL */
	const char *adapter;
	int (*set_up)(const char *folder, const struct hd_front_choice *choice);
};

/* hd_front_at returns front number i, or NULL beyond the last. Static storage. */
const struct hd_front *hd_front_at(size_t i);

/*
 * hd_front_find writes the folder in which the front's file was found into folder[PATH_MAX]: beside
 * this program (the build folder), below where this program is installed, or where it was
 * configured to be. -ENOENT when it is nowhere, and folder then holds a list of the places for a
 * message.
 */
int hd_front_find(const struct hd_front *front, char *folder, size_t size);

/*
 * hd_front_device writes the name (16 bytes) of the i-th device of the verbs front and what it is
 * like; false beyond the last, and where there is no such front.
 */
bool hd_front_device(int i, char *name, char *what, size_t size);

/*
 * hd_put_env sets an environment variable and, after hd_be_verbose(true), says
 * so. -ENOMEM when it cannot.
 */
int hd_put_env(const char *name, const char *value);
void hd_be_verbose(bool yes);

#endif
