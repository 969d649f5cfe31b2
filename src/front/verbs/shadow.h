/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Of the preload alone: real folders with what tree.h has, for programs that go into one, or open
 * it and ask for what is in there by the descriptor. They are the user's own, below
 * XDG_RUNTIME_DIR, /dev/shm or /tmp, made when the first program of the user asks, and named by a
 * digest of all they hold: so they never change, and processes that see the same devices share
 * them. Those that nobody has asked for in a week go when another is made.
 */
#ifndef HEDDLE_FRONT_VERBS_SHADOW_H
#define HEDDLE_FRONT_VERBS_SHADOW_H

#include <stddef.h>

/*
 * hv_shadow_path: where the folder `path` of tree.h is, as its devices are now; in folders that
 * real devices have as well, theirs are links to them. 0, -errno. Reads, and writes where it must,
 * files. Any thread, no lock.
 */
int hv_shadow_path(const char *path, char *out, size_t size);

#endif
