/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the compiler is told beside the language: which way is the usual one, and in what an object is embedded. */
#ifndef HEDDLE_BASE_MACROS_H
#define HEDDLE_BASE_MACROS_H

#include <stddef.h>

#define hd_likely(x) __builtin_expect(!!(x), 1)
#define hd_unlikely(x) __builtin_expect(!!(x), 0)
#define hd_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
