/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_FRONT_VERBS_REAL_H
#define HEDDLE_FRONT_VERBS_REAL_H

/* hv_private_bind: the real libibverbs has been loaded. Only in the drop-in (private.c); in the preload this is NULL. */
__attribute__((weak)) void hv_private_bind(void *library);

#endif
