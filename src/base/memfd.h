/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Files in memory, memfd_create(2), which containers may refuse. */
#ifndef HD_BASE_MEMFD_H
#define HD_BASE_MEMFD_H

#include <errno.h>
#include <stdbool.h>

/*
 * hd_memfd_is_refused: memfd_create has failed with this errno: because none is ever given here,
 * not for want of something?
 */
static inline bool hd_memfd_is_refused(int error)
{
	return error != EMFILE && error != ENFILE && error != ENOMEM;
}

#endif
