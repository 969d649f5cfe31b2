/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_POISON_H
#define HEDDLE_BASE_POISON_H

#include <stddef.h>

/*
 * hd_poison tells the address sanitizer that memory which is ours must not be touched for now,
 * hd_unpoison that it may again. Without the sanitizer they are nothing. HD_REDZONE: bytes to leave
 * untouchable between neighbours.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HD_WITH_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HD_WITH_ASAN 1
#endif

#ifdef HD_WITH_ASAN
#include <sanitizer/asan_interface.h>

#define HD_REDZONE 64

static inline void hd_poison(const void *at, size_t bytes)
{
	ASAN_POISON_MEMORY_REGION(at, bytes);
}

static inline void hd_unpoison(const void *at, size_t bytes)
{
	ASAN_UNPOISON_MEMORY_REGION(at, bytes);
}
#else
#define HD_REDZONE 0

static inline void hd_poison(const void *at, size_t bytes)
{
	(void)at;
	(void)bytes;
}

static inline void hd_unpoison(const void *at, size_t bytes)
{
	(void)at;
	(void)bytes;
}
#endif

#endif
