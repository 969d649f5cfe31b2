/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the compiler is told beside the language: which way is the usual one, in what an object is
 * embedded, where a thread's own variables are, and what a function in assembly begins with.
 */
#ifndef HEDDLE_BASE_MACROS_H
#define HEDDLE_BASE_MACROS_H

#include <features.h>
#include <stddef.h>

#define hd_likely(x) __builtin_expect(!!(x), 1)
#define hd_unlikely(x) __builtin_expect(!!(x), 0)
#define hd_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/*
 * A variable that each thread has, in the block that it begins with. A library that is loaded late
 * would else get memory for it at its first use, on the data path, and by a call each time that it
 * is named; and the address sanitizer, which guesses how long such memory is, ends programs over a
 * wrong guess. It has to be small: the block has some hundred bytes to spare for what is loaded
 * late. A C library other than glibc's may have none, and chooses.
 */
#ifdef __GLIBC__
#define HD_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local
#else
#define HD_THREAD_LOCAL _Thread_local
#endif

/*
 * The instruction that a call or jump through a pointer has to meet where the processor looks (IBT,
 * BTI); nothing to others.
 */
#if defined(__x86_64__)
#define HD_LANDING "	endbr64\n"
#elif defined(__aarch64__)
#define HD_LANDING "	hint #34\n" /* bti c */
#endif

#endif
