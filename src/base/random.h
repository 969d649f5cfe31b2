/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HD_BASE_RANDOM_H
#define HD_BASE_RANDOM_H

#include <stddef.h>

/*
 * hd_random: len bytes, at most 256, that nobody can guess; getrandom(2). 0, or -EIO: the
 * kernel gives none. Any thread. Nothing else of Heddle asks for any, so that one function
 * stands between it and chance.
 */
int hd_random(void *to, size_t len);

#endif
